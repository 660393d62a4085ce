"""Tools of servers that were written for fastmcp run as tasks of isthmus."""

import asyncio

import pytest

from isthmus import Accepted, Client
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.compat.fastmcp import Context, FastMCP
from isthmus.compat.fastmcp.server.auth import StaticTokenVerifier, require_scopes
from isthmus.compat.fastmcp.server.dependencies import Progress
from isthmus.compat.fastmcp.server.middleware import AuthMiddleware
from isthmus.compat.fastmcp.tools import Tool
from isthmus.compat.fastmcp.utilities.tasks import TaskConfig, TasksExtension
from isthmus.errors import Refused, UsageError
from support.http.uvicorn_server import serve_uvicorn

REVISIONS = ["2025-11-25", "2026-07-28"]


async def bake(kind: str, ctx: Context, progress: Progress = Progress()) -> str:  # noqa: B008 - fastmcp's form
    """Bake something."""
    await progress.set_message("in the oven")
    asked = await ctx.elicit("With salt?", bool)
    return f"{kind}, {'salted' if asked.data else 'plain'}, {ctx.is_background_task}, {bool(ctx.task_id)}"


def make_server(**options):
    server = FastMCP("bakery")
    server.tool(bake, **options)
    return server


def make_mounting(**options):
    """A server whose tool is added to the mounted one after it was mounted."""
    outer, inner = FastMCP("outer"), FastMCP("inner")
    outer.mount(inner)
    inner.tool(bake, **options)
    return outer


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("make", [make_server, make_mounting])
async def test_a_call_runs_as_a_task_and_asks_in_it(make, revision):
    """Ours: the context says so, and a call without one says that, too."""
    server = make(task=True).server
    async with Client(
        server, revision=revision, elicit=lambda _: Accepted({"value": True})
    ) as client:
        task = await client.start_tool("bake", {"kind": "rye"})
        told = (await task.result()).text

    assert task.id
    assert told == "rye, salted, True, True"


async def test_without_tasks_a_call_is_an_ordinary_one():
    """Ours: an optional task needs no client that has them."""
    async with Client(
        make_server(task=True).server,
        revision="2025-06-18",
        elicit=lambda _: Accepted({"value": False}),
    ) as client:
        told = (await client.call_tool("bake", {"kind": "rye"})).text

    assert told == "rye, plain, False, False"


async def test_a_tool_is_listed_with_its_tasks():
    """Ours: only where it may be one, as under fastmcp."""
    server = make_server(task=TaskConfig(mode="required"))
    server.tool(lambda: 1, name="plain")
    async with Client(server.server, revision="2025-11-25") as client:
        listed = {one.name: one for one in await client.list_tools()}
        has_tasks = bool(client.capabilities.tasks)
        with pytest.raises(Refused, match="runs as a task only"):
            await client.request("tools/call", {"name": "bake", "arguments": {"kind": "rye"}}, dict)

    assert listed["bake"].execution.task_support == "required"
    assert not listed["plain"].execution
    assert has_tasks


async def test_a_server_without_such_tools_declares_no_tasks():
    """Ours: also when the program says that none is to be one."""
    async with Client(make_server(task=False).server, revision="2025-11-25") as client:
        assert not client.capabilities.tasks


async def test_tasks_of_all_tools_can_be_wished_for():
    """Ours: `FastMCP(tasks=True)`, which a tool may decline."""
    server = FastMCP("bakery", tasks=True)
    server.tool(bake)
    server.tool(lambda: "at once", name="simple", task=False)
    async with Client(
        server.server, revision="2025-11-25", elicit=lambda _: Accepted({"value": True})
    ) as client:
        assert (await (await client.start_tool("bake", {"kind": "rye"})).result()).text
        assert (await client.call_tool("simple")).text == "at once"


async def test_a_tool_that_fails_ends_its_task_with_its_words():
    """Ours: as its call would have."""
    server = FastMCP("bakery")

    @server.tool(task=True)
    async def burn() -> str:
        raise ValueError("the oven is too hot")

    async with Client(server.server, revision="2025-11-25") as client:
        result = await (await client.start_tool("burn")).result()

    assert result.is_error
    assert result.text == "Error calling tool 'burn': the oven is too hot"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("layered", [False, True])
