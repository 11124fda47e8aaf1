# SPDX-License-Identifier: Apache-2.0
"""A log of which nothing is kept but sums has the scores, to the last letter, of one whose segments are all kept."""

from __future__ import annotations

import gc
import json
import math
import tracemalloc
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging.cli import cli
from lagging.data.exact import expansions, fold
from lagging.data.hashes import segment_keys
from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.errors import MetricError
from lagging.formats import segment_rows, source
from lagging.metrics import registered
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Keep, Plan
from lagging.scoring.scores import Scores
from lagging.scoring.signature import Signature
from lagging.scoring.tally import Tally
from runs import runs, texts


def result(run: Run, name: str, keep: Keep, parts: int) -> object:
    """All that is printed of a score, of segments that came in parts, half of them by way of another Accumulator."""
    accumulator = Accumulator(Plan.make([name], keep=keep))
    other = accumulator.empty()
    divided = np.array_split(np.arange(len(run)), min(parts, len(run)))
    try:
        for index, rows in enumerate(divided):
            (accumulator if index < len(divided) / 2 else other).add(run[rows])
        accumulator.join(other)
        scores = accumulator.scores("base")
    except (MetricError, ValueError, OverflowError) as error:  # the last two: times of 1e300, or of both infinities
        return f"{type(error)}: {error}"
    (score,) = scores
    shown = (score.value.hex(), score.unit, score.n, int(score.undefined), score.undefined.counts)
    return shown, str(score.signature), list(map(str, scores.notes))


@settings(max_examples=150, deadline=None)
@given(runs(), st.sampled_from(list(map(repr, registered()))), st.integers(1, 5), st.sampled_from(["keys", "sums"]))
def test_sums_give_what_segments_give(run: Run, name: str, parts: int, keep: Keep) -> None:
    assert result(run, name, keep, parts) == result(run, name, "all", parts)


