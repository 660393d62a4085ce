"""The entries of clients that the guide of the gateway shows: started as they are written, they answer a call."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest

from isthmus import Client, Command
from isthmus.cli.commands.gateway.app import DEFAULT_ADDRESS
from isthmus.gateway.gateway import ENDPOINT
from isthmus.host import Host
from support.event_loop import run_until
from support.ports import find_free_port

pytestmark = pytest.mark.timeout(120)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "gateway.md"
SHOWN_URL = f"http://{DEFAULT_ADDRESS}{ENDPOINT}"
SERVER = '''
from isthmus import Server

server = Server("time")


@server.tool(read_only=True)
def now() -> str:
    """Tell the time."""
    return "noon"


server.run()
'''


def read_entry(client):
    """The entry that the guide shows for a client."""
    (found,) = re.findall(rf"^\| {client}[^|]*\| `(.*)` \|$", GUIDE.read_text(), re.MULTILINE)
    return found


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's folder with a configuration, whose program the user has agreed to."""
    program = tmp_path / "time_server.py"
    program.write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": [str(program)], "host": {"trust": "annotations"}}
    config = {"mcpServers": {"time": entry}}
    (tmp_path / "mcp.json").write_text(json.dumps(config), encoding="utf-8")
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def agree(home):
    """Agree to the program, as a user does at a terminal."""
    async with Host.from_config(str(home / "mcp.json"), approver=lambda _: True) as host:
        assert "noon" == (await host.call("now", server="time")).text


def is_listening(port):
    """Whether somebody takes connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def run_gateway(home):
    """Run the command of the guide, at a port that is free here; the port."""
    assert "$ isthmus gateway --config mcp.json\n" in GUIDE.read_text()
    port = find_free_port()
    words = ["gateway", "--config", "mcp.json", "--http", f"127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(
        "isthmus", *words, cwd=home, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await run_until(lambda: is_listening(port), seconds=60, pause=0.05)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def test_the_entry_of_a_client_that_launches_programs_answers(home):
    """Ours: command and arguments as they stand there, but for the path that the reader puts in."""
    await agree(home)
    entry = json.loads(read_entry("a client that only launches programs"))["mcpServers"]["all"]
    path = str(home / "mcp.json")
    words = [path if word == "/path/to/mcp.json" else word for word in entry["args"]]
    assert path in words
    async with Client(Command(entry["command"], *words, env=dict(os.environ))) as client:
        assert "noon" == (await client.call_tool("time__now")).text


async def test_the_entries_of_claude_code_and_vs_code_answer(home):
    """Ours: both name the address at which the command of the guide serves."""
    await agree(home)
    claude = shlex.split(read_entry("Claude Code"))
    code = json.loads(read_entry("VS Code"))["servers"]["all"]
    assert ["claude", "mcp", "add", "--transport", "http", "all"] == claude[:-1]
    assert "http" == code["type"]
    assert [SHOWN_URL, SHOWN_URL] == [claude[-1], code["url"]]
    async with run_gateway(home) as port:
        here = SHOWN_URL.replace(DEFAULT_ADDRESS, f"127.0.0.1:{port}")
        for revision in ("2025-06-18", "2025-11-25", "2026-07-28"):
            async with Client(here, revision=revision) as client:
                assert "noon" == (await client.call_tool("time__now")).text
