# SPDX-License-Identifier: Apache-2.0
"""SimulEval agents: their options, their faults, and SimulEval where it is not installed."""

import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import running
import simuleval_peer as peer
from lagging.agents.failures import Failure
from lagging.agents.loading import Spec
from lagging.agents.loop import drive
from lagging.agents.protocol import Revise, State, Traits, Write
from lagging.agents.sentence import Sentence
from lagging.agents.simuleval import Wrapped, for_simuleval, from_file
from lagging.agents.simuleval.arguments import Arguments, parse
from lagging.agents.simuleval.export import RunningSentence
from lagging.agents.simuleval.package import import_simuleval
from lagging.agents.sources import SpeechSource, TextSource
from lagging.errors import LaggingError, UsageError

HEARD = np.linspace(-0.5, 0.5, 1000, dtype=np.float32)


pytestmark = pytest.mark.usefixtures("simuleval")


@pytest.fixture
def write(tmp_path):
    def write(code, name="agent.py"):
        (tmp_path / name).write_text(peer.HEAD + code)
        return str(tmp_path / name)

    return write


def drove(agent, words="what we see", **how):
    sentence = Sentence(TextSource(words.split()), Traits.of(agent), **how)
    drive(agent, sentence)
    text, steps = sentence.hypothesis.finish()
    return text, [sentence.arrivals[step] for step in steps]


# ---- making one ---------------------------------------------------------------------------------------------------


def test_options_are_those_of_the_agent(write):
    file = write(peer.AGENTS["wait_k"])
    assert drove(from_file(file, {"waitk": "2"})) == ("what we see", [2, 3, 3])
    assert drove(from_file(file, {"waitk": "9", "shout": "TRUE"})) == ("WHAT WE SEE", [3, 3, 3])
    assert drove(Spec("simuleval", file, (("shout", "false"),)).make()) == ("what we see", [1, 2, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wait": "3"}, "WaitK has no option 'wait'. Did you mean waitk?"),
        ({"waitk": "three"}, "argument --waitk: invalid int value: 'three'"),
        ({"shout": "3"}, "shout is true or false, not '3'"),
        ({"stop-with-source": "1"}, "stop-with-source is true or false, not '1'"),
        ({"dtype": "fp8"}, "invalid choice: 'fp8'"),
    ],
)
def test_wrong_options(write, options, message):
    with pytest.raises(UsageError) as error:
        from_file(write(peer.AGENTS["wait_k"]), options)
    assert message in str(error.value)


def test_an_option_that_is_needed(write):
    with pytest.raises(UsageError, match="Pipeline needs an option: -a cut-after=…"):
        from_file(write(peer.AGENTS["pipeline"]), {})


def test_options_of_every_kind():
    class Agent:
        @staticmethod
        def add_args(parser):
            group = parser.add_argument_group("more")
            group.add_argument("--two_words", nargs=2)
            group.add_argument("-b", "--beam", type=int)
            group.add_argument("--cache", action="store_true", default=True)
            group.add_argument("--no-cache", dest="cache", action="store_false")
            group.add_argument("--tgt-lang", default="de")

    made = parse(Agent, {"two-words": "'a b' c", "beam": "-3", "no-cache": "true", "source_segment_size": "320"})
    assert (made.two_words, made.beam, made.cache, made.tgt_lang) == (["a b", "c"], -3, False, "de")
    assert made.source_segment_size == 320
    assert parse(Agent, {"b": "4"}).beam == 4
    assert (made.device, made.dtype, made.fp16) == ("cpu", None, False)
    with pytest.raises(UsageError, match="expected 2 arguments"):
        parse(Agent, {"two-words": "a"})


def test_a_flag_with_a_no():
    from argparse import BooleanOptionalAction

    def add_args(parser):
        parser.add_argument("--cache", action=BooleanOptionalAction, default=True)

    agent = SimpleNamespace(__name__="Agent", add_args=add_args)
    assert [parse(agent, {"cache": text}).cache for text in ("true", "false")] == [True, False]


