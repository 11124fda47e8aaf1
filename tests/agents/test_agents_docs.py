# SPDX-License-Identifier: Apache-2.0
"""What the pages say of agents is what there is."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lagging.agents.failures import Failure
from lagging.agents.hypothesis import JOINTS, LEVELS
from lagging.agents.protocol import State, Traits
from lagging.agents.runner.jobs import SentenceRunner, Settings
from lagging.agents.sources import SOURCE_LEVELS, SpeechTestSet, TextTestSet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
SIMULEVAL = {"index", "prediction", "delays", "elapsed", "prediction_length", "reference", "source", "source_length"}


def code(text: str) -> str:
    """What is done, without what is said about it."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_page_shows_the_example():
    block = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert code(block[1]) == code((ROOT / "examples" / "wait_k.py").read_text("utf-8"))


def test_every_attribute_of_the_state_and_every_trait_is_documented():
    documented = section("What it sees, and what it answers")
    assert [name for name in State.__slots__ if f"`{name}`" not in documented] == []
    declared = set(Traits.__dataclass_fields__) - {"batched"}  # which is having `policies`
    assert [name for name in declared if not re.search(rf"`{name}\b", documented)] == []


def test_every_way_to_read_and_write_is_documented():
    documented = section("Words, characters, pieces")
    assert [name for name in (*SOURCE_LEVELS, *JOINTS, *LEVELS) if not re.search(rf"\b{name}`", documented)] == []


def copy(state):
    return None if len(state.target) == len(state.source) else state.source[len(state.target)]


def hear(state):
    return "word" if state.finished and not state.target else None


@pytest.mark.parametrize("speech", [False, True])
def test_every_key_of_the_log_is_documented(speech, tmp_path):
    if speech:
        soundfile = pytest.importorskip("soundfile", reason="NOT RUN: there is no soundfile")
        soundfile.write(tmp_path / "a.wav", np.zeros(1600), 16_000)
    source = SpeechTestSet([str(tmp_path / "a.wav")]) if speech else TextTestSet(["a b"])
    agent = type("Agent", (), {"policy": staticmethod(hear if speech else copy)})()
    traits = Traits(source="speech" if speech else "text")
    runner = SentenceRunner(agent, traits, source, ["a b"], Settings())
    line, failure = runner.translate(0)
    assert failure is None
    keys = set(json.loads(line)) | set(json.loads(runner.fail(0, Failure("raised", "so", "trace"))))
    documented = set(re.findall(r"`(\w+)`", section("What is in the folder")))
    assert keys - SIMULEVAL - documented == set()
    assert {"arrivals", "failed", *(["starts"] if speech else [])} <= keys
