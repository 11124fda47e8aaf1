# SPDX-License-Identifier: Apache-2.0
"""simulstream's speech processors in our runner, and our agents in simulstream's: the same words at the same times."""

import json
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import lagging
import simuleval_peer as peer

PEER = peer.peers()
pytestmark = [
    pytest.mark.skipif(
        PEER is None or not (PEER / "simulstream").is_dir(), reason="simulstream is not installed: see the Makefile"
    ),
    pytest.mark.slow,
]

PROCESSORS = '''
from simulstream.server.speech_processors import SpeechProcessor
from simulstream.server.speech_processors.incremental_output import IncrementalOutput


class Counting(SpeechProcessor):
    """A word for every chunk; every third chunk, the last word is replaced; two words at the end."""

    loaded = 0

    @classmethod
    def load_model(cls, config):
        cls.loaded += 1

    def __init__(self, config):
        super().__init__(config)
        assert self.loaded
        self.mark = config.mark
        self.clear()

    def set_source_language(self, language):
        pass

    def set_target_language(self, language):
        self.language = language

    def clear(self):
        self.words, self.heard, self.language = [], 0, None

    def tokens_to_string(self, tokens):
        return " ".join(tokens)

    def output(self, new, deleted=0):
        gone = self.words[len(self.words) - deleted :]
        self.words = self.words[: len(self.words) - deleted] + new
        return IncrementalOutput(new, self.tokens_to_string(new), gone, self.tokens_to_string(gone))

    def process_chunk(self, waveform):
        self.heard += 1
        loud = f"{abs(waveform).sum():.4f}"
        if self.words and self.heard % 3 == 0:
            return self.output([f"{self.language}{self.heard}{self.mark}", loud], 1)
        return self.output([] if self.heard == 2 else [f"w{self.heard}{self.mark}"])

    def end_of_stream(self):
        return self.output([f"end{len(self.words)}", "."])


class Broken(Counting):
    def process_chunk(self, waveform):
        raise RuntimeError("no model")
'''
OURS = """
class Listener:
    source = "speech"
    chunkwise = True

    def __init__(self, mark="!"):
        self.mark = mark

    def policy(self, state):
        from lagging.agents import Revise

        n = len(state.source) // 4000
        words = [f"{k}{self.mark}" for k in range(n)]
        return Revise([*words[:-1], f"new{n}"] if n % 3 == 0 else words)
"""
EXPORTED = "from lagging.agents.simulstream import for_simulstream\nfrom ours import Listener\n"
EXPORTED += "Processor = for_simulstream(Listener)\n"
SECONDS = (2.0, 1.3, 0.31)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulstream")
    dice = np.random.default_rng(3)
    names = []
    for number, seconds in enumerate(SECONDS):
        names.append(str(folder / f"{number}.wav"))
        with wave.open(names[-1], "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(dice.integers(-9000, 9000, int(16000 * seconds)).astype("<i2").tobytes())
    (folder / "wavs.txt").write_text("\n".join(names) + "\n")
    (folder / "processors.py").write_text(PROCESSORS)
    (folder / "ours.py").write_text(OURS)
    (folder / "exported.py").write_text(EXPORTED)
    return folder


def theirs(folder, kind, **config):
    """Run a processor by simulstream's own command line."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in {"type": kind, **config}.items())
    (folder / f"{kind}.yaml").write_text(text)
    log = folder / f"{kind}.json"
    log.unlink(missing_ok=True)  # simulstream appends
    code = "import sys; sys.path.insert(0, '.'); from simulstream.inference import cli_main; cli_main()"
    options = ["--speech-processor-config", f"{kind}.yaml", "--wav-list-file", "wavs.txt", "--tgt-lang", "de"]
    done = peer.python("-c", code, *options, "--metrics-log-file", str(log), peer=PEER, cwd=folder)
    assert done.returncode == 0, done.stderr
    return lagging.read(log, format="simulstream")


def ours(folder, *arguments):
    """Run an agent by `lagging run`."""
    out = folder / f"out-{len(list(folder.iterdir()))}"
    files = ["--source", "wavs.txt", "-o", str(out), "--no-scores"]
    done = peer.python("-m", "lagging", "run", *arguments, *files, peer=PEER, cwd=folder)
    return done, out / "instances.log"


def by_name(run):
    names = [Path(name).stem for name in run.document.tolist()]
    return {name: row for row, name in enumerate(names)}


def check_same(mine, other):
    rows = by_name(other)
    for row in range(len(mine)):
        there = rows[str(row)]
        assert mine.prediction[row] == other.prediction[there]
        assert mine.delays[row].tolist() == pytest.approx(other.delays[there].tolist())
        assert mine.erased[row] == other.erased[there]
        assert mine.revisions[row] == other.revisions[there]


@pytest.mark.parametrize("chunk", ["0.5", "0.25"])
def test_a_speech_processor_writes_the_same_at_the_same_times(folder, chunk):
    other = theirs(folder, "processors.Counting", speech_chunk_size=float(chunk), mark="?")
    options = ["-a", f"speech_chunk_size={chunk}", "-a", "mark=?", "-a", "tgt-lang=de"]
    done, log = ours(folder, "--simulstream", "processors.py:Counting", *options)
    assert done.returncode == 0, done.stderr
    mine = lagging.read(log)
    assert mine.erased.sum() > 0
    assert mine.source_length.tolist() == [1000 * seconds for seconds in SECONDS]
    check_same(mine, other)


def test_a_module_and_a_file_are_the_same(folder):
    options = ["-a", "speech_chunk_size=0.5", "-a", "mark=!", "--no-times"]
    done, first = ours(folder, "--simulstream", "processors.py:Counting", *options)
    assert done.returncode == 0, done.stderr
    done, second = ours(folder, "--simulstream", "processors:Counting", *options)
    assert done.returncode == 0, done.stderr
    assert first.read_text() == second.read_text()


def test_our_agent_in_simulstream_writes_the_same_at_the_same_times(folder):
    other = theirs(folder, "exported.Processor", speech_chunk_size=0.5, mark="+")
    done, log = ours(folder, "ours.py", "-a", "mark=+", "--chunk", "500")
    assert done.returncode == 0, done.stderr
    mine = lagging.read(log)
    assert mine.erased.sum() > 0
    check_same(mine, other)


def test_a_processor_that_fails_costs_its_recordings_alone(folder):
    done, log = ours(folder, "--simulstream", "processors.py:Broken", "-a", "speech_chunk_size=1", "-a", "mark=?")
    assert done.returncode == 1
    assert "no model" in done.stderr
    assert len(log.read_text().splitlines()) == len(SECONDS)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("processors.py:Count", {"speech_chunk_size": "1"}, "Did you mean Counting"),
        ("processors.py", {}, "give module:Class"),
        ("no_such_module:Class", {}, "no_such_module cannot be imported"),
        ("processors.py:Counting", {"mark": "?"}, "-a speech_chunk_size=1"),
        ("processors.py:Counting", {"mark": "?", "speech_chunk_size": "0"}, "-a speech_chunk_size=1"),
    ],
)
def test_bad_names_and_options_are_refused(folder, monkeypatch, name, options, message):
    from lagging.agents.simulstream import from_name

    monkeypatch.chdir(folder)
    with peer.importable(PEER), pytest.raises(lagging.UsageError, match=message):
        from_name(name, options)


def test_options_of_the_command_line_that_contradict_each_other():
    from lagging.cli.run import agent_spec, chunk_of_processor

    assert chunk_of_processor(agent_spec("m:C", False, None, ("speech-chunk-size=0.5",), simulstream=True)) == 500
    assert chunk_of_processor(agent_spec("m:C", False, None, (), simulstream=True)) is None
    with pytest.raises(lagging.UsageError, match="a number of seconds"):
        chunk_of_processor(agent_spec("m:C", False, None, ("speech_chunk_size=x",), simulstream=True))
    with pytest.raises(lagging.UsageError, match="does not go with --simuleval"):
        agent_spec("m:C", True, None, (), simulstream=True)
    with pytest.raises(lagging.UsageError, match="does not go with --remote"):
        agent_spec(None, False, "ws://127.0.0.1:1", (), simulstream=True)


HUGGING_FACE = """
import json, sys
from types import SimpleNamespace

import soundfile

from lagging.agents.hf import from_name
from lagging.agents.simulstream import for_simulstream


class Whisper:
    source = "speech"

    def __init__(self, model, f=4):
        self.policies = from_name(model, {"policy": "alignatt", "f": str(f), "max_tokens": "10"}).policies


model, *wavs = sys.argv[1:]
processor = for_simulstream(Whisper, joined_by="none")(SimpleNamespace(model=model, speech_chunk_size=0.2))
texts = []
for path in wavs:
    samples, _ = soundfile.read(path, dtype="float32")
    outputs = [processor.process_chunk(samples[n : n + 3200]) for n in range(0, len(samples), 3200)]
    outputs.append(processor.end_of_stream())
    processor.clear()
    kept = []
    for output in outputs:
        kept = kept[: len(kept) - len(output.deleted_tokens)] + output.new_tokens
    assert "".join(output.new_string for output in outputs) == processor.tokens_to_string(kept)
    texts.append(processor.tokens_to_string(kept))
print(json.dumps(texts))
"""


def test_a_model_of_hugging_face_in_simulstream_writes_the_same(tmp_path):
    pytest.importorskip("transformers", reason="NOT RUN: transformers is not installed")
    from hf_models import save, sounds
    from lagging.agents import Settings, run
    from lagging.agents.hf import from_name

    model, wavs = str(save("whisper", tmp_path / "whisper")), sounds(tmp_path, 3)
    done = peer.python("-c", HUGGING_FACE, model, *wavs, peer=PEER, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    agent = from_name(model, {"policy": "alignatt", "f": "4", "max_tokens": "10"})
    made = run(agent, wavs, settings=Settings(joined_by="none", chunk=200))
    assert json.loads(done.stdout) == made.prediction.tolist()
    assert any(made.prediction)


def test_without_simulstream_it_says_what_to_install(folder, monkeypatch):
    for name in ("simulstream", "simulstream.server.speech_processors"):
        monkeypatch.setitem(sys.modules, name, None)
    from lagging.agents.simulstream import for_simulstream, from_name

    with pytest.raises(lagging.UsageError, match="pip install --no-deps simulstream"):
        from_name("processors:Counting", {})
    with pytest.raises(lagging.UsageError, match="pip install --no-deps simulstream"):
        for_simulstream(object)


def test_the_page_lists_the_differences():
    from lagging.agents.simulstream import DIFFERENCES

    page = (Path(__file__).parents[2] / "docs" / "simulstream.md").read_text("utf-8")
    for name, (theirs, ours) in DIFFERENCES.items():
        assert f"| {name} | {theirs} | {ours} |" in page
