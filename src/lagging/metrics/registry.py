# SPDX-License-Identifier: Apache-2.0
"""The registry: metrics by name, aliases of other tools, and the grammar `NAME(param=value, …)`."""

from __future__ import annotations

import re
import runpy
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lagging.data.plugins import load_plugins
from lagging.data.ragged import Floats
from lagging.errors import MetricNameError, UsageError, did_you_mean
from lagging.metrics.elsewhere import elsewhere
from lagging.metrics.record import CLOCK, EMPTY, LENGTH, MEAN, Aggregate, Compute, Metric, Param, Unit, params_of

__all__ = ["add", "load_file", "metric", "metric_among", "register", "registered", "split_names"]

_metrics: dict[str, Metric] = {}
_aliases: dict[str, str] = {}

CALL = re.compile(r"\s*+(?P<name>[^()\s=,|:]++)\s*+(?:\((?P<params>[^()]*+)\))?+\s*+")
PAIR = re.compile(r"\s*+(?P<name>\w++)\s*+=(?P<value>[^,()|:]*+)")
NAMES = re.compile(r"(?:[^,()]|\([^()]*+\)|[()])++")
"""The text between commas that are not inside parentheses."""


def add(metric: Metric, aliases: Iterable[str] = ()) -> Metric:
    """Put a metric into the registry.

    Raises:
        MetricNameError: the name cannot be written in a signature, or is taken.
    """
    if not CALL.fullmatch(metric.name) or "(" in metric.name:
        raise MetricNameError(f"{metric.name!r} cannot be a metric's name: no spaces, brackets, or any of = , | :")
    for name in (metric.name, *aliases):
        if name in _metrics or name in _aliases:
            raise MetricNameError(f"a metric called {name!r} exists already")
    _metrics[metric.name] = metric
    _aliases.update(dict.fromkeys(aliases, metric.name))
    return metric


def alias(name: str, spec: str) -> None:
    """Register another name for a metric with parameters: the name that a tool uses."""
    _aliases[name] = spec


