# SPDX-License-Identifier: Apache-2.0
"""A Comparison → terminal table, JSON, TSV, Markdown, LaTeX. No maths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from lagging.comparison import Comparison
from lagging.comparison.paired import Pair
from lagging.comparison.published import PublishedScore
from lagging.errors import SHOWN, counted
from lagging.errors.printable import printable
from lagging.metrics import Metric
from lagging.render import check_format
from lagging.render.cells import NOTHING, UNITS, best, heading, pad, safe, shorten, shown, signatures, undefined
from lagging.render.documents import FIELDS, LATEX_SIGNS, SCHEMA, finite, latex_text, markdown_text, record, tsv_field
from lagging.render.table import BOLD, DIM, PLAIN, grid
from lagging.scoring.scores import Scores

__all__ = ["render_comparison"]

WORDS = {"alike": "not significant", "untested": "not tested"}
PAIR = ("metric", "a", "b", "difference", "low", "high", "p", "p_adjusted")
EFFECT = ("metric", "a", "b", "effect", "effect_low", "effect_high", "wins", "ties", "losses", "n", "method", "reason")
SHORTEST = 12
"""Cells that a name gets at least."""
MORE = ("letters", "against", "difference", "difference_low", "difference_high", "p", "p_adjusted", "test")


def render_comparison(
    comparison: Comparison,
    format: str = "table",
    *,
    width: int | None = None,
    colour: bool = False,
    every: bool = False,
    sentences: Sequence[str] = (),
) -> str:
    """A comparison in one of the formats.

    Args:
        comparison: what was found.
        format: "table", "json", "tsv", "markdown" or "latex".
        width: columns of the terminal, for the table; None to let lines be as long as they are.
        colour: whether the table may use terminal colours.
        every: whether all pairs are listed; else, of many systems, those with the base, or the first.
        sentences: what is to be said below the pairs.
    """
    check_format(format)
    if format == "json":
        return _json(comparison)
    if format == "tsv":
        return _tsv(comparison)
    sheet = Sheet(comparison, every, tuple(sentences))
    if format == "table":
        return _table(sheet, width, colour)
    return _markdown(sheet) if format == "markdown" else _latex(sheet)


# ---- what all formats for people show ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A score: its value, its interval, letters or a mark, and whether it is the best of its column."""

    value: str
    interval: str = ""
    mark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Sheet:
    """A comparison, in cells and lines."""

    comparison: Comparison
    every: bool
    sentences: tuple[str, ...]

    @property
    def results(self) -> list[Scores]:
        """The scores of the systems."""
        return list(self.comparison.scores.values())

    @property
    def metrics(self) -> list[tuple[Metric, str]]:
        """The metrics, and their units."""
        return [(score.metric, score.unit) for score in self.results[0]]

    @property
    def rows(self) -> list[tuple[str, list[Cell], str]]:
        """Name, cells and number of segments of each system; then those that were published."""
        c = self.comparison
        marks = c.letters or c.marks
        winners = {m: best(self.results, m) for m, _ in self.metrics}
        rows = []
        for name, scores in c.scores.items():
            cells = []
            for m, unit in self.metrics:
                score = scores[m]
                value = shown(score.value, unit)
                ends = "" if score.low is None else f"[{shown(score.low, unit)}, {shown(score.high, unit)}]"
                cells.append(Cell(value, ends, marks.get(m, {}).get(name, ""), value in winners[m]))
            rows.append((name, cells, str(c.n)))
        found: dict[tuple[str, str], list[PublishedScore]] = {}
        for one in c.published:
            found.setdefault((one.system, one.path), []).append(one)
        for (name, _), some in found.items():
            values = {one.metric: one.score for one in some}
            cells = [Cell(shown(values.get(repr(m)), unit)) for m, unit in self.metrics]
            rows.append((f"{name} ({some[0].tool or 'published'})", cells, NOTHING))
        return rows

    def pairs(self, clean: Callable[[str], str] = str) -> list[list[str]]:
        """A head, and a line per pair: metric, systems, difference, p, what that means, wins; `clean` is for names."""
        some = self.shown_pairs
        if not some:
            return []
        units, single = dict(self.metrics), len(self.comparison.pairs) == len(self.metrics)
        corrected = "p" if single or self.comparison.correction == "none" else "p (corrected)"
        lines = [["metric", "pair", "difference", corrected, "", "wins/ties/losses"]]
        for pair in some:
            unit = units[pair.metric]
            ends = "" if pair.low != pair.low else f" [{shown(pair.low, unit)}, {shown(pair.high, unit)}]"
            difference = f"{shown(pair.difference, unit)}{ends} {UNITS[unit]}".rstrip()
            wins = NOTHING if pair.wins is None else f"{pair.wins}/{pair.ties}/{pair.losses}"
            said = self.comparison.verdict(pair)
            p = NOTHING if pair.p_adjusted != pair.p_adjusted else f"{pair.p_adjusted:.4f}"
            both = f"{clean(pair.b)} − {clean(pair.a)}"
            lines.append([repr(pair.metric), both, difference, p, WORDS.get(said, said), wins])
        return lines

    @property
    def shown_pairs(self) -> list[Pair]:
        """The pairs that are listed."""
        c = self.comparison
        if self.every or c.base is not None or len(c.systems) <= 2:
            return list(c.pairs)
        return [pair for pair in c.pairs if pair.a == c.systems[0]]

    @property
    def remarks(self) -> list[str]:
        """What stands below: the sentences, what the marks mean, how it was tested, what was left out or undefined."""
        c = self.comparison
        hidden = len(c.pairs) - len(self.shown_pairs)
        lines = [*([f"{counted(hidden, 'more pair')}: -v"] if hidden else []), *self.sentences]
        lines += [line for line in (c.key, c.how) if line]
        left = [f"{len(ids)} of {name} ({_first(ids)})" for name, ids in c.unmatched.items() if ids]
        if left:
            lines.append(f"{counted(c.n, 'segment')} that all systems have; left out: {', '.join(left)}")
        return [*lines, *undefined(self.results)]

    @property
    def signatures(self) -> list[str]:
        """How the scores were made, and the p-values."""
        own = [f"{one.signature}  ({one.system})" for one in self.comparison.published if one.signature]
        return [*signatures(self.results), *own, *([str(self.comparison.signature)] if self.comparison.pairs else [])]