async def test_a_task_begins_only_for_whom_the_check_admits(revision, layered):
    """Ours: the answer to everybody else is the one to a call."""
    tokens = {
        "reader": {"client_id": "ada", "scopes": ["read"]},
        "admin": {"client_id": "eve", "scopes": ["admin"]},
    }
    server, check = FastMCP("shop", auth=StaticTokenVerifier(tokens)), require_scopes("admin")
    ran = asyncio.Event()

    async def work() -> str:
        ran.set()
        return "done"

    server.tool(work, task=True, auth=None if layered else check)
    if layered:
        server.add_middleware(AuthMiddleware(check))
    async with serve_uvicorn(server.server.asgi(), "auto") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client(url, auth=BearerToken("reader"), revision=revision) as client:
            refused = (
                await client.call_tool("work")
                if revision == REVISIONS[1]
                else await client.request(
                    "tools/call", {"name": "work", "arguments": {}, "task": {}}, dict
                )
            )
        was_run = ran.is_set()
        async with Client(url, auth=BearerToken("admin"), revision=revision) as client:
            task = await client.start_tool("work")
            admitted = (await task.result()).text

    assert not was_run
    assert "content" in refused if isinstance(refused, dict) else refused.is_error
    assert task.id
    assert admitted == "done"


def test_a_plain_function_cannot_be_a_task():
    """Ours: in the words of fastmcp."""
    with pytest.raises(ValueError, match="'wait' uses a sync function but has task execution"):
        FastMCP("x").tool(lambda: 1, name="wait", task=True)


def refuse_queue():
    FastMCP("x").add_extension(TasksExtension(url="redis://127.0.0.1:6379/0"))


def refuse_extension():
    FastMCP("x").add_extension(object())


def refuse_resource():
    FastMCP("x").resource("data://x", task=TaskConfig(mode="required"))(lambda: "x")


@pytest.mark.parametrize("build", [refuse_queue, refuse_extension, refuse_resource])
def test_what_tasks_lack_is_named_with_ours(build):
    """Ours: with the page."""
    with pytest.raises(UsageError, match=r"see docs/guide/(tasks|extensions)"):
        build()


def test_a_queue_in_the_environment_is_refused(monkeypatch):
    """Ours: its workers would run nothing."""
    monkeypatch.setenv("FASTMCP_DOCKET_URL", "redis://127.0.0.1:6379/0")

    with pytest.raises(UsageError, match="FASTMCP_DOCKET_URL has tasks run in workers"):
        make_server(task=True)


async def test_what_is_no_tool_may_be_read_without_a_task():
    """Ours: an optional task of a resource or prompt is left out."""
    server = FastMCP("x")
    server.resource("data://x", task=True)(lambda: "the text")
    server.resource("data://{name}/y", task=True)(lambda name: name)
    server.prompt(lambda: "the words", name="ask", task=True)
    server.add_extension(TasksExtension())
    async with Client(server.server) as client:
        assert (await client.read_resource("data://x")).contents[0].text == "the text"
        assert (await client.read_resource("data://a/y")).contents[0].text == "a"
        assert (await client.get_prompt("ask")).messages[0].content.text == "the words"


async def test_names_of_tasks_stand_where_the_libraries_have_them(facades):
    """Façade: those of 2.x and 3.x, and the package of 4.x."""
    from fastmcp.server.tasks import TaskConfig as Older
    from fastmcp.utilities.tasks import TaskConfig as Newer
    from fastmcp_tasks import TasksExtension as Extension

    assert Older is Newer
    assert Extension().identifier == "io.modelcontextprotocol/tasks"
    with pytest.raises(ImportError, match="isthmus' own tasks"):
        from fastmcp_tasks.client import call_tool_task  # noqa: F401 - there is none


def test_a_changed_tool_is_no_task_by_itself():
    """Ours: a tool made of another one says so itself."""
    whole = Tool.from_function(bake, task=True)

    assert whole.task_config.supports_tasks()
    assert not Tool.from_tool(whole, name="other").task_config.supports_tasks()
