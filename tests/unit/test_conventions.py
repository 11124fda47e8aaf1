# SPDX-License-Identifier: Apache-2.0
import pickle

import numpy as np
import pytest

import lagging
from lagging.conventions import CONVENTIONS, Convention
from lagging.errors import MetricNameError
from lagging.metrics import registered
from lagging.scoring import Scorer, settings
from lagging.timeline import timeline

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
        assert (repr(one.metric), one.settled) == (name, asked)
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
    scorer = Scorer(["DAL"], mine)
    for part in RUN.segments():
        scorer.add(part)
    whole = lagging.score(RUN, ["DAL(write_cost=corpus)"])["DAL(write_cost=corpus)"]
    assert scorer.result()["DAL"].value == whole.value
    assert str(scorer.result()["DAL"].signature) == str(whole.signature)


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
        settled = CONVENTIONS[name].settle(known[metric])
        assert {key: str(value) for key, value in settled.values} == params
        assert settled != known[metric]
        assert CONVENTIONS[name].settle(settled) == settled


def test_the_conventions_say_how_they_differ():
    run = RUN[:2]
    counts = {c: lagging.score(run, ["NumChunks"], convention=c)["NumChunks"].value for c in CONVENTIONS}
    assert counts == {"paper": 2.5, "simuleval": 4, "omnisteval": 2.5}
    rtf = {c: lagging.score(run, ["RTF"], convention=c)["RTF"].value for c in CONVENTIONS}
    assert rtf == {
        "paper": pytest.approx((2500 + 400) / 3500),
        "simuleval": 1,
        "omnisteval": pytest.approx(2900 / 3500),
    }
    assert np.isclose(lagging.score(run, ["RTF_CA"], convention="simuleval")["RTF_CA"].value, (5500 / 3000 + 1.8) / 2)
