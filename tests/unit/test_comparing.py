# SPDX-License-Identifier: Apache-2.0
"""compare: what is compared, what the numbers are, and what is said about them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.comparison.letters import compact_letters
from lagging.comparison.pairs import paired
from lagging.comparison.summary import Together, verdict
from lagging.errors import DataError, MetricError, UsageError
from lagging.scoring.column_files import read_column
from lagging.scoring.columns import Column
from lagging.scoring.intervals import with_intervals
from lagging.scoring.scores import Scores
from statistic import made

B = 200


def log(k: float, n: int = 30, seed: int = 1, **more: object) -> lagging.Run:
    """A system that waits for about k tokens."""
    dice = np.random.default_rng(seed)
    lengths = np.random.default_rng(0).integers(5, 15, n)
    delays = [np.minimum(np.sort(np.arange(x) + k + dice.uniform(0, 1, x)), x).tolist() for x in lengths]
    text = [" ".join("abcdefghijklmno"[:x]) for x in lengths]
    wrong = [" ".join("abcdefghijkxxxx"[:x]) for x in lengths]
    return lagging.Run.from_delays(
        delays, source_length=lengths, **({"reference": text, "prediction": wrong if k > 2 else text} | more)
    )


RUNS = {"base": log(3), "new": log(1, seed=2)}


def compared(runs=RUNS, metrics=("AL", "DAL"), **more):
    return lagging.compare(runs, metrics, **({"resamples": B} | more))


# ---- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
@pytest.mark.parametrize("base", [None, "new"])
def test_pairs_and_intervals_are_those_of_stats(test, base) -> None:
    runs = {**RUNS, "third": log(2, seed=3)}
    names = ["AL", "DAL", "BLEU"]
    scores = {name: lagging.score(run, names) for name, run in runs.items()}
    want = paired(scores, names, test=test, base=base, resamples=B, confidence=0.9, correction="bh", seed=7)
    got = compared(runs, ["AL", "DAL"], quality="bleu", test=test, base=base, confidence=0.9, correction="bh", seed=7)
    assert [repr(p) for p in got.pairs] == [repr(p) for p in want.pairs]
    alone = with_intervals(scores["new"], confidence=0.9, resamples=B, seed=7)
    for one in alone:
        other = got.scores["new"][one.metric]
        assert (one.value, str(one.signature)) == (other.value, str(other.signature))
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-12)
    assert got.scores["new"]["AL"].signature["ci"] == "90"


def test_a_run_its_parts_and_its_scores_compare_alike() -> None:
    whole = compared()
    parts = compared({"base": iter([RUNS["base"][:9], RUNS["base"][9:]]), "new": lagging.score(RUNS["new"])})
    assert [repr(p) for p in whole.pairs] == [repr(p) for p in parts.pairs]


def test_segments_are_matched_by_id_and_the_rest_is_listed() -> None:
    base, new = log(3, id=[f"s{i}" for i in range(30)]), log(1, id=[f"s{i}" for i in range(30)])
    found = compared({"base": base[2:], "new": new[:27]})
    same = compared({"base": base[2:27], "new": new[2:27]})
    assert [repr(p) for p in found.pairs] == [repr(p) for p in same.pairs]
    assert found.unmatched == {"base": ("s27", "s28", "s29"), "new": ("s0", "s1")}
    assert found.n == 25
    assert found.scores["new"]["AL"].signature["n"] == "25"
    said = [str(note) for note in found.notes]
    assert any("3 segments (s27, s28, s29): of base" in text for text in said)
    assert any("2 segments (s0, s1): of new" in text for text in said)
    with pytest.raises(DataError, match="no segment in common: base, new"):
        compared({"base": base[:9], "new": new[9:]})


def test_the_signature_names_all_that_changes_p() -> None:
    def sign(**more):
        return str(compared(**more).signature)

    assert sign() == (
        f"pairs|test:randomisation|correction:holm|against:all|systems:2|ci:95|by:segment|method:bca|bs:{B}|seed:12345"
        f"|n:30|v:{lagging.__version__}"
    )
    other = [{"test": "bootstrap"}, {"correction": "none"}, {"base": "base"}, {"confidence": 0.9}, {"seed": 1}]
    other += [{"resamples": 99}, {"runs": {**RUNS, "x": log(2)}}]
    assert len({sign(), *(sign(**more) for more in other)}) == len(other) + 1


def test_recordings_are_resampled_where_segments_were_cut_from_several() -> None:
    talks = [f"talk{i // 6}" for i in range(30)]
    cut = {name: log(k, document=talks, seg="given") for name, k in (("base", 3), ("new", 1))}
    found = compared(cut)
    assert (found.resample, found.clusters, found.n) == ("document", 5, 30)
    assert "5 documents of 30 segments" in found.description
    assert found.signature["method"] == found.scores["base"]["AL"].signature["method"] == "wild"
    assert compared(cut, resample="segment").resample == "segment"
    assert compared({name: log(k, document=talks) for name, k in (("base", 3), ("new", 1))}).resample == "segment"
    torn = {name: log(k, document=[None, *talks[1:]], seg="given") for name, k in (("base", 3), ("new", 1))}
    assert compared(torn).resample == "segment"


def test_the_defaults_are_those_of_score() -> None:
    found = compared(metrics=None)
    assert [repr(m) for m in found.metrics] == ["AP", "AL", "LAAL", "DAL", "BLEU"]
    bare = {"base": RUNS["base"], "new": log(1, reference=None)}
    found = compared(bare, None)
    assert [repr(m) for m in found.metrics] == ["AP", "AL", "LAAL", "DAL"]
    assert "not compared: BLEU: no score of new" in map(str, found.notes)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="at least two systems"):
        compared({"base": RUNS["base"]})
    with pytest.raises(UsageError, match="at least two systems"):
        compared({})
    with pytest.raises(MetricError, match="BLEU was not scored; these were: AL"):
        compared({name: lagging.score(run, ["AL"]) for name, run in RUNS.items()}, None, quality="bleu")
    with pytest.raises(UsageError, match="AL of base in token and new in ms cannot be compared"):
        compared({"base": log(1), "new": log(1, unit="ms")})
    with pytest.raises(UsageError, match=r"lagging.read\('x.log'\)"):
        compared({"base": RUNS["base"], "new": "x.log"})
    with pytest.raises(DataError, match="no segments were given"):
        compared({"base": RUNS["base"], "new": []})
    with pytest.raises(UsageError, match=r"no system 'bass'\. Did you mean base"):
        compared(base="bass")


def test_scores_that_were_not_made_alike_are_told() -> None:
    scores = {
        "base": lagging.score(RUNS["base"], ["AL"]),
        "new": lagging.score(RUNS["new"], ["AL"], convention="simuleval"),
    }
    (note,) = compared(scores, None).notes
    assert note.kind == "NOT MADE ALIKE"
    assert "AL of base and new differs in count, length: see" in note.text
    assert not compared().notes


def test_too_few_resamples_for_the_correction_are_told() -> None:
    runs = {f"s{i}": log(i / 9, seed=i) for i in range(5)}
    few, enough = compared(runs, "AL", resamples=199), compared(runs, "AL", resamples=200)
    assert [note.kind for note in few.notes] == ["TOO FEW RESAMPLES"]
    assert few.notes[0].text.endswith("give --resamples 200 or more, or compare with one system only, by --base")
    assert min(p.p_adjusted for p in few.pairs) == 10 / 200
    assert enough.notes == ()
    assert compared(runs, "AL", resamples=199, base="s0").notes == ()
    assert compared(runs, "AL", resamples=199, correction="none").notes == ()


# ---- edges ----------------------------------------------------------------------------------------------------------


def values(a, b, name="AL", **more):
    return compared({"a": Scores([made(name, a)]), "b": Scores([made(name, b)])}, None, **more)


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_identical_systems_do_not_differ(test) -> None:
    found = compared({"base": RUNS["base"], "copy": RUNS["base"]}, ["AL", "BLEU"], test=test)
    for pair in found.pairs:
        assert (pair.difference, pair.low, pair.high, pair.p, found.verdict(pair)) == (0, 0, 0, 1, "alike")
        assert (pair.wins, pair.ties, pair.losses) == (0, 30, 0)
    assert found.letters == {m: {"base": "a", "copy": "a"} for m in found.metrics}
    assert str(found.together("base", "copy")) == (
        "copy, compared with base, is the same in AL and the same in BLEU; it is at least as good in both in "
        f"100 % of {B} resamples"
    )


def test_one_segment_has_scores_but_no_test() -> None:
    found = values([1.0], [2.0])
    (pair,) = found.pairs
    assert (pair.difference, found.verdict(pair)) == (1.0, "untested")
    assert math.isnan(pair.p)
    assert (found.scores["a"]["AL"].value, found.scores["a"]["AL"].low) == (1.0, None)
    assert "ci" not in dict(found.scores["a"]["AL"].signature.fields)
    assert found.letters == {pair.metric: {"a": "", "b": ""}}
    assert "no test: 1 pair: AL: 1 segment with a value: too few" in map(str, found.notes)
    assert "not known to be better or worse in AL (1 segment with a value: too few)" in str(found.together("a", "b"))


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_a_constant_difference_is_significant_and_has_no_width(test) -> None:
    found = values([1.0] * 20, [2.0] * 20, test=test)
    (pair,) = found.pairs
    assert (pair.difference, pair.low, pair.high, found.verdict(pair)) == (1, 1, 1, "worse")
    assert (found.scores["a"]["AL"].low, found.scores["a"]["AL"].high) == (1, 1)
    assert "AL: it has no width: all resamples have the same value" in str(found.scores["a"].notes[0])


def test_undefined_segments_are_counted_and_a_system_without_values_is_not_ranked() -> None:
    some, none = [1.0, 2.0, np.nan, 4.0] * 5, [np.nan] * 20
    scores = {name: Scores([made("AL", rows)]) for name, rows in (("a", [1.0] * 20), ("b", some), ("c", none))}
    found = compared(scores, None)
    assert found.pair("AL", "a", "b").n == 15
    assert {found.verdict(found.pair("AL", name, "c")) for name in "ab"} == {"untested"}
    assert found.letters[found.metrics[0]]["c"] == ""
    assert found.letters[found.metrics[0]]["a"] == "a"
    assert found.scores["c"]["AL"].low is None
    run = log(1)
    empty = lagging.Run.from_delays([[], *run.delays.tolist()[1:]], source_length=run.source_length)
    assert compared({"base": run, "new": empty}).scores["new"]["AL"].undefined.reasons == {"empty hypothesis": (0,)}


def silent_in(run: lagging.Run, *rows: int) -> lagging.Run:
    """The same system, which writes nothing in some segments."""
    delays = [[] if row in rows else g for row, g in enumerate(run.delays.tolist())]
    return lagging.Run.from_delays(delays, source_length=run.source_length)


def test_n_is_the_number_of_segments_that_count_and_common_says_which() -> None:
    base = log(3)
    alone = lagging.score(base, ["AL"])["AL"]
    assert (alone.signature["n"], alone.signature.get("common")) == ("30", None)
    assert lagging.score(silent_in(base, 4), ["AL"])["AL"].signature["n"] == "29"
    beside = [compared({"base": base, "new": silent_in(log(1), *rows)}).scores for rows in ((), (3,), (7,), (3, 7))]
    whole, *some = (scores["base"]["AL"] for scores in beside)
    assert str(whole.signature.without_interval()) == str(alone.signature)
    assert whole.value == alone.value
    assert [one.signature["n"] for one in some] == ["29", "29", "28"]
    assert (
        len({one.value for one in (whole, *some)}) == len({one.signature.get("common") for one in (whole, *some)}) == 4
    )
    new = beside[1]["new"]["AL"]  # it has a value wherever both have
    assert str(new.signature.without_interval()) == str(lagging.score(silent_in(log(1), 3), ["AL"])["AL"].signature)
    missing = compared({"base": base, "new": log(1)[:29]}).scores["base"]["AL"].signature
    assert missing["n"] == "29"
    assert missing.get("common") is not None
    with pytest.raises(UsageError, match="only the systems that were compared tell which"):
        lagging.scoring.signature.settings(missing)


def test_what_was_left_out_does_not_make_scores_incomparable() -> None:
    notes = compared({"base": silent_in(log(3), 1), "new": silent_in(log(1), 2)}).notes
    assert not [note for note in notes if note.kind == "NOT MADE ALIKE"]


def test_metrics_without_a_direction_only_differ() -> None:
    silent = lagging.metric("NumChunks")
    assert silent.higher_is_better is None
    found = values([1.0, 2.0, 1.0, 2.0] * 5, [5.0, 4.0, 7.0, 6.0] * 5, "NumChunks")
    assert (found.verdict(found.pairs[0]), found.pairs[0].wins) == ("different", None)
    with pytest.raises(UsageError, match="no metric that was compared has a better direction"):
        found.together("a", "b")
    assert found.summary == found.description
    marked = values([1.0, 2.0, 1.0, 2.0] * 5, [5.0, 4.0, 7.0, 6.0] * 5, "NumChunks", base="a")
    assert marked.marks == {silent: {"a": "", "b": "≠"}}


# ---- letters, marks, pairs ------------------------------------------------------------------------------------------


names = st.integers(1, 7).map(lambda n: list("uvwxyz!"[:n]))


@given(
    names.flatmap(lambda some: st.tuples(st.just(some), st.sets(st.sampled_from([*combinations(some, 2), ("", "")]))))
)
def test_systems_share_a_letter_unless_they_differ(drawn) -> None:
    some, differ = drawn
    differ = {pair for pair in differ if pair != ("", "")}
    found = compact_letters(some, sorted(differ))
    assert list(found) == some
    assert all(found.values())
    for one, other in combinations(some, 2):
        assert bool(set(found[one]) & set(found[other])) == ((one, other) not in differ)
    used = sorted(set("".join(found.values())))
    assert used == list("abcdefghijklmnopqrstuvwxyz"[: len(used)])
    for letter in used:  # none could be left out
        less = {name: set(letters) - {letter} for name, letters in found.items()}
        alike = (pair for pair in combinations(some, 2) if pair not in differ)
        assert not (all(less[a] & less[b] for a, b in alike) and all(less.values()))


def test_the_best_system_has_the_first_letter() -> None:
    found = compared({"base": log(4), "mid": log(2, seed=3), "new": log(0.5, seed=2)}, ["AL", "BLEU"])
    assert found.letters[lagging.metric("AL")] == {"base": "c", "mid": "b", "new": "a"}
    assert found.letters[lagging.metric("BLEU")] == {"base": "b", "mid": "a", "new": "a"}
    assert found.marks == {}
    marked = compared({"base": log(4), "mid": log(2, seed=3), "new": log(0.5, seed=2)}, ["AL", "BLEU"], base="mid")
    assert marked.letters == {}
    assert marked.marks[lagging.metric("AL")] == {"base": "-", "mid": "", "new": "+"}
    assert marked.marks[lagging.metric("BLEU")] == {"base": "-", "mid": "", "new": ""}


def test_a_pair_can_be_asked_for_from_either_side() -> None:
    found = compared()
    one, other = found.pair("AL", "base", "new"), found.pair("al", "new", "base")
    assert (one.difference, one.low, one.high) == (-other.difference, -other.high, -other.low)
    assert (one.wins, one.losses, one.effect) == (other.losses, other.wins, -other.effect)
    assert (found.verdict(one), found.verdict(other)) == ("better", "worse")
    assert found.against("new") == tuple(found.pair(m, "new", "base") for m in found.metrics)
    third = compared({**RUNS, "x": log(2)}, base="base")
    with pytest.raises(UsageError, match="x and new were not compared with each other, but with base"):
        third.pair("AL", "x", "new")
    with pytest.raises(lagging.MetricError, match="CW was not compared"):
        found.pair("CW", "base", "new")


def test_a_p_of_just_the_level_is_not_significant() -> None:
    (pair,) = compared(metrics="AL").pairs
    assert verdict(pair, pair.p_adjusted) == "alike"
    assert verdict(pair, pair.p_adjusted + 1e-12) == "better"
    assert compared(confidence=0.95).alpha == 0.05


def test_pandas() -> None:
    pytest.importorskip("pandas")
    found = compared()
    frame = found.to_pandas()
    assert frame[["metric", "a", "b"]].values.tolist() == [["AL", "base", "new"], ["DAL", "base", "new"]]
    assert frame["p_adjusted"].tolist() == [pair.p_adjusted for pair in found.pairs]


def test_repr_and_summary() -> None:
    found = compared()
    assert repr(found) == "Comparison(base, new: AL, DAL of 30 segments)"
    assert found.summary.splitlines() == [str(found.together("base", "new")), found.description]
    assert (
        "paired approximate randomisation over 30 segments, 200 resamples, seed 12345; p of 1 pair per metric"
        in found.description
    )
    assert "corrected by Holm for 3 pairs per metric" in compared({**RUNS, "x": log(2)}).description


# ---- together -------------------------------------------------------------------------------------------------------


def test_together_is_the_share_of_resamples() -> None:
    runs = {"base": log(1.1, seed=5), "new": log(1, seed=2)}
    found = compared(runs, ["AL", "BLEU"])
    drawn = found.resampled.values
    al, bleu = drawn[:, 1, 0] - drawn[:, 0, 0], drawn[:, 1, 1] - drawn[:, 0, 1]
    for margins in ({"AL": 0.0, "BLEU": 0.0}, {"AL": -0.1, "BLEU": 0.5}, {"al": -0.15}):
        allowed = {name.lower(): margin for name, margin in margins.items()}
        want = np.mean((al <= allowed["al"]) & (bleu >= -allowed.get("bleu", np.inf)))
        assert found.together("base", "new", margins).probability == want
    assert 0 < want < 1


def pair_of(low: float, high: float, p: float, name: str = "AL"):
    (pair,) = compared(metrics="AL").pairs
    return pair.__class__(
        **{**vars(pair), "metric": lagging.metric(name), "difference": (low + high) / 2, "low": low, "high": high}
        | {"p": p, "p_adjusted": p}
    )


@pytest.mark.parametrize(
    ("name", "low", "high", "p", "margin", "said"),
    [
        ("AL", -600, -300, 0.01, 0, "earlier in AL by 0.30–0.60 s"),
        ("AL", 300, 600, 0.01, 0, "later in AL by 0.30–0.60 s"),
        ("AL", -600, 300, 0.4, 0, "not clearly better or worse in AL (difference -0.60 to 0.30 s, p = 0.4)"),
        ("AL", -600, 300, 0.4, 200, "not clearly better or worse in AL (difference -0.60 to 0.30 s, p = 0.4)"),
        ("AL", -600, 300, 0.4, 300, "not worse in AL by more than 0.30 s (difference -0.60 to 0.30 s)"),
        (
            "AL",
            -600,
            -300,
            0.2,
            0,
            "not shown to be better or worse in AL "
            "(difference -0.60 to -0.30 s; the interval leaves 0 out, but the test gives p = 0.2)",
        ),
        ("BLEU", 0.5, 1.2, 0.01, 0, "better in BLEU by 0.50–1.20 points"),
        ("BLEU", -1.2, -0.5, 0.01, 0, "worse in BLEU by 0.50–1.20 points"),
        ("BLEU", -0.4, 0.8, 0.5, 0.5, "not worse in BLEU by more than 0.50 points (difference -0.40 to 0.80 points)"),
    ],
)
def test_what_is_said_of_one_metric(name, low, high, p, margin, said) -> None:
    pair = pair_of(low, high, p, name)
    unit = "ms" if name == "AL" else "points"
    text = str(Together("base", "new", (pair,), (unit,), {pair.metric: margin}, 0.987, 1000, 0.05))
    within = ", within its margin," if margin else ""
    assert text == f"new, compared with base, is {said}; it is at least as good{within} in 98.7 % of 1000 resamples"


def test_a_difference_that_correction_takes_away_is_explained() -> None:
    pair = replace(pair_of(980, 1760, 0.03, "AL"), p_adjusted=0.09)
    text = str(Together("base", "new", (pair,), ("ms",), {pair.metric: 0}, 0.0, 1000, 0.05))
    assert text == (
        "new, compared with base, is not shown to be better or worse in AL (difference 0.98 to 1.76 s; p = 0.03, but "
        "0.09 after correction); it is at least as good in 0 % of 1000 resamples"
    )


def test_what_cannot_be_resampled_has_no_share() -> None:
    together = compared(metrics=["AL", "MaxLag"]).together("base", "new")
    assert math.isnan(together.probability)
    assert str(together).endswith("; no resample has a value of every metric")


def test_margins_must_make_sense() -> None:
    found = compared()
    with pytest.raises(UsageError, match="margin of AL must be a number"):
        found.together("base", "new", {"AL": math.nan})
    with pytest.raises(lagging.MetricError, match="BLEU was not compared"):
        found.together("base", "new", {"BLEU": 1})
    with pytest.raises(UsageError, match="no system 'old'"):
        found.together("base", "old")


# ---- columns --------------------------------------------------------------------------------------------------------


def column(tmp_path: Path, text: str, name: str = "COMET", **more) -> Column:
    (tmp_path / "x.comet").write_text(text, "utf-8")
    return read_column(tmp_path / "x.comet", name, "base", **more)


IDS = ["a", "b", "c"]


def three() -> Scores:
    run = lagging.Run.from_delays([[1], [2], [1]], source_length=[2, 2, 2], id=IDS)
    return lagging.score(run, ["AL"])


@pytest.mark.parametrize(
    "text",
    [
        "0.5\n0.75\n-1e-1\n",
        "0.5\r\n0.75\r\n-.1",
        "id\tscore\nc\t-0.1\nb\t0.75\na\t0.5\n",
        "c,-0.1\nb,0.75\na,0.5\n",
        "comet;index\n-0.1;c\n0.75;b\n0.5;a\n",
        "score\ttext\n0.5\tx\n0.75\ty\n-0.1\tz\n",
        '{"id": "c", "score": -0.1}\n{"id": "a", "COMET": 0.5}\n{"index": "b", "value": 0.75}\n',
        '{"score": 0.5}\n{"score": 0.75}\n{"score": -0.1}\n',
        '"a","0.5"\n"c","-0.1"\n"b","0.75"\n\n\n',
    ],
)
def test_ways_to_write_a_column(text, tmp_path) -> None:
    score = column(tmp_path, text).score(three())
    assert score.segments.tolist() == [0.5, 0.75, -0.1]
    assert score.value == pytest.approx(1.15 / 3)
    assert (score.unit, score.n, score.metric.higher_is_better) == ("score", 3, True)
    short = hashlib.sha256(b"0.5\n0.75\n-0.1").hexdigest()[:8]
    assert str(score.signature) == f"COMET|seg:none|mean:segment|column:{short}|n:3|v:{lagging.__version__}"


def test_a_segment_without_a_score_is_undefined(tmp_path) -> None:
    for text in (
        "0.5\nNaN\n0.75\n",
        "id,score\na,0.5\nb,\nc,0.75\n",
        '{"score": 0.5}\n{"score": null}\n{"score": 0.75}',
    ):
        score = column(tmp_path, text).score(three())
        assert score.value == 0.625
        assert score.undefined.reasons == {"no score in the column": ("b",)}


@pytest.mark.parametrize(
    ("text", "kind", "line", "segment"),
    [
        ("0.5\n\n0.75\n0.1\n", "not-a-column", 2, None),
        ("\n0.5\n0.75\n", "not-a-column", 1, None),
        ("0.5\nabc\n0.75\n", "bad-score", 2, None),
        ("0.5\ninf\n0.75\n", "bad-score", 2, None),
        ("0.5\n1e999\n0.75\n", "bad-score", 2, None),
        ("0,5\n0,7\n0,75\n", "scores-ids", 1, "0"),
        ("0.5\n0.75\n", "scores-count", None, None),
        ("", "not-a-column", None, None),
        ("text\nx\n", "not-a-column", 1, None),
        ("id\tscore\na\t0.5\nb\n", "not-csv", 3, None),
        ('{"id": "a", "score": 1}\n{"id": "b", "score": true}\n', "bad-score", 2, "b"),
        ('{"id": "a", "score": 1}\n{"id": "b", "score": 1' + "0" * 400 + "}\n", "bad-score", 2, "b"),
        ('{"id": "a", "score": 1}\nnonsense\n', "not-json", 2, None),
        ('{"id": "a", "score": 1}\n[1]\n', "not-an-object", 2, None),
        ('{"id": "a", "bleu": 1}\n', "not-a-column", 1, None),
        ('{"id": "a", "score": 1}\n{"score": 1}\n', "not-a-column", 2, None),
        ("id,score\na,1\nb,1\nx,1\n", "scores-ids", 4, "x"),
        ("id,score\na,1\nb,1\na,1\nc,1\n", "scores-ids", 4, "a"),
        ("id,score\na,1\nb,1\n", "scores-ids", None, "c"),
    ],
)
def test_faults_of_a_column(text, kind, line, segment, tmp_path) -> None:
    with pytest.raises(DataError) as found:
        column(tmp_path, text).score(three())
    where = {(f.kind, f.line, f.segment) for f in found.value.faults}
    assert (kind, line, segment) in where
    assert all(f.path == str(tmp_path / "x.comet") for f in found.value.faults)


@pytest.mark.parametrize("text", ["\n0.5\n0.75\n", "0.5\n\n0.75\n"])
def test_an_empty_line_is_told(text, tmp_path) -> None:
    with pytest.raises(DataError, match="an empty line; `nan` is a segment without a score"):
        column(tmp_path, text)


def test_the_count_is_said(tmp_path) -> None:
    with pytest.raises(DataError, match="COMET: 2 scores, but 3 segments in base"):
        column(tmp_path, "1\n2\n").score(three())


def test_columns_are_compared_like_other_metrics() -> None:
    base, new = np.linspace(0.5, 0.8, 30), np.linspace(0.55, 0.85, 30) + np.tile([0.0, 0.02], 15)
    files = [Column("COMET", "base", base), Column("COMET", "new", new)]
    found = compared(metrics="AL", columns=files)
    pair = found.pair("COMET", "base", "new")
    (want,) = paired({"base": Scores([made("AL", base)]), "new": Scores([made("AL", new)])}, resamples=B).pairs
    assert (pair.difference, pair.low, pair.high, pair.p) == (want.difference, want.low, want.high, want.p)
    assert found.verdict(pair) == "better"
    assert found.scores["new"]["COMET"].value == pytest.approx(new.mean())
    one, other = (found.scores[name]["COMET"].signature["column"] for name in ("base", "new"))
    assert one != other
    assert found.notes == ()
    assert "better in COMET by 0.0567–0.0633" in str(found.together("base", "new", {"COMET": 0}))
    assert found.resampled.pair("COMET", "base", "new") == pair
    assert found.resampled.together("base", "new", {"COMET": 0}) == 1.0
    assert [repr(m) for m in compared(metrics="AL", quality="COMET", columns=files).metrics] == ["AL", "COMET"]
    lower = [Column("MetricX", c.system, c.values, higher_is_better=False) for c in files]
    found = compared(metrics="AL", columns=lower)
    assert found.verdict(found.pair("MetricX", "base", "new")) == "worse"


def test_columns_that_make_no_sense() -> None:
    good = Column("COMET", "base", [0.0] * 30)
    with pytest.raises(UsageError, match="COMET is given 0 times for new"):
        compared(columns=[good])
    with pytest.raises(UsageError, match="COMET is given 2 times for base"):
        compared(columns=[good, good])
    with pytest.raises(UsageError, match=r"no system 'nwe'\. Did you mean new"):
        compared(columns=[good, Column("COMET", "nwe", [0.0] * 30)])
    with pytest.raises(UsageError, match="better when higher in one column"):
        compared(columns=[good, Column("COMET", "new", [0.0] * 30, higher_is_better=False)])
    with pytest.raises(UsageError, match="that is BLEU, which is computed"):
        compared(columns=[Column("bleu", name, [0.0] * 30) for name in RUNS])
    with pytest.raises(UsageError, match="a column cannot be called 'a b'"):
        compared(columns=[Column("a b", name, [0.0] * 30) for name in RUNS])


# ---- published ------------------------------------------------------------------------------------------------------


def published(tmp_path: Path, text: str = "metric\tvalue\nBLEU\t18.5\nAL (CU)\t1999.5\nCOMET\t0.8\n"):
    (tmp_path / "scores.tsv").write_text(text)
    return lagging.read_scores(tmp_path / "scores.tsv", system="theirs")


def test_published_scores_stand_beside(tmp_path) -> None:
    runs = {name: log(k, unit="ms") for name, k in (("base", 3), ("new", 1))}
    found = compared(runs, ["AL", "BLEU"], published=published(tmp_path))
    assert [(one.system, one.metric, one.score) for one in found.published] == [
        ("theirs", "BLEU", 18.5),
        ("theirs", "AL", 1999.5),
    ]
    said = [str(note) for note in found.notes]
    assert "published: theirs: not compared, and not shown: COMET" in said
    assert "NOT MADE ALIKE: theirs is OmniSTEval's, ours is counted as the paper does: AL" in said
    assert [repr(p) for p in found.pairs] == [repr(p) for p in compared(runs, ["AL", "BLEU"]).pairs]
    tokens = compared(metrics=["AL", "BLEU"], published=published(tmp_path))
    assert [one.metric for one in tokens.published] == ["BLEU"]
    assert "published: theirs: in ms, not in token, and not shown: AL" in map(str, tokens.notes)
    theirs = compared(runs, ["AL"], published=published(tmp_path), convention="omnisteval")
    assert not any(note.kind == "NOT MADE ALIKE" for note in theirs.notes)


def test_one_system_beside_published_scores(tmp_path) -> None:
    found = compared({"new": log(1, unit="ms")}, ["AL", "BLEU"], published=published(tmp_path))
    alone = with_intervals(lagging.score(log(1, unit="ms"), ["AL", "BLEU"]), resamples=B)
    assert [s.low for s in found.scores["new"]] == [s.low for s in alone]
    assert (found.pairs, found.letters, found.marks, found.key) == ((), {}, {}, "")
    assert found.summary == f"95 % intervals (bca bootstrap) over 30 segments, {B} resamples, seed 12345"
    with pytest.raises(UsageError, match="only one system"):
        found.together("new", "new")


def test_our_own_published_scores_are_compared_by_signature(tmp_path) -> None:
    line = "AL|unit:token|length:reference|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:9|v:0.2.0.dev0"
    text = f"system\tmetric\tscore\tunit\tsignature\nold\tAL\t2.5\ttoken\t{line}\n"
    (tmp_path / "old.tsv").write_text(text)
    found = compared(published=lagging.read_scores(tmp_path / "old.tsv"))
    assert [str(note) for note in found.notes] == ["NOT MADE ALIKE: old, published, differs in length: AL"]


def test_other_segments_of_the_same_name_are_told() -> None:
    def run(lengths, references):
        return lagging.Run.from_delays([[1], [2]], source_length=lengths, reference=references, prediction=["a", "b"])

    one = run([4, 5], ["x", "y"])
    kinds = lambda other: [note for note in compared({"a": one, "b": other}).notes if note.kind.startswith("OTHER")]  # noqa: E731
    assert kinds(run([4, 5], ["x", "y\n"])) == []
    assert kinds(run([4, 5], [None, "y"])) == []
    (note,) = kinds(run([4, 9], ["x", "y"]))
    assert (note.count, note.segments) == (1, (1,))
    assert "source lengths" in note.text
    (note,) = kinds(run([4, 5], ["y", "x"]))
    assert (note.count, note.segments) == (2, (0, 1))
    assert "references" in note.text


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "in 100 % of"),
        (0.9998, "in more than 99.9 % of"),
        (0.0002, "in less than 0.1 % of"),
        (0.0, "in 0 % of"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_none(share, said) -> None:
    both = {
        name: lagging.policies.wait_k(k).run(source_lengths=range(5, 15), target_lengths=range(5, 15))
        for name, k in (("a", 3), ("b", 1))
    }
    found = lagging.compare(both, ["AL"], resamples=100)
    assert said in str(replace(found.together("a", "b"), probability=share))


def test_systems_have_names() -> None:
    run = lagging.policies.wait_k(1).run(source_lengths=[3, 4], target_lengths=[3, 4])
    with pytest.raises(UsageError, match="runs are given by name"):
        lagging.compare([run, run])
    found = lagging.compare({"a": run, "b": run}, ["AL"], resamples=100)
    with pytest.raises(UsageError, match="there is no system 'zz'"):
        found.together("a", "zz", {})


def test_few_recordings_are_explained() -> None:
    def run(late: float) -> lagging.Run:
        delays = [[1000.0 + 50 * (n % 7) + late * (0.2 + n // 20) + 100 * t for t in range(5)] for n in range(60)]
        talks = [f"talk{n // 20}" for n in range(60)]
        return lagging.Run.from_delays(delays, source_length=[4000.0] * 60, unit="ms", document=talks, seg="given")

    runs = {"base": run(0), "new": run(300)}
    (note,) = (n for n in lagging.compare(runs, ["DAL"], resamples=1000).notes if n.kind == "FEW RECORDINGS")
    assert note.text == (
        "3 recordings cannot show a difference of this size; by segment, DAL p = 0.001, which assumes that the "
        "sentences of one talk are independent: --resample segment"
    )
    asked = lagging.compare(runs, ["DAL"], resamples=1000, resample="document")  # who asks for documents knows
    assert "FEW RECORDINGS" not in {n.kind for n in asked.notes}
