# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment: train, run, keep, draw. Broken off, the same command goes on.

--data FOLDER   everything, on Multi30k (two hours on two cores)
--plan FOLDER   another plan: its results go to lab/results/NAME (or --results), its seeds into one table
--smoke         the same in small, on a language of its own (a minute or two)
--draw          figures and tables of what was kept, without training
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from lab.experiments import Plan, read_plan
from lagging.errors import did_you_mean

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"


def main() -> None:
    """Do what the command line says."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__, formatter_class=layout)
    parser.add_argument("--data", type=Path, help="the folder with Multi30k (lab/README.md says where to get it)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--smoke", action="store_true", help="a small version, on a language of its own")
    which.add_argument("--plan", type=Path, metavar="FOLDER", help="what is trained and run (lab/experiments)")
    parser.add_argument("--stage", type=int, help="only up to this stage of the plan")
    parser.add_argument("--work", type=Path, help="checkpoints and logs (lab/work, or lab/work/smoke)")
    parser.add_argument("--results", type=Path, help="what is kept (lab/results; of --smoke, in its work)")
    parser.add_argument("--figures", type=Path, help="figures (docs/images/lab, and tables in docs/reproduction.md)")
    parser.add_argument(
        "--jobs", type=_jobs, default=os.cpu_count() or 1, help="processes at a time (one for each core)"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--draw", action="store_true", help="only draw what was kept")
    only.add_argument("--train", metavar="EXPERIMENT", help="only train this")
    only.add_argument("--run", metavar="SETTING", help="only run this, on a model that has been trained")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _do(args)
    except KeyboardInterrupt:
        task = args.train or args.run
        print(f"{task}: stopped" if task else "stopped; the same command goes on", file=sys.stderr)
        raise SystemExit(130) from None


def _jobs(text: str) -> int:
    if (jobs := int(text)) < 1:
        raise ValueError
    return jobs


def _do(args: argparse.Namespace) -> None:
    plan = read_plan(args.plan or HERE / ("smoke" if args.smoke else "experiments"))
    plan = plan if args.stage is None else plan.until(args.stage)
    _known(plan, args)
    own = args.plan.resolve().name if args.plan else "smoke" if args.smoke else ""
    folder = (args.work or HERE / "work" / own).resolve()
    kept = (args.results or (folder / "results" if args.smoke else HERE / "results" / own)).resolve()
    if not args.draw:
        from lab.work import Work

        data = args.data.resolve() if args.data else None
        work = Work(plan, folder, kept, data, lambda line: print(line, file=sys.stderr, flush=True))
        work.prepare()
        if args.train:
            return work.train(args.train)
        if args.run:
            return work.run(args.run)
        where = ["--work", folder, "--results", kept, *(["--data", data] if data else []), *["--smoke"] * args.smoke]
        where += ["--plan", args.plan.resolve()] if args.plan else []
        if args.jobs == 1:
            work.here()
        else:
            work.everything(args.jobs, [sys.executable, "-m", "lab", *map(str, where)])
    if args.plan:
        from lab.tested import summary

        return print(summary(plan, kept))
    from lab import figures

    parts = figures.made(kept)
    published = kept == (HERE / "results").resolve() and args.figures is None
    images = (args.figures or (DOCS / "images" / "lab" if published else kept / "figures")).resolve()
    figures.draw(kept, images)
    if published:
        from lab import tested

        found = tested.Found()
        tested.draw(found, images)
        parts |= tested.made(found)
        figures.fill(DOCS / "reproduction.md", parts)
    print("\n".join(parts.values()))
    return None


def _known(plan: Plan, args: argparse.Namespace) -> None:
    """Whether there is what was named."""
    for what, name, known in (("experiment", args.train, plan.experiments), ("setting", args.run, plan.settings)):
        if name is not None and name not in known:
            raise SystemExit(f"there is no {what} {name!r}.{did_you_mean(name, known)}")


if __name__ == "__main__":
    main()
