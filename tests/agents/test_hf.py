# SPDX-License-Identifier: Apache-2.0
"""Agents over models: every policy against a slow, obvious one, without batches and without caches."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
pytest.importorskip("transformers", reason="NOT RUN: transformers is not installed")

import soundfile
import torch
import transformers

from hf_models import (
    BEGIN,
    LANGUAGES,
    PAD,
    TEMPLATE,
    save,
    save_marian_of_several,
    sentences,
    sounds,
    whisper_with_languages,
)
from lagging import policies
from lagging.agents import Settings, State, run
from lagging.agents.hf import POLICIES, from_name, match_levels
from lagging.agents.hf.policies import Hypothesis, RelaxedAgreement, View, make_policy
from lagging.agents.hf.words import Words
from lagging.errors import LaggingError, UsageError

LONGEST = 14
CHUNK = 150  # ms
KINDS = ("marian", "whisper", "llama")
OTHERS = ("nllb", "m2m", "mbart", "t5")
BEFORE = "say: "
"""What the template of T5 has before the source."""
SETTINGS = [
    ("offline", {}), ("wait-k", {"k": 1}), ("wait-k", {"k": 3}), ("wait-k", {"k": 2, "words": 2}),
    ("local-agreement", {"n": 2}), ("local-agreement", {"n": 3}), ("hold", {"n": 0}), ("hold", {"n": 3}),
    ("alignatt", {"f": 0}), ("alignatt", {"f": 1}), ("alignatt", {"f": 3}), ("edatt", {"alpha": 0.3}),
    ("edatt", {"alpha": 0.6, "last": 2}), ("ralcp", {"gamma": 0.6}), ("ralcp", {"gamma": 1.0, "beams": 3}),
]  # fmt: skip


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("hf")
    return {kind: save(kind, place / kind) for kind in (*KINDS, *OTHERS, "mamba")}


@pytest.fixture(scope="session")
def wavs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return sounds(tmp_path_factory.mktemp("wavs"), 4)


def options(kind: str, policy: str, **more: Any) -> dict[str, str]:
    templates = {"llama": TEMPLATE, "mamba": TEMPLATE, "t5": BEFORE + "{source}"}
    given = {"policy": policy, "max_tokens": LONGEST, **more}
    given |= {"template": templates[kind]} if kind in templates else {}
    given |= dict(zip(("source_language", "target_language"), LANGUAGES.get(kind, ()), strict=False))
    return {key: str(value) for key, value in given.items()}


def run_settings(kind: str, batch: int = 3) -> Settings:
    return Settings(joined_by="none", batch=batch, chunk=CHUNK if kind == "whisper" else None)


# ---- the slow way -------------------------------------------------------------------------------------------------


class Slow:
    """A model asked for one token at a time, for one sentence, with everything computed again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        maker = transformers.AutoModelForCausalLM
        if kind != "llama":
            whisper, others = transformers.AutoModelForSpeechSeq2Seq, transformers.AutoModelForSeq2SeqLM
            maker = whisper if kind == "whisper" else others
        self.model = maker.from_pretrained(folder, attn_implementation="eager").eval()
        source = {"src_lang": LANGUAGES[kind][0]} if kind in LANGUAGES else {}
        self.words = transformers.AutoTokenizer.from_pretrained(folder, **source)
        config = self.model.generation_config
        self.pad, self.end = config.pad_token_id, config.eos_token_id
        self.banned = [self.pad, *config.suppress_tokens]
        self.extractor = transformers.AutoFeatureExtractor.from_pretrained(folder) if kind == "whisper" else None

    def inputs(self, source: Any) -> tuple[dict[str, Any], list[list[int]]]:
        """The model's inputs, and the positions of each unit of the source."""
        if self.kind == "whisper":
            features = self.extractor(source, sampling_rate=16_000, return_tensors="pt")["input_features"]
            return {"input_features": features}, [[p] for p in range(ceil(len(source) / 320))]
        text = " ".join(source)
        text = TEMPLATE.replace("{source}", text) if self.kind == "llama" else text
        if kind_of_positions(self.kind) == "pieces":
            ids = self.words(BEFORE + text if self.kind == "t5" else text)["input_ids"]
            places = [[] for _ in (BEFORE + text if self.kind == "t5" else text).split()]
            word = -1
            for place, piece in enumerate(self.words.convert_ids_to_tokens(ids)):
                word += piece.startswith("▁")
                if ids[place] not in self.words.all_special_ids and word >= 0:
                    places[word].append(place)
            return {"input_ids": torch.tensor([ids])}, places[len(places) - len(source) :]
        coded = self.words(text, return_offsets_mapping=True)
        at, positions = text.index(" ".join(source)), []
        for word in source:
            span = set(range(at, at + len(word)))
            positions.append([p for p, (a, b) in enumerate(coded["offset_mapping"]) if span & set(range(a, b))])
            at += len(word) + 1
        return {"input_ids": torch.tensor([coded["input_ids"]])}, positions

    def start(self) -> list[int]:
        if self.kind in LANGUAGES:
            target = LANGUAGES[self.kind][1]
            token = (
                self.words.lang_code_to_id[target] if self.kind == "m2m" else self.words.convert_tokens_to_ids(target)
            )
            return [token] if self.kind == "mbart" else [self.end, token]
        return {"marian": [PAD], "whisper": [BEGIN], "llama": [], "t5": [self.pad]}[self.kind]

    @torch.inference_mode()
    def next(self, source: Any, tokens: list[int]) -> tuple[int, list[float]]:
        inputs, positions = self.inputs(source)
        if self.kind == "llama":
            ids = torch.cat([inputs["input_ids"], torch.tensor([tokens], dtype=torch.long)], 1)
            out = self.model(input_ids=ids, output_attentions=True, use_cache=False)
            layers = out.attentions
        else:
            target = torch.tensor([[*self.start(), *tokens]])
            out = self.model(**inputs, decoder_input_ids=target, output_attentions=True, use_cache=False)
            layers = out.cross_attentions
        logits = out.logits[0, -1].clone()
        logits[self.banned] = -torch.inf
        weights = sum(layer[0, :, -1].mean(0) for layer in layers) / len(layers)
        return int(logits.argmax()), [float(weights[unit].sum()) for unit in positions]

    def greedy(self, source: Any, written: list[int]) -> tuple[list[int], bool, list[list[float]]]:
        tokens, attention = list(written), []
        while len(tokens) < LONGEST:
            token, weights = self.next(source, tokens)
            if token == self.end:
                return tokens, True, attention
            tokens.append(token)
            attention.append(weights)
        return tokens, False, attention

    @torch.inference_mode()
    def beam(self, source: Any, written: list[int], beams: int) -> list[tuple[list[int], bool]]:
        if len(written) == LONGEST:
            return [(written, False)] * beams
        inputs, _ = self.inputs(source)
        begin = [*self.start(), *written]
        if self.kind == "llama":
            begin = [*inputs["input_ids"][0].tolist(), *written]
            inputs = {"input_ids": torch.tensor([begin])}
        else:
            inputs |= {"decoder_input_ids": torch.tensor([begin]), "decoder_start_token_id": begin[0]}
        made = transformers.GenerationMixin.generate(
            self.model, **inputs, num_beams=beams, num_return_sequences=beams, early_stopping=True,
            max_new_tokens=LONGEST - len(written), suppress_tokens=self.banned, bad_words_ids=None,
        )  # fmt: skip
        rows = [row[len(begin) :] for row in made.tolist()]
        return [([*written, *(t for t in row if t not in (self.pad, self.end))], self.end in row) for row in rows]

    def begins_word(self, token: int) -> bool:
        return self.words.convert_ids_to_tokens(token).startswith("▁")

    def text(self, tokens: list[int]) -> str:
        pieces = self.words.convert_ids_to_tokens(tokens)
        return "".join(pieces).replace("▁", " ").strip()


