# SPDX-License-Identifier: Apache-2.0
"""What comparing costs: 10 systems × 2588 segments × 8 metrics × 10 000 resamples, all pairs of systems.

    python bench/comparing.py               # half a minute
    python bench/comparing.py --quick       # shows that it runs, the numbers mean nothing

CPU time of all threads, best of three, and peak memory of the process. The yardstick is a straightforward loop over
resamples in NumPy that draws segments, takes their rows, adds them up, makes scores of the sums, and differences of the
scores. It is run for a few resamples, and its time multiplied; intervals and p-values are left out of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from lagging.comparison.pairs import paired
from lagging.data.ragged import Floats
from lagging.metrics import metric
from lagging.scoring.intervals import with_intervals
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature

METRICS = ("AP", "AL", "LAAL", "DAL", "YAAL", "CW", "SWF", "BLEU")


def statistics(name: str, dice: np.random.Generator, n: int) -> Floats:
    """Rows such as the metric has: lags, counts of tokens, or n-grams."""
    length = dice.integers(5, 40, (n, 1))
    if name == "SWF":
        return np.hstack([100.0 * dice.binomial(length, 0.8), length])
    if name == "BLEU":
        total = np.maximum(length - np.arange(4), 0)
        right = dice.binomial(total, [0.6, 0.35, 0.22, 0.14])
        return np.hstack([length, length + dice.integers(-2, 3, (n, 1)), right, total]).astype(np.float64)
    return dice.gamma(2, 1.5, (n, 1))


def scores(seed: int, n: int) -> Scores:
    dice, scored = np.random.default_rng(seed), []
    for name in METRICS:
        m, rows = metric(name), statistics(name, dice, n)
        signature = Signature.make(m.name_with_params, {}, (), n, "0")
        score = Score(m, m.corpus(rows), rows, np.arange(n), Undefined({}), m.unit, signature, m)
        scored.append(score)
    return Scores(scored)


def loop(systems: dict[str, Scores], resamples: int) -> Floats:
    """The differences of all pairs by all metrics, one resample at a time."""
    dice = np.random.default_rng(12345)
    n = next(iter(next(iter(systems.values())))).n
    out = []
    for _ in range(resamples):
        indices = dice.integers(0, n, n)
        values = []
        for system in systems.values():
            for score in system:
                rows = np.asarray(score.statistics)[indices].sum(axis=0)
                if score.metric.from_sums is not None:
                    values.append(float(score.metric.from_sums(rows)))
                else:
                    values.append(rows[0] / (rows[1] if score.metric.ratio else n))
        table = np.array(values).reshape(len(systems), -1)
        out.append([table[b] - table[a] for a, b in combinations(range(len(systems)), 2)])
    return np.array(out)


def cpu(work: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def memory() -> float | None:
    """Peak resident memory in MB; None where the system does not tell."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1_000_000 if sys.platform == "darwin" else 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description="What comparing systems costs, against a loop over resamples.")
    parser.add_argument("--quick", action="store_true", help="small and once: the numbers mean nothing")
    quick = parser.parse_args().quick
    count, n, resamples, few = (3, 100, 200, 20) if quick else (10, 2588, 10_000, 100)
    rounds = 1 if quick else 3
    systems = {f"system {k}": scores(k, n) for k in range(count)}
    pairs = count * (count - 1) // 2
    print(f"{count} systems × {n:,} segments × {len(METRICS)} metrics × {resamples:,} resamples, {pairs} pairs\n")

    def row(what: str, measured: str, target: str = "", met: bool | None = None) -> None:
        verdict = "" if met is None or quick else "met" if met else "MISSED"
        print(f"  {what:<56} {measured:>16}  {target:>12}  {verdict}".rstrip(), flush=True)

    result = paired(systems, resamples=few)
    a, b = np.array(list(combinations(range(count), 2))).T
    same = np.allclose(loop(systems, few), result.values[:, b] - result.values[:, a], rtol=1e-9, atol=1e-9)
    row("the loop and the library agree, resample by resample", "yes" if same else "NO")
    bootstrap = cpu(lambda: paired(systems, resamples=resamples), rounds)
    row("paired bootstrap, with intervals and effect sizes", f"{bootstrap:.2f} s CPU", "< 5 s CPU", bootstrap < 5)
    trials = cpu(lambda: paired(systems, test="randomisation", resamples=resamples), rounds)
    row("the same, with approximate randomisation", f"{trials:.2f} s CPU")
    first = next(iter(systems.values()))
    each = cpu(lambda: with_intervals(first, resamples=resamples), rounds)
    row("intervals of one system alone", f"{each:.2f} s CPU")
    used = memory()
    if used is not None:
        row("peak memory", f"{used:.0f} MB", "< 1000 MB", used < 1000)
    slow = cpu(lambda: loop(systems, few), rounds) * resamples / few
    row(f"loop over resamples, from {few} of them", f"{slow:.1f} s CPU")
    row("loop ÷ paired bootstrap", f"{slow / bootstrap:.1f}×")
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    main()
