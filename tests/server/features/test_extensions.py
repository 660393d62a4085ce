"""Extensions on a server, and notifications of one's own."""

import asyncio
import logging

import pytest
from msgspec import Struct, structs

from isthmus import Context, Extension, Server
from isthmus.errors import NotInRevision, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.server.features import extensions as module
from support.event_loop import run_turns
from support.server.both_eras import ALL_CAPABILITIES, LEGACY, MODERN, EraClient

REFUNDS = "com.example/refunds"
DECLARED = structs.replace(ALL_CAPABILITIES, extensions={REFUNDS: {"max": 9}})


class Refund(Struct):
    amount: int


class Receipt(Struct):
    text: str


def refunds():
    extension = Extension(REFUNDS, {"currencies": ["EUR"]})

    @extension.method("refunds/create", params=Refund, result=Receipt)
    async def create(refund: Refund, ctx: Context) -> Receipt:
        return Receipt(f"{refund.amount} of {ctx.extension(REFUNDS)['max']}")

    return extension


def shop(extension=None):
    server = Server("shop")
    server.extend(extension or refunds())
    return server


# Declared


@pytest.mark.covers("extensions.server.declared")
async def test_a_server_says_which_extensions_it_supports():
    """In the capabilities that discover answers with (spec 2026-07-28 basic/versioning)."""
    server = Server("shop", extensions={"com.example/a": {"x": 1}})
    server.extend(refunds())

    told = await EraClient(server, MODERN).once("server/discover")

    assert {"com.example/a": {"x": 1}, REFUNDS: {"currencies": ["EUR"]}} == told["capabilities"][
        "extensions"
    ]


@pytest.mark.covers("extensions.legacy.nothing-declared")
async def test_a_legacy_client_is_told_of_no_extensions():
    """``extensions`` came with 2026-07-28; ``experimental`` is something else (the schemas)."""
    told = await EraClient(shop(), LEGACY).once(
        "initialize",
        {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "x", "version": ""}},
    )

    assert not told["capabilities"].keys() & {"extensions", "experimental"}


@pytest.mark.parametrize(
    ("mistake", "match"),
    [
        (lambda server: server.extend(refunds()), "already"),
        (lambda server: server.extend(clash()), "already"),
        (lambda server: (server.router, server.extend(Extension("a/b"))), "before the server"),
        (lambda server: Server("x", extensions={"refunds": {}}), "needs a prefix"),
        (lambda server: Server("x", extensions=[3]), "Extension objects"),
        (lambda server: on(server, "notifications/message"), "of the specification"),
        (lambda server: on(server, "refunds/create"), "already"),
    ],
)
def test_extensions_that_cannot_be_put_in_place_are_refused(mistake, match):
    """A mistake of the author's is told at once, with its cure (ours)."""
    with pytest.raises(UsageError, match=match):
        mistake(shop())


def on(server, name):
    server.on_notification(name)(lambda params: None)


def clash():
    extension = Extension("com.example/other")
    extension.method("refunds/create", params=Refund)(lambda params: None)
    return extension


# Served


async def test_a_method_of_an_extension_is_served_to_who_declared_it():
    """And its function reads the client's settings (spec 2026-07-28 basic/versioning)."""
    done = await EraClient(shop(), MODERN, able=DECLARED).once("refunds/create", {"amount": 7})

    assert "7 of 9" == done["text"]


@pytest.mark.covers("extensions.methods.undeclared-refused")
async def test_others_are_told_what_they_would_have_to_declare():
    """MUST be rejected with an appropriate error (spec 2026-07-28 basic/versioning, basic#_meta)."""
    refused = await EraClient(shop(), MODERN).once("refunds/create", {"amount": 7})

    assert -32021 == refused.code
    assert {"requiredCapabilities": {"extensions": {REFUNDS: {}}}} == refused.data


@pytest.mark.covers("extensions.methods.legacy-unknown")
async def test_a_legacy_client_finds_no_method_of_an_extension():
    """It cannot declare what its revision has no word for (ours)."""
    assert -32601 == (await EraClient(shop(), LEGACY).once("refunds/create", {"amount": 7})).code


async def test_a_layer_of_an_extension_is_there_for_who_declared_it_only():
    """Everybody else gets the core protocol (spec 2026-07-28 basic/versioning: MUST revert)."""
    extension, seen = refunds(), []

    @extension.use
    async def layer(inbound, call_next):
        seen.append(inbound.method)
        return await call_next(inbound)

    server = shop(extension)
    server.tool(lambda: "done", name="work")
    await EraClient(server, MODERN, able=DECLARED).call("work")
    await EraClient(server, MODERN).call("work")
    await EraClient(server, LEGACY).call("work")

    assert ["tools/call"] == seen


@pytest.mark.covers("extensions.tools.may-require")
async def test_a_tool_may_require_an_extension():
    """A server may insist (spec 2026-07-28 basic/versioning); otherwise it falls back."""
    server = shop()

    @server.tool
    async def insist(ctx: Context) -> str:
        return str(ctx.require_extension(REFUNDS)["max"])

    @server.tool
    async def fall_back(ctx: Context) -> str:
        return "rich" if ctx.extension(REFUNDS) else "plain"

    with_it, without = EraClient(server, MODERN, able=DECLARED), EraClient(server, MODERN)

    assert "9" == (await with_it.call("insist"))["content"][0]["text"]
    assert -32021 == (refused := await without.call("insist")).code
    assert {"requiredCapabilities": {"extensions": {REFUNDS: {}}}} == refused.data
    assert "rich" == (await with_it.call("fall_back"))["content"][0]["text"]
    assert "plain" == (await without.call("fall_back"))["content"][0]["text"]


