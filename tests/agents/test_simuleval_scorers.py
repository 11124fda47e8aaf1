# SPDX-License-Identifier: Apache-2.0
"""Our metrics in SimulEval's own command line, against `lagging score` on the log that it wrote."""

import csv

import pytest

import lagging
import simuleval_peer as peer

PEER = peer.peers()
pytestmark = [pytest.mark.skipif(PEER is None, reason="SimulEval is not installed: see the Makefile"), pytest.mark.slow]
METRICS = ["AP", "AL", "LAAL", "DAL", "YAAL", "ATD", "LagPercentile", "MaxLag"]

TEXT = """
from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class Wait(TextToTextAgent):
    def policy(self):
        source, target = self.states.source, self.states.target
        if self.states.source_finished:
            rest = source[len(target):]
            return WriteAction(" ".join(rest + ["so"]), finished=True)
        if len(source) - len(target) < 2:
            return ReadAction()
        return WriteAction(source[len(target)], finished=False)
"""


USER = "--user-dir=our_metrics"


def simuleval(folder, *arguments):
    (folder / "our_metrics").mkdir(exist_ok=True)
    (folder / "our_metrics" / "__init__.py").write_text("import lagging.agents.simuleval.scorers\n")
    code = "import sys; sys.argv[0] = 'simuleval'; from simuleval.cli import main; main()"
    return peer.python("-c", code, *arguments, peer=PEER, cwd=folder)


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def check(out, scores):
    """SimulEval writes three decimal places."""
    (line,) = rows(out / "scores.tsv")
    for name in METRICS:
        assert float(line[f"LAGGING_{name}"]) == pytest.approx(scores[name].value, abs=6e-4), name
    for row, segment in zip(rows(out / "metrics.tsv"), range(99), strict=False):
        for name in METRICS:
            value = float(row[f"LAGGING_{name}"] or "nan")
            assert value == pytest.approx(scores[name].segments[segment], abs=6e-4, nan_ok=True), name


def test_the_scores_are_those_of_lagging_score(tmp_path):
    (tmp_path / "wait.py").write_text(TEXT)
    (tmp_path / "text.src").write_text("\n".join(peer.TEXTS) + "\n")
    (tmp_path / "text.ref").write_text("\n".join(peer.REFERENCES) + "\n")
    names = [f"LAGGING_{name}" for name in METRICS]
    files = ["--source=text.src", "--target=text.ref", "--agent=wait.py", "--output=out"]
    done = simuleval(tmp_path, *files, USER, "--no-progress-bar", "--latency-metrics", *names)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    scores = lagging.score(lagging.read(out / "instances.log"), METRICS)
    check(out, scores)
    their = simuleval(tmp_path, *files[:3], "--output=their", "--no-progress-bar", "--latency-metrics", "AL", "DAL")
    assert their.returncode == 0, their.stderr
    (theirs,) = rows(tmp_path / "their" / "scores.tsv")
    assert float(theirs["AL"]) != pytest.approx(scores["AL"].value, abs=6e-4), "the conventions differ"

    # scored again from the log, by another process, which prints the scores
    again = simuleval(tmp_path, "--score-only", "--output=out", USER, "--latency-metrics", "LAGGING_DAL")
    assert again.returncode == 0, again.stderr
    head, (_, *values) = (line.split() for line in again.stdout.splitlines()[-2:])
    printed = dict(zip(head, values, strict=True))
    assert float(printed["LAGGING_DAL"]) == pytest.approx(scores["DAL"].value, abs=6e-4)


def test_computation_aware_scores_of_text_are_refused(tmp_path):
    (tmp_path / "wait.py").write_text(TEXT)
    (tmp_path / "text.src").write_text("a b\n")
    (tmp_path / "text.ref").write_text("a b\n")
    files = ["--source=text.src", "--target=text.ref", "--agent=wait.py", "--output=out", "--computation-aware"]
    done = simuleval(tmp_path, *files, USER, "--no-progress-bar", "--latency-metrics", "LAGGING_DAL")
    assert done.returncode
    assert "leave out --computation-aware" in done.stderr
