# SPDX-License-Identifier: Apache-2.0
"""Five policies over the Marian model: run, keep, draw.

    python -m lab.policies --data FOLDER --model FOLDER    # a grid of each policy; broken off, the same command goes on
    python -m lab.policies --draw                          # figures and tables of what was kept, without a model

Results go to lab/results/marian, figures to docs/images/marian, tables into docs/hf.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot

import lagging
from lab import results, tables
from lab.data import TESTS, read_multi30k
from lab.experiments import Setting
from lab.figures import fill
from lab.marian import MULTI30K
from lab.results import Result, read_results
from lagging import plots
from lagging.curves import Curves, curves
from lagging.curves.slopes import lines
from lagging.data.files import write_whole

__all__ = ["GRIDS", "draw", "made", "run"]

HERE = Path(__file__).parent
KEPT, PAGE = HERE / "results" / "marian", HERE.parent / "docs" / "hf.md"
IMAGES = PAGE.parent / "images" / "marian"
GRIDS: dict[str, tuple[str, Sequence[float]]] = {
    "wait-k": ("k", (1, 3, 5, 7)),
    "local-agreement": ("n", (2, 3, 4)),
    "hold": ("n", (2, 4, 6)),
    "alignatt": ("f", (1, 2, 4)),
    "ralcp": ("gamma", (0.5, 0.75, 1.0)),
}
"""Policy → its option, and the values of it."""

LEFT_OUT = ("wait-k-1",)
"""Settings that are not drawn: of most sentences, the model writes one word, and the figure would show only that."""

FIRST = 300
"""How many sentences of the test set are translated."""
RESAMPLES = 2000


def run(data: Path, model: Path, work: Path) -> None:
    """Run every policy at its settings, and keep what came of it, without the texts."""
    pairs = read_multi30k(data).parts[TESTS[0]][:FIRST]
    work.mkdir(parents=True, exist_ok=True)
    files = [work / f"test.{side}" for side in ("source", "reference")]
    for path, side in zip(files, zip(*pairs, strict=True), strict=True):
        with write_whole(path) as file:
            file.writelines(f"{line}\n" for line in side)
    lengths = [len(reference.split()) for _, reference in pairs]
    for policy, (option, values) in (("offline", ("max_tokens", (64,))), *GRIDS.items()):
        command = [
            sys.executable, "-m", "lagging", "run", f"hf:{model}", "--policy", policy, "--source", str(files[0]),
            "--reference", str(files[1]), "-o", str(work / "runs" / policy), "--batch", "300", "--no-times",
            "--no-scores", "-a", "threads=1", "--grid", f"{option}={','.join(f'{value:g}' for value in values)}",
            *([] if policy == "offline" else ["-a", "max_tokens=64"]),
        ]  # fmt: skip
        path_to = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH"))))
        subprocess.run(command, env={**os.environ, "PYTHONPATH": path_to, "HF_HUB_OFFLINE": "1"}, check=True)
        for value in values:
            label = "offline" if policy == "offline" else f"{option}={value:g}"
            setting = Setting(f"{policy}-{value:g}", policy, "marian", policy, {option: value}, label)
            log = work / "runs" / policy / f"{option}={value:g}" / "instances.log"
            trained = results.Trained({TESTS[0]: len(pairs)}, MULTI30K, [], {})
            results.keep(setting, lagging.read(log), KEPT, lengths, trained)


def _points(kept_results: Sequence[Result], latency: str) -> Curves:
    settings = {
        name: [(one.setting.label, one.scores) for one in members] for name, members in _families(kept_results).items()
    }
    return curves(settings, latency, "BLEU", resamples=RESAMPLES)


def _families(kept_results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results of each policy, in the order of its values."""
    families = {name: [one for one in kept_results if one.setting.family == name] for name in GRIDS}
    return {
        name: sorted(members, key=lambda one: next(iter(one.setting.options.values())))
        for name, members in families.items()
    }


def made(kept: Path = KEPT) -> dict[str, str]:
    """All tables of the page, by name."""
    kept_results = read_results(kept)
    ordered = [one for members in _families(kept_results).values() for one in members]
    offline = [one for one in kept_results if one.setting.family == "offline"]
    return {
        "policies": tables.settings([*ordered, *offline], RESAMPLES),
        "policies, signatures": tables.signatures(offline[0], RESAMPLES),
        "policies, hidden": tables.hidden(ordered),
    }


def draw(kept: Path, folder: Path) -> None:
    """BLEU against AL and against DAL, and DAL against AL."""
    mpl.use("agg")
    kept_results = [one for one in read_results(kept) if one.setting.name not in LEFT_OUT]
    folder.mkdir(parents=True, exist_ok=True)
    for latency in ("AL", "DAL"):
        plots.save(
            plots.curves(_points(kept_results, latency), pareto=False), folder / f"bleu-against-{latency.lower()}.svg"
        )
    settings = {
        name: [(one.setting.label, one.scores) for one in members] for name, members in _families(kept_results).items()
    }
    plots.save(plots.al_dal(lines(settings, "AL", "DAL", resamples=RESAMPLES)), folder / "al-against-dal.svg")
    pyplot.close("all")


def main() -> None:
    """Do what the command line says."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m lab.policies", description=__doc__, formatter_class=layout)
    parser.add_argument("--data", type=Path, help="the folder with Multi30k (lab/README.md says where to get it)")
    parser.add_argument("--model", type=Path, default=HERE / "work" / "marian" / "model", help="what lab.marian saved")
    parser.add_argument("--work", type=Path, default=HERE / "work" / "marian", help="logs")
    parser.add_argument("--draw", action="store_true", help="only draw what was kept")
    args = parser.parse_args()
    if not args.draw:
        if args.data is None:
            raise SystemExit("say where Multi30k is: --data FOLDER (lab/README.md says where to get it)")
        run(args.data, args.model, args.work)
    draw(KEPT, IMAGES)
    fill(PAGE, made())


if __name__ == "__main__":
    main()
