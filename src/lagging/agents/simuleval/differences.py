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
        "A recording ends with its last chunk: the agent is asked once more, and what it would still write is lost.",
        "The agent is asked on until it says that it has finished, or falls silent. `-a stop-with-source=true` ends "
        "where SimulEval does, to reproduce its numbers.",
    ),
    "lost-after-reset": Difference(
        "An agent that says it has finished before the recording ends is reset, and goes on with the rest; but what it "
        "writes for the very next chunk is thrown away (speech → speech: only if that chunk is the last).",
        "It is reset and goes on as well, and nothing is thrown away.",
    ),
    "leaked-state": Difference(
        "An agent that has not finished by the last chunk of a recording is not reset: it goes into the next recording "
        "with the samples of this one before it.",
        "Every sentence begins with a reset.",
    ),
    "never-finishes": Difference(
        "A text agent that never says that it has finished is asked for ever.",
        "It may write so many tokens, and be silent 100 times after the end of the source; then the sentence has "
        "failed, is recorded so, and the run goes on.",
    ),
    "one-fault-ends-all": Difference(
        "What an agent raises ends the run, and so does an answer that is no Action.",
        "The sentence is recorded as failed, with the reason, and the run goes on; `--strict` stops.",
    ),
    "nothing-written": Difference(
        "A sentence for which nothing was written is logged like any other.",
        "It is logged with `failed` and the reason; prediction and delays are as empty as there.",
    ),
    "spaces-by-character": Difference(
        "With `--eval-latency-unit char`, the prediction loses its spaces: English becomes one long word.",
        "Text is kept as it was written (`--joined-by none --level char`). Characters, and their delays, are the same: "
        "spaces get none in either.",
    ),
    # what is logged
    "reference-line-end": Difference(
        "The reference of a text agent is logged with its line end.", "It is logged without."
    ),
    "more-keys": Difference(
        "A line has SimulEval's keys.",
        "A line has these, in their order, and after them `unit`, `level`, `arrivals`, `compute`, `steps` and others, "
        "which SimulEval does not mind.",
    ),
    "elapsed": Difference(
        "`elapsed` counts everything since the first chunk was sent, the runner's own time too; for output speech it "
        "is an empty list.",
        "Only the agent's own time is counted, by a clock that never goes back; for output speech as well.",
    ),
    "gaps-in-samples": Difference(
        "Silence between two pieces of output speech is cut down to whole samples, and the length of the prediction is "
        "counted in the samples that come out.",
        "Pieces begin at the sample nearest to when they are played; the length is that of the intervals. It differs "
        "by less than a sample for each gap.",
    ),
    # what an agent sees
    "language-of-text": Difference(
        "In text, `states.tgt_lang` is a type, not a language, once a word has been read.",
        "It is the language of `-a tgt-lang=…`, else None.",
    ),
    "segment-size-of-text": Difference(
        "Text comes one word at a time, whatever `--source-segment-size` says.",
        "`--chunk 3` gives three words to each asking: each is pushed by itself, and the agent asked after the last.",
    ),
    "channels": Difference(
        "Of a recording with several channels, an agent gets lists of lists.",
        "It is refused before the run: agents hear one channel.",
    ),
}
"""Name → what is different."""
