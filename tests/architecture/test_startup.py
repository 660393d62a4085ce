"""Start-up: what an ordinary server imports, and what it leaves alone until somebody needs it."""

import asyncio
import subprocess
import sys

import pytest

from isthmus import Server
from isthmus.testing import serving

SERVER = """
from isthmus import Server
server = Server("lean")
@server.tool
async def add(a: int, b: int) -> int: return a + b
"""
CLIENT = """
from isthmus import Client
client = Client("http://127.0.0.1:1/mcp")
"""
COUNT = """
import sys
print(*sorted(sys.modules))
"""

HEAVY = {
    *("aiohttp", "uvicorn", "httptools", "uvloop", "cryptography", "jsonschema_rs", "typer"),
    *("rich", "pydantic", "starlette", "fastapi", "anyio", "attr", "sqlite3", "hiredis"),
    *("opentelemetry", "multiprocessing", "http", "email", "urllib.request", "unittest"),
    *("authlib", "joserfc", "keyring", "argon2", "filelock", "secrets", "isthmus.auth"),
}


def list_loaded_modules(code):
    """The modules a fresh interpreter has after running some code."""
    done = subprocess.run(
        [sys.executable, "-c", code + COUNT], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("code", [SERVER, CLIENT], ids=["server", "client"])
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    """Ours: a stdio server starts in a tenth of a second, so it cannot afford these."""
    assert set() == HEAVY & list_loaded_modules(code)


def list_modules_of_command(*words):
    """The modules that a fresh process has after running the command."""
    code = f"""
import sys
from isthmus.cli.main import main
sys.argv = ["isthmus"]
try:
    main({list(words)!r})
except SystemExit as ended:
    assert not ended.code
"""
    done = subprocess.run(
        [sys.executable, "-c", code + COUNT],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_help_is_printed_without_any_library(option):
    """Ours: whoever asks for help waits for none of it, not even an event loop."""
    assert set() == (HEAVY | {"asyncio", "msgspec", "shutil"}) & list_modules_of_command(option)


def test_a_server_is_run_without_what_reads_other_command_lines(tmp_path):
    """Ours: hosts launch servers by `isthmus run`, and it costs what running the file costs."""
    file = tmp_path / "lean.py"
    file.write_text(SERVER + "if __name__ == '__main__': server.run()")
    run = list_modules_of_command("run", str(file))
    alone = list_loaded_modules(f"import runpy; runpy.run_path({str(file)!r}, run_name='x')")

    assert set() == HEAVY & run
    assert set() == {"pathlib", "dataclasses", "json", "traceback"} & (run - alone)


def test_a_call_on_a_plain_line_imports_nothing_that_reads_others(tmp_path):
    """Ours: the terminal's libraries are for questions, progress and help."""
    file = tmp_path / "lean.py"
    file.write_text(SERVER)

    assert set() == {"typer", "rich"} & list_modules_of_command(
        "call", str(file), "add", "a=1", "b=2"
    )


async def test_a_call_over_http_needs_no_library_of_http():
    """Ours: connections of our own take the parser, and aiohttp is for proxies and WebSockets."""
    server = Server("lean")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with serving(server) as url:
        loaded = await asyncio.to_thread(list_modules_of_command, "call", url, "add", "a=1", "b=2")

    assert "httptools" in loaded
    assert set() == {"aiohttp", "yarl", "multidict", "uvicorn", "urllib.request", "http"} & loaded


def test_a_server_does_not_load_the_client_nor_the_command():
    """Ours: half of the package is enough for half of the work."""
    unwanted = ("isthmus.client", "isthmus.cli", "isthmus.testing", "isthmus.transports.http")

    assert [] == [name for name in sorted(list_loaded_modules(SERVER)) if name.startswith(unwanted)]


def test_a_server_loads_what_asks_when_something_can_ask():
    """Ours: the first answer of a server that only computes needs none of it."""
    asking = ("rounds", "askers", "effects", "forms", "requirements", "sampling", "state")
    asking += ("own_resources", "session_state")
    unwanted = {f"isthmus.server.asking.{name}" for name in asking}
    unwanted |= {"isthmus.core.journal", "isthmus.core.sampling", "isthmus.core.elicitation"}
    unwanted |= {"isthmus.runtime.extension", "isthmus.store.log", "isthmus.store.kv"}
    unwanted |= {"isthmus.server.features.tasks", "isthmus.linter", "dataclasses"}
    unwanted |= {
        "isthmus.server.schema.dependency_plan",
        "isthmus.server.features.dependency_scope",
    }
    unwanted |= {"isthmus.server.routes"}

    assert set() == unwanted & list_loaded_modules(SERVER)


@pytest.mark.parametrize("code", [SERVER, SERVER + "server.asgi()\n"], ids=["stdio", "http"])
def test_a_server_that_is_alone_loads_nothing_of_several(code):
    """Ours: one process agrees with nobody, and a library of digests takes its time to load."""
    unwanted = {"hashlib", "hmac", "isthmus.nodes.agreement", "isthmus.nodes.sealed_bus"}

    assert set() == unwanted & list_loaded_modules(code)