def test_an_option_of_their_runner_is_asked_for(write):
    file = write("""
@entrypoint
class Sized(TextToTextAgent):
    def __init__(self, args):
        super().__init__(args)
        self.size, self.other = args.source_segment_size, getattr(args, "output", "none")

    def policy(self):
        return WriteAction(f"{self.size} {self.other}", True)
""")
    with pytest.raises(UsageError, match=r"SimulEval's option --source-segment-size.*-a source-segment-size=…"):
        from_file(file, {})
    assert drove(from_file(file, {"source-segment-size": "3"}))[0] == "3 none"
    with pytest.raises(AttributeError, match="no 'speed'"):
        _ = Arguments().speed


def test_it_is_moved_to_a_device(write):
    file = write("""
@entrypoint
class Moved(TextToTextAgent):
    def to(self, device, fp16=False):
        self.device = f"{device}/{fp16}"

    def policy(self):
        return WriteAction(self.device, True)
""")
    wanted = [({}, "cpu/False"), ({"device": "cuda:1", "dtype": "fp16"}, "cuda:1/True"), ({"fp16": "true"}, "cpu/True")]
    wanted += [({"dtype": "fp32", "fp16": "true"}, "cpu/False")]
    for options, where in wanted:
        assert drove(from_file(file, options))[0] == where


def test_which_class_is_meant(write):
    two = peer.AGENTS["chars"] + peer.AGENTS["chunks"]
    file = write(two)
    with pytest.raises(UsageError, match=r"has several agents: Chars, Chunks; say which: .*agent\.py:Chars"):
        from_file(file, {})
    assert from_file(f"{file}:Chunks", {}).system.__class__.__name__ == "Chunks"
    with pytest.raises(UsageError, match=r"has no SimulEval agent 'Chanks'\. Did you mean Chunks\?"):
        from_file(f"{file}:Chanks", {})
    unmarked = write(peer.AGENTS["chars"].replace("@entrypoint", ""), "unmarked.py")
    with pytest.raises(UsageError, match=r"marked by @entrypoint; say which class is meant: .*unmarked\.py:Chars"):
        from_file(unmarked, {})
    assert from_file(f"{unmarked}:Chars", {}).source == "text"
    with pytest.raises(UsageError, match=r"has no class that is marked by @entrypoint$"):
        from_file(write("", "empty.py"), {})


def test_an_agent_that_is_imported_from_beside_it_is_found_again(write, tmp_path):
    write(peer.AGENTS["chars"], "agent_beside.py")
    (tmp_path / "agent.py").write_text("from agent_beside import Chars\n")
    for _ in range(2):
        assert from_file(str(tmp_path / "agent.py"), {}).system.__class__.__name__ == "Chars"


def test_types_that_cannot_be_run(write):
    with pytest.raises(UsageError, match=r"several outputs \(text_text\): say which is meant, -a output-index=0"):
        from_file(write(peer.AGENTS["tree"]), {})
    odd = '\n@entrypoint\nclass Odd(TextToTextAgent):\n    target_type = "speech_text"\n'
    with pytest.raises(UsageError, match="Odd is from text to speech_text"):
        from_file(write(odd), {})


# ---- running one --------------------------------------------------------------------------------------------------


def test_traits(write):
    text = Traits.of(from_file(write(peer.AGENTS["chunks"]), {}))
    assert (text.source, text.target, text.chunkwise, text.must_finish, text.patience) == (
        *("text", "text", True, True),
        100,
    )
    speech = Traits.of(from_file(write(peer.AGENTS["speaking_pipeline"]), {}))
    assert (speech.source, speech.target, speech.must_finish, speech.patience) == ("speech", "speech", False, 4)


def test_several_words_at_a_time_are_pushed_one_by_one(write):
    agent = from_file(write(peer.AGENTS["pipeline"]), {"cut-after": "2"})
    sentence = Sentence(TextSource(["a", "b", "c", "d", "e"], chunk=5), Traits.of(agent))
    drive(agent, sentence)
    assert sentence.hypothesis.finish()[0] == "a/2 b/2 c/2 d/2 e/2"
    assert set(sentence.arrivals) == {5}


def test_an_empty_source(write):
    text, delays = drove(from_file(write(peer.AGENTS["wait_k"]), {}), "")
    assert (text, delays) == ("", [])


