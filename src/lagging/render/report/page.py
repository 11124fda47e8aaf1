# SPDX-License-Identifier: Apache-2.0
"""report(runs, comparison) → Report: everything the page shows, computed here, and the page around it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from lagging.comparison import Comparison
from lagging.data.run import Run
from lagging.data.tokens import noun
from lagging.errors import Note, UsageError
from lagging.metrics.conventions import Convention, convention
from lagging.render.analysis import Analysis, analyse
from lagging.render.report.charts import by_length, distribution, finite, hidden, over_time, tradeoff
from lagging.render.report.health import Check, checks
from lagging.render.report.segments import chosen, columns
from lagging.scoring.intervals import with_intervals
from lagging.scoring.log import score
from lagging.scoring.plan import default_metrics, default_resample
from lagging.scoring.scores import Scores
from lagging.stats import RESAMPLES, SEED
from lagging.version import __version__

__all__ = ["Report", "alone", "report"]

SCHEMA = 1
LEVEL = 6
"""Of compression: 9 takes five times as long, for 2 % fewer bytes."""
PLACE = '<script id="data" type="application/octet-stream;base64"></script>'
"""Where the page has its data; what is in such a script is never run."""


@dataclass(frozen=True, eq=False)
class Report:
    """What the page shows.

    Attributes:
        data: plain lists, dicts, texts and numbers (None for NaN), as `to_json` writes them:

            title, version, unit        of the page; the unit of the log's times
            systems                     name, level, how many segments and tokens, where from, notes
            metrics                     name, unit, whether higher is better, what it is
            health                      per system, the checks (see `lagging.render.report.health.Check`)
            comparison                  per system, the score of each metric; pairs; how it was made
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
        return base64.b64encode(zlib.compress(raw, LEVEL)).decode("ascii")

    def to_html(self) -> str:
        """The page: one file that needs nothing else, and no network."""
        page = files("lagging.render").joinpath("web", "report.html").read_text("utf-8")
        if page.count(PLACE) != 1:
            raise UsageError("web/report.html has no place for data; rebuild it with `make web`")
        return page.replace(PLACE, PLACE.replace("></", f">{self.packed}</"))

    def __repr__(self) -> str:
        """`Report(base, new: 2588 segments)`."""
        names = ", ".join(one["name"] for one in self.data["systems"])
        return f"Report({names}: {self.data['segments']['total']} segments)"


def report(
    runs: Mapping[str, Run],
    comparison: Comparison | None = None,
    *,
    title: str = "",
    convention_: str | Convention = "paper",
) -> Report:
    """Everything that the page about some systems shows.

    Args:
        runs: by name, as they were compared.
        comparison: of these, as `lagging.compare` makes it; of a single Run it can be left out.
        title: of the page.
        convention_: whose counting; that of the comparison.

    Raises:
        UsageError: the comparison is of other systems.

    Example:
        >>> import lagging
        >>> def wait(k):
        ...     return lagging.policies.wait_k(k).run(source_lengths=[8, 9, 11], target_lengths=[9, 8, 12])
        >>> runs = {"wait-3": wait(3), "wait-5": wait(5)}
        >>> found = report(runs, lagging.compare(runs, ["AL", "DAL"], resamples=500))
        >>> found
        Report(wait-3, wait-5: 3 segments)
        >>> found.data["comparison"]["scores"][0][1]["value"] == lagging.score(wait(3), ["DAL"])["DAL"].value
        True
    """
    counting = convention(convention_)
    if comparison is None:
        comparison = alone(runs, counting)
    if tuple(runs) != comparison.systems:
        raise UsageError(f"the comparison is of {', '.join(comparison.systems)}, not of {', '.join(runs)}")
    systems = analyse(runs, comparison, counting)
    ids = systems[0].run.id
    health = [checks(one, comparison.unmatched.get(one.name, ())) for one in systems]
    rows, note = chosen(systems, sorted({row for found in health for check in found for row in check.rows}))
    place = {row: at for at, row in enumerate(rows.tolist())}
    timed = [one for one in systems if one.timed]
    return Report(
        {
            "schema": SCHEMA,
            "version": __version__,
            "title": title,
            "unit": timed[0].run.unit if timed else "none",
            "systems": [_about(one) for one in systems],
            "metrics": [_metric(m, comparison) for m in comparison.metrics],
            "health": [[_check(check, place) for check in found] for found in health],
            "comparison": _compared(comparison),
            "tradeoff": tradeoff(comparison, systems),
            "hidden": hidden(systems),
            "distribution": distribution(systems),
            "by_length": by_length(systems),
            "over_time": over_time(systems),
            "segments": {"total": len(ids), "note": note, **columns(systems, comparison.metrics, rows)},
        }
    )


