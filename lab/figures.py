# SPDX-License-Identifier: Apache-2.0
"""Figures of what was kept, and the page of documentation that shows them with the tables.

Quality against latency; AL against DAL, as in Figure 2 of the paper; and where writing was free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

import lagging
from lab import tables
from lab.results import Result, read_results
from lagging import plots
from lagging.curves import Curves, Setting, curves
from lagging.curves.slopes import Lines, lines
from lagging.data.files import write_whole
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.render.timeline import timeline

__all__ = ["against", "draw", "early", "fill", "hidden", "made"]

RESAMPLES = 2000
TENTHS = 10
NEAR = 4.0
"""The DAL near which settings of different families are compared."""
NEARLY_OFFLINE = 0.9
"""AP from which on a setting is."""
SOUND = 0.75
"""Of the best BLEU: what is below is not drawn."""
SHARES = (0.88, 0.92, 0.95)
"""Of the best BLEU: how late has a system to be to reach so much?"""
PAIR = ("wait-k", "MILk")
SHOWN = (*PAIR, "MILk trained on AL")
"""The families of which single sentences are shown."""


def made(kept: Path, resamples: int = RESAMPLES) -> dict[str, str]:
    """All tables, by name."""
    results = read_results(kept)
    missing = set(PAIR) - {one.setting.family for one in results}
    if missing:
        raise SystemExit(f"{kept} has no results of {' and '.join(sorted(missing))}")
    names = next(one for one in results if one.setting.family in PAIR).trained.tests
    first, *others = names
    tests = {first: results, **{test: read_results(kept, test) for test in others}}
    pair = {test: [one for one in members if one.setting.family in PAIR] for test, members in tests.items()}
    wanted = [share * _best(results) for share in SHARES]
    return {
        "settings": tables.settings(results, resamples),
        "signatures": tables.signatures(results[0], resamples),
        "ceiling": tables.ceiling(tests, resamples),
        "reach": tables.reach({of: _curves(pair[first], of, resamples) for of in ("AL", "DAL")}, wanted),
        "slopes": tables.slopes(against(early(results), resamples), against(results, resamples)),
        "steeper": tables.steeper({test: against(early(members), resamples) for test, members in pair.items()}, *PAIR),
        "steeper, all": tables.steeper({test: against(members, resamples) for test, members in pair.items()}, *PAIR),
        "agreement": tables.agreement(results),
        "hidden": tables.hidden(_near(results)),
        "worst": tables.worst([one for one in _near(results) if one.setting.family in SHOWN]),
    }


def _points(results: Sequence[Result]) -> dict[str, list[tuple[str, Setting]]]:
    return {
        name: [(one.setting.label, one.scores) for one in members] for name, members in tables.several(results).items()
    }


def _curves(results: Sequence[Result], latency: str, resamples: int) -> Curves:
    return curves(_points(results), latency, "BLEU", resamples=resamples)


def _sound(results: Sequence[Result]) -> list[Result]:
    """Those whose BLEU is not far below that of all others; curves of these can be told apart."""
    return [one for one in results if one.scores["BLEU"].value >= SOUND * _best(results)]


def _best(results: Sequence[Result]) -> float:
    """The best BLEU."""
    return max(one.scores["BLEU"].value for one in results)


def against(results: Sequence[Result], resamples: int) -> Lines:
    """DAL against AL: the line of each family of several settings."""
    return lines(_points(results), "AL", "DAL", resamples=resamples)


def early(results: Sequence[Result]) -> list[Result]:
    """Those that are not nearly offline: where everything is read first, AL and DAL are |x|, whoever translates."""
    return [one for one in results if one.scores["AP"].value < NEARLY_OFFLINE]


def _near(results: Sequence[Result]) -> list[Result]:
    """Of each family with several settings, the one whose DAL is nearest to `NEAR`."""
    return [
        min(members, key=lambda one: abs(one.scores["DAL"].value - NEAR))
        for members in tables.several(results).values()
    ]


def hidden(run: Run) -> Floats:
    """ℓ'(t) − ℓ(t) up to τ, the lag that AL forgives because writing is free: its mean in each tenth of the target."""
    sums, counts = np.zeros(TENTHS), np.zeros(TENTHS)
    for g, x in zip(run.delays, run.source_length, strict=True):
        tenths = np.arange(len(g)) * TENTHS // max(len(g), 1)
        gaps = lagging.lags(g, source_length=x, effective=True) - lagging.lags(g, source_length=x)
        counted = np.concatenate([[True], g[:-1] < x])[: len(g)]  # t ≤ τ: the source had not been read before
        np.add.at(sums, tenths, gaps * counted)
        np.add.at(counts, tenths, 1)
    return sums / np.maximum(counts, 1)