def kind_of_positions(kind: str) -> str:
    """How the tokens of a word are found: by offsets, or, where a tokenizer has none, by pieces that begin words."""
    return "pieces" if kind in OTHERS else "offsets"


def slowly(slow: Slow, reads: list[Any], policy: str, given: dict[str, Any]) -> list[str]:
    """What is written after each read, all together, by the rule of the policy."""
    written: list[int] = []
    hypotheses, shown = [], []
    for number, source in enumerate(reads, start=1):
        last = number == len(reads)
        candidates: list[tuple[list[int], bool]] = []
        attention: list[list[float]] = []
        if policy == "ralcp":
            candidates = slow.beam(source, written, given.get("beams", 4))
        else:
            tokens, ended, attention = slow.greedy(source, written)
            candidates = [(tokens, ended)]
        tokens, ended = candidates[0]
        if last:
            shown.append(slow.text(tokens))
            break
        hypotheses.append(tokens)
        wanted = tokens
        if policy == "offline":
            wanted = written
        elif policy == "local-agreement":
            wanted = written
            recent = hypotheses[-given["n"] :]
            if len(recent) == given["n"]:
                wanted = [t[0] for t in zip(*recent, strict=False)]
                while any(one[: len(wanted)] != wanted for one in recent):
                    wanted = wanted[:-1]
        elif policy == "hold":
            wanted = tokens[: max(len(tokens) - given["n"], len(written))]
        elif policy in ("alignatt", "edatt"):
            stop = len(written)
            for weights in attention:
                tail = given["f"] if policy == "alignatt" else given.get("last", 1)
                if policy == "alignatt" and weights.index(max(weights)) in range(len(weights))[len(weights) - tail :]:
                    break
                if policy == "alignatt" and tail > len(weights):
                    break
                if policy == "edatt" and sum(weights[-tail:]) / sum(weights) >= given["alpha"]:
                    break
                stop += 1
            wanted = tokens[:stop]
        elif policy == "ralcp":
            wanted = written
            for one, _ in candidates:
                for length in range(len(wanted) + 1, len(one) + 1):
                    votes = sum(other[:length] == one[:length] for other, _ in candidates)
                    if votes / len(candidates) >= given["gamma"]:
                        wanted = one[:length]
            tokens, ended = next(c for c in candidates if c[0][: len(wanted)] == wanted)
        ends = [len(written)]
        for place in range(len(written) + 1, len(tokens)):
            if slow.begins_word(tokens[place]) and slow.text(tokens[ends[-1] : place]):
                ends.append(place)
        ends += [len(tokens)] if ended else []
        ends = [end for end in ends if end <= len(wanted)]
        if policy == "wait-k":
            due = max(number - given["k"] + 1, 0) * given.get("words", 1)
            while len(ends) > 1 and len(slow.text(tokens[: ends[-2]]).split()) >= due:
                ends.pop()
        written = tokens[: ends[-1]]
        shown.append(slow.text(written))
    return shown


