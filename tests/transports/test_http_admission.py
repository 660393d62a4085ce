"""What stands between the guard and the messages: when it is asked, and what it costs not to be let in."""

import contextlib
import json
from types import MappingProxyType

import aiohttp
import msgspec
import pytest

from isthmus import Context, Extension, Server
from isthmus.core.http.rules import Refusal
from isthmus.errors import UsageError
from isthmus.testing import serving
from isthmus.transports.http.app import HttpApp
from support.auth.protected_server import (
    METADATA,
    WRITE,
    Files,
    bearer_header,
    begin_request_as,
    call_tool_as,
    legacy_head_as,
    legacy_tool_call,
    list_challenges,
    make_guard,
    open_session_as,
)
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import INITIALIZE, legacy_head, modern_body, modern_head

pytestmark = pytest.mark.usefixtures("secret_watch")

GET = {"host": "localhost:8000", "accept": "text/event-stream"}


# Before anything else


@pytest.mark.covers("auth.resource.validates-first", "auth.all.every-request")
@pytest.mark.parametrize(
    ("verb", "path", "head"),
    [
        ("POST", "/mcp", modern_head(name="read")),
        ("POST", "/mcp", legacy_head()),
        ("POST", "/mcp", {"host": "localhost:8000"}),
        ("GET", "/mcp", GET),
        ("GET", "/mcp", {"host": "localhost:8000"}),
        ("DELETE", "/mcp", legacy_head("1")),
        ("PUT", "/mcp", legacy_head()),
        ("GET", "/sse", GET),
        ("POST", "/messages", legacy_head()),
    ],
)
async def test_who_has_no_token_is_401_whatever_they_ask_and_their_body_is_not_read(
    verb, path, head
):
    """Spec 2025-11-25 basic/authorization#token-handling: before any processing."""
    files = Files()
    exchange = Exchange(files.app, verb, path, headers=head, body=INITIALIZE)
    await exchange.done()

    assert (401, 0) == (exchange.status, exchange.read)
    assert METADATA in list_challenges(exchange)[0]


@pytest.mark.covers("auth.resource.validates-first")
async def test_strangers_start_nothing_and_leave_nothing():
    """Ours: a server does not even enter its lifespan for who may not ask."""
    entered = []

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        entered.append(True)
        yield None

    server = Server("files", auth=make_guard(), lifespan=lifespan)
    app = server.asgi()
    for body in (INITIALIZE, modern_body("server/discover", {})):
        answer = await fetch(app, headers=legacy_head(), body=body)

        assert (401, None) == (answer.status, answer.header("mcp-session-id"))
    assert [] == entered


@pytest.mark.covers("auth.resource.origin-checked")
@pytest.mark.parametrize("name", ["ada", None, "unknown"])
@pytest.mark.parametrize("path", ["/mcp", "/messages"])
async def test_a_foreign_page_is_refused_before_its_token_is_looked_at(name, path):
    """Spec 2025-11-25 basic/transports#security-warning: Origin comes first, and the page reads nothing."""
    head = {**modern_head(name="read"), "origin": "https://evil.example", **bearer_header(name)}

    answer = await fetch(Files().app, "POST", path, headers=head, body=modern_body())

    assert (403, []) == (answer.status, list_challenges(answer))
    assert answer.header("access-control-allow-origin") is None


async def test_a_browser_may_ask_whether_it_may_and_reads_the_challenge():
    """Ours: a preflight has no token, and a page has to see where to get one."""
    files = Files()
    page = {"host": "localhost:8000", "origin": "http://localhost:8000"}

    asked = await fetch(files.app, "OPTIONS", headers=page)
    refused = await fetch(
        files.app, headers={**modern_head(name="read"), **page}, body=modern_body()
    )

    assert 204 == asked.status
    assert {"Authorization", "DPoP"} <= set(
        asked.header("access-control-allow-headers").split(", ")
    )
    exposed = set(refused.header("access-control-expose-headers").split(", "))
    assert 401 == refused.status
    assert {"WWW-Authenticate", "DPoP-Nonce"} <= exposed


# What is permitted


