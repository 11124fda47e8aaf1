# SPDX-License-Identifier: Apache-2.0
"""Figures: what is drawn is what was computed, under its name, in its unit, the same bytes every time."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging import Run, metric, plots, policies
from lagging.curves import Axis, Curve, Point
from lagging.curves.slopes import lines
from lagging.render.timeline import timeline

mpl = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from lagging.render.plots import theme  # noqa: E402

ANTAGONIST = Run.from_delays(
    [[4, 4, 4, 4, 5]],
    source_length=[5],
    prediction=["I saw a black cat"],
    source=["ich sah eine schwarze Katze"],
)


def curve(system: str, points, unit: str = "ms", latency: str = "LAAL", quality: str = "BLEU") -> Curve:
    made = tuple(Point(f"k={i}", Axis(*a), Axis(*q)) for i, (a, q) in enumerate(points))
    return Curve(system, made, metric(latency), metric(quality), unit)


def plain(system: str, shift: float, n: int = 4, **more) -> Curve:
    points = [((800.0 * k + 40 * shift,), (20 + 2 * k + shift,)) for k in range(1, n + 1)]
    return curve(system, points, **more)


def names(ax) -> list[str]:
    """The systems as they are named, beside their lines or in a key."""
    key = ax.get_legend()
    return [t.get_text() for t in ([] if key is None else key.get_texts())] + [t.get_text() for t in ax.texts]


def drawn(ax, marker: str):
    """The points of the line with that marker."""
    (found,) = [line for line in ax.lines if line.get_marker() == marker]
    return np.asarray(found.get_xydata())


# ---- quality against latency ----------------------------------------------------------------------------------


def test_curves_are_where_the_numbers_are() -> None:
    a = curve("a", [((1000.0, 900.0, 1200.0), (20.0, 19.0, 22.0)), ((3000.0,), (25.0,))])
    ax = plots.curves([a], pareto=False)
    assert drawn(ax, "o").tolist() == [[1.0, 20.0], [3.0, 25.0]]
    crosses = sorted(line.get_xydata().tolist() for line in ax.lines if line.get_marker() == "None")
    assert crosses == [[[0.9, 20.0], [1.2, 20.0]], [[1.0, 19.0], [1.0, 22.0]]]
    assert ax.get_xlabel() == "LAAL ↓ (s, ideal clock)"
    assert ax.get_ylabel() == "BLEU ↑"
    assert names(ax) == ["a"]


@pytest.mark.parametrize(
    ("name", "unit", "title"),
    [
        ("AL(clock=elapsed)", "ms", "AL ↓ (s, elapsed clock)"),
        ("AL(length=reference)", "token", "AL(length=reference) ↓ (source tokens, ideal clock)"),
        ("AP", "ratio", "AP ↓ (ideal clock)"),
        ("DAL(write_cost=1)", "token", "DAL(write_cost=1) ↓ (source tokens, ideal clock)"),
    ],
)
def test_titles_come_from_the_metric(name: str, unit: str, title: str) -> None:
    ax = plots.curves([curve("a", [((1.0,), (20.0,))], unit, name)])
    assert ax.get_xlabel() == title


def test_the_front_is_the_best_quality_within_each_latency() -> None:
    a = curve("a", [((1000.0,), (20.0,)), ((3000.0,), (25.0,))])
    b = curve("b", [((2000.0,), (24.0,)), ((2500.0,), (23.0,))])
    ax = plots.curves([a, b])
    (front,) = [line for line in ax.lines if line.get_linewidth() == 3.0]
    x, y = np.asarray(front.get_xydata()).T
    for at, best in ((1.5, 20.0), (2.2, 24.0), (2.7, 24.0)):
        assert y[np.searchsorted(x, at) - 1] == best
    assert [x[0], y[0], x[-1], y[-1]] == [1.0, 20.0, 3.0, 25.0]
    assert "Pareto front" in names(ax)


def test_lower_quality_can_be_better() -> None:
    ax = plots.curves([curve("a", [((1000.0,), (50.0,)), ((2000.0,), (60.0,)), ((3000.0,), (40.0,))], quality="TER")])
    (front,) = [line for line in ax.lines if line.get_linewidth() == 3.0]
    assert front.get_xydata().tolist() == [[1.0, 50.0], [3.0, 50.0], [3.0, 40.0]]


def test_undefined_and_missing_points_are_told() -> None:
    sick = curve("a", [((1000.0,), (20.0,)), ((float("nan"),), (25.0,)), ((3000.0,), (float("nan"),))])
    bare = Curve("b", (Point("k=9", Axis(1.0)),), metric("LAAL"), metric("BLEU"), "ms")
    ax = plots.curves([sick, bare])
    assert drawn(ax, "o").tolist() == [[1.0, 20.0]]
    assert ax.get_title(loc="left") == "not drawn, because undefined: a k=1, a k=2, b k=9"
    with pytest.raises(lagging.UsageError, match="no setting of any system"):
        plots.curves([bare])


def test_interval_ends_that_do_not_enclose_the_value_are_drawn_as_they_are() -> None:
    ax = plots.curves([curve("a", [((1000.0, 1100.0, 1200.0), (20.0, None, None))])])
    assert [[1.1, 20.0], [1.2, 20.0]] in [line.get_xydata().tolist() for line in ax.lines]
    ax = plots.curves([curve("a", [((1000.0, float("nan"), float("nan")), (20.0, 19.0, 21.0))])])
    assert len(ax.lines) == 2


def test_twelve_systems_differ_without_colour() -> None:
    ax = plots.curves([plain(f"_system {i}", i / 8) for i in range(12)])
    curves = [line for line in ax.lines if line.get_marker() != "None"]
    assert len({line.get_marker() for line in curves}) == 12
    key = [t.get_text() for t in ax.get_legend().get_texts()]
    assert key == [f"_system {i}" for i in reversed(range(12))], "from the highest line to the lowest"
    looks = {(one.colour, one.marker, one.dash) for one in map(theme.system_style, range(420))}
    assert len(looks) == 420


def test_colours_are_apart_in_grey_or_have_another_dash() -> None:
    from matplotlib.colors import to_rgb

    grey = [float(np.dot(to_rgb(theme.system_style(i).colour), (0.299, 0.587, 0.114))) for i in range(7)]
    for i in range(7):
        assert grey[i] < 0.72, "visible on white"
        for j in range(i):
            assert abs(grey[i] - grey[j]) > 0.1 or theme.system_style(i).dash != theme.system_style(j).dash


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_systems_are_named_beside_their_lines(count: int) -> None:
    several = [plain(f"system {i}", 3.0 * i) for i in range(count)]
    ax = plots.curves(several, pareto=False)
    assert ax.get_legend() is None
    assert sorted(names(ax)) == [f"system {i}" for i in range(count)]
    ax.figure.draw_without_rendering()
    own = {f"system {i}": line for i, line in enumerate(line for line in ax.lines if line.get_marker() != "None")}
    for text in ax.texts:
        box = text.get_window_extent()
        inside = ax.get_window_extent()
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert inside.y0 <= box.y0 <= box.y1 <= inside.y1
        away = {}
        for name, line in own.items():
            places = ax.transData.transform(line.get_xydata())
            places = np.concatenate([np.linspace(a, b, 99) for a, b in pairwise(places)])
            beside = np.maximum(np.maximum((box.x0, box.y0) - places, places - (box.x1, box.y1)), 0)
            away[name] = np.hypot(*beside.T).min()
        assert min(away, key=away.get) == text.get_text(), "a name stands nearest to its own line"
        assert min(away.values()) > 0, "and covers none"


def test_settings_are_written_beside_their_points() -> None:
    ax = plots.curves([plain("a", 0)], settings=True, pareto=False)
    places = {t.get_text(): t.xy for t in ax.texts}
    assert places["k=0"] == (0.8, 22.0)
    assert places["k=3"] == (3.2, 28.0)


def test_settings_are_written_even_where_there_is_no_room() -> None:
    close = curve("a", [((1000.0 + k,), (20 + k / 100,)) for k in range(60)])
    ax = plots.curves([close], settings=True, pareto=False)
    assert {f"k={k}" for k in range(60)} <= set(names(ax))


def test_names_are_shown_as_they_are() -> None:
    long = "exp/2024-05-01/wmt19-en-de/checkpoint_best/wait-k.evaluated.final-"
    odd = ["_hidden $x_1$ \\alpha", "two\nlines", f"{long}a", f"{long}b"]
    shown = theme.shorten_names(odd)
    assert shown[:2] == ["_hidden $x_1$ \\alpha", "two lines"]
    assert shown[2] != shown[3]
    assert all(len(name) <= theme.LONGEST for name in shown)
    alike = ["x" * 60 + tail + "y" * 60 for tail in "ab"]
    assert theme.shorten_names(alike) == alike
    ax = plots.curves([plain(name, i) for i, name in enumerate(odd)])
    assert set(shown) <= set(names(ax))
    ax.figure.draw_without_rendering()  # $ is no mathematics


def test_negative_latency_has_a_line_at_zero() -> None:
    below = plots.curves([curve("a", [((-500.0,), (20.0,)), ((1000.0,), (25.0,))])])
    assert [0, 0] in [list(line.get_xdata()) for line in below.lines]
    above = plots.curves([curve("a", [((500.0,), (20.0,)), ((1000.0,), (25.0,))])])
    assert [0, 0] not in [list(line.get_xdata()) for line in above.lines]


def test_bands_of_a_shared_task() -> None:
    ax = plots.curves([plain("a", 0, latency="LongYAAL")], bands="iwslt26")
    assert {"low: up to 2 s", "high: up to 4 s"} <= set(names(ax))
    at = [list(line.get_xdata()) for line in ax.lines]
    assert [2.0, 2.0] in at
    assert [4.0, 4.0] in at
    with pytest.raises(lagging.UsageError, match="iwslt26 judges LongYAAL in seconds, and these curves are of LAAL"):
        plots.curves([plain("a", 0)], bands="iwslt26")
    with pytest.raises(lagging.UsageError, match="Did you mean iwslt26"):
        plots.curves([plain("a", 0, latency="LongYAAL")], bands="iwslt62")


def test_what_cannot_be_in_one_figure_is_refused() -> None:
    with pytest.raises(lagging.UsageError, match="several units: ms, token"):
        plots.curves([plain("a", 0), plain("b", 0, unit="token")])
    with pytest.raises(lagging.UsageError, match="several metrics of latency: LAAL, DAL"):
        plots.curves([plain("a", 0), plain("b", 0, latency="DAL")])
    with pytest.raises(lagging.UsageError, match="nothing to draw"):
        plots.curves([])


def test_axes_that_are_given_are_drawn_on_and_settings_stay() -> None:
    before = dict(mpl.rcParams)
    left, right = Figure(figsize=(9, 4)).subplots(1, 2)
    assert plots.curves([plain("a", 0)], left) is left
    assert plots.ecdf({"a": ANTAGONIST}, right) is right
    assert dict(mpl.rcParams) == before


# ---- DAL against AL -------------------------------------------------------------------------------------------


def families(y: float = 1.0):
    lengths = [7, 9, 12, 16, 21]
    sizes = {"source_lengths": lengths, "target_lengths": [max(1, int(y * n)) for n in lengths]}
    kinds = {"wait-k": policies.wait_k, "antagonist": policies.antagonist}
    return {name: [(f"{k}", kind(k).run(**sizes)) for k in (1, 3, 5)] for name, kind in kinds.items()}


def test_al_against_dal() -> None:
    found = lines(families(), resamples=100)
    ax = plots.al_dal(found)
    for line, marker in zip(found.lines, "os", strict=True):
        points = [[p.latency.value, p.quality.value] for p in line.curve.points]
        assert drawn(ax, marker).tolist() == points
        slope, start = line.slope.value, line.start.value
        ends = [[x, start + slope * x] for x in (points[0][0], points[-1][0])]
        assert any(np.allclose(one.get_xydata(), ends) for one in ax.lines if len(one.get_xydata()) == 2)
        told = f"{line.system}, slope {slope:.2f} [{line.slope.low:.2f}, {line.slope.high:.2f}]"
        assert told in [name.replace("\n", ", ") for name in names(ax)]
    assert ax.get_xlabel() == "AL ↓ (source tokens, ideal clock)"
    assert "DAL = AL" in names(ax)
    assert ax.get_xlim() == ax.get_ylim()


def test_a_single_setting_has_no_slope_and_speech_is_in_seconds() -> None:
    one = curve("a", [((-1000.0,), (2000.0,))], "ms", "AL", "DAL")
    two = curve("b", [((1000.0,), (2500.0,)), ((2000.0,), (4500.0,))], "ms", "AL", "DAL")
    ax = plots.al_dal([one, two])
    assert drawn(ax, "o").tolist() == [[-1.0, 2.0]]
    assert drawn(ax, "s").tolist() == [[1.0, 2.5], [2.0, 4.5]]
    assert {"a", "b, slope 2.00"} <= {name.replace("\n", ", ") for name in names(ax)}
    assert [[1.0, 2.5], [2.0, 4.5]] in [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == ""]
    assert ax.get_xlim()[0] < -1


def test_identity_needs_one_unit() -> None:
    with pytest.raises(lagging.UsageError, match="BLEU is not measured in what LAAL is"):
        plots.al_dal([plain("a", 0)])
    with pytest.raises(lagging.UsageError, match="no setting has both AL and DAL"):
        plots.al_dal([curve("a", [((1.0,), (float("nan"),))], "token", "AL", "DAL")])


# ---- distributions --------------------------------------------------------------------------------------------


def share(values, at: float) -> float:
    return sum(value <= at for value in values) / len(values)


def height(line, at: float) -> float:
    x, y = np.asarray(line.get_xydata()).T
    return float(y[np.flatnonzero(x <= at)[-1]])


def test_distribution_of_token_lags_with_ties() -> None:
    run = Run.from_delays([[4, 4, 4, 4, 5], [1, 2, 3, 4, 5]], source_length=[5, 5])
    lags = [4, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    ax = plots.ecdf({"a": run})
    line, marks = ax.lines[:2]
    for at in (1, 1.5, 2, 3, 3.5, 4):
        assert height(line, at) == pytest.approx(share(lags, at))
    wanted = [lagging.score(run, [f"LagPercentile(p={p})"])[f"LagPercentile(p={p})"].value for p in (50, 90, 99)]
    assert np.allclose(marks.get_xydata(), np.array([wanted, [0.5, 0.9, 0.99]]).T)
    assert ax.get_xlabel() == "lag of a target token ↓ (source tokens, ideal clock)"
    assert ax.get_ylabel() == "share of target tokens"
    assert {"p50", "p90", "p99", "a"} == set(names(ax))


def test_distribution_of_segments_in_seconds() -> None:
    run = Run.from_delays([[1000], [2000], [], [2000]], source_length=[4000] * 4, unit="ms")
    scores = lagging.score(run, ["DAL"])
    for given in (run, scores, scores["DAL"]):
        ax = plots.ecdf({"a": given}, metric="DAL", marks=(50,))
        assert ax.lines[0].get_xydata().tolist() == [[1, 0], [1, 1 / 3], [2, 1 / 3], [2, 1]]
        assert ax.lines[1].get_xydata().tolist() == [[2.0, 0.5]]
        assert ax.get_xlabel() == "DAL ↓ (s, ideal clock)"
        assert ax.get_ylabel() == "share of segments"
        assert ax.get_title(loc="left") == "a: no value in 1 segment"


def test_a_long_tail_is_counted_not_drawn() -> None:
    delays = [[1000.0 + 10 * i] for i in range(200)]
    delays[7] = [90_000.0]
    ax = plots.ecdf({"a": Run.from_delays(delays, source_length=[90_000] * 200, unit="ms")})
    assert ax.get_xlim()[1] < 5
    assert ax.get_title(loc="left") == "1 target token beyond the axis, of 1.00 s to 90.00 s"


def test_clock_and_parameters_of_pooled_lags_are_in_the_title() -> None:
    run = Run.from_delays([[1000, 2000]], source_length=[2000], elapsed=[[1100, 2300]], unit="ms")
    ax = plots.ecdf({"a": run}, metric="LagPercentile(p=10, effective=True, clock=elapsed)")
    assert ax.get_xlabel() == "lag of a target token (effective=True) ↓ (s, elapsed clock)"
    with pytest.raises(lagging.UsageError, match="no system has a value of DAL"):
        plots.ecdf({"a": Run.from_delays([[]], source_length=[2])}, metric="DAL")
    with pytest.raises(lagging.UsageError, match="several units: ms, token"):
        plots.ecdf({"a": run, "b": ANTAGONIST})


def test_a_system_without_values_is_told_and_keeps_its_place() -> None:
    nothing = Run.from_delays([[]], source_length=[5])
    ax = plots.ecdf({"a": nothing, "b": ANTAGONIST})
    assert ax.get_title(loc="left") == "a: no value in 1 segment"
    assert ax.lines[1].get_marker() == theme.system_style(1).marker
    assert "a" not in names(ax)


# ---- over a recording -----------------------------------------------------------------------------------------


def talk(drift: float, **more) -> Run:
    offset = [10_000.0 * i for i in range(24)] * 2
    delays = [[1000 + drift * at / 60_000 + 2000 * t for t in range(4)] for at in offset]
    documents = ["a"] * 24 + ["b"] * 24
    return Run.from_delays(
        delays, source_length=[8000] * 48, unit="ms", offset=offset, document=documents, seg="given", **more
    )


def test_lag_over_time() -> None:
    runs = {"steady": talk(0), "slower": talk(600)}
    ax = plots.lag_over_time(runs)
    assert ax.get_xlabel() == "time in each of 2 recordings (min)"
    assert ax.get_ylabel() == "AL_y ↓ (s, ideal clock)"
    assert {name.replace("\n", ", ") for name in names(ax)} == {"steady, +0.00 s/min", "slower, +0.60 s/min"}
    dots = [line for line in ax.lines if len(line.get_xydata()) == 48]
    straight = [line for line in ax.lines if len(line.get_xydata()) == 2]
    for (name, run), dotted, line in zip(runs.items(), dots, straight, strict=True):
        lags = lagging.score(run, ["AL_y"])["AL_y"].segments
        middle = (np.asarray(run.offset) + 3000) / 60_000  # four tokens, due at 0, 2, 4 and 6 s
        assert np.allclose(dotted.get_xydata(), np.array([middle, lags / 1000]).T)
        (x0, y0), (x1, y1) = line.get_xydata()
        assert (x0, x1) == (middle.min(), middle.max())
        assert (y1 - y0) / (x1 - x0) == pytest.approx(lagging.score(run, ["LagDrift"])["LagDrift"].value / 1000), name
        assert (y0 + y1) / 2 == pytest.approx(np.mean(lags) / 1000)


def test_a_short_recording_is_in_seconds_and_placed_by_its_end() -> None:
    run = Run.from_delays(
        [[500], [700]], source_length=[1000, 1000], unit="ms", recording_end=[5000, 3000], document="aa", seg="given"
    )
    ax = plots.lag_over_time({"a": run}, drift=None)
    assert ax.lines[0].get_xydata().tolist() == [[0.0, 0.5], [2.0, 0.7]]
    assert ax.get_xlabel() == "time in the recording (s)"
    assert names(ax) == ["a"]


def test_drift_has_the_clock_of_the_lags() -> None:
    run = talk(0)
    late = talk(0, elapsed=[[g + at / 100 for g in row] for row, at in zip(run.delays, run.offset, strict=True)])
    ax = plots.lag_over_time({"a": late}, metric="AL_y(clock=elapsed)")
    assert names(ax) == ["a\n+0.60 s/min"]
    assert ax.get_ylabel() == "AL_y ↓ (s, elapsed clock)"
    assert any("LagDrift" in line and "clock:elapsed" in line for line in plots.signatures(ax))


def test_segments_without_a_place_are_refused() -> None:
    with pytest.raises(lagging.MetricError, match="a: its segments were not cut from recordings"):
        plots.lag_over_time({"a": ANTAGONIST})


def test_a_recording_without_values_is_told() -> None:
    nothing = Run.from_delays([[]], source_length=[8000], unit="ms", offset=[0], seg="given")
    ax = plots.lag_over_time({"a": nothing, "b": talk(0)})
    assert ax.get_title(loc="left") == "a: no value in 1 segment"
    assert names(ax) == ["b\n+0.00 s/min"]
    with pytest.raises(lagging.UsageError, match="no segment has a value of AL_y"):
        plots.lag_over_time({"a": nothing})


# ---- one sentence ---------------------------------------------------------------------------------------------


def by_label(ax, start: str):
    (found,) = [line for line in ax.lines if line.get_label().startswith(start)]
    return np.asarray(found.get_xydata())


def test_timeline_of_the_antagonist() -> None:
    ax = plots.timeline(timeline(ANTAGONIST, 0))
    rows = np.arange(1, 6)
    assert by_label(ax, "written").tolist() == np.array([[4, 4, 4, 4, 5], rows]).T.tolist()
    assert by_label(ax, "if writing").tolist() == np.array([[4, 5, 6, 7, 8], rows]).T.tolist()
    assert by_label(ax, "ideal").tolist() == np.array([[0, 1, 2, 3, 4], rows]).T.tolist()
    assert by_label(ax, "the largest").tolist() == [[4, 1]]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first token is on top"
    lags = [t.get_text() for t in ax.texts]
    assert lags == ["ℓ", "4.00", "3.00", "2.00", "1.00", "1.00", "ℓ'", *["4.00"] * 5]
    (top,) = ax.child_axes
    assert [t.get_text() for t in top.get_xticklabels()] == ["ich", "sah", "eine", "schwarze", "Katze"]
    assert top.get_xticks().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert ax.get_title() == "segment 0:  AP 0.84,  AL 2.20,  DAL 4.00"


def test_bars_are_the_lags() -> None:
    ahead = Run.from_delays([[1, 2, 3]], source_length=[6])
    ax = plots.timeline(timeline(ahead, 0))
    effective, real = ([[float(x) for x, _ in path] for path in bars.get_segments()] for bars in ax.collections)
    assert real == [[0, 1], [2, 2], [3, 4]], "from g to the ideal, where it was ahead"
    assert effective == [[1, 1], [2, 3], [4, 5]]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["1", "2", "3"]
    assert "−1.00" in [t.get_text() for t in ax.texts]


def test_speech_is_in_seconds_and_long_sentences_get_room() -> None:
    speech = Run.from_delays([[1500, 2500]], source_length=[3000], unit="ms", prediction=["a b"], source=["x.wav"])
    ax = plots.timeline(timeline(speech, 0))
    assert by_label(ax, "written")[:, 0].tolist() == [1.5, 2.5]
    assert ax.get_xlabel() == "time (s, ideal clock)"
    assert ax.get_title() == "segment 0:  AP 0.67,  AL 1.25 s,  DAL 1.50 s"
    assert not ax.child_axes
    words = " ".join(f"word{i}" for i in range(60))
    long = policies.wait_k(5).run(source=[words], target=[words])
    ax = plots.timeline(timeline(long, 0))
    ax.figure.draw_without_rendering()
    for labels in (ax.get_yticklabels(), ax.child_axes[0].get_xticklabels()):
        boxes = [t.get_window_extent() for t in labels]
        assert len(boxes) == 60
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_words_before_their_segment_are_seen() -> None:
    early = Run.from_delays([[-500, 1500]], source_length=[3000], unit="ms", seg="given")
    assert plots.timeline(timeline(early, 0)).get_xlim()[0] < -0.5
    assert plots.timeline(timeline(ANTAGONIST, 0)).get_xlim()[0] == 0


def test_nothing_written_is_said() -> None:
    ax = plots.timeline(timeline(Run.from_delays([[]], source_length=[3], source=["a b c"]), 0))
    assert [t.get_text() for t in ax.texts] == ["nothing was written"]
    assert ax.get_title() == "segment 0:  AP –,  AL –,  DAL –"


# ---- words ----------------------------------------------------------------------------------------------------


def test_arabic_is_in_the_font_that_matplotlib_brings() -> None:
    words = "رأيت قطة سوداء"
    run = Run.from_delays([[1, 2, 3]], source_length=[3], prediction=[words], source=["a b c"])
    ax = plots.timeline(timeline(run, 0))
    assert [t.get_text() for t in ax.get_yticklabels()] == words.split()
    ax.figure.draw_without_rendering()  # no warning of a missing glyph


def test_what_no_font_has_is_warned_of_once_and_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theme, "_fallback_fonts", lambda first: ("DejaVu Sans",))  # as if no other font were installed
    run = Run.from_delays([[1, 2]], source_length=[3], prediction=["黑 cat"], source=["我 看见 x"])
    line = timeline(run, 0)
    with pytest.warns(UserWarning, match=r"no installed font has 我看见黑 \(4 characters in all\)\n  fix: ") as told:
        ax = plots.timeline(line)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert [t.get_text() for t in ax.get_yticklabels()] == ["[1]", "cat"]
    assert [t.get_text() for t in ax.child_axes[0].get_xticklabels()] == ["[1]", "[2]", "x"]
    ax.figure.draw_without_rendering()  # and matplotlib does not warn again
    with pytest.warns(UserWarning, match="fix: install a font"):
        ax = plots.curves([plain("系统 A", 0)])
    assert "�� A" in names(ax)


def test_another_font_that_is_installed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    have = {"DejaVu Sans": frozenset("ab"), "Other Sans": frozenset("cd"), "Third": frozenset("e")}
    monkeypatch.setattr(theme, "_characters", have.__getitem__)
    monkeypatch.setattr(theme, "_fallback_fonts", lambda first: tuple(have))
    letters = theme.Fonts(["abc d"])
    assert letters.families == ["DejaVu Sans", "Other Sans"]
    assert letters.can_draw("abcd")
    artist = Text()
    letters.write(artist, "a$c$")
    assert artist.get_fontfamily() == letters.families
    assert not artist.get_parse_math()


def test_fonts_are_tried_in_the_same_order_on_every_call() -> None:
    order = theme._fallback_fonts(("DejaVu Serif", "No Such Font"))
    assert order[0] == "DejaVu Serif"
    assert "DejaVu Sans Mono" in order[1:]
    assert not any(name.startswith("Last Resort") for name in order), "whose letters are boxes"
    rest = [("Sans" not in name, name) for name in order[1:]]
    assert rest == sorted(rest)


# ---- files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_files_are_the_same_bytes_every_time(ending: str, tmp_path: Path) -> None:
    one, other = tmp_path / f"one.{ending}", tmp_path / f"other.{ending}"
    plots.save(plots.ecdf({"a": ANTAGONIST}), one, dpi=50)
    if ending == "pdf":
        time.sleep(1.1)  # a second later, in the next second
    plots.save(plots.ecdf({"a": ANTAGONIST}).figure, other, dpi=50)
    data = one.read_bytes()
    assert data == other.read_bytes()
    signature = plots.signatures(plots.ecdf({"a": ANTAGONIST}))[0]
    assert signature.startswith("LagPercentile|unit:token|")
    if ending != "pdf":  # whose strings are encoded
        assert signature.encode() in data
    assert not any(word in data for word in (b"CreationDate", b"<dc:date>", b"Type3"))


def test_saving_changes_no_settings_and_leaves_no_half_file(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    ax = plots.ecdf({"a": ANTAGONIST})
    plots.save(ax, tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before
    with pytest.raises(lagging.UsageError, match=r"no format is called 'jpg'. Did you mean png"):
        plots.save(ax, tmp_path / "a.jpg")
    with pytest.raises(lagging.UsageError, match="cannot write"):
        plots.save(ax, tmp_path / "nowhere" / "a.png")
    ax.set_title("$\\nonsense$")
    with pytest.raises(ValueError, match="nonsense"):
        plots.save(ax, tmp_path / "b.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_signatures_of_all_axes() -> None:
    part, other = Figure().subfigures(1, 2)
    left, right = part.subplots(), other.subplots()
    plots.ecdf({"a": ANTAGONIST}, left, metric="DAL")
    plots.timeline(timeline(ANTAGONIST, 0), right)
    assert [line.partition("|")[0] for line in plots.signatures(left)] == ["DAL", "AP", "AL"]


def test_without_matplotlib_there_is_a_line_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import lagging\nfrom lagging import plots\n"
        "run = lagging.Run.from_delays([[1]], source_length=[1])\n"
        "try: plots.ecdf({'a': run})\n"
        "except lagging.MissingExtraError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "matplotlib is not installed\n  fix: pip install 'lagging[plot]'\n"


def test_nothing_is_loaded_before_it_is_drawn() -> None:
    code = (
        "import lagging, lagging.render.plots as p, sys; print('matplotlib' in sys.modules)\n"
        "p.ecdf({'a': lagging.Run.from_delays([[1]], source_length=[1])}); print('matplotlib.pyplot' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\nFalse\n", "and nothing of matplotlib that keeps figures"


def test_no_figure_warns(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        several = [plain(f"_{i} $", i) for i in range(3)]
        figures = [
            plots.curves(several, settings=True),
            plots.ecdf({"_a": ANTAGONIST}),
            plots.lag_over_time({"": talk(1)}),
        ]
        for place, ax in enumerate(figures):
            plots.save(ax, tmp_path / f"{place}.png", dpi=40)


@pytest.mark.parametrize("draw", [plots.ecdf, plots.lag_over_time])
def test_systems_have_names(draw) -> None:
    with pytest.raises(lagging.UsageError, match="systems are given by name"):
        draw(lagging.Run.from_delays([[1, 2]], source_length=[2]))
