# SPDX-License-Identifier: Apache-2.0
"""Scores that other tools published: read_scores(path) → PublishedScores, under our names where there are any.

`layouts` parses score files, `labels` knows what their labels mean. A file is read whole, or refused with every fault
that it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lagging.comparison.published.labels import FLAGS, find_metric, has_clock, number
from lagging.comparison.published.layouts import Sheet, parse
from lagging.errors import DataError, UsageError
from lagging.formats.schema import configured_type
from lagging.formats.source import Source

__all__ = ["PublishedScore", "read_scores"]

FILES = ("evaluation_report.txt", "scores.tsv", "scores.json", "scores", "scores.log", "scores.resegmented.csv")
"""The score files of a directory; of files with the same scores, the first is read, because it holds more."""


IN_MS = ("OmniSTEval", "Speech-to-Speech-Latency", "simulstream")
"""Tools whose times are in ms, or are converted into them."""


@dataclass(frozen=True)
class PublishedScore:
    """One score, as a tool wrote it into a file.

    Attributes:
        system: the name of the system.
        metric: our name of the metric, `AL(clock=elapsed)` for `AL (CA)`; the label where we have none.
        score: the number; NaN where the tool had none.
        unit: "ms", "token", "ratio", "count" or "points"; None where the file does not say it.
        label: the name as it is written in the file.
        tool: the tool that wrote it: "SimulEval", "OmniSTEval", "StreamLAAL", "simulstream",
            "Speech-to-Speech-Latency", "lagging"; None if it is not known.
        path, line: the file, and the line.
        version: the version of the tool, where the file has it; in our own files the signature has it.
        settings: the settings of the tool, where the file has them: pairs of name and value.
        signature: how the number was made, where `lagging` made it.
    """

    system: str
    metric: str
    score: float
    unit: str | None
    label: str
    tool: str | None
    path: str
    line: int
    version: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    signature: str | None = None


def read_scores(path: str | Path, *, system: str | None = None) -> list[PublishedScore]:
    r"""Read scores that a tool has published, to show them beside other scores.

    It reads OmniSTEval's `scores.tsv` and `evaluation_report.txt`; SimulEval's `scores.tsv`, as TSV or as the table
    that it prints, and the JSON of its version 1.0; what simulstream prints; the table of Speech-to-Speech-Latency; a
    JSON object of numbers; and the output of `lagging score -f json`
    and `-f tsv`. Metrics get our names where there are any, else they keep their labels.

    Args:
        path: the file, or "-" for standard input, or a directory that holds one.
        system: the name of the system; by default its name in our own files, else that of the directory or file.

    Returns:
        The scores, in the order of the file.

    Raises:
        DataError: the file is no score file, a value is no number, or a metric has two values: every fault at once.
        UsageError: no such file, or a directory that holds none, or several that differ.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "wait-3.tsv")
        ...     _ = file.write_text("metric\tvalue\nBLEU\t18.2271\nAL (CA)\t2021.1781\n")
        ...     for s in read_scores(file):
        ...         print(s.system, s.metric, s.score, s.unit, s.tool)
        wait-3 BLEU 18.2271 points OmniSTEval
        wait-3 AL(clock=elapsed) 2021.1781 ms OmniSTEval
    """
    if str(path) == "-":
        return _scores(Source("<stdin>", None), system)
    file = Path(path)
    try:
        if not file.exists():
            raise UsageError(f"no such file or directory: {path}")
        candidates = [file / name for name in FILES if (file / name).is_file()] if file.is_dir() else [file]
    except OSError as error:  # e.g. a name that no file can have
        raise UsageError(f"cannot read {str(path)[:80]}: {error.strerror}") from None
    if not candidates:
        raise UsageError(f"{path} holds no score file ({', '.join(FILES)}); name the file")
    first, *rest = [_scores(Source(str(candidate), candidate), system) for candidate in candidates]
    if any(_values(other) != _values(first) for other in rest):
        names = ", ".join(candidate.name for candidate in candidates)
        raise UsageError(f"{path} holds score files that differ ({names}); name the file")
    return first


def _values(scores: list[PublishedScore]) -> set[tuple[str, str, str]]:
    return {(s.system, s.label, repr(s.score)) for s in scores}


def _scores(source: Source, system: str | None) -> list[PublishedScore]:
    """The scores of one file, under our names."""
    sheet = parse(source)
    if sheet.tool in (None, "SimulEval") and any(has_clock(entry.label) for entry in sheet.entries):
        sheet.tool = "OmniSTEval"
    time = _time_unit(source, sheet)
    line_of: dict[tuple[str | None, str], int] = {}
    scores = []
    for entry in sheet.entries:
        if entry.label in FLAGS:
            continue
        known = find_metric(entry.label, sheet.settings, sheet.tool, sheet.version)
        name = entry.label if known is None else repr(known)
        if (entry.system, name) in line_of:
            first = line_of[entry.system, name]
            sheet.fault("repeated-metric", f"{entry.label}, also in line {first}", entry.line)
        line_of[entry.system, name] = entry.line
        unit = entry.unit if known is None or sheet.tool == "lagging" else time if known.unit == "time" else known.unit
        value = number(entry.value, None if known is None else known.unit)
        if value is None:
            sheet.fault("bad-score", f"{entry.label}: {str(entry.value)[:40]}", entry.line)
            continue
        scores.append(
            PublishedScore(
                system=system or entry.system or _system_name(source),
                metric=name,
                score=value,
                unit=unit,
                label=entry.label,
                tool=sheet.tool,
                path=sheet.path,
                line=entry.line,
                version=sheet.version,
                settings=tuple(sheet.settings.items()),
                signature=entry.signature,
            )
        )
    if not scores and not sheet.faults:
        sheet.fault("no-scores")
    if sheet.faults:
        raise DataError(sheet.faults)
    systems = sorted({named for named, _ in line_of if named is not None})
    if system is not None and len(systems) > 1:
        raise UsageError(f"{sheet.path} holds {len(systems)} systems ({', '.join(systems[:5])}); they keep their names")
    return scores


def _time_unit(source: Source, sheet: Sheet) -> str | None:
    """The unit of times; that of SimulEval is in a config.yaml beside the file, if anywhere."""
    if sheet.tool == "SimulEval":
        return {"text": "token", "speech": "ms"}.get(configured_type(source) or "")
    return "ms" if sheet.tool in IN_MS else None


def _system_name(source: Source) -> str:
    """The default name of a system: that of the directory of a scores.tsv or the like, else that of the file."""
    if source.file is None:
        return "stdin"
    if source.file.name.split(".")[0] in {name.split(".")[0] for name in FILES}:
        return source.file.resolve().parent.name
    return Path(source.file.name.removesuffix(".gz")).stem