def _first(ids: Sequence[Any]) -> str:
    return ", ".join(map(str, ids[:SHOWN])) + (", …" if len(ids) > SHOWN else "")


# ---- the terminal -----------------------------------------------------------------------------------------------


def _table(sheet: Sheet, width: int | None, colour: bool) -> str:
    rows = sheet.rows
    texts = [_aligned([cells[at] for _, cells, _ in rows]) for at in range(len(sheet.metrics))]
    head = ["system", *(heading(m, unit) for m, unit in sheet.metrics), "n"]
    body = [["", *(column[r] for column in texts), rows[r][2]] for r in range(len(rows))]
    names = [safe(name, isolate=width is not None) for name, _, _ in rows]
    room = max(map(cell_len, names)) if width is None else width - _wide([head, *body]) + len("system")
    for row, name in zip(body, names, strict=True):
        row[0] = shorten(name, max(room, SHORTEST))
    bold = {(r + 1, i + 1) for r, (_, cells, _) in enumerate(rows) for i, cell in enumerate(cells) if cell.best}
    bold |= {(0, i) for i in range(len(head))}
    lines = grid([head, *body], [False] * (len(head) - 1) + [True], bold if colour else None)
    if width is not None and _wide([head, *body]) > width:
        body = [[name, *row[1:]] for name, row in zip(names, body, strict=True)]
        lines = _by_metric(head, body, width, bold if colour else None)
    below = _pair_lines(sheet, width, colour)
    remarks = [safe(line) for line in sheet.remarks]
    made = [f"{DIM}{line}{PLAIN}" if colour else line for line in sheet.signatures]
    return "\n".join([*lines, "", *below, *([""] if below else []), *remarks, "", *made])