async def test_a_method_of_ones_own_may_require_an_extension():
    """The refusal is the same as a tool's (spec 2026-07-28 basic#_meta)."""
    server = shop()

    @server.method("acme/insist", params=dict)
    async def insist(params: dict, ctx: Context) -> None:
        ctx.require_extension("com.example/other")

    assert -32021 == (await EraClient(server, MODERN).once("acme/insist")).code
    assert -32603 == (await EraClient(server, LEGACY).once("acme/insist")).code


# Heard


def hears(server, client, name, params=b"{}"):
    server.router.note(name, params, Inbound("", name, params, client.caller, client.link))


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_notification_of_ones_own_is_heard(revision):
    """By an async or a plain function, typed, with a context if it wants one (ours)."""
    server, heard = Server("shop"), asyncio.Queue()

    @server.on_notification("acme/moved", params=Refund)
    async def moved(refund: Refund, ctx: Context) -> None:
        heard.put_nowait((refund.amount, ctx.method))

    loop = asyncio.get_running_loop()

    @server.on_notification("acme/plain")
    def plain(params):
        loop.call_soon_threadsafe(heard.put_nowait, params)

    client = EraClient(server, revision)
    hears(server, client, "acme/moved", b'{"amount": 3}')
    hears(server, client, "acme/moved", b'{"amount": "x"}')
    hears(server, client, "acme/plain", b'{"any": 1}')

    assert [(3, "acme/moved"), {"any": 1}] == [await heard.get(), await heard.get()]
    assert heard.empty()


async def test_a_notification_of_an_extension_is_heard():
    """It wants no answer, so nobody is refused (ours)."""
    extension, heard = refunds(), asyncio.Queue()

    @extension.on_notification("refunds/seen")
    async def seen(params) -> None:
        heard.put_nowait(params)

    server = Server("shop", extensions=[extension])
    hears(server, EraClient(server, MODERN), "refunds/seen", b'{"code": 1}')

    assert {"code": 1} == await heard.get()


@pytest.mark.parametrize(("revision", "told"), [(LEGACY, 1), (MODERN, 0)])
async def test_a_listener_may_notify_a_session(revision, told):
    """Since 2026-07-28 nothing is sent outside a request (spec: transports); so it is dropped."""
    server, done = Server("shop"), asyncio.Event()

    @server.on_notification("acme/moved")
    async def moved(params, ctx: Context) -> None:
        await ctx.notify("acme/thanks", {"for": 1})
        done.set()

    client = EraClient(server, revision)
    hears(server, client, "acme/moved")
    await done.wait()

    assert told == len(client.link.said("acme/thanks"))


async def test_an_exception_of_a_listener_is_logged(caplog):
    """A notification has no answer to carry an error (JSON-RPC 2.0)."""
    server = Server("shop")

    @server.on_notification("acme/moved")
    async def moved(params) -> None:
        raise ValueError("lost")

    with caplog.at_level(logging.ERROR, logger="isthmus"):
        hears(server, EraClient(server, LEGACY), "acme/moved")
        await run_turns(5)

    assert ["acme/moved failed"] == [record.getMessage() for record in caplog.records]


async def test_no_more_than_so_many_notifications_are_acted_on_at_once(caplog, monkeypatch):
    """A flood costs a bounded amount of memory (ours); closing stops the rest."""
    monkeypatch.setattr(module, "MAX_NOTIFICATIONS_HANDLED", 2)
    server, begun = Server("shop"), []

    @server.on_notification("acme/moved")
    async def moved(params) -> None:
        begun.append(1)
        await asyncio.Event().wait()

    client = EraClient(server, LEGACY)
    with caplog.at_level(logging.WARNING, logger="isthmus"):
        for _ in range(4):
            hears(server, client, "acme/moved")
        await run_turns(5)

    assert 2 == len(begun)
    assert 2 == len(caplog.records)
    await server.close()
    await run_turns(5)
    hears(server, client, "acme/moved")
    await run_turns(5)
    assert 3 == len(begun)
    await server.close()


# Said


@pytest.mark.covers("extensions.notifications.ahead-of-the-answer")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_tool_says_something_of_its_own(revision):
    """Custom notifications travel with the call they belong to (ours)."""
    server = Server("shop")

    @server.tool
    async def work(ctx: Context) -> str:
        await ctx.notify("acme/half", {"left": 1})
        await ctx.notify("acme/done", Refund(2))
        return "done"

    client = EraClient(server, revision)
    await client.call("work")

    assert [("acme/half", {"left": 1}), ("acme/done", {"amount": 2})] == client.link.notes


async def test_a_notification_of_the_specification_is_not_ones_own():
    """Each of those has a way of its own, with its rules (ours)."""
    server, raised = Server("shop"), []

    @server.tool
    async def work(ctx: Context) -> str:
        for said in (ctx.notify, ctx.request):
            try:
                await said("notifications/progress", {})
            except UsageError as error:
                raised.append(str(error))
        return ""

    await EraClient(server, LEGACY).call("work")

    assert 2 == len(raised)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_servers_ask_questions_of_their_own_in_sessions_only(revision, monkeypatch):
    """MUST NOT send requests since 2026-07-28 (spec: transports)."""
    server, raised = Server("shop"), []

    @server.tool
    async def work(ctx: Context) -> str:
        try:
            return str(await ctx.request("acme/where", {"x": 1}, dict))
        except NotInRevision as error:
            raised.append(error)
            return ""

    client = EraClient(server, revision)

    async def call(method, params, result, *, relates_to=None, timeout=None):
        return {"method": method, "relates": relates_to}

    monkeypatch.setattr(client.link, "call", call)
    done = await client.call("work")

    if revision == LEGACY:
        assert "{'method': 'acme/where', 'relates': 1}" == done["content"][0]["text"]
    assert (revision == MODERN) == bool(raised)
