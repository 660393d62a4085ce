"""Providers of servers that were written for fastmcp: what they have is offered as the server's own."""

import sys
from contextlib import asynccontextmanager

import pytest

from isthmus import Client, Server
from isthmus.compat.fastmcp import FastMCP
from isthmus.compat.fastmcp.client import Client as FastMCPClient
from isthmus.compat.fastmcp.prompts import Prompt
from isthmus.compat.fastmcp.server.auth import require_scopes
from isthmus.compat.fastmcp.server.dependencies import (
    get_access_token,
    get_context,
    get_http_headers,
)
from isthmus.compat.fastmcp.server.middleware import AuthMiddleware
from isthmus.compat.fastmcp.server.providers import (
    FastMCPProvider,
    FileSystemProvider,
    LocalProvider,
    Provider,
    ProxyProvider,
    SkillProvider,
    SkillsDirectoryProvider,
)
from isthmus.compat.fastmcp.server.proxy import FastMCPProxy
from isthmus.compat.fastmcp.tools import Tool
from isthmus.errors import IsthmusError, UsageError


def make_local():
    """A provider with one of each."""
    provider = LocalProvider()

    @provider.tool
    def whose() -> str:
        """Say whose it is."""
        return get_context().fastmcp.name

    @provider.tool(name="breaks")
    def fail() -> str:
        raise ValueError("the inside")

    provider.resource("data://one")(lambda: "one")
    provider.resource("data://{name}/all")(lambda name: f"all of {name}")
    provider.prompt(lambda: "words", name="ask")
    return provider


class TableProvider(Provider):
    """A provider whose tools stand in a table."""

    def __init__(self):
        super().__init__()
        self.names = ["first"]
        self.events = []

    @asynccontextmanager
    async def lifespan(self):
        self.events.append("open")
        yield
        self.events.append("closed")

    async def _list_tools(self):
        return [
            Tool.from_function(lambda name=name: f"{name} ran", name=name) for name in self.names
        ]

    async def _list_prompts(self):
        return [Prompt.from_function(lambda: "asked", name="ask")]


@pytest.mark.parametrize(("namespace", "start"), [("", ""), ("x", "x_")])
async def test_what_a_provider_has_is_offered_as_the_servers_own(namespace, start):
    """Ours: under a prefix where there is one; the context is the server's."""
    server = FastMCP("shop")
    server.add_provider(make_local(), namespace=namespace)
    inside = f"{namespace}/" if namespace else ""
    async with Client(server.server) as client:
        listed = [one.name for one in await client.list_tools()]
        whose = (await client.call_tool(f"{start}whose")).text
        one = (await client.read_resource(f"data://{inside}one")).contents[0].text
        many = (await client.read_resource(f"data://{inside}ada/all")).contents[0].text
        templates = [one.uri_template for one in await client.list_resource_templates()]
        asked = (await client.get_prompt(f"{start}ask")).messages[0].content.text

    assert listed == [f"{start}whose", f"{start}breaks"]
    assert (whose, one, many, asked) == ("shop", "one", "all of ada", "words")
    assert templates == [f"data://{inside}{{name}}/all"]


async def test_failures_of_provided_tools_are_masked_by_the_server():
    """Ours: as those of its own tools."""
    server = FastMCP("shop", providers=[make_local()], mask_error_details=True)
    async with Client(server.server) as client:
        assert (await client.call_tool("breaks")).text == "Error calling tool 'breaks'"


async def test_a_provider_is_asked_each_time():
    """Ours: a subclass lists what it has just then."""
    provider = TableProvider()
    async with Client(FastMCP("shop", providers=[provider]).server) as client:
        before = [one.name for one in await client.list_tools()]
        provider.names.append("second")
        ran = (await client.call_tool("second")).text
        asked = (await client.get_prompt("ask")).messages[0].content.text

    assert before == ["first"]
    assert (ran, asked) == ("second ran", "asked")


async def test_a_provider_is_open_as_long_as_its_server():
    """Ours: its lifespan is inside the server's."""
    provider = TableProvider()
    async with FastMCP("shop", providers=[provider]).open_lifespan():
        during = list(provider.events)

    assert during == ["open"]
    assert provider.events == ["open", "closed"]


async def test_its_own_tools_go_first_and_hidden_ones_are_not_used():
    """Ours: rules of the provider, and those of the server."""
    provider, server = make_local(), FastMCP("shop")
    server.add_provider(provider)
    server.tool(lambda: "its own", name="whose")
    provider.disable(names={"breaks"})
    server.disable(names={"ask"})
    async with Client(server.server) as client:
        assert [one.name for one in await client.list_tools()] == ["whose"]
        assert (await client.call_tool("whose")).text == "its own"
        assert (await client.call_tool("breaks")).text == "Unknown tool: 'breaks'"
        assert await client.list_prompts() == []


