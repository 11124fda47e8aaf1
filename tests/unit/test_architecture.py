# SPDX-License-Identifier: Apache-2.0
import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import lagging

SOURCE = Path(lagging.__file__).parent
ROOT = SOURCE.parent.parent

# what a package may import: itself and what stands above it here; packages in one line do not import each other
RANKS = [
    {"version"},
    {"errors"},
    {"data"},
    {"stats"},
    {"metrics", "formats", "policies"},
    {"longform", "agents", "losses"},
    {"scoring"},
    {"comparison", "meter"},
    {"curves"},  # they resample, and read published scores, as a comparison does
    {"render"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(RANKS) for name in names}


def imports(path: Path) -> set[str]:
    """Packages of lagging that a file imports, for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lagging."):
            found.add(node.module.split(".")[1])
        if isinstance(node, ast.ImportFrom) and node.module == "lagging":
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("lagging.")}
    return found


def test_the_top_level_has_these_entries() -> None:
    entries = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert entries == {*RANK, "__init__", "__main__", "py.typed"}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_follow_the_arrows(path: Path) -> None:
    here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if here in ("__init__", "__main__"):
        return
    above = {name for name in imports(path) if name != here and RANK[name] >= RANK[here]}
    assert not above, f"{here} imports {above}, which comes after it"


def test_the_map_shows_every_package_and_its_rank() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    shown = {name: int(rank) for rank, name in re.findall(r"^\| (\d+) \| `([a-z]+)(?:/|\.py)` \|", text, re.MULTILINE)}
    assert shown == {name: rank for name, rank in RANK.items() if name != "version"}
    assert list(shown.values()) == sorted(shown.values())


def test_the_map_names_modules_that_exist() -> None:
    text = (
        (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Where things are")[2].partition("## The ledger")[0]
    )
    rows = re.findall(r"^\| \d+ \| `([a-z]+)/` \| (.*) \|$", text, re.MULTILINE)
    named = [SOURCE / package / module for package, row in rows for module in re.findall(r"`([a-z_]+\.py)`", row)]
    named += [SOURCE / module for module in re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", text)]
    named += [SOURCE / package / folder for package, row in rows for folder in re.findall(r"`([a-z]+)/`", row)]
    assert len(named) > 60
    assert not [path for path in named if not path.exists()]
    packages = {init.parent for init in SOURCE.glob("*/*/__init__.py")}
    assert not packages - set(named)


def test_long_modules_say_why_they_are_one_idea() -> None:
    texts = {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    long = {path: ast.get_docstring(ast.parse(text)) or "" for path, text in texts.items() if text.count("\n") > 400}
    assert not [str(path) for path, doc in long.items() if not re.search(r"\b(one|only)\b", doc, re.IGNORECASE)]


def test_no_module_is_too_long() -> None:
    long = {p.name: n for p in SOURCE.rglob("*.py") if (n := len(p.read_text("utf-8").splitlines())) > 465}
    assert not long


def test_no_printing_in_the_library() -> None:
    for path in SOURCE.rglob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]
        assert "print" not in {ast.unparse(call.func) for call in calls}, path


def loaded(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys, json; print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        check=True,
    )
    return set(json.loads(out.stdout))


def test_importing_is_light() -> None:
    heavy = {"numpy", "torch", "jax", "matplotlib", "pyarrow", "sacrebleu", "sentencepiece", "rich", "click"}
    assert not heavy & loaded("import lagging")


def test_scoring_loads_no_framework() -> None:
    code = "import lagging; lagging.score(lagging.Run.from_delays([[1, 2]], source_length=[2]), ['DAL'])"
    heavy = {"torch", "jax", "matplotlib", "pyarrow", "pandas", "rapidfuzz", "sacrebleu", "sentencepiece", "rich"}
    assert not heavy & loaded(code)


def test_help_does_not_load_numpy() -> None:
    code = "import lagging.cli as c, click.testing as t; assert not t.CliRunner().invoke(c.cli, ['--help']).exit_code"
    assert "numpy" not in loaded(code)


def test_exported_names_are_exactly_those_documented() -> None:
    assert lagging.__all__ == sorted(lagging.__all__)
    assert dir(lagging) == sorted(lagging.__all__)
    for name in lagging.__all__:
        value = getattr(lagging, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lagging.nothing


@pytest.mark.parametrize("name", [n for n in lagging.__all__ if n.islower() and n not in ("metrics", "policies")])
def test_public_functions_have_a_worked_example(name: str) -> None:
    value = getattr(lagging, name)
    if callable(value):
        assert ">>>" in value.__doc__, name


def test_version_is_one() -> None:
    import tomllib

    project = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["version"] == lagging.__version__
    assert f"## [{lagging.__version__}]" in (SOURCE.parent.parent / "CHANGELOG.md").read_text("utf-8")
    assert f"version: {lagging.__version__}" in (SOURCE.parent.parent / "CITATION.cff").read_text("utf-8")


# ---- public modules ---------------------------------------------------------------------------------------------


def modules_in(text: str) -> set[str]:
    """Modules of lagging that a text imports from, or names in full."""
    imported = re.findall(r"^[ >.\"]*(?:from|import) (lagging(?:\.[a-z_]+)*)", text, re.MULTILINE)
    return set(imported)


def test_public_modules_are_documented() -> None:
    text = (ROOT / "docs" / "python.md").read_text("utf-8")
    table = text.partition("## Public modules")[2].partition("\n## ")[0]
    assert re.findall(r"`(lagging[a-z_.]*)`", "\n".join(re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE))) == list(
        lagging.PUBLIC_MODULES
    )


@pytest.mark.parametrize("name", lagging.PUBLIC_MODULES)
def test_public_modules_say_what_is_in_them(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for public in module.__all__:
        value = getattr(module, public)
        assert not isinstance(value, type | FunctionType) or value.__doc__, public


def test_documentation_and_examples_use_public_modules_alone() -> None:
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.*")]
    used = {module for file in files for module in modules_in(file.read_text("utf-8"))}
    assert {"lagging", "lagging.losses.torch"} <= used
    assert used <= set(lagging.PUBLIC_MODULES)
