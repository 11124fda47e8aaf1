# SPDX-License-Identifier: Apache-2.0
"""All options that several subcommands share, in bundles; each bundle arrives as one object.

They are in one file so that an option has the same name, help and meaning in every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lagging.cli.columns import read_column_files
from lagging.cli.messages import Messages
from lagging.cli.quarantine import TABLE_NAME, Quarantine
from lagging.data.checks import REPAIRS
from lagging.data.spoken import ALIGNED
from lagging.data.strip import KINDS
from lagging.data.tokens import LEVELS
from lagging.errors import DataError, UsageError
from lagging.formats import FORMATS, ReadOptions, outside_formats
from lagging.longform.cutting import Cutting
from lagging.metrics import Metric, metric, split_names
from lagging.metrics.conventions import CONVENTIONS
from lagging.metrics.registry import load_file
from lagging.render import RENDERERS
from lagging.scoring.columns import Columns
from lagging.scoring.signature import ALIGNERS
from lagging.stats import CORRECTIONS, MAX_RESAMPLES, RESAMPLES, SEED, TESTS

__all__ = [
    "FormatName",
    "agent_options",
    "column_options",
    "confidence_option",
    "convention_option",
    "correction_option",
    "cutting_options",
    "format_option",
    "message_options",
    "metric_option",
    "output_option",
    "pair_options",
    "parse_metrics",
    "plugin_option",
    "quarantine_options",
    "read_options",
    "rename_option",
    "resample_option",
    "resampling_options",
    "schema_options",
    "word_options",
]

Command = Callable[..., Any]

FEWEST = 100
"""With fewer resamples, the ends of an interval depend on chance."""


def _apply(command: Command, options: Iterable[Callable[[Command], Command]]) -> Command:
    """Give a command some options, in this order."""
    for option in reversed(tuple(options)):
        command = option(command)
    return command


# ---- what is read -----------------------------------------------------------------------------------------------


if TYPE_CHECKING:
    Choice = click.Choice[str]
else:
    Choice = click.Choice  # generic since click 8.2


class FormatName(Choice):
    """The name of a format. Help lists ours; those of other packages are looked for when one is given."""

    def __init__(self) -> None:
        super().__init__(list(FORMATS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, if there is such a format."""
        return value if value not in FORMATS and value in outside_formats() else super().convert(value, param, ctx)


REPAIR_NAMES = "; ".join(f"{name}: {description}" for name, description in REPAIRS.items())
STRIP_KINDS = "; ".join(f"{kind}: {description}" for kind, description in KINDS.items())

SCHEMA_OPTIONS = (
    click.option("--format-in", type=FormatName(), help="Format of the logs; it is recognised if not given."),
    click.option("--level", type=click.Choice(LEVELS), help="What a target token is; it is detected if not given."),
    click.option("--spm-model", metavar="FILE", help="The SentencePiece model whose pieces --level spm counts."),
    click.option("--unit", type=click.Choice(["token", "ms"]), help="Unit of the delays; it is detected if not given."),
    click.option(
        "--source-length", type=float, metavar="MS", help="Length of the recording of an event stream, in ms."
    ),
    click.option("--time-unit", type=click.Choice(["s", "ms"]), help="Unit of times in streams that do not name it."),
    click.option(
        "--column-map",
        multiple=True,
        metavar="OURS=THEIRS",
        help="Name that the log has for a column, such as delays=emission_ms. May be repeated.",
    ),
)


def schema_options(command: Command) -> Command:
    """Options about what a log is; they arrive as `options`."""

    @wraps(command)
    def call(
        *args: Any,
        format_in: str | None,
        level: str | None,
        spm_model: str | None,
        unit: str | None,
        source_length: float | None,
        time_unit: str | None,
        column_map: tuple[str, ...],
        repair: tuple[str, ...] = (),
        strip: tuple[str, ...] = (),
        word_times: str | None = None,
        word_alignment: str | None = None,
        aligned_with: str = ALIGNED[0],
        **rest: Any,
    ) -> Any:
        options = ReadOptions(
            format=format_in,
            level=level,
            unit=unit,
            spm_model=spm_model,
            source_length=source_length,
            time_unit=time_unit,
            repair=tuple(_split(repair)),
            strip=tuple(_split(strip)),
            column_map=dict(_parse_column(text) for text in _split(column_map, keep_empty=True)),
            word_times=word_times,
            word_alignment=word_alignment,
            aligned_with=aligned_with,
        )
        return command(*args, options=options, **rest)

    return _apply(call, SCHEMA_OPTIONS)


def read_options(command: Command) -> Command:
    """Options of every subcommand that reads logs; they arrive as `options`."""
    repair = click.option(
        "--repair", multiple=True, metavar="NAME", help=f"Repair faults by name: {REPAIR_NAMES}. May be repeated."
    )
    strip = click.option(
        "--strip",
        multiple=True,
        metavar="KIND",
        help=f"Leave out target tokens with their delays: {STRIP_KINDS}. May be repeated.",
    )
    return _apply(schema_options(command), (repair, strip))


