# SPDX-License-Identifier: Apache-2.0
"""Metrics that other programs compute: their names, what is better, and the command that makes their scores."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Elsewhere", "elsewhere"]

COMET = "comet-score -s source.txt -t hypothesis.txt -r reference.txt --to_json comet.json"


@dataclass(frozen=True)
class Elsewhere:
    """A family of metrics that another program computes from texts.

    Attributes:
        name: how the names of the family begin.
        command: what makes a file of scores.
        file: the file that it makes.
        lower: whether lower is better.
    """

    name: str
    command: str
    file: str
    lower: bool = False

    def fix(self, name: str) -> str:
        """The two lines that make the scores, and give them to `lagging score`."""
        return f"{self.command}\n       lagging score LOG --column {name}={self.file}"


FAMILIES = (
    Elsewhere("COMETKiwi", COMET.replace(" -r reference.txt", " --model Unbabel/wmt22-cometkiwi-da"), "comet.json"),
    Elsewhere("COMET", COMET, "comet.json"),
    Elsewhere("XCOMET", COMET.replace(" --to_json", " --model Unbabel/XCOMET-XL --to_json"), "comet.json"),
    Elsewhere(
        "BLEURT",
        "python -m bleurt.score_files -candidate_file=hypothesis.txt -reference_file=reference.txt "
        "-bleurt_checkpoint=BLEURT-20 -scores_file=bleurt.txt",
        "bleurt.txt",
    ),
    Elsewhere(
        "MetricX",
        "python -m metricx24.predict --tokenizer google/mt5-xl --model_name_or_path google/metricx-24-hybrid-xl-v2p6 "
        "--max_input_length 1536 --batch_size 1 --input_file texts.jsonl --output_file metricx.jsonl",
        "metricx.jsonl",
        lower=True,
    ),
)


def elsewhere(name: str) -> Elsewhere | None:
    """The family of a metric that another program computes, in any case; None if it is not known.

    Example:
        >>> elsewhere("XCOMET-XL").lower, elsewhere("metricx-24").lower, elsewhere("DAL")
        (False, True, None)
    """
    return next((family for family in FAMILIES if name.lower().startswith(family.name.lower())), None)
