"""Logging in across implementations: their clients at our servers, ours at theirs, no browser."""

import json
import subprocess
import sys

import peers  # tools/peers.py, which conftest.py puts on the path
import pytest

from interop import connections
from interop.partners import FOLDER
from isthmus import Client
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.testing.person import Person
from support.ports import find_free_port

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("auth"),  # one process has the servers
]

PERSON = [sys.executable, "-m", "isthmus.testing.person", "ada", "correct horse"]
CLIENTS = {
    "mcp2": lambda: [
        str(peers.python("mcp2")), "-W", "ignore", str(FOLDER / "mcp2_auth_client.py"),
    ],
    "npm2": lambda: [
        str(peers.node()), str(FOLDER / "npm2_auth_client.mjs"), str(peers.modules("client2")),
    ],
}  # fmt: skip
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


@pytest.fixture(scope="module")
def listening():
    """Starts a program with a free port and waits until it listens; its URL."""
    started = []

    def start(*argv):
        port = find_free_port()
        process = subprocess.Popen(
            [*map(str, argv), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        started.append(process)
        connections.await_port(port, process, argv)
        return f"http://127.0.0.1:{port}/mcp"

    yield start
    for process in started:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def ours(listening):
    """Our server, with its authorization server."""
    return listening(sys.executable, FOLDER / "isthmus_auth_server.py")


@pytest.fixture(scope="module")
def theirs(listening, python_of):
    """PyPI ``mcp``'s server, with its authorization server."""
    return listening(python_of("mcp2"), "-W", "ignore", FOLDER / "mcp2_auth_server.py")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.covers("auth.authority.both-client-kinds", "auth.resource.scope-403")
def test_their_clients_log_in_to_our_server(environment, ours, name, revision):
    """Ours: discovery, registration, login, consent, step-up, and no second login later."""
    plan = {"url": ours, "revision": revision, "person": PERSON}
    done = subprocess.run(
        [*environment(CLIENTS[name]), json.dumps(plan)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])

    assert (["ada"], ["ada", "written"], ["ada", "written"]) == (
        said["said"], said["wrote"], said["later"],
    )  # fmt: skip
    asked = [set(one["scope"].split()) for one in said["asked"]]
    assert [{"notes:read"}, {"notes:read", "notes:write"}] == asked
    assert {ours} == {one["resource"] for one in said["asked"]}


@pytest.mark.parametrize("revision", [None, *REVISIONS])
@pytest.mark.covers("auth.client.refresh-tokens", "auth.client.registers")
async def test_our_client_logs_in_to_their_server(theirs, revision):
    """Ours: the same the other way round; their tokens wear out, and are renewed."""
    ada, store = Person("ada", "correct horse"), MemoryTokenStore()
    for _ in range(2):
        auth = OAuth(client_name="ours", open_browser=ada.open, store=store)
        async with Client(theirs, auth=auth, revision=revision) as client:
            texts = [(await client.call_tool(name)).text for name in ("whoami", "write", "renewed")]
        assert ["ada", "written"] == texts[:2]

    assert 1 == len(ada.opened)
    assert 0 < int(texts[2])
