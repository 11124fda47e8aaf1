# SPDX-License-Identifier: Apache-2.0
"""The agent: a model and a policy, for many sentences at once."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lagging.agents.hf.languages import Languages, begin_translation
from lagging.agents.hf.policies import POLICIES, Hypothesis, Policy, View, make_policy
from lagging.agents.hf.words import Words
from lagging.agents.loading import folder_hashes, parse_value
from lagging.agents.protocol import DONE, Answer, State, Write
from lagging.errors import UsageError, optional

if TYPE_CHECKING:
    from lagging.agents.hf.models import Model

__all__ = ["Translator", "from_name", "match_levels"]

MODEL_OPTIONS = {
    "template": str, "source_language": str, "target_language": str, "task": str, "spaces": bool, "source_spaces": bool,
    "max_tokens": int, "layer": int, "device": str, "threads": int, "revision": str,
}  # fmt: skip
"""Options that are not the policy's, and their types."""


@dataclass
class _Memory:
    """What is kept of a sentence: what the policy sees, the tokens that were written, and how much had been read."""

    view: View = field(default_factory=View)
    tokens: tuple[int, ...] = ()
    heard: int = 0


class Translator:
    """An agent that asks a model after each read, and writes what the policy says.

    Args:
        model: see `lagging.agents.hf.models`.
        policy: see `lagging.agents.hf.policies`.
        spaces: whether the target language has spaces between words; if not, it is written by characters.
        identity: what decides the output, for `run.json`.
    """

    chunkwise = True

    def __init__(
        self, model: Model, policy: Policy, *, spaces: bool = True, identity: Mapping[str, str] | None = None
    ) -> None:
        self.model, self._policy, self.source = model, policy, model.kind
        self._words, self.identity = Words(model.tokenizer, spaces), dict(identity or {})

    def policies(self, states: Sequence[State]) -> list[Answer]:
        """What to write now in each of these sentences."""
        answers: list[Answer] = [None] * len(states)
        before = [copy.deepcopy(state.memory) for state in states]
        try:
            self._policies(states, answers)
        except BaseException:  # nothing of this step counts: the sentences are tried one by one
            for state, memory in zip(states, before, strict=True):
                state.memory = memory
            raise
        return answers

    def _policies(self, states: Sequence[State], answers: list[Answer]) -> None:
        asked = []
        for i, state in enumerate(states):
            if self._hears(state) and (state.finished or self._policy.asks(state.memory.view)):
                asked.append(i)
            elif state.finished and not len(state.source):
                answers[i] = DONE
        for i, candidates in zip(asked, self._ask([states[i] for i in asked]), strict=True):
            answers[i] = self._answer(states[i], candidates)

    def _hears(self, state: State) -> bool:
        """Note what has been read; whether there is anything."""
        if state.memory is None:
            state.memory = _Memory()
        memory, size = state.memory, len(state.source)
        if size != memory.heard:
            memory.view.units = memory.view.units + 1 if self.source == "speech" else size
            memory.heard = size
        return size > 0

    def _ask(self, states: Sequence[State]) -> list[list[Hypothesis]]:
        """The hypotheses of the model for each sentence."""
        from lagging.agents.hf.models import Request

        if not states:
            return []
        requests = []
        for state in states:
            view, tokens = state.memory.view, state.memory.tokens
            due = None if state.finished else self._policy.due(view)

            def enough(made: Sequence[int], due: int | None = due, written: int = len(tokens)) -> bool:
                if due is None:
                    return False
                end = self._words.up_to(made, self._words.ends(made, written, ended=False), due)
                return end is not None and self._words.count(made[:end]) >= due

            requests.append(Request(state.source, tokens, enough, state.sample_rate))
        if self._policy.beams > 1:
            return self.model.beam(requests, self._policy.beams)
        return [[one] for one in self.model.greedy(requests, self._policy.attends)]

    def _answer(self, state: State, candidates: Sequence[Hypothesis]) -> Answer:
        """What the policy takes of the hypotheses, as text of complete words."""
        memory: _Memory = state.memory
        view, before = memory.view, self._words.text(memory.tokens)
        if state.finished:
            return Write(self._words.text(candidates[0].tokens)[len(before) :], finished=True)
        agreed = self._policy.agreed(view, candidates)
        whole = next(one for one in candidates if one.tokens[: len(agreed)] == agreed)
        ends = [end for end in self._words.ends(whole.tokens, view.written, whole.ended) if end <= len(agreed)]
        end = self._words.up_to(agreed, ends, self._policy.due(view))
        if end is None:
            return None
        memory.tokens = agreed[:end]
        view.written, view.words = end, self._words.count(memory.tokens)
        return Write(self._words.text(memory.tokens)[len(before) :])