def register(
    name: str,
    *,
    unit: Unit = "time",
    higher_is_better: bool | None = False,
    aggregate: Literal["mean", "ratio"] | Aggregate = "mean",
    pool: Callable[..., Floats] | None = None,
    from_sums: Callable[[Floats], Floats] | None = None,
    quantile: str = "",
    needs: Iterable[str] = (),
    length: str | None = None,
    clocked: bool = True,
    per_sentence: bool = False,
    params: tuple[Param, ...] | None = None,
    aliases: Iterable[str] = (),
    summary: str = "",
    formula: str = "",
    latex: str = "",
    paper: str = "",
    bibtex: str = "",
    edge_cases: tuple[str, ...] = (),
    undefined: str = "undefined",
    segment_values: Callable[[Floats], Floats] | None = None,
    describe: Callable[[Metric], tuple[tuple[str, str], ...]] | None = None,
    describe_segments: tuple[tuple[str, str], ...] = (),
    counts: tuple[str, ...] = (),
) -> Callable[[Compute], Compute]:
    """Register a function as a metric over Runs.

    The function takes a `Schedule` (`g` delays, `x` source lengths, `y` target lengths, `run`) and returns one number
    per segment, or, with `aggregate="ratio"`, two columns. Its keyword-only arguments become the metric's parameters.
    Packages register theirs through the entry point group `lagging.metrics`.

    Args:
        name: the name of the metric, e.g. "FirstWord".
        unit: "time" (the unit of the log), "ratio", "count" or "points".
        higher_is_better: direction, for tables; None if neither higher nor lower is better.
        aggregate: "mean" of the segments, "ratio" of two sums, or a function from statistics to a number.
        pool: reduces the values of many tokens to one number, where the function gives a value per token.
        from_sums: column sums → corpus values, along the last axis, where `aggregate` is a function of such sums;
            without it, a metric with its own `aggregate` has no intervals.
        quantile: name of the parameter that says which percentile `pool` takes, if it takes one.
        needs: what it needs beyond delays and source length: "prediction", "reference", "tokens", "cutoff" (if it uses
            `schedule.cutoff` or `schedule.source_end`), "corpus" (the whole Run at once), or a column ("source",
            "durations", …).
        length: which |y| is the default ("hypothesis", "reference", "longest"); None if the metric does not use |y|.
        clocked: whether the metric is about time: then it has the parameters `clock`, `empty` and `mean`.
        per_sentence: whether the function takes one sentence, as `lagging.dal` does: its delays and its source length,
            and returns a number. Sentences without a target or a source have no value.
        params: declarations of the parameters; taken from the signature of the function if not given.
        aliases: other names for it.
        summary, formula, latex, paper, bibtex, edge_cases: for the metric's card.
        undefined: the reason why a segment has no value, if none of the common reasons applies.
        segment_values: statistics → values of the segments, if these are not the first column.
        describe: more fields for the signature.
        describe_segments: fields of the signature that differ for the value of a single segment.
        counts: the names of the last columns of the statistics, whose sums are shown beside the value in JSON.

    Example:
        >>> import numpy as np, lagging
        >>> @lagging.register("WorstWait", summary="the longest wait of a segment")
        ... def worst_wait(schedule):
        ...     return schedule.by_row(lambda g: np.diff(g, axis=1, prepend=0).max(axis=1))
        >>> run = lagging.Run.from_delays([[3, 4, 4], [1, 2, 5]], source_length=[5, 5])
        >>> lagging.score(run, ["WorstWait"])["WorstWait"].segments
        array([3., 3.])
        >>> @lagging.register("LastWait", per_sentence=True)
        ... def last_wait(delays, source_length):
        ...     return source_length - delays[0]
        >>> lagging.score(run, ["LastWait"])["LastWait"].segments
        array([2., 4.])
    """
    if not isinstance(name, str):
        raise TypeError('register needs the name of the metric: @lagging.register("MyMetric"), above the function')
    if length is not None:
        needs = {*needs, "length"}

    def decorate(function: Compute) -> Compute:
        own = params_of(function) if params is None else params
        shared: tuple[Param, ...] = ()
        if length is not None:
            shared += (Param(LENGTH.name, length, LENGTH.help, LENGTH.choices),)
        if clocked:
            shared += (CLOCK, EMPTY)
            shared += (MEAN,) if aggregate == "mean" and pool is None else ()
        add(
            Metric(
                name=name,
                compute=_by_sentence(function) if per_sentence else function,
                aggregate=aggregate,
                pool=pool,
                from_sums=from_sums,
                quantile=quantile,
                params=own + shared,
                unit=unit,
                higher_is_better=higher_is_better,
                needs=frozenset(needs),
                summary=summary or (function.__doc__ or "").strip().split("\n")[0],
                formula=formula,
                latex=latex,
                paper=paper,
                bibtex=bibtex,
                edge_cases=edge_cases,
                undefined=undefined,
                segment_values=segment_values,
                describe=describe,
                describe_segments=describe_segments,
                counts=counts,
            ),
            aliases,
        )
        return function

    return decorate


def _by_sentence(function: Callable[..., Any]) -> Compute:
    """A function of one sentence as one of a Schedule; NaN where nothing was written, or there is no source."""

    def compute(schedule: Any, **values: Any) -> Floats:
        lengths = schedule.x.tolist()
        return np.array(
            [
                function(g, x, **values) if len(g) and x else np.nan
                for g, x in zip((schedule.g[row] for row in range(len(lengths))), lengths, strict=True)
            ],
            dtype=np.float64,
        )

    return compute


@cache
def load_file(path: str) -> None:
    """Run a Python file that registers metrics, once.

    Raises:
        UsageError: there is no such file, or it cannot be run.
    """
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    try:
        runpy.run_path(path)
    except MetricNameError:
        raise
    except (Exception, SystemExit) as error:  # sys.exit(3) would look like a gate that failed
        raise UsageError(f"{path} cannot be run: {type(error).__name__}: {error}") from error


@cache
def _load_plugins() -> tuple[str, ...]:
    """Import the metrics of other packages; return a message for each package that cannot be loaded.

    Metrics that such a package registered before it failed are removed.
    """
    broken = []
    metrics, aliases = _metrics.copy(), _aliases.copy()
    for plugin in load_plugins("lagging.metrics"):
        if plugin.error:
            _metrics.clear()
            _metrics.update(metrics)
            _aliases.clear()
            _aliases.update(aliases)
            none = "cannot be loaded, and none of its metrics can be used"
            broken.append(f"the metric plug-in {plugin.name!r} {none}: {plugin.error}")
        metrics, aliases = _metrics.copy(), _aliases.copy()
    return tuple(broken)


