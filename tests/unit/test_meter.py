# SPDX-License-Identifier: Apache-2.0
"""The meter: what it measures is what `lagging score` finds in its log."""

import asyncio
import gc
import json
import logging
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import lagging
from lagging.errors import MissingExtraError, UsageError
from lagging.meter import Measures, Meter, Sketch
from lagging.meter.growing import GrowingLog
from lagging.meter.meter import SLOTS


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def speak(meter, clock, utterances=100, seed=1, words=12):
    """Utterances with appended and with replaced texts, words that grow, and words that are erased."""
    dice = random.Random(seed)
    for number in range(utterances):
        with meter.utterance() as utterance:
            text: list[str] = []
            for _ in range(words):
                ms = dice.choice([20, 333.3333333, dice.uniform(50, 900)])
                clock.now += ms / 1000 + dice.uniform(0, 0.2)
                utterance.heard(ms)
                if number % 3:
                    utterance.wrote(dice.choice([" eins", " zw", "ei", " drei,", "", " "]), final=dice.random() < 0.1)
                else:
                    text = text[: len(text) - dice.randint(0, 2)] + dice.choices("abcde", k=dice.randint(0, 3))
                    utterance.shows(" ".join(text))
            clock.now += dice.uniform(0, 1)


def bucket_of(value, exact):
    """Whether a percentile of a sketch is within its promise, between the neighbours of the exact one."""
    return abs(value - exact) <= 0.004 * abs(exact) + 1e-9


# ---- the log says the same ----------------------------------------------------------------------------------------


def test_the_log_scored_afterwards_equals_the_snapshot(tmp_path):
    clock, log = Clock(), tmp_path / "live.stream.jsonl"
    with Meter("live", log=log, clock=clock) as meter:
        speak(meter, clock)
        snapshot = meter.snapshot()
    run = lagging.read(log)
    scores = lagging.score(run, list(snapshot["scores"]))
    assert len(scores) == 6
    for name, record in snapshot["scores"].items():
        score = scores[name]
        assert record["score"] == score.value, name  # to the last bit
        assert record["signature"] == str(score.signature)
        assert (record["n"], record["undefined"], record["unit"]) == (score.n, score.undefined, score.unit)
    assert snapshot["words"] == len(run.delays.values)
    assert snapshot["erased"] == run.erased.sum() > 0
    assert snapshot["revisions"] == run.revisions.sum() > 0
    assert snapshot["heard_ms"] == pytest.approx(run.source_length.sum())
    assert snapshot["utterances"] == len(run) == 100


def test_every_line_of_the_log_is_an_update_of_the_schema(tmp_path):
    import jsonschema

    clock, log = Clock(), tmp_path / "live.stream.jsonl"
    with Meter(log=log, clock=clock) as meter:
        speak(meter, clock, 10)
    schema = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "stream.schema.json").read_text("utf-8"))
    for line in log.read_text("utf-8").splitlines():
        jsonschema.validate(json.loads(line), schema)


def test_percentiles_are_those_of_the_pooled_words(tmp_path):
    clock, log = Clock(), tmp_path / "live.stream.jsonl"
    meter = Meter(log=log, clock=clock)
    speak(meter, clock, 150)
    snapshot = meter.snapshot()
    run = lagging.read(log)
    for name, clocked in (("lag", "ideal"), ("lag_elapsed", "elapsed"), ("lag_first", "first")):
        score = lagging.score(run, [f"LagPercentile(clock={clocked})"])[f"LagPercentile(clock={clocked})"]
        pooled = score.statistics.values
        assert snapshot[name]["n"] == len(pooled) > 700
        assert snapshot[name]["mean"] == pytest.approx(pooled.mean(), rel=1e-12)
        assert (snapshot[name]["least"], snapshot[name]["most"]) == (pooled.min(), pooled.max())
        for p in (50, 90, 99):
            exact = np.percentile(pooled, p, method="inverted_cdf")
            assert bucket_of(snapshot[name][f"p{p}"], exact), (name, p)
    meter.close()


