# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, as folders of Hugging Face; a tokenizer that is trained on the spot."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import soundfile
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MambaConfig,
    MambaForCausalLM,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperTokenizer,
)
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES
from transformers.models.whisper.tokenization_whisper import LANGUAGES as HEARD

SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
PAD, END, UNKNOWN, BEGIN = range(4)
TEMPLATE = "say: {source} so:"
SYLLABLES = ("ba", "do", "gu", "ki", "lem", "ra", "sto", "vi")


def sentences(count: int, seed: int = 3) -> list[str]:
    draw = random.Random(seed)
    word = lambda: "".join(draw.choices(SYLLABLES, k=draw.randint(1, 3)))  # noqa: E731
    return [" ".join(word() for _ in range(draw.randint(2, 6))) for _ in range(count)]


def tokenizer(ends: bool) -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=60, special_tokens=SPECIAL, show_progress=False)
    made.train_from_iterator([*sentences(200), "say: so:"], trainer)
    if ends:
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    names = dict(zip(("pad_token", "eos_token", "unk_token", "bos_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def lively(model: Any) -> Any:
    """Weights so large that what comes out depends on what went in."""
    torch.manual_seed(5)
    for name, weight in model.named_parameters():
        if weight.dim() > 1 and "embed_positions" not in name:
            torch.nn.init.normal_(weight, 0, 0.7)
    return model.eval()


TINY = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
}
LANGUAGES = {"nllb": ("deu_Latn", "eng_Latn"), "m2m": ("de", "en"), "mbart": ("de_DE", "en_XX")}
"""Languages of the models that have several: of the source and of the target."""
THEIRS = ["<s>", "<pad>", "</s>", "<unk>"]
"""The special tokens of these models, in their order."""


def save_with_languages(kind: str, folder: Path) -> Path:
    """A model of several languages, or T5, with the tokenizer of its own class."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.train_from_iterator(
        sentences(200), trainers.BpeTrainer(vocab_size=60, special_tokens=THEIRS, show_progress=False)
    )
    vocabulary = json.loads(made.to_str())["model"]
    pieces = sorted(vocabulary["vocab"], key=vocabulary["vocab"].get)[len(THEIRS) :]
    scored = [(piece, -1.0 / len(piece)) for piece in pieces]  # few long pieces are better than many short ones
    words: Any
    if kind == "nllb":
        merges = [tuple(merge) for merge in vocabulary["merges"]]
        words = NllbTokenizer(vocabulary["vocab"], merges, extra_special_tokens=[*LANGUAGES[kind], "fra_Latn"])
    elif kind == "mbart":
        special = [(token, 0.0) for token in THEIRS]
        codes = [(token, 0.0) for token in (*FAIRSEQ_LANGUAGE_CODES, "<mask>")]
        words = MBartTokenizer([*special, *scored, *codes])
    elif kind == "t5":
        special = [(token, 0.0) for token in ("<pad>", "</s>", "<unk>")]
        words = T5Tokenizer([*special, *scored, ("<extra_id_0>", 0.0)], extra_ids=1)
    else:
        model = folder.with_name("m2m.model")
        text = folder.with_name("m2m.txt")
        text.write_text("\n".join(sentences(200)))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(model.with_suffix("")), vocab_size=60, minloglevel=2,
        )  # fmt: skip
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        own = [processor.id_to_piece(number) for number in range(3, processor.vocab_size())]
        file = folder.with_name("m2m.json")
        file.write_text(json.dumps({token: number for number, token in enumerate([*THEIRS, *own])}))
        words = M2M100Tokenizer(str(file), str(model))
    size = len(words) + (len(words.lang_code_to_id) if kind == "m2m" else 0)
    common = {"vocab_size": size, "d_model": 16}
    start, end, pad, banned = 2, 2, 1, [0, 3]
    network: Any
    if kind == "t5":
        start, end, pad, banned = 0, 1, 0, [2, words.convert_tokens_to_ids("<extra_id_0>")]
        network = T5ForConditionalGeneration(
            T5Config(**common, d_kv=8, d_ff=16, num_layers=1, num_heads=2, tie_word_embeddings=False)
        )
    elif kind == "mbart":
        start = words.convert_tokens_to_ids("ro_RO")
        banned += words.convert_tokens_to_ids([*FAIRSEQ_LANGUAGE_CODES, "<mask>"])
        network = MBartForConditionalGeneration(
            MBartConfig(**common, **TINY, max_position_embeddings=64, forced_eos_token_id=None)
        )
    else:
        languages = words.lang_code_to_id if kind == "m2m" else [*LANGUAGES[kind], "fra_Latn", "<mask>"]
        banned += words.lang_code_to_id.values() if kind == "m2m" else words.convert_tokens_to_ids(languages)
        network = M2M100ForConditionalGeneration(M2M100Config(**common, **TINY, max_position_embeddings=64))
    network.generation_config = GenerationConfig(
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=start, suppress_tokens=sorted(banned)
    )
    lively(network).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def save_marian_of_several(folder: Path) -> Path:
    """A Marian model of several target languages, with the tokenizer of its class."""
    folder.mkdir()
    (folder / "text.txt").write_text("\n".join(sentences(200)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "source"), vocab_size=60, minloglevel=2
    )
    piece_of = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model")).id_to_piece
    pieces = ["<pad>", "</s>", "<unk>", *(piece_of(number) for number in range(3, 60)), ">>fra<<", ">>spa<<"]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    model = str(folder / "source.model")
    words = MarianTokenizer(model, model, str(folder / "vocab.json"))
    network = MarianMTModel(
        MarianConfig(
            **TINY, vocab_size=len(pieces), d_model=16, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
            forced_eos_token_id=None, max_position_embeddings=64,
        )
    )  # fmt: skip
    network.generation_config = GenerationConfig(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
    lively(network).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def whisper_with_languages(folder: Path, multilingual: bool) -> Path:
    """A Whisper model with the special tokens of the real ones."""
    letters = [chr(number) for number in range(33, 127)]
    special = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in HEARD), "<|translate|>"]
    special += ["<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    words = WhisperTokenizer(
        {token: number for number, token in enumerate([*letters, *special])}, [], additional_special_tokens=special
    )
    end, start = words.convert_tokens_to_ids(["<|endoftext|>", "<|startoftranscript|>"])
    network = WhisperForConditionalGeneration(
        WhisperConfig(
            **TINY, vocab_size=len(words), d_model=16, num_mel_bins=8, max_source_positions=50, max_target_positions=64,
            pad_token_id=end, eos_token_id=end, bos_token_id=end, decoder_start_token_id=start,
        )
    )  # fmt: skip
    network.generation_config = GenerationConfig(
        pad_token_id=end, eos_token_id=end, decoder_start_token_id=start, is_multilingual=multilingual
    )
    WhisperFeatureExtractor(feature_size=8, chunk_length=1).save_pretrained(folder)
    lively(network).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def save(kind: str, folder: Path) -> Path:
    torch.manual_seed(1)
    if kind in LANGUAGES or kind == "t5":
        return save_with_languages(kind, folder)
    words = tokenizer(ends=kind == "marian")
    common = {"vocab_size": len(words), "pad_token_id": PAD, "eos_token_id": END, "bos_token_id": BEGIN}
    model: Any
    if kind == "marian":
        model = MarianMTModel(
            MarianConfig(
                **common, **TINY, d_model=16, decoder_start_token_id=PAD, forced_eos_token_id=None,
                max_position_embeddings=64,
            )
        )  # fmt: skip
    elif kind == "whisper":
        model = WhisperForConditionalGeneration(
            WhisperConfig(
                **common, **TINY, d_model=16, num_mel_bins=8, max_source_positions=50, max_target_positions=64,
                decoder_start_token_id=BEGIN, suppress_tokens=None, begin_suppress_tokens=None,
            )
        )  # fmt: skip
        WhisperFeatureExtractor(feature_size=8, chunk_length=1).save_pretrained(folder)
    elif kind == "llama":
        model = LlamaForCausalLM(
            LlamaConfig(
                **common, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=2, max_position_embeddings=128,
            )
        )  # fmt: skip
    else:
        model = MambaForCausalLM(MambaConfig(**common, hidden_size=16, num_hidden_layers=1, state_size=4))
    starts = {"marian": PAD, "whisper": BEGIN}
    model.generation_config = GenerationConfig(
        pad_token_id=PAD, eos_token_id=END, bos_token_id=BEGIN, decoder_start_token_id=starts.get(kind),
        bad_words_ids=[[PAD]] if kind == "marian" else None, suppress_tokens=[BEGIN, UNKNOWN],
    )  # fmt: skip
    lively(model).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def sounds(folder: Path, count: int) -> list[str]:
    """Noise, 0.5 to 1 s long."""
    draw, paths = np.random.default_rng(2), []
    for i in range(count):
        paths.append(str(folder / f"{i}.wav"))
        samples = np.cumsum(draw.normal(0, 0.02, 8000 + 2000 * (i % 5)))
        soundfile.write(paths[-1], samples / np.abs(samples).max(), 16_000)
    return paths
