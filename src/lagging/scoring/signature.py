# SPDX-License-Identifier: Apache-2.0
"""The signature: the string that says how a number was made, so that it can be made again."""

from __future__ import annotations

from dataclasses import dataclass

from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.plan import IntervalSettings

__all__ = ["Settings", "Signature", "differing", "joined", "settings"]

ALIGNERS = ("timed", "soft", "mwer", "omnisteval", "mweralign", "mwersegmenter")
"""The aligners that may have cut streams into segments; `lagging.longform` is not imported to read a name."""

ORDER = (
    *("unit", "length", "clock", "level", "empty", "seg", "mean", "tol", "eos", "count", "noref", "repair", "strip"),
    *("words", "match", "align", "times", "x", "common"),
)
"""Fields between the metric and what only some metrics add; `n` and `v` come last."""
INTERVAL = ("ci", "by", "method", "bs", "seed")
"""Fields of an interval, before `n` and `v`, where there is one."""


@dataclass(frozen=True)
class Signature:
    r"""How a number was made: the metric, then fields in a fixed order; number of segments and version are last.

    | field | meaning |
    |---|---|
    | unit | what delays and source length are counted in: token or ms |
    | length | whose length is \|y\| in γ |
    | clock | when a token was there: ideal (delays), elapsed, queue, … |
    | level | what a target token is |
    | empty | what an empty hypothesis is worth |
    | seg | how a stream was cut into segments; none for short form |
    | mean | how segments are averaged |
    | tol | tolerance in ms for having read the whole source, where it is not 1 |
    | eos | what was done with final `</s>`, where there were any |
    | count | how references were counted, where it is not the standard way |
    | noref | how many hypothesis lengths stood in for a missing reference |
    | repair | which repairs changed something |
    | strip | which kinds of target tokens were stripped, with their delays |
    | words | hash of the file with the times of the source words |
    | match | how a source word is found in the output: by text or by alignment |
    | align | what the word alignment is of, and the hash of its file |
    | times, x | of an event stream, the unit of its times and the length of its source in ms, where they were given |
    | common | which segments a comparison left of those that the system has a value for, where it left some out |
    | ci, by, method, bs, seed | of an interval: its level in %, what was resampled, how, how often, the seed |
    | n, v | number of segments that count, version of lagging |

    Example:
        >>> s = Signature.parse("DAL|unit:token|length:hypothesis|clock:ideal|n:5|v:0.2.0.dev0")
        >>> s.metric, s["length"], s.get("repair")
        ('DAL', 'hypothesis', None)
        >>> str(s)
        'DAL|unit:token|length:hypothesis|clock:ideal|n:5|v:0.2.0.dev0'
    """

    metric: str
    fields: tuple[tuple[str, str], ...]

    @classmethod
    def make(
        cls, metric: str, known: dict[str, str | None], more: tuple[tuple[str, str], ...], n: int, version: str
    ) -> Signature:
        """Put fields into their order; those that are None do not apply to this metric."""
        ordered = tuple((key, str(known[key])) for key in ORDER if known.get(key) is not None)
        fields = (*ordered, *more, ("n", str(n)), ("v", version))
        for text in (metric, *(part for pair in fields for part in pair)):
            if "|" in text or ":" in text:
                raise UsageError(f"{text!r} cannot stand in a signature: it has a | or a :")
        return cls(metric, fields)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read a signature back."""
        head, *rest = text.strip().split("|")
        pairs = [part.partition(":") for part in rest]
        if (
            not head
            or ":" in head
            or not pairs
            or any(not colon or not key or not value for key, colon, value in pairs)
        ):
            raise UsageError(
                f"cannot read the signature {text!r}\n"
                "  It looks like DAL|unit:token|length:hypothesis|clock:ideal|…|n:2588|v:0.2.0; quote it in the shell."
            )
        keys = [key for key, _, _ in pairs]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise UsageError(f"the signature {text!r} has {twice[0]!r} twice")
        return cls(head, tuple((key, value) for key, _, value in pairs))

    def of(self, n: int, common: str | None = None) -> Signature:
        """The signature of the same metric over n segments; `common` is a hash of those that a comparison kept.

        Example:
            >>> str(Signature.parse("DAL|unit:token|n:5|v:0.2.0.dev0").of(3, "1a2b3c4d"))
            'DAL|unit:token|common:1a2b3c4d|n:3|v:0.2.0.dev0'
        """
        fields = dict(self.fields) | {"n": str(n)} | ({} if common is None else {"common": common})
        ordered = [key for key in ORDER if key in fields]
        return Signature(self.metric, tuple((key, fields[key]) for key in dict.fromkeys([*ordered, *fields])))

    def without_interval(self) -> Signature:
        """The signature without the fields of the interval."""
        return Signature(self.metric, tuple((key, value) for key, value in self.fields if key not in INTERVAL))

    def with_interval(self, **fields: object) -> Signature:
        """The signature with the fields of an interval.

        Example:
            >>> s = Signature.parse("DAL|unit:token|n:5|v:0.2.0.dev0")
            >>> str(s.with_interval(ci="95", by="segment", method="bca", bs=10_000, seed=12345))
            'DAL|unit:token|ci:95|by:segment|method:bca|bs:10000|seed:12345|n:5|v:0.2.0.dev0'
        """
        plain = self.without_interval().fields
        last = tuple(pair for pair in plain if pair[0] in ("n", "v"))
        added = tuple((key, str(fields[key])) for key in INTERVAL)
        return Signature(self.metric, (*(pair for pair in plain if pair not in last), *added, *last))

    def with_fields(self, **fields: str) -> Signature:
        """The signature with more fields, before those of the interval.

        Example:
            >>> str(Signature.parse("COMET|mean:segment|n:5|v:0.2.0.dev0").with_fields(column="ec1a86ea"))
            'COMET|mean:segment|column:ec1a86ea|n:5|v:0.2.0.dev0'
        """
        last = tuple(pair for pair in self.fields if pair[0] in (*INTERVAL, "n", "v"))
        first = tuple(pair for pair in self.fields if pair not in last)
        return Signature(self.metric, (*first, *fields.items(), *last))

    def get(self, key: str) -> str | None:
        """The value of a field, or None."""
        return dict(self.fields).get(key)

    def __getitem__(self, key: str) -> str:
        """The value of a field."""
        return dict(self.fields)[key]

    def __str__(self) -> str:
        """The fields, joined by |."""
        return "|".join([self.metric, *(f"{key}:{value}" for key, value in self.fields)])


COUNTED = ("n", "noref", "repair", "strip", "eos")
"""Fields about what was done to some of the segments; they add up."""


def joined(one: Signature, other: Signature) -> Signature:
    """The signature over the segments of both: what was done to some of them counts; all other fields must agree.

    Raises:
        UsageError: another field differs.

    Example:
        >>> a = Signature.parse("LAAL|unit:ms|noref:2|n:5|v:0.2.0.dev0")
        >>> str(joined(a, Signature.parse("LAAL|unit:ms|repair:clip|n:7|v:0.2.0.dev0")))
        'LAAL|unit:ms|noref:2|repair:clip|n:12|v:0.2.0.dev0'
    """
    fields, others = dict(one.fields), dict(other.fields)
    fixed, too = ({k: v for k, v in f.items() if k not in COUNTED} for f in (fields, others))
    if fixed != too or one.metric != other.metric:
        differ = sorted(k for k in {*fixed, *too} if fixed.get(k) != too.get(k))
        both = " and ".join(", ".join(f"{k}:{f.get(k, 'none')}" for k in differ) for f in (fixed, too))
        raise UsageError(f"segments in {both}: their scores cannot be averaged")
    known: dict[str, str | None] = dict(fixed)
    for key in ("repair", "strip"):
        known[key] = "+".join(sorted({p for f in (fields, others) for p in f.get(key, "").split("+") if p})) or None
    without = sum(int(f.get("noref", 0)) for f in (fields, others))
    known["noref"] = str(without) if without else None
    marks = {f["eos"] for f in (fields, others) if "eos" in f}
    known["eos"] = "stripped" if "stripped" in marks else "kept" if marks else None
    more = tuple((k, v) for k, v in fixed.items() if k not in (*ORDER, "v"))
    return Signature.make(one.metric, known, more, int(fields["n"]) + int(others["n"]), fixed["v"])


ASIDE = {"n": "", "v": "", "strip": "", "column": "", "common": "", "eos": "stripped"}
"""Fields of a signature, or values of them, that do not make two scores incomparable."""


def differing(one: Signature, other: Signature) -> list[str]:
    """The fields by which two numbers differ, so that they cannot be compared.

    Example:
        >>> a = Signature.parse("AL|unit:ms|length:hypothesis|level:word|n:5|v:0.2.0.dev0")
        >>> differing(a, Signature.parse("AL|unit:ms|length:reference|level:word|n:7|v:0.2.0.dev0"))
        ['length']
    """

    def compared_fields(signature: Signature) -> set[tuple[str, str]]:
        fields = signature.without_interval().fields
        kept = ((key, value) for key, value in fields if ASIDE.get(key) not in ("", value))
        return {(key, "some" if key == "noref" else value) for key, value in kept}

    return sorted({key for key, _ in compared_fields(one) ^ compared_fields(other)})


# ---- from a signature to what makes its number again -------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What is needed to make the number of a signature again.

    Attributes:
        metric: the metric, with its parameters.
        convention: how lengths, the end of the source and `</s>` are treated.
        level, unit: what to read the log as.
        repair: repairs to make.
        strip: kinds of tokens to strip.
        time_unit, source_length: what was given beside an event stream.
        aligner: what cut the streams, if one of ours did.
        interval: how to make the interval, if it has one.
    """

    metric: Metric
    convention: Convention
    level: str | None
    unit: str | None
    repair: tuple[str, ...]
    strip: tuple[str, ...] = ()
    time_unit: str | None = None
    source_length: float | None = None
    aligner: str | None = None
    interval: IntervalSettings | None = None

    @property
    def read_settings(self) -> tuple[object, ...]:
        """What signatures must agree in to be repeated together."""
        return self.convention, self.repair, self.strip, self.time_unit, self.source_length