def test_word_times_give_the_lag_behind_the_word(tmp_path):
    clock, log = Clock(), tmp_path / "captions.stream.jsonl"
    meter = Meter(log=log, clock=clock)
    utterance = meter.utterance("talk")
    for text in ("hello", " there", " friends"):
        clock.now += 0.5
        utterance.heard(500)
        clock.now += 0.05
        utterance.wrote(text)
    words = [(0, 300, "hello"), (350, 700, "there"), (800, 1200, "friends")]
    utterance.ended(words)
    meter.close()
    (tmp_path / "words.tsv").write_text("".join(f"{a / 1000}\t{b / 1000}\t{w}\n" for a, b, w in words))
    run = lagging.with_word_times(lagging.read(log), [[(a / 1000, b / 1000, w) for a, b, w in words]])
    assert meter.snapshot()["word_lag"]["mean"] == lagging.score(run, ["WordLag"])["WordLag"].value == 800 / 3
    with pytest.raises(UsageError, match="'two' is at 100 to 90 ms"):
        meter.utterance().ended([(0, 100, "one"), (100, 90, "two")])


@pytest.mark.parametrize("texts", [["今日は", "晴れ"], ["今日は", "です"]])
def test_scripts_without_spaces_are_counted_in_characters(tmp_path, texts):
    clock, log = Clock(), tmp_path / "ja.stream.jsonl"
    with Meter(log=log, clock=clock) as meter:
        for text in texts:
            clock.now += 1
            meter.heard(1000)
            meter.wrote(text)
        meter.ended()
        snapshot = meter.snapshot()
    assert snapshot["words"] == len("".join(texts))
    assert "level:char" in snapshot["scores"]["DAL"]["signature"]
    assert snapshot["scores"]["DAL"]["score"] == lagging.score(lagging.read(log), ["DAL"])["DAL"].value


