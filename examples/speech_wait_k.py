# SPDX-License-Identifier: Apache-2.0
"""An agent that listens: it writes the names of the notes of a melody, k notes behind.

    python speech_wait_k.py sounds           # writes a few melodies, their list and what they are
    lagging run speech_wait_k.py -a k=2 --source sounds/source.txt --reference sounds/reference.txt -o out

Needs `pip install 'lagging[speech]'`.
"""

import sys
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lagging.agents import State

NOTES = {"C": 262, "D": 294, "E": 330, "F": 349, "G": 392, "A": 440, "B": 494}
LASTS = 0.5
"""Seconds that a note lasts: as long as a chunk of speech is by default."""

Samples = npt.NDArray[np.float32]


class HearNotes:
    """Wait-k over notes."""

    source = "speech"

    def __init__(self, k: int = 2) -> None:
        self.k = k

    def policy(self, state: State) -> str | None:
        """The name of the next note, if it is due. `state.source` has all samples so far."""
        size = round(LASTS * state.sample_rate)
        heard, t = len(state.source) // size, len(state.target)
        if t == heard or (heard < self.k + t and not state.finished):
            return None
        return name(state.source[t * size : (t + 1) * size], state.sample_rate)


def name(sound: Samples, rate: int) -> str:
    """The note whose pitch is nearest to the strongest one in a sound."""
    pitch = float(np.argmax(np.abs(np.fft.rfft(sound)))) * rate / len(sound)
    return min(NOTES, key=lambda note: abs(NOTES[note] - pitch))


def play(melody: str, rate: int = 16_000) -> Samples:
    """The sound of a melody, such as `C D E`."""
    times = np.arange(round(LASTS * rate)) / rate
    return np.concatenate([np.sin(2 * np.pi * NOTES[note] * times) / 2 for note in melody.split()]).astype(np.float32)


def write_wav(path: Path, sound: Samples, rate: int = 16_000) -> None:
    """Sixteen bits a sample."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound * 32767).astype("<i2").tobytes())


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    melodies = ["C D E F G G", "A A A A G", "F F F F E E", "D D D D C"]
    for number, melody in enumerate(melodies):
        write_wav(folder / f"{number}.wav", play(melody))
    (folder / "source.txt").write_text("".join(f"{number}.wav\n" for number in range(len(melodies))), encoding="utf-8")
    (folder / "reference.txt").write_text("".join(melody + "\n" for melody in melodies), encoding="utf-8")


if __name__ == "__main__":
    main()
