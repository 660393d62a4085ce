"""Mounting one server in another: what is refused, and what keeps the two apart."""

import asyncio
import contextlib
import logging

import msgspec
import pytest

from isthmus import Accepted, Context, Refuse, Server, ToolError
from isthmus.errors import HttpRefused, InvalidParams, LifespanFailed, Refused, UsageError
from isthmus.testing import connect, script
from isthmus.types import ResourceLink
from support.auth.protected_server import READ, WRITE, make_guard

LEGACY, MODERN = ERAS = ("2025-11-25", "2026-07-28")
both_eras = pytest.mark.parametrize("revision", ERAS)


class Name(msgspec.Struct):
    """A form of one blank."""

    name: str


def inner(name="inner", **options):
    """A server with a tool ``x``."""
    server = Server(name, **options)

    @server.tool
    def x() -> str:
        return f"x of {name}"

    return server


def mount_servers(*pairs, **options):
    """A server in which others are mounted, each under its prefix."""
    outer = Server("outer", **options)
    for server, prefix in pairs:
        outer.mount(server, prefix)
    return outer


async def names_of(server):
    """The names of the tools that a client sees."""
    async with connect(server) as client:
        return [tool.name for tool in await client.list_tools()]


def test_what_is_no_server_is_refused_with_the_way_to_mount_it():
    """Ours: the message says what to write for a URL or a command."""
    with pytest.raises(UsageError, match=r"mount\(Server\.proxy\(target\)\)"):
        Server("outer").mount("https://example.com/mcp")


def test_a_server_is_not_mounted_in_itself():
    """Ours: a call would go round for ever."""
    server = Server("me")
    with pytest.raises(UsageError, match="it is that server"):
        server.mount(server, "me")


def test_a_ring_of_servers_is_refused():
    """Ours: also where it is closed over several servers."""
    a, b, c = inner("a"), inner("b"), inner("c")
    a.mount(b, "b")
    b.mount(c, "c")
    with pytest.raises(UsageError, match="or contains it"):
        c.mount(a, "a")


def test_one_prefix_is_for_one_server():
    """Ours: the message names who has it."""
    outer = mount_servers((inner("a"), "x"))
    with pytest.raises(UsageError, match="server 'a' is mounted under the prefix 'x' already"):
        outer.mount(inner("b"), "x")


def test_one_server_is_mounted_without_a_prefix_once():
    """Ours: everything in it would be there twice."""
    one = inner("a")
    outer = mount_servers((one, None))
    with pytest.raises(UsageError, match="is mounted without a prefix already"):
        outer.mount(one)


@pytest.mark.parametrize(
    "prefix", ["", "a b", "a/b", "..", "_a", "a_", "a:b", "é", "%61", "x" * 65, 5]
)
def test_what_cannot_be_in_names_is_no_prefix(prefix):
    """Ours: it goes into names of tools and into URIs."""
    with pytest.raises(UsageError, match="is no prefix: write 1 to 64"):
        mount_servers((inner(), prefix))


def test_a_name_that_is_taken_is_refused():
    """Ours: whoever calls it could not know which one is meant."""
    outer = mount_servers((inner("a"), None))
    with pytest.raises(UsageError, match="'x' of the mounted server 'b' is taken: 'a' has it"):
        outer.mount(inner("b"))


def test_prefixes_that_begin_alike_are_two_as_long_as_their_names_are():
    """Ours: ``a`` with ``b_x`` and ``a_b`` with ``x`` would both be ``a_b_x``."""
    first = inner("first")
    first.add_tool(lambda: 1, name="b_x", description="One.")
    outer = mount_servers((first, "a"))
    with pytest.raises(UsageError, match="'a_b_x' of the mounted server 'second' is taken"):
        outer.mount(inner("second"), "a_b")


def test_a_server_with_tokens_of_its_own_is_refused():
    """Ours: nobody would ask for them; the outer server's auth is asked."""
    with pytest.raises(UsageError, match="has auth= of its own"):
        mount_servers((Server("files", auth=make_guard()), "files"))


