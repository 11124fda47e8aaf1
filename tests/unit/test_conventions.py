# SPDX-License-Identifier: Apache-2.0
import pickle

import numpy as np
import pytest

import lagging
import oracle
from lagging.comparison.regimes import REGIMES
from lagging.errors import MetricNameError
from lagging.longform import Segmentation, resegment
from lagging.metrics import registered
from lagging.metrics.conventions import CONVENTIONS, Convention
from lagging.render.timeline import timeline
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan
from lagging.scoring.signature import settings

RUN = lagging.Run.from_delays(
    [[1000, 2000, 3000], [400, 400, 400, 400, 500], []],
    source_length=[3000, 500, 700],
    elapsed=[[1500, 3500, 5500], [500, 500, 500, 500, 900], []],
    reference_length=[4, 9, 1],
    unit="ms",
)
SET = {
    "DAL": {"mean": "token"},
    "AL": {"clock": "queue", "empty": "source"},
    "AL_y": {"length": "reference"},
    "LagPercentile": {"p": "50"},
    "AP": {"mean": "token"},
    "NumChunks": {"of": "tokens"},
}


def test_what_a_convention_sets_is_what_is_asked_for():
    mine = Convention("mine", params=SET, count="simuleval")
    for name, params in SET.items():
        asked = lagging.metric(name)(**params)
        one = lagging.score(RUN, [name], convention=mine)[name]
        other = lagging.score(RUN, [asked], convention=Convention("mine", count="simuleval"))[asked]
        assert one.value == other.value != lagging.score(RUN, [name])[name].value
        assert one.segments.tobytes() == other.segments.tobytes()
        assert str(one.signature) == str(other.signature)
        assert one.undefined.reasons == other.undefined.reasons
        assert (repr(one.metric), one.resolved) == (name, asked)
        said = settings(str(one.signature))
        again = lagging.score(RUN, [said.metric], convention=said.convention)[said.metric]
        assert again.value == one.value
        assert pickle.loads(pickle.dumps(one)).segments.tobytes() == one.segments.tobytes()


def test_what_is_asked_for_stands_above_the_convention():
    mine = Convention("mine", params=SET)
    for asked in ("DAL(mean=segment)", "LagPercentile(p=90)", "AL(clock=ideal, empty=nan)", "NumChunks(of=chunks)"):
        plain = lagging.score(RUN, [asked])[asked]
        score = lagging.score(RUN, [asked], convention=mine)[asked]
        assert (score.value, str(score.signature)) == (plain.value, str(plain.signature))


def test_a_convention_may_ask_for_the_whole_corpus():
    mine = Convention("mine", params={"DAL": {"write_cost": "corpus"}})
    accumulator = Accumulator(Plan.make(["DAL"], mine))
    for part in RUN.segments():
        accumulator.add(part)
    whole = lagging.score(RUN, ["DAL(write_cost=corpus)"])["DAL(write_cost=corpus)"]
    assert accumulator.scores()["DAL"].value == whole.value
    assert str(accumulator.scores()["DAL"].signature) == str(whole.signature)


def test_a_timeline_goes_by_the_convention():
    mine = Convention("mine", params={"DAL": {"clock": "elapsed"}})
    assert timeline(RUN, 0, convention=mine).delays.tolist() == [1500, 3500, 5500]


def test_nonsense_in_a_convention_is_refused():
    for params, words in (({"what": "ever"}, "no parameter 'what'"), ({"length": "long"}, "length must be")):
        with pytest.raises(MetricNameError, match=words):
            lagging.score(RUN, ["AL"], convention=Convention("mine", params={"AL": params}))


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_convention_sets_only_what_there_is(name):
    known = {m.name: m for m in registered()}
    for metric, params in CONVENTIONS[name].params.items():
        resolved = CONVENTIONS[name].resolve(known[metric])
        assert {key: str(value) for key, value in resolved.values} == params
        assert resolved != known[metric]
        assert CONVENTIONS[name].resolve(resolved) == resolved


