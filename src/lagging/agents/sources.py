# SPDX-License-Identifier: Apache-2.0
"""Sources: sentences of text or of speech, read in pieces.

Text is read word by word (or by characters, or by the pieces of a SentencePiece model), speech in chunks of some
milliseconds. A sound file is read once, when its turn comes, into one float32 array; an agent sees the part of it that
has been read.
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

__all__ = [
    "SampleBuffer",
    "SpeechSource",
    "SpeechTestSet",
    "TextSource",
    "TextTestSet",
    "chunk_size",
    "open_source",
    "read_text_lines",
    "text_level",
]

SOURCE_LEVELS = ("word", "char", "spm")
SOUND_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".m4a")


def read_text_lines(path: str | Path) -> list[str]:
    """The lines of a UTF-8 file, which may be compressed with gzip.

    Raises:
        UsageError: the file cannot be read, or is not UTF-8.
    """
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: byte {error.start + 1}") from None
    lines = text.split("\n")  # only there: a text may contain other line ends of Unicode
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


# ---- a sentence ---------------------------------------------------------------------------------------------------


class TextSource:
    """A source sentence of text.

    Attributes:
        seen: what has been read; the list that the agent sees.
        read: the number of source tokens that have been read.
        length: |x|.
        finished: whether all of it has been read.
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
        """The number of reads that the whole source takes."""
        return -(-self.length // self._chunk)

    def advance(self) -> list[str]:
        """Read the next chunk; returns all that has been read."""
        seen, read = self.seen, self.read
        seen += self._units[read : read + self._chunk]
        read += self._chunk
        self.read = read = (
            read if read < self.length else self.length
        )  # not len(seen): an agent may have changed the list
        self.finished = read == self.length
        return seen


class SpeechSource:
    """A recording; the same attributes as `TextSource`, in ms."""

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
        """The number of reads that the whole source takes."""
        return -(-len(self._samples) // self._chunk)

    def advance(self) -> Any:
        """Read the next chunk; returns all that has been read."""
        self._at = min(self._at + self._chunk, len(self._samples))
        self.read = self._at * 1000 / self.sample_rate
        self.finished = self._at == len(self._samples)
        self.seen = self._samples[: self._at]
        return self.seen


class SampleBuffer:
    """Samples that arrive in pieces: one array, doubled when it is full, so that few samples are copied.

    Args:
        max_samples: the largest number of samples that may arrive; the array does not grow beyond it.

    Example:
        >>> tape = SampleBuffer()
        >>> tape.add([1, 2])
        >>> tape.add([3])
        >>> tape.samples_so_far
        array([1., 2., 3.], dtype=float32)
    """

    __slots__ = ("_end", "_max_samples", "_room")

    def __init__(self, max_samples: float = math.inf) -> None:
        self._room, self._end, self._max_samples = np.empty(0, np.float32), 0, max_samples

    def add(self, samples: Any) -> None:
        """Append samples."""
        begin, self._end = self._end, self._end + len(samples)
        if self._end > len(self._room):  # views of the shorter array stay valid
            longer = np.empty(max(int(min(2 * len(self._room), self._max_samples)), self._end), np.float32)
            longer[:begin] = self._room[:begin]
            self._room = longer
        self._room[begin : self._end] = samples

    @property
    def samples_so_far(self) -> Any:
        """All samples so far, as a read-only view."""
        seen = self._room[: self._end]
        seen.flags.writeable = False
        return seen


# ---- a test set ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextTestSet:
    """The sentences of a text file, one per line.

    Attributes:
        lines: the sentences.
        level: the unit that is read: "word", "char", or the pieces of a model ("spm-…").
        chunk: the number of units per read.
    """

    lines: Sequence[str]
    level: str = "word"
    chunk: int = 1

    unit = "token"
    kind = "text"

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.lines)

    def open(self, index: int) -> TextSource:
        """A sentence, from its beginning."""
        line = self.lines[index]
        return TextSource(line.split() if self.level == "word" else tokens(line, self.level), self.chunk)

    def log_entry(self, index: int) -> str:
        """The source as the log has it: the text itself."""
        return " ".join(self.lines[index].split()) if self.level == "word" else self.lines[index]


@dataclass(frozen=True)
class SpeechTestSet:
    """Sound files, one per line of a list.

    Attributes:
        paths: the files.
        chunk: ms per read.
        home: the folder that relative paths start from, even if an agent changes the working directory.
    """

    paths: Sequence[str]
    chunk: float = 500
    home: Path = field(default_factory=Path.cwd)

    unit = "ms"
    kind = "speech"

    def __len__(self) -> int:
        """Number of recordings."""
        return len(self.paths)

    def open(self, index: int) -> SpeechSource:
        """A recording, from its beginning."""
        soundfile = optional("soundfile", "speech")
        try:
            samples, rate = soundfile.read(self.home / self.paths[index], dtype="float32")
        except (OSError, soundfile.SoundFileError) as error:
            raise Failure("unreadable", str(error)) from None
        if samples.ndim > 1:
            raise Failure("unreadable", f"{self.paths[index]} has {samples.shape[1]} channels, agents hear one")
        return SpeechSource(samples, rate, self.chunk)

    def log_entry(self, index: int) -> list[str]:
        """The source as the log has it: the path, and what SimulEval's logs say of the file."""
        soundfile = optional("soundfile", "speech")
        try:
            info = str(soundfile.info(self.home / self.paths[index]))
        except (OSError, soundfile.SoundFileError):  # it could be read when the run began; the log line has the failure
            return [self.paths[index]]
        return [self.paths[index], *info.split("\n")[1:]]

    def check(self, name: str, names: Sequence[str]) -> None:
        """Read the header of every file, and raise one error for all files that cannot be used.

        Args:
            name: path of the list.
            names: the files as the list names them.
        """
        soundfile = optional("soundfile", "speech")
        faults = []
        for number, (path, line) in enumerate(zip(self.paths, names, strict=True), 1):
            if not _exists(path):
                faults.append(f"{name}:{number}: no such file: {line}{f', nor {path}' if path != line else ''}")
                continue
            try:
                if (channels := soundfile.info(path).channels) != 1:
                    faults.append(f"{name}:{number}: {path} has {channels} channels; agents hear one: mix them first")
            except (OSError, soundfile.SoundFileError) as error:
                faults.append(f"{name}:{number}: {error}")
            except UnicodeEncodeError:
                faults.append(f"{name}:{number}: {path}: a sound file whose name is not UTF-8 cannot be opened")
        if len(faults) == len(names) and not any(map(_exists, self.paths)):
            raise UsageError(
                f"{faults[0]}; the same holds for every line: {counted(len(faults), 'sound file')} cannot be found\n"
                f'  The agent declares source = "speech".\n  fix: is {name} a list of sound files, one path a line?'
            )
        if faults:
            more = f"\n  and {len(faults) - 10} more" if len(faults) > 10 else ""
            raise UsageError(
                f"{counted(len(faults), 'sound file')} cannot be used:\n  " + "\n  ".join(faults[:10]) + more
            )


def open_source(
    path: str | Path,
    kind: str = "text",
    *,
    level: str = "word",
    spm_model: str | Path | None = None,
    chunk: float | None = None,
    check: bool = True,
) -> TextTestSet | SpeechTestSet:
    """The test set in a file: sentences of text, or a list of sound files.

    Args:
        path: a file with one sentence, or the path of one sound file, per line. Paths are taken as they are, or else
            relative to the folder of the list.
        kind: "text" or "speech".
        level: the unit in which text is read: "word", "char", or "spm" with a model.
        spm_model: path of the SentencePiece model.
        chunk: the size of a read: source tokens (default 1), or ms (default 500).
        check: whether to check every sound file.

    Raises:
        UsageError: a file cannot be read, or an argument is not valid.
    """
    lines, size = read_text_lines(path), chunk_size(kind, chunk)
    if not lines:
        raise UsageError(f"{path} is empty: there is nothing to translate")
    if kind == "speech":
        blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
        if blank:
            raise UsageError(f"{path}:{blank[0]}: there is no sound file on this line")
        names = [line.strip() for line in lines]
        speech = SpeechTestSet([line if _exists(line) else str(Path(path).parent / line) for line in names], size)
        if check:
            speech.check(str(path), names)
        return speech
    if check and all(line.strip().lower().endswith(SOUND_SUFFIXES) and _exists(line.strip()) for line in lines):
        raise UsageError(
            f'every line of {path} is the path of a sound file, but the agent declares source = "text"\n'
            '  fix: write source = "speech" into the class of an agent that listens.'
        )
    return TextTestSet(lines, text_level(level, spm_model), int(size))


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # the text is too long for a file name
        return False


def text_level(level: str, spm_model: str | Path | None = None) -> str:
    """The unit in which text is read, with the name of its model.

    Raises:
        UsageError: the level is unknown, or a model is missing or superfluous.
    """
    if level not in SOURCE_LEVELS:
        raise UsageError(f"a source is read by one of {', '.join(SOURCE_LEVELS)}, not {level!r}")
    if (level == "spm") != (spm_model is not None):
        fix = "give --spm-model FILE" if level == "spm" else "give --source-level spm"
        raise UsageError(f"--spm-model and --source-level spm must be given together\n  fix: {fix}.")
    return level if spm_model is None else load_spm(spm_model)


def chunk_size(kind: str, chunk: float | None) -> float:
    """The size of a read: source tokens (default 1), or ms (default 500).

    Raises:
        UsageError: it is not a valid number.
    """
    if kind == "speech":
        if chunk is not None and not 1 <= chunk < math.inf:
            raise UsageError(f"--chunk: speech is read 1 ms or more at a time, but got {chunk:g}")
        return 500 if chunk is None else chunk
    if chunk is not None and (chunk < 1 or chunk % 1 != 0):
        raise UsageError(f"--chunk: text is read 1 or more tokens at a time, in whole numbers, but got {chunk:g}")
    return 1 if chunk is None else chunk


def as_floats(samples: Any) -> Any:
    """Samples that an agent wrote, as a float32 array of one dimension."""
    try:
        array = np.asarray(samples, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise Failure("wrong-type", f"samples of speech are numbers: {error}") from None
    if array.ndim != 1:
        raise Failure("wrong-type", f"samples of speech are one row of numbers, but these have {array.ndim} dimensions")
    if not np.isfinite(array).all():
        raise Failure("wrong-type", "samples of speech are numbers, but some of these are NaN or infinite")
    return array