@pytest.mark.covers("auth.resource.scope-403", "auth.resource.body-decides")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "write", "arguments": {"path": "a"}}),
        ("tools/call", {"name": "publish", "arguments": {}}),
        ("tools/call", {"name": "publish", "arguments": None}),
        ("prompts/get", {"name": "review", "arguments": {"path": "a"}}),
        ("resources/read", {"uri": "secret://plan"}),
        ("resources/read", {"uri": "project://x/log"}),
    ],
)
async def test_whoever_lacks_a_scope_gets_a_403_and_nothing_is_run(method, params):
    """Spec 2026-07-28 basic/authorization#runtime-insufficient-scope-errors."""
    files = Files()

    answer = await begin_request_as(files.app, "ada", method, params).done()

    assert (403, 1, []) == (answer.status, answer.json["id"], files.done)
    assert 'error="insufficient_scope"' in list_challenges(answer)[0]
    assert METADATA in list_challenges(answer)[0]


@pytest.mark.covers("auth.resource.scope-403")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "review"},
                                 "argument": {"name": "path", "value": ""}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["secret://plan"]}}),
    ],
)  # fmt: skip
async def test_what_leads_around_it_takes_the_same(method, params):
    """Ours: to complete a prompt, or to hear of a resource, takes what it takes to use it."""
    files = Files()

    answer = await begin_request_as(files.app, "ada", method, params).done()

    assert (403, []) == (answer.status, files.done)


@pytest.mark.covers("auth.resource.scope-403")
async def test_a_subscription_of_a_session_takes_what_reading_takes():
    """Ours: as above, up to 2025-11-25."""
    files = Files()
    session = await open_session_as(files.app, "ada")
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe"}

    async def subscribed(uri):
        body = {**message, "params": {"uri": uri}}
        return (await fetch(files.app, headers=legacy_head_as(session, "ada"), body=body)).status

    assert [403, 200] == [await subscribed("secret://plan"), await subscribed("open://note")]
    await files.app.close()


async def test_what_is_not_there_is_told_as_ever():
    """Ours: a scope is needed for what there is; the rest is refused for what it is."""
    files = Files()

    answers = [
        await call_tool_as(files.app, "ada", "unknown"),
        await begin_request_as(files.app, "ada", "no/such", {}, "x").done(),
        await begin_request_as(files.app, "eve", "resources/read", {"uri": "none://x"}).done(),
    ]

    assert [-32602, -32601, -32602] == [one.json["error"]["code"] for one in answers]


class Refund(msgspec.Struct):
    """What a method of one's own takes."""

    shop: str


@pytest.mark.covers("auth.resource.scope-403")
@pytest.mark.parametrize("kind", ["method", "extension", "notification"])
@pytest.mark.parametrize("late", [False, True])
async def test_a_method_of_ones_own_takes_scopes_as_a_tool_does(kind, late):
    """Ours: whatever runs code of the author's can be kept from those who lack a scope."""
    done, server = [], Server("shop", auth=make_guard())
    scopes = {
        "method": lambda refund, who: {WRITE, f"shop:{refund.shop}"},
        "extension": {WRITE},
        "notification": {WRITE},
    }[kind]
    app = server.asgi() if late and kind == "method" else None  # it may be declared when it runs
    declare = {
        "method": server.method,
        "notification": server.on_notification,
        "extension": (extension := Extension("com.example/shop")).method,
    }[kind]

    @declare("shop/refund", params=Refund, scopes=scopes)
    async def refund(asked: Refund) -> None:
        done.append(asked.shop)

    if kind == "extension":
        server.extend(extension)
    app = app or server.asgi()
    body = modern_body("shop/refund", {"shop": "a"})
    if kind == "notification":
        del body["id"]
    head = {**modern_head("shop/refund", None), **bearer_header("ada")}
    answer = await fetch(app, headers=head, body=body)

    told = "files:read files:write" + " shop:a" * (kind == "method")
    assert (403, []) == (answer.status, done)
    assert f'scope="{told}"' in list_challenges(answer)[0]


async def test_a_method_of_ones_own_is_served_to_who_has_its_scopes():
    """Ours: as above, and its params are still looked at."""
    server = Server("shop", auth=make_guard())

    @server.method("shop/refund", params=Refund, scopes={WRITE})
    async def refund(asked: Refund, ctx: Context) -> None:
        assert ("a", "eve") == (asked.shop, ctx.authenticated.subject)

    app = server.asgi()
    good = await begin_request_as(app, "eve", "shop/refund", {"shop": "a"}).done()
    bad = await begin_request_as(app, "ada", "shop/refund", {"shop": 1}).done()

    assert ("complete", -32602) == (good.json["result"]["resultType"], bad.json["error"]["code"])


