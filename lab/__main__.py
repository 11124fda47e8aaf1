# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment: train, run, keep, draw. Broken off, the same command goes on.

--data FOLDER   everything, on Multi30k (two hours on two cores)
--smoke         the same in small, on a language of its own (two minutes)
--draw          figures and tables of what was kept, without training
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"


def main() -> None:
    """Do what the command line says."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__, formatter_class=layout)
    parser.add_argument("--data", type=Path, help="the folder with Multi30k (lab/README.md says where to get it)")
    parser.add_argument("--smoke", action="store_true", help="a small version, on a language of its own")
    parser.add_argument("--draw", action="store_true", help="only draw what was kept")
    parser.add_argument("--work", type=Path, help="checkpoints and logs (lab/work, or lab/work/smoke)")
    parser.add_argument("--results", type=Path, help="what is kept (lab/results; of --smoke, in its work)")
    parser.add_argument(
        "--figures",
        type=Path,
        help="figures (docs/images/lab; with tables in docs/reproduction.md)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (one for each core)")
    parser.add_argument("--train", metavar="EXPERIMENT", help="only train this")
    parser.add_argument("--run", metavar="SETTING", help="only run this, on a model that has been trained")
    said = parser.parse_args()
    folder = (said.work or HERE / "work" / ("smoke" if said.smoke else "")).resolve()
    kept = (said.results or (folder / "results" if said.smoke else HERE / "results")).resolve()
    if not said.draw:
        from lab.experiments import read_plan
        from lab.work import Work

        plan = read_plan(HERE / ("smoke" if said.smoke else "experiments"))
        data = said.data.resolve() if said.data else None
        work = Work(plan, folder, kept, data, lambda line: print(line, file=sys.stderr, flush=True))
        if said.train:
            return work.train(said.train)
        if said.run:
            return work.run(said.run)
        work.prepare()
        where = ["--work", folder, "--results", kept, *(["--data", data] if data else []), *["--smoke"] * said.smoke]
        try:
            work.everything(said.jobs, [sys.executable, "-m", "lab", *map(str, where)])
        except KeyboardInterrupt:
            raise SystemExit("stopped; the same command goes on") from None
    from lab import figures

    parts = figures.made(kept)
    figures.draw(kept, (said.figures or (kept / "figures" if said.smoke else DOCS / "images" / "lab")).resolve())
    if not said.smoke and said.figures is None:
        figures.fill(DOCS / "reproduction.md", parts)
    print("\n".join(parts.values()))
    return None


if __name__ == "__main__":
    main()
