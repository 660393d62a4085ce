"""A client program of mcp 1.x and 2.x gets the same under the library itself and under the façade."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from interop.connections import await_port
from support.compat.facades import UNDER_FACADE, declare_installed
from support.ports import find_free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

PROGRAMS = Path(__file__).parent / "programs"
TOUR = str(PROGRAMS / "mcp_session_tour.py")


async def run_program(*command):
    """What a program prints."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()[-2000:]
    return json.loads(said)


@pytest.fixture
def tours(python_of, tmp_path):
    """Runs the tour under the library of a generation, and under the façade."""

    async def run(generation, transport, target):
        python = str(python_of(f"mcp{generation}"))
        arguments = (generation, transport, target)
        folder = declare_installed(tmp_path, python, "mcp")
        facade = (sys.executable, "-c", UNDER_FACADE, TOUR, folder)
        return await asyncio.gather(
            run_program(python, "-W", "ignore", TOUR, *arguments),
            run_program(*facade, *arguments),
        )

    return run


@pytest.fixture
def serve(python_of):
    """Serves the tour's server of a generation over HTTP: gives its port."""
    started = []

    def start(generation, transport):
        port = find_free_port()
        server = str(PROGRAMS / "mcp_session_server.py")
        python = str(python_of(f"mcp{generation}"))
        argv = [python, "-W", "ignore", server, generation, transport, str(port)]
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        started.append(process)
        await_port(port, process, argv)
        return port

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("generation", "transport"), [("1", "memory"), ("2", "memory"), ("2", "auto")]
)
async def test_a_session_in_memory_gets_the_same(tours, generation, transport):
    """Ours: server and client of the library, and both of the façade."""
    expected, found = await tours(generation, transport, "-")
    assert expected == found


@pytest.mark.parametrize("generation", ["1", "2"])
async def test_a_session_with_a_launched_server_gets_the_same(tours, python_of, generation):
    """Ours: over stdio, with a server of the library."""
    python = str(python_of(f"mcp{generation}"))
    server = str(PROGRAMS / "mcp_session_server.py")
    command = [python, "-W", "ignore", server, generation, "stdio", "0"]
    expected, found = await tours(generation, "stdio", json.dumps(command))
    assert expected == found


@pytest.mark.parametrize(
    ("generation", "way"),
    [("1", "streamable-http"), ("2", "streamable-http"), ("1", "sse")],
)
async def test_a_session_over_http_gets_the_same(tours, serve, generation, way):
    """Ours: Streamable HTTP and HTTP+SSE, with a server of the library."""
    transport, path = ("sse", "sse") if way == "sse" else ("streamable-http", "mcp")
    port = serve(generation, transport)
    expected, found = await tours(generation, way, f"http://127.0.0.1:{port}/{path}")
    assert expected == found


@pytest.mark.parametrize("generation", ["1", "2"])
async def test_a_group_of_sessions_gets_the_same(python_of, tmp_path, serve, generation):
    """Ours: names of a hook, a clash of names, calls, and the end of single sessions."""
    python = str(python_of(f"mcp{generation}"))
    url = f"http://127.0.0.1:{serve(generation, 'streamable-http')}/mcp"
    server = str(PROGRAMS / "mcp_session_server.py")
    command = [python, "-W", "ignore", server, generation, "stdio", "0"]
    group = str(PROGRAMS / "mcp_group_tour.py")
    given = (generation, json.dumps(command), url)
    folder = declare_installed(tmp_path, python, "mcp")

    expected, found = await asyncio.gather(
        run_program(python, "-W", "ignore", group, *given),
        run_program(sys.executable, "-c", UNDER_FACADE, group, folder, *given),
    )

    assert expected == found
