# SPDX-License-Identifier: Apache-2.0
"""Columns: scores of segments that another program computed (COMET, human ratings), matched with the segments of a log.

A column has a Metric whose values are read, not computed. All that scores a log takes such a metric as it takes others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePath

import numpy as np

from lagging.data.hashes import short_hash
from lagging.data.ragged import Floats
from lagging.data.run import Ids
from lagging.errors import DataError, Fault, Faults, MetricNameError, UsageError, counted, did_you_mean
from lagging.metrics import Metric, metric
from lagging.metrics.elsewhere import elsewhere
from lagging.metrics.registry import CALL
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature
from lagging.version import __version__

__all__ = ["Column", "Columns", "Matching", "is_read"]

NO_SCORE = "no score in the column"


@dataclass(frozen=True, eq=False)
class Column:
    """A score per segment of one system.

    Attributes:
        name: the name of the metric, such as COMET; not one of those that lagging computes.
        system: the system whose output was scored; empty where there is one system only.
        values: the scores; NaN where there is none.
        ids: the ids of the segments; None if the scores are in the order of the log.
        higher_is_better: whether a higher score is better; if not given, as it is known of the name (MetricX: lower),
            and true of a name that is not known.
        path, lines: the file, and the line of each score; None for values that come from Python.
        model: the model that made the scores, where the file says so.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], id=["a", "b"])
        >>> score = Column("COMET", "base", [0.75, 0.5], ids=["b", "a"]).score(lagging.score(run, ["AL"]))
        >>> score.value, score.segments
        (0.625, array([0.5 , 0.75]))
        >>> print(score.signature)
        COMET|seg:none|mean:segment|column:ec1a86ea|n:2|v:0.2.0.dev0
    """

    name: str
    system: str
    values: Sequence[float] | Floats = field(repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    higher_is_better: bool | None = None
    path: str | None = None
    lines: Sequence[int] | None = field(default=None, repr=False)
    model: str | None = None

    def __post_init__(self) -> None:
        """Take the direction that is known of the name, where none is given."""
        if self.higher_is_better is None:
            family = elsewhere(self.name)
            object.__setattr__(self, "higher_is_better", family is None or not family.lower)

    @cached_property
    def metric(self) -> Metric:
        """A Metric whose values are read, not computed."""
        call = CALL.fullmatch(self.name)
        if call is None or call["params"] is not None:
            raise UsageError(f"a column cannot be called {self.name!r}: no spaces, brackets, or any of = , | :")
        try:
            known = metric(self.name)
        except MetricNameError:
            return Metric(
                name=self.name,
                compute=_refuse,
                unit="score",
                higher_is_better=self.higher_is_better,
                summary="A score per segment, from a file.",
                undefined=NO_SCORE,
            )
        raise UsageError(f"a column cannot be called {self.name}: that is {known!r}, which is computed from the log")

    def score(self, scores: Scores) -> Score:
        """The mean of the column over the segments of a system's scores; the signature has a hash of its values.

        Raises:
            DataError: not as many values as segments, or other ids.
        """
        first, matching = next(iter(scores)), Matching(self, scores.system or self.system)
        rows = matching.take(first.ids)[:, None]
        without = tuple(first.ids[np.isnan(rows[:, 0])].tolist())
        known: dict[str, str | None] = {"seg": first.signature.get("seg"), "mean": "segment"}
        n = len(rows) - len(without)
        signature = Signature.make(self.metric.name_with_params, known, (), n, __version__)
        return Score(
            metric=self.metric,
            value=self.metric.corpus(rows),
            statistics=rows,
            ids=first.ids,
            undefined=Undefined({NO_SCORE: without} if without else {}),
            unit="score",
            signature=matching.sign(signature),
            resolved=self.metric,
            documents=first.documents,
        )


def _refuse(*_: object) -> Floats:
    raise MetricNameError("it is read from a file, not computed")


def is_read(m: Metric) -> bool:
    """Whether the values of a metric are read from a column, and not computed."""
    return m.compute is _refuse


class Matching:
    """Matches a column with the segments of a log, which come in parts.

    Args:
        column: the column.
        system: the name of the system, for messages.

    Example:
        >>> matching = Matching(Column("COMET", "base", [0.75, 0.5], ids=["b", "a"]), "base")
        >>> matching.take(np.array(["a"], dtype=object)), matching.take(np.array(["b"], dtype=object))
        (array([0.5]), array([0.75]))
        >>> matching.check()
    """

    def __init__(self, column: Column, system: str) -> None:
        self.column, self._system = column, system
        self._names: list[str] = []
        self._values = np.array(column.values, dtype=np.float64)
        self._taken: list[Floats] = []
        self._row_of: dict[str, int] = {}
        for row, name in enumerate(column.ids or ()):
            self._row_of.setdefault(str(name), row)

    def take(self, ids: Ids) -> Floats:
        """The scores of the segments that come next; NaN where there is none, and `check` says so."""
        names = [str(name) for name in ids.tolist()]
        start = len(self._names)
        self._names += names
        values = np.full(len(names), np.nan)
        if self.column.ids is None:
            known = self._values[start : start + len(names)]
            values[: len(known)] = known
        else:
            rows = np.array([self._row_of.get(name, -1) for name in names], dtype=np.int64)
            values[rows >= 0] = self._values[rows[rows >= 0]]
        self._taken.append(values)
        return values

    def check(self) -> None:
        """Refuse a column that does not have one score for each segment that was taken.

        Raises:
            DataError: not as many values as segments, or other ids: every fault at once.
        """
        column, names = self.column, self._names
        counts = f"{counted(len(self._values), 'score')}, but {counted(len(names), 'segment')} in {self._system}"
        if column.ids is None:
            if len(self._values) != len(names):
                raise DataError(Fault("scores-count", f"{column.name}: {counts}", column.path))
            return
        faults, known = Faults(), set(names)
        for row, name in enumerate(map(str, column.ids)):
            line = None if column.lines is None else column.lines[row]
            if self._row_of[name] != row or name not in known:
                what = "scored twice" if self._row_of[name] != row else f"not a segment of {self._system}"
                faults.add(Fault("scores-ids", f"{column.name}: {what} ({counts})", column.path, line, name))
        for name in names:
            if name not in self._row_of:
                faults.add(Fault("scores-ids", f"{column.name}: without a score ({counts})", column.path, segment=name))
        if faults:
            raise DataError(faults)

    def sign(self, signature: Signature) -> Signature:
        """The signature with a hash of the values in the order of the log, and with the model, where it is known.

        Raises:
            DataError: as `check`.
        """
        self.check()
        fields = {"column": short_hash(repr(value) for values in self._taken for value in values.tolist())}
        if self.column.model is not None:
            fields["model"] = "".join("_" if letter in "|:" else letter for letter in self.column.model)
        return signature.with_fields(**fields)


class Columns:
    """The columns that were given for several systems; each system takes its own.

    Attributes:
        every: all of them.
        metrics: their metrics, by name.
        files: the files that they were read from.

    Args:
        columns: the columns; each is of a system, or of no named one, where there is one system only.
        offers: columns of files that name their systems themselves: a system takes the one that has its name.

    Raises:
        UsageError: columns of one name differ in what is better.
    """

    def __init__(self, columns: Iterable[Column] = (), offers: Iterable[Sequence[Column]] = ()) -> None:
        self._columns, self._offers = list(columns), [list(offer) for offer in offers]
        self._taken: dict[int, str] = {}
        self.every = (*self._columns, *(column for offer in self._offers for column in offer))
        self.metrics: dict[str, Metric] = {}
        for column in self.every:
            if self.metrics.setdefault(column.name, column.metric).higher_is_better != column.higher_is_better:
                raise UsageError(f"{column.name} is better when higher in one column, and when lower in another")
        self.files = tuple(dict.fromkeys(column.path for column in self.every))

    @classmethod
    def of(cls, columns: Columns | Iterable[Column]) -> Columns:
        """The columns, as they are or from a list."""
        return columns if isinstance(columns, Columns) else cls(columns)

    def renamed(self, names: Mapping[str, str]) -> Columns:
        """The columns, of systems by other names."""
        columns = [replace(column, system=names.get(column.system, column.system)) for column in self._columns]
        return Columns(columns, self._offers)

    def check_number(self, systems: int) -> None:
        """Refuse columns without a system where there are several."""
        for column in self._columns:
            if not column.system and systems > 1:
                raise UsageError(
                    f"{column.path or column.name} does not say which of {systems} systems it belongs to\n"
                    f"  fix: --column NAME:{column.name}={column.path or 'FILE'}, once for each system; in Python, "
                    f"`read_column(FILE, {column.name!r}, NAME)`."
                )

    def check(self, systems: Sequence[str]) -> None:
        """Refuse columns of systems that do not exist, and columns without a system where there are several."""
        self.check_number(len(systems))
        for column in self._columns:
            if column.system and column.system not in systems:
                raise UsageError(f"there is no system {column.system!r}.{did_you_mean(column.system, systems)}")

    def take(self, system: str, *aliases: str) -> tuple[Column, ...]:
        """The columns of a system, one for each metric.

        Args:
            system: its name.
            aliases: other names of it, such as the path of its log.

        Raises:
            UsageError: it has none for a metric, or two; or another system has taken it.
        """
        names = (system, *aliases)
        own = []
        for title in self.metrics:
            candidates = [c for c in self._columns if c.name == title and (not c.system or c.system in names)]
            for offer in self._offers:
                if offer[0].name == title:
                    candidates.append(pick(offer, names))
            if len(candidates) != 1:
                raise UsageError(
                    f"{title} is given {counted(len(candidates), 'time')} for {system}: every system has one column"
                )
            owner = self._taken.setdefault(id(candidates[0]), system)
            if owner != system:
                raise UsageError(
                    f"{candidates[0].path or title} is taken for {system}, but {owner} has it already\n"
                    f"  fix: give the systems names, NAME=PATH, and a column to each, NAME:{title}=FILE."
                )
            own.append(candidates[0])
        return tuple(own)

    def check_taken(self, systems: Sequence[str]) -> None:
        """Refuse columns that no system has taken."""
        for column in self._columns:
            if id(column) not in self._taken:
                raise UsageError(f"there is no system {column.system!r}.{did_you_mean(column.system, systems)}")


def pick(columns: Sequence[Column], names: Sequence[str]) -> Column:
    """The column of a system, of a file that names its systems: as it is named there, or by a part of that path.

    Raises:
        UsageError: none has that name, or several; the message lists the names.
    """
    if len(columns) == 1:
        return columns[0]
    candidates = [c for c in columns if c.system in names]
    candidates = candidates or [c for c in columns if {*PurePath(c.system).parts, PurePath(c.system).stem} & {*names}]
    if len(candidates) == 1:
        return candidates[0]
    listed = ", ".join(c.system for c in columns)
    raise UsageError(
        f"{columns[0].path} has {columns[0].name} of {counted(len(columns), 'system')}, and "
        f"{'none' if not candidates else 'several'} of them is called {names[0]!r}: {listed}\n"
        "  fix: give the system one of these names, NAME=PATH."
    )