def settings(signature: str | Signature) -> Settings:
    """Read from a signature what makes its number again.

    Example:
        >>> s = settings("AL|unit:ms|length:reference|clock:elapsed|level:word|empty:nan|mean:segment|tol:0|n:9|v:1")
        >>> s.metric, s.convention.tolerance, s.unit
        (AL(length=reference, clock=elapsed), 0.0, 'ms')
    """
    signature = Signature.parse(signature) if isinstance(signature, str) else signature
    if signature.metric == "pairs":
        raise UsageError("this signature is of a comparison: repeat it by `lagging compare` with what it says")
    base = metric(signature.metric)
    more = {key for key, _ in base.describe(base)} if base.describe is not None else set()
    unknown = [key for key, _ in signature.fields if key not in {*ORDER, *more, *INTERVAL, "n", "v"}]
    if unknown:
        raise UsageError(f"a signature of {base.name} has no field {unknown[0]!r}")
    if signature.get("common") is not None:
        raise UsageError(
            f"this score is of {signature.get('n')} segments that a comparison left of a log, and "
            f"only the systems that were compared tell which (common:{signature['common']})\n"
            "  fix: `lagging compare` with the logs of all of them."
        )
    seg, _, pieces = (signature.get("seg") or "none").partition("-")
    if seg not in ("none", "given", *ALIGNERS):
        raise UsageError(f"this version cannot repeat seg:{signature['seg']}")
    shared = [key for key in ("length", "clock", "empty", "mean") if base.has(key) and signature.get(key)]
    chosen = {key: signature[key] for key in shared if signature[key] != base.get(key)}
    marks = {None: "strip", "stripped": "strip", "kept": "keep"}
    if signature.get("eos") not in marks:
        raise UsageError(f"eos must be stripped or kept, but is {signature['eos']!r}")
    try:
        tolerance = float(signature.get("tol") or 1.0)
    except ValueError:
        raise UsageError(f"tol must be a number of ms, but is {signature['tol']!r}") from None
    try:
        length = float(signature["x"]) if signature.get("x") is not None else None
    except ValueError:
        raise UsageError(f"x must be a number of ms, but is {signature['x']!r}") from None
    repairs, stripped = signature.get("repair"), signature.get("strip")
    return Settings(
        metric=base(**chosen),
        convention=Convention(
            "like", tolerance=tolerance, eos=marks[signature.get("eos")], count=signature.get("count") or "standard"
        ),
        level=pieces or signature.get("level"),
        unit=None if signature.get("unit") == "none" else signature.get("unit"),
        repair=tuple(repairs.split("+")) if repairs else (),
        strip=tuple(stripped.split("+")) if stripped else (),
        time_unit=signature.get("times"),
        source_length=length,
        aligner=seg if seg in ALIGNERS else None,
        interval=_interval(signature),
    )


def _interval(signature: Signature) -> IntervalSettings | None:
    present = [key for key in INTERVAL if signature.get(key) is not None]
    if not present:
        return None
    if len(present) < len(INTERVAL):
        missing = next(key for key in INTERVAL if key not in present)
        field = f"{present[0]}:{signature[present[0]]}"
        raise UsageError(f"the signature has an interval ({field}), but not its {missing!r}")
    try:
        return IntervalSettings(
            resample=signature["by"],
            confidence=float(signature["ci"]) / 100,
            method=signature["method"],
            resamples=int(signature["bs"]),
            seed=int(signature["seed"]),
        )
    except ValueError:
        wrong = f"{signature['ci']}, {signature['bs']} and {signature['seed']}"
        raise UsageError(f"ci, bs and seed must be numbers, but are {wrong}") from None
