# SPDX-License-Identifier: Apache-2.0
"""The claim of the paper, tested by the rule of lab/PLAN.md: at the same AL, how much more DAL has an adaptive system?

    gap = mean of DAL(adaptive, a) − DAL(wait-k, a) over a, an AL from 1 to 8

A family is a polyline of DAL over AL. Intervals are over training seeds and sentences, both drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.stats import t as student  # type: ignore[import-untyped]

import lagging
from lab.experiments import Plan
from lab.results import Kept, bleu_of, read_kept
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.stats.polylines import common_range, fit, height, integral, ordered
from lagging.stats.resamples import SEED, counts, on_grid

__all__ = ["Estimate", "Family", "Trial", "complete_seeds", "decide", "trial", "trials"]

RESAMPLES = 10_000
RANGE = (1.0, 8.0)
"""The AL over which the gap is averaged."""
LEAST = 3.0
"""If the part of `RANGE` that both families reach is shorter, there is no gap."""
FEWEST_SEEDS = 3
SMALL = 0.1
"""A gap below it is of no practical use."""
EARLY = 0.9
"""AP from which on a setting is nearly offline."""
MEASURES = ("AL", "DAL", "AP")


@dataclass(frozen=True)
class Estimate:
    """A value, with an interval over seeds and sentences, and one over the seeds alone; NaN where there is none.

    Attributes:
        value: the mean of the seeds.
        low, high: of the two-level bootstrap; over sentences alone if there are too few seeds.
        t_low, t_high: Student's t.
        seeds: the value of each seed.
        dropped: how many resamples had no value.
    """

    value: float
    low: float
    high: float
    t_low: float = np.nan
    t_high: float = np.nan
    seeds: tuple[float, ...] = ()
    dropped: int = 0


@dataclass(frozen=True, eq=False)
class Family:
    """The settings of a family with one seed, on one test set.

    Attributes:
        labels: of the settings, from the lowest AL to the highest.
        rows: settings × measures × sentences; NaN where a sentence has no value.
        bleu: of each setting.
    """

    labels: tuple[str, ...]
    rows: Floats
    bleu: Floats

    @classmethod
    def of(cls, members: Sequence[Kept], in_words: bool = False) -> Family:
        """Score the settings, in the tokens of the run or in words."""
        scored = []
        for one in members:
            run = one.words if in_words else one.run
            if run is None:
                raise ValueError(f"{one.setting.name}: where words begin was not kept")
            scored.append((_segments(run), one.setting.label, bleu_of(one).value))
        scored.sort(key=lambda item: float(np.nanmean(item[0][0])))
        rows, labels, bleu = zip(*scored, strict=True)
        return cls(tuple(labels), np.stack(rows), np.array(bleu))

    @cached_property
    def means(self) -> Floats:
        """Settings × measures."""
        return np.asarray(self.draw(np.ones((1, self.rows.shape[2])))[0])

    def draw(self, weights: Floats) -> Floats:
        """Resamples × settings × measures, from how often each sentence is in each resample."""
        flat = self.rows.reshape(-1, self.rows.shape[2]).T
        defined = ~np.isnan(flat)
        with np.errstate(invalid="ignore", divide="ignore"):
            made = (weights @ on_grid(np.nan_to_num(flat))) / (weights @ defined.astype(np.float64))
        return np.asarray(made.reshape(len(weights), *self.rows.shape[:2]))

    def early(self) -> Family:
        """Without the settings that are nearly offline."""
        kept = self.means[:, 2] < EARLY
        return Family(tuple(np.array(self.labels)[kept]), self.rows[kept], self.bleu[kept])


def _segments(run: Run) -> Floats:
    return np.stack([score.segments for score in lagging.score(run, MEASURES)])


@dataclass(frozen=True, eq=False)
class Trial:
    """Two families on one test set, with each seed.

    Attributes:
        test: the test set.
        base, other: by seed: the fixed family, and the adaptive one.
        bounds, least: the AL over which the gap is averaged, and the shortest part of it that counts.
    """

    test: str
    base: Mapping[int, Family]
    other: Mapping[int, Family]
    bounds: tuple[float, float] = RANGE
    least: float = LEAST

    @property
    def n(self) -> int:
        """Number of sentences."""
        return int(next(iter(self.base.values())).rows.shape[2])

    @cached_property
    def drawn(self) -> dict[int, tuple[Floats, Floats]]:
        """By seed, the resampled means of both families, on the same resamples of the sentences."""
        weights = list(counts(self.n, RESAMPLES, SEED))
        return {
            seed: tuple(np.concatenate([family.draw(part) for part in weights]) for family in pair)  # type: ignore[misc]
            for seed, pair in self._pairs()
        }

    def _pairs(self) -> Iterator[tuple[int, tuple[Family, Family]]]:
        yield from ((seed, (family, self.other[seed])) for seed, family in self.base.items())

    @cached_property
    def covered(self) -> tuple[float, float]:
        """The part of `bounds` that both families reach with every seed."""
        ends = [_shared(a.means, b.means, self.bounds) for _, (a, b) in self._pairs()]
        return max(float(low) for low, _ in ends), min(float(high) for _, high in ends)

    @cached_property
    def gap(self) -> Estimate:
        """The mean gap over the range of AL."""
        values = [
            float(_gap(a.means, b.means, self.bounds))
            if _length(a.means, b.means, self.bounds) >= self.least
            else np.nan
            for _, (a, b) in self._pairs()
        ]
        return estimate(values, [_gap(a, b, self.bounds) for a, b in self.drawn.values()])

    def gaps_at(self, al: float) -> list[float]:
        """The gap of each seed at one AL."""
        return [float(_gap_at(a.means, b.means, al)) for _, (a, b) in self._pairs()]

    def gap_at(self, al: float) -> Estimate:
        """The gap at one AL."""
        values = self.gaps_at(al)
        return estimate(values, [_gap_at(a, b, al) for a, b in self.drawn.values()])

    def slope(self, which: str, all_settings: bool = False, over_settings: bool = False) -> Estimate:
        """The slope of DAL over AL of "base", "other", or their difference; maybe with settings drawn as well."""
        values: list[float] = []
        draws: list[Floats] = []
        for place, (seed, (a, b)) in enumerate(self._pairs()):
            slopes: list[Floats] = []
            resampled: list[Floats] = []
            for number, (family, means) in enumerate(zip((a, b), self.drawn[seed], strict=True)):
                kept = np.full(len(family.labels), True) if all_settings else family.means[:, 2] < EARLY
                slopes.append(_slope(family.means[kept]))
                if over_settings:
                    draw = np.concatenate(list(counts(int(kept.sum()), RESAMPLES, SEED + 100 + 2 * place + number)))
                    resampled.append(_weighted_slope(means[:, kept], draw))
                else:
                    resampled.append(_slope(means[:, kept]))
            pick = {"base": (-1, 0), "other": (0, 1), "difference": (-1, 1)}[which]
            values.append(float(_combined(slopes, pick)))
            draws.append(_combined(resampled, pick))
        return estimate(values, draws)


def _combined(pair: Sequence[Floats], pick: tuple[int, int]) -> Floats:
    base, other = pair
    return {(-1, 0): base, (0, 1): other}.get(pick, other - base)


def estimate(values: Sequence[float], draws: Sequence[Floats]) -> Estimate:
    """The mean of the seeds, with its intervals; `draws`: of each seed, the value in each resample of the sentences."""
    n, table = len(values), np.stack(draws, 1)
    if n >= FEWEST_SEEDS:
        seeds = np.concatenate(list(counts(n, RESAMPLES, SEED + 1)))
        resampled = np.where(seeds > 0, seeds * np.where(seeds > 0, table, 0.0), 0.0).sum(1) / n
        half = float(student.ppf(0.975, n - 1)) * np.std(values, ddof=1) / np.sqrt(n)
    else:
        resampled, half = table.mean(1), np.nan
    mean, defined = float(np.mean(values)), resampled[~np.isnan(resampled)]
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) and not np.isnan(mean) else (np.nan, np.nan)
    dropped = len(resampled) - len(defined)
    return Estimate(mean, float(low), float(high), mean - half, mean + half, tuple(values), dropped)


def _shared(a: Floats, b: Floats, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    low, high = common_range(ordered(a[..., 0], a[..., 1])[0], ordered(b[..., 0], b[..., 1])[0])
    return np.maximum(low, bounds[0]), np.minimum(high, bounds[1])


def _length(a: Floats, b: Floats, bounds: tuple[float, float]) -> float:
    low, high = _shared(a, b, bounds)
    return float(high - low)


def _gap(a: Floats, b: Floats, bounds: tuple[float, float]) -> Floats:
    """The mean difference of the polylines over what both have of a range."""
    low, high = _shared(a, b, bounds)
    first, second = ordered(a[..., 0], a[..., 1]), ordered(b[..., 0], b[..., 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (integral(*second, low, high) - integral(*first, low, high)) / (high - low)
    return np.where(high > low, mean, np.nan)


def _gap_at(a: Floats, b: Floats, al: float) -> Floats:
    at = np.full(a.shape[:-2], al)
    return height(b[..., 0], b[..., 1], at) - height(a[..., 0], a[..., 1], at)


def _slope(means: Floats) -> Floats:
    return fit(means[..., 0], means[..., 1])[0]


def _weighted_slope(means: Floats, weights: Floats) -> Floats:
    """The slope through settings that count several times; NaN where fewer than three different ones are left."""
    total = weights.sum(1, keepdims=True)
    x, y = (means[..., m] - (weights * means[..., m]).sum(1, keepdims=True) / total for m in (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (weights * x * y).sum(1) / (weights * x**2).sum(1)
    return np.where((weights > 0).sum(1) >= 3, slope, np.nan)


def local_slopes(family: Family) -> list[tuple[float, float]]:
    """Between neighbouring settings: the AL in the middle, and the slope."""
    x, y = family.means[:, 0], family.means[:, 1]
    return [((x[i] + x[i + 1]) / 2, (y[i + 1] - y[i]) / (x[i + 1] - x[i])) for i in range(len(x) - 1)]


def complete_seeds(plan: Plan, folder: Path) -> list[int]:
    """The seeds of which all settings of a plan have been run."""
    there = {path.stem for path in folder.glob("*.npz")}
    wanted: dict[int, set[str]] = {}
    for one in plan.experiments.values():
        wanted.setdefault(one.seed, set()).update(setting.name for setting in one.settings)
    return sorted(seed for seed, names in wanted.items() if names <= there)


def trial(kept: Iterable[Kept], test: str, base: str, other: str, in_words: bool = False, **options: object) -> Trial:
    """Two families of what was kept of a test set, by seed."""
    by_seed: dict[str, dict[int, list[Kept]]] = {base: {}, other: {}}
    for one in kept:
        if one.setting.family in by_seed:
            by_seed[one.setting.family].setdefault(int(one.trained.experiment.get("seed", 1)), []).append(one)
    made = [
        {seed: Family.of(members, in_words) for seed, members in sorted(by_seed[name].items())}
        for name in (base, other)
    ]
    return Trial(test, *made, **options)  # type: ignore[arg-type]


def trials(
    plan: Plan, folder: Path, base: str = "wait-k", other: str = "MILk", in_words: bool = False
) -> dict[str, Trial]:
    """Of each test set, the two families with the seeds that are complete; nothing if none is."""
    seeds = complete_seeds(plan, folder)
    if not seeds:
        return {}
    names = {setting for seed in seeds for setting in _names(plan, seed)}
    first = read_kept(folder)
    tests = list(first[0].trained.tests)
    made = {}
    for test in tests:
        kept = [one for one in (first if test == tests[0] else read_kept(folder, test)) if one.setting.name in names]
        made[test] = trial(kept, test, base, other, in_words)
    return made


def _names(plan: Plan, seed: int) -> set[str]:
    return {setting.name for one in plan.experiments.values() if one.seed == seed for setting in one.settings}


def decide(by_test: Mapping[str, Trial]) -> str:
    """What the rule of the plan says: "supported", "refuted", "not decided", or "too few seeds"."""
    if not by_test or any(len(one.base) < FEWEST_SEEDS for one in by_test.values()):
        return "too few seeds"
    gaps = [one.gap for one in by_test.values()]
    if all(gap.low > 0 and gap.t_low > 0 and gap.value >= SMALL for gap in gaps):
        return "supported"
    below = sum(gap.high < 0 and gap.t_high < 0 for gap in gaps)
    nothing = sum(
        (gap.low >= -SMALL and gap.high <= SMALL) or (gap.t_low >= -SMALL and gap.t_high <= SMALL) for gap in gaps
    )
    return "refuted" if below or nothing >= min(3, len(gaps)) else "not decided"
