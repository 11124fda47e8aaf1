# SPDX-License-Identifier: Apache-2.0
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.cli.systems import group_settings, name_settings
from lagging.curves import curves
from lagging.curves.slopes import lines

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logs of wait-k at three settings, and of a system that jumps at two; also the working directory."""
    monkeypatch.chdir(tmp_path)
    lengths = [5, 6, 7, 8, 9, 10, 11, 12, 8, 9, 10, 7]
    for name, k, jump, right in (
        ("runs/k1", 1, 0, 0.7),
        ("runs/k3", 3, 0, 0.8),
        ("runs/k5", 5, 0, 0.9),
        ("jump/d2", 2, 2, 0.85),
        ("jump/d3", 4, 3, 0.95),
    ):
        dice = np.random.default_rng(k + 10 * jump)
        lines = []
        for index, x in enumerate(lengths):
            g = np.minimum(k + np.arange(x), x)
            if jump:
                g = np.minimum((g + jump - 1) // jump * jump, x)
            reference = WORDS[index : index + x]
            text = [w if dice.random() < right else "oh" for w in reference]
            line = {"index": index, "prediction": " ".join(text), "reference": " ".join(reference)}
            line |= {"source": " ".join("s" * x), "source_length": x, "prediction_length": x}
            lines.append(line | {"delays": g.tolist(), "elapsed": [0] * x})
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "instances.log").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return tmp_path


SYSTEMS = ("wait-k=runs/k*/instances.log", "jumping=jump/*")


def read(metrics):
    def one(path):
        return lagging.score(lagging.read(path), metrics)

    return {
        "wait-k": [(k, one(f"runs/{k}")) for k in ("k1", "k3", "k5")],
        "jumping": [(d, one(f"jump/{d}")) for d in ("d2", "d3")],
    }


def test_json_has_what_the_library_finds(run, runs) -> None:
    code, out, err = run("curve", *SYSTEMS, "--latency", "DAL", "--at-latency", 4, "--at-quality", 60, "-f", "json")
    assert code == 0
    assert err.startswith("wait-k k1: SimulEval log")
    found, known = json.loads(out), curves(read(["DAL", "BLEU"]), "DAL", "BLEU")
    assert found["schema"] == 1
    assert [(p["system"], p["setting"], p["latency"]["value"], p["quality"]["low"]) for p in found["points"]] == [
        (c.system, p.setting, p.latency.value, p.quality.low) for c in known for p in c.points
    ]
    assert [(p["front"], p["front_share"]) for p in found["points"]] == [(f.on, f.share) for f in known.front()]
    at = [(a["system"], a["at_latency"], a["quality"], a["low"], a["high"]) for a in found["at_latency"]]
    assert at == [(a.system, 4.0, a.value, a.low, a.high) for a in known.quality_at(4)]
    to = [(a["at_quality"], a["latency"], a["reason"] or "") for a in found["at_quality"]]
    assert to == [(60.0, None if np.isnan(a.value) else a.value, a.reason) for a in known.latency_at(60)]
    (area,), (seen,) = found["areas"], known.areas()
    assert (area["a"], area["b"], area["difference"], area["p"]) == ("wait-k", "jumping", seen.difference, seen.p)
    assert {score["system"] for score in found["scores"]} == {
        "wait-k k1",
        "wait-k k3",
        "wait-k k5",
        "jumping d2",
        "jumping d3",
    }
    assert all(score["signature"].startswith(score["metric"] + "|") for score in found["scores"])
    assert found["made"] == {
        "by": "segment",
        "units": 12,
        "level": 0.95,
        "method": "bca",
        "resamples": 10000,
        "seed": 12345,
        "correction": "holm",
    }


def test_table(run, runs) -> None:
    code, out, _ = run("curve", *SYSTEMS, "--latency", "DAL", "--at-latency", 4, "--at-quality", 99, "-q")
    assert code == 0
    head, *rows = out.split("\n\n")[0].splitlines()
    assert head.split() == ["system", "setting", "DAL", "↓", "tokens", "BLEU", "↑", "front"]
    assert [row.split()[0] for row in rows] == ["wait-k", "k3", "k5", "jumping", "d3"]
    assert "BLEU ↑ at DAL 4 tokens  DAL ↓ tokens at BLEU 99" in out
    assert "wait-k at BLEU 99: its best is " in out
    assert "paired bootstrap over 12 segments, 10000 resamples, seed 12345, Holm" in out
    assert out.rstrip().splitlines()[-1].startswith("BLEU|")


@pytest.mark.parametrize("form", ["markdown", "latex", "tsv"])
@pytest.mark.parametrize("what", [(), ("--ranks", "AP,AL,DAL"), ("--against", "AL,DAL")])
def test_all_formats_carry_signatures(run, runs, form, what) -> None:
    code, out, err = run("curve", *SYSTEMS, *what, "-f", form, "-q")
    assert (code, err) == (0, "")
    assert "AL|unit:token|" in out
    if form == "latex":
        assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") >= 2
        assert out.isascii() or what == () or "τ" not in out.split("%")[0]


def test_arguments_of_one_name_are_settings(run, runs) -> None:
    code, out, _ = run("curve", "w=runs/k1", "w=runs/k5", "jump/d2", "-f", "tsv", "-q")
    assert code == 0
    points = [line.split("\t")[1:3] for line in out.splitlines() if line.startswith("points\t")][1:]
    assert points == [["w", "k1"], ["w", "k5"], ["d2", ""]]


def test_against(run, runs) -> None:
    _, out, _ = run("curve", *SYSTEMS, "--against", "AL,DAL", "-f", "json", "-q")
    found, known = json.loads(out), lines(read(["AL", "DAL"]))
    assert [(one["system"], one["slope"]["value"], one["slope"]["low"], one["by"]) for one in found["lines"]] == [
        (one.system, one.slope.value, one.slope.low, "segment") for one in known.lines
    ]
    assert found["steeper"][0]["p_adjusted"] == known.slope_differences[0].p_adjusted
    _, table, _ = run("curve", *SYSTEMS, "--against", "AL,DAL", "-q")
    assert "slope of DAL over AL" in table


def test_ranks(run, runs) -> None:
    _, out, _ = run("curve", *SYSTEMS, "--ranks", "AP,AL,DAL", "-f", "json", "-q")
    found = json.loads(out)
    ranks = {(one["system"], one["metric"]): one["rank"] for one in found["ranks"]}
    assert ranks["wait-k k1", "AL"] == 1
    assert sorted(ranks[name, "DAL"] for name, m in ranks if m == "DAL") == [1, 2, 3, 4, 5]
    assert [(tau["a"], tau["b"]) for tau in found["taus"]] == [("AP", "AL"), ("AP", "DAL"), ("AL", "DAL")]
    assert all(-1 <= tau["low"] <= tau["tau"] <= tau["high"] <= 1 for tau in found["taus"])
    flipped = {frozenset((flip["a"], flip["b"])) for flip in found["flips"]}
    _, table, _ = run("curve", *SYSTEMS, "--ranks", "AP,AL,DAL", "-q")
    assert ("order depends" in table) == bool(flipped)
    assert "Kendall's τ" in table


TABLE = (
    "system,setting,AL_s,DAL_s,BLEU\nA,1,1.0,1.5,20\nA,2,2.0,2.6,24\nA,3,3.0,3.4,25\nB,1,1.5,3.0,22\nB,2,2.5,5.2,26\n"
)


def test_published_tables_and_score_files(run, runs) -> None:
    Path("table.csv").write_text(TABLE)
    code, out, err = run("curve", "--published", "table.csv", "--at-latency", "2s", "-q")
    assert (code, err) == (0, "")
    assert out == (
        "system  setting  AL ↓ s  BLEU ↑  front\n"
        "A       1         1.000   20.00      ●\n"
        "        2         2.000   24.00      ●\n"
        "        3         3.000   25.00\n"
        "B       1         1.500   22.00      ●\n"
        "        2         2.500   26.00      ●\n"
        "\n"
        "system  BLEU ↑ at AL 2 s\n"
        "A                  24.00\n"
        "B                  24.00\n"
        "\n"
        "difference  BLEU ↑       over AL s  p  p adjusted\n"
        "B − A         0.38  1.500 to 2.500  –           –\n"
        "\nfront: ● no other setting is as early and as good, and earlier or better\n"
        "published in table.csv, without logs, so without intervals: A, B\n"
    )
    _, out, _ = run("curve", "--published", "table.csv", "--against", "AL,DAL", "-f", "json")
    assert [one["by"] for one in json.loads(out)["lines"]] == ["setting", "setting"]
    assert json.loads(out)["lines"][1]["slope"]["value"] == pytest.approx(2.2)
    for k in (1, 3):
        Path(f"k{k}").mkdir()
        Path(f"k{k}/scores.tsv").write_text(f"metric\tvalue\nBLEU\t{20 + k}\nAL (CU)\t{1000 * k}\n")
    code, out, _ = run("curve", "--published", "w=k*/scores.tsv", "-f", "tsv", "-q")
    points = [line.split("\t")[1:4] for line in out.splitlines() if line.startswith("points\t")][1:]
    assert (code, points) == (0, [["w", "k1", "1000.0"], ["w", "k3", "3000.0"]])


def test_published_rows_are_chosen(run, runs) -> None:
    text = "method,model,setting,AL,BLEU\nx,m,1,1,20\nx,n,1,2,21\ny,m,1,3,22\n"
    Path("table.csv").write_text(text)
    code, out, _ = run("curve", "--published", "table.csv", "--family", "method,model", "--unit", "token", "-f", "tsv")
    assert code == 0
    assert [line.split("\t")[1] for line in out.splitlines() if line.startswith("points\t")][1:] == [
        "x m",
        "x n",
        "y m",
    ]
    more = ("--family", "method", "--unit", "token", "-f", "tsv")
    code, out, _ = run("curve", "--published", "table.csv", "--where", "model=m", *more)
    assert [line.split("\t")[1] for line in out.splitlines() if line.startswith("points\t")][1:] == ["x", "y"]
    code, _, err = run("curve", "--published", "table.csv", *more)
    assert code == 2
    assert "has the setting '1' of x twice: lines 2 and 3" in err
    assert "they differ in: model" in err


def test_a_table_with_faults_is_refused_with_all_of_them(run, runs) -> None:
    Path("table.csv").write_text("system,AL,DAL,BLEU\na,1,x,20\nb,2,3\n,1,2,?\n")
    code, _, err = run("curve", "--published", "table.csv", "--unit", "token")
    assert code == 1
    assert "table.csv:2" in err
    assert "3 values below 4 names" in err
    assert "1 more with the same fault" in err


@pytest.mark.parametrize("text", ["system\rAL\r1\r", 'system,AL\n"' + "x" * 140_000 + '",1\n'])
def test_what_is_no_csv_is_refused(run, runs, text) -> None:
    Path("table.csv").write_bytes(text.encode())
    code, out, err = run("curve", "--published", "table.csv", "--unit", "token")
    assert (code, out) == (1, "")
    assert "not a score file of a known kind in table.csv" in err


def test_a_score_file_that_counts_in_two_units_is_refused(run, runs) -> None:
    rows = [{"system": "a", "metric": m, "score": 1, "unit": u} for m, u in (("AL", "ms"), ("DAL", "token"))]
    Path("scores.json").write_text(json.dumps({"schema": 1, "scores": rows}))
    code, _, err = run("curve", "--against", "AL,DAL", "--published", "scores.json")
    assert code == 2
    assert "has times in ms and in tokens" in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "nothing to draw"),
        (("--ranks", "AL,DAL", "--against", "AL,DAL", "runs/k1"), "ask for one of them"),
        (("--against", "AL,DAL", "--at-latency", "3", "runs/k1"), "about curves of quality"),
        (("--against", "AL", "runs/k1"), "two metrics"),
        (("--ranks", "AL,DAL", "-o", "x.png", "runs/k1"), "no figure"),
        (("--bands", "iwslt26", "runs/k1"), "about the figure"),
        (("--family", "x", "runs/k1"), "give --published too"),
        (("--at-latency", "soon", "runs/k1"), "takes a number"),
        (("--at-latency", "3s", "runs/k1"), "this is counted in tokens, and not in time"),
        (("--latency", "DALL", "runs/k1"), "Did you mean DAL?"),
        (("--latency", "TER", "runs/k1"), "TER is no latency: it is not about time"),
        (("--latency", "Segments", "runs/k1"), "Segments is no latency: lower is not better"),
        (("--latency", "COMET", "runs/k1"), "COMET is no latency"),
        (("--quality", "AP", "runs/k1"), "AP is no quality, but about time"),
        (("--quality", "Segments", "runs/k1"), "Segments is no quality, but about time"),
        (("--quality", "DAL", "runs/k1"), "--against AL,DAL"),
        (("--quality", "COMET", "runs/k1"), "COMET is not computed from logs"),
        (("--ranks", "AL,COMET", "runs/k1"), "COMET is not computed from logs"),
        (("--against", "AL,COMET", "runs/k1"), "COMET is not computed from logs"),
        (("--against", "COMET,AL", "runs/k1"), "COMET is not computed from logs"),
        (("--seed", "-1", "runs/k1"), "-1 is not in the range x>=0"),
        (("--resamples", "2", "runs/k1"), "2 is not in the range 100<=x<=1000000"),
        (("--confidence", "200", "runs/k1"), "200.0 is not in the range 0<x<100"),
        (("nothing/*",), "no such file or directory: nothing/*\n"),
        (("nothing=zzz*",), "no such file or directory: zzz* (of nothing=zzz*)"),
        (("runs/k1", "-o", "x.gif"), "cannot write a figure to x.gif: figures end in .pdf, .svg, .png"),
        (("runs/k1", "-o", "x.jpeg"), "cannot write a figure to x.jpeg"),
        (("--at-quality", "nan", "runs/k1"), "the quality of a curve must be a finite number, but is nan"),
        (("--published", "table.csv", "--unit", "ms", "--at-latency", "3h"), "a number, such as 2.5, 5s or 3000ms"),
        (
            ("--published", "table.csv", "--unit", "ms", "--family", "sys"),
            "no column 'sys' that names rows; there are: system\n"
            "  fix: name the columns that tell the systems apart, such as --family system.",
        ),
        (("--published", "none.csv"), "no such file"),
        (("--published", "table.csv"), "does not say the unit of AL"),
        (("--published", "table.csv", "--unit", "token", "--where", "model"), "COLUMN=PATTERN"),
        (("--published", "table.csv", "--unit", "token", "--where", "model=x"), "has no column 'model'"),
        (("--published", "table.csv", "--unit", "token", "--where", "system=x"), "no row of table.csv has system=x"),
        (("--published", "a=table.csv", "--unit", "token"), "names its systems itself"),
        (("-", "-"), "only once"),
        (("runs/k1", "-o", "runs/k1/instances.log"), "would be written over"),
    ],
)
def test_what_makes_no_sense(run, runs, args, words) -> None:
    Path("table.csv").write_text("system,AL,BLEU\na,1,20\n")
    code, out, err = run("curve", *args)
    assert (code, out) == (2, "")
    assert words in err


def test_pairs_without_a_common_latency_are_one_note_that_says_how_settings_are_joined(run, runs) -> None:
    code, out, _ = run("curve", *(f"k{k}=runs/k{k}" for k in (1, 3, 5)), "w=jump/d2", "-q", "--no-signatures")
    assert code == 0
    assert out.count("they have no latency in common") == 1
    assert "k3 − k1, k5 − k1, w − k1 and 3 other pairs: they have no latency in common" in out
    assert "settings become a curve if they have one name: 'ours=runs/k*'" in out
    _, out, _ = run("curve", *SYSTEMS, "-q")
    assert "settings become a curve" not in out


def test_what_is_left_out_or_made_otherwise_is_said(run, runs) -> None:
    log = Path("jump/d2/instances.log")
    log.write_text("".join(log.read_text("utf-8").splitlines(keepends=True)[:-2]), "utf-8")
    for more in ((), ("--against", "AL,DAL"), ("--ranks", "AL,DAL")):
        _, _, err = run("curve", *SYSTEMS, *more)
        assert "note: wait-k k1: 2 segments left out, which not all have: 10, 11" in err


def test_one_segment_is_too_few_for_all_that_is_said_of_others(run, runs) -> None:
    for k in ("k1", "k5"):
        log = Path(f"runs/{k}/instances.log")
        Path(f"{k}.log").write_text(log.read_text("utf-8").splitlines()[3] + "\n", "utf-8")
    code, out, _ = run("curve", "a=k1.log", "a=k5.log", "--ranks", "AL,DAL", "-q")
    assert code == 0
    assert out.splitlines()[5].split() == ["AL,", "DAL", "1.000"]
    assert "AL, DAL: 1 segment: too few" in out
    code, out, _ = run("curve", "a=k1.log", "a=k5.log", "-q")
    assert code == 0
    assert out.splitlines()[1].split()[-1] == "●"
    assert "%" not in out
    assert "resamples" not in out
    assert "1 segment: too few for intervals" in out


def test_figures(run, runs) -> None:
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        code, out, _ = run("curve", *SYSTEMS, "-o", f"fig.{ending}", "-q")
        assert code == 0
        assert out.startswith("system")
        assert Path(f"fig.{ending}").read_bytes().startswith(start)
    code, out, _ = run("curve", *SYSTEMS, "--against", "AL,DAL", "-o", "lines.svg", "-q")
    assert (code, Path("lines.svg").exists()) == (0, True)
    run("curve", *SYSTEMS, "-o", "out.txt", "-q")
    assert Path("out.txt").read_text("utf-8").startswith("system")


def test_a_missing_extra_is_told_before_a_log_is_read(run, runs, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run("curve", *SYSTEMS, "-o", "fig.pdf")
    assert (code, out) == (1, "")
    assert "pip install 'lagging[plot]'" in err
    assert "SimulEval log" not in err


def test_names_of_settings(runs) -> None:
    assert name_settings(["a/k1/b/x.log", "a/k3/b/x.log"]) == ["k1", "k3"]
    assert name_settings(["a/k1.log", "b/k1.log"]) == ["a", "b"]
    assert name_settings(["x/a/1.log", "x/b/2.log"]) == ["a/1", "b/2"]
    assert name_settings(["run0.5", "run1.5"]) == ["run0.5", "run1.5"]
    assert name_settings(["a.log", "b.jsonl"]) == ["a.log", "b.jsonl"]
    assert [
        (name, [s for s, _ in some]) for name, some in group_settings(["runs/*", "j=jump/d2", "j=jump/d3", "jump/d2"])
    ] == [
        ("runs", ["k1", "k3", "k5"]),
        ("j", ["d2", "d3"]),
        (None, [""]),
    ]


def test_help_has_its_examples_below_each_other(run) -> None:
    out = run("curve", "--help").out
    assert "\\b" not in out
    assert "\n  lagging curve 'wait-k=runs/k*' 'mma=runs/mma-*' --against AL,DAL\n" in out


def test_a_latency_without_a_unit_is_in_that_of_the_table(run, runs) -> None:
    Path("table.csv").write_text("system,setting,AL,BLEU\na,1,1000,20\na,2,3000,30\n")
    for two in ("2s", "2000ms", "2"):
        _, out, _ = run("curve", "--published", "table.csv", "--unit", "ms", "--at-latency", two, "-f", "json")
        assert json.loads(out)["at_latency"][0]["quality"] == 25
    Path("speech.log").write_text(
        '{"index": 0, "delays": [900.0, 1000.0], "source_length": 1000.0, "prediction": "a b", "reference": "a b"}\n'
    )
    _, out, _ = run(
        "curve", "b=speech.log", "--published", "table.csv", "--unit", "ms", "--at-latency", 2, "-f", "json"
    )
    assert [at["quality"] for at in json.loads(out)["at_latency"] if at["system"] == "a"] == [25]


def test_the_table_is_printed_beside_a_note_about_segments_left_out(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, count in (("a", 6), ("b", 5)):
        row = {"prediction": "x y z", "reference": "x y w", "delays": [1, 2, 3], "source_length": 3}
        lines = (json.dumps({"index": i} | row) + "\n" for i in range(count))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    done = run("curve", "a.jsonl", "b.jsonl", "--resamples", "100", "-f", "json")
    assert done.code == 0
    assert {s["system"] for s in json.loads(done.out)["scores"]} == {"a", "b"}
    assert "note: a: 1 segment left out, which not all have: 5" in done.err