def delays_of(shown: list[str], times: list[float]) -> tuple[str, list[float]]:
    """The time since which each word of the final text, and all before it, has been there."""
    final = shown[-1].split()
    return shown[-1], [
        next(time for text, time in zip(shown, times, strict=True) if text.split()[: t + 1] == final[: t + 1])
        for t in range(len(final))
    ]


def reads_of(kind: str, sources: list[str]) -> list[tuple[list[Any], list[float]]]:
    found = []
    for one in sources:
        if kind != "whisper":
            words = one.split()
            found.append(([words[: n + 1] for n in range(len(words))], [float(n + 1) for n in range(len(words))]))
            continue
        samples, _ = soundfile.read(one, dtype="float32")
        ends = [min(n, len(samples)) for n in range(CHUNK * 16, len(samples) + CHUNK * 16, CHUNK * 16)]
        found.append(([samples[:end] for end in ends], [end / 16 for end in ends]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_policy_writes_what_the_slow_one_writes_at_the_same_times(
    kind: str, folders: dict[str, Path], wavs: list[str]
) -> None:
    slow = Slow(kind, folders[kind])
    sources = wavs[:3] if kind == "whisper" else sentences(3, seed=8)
    check_policies(kind, folders, slow, sources, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHERS)
def test_models_with_languages_and_t5_write_what_the_slow_one_writes(kind: str, folders: dict[str, Path]) -> None:
    settings = [
        ("offline", {}), ("wait-k", {"k": 2}), ("local-agreement", {"n": 2}), ("hold", {"n": 3}),
        ("alignatt", {"f": 1}), ("edatt", {"alpha": 0.3}), ("ralcp", {"gamma": 0.6}),
    ]  # fmt: skip
    check_policies(kind, folders, Slow(kind, folders[kind]), sentences(2, seed=8), settings)


def check_policies(kind: str, folders: dict[str, Path], slow: Slow, sources: list[str], settings: list[Any]) -> None:
    early = 0
    for policy, given in settings:
        agent = from_name(str(folders[kind]), options(kind, policy, **given))
        made = run(agent, sources, settings=run_settings(kind))
        for row, (reads, times) in enumerate(reads_of(kind, sources)):
            text, delays = delays_of(slowly(slow, reads, policy, given), times)
            assert made.prediction[row] == text, (policy, given, row)
            assert np.allclose(made.delays[row], delays), (policy, given, row)
            early += bool(delays) and delays[0] < times[-1]
    assert 3 * early > len(settings) * len(sources)  # they do not all wait for the end


@pytest.mark.parametrize("k", [1, 2, 4])
def test_wait_k_has_the_delays_of_its_schedule(folders: dict[str, Path], k: int) -> None:
    agent = from_name(str(folders["marian"]), options("marian", "wait-k", k=k))
    tokens = agent.model.tokenizer.get_vocab()  # every token is a word, and none is the end
    agent.model = copy.copy(agent.model)
    agent.model._ends = frozenset()
    agent.model._banned = [number for token, number in tokens.items() if not token.startswith("▁") or token == "▁"]
    sources = sentences(6, seed=4)
    made = run(agent, sources, settings=run_settings("marian"))
    for row, source in enumerate(sources):
        assert len(made.delays[row]) == LONGEST
        expected = policies.wait_k(k).delays(len(source.split()), LONGEST)
        assert made.delays[row].tolist() == expected.tolist()


class Watch:
    """An agent that notes what has been written before each call."""

    chunkwise = True

    def __init__(self, agent: Any) -> None:
        self.agent, self.seen = agent, dict[int, list[str]]()

    def policies(self, states: Any) -> Any:
        for state in states:
            self.seen.setdefault(state.sentence, []).append("".join(state.target))
        return self.agent.policies(states)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "offline"])