def alone(
    runs: Mapping[str, Run],
    counting: Convention,
    scores: Scores | None = None,
    *,
    resample: str | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """A single system, as a comparison without pairs."""
    if len(runs) != 1:
        raise UsageError("several systems need a comparison: lagging.compare(runs)")
    ((name, run),) = runs.items()
    scores = score(run, default_metrics(run), convention=counting) if scores is None else scores
    resample = default_resample(scores) if resample is None else resample
    found = with_intervals(scores, resample=resample, confidence=confidence, resamples=resamples, seed=seed)
    first = next(iter(found))
    units = len(set(first.documents.tolist())) if resample == "document" and first.documents is not None else first.n
    return Comparison(
        systems=(name,),
        metrics=tuple(one.metric for one in found),
        scores={name: Scores(list(found), name, found.notes)},
        pairs=(),
        base=None,
        n=first.n,
        clusters=units,
        unmatched={},
        test="bootstrap",
        correction="none",
        resample=resample,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def _about(one: Analysis) -> dict[str, Any]:
    run = one.whole
    return {
        "name": one.name,
        "unit": run.unit,
        "level": run.level,
        "noun": noun(run.level),
        "seg": run.seg,
        "segments": len(run),
        "tokens": int(run.delays.lengths.sum()),
        "origin": run.origin.description,
        "clocks": list(one.clocks),
        "notes": [_note(note) for note in one.scores.notes],
    }


def _note(note: Note) -> dict[str, Any]:
    return {"kind": note.kind, "text": note.text, "count": note.count, "noun": note.noun, "said": str(note)}


def _metric(m: Any, found: Comparison) -> dict[str, Any]:
    return {
        "name": repr(m),
        "unit": found.scores[found.systems[0]][m].unit,
        "higher": m.higher_is_better,
        "summary": m.summary,
        "formula": m.formula,
    }


def _check(check: Check, place: Mapping[int, int]) -> dict[str, Any]:
    return {
        "key": check.key,
        "title": check.title,
        "help": check.help,
        "count": check.count,
        "noun": check.noun,
        "value": finite(check.value),
        "unit": check.unit,
        "bad": check.bad,
        "rows": [place[row] for row in check.rows if row in place],
        "ids": list(check.ids[:1000]),
    }


def _compared(found: Comparison) -> dict[str, Any]:
    letters, marks = found.letters, found.marks
    return {
        "n": found.n,
        "base": found.base,
        "alpha": found.alpha,
        "level": found.confidence,
        "how": found.how,
        "key": found.key,
        "summary": found.summary.splitlines()[:-1],
        "signature": str(found.signature) if found.pairs else None,
        "notes": [str(note) for note in found.notes],
        "scores": [
            [
                {
                    "value": finite(one.value),
                    "low": finite(one.low),
                    "high": finite(one.high),
                    "undefined": int(one.undefined),
                    "mark": letters.get(m, {}).get(name, "") or marks.get(m, {}).get(name, ""),
                    "signature": str(one.signature),
                }
                for m in found.metrics
                for one in [found.scores[name][m]]
            ]
            for name in found.systems
        ],
        "pairs": [
            {
                "metric": repr(pair.metric),
                "a": found.systems.index(pair.a),
                "b": found.systems.index(pair.b),
                "difference": finite(pair.difference),
                "low": finite(pair.low),
                "high": finite(pair.high),
                "p": finite(pair.p),
                "p_adjusted": finite(pair.p_adjusted),
                "verdict": found.verdict(pair),
            }
            for pair in found.pairs
        ],
    }