async def test_checks_of_provided_tools_are_made():
    """Ours: in memory nobody has a token."""
    provider = LocalProvider()
    provider.tool(lambda: "secret", name="tell", auth=require_scopes("admin"))
    async with Client(FastMCP("shop", providers=[provider]).server) as client:
        assert await client.list_tools() == []
        assert (await client.call_tool("tell")).text == "Unknown tool: 'tell'"


async def test_a_provided_tool_may_be_a_task():
    """Ours: also one that is added when its server has the provider already."""
    provider = LocalProvider()
    server = FastMCP("shop", providers=[provider])

    @provider.tool(task=True)
    async def work() -> str:
        return "done"

    async with Client(server.server, revision="2025-11-25") as client:
        assert (await (await client.start_tool("work")).result()).text == "done"


FILES = {
    "offered_tools/__init__.py": "",
    "offered_tools/names.py": "WORD = 'from a package'",
    "offered_tools/say.py": """
        from isthmus.compat.fastmcp.tools import tool
        from offered_tools.names import WORD

        @tool(tags={"x"})
        def say() -> str:
            return WORD
        """,
    "alone.py": """
        from isthmus.compat.fastmcp.prompts import prompt
        from isthmus.compat.fastmcp.resources import resource

        @resource("data://alone")
        def alone() -> str:
            return "alone"

        @resource("data://{name}/of")
        def part(name: str) -> str:
            return f"of {name}"

        @prompt
        def ask() -> str:
            return "asked"
        """,
    "broken.py": "raise RuntimeError('it is broken')",
}


@pytest.fixture
def folder(tmp_path):
    """A folder with files that offer something; what it has imported is forgotten."""
    from textwrap import dedent

    known = set(sys.modules)
    root = tmp_path / "offered"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    yield root
    for name in set(sys.modules) - known:
        if str(root) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


async def test_files_of_a_folder_offer_what_they_decorate(folder, caplog):
    """Ours: one that cannot be imported is left out, and logged."""
    provider = FileSystemProvider(folder)
    async with Client(FastMCP("shop", providers=[provider]).server) as client:
        assert (await client.call_tool("say")).text == "from a package"
        assert (await client.read_resource("data://alone")).contents[0].text == "alone"
        assert (await client.read_resource("data://x/of")).contents[0].text == "of x"
        assert [one.name for one in await client.list_prompts()] == ["ask"]

    assert list(provider.failed_files) == [folder / "broken.py"]
    assert "it is broken" in caplog.text


async def test_a_file_that_changes_is_read_again_where_that_is_asked_for(folder):
    """Ours: with ``reload=True``; what it no longer has is gone."""
    live, still = FileSystemProvider(folder, reload=True), FileSystemProvider(folder)
    (folder / "alone.py").write_text(
        "from isthmus.compat.fastmcp.tools import tool\n\n@tool\ndef added() -> str:\n    return 'new'\n"
    )

    assert [one.name for one in await live.list_tools()] == ["added", "say"]
    assert await live.list_resources() == []
    assert [one.name for one in await still.list_tools()] == ["say"]


async def test_other_servers_are_offered_by_providers():
    """Ours: one of this process, and one behind a client."""
    inner, behind = FastMCP("inner"), FastMCP("behind")
    inner.tool(lambda: "from inside", name="near")
    behind.tool(lambda: "from behind", name="far")
    server = FastMCP("shop", providers=[FastMCPProvider(inner)])
    server.add_provider(ProxyProvider(lambda: FastMCPClient(behind)), namespace="b")
    async with Client(server.server) as client:
        assert sorted(one.name for one in await client.list_tools()) == ["b_far", "near"]
        assert (await client.call_tool("near")).text == "from inside"
        assert (await client.call_tool("b_far")).text == "from behind"


