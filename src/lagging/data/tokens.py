# SPDX-License-Identifier: Apache-2.0
"""What a target token is: words, characters, pieces of a SentencePiece model, or the log's own tokens.

How many a text has, and which they are. Detecting, counting and splitting are in one file because they must agree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from lagging.data.scripts import are_unspaced
from lagging.errors import UsageError, optional

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

__all__ = [
    "AUDIO",
    "EOS",
    "LEVELS",
    "are_sounds",
    "check_level",
    "check_units",
    "check_untimed_level",
    "count_sentence_ends",
    "count_tokens",
    "detect_level",
    "ends_in_eos",
    "is_sound",
    "is_spm",
    "load_spm",
    "noun",
    "pieces_at",
    "resolve_level",
    "spans",
    "text_level",
    "tokens",
    "unknown_pieces",
    "without_eos",
]

EOS = "</s>"
"""The end-of-sentence mark that SimulEval 1.0 leaves in hypotheses, with a delay of its own."""

LEVELS = ("word", "char", "token", "spm")

AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".webm", ".mp4")
"""How the names of sound files end."""


def tokens(text: str, level: str) -> list[str]:
    """The tokens of a text: words between white space, characters other than white space, or pieces of a loaded model.

    A final end-of-sentence mark is one token, also among characters and pieces.

    Example:
        >>> tokens("Guten  Tag", "word"), tokens("你 好</s>", "char")
        (['Guten', 'Tag'], ['你', '好', '</s>'])
    """
    if level != "char" and not is_spm(level):
        return text.split()
    bare, mark = without_eos(text), ends_in_eos(text, level)
    units: Iterable[str] = "".join(bare.split()) if level == "char" else _model(level).encode(bare, out_type=str)
    return [*units, *([EOS] if mark else [])]


def spans(text: str, level: str) -> tuple[list[str], list[int], list[int]]:
    """The tokens of a text, and where each begins and ends in it.

    Example:
        >>> spans("你 好</s>", "char")
        (['你', '好', '</s>'], [0, 2, 3], [1, 3, 7])
    """
    if is_spm(level):
        return pieces_at(text, level)
    if level != "char":
        matches = list(re.finditer(r"\S+", text))
        return [m.group() for m in matches], [m.start() for m in matches], [m.end() for m in matches]
    bare = len(without_eos(text)) if ends_in_eos(text, level) else len(text)
    places = [place for place in range(bare) if not text[place].isspace()]
    units, stops = [text[place] for place in places], [place + 1 for place in places]
    if bare < len(text):
        places.append(text.rindex(EOS))
        units.append(EOS)
        stops.append(len(text.rstrip()))
    return units, places, stops


def ends_in_eos(text: str | None, level: str = "word") -> bool:
    """Whether the last token is the end-of-sentence mark; glued to a word, it is part of that word."""
    bare = (text or "").rstrip()
    apart = level == "char" or is_spm(level) or bare == EOS
    return bare.endswith(EOS) and (apart or bare[-len(EOS) - 1].isspace())


def without_eos(text: str) -> str:
    """The text before a final end-of-sentence mark."""
    bare = text.rstrip()
    return bare.removesuffix(EOS).rstrip() if bare.endswith(EOS) else text


def count_tokens(
    texts: Iterable[str | None], level: str, own: npt.NDArray[np.int64] | Sequence[int]
) -> npt.NDArray[np.int64]:
    """Tokens in each text; where there is no text, or the log counts its own tokens, the log's count `own`.

    The pieces of a SentencePiece model are counted over all texts at once.

    Example:
        >>> count_tokens(["a b", "", None], "word", [2, 0, 7])
        array([2, 0, 7])
        >>> count_tokens(["ab c", ""], "token", [5, 2])      # an empty text has no tokens at any level
        array([5, 0])
    """
    texts = list(texts)
    if level == "word" and None not in texts:
        return count_words(cast("list[str]", texts))
    if level == "word":
        counts = [n if text is None else len(text.split()) for text, n in zip(texts, own, strict=True)]
    elif is_spm(level):
        known = [text or "" for text in texts]
        pieces = _model(level).encode([without_eos(text) for text in known])
        lengths = [len(p) + ends_in_eos(text, level) for p, text in zip(pieces, known, strict=True)]
        counts = [n if text is None else k for text, n, k in zip(texts, own, lengths, strict=True)]
    elif level == "char":
        counts = [n if text is None else len(tokens(text, "char")) for text, n in zip(texts, own, strict=True)]
    else:
        counts = [0 if text is not None and not text.strip() else n for text, n in zip(texts, own, strict=True)]
    return np.array(counts, dtype=np.int64)


BLOCK = 512
"""Texts counted together: few enough for their bytes to stay in the cache (measured)."""


Counts = TypeVar("Counts", np.int64, np.bool_)


def as_bytes(texts: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The texts as UTF-8, a NUL before each, and where the NULs are: as many as texts, unless a text contains one."""
    raw = np.frombuffer(("\0" + "\0".join(texts)).encode("utf-8", "surrogatepass"), np.uint8)
    return raw, np.flatnonzero(raw == 0)


