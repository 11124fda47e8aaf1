# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: well-formed tables, with the numbers of the objects, in which text is text."""

import pickle
import re
from html.parser import HTMLParser

import pytest

import lagging
from lagging import Run
from lagging.data import notebooks
from lagging.render import plots
from lagging.render.timeline import timeline
from lagging.scoring.intervals import with_intervals

HOSTILE = ["<script>alert(1)</script>", "a\"'&\u2028b \u202e x", "w" * 10_000, "nul\x00 😀"]
TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "div", "small", "sup", "strong"}
DRAWING = {"svg", "title", "g", "text", "line", "circle"}
ATTRIBUTES = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "role", "fill", "stroke"}
ATTRIBUTES |= {"stroke-width", "font-size", "text-anchor"}


class Tables(HTMLParser):
    """Rows of all tables; fails where tags do not match, or where there is another than these."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS | DRAWING
        assert dict(attrs).keys() <= ({"class", "scope"} if tag in TAGS else ATTRIBUTES)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def parsed(shown: object) -> Tables:
    tables = Tables()
    tables.feed(shown._repr_html_())  # type: ignore[attr-defined]
    tables.close()
    assert tables.open == []
    return tables


def run(k: int = 0) -> Run:
    delays = [[1 + k, 2, 2], [2, 2], [], [1, 3], [2, 3], [3, 3]]
    texts = ["a b c", "d e", "", "f g", "h i", "j k"]
    return Run.from_delays(delays, source_length=[2, 2, 1, 3, 3, 3], prediction=texts, reference=texts, name=f"s{k}")


def test_a_run() -> None:
    found = parsed(run())
    assert found.rows[0] == ["segment", "|x|", "tokens", "prediction", "reference"]
    assert found.rows[1] == ["0", "2.000", "3", "a b c", "a b c"]
    assert len(found.rows) == 6
    assert "and 1 more segment" in found.text
    assert "empty hypothesis: 1 segment (2)" in found.text
    assert parsed(Run.from_texts(["x"], reference=["x"])).rows[0] == ["segment", "tokens", "prediction", "reference"]


def test_scores() -> None:
    scores = with_intervals(lagging.score(run(), ["AL", "BLEU"]), resamples=200)
    found = parsed(scores)
    one = scores["AL"]
    assert one.low is not None
    assert one.high is not None
    assert found.rows[1] == ["AL ↓ tokens", f"{one.value:.3f}", f"[{one.low:.3f}, {one.high:.3f}]", "6", "1"]
    assert str(one.signature) in found.text


def test_a_comparison() -> None:
    found = lagging.compare({"base": run(), "new": run(1)}, ["AL", "DAL"], resamples=200)
    shown = parsed(found)
    assert shown.rows[0] == ["system", "AL ↓ tokens", "DAL ↓ tokens"]
    assert shown.rows[1][0] == "base"
    assert shown.rows[1][1].startswith(f"{found.scores['base']['AL'].value:.3f} [")
    assert found.description in shown.text
    assert re.search(r"<strong>[^<]+</strong><sup>a</sup>", found._repr_html_())


def test_a_timeline() -> None:
    found = parsed(timeline(run(), 0))
    assert found.rows[0] == ["t", "written", "g (tokens)", "g′", "ideal", "lag", "lag of g′", "largest lag so far"]
    assert found.rows[2] == ["2", "b", "2.000", "2.000", "0.667", "1.333", "1.333", "◀"]
    assert "AL 1.167" in found.text


def test_hostile_text_is_text() -> None:
    lengths = [len(text.split()) for text in HOSTILE]
    bad = Run.from_delays(
        [[1] * n for n in lengths], source_length=[1] * 4, prediction=HOSTILE, reference=HOSTILE, id=HOSTILE
    )
    found = lagging.compare({HOSTILE[0]: bad, HOSTILE[1]: bad}, ["AL"], resamples=100)
    for shown in (bad, lagging.score(bad, ["AL"]), found, *(timeline(bad, name) for name in HOSTILE)):
        text = shown._repr_html_()
        parsed(shown)
        assert "<script" not in text
        assert not set(text) & set("\u2028\u202e\x00")
    assert parsed(bad).rows[1][3] == HOSTILE[0]


def test_of_other_things_there_is_no_table() -> None:
    with pytest.raises(TypeError, match="no table of a int"):
        notebooks.html(3)


def test_a_comparison_has_its_pairs() -> None:
    found = lagging.compare({"a": run(), "b": run(1)}, ["AL", "DAL"], resamples=100)
    rows = parsed(found).rows
    assert [row[:2] for row in rows if "−" in "".join(row)] == [["AL", "b − a"], ["DAL", "b − a"]]


def test_curves_and_the_card_of_a_metric() -> None:
    curves = lagging.curves.curves({"a": [("1", run()), ("2", run(1))]}, "AL", "BLEU", resamples=100)
    assert repr(curves) == "Curves(a: BLEU against AL)"
    rows = parsed(curves).rows
    assert [row[:2] for row in rows[1:]] == [["a", "1"], ["a", "2"]]
    card = parsed(lagging.metric("DAL"))
    assert "write_cost=none" in [row[0] for row in card.rows]
    assert "Cherry" in card.text


def test_a_timeline_is_a_drawing() -> None:
    drawn = timeline(run(), 0)._repr_html_()
    assert drawn.startswith("<svg ")
    assert drawn.count('r="4"') == 6  # g and g′ of three tokens
    parsed(timeline(run(), 0))


def test_one_segment_of_a_run() -> None:
    assert run()[3].id.tolist() == run()[-3].id.tolist() == [3]
    with pytest.raises(IndexError, match="out of range"):
        run()[6]


def test_scores_are_a_mapping_and_a_table_of_polars() -> None:
    scores = lagging.score(run(), ["AL", "DAL"])
    assert dict(scores) == {"AL": scores["AL"], "DAL": scores["DAL"]}
    assert ("AL" in scores, "AP" in scores, scores.keys()) == (True, False, ("AL", "DAL"))
    frame = pytest.importorskip("polars") and scores.to_polars()
    assert frame.columns == ["id", "AL", "DAL"]
    assert frame["DAL"].drop_nans().mean() == pytest.approx(scores["DAL"].value)


def test_a_figure_is_a_figure() -> None:
    pytest.importorskip("matplotlib")
    axes = plots.timeline(timeline(run(), 0))
    assert axes._repr_png_().startswith(b"\x89PNG")
    assert pickle.loads(pickle.dumps(axes))._repr_png_().startswith(b"\x89PNG")
