# SPDX-License-Identifier: Apache-2.0
"""Agents written for SimulEval, run by its own runner and by ours.

Run as a script, it runs cases with SimulEval's runner: `python simuleval_peer.py CASES.json`. That runner reads
`sys.argv`, so it has a process of its own.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

HEAD = """
from simuleval.agents import (
    AgentPipeline, SpeechToSpeechAgent, SpeechToTextAgent, TextToSpeechAgent, TextToTextAgent, TreeAgentPipeline
)
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.agents.states import AgentStates
from simuleval.data.segments import EmptySegment, SpeechSegment, TextSegment
from simuleval.utils import entrypoint
"""

AGENTS = {
    "wait_k": """
@entrypoint
class WaitK(TextToTextAgent):
    def __init__(self, args):
        super().__init__(args)
        self.waitk, self.shout = args.waitk, args.shout

    @staticmethod
    def add_args(parser):
        parser.add_argument("--waitk", type=int, default=1)
        parser.add_argument("--shout", action="store_true")

    def policy(self):
        source, target = self.states.source, self.states.target
        if len(source) - len(target) < self.waitk and not self.states.source_finished:
            return ReadAction()
        if len(target) >= len(source):
            return WriteAction("", finished=True)
        word = source[len(target)]
        last = self.states.source_finished and len(target) + 1 == len(source)
        return WriteAction(word.upper() if self.shout else word, finished=last)
""",
    "chunks": """
@entrypoint
class Chunks(TextToTextAgent):  # stateless, and writes many words at once
    def policy(self, states):
        if len(states.source) % 3 and not states.source_finished:
            return ReadAction()
        new = states.source[3 * len(states.target):]
        return WriteAction(f" {'  '.join(new[::-1])} ", finished=states.source_finished)
""",
    "verbose": """
