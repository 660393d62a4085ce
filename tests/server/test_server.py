"""The server as its author sees it: declared, extended, served, closed."""

import asyncio
import contextlib
import inspect
import json
import subprocess
import sys
from functools import partial

import pytest
from msgspec import Struct

from isthmus.errors import Refuse, UsageError
from isthmus.revisions import BY_NAME, REVISIONS
from isthmus.server import Context, Server
from isthmus.wire import Icon
from support.server.both_eras import LEGACY, MODERN, EraClient, accept_form, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


# --- decorators -------------------------------------------------------------------------------


def test_a_decorated_function_stays_what_it_was():
    """With and without parentheses, the very same object (decision D22)."""
    server = Server("x")

    async def one(a: int) -> int:
        return a

    def two(a: int) -> str:
        return str(a)

    def three(a: int) -> str:
        return str(a)

    assert one is server.tool(one)
    assert two is server.tool(title="Two")(two)
    assert two is server.prompt(two)
    assert three is server.prompt(title="Three")(three)
    assert three is server.resource("x://{a}")(three)
    assert inspect.iscoroutinefunction(one)
    assert "7" == two(7)


@pytest.mark.covers("divergences.registration.duplicates")
def test_a_name_is_taken_once():
    """Duplicates are an error, not a silent winner (decision D17)."""
    server = Server("x")
    server.add_tool(lambda: None, name="t")

    with pytest.raises(UsageError, match="there is a tool 't' already"):
        server.tool(name="t")(lambda: None)


def test_functions_that_cannot_be_tools_are_refused_at_once():
    """At registration, in words (our promise)."""
    with pytest.raises(UsageError, match=r"\*args"):
        Server("x").tool(lambda *args: None)


async def test_methods_partials_and_objects_are_functions_too():
    """Anything callable may be offered (ours)."""
    server = Server("x")

    class Desk:
        def greet(self, name: str) -> str:
            return f"hi {name}"

        async def __call__(self, name: str) -> str:
            return f"ho {name}"

    server.add_tool(Desk().greet)
    server.add_tool(Desk(), name="desk")
    server.add_tool(partial(Desk().greet, "ann"), name="ann")
    server.prompt(Desk().greet)
    client = EraClient(server)

    assert "hi bob" == tool_text(await client.call("greet", {"name": "bob"}))
    assert "ho bob" == tool_text(await client.call("desk", {"name": "bob"}))
    assert "hi ann" == tool_text(await client.call("ann"))


async def test_a_server_says_who_it_is():
    """Name, version, title, description, website, icons (spec: implementation)."""
    server = Server(
        "x",
        version="3",
        title="X",
        description="A server.",
        website_url="https://a.example",
        icons=[Icon(src="https://a.example/i.png")],
    )
    result = await EraClient(server).once("server/discover")

    assert {
        "name": "x",
        "version": "3",
        "title": "X",
        "description": "A server.",
        "websiteUrl": "https://a.example",
        "icons": [{"src": "https://a.example/i.png"}],
    } == result["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert "Server('x', version='3')" == repr(server)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"secret": b"short"}, "16 random bytes"),
        ({"secret": [b"s" * 16, b"short"]}, "16 random bytes"),
        ({"revisions": ()}, "at least one revision"),
        ({"revisions": ["2025-06-17"]}, "there is no revision '2025-06-17': 2024-11-05, "),
    ],
)
def test_a_setting_that_cannot_be_is_refused(options, match):
    """Found out at construction (ours)."""
    with pytest.raises(UsageError, match=match):
        Server("x", **options)


def test_revisions_are_known_by_their_names():
    """As they are to a client (ours)."""
    server = Server("x", revisions=["2025-06-18", BY_NAME["2024-11-05"]])

    assert ["2024-11-05", "2025-06-18"] == [revision.name for revision in server.revisions]


def noted() -> str:
    """A function to register."""
    return "noted"


