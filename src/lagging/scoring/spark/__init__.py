# SPDX-License-Identifier: Apache-2.0
"""Logs that outgrow a machine: a DataFrame of segments is scored where it is, on Spark. Needs the extra `spark`.

The executors run what a laptop runs, on Arrow batches (`mapInArrow`), and answer with tallies, which add up exactly:

    segments ──tally──▶ a tally per partition, group and metric ──shuffle──▶ merged and finished ──▶ scores, intervals

One pass; what is shuffled is tallies and 8 bytes of hash per segment, by which ids that occur twice are found, never
rows. A task that runs twice, because an executor died, gives the same bytes, and Spark counts one of them.
"""

from lagging.scoring.spark.files import score_files, session
from lagging.scoring.spark.frames import Scored, score

__all__ = ["Scored", "score", "score_files", "session"]
