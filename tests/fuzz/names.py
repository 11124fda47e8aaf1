# SPDX-License-Identifier: Apache-2.0
"""What people call things: settings of a grid, folders of a sweep, new names."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from fuzz.cases import Case
from fuzz.hostile import KEYS
from fuzz.oracles import agree, outcome
from fuzz.words import damage
from lagging.agents import Spec
from lagging.agents.runner.jobs import Job
from lagging.cli.grid import grid_jobs
from lagging.cli.systems import name_settings, parse_renames

VALUES = ("1", "3", "0.3", "1e-3", "word", "a b", ".", "..", "-1", "", " ", "ü", "x" * 300, "a=b", "None", "1/2", "~")


def make_grid(random: Random) -> Case:
    """Arguments of `--grid`."""
    grids = []
    for _ in range(random.randint(1, 3)):
        values = random.choices(VALUES, k=random.randint(1, 4))
        grids.append(damage(random, f"{random.choice(('k', 'level', 'beam', random.choice(KEYS)))}={','.join(values)}"))
    return Case("grid", {}, {"grids": grids})


def check_grid(case: Case) -> None:
    """Each setting has a folder of its own, in that of the grid, that can be made."""
    job = Job(Spec("policy", "wait-3"), "source.txt", None, "out")
    found = outcome(lambda: grid_jobs(job, case.options["grids"]))
    if found.error is not None:
        return
    settings = [setting for setting, _ in found.value]
    agree("the number of settings, and of different ones", len(settings), len(set(settings)))
    for setting, one in found.value:
        agree("the folder of a setting, and its path", str(Path("out") / setting), one.output)
        agree(
            "the folder of the grid, and the one above a setting",
            Path(os.path.normpath(one.output)).parent,
            Path("out"),
        )
    for _, one in found.value[:20]:
        Path(one.output).mkdir(parents=True)


def make_paths(random: Random) -> Case:
    """Paths of settings, and new names."""
    parts = (
        "runs",
        "step-length_0.3",
        "step-length_0.5",
        "wait-1",
        "wait-3",
        "k=1",
        "a.log",
        "b.log",
        "é",
        "0.3",
        "1",
        "x",
    )
    paths = ["/".join(random.choices(parts, k=random.randint(1, 3))) for _ in range(random.randint(1, 5))]
    if random.random() < 0.3:
        paths = [damage(random, path) for path in paths]
    renames = [damage(random, f"{random.choice(parts)}={random.choice(parts)}") for _ in range(random.randrange(3))]
    return Case("paths", {}, {"paths": paths, "renames": renames})


def check_paths(case: Case) -> None:
    """Different paths have different names; what is renamed has one new name."""
    paths = list(dict.fromkeys(map(os.path.normpath, filter(None, case.options["paths"]))))
    if paths:
        names = name_settings(paths)
        agree("how many settings there are, and have names", len(paths), len(names))
        agree("how many settings there are, and have different names", len(paths), len(set(names)))
    found = outcome(lambda: parse_renames(case.options["renames"]))
    if found.error is None:
        agree("whether new names are texts", all(old.strip() and new.strip() for old, new in found.value.items()), True)
