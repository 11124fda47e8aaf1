# SPDX-License-Identifier: Apache-2.0
import base64
import json
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging import Run
from lagging.errors import UsageError
from lagging.render.report import page, report, segments
from lagging.render.report.page import PLACE

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"'`&<>\u2028\u2029",
    "w" * 10_000,
    "\u202eright to left\u202c \u2067א\u2069",
    "😀👩‍👩‍👧",
    "a\x00b",
]


def synthetic(k: int, n: int = 60, speech: bool = True) -> Run:
    """A system that is k steps late; the same texts and lengths for every k."""
    shared, own = np.random.default_rng(7), np.random.default_rng(k)
    delays, elapsed, hypotheses, references, lengths = [], [], [], [], []
    for _ in range(n):
        words = [f"w{w}" for w in shared.zipf(1.4, int(shared.integers(4, 36))) % 3000]
        x = 300.0 * len(words) + float(shared.integers(0, 280))
        y = max(1, len(words) + int(own.integers(-2, 3)))
        g = np.minimum(x, np.ceil((np.arange(y) * x / y + 400 * k) / 280) * 280)
        step = np.diff(g, prepend=0.0) > 0
        delays.append(g.tolist())
        elapsed.append((g + np.cumsum(np.where(step, own.integers(20, 180, y), 0))).tolist())
        hypotheses.append(" ".join((words * 2)[:y]))
        references.append(" ".join(words))
        lengths.append(x)
    times = {"elapsed": elapsed, "unit": "ms"} if speech else {}
    return Run.from_delays(delays, source_length=lengths, prediction=hypotheses, reference=references, **times)


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {"base": synthetic(1), "new": synthetic(3)}


@pytest.fixture(scope="module")
def found(runs: dict[str, Run]) -> lagging.Comparison:
    return lagging.compare(runs, resamples=500)


def test_every_number_is_that_of_score(runs: dict[str, Run], found: lagging.Comparison) -> None:
    data = report(runs, found).data
    names = [m["name"] for m in data["metrics"]]
    assert names == ["AP", "AL", "LAAL", "DAL", "BLEU"]
    for place, run in enumerate(runs.values()):
        scores = lagging.score(run, names)
        for m, shown in zip(names, data["comparison"]["scores"][place], strict=True):
            assert shown["value"] == scores[m].value
            column = data["segments"]["systems"][place]["values"][m]
            assert column == pytest.approx(scores[m].segments, abs=0.06)  # a tenth of a ms
        for clock in ("ideal", "elapsed", "queue"):
            for m in ("AL", "LAAL", "DAL"):
                score = lagging.score(run, [f"{m}(clock={clock})"])[f"{m}(clock={clock})"]
                point = data["tradeoff"]["points"][clock][m][place]
                assert point["value"] == score.value
                assert point["low"] < point["value"] < point["high"]
                assert f"clock:{clock}" in point["signature"]
                assert "bs:500" in point["signature"]
            tail = data["distribution"][clock]["token"]["systems"][place]["percentiles"]
            asked = [f"LagPercentile(p={p}, clock={clock})" for p in (50, 90, 99)]
            assert tail == [s.value for s in lagging.score(run, asked)]
        gap = data["hidden"][place]
        assert gap["share"] == lagging.score(run, ["HiddenShare"])["HiddenShare"].value
        assert gap["dal"] - gap["al"] == pytest.approx(gap["writes"] + gap["tail"])


def undone(column: list[int], lengths: list[int]) -> list[list[int]]:
    """What `deltas` was made of, as the page undoes it."""
    values = iter(column)
    return [np.cumsum([next(values) for _ in range(n)]).tolist() for n in lengths]


def test_times_come_back(runs: dict[str, Run], found: lagging.Comparison) -> None:
    for run, shown in zip(runs.values(), report(runs, found).data["segments"]["systems"], strict=True):
        delays = undone(shown["delays"], shown["tokens"])
        assert [len(row) for row in delays] == run.delays.lengths.tolist()
        assert np.concatenate(delays) == pytest.approx(run.delays.values, abs=0.5)
        late = np.concatenate(undone(shown["elapsed"], shown["tokens"]))
        assert run.elapsed is not None
        assert np.concatenate(delays) + late == pytest.approx(run.elapsed.values, abs=1)
        assert shown["queue"] == "steps"


def test_times_of_the_first_showing_come_back() -> None:
    run = Run.from_delays(
        [[1000, 3000], [2000]],
        source_length=[3000, 2000],
        first_times=[[1000, 2000], [2000]],
        erased=[1, 0],
        revisions=[1, 0],
        prediction=["a b", "c"],
        unit="ms",
    )
    runs = {"a": run, "b": run}
    shown, _ = report(runs, lagging.compare(runs, ["DAL"])).data["segments"]["systems"]
    assert undone(shown["first"], shown["tokens"]) == [[0, -1000], [0]]


def test_the_distribution_is_that_of_the_lags(runs: dict[str, Run], found: lagging.Comparison) -> None:
    shown = report(runs, found).data["distribution"]["ideal"]["segment"]
    lags = lagging.score(runs["new"], ["DAL"])["DAL"].segments
    for lag, share in zip(shown["grid"][1:-1:20], shown["systems"][1]["share"][1:-1:20], strict=True):
        assert share == pytest.approx((lags <= lag).mean(), abs=1e-4)


