# SPDX-License-Identifier: Apache-2.0
"""What the documentation takes from the code: a page per metric, tables of options, faults and policies.

Pages written by hand hold marks such as `<!-- options score -->`, each with a table below it; `tools/tables.py` writes
the tables and the pages of the metrics into docs/, so that they can be read in the repository, and a test compares.
mkdocs makes MathML of the formulas between lines of `$$`, and shows what the code of the page of figures draws. Nothing
is fetched from anywhere.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path

import click
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import lagging
from lagging.agents.failures import FAILURES
from lagging.data.checks import REPAIRS
from lagging.data.run import COLUMNS
from lagging.errors import MetricError
from lagging.errors.catalogue import KINDS
from lagging.metrics import Metric, Param, metric, registered
from lagging.metrics.conventions import CONVENTIONS
from lagging.policies import policy
from lagging.render.card import DIRECTIONS, UNITS
from lagging.render.report import report
from lagging.render.table import ARROWS

GROUPS = {
    "The paper's own": ("lagging.metrics.paper",),
    "Since the paper": ("lagging.metrics.laal", "lagging.metrics.atd", "lagging.metrics.offsets"),
    "Segments cut from a stream": ("lagging.metrics.longform",),
    "Tails, drift, and what AL hides": ("lagging.metrics.tail", "lagging.metrics.degenerate"),
    "Against the time of each word": ("lagging.metrics.words",),
    "Texts that are revised": ("lagging.metrics.revision",),
    "Speech out": ("DiscontinuityNum", "DiscontinuitySum", "DiscontinuityAve"),
    "Quality": ("lagging.metrics.quality", "lagging.metrics.error_rates"),
}
"""What the metrics are listed under → modules whose metrics belong there, and metrics that do not go with theirs."""

BUILT_IN = "lagging."

POLICIES = (
    ("wait-4", 5, 5),
    ("antagonist-4", 5, 5),
    ("segment-2", 5, 5),
    ("offline", 5, 5),
    ("prescient", 5, 5),
    ("wait-1", 3, 6),
    ("wait-1-catchup", 3, 6),
    ("wait-1", 6, 3),
)
POLICY_METRICS = ("AP", "CW", "AL", "AL_y", "DAL", "YAAL")
SUSPECTS = (
    ("wait-4", 5, 5),
    ("antagonist-4", 5, 5),
    ("wait-1", 3, 6),
    ("wait-1-catchup", 3, 6),
    ("wait-1", 6, 3),
    ("offline", 5, 5),
    ("one word, then offline", 5, 5),
)
SUSPECT_METRICS = ("AL", "YAAL", "DAL", "HiddenLag", "HiddenShare", "Offline")


# ---- pieces ---------------------------------------------------------------------------------------------------


def formula(latex: str) -> str:
    """LaTeX as a block of MathML."""
    return f'<div class="formula">{convert(latex, display="block")}</div>'


def cell(text: str) -> str:
    """Text for a cell of a table, where a bar outside code would end the cell."""
    parts = text.replace("\n", " ").split("`")
    parts[::2] = [part.replace("|", "&#124;").replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(text: object) -> str:
    """Text as code, in or out of a table."""
    return f"`{text}`"


# ---- metrics --------------------------------------------------------------------------------------------------


def group(m: Metric) -> str:
    """What the metric is listed under."""
    groups = {member: name for name, members in GROUPS.items() for member in members}
    return groups.get(m.name) or groups[m.compute.__module__]


def metrics() -> tuple[Metric, ...]:
    """The metrics of this package; plug-ins that happen to be installed are left out."""
    return tuple(m for m in registered() if m.compute.__module__.startswith(BUILT_IN))


def grouped(all_of: Iterable[Metric]) -> dict[str, list[Metric]]:
    """The metrics by group, in the order of the groups; a metric of none is an error."""
    members: dict[str, list[Metric]] = {name: [] for name in GROUPS}
    for m in all_of:
        members[group(m)].append(m)
    places = {module: place for modules in GROUPS.values() for place, module in enumerate(modules)}
    for listed in members.values():
        listed.sort(key=lambda m: places.get(m.compute.__module__, 0))
    return members


def antagonist() -> lagging.Run:
    """The antagonist of the paper's Table 2, with words."""
    text = "I saw a black cat"
    return lagging.Run.from_delays(
        [[4, 4, 4, 4, 5]],
        source_length=[5],
        prediction=[text],
        reference=[text],
        source=["ich sah eine schwarze Katze"],
    )


