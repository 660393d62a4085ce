"""The doctor: what it asks, and that a good server has nothing wrong."""

import pytest

from isthmus import Server
from isthmus.errors import ConnectFailed
from isthmus.linter import conversation
from isthmus.linter.doctor import Doctor, LineSite
from isthmus.revisions import REVISIONS
from spoiled_servers import HANG_UP, examined, good, line_site, web_site

EVERY = pytest.mark.parametrize("revision", [r.name for r in REVISIONS])


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_lines(revision):
    """Ours: not an error, not a warning, not a note."""
    report = await examined(line_site(), revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_http(revision):
    """Ours: the same where statuses and headers are looked at, too."""
    async with web_site() as site:
        report = await examined(site, revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
async def test_a_server_with_nothing_has_nothing_wrong(revision):
    """Ours: what is not declared is not asked for."""
    report = await examined(line_site(server=Server("empty", version="1")), revision)

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
    await examined(line_site(server=server), "2025-11-25", **options)

    assert expected == called


async def test_a_revision_that_is_not_spoken_is_told_with_the_reason():
    """Ours: what came of each is in the report."""
    report = await Doctor(line_site(server=good(revisions=["2025-06-18"])), timeout=5).examine()

    assert ["2025-06-18"] == report.spoken
    assert "it offers 2025-06-18" == report.unspoken["2025-11-25"]
    assert "error -32602" in report.unspoken["2026-07-28"]
    assert [] == report.findings


async def test_a_server_that_dies_each_time_is_left_alone():
    """Ours: a few deaths are enough to tell of."""

    def spoil(asked, message):
        return HANG_UP if message and "method" in (asked or {}) and dies(asked) else message

    report = await examined(line_site(spoil), "2025-11-25")
    lost = [finding for finding in report.findings if finding.rule == "connection.survives"]

    assert 1 <= len(lost) <= 5


def dies(asked):
    return asked["method"] in {"prompts/get", "resources/read", "tools/call", "completion/complete"}


async def test_a_server_that_never_ends_is_left_alone(monkeypatch):
    """Ours: whoever examines a server is not at its mercy."""
    monkeypatch.setattr(conversation, "MOST", 100_000)
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    log = {**note, "params": {"level": "info", "data": "x" * 10_000}}

    def spoil(asked, message):
        return [log] * 10 + [message] if message and "method" in (asked or {}) else message

    report = await examined(line_site(spoil), "2025-11-25")

    told = [*report.unspoken.values(), *(finding.said for finding in report.findings)]
    assert any("without end" in one for one in told)


@pytest.mark.parametrize("contents", [5, {"a": 1}, None, "x"])
async def test_contents_of_any_shape_are_no_trouble(contents):
    """Ours: a server may be wrong in every way, and is told so."""

    def spoil(asked, message):
        read = message and "method" not in message and asked.get("method") == "resources/read"
        result = {"jsonrpc": "2.0", "id": (message or {}).get("id"), "result": {}}
        return {**result, "result": {"contents": contents}} if read else message

    report = await examined(line_site(spoil), "2025-11-25")

    assert "a result with no contents" in {finding.said for finding in report.findings}


async def test_a_server_that_says_nothing_is_left_alone():
    """Ours: each silence costs as long as is waited for an answer."""
    silent = []

    def spoil(asked, message):
        opening = (asked or {}).get("method") in {"initialize", None}
        return message if opening or not message or "method" in message else silent.append(asked)

    await examined(line_site(spoil), "2025-11-25", timeout=0.01)

    assert 20 <= len(silent) <= 40


async def test_nobody_there_is_told():
    """Ours: no revision is spoken, and the reason is that of the connection."""

    async def dial():
        raise ConnectFailed("no such command: 'nothing'")

    report = await Doctor(LineSite(dial)).examine()

    assert [] == report.spoken
    assert {"no such command: 'nothing'"} == set(report.unspoken.values())


@pytest.mark.parametrize(
    ("dials", "spoken"), [(1, ["2026-07-28"]), (4, ["2026-07-28", "2025-11-25", "2025-06-18"])]
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
