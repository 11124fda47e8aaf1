# SPDX-License-Identifier: Apache-2.0
import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging import agents, policies
from lagging.agents.loading import Spec
from lagging.agents.loop import drive
from lagging.agents.sentence import Sentence
from lagging.agents.sources import SpeechSource, TextSource

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = EXAMPLES / "data"
SOURCE, REFERENCE = DATA / "source.txt", DATA / "reference.txt"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """An agent's file puts its folder where modules are looked for."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if str(EXAMPLES) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def made(file, **options):
    return Spec(
        "file", str(EXAMPLES / file), tuple((name, json.dumps(value)) for name, value in options.items())
    ).make()


def delays_of(run):
    return [run.delays[i].tolist() for i in range(len(run))]


@pytest.mark.parametrize("k", [1, 3, 40])
def test_wait_k_is_the_policy(k):
    run = agents.run(made("wait_k.py", k=k), SOURCE, REFERENCE)
    sources = SOURCE.read_text("utf-8").splitlines()
    assert len(run) == len(sources) == 40
    policy = policies.wait_k(k).run(source=sources, target=sources)  # word for word: |y| = |x|
    assert delays_of(run) == delays_of(policy)
    assert run.prediction[10] == "the Museum is montags geschlossen."
    scores = lagging.score(run, ["AL", "DAL"])
    if k < 40:
        assert scores["AL"].segments[1] == pytest.approx(k)
        assert scores["DAL"].segments[1] == pytest.approx(k)


def test_three_is_the_default():
    assert agents.run(made("wait_k.py"), ["a b c d"]).delays[0].tolist() == [3, 4, 4, 4]


def test_the_agent_has_fifteen_lines():
    """As it says: without docstrings, comments and empty lines."""
    text = (EXAMPLES / "wait_k.py").read_text("utf-8")
    told = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            told |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    code = [line for number, line in lines if number not in told and line.strip() and not line.startswith("#")]
    assert len(code) <= 15


@pytest.mark.parametrize("width", [1, 7, 64])
def test_batched_is_wait_k(width):
    alone = agents.run(made("wait_k.py", k=2), SOURCE, REFERENCE)
    many = agents.run(made("batched.py", k=2), SOURCE, REFERENCE, settings=agents.Settings(batch=width))
    assert delays_of(many) == delays_of(alone)
    assert many.prediction.tolist() == alone.prediction.tolist()


def test_retranslation_changes_its_mind():
    agent = made("retranslate.py")
    sentence = Sentence(TextSource(["Die", "Stadt", "hat", "den", "Plan", "geändert."]), agents.Traits.of(agent))
    drive(agent, sentence)
    text, steps = sentence.hypothesis.finish()
    assert text == "the Stadt has geändert the Plan."
    assert [sentence.arrivals[step] for step in steps] == [1, 2, 3, 6, 6, 6]
    assert (sentence.hypothesis.erased, sentence.hypothesis.revisions) == (2, 1)


def test_retranslation_on_the_data():
    run = agents.run(made("retranslate.py"), SOURCE, REFERENCE)
    assert [len(g) for g in delays_of(run)] == [len(text.split()) for text in run.prediction]
    assert run.erased is not None
    revised = [i for i, count in enumerate(run.erased) if count > 0]
    assert 3 <= len(revised) < 40  # some sentences have a participle at the end, and most do not
    assert lagging.score(run, ["NormalizedErasure"])["NormalizedErasure"].value > 0
    assert run.first_times is not None
    assert (run.first_times.values <= run.delays.values).all()
    first, stable = lagging.score(run, ["DAL(clock=first)", "DAL(clock=stable)"])
    assert first.value <= stable.value


@pytest.mark.parametrize("k", [1, 2, 9])
def test_notes_are_heard(k):
    agent = made("speech_wait_k.py", k=k)
    play = sys.modules[type(agent).__module__].play
    for melody in ("C D E F G A B", "A", "B B C"):
        sentence = Sentence(SpeechSource(play(melody), 16_000, 500), agents.Traits.of(agent))
        drive(agent, sentence)
        text, steps = sentence.hypothesis.finish()
        notes = len(melody.split())
        assert text == melody
        assert [sentence.arrivals[step] for step in steps] == [500.0 * min(k + t, notes) for t in range(notes)]


def test_notes_from_sound_files(tmp_path):
    subprocess.run([sys.executable, str(EXAMPLES / "speech_wait_k.py"), str(tmp_path)], check=True, timeout=60)
    run = agents.run(made("speech_wait_k.py"), tmp_path / "source.txt", tmp_path / "reference.txt")
    assert run.unit == "ms"
    assert run.prediction.tolist() == (tmp_path / "reference.txt").read_text("utf-8").splitlines()
    np.testing.assert_array_equal(run.source_length, [3000, 2500, 3000, 2500])
    assert lagging.score(run, ["DAL"])["DAL"].value == pytest.approx(1000)  # two notes, each as long as a word
