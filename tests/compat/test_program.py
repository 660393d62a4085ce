"""``isthmus run --compat``: programs of ``mcp`` as files, modules and functions, over stdio and elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

from isthmus import Client, Command

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "compat_mcp.py"

LOW_LEVEL = """
import asyncio, sys
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import TextContent, Tool

server = Server("low")

@server.list_tools()
async def list_tools():
    return [Tool(name="say", inputSchema={"type": "object"})]

@server.call_tool()
async def call_tool(name, arguments):
    return [TextContent(type="text", text=" ".join(sys.argv[1:]))]

async def serve():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

def main():
    asyncio.run(serve())
"""


def make_command(*words, cwd=None):
    return Command(sys.executable, "-m", "isthmus", "run", "--compat", *words, cwd=cwd)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_the_example_is_served_as_it_is(revision):
    """Façade: a file of the official SDK's is served over stdio, in revisions old and new."""
    async with Client(make_command(str(EXAMPLE)), revision=revision) as client:
        lent = await client.call_tool("lend", {"book": "2"})
        assert lent.text == '{\n  "title": "Ulysses",\n  "days": 14\n}'
        missing = await client.call_tool("lend", {"book": "9"})
        assert missing.text == "Error executing tool lend: there is no book 9"
        assert (await client.read_resource("books://1")).contents[0].text == "Emma"


async def test_a_function_of_a_module_gets_its_arguments(tmp_path):
    """Façade: module:function is run, and what stands behind -- is its own command line."""
    (tmp_path / "low.py").write_text(LOW_LEVEL)
    async with Client(make_command("low:main", "--", "a", "--b", cwd=tmp_path)) as client:
        assert (await client.call_tool("say", {})).text == "a --b"


@pytest.mark.parametrize("program", ["no_such_program", "json"])
def test_a_program_that_is_none_is_refused(tmp_path, program):
    """Façade: what is no module, no script and no file ends with a message that says so.

    A package without ``__main__``, such as ``json``, is no module that can be run.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "isthmus", "run", "--compat", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 2
    assert f"{program} is no module that can be run" in ended.stderr
    assert "MODULE:FUNCTION" in ended.stderr


async def test_a_program_that_puts_standard_error_in_the_place_of_its_output_is_heard(tmp_path):
    """As programs do against native code that prints: ``sys.stdout`` is the output, not descriptor 1."""
    moved = (
        "    import os\n"
        "    output = os.dup(1)\n"
        "    os.dup2(2, 1)\n"
        "    sys.stdout = os.fdopen(output, 'w')\n"
        "    asyncio.run(serve())\n"
    )
    program = LOW_LEVEL.replace("    asyncio.run(serve())\n", moved)
    (tmp_path / "moved.py").write_text(program, encoding="utf-8")
    async with Client(make_command("moved:main", "--", "tea", cwd=tmp_path)) as client:
        assert "tea" == (await client.call_tool("say")).text


async def test_a_program_that_gives_its_output_to_stdio_server_is_heard(tmp_path):
    """As programs do against prints: descriptor 1 is standard error, and stdio_server(stdout=…) is the output."""
    moved = (
        "    import anyio, os\n"
        "    output = os.fdopen(os.dup(1), 'w')\n"
        "    os.dup2(2, 1)\n"
        "    async with stdio_server(stdout=anyio.wrap_file(output)) as (read, write):\n"
    )
    program = LOW_LEVEL.replace("    async with stdio_server() as (read, write):\n", moved)
    assert program != LOW_LEVEL
    (tmp_path / "given.py").write_text(program, encoding="utf-8")
    async with Client(make_command("given:main", "--", "tea", cwd=tmp_path)) as client:
        assert "tea" == (await client.call_tool("say")).text
