# SPDX-License-Identifier: Apache-2.0
"""Score logs that outgrow a machine, where they are: on Spark. Needs the extra `spark`.

Spark is an executor of a `Plan`, as processes are. Its executors add up the scores of Arrow batches (`mapInArrow`), and
the driver adds their sums to one `Accumulator`:

    segments ──▶ a Tally per partition, group and metric ──shuffle──▶ added up, with intervals ──▶ Accumulator

This is one pass. What is shuffled is Tallies, and 8 bytes of hash per segment by which ids that occur twice are found;
rows are not. A task that runs twice, because an executor died, returns the same bytes, and Spark counts one of them.
"""

from lagging.scoring.spark.files import score_files, session
from lagging.scoring.spark.scored import Scored, score

__all__ = ["Scored", "score", "score_files", "session"]
