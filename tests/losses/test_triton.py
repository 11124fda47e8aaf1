# SPDX-License-Identifier: Apache-2.0
"""The Triton kernels: what they compute, by Triton's interpreter; and that they compile for GPUs. None is at hand."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lagging.losses.torch import recurrences

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="NOT RUN: triton is not installed (it exists for Linux)"
)
HERE = Path(__file__).parent
COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lagging.losses.torch import triton_kernels

targets = {"ptx": GPUTarget("cuda", 80, 32), "amdgcn": GPUTarget("hip", "gfx942", 64)}
for code, target in targets.items():
    for name in ("_wavefront_forward", "_wavefront_backward", "_lookback_forward", "_lookback_backward"):
        kernel = getattr(triton_kernels, name)
        constants = {key: value for key, value in {"BLOCK": 128, "START": True}.items() if key in kernel.arg_names}
        types = {n: "*fp32" if n.endswith("_ptr") else "i32" for n in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=types | dict.fromkeys(constants, "constexpr"), constexprs=constants)
        print(code, name, len(triton.compile(source, target=target).asm[code]))
"""


def run(*arguments, **environment):
    """A process of its own, as the interpreter has to be asked for before Triton is loaded."""
    outcome = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(HERE.parent)} | environment,
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


@pytest.mark.slow
def test_the_kernels_compute_what_the_oracle_computes():
    quiet = ("-W", "ignore::RuntimeWarning")  # the interpreter computes in NumPy, which warns of NaN
    cases = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *quiet, str(HERE / "triton_cases.py"))
    passed = run(*cases, TRITON_INTERPRET="1")
    assert "passed" in passed
    assert "skipped" not in passed


@pytest.mark.slow
def test_the_kernels_compile_for_gpus(tmp_path):
    """To machine code, without running it."""
    lines = run("-c", COMPILE, TRITON_CACHE_DIR=str(tmp_path), TRITON_INTERPRET="0").splitlines()
    assert len(lines) == 8, "four kernels, for NVIDIA and AMD"
    assert all(int(line.split()[-1]) > 1000 for line in lines)


def test_operators_have_a_kernel_for_gpus():
    for name in ("wavefront", "wavefront_backward", "lookback", "lookback_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"lagging::{name}", "CUDA")
    assert "triton" not in recurrences.__dict__, "loaded at the first call on a GPU"