def test_too_few_languages(write, tmp_path):
    (tmp_path / "languages").write_text("de\n")
    agent = from_file(write(peer.AGENTS["text_language"]), {"tgt-lang": str(tmp_path / "languages")})
    assert drove(agent)[0] == "de de de"
    with pytest.raises(Failure, match="there is no language for sentence 1: tgt-lang has 1"):
        drove(agent, index=1)


def test_only_the_agent_s_time_counts(write):
    agent = from_file(write(peer.AGENTS["wait_k"]), {})
    state = State(["a"])
    agent.reset()
    answer = agent.policy(state)
    assert answer.answer == Write("a")
    assert 0 < answer.seconds < 60


def test_samples_come_as_lists_and_go_as_they_are(write):
    file = write("""
@entrypoint
class Echo(SpeechToSpeechAgent):
    def policy(self, states):
        assert type(states.source) is list and type(states.source[0]) is float
        new = states.source[len(states.target):]
        done = states.source_finished
        rate = states.source_sample_rate
        states.target += new
        return WriteAction(SpeechSegment(content=new, sample_rate=rate, finished=done), finished=done)
""")
    agent = from_file(file, {})
    sentence = Sentence(SpeechSource(HEARD.copy(), 1000, 300), Traits.of(agent))
    drive(agent, sentence)
    assert [len(piece) for piece in sentence.state.target] == [300, 300, 300, 100]
    assert np.array_equal(np.concatenate(sentence.state.target), HEARD)
    assert sentence.rates == [1000] * 4


@pytest.mark.parametrize(
    ("base", "content", "kind", "message"),
    [
        ("TextToTextAgent", "['a', 'b']", "wrong-type", "list, where a text was due"),
        ("SpeechToSpeechAgent", "[0.5] * 3", "wrong-type", "speech without a sample_rate"),
        ("TextToTextAgent", "1 / 0", "raised", "ZeroDivisionError"),
    ],
)
def test_bad_answers(write, base, content, kind, message):
    code = f"@entrypoint\nclass Bad({base}):\n    def policy(self):\n        return WriteAction({content}, True)\n"
    agent = from_file(write(code), {})
    speech = base.startswith("Speech")
    source = SpeechSource(HEARD.copy(), 1000, 300) if speech else TextSource(["a"])
    with pytest.raises(Failure) as error:
        drive(agent, Sentence(source, Traits.of(agent)))
    assert error.value.kind == kind
    assert message in str(error.value)


def test_speech_and_text_in_one_is_no_segment(write):
    file = write("""
from simuleval.data.segments import SpeechTextSegment

@entrypoint
class Both(TextToTextAgent):
    def pop(self, states=None):
        return SpeechTextSegment(TextSegment(content="a"), EmptySegment())
""")
    agent = from_file(file, {})
    with pytest.raises(Failure, match="a SpeechTextSegment, where a segment of text was due"):
        drive(agent, Sentence(TextSource(["a"]), Traits.of(agent)))


def test_a_pipeline_that_still_passes_things_on_after_the_end(write):
    file = write("""
class Hear(SpeechToTextAgent):
    def policy(self):
        return WriteAction(str(len(self.states.source)), finished=self.states.source_finished)


class Late(TextToTextAgent):  # says what it has got only when it has been asked three times without anything new
    waited = 0

    def policy(self):
        self.waited += 1
        if self.states.upstream_states[0].source_finished and self.waited % 4 == 0:
            return WriteAction("late", finished=True)
        return ReadAction()


@entrypoint
class Slow(AgentPipeline):
    pipeline = [Hear, Late]
""")
    agent = from_file(file, {})
    sentence = Sentence(SpeechSource(HEARD.copy(), 1000, 900), Traits.of(agent))
    drive(agent, sentence)
    assert sentence.hypothesis.finish()[0] == "late"


# ---- where SimulEval is not installed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missing", "fix"),
    [
        (["simuleval", "textgrid"], "pip install --no-deps simuleval textgrid"),
        (["simuleval"], "pip install --no-deps simuleval"),
        (["textgrid", "pandas"], "pip install --no-deps textgrid && pip install pandas"),
        (["pandas", "requests", "tqdm"], "pip install pandas requests tqdm"),
        (
            ["simuleval", "textgrid", "pandas", "requests", "tqdm"],
            "pip install --no-deps simuleval textgrid && pip install pandas requests tqdm",
        ),
    ],
)
def test_the_error_names_what_is_missing_and_how_to_install_it(monkeypatch, missing, fix):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as error:
        import_simuleval()
    message, _, command = str(error.value).partition("\n  fix: ")
    assert message.endswith(f"not installed: {', '.join(missing)}")
    assert command == fix