@pytest.mark.parametrize(
    ("mistake", "match"),
    [
        (lambda s: s.resource(noted), r"a resource needs a URI: write @server.resource\('noted:"),
        (
            lambda s: s.tool(versions="a")(noted),
            "no option 'versions'; there are: name, title, descri",
        ),
        (lambda s: s.add_tool(noted, nam="a"), "no option 'nam'; there are: name, title, descri"),
        (lambda s: s.prompt(arguments=[])(noted), "no option 'arguments'; there are: name, "),
        (lambda s: s.resource("a://b", mimetype="a/b")(noted), "no option 'mimetype'; there ar"),
        (lambda s: s.asgi(prefix="/mcp"), "no option 'prefix'; there are: path, public_url"),
        (lambda s: s.run("sse"), "no transport 'sse': write 'stdio', 'http'"),
        (lambda s: s.run("streamable-http"), "no transport 'streamable-http'"),
        (lambda s: s.run(port=9000), r"port: stdio has no such option; write run\('http', "),
        (lambda s: s.run(path="/mcp"), r"path: stdio has no such option; write run\('http', "),
        (lambda s: s.run("unix"), "needs a path"),
        (lambda s: s.run("unix", path="/tmp/x", exposed=True), "no option 'exposed'"),
        (lambda s: s.run("tcp"), "needs a port"),
        (lambda s: s.run("tcp", port=0, heartbeat=1), "no option 'heartbeat'"),
        (lambda s: s.run("tcp", port=0, host="0.0.0.0"), "exposed=True"),  # noqa: S104
    ],
)
def test_a_mistake_of_the_author_is_told_with_its_cure(mistake, match):
    """Nothing is silently left out (ours)."""
    with pytest.raises(UsageError, match=match):
        mistake(Server("x"))


# --- methods of one's own ---------------------------------------------------------------------


class Refund(Struct):
    amount: int


class Receipt(Struct):
    text: str


def shop():
    server = Server("shop")

    @server.method("acme/refund", params=Refund, result=Receipt)
    async def refund(params: Refund, ctx: Context) -> Receipt:
        if params.amount > 100:
            raise Refuse(9, "too much")
        ctx.log.info("refunded")
        await ctx.progress(1)
        return Receipt(f"{params.amount} by {ctx.method}")

    @server.method("acme/ping", params=Refund)
    def ping(params: Refund) -> None:
        return None

    @server.method("acme/ask", params=Refund, result=Receipt)
    async def ask(ctx: Context, params: Refund) -> Receipt:
        await ctx.once(asyncio.sleep, 0)
        return Receipt(str(await ctx.elicit("Sure?", bool)))

    return server


@BOTH
async def test_a_method_of_ones_own_is_served_in_every_revision(revision):
    """Typed in and out; errors as everywhere (architecture 7)."""
    client = EraClient(shop(), revision)
    done = await client.once("acme/refund", {"amount": 7}, token="t")
    nothing = await client.once("acme/ping", {"amount": 7})
    refused = await client.once("acme/refund", {"amount": 700})
    wrong = await client.once("acme/refund", {"amount": "x"})

    assert "7 by acme/refund" == done["text"]
    assert {} == {key: value for key, value in nothing.items() if key not in STAMP}
    assert (9, -32602) == (refused.code, wrong.code)
    assert 1 == len(client.link.said("notifications/progress"))


STAMP = {"resultType", "_meta"}


@pytest.mark.covers("rounds.requests.three-methods")
async def test_a_method_of_ones_own_may_ask_in_a_session_only():
    """MUST NOT be answered with questions since 2026-07-28 (spec: mrtr, supported requests)."""
    legacy = EraClient(shop(), LEGACY, lambda *_: accept_form(value=True))
    modern = EraClient(shop(), MODERN)

    assert "True" in (await legacy.once("acme/ask", {"amount": 1}))["text"]
    assert -32603 == (await modern.once("acme/ask", {"amount": 1})).code


@pytest.mark.parametrize(
    ("name", "function", "match"),
    [
        ("tools/call", lambda params: None, "of the specification"),
        ("acme/refund", lambda params: None, "already"),
        ("acme/new", lambda: None, "takes its params"),
        ("acme/new", lambda a, b: None, "takes its params"),
    ],
)
def test_a_method_that_cannot_be_is_refused(name, function, match):
    """Found out at registration (ours)."""
    with pytest.raises(UsageError, match=match):
        shop().method(name, params=Refund)(function)


# --- middleware and lifespan ------------------------------------------------------------------


async def test_layers_are_around_everything_in_their_order():
    """The first one is the outermost (architecture 4.5)."""
    seen = []

    def layer(name):
        async def run(inbound, call_next):
            seen.append(f"{name} {inbound.method}")
            try:
                return await call_next(inbound)
            finally:
                seen.append(name)

        return run

    server = Server("x", middleware=[layer("a")])
    server.use(layer("b"))
    server.add_tool(lambda: None, name="t", blocking=False)
    await EraClient(server).call("t")

    assert ["a tools/call", "b tools/call", "b", "a"] == seen
    with pytest.raises(UsageError, match="before the server serves"):
        server.use(layer("c"))


