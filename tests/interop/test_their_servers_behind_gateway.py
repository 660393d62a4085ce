"""Servers that other people wrote for their own ends, launched by one gateway in a process of its own."""

import asyncio
import contextlib
import http.server
import threading

import pytest

from interop.conftest import ROOT
from interop.gateway_processes import start_gateway, write_config
from isthmus import Accepted, Client
from isthmus.host import Host

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("their servers behind a gateway"),
]

CLIENTS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
PAGE = b"<html><body><h1>Bread</h1><p>Flour, water and salt.</p></body></html>"


class BakeryPages(http.server.BaseHTTPRequestHandler):
    """One page, whatever is asked for."""

    def do_GET(self):
        """Send it."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def page():
    """The address of a page on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BakeryPages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/bread"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file."""
    made = tmp_path_factory.mktemp("shelf")
    (made / "note.txt").write_text("Remember the milk.", encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def url(python_of, node, modules_of, folder):
    """The address of a gateway in front of all of them, each of which a person has agreed to start."""

    def of_npm(name, *arguments):
        path = f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
        return {"command": str(node), "args": [str(modules_of(name) / path), *arguments]}

    def of_python(module, *arguments):
        return {"command": str(python_of("servers")), "args": ["-m", module, *arguments]}

    memory = of_npm("memory")
    memory["env"] = {"MEMORY_FILE_PATH": str(folder / "memory.json")}
    # It has tools that ask only where the client of its connection declared that it can be asked, and
    # a gateway reads lists from the connection that all share: here that one declares everything.
    everything = {**of_npm("everything", "stdio"), "host": {"instance": "shared"}}
    # Where it finds node, its first call installs modules of npm beside its code, for all who use it.
    fetch = of_python("mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips")
    fetch["env"] = {"PATH": str(python_of("servers").parent)}
    servers = {
        "everything": everything,
        "filesystem": of_npm("filesystem", str(folder)),
        "memory": memory,
        "git": of_python("mcp_server_git", "--repository", str(ROOT)),
        "time": of_python("mcp_server_time"),
        "fetch": fetch,
    }
    config = write_config("theirs", servers)
    asyncio.run(agree(config))
    return f"{start_gateway(config).url}/mcp"


async def agree(config):
    """Agree to start each server, as a person does once."""
    host = Host.from_config(config, state=config.parent / "state", approver=lambda _: True)
    async with host:
        await asyncio.gather(*(server.start() for server in host.servers.values()))


@contextlib.asynccontextmanager
async def connect(url, revision, **options):
    """A client of the gateway, and what calls a tool for its text."""
    async with Client(url, revision=revision, **options) as client:

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.text
            return result.text

        yield client, call


@CLIENTS
async def test_all_tools_are_listed_together(url, revision):
    """Ours: one list, of six servers that know nothing of each other."""
    async with connect(url, revision) as (client, _):
        names = {tool.name for tool in await client.list_tools()}

    assert {
        *("everything__echo", "filesystem__read_text_file", "memory__create_entities"),
        *("git__git_log", "time__convert_time", "fetch__fetch"),
    } <= names


@CLIENTS
async def test_files_and_memories_are_written_and_read(url, folder, revision):
    """Npm server-filesystem and server-memory."""
    path = str(folder / f"{revision}.txt")
    entity = {"name": revision, "entityType": "revision", "observations": ["was here"]}
    async with connect(url, revision) as (_, call):
        assert "milk" in await call("filesystem__read_text_file", path=str(folder / "note.txt"))
        await call("filesystem__write_file", path=path, content="bread")
        await call("memory__create_entities", entities=[entity])
        found = await call("memory__search_nodes", query=revision)

    assert "bread" == (folder / f"{revision}.txt").read_text(encoding="utf-8")
    assert "was here" in found


@CLIENTS
async def test_a_repository_the_time_and_a_page_are_read(url, page, revision):
    """PyPI mcp-server-git, mcp-server-time and mcp-server-fetch."""
    when = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    async with connect(url, revision) as (_, call):
        log = await call("git__git_log", repo_path=str(ROOT), max_count=1)
        assert "Commit" in log
        assert "21:00" in await call("time__convert_time", **when)
        assert "Flour, water" in await call("fetch__fetch", url=page)


@CLIENTS
async def test_server_everything_asks_the_client_of_the_gateway(url, revision):
    """Npm server-everything: progress, sampling, a form and roots, from a server of before 2026-07-28."""
    reports = []
    answers = {
        "elicit": lambda _: Accepted({"name": "Ada", "integer": 42}),
        "sample": lambda _: "a sampled answer",
        "roots": [str(ROOT)],
    }
    work = {"duration": 0.2, "steps": 2}
    async with connect(url, revision, **answers) as (client, call):
        assert "Echo: hi" == await call("everything__echo", message="hi")
        slow = "everything__trigger-long-running-operation"
        await client.call_tool(slow, work, on_progress=lambda one: reports.append(one.progress))
        assert [1, 2] == reports
        sampled = await call("everything__trigger-sampling-request", prompt="x")
        assert "a sampled answer" in sampled
        assert "Ada" in await call("everything__trigger-elicitation-request")
        assert ROOT.as_uri() in await call("everything__get-roots-list")
        resources = [one.uri for one in await client.list_resources()]
        read = await client.read_resource(
            next(uri for uri in resources if uri.startswith("everything+"))
        )
        assert read.contents
