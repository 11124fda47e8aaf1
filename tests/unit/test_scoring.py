# SPDX-License-Identifier: Apache-2.0
import gc
import json
import math
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest

import lagging
from lagging.data.ragged import Ragged
from lagging.metrics import registered
from lagging.metrics.schedule import Schedules
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.intervals import with_intervals
from lagging.scoring.plan import Plan
from lagging.scoring.signature import settings
from runs import everything

ANTAGONIST = [4, 4, 4, 4, 5]
WAIT_4 = [4, 5, 5, 5, 5]


def run(**more):
    return lagging.Run.from_delays([WAIT_4, ANTAGONIST], source_length=[5, 5], **more)


def test_empty_hypotheses_are_undefined_counted_and_named() -> None:
    scores = lagging.score(
        lagging.Run.from_delays([WAIT_4, []], source_length=[5, 5], id=["a", "b"]), ["AL", "DAL", "AP", "CW"]
    )
    for score in scores:
        assert score.n == 2
        assert score.undefined == 1
        assert score.undefined.reasons == {"empty hypothesis": ("b",)}
        assert math.isnan(score.segments[1])
    assert scores["DAL"].value == 4


def test_empty_source_charges_the_whole_source_when_asked() -> None:
    some = lagging.Run.from_delays([WAIT_4, []], source_length=[5, 7])
    scores = lagging.score(some, ["AL(empty=source)", "DAL(empty=source)", "AP(empty=source)", "CW(empty=source)"])
    assert [s.segments[1] for s in scores] == [7, 7, 1, 7]
    assert all(s.undefined == 0 for s in scores)
    assert all("empty:source" in str(s.signature) for s in scores)


def test_no_source_is_undefined() -> None:
    score = lagging.score(lagging.Run.from_delays([[0, 0], [1]], source_length=[0, 1]), ["AL"])["AL"]
    assert score.undefined.reasons == {"empty source": (0,)}
    assert score.value == 1


def test_all_undefined_is_nan() -> None:
    score = lagging.score(lagging.Run.from_delays([[]], source_length=[3]), ["DAL"])["DAL"]
    assert math.isnan(score.value)
    assert score.undefined == score.n == 1


def test_a_reason_of_its_own() -> None:
    offline = lagging.Run.from_delays([[5, 5]], source_length=[5])
    assert lagging.score(offline, ["YAAL"])["YAAL"].undefined.reasons == {
        "nothing was written before the source ended": (0,)
    }
    prescient = lagging.Run.from_delays([[0, 0]], source_length=[5])
    assert lagging.score(prescient, ["CW"])["CW"].undefined.reasons == {"nothing was read": (0,)}


def test_token_weighted_mean() -> None:
    some = lagging.Run.from_delays([[1], [2, 3, 4]], source_length=[1, 4])
    by_segment, by_token = lagging.score(some, ["AL", "AL(mean=token)"])
    assert by_token.value == (by_segment.segments[0] + 3 * by_segment.segments[1]) / 4
    np.testing.assert_array_equal(by_token.segments, by_segment.segments)
    assert "mean:token" in str(by_token.signature)


def test_write_cost_of_the_corpus() -> None:
    some = lagging.Run.from_delays([[1, 2, 3], [2, 2], []], source_length=[6, 2, 9])
    (score,) = lagging.score(some, ["DAL(write_cost=corpus)"])
    d = (6 + 2) / (3 + 2)
    expected = [lagging.dal(g, source_length=x, write_cost=d) for g, x in (([1, 2, 3], 6), ([2, 2], 2))]
    np.testing.assert_allclose(score.segments[:2], expected)
    assert str(score.signature).startswith("DAL(write_cost=corpus)|")
    scorer = Accumulator(Plan.make(["DAL(write_cost=corpus)"]))
    for part in some.segments():
        scorer.add(part)
    assert scorer.scores()["DAL(write_cost=corpus)"].value == score.value


def test_segment_metrics_are_ratios_of_sums() -> None:
    some = lagging.Run.from_delays([[2, 2, 4], [1, 2, 3, 3]], source_length=[5, 3])
    scores = lagging.score(some, ["Segments", "SourcePerSegment", "TargetPerSegment"])
    assert [s.value for s in scores] == [2.5, 7 / 5, 7 / 5]
    np.testing.assert_array_equal(scores["SourcePerSegment"].segments, [2, 1])


