# SPDX-License-Identifier: Apache-2.0
"""The differences between a run here and one by simulstream's own runner; all else is the same, and tested."""

from __future__ import annotations

__all__ = ["DIFFERENCES"]

DIFFERENCES: dict[str, tuple[str, str]] = {
    "chunk": (
        "A chunk has the samples of `speech_chunk_size` seconds, rounded down.",
        "Rounded up. With sizes that are whole samples, as all usual ones are, it is the same.",
    ),
    "sample-rate": (
        "A recording that is not sampled at 16 kHz is resampled by librosa, chunk by chunk.",
        "It is refused: the ends of resampled chunks do not fit together. Resample the file.",
    ),
    "last-call": (
        "Source that fills no chunk goes to the processor together with the end of the stream, and both outputs are "
        "one step of the log.",
        "The same. Where the last chunk is full, the end of the stream is a step of its own, without new source, as in "
        "simulstream.",
    ),
    "one-fault-ends-all": (
        "An exception in the processor ends the run.",
        "The recording is recorded as failed, with the reason, and the run continues; with `--strict` it stops.",
    ),
    "end-unseen": (
        "A processor learns that the source has ended after its last chunk. So an agent of `lagging` that runs in "
        "simulstream is called for the last chunk as if more would follow, and then once more.",
        "An agent sees `state.finished` together with the last chunk.",
    ),
}
"""By name: what simulstream 1.0.0 does, and what `lagging` does."""