WORD_OPTIONS = (
    click.option(
        "--word-times",
        metavar="FILE",
        help="Times of the source words, for WordLag: CTM, TextGrid, TSV, Whisper's JSON, SLTev's OStt, or a folder.",
    ),
    click.option(
        "--word-alignment",
        metavar="FILE",
        help="Pairs of source and target words, such as 0-0 1-2, one line per row; without it, text is matched.",
    ),
    click.option(
        "--aligned-with",
        type=click.Choice(ALIGNED),
        default=ALIGNED[0],
        show_default=True,
        help="Text that --word-alignment aligns with the source.",
    ),
)


def word_options(command: Command) -> Command:
    """Files with the words of the source; they arrive in `options`, so `read_options` must be there too."""
    return _apply(command, WORD_OPTIONS)


def _split(texts: Iterable[str], keep_empty: bool = False) -> list[str]:
    """The names in comma-separated lists."""
    names = [name.strip() for text in texts for name in text.split(",")]
    return names if keep_empty else [name for name in names if name]


def _parse_column(text: str) -> tuple[str, str]:
    """OURS=THEIRS."""
    ours, equals, theirs = text.partition("=")
    if not equals or not ours.strip() or not theirs.strip():
        raise UsageError(f"cannot read --column-map {text!r}; write it like delays=emission_ms")
    return ours.strip(), theirs.strip()


CUTTING_OPTIONS = (
    click.option(
        "--segmentation",
        metavar="FILE",
        help="Times of the segments of whole recordings: YAML, JSON, or a document id per line.",
    ),
    click.option("--reference", metavar="FILE", help="Reference translations, one line per segment."),
    click.option(
        "--source", metavar="FILE", help="Source sentences, one line per segment, where delays count source words."
    ),
    click.option(
        "--hypothesis",
        metavar="FILE",
        help="Output of the system, one line per row of the log, where the log does not have it.",
    ),
    click.option(
        "--aligner",
        type=click.Choice(ALIGNERS),
        help="Algorithm that cuts streams into the segments of the reference; timed if not given.",
    ),
    click.option("--subset", is_flag=True, help="Leave out recordings that the segmentation does not have."),
)


def cutting_options(command: Command) -> Command:
    """Options of a subcommand that cuts streams; they arrive as `cutting`."""

    @wraps(command)
    def call(*args: Any, **rest: Any) -> Any:
        names = ("segmentation", "reference", "source", "hypothesis", "aligner", "subset")
        return command(*args, cutting=Cutting(**{name: rest.pop(name) for name in names}), **rest)

    return _apply(call, CUTTING_OPTIONS)


QUARANTINE_OPTIONS = (
    click.option(
        "--on-error",
        type=click.Choice(["fail", "quarantine"]),
        default="fail",
        show_default=True,
        help="What to do with faulty rows: score nothing, or put them into a table and score all others.",
    ),
    click.option(
        "--quarantine", metavar="FILE", help=f"Table of the faulty rows, TSV or Parquet; {TABLE_NAME} if not given."
    ),
)


def quarantine_options(command: Command) -> Command:
    """Options about faulty rows; they arrive as `quarantine`."""

    @wraps(command)
    def call(*args: Any, on_error: str, quarantine: str | None, output: str | None, **rest: Any) -> Any:
        if quarantine is not None and on_error != "quarantine":
            raise UsageError("--quarantine names the table of --on-error quarantine; give that too")
        if quarantine == "-":
            raise UsageError("--quarantine needs a file: standard output holds the scores")
        table = Quarantine((quarantine or _beside(output)) if on_error == "quarantine" else None)
        try:
            return command(*args, quarantine=table, output=output, **rest)
        except DataError as error:
            if "nothing-left" in error.counts:  # the table is all that there is to show
                table.close()
                table.print_summary(Messages())
            raise
        finally:
            table.discard()

    return _apply(call, QUARANTINE_OPTIONS)


def _beside(output: str | None) -> str:
    """The table of faulty rows for a result that is written to a file: beside it, with its name."""
    file = Path(output or "-")
    return TABLE_NAME if output in (None, "-") or not file.name else f"{file.with_suffix('')}.{TABLE_NAME}"


# ---- what is scored ---------------------------------------------------------------------------------------------

plugin_option = click.option(
    "--plugin",
    multiple=True,
    metavar="FILE.py",
    is_eager=True,
    expose_value=False,
    callback=lambda context, parameter, files: [load_file(file) for file in files] and None,
    help="Python file that registers metrics of your own, with @lagging.register. May be repeated.",
)
metric_option = click.option(
    "-m",
    "--metric",
    "names",
    multiple=True,
    metavar="LIST",
    help="Metrics to score, separated by commas. May be repeated.",
)
convention_option = click.option(
    "--convention",
    type=click.Choice(list(CONVENTIONS)),
    default="paper",
    show_default=True,
    help="Convention for lengths and edge cases: that of the paper, or of a tool whose numbers are reproduced.",
)