def test_length_of_the_reference() -> None:
    texts = {"prediction": ["a b c d e"] * 2, "reference": ["x y z w", None]}
    scores = lagging.score(run(**texts), ["AL(length=reference)", "LAAL", "AL(length=longest)"])
    assert scores["AL(length=reference)"].undefined.reasons == {"no reference": (1,)}
    assert scores["LAAL"].undefined == 0
    assert "noref:1" in str(scores["LAAL"].signature)
    assert scores["LAAL"].value == scores["AL(length=longest)"].value
    with pytest.raises(lagging.MetricError, match="no references to compare"):
        lagging.score(run(), ["AL(length=reference)"])


def test_empty_reference_is_undefined_where_its_length_counts() -> None:
    some = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["a b"], reference=[" "])
    scores = lagging.score(some, ["AL(length=reference)", "LAAL", "BLEU"])
    assert scores["AL(length=reference)"].undefined.reasons == {"empty reference": (0,)}
    assert scores["BLEU"].undefined.reasons == {"empty reference": (0,)}
    assert scores["LAAL"].value == 1


def test_elapsed_needs_elapsed_times_in_ms() -> None:
    with pytest.raises(lagging.MetricError, match="there are none"):
        lagging.score(run(unit="ms"), ["AL_CA"])
    with pytest.raises(lagging.MetricError, match="tokens and elapsed time in milliseconds"):
        lagging.score(run(elapsed=[WAIT_4, ANTAGONIST]), ["AL_CA"])


def test_tolerance_of_a_millisecond() -> None:
    delays = [[1000, 2000, 6849.88, 6849.88]]
    some = lagging.Run.from_delays(delays, source_length=[6849.8866], unit="ms")
    near, exact = (
        lagging.score(some, ["AL(length=hypothesis)"], convention=c)["AL(length=hypothesis)"]
        for c in ("paper", "simuleval")
    )
    assert near.value != exact.value  # exact comparison averages the tail in
    assert "tol:0" in str(exact.signature)
    assert "tol" not in str(near.signature)
    assert near.value == lagging.al(delays[0], source_length=6849.8866, unit="ms")


def test_eos_is_stripped_with_its_delay_and_said() -> None:
    some = lagging.Run.from_delays([[1, 2, 2]], source_length=[2], prediction=["a b </s>"], reference=["a b"])
    scores = lagging.score(some, ["DAL", "BLEU"])
    assert scores["DAL"].value == lagging.dal([1, 2], source_length=2)
    assert "eos:stripped" in str(scores["DAL"].signature)
    assert any(note.kind == "</s>" for note in scores.notes)
    kept = lagging.score(some, ["DAL"], convention="simuleval")["DAL"]
    assert kept.value == lagging.dal([1, 2, 2], source_length=2)
    assert "eos:kept" in str(kept.signature)


def test_simuleval_counts_references_its_own_way() -> None:
    cases = {"x y z w": 4, "x  y": 3, "": 1, "x y\n": 2, None: 5}
    for reference, length in cases.items():
        some = lagging.Run.from_delays(
            [WAIT_4],
            source_length=[5],
            prediction=["a b c d e"],
            reference=[
                reference or "",
            ][:1]
            if reference is not None
            else None,
        )
        got = lagging.score(some, ["AL"], convention="simuleval")["AL"].value
        assert got == pytest.approx(
            lagging.al(WAIT_4, source_length=5, reference_length=length, length="reference"), abs=1e-12
        )
    chars = lagging.Run.from_delays([[1, 2]], source_length=[2], prediction=["你好"], reference=["你 好 "])
    want = {"simuleval": 3, "omnisteval": 3}
    for convention, length in want.items():
        got = lagging.score(chars, ["AP"], convention=convention)["AP"].value
        assert got == lagging.ap([1, 2], source_length=2, reference_length=length, length="reference")
    assert lagging.score(chars, ["AP(length=reference)"])["AP(length=reference)"].value == 0.75


@pytest.mark.parametrize("convention", list(lagging.CONVENTIONS))
@pytest.mark.parametrize(
    "name", ["AP", "AL", "LAAL", "DAL", "DAL(write_cost=2)", "CW", "AL(mean=token, empty=source)", "YAAL"]
)
def test_a_signature_repeats_its_score(convention: str, name: str) -> None:
    texts = {"prediction": ["a b c d </s>"] * 2, "reference": ["x  y z", "x y z w v u"]}
    delays = [[400, 500, 500, 500, 500], [300, 450, 500, 600, 600]]
    some = lagging.Run.from_delays(delays, source_length=[500.4, 500], unit="ms", **texts)
    score = lagging.score(some, [name], convention=convention)[name]
    again = settings(str(score.signature))
    repeated = lagging.score(some, [again.metric], convention=again.convention)[again.metric]
    assert repeated.value == score.value
    assert repeated.signature == score.signature


