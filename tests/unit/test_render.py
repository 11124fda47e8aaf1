# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import lagging
from lagging.render import render
from lagging.render import timeline_text as drawing
from lagging.render.card import listing
from lagging.render.text import shorten, terminal_text
from lagging.render.timeline import timeline
from lagging.render.timeline_text import draw, sparkline


def test_unknown_formats_are_named() -> None:
    with pytest.raises(lagging.UsageError, match="no output format is called 'html'"):
        render([], "html")


def test_twelve_systems_with_long_names() -> None:
    runs = [
        lagging.policies.wait_k(k).run(source_lengths=[9], target_lengths=[9], name=f"系统-{'x' * k}")
        for k in range(1, 13)
    ]
    lines = render([lagging.score(run, ["AL", "DAL", "AP"]) for run in runs]).splitlines()
    assert len(lines) == 1 + 12 + 1 + 3
    assert lines[12].startswith("系统-xxxxxxxxxxxx  ")
    best = render([lagging.score(run, ["AL"]) for run in runs], colour=True).splitlines()
    assert sum("\x1b[1m" in line for line in best[1:13]) == 1


def test_long_names_are_shortened_only_where_they_must() -> None:
    run = lagging.Run.from_delays([[1]], source_length=[1], name="n" * 200)
    scores = [lagging.score(run, ["AL"])]
    assert "n" * 200 in render(scores)
    assert max(len(line) for line in render(scores, width=40).splitlines()[:3]) <= 40


def test_safe_text() -> None:
    assert terminal_text("a\x1b[0m\n\u202e\ud800") == r"a\x1b[0m\x0a\u202e\ud800"
    assert terminal_text("👩‍👩‍👧") == "👩‍👩‍👧"
    assert terminal_text("قطة") == "\u2068قطة\u2069"
    assert shorten("你好世界", 5) == "你好…"
    assert shorten("\u2068قطةقطةقطة\u2069", 5).endswith("…\u2069")
    assert shorten("abc", 0) == ""


def test_sparklines() -> None:
    assert sparkline(np.array([])) == ""
    assert sparkline(np.array([0.0, 1.0])) == "▁█"
    assert sparkline(np.array([-1.0, 0.0, 1.0])) == "▁▅█"
    assert sparkline(np.array([np.nan, 1.0])) == " █"


def test_timelines_of_odd_sentences() -> None:
    run = lagging.Run.from_delays([[], [0, 0], [9, 9], list(range(1, 301))], source_length=[3, 0, 5, 300], name="odd")
    assert "nothing was written" in draw(timeline(run, 0))
    assert "–" in draw(timeline(run, 1))
    assert "|x|=5" in draw(timeline(run, 2), width=80)
    assert "lag " not in draw(timeline(run, 3), width=80).splitlines()[-3]
    with pytest.raises(lagging.MetricError, match="no segment 7 in odd"):
        timeline(run, 7)


def test_the_scale_of_a_timeline_is_found_once_and_not_for_every_token(monkeypatch) -> None:
    run = lagging.Run.from_delays([list(range(1, 201))], source_length=[200])
    seen = []
    span = drawing._span
    monkeypatch.setattr(drawing, "_span", lambda *given: seen.append(given) or span(*given))
    assert draw(timeline(run, 0), width=80).count("●") == 201
    assert len(seen) == 1


def test_a_timeline_is_the_paper_in_numbers() -> None:
    run = lagging.Run.from_delays([[1, 2, 3, 3, 3, 3]], source_length=[3], id=["x"])
    line = timeline(run, "x")
    assert line.effective_delays.tolist() == [1, 2, 3, 3.5, 4, 4.5]  # Table 5
    assert line.ideal.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert line.broke == (True, True, True, False, False, False)


def test_listing_is_cut_to_the_terminal() -> None:
    metrics = lagging.metrics.registered()
    assert max(map(len, listing(metrics, width=60).splitlines())) <= 62
    assert "…" not in listing(metrics)


def test_a_signature_refuses_what_would_break_it() -> None:
    with pytest.raises(lagging.UsageError, match="cannot stand in a signature"):
        lagging.Signature.make("AL", {"unit": "a|b"}, (), 1, "0")
    for text in ("", "AL", "AL|unit", "AL|:x", "a:b|c:d"):
        with pytest.raises(lagging.UsageError, match="cannot read the signature"):
            lagging.Signature.parse(text)


def test_conventions_by_name() -> None:
    with pytest.raises(lagging.UsageError, match="Did you mean simuleval"):
        lagging.convention("simulevel")
    assert lagging.convention(lagging.CONVENTIONS["paper"]).name == "paper"