NEEDED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

from lagging.agents.simuleval.package import IMPORTED, WITHOUT_DEPENDENCIES, import_simuleval
import msgspec, numpy, pandas, requests, sacrebleu, tqdm, yaml
ALLOWED = {"lagging", "msgspec", "numpy", "sacrebleu", "yaml", *IMPORTED, *WITHOUT_DEPENDENCIES}
sys.meta_path.insert(0, Blocker())
print(import_simuleval().agents.__name__)
"""


def test_simuleval_imports_nothing_else(simuleval, tmp_path):
    done = peer.python("-c", NEEDED, peer=simuleval, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "simuleval.agents"), done.stderr


def test_a_folder_of_its_name_is_not_simuleval(monkeypatch, tmp_path):
    (tmp_path / "simuleval").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(path for path in sys.path if path != str(peer.peers()))])
    forget(monkeypatch)
    with pytest.raises(UsageError, match="not installed: simuleval"):
        import_simuleval()


def test_an_installed_one_that_cannot_be_imported(monkeypatch, tmp_path):
    package = tmp_path / "simuleval"
    package.mkdir()
    (package / "__init__.py").write_text("import surely_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget(monkeypatch)
    with pytest.raises(UsageError, match=r"(?s)cannot be imported: No module named.*fix: pip install surely_not_there"):
        import_simuleval()
    (package / "__init__.py").write_text("")
    sys.modules.pop("simuleval", None)
    with pytest.raises(UsageError, match=r"(?s)SimulEval .* cannot be imported.*fix: pip install --no-deps --upgrade"):
        import_simuleval()
    forget(monkeypatch)


def forget(monkeypatch):
    """Let the next import of SimulEval begin anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "simuleval"]:
        monkeypatch.delitem(sys.modules, name)


def test_the_command_says_what_is_missing(write, tmp_path):
    (tmp_path / "source").write_text("a b\n")
    done = running.ran(write(peer.AGENTS["chars"]), tmp_path / "source", tmp_path / "out", "--simuleval")
    assert done.returncode == 2
    assert "not installed: simuleval, textgrid\n  fix: pip install --no-deps simuleval textgrid\n" in done.stderr


# ---- ours, for theirs ---------------------------------------------------------------------------------------------


class Copy:
    def __init__(self, device="none", times=1):
        self.device, self.times = device, times

    def policy(self, state):
        return state.source[-1] if len(state.target) < len(state.source) else None


def asked(made, *words):
    """What it writes for each word, and whether it has finished."""
    out = []
    for place, word in enumerate(words):
        out.append(made.pushpop(import_simuleval().segments.TextSegment(place, word, place == len(words) - 1)))
    return [(segment.content, segment.finished) for segment in out]


def test_for_simuleval_is_the_entry_point_of_its_file():
    made = for_simuleval(Copy)
    assert import_simuleval().systems[-1] is made
    assert (made.__name__, made.__mro__[1]) == ("Copy", import_simuleval().agents.TextToTextAgent)
    args = parse(made, {"times": "3", "device": "gpu"})
    agent = made.from_args(args)
    assert (agent._agent.times, agent._agent.device) == (3, "gpu")
    assert asked(agent, "a", "b") == [("a", False), ("b", True)]


def test_sentences_are_counted_and_kept_apart():
    seen = []

    def policy(state):
        seen.append((state.sentence, state.memory, list(state.source)))
        state.memory = "kept"

    made = for_simuleval(policy)()
    for _ in range(2):
        assert asked(made, "a", "b") == [([], False), ([], True)]
        made.reset()
    assert seen == [(n, memory, words) for n in (0, 1) for memory, words in ((None, ["a"]), ("kept", ["a", "b"]))]