def test_a_killed_process_leaves_a_log_that_can_be_scored(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    code = f"""
import lagging, sys
meter = lagging.Meter(log={str(log)!r})
for n in range(1000000):
    with meter.utterance() as u:
        for word in range(5):
            u.heard(100)
            u.wrote(" wort")
    if n == 20:
        print("go", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"go\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert log.read_bytes().endswith(b"}\n")
    run = lagging.read(log)
    assert len(run) > 20
    assert lagging.validate(log).faults == ()


def test_a_torn_last_line_is_removed_when_the_log_is_opened_again(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    whole = '{"time": 1, "audio": 1, "text": "a", "mode": "append", "recording": "x"}\n'
    log.write_text(whole + '{"time": 2, "aud' + "x" * 70_000)
    Meter(log=log).close()
    assert log.read_text() == whole
    log.write_text('{"time": 2, "aud')
    Meter(log=log).close()
    assert log.read_text() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_does_not_stop_the_service(caplog):
    meter = Meter(log="/dev/full")
    with caplog.at_level(logging.WARNING, "lagging"):
        for _ in range(3):
            meter.heard(100)
            meter.wrote(" a")
    meter.ended()
    snapshot = meter.snapshot()
    assert snapshot["log"] == {"lines": 0, "lost": 4, "error": "No space left on device"}
    assert snapshot["words"] == 3
    assert len(caplog.records) == 1


def test_a_log_that_cannot_be_opened_is_refused_at_once(tmp_path):
    with pytest.raises(lagging.LaggingError, match="cannot write"):
        Meter(log=tmp_path / "no" / "such" / "folder.jsonl")


def test_half_a_character_is_replaced_in_text_and_log(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    with Meter(log=log) as meter:
        meter.heard(100)
        meter.wrote(" a\ud800b")
    assert lagging.read(log).prediction.tolist() == ["a\ufffdb"]


# ---- windows, memory, threads -------------------------------------------------------------------------------------


def test_a_window_forgets_and_the_total_does_not():
    clock = Clock()
    meter = Meter(window=60, clock=clock)
    speak(meter, clock, 3)
    clock.now += 30
    assert meter.snapshot(recent=True)["utterances"] == meter.snapshot()["utterances"] == 3
    clock.now += 61
    speak(meter, clock, 2)
    recent = meter.snapshot(recent=True)
    assert (recent["utterances"], recent["window_s"]) == (2, 60)
    assert meter.snapshot()["utterances"] == 5
    clock.now += 3600
    assert meter.snapshot(recent=True)["lag"] == Sketch().summary()


def test_memory_does_not_grow_with_utterances():
    clock = Clock()
    meter = Meter(clock=clock, window=30)
    for _ in range(12):
        speak(meter, clock, 65, words=3)
        assert len(meter._pending) < 64
        assert len(meter._slots) <= SLOTS + 1
    assert max(len(sketch.counts) for sketch in meter.measures().sketches.values()) < 3000


def test_an_utterance_that_is_too_long_is_counted_and_logged(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    with Meter(log=log, limit=5) as meter:
        meter.heard(100)
        for _ in range(6):
            meter.wrote(" a")
        meter.ended()
        snapshot = meter.snapshot()
    assert (snapshot["too_long"], snapshot["ended"], snapshot["utterances"]) == (1, 1, 0)
    assert len(lagging.read(log).delays.values) == 6


def test_an_utterance_that_is_forgotten_is_not_open():
    meter = Meter()
    utterance = meter.utterance()
    utterance.heard(10)
    assert meter.snapshot()["open"] == 1
    del utterance
    gc.collect()
    snapshot = meter.snapshot()
    assert (snapshot["open"], snapshot["started"], snapshot["ended"]) == (0, 1, 0)


def test_threads_lose_nothing(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    meter = Meter(log=log)
    threads, utterances, words = 8, 10, 50
    one = meter.utterance("together")

    def work() -> None:
        for _ in range(utterances):
            with meter.utterance() as own:
                for _ in range(words):
                    own.heard(10)
                    own.wrote(" a")
                    one.heard(10)
                    one.wrote(" b")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    one.ended()
    meter.close()
    snapshot, calls = meter.snapshot(), threads * utterances * words
    assert snapshot["words"] == 2 * calls
    assert snapshot["heard_ms"] == 2 * 10 * calls
    assert snapshot["utterances"] == threads * utterances + 1
    assert snapshot["log"]["lines"] == 2 * calls + threads * utterances + 1
    scores = lagging.score(lagging.read(log), ["DAL"])
    assert scores["DAL"].value == snapshot["scores"]["DAL"]["score"]


def test_calls_without_an_utterance_go_on_when_another_thread_ends_it():
    meter = Meter()
    stop = threading.Event()

    def end() -> None:
        while not stop.is_set():
            meter.ended()

    ending = threading.Thread(target=end)
    ending.start()
    for _ in range(2000):
        meter.heard(1)
        meter.wrote(" a")
    stop.set()
    ending.join()
    meter.ended()
    assert meter.snapshot()["words"] == 2000
    assert meter.snapshot()["heard_ms"] == 2000


def test_tasks_of_asyncio_have_their_own_utterances():
    meter = Meter()

    async def speaker() -> None:
        async with meter.utterance() as utterance:
            for _ in range(5):
                utterance.heard(100)
                await asyncio.sleep(0)
                utterance.wrote(" a")

    async def everybody() -> None:
        await asyncio.gather(*(speaker() for _ in range(20)))

    asyncio.run(everybody())
    snapshot = meter.snapshot()
    assert (snapshot["utterances"], snapshot["words"], snapshot["open"]) == (20, 100, 0)


def test_measures_of_processes_add_up():
    clock = Clock()
    whole, *halves = (Meter(clock=clock) for _ in range(3))
    speak(halves[0], clock, 40, seed=1)
    speak(halves[1], clock, 30, seed=2)
    clock.now = 1000.0
    speak(whole, clock, 40, seed=1)
    speak(whole, clock, 30, seed=2)
    parts = [pickle.loads(pickle.dumps(half.measures())) for half in halves]
    joint, together = (parts[0] + parts[1]).snapshot(), whole.measures().snapshot()
    for name in ("lag", "lag_first"):
        assert joint[name] == together[name]
    assert joint["scores"]["DAL"]["score"] == together["scores"]["DAL"]["score"]
    assert Measures().snapshot()["scores"] == {}


def test_a_snapshot_is_json():
    clock = Clock()
    meter = Meter(clock=clock)
    for _ in range(2):
        text = json.dumps(meter.snapshot(), allow_nan=False)
        speak(meter, clock, 2)
        meter.utterance().ended()
    assert json.loads(text)["words"] > 0


def test_percentiles_need_words():
    meter = Meter()
    for n in range(64):
        assert meter.snapshot()["lag"]["p90"] is None
        assert (meter.snapshot()["lag"]["p50"] is None) == (n < 11)
        meter.heard(100)
        meter.wrote("a")
        meter.ended()
    assert meter.snapshot()["lag"]["p90"] == pytest.approx(100, rel=0.004)
    assert meter.snapshot()["lag"]["p99"] is None


def test_backlog_is_the_audio_that_waits():
    clock = Clock()
    meter = Meter(clock=clock)
    meter.heard(500)
    clock.now += 2.0
    assert meter.snapshot()["backlog_now_ms"] == pytest.approx(2000)
    meter.heard(1500)
    meter.wrote(" a")
    meter.ended()
    snapshot = meter.snapshot()
    assert snapshot["backlog_now_ms"] == 0
    assert snapshot["backlog"]["most"] == pytest.approx(500)


# ---- usage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ms", [-1, math.nan, math.inf])
def test_impossible_audio_is_refused(ms):
    meter = Meter()
    meter.heard(10)
    with pytest.raises(UsageError, match="audio cannot go from 10"):
        meter.heard(ms)
    with pytest.raises(UsageError, match="audio cannot go from 10 to 9 ms"):
        meter.heard(total=9)
    with pytest.raises(UsageError, match="how much more"):
        meter.heard()
    meter.heard(total=10)
    meter.wrote(" a")
    meter.ended()
    assert meter.snapshot()["heard_ms"] == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "spm"}, "words or characters"),
        ({"window": 0}, "seconds above 0"),
        ({"limit": 0}, "at least one update"),
        ({"metrics": ["MaxLag"]}, "cannot keep MaxLag"),
        ({"metrics": ["LagPercentile"]}, "cannot keep LagPercentile"),
        ({"metrics": ["DUL"]}, "DUL"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(lagging.LaggingError, match=message):
        Meter(**options)


@pytest.mark.parametrize(
    ("call", "value", "message"),
    [
        ("wrote", 3, "a text is a str, and not 3"),
        ("shows", None, "a text is a str, and not None"),
        ("heard", "x", "audio is a number of ms, and not 'x'"),
    ],
)
def test_values_of_the_wrong_type_are_refused_and_leave_no_trace(call, value, message, tmp_path):
    meter = lagging.Meter("m", log=tmp_path / "m.stream.jsonl")
    with pytest.raises(lagging.UsageError, match=message):
        getattr(meter, call)(value)
    assert meter.snapshot()["log"]["lines"] == 0


def test_an_utterance_that_has_ended_takes_no_more():
    utterance = Meter().utterance("u")
    utterance.ended()
    utterance.ended()
    with pytest.raises(UsageError, match="u has ended"):
        utterance.wrote("a")
    with pytest.raises(UsageError, match="u has ended"):
        utterance.heard(1)


def test_a_block_that_fails_ends_its_utterance():
    meter = Meter()

    def fail() -> None:
        with meter.utterance() as utterance:
            utterance.heard(100)
            utterance.wrote("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert meter.snapshot()["utterances"] == 1


# ---- exporters ----------------------------------------------------------------------------------------------------


def test_a_prometheus_scrape():
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.parser import text_string_to_metric_families

    from lagging.meter.prometheus import export

    clock, registry = Clock(), CollectorRegistry()
    meter = Meter("live", clock=clock)
    speak(meter, clock)
    collector = export(meter, registry)
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            page = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels["system"] == "live"
    }
    snapshot = meter.snapshot()
    assert samples["lagging_words_total", None] == snapshot["words"]
    assert samples["lagging_erased_total", None] == snapshot["erased"]
    assert samples["lagging_utterances_total", None] == 100
    assert samples["lagging_lag_seconds_count", None] == snapshot["lag"]["n"]
    assert samples["lagging_lag_seconds_sum", None] == pytest.approx(
        snapshot["lag"]["mean"] * snapshot["lag"]["n"] / 1000
    )
    assert samples["lagging_lag_seconds_bucket", "+Inf"] == snapshot["lag"]["n"]
    limits = [value for (name, limit), value in samples.items() if name == "lagging_lag_seconds_bucket" and limit]
    assert limits == sorted(limits)
    assert 0 < samples["lagging_lag_seconds_bucket", "1.0"] < snapshot["lag"]["n"]
    registry.unregister(collector)


def test_an_opentelemetry_reader():
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from lagging.meter.opentelemetry import export

    clock, reader = Clock(), InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = Meter("live", clock=clock, window=1e6)
    speak(meter, clock, 30)
    export(meter, provider)
    (resource,) = reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    points = {
        (metric.name, point.attributes.get("quantile")): point.value
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    snapshot = meter.snapshot()
    assert points["lagging.words", None] == snapshot["words"]
    assert points["lagging.revisions", None] == snapshot["revisions"]
    assert points["lagging.heard", None] == snapshot["heard_ms"] / 1000
    assert points["lagging.lag", "0.5"] == snapshot["lag"]["p50"] / 1000
    assert points["lagging.lag", "0.9"] == snapshot["lag"]["p90"] / 1000
    assert snapshot["lag"]["p99"] is None
    assert ("lagging.lag", "0.99") not in points
    provider.shutdown()


@pytest.mark.parametrize(
    ("module", "package"), [("prometheus", "prometheus_client"), ("opentelemetry", "opentelemetry")]
)
def test_without_the_package_the_extra_is_named(monkeypatch, module, package):
    import importlib

    exporter = importlib.import_module(f"lagging.meter.{module}")
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'lagging\[{module}\]'"):
        exporter.export(Meter())


# ---- a growing log ------------------------------------------------------------------------------------------------


def test_a_growing_log_is_measured_as_the_meter_measures_it(tmp_path):
    clock, log = Clock(), tmp_path / "live.stream.jsonl"
    with Meter("live", log=log, clock=clock) as meter:
        growing = GrowingLog(log)
        for part in range(4):
            speak(meter, clock, 10, seed=part)
            with log.open("ab") as file:
                file.write(b'{"time": 1')  # a line that is only half written
            assert growing.read()
            assert not growing.read()
            os.truncate(log, log.stat().st_size - 10)
            growing._offset, growing._rest = growing._offset - 10, b""
            mine, theirs = growing.snapshot(), meter.snapshot()
            for name in ("words", "erased", "utterances", "lag", "lag_elapsed", "lag_first", "backlog", "scores"):
                assert mine[name] == theirs[name], name
    assert len(mine["course"]) == mine["words"]


def test_what_has_not_ended_is_shown_as_if_it_ended_now(tmp_path):
    log = tmp_path / "talk.txt"
    log.write_text("1500.0000 0 1200  Good morn\n2600.0000 1200 2400 ing, dear\n4100.0000 2400 3900  friends and\nx\n")
    growing = GrowingLog(log)
    growing.read()
    snapshot = growing.snapshot()
    assert (snapshot["open"], snapshot["words"], snapshot["unread"]) == (1, 5, 1)
    log.write_text("\n".join(log.read_text().splitlines()[:3]) + "\n")
    assert snapshot["scores"]["DAL"]["score"] == lagging.score(lagging.read(log), ["DAL"])["DAL"].value
    growing.read()  # it is shorter now: it was begun anew
    assert growing.unread == 0


def test_words_and_characters_have_scores_of_their_own(tmp_path):
    clock, log = Clock(), tmp_path / "live.stream.jsonl"
    meter = Meter(log=log, clock=clock)
    for text in ("今日は", "", "good day", "晴れ"):
        clock.now += 1
        meter.heard(1000)
        if text:
            meter.wrote(text)
        meter.ended()
        snapshot = meter.snapshot()
    meter.close()
    scores = snapshot["scores"]
    assert (scores["DAL"]["n"], scores["DAL (word)"]["n"]) == (3, 1)
    assert "level:char" in scores["DAL"]["signature"]
    assert "level:word" in scores["DAL (word)"]["signature"]
    assert snapshot["utterances"] == 4
    growing = GrowingLog(log)
    growing.read()
    assert growing.snapshot()["scores"] == scores