def test_scores_are_found_by_alias_and_missed_by_name() -> None:
    scores = lagging.score(run(), ["AL", "ALy"])
    assert scores["AL_y"].value == scores["ALy"].value
    assert len(scores) == 2
    assert repr(scores) == "Scores(AL=3.1, AL_y=2.5)"
    with pytest.raises(lagging.MetricError, match="DAL was not scored"):
        _ = scores["DAL"]
    with pytest.raises(lagging.UsageError, match="no metric"):
        lagging.score(run(), [])
    assert lagging.score(run(), "DAL")["DAL"].value == 4


def test_mixed_units_are_refused() -> None:
    with pytest.raises(lagging.UsageError, match="cannot be averaged"):
        lagging.score([run(), run(unit="ms")], ["DAL"])


def test_nothing_to_score() -> None:
    with pytest.raises(lagging.DataError, match="no segments"):
        lagging.score([], ["DAL"])


def test_undefined_survives_pickling() -> None:
    score = lagging.score(lagging.Run.from_delays([[]], source_length=[3]), ["DAL"])["DAL"]
    assert pickle.loads(pickle.dumps(score.undefined)).reasons == score.undefined.reasons


def test_user_metrics() -> None:
    @lagging.register("FirstDelay", summary="when the first token comes", length="longest", aliases=["First"])
    def first(schedule, *, scale: float = 1.0, mode: str = "plain", on: bool = False):
        return schedule.by_row(lambda g: g[:, 0] * scale) + (100 if on else 0)

    scores = lagging.score(run(), ["First", "FirstDelay(scale=2)", "FirstDelay(on=True)", "FirstDelay(on=False)"])
    assert [s.value for s in scores] == [4, 8, 104, 4]
    assert str(scores["FirstDelay(scale=2)"].signature).startswith("FirstDelay(scale=2)|unit:token|length:longest|")
    with pytest.raises(lagging.MetricError, match="exists already"):
        lagging.register("DAL")(first)
    with pytest.raises(lagging.MetricError, match="cannot be a metric's name"):
        lagging.register("a|b")(first)
    with pytest.raises(lagging.MetricError, match="needs a default"):
        lagging.register("NoDefault")(lambda schedule, *, p: None)
    with pytest.raises(TypeError, match=r'@lagging\.register\("MyMetric"\)'):
        lagging.register(first)
    with pytest.raises(lagging.MetricError, match=r"first is a function.*\n  fix: put @lagging\.register"):
        lagging.score(run(), [first])

    @lagging.register("Short")
    def short(schedule):
        return np.zeros(1)

    with pytest.raises(lagging.MetricError, match="for 2 segments"):
        lagging.score(run(), ["Short"])


def test_a_metric_with_now_one_column_and_now_two_is_refused() -> None:
    @lagging.register("Uneven", aggregate=lambda rows: float(rows.sum()), clocked=False)
    def uneven(schedule):
        return np.ones((len(schedule.run), len(schedule.run)))

    with pytest.raises(
        lagging.MetricError, match="Uneven: its function gave 1 columns for some segments, 2 for others"
    ):
        lagging.score([run()[[0]], run()], ["Uneven"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("DALL", "Did you mean DAL"),
        ("DAL(cost=1)", "no parameter 'cost'"),
        ("DAL(write_cost=abc)", "'corpus' or a float"),
        ("DAL(write_cost=inf)", "'corpus' or a float"),
        ("AL(length=ref)", "'hypothesis' or 'reference' or 'longest'"),
        ("AL(length)", "write parameters like"),
        ("AL(", "cannot read the metric"),
        ("", "cannot read the metric"),
        ("BLEU(tok=nothing)", "no tokenizer"),
    ],
)
def test_wrong_metrics_say_what_is_right(spec: str, message: str) -> None:
    with pytest.raises(lagging.MetricError, match=message.replace("(", r"\(")):
        lagging.score(run(prediction=["a b c d e"] * 2, reference=["a b"] * 2), [spec])


