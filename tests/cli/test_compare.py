# SPDX-License-Identifier: Apache-2.0
"""`lagging compare`, and the gates of `score` and `compare`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.render.comparison import render_comparison
from lagging.render.text import BOLD

FEW = ("--resamples", 200)
SYSTEMS = {"base": (3, 1), "new": (1, 2), "third": (3, 3)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logs of three systems on the same 24 sentences."""
    monkeypatch.chdir(tmp_path)
    lengths = np.random.default_rng(0).integers(6, 15, 24)
    for name, (k, seed) in SYSTEMS.items():
        dice = np.random.default_rng(seed)
        delays = [np.minimum(np.sort(np.arange(x) + k + dice.uniform(0, 1, x)), x).round(3).tolist() for x in lengths]
        reference = [" ".join("abcdefghijklmno"[:x]) for x in lengths]
        texts = [text.replace("c d", "d c") if name == "new" else text for text in reference]
        run = lagging.Run.from_delays(
            delays, source_length=lengths, id=[f"s{i}" for i in range(24)], prediction=texts, reference=reference
        )
        lagging.write(run, tmp_path / f"{name}.jsonl")
    return tmp_path


TWO = ("compare", "base=base.jsonl", "new=new.jsonl")
ALL = (*TWO, "third=third.jsonl")


def test_table(run, folder) -> None:
    code, out, err = run(*TWO, "-m", "AL,BLEU", *FEW, "-q")
    found = lagging.compare({n: lagging.read(f"{n}.jsonl") for n in ("base", "new")}, ["AL", "BLEU"], resamples=200)
    (al, bleu), base, new = found.pairs, found.scores["base"], found.scores["new"]
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["system", "AL", "↓", "tokens", "BLEU", "↑", "n"]
    assert lines[1].split() == [
        "base",
        *f"{base['AL'].value:.3f} [{base['AL'].low:.3f}, {base['AL'].high:.3f}] b".split(),
        *["100.00", "[100.00,", "100.00]", "a", "24"],
    ]
    assert " ".join(lines[2].split()) == (
        f"new {new['AL'].value:.3f} [{new['AL'].low:.3f}, {new['AL'].high:.3f}] a "
        f"{new['BLEU'].value:.2f} [{new['BLEU'].low:.2f}, {new['BLEU'].high:.2f}] b 24"
    )
    assert lines[4].split() == ["metric", "pair", "difference", "p", "wins/ties/losses"]
    assert " ".join(lines[5].split()) == (
        f"AL new − base {al.difference:.3f} [{al.low:.3f}, {al.high:.3f}] tokens {al.p:.4f} better 24/0/0"
    )
    assert " ".join(lines[6].split()) == (
        f"BLEU new − base {bleu.difference:.2f} [{bleu.low:.2f}, {bleu.high:.2f}] {bleu.p:.4f} worse 0/0/24"
    )
    assert lines[8:11] == [str(found.together("base", "new")), found.key, found.description]
    assert lines[12:] == [str(new["AL"].signature), str(new["BLEU"].signature), str(found.signature)]


def test_marks_and_the_pairs_shown(run, folder) -> None:
    few = run(*ALL, "-m", "AL", *FEW, "-q").out
    assert re.findall(r"^AL +(\w+ − \w+)", few, re.M) == ["new − base", "third − base"]
    assert "1 more pair: -v" in few
    assert "p (corrected)" in few
    every = run(*ALL, "-m", "AL", *FEW, "-v").out
    assert re.findall(r"^AL +(\w+ − \w+)", every, re.M) == ["new − base", "third − base", "third − new"]
    marked = run(*ALL, "-m", "AL", *FEW, "-q", "--base", "third").out
    assert re.findall(r"^AL +(\w+ − \w+)", marked, re.M) == ["base − third", "new − third"]
    rows = {line.split()[0]: line for line in marked.splitlines()[1:4]}
    assert "] +" in rows["new"]
    assert "] +" not in rows["base"]
    assert "+ significantly better than third, - significantly worse (p < 0.05)" in marked


