# SPDX-License-Identifier: Apache-2.0
"""report(runs, comparison) → Report: the data that the page shows, and the page around it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from lagging.comparison import Comparison
from lagging.comparison.degeneracy import judge
from lagging.data.run import Run
from lagging.data.tokens import noun
from lagging.errors import Note, UsageError
from lagging.metrics import Metric
from lagging.metrics.conventions import Convention
from lagging.metrics.conventions import convention as convention_named
from lagging.render.analysis import Analysis, analyse
from lagging.render.records import estimate_record, finite
from lagging.render.report.charts import by_length, distribution, hidden_lag, over_time, tradeoff
from lagging.render.report.health import Check, check_system
from lagging.render.report.segments import choose_rows, segment_columns
from lagging.scoring.intervals import with_intervals
from lagging.scoring.log import score
from lagging.scoring.plan import default_metrics, default_resample
from lagging.scoring.scores import Scores
from lagging.stats import RESAMPLES, SEED
from lagging.version import __version__

__all__ = ["Report", "compare_alone", "report"]

SCHEMA = 1
COMPRESSION = 6
"""Level of compression: 9 takes five times as long, for 2 % fewer bytes."""
PLACE = '<script id="data" type="application/octet-stream;base64"></script>'
"""The place of the data in the page; browsers never run such a script."""
POLICY = "img-src data:"
"""The part of the content security policy after which sound is allowed, where it was given."""


@dataclass(frozen=True, eq=False)
class Report:
    """The data of a page, and the page.

    Attributes:
        data: plain lists, dicts, texts and numbers (None for NaN), as `to_json` writes them:

            title, version, unit        title of the page, version of lagging, unit of the log's times
            systems                     name, level, number of segments and tokens, origin, notes
            metrics                     name, unit, direction, summary, formula
            health                      per system, the checks (see `lagging.render.report.health.Check`)
            comparison                  per system, the score of each metric; pairs; how they were made
            tradeoff, hidden, distribution, by_length, over_time    the figures
            segments                    columns (see `lagging.render.report.segments`)
    """

    data: dict[str, Any]

    def to_json(self) -> str:
        """The data as JSON: the same text for the same input."""
        return json.dumps(self.data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @cached_property
    def packed(self) -> str:
        """The data as the page holds it: deflated, in base64."""
        raw = self.to_json().encode("utf-8", "backslashreplace")  # half a surrogate is \udc80, as JSON writes it
        return base64.b64encode(zlib.compress(raw, COMPRESSION)).decode("ascii")

    def to_html(self) -> str:
        """The page: one file that needs nothing else, and no network."""
        page = files("lagging.render").joinpath("web", "report.html").read_text("utf-8")
        if self.data["segments"]["sound"]:
            page = page.replace(POLICY, f"{POLICY}; media-src 'self' file:", 1)
        if page.count(PLACE) != 1:
            raise UsageError("web/report.html has no place for data; rebuild it with `make web`")
        return page.replace(PLACE, PLACE.replace("></", f">{self.packed}</"))

    def __repr__(self) -> str:
        """`Report(base, new: 2588 segments)`."""
        names = ", ".join(system["name"] for system in self.data["systems"])
        return f"Report({names}: {self.data['segments']['total']} segments)"


def report(
    runs: Mapping[str, Run],
    comparison: Comparison | None = None,
    *,
    title: str = "",
    convention: str | Convention = "paper",
    sounds: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """The report about one or more systems.

    Args:
        runs: the Runs by name, as they were compared.
        comparison: their comparison, as `lagging.compare` makes it; of a single Run it can be left out.
        title: title of the page.
        convention: the convention of the comparison.
        sounds: addresses of recordings, as seen from the page, by the names that `recording_names` gives.

    Raises:
        UsageError: the comparison has other systems.

    Example:
        >>> import lagging
        >>> def wait(k):
        ...     return lagging.policies.wait_k(k).run(source_lengths=[8, 9, 11], target_lengths=[9, 8, 12])
        >>> runs = {"wait-3": wait(3), "wait-5": wait(5)}
        >>> page = report(runs, lagging.compare(runs, ["AL", "DAL"], resamples=500))
        >>> page
        Report(wait-3, wait-5: 3 segments)
        >>> page.data["comparison"]["scores"][0][1]["value"] == lagging.score(wait(3), ["DAL"])["DAL"].value
        True
    """
    counting = convention_named(convention)
    if comparison is None:
        comparison = compare_alone(runs, counting)
    if tuple(runs) != comparison.systems:
        raise UsageError(f"the comparison is of {', '.join(comparison.systems)}, not of {', '.join(runs)}")
    systems = analyse(runs, comparison, counting)
    health = [check_system(system, comparison.unmatched.get(system.name, ())) for system in systems]
    rows, note = choose_rows(systems, sorted({row for checks in health for check in checks for row in check.rows}))
    index = {row: i for i, row in enumerate(rows.tolist())}
    columns = segment_columns(systems, comparison.metrics, rows)
    known = {name: sounds[name] for name in dict.fromkeys(columns["recording"] or ()) if name in sounds}
    segments = {"total": len(systems[0].run), "note": note, **columns, "sound": known}
    return Report(
        {
            "schema": SCHEMA,
            "version": __version__,
            "title": title,
            "unit": next((system.run.unit for system in systems if system.timed), "none"),
            "systems": [_system_record(system) for system in systems],
            "metrics": [_metric_record(m, comparison) for m in comparison.metrics],
            "health": [[_check_record(check, index) for check in checks] for checks in health],
            "comparison": _comparison_record(comparison),
            "tradeoff": tradeoff(comparison, systems),
            "hidden": hidden_lag(systems),
            "distribution": distribution(systems),
            "by_length": by_length(systems),
            "over_time": over_time(systems),
            "segments": segments,
        }
    )


def compare_alone(
    runs: Mapping[str, Run],
    counting: Convention,
    scores: Scores | None = None,
    *,
    resample: str | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """A comparison of a single system: scores with intervals, and no pairs."""
    if len(runs) != 1:
        raise UsageError("several systems need a comparison: lagging.compare(runs)")
    ((name, run),) = runs.items()
    scores = score(run, default_metrics(run), convention=counting) if scores is None else scores
    resample = default_resample(scores) if resample is None else resample
    scores = with_intervals(scores, resample=resample, confidence=confidence, resamples=resamples, seed=seed)
    first = next(iter(scores))
    documents = first.documents if resample == "document" else None
    clusters = first.n if documents is None else len(set(documents.tolist()))
    return Comparison(
        systems=(name,),
        metrics=tuple(score.metric for score in scores),
        scores={name: Scores(list(scores), name, scores.notes)},
        pairs=(),
        base=None,
        n=first.n,
        clusters=clusters,
        unmatched={},
        test="bootstrap",
        correction="none",
        resample=resample,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def _system_record(system: Analysis) -> dict[str, Any]:
    run = system.whole
    return {
        "name": system.name,
        "unit": run.unit,
        "level": run.level,
        "noun": noun(run.level),
        "seg": run.seg,
        "segments": len(run),
        "tokens": int(run.delays.lengths.sum()),
        "origin": run.origin.description,
        "clocks": list(system.clocks),
        "notes": [_note_record(note) for note in system.scores.notes],
        "verdict": _verdict_record(system),
    }


def _verdict_record(system: Analysis) -> dict[str, Any] | None:
    if not system.timed:
        return None
    verdict = judge(system.diagnostics, system.name)
    return {"word": verdict.verdict, "reasons": list(verdict.reasons)}


def _note_record(note: Note) -> dict[str, Any]:
    return {"kind": note.kind, "text": note.text, "count": note.count, "noun": note.noun, "said": str(note)}


def _metric_record(m: Metric, comparison: Comparison) -> dict[str, Any]:
    return {
        "name": repr(m),
        "unit": comparison.scores[comparison.systems[0]][m].unit,
        "higher": m.higher_is_better,
        "summary": m.summary,
        "formula": m.formula,
    }


def _check_record(check: Check, index: Mapping[int, int]) -> dict[str, Any]:
    return {
        "key": check.key,
        "title": check.title,
        "help": check.help,
        "count": check.count,
        "noun": check.noun,
        "value": finite(check.value),
        "unit": check.unit,
        "bad": check.bad,
        "rows": [index[row] for row in check.rows if row in index],
        "ids": list(check.ids[:1000]),
    }


def _comparison_record(c: Comparison) -> dict[str, Any]:
    letters, marks = c.letters, c.marks
    return {
        "n": c.n,
        "base": c.base,
        "alpha": c.alpha,
        "level": c.confidence,
        "how": c.description,
        "key": c.key,
        "summary": c.summary.splitlines()[:-1],
        "signature": str(c.signature) if c.pairs else None,
        "notes": [str(note) for note in c.notes],
        "scores": [
            [
                {
                    **(estimate_record(score) or {}),
                    "undefined": int(score.undefined),
                    "mark": letters.get(m, {}).get(name, "") or marks.get(m, {}).get(name, ""),
                    "signature": str(score.signature),
                }
                for m in c.metrics
                for score in [c.scores[name][m]]
            ]
            for name in c.systems
        ],
        "pairs": [
            {
                "metric": repr(pair.metric),
                "a": c.systems.index(pair.a),
                "b": c.systems.index(pair.b),
                "difference": finite(pair.difference),
                "low": finite(pair.low),
                "high": finite(pair.high),
                "p": finite(pair.p),
                "p_adjusted": finite(pair.p_adjusted),
                "verdict": c.verdict(pair),
            }
            for pair in c.pairs
        ],
    }
