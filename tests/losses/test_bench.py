# SPDX-License-Identifier: Apache-2.0
import importlib.util
import runpy
import sys
from pathlib import Path

import torch

from lagging.losses.torch import dal, recurrences
from losses import reference

SCRIPT = Path(__file__).parents[2] / "bench" / "losses.py"


def test_the_benchmark_of_losses_prints_its_table(monkeypatch, capsys):
    """That it runs; what it measures depends on the machine, so no time is asserted."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--quick"])
    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    finally:
        torch.set_num_threads(threads)
    table = capsys.readouterr().out
    for row in ("loop ÷ dal, 64×32", "dal without padding ÷ torch.cummax", "closed form ÷ expected_alignment", "JAX"):
        assert row in table
    assert "MISSED" not in table, "quick ratios are not judged"


def test_what_it_compares_with_does_the_same_thing():
    spec = importlib.util.spec_from_file_location("bench_losses", SCRIPT)
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    torch.manual_seed(0)
    x, y = torch.tensor([9.0, 7.0, 4.0]), torch.tensor([6, 9, 3])
    delays = torch.rand(3, 9, dtype=torch.float64).cumsum(1).requires_grad_()
    theirs, ours = bench.looped_dal(delays, x, y), dal(delays, x, y)
    torch.testing.assert_close(theirs, ours)
    torch.testing.assert_close(*(torch.autograd.grad(one.sum(), delays)[0] for one in (theirs, ours)))
    p = torch.tensor(reference.probabilities("uniform", (2, 5, 6)))
    torch.testing.assert_close(bench.closed_alignment(p, eps=1e-300), torch.tensor(reference.alignment(p.numpy())))


def test_two_versions_are_compared_at_several_sizes():
    """With the memory that the operators take inside."""
    spec = importlib.util.spec_from_file_location("bench_losses", SCRIPT)
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    for shape in ((2, 16, 16), (3, 40, 64)):
        rows = {row.what.split(",")[0]: row for row in bench.versions(shape, Path(recurrences.__file__), 0.01)}
        assert rows["now"].target == rows["base"].target, "the same file"
        assert rows["now"].target.split()[0].isdigit()
        assert float(rows["now"].target.split()[-2]) >= 3, "α, q and the gradient, each as large as p"