def example(m: Metric) -> list[str]:
    """What the metric says of the antagonist, with the signature; nothing if it needs more than a schedule has."""
    try:
        score = lagging.score(antagonist(), [m])[m]
    except MetricError:
        return []
    return [
        "## Example",
        "The antagonist of the paper's Table 2: g = 4 4 4 4 5, |x| = |y| = 5, hypothesis equal to the reference.",
        f"```text\n{m!r} = {score.value:g}\n{score.signature}\n```",
    ]


def allowed(p: Param) -> str:
    """The values that a parameter may have."""
    number = ["a number"] if p.kind in (int, float) else []
    return ", ".join([*map(code, p.choices), *number]) or ("text" if p.kind is str else "")


def linked(text: str) -> str:
    """Text of a metric's page, with a link where it names another page."""
    return text.replace("the page on clocks", "[the page on clocks](../clocks.md)")


def metric_page(m: Metric) -> str:
    """The page of a metric."""
    parts = [f"# {m.name}", m.summary]
    parts += [f"$$\n{m.latex}\n$$"] if m.latex else []
    parts += ["In plain text:" if m.latex else "", f"```text\n{m.formula}\n```"] if m.formula else []
    direction = DIRECTIONS[m.higher_is_better]
    names = [alias for alias in (f"{m.name}_CA",) if m.has("clock")]
    facts = [("unit", UNITS[m.unit]), ("direction", direction), ("paper", m.paper or "–")]
    facts += [("corpus value", corpus(m))]
    facts += [("also", f"{code(names[0])}, which is {code(repr(metric(names[0])))}")] if names else []
    parts.append("\n".join(f"- **{name}**: {text}" for name, text in facts))
    if m.params:
        rows = [(code(p.name), code(p.default), allowed(p), linked(cell(p.help))) for p in m.params]
        parts += ["## Parameters", table(["name", "default", "values", "meaning"], rows)]
        p = m.params[0]
        shown = f"{m.name}({p.name}={p.choices[-1] if p.choices else p.default})"
        parts.append(f"Write them in brackets: `lagging score LOG -m '{shown}'`.")
    if m.edge_cases:
        parts += ["## Edge cases", "\n".join(f"- {text}" for text in m.edge_cases)]
    parts += example(m)
    parts += ["## Cite", f"```bibtex\n{m.bibtex}\n```"] if m.bibtex else []
    return "\n\n".join(part for part in parts if part) + "\n"


def corpus(m: Metric) -> str:
    """How the value of a corpus is made of its segments."""
    if m.pool is not None:
        return "from all tokens of all segments, pooled"
    if m.aggregate == "ratio":
        return "ratio of two sums over the segments"
    if m.aggregate == "mean":
        return "mean over the segments that have a value"
    return "from the statistics of all segments"


def index_page(all_of: Sequence[Metric]) -> str:
    """The list of metrics, by family."""
    parts = [
        "# Metrics",
        "Notation of the paper: source **x**, target **y** (what the system wrote), g(t) = source consumed before"
        " target token t, in tokens or milliseconds, γ = |y|/|x|, d = cost of writing one target token, in source"
        " units.",
        "`lagging metrics` prints this list, `lagging metrics DAL` a card with what is on the page of DAL.",
    ]
    for name, members in grouped(all_of).items():
        rows = [
            (f"[{m.name}]({m.name}.md)", ARROWS[m.higher_is_better], cell(m.summary), cell(m.paper)) for m in members
        ]
        parts += [f"## {name}", table(["metric", "", "what it is", "paper"], rows)]
    return "\n\n".join(parts) + "\n"


