# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark beside this file, and writes what they print into docs/benchmarks.md.

    python bench/page.py                    # a quarter of an hour
    python bench/page.py --full             # up to ten million segments: hours
    python bench/page.py --quick -o PAGE    # shows that it runs, the numbers mean nothing
    python bench/page.py kernels scoring    # these alone; what the page has of the others stays
    python bench/page.py --before FOLDER quality    # beside another version, a checkout

A benchmark is a script with a `main()` and an option `--quick`. Its first sentence becomes a heading, the rest of its
docstring says how it measures, and its table stands below as it was printed. One that cannot run says NOT RUN and why.
Peers are measured where they are installed, or in the environment that `--simuleval-python` names. Another version is
measured by its own benchmark of the same name, just before this one; or by this one, if it has the option `--before`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- from here on written by bench/page.py -->", "<!-- up to here written by bench/page.py -->"
FIRST = ("growth", "kernels", "scoring")
"""What is shown first; the others follow by name."""
USUAL = {"coverage": ["--samples", "200"]}
"""Options that keep a benchmark short; `--full` leaves them out."""
PACKAGES = ("numpy", "msgspec", "pyarrow", "pyspark", "torch", "jax", "simuleval", "sacrebleu", "rapidfuzz")
LONGEST = 900
"""Seconds after which a benchmark is ended; `--full` gives it a day."""


def scripts() -> dict[str, Path]:
    """The benchmarks, in the order of the page."""
    scripts = {
        path.stem: path
        for path in sorted(HERE.glob("*.py"))
        if path != Path(__file__).resolve() and "def main(" in (text := path.read_text("utf-8")) and '"--quick"' in text
    }
    return {
        name: scripts[name] for name in (*(f for f in FIRST if f in scripts), *(f for f in scripts if f not in FIRST))
    }


def command(path: Path, args: argparse.Namespace) -> list[str]:
    """How a benchmark is started: with the options that it has, of those that were asked for."""
    text = path.read_text("utf-8")
    more = [] if args.full or args.quick else USUAL.get(path.stem, [])
    for size in ("--quick", "--full"):
        if getattr(args, size[2:]) and f'"{size}"' in text:
            more = [size]
    if args.simuleval_python and '"--simuleval-python"' in text:
        more = [*more, "--simuleval-python", args.simuleval_python]
    if args.data and '"--data"' in text:
        more = [*more, "--data", args.data]
    if args.before and '"--before"' in text:
        more = [*more, "--before", str(args.before)]
    return [sys.executable, str(path), *more]


def measured(path: Path, args: argparse.Namespace) -> tuple[str, bool]:
    """What a benchmark printed, and before that the one of another version; and whether it ran."""
    text, ran = measured_once(path, args)
    if not args.before or '"--before"' in path.read_text("utf-8"):
        return text, ran
    theirs = args.before / "bench" / path.name
    if not theirs.exists():
        return f"Before: there was no such benchmark.\n\n{text}", ran
    before, _ = measured_once(theirs, args, args.before / "src")
    return f"Before:\n\n{before}\n\nNow:\n\n{text}", ran


def measured_once(path: Path, args: argparse.Namespace, source: Path | None = None) -> tuple[str, bool]:
    """What a benchmark printed, with how long it took; and whether it ran."""
    arguments, start = command(path, args), time.monotonic()
    env = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1"}
    if source is not None:
        env["PYTHONPATH"] = str(source)
    try:
        done = subprocess.run(
            arguments, capture_output=True, encoding="utf-8", env=env, timeout=86_400 if args.full else LONGEST
        )
        output, code = done.stdout, done.returncode
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode("utf-8") if isinstance(error.stdout, bytes) else error.stdout or ""
        code, reason = 1, f"it had not ended after {LONGEST} s"
    if code:
        output += f"\nNOT RUN: {reason}".replace(str(HERE.parent), "").replace(str(Path.home()), "~")
    options = " ".join(arguments[2:]).replace(args.simuleval_python or "\0", "…").replace(args.data or "\0", "…")
    options = options.replace(str(args.before or "\0"), "…")
    took = f"`python bench/{path.name}{' ' * bool(options)}{options}`, {time.monotonic() - start:.0f} s."
    return f"{took}\n\n```text\n{output.strip()}\n```", not code


def section(path: Path, result: str) -> str:
    """Heading, how it was measured, and the table."""
    docstring = re.search(r'"""(.*?)"""', path.read_text("utf-8"), re.DOTALL)
    title, _, rest = (docstring[1] if docstring else path.stem).strip().partition("\n")
    description = "\n\n".join(
        " ".join(text.split())
        for text in rest.split("\n\n")
        if text.strip() and not text.strip("\n").startswith("    ")
    )
    return "\n\n".join(filter(None, [f"## {title.rstrip('.')}", f"<!-- bench/{path.stem}.py -->", description, result]))


def machine() -> str:
    """On what it was measured; no names of hosts or people."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text())
        model = named[1] if named else model
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    load = f" Load at the start: {os.getloadavg()[0]:.1f}." if hasattr(os, "getloadavg") else ""
    return (
        f"{model}, {os.cpu_count()} cores{memory}, {platform.system()}, Python {platform.python_version()}.{load} "
        f"{', '.join(versions)}."
    )


def parts_of(page: Path) -> tuple[str, str, str]:
    """What stands on a page before what was measured, that, and what stands after it."""
    text = page.read_text("utf-8") if page.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    if BEGIN not in text or END not in text:
        sys.exit(f"{page} has no place for what was measured: {BEGIN} … {END}")
    prose, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    return prose, old, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small and once: the numbers mean nothing")
    size.add_argument("--full", action="store_true", help="the largest sizes: hours")
    parser.add_argument("--simuleval-python", metavar="PATH", help="a Python that has SimulEval, if not this one")
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="a checkout of another version to compare with")
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("LAGGING_TEST_DATA"), help="test data")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=PAGE, help="the page to write")
    known = scripts()
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"which: {', '.join(known)}")
    args = parser.parse_args()
    strange = [name for name in args.only if name not in known]
    if strange:
        parser.error(f"no benchmark is called {strange[0]!r}; there are {', '.join(known)}")
    _, old, _ = parts_of(args.output)
    kept = {
        match[1]: part.strip()
        for part in re.split(r"(?m)^(?=## )", old)
        if (match := re.search(r"<!-- bench/(\w+)\.py -->", part))
    }
    on, failed = machine(), []
    for name, path in known.items():
        if args.only and name not in args.only:
            continue
        print(f"{name} …", end=" ", flush=True, file=sys.stderr)
        start = time.monotonic()
        result, ran = measured(path, args)
        kept[name] = section(path, result)
        failed += [] if ran else [name]
        print(f"{time.monotonic() - start:.0f} s{'' if ran else ', NOT RUN'}", file=sys.stderr)
        made = "\n\n".join([f"Measured on: {on}", *(kept[n] for n in known if n in kept)])
        prose, _, after = parts_of(args.output)  # it may have been edited meanwhile
        args.output.write_text(f"{prose}{BEGIN}\n\n{made}\n\n{END}{after}", "utf-8")  # what is done is not lost
    print(f"written to {args.output}" + (f"; not run: {', '.join(failed)}" if failed else ""), file=sys.stderr)


if __name__ == "__main__":
    main()