def _warn(broken: Iterable[str]) -> None:
    """Warn of plug-ins that cannot be loaded."""
    for message in broken:
        warnings.warn(message, UserWarning, stacklevel=3)


def registered() -> tuple[Metric, ...]:
    """All registered metrics, in the order of their registration.

    Example:
        >>> [m.name for m in registered()][:5]
        ['AP', 'CW', 'AL', 'AL_y', 'DAL']
    """
    _warn(_load_plugins())
    return tuple(_metrics.values())


def metric(spec: str | Metric) -> Metric:
    """The metric written as `spec`: a name, an alias, or a name with parameters.

    Args:
        spec: `DAL`, `DAL(write_cost=1)`, `AL_CA` (SimulEval's name for `AL(clock=elapsed)`), …

    Raises:
        MetricNameError: unknown name or parameter, or a value that is not allowed.

    Example:
        >>> metric("AL(length=reference, clock=elapsed)")
        AL(length=reference, clock=elapsed)
        >>> metric("DALL")
        Traceback (most recent call last):
        lagging.errors.MetricNameError: no metric is called 'DALL'. Did you mean DAL?
    """
    if isinstance(spec, Metric):
        return spec
    if callable(spec):
        name = getattr(spec, "__name__", "a function")
        raise MetricNameError(
            f"{name} is a function, and a metric is asked for by its name\n"
            f'  fix: put @lagging.register("MyMetric", per_sentence=True) above the function, and ask for "MyMetric".'
        )
    call = CALL.fullmatch(spec)
    if call is None:
        raise MetricNameError(f"cannot read the metric {spec!r}; write it like DAL or DAL(write_cost=1)")
    named = _find(call["name"])
    values: dict[str, str] = {}
    for pair in filter(str.strip, (call["params"] or "").split(",")):
        match = PAIR.fullmatch(pair)
        if match is None:
            raise MetricNameError(f"cannot read {pair.strip()!r} in {spec!r}; write parameters like write_cost=1")
        if match["name"] in values:
            raise MetricNameError(f"{match['name']} is given twice in {spec!r}")
        values[match["name"]] = match["value"].strip()
    return named(**values)


def metric_among(spec: str | Metric, metrics: Iterable[Metric]) -> Metric:
    """The metric written as `spec`: one of these, which need not be registered, or a registered one."""
    return next((m for m in metrics if spec in (m, repr(m))), None) or metric(spec)


def _find(name: str) -> Metric:
    """The metric of that name or alias, in any case."""
    spelled = next((alias for alias in _aliases if alias.lower() == name.lower()), name)
    if "(" in _aliases.get(spelled, ""):
        return metric(_aliases[spelled])
    broken: tuple[str, ...] = ()
    if _aliases.get(name, name) not in _metrics:
        broken = _load_plugins()  # only here: it takes longer than scoring a small log
    name = _aliases.get(name, name)
    if name in _metrics:
        _warn(broken)
        return _metrics[name]
    in_other_case = [m for m in _metrics if m.lower() == name.lower()]
    if in_other_case:
        return _metrics[in_other_case[0]]
    if name.upper().endswith("_CA") and name[:-3]:
        return _find(name[:-3])(clock="elapsed")
    if (family := elsewhere(name)) is not None:
        raise MetricNameError(
            f"{name} is computed by another program, and read from the file that this writes\n  fix: {family.fix(name)}"
        )
    near = did_you_mean(name, _metrics)
    hint = "".join(f"\n  Perhaps it is of a package that is broken: {message}." for message in broken)
    if not broken and near.startswith(" Known"):
        hint = "\n  fix: a metric of your own needs the file that registers it: --plugin FILE.py; in Python, import it."
    raise MetricNameError(f"no metric is called {name!r}.{near}{hint}")


def split_names(text: str) -> list[str]:
    """Split a comma-separated list of metrics; commas inside parentheses belong to the metric.

    Example:
        >>> split_names("AP,AL(length=reference, clock=elapsed),DAL")
        ['AP', 'AL(length=reference, clock=elapsed)', 'DAL']
    """
    return [part.strip() for part in NAMES.findall(text) if part.strip()]