# ---- tables in pages written by hand --------------------------------------------------------------------------


def options_table(name: str) -> str:
    """The options of a subcommand."""
    command: click.Command = importlib.import_module(f"lagging.cli.{name}").command
    rows = []
    for p in command.params:
        if not isinstance(p, click.Option):
            continue
        flags = ", ".join(map(code, p.opts))
        kind = p.type
        value = " \\| ".join(map(code, kind.choices)) if isinstance(kind, click.Choice) else code(p.metavar or "N")
        rows.append((flags, "" if p.is_flag else value, cell(p.help or "")))
    return table(["option", "value", "meaning"], rows)


def faults_table() -> str:
    """Every kind of fault."""
    return table(
        ["kind", "what", "why", "how to mend it"], [(code(k), *map(cell, words)) for k, words in KINDS.items()]
    )


def repairs_table() -> str:
    """Every repair."""
    return table(["`--repair`", "what it does"], [(code(name), cell(text)) for name, text in REPAIRS.items()])


def conventions_table() -> str:
    """The conventions side by side, as the code has them."""
    several = list(CONVENTIONS.values())
    rows = []
    for name in ("AP", "AL", "AL_y", "LAAL", "YAAL", "DAL"):
        lengths = [c.params.get(name, {}).get("length", metric(name).get("length")) for c in several]
        rows.append((f"\\|y\\| in {name}", *map(code, lengths)))
    others = {(m, p) for c in several for m, values in c.params.items() for p in values if p != "length"}
    for name, param in sorted(others):
        values = [c.params.get(name, {}).get(param, metric(name).get(param)) for c in several]
        rows.append((f"`{param}` in {name}", *map(code, values)))
    tolerances = [f"{c.tolerance:g} ms" if c.tolerance else "exact" for c in several]
    rows += [
        ("end of the source, ms", *tolerances),
        ("end of the source, tokens", *["exact"] * len(several)),
        ("final `</s>`", *({"strip": "stripped with its delay", "keep": "counted"}[c.eos] for c in several)),
        ("how references are counted", *(code(c.count) for c in several)),
        (
            "hypothesis length stands in for a missing reference in AL, AP",
            *("yes" if c.replaces_missing_reference else "no" for c in several),
        ),
        ("reproduces", *(cell(c.reproduces) for c in several)),
    ]
    return table(["", *(code(c.name) for c in several)], rows)


def policies_table() -> str:
    """What the metrics say of schedules without a model, computed when the page is built."""
    rows = []
    for name, x, y in POLICIES:
        run = policy(name).run(source_lengths=[x], target_lengths=[y])
        scores = lagging.score(run, POLICY_METRICS)
        values = [f"{scores[m].value:.4g}" for m in POLICY_METRICS]
        g = " ".join(f"{v:g}" for v in run.delays[0])
        rows.append((code(name), str(x), str(y), g, *("–" if v == "nan" else v for v in values)))
    return table(["policy", "\\|x\\|", "\\|y\\|", "g", *POLICY_METRICS], rows)


def degeneracy_table() -> str:
    """What is hidden in seven schedules, and what OmniSTEval's test says of them, computed when the page is built."""
    rows = []
    for name, x, y in SUSPECTS:
        g = [1.0] + [float(x)] * (y - 1) if "," in name else policy(name).delays(x, y).tolist()
        run = lagging.Run.from_delays([g], source_length=[x], reference_length=[y])
        scores = lagging.score(run, SUSPECT_METRICS)
        values = [f"{scores[m].value:.4g}" for m in SUSPECT_METRICS]
        test = lagging.score(run, ["DSPTV"], convention="omnisteval")["DSPTV"].value
        verdict = [f"{test:.1f}", "degenerate" if abs(test) > 20 else "fine"]
        delays = " ".join(f"{v:g}" for v in g)
        rows.append((name, str(x), str(y), delays, *("–" if v == "nan" else v for v in values), *verdict))
    return table(["policy", "\\|x\\|", "\\|y\\|", "g", *SUSPECT_METRICS, "DSPTV", "OmniSTEval says"], rows)