def test_json_is_the_contract(run, folder) -> None:
    code, out, _ = run(*ALL, "-m", "AL,BLEU", *FEW, "-f", "json", "--base", "base")
    found = json.loads(out)
    assert code == 0
    assert [(s["system"], s["metric"]) for s in found["scores"]] == [
        (system, metric) for system in SYSTEMS for metric in ("AL", "BLEU")
    ]
    keys = ["system", "metric", "score", "low", "high", "unit", "n", "undefined", "signature"]
    assert all(list(s) == keys and s["low"] <= s["score"] <= s["high"] for s in found["scores"])
    pairs = found["pairs"]
    assert [(p["metric"], p["a"], p["b"]) for p in pairs] == [
        (metric, "base", system) for metric in ("AL", "BLEU") for system in ("new", "third")
    ]
    assert all(list(p) == ["metric", "a", "b", "difference", "low", "high", "p", "p_adjusted"] for p in pairs)
    by = {(s["system"], s["metric"]): s["score"] for s in found["scores"]}
    assert all(p["difference"] == by[p["b"], p["metric"]] - by[p["a"], p["metric"]] for p in pairs)
    assert found["letters"]["AL"] == {"base": "", "new": "+", "third": ""}
    assert found["signature"].startswith("pairs|test:randomisation|correction:holm|against:base|systems:3|ci:95|")
    assert found["effects"][0]["wins"] == 24
    assert run(*ALL, "-m", "AL,BLEU", *FEW, "-f", "json", "--base", "base").out == out
    plain = json.loads(run("score", "base.jsonl", "-m", "AL,BLEU", "-f", "json").out)["scores"]
    assert [s["score"] for s in plain] == [s["score"] for s in found["scores"][:2]]


def test_tsv_can_be_read_back(run, folder) -> None:
    out = run(*TWO, "-m", "AL,BLEU", *FEW, "-f", "tsv", "-q").out
    head, *rows = (line.split("\t") for line in out.splitlines())
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert [(row["system"], row["metric"], row["against"]) for row in found[2:]] == [
        ("new", "AL", "base"),
        ("new", "BLEU", "base"),
    ]
    assert float(found[2]["difference"]) == float(found[2]["score"]) - float(found[0]["score"])
    assert [row["letters"] for row in found] == ["b", "a", "a", "b"]
    assert all(row["test"].startswith("pairs|test:randomisation|") for row in found)
    for form in ("tsv", "json"):
        Path(f"out.{form}").write_text(run(*TWO, "-m", "AL", *FEW, "-f", form, "-q").out)
        assert [(s.system, s.metric) for s in lagging.read_scores(f"out.{form}")] == [("base", "AL"), ("new", "AL")]


@pytest.mark.parametrize("form", ["table", "json", "tsv", "markdown", "latex"])
def test_every_format_names_the_test_and_carries_the_signatures(form, run, folder) -> None:
    out = run(*TWO, "-m", "AL,BLEU", *FEW, "-f", form, "--test", "randomisation", "--correction", "bh").out
    for name in ("AL|unit:token", "BLEU|seg:none", "pairs|test:randomisation|correction:bh|"):
        assert name in out
    assert "ci:95|by:segment|method:bca|bs:200|seed:12345|n:24" in out


def test_markdown_and_latex(run, folder) -> None:
    odd = "a|b_%<x>=base.jsonl"
    out = run("compare", odd, "new.jsonl", "-m", "AL,BLEU", *FEW, "-f", "markdown").out
    assert r"| a\|b\_%\<x\> |" in out
    assert re.search(r"\| new \| \*\*\d\.\d{3}\*\* \[\d\.\d{3}, \d\.\d{3}\] <sup>a</sup> \|", out)
    out = run("compare", odd, "new.jsonl", "third.jsonl", "-m", "AL,BLEU", *FEW, "-f", "latex").out
    assert r"a\textbar{}b\_\%\textless{}x\textgreater{} & " in out
    assert r"\begin{tabular}{lr@{\ }lr@{\ }lr}" in out
    assert out.count(r" \\") == 4
    caption = re.search(r"\\caption\{(.*)\}\n", out)[1]
    assert "Paired approximate randomisation over 24 segments, 200 resamples, seed 12345; " in caption
    assert "; $p$ corrected by Holm for 3 pairs" in caption
    assert "Systems that share a letter do not differ significantly" in caption
    assert re.search(r"\\textbf\{\d\.\d{3}\} & \[\d\.\d{3}, \d\.\d{3}\]\$\^\{a\}\$", out)
    assert all(line.startswith("%") for line in out.partition(r"\end{table}")[2].splitlines() if line)