def test_both_speak_the_same_revisions():
    """Ours: a client that agreed on one with the outer server is served in it everywhere."""
    with pytest.raises(UsageError, match="does not speak 2024-11-05, "):
        mount_servers((inner(revisions=[MODERN]), "new"))
    assert mount_servers((inner(), "all"), revisions=[MODERN])


async def test_mounting_is_over_when_serving_begins():
    """Ours: what is added to a mounted server later appears all the same."""
    outer = mount_servers((inner(), "a"))
    async with connect(outer):
        with pytest.raises(UsageError, match="before the server"):
            outer.mount(inner(), "b")


def test_a_uri_without_a_scheme_takes_no_prefix():
    """Ours: there is nothing that the prefix could stand after."""
    server = Server("any")

    @server.resource("{+uri}")
    def read(uri: str) -> str:
        return uri

    with pytest.raises(UsageError, match="takes no prefix"):
        mount_servers((server, "a"))
    assert mount_servers((server, None))


async def test_own_names_win_over_what_comes_later(caplog):
    """Ours: and the log says so, once."""
    server, outer = inner(), Server("outer")
    outer.mount(server, "in")
    outer.add_tool(lambda: "own", name="in_y", description="Own.")
    server.add_tool(lambda: "inner", name="y", description="Inner.")
    with caplog.at_level(logging.WARNING, logger="isthmus"):
        async with connect(outer) as client:
            listed = [tool.name for tool in await client.list_tools()]
            said = (await client.call_tool("in_y")).text

    assert ["in_y", "in_x"] == listed
    assert "own" == said
    assert ["'in_y' is offered twice"] == [r.getMessage()[:23] for r in caplog.records]


async def test_mounts_without_a_prefix_have_their_own_names():
    """Ours: several servers become one."""
    other = Server("other")
    other.add_tool(lambda: "y", name="y", description="Y.")
    outer = mount_servers((inner(), None), (other, None))

    assert ["x", "y"] == await names_of(outer)


async def test_one_server_serves_by_itself_and_in_two_others():
    """Ours: it lives as long as one of them needs it."""
    life = []

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        life.append("open")
        yield "state"
        life.append("closed")

    shared = Server("shared", lifespan=lifespan)

    @shared.tool
    def state(ctx: Context) -> str:
        return ctx.state

    one, two = mount_servers((shared, "a")), mount_servers((shared, "b"))
    async with connect(one) as first, connect(two) as second:
        answers = [
            (await first.call_tool("a_state")).text,
            (await second.call_tool("b_state")).text,
        ]
    assert ["open", "closed"] == life
    async with connect(shared) as client:
        answers.append((await client.call_tool("state")).text)

    assert ["state"] * 3 == answers
    assert ["open", "closed"] * 2 == life


async def test_lifespans_are_nested():
    """Ours: inner ones are opened after the outer's, and closed before it, the last first."""
    life = []

    def make(name):
        @contextlib.asynccontextmanager
        async def lifespan(_server):
            life.append(f"open {name}")
            yield
            life.append(f"close {name}")

        return Server(name, lifespan=lifespan)

    outer = make("outer")
    outer.mount(make("a"), "a")
    outer.mount(make("b"), "b")
    async with connect(outer):
        pass

    order = ["open outer", "open a", "open b", "close b", "close a", "close outer"]
    assert order == life


async def test_an_inner_lifespan_that_fails_is_named():
    """Ours: the error says which server, and what went wrong."""

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        raise OSError("db is down")
        yield

    outer = mount_servers((Server("shop", lifespan=lifespan), "shop"))
    with pytest.raises(LifespanFailed) as failed:
        await outer.open()

    assert "the lifespan of the mounted server 'shop' failed: OSError: db is down" == str(
        failed.value
    )