def parse_metrics(names: Iterable[str], columns: Columns | None = None) -> list[Metric] | None:
    """The metrics of `-m`, or None for the default ones; a wrong name is refused before a log is read."""
    names = list(names)
    if any(not split_names(text) for text in names):
        raise UsageError("-m was given without a metric")
    read = {} if columns is None else columns.metrics
    return [read[name] if name in read else metric(name) for text in names for name in split_names(text)] or None


# ---- statistics -------------------------------------------------------------------------------------------------

resample_option = click.option(
    "--resample",
    type=click.Choice(["segment", "document"]),
    help="What the intervals and tests resample; if not given, recordings where there are several, else segments.",
)
RESAMPLING_OPTIONS = (
    click.option(
        "--resamples",
        type=click.IntRange(FEWEST, MAX_RESAMPLES),
        default=RESAMPLES,
        show_default=True,
        metavar="N",
        help=f"Number of resamples, from {FEWEST} to {MAX_RESAMPLES}.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=SEED,
        show_default=True,
        metavar="N",
        help="Seed of the random numbers of the resamples.",
    ),
)


def resampling_options(command: Command) -> Command:
    """The number of resamples, and the seed; they arrive as `resamples` and `seed`."""
    return _apply(command, RESAMPLING_OPTIONS)


def confidence_option(help: str) -> Callable[[Command], Command]:
    """The confidence level of intervals, in percent."""
    percent = click.FloatRange(0, 100, min_open=True, max_open=True)
    return click.option("--confidence", type=percent, default=95.0, show_default=True, metavar="%", help=help)


correction_option = click.option(
    "--correction",
    type=click.Choice(list(CORRECTIONS)),
    default="holm",
    show_default=True,
    help="Correction of the p-values for the number of pairs.",
)
PAIR_OPTIONS = (
    click.option("--base", metavar="NAME", help="Compare the other systems with this one only, not all pairs."),
    click.option(
        "--test",
        type=click.Choice(TESTS),
        help="Paired test; if not given, randomisation where segments are resampled, else the bootstrap.",
    ),
    resample_option,
    correction_option,
    resampling_options,
)


def pair_options(command: Command) -> Command:
    """How pairs of systems are tested."""
    return _apply(command, PAIR_OPTIONS)


COLUMN_OPTIONS = (
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="[NAME:]METRIC=FILE",
        help="File with a score for each segment from another program, such as COMET=comet.json; with several systems, "
        "one file for each: new:COMET=new.json.",
    ),
    click.option("--lower", multiple=True, metavar="METRIC", help="Name of a --column whose lower values are better."),
)


def column_options(command: Command) -> Command:
    """Scores of segments that were made elsewhere; they arrive as `columns`."""

    @wraps(command)
    def call(*args: Any, columns: tuple[str, ...], lower: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, columns=read_column_files(columns, lower), **rest)

    return _apply(call, COLUMN_OPTIONS)


# ---- what is printed --------------------------------------------------------------------------------------------

format_option = click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(RENDERERS),
    default="table",
    show_default=True,
    help="Format of the result.",
)
AGENT_OPTIONS = (
    click.option(
        "-a", "--option", "options", multiple=True, metavar="NAME=VALUE", help="Option of the agent. May be repeated."
    ),
    click.option(
        "--simuleval", is_flag=True, help="Load AGENT as an agent for SimulEval, whose package must be installed."
    ),
)


def agent_options(command: Command) -> Command:
    """Options about how an agent is loaded."""
    return _apply(command, AGENT_OPTIONS)


output_option = click.option("-o", "--output", metavar="FILE", help="Write the result to a file, not to the terminal.")

rename_option = click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW|FILE",
    help="Name of a system or setting in the result, such as step_0.3='Ours (0.3)'; or a YAML file of such pairs. "
    "May be repeated.",
)

MESSAGE_OPTIONS = (
    click.option("-q", "--quiet", is_flag=True, help="Print no messages, except notes that make a number doubtful."),
    click.option("-v", "--verbose", is_flag=True, help="Print all notes, for each system, and with details."),
    click.option("--no-progress", is_flag=True, help="Show no progress bar."),
    click.option("--debug", is_flag=True, help="Print a traceback if something goes wrong."),
)


def message_options(command: Command) -> Command:
    """Options about standard error; they arrive as `messages`."""

    @wraps(command)
    def call(*args: Any, quiet: bool, verbose: bool, no_progress: bool, debug: bool, **rest: Any) -> Any:
        messages = Messages(quiet, verbose, not no_progress)
        try:
            return command(*args, messages=messages, **rest)
        finally:
            messages.flush()

    return _apply(call, MESSAGE_OPTIONS)