def in_blocks(count: Callable[[list[str]], npt.NDArray[Counts]], texts: list[str]) -> npt.NDArray[Counts]:
    """The result of `count` for each text; it is called with some texts at a time."""
    return np.concatenate([count(texts[i : i + BLOCK]) for i in range(0, max(len(texts), 1), BLOCK)])


def count_words(texts: list[str]) -> npt.NDArray[np.int64]:
    r"""`len(text.split())` of each text, in a third of the time.

    Counts, over many texts at once, the bytes that begin a word. That is right where the only white space is the plain
    space; where there is any other, each text is split.

    Example:
        >>> count_words(["guten  Tag", "", "a\tb"])
        array([2, 0, 2])
    """
    return in_blocks(_count_words, texts)


def _count_words(texts: list[str]) -> npt.NDArray[np.int64]:
    raw, breaks = as_bytes(texts)
    if np.count_nonzero(raw < ord(" ")) != len(texts) or has_other_space(raw):
        return np.array([len(text.split()) for text in texts], dtype=np.int64)
    space = raw <= ord(" ")
    begins = np.append(space[:-1] > space[1:], False)
    return np.add.reduceat(begins, breaks, dtype=np.int64)


def count_spaces(texts: list[str]) -> npt.NDArray[np.int64]:
    """`text.count(" ")` of each text.

    Example:
        >>> count_spaces(["guten  Tag", "", "ja"])
        array([2, 0, 0])
    """
    return in_blocks(_count_spaces, texts)


def _count_spaces(texts: list[str]) -> npt.NDArray[np.int64]:
    raw, breaks = as_bytes(texts)
    if len(breaks) != len(texts):
        return np.array([text.count(" ") for text in texts], dtype=np.int64)
    return np.add.reduceat(raw == ord(" "), breaks, dtype=np.int64)


OTHER_SPACES = (b"\xc2\x85", b"\xc2\xa0", b"\xe1\x9a\x80", b"\xe2\x80", b"\xe2\x81\x9f", b"\xe3\x80\x80")
GENERAL_SPACES = re.compile(rb"\xe2\x80[\x80-\x8a\xa8\xa9\xaf]")


def has_other_space(raw: npt.NDArray[np.uint8]) -> bool:
    """Whether UTF-8 text contains white space outside ASCII, as `str.split` understands it."""
    text = raw.tobytes()
    if text.isascii():
        return False
    spaces = [space for space in OTHER_SPACES if space in text]
    return bool(spaces) and (spaces != [b"\xe2\x80"] or GENERAL_SPACES.search(text) is not None)


