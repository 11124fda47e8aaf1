# SPDX-License-Identifier: Apache-2.0
"""SLTev's numbers for its own sample, as its own tests expect them, to their last digit."""

import json
import math

import numpy as np
import pytest

import lagging
from lagging.formats.moses import moses
from lagging.formats.sltev_pairs import SeenWords, Update, due, due_by_partials, first_seen

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def expected(data):
    return json.loads((data / "sltev" / "EXPECTED.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(data):
    return data / "sltev" / "sample-data"


@pytest.fixture(scope="module")
def run(folder):
    return lagging.read(folder / "sample.en.cs.slt")


def value(run, name):
    return lagging.score(run, [name])[name].value


VARIANTS = [
    ("Delay_T", "False"),
    ("Delay_PT", "True"),
]


@pytest.mark.parametrize(("variant", "partial"), VARIANTS)
def test_delay(run, expected, variant, partial):
    name = f"SLTevDelay(partial={partial}, over=reference)"
    score = lagging.score(run, [name])[name]
    wanted = expected["slt"][variant]
    assert round(score.value, 3) == wanted["avg"]
    assert round(float(np.nansum(score.statistics[:, 0])), 3) == wanted["tot"]
    words = run.due.lengths.sum()
    assert round(value(run, "Missed") * words) == wanted["missed"]
    assert value(run, f"SLTevDelay(partial={partial})") == pytest.approx(
        score.value * run.reference_length.sum() / (words - wanted["missed"])
    )


def test_flicker(run, expected):
    flicker = expected["slt"]["Flicker"]
    assert value(run, "Erased") == flicker["changed_content"]
    assert round(value(run, "NormalizedErasure(mean=segment)"), 3) == flicker["mean_across_sentences"]
    assert round(value(run, "NormalizedErasure"), 3) == flicker["mean_across_documents"]


def test_changed_tokens(run, expected):
    assert value(run, "Erased(gone=True)") == expected["slt"]["Flicker"]["changed_tokens"]


def test_the_log_in_the_sample(run):
    assert [len(text.split()) for text in run.prediction] == [10, 7, 12]
    assert run.delays.lengths.tolist() == [11, 8, 12]  # "Lt." keeps its full stop
    assert {note.kind: note.count for note in run.notes}["display time goes back"] == 1  # 310 → 308


def test_timed_recognition(folder, expected):
    run = lagging.read(folder / "sample.en.en.asrt")
    assert value(run, "SLTevDelay(over=reference)") == expected["asrt"]["Delay_T"]
    assert value(run, "Erased") == expected["asrt"]["Flicker"]


@pytest.mark.parametrize(("variant", "times"), [("Delay_T", due), ("Delay_PT", due_by_partials)])
def test_delay_by_the_pairing_alone(folder, expected, variant, times):
    """The same from the files as they are, without the reader and the metric."""

    def updates(name: str, shown: bool) -> list[list[Update]]:
        groups: list[list[Update]] = [[]]
        for line in (folder / name).read_text("utf-8").splitlines():
            kind, *rest = moses(line)
            numbers = [*([] if shown else [math.nan]), *map(float, rest[: 2 + shown])]
            groups[-1].append(Update(*numbers, rest[2 + shown :]))
            groups += [[]] if kind == "C" else []
        return groups[:-1]

    seen = SeenWords(map(first_seen, updates("sample.en.cs.slt", True)))
    references = [moses(line) for line in (folder / "sample.cs.OSt").read_text("utf-8").splitlines()]
    total, missed = 0.0, 0
    for spoken, words in zip(updates("sample.en.OStt", False), references, strict=True):
        found = seen.between(spoken[-1].start, spoken[-1].end)
        for word, time in zip(dict.fromkeys(words), times(spoken, words), strict=True):
            missed += word not in found
            total += max(0.0, found.get(word, -math.inf) - time)
    wanted = expected["slt"][variant]
    assert (round(total, 3), missed) == (wanted["tot"], wanted["missed"])
    assert round(total / sum(map(len, references)), 3) == wanted["avg"]
