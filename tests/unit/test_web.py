# SPDX-License-Identifier: Apache-2.0
"""The pages that are shipped, as far as Python can see: what they may load, and that they compute what we compute.

What a page does is tested in `web/`: the arithmetic by Vitest, the pages in a browser (`tools/check.py web`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from lagging.cli import main

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import web_vectors  # noqa: E402

WEB = files("lagging.render") / "web"
RUN = (None, "", "module", "text/javascript")
"""Types of scripts that are run; others hold data."""
PAGES = sorted(page.name for page in WEB.iterdir() if page.name.endswith(".html"))


class Page(HTMLParser):
    """What is in a page: its elements, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[tuple[str, str]] = []
        self.inside: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag == "style" or (tag == "script" and dict(attrs).get("type") in RUN) else None
        if self.inside:
            self.inline.append((self.inside, ""))

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.inline[-1] = (self.inside, self.inline[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    @property
    def policy(self) -> dict[str, list[str]]:
        (content,) = [a["content"] for t, a in self.elements if t == "meta" and a.get("http-equiv") is not None]
        return {name: sources for name, *sources in (part.split() for part in (content or "").split(";"))}


def page(name: str) -> Page:
    return Page((WEB / name).read_text("utf-8"))


# ---- vectors --------------------------------------------------------------------------------------------------


def near(found: object, expected: object, where: str = "") -> None:
    """The same, up to the last digits of numbers, which differ between machines."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert list(found) == list(expected), where
        for key in expected:
            near(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected), where
        for place, pair in enumerate(zip(found, expected, strict=True)):
            near(*pair, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), where
    else:
        assert found == expected, where


def test_the_vectors_for_typescript_are_what_python_says() -> None:
    committed = json.loads(web_vectors.FILE.read_text("utf-8"))
    fresh = json.loads(web_vectors.text(web_vectors.vectors()))
    near(committed, fresh, "python tools/web_vectors.py writes them anew: ")


def test_the_vectors_hold_what_is_hard() -> None:
    found = web_vectors.vectors()
    named = [*found["situations"].values(), *(v for table in found["tables"].values() for v in table)]
    assert len(named) == 23
    drawn = found["random"]
    assert len(drawn) >= 300
    assert {v["unit"] for v in drawn} == {"token", "ms"}
    assert any(v["delays"][-1] < v["source_length"] for v in drawn)  # never read to its end
    assert any(v["delays"][-1] > v["source_length"] for v in drawn)  # beyond it
    assert any(v["scores"]["YAAL"] is None for v in drawn)
    assert any(v["write_cost"] == 0 for v in drawn)
    assert any((v["reference_length"] or 0) > len(v["delays"]) for v in drawn)
    assert any(v["scores"]["AL"] < 0 for v in drawn)


# ---- pages ----------------------------------------------------------------------------------------------------


def test_there_are_pages_and_notices() -> None:
    assert "playground.html" in PAGES
    notices = (WEB / "THIRD_PARTY.txt").read_text("utf-8")
    for name in PAGES:
        assert f"{name}: " in notices


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing(name: str) -> None:
    text = (WEB / name).read_text("utf-8")
    for tag, attributes in page(name).elements:
        for key in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(key)
            assert value is None or value.startswith(("#", "data:")), f"<{tag} {key}={value}>"
    assert not re.search(
        r"@import|url\((?!\s*['\"]?(#|data:))", "".join(t for k, t in page(name).inline if k == "style")
    )
    assert "\r" not in text


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_allows_what_is_in_the_page_and_nothing_else(name: str) -> None:
    found = page(name)
    policy = found.policy
    assert policy["default-src"] == ["'none'"]
    assert policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert set(policy) <= {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & {source for sources in policy.values() for source in sources}
    for tag, text in found.inline:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[f"{tag}-src"], tag
    kinds = [tag for tag, _ in found.inline]
    assert kinds.count("script") == kinds.count("style") == 1
    # the policy stands before all that it is about
    tags = [tag for tag, _ in found.elements]
    assert tags.index("meta", tags.index("meta") + 1) < min(tags.index("script"), tags.index("style"))
    for tag, attributes in found.elements:
        assert not [key for key in attributes if key.startswith("on") or key == "style"], tag


# ---- the command ----------------------------------------------------------------------------------------------


def call(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["playground", *args])
    return int(end.value.code or 0)


def test_it_says_where_the_page_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert call() == 0
    out, err = capsys.readouterr()
    assert Path(out.strip()).read_bytes() == (WEB / "playground.html").read_bytes()
    assert err == ""


def test_a_copy_is_the_same_to_the_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "page.html"
    assert call("-o", str(copy)) == 0
    assert copy.read_bytes() == (WEB / "playground.html").read_bytes()
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"{copy}: {copy.stat().st_size} bytes; open it in a browser\n"
    assert call("-o", "-", "-q") == 0
    assert capsys.readouterr() == ((WEB / "playground.html").read_text("utf-8"), "")


def test_what_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("-o", str(tmp_path / "no" / "page.html")) == 2
    assert "cannot write" in capsys.readouterr().err
    assert call("-o", "-", "--open") == 2
    assert "--open needs a file" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="the browser of the test is a shell script")
@pytest.mark.parametrize("copied", [False, True])
def test_it_is_opened(copied: bool, tmp_path: Path) -> None:
    browser, seen, copy = tmp_path / "browser", tmp_path / "seen", tmp_path / "page é.html"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{seen}"\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "lagging", "playground", "--open", *(["-o", str(copy)] if copied else [])]
    done = subprocess.run(command, env=os.environ | {"BROWSER": str(browser)}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    page = copy if copied else Path(str(WEB / "playground.html"))
    assert seen.read_text("utf-8").strip() == page.resolve().as_uri()


def test_no_browser_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lagging", "playground", "--open"]
    env = os.environ | {"BROWSER": str(tmp_path / "none"), "PATH": str(tmp_path), "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", check=False)
    if os.name == "posix" and sys.platform != "darwin":  # elsewhere the system has a browser of its own
        assert done.returncode == 2
        assert "no browser could be started" in done.stderr
