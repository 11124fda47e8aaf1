# SPDX-License-Identifier: Apache-2.0
"""What SLTev 1.2.3 computes from a log of re-translation, word by word and in exact fractions.

Nothing here is taken from `lagging`: loops and no NumPy. An update is (shown, start, end, words); a segment is a list
of updates, the final one last; a transcript is the same without `shown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

Words = Sequence[str]
Update = tuple[int, int, int, Words]
Spoken = tuple[int, int, Words]


def delays(segment: Sequence[Update]) -> list[Fraction]:
    """For each token of the final text, from when on it and all before it were never changed again."""
    _, start, _, final = segment[-1]
    out = []
    for i in range(len(final)):
        j = len(segment) - 1
        while j > 0 and list(segment[j - 1][3][: i + 1]) == list(final[: i + 1]):
            j -= 1
        out.append(Fraction(max(update[0] for update in segment[: j + 1]) - start))
    return out


def erased(old: Words, new: Words) -> list[str]:
    """The tokens of the old text from the first one on that the new text has otherwise, or not at all."""
    for k in range(len(old)):
        if k >= len(new) or old[k] != new[k]:
            return list(old[k:])
    return []


def flicker(segments: Sequence[Sequence[Update]]) -> dict[str, Fraction | None]:
    """SLTev's four numbers, and erased tokens per revision."""
    content = tokens = revisions = length = left = 0
    means = []
    for segment in segments:
        own = 0
        for (_, _, _, old), (_, _, _, new) in pairwise(segment):
            own += len(erased(old, new))
            revisions += 1 if erased(old, new) else 0
            tokens += sum(1 for word in old if word not in new)
        content += own
        length += len(segment[-1][3])
        if segment[-1][3]:  # where nothing is left, there is nothing to divide by
            left += own
            means.append(Fraction(own, len(segment[-1][3])))
    return {
        "content": Fraction(content),
        "tokens": Fraction(tokens),
        "sentences": sum(means, Fraction(0)) / len(means) if means else None,
        "documents": Fraction(left, length) if length else None,
        "revision": Fraction(content, revisions) if revisions else None,
    }


def _seen(segment: Sequence[Update]) -> dict[str, tuple[Fraction, int]]:
    """Place in time, and time of the first sight, of each word that the final text has."""
    out: dict[str, tuple[Fraction, int]] = {}
    for shown, start, end, words in segment:
        for k, word in enumerate(words):
            if word in segment[-1][3] and word not in out:
                out[word] = (start + Fraction((end - start) * (k + 1), len(words)), shown)
    return out


def _matched(segments: Sequence[Sequence[Update]], start: int, end: int) -> dict[str, int]:
    """The words in a time, and the nearest one on each side."""
    words = [(place, word, shown) for s in segments for word, (place, shown) in _seen(s).items()]
    inside = [entry for entry in words if start <= entry[0] <= end]
    out = {word: shown for _, word, shown in inside}
    low = min((place for place, _, _ in inside), default=10**9)
    high = max((place for place, _, _ in inside), default=-1)
    before = sorted(entry for entry in words if entry[0] < low)
    after = sorted(entry for entry in words if entry[0] > high)
    for _, word, shown in before[-1:] + after[:1]:
        out[word] = shown
    return out


def due(transcript: Sequence[Spoken], words: Words) -> dict[str, Fraction]:
    """T: the words of the reference, evenly over the time of the source."""
    start, end = transcript[0][0], transcript[-1][1]
    return {word: start + Fraction((end - start) * (k + 1), len(words)) for k, word in enumerate(words)}


def due_by_partials(transcript: Sequence[Spoken], words: Words) -> dict[str, Fraction]:
    """PT: the words of the reference, evenly over the times at which the source words were first transcribed."""
    heard: dict[str, Fraction] = {}
    for start, end, source in transcript:
        for k, word in enumerate(source):
            if word in transcript[-1][2] and word not in heard:
                heard[word] = start + Fraction((end - start) * (k + 1), len(source))
    times = [Fraction(0), *heard.values(), Fraction(0)]
    distinct = list(dict.fromkeys(words))
    out = {}
    for i, word in enumerate(distinct, 1):
        place = Fraction(len(heard) * i, len(distinct))
        whole = int(place)
        out[word] = times[whole] + (times[whole + 1] - times[whole]) * (place - whole)
    return out


def delay(
    segments: Sequence[Sequence[Update]],
    transcripts: Sequence[Sequence[Spoken]],
    references: Sequence[Words],
    partial: bool = False,
) -> tuple[Fraction, int, int]:
    """Sum of the delays, words that were shown, and words that were missed."""
    total, shown, missed = Fraction(0), 0, 0
    for transcript, words in zip(transcripts, references, strict=True):
        matched = _matched(segments, transcript[-1][0], transcript[-1][1])
        for word, time in (due_by_partials if partial else due)(transcript, words).items():
            if word in matched:
                total += max(Fraction(0), matched[word] - time)
                shown += 1
            else:
                missed += 1
    return total, shown, missed
