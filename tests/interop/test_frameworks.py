"""Agent frameworks as clients of our server: their model calls a tool, and a tool that asks."""

import json
import subprocess
import sys

import peers  # tools/peers.py, which conftest.py puts on the path
import pytest

from interop import connections
from interop.partners import FOLDER, OURS

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("frameworks"),  # one process has the servers
]

FRAMEWORKS = {
    "pydantic-ai": lambda: [
        str(peers.python("pydantic-ai")), "-W", "ignore", str(FOLDER / "pydantic_ai_agent.py"),
    ],
    "ai-sdk": lambda: [
        str(peers.node()), str(FOLDER / "ai_sdk_agent.mjs"), str(peers.modules("ai-sdk")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_agent_framework_calls_our_tools(environment, name, transport):
    """Ours: the text comes back as it was, and the question is answered by the program."""
    command = environment(FRAMEWORKS[name])
    server = [sys.executable, str(FOLDER / "isthmus_server.py"), "stdio"]
    target = server if transport == "stdio" else connections.start_listening(OURS, transport)
    done = subprocess.run(
        [*command, json.dumps(target)], capture_output=True, text=True, timeout=100, check=False
    )
    assert 0 == done.returncode, done.stderr[-3000:]

    assert {"echo": "hé ☃", "ask": "row 7"} == json.loads(done.stdout.strip().splitlines()[-1])
