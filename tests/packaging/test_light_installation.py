"""A server over stdio without the requirements that HTTP, clients and the command line have."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# what docs/guide/deployment.md has a small image install is msgspec, jsonschema_rs, typing_extensions
BLOCKED = {
    *("aiohttp", "click", "cryptography", "h11", "httptools", "pydantic", "pygments", "rich"),
    *("starlette", "typer", "uvicorn", "uvloop", "yaml"),
}
PROGRAM = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
sys.argv = ["isthmus", "run", *{words!r}]
from isthmus.cli.main import main
sys.exit(main())
"""
MESSAGES = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "light", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 2, "b": 3}}},
    {"id": 3, "method": "resources/read", "params": {"uri": "hello://greeting/Ada"}},
]


@pytest.mark.timeout(120)
def test_a_server_over_stdio_needs_three_packages():
    """Ours: an image for stdio servers only is a third as large."""
    program = PROGRAM.format(blocked=BLOCKED, words=[str(ROOT / "examples" / "hello.py")])
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for message in MESSAGES:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdin.close()
        errors = process.stderr.read()

    by_id = {answer["id"]: answer for answer in answers}
    assert "5" == by_id[2]["result"]["content"][0]["text"]
    assert "Hello, Ada!" == by_id[3]["result"]["contents"][0]["text"]
    assert "" == errors