@given(st.lists(st.floats(-1e30, 1e30), max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_sums_are_exact(values: list[float], cuts: list[int]) -> None:
    tallies = []
    for part in np.split(np.array(values), sorted(min(cut, len(values)) for cut in cuts)):
        tallies.append(add_up(part))
    exact = sum(map(Fraction, values), Fraction(0))
    tally = reduce(add, tallies)
    (column,) = tally.sums
    assert sum(map(Fraction, column), Fraction(0)) == exact
    # as few as can be: each is what the ones after it add up to, rounded; 23 hold all bits from 1e30 to the least float
    assert len(column) <= 23
    assert list(column) == [float(sum(map(Fraction, column[i:]))) for i in range(len(column))]
    assert tally.n_defined == len(values)


def test_sums_that_are_not_finite() -> None:
    assert reduce(add, [add_up(np.array([value])) for value in (1.0, math.inf, 2.0)]).value == math.inf


def add_up(values: Floats) -> Tally:
    """The Tally of segments with these values of AL."""
    m, signature, n = lagging.metric("AL"), Signature.parse("AL|n:0|v:0.2.0.dev0"), len(values)
    return Tally(m, m, "ms", signature, True, n, n, {}, (tuple(fold(expansions(values)[0])),))


# ---- the command line -------------------------------------------------------------------------------------------

ROW = st.tuples(st.integers(0, 5), st.integers(1, 9), st.sampled_from(["a b", "b </s>", "", None]))
FORMS = st.sampled_from(["table", "json", "tsv", "markdown", "latex"])
NAMES = st.sampled_from(["AP,AL,DAL", "BLEU,AL(mean=token)", "LagPercentile,AL", "DAL(write_cost=corpus),CW", ""])


@st.composite
def logs(draw: st.DrawFn) -> str:
    """Lines of JSON: names are numbers or texts, some hypotheses are empty, some lines have no reference."""
    rows = draw(st.lists(ROW, min_size=1, max_size=12))
    first, named, referenced = draw(st.integers(0, 3)), draw(st.booleans()), draw(st.booleans())
    lines = []
    for place, (y, x, reference) in enumerate(rows, first):
        line = {"id": f"s{place}" if named else place, "delays": [min(t + 1, x) for t in range(y)], "source_length": x}
        words = {"prediction": " ".join("ab"[t % 2] for t in range(y))}
        if referenced:
            words["reference"] = reference
        lines.append(json.dumps(line | words) + "\n")
    return "".join(lines)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 2)
    monkeypatch.setattr(segment_rows, "SAMPLE", 2)
    monkeypatch.setattr(source, "BATCH_BYTES", 64)


def printed(*args: object) -> tuple[str, str, str]:
    done = CliRunner().invoke(cli, ["score", *map(str, args)], standalone_mode=False)
    return done.stdout, done.stderr, repr(done.exception)


@pytest.mark.usefixtures("small_parts")
def test_the_command_prints_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("logs")

    @settings(max_examples=60, deadline=None)
    @given(st.lists(logs(), min_size=1, max_size=2), NAMES, FORMS, st.sampled_from(["paper", "simuleval"]))
    def alike(written: list[str], names: str, form: str, convention: str) -> None:
        paths = [folder / f"{place}.jsonl" for place in range(len(written))]
        for path, text in zip(paths, written, strict=True):
            path.write_text(text, "utf-8")
        metrics = ["-m", names] if names else []
        command = (*paths, *metrics, "-f", form, "--convention", convention)
        assert printed(*command) == printed(*command, "--segment-scores", folder / "segments.tsv")

    alike()


def test_systems_that_share_some_segments(tmp_path: Path) -> None:
    for name, ids in {"base": range(5), "new": ["3", "4", "five"]}.items():
        lines = [json.dumps({"id": i, "delays": [1, 2], "source_length": 2}) + "\n" for i in ids]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    _, notes, _ = printed(tmp_path / "base.jsonl", tmp_path / "new.jsonl")
    assert "base (5 segments) and new (3 segments) share 2: their scores are not about the same sentences" in notes


@given(*[st.lists(st.integers(-(2**70), 2**70) | st.integers(-5, 20) | texts, unique_by=str, min_size=1)] * 2)
def test_shared_names(one: list[int | str], other: list[int | str]) -> None:
    def scores(names: list[int | str], keep: Keep) -> Scores:
        accumulator = Accumulator(Plan.make(["AP"], keep=keep))
        for ids in (names[:2], names[2:]):
            if ids:
                accumulator.add(Run.from_delays([[1.0]] * len(ids), source_length=[1] * len(ids), id=ids))
        return accumulator.scores()

    common = len({*map(str, one)} & {*map(str, other)}), len(one), len(other)
    keeps: tuple[Keep, ...] = ("all", "keys")
    for keep in keeps:
        assert scores(one, keep).shared(scores(other, "keys")) == common


def test_keys_are_the_same_in_any_process() -> None:
    """They are made by the process that read the segment; the number was computed with `b2sum -l 64`."""
    assert segment_keys(np.array(["talk-8"], dtype=object)).view(np.uint64).tolist() == [0x9E3A1C5C49CBFAA5]


# ---- memory -----------------------------------------------------------------------------------------------------


def grown(keep: Keep) -> float:
    """Bytes that a further segment takes."""
    run = Run.from_delays([[1.0, 2.0], [2.0]] * 500, source_length=[2.0] * 1000)
    accumulator = Accumulator(Plan.make(["AP", "AL", "DAL", "CW"], keep=keep))
    accumulator.add(run)
    tracemalloc.start()
    for _ in range(50):
        accumulator.add(run)
    gc.collect()  # Python keeps freed tuples for reuse: they are no memory of segments
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / 50_000


def test_sums_take_no_memory() -> None:
    assert grown("sums") < 0.2
    assert grown("values") > 8  # so it is measured at all


def test_memory_of_the_command_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 300)
    monkeypatch.setattr(source, "BATCH_BYTES", 1 << 12)

    def peak(count: int, *more: object) -> int:
        log = tmp_path / f"{count}.jsonl"
        log.write_text("".join(f'{{"id": {i}, "delays": [1, 2], "source_length": 2}}\n' for i in range(count)))
        tracemalloc.start()
        assert printed(log, "-m", "AP,AL,DAL", "-q", "--jobs", 1, *more)[2] == "None"
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2000)  # whatever is kept for good
    assert (peak(8000) - peak(2000)) / 6000 < 8
    assert (peak(8000, "-v") - peak(2000, "-v")) / 6000 > 30
