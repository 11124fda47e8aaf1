# SPDX-License-Identifier: Apache-2.0
"""The documentation: it builds offline, has a page per metric, and shows what the commands really print."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import io
import re
import sys
import tomllib
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import lagging
from lagging.formats import FORMATS
from lagging.formats.line import Line
from lagging.formats.tables import ALIASES
from lagging.metrics import registered
from lagging.scoring.plan import Plan
from lagging.scoring.signature import ORDER
from runs import everything

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import shown  # noqa: E402

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
VERSION = re.compile(r"(?<=v:)\d[\w.+-]*|(?<=version:)\d[\w.+-]*|(?<=^lagging )\d[\w.+-]*", re.MULTILINE)


# ---- the site -------------------------------------------------------------------------------------------------


class Loads(HTMLParser):
    """Collects what a page makes the browser fetch; links to other pages are not fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "link" and found.get("rel") not in ("prev", "next", "canonical"):
            self.urls.append(found.get("href") or "")
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.urls += [found.get("src") or "", found.get("srcset") or ""]
        if tag == "object":
            self.urls.append(found.get("data") or "")
        self.urls += re.findall(r"url\(([^)]*)\)", found.get("style") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    commands = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("latex2mathml")
    config = pytest.importorskip("mkdocs.config")
    out = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages' deprecations are not ours to mend
        loaded = config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out), strict=True)
        loaded.plugins.on_startup(command="build", dirty=False)
        commands.build(loaded)
        loaded.plugins.on_shutdown()
    return out


@pytest.mark.slow
def test_every_metric_has_a_page(site: Path) -> None:
    index = (site / "metrics" / "index.html").read_text("utf-8")
    for metric in registered():
        if metric.compute.__module__.startswith("lagging."):
            page = (site / "metrics" / f"{metric.name}.html").read_text("utf-8")
            assert f'href="{quote(metric.name)}.html"' in index
            assert ("<math" in page) == bool(metric.latex)


@pytest.mark.slow
def test_every_page_is_built_and_no_mark_is_left(site: Path) -> None:
    for page in PAGES:
        text = (site / f"{page.stem}.html").read_text("utf-8")
        assert not re.search(r"<!-- \w+( \w+)? -->|\$\$", text), page.name


def test_what_is_made_of_code_is_fresh() -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("latex2mathml")
    spec = importlib.util.spec_from_file_location("tables", ROOT / "tools" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    assert [page.name for page in tables.stale()] == []  # make tables


@pytest.mark.slow
def test_search_needs_no_server(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text("utf-8").startswith("var __index = {")
    assert 'src="javascripts/iframe-worker.js"' in (site / "index.html").read_text("utf-8")


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text("utf-8"))
        outside = [url for url in loads.urls if re.match(r"\s*['\"]?(https?:)?//", url)]
        assert not outside, f"{page.name} loads {outside}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet.name


# ---- what the pages say ---------------------------------------------------------------------------------------


def test_every_key_is_documented() -> None:
    text = (DOCS / "formats.md").read_text("utf-8")
    assert [name for name in Line.__struct_fields__ if f"`{name}`" not in text] == []


def test_every_extra_is_listed_once() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    table = (ROOT / "README.md").read_text("utf-8").partition("| extra | for |")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(extras)


def test_every_format_is_documented() -> None:
    for page, start in ((DOCS / "formats.md", "## Recognition"), (ROOT / "README.md", "## What it reads")):
        text = page.read_text("utf-8").partition(start)[2].partition("\n## ")[0]
        assert [name for name in FORMATS if f"`{name}`" not in text] == [], page.name
    endings = (DOCS / "formats.md").read_text("utf-8").partition("## Recognition")[2].partition("\n###")[0]
    assert [end for known in FORMATS.values() for end in known.suffixes if f"`{end}`" not in endings] == []


def test_every_other_name_of_a_column_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (DOCS / "format-tables.md").read_text("utf-8"), re.MULTILINE)
    assert {column: tuple(re.findall(r"`(\w+)`", names)) for column, names in rows} == ALIASES


def note_kinds() -> set[str]:
    """The kinds of notes that the source names where it makes one."""
    found = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Note", "about"):
                kind = node.args[node.func.id == "about"]
                found |= {kind.value} if isinstance(kind, ast.Constant) else set()
    return found


def test_every_kind_of_note_is_documented() -> None:
    table = (DOCS / "formats.md").read_text("utf-8").partition("## Notes")[2].partition("\n## ")[0]
    known = {kind.strip("` ") for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE) for kind in row.split(",")}
    assert "empty hypothesis" in note_kinds()
    assert note_kinds() - known == set()