def _wide(rows: Sequence[Sequence[str]]) -> int:
    return max(map(cell_len, grid(rows, [False] * len(rows[0]))))


def _aligned(cells: Sequence[Cell]) -> list[str]:
    """The cells of a column: values end, intervals and marks begin below each other."""
    wide, ends = max(cell_len(c.value) for c in cells), max(len(c.interval) for c in cells)
    return [f"{pad(c.value, wide, right=True)} {pad(c.interval, ends)} {c.mark}".rstrip() for c in cells]


def _by_metric(
    head: Sequence[str], body: Sequence[Sequence[str]], width: int, bold: set[tuple[int, int]] | None
) -> list[str]:
    """For a narrow terminal: a block per metric, the systems below each other."""
    lines: list[str] = []
    counts = {row[-1] for row in body if row[-1] != NOTHING}
    for i in range(1, len(head) - 1):
        title = f"{head[i]}  (n = {', '.join(counts)})"
        room = max(width - 4 - max(cell_len(row[i]) for row in body), 8)
        rows = [["  " + shorten(row[0], room), row[i]] for row in body]
        marked = {(r, c) for r in range(len(rows)) for c in (0, 1) if bold and (r + 1, i) in bold}
        lines += [BOLD + title + PLAIN if bold else title, *grid(rows, [False, False], marked if bold else None)]
    return lines


def _pair_lines(sheet: Sheet, width: int | None, colour: bool) -> list[str]:
    """The pairs below each other; too wide, without wins; then with names cut short; then in two lines each."""
    pairs = sheet.pairs(lambda name: safe(name, isolate=width is not None))
    if not pairs:
        return []
    if width is not None and _wide(pairs) > width:
        pairs = [line[:-1] for line in pairs]
    if width is not None and _wide(pairs) > width:
        room = (width - _wide([[*line[:1], "", *line[2:]] for line in pairs]) - len(" − ")) // 2
        if room < SHORTEST:
            return _two_lines(sheet, width)
        pairs = [line[:-1] for line in sheet.pairs(lambda name: shorten(safe(name), room))]
    return grid(pairs, [False] * len(pairs[0]), {(0, i) for i in range(len(pairs[0]))} if colour else None)