class Listener:
    source = "speech"

    def reset(self):
        self.said = 0

    def policy(self, state):
        if self.said < len(state.source) / 250 + 3 * state.finished:
            self.said += 1
            return f"{len(state.source)}@{state.sample_rate}:{self.said}"
        return None


class Speaker:
    source = target = "speech"
    chunkwise = True

    def policy(self, state):
        return Write(state.source[-200:], finished=state.finished, sample_rate=2000)


class Early(Listener):
    def policy(self, state):
        return Write("enough", finished=True) if len(state.source) > 500 else None


@pytest.mark.parametrize("agent", [Listener, Speaker, Early, Copy])
def test_there_and_back_again(agent):
    """An agent of ours as one of theirs, and that as one of ours, does what it did."""
    back = Wrapped(for_simuleval(agent)(), import_simuleval())
    took = []
    for one in (agent(), back):
        words = TextSource(["what", "we", "see", "is", "not", "all"])
        source = words if agent is Copy else SpeechSource(HEARD.copy(), 1000, 300)
        sentence = Sentence(source, Traits.of(one))
        drive(one, sentence)
        said = sentence.state.target
        delays = [sentence.arrivals[step] for step in sentence.hypothesis.owners]
        took.append((delays, said if agent is not Speaker else [piece.tolist() for piece in said], sentence.rates))
    assert took[0] == took[1]
    assert took[0][0]


def test_a_recording_without_a_sample():
    made = for_simuleval(Listener)()
    out = made.pushpop(import_simuleval().segments.EmptySegment(finished=True))
    assert (out.content, out.finished) == ("0@16000:1 0@16000:2 0@16000:3", True)


def test_a_long_recording_is_not_copied_for_every_chunk():
    kept = []

    class Ear:
        source = "speech"

        def policy(self, state):
            if state.finished or not len(kept):
                kept.append(state.source)
            return f"w{len(state.target)}" if state.finished and not state.target else None

    course, began = RunningSentence(Ear(), 0, 16000, "word"), time.process_time()
    chunk = np.arange(8000, dtype=np.float32)
    for number in range(2400):  # twenty minutes: 90 GB, if all was copied for every chunk
        said = course.listen(chunk, number == 2399)
    assert time.process_time() - began < 5
    assert (said, course.over) == (["w0"], True)
    assert (kept[0] == chunk).all()
    assert (kept[-1].reshape(2400, 8000) == chunk).all()
    assert not kept[-1].flags.writeable


def test_batched_agents_of_ours():
    class Batched:
        def policies(self, states):
            return [state.source[len(state.target) :] for state in states]

    assert asked(for_simuleval(Batched)(), "a", "b") == [("a", False), ("b", True)]


def test_what_cannot_be_run_there():
    def policy(state):
        return Revise(state.source[::-1])

    with pytest.raises(LaggingError, match="erases what it has written"):
        asked(for_simuleval(policy)(), "a", "b")
    policy.sees_reference = True
    with pytest.raises(UsageError, match="must see the reference"):
        for_simuleval(policy)
    with pytest.raises(UsageError, match="joined by one of word, none, spm, not 'bpe'"):
        for_simuleval(Copy, joined_by="bpe")


def test_an_agent_of_ours_that_does_not_end():
    with pytest.raises(Failure, match="does not come to an end: 1010 tokens"):
        asked(for_simuleval(lambda state: "more")(), "a")
    turns = {0: "this", 1: "that"}
    with pytest.raises(Failure, match="does not come to an end: 1010 tokens"):
        asked(for_simuleval(lambda state: Revise(turns[len(state.target) and state.target[0] == "this"]))(), "a")


def test_the_longer_the_source_the_more_may_be_written():
    def verbose(state):
        return ["word"] * 8 if len(state.target) < 8 * len(state.source) else None

    out = asked(for_simuleval(verbose)(), *(["a"] * 300))
    assert {len(text.split()) for text, _ in out} == {8}
    assert out[-1][1]


def test_an_agent_that_begins_before_there_is_a_source():
    def policy(state):
        return f"{len(state.source)}:{len(state.target)}" if len(state.target) <= len(state.source) else None

    policy.eager = True
    assert asked(for_simuleval(policy)(), "a", "b") == [("0:0 1:1", False), ("2:2", True)]
