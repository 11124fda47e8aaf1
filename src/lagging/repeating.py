# SPDX-License-Identifier: Apache-2.0
"""What a signature says about how to make its number again."""

from __future__ import annotations

from dataclasses import dataclass

from lagging.conventions import Convention
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.signature import INTERVAL, ORDER, Signature

ALIGNERS = ("timed", "soft", "mwer", "omnisteval", "mweralign", "mwersegmenter")
"""What may have cut streams into segments: the aligners of `lagging.longform`, which is not imported to read a name."""

__all__ = ["IntervalSettings", "Settings", "settings"]


@dataclass(frozen=True)
class IntervalSettings:
    """How an interval is made: the arguments of `lagging.stats.interval`."""

    by: str
    level: float
    method: str
    resamples: int
    seed: int


@dataclass(frozen=True)
class Settings:
    """All that a signature says about how to make its number again.

    Attributes:
        metric: the metric, with its parameters.
        convention: how lengths, the end of the source and `</s>` are treated.
        level, unit: what to read the log as.
        repair: repairs to make.
        strip: kinds of tokens to strip.
        aligner: what cut the streams, if one of ours did.
        interval: how to make the interval, if it has one.
    """

    metric: Metric
    convention: Convention
    level: str | None
    unit: str | None
    repair: tuple[str, ...]
    strip: tuple[str, ...] = ()
    aligner: str | None = None
    interval: IntervalSettings | None = None


def settings(signature: str | Signature) -> Settings:
    """What to do to make the number again that has this signature.

    Example:
        >>> s = settings("AL|unit:ms|length:reference|clock:elapsed|level:word|empty:nan|mean:segment|tol:0|n:9|v:1")
        >>> s.metric, s.convention.tolerance, s.unit
        (AL(length=reference, clock=elapsed), 0.0, 'ms')
    """
    said = Signature.parse(signature) if isinstance(signature, str) else signature
    if said.metric == "pairs":
        raise UsageError("this signature is of a comparison: repeat it by `lagging compare` with what it says")
    base = metric(said.metric)
    more = {key for key, _ in base.describe(base)} if base.describe is not None else set()
    strange = [key for key, _ in said.fields if key not in {*ORDER, *more, *INTERVAL, "n", "v"}]
    if strange:
        raise UsageError(f"a signature of {base.name} has no field {strange[0]!r}")
    if said.get("common") is not None:
        raise UsageError(
            f"this score is of {said.get('n')} segments that a comparison left of a log, and "
            f"only the systems that were compared tell which (common:{said['common']})\n"
            "  fix: `lagging compare` with the logs of all of them."
        )
    seg, _, pieces = (said.get("seg") or "none").partition("-")
    if seg not in ("none", "given", *ALIGNERS):
        raise UsageError(f"this version cannot repeat seg:{said['seg']}")
    shared = [key for key in ("length", "clock", "empty", "mean") if base.has(key) and said.get(key)]
    chosen = {key: said[key] for key in shared if said[key] != base.get(key)}
    marks = {None: "strip", "stripped": "strip", "kept": "keep"}
    if said.get("eos") not in marks:
        raise UsageError(f"eos must be stripped or kept, but is {said['eos']!r}")
    try:
        tolerance = float(said.get("tol") or 1.0)
    except ValueError:
        raise UsageError(f"tol must be a number of ms, but is {said['tol']!r}") from None
    repairs, stripped = said.get("repair"), said.get("strip")
    return Settings(
        metric=base(**chosen),
        convention=Convention(
            "like", tolerance=tolerance, eos=marks[said.get("eos")], count=said.get("count") or "standard"
        ),
        level=pieces or said.get("level"),
        unit=None if said.get("unit") == "none" else said.get("unit"),
        repair=tuple(repairs.split("+")) if repairs else (),
        strip=tuple(stripped.split("+")) if stripped else (),
        aligner=seg if seg in ALIGNERS else None,
        interval=_interval(said),
    )


def _interval(said: Signature) -> IntervalSettings | None:
    given = [key for key in INTERVAL if said.get(key) is not None]
    if not given:
        return None
    if len(given) < len(INTERVAL):
        missing = next(key for key in INTERVAL if key not in given)
        raise UsageError(f"the signature has an interval ({given[0]}:{said[given[0]]}), but not its {missing!r}")
    try:
        return IntervalSettings(
            by=said["by"],
            level=float(said["ci"]) / 100,
            method=said["method"],
            resamples=int(said["bs"]),
            seed=int(said["seed"]),
        )
    except ValueError:
        wrong = f"{said['ci']}, {said['bs']} and {said['seed']}"
        raise UsageError(f"ci, bs and seed must be numbers, but are {wrong}") from None
