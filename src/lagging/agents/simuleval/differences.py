# SPDX-License-Identifier: Apache-2.0
"""The differences between a run here and one by SimulEval's own runner; all else is the same, and tested."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """A difference between the two runners.

    Attributes:
        simuleval: what SimulEval 1.1.4 does.
        lagging: what `lagging` does, and why.
    """

    simuleval: str
    lagging: str


DIFFERENCES: dict[str, Difference] = {
    # what is written
    "lost-tail": Difference(
        "A recording ends with its last chunk: the agent is called once more, and what it would write later is lost.",
        "The agent is called until it says that it has finished, or writes nothing more. `-a stop-with-source=true` "
        "ends where SimulEval ends, to reproduce its numbers.",
    ),
    "lost-after-reset": Difference(
        "An agent that says that it has finished before the recording ends is reset, and continues with the rest; but"
        " its output for the next chunk is discarded (speech → speech: only if that chunk is the last).",
        "It is reset and continues as well, and no output is discarded.",
    ),
    "leaked-state": Difference(
        "An agent that has not finished at the last chunk of a recording is not reset: in the next recording, its "
        "source still begins with the samples of this one.",
        "The agent is reset before every sentence.",
    ),
    "never-finishes": Difference(
        "A text agent that never says that it has finished is called forever.",
        "The number of tokens that it may write is limited, and after the end of the source it may write nothing 100 "
        "times. Beyond that, the sentence is recorded as failed, and the run continues.",
    ),
    "one-fault-ends-all": Difference(
        "An exception in the agent ends the run, and so does an answer that is not an Action.",
        "The sentence is recorded as failed, with the reason, and the run continues; with `--strict` it stops.",
    ),
    "nothing-written": Difference(
        "A sentence for which nothing was written is logged like any other.",
        "It is logged with `failed` and the reason; prediction and delays are empty, as in SimulEval.",
    ),
    "spaces-by-character": Difference(
        "With `--eval-latency-unit char`, the prediction loses its spaces: English becomes one long word.",
        "The text is kept as it was written (`--joined-by none --level char`). The characters and their delays are "
        "the same: spaces have no delay in either.",
    ),
    # what is logged
    "reference-line-end": Difference(
        "The reference of a text agent is logged with its line end.",
        "It is logged without its line end.",
    ),
    "more-keys": Difference(
        "A line has SimulEval's keys.",
        "A line has the same keys in the same order, followed by `unit`, `level`, `arrivals`, `compute`, `steps` and "
        "others, which SimulEval ignores.",
    ),
    "elapsed": Difference(
        "`elapsed` counts everything since the first chunk was sent, including the runner's own time; for output "
        "speech it is an empty list.",
        "`elapsed` counts only the agent's own time, with a monotonic clock; for output speech as well.",
    ),
    "gaps-in-samples": Difference(
        "Silence between two pieces of output speech is rounded down to whole samples, and the length of the "
        "prediction is the number of samples that result.",
        "A piece begins at the sample nearest to the time at which it is played; the length is that of the intervals."
        " The two differ by less than a sample for each gap.",
    ),
    # what an agent sees
    "language-of-text": Difference(
        "For text, `states.tgt_lang` is a type, not a language, after the first word has been read.",
        "It is the language of `-a tgt-lang=…`, else None.",
    ),
    "segment-size-of-text": Difference(
        "Text is read one word at a time; `--source-segment-size` is ignored.",
        "`--chunk 3` reads three words before each call: each word is pushed separately, and the agent is called "
        "after the last.",
    ),
    "channels": Difference(
        "If a recording has several channels, an agent gets lists of lists.",
        "Such a recording is refused before the run: agents take one channel.",
    ),
}
"""Name → what is different."""