def test_nothing_is_taken_back(folders: dict[str, Path], policy: str) -> None:
    watch = Watch(from_name(str(folders["marian"]), options("marian", policy)))
    made = run(watch, sentences(4), settings=run_settings("marian"))
    for row, texts in watch.seen.items():
        for before, after in zip(texts, [*texts[1:], made.prediction[row]], strict=True):
            assert after.startswith(before)
    assert any(len(texts) > 1 and texts[-1] for texts in watch.seen.values())


@pytest.mark.parametrize("kind", KINDS)
def test_alignatt_with_f_0_is_greedy_offline_when_all_is_read_at_once(
    kind: str, folders: dict[str, Path], wavs: list[str]
) -> None:
    sources = wavs if kind == "whisper" else sentences(4)
    whole = Settings(joined_by="none", batch=2, chunk=2000 if kind == "whisper" else 50)
    aligned, offline = (
        run(from_name(str(folders[kind]), options(kind, policy, **given)), sources, settings=whole)
        for policy, given in (("alignatt", {"f": 0}), ("offline", {}))
    )
    assert aligned.prediction.tolist() == offline.prediction.tolist()
    assert aligned.delays.tolist() == offline.delays.tolist()


def test_batches_change_nothing(folders: dict[str, Path]) -> None:
    for kind in ("marian", "llama"):
        runs = [
            run(
                from_name(str(folders[kind]), options(kind, "local-agreement")), sentences(5),
                settings=run_settings(kind, batch),
            )
            for batch in (1, 5)
        ]  # fmt: skip
        assert runs[0].prediction.tolist() == runs[1].prediction.tolist()
        assert runs[0].delays.tolist() == runs[1].delays.tolist()