def test_the_conventions_say_how_they_differ():
    run = RUN[:2]
    counts = {c: lagging.score(run, ["NumChunks"], convention=c)["NumChunks"].value for c in CONVENTIONS}
    assert counts == {"paper": 2.5, "simuleval": 4, "omnisteval": 2.5, "fbk": 2.5, "s2s-latency": 2.5}
    rtf = {c: lagging.score(run, ["RTF"], convention=c)["RTF"].value for c in CONVENTIONS}
    assert rtf == {
        "paper": pytest.approx((2500 + 400) / 3500),
        "simuleval": 1,
        "omnisteval": pytest.approx(2900 / 3500),
        "fbk": pytest.approx(2900 / 3500),
        "s2s-latency": pytest.approx(2900 / 3500),
    }
    assert np.isclose(lagging.score(run, ["RTF_CA"], convention="simuleval")["RTF_CA"].value, (5500 / 3000 + 1.8) / 2)


# ---- how references are counted -----------------------------------------------------------------------------------

WRITTEN = {
    "word": (["guten Tag heute", "eins zwei", "drei vier"], ["guten Tag ", "eins  zwei", "  drei vier fünf"], 500),
    "char": (["你好Amy", "今天去公园"], ["你好 Amy 吗 ", "今天 去"], 300),
}
"""Hypotheses, references, and ms from one token to the next; every source lasts 2 s."""


def spaced(level):
    texts, references, step = WRITTEN[level]
    counts = [len(text.split()) if level == "word" else len(text) for text in texts]
    delays = [[step * (k + 1) for k in range(n)] for n in counts]
    return lagging.Run.from_delays(
        delays, source_length=[2000] * len(texts), unit="ms", prediction=texts, reference=references, level=level
    )


@pytest.mark.parametrize(
    ("level", "printed"),
    [
        ("word", {"YAAL": 388.8889, "AL": 277.7778, "LAAL": 388.8889, "AP": 0.4167, "DAL": 500.0, "DSPTV": -19.4444}),
        ("char", {"YAAL": 250.0, "AL": 150.0, "LAAL": 250.0, "AP": 0.4219, "DAL": 300.0, "DSPTV": -12.5}),
    ],
)
def test_references_with_spaces_are_counted_as_omnisteval_does_in_short_form(level, printed):
    """What OmniSTEval 0.1.10 prints of these; it strips references, and counts the spaces between characters."""
    found = lagging.score(spaced(level), printed, convention="omnisteval")
    assert {repr(score.metric): round(score.value, 4) for score in found} == printed


def streamed(level="char"):
    text = "你好Amy今天去公园"
    log = lagging.Run.from_delays(
        [[300 * (k + 2) for k in range(len(text))]],
        source_length=[4000],
        unit="ms",
        prediction=[text],
        level=level,
        document=["a.wav"],
    )
    references = ["你好 Amy 吗", "今天 去 公园 吧 "]
    return resegment(log, Segmentation.from_lists(["a.wav"] * 2, [0, 2000], [2000] * 2, references))


def test_references_with_spaces_are_counted_as_omnisteval_does_in_long_form():
    """What OmniSTEval 0.1.10 prints of this stream: there it takes all spaces out of a reference."""
    printed = {"LongYAAL": 283.3333, "AL": 283.3333, "LAAL": 283.3333, "AP": 0.3958, "DAL": 350.0}
    found = lagging.score(streamed(), printed, convention="omnisteval")
    assert {repr(score.metric): round(score.value, 4) for score in found} == printed


def test_fbk_counts_the_spaces_within_references():
    """Stripped, the references have 8 and 9 characters with their spaces."""
    run = streamed()
    (score,) = lagging.score(run, ["StreamLAAL"], convention="fbk")
    exact = [oracle.stream_laal(g.tolist(), 2000, n, 2) for g, n in zip(run.delays, (8, 9), strict=True)]
    assert score.segments.tolist() == pytest.approx([float(value) for value in exact])
    assert score.signature["count"] == "fbk"
    said = settings(str(score.signature))
    assert lagging.score(run, [said.metric], convention=said.convention)[said.metric].value == score.value


@pytest.mark.parametrize("name", [name for name in REGIMES if name.startswith("iwslt25")])
def test_the_regimes_of_2025_count_as_fbk(name):
    assert REGIMES[name].convention == "fbk"