def from_name(name: str, options: Mapping[str, str]) -> Translator:
    """The agent of `lagging run hf:NAME --policy POLICY`.

    Args:
        name: a folder, or the name of a model on the hub that the cache or the network serves.
        options: `policy`, its options, and those of `MODEL_OPTIONS`, as text.

    Raises:
        UsageError: an option does not exist, has a wrong value, or does not go with the model.
        MissingExtraError: transformers is not installed.
    """
    policy_name = options.get("policy")
    given: dict[str, Any] = {
        key: text if MODEL_OPTIONS.get(key) is str else parse_value(text)
        for key, text in options.items()
        if key != "policy"
    }
    if policy_name is None:
        raise UsageError(f"a model needs a policy\n  fix: give --policy and one of {', '.join(POLICIES)}.")
    for key, kind in MODEL_OPTIONS.items():
        if key in given and type(given[key]) is not kind:
            raise UsageError(f"{key} is {'true or false' if kind is bool else 'a whole number'}, but got {given[key]}")
    if given.get("max_tokens", 1) < 1 or given.get("threads", 1) < 1:
        raise UsageError("max_tokens and threads are whole numbers from 1 on")
    mine = {key: given.pop(key) for key in MODEL_OPTIONS if key in given}
    policy = make_policy(policy_name, given)
    if "layer" in mine and not policy.attends:
        raise UsageError(f"{policy_name} uses no attention, so it has no layer\n  fix: leave it out.")
    if "revision" in mine and Path(name).is_dir():
        raise UsageError(f"{name} is a folder, and has no revisions\n  fix: leave it out.")
    check_path(name)
    spaces = mine.pop("spaces", True)
    optional("torch", "hf")
    optional("transformers", "hf")
    model, identity = load(name, policy.attends, **mine)
    if policy.attends:
        model.check_attention()
    return Translator(model, policy, spaces=spaces, identity=identity)


def match_levels(options: Mapping[str, str], level: str, source_level: str) -> dict[str, str]:
    """Options of a model with those that follow from the levels of a run: characters have no spaces between them.

    Args:
        options: as for `from_name`.
        level, source_level: of target and source, as in `Settings`.

    Raises:
        UsageError: the model cannot read or write at such a level.

    Example:
        >>> match_levels({"policy": "hold"}, "char", "word")
        {'policy': 'hold', 'spaces': 'false'}
    """
    if source_level == "spm":
        raise UsageError(
            "a model reads words or characters, and cuts them into pieces itself\n"
            "  fix: give --source-level word, or char for a language without spaces."
        )
    if options.get("spaces") == "false" and level == "word":
        raise UsageError("a target language without spaces has no words to count\n  fix: give --level char.")
    if options.get("source_spaces") == "false" and source_level == "word":
        raise UsageError("a source without spaces is one word\n  fix: give --source-level char.")
    matched = dict(options)
    for name, its_level in (("spaces", level), ("source_spaces", source_level)):
        if its_level == "char":
            matched.setdefault(name, "false")
    return matched


def check_path(name: str) -> None:
    """Check that there is a model, where a name can only be that of a folder.

    Raises:
        UsageError: there is no such folder, or no model in it.
    """
    if Path(name).exists():
        if not (Path(name) / "config.json").is_file():
            raise UsageError(f"{name} is no model: it has no config.json\n  fix: give the folder of a model.")
    elif name.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise UsageError(f"there is no folder {name}\n  fix: give a folder, or the name of a model on the hub.")


@lru_cache(maxsize=1)
def load(name: str, attends: bool, **options: Any) -> tuple[Model, dict[str, str]]:
    """A model, and what identifies it; the last one is kept, so that the settings of a grid share it.

    Raises:
        UsageError: there is no such model, or it is of no kind that translates.
    """
    import torch
    import transformers
    from transformers.models.auto import modeling_auto as auto

    from lagging.agents.hf.models import PLACE, Causal, EncoderDecoder, Speech

    transformers.utils.logging.disable_progress_bar()  # the run has one of its own
    device, revision = options.pop("device", "cpu"), options.pop("revision", None)
    languages = Languages(*(options.pop(field.name, None) for field in fields(Languages)))
    if (threads := options.pop("threads", None)) is not None:
        torch.set_num_threads(threads)
    how = {"revision": revision} if revision else {}
    try:
        config = transformers.AutoConfig.from_pretrained(name, **how)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **how)
        kind = config.model_type
        if kind == "whisper":
            maker = transformers.AutoModelForSpeechSeq2Seq
        elif kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES and config.is_encoder_decoder:
            maker = transformers.AutoModelForSeq2SeqLM
        elif kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            maker = transformers.AutoModelForCausalLM
        else:
            raise UsageError(f"{name} is a {kind} model, which is neither encoder–decoder, causal nor Whisper")
        eager = {"attn_implementation": "eager"} if attends else {}
        network = maker.from_pretrained(name, **how, **eager).eval()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        if isinstance(error, UsageError):
            raise
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"cannot load the model {name}: {first}\n  fix: give a folder, or a name on the hub."
        ) from None
    try:
        network = network.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"cannot use the device {device}: {str(error).splitlines()[0]}") from None
    model: Model
    if maker is transformers.AutoModelForSpeechSeq2Seq:
        if given := [key for key in ("template", "source_spaces") if key in options]:
            raise UsageError(f"a model that hears speech takes no {' and no '.join(given)}\n  fix: leave it out.")
        extractor = transformers.AutoFeatureExtractor.from_pretrained(name, **how)
        start, _ = begin_translation(network, tokenizer, languages)
        model = Speech(network, tokenizer, extractor, start=start, **options)
    elif maker is transformers.AutoModelForSeq2SeqLM:
        start, before = begin_translation(network, tokenizer, languages)
        options["template"] = before + options.get("template", PLACE)
        model = EncoderDecoder(network, tokenizer, start=start, **options)
    else:
        languages.refuse("it is told by its template", *(field.name for field in fields(Languages)))
        if "template" not in options:
            raise UsageError(
                "a causal language model needs a prompt with the source in it\n"
                "  fix: give -a 'template=German: {source} English:'."
            )
        model = Causal(network, tokenizer, **options)
    identity = folder_hashes(name) or {"revision": str(getattr(network.config, "_commit_hash", None) or revision)}
    identity |= {"device": device, "dtype": str(network.dtype), "generation": json.dumps(model.settings)}
    return model, identity