def test_the_same_input_gives_the_same_bytes(runs: dict[str, Run], found: lagging.Comparison) -> None:
    again = {name: synthetic(k) for name, k in (("base", 1), ("new", 3))}
    one = report(runs, found)
    assert one.packed == report(again, lagging.compare(again, resamples=500)).packed
    assert json.loads(zlib.decompress(base64.b64decode(one.packed))) == one.data


@pytest.mark.slow
def test_a_report_is_small_and_quickly_made() -> None:
    runs = {f"wait-{k}": synthetic(k, 2588) for k in range(1, 6)}
    found = lagging.compare(runs, ["AP", "AL", "LAAL", "DAL"], resamples=1000)
    began = time.process_time()
    page = report(runs, found).to_html()
    assert time.process_time() - began < 4  # 1.2 s where nothing else runs
    assert len(page.encode()) <= 2_500_000


@pytest.mark.slow
def test_of_very_many_segments_the_worst_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MOST", 400)
    runs = {"base": synthetic(1, 2000), "new": synthetic(3, 2000)}
    found = report(runs, lagging.compare(runs, ["AL", "DAL"], resamples=100))
    shown = found.data["segments"]
    assert len(shown["id"]) <= 200
    assert shown["total"] == 2000
    assert "of 2000 segments" in shown["note"]
    for run in runs.values():
        dal = lagging.score(run, ["DAL"])["DAL"].segments
        assert {str(i) for i in np.argsort(-dal, kind="stable")[:5]} <= set(shown["id"])
    spread = np.array(list(map(int, shown["id"])))
    assert np.histogram(spread, bins=10, range=(0, 2000))[0].min() > 5
    assert shown == report(runs, lagging.compare(runs, ["AL", "DAL"], resamples=100)).data["segments"]
    for check in (check for one in found.data["health"] for check in one):
        assert all(0 <= row < len(shown["id"]) for row in check["rows"])


def checks(run: Run) -> dict[str, dict[str, object]]:
    data = report({"one": run}).data
    return {check["key"]: check for check in data["health"][0]}


def test_health_finds_what_is_wrong() -> None:
    run = Run.from_delays(
        [[1000, 2000, 2900], [], [3000, 3000], [500] * 9, [2000, 4000]],
        elapsed=[[1100, 2100, 3000], [], [3000, 3100], [600] * 9, [1500, 4100]],
        source_length=[2900, 2000, 3000, 2000, 3000],
        prediction=["a b c", "", "d e", "f g h i j k l m n", "o p"],
        reference=["a b c", "x", "d e", "f g h", "o p q"],
        id=["fine", "empty", "offline", "long", "beyond"],
        unit="ms",
    )
    names = ["fine", "empty", "offline", "long", "beyond"]
    found = checks(run)

    def where(key: str) -> list[str]:
        rows = found[key]["rows"]
        assert isinstance(rows, list)
        assert len(rows) == found[key]["count"]
        return [names[row] for row in rows]

    assert where("empty") == ["empty"]
    assert where("undefined: empty hypothesis") == ["empty"]
    assert where("ratio") == ["empty", "long"]
    assert found["ratio"]["value"] == 16 / 12
    assert where("beyond") == ["beyond"]
    assert where("early") == ["beyond"]
    assert where("negative") == ["long"]
    assert where("offline") == ["offline"]
    assert found["offline"]["value"] == 0.25
    assert "long" in where("hidden")


def test_segments_that_others_lack_are_told() -> None:
    whole = synthetic(1)
    runs = {"base": whole, "new": synthetic(3)[np.arange(50)[::-1]]}
    data = report(runs, lagging.compare(runs, ["DAL"], resamples=100)).data
    told = {check["key"]: check for check in data["health"][0]}["unmatched"]
    assert told["count"] == 10
    assert told["ids"] == [str(i) for i in range(50, 60)]
    assert data["segments"]["total"] == 50
    assert len(data["segments"]["id"]) == 50
    new = data["segments"]["systems"][1]
    score = lagging.score(runs["new"], ["DAL"])["DAL"]
    value = dict(zip(map(str, score.ids.tolist()), score.segments, strict=True))
    assert new["values"]["DAL"] == pytest.approx([value[i] for i in data["segments"]["id"]], abs=0.06)