def living(events, fails=0):
    attempts = []

    @contextlib.asynccontextmanager
    async def lifespan(server):
        attempts.append(server)
        if len(attempts) <= fails:
            raise OSError("no database")
        events.append("open")
        yield {"of": server.info.name}
        events.append("close")

    server = Server("x", lifespan=lifespan)

    @server.tool
    async def state(ctx: Context) -> str:
        return repr(ctx.state)

    return server


async def test_the_lifespan_is_open_while_the_server_serves():
    """Entered once, before the first request; left when the server closes (architecture 7)."""
    events = []
    server = living(events)
    client = EraClient(server)
    said = await asyncio.gather(client.call("state"), client.call("state"))
    await server.close()
    await server.close()

    assert ["{'of': 'x'}"] * 2 == [tool_text(result) for result in said]
    assert ["open", "close"] == events


async def test_a_closed_server_may_serve_again():
    """With a lifespan anew (ours)."""
    events = []
    server = living(events)
    for _ in range(2):
        await EraClient(server).call("state")
        await server.close()

    assert ["open", "close"] * 2 == events


async def test_a_lifespan_that_fails_is_tried_again():
    """The request is answered with -32603, the next one has another chance (ours)."""
    server = living([], fails=1)
    client = EraClient(server)

    assert -32603 == (await client.call("state")).code
    assert "{'of': 'x'}" == tool_text(await client.call("state"))
    await server.close()


def test_a_server_may_live_in_one_loop_after_another():
    """As under a test runner (ours)."""
    events = []
    server = living(events)

    async def use(*, close):
        await EraClient(server).call("state")
        if close:
            await server.close()

    for _ in range(2):
        asyncio.run(use(close=True))

    assert ["open", "close"] * 2 == events


# --- served -----------------------------------------------------------------------------------


@pytest.mark.covers("versions.eras.side-by-side")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_one_tool_serves_all_revisions(revision):
    """The same file, five revisions (architecture 0)."""
    server = Server("x")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    assert "3" == tool_text(await EraClient(server, revision.name).call("add", {"a": 1, "b": 2}))


SERVER = """
import asyncio, contextlib, sys
from isthmus.server import Context, Server

@contextlib.asynccontextmanager
async def lifespan(server):
    print("open", file=sys.stderr)
    yield 7
    print("close", file=sys.stderr)

server = Server("piped", lifespan=lifespan)

@server.tool
async def seven(ctx: Context) -> int:
    print("a stray print")
    return ctx.state

if __name__ == "__main__":
    server.run()
"""


def hello():
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    yield {"id": 1, "method": "initialize", "params": params}
    yield {"method": "notifications/initialized"}
    yield {"id": 2, "method": "tools/call", "params": {"name": "seven"}}


def test_a_server_runs_over_the_pipes_of_its_host(tmp_path):
    """One line per message, nothing else on stdout, and an orderly end (spec: stdio)."""
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in hello())
    done = subprocess.run(
        [sys.executable, path], input=lines, capture_output=True, text=True, timeout=15, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert [1, 2] == [answer["id"] for answer in answers]
    assert "7" == tool_text(answers[1]["result"])
    assert ["open", "a stray print", "close"] == done.stderr.split("\n")[:3]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"limits": {"tool_calls": 3}}, r"limits= takes isthmus.server.Limits\(…\), not \{"),
        ({"limits": None}, r"limits= takes isthmus.server.Limits\(…\), not None"),
        ({"sanitise": True}, r"sanitise= takes isthmus.server.Sanitise\(…\) or None, not True"),
        ({"redact": ["iban"]}, r"redact= takes isthmus.server.Redact\(…\) or None, not \["),
    ],
)
def test_settings_of_another_kind_are_refused_at_once(settings, said):
    """Ours: the message names the setting and what belongs there."""
    with pytest.raises(UsageError, match=said):
        Server("x", **settings)


def test_a_server_is_an_asgi_app():
    """It mounts anywhere without wiring (decision D5)."""
    app = Server("x").asgi(path="/tools", heartbeat=1)

    assert "/tools" == app.path
    assert app.router is not Server("x").router