def test_latex_letters_are_equally_wide_and_minus_signs_are_signs() -> None:
    dice = np.random.default_rng(3)
    runs = {
        name: lagging.Run.from_delays(
            [[0, 0, float(x)] for x in dice.normal(k, 1, 20).clip(0, 9)], source_length=[9] * 20
        )
        for name, k in (("a", 1.0), ("b", 1.5), ("c", 2.1))
    }
    found = lagging.compare(runs, ["AL"], resamples=500)
    assert sorted(map(len, found.letters[found.metrics[0]].values())) == [1, 1, 2]
    out = render_comparison(found, "latex")
    assert len(re.findall(r"\$\^\{\w\\phantom\{\w\}\}\$", out)) == 2
    assert re.search(r"(\{| )\$-\$\d\.\d{3}(\}| ) ?& \[\$-\$\d", out)


def test_segments_that_do_not_match_are_listed(run, folder) -> None:
    lines = Path("new.jsonl").read_text().splitlines(keepends=True)
    Path("new.jsonl").write_text("".join(lines[7:]))
    code, out, err = run(*TWO, "-m", "AL", *FEW)
    assert code == 0
    assert "17 segments that all systems have; left out: 7 of base (s0, s1, s2, s3, s4, …)" in out
    assert "note: unmatched: 7 segments (s0, s1, s2, s3, s4 and 2 more): of base, which not all" in err
    assert "|n:17|" in out
    found = json.loads(run(*TWO, "-m", "AL", *FEW, "-f", "json").out)
    assert found["unmatched"] == {"base": [f"s{i}" for i in range(7)], "new": []}


def test_undefined_one_segment_and_identical(run, folder) -> None:
    Path("empty.jsonl").write_text(
        '{"id": 0, "delays": [], "source_length": 3}\n{"id": 1, "delays": [1], "source_length": 3}\n'
    )
    Path("full.jsonl").write_text(
        '{"id": 0, "delays": [2], "source_length": 3}\n{"id": 1, "delays": [2], "source_length": 3}\n'
    )
    code, out, err = run("compare", "empty.jsonl", "full.jsonl", "-m", "AL", *FEW)
    assert code == 0
    assert "empty: AL undefined in 1 of 2 segments (empty hypothesis 1)" in out
    assert "not tested" in out
    assert "note: no test: 1 pair: AL: 1 segment with a value: too few" in err
    scores = json.loads(run("compare", "empty.jsonl", "full.jsonl", "-m", "AL", *FEW, "-f", "json").out)
    assert scores["pairs"][0]["p"] is None
    assert scores["scores"][0]["low"] is None
    out = run("compare", "a=base.jsonl", "b=base.jsonl", "-m", "AL", *FEW, "-q").out
    assert "b, compared with a, is the same in AL" in out
    assert "0.000 [0.000, 0.000] tokens  1.0000  not significant  0/24/0" in out
    for form in ("table", "markdown", "latex", "tsv"):
        assert run("compare", "empty.jsonl", "full.jsonl", "-m", "AL", *FEW, "-f", form).code == 0


# ---- columns, margins, published ------------------------------------------------------------------------------------


def test_columns_from_files(run, folder) -> None:
    for name, add in (("base", 0.0), ("new", 0.1)):
        Path(f"{name}.comet").write_text("".join(f"{0.5 + i / 100 + add * (i % 3):.4f}\n" for i in range(24)))
    columns = ("--column", "COMET=base:base.comet", "--column", "COMET=new:new.comet")
    code, out, _ = run(*TWO, "-m", "AL", *FEW, *columns, "-f", "json")
    found = json.loads(out)
    scores = {(s["system"], s["metric"]): s for s in found["scores"]}
    assert code == 0
    assert scores["base", "COMET"]["score"] == pytest.approx(0.5 + 11.5 / 100)
    assert scores["new", "COMET"]["score"] == pytest.approx(0.5 + 11.5 / 100 + 0.1)
    assert re.match(r"COMET\|seg:none\|mean:segment\|column:[0-9a-f]{8}\|ci:95", scores["new", "COMET"]["signature"])
    assert "COMET ↑" in run(*TWO, "-m", "AL", *FEW, *columns).out
    lower = run(*TWO, "-m", "AL", *FEW, *columns, "--lower", "COMET", "--fail-if-worse", "base", "-q")
    assert (lower.code, "COMET ↓" in lower.out) == (3, True)
    assert "gate failed: new is significantly worse than base in COMET" in lower.err
    assert run(*TWO, "-m", "AL", *FEW, *columns, "--fail-if", "new:COMET<0.8").code == 3
    Path("new.comet").write_text("0.5\n")
    wrong = run(*TWO, "-m", "AL", *FEW, *columns)
    assert (wrong.code, wrong.out) == (1, "")
    assert "not as many scores as segments in new.comet: COMET: 1 score, but 24 segments in new" in wrong.err