def lost(run: lagging.Run, format: str, folder: Path) -> dict[str, bool]:
    """The columns that a format cannot hold, and whether it holds something else instead."""
    said = lagging.write(run, folder / "run", format=format)
    return {column: bool(how) for column, how in (re.fullmatch(r"(\w+)( \(.*\))?", text).groups() for text in said)}


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_format_cannot_hold(format: str, tmp_path: Path) -> None:
    section = (DOCS / "formats.md").read_text("utf-8").partition("### What is lost")[2].partition("\n##")[0]
    head, _, *rows = (
        [cell.strip("` ") for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*", section, re.M)
    )
    run = everything("token" if format in ("rw", "trajectory") else "ms")
    if format == "trajectory":  # its chunks are those of a source text
        run = replace(run, source=np.array(["a b c", "d e"], dtype=object))
    gone = lost(run, format, tmp_path)
    with_sound = lagging.Run.from_delays(
        [[1.0]], source_length=[2.0], prediction=["a"], durations=[[3.0]], unit=run.unit
    )
    refused = not FORMATS[format].speech  # text would be made of it
    gone |= {"durations": False} if refused or "durations" in lost(with_sound, format, tmp_path) else {}
    if format not in head:
        assert gone == {}
        assert f"`{format}`" in section
        return
    told = {row[0]: row[head.index(format)] for row in rows}
    assert set(told) == {*run.columns, "durations"}
    meant = {column: "✓" if column not in gone else "number" if gone[column] else "–" for column in told}
    assert told == meant


def test_metrics_that_are_said_not_to_add_up_do_not() -> None:
    (line,) = re.findall(r"^- A metric that cannot be added up .*", (DOCS / "scale.md").read_text("utf-8"), re.M)
    named = [name for part in re.findall(r"\(([^)]*)\)", line) for name in part.split(", ")]
    assert len(named) >= 4
    for name in named:
        with pytest.raises(lagging.MetricError, match="cannot be tallied"):
            Plan.make([name], summary=True)


@pytest.mark.parametrize("page", ["tutorial.md", "format-simulstream.md"])
def test_pages_about_streams_name_the_command_that_cuts_them(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert "does not cut" not in text
    assert "let a tool cut" not in text
    assert re.search(r"--segmentation .*--reference ", text)
    assert "(longform.md" in text


def test_parity_of_cuts_is_stated_per_language() -> None:
    section = (DOCS / "longform.md").read_text("utf-8").partition("## What is scored")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (en-\w\w)[^|]*\|.*\| ([\d.]+) % \|", section, re.M)
    assert {language for language, _ in rows} == {"en-de", "en-zh", "en-ja"}


def test_every_field_of_a_signature_is_documented() -> None:
    text = (DOCS / "signatures.md").read_text("utf-8")
    assert [name for name in (*ORDER, "n", "v") if f"| `{name}` |" not in text] == []


def test_every_public_name_is_documented() -> None:
    text = (DOCS / "python.md").read_text("utf-8").partition("## Public names")[2]
    assert [name for name in lagging.__all__ if f"`{name}`" not in text and not name.startswith("_")] == []


def exists(name: str) -> bool:
    """Whether a dotted name is a module of the package, or an attribute of one."""
    parts, count = name.split("."), 1
    while count < len(parts) and importlib.util.find_spec(".".join(parts[: count + 1])) is not None:
        count += 1
        if not hasattr(importlib.import_module(".".join(parts[:count])), "__path__"):
            break
    value: object = importlib.import_module(".".join(parts[:count])) if count < len(parts) else None
    for part in parts[count:]:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_every_name_of_the_package_exists() -> None:
    names = set()
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES, *(ROOT / "examples").glob("*.py")]:
        names |= set(re.findall(r"\blagging(?:\.[A-Za-z_]\w*)+", page.read_text("utf-8")))
    files = {"lagging.fish", "lagging.zip"}
    assert len(names) > 50
    assert {name for name in names if not exists(name)} == files


# ---- what the pages show --------------------------------------------------------------------------------------


def blank(text: str) -> str:
    """The text without what changes with every release."""
    return VERSION.sub("VERSION", text)


@pytest.mark.parametrize("page", shown.PAGES, ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page: Path) -> None:
    text = page.read_text("utf-8")
    assert blank(shown.rerun(text, shown.PAGES[page])) == blank(text), (
        "python tools/shown.py writes what they print now"
    )


@pytest.mark.parametrize("page", shown.PAGES, ids=lambda page: page.stem)
def test_python_examples(page: Path) -> None:
    if "pandas" in page.read_text("utf-8"):
        pytest.importorskip("pandas")
    examples = re.findall(r"^```pycon\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    source = re.sub(r"v:\d[\w.+-]*", f"v:{lagging.__version__}", "\n".join(examples))
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    with shown.inside(shown.PAGES[page]):
        report = io.StringIO()
        doctest.DocTestRunner().run(test, out=report.write, clear_globs=False)
    assert not report.getvalue(), report.getvalue()
