# SPDX-License-Identifier: Apache-2.0
"""What the Python functions say, for the port of the arithmetic to TypeScript: `python tools/web_vectors.py`.

Writes `web/tests/vectors.json`: the schedules of the paper's tables and other situations worth a name, random
schedules, and what every policy does with several lengths. `tests/unit/test_web.py` computes them anew, and Vitest
checks that `web/src` gives the same, so that the two cannot drift apart.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lagging
from lagging.policies import policy

FILE = Path(__file__).parent.parent / "web" / "tests" / "vectors.json"
SEED = 20190600048
RANDOM = 300

TABLES = {
    "1": (("wait-1", 4, 4), ("wait-3", 4, 4)),
    "2": (("wait-4", 5, 5), ("antagonist-4", 5, 5)),
    "3": (("wait-1", 4, 4), ("wait-3", 4, 4)),
    "4": (("wait-4", 5, 5), ("antagonist-4", 5, 5)),
    "5": (("wait-1", 3, 6), ("wait-1-catchup", 3, 6)),
    "6": (("wait-1", 6, 3),),
}
"""The systems of the paper's tables: policy, |x|, |y|."""

SITUATIONS: dict[str, dict[str, Any]] = {
    "one token each": {"delays": [1], "source_length": 1},
    "nothing read": {"delays": [0, 0, 0], "source_length": 3},
    "nothing written": {"delays": [], "source_length": 4},
    "no source": {"delays": [0, 0], "source_length": 0},
    "all at the end, short reference": {"delays": [7, 7, 7], "source_length": 7, "reference_length": 2},
    "writes too much": {"delays": [2, 3, 4, 4, 4, 4, 4, 4], "source_length": 4, "reference_length": 4},
    "writes too little": {"delays": [3, 6], "source_length": 6, "reference_length": 5},
    "writing is free": {"delays": [2, 5, 5, 8], "source_length": 8, "write_cost": 0},
    "writing is dear": {"delays": [1, 2, 3, 4], "source_length": 4, "write_cost": 2.5},
    "beyond the source": {"delays": [3, 5, 9], "source_length": 5},
    "speech, end reached within a millisecond": {
        "delays": [600, 1400, 1999.5, 2000],
        "source_length": 2000,
        "unit": "ms",
    },
    "speech, never read to its end, and pieces that are nearly none": {
        "delays": [300.00000000000006, 902, 902, 1540],
        "source_length": 3000.25,
        "unit": "ms",
    },
}


def number(value: float) -> float | None:
    """NaN is null."""
    return None if math.isnan(value) else float(value)


def numbers(values: Any) -> list[float | None]:
    """A row of numbers."""
    return [number(value) for value in values.tolist()]


def vector(
    delays: list[float],
    source_length: float,
    reference_length: int | None = None,
    write_cost: float | None = None,
    unit: str = "token",
) -> dict[str, Any]:
    """A sentence, and what `lagging` says of it."""
    given: dict[str, Any] = {"source_length": source_length}
    longest = given | {"reference_length": reference_length, "unit": unit}
    costs = given | {"write_cost": write_cost}
    scores = {
        "AP": lagging.ap(delays, **given),
        "CW": lagging.cw(delays, **given),
        "AL": lagging.al(delays, **given, unit=unit),
        "AL_y": lagging.al_y(delays, **given),
        "LAAL": lagging.laal(delays, **longest),
        "DAL": lagging.dal(delays, **given),
        "ATD": lagging.atd(delays, **given, unit=unit),
        "YAAL": lagging.yaal(delays, **longest),
    }
    return {
        "delays": delays,
        "source_length": source_length,
        "reference_length": reference_length,
        "write_cost": write_cost,
        "unit": unit,
        "scores": {name: number(value) for name, value in scores.items()},
        "dal_at_cost": number(lagging.dal(delays, **costs)),
        "lags": numbers(lagging.lags(delays, **costs)),
        "effective_lags": numbers(lagging.lags(delays, **costs, effective=True)),
        "effective_delays": numbers(lagging.effective_delays(delays, **costs)),
        "over_budget": lagging.over_budget(delays, **costs).tolist(),
    }


def drawn(rng: random.Random) -> dict[str, Any]:
    """A random sentence: mostly text, sometimes speech; mostly to the end, sometimes not, or beyond."""
    x, y = rng.randint(1, 12), rng.randint(1, 12)
    most = rng.choice([x, x, x, max(x - 1, 0), x + 2])
    delays: list[float] = sorted(rng.randint(0, most) for _ in range(y))
    if rng.random() < 0.5:
        delays[-1] = max(delays[-1], x)
    reference = rng.choice([None, rng.randint(1, 14)])
    cost = rng.choice([None, None, 0, 1, rng.randint(1, 60) / 20])
    if rng.random() < 0.25:
        step = rng.choice([40, 280, 300, 333.125])
        return vector([g * step for g in delays], x * step, reference, None if cost is None else cost * step, "ms")
    return vector(delays, x, reference, cost)


def schedules() -> Iterator[dict[str, Any]]:
    """What every policy does with several lengths."""
    names = [f"wait-{k}" for k in (0, 1, 3, 9)] + [f"wait-{k}-catchup" for k in (1, 2, 5)]
    names += ["wait-2-catchup=0.2", "wait-4-catchup=0.25", "wait-0-catchup=0.9", "wait-3-catchup=0"]
    names += [f"antagonist-{k}" for k in (0, 1, 4, 20)] + [f"segment-{n}" for n in (1, 2, 3, 7)]
    for name in [*names, "offline", "prescient"]:
        for x, y in ((1, 1), (5, 5), (3, 6), (6, 3), (7, 10), (11, 4), (1, 5), (20, 20)):
            yield {"policy": name, "x": x, "y": y, "delays": policy(name).delays(x, y).tolist()}
    # 0.58 × 50 is 29, but a little less in floating point
    name = "wait-3-catchup=0.58"
    yield {"policy": name, "x": 60, "y": 60, "delays": policy(name).delays(60, 60).tolist()}


def vectors() -> dict[str, Any]:
    """All of them."""
    rng = random.Random(SEED)
    tables = {
        table: [
            {"policy": name, "x": x, "y": y} | vector(policy(name).delays(x, y).tolist(), x) for name, x, y in systems
        ]
        for table, systems in TABLES.items()
    }
    return {
        "tables": tables,
        "situations": {name: vector(**given) for name, given in SITUATIONS.items()},
        "random": [drawn(rng) for _ in range(RANDOM)],
        "policies": list(schedules()),
    }


def text(found: dict[str, Any]) -> str:
    """JSON with a vector a line."""

    def lines(value: Any) -> str:
        items = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()] if isinstance(value, dict) else None
        return ",\n".join(items or [json.dumps(v) for v in value])

    parts = []
    for name, value in found.items():
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        parts.append(f"{json.dumps(name)}: {opening}\n{lines(value)}\n{closing}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(vectors()), "utf-8", newline="\n")