@entrypoint
class Verbose(TextToTextAgent):  # says every word three times, one at a time, and so has much to say in the end
    def policy(self):
        states = self.states
        n = len(states.target)
        if n // 3 < len(states.source):
            last = states.source_finished and n == 3 * len(states.source) - 1
            return WriteAction(states.source[n // 3] + str(n % 3), finished=last)
        return WriteAction("", True) if states.source_finished else ReadAction()
""",
    "chars": """
@entrypoint
class Chars(TextToTextAgent):
    def policy(self):
        return WriteAction(self.states.source[-1] + " ", finished=self.states.source_finished)
""",
    "pieces": """
@entrypoint
class Pieces(TextToTextAgent):
    def policy(self):
        word = self.states.source[-1]
        return WriteAction(f"▁{word[:2]} {word[2:]}", finished=self.states.source_finished)
""",
    "pipeline": """
class Cut(TextToTextAgent):
    @staticmethod
    def add_args(parser):
        parser.add_argument("--cut-after", type=int, required=True)

    def __init__(self, args):
        super().__init__(args)
        self.many = args.cut_after

    def policy(self, states=None):
        states = states or self.states
        if len(states.source) >= self.many or states.source_finished:
            words, states.source = states.source, []
            return WriteAction("+".join(words), finished=states.source_finished)
        return ReadAction()


class Slow(TextToTextAgent):  # passes on one word at a time, so that something is left when the source has ended
    def reset(self):
        super().reset()
        self.queue, self.taken = [], 0

    def policy(self):
        states = self.states
        self.queue += [word for chunk in states.source[self.taken:] for word in chunk.split("+")]
        self.taken = len(states.source)
        ended = states.upstream_states[0].target_finished
        if not self.queue:
            return WriteAction("", True) if ended else ReadAction()
        word = self.queue.pop(0)
        return WriteAction(word, finished=ended and not self.queue)


class Count(TextToTextAgent):  # knows what the modules before it have seen
    def policy(self):
        states = self.states
        first, second = states.upstream_states
        if len(states.target) < len(states.source):
            said = f"{states.source[len(states.target)]}/{len(states.upstream_states)}"
            last = states.source_finished and len(states.target) + 1 == len(states.source)
            return WriteAction(said, finished=last)
        return WriteAction("", True) if states.source_finished else ReadAction()


@entrypoint
class Pipeline(AgentPipeline):
    pipeline = [Cut, Slow, Count]
""",
    "tree": """
class Root(TextToTextAgent):
    def policy(self):
        return WriteAction(self.states.source[-1], finished=self.states.source_finished)


class Loud(TextToTextAgent):
    def policy(self):
        said = self.states.source[-1].upper() + str(len(self.states.upstream_states))
        return WriteAction(said, finished=self.states.source_finished)


class Pairs(TextToTextAgent):
    def policy(self):
        if len(self.states.source) % 2 and not self.states.source_finished:
            return ReadAction()
        return WriteAction("-".join(self.states.source[-2:]), finished=self.states.source_finished)


@entrypoint
class Tree(TreeAgentPipeline):
    pipeline = {Root: [Loud, Pairs], Loud: [], Pairs: []}
""",
    "language": """
@entrypoint
class Language(SpeechToTextAgent):
    def policy(self):
        return WriteAction(str(self.states.tgt_lang), finished=self.states.source_finished)
""",
    "text_language": """
@entrypoint
class Language(TextToTextAgent):
    def policy(self):
        return WriteAction(str(self.states.tgt_lang), finished=self.states.source_finished)
""",
    "listener": """
@entrypoint
class Listener(SpeechToTextAgent):  # wait-k over chunks of speech
    def __init__(self, args):
        super().__init__(args)
        self.wait = args.wait_seconds

    @staticmethod
    def add_args(parser):
        parser.add_argument("--wait-seconds", type=float, default=0.5)

    def policy(self):
        states = self.states
        seconds = len(states.source) / states.source_sample_rate if states.source_sample_rate else 0
        if seconds < self.wait and not states.source_finished:
            return ReadAction()
        loud = sum(abs(sample) for sample in states.source[-100:])
        return WriteAction(f"{seconds:.3f} at {loud:.6f}", finished=states.source_finished)
""",
    "tail": """
@entrypoint
class Tail(SpeechToTextAgent):  # five words for every chunk, but one at a time
    def reset(self):
        super().reset()
        self.asked = 0

    def policy(self):
        self.asked += not self.states.source_finished or self.asked == 0
        n = len(self.states.target)
        return WriteAction(f"w{n}", finished=self.states.source_finished and n >= 5)
""",
    "endless": """
@entrypoint
class Endless(SpeechToTextAgent):  # never says that it has finished
    def policy(self):
        states = self.states
        if states.source_finished and states.target and states.target[-1].startswith("all"):
            return ReadAction()
        said = "all" if states.source_finished else "part"
        return WriteAction(f"{said}:{len(states.source)}", finished=False)
""",
    "sentences": """
@entrypoint
class Sentences(SpeechToTextAgent):  # finds sentences in a recording: has finished after every second chunk
    def reset(self):
        super().reset()
        self.chunks = 0

    def policy(self):
        self.chunks += 1
        said = f"{self.chunks}:{len(self.states.source)}"
        return WriteAction(said, finished=self.chunks == 2 or self.states.source_finished)
""",
    "pauses": """
@entrypoint
class Pauses(SpeechToTextAgent):  # the same, but has nothing to say to the first chunk of each
    def reset(self):
        super().reset()
        self.chunks = 0

    def policy(self):
        self.chunks += 1
        if self.chunks < 3 and not self.states.source_finished:
            return ReadAction()
        return WriteAction(f"{self.chunks}:{len(self.states.source)}", finished=True)
""",
    "speaker": """
@entrypoint
class Speaker(SpeechToSpeechAgent):
    def reset(self):
        super().reset()
        self.said = 0

    def policy(self, states=None):
        states = states or self.states
        finished = states.source_finished
        new = states.source[self.said:]
        if len(new) < 0.7 * (states.source_sample_rate or 1) and not finished:
            return ReadAction()
        self.said = len(states.source)
        samples = [-x for x in new for _ in range(3)][: 3 * len(new) // 2]
        return WriteAction(SpeechSegment(content=samples, sample_rate=24000, finished=finished), finished=finished)
""",
    "speaking_pipeline": """
class Hear(SpeechToTextAgent):
    def policy(self):
        return WriteAction(f"heard{len(self.states.source)}", finished=self.states.source_finished)


class Say(TextToSpeechAgent):
    def policy(self, states):
        text = states.source[-1]
        speech = SpeechSegment(content=[0.25] * 20 * len(text), sample_rate=8000, finished=states.source_finished)
        return WriteAction(speech, finished=states.source_finished)


@entrypoint
class Interpreter(AgentPipeline):
    pipeline = [Hear, Say]
""",
    "never": """
@entrypoint
class Never(TextToTextAgent):  # never says that it has finished
    asked = 0

    def policy(self):
        if not self.states.source_finished:
            return WriteAction("word", finished=False)
        type(self).asked += 1
        if self.asked == 1000:
            raise RuntimeError("asked 1000 times after the end")
        return ReadAction()
""",
    "raises": """
@entrypoint
class Raises(TextToTextAgent):
    def policy(self):
        if self.states.source == ["no"]:
            raise ValueError("not this one")
        if self.states.source == ["two"]:
            return "two"
        return WriteAction(self.states.source[-1], finished=self.states.source_finished)
""",
    "channels": """
@entrypoint
class Channels(SpeechToTextAgent):
    def policy(self):
        return WriteAction(type(self.states.source[0]).__name__, finished=self.states.source_finished)
""",
    "mute": """
@entrypoint
class Mute(SpeechToTextAgent):
    def policy(self):
        return WriteAction("", finished=True) if self.states.source_finished else ReadAction()
""",
}

OURS = {
    "our_wait_k": """
from lagging.agents.simuleval import for_simuleval

class WaitK:
    def __init__(self, k, mark="!", times=1):
        self.k, self.mark, self.times = k, mark, times

    def policy(self, state):
        place = len(state.target) // self.times
        if state.finished and place == len(state.source):
            return None
        if len(state.source) - place >= self.k or state.finished:
            return state.source[place] + self.mark
        return None

for_simuleval(WaitK)
""",
    "our_chars": """
from lagging.agents import Write
from lagging.agents.simuleval import for_simuleval

def policy(state):
    yield state.source[-1][:2]
    yield Write(state.source[-1][2:] + " ", finished=state.finished)

policy.chunkwise = True
for_simuleval(policy, joined_by="none")
""",
    "our_listener": """
from lagging.agents.simuleval import for_simuleval

class Listener:
    source = "speech"

    def reset(self):
        self.said = 0

    def policy(self, state):
        seconds = len(state.source) / state.sample_rate
        if self.said < 2 * seconds + 3 * state.finished:
            self.said += 1
            return f"{state.source.dtype}:{seconds:.3f}:{self.said}"
        return None

for_simuleval(Listener)
""",
    "our_early": """
from lagging.agents import Write
from lagging.agents.simuleval import for_simuleval

class Early:
    source = "speech"

    def policy(self, state):
        enough = len(state.source) > state.sample_rate / 2 or state.finished
        return Write("enough said", finished=True) if enough else "go on"

    chunkwise = True

for_simuleval(Early)
""",
    "our_speaker": """
from lagging.agents import Write
from lagging.agents.simuleval import for_simuleval

class Speaker:
    source = target = "speech"
    chunkwise = True

    def __init__(self, rate=8000):
        self.sample_rate = rate

    def reset(self):
        self.heard = 0

    def policy(self, state):
        new = state.source[self.heard:]
        self.heard = len(state.source)
        return Write(new[::2], finished=state.finished)

for_simuleval(Speaker)
""",
}


@dataclass
class Case:
    """A run: which agent, with what options, over what."""

    agent: str
    source: str = "text"
    options: dict[str, str] = field(default_factory=dict)
    unit: str = "word"
    chunk: int | None = None
    theirs: dict[str, str] = field(default_factory=dict)  # options of their runner alone
    only_ours: dict[str, str] = field(default_factory=dict)  # and of ours
    ends: bool = False  # whether their run breaks off

    @property
    def name(self) -> str:
        """Tells it from all others."""
        given = "".join(f"-{key}-{value}" for key, value in (self.options | self.only_ours).items())
        return f"{self.agent}-{self.unit}-{self.chunk}-{self.source}{given}".replace("/", "_")


TEXTS = ["what we see is not all", "no", "the cat sat on the mat and on the other mat", "  two   words  "]
REFERENCES = ["was wir sehen ist nicht alles", "nein", "die Katze sass auf der Matte", "zwei Wörter"]
LANGUAGES = ["de", "ja", "es"]


def material(folder: Path) -> None:
    """Write test sets and agents."""
    import sentencepiece
    import soundfile

    (folder / "text.src").write_text("\n".join(TEXTS) + "\n")
    (folder / "text.ref").write_text("\n".join(REFERENCES) + "\n")
    (folder / "languages").write_text("\n".join(LANGUAGES) + "\n")
    noise = np.random.default_rng(7)
    names = []
    for number, (rate, seconds) in enumerate([(16000, 2.3456), (8000, 1.0), (22050, 0.31)]):
        names.append(str(folder / f"{number}.wav"))
        soundfile.write(names[-1], noise.uniform(-0.5, 0.5, int(rate * seconds)), rate)
    (folder / "speech.src").write_text("\n".join(names) + "\n")
    (folder / "speech.ref").write_text("\n".join(REFERENCES[:3]) + "\n")
    soundfile.write(folder / "stereo.wav", noise.uniform(-0.5, 0.5, (800, 2)), 8000)
    (folder / "stereo.src").write_text(f"{folder / 'stereo.wav'}\n")
    (folder / "stereo.ref").write_text("zwei\n")
    with (folder / "pieces.model").open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*TEXTS, *REFERENCES]),
            model_writer=model,
            vocab_size=60,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    for name, code in AGENTS.items():
        (folder / f"{name}.py").write_text(HEAD + code)
    page = (Path(__file__).parents[1] / "docs" / "simuleval.md").read_text()
    (folder / "documented.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    for name, code in OURS.items():
        (folder / f"{name}.py").write_text(code)


def theirs(folder: Path, case: Case) -> None:
    """Run it by SimulEval's own command line, in this process."""
    from simuleval import cli
    from simuleval.utils import EVALUATION_SYSTEM_LIST

    EVALUATION_SYSTEM_LIST.clear()
    flags = [f"--{key}" if value == "true" else f"--{key}={value}" for key, value in case.options.items()]
    flags += [f"--{key}={value.format(folder=folder)}" for key, value in case.theirs.items()]
    chunk = [] if case.chunk is None else [f"--source-segment-size={case.chunk}"]
    files = [f"--source={folder / case.source}.src", f"--target={folder / case.source}.ref"]
    sys.argv = ["simuleval", f"--agent={folder / case.agent}.py", *files, *flags, *chunk]
    sys.argv += [f"--output={folder / 'theirs' / case.name}", f"--eval-latency-unit={case.unit}"]
    sys.argv += ["--no-scoring", "--no-progress-bar"]
    try:
        cli.main()
    except Exception as error:
        if not case.ends:
            raise
        (folder / "theirs" / case.name / "error").write_text(str(error))


def ours(folder: Path, case: Case, kind: str = "simuleval") -> list[dict]:
    """Run it by ours."""
    from lagging.agents.loading import Spec
    from lagging.agents.protocol import Traits
    from lagging.agents.runner.jobs import SentenceRunner, Settings

    joined_by, level = {"word": ("word", "word"), "char": ("none", "char"), "spm": ("spm", "token")}[case.unit]
    options = case.options | {key: value.format(folder=folder) for key, value in case.only_ours.items()}
    agent = Spec(kind, f"{folder / case.agent}.py", tuple(options.items())).make()
    traits = Traits.of(agent)
    settings = Settings(joined_by=joined_by, level=level, chunk=case.chunk)
    source = settings.open(f"{folder / case.source}.src", traits.source)
    references = (folder / f"{case.source}.ref").read_text().splitlines()
    out = folder / "ours" / case.name
    out.mkdir(parents=True, exist_ok=True)
    runner = SentenceRunner(agent, traits, source, references, settings, out)
    lines = [runner.translate(index)[0] for index in range(len(source))]
    (out / "instances.log").write_bytes(b"".join(lines))
    return [json.loads(line) for line in lines]


@contextlib.contextmanager
def importable(peer: Path) -> Iterator[None]:
    """Let this process import SimulEval; the modules of agents are removed again."""
    modules, path = set(sys.modules), [*sys.path]
    sys.path.append(str(peer))
    yield
    sys.path[:] = path
    if "simuleval.utils" in sys.modules:
        sys.modules["simuleval.utils"].EVALUATION_SYSTEM_LIST.clear()
    stems = {*AGENTS, *OURS, "agent", "documented"}
    for name in set(sys.modules) - modules:
        if name.split(".")[0].removeprefix("agent_") in stems:
            del sys.modules[name]


def log(folder: Path, case: Case) -> list[dict]:
    """The log of a run of SimulEval's runner."""
    text = (folder / "theirs" / case.name / "instances.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


def peers() -> Path | None:
    """Where SimulEval itself is installed, apart from everything else: see CONTRIBUTING.md."""
    folder = Path(os.environ.get("LAGGING_PEERS") or Path(sys.prefix) / "peers")
    return folder if (folder / "simuleval").is_dir() else None


def python(*arguments: str, peer: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with SimulEval."""
    paths = [str(Path(__file__).parent), str(peer), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, timeout=300
    )


def run_all(folder: Path, cases: list[Case], peer: Path) -> None:
    """Run cases by SimulEval's runner, in a process that finds it."""
    (folder / "theirs.json").write_text(json.dumps([asdict(case) for case in cases]))
    done = python(__file__, str(folder / "theirs.json"), peer=peer, cwd=folder)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    chosen = Path(sys.argv[1])
    for each in json.loads(chosen.read_text()):
        theirs(chosen.parent, Case(**each))
