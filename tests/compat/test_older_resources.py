"""Resources of ``mcp`` 1.x on the façades: spelling of URIs, variables, threads, files, folders and errors."""

import json
import re
import threading

import pytest

from isthmus import Client
from isthmus.errors import Refused

pytestmark = pytest.mark.usefixtures("facades")

REVISION = "2025-11-25"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    (tmp_path / "b.json").write_text("{}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def server(folder):
    from mcp.server.fastmcp import FastMCP
    from mcp.server.fastmcp.resources import DirectoryResource, FileResource

    server, thread = FastMCP("older"), threading.get_ident()

    @server.resource("config://app")
    def config() -> bool:
        return threading.get_ident() == thread

    @server.resource("threads://{name}")
    def in_thread(name: str) -> list:
        return [name, threading.get_ident() == thread]

    @server.resource("http://example.com")
    def page() -> str:
        raise KeyError("page")

    @server.resource("fails://{number}")
    def fail(number: int) -> str:
        raise LookupError(f"number {number}")

    server.add_resource(FileResource(uri="file:///b", path=folder / "b.json", mime_type="a/json"))
    server.add_resource(FileResource(uri="file:///no", path=folder / "no"))
    server.add_resource(DirectoryResource(uri="dir://all", path=folder, pattern="*.txt"))
    server.add_resource(DirectoryResource(uri="dir://no", path=folder / "no"))
    return server.make_isthmus_server()


async def test_a_uri_is_spelt_as_a_url_is(server):
    """Façade of mcp 1.x: the scheme is in lower case, a host has a path, and others are no URIs."""
    async with Client(server, revision=REVISION) as client:
        uris = [str(one.uri) for one in await client.list_resources()]
        assert "http://example.com/" in uris
        read = await client.read_resource("CONFIG://app")
        assert read.contents[0].uri == "config://app"
        with pytest.raises(Refused, match="Invalid request parameters") as refused:
            await client.read_resource("no uri")
        assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("threads://x%20y", "x%20y"),
        ("threads://ü", "%C3%BC"),
        ("threads://x?y=z", "x?y=z"),
    ],
)
async def test_a_variable_has_the_spelling_of_the_uri_and_its_function_the_loop(server, uri, given):
    """Façade of mcp 1.x: percent escapes are not decoded, and functions run where the program began."""
    async with Client(server, revision=REVISION) as client:
        read = await client.read_resource(uri)
        assert json.loads(read.contents[0].text) == [given, True]
        fixed = await client.read_resource("config://app")
        assert fixed.contents[0].text == "true"


async def test_a_variable_is_never_a_dot_segment(server):
    """Façade: what would lead out of a folder is refused, as everywhere in isthmus."""
    async with Client(server, revision=REVISION) as client:
        with pytest.raises(Refused, match="Unknown resource"):
            await client.read_resource("threads://..")


async def test_files_and_folders_are_read(server):
    """Façade of mcp 1.x: a file whose type is not text is binary; a folder is the list of its files."""
    async with Client(server, revision=REVISION) as client:
        file = await client.read_resource("file:///b")
        assert file.contents[0].blob == "e30="
        found = await client.read_resource("dir://all")
        assert json.loads(found.contents[0].text) == {"files": ["a.txt"]}


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("http://example.com", "^Error reading resource http://example.com/: 'page'$"),
        ("fails://1", "^(Error creating resource from template: ){2}number 1$"),
        ("file:///no", "^Error reading file .*no: .*No such file"),
        ("dir://no", "^Error reading directory .*no: Directory not found"),
    ],
)
async def test_an_error_has_the_text_of_its_cause(server, uri, told):
    """Façade of mcp 1.x: a client is told what failed."""
    async with Client(server, revision=REVISION) as client:
        with pytest.raises(Refused) as refused:
            await client.read_resource(uri)
        assert re.search(told, refused.value.message)


async def test_a_prompt_that_is_no_message_says_so():
    """Façade of mcp 1.x: the error shows what the function gave."""
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("older")

    @server.prompt()
    def other() -> dict:
        return {"a": 1}

    async with Client(server.make_isthmus_server(), revision=REVISION) as client:
        with pytest.raises(Refused, match="Could not convert prompt result to message"):
            await client.get_prompt("other", {})