def write_skill(root, name, text, **files):
    """A folder with a skill."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    for file, content in files.items():
        (folder / f"{file}.md").write_text(content)


async def test_skills_are_offered_as_resources(tmp_path):
    """Ours: by a template or each, of several folders, the first of a name, and anew where that is asked for."""
    write_skill(
        tmp_path / "one", "pack", "---\nname: pack\ndescription: Pack it\n---\ntext", more="more"
    )
    write_skill(tmp_path / "two", "pack", "another")
    write_skill(tmp_path / "two", "send", "# Send it")
    (tmp_path / "one" / "pack" / "out.md").symlink_to(tmp_path / "two" / "send" / "SKILL.md")
    roots = [tmp_path / "one", tmp_path / "two", tmp_path / "none"]
    provider = SkillsDirectoryProvider(roots, reload=True, supporting_files="resources")
    async with Client(FastMCP("shop", providers=[provider]).server) as client:
        listed = {one.uri: one.description for one in await client.list_resources()}
        more = (await client.read_resource("skill://pack/more.md")).contents[0].text
        with pytest.raises(IsthmusError, match=r"escapes base|not found"):
            await client.read_resource("skill://pack/out.md")
        write_skill(tmp_path / "two", "late", "---\ndescription: at: last\n---\n")
        late = [one.description for one in await client.list_resources() if "late/S" in one.uri]

    assert listed == {
        "skill://pack/SKILL.md": "Pack it",
        "skill://pack/_manifest": "File listing for pack",
        "skill://pack/more.md": "File from pack skill",
        "skill://send/SKILL.md": "Send it",
        "skill://send/_manifest": "File listing for send",
    }
    assert more == "more"
    assert late == ["at: last"]


async def test_files_of_a_skill_are_read_by_a_template(tmp_path):
    """Ours: what leads out of the folder is not."""
    write_skill(tmp_path, "pack", "text", more="more")
    (tmp_path / "pack" / "out.md").symlink_to(tmp_path.parent)
    async with Client(FastMCP("x", providers=[SkillProvider(tmp_path / "pack")]).server) as client:
        assert [one.uri for one in await client.list_resources()] == [
            *("skill://pack/SKILL.md", "skill://pack/_manifest")
        ]
        assert (await client.read_resource("skill://pack/more.md")).contents[0].text == "more"
        for path in ("out.md", "%2e%2e/secret", "none.md", "..%2f..%2fsecret"):
            with pytest.raises(IsthmusError):
                await client.read_resource(f"skill://pack/{path}")


def test_a_folder_without_a_skill_is_refused(tmp_path):
    """Ours: in the words of fastmcp."""
    with pytest.raises(FileNotFoundError, match="Main skill file not found"):
        SkillProvider(tmp_path)
    with pytest.raises(FileNotFoundError, match="Skill directory not found"):
        SkillProvider(tmp_path / "none")


def test_skills_of_programs_are_where_they_keep_them(monkeypatch, tmp_path):
    """Ours: in the user's home folder."""
    from isthmus.compat.fastmcp.server.providers import skills

    monkeypatch.setenv("HOME", str(tmp_path))
    write_skill(tmp_path / ".claude" / "skills", "pack", "text")

    assert [*skills.ClaudeSkillsProvider()._skills] == ["pack"]
    assert [*skills.GooseSkillsProvider()._skills] == []
    with pytest.raises(AttributeError, match="no attribute 'NoSkillsProvider'"):
        _ = skills.NoSkillsProvider


async def connect():
    return FastMCPClient(FastMCP("x"))


REFUSED = {
    "no provider": lambda: FastMCP("x", providers=[object()]),
    "transform": lambda: LocalProvider().add_transform(object()),
    "guard": lambda: FastMCPProxy(
        FastMCPClient(FastMCP("x")), middleware=[AuthMiddleware(require_scopes("x"))]
    ),
    "guard after": lambda: FastMCPProxy(FastMCPClient(FastMCP("x"))).add_middleware(
        AuthMiddleware(require_scopes("x"))
    ),
    "skills of the protocol": lambda: SkillsDirectoryProvider((), experimental_skills=True),
    "async factory": lambda: FastMCPProxy(client_factory=connect),
    **{
        f"factory by {find.__name__}": lambda find=find: FastMCPProxy(
            client_factory=lambda: FastMCPClient(Server("x"), auth=find())
        )
        for find in (get_access_token, get_http_headers)
    },
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_providers_and_proxies_lack_is_named_with_ours(kind):
    """Ours: with the page; above all a client that would have one caller's token for all of them."""
    with pytest.raises(UsageError, match=r"see docs/guide/"):
        REFUSED[kind]()


def test_names_of_providers_stand_where_the_library_has_them(facades):
    """Façade: those that are not there say what isthmus has."""
    from fastmcp.server.providers import LocalProvider as Named
    from fastmcp.server.providers.base import Provider as Base
    from fastmcp.server.providers.fastmcp_provider import FastMCPProvider as Mounted
    from fastmcp.server.providers.filesystem import FileSystemProvider as Files
    from fastmcp.server.providers.proxy import FastMCPProxy as Proxy
    from fastmcp.server.providers.proxy import ProxyProvider as Proxied

    assert Base is Provider
    assert [Named, Mounted, Files, Proxy, Proxied] == [
        *(LocalProvider, FastMCPProvider, FileSystemProvider, FastMCPProxy, ProxyProvider)
    ]
    with pytest.raises(ImportError, match=r"isthmus\.Server\.from_openapi"):
        from fastmcp.server.providers.openapi import RouteMap  # noqa: F401 - same