def test_scopes_of_a_method_are_looked_at_when_it_is_declared():
    """Ours: as for tools."""
    with pytest.raises(UsageError, match="method 'shop/refund'"):
        Server("shop").method("shop/refund", params=Refund, scopes="write")(lambda params: None)


async def test_arguments_that_do_not_fit_are_told_to_the_model_and_not_to_the_scopes():
    """Ours: the function of scopes gets arguments as the tool gets them, or is not asked."""
    asked = []
    server = Server("files", auth=make_guard())

    @server.tool(scopes=lambda args, who: asked.append((dict(args), who.subject)) or set())
    async def add(numbers: list[int], times: int = 2) -> int:
        return sum(numbers) * times

    app = server.asgi()
    wrong = await call_tool_as(app, "ada", "add", numbers=["x"])
    repaired = await call_tool_as(app, "ada", "add", numbers="[1, 2]")

    assert 200 == wrong.status
    assert wrong.json["result"]["isError"]
    assert "6" == repaired.json["result"]["content"][0]["text"]
    assert [({"numbers": [1, 2], "times": 2}, "ada")] == asked


@pytest.mark.parametrize(
    "broken",
    [
        lambda args, who: args["nothing"],
        lambda args, who: None,
        lambda args, who: "files:read",
        lambda args, who: [1],
        lambda args, who: True,
        lambda args, who: 1 / 0,
    ],
)
async def test_scopes_that_cannot_be_told_let_nobody_in(broken):
    """Ours: what fails, fails closed, says so in the log, and is no reason for anybody to log in."""
    done = []
    server = Server("files", auth=make_guard())
    server.add_tool(lambda: done.append(1), name="act", scopes=broken)

    answer = await call_tool_as(server.asgi(), "root", "act")

    assert (500, -32603, []) == (
        answer.status,
        answer.json["error"]["code"],
        list_challenges(answer),
    )
    assert [] == done


async def test_an_authorizer_that_breaks_lets_nobody_in():
    """Ours: a bug in a verifier is no way past it."""

    class Broken:
        async def verify(self, presented, resource):
            raise KeyError("oops")

    files = Files(make_guard(verifier=Broken()))

    answer = await call_tool_as(files.app, "ada", "read", path="a")

    assert (500, []) == (answer.status, files.done)


# HTTP+SSE


@pytest.mark.covers("auth.resource.scope-403")
async def test_messages_of_2024_are_held_to_scopes_before_they_are_accepted():
    """Ours: what 2024-11-05 leaves open is closed by the same statuses."""
    files = Files()
    stream = Exchange(files.app, "GET", "/sse", headers={**GET, **bearer_header("ada")})
    await stream.bytes_sent(b"session_id=")
    query = stream.body.partition(b"?")[2].partition(b"\n")[0].strip()
    head = {"host": "localhost:8000", "content-type": "application/json", **bearer_header("ada")}

    async def posted(body):
        return await fetch(
            files.app, "POST", "/messages", headers=head, body=body, scope={"query_string": query}
        )

    refused = await posted(legacy_tool_call("write", path="a"))
    together = await posted(
        [legacy_tool_call("read", path="a"), legacy_tool_call("write", 2, path="a")]
    )
    taken = await posted(legacy_tool_call("read", 3, path="a"))

    assert [403, 403, 202] == [one.status for one in (refused, together, taken)]
    assert 'scope="files:read files:write"' in list_challenges(refused)[0]
    await files.app.close()
    await stream.done()


@pytest.mark.parametrize("levels", [1, 127, 128, 400])
@pytest.mark.parametrize("call", [True, False])
async def test_nesting_is_no_way_around_scopes(levels, call):
    """Ours: what is too deep to find out what it takes is not acted on."""
    done, server = [], Server("moves", version="1", auth=make_guard())

    @server.tool
    async def ping() -> str:
        return "pong"

    @server.on_notification("acme/moved", params=dict, scopes={WRITE})
    @server.method("acme/move", params=dict, scopes={WRITE})
    async def moved(params: dict) -> dict:
        done.append(params)
        return {}

    app = server.asgi()
    session = await open_session_as(app, "ada")
    head = legacy_head_as(session, "ada")
    await fetch(app, headers=head, body={"jsonrpc": "2.0", "method": "notifications/initialized"})
    deep = b'{"a":' * levels + b"1" + b"}" * levels
    what = b'"id":1,"method":"acme/move"' if call else b'"method":"acme/moved"'
    sent = await fetch(app, headers=head, body=b'{"jsonrpc":"2.0",%b,"params":%b}' % (what, deep))
    await fetch(app, headers=head, body=legacy_tool_call("ping", 2))

    assert [] == done
    assert levels > 100 or 403 == sent.status
    await app.close()


