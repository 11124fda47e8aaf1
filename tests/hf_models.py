# SPDX-License-Identifier: Apache-2.0
"""Tiny models with random weights, as folders of Hugging Face; a tokenizer that is trained on the spot."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

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


def save(kind: str, folder: Path) -> Path:
    torch.manual_seed(1)
    words = tokenizer(ends=kind == "marian")
    common = {"vocab_size": len(words), "pad_token_id": PAD, "eos_token_id": END, "bos_token_id": BEGIN}
    tiny = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 16))
    }
    model: Any
    if kind == "marian":
        model = MarianMTModel(
            MarianConfig(
                **common, **tiny, d_model=16, decoder_start_token_id=PAD, forced_eos_token_id=None,
                max_position_embeddings=64,
            )
        )  # fmt: skip
    elif kind == "whisper":
        model = WhisperForConditionalGeneration(
            WhisperConfig(
                **common, **tiny, d_model=16, num_mel_bins=8, max_source_positions=50, max_target_positions=64,
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
