"""The doctor: what it asks, and that a good server has nothing wrong."""

import asyncio
import json

import pytest

from isthmus import Server
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.linter.doctor.doctor import Doctor
from isthmus.linter.doctor.lines import LineTarget
from isthmus.linter.rules import conversation
from isthmus.revisions import REVISIONS
from isthmus.types import SUBSCRIPTION_ID
from support.linter.spoiled_servers import (
    HANG_UP,
    SpoiledReply,
    examine_server,
    line_site,
    make_good_server,
    web_site,
)

EVERY = pytest.mark.parametrize("revision", [r.name for r in REVISIONS])


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_lines(revision):
    """Ours: not an error, not a warning, not a note."""
    report = await examine_server(line_site(), revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_http(revision):
    """Ours: the same where statuses and headers are looked at, too."""
    async with web_site() as site:
        report = await examine_server(site, revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
async def test_a_server_with_nothing_has_nothing_wrong(revision):
    """Ours: what is not declared is not asked for."""
    report = await examine_server(line_site(server=Server("empty", version="1")), revision)

    assert [] == report.findings


def tools_called():
    """A server that keeps account of what was called."""
    called = []
    server = Server("careful", version="1")

    @server.tool
    def destroy() -> str:
        """Destroy everything."""
        called.append("destroy")
        return "gone"

    @server.tool(read_only=True)
    def look() -> str:
        """Look."""
        called.append("look")
        return "nothing there"

    @server.tool(read_only=True)
    def find(what: str) -> str:
        """Find something."""
        called.append(f"find {what}")
        return "found"

    return server, called


@pytest.mark.covers("linter.doctor.calls-nothing")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"call_read_only": False}, []),
        ({}, ["look"]),
        ({"call_read_only": False, "calls": {"find": {"what": "it"}}}, ["find it"]),
    ],
)
async def test_no_tool_is_called_but_those_that_may_be(options, expected):
    """Ours: it is safe on other people's servers."""
    server, called = tools_called()
    await examine_server(line_site(server=server), "2025-11-25", **options)

    assert expected == called


async def test_a_revision_that_is_not_spoken_is_told_with_the_reason():
    """Ours: what came of each is in the report."""
    report = await Doctor(
        line_site(server=make_good_server(revisions=["2025-06-18"])), timeout=5
    ).examine()

    assert ["2025-06-18"] == report.spoken
    assert "it offers 2025-06-18" == report.unspoken["2025-11-25"]
    assert "error -32602" in report.unspoken["2026-07-28"]
    assert [] == report.findings


async def test_a_server_that_dies_each_time_is_left_alone():
    """Ours: a few deaths are enough to tell of."""

    def spoil(asked, message):
        return HANG_UP if message and "method" in (asked or {}) and dies(asked) else message

    report = await examine_server(line_site(spoil), "2025-11-25")
    lost = [finding for finding in report.findings if finding.rule == "connection.survives"]

    assert 1 <= len(lost) <= 5


def dies(asked):
    return asked["method"] in {"prompts/get", "resources/read", "tools/call", "completion/complete"}


async def test_a_server_that_never_ends_is_left_alone(monkeypatch):
    """Ours: whoever examines a server is not at its mercy."""
    monkeypatch.setattr(conversation, "MAX_CONVERSATION_BYTES", 100_000)
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    log = {**note, "params": {"level": "info", "data": "x" * 10_000}}

    def spoil(asked, message):
        return [log] * 10 + [message] if message and "method" in (asked or {}) else message

    report = await examine_server(line_site(spoil), "2025-11-25")

    told = [*report.unspoken.values(), *(finding.said for finding in report.findings)]
    assert any("without end" in one for one in told)


@pytest.mark.parametrize("contents", [5, {"a": 1}, None, "x"])
async def test_contents_of_any_shape_are_no_trouble(contents):
    """Ours: a server may be wrong in every way, and is told so."""

    def spoil(asked, message):
        read = message and "method" not in message and asked.get("method") == "resources/read"
        result = {"jsonrpc": "2.0", "id": (message or {}).get("id"), "result": {}}
        return {**result, "result": {"contents": contents}} if read else message

    report = await examine_server(line_site(spoil), "2025-11-25")

    assert "a result with no contents" in {finding.said for finding in report.findings}


async def test_a_server_that_says_nothing_is_left_alone():
    """Ours: each silence costs as long as is waited for an answer."""
    silent = []

    def spoil(asked, message):
        opening = (asked or {}).get("method") in {"initialize", None}
        return message if opening or not message or "method" in message else silent.append(asked)

    await examine_server(line_site(spoil), "2025-11-25", timeout=0.01)

    assert 20 <= len(silent) <= 40


async def test_a_server_that_cannot_be_reached_is_told():
    """Ours: no revision is spoken, and the reason is that of the connection."""

    async def dial():
        raise ConnectFailed("no such command: 'nothing'")

    report = await Doctor(LineTarget(dial)).examine()

    assert [] == report.spoken
    assert {"no such command: 'nothing'"} == set(report.unspoken.values())


@pytest.mark.parametrize(
    ("dials", "spoken"), [(1, ["2026-07-28"]), (5, ["2026-07-28", "2025-11-25", "2025-06-18"])]
)
async def test_a_server_that_goes_away_is_no_server_without_fault(dials, spoken):
    """Ours: what could not be asked is told apart from what was asked and is right."""
    site = line_site()
    left, dial = iter(range(dials)), site._dial

    async def sometimes():
        if next(left, None) is None:
            raise ConnectFailed("nobody is there any more")
        return await dial()

    site._dial = sometimes
    report = await Doctor(site, timeout=5).examine()

    assert spoken == report.spoken
    assert {"nobody is there any more"} == set(report.broken.values())
    assert {r.name for r in REVISIONS} == {*report.spoken, *report.broken}
    assert {} == report.unspoken


