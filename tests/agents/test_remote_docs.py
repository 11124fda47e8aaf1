# SPDX-License-Identifier: Apache-2.0
"""What `docs/remote.md` says of the protocol is so: its transcript, its tables, and the server it shows."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lagging import UsageError
from lagging.agents.remote import AgentServer, RemoteAgent
from lagging.agents.remote import messages as wire
from lagging.agents.remote.client import OPTIONS
from lagging.agents.runner.run import run

pytest.importorskip("websockets")
from websockets.sync.client import connect

PAGE = (Path(__file__).parents[2] / "docs" / "remote.md").read_text("utf-8")
SOON = 60


class WaitK:
    def __init__(self, k: int = 2) -> None:
        self.k = k

    def policy(self, state):
        lead = len(state.source) - len(state.target)
        if lead and (state.finished or lead >= self.k):
            return state.source[len(state.target)].upper()
        return None


def test_the_transcript_is_what_the_server_sends() -> None:
    messages = re.findall(r"^([←→]) (\{.*\})$", PAGE, re.MULTILINE)
    assert len(messages) > 10
    with (
        AgentServer([WaitK], "wait.py", port=0) as server,
        connect(server.address, subprotocols=[wire.SUBPROTOCOL]) as connection,
    ):
        for arrow, text in messages:
            if arrow == "→":
                connection.send(text)
                continue
            answer = json.loads(connection.recv(timeout=SOON))
            expected = json.loads(text)
            if answer["type"] == "answer":
                assert 0 <= answer.pop("seconds") < SOON
                del expected["seconds"]
            if answer["type"] == "hello":  # what has its default may be left out
                answer = {"max_message": 1 << 20, **answer}
                assert answer.pop("traits", {}) == {}
            assert answer == expected


def test_every_field_and_option_is_documented() -> None:
    protocol = PAGE.partition("## The protocol")[2]
    for kind in (wire.Hello, wire.Ready, wire.Answered, wire.Failed, wire.Begin, wire.Step, wire.End):
        tag = kind.__struct_config__.tag
        row = re.search(rf"^\| `{tag}` \| (.*) \|$", protocol, re.MULTILINE)
        assert row, tag
        assert [name for name in kind.__struct_fields__ if f"`{name}`" not in row[1]] == []
    actions = protocol.partition("| action |")[2].partition("\n\n")[0]
    for kind in (wire.WriteAction, wire.ReviseAction):
        assert [
            name for name in kind.__struct_fields__ if f"`{name}`" not in actions and f'"{name}"' not in actions
        ] == []
    assert [name for name in wire.Declared.__struct_fields__ if f"`{name}`" not in protocol] == []
    assert [name for name in OPTIONS if f"`-a {name}=" not in PAGE] == []
    assert all(str(code) in protocol for code in (wire.INVALID_DATA, wire.CUT_OFF, wire.BUSY))
    from lagging.cli.serve import command

    documented = PAGE.partition("| of `lagging serve` |")[2].partition("\n\n")[0]
    options = {option.opts[-1] for option in command.params if option.name not in ("agent", "options", "simuleval")}
    quiet = {"--quiet", "--verbose", "--no-progress", "--debug"}
    assert [option for option in sorted(options - quiet) if f"`{option}" not in documented] == []


def test_the_server_on_the_page_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert "lagging" not in re.sub("lagging-agent-1", "", code)
    (tmp_path / "server.py").write_text(code, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(tmp_path / "server.py"), str(port)])
    try:
        end = time.monotonic() + SOON
        while True:
            try:
                agent = RemoteAgent(f"ws://127.0.0.1:{port}")
                break
            except UsageError:
                assert time.monotonic() < end
                time.sleep(0.1)
        lines = ["see you soon at the lake", "no", "and so on and on"]
        local, remote = (run(each, lines, lines) for each in (WaitK(1), agent))
        assert remote.prediction.tolist() == local.prediction.tolist()
        assert remote.delays.tolist() == local.delays.tolist()
        assert remote.arrivals.tolist() == local.arrivals.tolist()
        agent.close()
    finally:
        process.kill()
        process.wait(SOON)
