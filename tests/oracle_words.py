# SPDX-License-Identifier: Apache-2.0
"""Word lag in exact fractions, from the definition: a plain table of edit distances, and a path back through it.

Of the paths with the fewest edits it takes this one: equal beginnings and equal ends of both texts are paired. Between
them, from the end back, a letter of the first text is skipped where that is a best step; else one of the second text,
where what is left is then nearer than without a letter of both; else a letter of each is paired.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def equal_letters(a: str, b: str) -> list[tuple[int, int]]:
    """Places of letters that are paired and equal."""
    shorter = min(len(a), len(b))
    head = next((k for k in range(shorter) if a[k] != b[k]), shorter)
    tail = next((k for k in range(shorter - head) if a[-1 - k] != b[-1 - k]), shorter - head)
    x, y = a[head : len(a) - tail], b[head : len(b) - tail]
    table = [[max(i, j) for j in range(len(y) + 1)] for i in range(len(x) + 1)]
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            pair = table[i - 1][j - 1] + (x[i - 1] != y[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, pair)
    i, j, between = len(x), len(y), []
    while i and j:
        if table[i][j] == table[i - 1][j] + 1:
            i -= 1
        elif table[i][j - 1] < table[i - 1][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            if x[i] == y[j]:
                between.append((head + i, head + j))
    ends = [(len(a) - k, len(b) - k) for k in range(tail, 0, -1)]
    return [*((k, k) for k in range(head)), *reversed(between), *ends]


def appeared(words: Sequence[str], text: str, times: Sequence[Fraction]) -> list[Fraction | None]:
    """When each word appeared in a text with a time for each of its words; None for one that is not found."""
    letters, written = " ".join(words), " ".join(text.split())
    found: list[Fraction | None] = [None] * len(words)
    for here, there in equal_letters(letters, written):
        if letters[here] != " ":
            found[letters[:here].count(" ")] = times[written[:there].count(" ")]
    return found


def word_lag(words: Sequence[tuple[Fraction, Fraction, str]], text: str, times: Sequence[Fraction]) -> Fraction | None:
    """The mean of emission − end over the words that are found."""
    shown = appeared([word for _, _, word in words], text, times)
    lags = [time - end for time, (_, end, _) in zip(shown, words, strict=True) if time is not None]
    return sum(lags, Fraction()) / len(lags) if lags else None


def maal(ends: Sequence[Fraction | None], shown: Sequence[Fraction | None], durations: Sequence[Fraction]) -> Fraction:
    """The mean of max(0, emission − end), or of the value before and one mean word duration."""
    values: list[Fraction] = []
    for end, time in zip(ends, shown, strict=True):
        if end is None or time is None:
            before = values[-1] if values else Fraction()
            values.append(before + sum(durations, Fraction()) / len(durations))
        else:
            values.append(max(Fraction(), time - end))
    return sum(values, Fraction()) / len(values)


def compared(source: Sequence[str], output: Sequence[str]) -> list[tuple[int, int]]:
    """The words that ufal/asr_latency compares: its alignment by a plain table, then its cuts, from its description.

    Letters are paired or skipped with the fewest edits, a space after each word. Followed back from the end, pairing
    goes on as long as it can, then skipping does: first in the text that was skipped last, at first in the source.
    """
    a, b = ("".join(word + " " for word in words) for words in (source, output))
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            pair = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, pair)
    i, j, order = len(a), len(b), "pab"
    steps: list[tuple[bool, bool]] = []
    while i or j:
        can = {
            "p": i > 0 and j > 0 and table[i][j] == table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            "a": i > 0 and (j == 0 or table[i][j] == table[i - 1][j] + 1),
            "b": j > 0 and (i == 0 or table[i][j] == table[i][j - 1] + 1),
        }
        step = next(step for step in order if can[step])
        order = {"p": "pab", "a": "abp", "b": "bap"}[step]
        steps.append((step != "b", step != "a"))
        i, j = i - (step != "b"), j - (step != "a")
    pairs, ours, theirs = [], "", ""
    for in_a, in_b in reversed(steps):
        ours, theirs = ours + a[i] * in_a, theirs + b[j] * in_b
        i, j = i + in_a, j + in_b
        here, there = a[: i - 1].count(" "), b[: j - 1].count(" ")
        if in_a and a[i - 1] == " ":
            pairs += [(here, there)] if theirs not in ("", " ") else []
            ours = theirs = ""
        elif not in_a and b[j - 1] == " ":
            pairs += [(here, there)] if ours else []
            ours, theirs = "", ""
    return pairs
