"""Start-up: what an ordinary server imports, and what it leaves alone until somebody needs it."""

import subprocess
import sys

import pytest

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
    *("rich", "pydantic", "starlette", "fastapi", "anyio", "attr", "sqlite3", "redis"),
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


def test_the_command_starts_without_what_only_a_login_needs():
    """Ours: whoever asks for help, or tries a server on this machine, waits for none of it."""
    code = "import isthmus.cli.main"
    unwanted = HEAVY - {"typer", "rich", "http", "email", "unittest", "multiprocessing", "secrets"}

    assert set() == unwanted & list_loaded_modules(code)


def test_a_server_does_not_load_the_client_nor_the_command():
    """Ours: half of the package is enough for half of the work."""
    unwanted = ("isthmus.client", "isthmus.cli", "isthmus.testing", "isthmus.transports.http")

    assert [] == [name for name in sorted(list_loaded_modules(SERVER)) if name.startswith(unwanted)]


def test_a_server_loads_what_asks_when_something_can_ask():
    """Ours: the first answer of a server that only computes needs none of it."""
    asking = ("rounds", "askers", "effects", "forms", "requirements", "sampling")
    unwanted = {f"isthmus.server.asking.{name}" for name in asking}
    unwanted |= {"isthmus.core.journal", "isthmus.core.sampling", "isthmus.core.elicitation"}
    unwanted |= {"isthmus.runtime.extension", "isthmus.store.log", "isthmus.store.kv"}
    unwanted |= {"isthmus.server.features.tasks", "isthmus.linter", "dataclasses"}

    assert set() == unwanted & list_loaded_modules(SERVER)