def failures_table() -> str:
    """How an agent can fail."""
    return table(["kind", "meaning"], [(code(kind), cell(text)) for kind, text in FAILURES.items()])


def example_file(name: str) -> str:
    """The code of an example."""
    text = (Path(__file__).parent.parent / "examples" / f"{name}.py").read_text("utf-8")
    return f"```python\n{text.partition(chr(10))[2].strip()}\n```"


def columns_list() -> str:
    """The columns of a Run."""
    return ", ".join(map(code, COLUMNS))


# ---- figures --------------------------------------------------------------------------------------------------


def figures(page: Path) -> dict[str, bytes]:
    """What the code of a page draws, by name; it runs where it says that it does, beside `examples` and `docs/data`."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        for data in ("examples", "docs/data"):
            shutil.copytree(page.parent.parent / data, Path(folder) / data)
        with contextlib.chdir(folder):
            exec(compile("\n".join(blocks), str(page), "exec"), {})
        return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.svg"))}


# ---- marks ----------------------------------------------------------------------------------------------------


END = "<!-- end of table -->"
TABLES: dict[str, Callable[..., str]] = {
    "options": options_table,
    "faults": faults_table,
    "repairs": repairs_table,
    "conventions": conventions_table,
    "policies": policies_table,
    "degeneracy": degeneracy_table,
    "columns": columns_list,
    "failures": failures_table,
    "example": example_file,
}
MARK = re.compile(rf"^<!-- ({'|'.join(TABLES)})(?: (\w+))? -->$(?:\n\n.*?\n\n{END}$)?", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
FORMULA = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.MULTILINE | re.DOTALL)


def example_report() -> str:
    """The report that docs/report.md is about."""
    data = Path(__file__).parent.parent / "examples" / "data"
    runs = {name: lagging.read(data / name) for name in ("wait-3", "wait-5", "adaptive", "antagonist-5")}
    return report(runs, lagging.compare(runs, ["AL", "DAL", "BLEU"])).to_html()


def fill(markdown: str) -> str:
    """A page with the tables that its marks name."""
    return MARK.sub(
        lambda m: f"{m[0].partition(' -->')[0]} -->\n\n{TABLES[m[1]](*([m[2]] if m[2] else []))}\n\n{END}", markdown
    )


def written_pages(docs: Path) -> dict[Path, str]:
    """The pages that are made of code, or have tables that are: what they must be."""
    all_of = metrics()
    pages = {docs / "metrics" / f"{m.name}.md": metric_page(m) for m in all_of}
    pages[docs / "metrics" / "index.md"] = index_page(all_of)
    by_hand = {page: page.read_text("utf-8") for page in sorted(docs.glob("*.md"))}
    return pages | {page: fill(text) for page, text in by_hand.items() if MARK.search(text)}


# ---- what mkdocs calls ----------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the metrics into the navigation."""
    reference = next(entry["Reference"] for entry in config.nav or [] if "Reference" in entry)
    for entry in reference:
        if "Metrics" in entry:
            pages = {name: [f"metrics/{m.name}.md" for m in listed] for name, listed in grouped(metrics()).items()}
            entry["Metrics"] = [
                {"All metrics": "metrics/index.md"},
                *({name: listed} for name, listed in pages.items()),
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the playground, the report and the figures."""
    page = resources.files("lagging.render") / "web" / "playground.html"
    files.append(File.generated(config, "live/playground.html", content=page.read_bytes()))
    files.append(File.generated(config, "live/report.html", content=example_report()))
    for name, picture in figures(Path(config.docs_dir) / "figures.md").items():
        files.append(File.generated(config, f"figures/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave marks out, and replace formulas by MathML."""
    return FORMULA.sub(lambda m: formula(m[1]), COMMENT.sub("", markdown))