async def test_a_server_that_lists_older_revisions_only_does_not_speak_the_new_one():
    """Ours: it says so itself, and nothing of it is judged by the new one's rules."""

    def spoil(asked, message):
        if message and (asked or {}).get("method") == "server/discover":
            return {**message, "result": {**message["result"], "supportedVersions": ["2025-11-25"]}}
        return message

    report = await Doctor(line_site(spoil), timeout=0.5).examine()

    assert "it lists 2025-11-25 only" == report.unspoken["2026-07-28"]
    assert "2025-11-25" in report.spoken
    assert [] == report.findings


async def test_a_server_that_falls_over_on_discover_is_told_of():
    """An unknown method is answered by an error (spec 2025-11-25 basic#responses)."""

    def spoil(asked, message):
        return HANG_UP if message and (asked or {}).get("method") == "server/discover" else message

    report = await Doctor(line_site(spoil), timeout=0.5).examine()

    assert ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] == report.spoken
    assert [("connection.survives", "server/discover", "2025-11-25")] == [
        (one.rule, one.where, one.revision) for one in report.findings
    ]


class FallsLater:
    """A server that answers one question, and is gone when the next one comes."""

    def __init__(self, site, question):
        self.dial = site._dial
        self.question = question

    async def __call__(self):
        channel = await self.dial()
        send, receive = channel.send, channel.receive
        struck, over = [], []

        async def sent(out):
            if over:
                raise ConnectionLost("it fell over")
            struck.extend([out] if self.question in out.data else [])
            await send(out)

        async def received():
            if over:
                return None
            delivery = await receive()
            over.extend(struck)
            return delivery

        channel.send, channel.receive = sent, received
        return channel


async def test_the_question_that_a_server_fell_over_is_blamed():
    """Ours: not the one that was on its way when it was gone."""
    site = line_site()
    report = await examine_server(
        LineTarget(FallsLater(site, b"isthmus-check/no-such-method")), "2025-11-25"
    )

    assert [("connection.survives", "an unknown method")] == [
        (one.rule, one.where) for one in report.findings
    ]


async def test_a_slow_tool_is_a_note_and_harms_no_other_question():
    """Ours: a read-only tool may take its time, and is cancelled."""
    server = Server("slow", version="1")
    cancelled = []

    @server.tool(read_only=True)
    async def think() -> str:
        """Think."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(1)
        return "never"

    report = await examine_server(line_site(server=server), "2025-11-25", timeout=0.1)

    assert [("calls.slow", "note")] == [(one.rule, one.severity) for one in report.findings]
    assert [1] == cancelled


async def test_a_server_without_changes_need_not_acknowledge_their_stream():
    """Ours: it declares no listChanged, and refuses the stream as it likes."""
    server = Server("still", version="1")

    def spoil(asked, message):
        if not message:
            return message
        if message.get("method") == "notifications/subscriptions/acknowledged":
            return {
                "jsonrpc": "2.0",
                "id": message["params"]["_meta"][SUBSCRIPTION_ID],
                "error": {"code": -32602, "message": "no"},
            }
        return message

    report = await examine_server(line_site(spoil, server=server), "2026-07-28")

    assert [] == report.findings


async def test_an_answer_in_a_version_that_nobody_has_is_one_finding():
    """Ours: no shape is right for it, so that only the version is wrong."""

    def spoil(asked, message):
        if message and "1900-01-01" in str((asked or {}).get("params")):
            result = {"protocolVersion": "1900-01-01", "capabilities": [], "tools": "none"}
            return {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        return message

    old = await examine_server(line_site(spoil), "2025-11-25")
    new = await examine_server(line_site(spoil), "2026-07-28")

    assert {"lifecycle.unknown-version"} == {one.rule for one in old.findings}
    assert {"versions.unsupported"} == {one.rule for one in new.findings}


async def test_an_empty_answer_that_says_it_is_json_is_no_message():
    """Ours: frameworks put the type on a 202 without a body."""

    def spoil(_request, reply):
        return (
            SpoiledReply(202, {"content-type": "application/json"})
            if reply.status == 202
            else reply
        )

    async with web_site(spoil) as site:
        report = await examine_server(site, "2025-11-25")

    assert [] == report.findings


async def test_a_batch_that_is_served_where_there_are_none_is_one_finding():
    """Ours: the answer's form follows from it."""
    both = [
        {"jsonrpc": "2.0", "id": id, "result": {}} for id in ("isthmus-check-4", "isthmus-check-5")
    ]

    def spoil(_request, reply):
        if _request.body.startswith(b"[{"):
            body = json.dumps(both).encode()
            return SpoiledReply(200, {"content-type": "application/json"}, body)
        return reply

    async with web_site(spoil) as site:
        report = await examine_server(site, "2025-11-25")

    assert ["batches.refused"] == [one.rule for one in report.findings]


@pytest.mark.parametrize(
    "words",
    [
        "Server not initialized",
        "Bad Request: Server not initialized",
        "Received request before initialization was complete",
        "call initialize first",
        "uninitialised session",
        "initialize is required",
    ],
)
async def test_a_server_that_wants_a_handshake_in_the_new_revision_is_found(words):
    """A request stands by itself (spec 2026-07-28 basic/versioning)."""

    def spoil(asked, message):
        if message and (asked or {}).get("method") == "tools/list":
            error = {"code": -32600, "message": words}
            return {"jsonrpc": "2.0", "id": asked["id"], "error": error}
        return message

    report = await examine_server(line_site(spoil), "2026-07-28")

    assert "versions.no-handshake" in {one.rule for one in report.findings}