def detect_level(
    texts: Iterable[str | None],
    lengths: npt.NDArray[np.int64] | Sequence[int],
    unspaced: npt.NDArray[np.int64] | Sequence[int] | None = None,
) -> str:
    """What the delays count: `word` or `char` if most texts have that many of them, else `token`.

    Most, not all: then a line with too few delays is a fault of that line, not a reason to count otherwise. Half of the
    texts are enough where the other of the two fits none of the rest. A text that is empty, or has no delays, does not
    tell; nor does one of `</s>` alone, beside others.

    Args:
        texts: what was written.
        lengths: how many delays each text has.
        unspaced: how many it has without those of white space, if that may have some.

    Example:
        >>> detect_level(["guten Tag", "ja"], [2, 1]), detect_level(["你好吗"], [3]), detect_level(["guten Tag"], [5])
        ('word', 'char', 'token')
        >>> detect_level(["guten Tag", "guten Abend"], [2, 4])
        'word'
    """
    rows = zip(texts, lengths, lengths if unspaced is None else unspaced, strict=True)
    known = [row for row in rows if row[0] and row[0].strip() and row[1]]
    known = [row for row in known if without_eos(row[0] or "").strip()] or known
    words = {place for place, (text, n, _) in enumerate(known) if len(tokens(text or "", "word")) == n}
    chars = {place for place, (text, _, n) in enumerate(known) if len(tokens(text or "", "char")) == n}
    for level, fitting, other in (("word", words, chars), ("char", chars, words)):
        if 2 * len(fitting) > len(known) or (fitting and 2 * len(fitting) == len(known) and other <= fitting):
            return level
    return "token"


def text_level(texts: Iterable[str | None]) -> str:
    """The level of texts without delays: characters if most are in a script without spaces, else words.

    Example:
        >>> text_level(["guten Tag", "", None]), text_level(["你好吗", "好", "OK"])
        ('word', 'char')
    """
    return "char" if are_unspaced(texts) else "word"


SENTENCE_END = re.compile(r"(?<![.!?…؟۔।॥])[.!?…؟۔।॥]++[\"'»”’›)\]}]*+(?=\s|$)|[。！？｡]++")
"""The end of a sentence: a mark before white space, or one of those that need none after them."""


def count_sentence_ends(text: str) -> int:
    """How many sentences end in a text, by its punctuation.

    Example:
        >>> count_sentence_ends("Is it 3.5? 'Yes...' Good"), count_sentence_ends("你好。好吗？")
        (2, 2)
    """
    return len(SENTENCE_END.findall(text))


def is_sound(text: str | None) -> bool:
    """Whether a text is the name of a sound file.

    Example:
        >>> is_sound("wavs/0_pred.WAV"), is_sound("guten Tag"), is_sound(None)
        (True, False, False)
    """
    return text is not None and text.strip().lower().endswith(AUDIO)


def are_sounds(texts: Iterable[str | None]) -> bool:
    """Whether texts are names of sound files: every one that is not empty is, and there is one.

    Example:
        >>> are_sounds(["a.wav", "", None, "b.wav"]), are_sounds(["a.wav", "play b"]), are_sounds([""])
        (True, False, False)
    """
    known = (text for text in texts if text and text.strip())
    first = next(known, None)
    return is_sound(first) and all(map(is_sound, known))


def is_torn(text: str) -> bool:
    """Whether a text has half of a surrogate pair in it, which UTF-8 cannot encode."""
    return any("\ud800" <= c <= "\udfff" for c in text)


# ---- the pieces of a SentencePiece model --------------------------------------------------------------------------

SPACE = "▁"
"""What stands for a space in pieces."""

_MODELS: dict[str, SentencePieceProcessor] = {}
"""Models by the level that they define."""