async def test_middleware_of_the_inner_stands_inside_the_outers():
    """Ours: and reads the names that the inner server knows."""
    seen = []

    def layer(name):
        async def run(inbound, call_next):
            if inbound.method == "tools/call":
                seen.append((name, msgspec.json.decode(inbound.params)["name"]))
            return await call_next(inbound)

        return run

    outer = mount_servers((inner(middleware=[layer("inner")]), "in"), middleware=[layer("outer")])
    async with connect(outer) as client:
        await client.call_tool("in_x")

    assert [("outer", "in_x"), ("inner", "x")] == seen


async def test_limits_of_both_hold():
    """Ours: the stricter one is met first."""
    from isthmus.server import Limits, Rate

    outer = mount_servers((inner(limits=Limits(tool_calls=Rate(1, 60.0))), "in"))
    async with connect(outer) as client:
        await client.call_tool("in_x")
        with pytest.raises(Refused) as refused:
            await client.call_tool("in_x")

    assert -31429 == refused.value.code


# Questions and tasks


def make_asking_server(name="asking"):
    """A server with a tool that asks, and tools that are tasks."""
    server = Server(name)

    @server.tool
    async def greet(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Name)
        return f"{name}: {answer.value.name}"

    @server.tool(task="required")
    async def render(ctx: Context) -> ResourceLink:
        await ctx.progress(1, 2, "half")
        answer = await ctx.elicit("Who?", Name)
        return ResourceLink(uri="art://done", name=answer.value.name)

    @server.tool(task="required")
    async def wait() -> str:
        await asyncio.Event().wait()
        return ""

    @server.resource("art://done")
    def done() -> str:
        return "done"

    return server


async def ask_raw(client, name, **more):
    """A tools/call whose questions are not answered by the client."""
    params = {"name": name, "arguments": {}, **more}
    return msgspec.json.decode(await client.request("tools/call", params, msgspec.Raw))


async def test_the_state_of_a_call_opens_in_any_process():
    """Ours: the inner server takes over the outer's secret, so that rounds may go to two processes."""
    secret = b"s" * 32
    one, two = (mount_servers((make_asking_server(), "a"), secret=secret) for _ in range(2))
    answers = {"elicit": lambda asked: Accepted(Name("Ada"))}
    states = []

    async with connect(one, revision=MODERN, strict=False, **answers) as client:
        asked = await ask_raw(client, "a_greet")
        (key,) = asked["inputRequests"]
        states.append(asked["requestState"])
    answer = {"action": "accept", "content": {"name": "Ada"}}
    more = {"inputResponses": {key: answer}, "requestState": states[0]}
    async with connect(two, revision=MODERN, strict=False, **answers) as client:
        result = await ask_raw(client, "a_greet", **more)
        # The outer's own tool, or one of another mount, must not take it for a state of its own.
        two.add_tool(_own_greet, name="greet")
        with pytest.raises(InvalidParams):
            await ask_raw(client, "greet", **more)

    assert "asking: Ada" == result["content"][0]["text"]


async def _own_greet(ctx: Context) -> str:
    return str(await ctx.elicit("Who?", Name))


@both_eras
async def test_tasks_of_a_mounted_server_are_found_again(revision):
    """Ours: by their ids alone, their questions and results as ever, links under the prefix."""
    outer = mount_servers((make_asking_server("one"), "one"), (make_asking_server("two"), "two"))
    answers = script(Accepted(Name("Ada")))
    async with connect(outer, revision=revision, elicit=answers) as client:
        await client.list_tools()
        task = await client.start_tool("two_render")
        result = await task.result()
        again = await client.task(task.id).result()
        waiting = await client.start_tool("one_wait")
        status = await waiting.status()
        await waiting.cancel()
        listed = [one.id for one in await client.list_tasks()] if revision == LEGACY else None
        with pytest.raises(InvalidParams, match="Task not found"):
            await client.task("unknown").status()

    assert "art://two/done" == result.content[0].uri
    assert "art://two/done" == again.content[0].uri
    assert "working" == status.status
    assert listed is None or {task.id, waiting.id} == set(listed)