def test_columns_have_digits_enough_for_comet(run, folder) -> None:
    for name, mean in (("base", 0.8412), ("new", 0.8433)):
        Path(f"{name}.comet").write_text("".join(f"{mean + (i % 2 - 0.5) / 1000:.4f}\n" for i in range(24)))
    columns = ("--column", "COMET=base:base.comet", "--column", "COMET=new:new.comet")
    for form in ("table", "markdown", "latex"):
        out = run(*TWO, "-m", "AL", *FEW, *columns, "-f", form, "-q").out
        assert re.search(r"0\.8412.*\[0\.8410, 0\.8414\]", out)
        assert re.search(r"0\.8433.*\[0\.8431, 0\.8435\]", out)
        assert "better in COMET by 0.0021–0.0021;" in out.replace(" and ", ";").replace(", ", ";")
    found = json.loads(run(*TWO, "-m", "AL", *FEW, *columns, "-f", "json").out)
    assert {score["unit"] for score in found["scores"] if score["metric"] == "COMET"} == {"score"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--column", "COMET"), "cannot read --column 'COMET'"),
        (("--column", "COMET=base.comet"), "cannot read --column"),
        (("--column", "COMET=base:none.comet"), "no such file or directory: none.comet"),
        (("--lower", "COMET"), "--lower COMET names no --column"),
        (("--margin", "BLEU"), "cannot read --margin 'BLEU'"),
        (("--margin", "=1"), "cannot read --margin"),
        (("--margin", "CW=1"), "CW was not compared"),
        (("-m", ","), "-m was given without a metric"),
        (("-m", "BLEU(tok=zzz)"), "sacreBLEU has no tokenizer 'zzz'"),
        (("--base", "bass"), "Did you mean base?"),
        (("--base", "new", "--fail-if-worse", "base"), "--fail-if-worse base needs comparisons with it"),
        (("--fail-if-worse", "bass"), "Did you mean base?"),
        (("--resamples", "2"), "2 is not in the range 100<=x<=1000000"),
        (("--seed", "-1"), "-1 is not in the range x>=0"),
        (("--confidence", "200"), "200.0 is not in the range 0<x<100"),
        (("--confidence", "100"), "100.0 is not in the range 0<x<100"),
        (("--fail-if", "DAL>5"), "about DAL, which was not scored"),
        (("--fail-if", "DALL>5"), "Did you mean DAL?"),
        (("--fail-if", "AL"), "cannot read the gate 'AL'"),
        (("--resample", "document"), "does not say which document"),
        (("--published", "nothing"), "no such file or directory: nothing"),
        (("-o", "new.jsonl"), "it would be written over"),
    ],
)
def test_usage(options, said, run, folder) -> None:
    code, out, err = run(*TWO, "-m", "AL,BLEU", *options)
    assert out == ""
    assert said in err
    assert code == 2


def test_one_log_is_no_comparison(run, folder) -> None:
    code, out, err = run("compare", "base.jsonl", "-q")
    assert (code, out) == (2, "")
    assert "at least two systems" in err


def test_margins_are_in_the_sentence(run, folder) -> None:
    out = run(*TWO, "-m", "AL,BLEU", *FEW, "-q", "--margin", "BLEU=50").out
    assert re.search(r"^new, compared with base, is earlier in AL by .* in 100 % of 200 resamples$", out, re.M)
    assert "it is at least as good in both, within its margin, in" in out
    assert "compared with base" not in run(*ALL, "-m", "AL,BLEU", *FEW, "-q").out
    assert run(*ALL, "-m", "AL,BLEU", *FEW, "-q", "--margin", "BLEU=1").out.count("compared with base") == 2