def load_spm(path: str | Path) -> str:
    """Load a SentencePiece model, and return the level whose tokens are its pieces: `spm-` and what identifies it.

    Its name has the first 8 hexadecimal digits of the SHA-256 of the file, so that a signature tells models apart.

    Raises:
        MissingExtraError: sentencepiece is not installed.
        UsageError: there is no such file, or it is not a model.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the SentencePiece model {path}: {error.strerror or error}") from None
    level = f"spm-{hashlib.sha256(content).hexdigest()[:8]}"
    if level not in _MODELS:
        sentencepiece = optional("sentencepiece", "spm")
        try:
            model = sentencepiece.SentencePieceProcessor(model_proto=content) if content else None
        except RuntimeError:
            model = None
        if model is None:
            raise UsageError(f"{path} is not a SentencePiece model\n  fix: give the file that ends in .model.")
        _MODELS[level] = model
    return level


def is_spm(level: str) -> bool:
    """Whether the tokens of a level are the pieces of a SentencePiece model."""
    return level.startswith("spm-")


def _model(level: str) -> SentencePieceProcessor:
    check_level(level)
    return _MODELS[level]


def pieces_at(text: str, level: str) -> tuple[list[str], list[int], list[int]]:
    """The pieces of a text by a loaded model, and where each begins and ends in it.

    Raises:
        UsageError: the model changes the text so much that its pieces cannot be found in it.
    """
    pieces = tokens(text, level)
    letters = [place for place, letter in enumerate(text) if not letter.isspace()]
    ends = list(accumulate(len(piece.replace(SPACE, "")) for piece in pieces))
    if ends and ends[-1] == len(letters):
        starts = [letters[min(end, len(letters) - 1)] for end in [0, *ends[:-1]]]
        return pieces, starts, [letters[end - 1] + 1 if end else 0 for end in ends]
    words = list(re.finditer(r"\S+", text))
    place = [n - 1 for n in accumulate(piece.startswith(SPACE) or i == 0 for i, piece in enumerate(pieces))]
    if pieces and place[-1] + 1 != len(words):
        raise UsageError(
            f"the model {level} changes the text so much that its pieces cannot be found in it\n"
            "  fix: --level word, if the log has a delay per word."
        )
    return pieces, [words[k].start() for k in place], [words[k].end() for k in place]


def check_units(unit: str | None, level: str | None) -> None:
    """Refuse an unknown unit or level."""
    if unit not in (None, "token", "ms"):
        raise UsageError(f"unit must be 'token' or 'ms', but got {unit!r}")
    if level is not None:
        check_level(level)


def check_level(level: str, where: str = "") -> None:
    """Refuse an unknown level, or one whose model has not been loaded.

    Example:
        >>> check_level("word")
        >>> check_level("words")
        Traceback (most recent call last):
        lagging.errors.UsageError: level must be one of word, char, token, spm, but is 'words'
    """
    prefix = f"{where}: " if where else ""
    if level == "spm":
        raise UsageError(
            f"{prefix}level spm needs a SentencePiece model\n  fix: --spm-model FILE (spm_model in Python)."
        )
    if is_spm(level) and level not in _MODELS:
        raise UsageError(
            f"{prefix}the tokens are the pieces of a SentencePiece model, {level}, which has not been given\n"
            "  fix: --level spm --spm-model FILE (spm_model in Python), or --level token."
        )
    if level not in LEVELS and level not in _MODELS:
        raise UsageError(f"{prefix}level must be one of {', '.join(LEVELS)}, but is {level!r}")


def check_untimed_level(level: str, where: str = "") -> None:
    """Refuse a level whose tokens cannot be counted without their delays."""
    check_level(level, where)
    if level == "token":
        prefix = f"{where}: " if where else ""
        raise UsageError(
            f"{prefix}without delays it is not known how many tokens of its own the log has\n"
            "  fix: count words or characters, --level word or --level char."
        )


def resolve_level(level: str | None, spm_model: str | Path | None) -> str | None:
    """The level that results from a level and a model; a level that names its model needs that model.

    Example:
        >>> resolve_level("word", None), resolve_level(None, None)
        ('word', None)
    """
    if spm_model is not None:
        if level is not None and level != "spm" and not is_spm(level):
            raise UsageError(f"a SentencePiece model goes with level spm, not with {level}")
        loaded = load_spm(spm_model)
        if level is not None and is_spm(level) and level != loaded:
            raise UsageError(f"{spm_model} is the model {loaded}, but {level} is needed")
        return loaded
    if level is not None:
        check_level(level)
    return level


def noun(level: str) -> str:
    """The noun for one token.

    Example:
        >>> noun("word"), noun("spm-1a2b3c4d")
        ('word', 'piece')
    """
    return "piece" if is_spm(level) else level


def unknown_pieces(pieces: Iterable[Any], level: str) -> bool:
    """Whether some of the pieces that a log shows are not pieces of the model: then it may be the wrong one."""
    model = _model(level)
    unknown = model.id_to_piece(model.unk_id())
    return any(model.piece_to_id(str(piece)) == model.unk_id() for piece in pieces if piece not in (unknown, EOS))
