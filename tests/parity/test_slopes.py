# SPDX-License-Identifier: Apache-2.0
"""AL favours adaptive systems: Figure 2 of Cherry & Foster (2019), from tables that others published."""

import csv

import numpy as np
import pytest
import scipy.stats

import lagging
from lagging.comparison.published.rows import read_rows
from lagging.curves.slopes import lines

pytestmark = pytest.mark.data

# DAL over AL on WMT15 De-En, by least squares from the authors' tables; the last digits were computed with scipy
SLOPES = {
    "Wait-info WMT15 German-to-English with Transformer-Base": (0.9868, 0.816),
    "Wait-info WMT15 German-to-English with Transformer-Big": (0.9817, 0.799),
    "Dual Paths (MMA-based) WMT15 German-to-English": (1.1972, 1.710),
    "ITST WMT15 German-to-English with Transformer-Base": (1.8413, -0.181),
    "ITST WMT15 German-to-English with Transformer-Big": (1.7654, -0.275),
    "GMA WMT15 German-to-English with Transformer-Base": (2.1247, -4.239),
    "GMA WMT15 German-to-English with Transformer-Big": (2.0204, -4.408),
    "HMT WMT15 German-to-English with Transformer-Base": (0.8964, 2.617),
    "HMT WMT15 German-to-English with Transformer-Big": (0.8894, 2.677),
}


def test_al_favours_adaptive_systems_in_published_tables(data) -> None:
    table = data / "published_tables.csv"
    where = {"dataset": "WMT15 German*"}
    families = {}
    for row in read_rows(table, family=["system", "dataset"], where=where):
        families.setdefault(row.system, []).append((row.setting, row))
    found = {line.system: line for line in lines(families).lines}
    assert {name: (round(v.slope.value, 4), round(v.start.value, 3)) for name, v in found.items()} == SLOPES
    with table.open(encoding="utf-8", newline="") as file:
        published = [r for r in csv.DictReader(file) if r["dataset"].startswith("WMT15 German")]
    for name, line in found.items():
        mine = [r for r in published if f"{r['system']} {r['dataset']}" == name]
        known = scipy.stats.linregress(*([float(r[m]) for r in mine] for m in ("AL", "DAL")))
        assert line.slope.value == pytest.approx(known.slope)
        assert len(line.curve.points) == len(mine)
        assert line.slope.low < line.slope.value < line.slope.high
    near_fixed, adaptive = (
        found["Wait-info WMT15 German-to-English with Transformer-Base"],
        "ITST WMT15 German-to-English",
    )
    assert near_fixed.slope.high < 1
    assert found[f"{adaptive} with Transformer-Base"].slope.low > 1.7


def test_wait_k_on_the_lengths_of_newstest2015_has_a_slope_below_one(data) -> None:
    lengths = np.loadtxt(data / "newstest2015_de-en_lengths.tsv", skiprows=1, dtype=np.int64).T
    ks = (2, 4, 6, 8, 10, 12, 14, 16, 24)
    runs = [
        (f"k={k}", lagging.policies.wait_k(k).run(source_lengths=lengths[0], target_lengths=lengths[1])) for k in ks
    ]
    (line,) = lines({"wait-k": runs}, resamples=500).lines
    assert (round(line.slope.value, 3), round(line.start.value, 2)) == (0.969, 0.61)
    assert 0.96 < line.slope.low < line.slope.high < 0.98
    assert [round(p.latency.value, 2) for p in line.curve.points[:2]] == [2.22, 4.14]
    assert [round(p.quality.value, 2) for p in line.curve.points[:2]] == [2.71, 4.62]
