# SPDX-License-Identifier: Apache-2.0
"""A Marian model of `transformers`, trained on whole sentences and saved as a Hugging Face folder.

    python -m lab.marian --data FOLDER --output FOLDER     # about half an hour on one core

It is of the size of the lab's own offline model, and has the same subwords, batches and learning rates. Unlike that
model, its encoder is bidirectional. Each epoch ends with a checkpoint; the same command goes on after it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from lab.data import END, PAD, UNKNOWN, Corpus, Pieces, batches, read_multi30k, verb_final
from lagging.data.files import write_whole

__all__ = ["Recipe", "save", "train"]

Recipe = dict[str, float]
"""Numbers that decide what comes out of a training; the learning rate falls over `schedule` epochs."""

MULTI30K: Recipe = {
    "pieces": 2000, "width": 128, "layers": 2, "heads": 4, "inner": 256, "dropout": 0.1, "epochs": 6, "schedule": 8,
    "rate": 2e-3, "warm_up": 800, "tokens": 1000, "smoothing": 0.1, "watched": 100, "seed": 1,
}  # fmt: skip
VERB_FINAL: Recipe = MULTI30K | {
    "pieces": 60,
    "width": 32,
    "layers": 1,
    "heads": 2,
    "inner": 64,
    "epochs": 1,
    "schedule": 1,
}
CHECKPOINT = "checkpoint.pt"


def make(recipe: Recipe) -> Any:
    """The model, with random weights."""
    from transformers import MarianConfig, MarianMTModel

    size = {name: int(recipe[name]) for name in ("pieces", "width", "layers", "heads", "inner")}
    sides = {
        f"{side}_{name}": size[key]
        for side in ("encoder", "decoder")
        for name, key in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "inner"))
    }
    config = MarianConfig(
        vocab_size=size["pieces"], d_model=size["width"], dropout=recipe["dropout"], max_position_embeddings=256,
        activation_function="relu", scale_embedding=True, init_std=size["width"] ** -0.5, pad_token_id=PAD,
        decoder_start_token_id=PAD, eos_token_id=END, forced_eos_token_id=None, **sides,
    )  # fmt: skip
    model = MarianMTModel(config)
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and "embed" not in name and "shared" not in name:
            nn.init.xavier_uniform_(weight)
    return model


def save(model: Any, pieces: Pieces, folder: Path) -> None:
    """Write model and tokenizer as a folder that `transformers` loads, and `lagging run hf:FOLDER` too."""
    from transformers import GenerationConfig, MarianTokenizer

    vocabulary = {pieces.piece(number): number for number in range(len(pieces))}
    folder.mkdir(parents=True, exist_ok=True)
    with write_whole(folder / "vocab.json") as file:
        json.dump(vocabulary, file, ensure_ascii=False)
    for name in ("source.spm", "target.spm"):
        with write_whole(folder / name, binary=True) as file:
            file.write(pieces.path.read_bytes())
    names = {"pad_token": PAD, "eos_token": END, "unk_token": UNKNOWN}
    tokenizer = MarianTokenizer(
        str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"), source_lang="de",
        target_lang="en", **{name: pieces.piece(number) for name, number in names.items()},
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    model.generation_config = GenerationConfig(
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, max_new_tokens=128, bad_words_ids=[[PAD]]
    )
    model.save_pretrained(folder)


def train(corpus: Corpus, recipe: Recipe, work: Path) -> tuple[Any, Pieces]:
    """Train the model, or go on with it; the model and its subwords.

    Raises:
        SystemExit: the folder holds a training by another recipe.
    """
    work.mkdir(parents=True, exist_ok=True)
    pieces = Pieces.train(corpus, work / "pieces.model", int(recipe["pieces"]))
    pairs = [([*source, END], target) for source, target in pieces.pairs(corpus.parts["train"])]
    torch.manual_seed(int(recipe["seed"]))
    chance, model = random.Random(int(recipe["seed"])), make(recipe)
    optimizer = torch.optim.Adam(model.parameters(), recipe["rate"], betas=(0.9, 0.98))
    done, step, path = 0, 0, work / CHECKPOINT
    if path.exists():
        checkpoint = torch.load(path, weights_only=True)
        if checkpoint["recipe"] != recipe:
            raise SystemExit(f"{path} was trained by another recipe: remove it, or give another --work")
        model.load_state_dict(checkpoint["weights"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        torch.set_rng_state(checkpoint["torch"])
        version, state, gauss = json.loads(checkpoint["chance"])
        chance.setstate((version, tuple(state), gauss))
        done, step = checkpoint["epochs"], checkpoint["step"]
    while done < recipe["epochs"]:
        model.train()
        groups = list(batches(pairs, int(recipe["tokens"]), chance))
        losses = []
        for source, target in groups:
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = _rate(recipe, step, len(groups) * int(recipe["schedule"]))
            loss = _loss(model, source, target, recipe["smoothing"])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(float(loss.detach()))
        done += 1
        checkpoint = {
            "recipe": recipe, "weights": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs": done,
            "step": step, "torch": torch.get_rng_state(), "chance": json.dumps(chance.getstate()),
        }  # fmt: skip
        with write_whole(path, binary=True) as file:
            torch.save(checkpoint, file)
        watched = corpus.parts["val"][: int(recipe["watched"])]
        bleu = sacrebleu.corpus_bleu(translate(model, pieces, [s for s, _ in watched]), [[t for _, t in watched]])
        line = f"epoch {done} of {recipe['epochs']:g}: loss {sum(losses) / len(losses):.3f}, BLEU {bleu.score:.2f}"
        print(line, file=sys.stderr, flush=True)
    return model, pieces


def _rate(recipe: Recipe, step: int, steps: int) -> float:
    """Of learning: up in a straight line, then down by a cosine."""
    rise, done = min(step / min(recipe["warm_up"], steps / 8), 1.0), min(step / steps, 1.0)
    return recipe["rate"] * rise * (0.02 + 0.49 * (1 + math.cos(math.pi * done)))


def _loss(model: Any, source: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """Cross entropy per token, with smoothed labels."""
    logits = model(
        input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=pad(target, (1, -1), value=PAD)
    ).logits
    return cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=smoothing)


@torch.inference_mode()
def translate(model: Any, pieces: Pieces, texts: Sequence[str]) -> list[str]:
    """Translations of whole sentences, token by token the most likely one."""
    model.eval()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(pieces.path))
    made: list[str] = []
    for begin in range(0, len(texts), 100):
        rows = [[*processor.encode(text), END] for text in texts[begin : begin + 100]]
        width = max(map(len, rows))
        source = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
        out = model.generate(
            input_ids=source, attention_mask=(source != PAD).long(), max_new_tokens=100, bad_words_ids=[[PAD]],
        )  # fmt: skip
        made += [processor.decode([n for n in row if n not in (PAD, END)]) for row in out.tolist()]
    return made


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m lab.marian", description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with Multi30k (lab/README.md says where to get it)")
    parser.add_argument("--smoke", action="store_true", help="a small version, on a language of its own")
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work" / "marian", help="checkpoints")
    parser.add_argument("--output", type=Path, help="the Hugging Face folder (in --work: model)")
    args = parser.parse_args()
    if not args.smoke and args.data is None:
        raise SystemExit("say where Multi30k is: --data FOLDER (lab/README.md says where to get it)")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    corpus = verb_final(400) if args.smoke else read_multi30k(args.data)
    model, pieces = train(corpus, VERB_FINAL if args.smoke else MULTI30K, args.work)
    save(model, pieces, args.output or args.work / "model")


if __name__ == "__main__":
    main()
