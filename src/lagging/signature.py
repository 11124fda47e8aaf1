# SPDX-License-Identifier: Apache-2.0
"""The signature: the string that says how a number was made, so that it can be made again."""

from __future__ import annotations

from dataclasses import dataclass

from lagging.errors import UsageError

__all__ = ["Signature", "differing", "joined"]

ORDER = (
    *("unit", "length", "clock", "level", "empty", "seg", "mean", "tol", "eos", "count", "noref", "repair", "strip"),
    "common",
)
"""Fields between the metric and what only some metrics add; `n` and `v` come last."""
INTERVAL = ("ci", "by", "method", "bs", "seed")
"""Fields of an interval, before `n` and `v`, where there is one."""


@dataclass(frozen=True)
class Signature:
    r"""How a number was made: the metric, then fields in a fixed order, number of segments and version last.

    | field | says |
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
        """How the same number of n segments is made: of those that systems have in common, if that is said.

        Example:
            >>> str(Signature.parse("DAL|unit:token|n:5|v:0.2.0.dev0").of(3, "1a2b3c4d"))
            'DAL|unit:token|common:1a2b3c4d|n:3|v:0.2.0.dev0'
        """
        fields = dict(self.fields) | {"n": str(n)} | ({} if common is None else {"common": common})
        ordered = [key for key in ORDER if key in fields]
        return Signature(self.metric, tuple((key, fields[key]) for key in dict.fromkeys([*ordered, *fields])))

    def without_interval(self) -> Signature:
        """What made the number, without what made its interval."""
        return Signature(self.metric, tuple((key, value) for key, value in self.fields if key not in INTERVAL))

    def with_interval(self, **said: object) -> Signature:
        """The same number, with how its interval was made.

        Example:
            >>> s = Signature.parse("DAL|unit:token|n:5|v:0.2.0.dev0")
            >>> str(s.with_interval(ci="95", by="segment", method="bca", bs=10_000, seed=12345))
            'DAL|unit:token|ci:95|by:segment|method:bca|bs:10000|seed:12345|n:5|v:0.2.0.dev0'
        """
        plain = self.without_interval().fields
        last = tuple(pair for pair in plain if pair[0] in ("n", "v"))
        added = tuple((key, str(said[key])) for key in INTERVAL)
        return Signature(self.metric, (*(pair for pair in plain if pair not in last), *added, *last))

    def get(self, key: str) -> str | None:
        """The value of a field, or None."""
        return dict(self.fields).get(key)

    def __getitem__(self, key: str) -> str:
        """The value of a field."""
        return dict(self.fields)[key]

    def __str__(self) -> str:
        """The fields, joined by |."""
        return "|".join([self.metric, *(f"{key}:{value}" for key, value in self.fields)])


ADDED = ("n", "noref", "repair", "strip", "eos")
"""Fields that tell what was done to some segments, and add up."""


def joined(one: Signature, other: Signature) -> Signature:
    """How a number of the segments of both was made: what was done to some was done; all else must agree.

    Raises:
        UsageError: it does not.

    Example:
        >>> a = Signature.parse("LAAL|unit:ms|noref:2|n:5|v:0.2.0.dev0")
        >>> str(joined(a, Signature.parse("LAAL|unit:ms|repair:clip|n:7|v:0.2.0.dev0")))
        'LAAL|unit:ms|noref:2|repair:clip|n:12|v:0.2.0.dev0'
    """
    fields, others = dict(one.fields), dict(other.fields)
    fixed, too = ({k: v for k, v in f.items() if k not in ADDED} for f in (fields, others))
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
    """The fields by which two numbers were not made alike, so that they cannot be compared.

    Example:
        >>> a = Signature.parse("AL|unit:ms|length:hypothesis|level:word|n:5|v:0.2.0.dev0")
        >>> differing(a, Signature.parse("AL|unit:ms|length:reference|level:word|n:7|v:0.2.0.dev0"))
        ['length']
    """

    def made(signature: Signature) -> set[tuple[str, str]]:
        fields = signature.without_interval().fields
        kept = ((key, value) for key, value in fields if ASIDE.get(key) not in ("", value))
        return {(key, "some" if key == "noref" else value) for key, value in kept}

    return sorted({key for key, _ in made(one) ^ made(other)})