def draw(kept: Path, folder: Path, resamples: int = RESAMPLES) -> None:
    """All figures, into a folder."""
    mpl.use("agg")
    results = read_results(kept)
    folder.mkdir(parents=True, exist_ok=True)
    pair = [one for one in early(results) if one.setting.family in PAIR]
    plots.save(plots.al_dal(against(pair, resamples)), folder / "al-against-dal.svg")
    plots.save(plots.al_dal(against(_sound(early(results)), resamples)), folder / "al-against-dal-all.svg")
    for latency in ("AL", "DAL"):
        plots.save(
            plots.curves(_curves(_sound(results), latency, resamples), pareto=False),
            folder / f"bleu-against-{latency.lower()}.svg",
        )
    plots.save(_learning(results), folder / "learning.svg")
    near = _near(results)
    plots.save(_hidden(near), folder / "hidden.svg")
    for one in (one for one in near if one.setting.family in SHOWN):
        gap = one.scores["DAL"].segments - one.scores["AL"].segments
        line = timeline(one.run, str(one.run.id[int(np.nanargmax(gap))]))
        plots.save(plots.timeline(line), folder / f"timeline-{one.setting.family.replace(' ', '-').lower()}.svg")
    pyplot.close("all")


def _axes(right: str, up: str) -> Axes:
    _, ax = pyplot.subplots(figsize=(7.2, 3.2), layout="constrained")
    ax.set_xlabel(right)
    ax.set_ylabel(up)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _learning(results: Sequence[Result]) -> Axes:
    """BLEU of some validation sentences after every epoch, of the models that began with nothing."""
    ax = _axes("epoch", "BLEU ↑ (validation)")
    for name, trained in {one.setting.model: one.trained for one in results}.items():
        if trained.experiment["start"] is None:
            ax.plot([e["epoch"] for e in trained.history], [e["BLEU"] for e in trained.history], marker=".", label=name)
    ax.legend(frameon=False)
    return ax


def _hidden(near: Sequence[Result]) -> Axes:
    """Where in the sentence free writes hide a lag from AL."""
    ax = _axes("place in the translation", "lag that free writes hide (source tokens)")
    for one in near:
        label = f"{one.setting.family}, {one.setting.label} (DAL {one.scores['DAL'].value:.1f})"
        ax.plot((np.arange(TENTHS) + 0.5) / TENTHS, hidden(one.run), marker=".", label=label)
    ax.set_xlim(0, 1)
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Put tables into a page: each between `<!-- lab: NAME -->` and `<!-- end of table -->`.

    Raises:
        SystemExit: the page has no place for one of them.
    """
    text = page.read_text("utf-8")
    for name, table in parts.items():
        before, mark, rest = text.partition(f"<!-- lab: {name} -->\n")
        _, end, after = rest.partition("<!-- end of table -->")
        if not (mark and end):
            raise SystemExit(f"{page} has no place for the table {name}: <!-- lab: {name} --> … <!-- end of table -->")
        text = f"{before}{mark}\n{table}\n{end}{after}"
    with write_whole(page) as file:
        file.write(text)