def test_published_scores_are_rows_without_intervals(run, folder) -> None:
    Path("theirs.tsv").write_text("metric\tvalue\nBLEU\t18.5\nCOMET\t0.8\n")
    options = (*TWO, "-m", "AL,BLEU", *FEW, "--published", "them=theirs.tsv")
    code, out, err = run(*options)
    row = next(line for line in out.splitlines() if line.startswith("them"))
    assert code == 0
    assert row.split() == ["them", "(OmniSTEval)", "–", "18.50", "–"]
    assert "note: published: them: not compared, and not shown: COMET" in err
    assert json.loads(run(*options, "-f", "json").out)["published"] == [
        {"system": "them", "metric": "BLEU", "score": 18.5, "unit": "points", "tool": "OmniSTEval", "signature": None}
    ]
    assert "\nthem\tBLEU\t18.5\t\t\tpoints\t" in run(*options, "-f", "tsv").out
    assert "| them \\(OmniSTEval\\) | – | 18.50 | – |" in run(*options, "-f", "markdown").out
    assert "them (OmniSTEval) & -- &  & 18.50 &  & -- \\\\" in run(*options, "-f", "latex").out.replace(
        r"$^{\phantom{b}}$", ""
    ).replace(r"$^{\phantom{a}}$", "")
    alone = run("compare", "new=new.jsonl", "-m", "AL,BLEU", *FEW, "--published", "theirs.tsv", "-q")
    assert alone.code == 0
    assert "95 % intervals (bca bootstrap) over 24 segments" in alone.out
    assert "pairs|" not in alone.out


# ---- gates ----------------------------------------------------------------------------------------------------------


def test_a_gate_that_fails_exits_with_three_and_prints_the_result(run, folder) -> None:
    fine = run(*TWO, "-m", "AL,BLEU", *FEW, "-q")
    assert run(*TWO, "-m", "AL,BLEU", *FEW, "-q", "--fail-if", "AL>50", "--fail-if", "BLEU.low<1") == fine
    bad = run(*TWO, "-m", "AL,BLEU", *FEW, "-q", "--fail-if", "AL>2", "--fail-if", "new:AL.high>0")
    assert (bad.code, bad.out) == (3, fine.out)
    said = bad.err.splitlines()
    assert [line.partition(" is ")[0] for line in said] == [
        "gate failed: AL>2: AL of base",
        "gate failed: new:AL.high>0: AL.high of new",
    ]


def test_significantly_worse_is_a_gate(run, folder) -> None:
    code, out, err = run(*TWO, "-m", "AL,BLEU", *FEW, "-q", "--fail-if-worse", "base")
    assert code == 3
    assert len(err.splitlines()) == 1
    assert "new is significantly worse than base in BLEU" in err
    assert "against:base" in out
    assert run(*TWO, "-m", "AL", *FEW, "-q", "--fail-if-worse", "base").code == 0
    assert run("compare", "base.jsonl", "third.jsonl", "-m", "BLEU", *FEW, "-q", "--fail-if-worse", "base").code == 0


def test_gates_of_score(run, folder) -> None:
    fine = run("score", "base.jsonl", "-m", "AL", "-q", "--fail-if", "AL>50")
    assert (fine.code, fine.err) == (0, "")
    bad = run("score", "base.jsonl", "-m", "AL", "-q", "--fail-if", "AL>1", "-f", "json")
    assert bad.code == 3
    (score,) = json.loads(bad.out)["scores"]
    assert bad.err == f"gate failed: AL>1: AL of base is {score['score']:.6g} tokens\n"
    assert run("score", "base.jsonl", "-m", "AL", "-q", "--ci", "--fail-if", "AL.high>1").code == 3
    without = run("score", "base.jsonl", "-m", "AL", "-q", "--fail-if", "AL.high>1")
    assert (without.code, without.err) == (2, "error: the gate AL.high>1 is about an interval; give --ci too\n")
    assert run("score", "base.jsonl", "-m", "AL", "--fail-if", "CW>1").code == 2
    Path("empty.jsonl").write_text('{"delays": [], "source_length": 3}\n')
    nothing = run("score", "empty.jsonl", "-m", "DAL", "-q", "--fail-if", "DAL<0")
    assert (nothing.code, "is undefined" in nothing.err) == (3, True)


def test_the_result_can_go_to_a_file(run, folder) -> None:
    code, out, _ = run(*TWO, "-m", "AL", *FEW, "-f", "latex", "-o", "table.tex", "--fail-if", "AL>1")
    assert (code, out) == (3, "")
    assert Path("table.tex").read_text().startswith("% needs")