# WebSockets


@contextlib.asynccontextmanager
async def socket(server, name):
    """A WebSocket in somebody's name, opened by hand."""
    async with serving(server, websocket=True) as url, aiohttp.ClientSession() as session:
        where = url.replace("http", "ws", 1)
        async with session.ws_connect(
            where, protocols=["mcp"], headers=bearer_header(name)
        ) as wire:
            yield wire


@pytest.mark.covers("auth.all.every-request")
async def test_a_handshake_without_a_token_is_401_with_the_challenge():
    """Ours: a WebSocket is opened by a request like any other."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        async with socket(Files().server, None):
            pass

    assert 401 == caught.value.status
    assert METADATA in caught.value.headers["www-authenticate"]


async def test_what_lacks_a_scope_on_a_websocket_is_an_error_that_says_which():
    """Ours: there is no status there, so the error has what a challenge has."""
    files = Files()
    async with socket(files.server, "ada") as wire:
        await wire.send_str(json.dumps(INITIALIZE))
        await wire.receive()
        await wire.send_str(json.dumps(legacy_tool_call("write", path="a")))
        refused = json.loads(await wire.receive_str())["error"]
        await wire.send_str(json.dumps(legacy_tool_call("whoami", 2)))
        served = json.loads(await wire.receive_str())["result"]

    assert (-31403, "insufficient_scope") == (refused["code"], refused["data"]["error"])
    assert "files:read files:write" == refused["data"]["scope"]
    assert METADATA == refused["data"]["resource_metadata"]
    assert ("ada", []) == (served["content"][0]["text"], files.done)


async def test_what_lacks_a_scope_on_a_websocket_is_not_told_to_the_server_either():
    """Ours: a notification has no answer, and runs an author's function as a call does."""
    heard, server = [], Server("moves", version="1", auth=make_guard())

    @server.tool
    async def ping() -> str:
        return "pong"

    @server.on_notification("acme/moved", scopes={WRITE})
    async def moved(params: dict, ctx: Context) -> None:
        heard.append(ctx.principal.subject)

    @server.on_notification("acme/seen")
    async def seen(params: dict, ctx: Context) -> None:
        heard.append(f"{ctx.principal.subject} sees")

    for name in ("guest", "ada", "eve"):
        async with socket(server, name) as wire:
            await wire.send_str(json.dumps(INITIALIZE))
            await wire.receive()
            for method in ("notifications/initialized", "acme/moved", "acme/seen"):
                await wire.send_str(json.dumps({"jsonrpc": "2.0", "method": method}))
            await wire.send_str(json.dumps(legacy_tool_call("ping")))
            await wire.receive()

    assert ["ada sees", "eve", "eve sees"] == heard


async def test_a_websocket_ends_when_its_token_does(monkeypatch):
    """Ours: it is told by the close code that is registered for it."""
    monkeypatch.setattr("isthmus.transports.http.admission.LISTENER_CHECK_S", 0.01)
    auth = make_guard()
    files = Files(auth)
    async with socket(files.server, "ada") as wire:

        async def never(_principal):
            return False

        auth.lasts = never
        message = await wire.receive()

    assert (aiohttp.WSMsgType.CLOSE, 3000) == (message.type, message.data)


# Without any of it


async def test_a_server_without_authorization_has_nothing_of_it():
    """Ours: scopes are no obstacle where nobody can have any."""
    files = Files()
    answer = await call_tool_as(HttpApp(files.server.router), None, "write", path="a")

    assert (200, ["write a"]) == (answer.status, files.done)


async def test_an_authorizer_of_ones_own_is_asked_for_everything():
    """Ours: the protocol is all there is to it."""

    class Closed:
        resource = None
        routes = MappingProxyType({})
        hides = False

        async def admit(self, scope):
            return Refusal(401, -31401, "closed")

    server = Server("files", auth=Closed())

    answer = await fetch(server.asgi(), headers=legacy_head(), body=INITIALIZE)

    assert (401, "closed") == (answer.status, answer.json["error"]["message"])