def test_a_segment_that_one_system_leaves_out_counts_for_none() -> None:
    whole = synthetic(1, 12)
    silent = Run.from_delays(
        [[], *whole.delays.tolist()[1:]],
        elapsed=[[], *whole.elapsed.tolist()[1:]],  # type: ignore[union-attr]
        source_length=whole.source_length,
        prediction=["", *whole.prediction.tolist()[1:]],  # type: ignore[union-attr]
        unit="ms",
    )
    runs = {"whole": whole, "silent": silent}
    found = lagging.compare(runs, ["DAL"], resamples=100)
    data = report(runs, found).data
    rest = lagging.score(whole[1:], ["AL", "DAL", "DAL(clock=elapsed)", "HiddenShare"])
    assert data["comparison"]["scores"][0][0]["value"] == found.scores["whole"]["DAL"].value == rest["DAL"].value
    assert data["tradeoff"]["points"]["elapsed"]["DAL"][0]["value"] == rest["DAL(clock=elapsed)"].value
    assert data["hidden"][0]["share"] == rest["HiddenShare"].value
    own = lagging.score(whole, ["DAL"])["DAL"].segments
    assert data["segments"]["systems"][0]["values"]["DAL"] == pytest.approx(own, abs=0.06)
    assert data["segments"]["systems"][1]["values"]["DAL"][0] is None
    told = [{check["key"]: check["bad"] for check in one} for one in data["health"]]
    assert told[0]["undefined: no value in another system"] is False
    assert told[1]["undefined: empty hypothesis"] is True


def test_lag_over_time_of_recordings() -> None:
    x = 600_000.0
    due = np.arange(400) * x / 400
    run = Run.from_delays([np.minimum(due * 1.01 + 2000, x).tolist()], source_length=[x], unit="ms")
    shown = report({"one": run}).data["over_time"]
    drift = lagging.score(run, ["LagDrift"])["LagDrift"].value
    assert shown["systems"][0]["drift"] == drift
    first, last = shown["systems"][0]["bins"][0], shown["systems"][0]["bins"][-2]
    assert first[0] == pytest.approx(2142.5)
    assert last[0] > 7000
    assert report({"one": synthetic(1)}).data["over_time"] is None


def test_text_without_times() -> None:
    run = Run.from_texts(["see you", "no"], reference=["see you soon", "not yet"])
    data = report({"one": run}).data
    assert data["unit"] == "none"
    assert data["distribution"] == {}
    assert data["tradeoff"]["points"] == {}
    assert data["comparison"]["scores"][0][0]["value"] == lagging.score(run, ["BLEU"])["BLEU"].value


def test_hostile_text_stays_data() -> None:
    delays = [[1.0] * max(len(text.split()), 1) for text in HOSTILE]
    names = [text[:50] for text in HOSTILE]
    run = Run.from_delays(
        delays, source_length=[2] * len(delays), prediction=HOSTILE, reference=HOSTILE, source=HOSTILE, id=names
    )
    runs = {HOSTILE[0]: run, HOSTILE[1]: run}
    found = report(runs, lagging.compare(runs, ["AL"], resamples=100), title=HOSTILE[1])
    again = json.loads(zlib.decompress(base64.b64decode(found.packed)))
    assert again["segments"]["systems"][0]["prediction"] == HOSTILE
    assert again["segments"]["id"] == names
    assert "alert(1)" not in found.to_html()
    assert "onerror" not in found.packed


def test_the_comparison_must_be_of_these_systems(runs: dict[str, Run], found: lagging.Comparison) -> None:
    with pytest.raises(UsageError, match="the comparison is of base, new"):
        report({"other": runs["base"], "new": runs["new"]}, found)
    with pytest.raises(UsageError, match="several systems need a comparison"):
        report(runs)


def test_the_page_has_one_place_for_data() -> None:
    page = Path(lagging.__file__).parent.joinpath("render", "web").joinpath("report.html").read_text("utf-8")
    assert page.count(PLACE) == 1


def test_what_was_changed_is_told() -> None:
    changed = replace(synthetic(1), repaired=(("monotone", 3),), stripped=(("punctuation", 7),))
    found = checks(changed)
    told = [found[key] for key in ("repaired: monotone", "stripped: punctuation")]
    assert [(one["count"], one["noun"], one["bad"]) for one in told] == [(3, "segment", True), (7, "token", False)]


def test_where_segments_lie_is_not_known() -> None:
    run = Run.from_delays([[1000, 2000], [500, 900]], source_length=[2000, 1000], unit="ms", seg="given")
    shown = report({"one": run}).data["over_time"]
    assert shown["edges"] == []
    assert "where in its recording" in shown["systems"][0]["reason"]


def test_nothing_was_written_at_all() -> None:
    run = Run.from_delays([[], []], source_length=[3, 4], prediction=["", ""], reference=["a b", "c"])
    data = report({"silent": run}).data
    assert data["comparison"]["scores"][0][1]["value"] is None
    assert data["distribution"]["ideal"]["token"] == {"grid": [], "systems": []}
    assert {check["key"]: check["count"] for check in data["health"][0]}["empty"] == 2
    assert data["segments"]["systems"][0]["delays"] == []


def test_segments_of_output_speech() -> None:
    run = Run.from_delays(
        [[1000, 2000]], source_length=[2000], durations=[[300, 400]], prediction=["x"], unit="ms", level="token"
    )
    assert report({"speech": run}).data["segments"]["systems"][0]["prediction"] == ["x"]


def test_a_page_without_a_place_for_data_is_refused(monkeypatch: pytest.MonkeyPatch, runs: dict[str, Run]) -> None:
    monkeypatch.setattr(page, "PLACE", "<script id=elsewhere></script>")
    with pytest.raises(UsageError, match="make web"):
        report({"base": runs["base"]}).to_html()