# ---- terminals ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> lagging.Comparison:
    dice = np.random.default_rng(5)
    names = [
        "base",
        "系统一二三",
        "نظام جديد",
        "a-very-long-name-with-many-settings-k=3,beam=5,lp=1.0",
        *map(str, range(8)),
    ]
    runs = {
        name: lagging.Run.from_delays(
            [np.sort(dice.uniform(0, 5 + at, 9)).tolist() for _ in range(15)], source_length=[20] * 15
        )
        for at, name in enumerate(names)
    }
    return lagging.compare(runs, ["AL", "DAL"], resamples=300)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_is_never_too_narrow(width, many) -> None:
    from rich.cells import cell_len

    text = render_comparison(many, width=width)
    table, pairs, _, _ = text.split("\n\n")
    assert max(map(cell_len, table.splitlines())) <= width
    assert max(map(cell_len, pairs.splitlines())) <= width
    assert pairs.count(" − base") == 22
    assert all(
        len(re.findall(rf"^ *{name} ", table, re.M)) == (2 if "(n =" in table else 1) for name in map(str, range(8))
    )


def test_the_best_and_those_that_do_not_differ_from_it_are_bold(many) -> None:
    lines = render_comparison(many, colour=True).splitlines()
    bold = [line.split(BOLD)[0].strip() for line in lines[1:13] if BOLD in line]
    top = min(many.scores, key=lambda name: many.scores[name]["AL"].value)
    alike = {s for m in many.metrics for s in many.systems if set(many.letters[m][s]) & set(many.letters[m][top])}
    assert top in many.best("AL")
    assert 1 <= len(bold) == len(alike)
    for m in many.metrics:
        best = min(many.systems, key=lambda name: many.scores[name][m].value)
        differ = [p for p in many.pairs if p.metric == m and best in (p.a, p.b) and many.verdict(p) != "alike"]
        assert set(many.best(m)) == set(many.systems) - {s for p in differ for s in (p.a, p.b)} | {best}
    assert "\x1b" not in render_comparison(many)


def test_an_unknown_format() -> None:
    with pytest.raises(lagging.UsageError, match="no output format is called 'yaml'"):
        render_comparison(None, "yaml")  # type: ignore[arg-type]


# ---- whole talks ----------------------------------------------------------------------------------------------------


def test_whole_talks_are_cut_and_compared_by_recording(run, data, tmp_path) -> None:
    talks = data / "omnisteval/examples/speech_resegmentation_example"
    later = []
    for line in (talks / "instances.log").read_text("utf-8").splitlines():
        one = json.loads(line)
        one["delays"] = [min(g + 300, one["source_length"]) for g in one["delays"]]
        later.append(json.dumps(one) + "\n")
    (tmp_path / "later.log").write_text("".join(later))
    files = ("--segmentation", talks / "ref_segments.yaml", "--reference", talks / "references.txt")
    logs = (f"base={talks / 'instances.log'}", f"later={tmp_path / 'later.log'}")
    code, out, err = run("compare", *logs, *files, "-m", "LongYAAL,BLEU", "-f", "json", "--resamples", 500)
    found = json.loads(out)
    assert code == 0, err
    assert "|by:document|method:wild|" in found["signature"]
    pair = found["pairs"][0]
    assert (pair["metric"], pair["a"], pair["b"]) == ("LongYAAL", "base", "later")
    assert 200 < pair["low"] < pair["difference"] < pair["high"] < 340
    assert found["scores"][0]["n"] == 468
    by = run("compare", *logs, *files, "-m", "LongYAAL", "-f", "json", "--resamples", 500, "--resample", "segment")
    assert "|by:segment|method:bca|" in json.loads(by.out)["signature"]


def test_logs_of_other_sentences_are_bad_data(run, folder) -> None:
    Path("other.jsonl").write_text('{"id": "x", "delays": [1], "source_length": 3}\n')
    code, out, err = run("compare", "base.jsonl", "other.jsonl", "-m", "AL")
    assert (code, out) == (1, "")
    assert "systems with no segment in common: base, other" in err


def test_the_signature_of_a_comparison_is_repeated_by_compare(run, folder) -> None:
    signature = run(*TWO, "-m", "AL", *FEW).out.splitlines()[-1]
    assert signature.startswith("pairs|")
    code, _, err = run("score", "base.jsonl", "--like", signature)
    assert code == 2
    assert "this signature is of a comparison: repeat it by `lagging compare`" in err


def test_nothing_that_is_read_is_written_over(run, logs):
    Path("c1.comet").write_text("0.8\n0.7\n0.6\n", "utf-8")
    columns = ("--column", "COMET=wait:c1.comet", "--column", "COMET=cheat:c1.comet")
    before = Path("c1.comet").read_bytes()
    done = run("compare", "wait", "cheat", "-m", "AL", *columns, "-o", "c1.comet")
    assert done.code == 2
    assert "would be written over" in done.err
    assert Path("c1.comet").read_bytes() == before