# Scopes


@pytest.mark.usefixtures("secret_watch")
@both_eras
async def test_scopes_of_a_mounted_server_are_asked_for_by_the_outer(revision):
    """Ours: what a tool takes it takes wherever it is mounted, and lists are cut by it."""
    files = Server("files")

    @files.tool(scopes={WRITE})
    def write() -> str:
        return "written"

    @files.tool
    def read() -> str:
        return "read"

    @files.resource("files://secret", scopes={WRITE})
    def secret() -> str:
        return "secret"

    middle = mount_servers((files, "files"))
    outer = Server("outer", auth=make_guard(list_visibility="granted"))
    outer.mount(middle, "m")
    seen = {}

    async def try_it(work, read):
        try:
            return read(await work)
        except HttpRefused:
            return "refused"

    for who in ("ada", "eve"):
        token = {"token": f"token-of-{who}", "revision": revision, "transport": "http"}
        async with connect(outer, **token) as client:
            tools = [tool.name for tool in await client.list_tools()]
            uris = [one.uri for one in await client.list_resources()]
            said = await try_it(client.call_tool("m_files_write"), lambda found: found.text)
            reading = client.read_resource("files://m/files/secret")
            text = await try_it(reading, lambda found: found.contents[0].text)
        seen[who] = tools, uris, said, text

    everything = ["m_files_write", "m_files_read"]
    assert (everything, ["files://m/files/secret"], "written", "secret") == seen["eve"]
    assert (["m_files_read"], [], "refused", "refused") == seen["ada"]
    assert {READ, WRITE} >= outer.router.known_scopes() >= {WRITE}


async def test_errors_of_mounted_tools_are_those_of_tools():
    """Ours: a failure is a result, and a refusal is an error."""
    server = Server("bad")

    @server.tool
    def fail() -> str:
        raise ToolError("it broke")

    @server.tool
    def refuse() -> str:
        raise Refuse(-32000, "not now")

    async with connect(mount_servers((server, "bad"))) as client:
        failed = await client.call_tool("bad_fail")
        with pytest.raises(Refused, match="not now"):
            await client.call_tool("bad_refuse")

    assert failed.is_error
    assert "it broke" == failed.text


async def test_a_cancelled_call_is_cancelled_inside():
    """Ours: there is one task from the wire to the tool."""
    server, stopped, begun = Server("slow"), asyncio.Event(), asyncio.Event()

    @server.tool
    async def sleep() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return ""

    async with connect(mount_servers((server, "s"))) as client:
        call = asyncio.ensure_future(client.call_tool("s_sleep"))
        await begun.wait()
        call.cancel()
        await asyncio.wait_for(stopped.wait(), 5)


async def test_the_page_of_an_app_is_found_under_the_prefix():
    """SEP-1865: a tool names the resource that shows its results."""
    server = Server("app")

    @server.resource("ui://app/page", mime_type="text/html;profile=mcp-app")
    def page() -> str:
        return "<p>"

    @server.tool(meta={"ui": {"resourceUri": "ui://app/page"}})
    def show() -> str:
        return "shown"

    async with connect(mount_servers((server, "a"))) as client:
        (tool,) = await client.list_tools()
        uri = tool.meta["ui"]["resourceUri"]
        read = await client.read_resource(uri)

    assert "ui://a/app/page" == uri
    assert "<p>" == read.contents[0].text


async def test_links_to_elsewhere_stay_what_they_are():
    """Ours: the web has not moved under the prefix."""
    server = Server("web")

    @server.tool
    def find() -> list[ResourceLink]:
        return [ResourceLink(uri="https://example.com/a", name="a")]

    async with connect(mount_servers((server, "w"))) as client:
        result = await client.call_tool("w_find")

    assert "https://example.com/a" == result.content[0].uri
