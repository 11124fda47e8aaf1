# SPDX-License-Identifier: Apache-2.0
"""The frameworks are guests: nothing loads them that does not need them, and a missing one is asked for by name."""

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["lagging", "lagging.losses", "lagging.losses.testing"])
def test_importing_loads_no_framework(name):
    code = f"import {name}, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert not {"torch", "jax"} & set(json.loads(loaded))


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_missing_framework_comes_with_the_line_that_installs_it(framework):
    code = f"import sys; sys.modules[{framework!r}] = None; import lagging.losses.{framework}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-2:]
    assert last == [
        f"lagging.errors.MissingExtraError: {framework} is not installed",
        f"  fix: pip install 'lagging[{framework}]'",
    ]