def test_without_spaces_characters_are_written(folders: dict[str, Path]) -> None:
    longer = 0
    for n in range(5):
        chars, words = (
            from_name(str(folders["marian"]), options("marian", "hold", n=n, spaces=spaces))
            for spaces in ("false", "true")
        )
        for source in sentences(3):
            answers = [agent.policies([State(source.split())])[0] for agent in (chars, words)]
            by_char, by_word = ("" if answer is None else answer.content for answer in answers)
            assert by_char.startswith(by_word)
            longer += len(by_char) > len(by_word)
    assert longer
    made = run(chars, sentences(2), settings=Settings(joined_by="none", level="char", batch=2))
    assert [len(row) for row in made.delays.tolist()] == [len("".join(t.split())) for t in made.prediction]


@pytest.mark.parametrize("policy", ["wait-k", "hold", "ralcp"])
def test_a_model_without_a_cache_reads_all_again(folders: dict[str, Path], policy: str) -> None:
    made = run(from_name(str(folders["mamba"]), options("mamba", policy)), sentences(3), settings=run_settings("mamba"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folders["mamba"]).eval()
    words = transformers.AutoTokenizer.from_pretrained(folders["mamba"])
    assert all(made.prediction)
    if policy != "hold":
        return
    for source, text in zip(sentences(3), offline(folders), strict=True):
        ids = words(TEMPLATE.replace("{source}", source), return_tensors="pt")["input_ids"]
        banned = [model.generation_config.pad_token_id, *model.generation_config.suppress_tokens]
        out = model.generate(ids, max_new_tokens=LONGEST, do_sample=False, suppress_tokens=banned)
        assert words.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip() == text


def offline(folders: dict[str, Path]) -> list[str]:
    agent = from_name(str(folders["mamba"]), options("mamba", "offline"))
    return run(agent, sentences(3), settings=run_settings("mamba")).prediction.tolist()


def test_languages_of_whisper_are_tokens_before_the_translation(tmp_path: Path) -> None:
    several = str(whisper_with_languages(tmp_path / "several", True))
    model = from_name(several, options("whisper", "hold", source_language="de")).model
    assert model.tokenizer.convert_ids_to_tokens(list(model.start)) == [
        "<|startoftranscript|>", "<|de|>", "<|translate|>", "<|notimestamps|>",
    ]  # fmt: skip
    model = from_name(several, options("whisper", "hold", source_language="french", task="transcribe")).model
    assert model.tokenizer.convert_ids_to_tokens(list(model.start))[1:3] == ["<|fr|>", "<|transcribe|>"]
    for given, message in (
        ({}, "hears several languages"),
        ({"source_language": "xx"}, "Unsupported language: xx"),
        ({"source_language": "de", "task": "sing"}, "Unsupported task: sing"),
    ):
        with pytest.raises(UsageError, match=message):
            from_name(several, options("whisper", "hold", **given))
    english = str(whisper_with_languages(tmp_path / "english", False))
    model = from_name(english, options("whisper", "hold")).model
    assert model.tokenizer.convert_ids_to_tokens(list(model.start)) == ["<|startoftranscript|>", "<|notimestamps|>"]
    with pytest.raises(UsageError, match="hears English and writes English"):
        from_name(english, options("whisper", "hold", source_language="de"))


def test_a_marian_model_of_several_target_languages_has_a_word_before_the_source(tmp_path: Path) -> None:
    folder = save_marian_of_several(tmp_path / "model")
    model = from_name(str(folder), options("marian", "hold", target_language="fra")).model
    assert model.settings["template"] == ">>fra<< {source}"
    ids, owners = model._encode(["ba", "do"], True)
    assert model.tokenizer.convert_ids_to_tokens(ids[:1]) == [">>fra<<"]
    assert owners[0] == -1
    assert set(owners) == {-1, 0, 1}
    with pytest.raises(UsageError, match=r"no language 'fre'\. Did you mean fra"):
        from_name(str(folder), options("marian", "hold", target_language="fre"))


@pytest.mark.parametrize("kind", ["marian", "llama"])
def test_a_source_that_is_too_long_is_named(folders: dict[str, Path], kind: str) -> None:
    agent = from_name(str(folders[kind]), options(kind, "offline"))
    state = State(["badogu"] * 150)
    state.finished = True
    with pytest.raises(LaggingError, match=r"tokens, and the model has places for (64|128)\n  fix: divide"):
        agent.policies([state])


def test_the_levels_of_a_run_decide_whether_there_are_spaces() -> None:
    given = {"policy": "hold"}
    assert match_levels(given, "word", "word") == given
    assert match_levels(given, "char", "char") == given | {"spaces": "false", "source_spaces": "false"}
    assert match_levels(given | {"spaces": "true"}, "char", "word") == given | {"spaces": "true"}
    for more, levels, message in (
        ({}, ("word", "spm"), "cuts them into pieces itself"),
        ({"spaces": "false"}, ("word", "word"), "give level='char'"),
        ({"source_spaces": "false"}, ("word", "word"), "give source_level='char'"),
    ):
        with pytest.raises(UsageError, match=message):
            match_levels(given | more, *levels)


def test_a_step_that_fails_leaves_the_sentences_as_they_were(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = from_name(str(folders["marian"]), options("marian", "wait-k", k=1))
    states = [State(["ba"]), State(["gu"])]
    agent.policies(states)
    for state in states:
        state.source = [*state.source, "ra"]
    before, answer = copy.deepcopy(states[0].memory), agent._answer

    def failing(state: State, candidates: Any) -> Any:
        return answer(state, candidates) if state is states[0] else 1 // 0

    with monkeypatch.context() as patch:
        patch.setattr(agent, "_answer", failing)
        with pytest.raises(ZeroDivisionError):
            agent.policies(states)
    assert states[0].memory == before
    agent.policies(states)
    assert len(states[0].memory.tokens) > len(before.tokens)


def test_a_word_is_complete_when_the_next_begins(folders: dict[str, Path]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["marian"])
    words = Words(tokenizer)
    tokens = tokenizer("badogu kilem ra", add_special_tokens=False)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(tokens)
    begins = [p for p, piece in enumerate(pieces) if piece.startswith("▁")]
    assert words.ends(tokens, ended=False) == begins[1:]
    assert words.ends(tokens, ended=True) == [*begins[1:], len(tokens)]
    assert words.ends(tokens, begins[1], ended=True) == [begins[2], len(tokens)]
    assert words.text(tokens[: begins[1]]) == "badogu"


def test_votes_of_a_beam() -> None:
    candidates = [Hypothesis(tokens, True) for tokens in ((1, 2, 3), (1, 2, 4, 5), (1, 2, 4, 6), (9,))]
    assert RelaxedAgreement(0.5, 4).agreed(View(), candidates) == (1, 2, 4)
    assert RelaxedAgreement(0.75, 4).agreed(View(), candidates) == (1, 2)
    assert RelaxedAgreement(1.0, 4).agreed(View(), candidates) == ()
    assert make_policy("alcp", {"beams": 4}).agreed(View(), candidates) == ()
    assert make_policy("alcp", {"beams": 3}).agreed(View(), candidates[:3]) == (1, 2)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("wait-k", {"k": 0}, "k is a whole number from 1 on, but got 0"),
        ("wait-k", {"k": 2.5}, "but got 2.5"),
        ("wait-k", {"n": 2}, "wait-k has no option 'n'"),
        ("local-agreement", {"n": 1}, "n is a whole number from 2 on"),
        ("hold", {"n": -1}, "n is a whole number from 0 on"),
        ("alignatt", {"f": -1}, "f is a whole number from 0 on"),
        ("edatt", {"alpha": 0}, "alpha is a share above 0"),
        ("alcp", {"gamma": 0.5}, "alcp has no option 'gamma'"),
        ("ralcp", {"gamma": 1.5}, "gamma is a share above 0 and at most 1"),
        ("wait", {}, "there is no policy 'wait' for models. Did you mean wait-k?"),
    ],
)
def test_bad_options_are_refused(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        make_policy(name, given)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("mamba", {"policy": "alignatt", "template": TEMPLATE}, "gives no attention to the source"),
        ("llama", {"policy": "hold"}, "needs a prompt with the source in it"),
        ("llama", {"policy": "hold", "template": "none"}, "has {source} in it once"),
        ("marian", {}, "a model needs a policy"),
        ("marian", {"policy": "hold", "max_tokens": "0"}, "from 1 on"),
        ("marian", {"policy": "hold", "spaces": "3"}, "spaces is true or false"),
        ("marian", {"policy": "hold", "target_language": "xx"}, "takes no target_language"),
        ("marian", {"policy": "hold", "source_language": "de"}, "takes no source_language"),
        ("marian", {"policy": "hold", "task": "translate"}, "takes no task"),
        ("marian", {"policy": "hold", "layer": "0"}, "hold uses no attention"),
        ("marian", {"policy": "hold", "revision": "main"}, "is a folder, and has no revisions"),
        ("marian", {"policy": "hold", "max_tokens": "64"}, "max_tokens is at most 63 for this model, but got 64"),
        ("marian", {"policy": "hold", "device": "quantum"}, "cannot use the device quantum"),
        ("llama", {"policy": "hold", "template": TEMPLATE, "target_language": "en"}, "takes no target_language"),
        ("whisper", {"policy": "hold", "template": "{source}"}, "takes no template"),
        ("whisper", {"policy": "hold", "source_language": "de"}, "takes no source_language"),
        ("whisper", {"policy": "hold", "target_language": "de"}, "takes no target_language"),
        ("nllb", {"policy": "hold"}, "give -a source_language=… and -a target_language=…"),
        ("nllb", {"policy": "hold", "source_language": "deu_Latn", "target_language": "</s>"}, "no language '</s>'"),
        ("m2m", {"policy": "hold", "source_language": "deu", "target_language": "en"}, "Did you mean de?"),
        ("mbart", {"policy": "hold"}, "fix: give -a source_language=…\\."),
        ("t5", {"policy": "hold", "target_language": "en"}, "takes no target_language"),
        ("marian", {"policy": "alignatt", "layer": "7"}, "layer is from 0 to 0, but got 7"),
    ],
)
def test_what_does_not_go_with_the_model_is_refused(
    folders: dict[str, Path], kind: str, given: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        from_name(str(folders[kind]), given)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        from_name(str(tmp_path / "nothing"), {"policy": "offline"})
    with pytest.raises(UsageError, match=r"it has no config\.json"):
        from_name(str(tmp_path), {"policy": "offline"})
    with pytest.raises(UsageError, match="cannot load the model nobody/nothing"):
        from_name("nobody/nothing", {"policy": "offline"})


def test_speech_that_the_model_cannot_hear_is_refused(folders: dict[str, Path]) -> None:
    agent, state = (
        from_name(str(folders["whisper"]), options("whisper", "hold")),
        State(np.zeros(4000), sample_rate=8000),
    )
    with pytest.raises(LaggingError, match="hears 16000 samples per second, but the source has 8000"):
        agent.policies([state])
    state.source, state.sample_rate = np.zeros(20_000), 16_000
    with pytest.raises(LaggingError, match="longer than the 1 s that the model hears at once"):
        agent.policies([state])


def test_without_the_extra_it_says_what_to_install(folders: dict[str, Path]) -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "from lagging.agents.hf import from_name\n"
        f"from_name({str(folders['marian'])!r}, {{'policy': 'offline'}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'lagging[hf]'" in done.stderr


def test_the_names_of_policies_load_no_framework() -> None:
    code = "import lagging.agents.hf, sys, json; print(json.dumps(list(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert not {"torch", "transformers"} & set(json.loads(out.stdout))
