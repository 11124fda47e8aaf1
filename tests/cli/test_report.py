# SPDX-License-Identifier: Apache-2.0
"""`lagging report`: the file it writes; web/e2e/report.test.mjs opens such files in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import lagging

DATA = Path(__file__).parents[2] / "docs" / "data"
FEW = ("--resamples", 200)


def unpacked(page: Path) -> dict[str, Any]:
    packed = re.search(r'<script id="data"[^>]*>([^<]+)</script>', page.read_text("utf-8"))
    assert packed is not None
    found = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    assert isinstance(found, dict)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


TWO = ("report", f"base={DATA / 'system-a'}", f"new={DATA / 'system-b'}")


def test_a_page_about_two_systems(run: Any, here: Path) -> None:
    done = run(*TWO, *FEW, "-o", "r.html", "--title", "Two", "-m", "AL,DAL,BLEU")
    assert (done.code, done.out) == (0, "")
    assert "r.html: 2 systems, 6 segments, 0.3 MB" in done.err
    assert "note: new: empty hypothesis: 1 segment" in done.err
    found = unpacked(here / "r.html")
    assert found["title"] == "Two"
    assert [one["name"] for one in found["systems"]] == ["base", "new"]
    scores = lagging.score(lagging.read(DATA / "system-b"), ["AL", "DAL", "BLEU"])
    assert [one["value"] for one in found["comparison"]["scores"][1]] == [s.value for s in scores]
    again = run(*TWO, *FEW, "-o", "again.html", "--title", "Two", "-m", "AL,DAL,BLEU", "-q")
    assert all(line.startswith("note: base and new: TOO FEW SEGMENTS: ") for line in again.err.splitlines())
    assert (here / "again.html").read_bytes() == (here / "r.html").read_bytes()


def test_one_system_and_a_base(run: Any, here: Path) -> None:
    assert run("report", DATA / "system-a", *FEW, "-o", "one.html").code == 0
    assert unpacked(here / "one.html")["comparison"]["pairs"] == []
    assert run(*TWO, *FEW, "--base", "base", "-o", "r.html").code == 0
    found = unpacked(here / "r.html")["comparison"]
    assert found["base"] == "base"
    runs = {"base": lagging.read(DATA / "system-a"), "new": lagging.read(DATA / "system-b")}
    wanted = lagging.compare(runs, base="base", resamples=200)
    assert [[one["mark"] for one in row] for row in found["scores"]] == [
        [wanted.marks[m][name] for m in wanted.metrics] for name in wanted.systems
    ]
    assert [pair["p"] for pair in found["pairs"]] == [pair.p for pair in wanted.pairs]
    wrong = run("report", DATA / "system-a", "--base", "x", "-o", "one.html")
    assert wrong.code == 2
    assert "--base needs other systems" in wrong.err


def test_talks_are_cut(run: Any, here: Path) -> None:
    cut = ("--segmentation", DATA / "talks.yaml", "--reference", DATA / "talks.de")
    assert run("report", f"talks={DATA / 'talks.log'}", *cut, *FEW, "-o", "r.html").code == 0
    found = unpacked(here / "r.html")
    assert [m["name"] for m in found["metrics"]] == ["LongYAAL", "StreamLAAL", "DAL", "StreamDAL", "BLEU"]
    assert found["tradeoff"]["clocks"] == ["ideal", "elapsed", "queue"]
    assert found["over_time"]["systems"][0]["drift"] is not None
    assert {r["name"] for r in found["tradeoff"]["regimes"]} >= {"iwslt26", "iwslt25"}


def test_a_log_is_never_written_over(run: Any, here: Path) -> None:
    (here / "a.jsonl").write_text('{"id": 0, "delays": [1, 2], "source_length": 2}\n')
    done = run("report", "a.jsonl", "-o", "a.jsonl")
    assert done.code == 2
    assert "it would be written over" in done.err
    assert run("report", "a.jsonl").code == 2


def test_columns_are_qualities(run: Any, here: Path) -> None:
    (here / "a.comet").write_text("0.5\n0.6\n0.7\n0.8\n0.9\n0.4\n")
    (here / "b.comet").write_text("0.4\n0.5\n0.6\n0.1\n0.9\n0.5\n")
    columns = ("--column", "COMET=base:a.comet", "--column", "COMET=new:b.comet", "-m", "DAL")
    assert run(*TWO, *FEW, *columns, "-o", "r.html").code == 0
    found = unpacked(here / "r.html")
    assert found["tradeoff"]["quality"] == ["COMET"]
    assert [row[1]["value"] for row in found["comparison"]["scores"]] == pytest.approx([0.65, 0.5])
    assert found["segments"]["systems"][1]["values"]["COMET"] == [0.4, 0.5, 0.6, 0.1, 0.9, 0.5]
    assert run(*TWO, *FEW, *columns[:4], "-o", "r.html").code == 0
    assert unpacked(here / "r.html")["tradeoff"]["quality"] == ["COMET", "BLEU"], "what is drawn first was given"
    one = ("report", f"base={DATA / 'system-a'}", *FEW, "-m", "DAL", "-o", "one.html")
    assert run(*one, "--column", "COMET=base:a.comet", "--lower", "COMET").code == 0
    assert [m["higher"] for m in unpacked(here / "one.html")["metrics"]] == [False, False]
    for wrong, said in (("COMET=new:b.comet", "there is no system 'new'"), ("COMET", "cannot read --column")):
        done = run(*one, "--column", wrong)
        assert done.code == 2
        assert said in done.err


def test_a_folder_of_folders_is_a_sweep(run: Any, here: Path) -> None:
    for setting in ("k=10", "k=2"):
        folder = here / "runs" / "wait-k" / setting
        folder.mkdir(parents=True)
        (folder / "instances.log").write_bytes((DATA / "system-a" / "instances.log").read_bytes())
    (here / "runs" / "notes").mkdir()
    done = run("report", "runs", "-o", "r.html", "-m", "DAL", *FEW)
    assert done.code == 0
    data = unpacked(here / "r.html")
    assert [system["name"] for system in data["systems"]] == ["2", "10"]
    assert all(system["verdict"] == {"word": "sound", "reasons": []} for system in data["systems"])
    done = run("curve", "runs", "--latency", "DAL", "-q", *FEW)
    assert [line.split()[:2] for line in done.out.splitlines()[1:3]] == [["wait-k", "2"], ["10", "1.041"]]
    done = run("score", "ours=runs", "-m", "DAL", "-q", "--no-signatures")
    assert [line.split()[0] for line in done.out.splitlines()[1:3]] == ["ours/2", "ours/10"]


def test_sounds_are_linked(run: Any, here: Path) -> None:
    (here / "wavs").mkdir()
    (here / "wavs" / "talk_5 (1).wav").write_bytes(b"RIFF")
    done = run(*TWO, *FEW, "-o", "r.html", "--sounds", "wavs")
    assert done.code == 2
    assert "--sounds: wavs has no recording of this log, such as talk_0.wav" in done.err
    (here / "wavs" / "talk_5.wav").write_bytes(b"RIFF")
    (here / "pages").mkdir()
    assert run(*TWO, *FEW, "-o", "pages/r.html", "--sounds", "wavs").code == 0
    segments = unpacked(here / "pages" / "r.html")["segments"]
    assert segments["sound"] == {"talk_5.wav": "../wavs/talk_5.wav"}
    assert segments["recording"][:2] == ["talk_0.wav", "talk_1.wav"]
    assert "media-src 'self' file:" in (here / "pages" / "r.html").read_text("utf-8")
    assert run(*TWO, *FEW, "-o", "plain.html").code == 0
    assert "media-src" not in (here / "plain.html").read_text("utf-8")