def test_metrics_are_values() -> None:
    assert lagging.metric("dal") == lagging.metric("DAL")
    assert lagging.metric("DAL(write_cost=None)").get("write_cost") is None
    assert len({lagging.metric("AL_CA"), lagging.metric("AL(clock=elapsed)")}) == 1
    assert lagging.metric("AL") != "AL"
    assert lagging.metric("DAL(write_cost=1.5)").name_with_params == "DAL(write_cost=1.5)"
    assert lagging.metric("DAL(write_cost=1.0)")(write_cost=None).name_with_params == "DAL"


def test_a_part_that_was_scored_is_let_go() -> None:
    """Without waiting for the garbage collector, which does not know how large an array is."""
    scorer = Accumulator(
        Plan.make(["AP", "AL", "LAAL", "YAAL", "DAL", "ATD", "CW", "LagPercentile", "HiddenLag", "SWF", "NumChunks"])
    )
    gc.disable()
    try:
        part = run()
        seen = weakref.ref(part.delays)
        scorer.add(part)
        del part
        assert seen() is None
    finally:
        gc.enable()
    assert len(scorer.scores()) == 11


@pytest.mark.parametrize(
    ("text", "n", "reference", "length"),
    [
        ("我用 B", 3, "我 会 用 B", 4),
        ("我用 B", 4, "我 会 用 B", 7),
        ("我\u3000用 B", 4, "我\u3000会 用 B", 5),
    ],
)
def test_characters_are_counted_alike_on_both_sides(text, n, reference, length, tmp_path) -> None:
    line = {"delays": [1] * n, "source_length": 2, "prediction": text, "reference": reference}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line) + "\n", "utf-8")
    run = lagging.read(path)
    assert run.level == "char"
    assert Schedules(run).reference_length.tolist() == [length]


def test_how_characters_are_counted_does_not_depend_on_the_segments_beside(tmp_path) -> None:
    texts = [("我 用", 3), ("你 好", 3), ("好吗", 2), ("很好", 2), ("不错", 2), ("是的", 2)]
    lines = [{"delays": [1] * n, "source_length": 4, "prediction": p, "reference": "你 好 吗 哈"} for p, n in texts]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    run = lagging.read(path)
    parts = Accumulator(Plan.make(["LAAL"]))
    for part in run.segments():
        parts.add(part)
    assert parts.scores()["LAAL"].segments.tolist() == lagging.score(run, ["LAAL"])["LAAL"].segments.tolist()


def variants(name: str) -> list[lagging.Metric]:
    """A metric, and with each of the words that its parameters may be."""
    plain = lagging.metric(name)
    return [plain, *(plain(**{p.name: choice}) for p in plain.params for choice in p.choices)]


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize("unit", ["token", "ms"])
def test_metrics_say_which_columns_they_need(unit, sound, tmp_path) -> None:
    """A log of which nothing else is read gives the same scores as the whole of it."""
    run = everything(unit)
    if sound:
        durations = Ragged.from_rows([[9, 9, 9], [9]])
        run = replace(run, durations=durations, prediction=run.source, level="token", speech_out=True, notes=())
    lagging.write(run, tmp_path / "a.jsonl")
    known: dict[frozenset[str], list[lagging.Score]] = {}
    for metric in (m for name in registered() for m in variants(name)):
        try:
            (whole,) = lagging.score(run, [metric])
        except lagging.MetricError as error:
            assert "did not declare" not in str(error)  # noqa: PT017
            continue
        known.setdefault(frozenset(metric.columns), []).append(whole)
    for columns, scores in known.items():
        narrow = lagging.score(lagging.scan(tmp_path / "a.jsonl", columns=columns), [score.metric for score in scores])
        for whole in scores:
            assert np.array_equal(whole.segments, narrow[whole.metric].segments, equal_nan=True), whole.metric
    assert sum(map(len, known.values())) > (100 if unit == "ms" else 60)


def test_a_score_without_segments_says_how_to_keep_them() -> None:
    accumulator = Accumulator(Plan.make(["AL", "DAL"], keep="sums"))
    accumulator.add(run())
    scores = accumulator.scores("sums")
    kept = lagging.score(run(), ["AL", "DAL"])
    assert [s.value for s in scores] == [s.value for s in kept]
    assert scores["DAL"].n == kept["DAL"].n
    for use in (
        lambda: scores["DAL"].segments,
        lambda: scores.to_pandas(),
        lambda: with_intervals(scores),
        lambda: lagging.compare({"a": scores, "b": kept}),
        lambda: lagging.compare({"a": kept, "b": scores}),
    ):
        with pytest.raises(lagging.UsageError, match=r"(?s)were only added up.*keep='all'"):
            use()
