# SPDX-License-Identifier: Apache-2.0
"""`lagging compare`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.common import Talk, colour, emit, output, reading, spare, system, systems, talking, watched, width
from lagging.cli.drawing import confident, pairing, read_columns, with_columns
from lagging.cli.gates import fail_if, tell
from lagging.cli.logs import Announcer, distinct, named_metrics, parts_of, score_log
from lagging.cli.longform import Cutting, cutting
from lagging.cli.quarantine import Aside, setting_aside
from lagging.comparison import Comparison, compare
from lagging.comparison.gates import check_names, failed, gate, worse
from lagging.comparison.published import read_scores
from lagging.errors import UsageError
from lagging.metrics.conventions import CONVENTIONS, convention
from lagging.render import RENDERERS
from lagging.render.comparison import render_comparison
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores

__all__ = ["command"]


@click.command("compare")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@click.option(
    "-m", "--metric", "names", multiple=True, metavar="LIST", help="Metrics, comma-separated; may be repeated."
)
@pairing
@confident("Of intervals; p below 100 − %.")
@click.option("-f", "--format", "form", type=click.Choice(RENDERERS), default="table", help="How to print the result.")
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@click.option(
    "--published", multiple=True, metavar="[NAME=]FILE", help="Scores without a log, shown beside; may be repeated."
)
@with_columns
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=X",
    help="How much worse a system may be, for the sentence below the pairs; in the unit of the log.",
)
@fail_if
@click.option("--fail-if-worse", metavar="NAME", help="Exit with 3 if a system is significantly worse than this one.")
@setting_aside
@output
@cutting
@reading
@talking
def command(
    logs: tuple[str, ...],
    names: tuple[str, ...],
    base: str | None,
    test: str | None,
    by: str | None,
    correction: str,
    resamples: int,
    seed: int,
    confidence: float,
    form: str,
    named: str,
    published: tuple[str, ...],
    columns: tuple[str, ...],
    lower: tuple[str, ...],
    margins: tuple[str, ...],
    conditions: tuple[str, ...],
    fail_if_worse: str | None,
    output: str | None,
    aside: Aside,
    cutting: Cutting,
    talk: Talk,
    how: dict[str, Any],
) -> int:
    """Compare systems on the segments that all of them have.

    Every score with its interval; systems that share a letter do not differ significantly. With --base, + is
    significantly better than that system, and - worse. Without -m, the metrics are those of `lagging score`.

    \b
    lagging compare base=a.log new=b.log -m AL,DAL,BLEU
    lagging compare runs/*/instances.log --base wait-3 -f latex
    lagging compare base=a.log new=b.log --fail-if-worse base --fail-if 'DAL.high>2000'
    lagging compare base=a new=b --column COMET=base:a.comet --column COMET=new:b.comet
    """
    cutting.check()
    asked, chosen = named_metrics(names), convention(named)
    gates = [gate(text) for text in conditions]
    read = read_columns(columns, lower)
    check_names(gates, asked, {column.name for column in read})
    allowed = dict(_margin(text) for text in margins)
    if fail_if_worse is not None and base not in (None, fail_if_worse):
        raise UsageError(f"--fail-if-worse {fail_if_worse} needs comparisons with it, but --base is {base}")
    base = base or fail_if_worse
    rows = [one for text in published for one in _published(text)]
    results, announcer, plan = [], Announcer(talk), Plan.make(asked or None, chosen)
    named_logs = systems(logs)
    beside = [*cutting.files, *(column.path for column in read), *(system(text)[1] for text in published)]
    spare(named_logs, output, aside.file, inputs=beside)
    for name, path in named_logs:
        with watched(name or path, path, talk) as progress:
            parts = parts_of(path, name, plan, cutting, {**how, **aside.reading(), "progress": progress})
            results.append(score_log(parts, plan, announcer))
    results = distinct(results, [path for _, path in named_logs])
    found = compare(
        {scores.system: scores for scores in results},
        asked or None,
        base=base,
        test=test,
        by=by,
        correction=correction,
        level=confidence / 100,
        resamples=resamples,
        seed=seed,
        convention=chosen,
        published=rows,
        columns=read,
    )
    sentences = _sentences(found, allowed)
    scores = list(found.scores.values())
    broken = failed(gates, scores)  # a gate about what was not scored is told before anything is printed
    broken += worse(found.against(fail_if_worse), found.alpha) if fail_if_worse is not None else []
    _notes(found, scores, talk)
    bright = colour() and output is None
    text = render_comparison(found, form, width=width(), colour=bright, every=talk.verbose, sentences=sentences)
    aside.close()
    aside.say(talk)
    emit(text, output)
    return tell(broken)


def _margin(text: str) -> tuple[str, float]:
    """METRIC=X; the metric may have an = itself."""
    name, equals, number = text.rpartition("=")
    try:
        margin = float(number)
    except ValueError:
        equals = ""
        margin = 0.0
    if not equals or not name.strip():
        raise UsageError(f"cannot read --margin {text!r}; write it like BLEU=0.5")
    return name.strip(), margin


def _published(text: str) -> list[Any]:
    name, path = system(text)
    return read_scores(path, system=name)


def _sentences(found: Comparison, margins: dict[str, float]) -> list[str]:
    """What each system is against the base, or the first, in words: of two systems, or where margins were given."""
    first = found.base or found.systems[0]
    others = [name for name in found.systems if name != first]
    directed = any(m.higher_is_better is not None for m in found.metrics)
    if not found.pairs or not (margins or (len(others) == 1 and directed)):
        return []
    wanted = {repr(m): 0.0 for m in found.metrics if m.higher_is_better is not None} | margins
    return [str(found.together(first, other, wanted)) for other in others]


def _notes(found: Comparison, results: list[Scores], talk: Talk) -> None:
    for scores in results:
        talk.notes(scores.notes, scores.system)
        talk.undefined(scores)
    for note in found.notes:
        talk.say(f"note: {note}")
