"""Which log messages a client gets."""

import asyncio
import logging

import pytest
from msgspec import Raw, structs

from isthmus.core.caller import Caller, read_envelope
from isthmus.revisions import BY_NAME
from isthmus.runtime.inbound import Inbound
from isthmus.server import Context, Server
from isthmus.server.asking.logging import ClientLog, is_level_wanted
from isthmus.wire import LOG_LEVELS
from support.server.both_eras import LEGACY, MODERN, EraClient, FakeLink

OF = {revision: Caller(BY_NAME[revision]) for revision in (LEGACY, MODERN)}


@pytest.mark.covers("logging.request.silent-unless-asked")
def test_a_request_that_does_not_ask_gets_none():
    """MUST NOT since 2026-07-28 (spec: per-request log level)."""
    assert [] == [level for level in LOG_LEVELS if is_level_wanted(OF[MODERN], level)]


def test_a_session_that_never_said_gets_the_usual():
    """The server MAY decide: from info on (spec 2025-11-25: logging)."""
    assert LOG_LEVELS[1:] == tuple(
        level for level in LOG_LEVELS if is_level_wanted(OF[LEGACY], level)
    )


@pytest.mark.covers("logging.level.filters")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_level_means_it_and_all_above(revision):
    """In the order of RFC 5424 (spec: log levels)."""
    caller = structs.replace(OF[revision], log_level="error")

    assert LOG_LEVELS[4:] == tuple(level for level in LOG_LEVELS if is_level_wanted(caller, level))


@pytest.mark.covers("logging.session.level-kept")
async def test_a_session_sets_its_level_for_every_later_request():
    """``logging/setLevel`` is kept on the session (spec 2025-11-25: setting log level)."""
    link = FakeLink()
    params = Raw(b'{"level":"alert"}')
    outcome = await Server("x").router.serve(
        Inbound(1, "logging/setLevel", params, OF[LEGACY], link)
    )

    assert b"{}" == outcome
    assert "alert" == link.agreed.log_level
    assert OF[LEGACY].log_level is None


@pytest.mark.covers("logging.level.unknown-refused")
async def test_a_level_there_is_not_is_refused():
    """-32602 (spec: logging, error handling)."""
    error = await EraClient(Server("x"), LEGACY).once("logging/setLevel", {"level": "loud"})

    assert -32602 == error.code


async def test_the_level_is_not_set_where_requests_say_it():
    """The method is gone since 2026-07-28 (spec: changelog)."""
    error = await EraClient(Server("x"), MODERN).once("logging/setLevel", {"level": "info"})

    assert -32601 == error.code


def test_every_level_has_its_method():
    """``ctx.log.alert(…)`` and so on (our promise)."""
    said = []
    log = ClientLog(structs.replace(OF[MODERN], log_level="debug"), said.append)
    for level in LOG_LEVELS:
        getattr(log, level)("x", n=1)

    assert list(LOG_LEVELS) == [params.level for params in said]
    assert {"message": "x", "n": 1} == said[0].data


async def call_and_collect(tool, revision=MODERN, **options):
    """The log messages a client gets of one call."""
    server = Server("talk", **options)
    server.add_tool(tool, name="tool")
    client = EraClient(server, revision)
    client.caller.log_level = "debug"
    result = await client.once("tools/call", {"name": "tool"})
    assert not result.get("isError"), result
    return client.link.said("notifications/message")


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.covers("logging.secrets.redacted")
async def test_secrets_do_not_reach_the_client(revision):
    """The spec: log messages MUST NOT contain credentials or secrets."""

    async def tool(ctx: Context) -> None:
        ctx.log.info("call with token=abc123def", url="https://me:pw@host/", password="hunter2")

    (said,) = await call_and_collect(tool, revision)

    assert {
        "message": "call with token=[redacted]",
        "url": "https://[redacted]@host/",
        "password": "[redacted]",
    } == said["data"]


async def test_redaction_can_be_switched_off():
    """Ours: it is a choice of whoever runs the server."""

    async def tool(ctx: Context) -> None:
        ctx.log.info("x", password="hunter2")

    (said,) = await call_and_collect(tool, redact=None)

    assert "hunter2" == said["data"]["password"]


async def test_any_value_can_be_logged():
    """Ours: a log line never breaks the call it is about."""

    class Odd:
        def __str__(self):
            return "odd"

    async def tool(ctx: Context) -> None:
        ctx.log.info("half \udcff", odd=Odd(), nan=float("nan"))
        ctx.log.info("keys", of={Odd(): 1})
        ctx.log.info("big", n=2**80)

    first, second, third = await call_and_collect(tool)

    assert ("half \ufffd", "odd") == (first["data"]["message"], first["data"]["odd"])
    assert "keys" in str(second["data"])
    assert str(2**80) in str(third["data"])


async def test_records_of_logging_can_be_captured():
    """Ours: a library that knows nothing of clients is heard by them, level by level."""
    library = logging.getLogger("somebody.else")
    library.setLevel(logging.DEBUG)

    def tool(ctx: Context) -> None:
        library.error("before")
        with ctx.log.capture("somebody", logging.INFO):
            library.debug("too little")
            library.info("rows: %d", 3)
            library.warning("password=%s", "hunter2")
            logging.getLogger("isthmus.own").error("not yours")
        library.error("after")

    said = await call_and_collect(tool)

    assert [
        ("info", "somebody.else", "rows: 3"),
        ("warning", "somebody.else", "password=[redacted]"),
    ] == [(params["level"], params["logger"], params["data"]) for params in said]


async def test_a_call_captures_nothing_of_another():
    """Ours: one client never reads what is logged for the other."""
    library = logging.getLogger("shared")
    library.setLevel(logging.INFO)
    server = Server("two")
    both = asyncio.Barrier(2)

    @server.tool
    async def tool(name: str, ctx: Context) -> None:
        with ctx.log.capture("shared"):
            await both.wait()
            library.info(name)
            await both.wait()

    clients = EraClient(server), EraClient(server)
    for client in clients:
        client.caller.log_level = "debug"
    await asyncio.gather(
        *(
            client.once("tools/call", {"name": "tool", "arguments": {"name": str(n)}})
            for n, client in enumerate(clients)
        )
    )

    assert [["0"], ["1"]] == [
        [params["data"] for params in client.link.said("notifications/message")]
        for client in clients
    ]


@pytest.mark.covers("logging.level.unknown-refused")
def test_a_request_with_a_level_there_is_not_is_refused():
    """-32602 since 2026-07-28, too, where the level is in _meta (spec: a SHOULD)."""
    meta = b'{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}'

    assert -32602 == read_envelope(Raw(meta)).code


@pytest.mark.covers("logging.request.on-its-own-stream")
async def test_records_of_a_call_go_to_that_call_alone():
    """MUST NOT go to a stream of changes, nor to another call (spec: per-request log level)."""
    server = Server("x")

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.log.error("so far")
        return "done"

    listener, other, caller = EraClient(server), EraClient(server), EraClient(server)
    for one in (listener, caller):
        one.caller = structs.replace(one.caller, log_level="debug")
    wanted = {"notifications": {"toolsListChanged": True}}
    task = asyncio.create_task(listener.once("subscriptions/listen", wanted))
    await caller.call("work")
    await other.call("work")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    said = [link.link.said("notifications/message") for link in (caller, other, listener)]
    assert [1, 0, 0] == [len(messages) for messages in said]
