# SPDX-License-Identifier: Apache-2.0
"""A process that tries inputs: requests come as lines of JSON, and for each goes back what was found.

It runs on its own, because an input may kill it, or keep it for ever, or want more memory than there is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

from fuzz.cases import Case
from fuzz.oracles import Difference
from fuzz.targets import SPARK, TARGETS, Target


def _targets() -> dict[str, Target]:
    from fuzz.broken import BROKEN

    return {**TARGETS, **SPARK, **BROKEN}


def tried(request: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """What was found with one input; None if all is well."""
    targets = _targets()
    case = None
    try:
        if "case" in request:
            case = Case.from_json(request["case"])
        else:
            case = targets[request["target"]].make(Random(f"{request['target']}:{request['seed']}"))
        here = Path(tempfile.mkdtemp(dir=folder))
        os.chdir(here)
        try:
            targets[case.target].check(case)
        finally:
            os.chdir(folder)
            shutil.rmtree(here, ignore_errors=True)
    except Difference as error:
        return found("difference", request, str(error).partition(":")[0], str(error), case)
    except MemoryError as error:
        return found("memory", request, place(error), "".join(traceback.format_exception(error, limit=-12)), case)
    except Exception as error:  # whatever it is, it was not meant
        text = "".join(traceback.format_exception(error, limit=-12, chain=False))
        return found("crash", request, f"{type(error).__name__} in {place(error)}", text, case)
    return None


def found(kind: str, request: dict[str, Any], where: str, text: str, case: Case | None) -> dict[str, Any]:
    """A finding as JSON."""
    target = request.get("target") or request["case"]["target"]
    return {"kind": kind, "target": target, "where": where, "text": text[-6000:], "case": case and case.to_json()}


def place(error: BaseException) -> str:
    """The innermost function of ours that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/lagging/" in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}"


def main(folder: Path, guard: float, memory: int) -> None:
    """Try inputs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is printed by mistake is no answer
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)  # what NumPy warns of, a user would see
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(0.9 * guard)  # where it hangs is part of a finding
        result = tried(json.loads(line), folder)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
