# SPDX-License-Identifier: Apache-2.0
from dataclasses import fields, replace

import numpy as np
import pytest

import lagging
from lagging import Run
from lagging.data.ragged import Ragged
from lagging.data.run import COLUMNS


def run() -> Run:
    return Run.from_delays(
        [[1, 2], [], [2, 2, 3]],
        source_length=[2, 2, 3],
        elapsed=[[10, 20], [], [5, 5, 5]],
        prediction=["a b", "", "c d e"],
        reference=["a", None, "c"],
        source=["x y", "x y", "x y z"],
        document=["talk", "talk", "other"],
        id=["p", "q", "r"],
        name="base",
    )


def test_is_frozen() -> None:
    one = run()
    with pytest.raises(AttributeError):
        one.unit = "ms"
    with pytest.raises(ValueError, match="read-only"):
        one.delays.values[0] = 9


def test_slices_every_column() -> None:
    one = run()[1:]
    assert one.id.tolist() == ["q", "r"]
    assert one.delays.tolist() == [[], [2, 2, 3]]
    assert one.elapsed.tolist() == [[], [5, 5, 5]]
    assert one.document.tolist() == ["talk", "other"]
    assert run()[[2, 0]].prediction.tolist() == ["c d e", "a b"]
    assert run()[np.array([True, False, True])].id.tolist() == ["p", "r"]
    assert len(run()[5:]) == 0
    assert [len(s) for s in run().segments()] == [1, 1, 1]


def test_concatenates() -> None:
    one = run()
    again = Run.concat([one[:1], one[1:]])
    assert again.to_dict() == one.to_dict()
    bare = Run.from_delays([[1]], source_length=[1])
    mixed = Run.concat([one[:1], Run.from_delays([[1]], source_length=[1], prediction=["z"], id=[7])])
    assert mixed.id.tolist() == ["p", "7"]
    assert mixed.elapsed is None
    assert mixed.reference.tolist() == ["a", None]
    with pytest.raises(lagging.UsageError, match="differ in level"):
        Run.concat([one, bare])
    with pytest.raises(lagging.UsageError, match="at least one"):
        Run.concat([])


def test_wrong_columns_are_all_named() -> None:
    with pytest.raises(lagging.DataError, match=r"source_length has 2 entries, delays 1[\s\S]*1 more"):
        Run.from_delays([[1]], source_length=[1, 2], prediction=["a", "b"])
    with pytest.raises(lagging.UsageError, match="unit must be"):
        Run.from_delays([[1]], source_length=[1], unit="s")
    with pytest.raises(lagging.DataError, match=r"2 delays, 1 words"):
        Run.from_delays([[1, 1]], source_length=[1], prediction=["a"], level="word")


def test_columns_are_all_that_there_is_one_of_per_segment() -> None:
    of_the_whole = {"unit", "level", "seg", "name", "origin", "repaired", "stripped", "transcribed", "given", "notes"}
    of_the_whole |= {"speech_out"}
    assert {f.name for f in fields(Run)} == {*COLUMNS, *of_the_whole}
    assert len(set(COLUMNS)) == len(COLUMNS)
    texts = ("prediction", "reference", "source", "document")
    assert run().columns == tuple(run().to_dict()) == ("id", "delays", "source_length", *texts, "elapsed")


def test_to_other_libraries() -> None:
    one = run()
    assert one.to_pandas()["delays"].tolist() == [[1, 2], [], [2, 2, 3]]
    assert one.to_polars()["id"].to_list() == ["p", "q", "r"]
    assert one.to_arrow().column("reference").to_pylist() == ["a", None, "c"]
    assert repr(one) == "Run('base', 3 segments, 5 words, token)"


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_package_says_how_to_get_it(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    method = {"pandas": "to_pandas", "polars": "to_polars", "pyarrow": "to_arrow"}[package]
    with pytest.raises(lagging.MissingExtraError, match="pip install"):
        getattr(run(), method)()


def test_ids() -> None:
    assert Run.from_delays([[1], [1]], source_length=[1, 1]).id.dtype == np.int64
    assert Run.from_delays([[1], [1]], source_length=[1, 1], id=[1, "b"]).id.tolist() == ["1", "b"]
    assert Run.from_delays([[1]], source_length=[1], id=[2**70]).id.tolist() == [str(2**70)]
    with pytest.raises(lagging.DataError, match="used before"):
        Run.from_delays([[1], [1]], source_length=[1, 1], id=["a", "a"])


def test_a_million_rows() -> None:
    lengths = np.tile([0, 1, 2, 3], 250_000)
    values = np.ones(int(lengths.sum()))
    one = Run.from_delays(Ragged.from_lengths(values, lengths), source_length=np.ones(len(lengths)))
    scores = lagging.score(one, ["AP", "AL", "DAL"])
    assert scores["AP"].value == 1
    assert scores["DAL"].value == 1
    assert scores["DAL"].undefined == 250_000


def test_the_kind_of_output_is_that_of_the_log() -> None:
    """One text may look like the name of a sound file; a sound may have no name."""
    text = Run.from_delays([[1], [1]], source_length=[2, 2], prediction=["play.wav", "ja"])
    assert not text.speech_out
    assert [part.speech_out for part in (text[:1], text[[0]], *text.segments())] == [False] * 4
    assert replace(text, prediction=text.prediction[[0, 0]]).has_text
    sound = Run.from_delays([[1], [1]], source_length=[2, 2], prediction=["a.wav", ""], id=["a", "b"])
    assert sound.speech_out
    assert sound[1:].speech_out
    assert not sound[1:].has_text
    assert Run.concat([sound[1:], sound[:1]]).speech_out
