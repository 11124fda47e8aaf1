# SPDX-License-Identifier: Apache-2.0
"""Languages: which of them a model has, and how it is told from which and into which to translate.

NLLB, M2M and mBART have a token for each language, in the source and at the beginning of the translation. A Marian
model with several target languages has a word before the source. Whisper has tokens for the language that is heard and
for the task. T5 and causal language models are told by their template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lagging.errors import UsageError, did_you_mean

__all__ = ["Languages", "begin_translation"]


@dataclass(frozen=True)
class Languages:
    """What the command line says about languages: the options of the same names, None where one is not given."""

    source_language: str | None = None
    target_language: str | None = None
    task: str | None = None

    def refuse(self, why: str, *names: str) -> None:
        """Refuse options that mean nothing to the model.

        Raises:
            UsageError: one of these options is given.
        """
        given = [name for name in names if getattr(self, name) is not None]
        if given:
            raise UsageError(f"the model takes no {' and no '.join(given)}: {why}\n  fix: leave it out.")


def begin_translation(network: Any, tokenizer: Any, languages: Languages) -> tuple[tuple[int, ...], str]:
    """Tell the tokenizer the source language.

    Returns:
        The tokens that a translation begins with, and what comes before the source.

    Raises:
        UsageError: a language is missing, or the model does not have it, or an option means nothing to this model.
    """
    if network.config.model_type == "whisper":
        return _whisper(network, tokenizer, languages), ""
    languages.refuse("it does one thing only", "task")
    config = network.generation_config
    first = config.decoder_start_token_id
    first = network.config.decoder_start_token_id if first is None else first
    forced = [] if config.forced_bos_token_id is None else [config.forced_bos_token_id]
    if not hasattr(tokenizer, "src_lang"):
        languages.refuse("its source language is not chosen", "source_language")
        return (first, *forced), _word_before(tokenizer, languages)
    ids = _language_ids(tokenizer)
    known = set(ids.values())
    single = forced[0] if forced and forced[0] in known else first if first in known else None
    missing = [] if languages.source_language is not None else ["source_language"]
    missing += ["target_language"] if languages.target_language is None and single is None else []
    if missing:
        options = " and ".join(f"-a {name}=…" for name in missing)
        raise UsageError(f"the model has several languages: {', '.join(sorted(ids))}\n  fix: give {options}.")
    tokenizer.src_lang = _known(languages.source_language, ids)
    if languages.target_language is not None:
        single = ids[_known(languages.target_language, ids)]
    return tuple(token for token in (None if first in known else first, single) if token is not None), ""


def _language_ids(tokenizer: Any) -> dict[str, int]:
    """Code of a language → its token."""
    if ids := getattr(tokenizer, "lang_code_to_id", None):
        return dict(ids)
    others = set(tokenizer.special_tokens_map.values())
    codes = [token for token in tokenizer.all_special_tokens if token not in others]
    return dict(zip(codes, tokenizer.convert_tokens_to_ids(codes), strict=True))


def _known(name: str | None, codes: Any) -> str:
    """The name of a language that the model has."""
    if name is None or name not in codes:
        raise UsageError(f"the model has no language {name!r}.{did_you_mean(str(name), sorted(codes))}")
    return name


def _word_before(tokenizer: Any, languages: Languages) -> str:
    """The word that tells a Marian model the target language."""
    codes = [word.strip("<>") for word in getattr(tokenizer, "supported_language_codes", [])]
    if not codes:
        languages.refuse("its target language is not chosen", "target_language")
    target = languages.target_language
    return "" if target is None else f">>{_known(target, codes)}<< "


def _whisper(network: Any, tokenizer: Any, languages: Languages) -> tuple[int, ...]:
    """The tokens for language and task; a model that has heard English alone has none."""
    languages.refuse("it writes English (task=translate), or what it hears (task=transcribe)", "target_language")
    config = network.generation_config
    if not hasattr(tokenizer, "set_prefix_tokens"):
        languages.refuse("its tokenizer has no languages", "source_language", "task")
        return (config.decoder_start_token_id,)
    several = getattr(config, "is_multilingual", None)
    if several is False or (several is None and network.config.vocab_size < WHISPER_WITH_LANGUAGES):
        languages.refuse("it hears English and writes English", "source_language", "task")
        tokenizer.set_prefix_tokens(predict_timestamps=False)
        return tuple(tokenizer.prefix_tokens)
    if languages.source_language is None:
        raise UsageError(
            "the model hears several languages\n  fix: give the one that is spoken: -a source_language=de."
        )
    try:
        tokenizer.set_prefix_tokens(
            language=languages.source_language, task=languages.task or "translate", predict_timestamps=False
        )
        return tuple(tokenizer.prefix_tokens)
    except ValueError as error:
        raise UsageError(str(error)) from None


WHISPER_WITH_LANGUAGES = 51865
"""The size of the vocabulary from which on a Whisper model has several languages."""