def _two_lines(sheet: Sheet, width: int) -> list[str]:
    metric = max(len(repr(pair.metric)) for pair in sheet.shown_pairs)
    room = max((width - metric - len(":  − : not significant")) // 2, SHORTEST)
    head, *pairs = sheet.pairs(lambda name: shorten(safe(name), room))
    lines = []
    for name, both, difference, p, said, _ in pairs:
        lines += [f"{name}: {both}: {said}", f"  {difference}, {head[3]} = {p}"]
    return lines


# ---- programs ---------------------------------------------------------------------------------------------------


def _fields(pair: Pair, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(pair, name) for name in names}
    return {k: repr(v) if k == "metric" else finite(v) if isinstance(v, float) else v for k, v in values.items()}


def _json(c: Comparison) -> str:
    found = {
        "schema": SCHEMA,
        "scores": [record(name, score) for name, scores in c.scores.items() for score in scores],
        "pairs": [_fields(pair, PAIR) for pair in c.pairs],
        "effects": [_fields(pair, EFFECT) for pair in c.pairs],
        "letters": {repr(m): of for m, of in (c.letters or c.marks).items()},
        "base": c.base,
        "unmatched": {name: list(ids) for name, ids in c.unmatched.items()},
        "published": [
            {
                "system": one.system,
                "metric": one.metric,
                "score": finite(one.score),
                "unit": one.unit,
                "tool": one.tool,
                "signature": one.signature,
            }
            for one in c.published
        ],
        "signature": str(c.signature),
    }
    return json.dumps(found, ensure_ascii=False, indent=1)


def _tsv(c: Comparison) -> str:
    """A row per system and metric; what it is against the base, or the first system; then the published scores."""
    first = c.base or c.systems[0]
    marks = c.letters or c.marks
    rows: list[list[Any]] = [[*FIELDS, *MORE]]
    for name, scores in c.scores.items():
        for score in scores:
            more: list[Any] = [None] * (len(MORE) - 1)
            more[0] = marks.get(score.metric, {}).get(name)
            if name != first and c.pairs:
                of = _fields(c.pair(score.metric, first, name), PAIR)
                more[1:] = [first, of["difference"], of["low"], of["high"], of["p"], of["p_adjusted"]]
            rows.append([*record(name, score).values(), *more, str(c.signature)])
    for one in c.published:
        row = dict.fromkeys([*FIELDS, *MORE]) | {"system": one.system, "metric": one.metric, "unit": one.unit}
        rows.append(list((row | {"score": finite(one.score), "signature": one.signature}).values()))
    return "\n".join("\t".join(map(tsv_field, row)) for row in rows)


# ---- papers -----------------------------------------------------------------------------------------------------


def _markdown(sheet: Sheet) -> str:
    head = ["system", *(markdown_text(heading(m, unit)) for m, unit in sheet.metrics), "n"]
    rows = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name, cells, n in sheet.rows:
        texts = [
            " ".join(filter(None, [f"**{c.value}**" if c.best else c.value, c.interval]))
            + (f" <sup>{c.mark}</sup>" if c.mark else "")
            for c in cells
        ]
        rows.append("| " + " | ".join([markdown_text(name), *texts, n]) + " |")
    if sheet.comparison.pairs:
        head, *lines = sheet.pairs()
        rows += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        rows += ["| " + " | ".join(map(markdown_text, line)) + " |" for line in lines]
    below = [*(f"- {markdown_text(line)}" for line in sheet.remarks), *(f"- `{line}`" for line in sheet.signatures)]
    return "\n".join([*rows, "", *below])


def _latex(sheet: Sheet) -> str:
    """A booktabs table; its caption names the test; pairs, remarks and signatures are comments."""
    c = sheet.comparison
    heads = []
    for m, unit in sheet.metrics:
        name = latex_text(heading(m, "")).translate(LATEX_SIGNS)
        heads.append(rf"\multicolumn{{2}}{{c}}{{{name}{f' ({UNITS[unit]})' if UNITS[unit] else ''}}}")
    said = ". ".join(_sentence(text) for text in (c.how, c.key) if text)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_math(latex_text(said))}.}}",
        r"\begin{tabular}{l" + r"r@{\ }l" * len(heads) + "r}",
        r"\toprule",
        " & ".join(["System", *heads, "$n$"]) + r" \\",
        r"\midrule",
    ]
    rows = sheet.rows
    longest = [max((cells[at].mark for _, cells, _ in rows), key=len) for at in range(len(heads))]
    for name, cells, n in rows:
        texts = []
        for cell, long in zip(cells, longest, strict=True):
            value = _math(cell.value)
            texts.append(rf"\textbf{{{value}}}" if cell.best else value)
            texts.append(_math(cell.interval) + _raised(cell.mark, long))
        lines.append(" & ".join([latex_text(name), *texts, _math(n)]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    pairs = ["  ".join(filter(None, line)) for line in sheet.pairs()]
    below = [printable(line) for line in (*pairs, *sheet.remarks, *sheet.signatures)]
    return "\n".join([*lines, *(f"% {line}" for line in below)])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _math(text: str) -> str:
    """Numbers with a minus sign, and an en dash where there is none."""
    return re.sub(r"-(?=\d)", "$-$", text).replace(NOTHING, "--")


def _raised(mark: str, longest: str) -> str:
    """Letters above the line, as wide as the longest of the column."""
    if not longest:
        return ""
    empty = longest[len(mark) :]
    both = mark + (rf"\phantom{{{empty}}}" if empty else "")
    return f"$^{{{both}}}$".replace("≠", r"\neq ")
