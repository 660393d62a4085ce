"""A server written for ``fastmcp`` 3, run on the façades as that version answers."""

import sys
from textwrap import dedent

import pytest

from isthmus import Client, Command
from isthmus.errors import Refused

PROGRAM = """
    import datetime, enum
    from fastmcp import FastMCP
    from fastmcp.utilities.types import File

    mcp = FastMCP("third")

    class Kind(enum.Enum):
        A = "a"

    @mcp.tool
    def kind() -> Kind:
        return Kind.A

    @mcp.tool
    def day() -> datetime.date:
        return datetime.date(2026, 11, 29)

    @mcp.tool
    def items() -> list:
        return [1, "a"]

    @mcp.tool
    def file():
        return File(data=b"x", format="txt", name="note")

    @mcp.resource("notes://{name}")
    def note(name: str) -> str:
        return name

    @mcp.prompt
    def ask(number: int, word: str | None = None) -> str:
        return f"{number} {word}"
"""


@pytest.fixture
async def client(tmp_path):
    """A client of the program, where the metadata of fastmcp 3.4 are installed."""
    (tmp_path / "server.py").write_text(dedent(PROGRAM), encoding="utf-8")
    declared = tmp_path / "fastmcp-3.4.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: fastmcp\nVersion: 3.4.0\n", encoding="utf-8"
    )
    command = Command(
        *(sys.executable, "-m", "isthmus", "run", "--compat", str(tmp_path / "server.py")),
        env={"PYTHONPATH": str(tmp_path)},
    )
    async with Client(command, revision="2025-11-25") as client:
        yield client


async def test_a_server_of_fastmcp_3_answers_as_fastmcp_3(client):
    """Façade: texts of results, schemas of lists, names of files, URIs and arguments are those of version 3."""
    kind = await client.call_tool("kind", {})
    assert (kind.text, kind.structured_content) == ('"a"', {"result": "a"})
    assert (await client.call_tool("day", {})).text == '"2026-11-29"'
    assert (await client.call_tool("items", {})).structured_content == {"result": [1, "a"]}
    file = (await client.call_tool("file", {})).content[0]
    assert file.resource.uri == "file:///note.plain"

    read = await client.read_resource("NOTES://ü")
    assert read.contents[0].uri == "notes://%C3%BC"
    with pytest.raises(Refused, match="Invalid request parameters"):
        await client.read_resource("no uri")

    prompt = await client.get_prompt("ask", {"number": "5", "word": '"quoted"'})
    assert prompt.messages[0].content.text == "5 quoted"
    with pytest.raises(Refused, match="unable to parse string as an integer"):
        await client.get_prompt("ask", {"number": "five"})
