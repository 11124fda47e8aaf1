# SPDX-License-Identifier: Apache-2.0
"""The documentation: it builds offline, has a page per metric, and shows what the commands really print."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lagging
from lagging.cli import main
from lagging.formats.jsonl import Line
from lagging.metrics import registered
from lagging.signature import ORDER

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def test_every_metric_has_a_page(site: Path) -> None:
    index = (site / "metrics" / "index.html").read_text("utf-8")
    for metric in registered():
        if metric.compute.__module__.startswith("lagging."):
            page = (site / "metrics" / f"{metric.name}.html").read_text("utf-8")
            assert f'href="{metric.name}.html"' in index
            assert ("<math" in page) == bool(metric.latex)


def test_every_page_is_built_and_no_mark_is_left(site: Path) -> None:
    for page in PAGES:
        text = (site / f"{page.stem}.html").read_text("utf-8")
        assert not re.search(r"<!-- \w+( \w+)? -->|\$\$", text), page.name


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


def test_every_field_of_a_signature_is_documented() -> None:
    text = (DOCS / "signatures.md").read_text("utf-8")
    assert [name for name in (*ORDER, "n", "v") if f"| `{name}` |" not in text] == []


def test_every_public_name_is_documented() -> None:
    text = (DOCS / "python.md").read_text("utf-8").partition("## Public names")[2]
    assert [name for name in lagging.__all__ if f"`{name}`" not in text and not name.startswith("_")] == []


# ---- what the pages show --------------------------------------------------------------------------------------


class _Output(io.TextIOWrapper):
    """Standard output, or error, that can be read afterwards."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode("utf-8")


def run_command(line: str, code: int) -> tuple[str, int]:
    """What a command prints, on both streams, and its exit code; `lagging` runs in this process."""
    shown, given = _Output(), ""
    stages = line.split(" | ")
    for stage in stages:
        words = shlex.split(stage)
        if words == ["echo", "$?"]:
            return f"{code}\n", 0
        if words[0] in ("cat", "head"):
            lines = Path(words[-1]).read_text("utf-8").splitlines(keepends=True)
            return "".join(lines[: int(words[1][1:])] if words[0] == "head" else lines), 0
        assert words[0] == "lagging", f"the test does not know the command {words[0]}"
        out = shown if stage == stages[-1] else _Output()
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given.encode("utf-8")), encoding="utf-8")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(shown):
                main(words[1:])
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdin = stdin
        given = out.text() if out is not shown else ""
    return shown.text(), code


def blank(text: str) -> str:
    """The text without what changes with every release."""
    return VERSION.sub("VERSION", text)


@contextlib.contextmanager
def in_data(directory: Path) -> Iterator[None]:
    """Work in a copy of docs/data."""
    shutil.copytree(DOCS / "data", directory, dirs_exist_ok=True)
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with in_data(tmp_path):
        code = 0
        for block in BLOCK.findall(page.read_text("utf-8")):
            commands = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
            for command in commands:
                line, _, expected = command.partition("\n")
                printed, code = run_command(line, code)
                assert blank(printed).rstrip() == blank(expected).rstrip(), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_examples(page: Path, tmp_path: Path) -> None:
    if "to_pandas" in page.read_text("utf-8"):
        pytest.importorskip("pandas")
    examples = re.findall(r"^```pycon\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    source = re.sub(r"v:0\.\d+\.\d+\w*", f"v:{lagging.__version__}", "\n".join(examples))
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    from lagging.metrics import registry

    before = dict(registry._metrics)
    try:
        with in_data(tmp_path):
            report = io.StringIO()
            doctest.DocTestRunner().run(test, out=report.write, clear_globs=False)
    finally:
        registry._metrics.clear()
        registry._metrics.update(before)
    assert not report.getvalue(), report.getvalue()
