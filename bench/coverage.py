# SPDX-License-Identifier: Apache-2.0
"""Do intervals cover what they promise, and do tests err as rarely as they say? Simulated lags with a known mean.

    python bench/coverage.py                # 2000 samples a row: a quarter of an hour
    python bench/coverage.py --samples 200  # a minute; give or take 3 %
    python bench/coverage.py --quick        # shows that it runs, the numbers mean nothing

Lags are normal (sd half of the mean) or skewed (log-normal, σ = 0.8, skewness 3.7). Documents have 15 to 89 segments,
and an effect of their own (sd a fifth of the mean; of skewed lags, a skewed one). All intervals are for 95 %, with 2000
resamples. The tests compare two systems that are equally late on average, and differ in each segment or document; in
the rows `one-sided` only one of them differs from a common lag, by something skewed whose mean is 0. The last column is
the rule of sacreBLEU's --paired-bs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lagging.comparison.pairs import paired
from lagging.data.ragged import Floats
from lagging.metrics import metric
from lagging.scoring.intervals import interval, intervals
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature
from lagging.stats import DEFAULT_METHODS

MEAN = 3.0
METHODS = {
    "segment": ("percentile", "bca"),
    "document": ("percentile", "bca", "wild"),
}
SIZES = {"segment": (20, 100, 500), "document": (5, 10, 27)}
ONE_SIDED = (30, 100, 500)
FEW = {"segment": (2, 3, 4, 5, 6, 8, 10, 12, 15), "document": (3, 4)}
"""So few that intervals are too narrow, or hardly there: `lagging.stats.intervals.COVERAGE` is from here."""
BATCH = 100
"""How many samples are resampled at once: segments are drawn alike for all, as for several metrics of one system."""


def score(values: Floats, documents: npt.NDArray[np.int64] | None = None, number: int = 0) -> Score:
    """A mean over segments; the number makes it a metric of its own."""
    m = metric(f"DAL(write_cost={number})")
    talks = None if documents is None else np.array([f"talk {t}" for t in documents], dtype=object)
    signature = Signature.make(m.name_with_params, {}, (), len(values), "0")
    rows, ids = values[:, None], np.arange(len(values))
    return Score(m, m.corpus(rows), rows, ids, Undefined({}), "ms", signature, m, documents=talks)


def lags(dice: np.random.Generator, kind: str, n: int) -> Floats:
    if kind == "normal":
        return dice.normal(MEAN, MEAN / 2, n)
    return dice.lognormal(np.log(MEAN) - 0.32, 0.8, n)


def effects(dice: np.random.Generator, kind: str, n: int) -> Floats:
    return dice.normal(0, 0.6, n) if kind == "normal" else dice.gamma(2, 0.42, n) - 0.84


def talks(dice: np.random.Generator, documents: int) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(documents), dice.integers(15, 90, documents))


# ---- what is simulated ----------------------------------------------------------------------------------------


def by_segment(kind: str, n: int, samples: int, resamples: int) -> dict[str, float]:
    dice = np.random.default_rng([1, n])
    hits = dict.fromkeys(METHODS["segment"], 0)
    for _ in range(samples // BATCH):
        scores = [score(lags(dice, kind, n)) for _ in range(BATCH)]
        for method in METHODS["segment"]:
            ends = intervals(scores, method=method, resamples=resamples)
            hits[method] += sum(each.low <= MEAN <= each.high for each in ends)
    return {method: hit / (samples // BATCH * BATCH) for method, hit in hits.items()}


def by_document(kind: str, documents: int, samples: int, resamples: int) -> dict[str, float]:
    dice = np.random.default_rng([2, documents])
    hits = dict.fromkeys(METHODS["document"], 0)
    for _ in range(samples):
        talk = talks(dice, documents)
        sample = score(lags(dice, kind, len(talk)) + effects(dice, kind, documents)[talk], talk)
        for method in METHODS["document"]:
            ends = interval(sample, resample="document", method=method, resamples=resamples)
            hits[method] += ends.low <= MEAN <= ends.high
    return {method: hit / samples for method, hit in hits.items()}


TESTS: dict[str, tuple[str, str | None]] = {
    "bootstrap": ("bootstrap", None),
    "randomisation": ("randomisation", None),
    "sacreBLEU": ("bootstrap", "sacrebleu"),
}


def positives(kind: str, name: str, by: str, size: int, samples: int, resamples: int) -> float:
    """How often two systems that are alike are told apart at 0.05."""
    dice = np.random.default_rng([3, size])
    test, method = TESTS[name]
    rejected = 0
    batch = BATCH if by == "segment" else 1
    for _ in range(samples // batch):
        talk = talks(dice, size) if by == "document" else None
        n = size if talk is None else len(talk)
        both: list[list[Score]] = [[], []]
        for number in range(batch):
            common = lags(dice, kind, n)  # segments are hard or easy for both
            for scores in both:
                own = lags(dice, kind, n) - MEAN
                own += 0 if talk is None else effects(dice, kind, size)[talk]
                scores.append(score(common + own, talk, number))
        systems = {"a": Scores(both[0]), "b": Scores(both[1])}
        result = paired(systems, test=test, resample=by, method=method, resamples=resamples, correction="none")
        rejected += sum(pair.p <= 0.05 for pair in result.pairs)
    return rejected / (samples // batch * batch)


def one_sided(name: str, n: int, samples: int, resamples: int) -> float:
    """How often two systems are told apart at 0.05 that differ by something skewed, whose mean is 0."""
    dice = np.random.default_rng([4, n])
    test, method = TESTS[name]
    rejected = 0
    for _ in range(samples // BATCH):
        both: list[list[Score]] = [[], []]
        for number in range(BATCH):
            common = lags(dice, "normal", n)
            both[0].append(score(common, None, number))
            both[1].append(score(common + lags(dice, "skewed", n) - MEAN, None, number))
        systems = {"a": Scores(both[0]), "b": Scores(both[1])}
        result = paired(systems, test=test, method=method, resamples=resamples, correction="none")
        rejected += sum(pair.p <= 0.05 for pair in result.pairs)
    return rejected / (samples // BATCH * BATCH)


# ---- the tables -----------------------------------------------------------------------------------------------


def coverage(samples: int, resamples: int, most: int) -> Iterator[str]:
    yield f"{'coverage of 95 % intervals':40}" + "".join(f"{method:>16}" for method in METHODS["document"])
    for by, simulate in (("segment", by_segment), ("document", by_document)):
        for kind in ("normal", "skewed"):
            for size in (*(FEW[by] if most > 1 else ()), *SIZES[by][:most]):
                shares = simulate(kind, size, samples, resamples)
                cells = (f"{100 * shares[m]:.1f} %{' *' if m == DEFAULT_METHODS[by] else '  '}" for m in METHODS[by])
                yield f"{f'{kind}, {size} {by}s':40}" + "".join(f"{cell:>16}" for cell in cells)
    yield "* the default"


def errors(samples: int, resamples: int, most: int) -> Iterator[str]:
    yield f"{'false positives at 0.05':40}" + "".join(f"{name:>16}" for name in TESTS)
    for by, sizes in SIZES.items():
        names = [name for name in TESTS if by == "segment" or name != "sacreBLEU"]
        for kind in ("normal", "skewed"):
            for size in sizes[:most]:
                shares = [positives(kind, name, by, size, samples, resamples) for name in names]
                yield f"{f'{kind}, {size} {by}s':40}" + "".join(f"{100 * share:14.1f} %" for share in shares)
    for size in ONE_SIDED[:most]:
        shares = [one_sided(name, size, samples, resamples) for name in TESTS]
        yield f"{f'one-sided, {size} segments':40}" + "".join(f"{100 * share:14.1f} %" for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of intervals and false positives of tests, simulated.")
    parser.add_argument("--samples", type=int, default=2000, help="simulated samples per row, in hundreds")
    parser.add_argument("--quick", action="store_true", help="few and small: the numbers mean nothing")
    args = parser.parse_args()
    plan = (BATCH, 100, 1) if args.quick else (max(BATCH, args.samples), 2000, 3)
    for lines in (coverage(*plan), errors(*plan)):
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
