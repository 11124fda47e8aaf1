# SPDX-License-Identifier: Apache-2.0
"""What an agent listens to: sentences of text or of speech, given out a piece at a time.

Text is given out word by word (or by characters, or by the pieces of a SentencePiece model), speech in chunks of so
many milliseconds. A sound file is read once, when its turn comes, into one array of float32; an agent sees the part of
it that has been read.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.data.tokens import load_spm, tokens
from lagging.errors import UsageError, counted, optional

__all__ = ["Speech", "Spoken", "Tape", "Text", "Written", "chunk_size", "lines_of", "open_source", "text_level"]

SOURCE_LEVELS = ("word", "char", "spm")
SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".m4a")


def lines_of(path: str | Path) -> list[str]:
    """The lines of a file of UTF-8, also if it is compressed.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start + 1}") from None
    lines = text.split("\n")  # and at nothing else: a text may hold other line ends of Unicode
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


# ---- one sentence -------------------------------------------------------------------------------------------------


class Written:
    """A sentence of text, given out some units at a time.

    Attributes:
        seen: what has been read; the list that the agent sees.
        read: how much that is, in source tokens.
        length: |x|.
        finished: whether that is all.
    """

    __slots__ = ("_chunk", "_units", "finished", "length", "read", "seen")
    sample_rate = 0

    def __init__(self, units: list[str], chunk: int = 1) -> None:
        self._units, self._chunk = units, chunk
        self.seen: list[str] = []
        self.read = 0
        self.length = len(units)
        self.finished = not units

    @property
    def reads(self) -> int:
        """How many reads the whole of it takes."""
        return -(-self.length // self._chunk)

    def advance(self) -> list[str]:
        """Read on; what has been read."""
        seen, read = self.seen, self.read
        seen += self._units[read : read + self._chunk]
        read += self._chunk
        self.read = read = read if read < self.length else self.length  # not len(seen): an agent may have changed it
        self.finished = read == self.length
        return seen


class Spoken:
    """A recording, given out some milliseconds at a time; the same attributes, in ms."""

    __slots__ = ("_at", "_chunk", "_samples", "finished", "length", "read", "sample_rate", "seen")

    def __init__(self, samples: Any, sample_rate: int, chunk: float) -> None:
        samples.flags.writeable = False
        self._samples, self.sample_rate = samples, sample_rate
        self._chunk = math.ceil(chunk / 1000 * sample_rate)
        self._at = 0
        self.seen = samples[:0]
        self.read = 0.0
        self.length = len(samples) * 1000 / sample_rate
        self.finished = not len(samples)

    @property
    def reads(self) -> int:
        """How many reads the whole of it takes."""
        return -(-len(self._samples) // self._chunk)

    def advance(self) -> Any:
        """Read on; what has been read."""
        self._at = min(self._at + self._chunk, len(self._samples))
        self.read = self._at * 1000 / self.sample_rate
        self.finished = self._at == len(self._samples)
        self.seen = self._samples[: self._at]
        return self.seen


class Tape:
    """Samples that come piece by piece: one array, made twice as long when it is full, so that few are copied.

    Args:
        most: how many samples may come; the array is not made longer.

    Example:
        >>> tape = Tape()
        >>> tape.add([1, 2])
        >>> tape.add([3])
        >>> tape.heard
        array([1., 2., 3.], dtype=float32)
    """

    __slots__ = ("_end", "_most", "_room")

    def __init__(self, most: float = math.inf) -> None:
        self._room, self._end, self._most = np.empty(0, np.float32), 0, most

    def add(self, samples: Any) -> None:
        """More of them."""
        begin, self._end = self._end, self._end + len(samples)
        if self._end > len(self._room):  # what somebody has kept of the shorter one stays as it is
            longer = np.empty(max(int(min(2 * len(self._room), self._most)), self._end), np.float32)
            longer[:begin] = self._room[:begin]
            self._room = longer
        self._room[begin : self._end] = samples

    @property
    def heard(self) -> Any:
        """All so far, for reading."""
        seen = self._room[: self._end]
        seen.flags.writeable = False
        return seen


# ---- a test set ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """The sentences of a text file, one a line.

    Attributes:
        lines: the sentences.
        level: what is read at a time: "word", "char", or the pieces of a model ("spm-…").
        chunk: how many of them.
    """

    lines: Sequence[str]
    level: str = "word"
    chunk: int = 1

    unit = "token"
    kind = "text"

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.lines)

    def open(self, place: int) -> Written:
        """A sentence, from its beginning."""
        line = self.lines[place]
        return Written(line.split() if self.level == "word" else tokens(line, self.level), self.chunk)

    def shown(self, place: int) -> str:
        """How the log names the source: by itself."""
        return " ".join(self.lines[place].split()) if self.level == "word" else self.lines[place]


@dataclass(frozen=True)
class Speech:
    """Sound files, one a line of a list.

    Attributes:
        paths: the files.
        chunk: how many ms are read at a time.
        home: where relative paths begin, wherever an agent may go.
    """

    paths: Sequence[str]
    chunk: float = 500
    home: Path = field(default_factory=Path.cwd)

    unit = "ms"
    kind = "speech"

    def __len__(self) -> int:
        """Number of recordings."""
        return len(self.paths)

    def open(self, place: int) -> Spoken:
        """A recording, read once."""
        soundfile = optional("soundfile", "speech")
        try:
            samples, rate = soundfile.read(self.home / self.paths[place], dtype="float32")
        except (OSError, soundfile.SoundFileError) as error:
            raise Failure("unreadable", str(error)) from None
        if samples.ndim > 1:
            raise Failure("unreadable", f"{self.paths[place]} has {samples.shape[1]} channels, agents hear one")
        return Spoken(samples, rate, self.chunk)

    def shown(self, place: int) -> list[str]:
        """How the log names the source: its file, and what SimulEval's logs say of it."""
        soundfile = optional("soundfile", "speech")
        try:
            told = str(soundfile.info(self.home / self.paths[place]))
        except (OSError, soundfile.SoundFileError):  # it was there when the run began; the line says that it failed
            return [self.paths[place]]
        return [self.paths[place], *told.split("\n")[1:]]

    def check(self, name: str, given: Sequence[str]) -> None:
        """Look at the head of every file, and say at once what is wrong with any.

        Args:
            name: the list of them.
            given: as they are called there.
        """
        soundfile = optional("soundfile", "speech")
        wrong = []
        for number, (path, line) in enumerate(zip(self.paths, given, strict=True), 1):
            if not _is_there(path):
                wrong.append(f"{name}:{number}: no such file: {line}{f', nor {path}' if path != line else ''}")
                continue
            try:
                if (channels := soundfile.info(path).channels) != 1:
                    wrong.append(f"{name}:{number}: {path} has {channels} channels; agents hear one: mix them first")
            except (OSError, soundfile.SoundFileError) as error:
                wrong.append(f"{name}:{number}: {error}")
            except UnicodeEncodeError:
                wrong.append(f"{name}:{number}: {path}: a sound file whose name is not UTF-8 cannot be opened")
        if len(wrong) == len(given) and not any(map(_is_there, self.paths)):
            raise UsageError(
                f"{wrong[0]}; and so with every line: {counted(len(wrong), 'sound file')} cannot be found\n"
                f'  The agent declares source = "speech".\n  fix: is {name} a list of sound files, one path a line?'
            )
        if wrong:
            more = f"\n  and {len(wrong) - 10} more" if len(wrong) > 10 else ""
            raise UsageError(
                f"{counted(len(wrong), 'sound file')} cannot be used:\n  " + "\n  ".join(wrong[:10]) + more
            )


def open_source(
    path: str | Path,
    kind: str = "text",
    *,
    level: str = "word",
    spm_model: str | Path | None = None,
    chunk: float | None = None,
    check: bool = True,
) -> Text | Speech:
    """The test set in a file: sentences of text, or a list of sound files.

    Args:
        path: one sentence, or the path of one sound file, a line. Paths are as given, or else from where the list is.
        kind: "text" or "speech".
        level: of text, what is read at a time: "word", "char", or "spm" with a model.
        spm_model: the SentencePiece model.
        chunk: how much is read at a time: source tokens (1 if not given), or ms (500).
        check: whether to look at every sound file.

    Raises:
        UsageError: a file cannot be read, or makes no sense.
    """
    lines, size = lines_of(path), chunk_size(kind, chunk)
    if not lines:
        raise UsageError(f"{path} is empty: there is nothing to translate")
    if kind == "speech":
        blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
        if blank:
            raise UsageError(f"{path}:{blank[0]}: there is no sound file on this line")
        given = [line.strip() for line in lines]
        speech = Speech([line if _is_there(line) else str(Path(path).parent / line) for line in given], size)
        if check:
            speech.check(str(path), given)
        return speech
    if check and all(line.strip().lower().endswith(SOUNDS) and _is_there(line.strip()) for line in lines):
        raise UsageError(
            f'every line of {path} is the path of a sound file, but the agent declares source = "text"\n'
            '  fix: write source = "speech" into the class of an agent that listens.'
        )
    return Text(lines, text_level(level, spm_model), int(size))


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # a sentence is too long for the name of a file
        return False


def text_level(level: str, spm_model: str | Path | None = None) -> str:
    """What of a text is read at a time, with the model by its name.

    Raises:
        UsageError: there is no such level, or a model is missing, or there for nothing.
    """
    if level not in SOURCE_LEVELS:
        raise UsageError(f"a source is read by one of {', '.join(SOURCE_LEVELS)}, not {level!r}")
    if (level == "spm") != (spm_model is not None):
        fix = "give --spm-model FILE" if level == "spm" else "give --source-level spm"
        raise UsageError(f"--spm-model goes with --source-level spm, and that with a model\n  fix: {fix}.")
    return level if spm_model is None else load_spm(spm_model)


def chunk_size(kind: str, chunk: float | None) -> float:
    """How much is read at a time: source tokens (1 if not given), or ms (500).

    Raises:
        UsageError: it is nothing, or no number.
    """
    if kind == "speech":
        if chunk is not None and not 1 <= chunk < math.inf:
            raise UsageError(f"--chunk: speech is read 1 ms or more at a time, but got {chunk:g}")
        return 500 if chunk is None else chunk
    if chunk is not None and (chunk < 1 or chunk % 1 != 0):
        raise UsageError(f"--chunk: text is read 1 or more tokens at a time, in whole numbers, but got {chunk:g}")
    return 1 if chunk is None else chunk


def as_floats(samples: Any) -> Any:
    """Samples that an agent wrote, as one row of float32."""
    try:
        array = np.asarray(samples, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise Failure("wrong-type", f"samples of speech are numbers: {error}") from None
    if array.ndim != 1:
        raise Failure("wrong-type", f"samples of speech are one row of numbers, but these have {array.ndim} dimensions")
    if not np.isfinite(array).all():
        raise Failure("wrong-type", "samples of speech are numbers, but some of these are NaN or infinite")
    return array
