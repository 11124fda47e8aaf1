# SPDX-License-Identifier: Apache-2.0
import gc
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from lagging.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Runs the command line in this process."""
    threshold = gc.get_threshold()

    def call(*args: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Outcome(int(end.value.code or 0), out, err)

    yield call
    gc.set_threshold(*threshold)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two small systems, a speech log and a schedule; also the working directory."""
    monkeypatch.chdir(tmp_path)
    wait = [[4, 5, 5, 5, 5], [3, 4, 4], []]
    cheat = [[4, 4, 4, 4, 5], [3, 3, 4], [1]]
    texts = ["I saw a black cat", "it was late", "", "x"]
    for name, delays in (("wait", wait), ("cheat", cheat)):
        (tmp_path / name).mkdir()
        lines = [
            {
                "index": i,
                "prediction": texts[i] if g or i < 2 else "",
                "delays": g,
                "elapsed": [0] * len(g),
                "prediction_length": len(g),
                "reference": ["I saw a black cat", "it was very late", "yes"][i] + "\n",
                "source": ["ich sah eine schwarze Katze", "es war sehr spät", "ja"][i],
                "source_length": [5, 4, 1][i],
            }
            for i, g in enumerate(delays)
        ]
        if name == "cheat":
            lines[2]["prediction"] = "yes"
        (tmp_path / name / "instances.log").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    speech = {
        "index": "talk 1",
        "prediction": "a b",
        "delays": [1000.0, 1420.0],
        "elapsed": [1100.0, 1600.0],
        "source": ["a.wav", "x"],
        "source_length": 1420.0,
    }
    (tmp_path / "speech.log").write_text(json.dumps(speech) + "\n")
    (tmp_path / "paper.rw").write_text("RRRRWRWWWW\nRRRRWWWWRW\n")
    return tmp_path
