"""Fixtures and markers of the pytest plugin."""

import sys

import pytest

pytest_plugins = ["pytester"]


def test_a_client_is_made_and_closed_by_itself(run):
    """Awaited it lives as long as the test, in a block as long as the block (ours)."""
    result = run("""
clients = []

async def test_add(mcp_client):
    client = await mcp_client(server)
    async with mcp_client(server, name="Ada") as other:
        assert "3" == (await other.call_tool("add", {"a": 1, "b": 2})).text
    assert {"result": 3} == (await client.call_tool("add", {"a": 1, "b": 2})).structured_content
    clients.extend([client, other])

async def test_closed():
    from isthmus.errors import OutOfPhase
    for client in clients:
        with pytest.raises(OutOfPhase):
            await client.list_tools()
test_closed = pytest.mark.mcp_asyncio(test_closed)
""")
    result.assert_outcomes(passed=2)


def test_revisions_and_transports_are_cases(run):
    """Those that lack what a test needs are skipped, and say so (ours)."""
    result = run(
        """
@pytest.mark.mcp_revisions(needs="elicitation/create")
async def test_all(mcp_client, mcp_revision):
    client = await mcp_client(server)
    assert mcp_revision == str(client.revision)

@pytest.mark.mcp_revisions("2025-03-26", "2026-07-28")
@pytest.mark.mcp_transports("memory", "stdio")
async def test_some(mcp_client, mcp_transport):
    client = await mcp_client(server)
    assert await client.list_tools()

@pytest.mark.mcp_revisions("2026-07-28")
@pytest.mark.mcp_transports("http+sse")
async def test_none(mcp_client):
    await mcp_client(server)
""",
        "-rs",
    )
    result.assert_outcomes(passed=3 + 4, skipped=3)
    result.stdout.fnmatch_lines(["*2024-11-05 has no elicitation/create*"])
    result.stdout.fnmatch_lines(["*2026-07-28 has no sessions*"])


def test_the_decorators_go_with_the_fixtures(run):
    """``every_revision`` and ``every_transport`` say it as the markers do (ours)."""
    result = run("""
from isthmus.testing import every_revision

@every_revision("initialize")
async def test_all(mcp_client, revision):
    client = await mcp_client(server)
    assert revision == str(client.revision)
""")
    result.assert_outcomes(passed=4, skipped=1)


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ("mcp_revisions('2025-13-26')", "there is no revision '2025-13-26': 2024-11-05,"),
        ("mcp_revisions(needs='tools/cal')", "did you mean tools/call?"),
        ("mcp_revisions(need='tools/call')", "marker mcp_revisions has no argument 'need'"),
        ("mcp_transports('carrier pigeon')", "there is no transport 'carrier pigeon': memory,"),
    ],
)
def test_a_marker_that_names_what_there_is_not_is_told_so(run, marker, told):
    """When tests are collected, with what there is (ours)."""
    result = run(f"@pytest.mark.{marker}\nasync def test_it(mcp_client): ...")

    assert told in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


def test_a_user_and_a_model_answer_from_a_list(run):
    """Over all clients of a test, without being handed to them (ours)."""
    result = run("""
from isthmus import Accepted

@pytest.mark.mcp_revisions("2025-11-25", "2026-07-28")
async def test_asked(mcp_client, scripted_user, scripted_model):
    scripted_user.answer_with(Accepted({"value": "Ada"}), Accepted({"value": "Bob"}))
    scripted_model.answer_with("hm")
    for name in ("Ada", "Bob"):
        client = await mcp_client(server)
        assert name == (await client.call_tool("greet")).text
    assert "hm" == (await client.call_tool("think")).text
    assert ["What is your name?"] * 2 == [one.message for one in scripted_user.questions]
""")
    result.assert_outcomes(passed=2)


def test_a_question_too_many_and_an_answer_too_many_fail(run):
    """Even where the test took no notice; what is said is what a person needs (ours)."""
    result = run("""
from isthmus import Accepted

async def test_question(mcp_client, scripted_user):
    client = await mcp_client(server)
    try:
        await client.call_tool("greet")
    except BaseException:
        pass

async def test_answer(mcp_client, scripted_user):
    scripted_user.answer_with(Accepted({"value": "Ada"}))
    await mcp_client(server)
""")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines([
        "the script has no answer left for: 'What is your name?' (fields: value)",
        "nobody asked for these answers: *Ada*",
    ])  # fmt: skip


def test_a_server_is_served_for_a_test(run):
    """On a free port of this machine (ours)."""
    result = run("""
async def test_served(mcp_server_url, mcp_client):
    url = await mcp_server_url(server, path="/here")
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/here")
    client = await mcp_client(url)
    assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text
""")
    result.assert_outcomes(passed=1)


def test_the_linter_fails_a_test(run):
    """With the rule, the place and the cure (ours)."""
    result = run("""
from isthmus.testing import LintFailed

async def test_sound(mcp_lint):
    report = await mcp_lint(server, revisions=["2025-11-25"], only=["tools"])
    assert ["2025-11-25"] == report.spoken

async def test_ill(mcp_lint):
    from isthmus.types import CallToolResult, TextContent
    class Ill:
        router = server.router
    await mcp_lint("http://127.0.0.1:1/mcp", revisions=["2026-07-28"])
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*LintFailed: the server speaks no revision that was tried:*"])


TARGETED = """
async def test_add(mcp_client, mcp_lint, assert_tools):
    client = await mcp_client()
    assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text

@pytest.mark.mcp_transports("http")
async def test_transport(mcp_client):
    await mcp_client()
"""


def test_one_file_is_pointed_at_any_server(run, pytester):
    """At a server in memory by the ini file, at a command by the command line (ours)."""
    run(TARGETED, "-o", "mcp_target=shop:server").assert_outcomes(passed=2)
    result = run(TARGETED, f"--mcp-target={sys.executable} {pytester.path / 'shop.py'}", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*is served already, and not over http for a test*"])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("", "which server? Name it, as in mcp_client(server)"),
        ("shop:nobody", "shop has no nobody"),
        ("nowhere:server", "must be in pytest's pythonpath"),
        ("nowhere.py", "there is no file"),
    ],
)
def test_a_target_that_is_not_there_is_told_so(run, target, told):
    """With what to do (ours)."""
    result = run(TARGETED, f"--mcp-target={target}", "-k", "test_add")

    assert told in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


def test_a_forgotten_await_is_told(run):
    """The commonest slip of all (ours)."""
    result = run("""
async def test_it(mcp_client):
    client = mcp_client(server)
    await client.list_tools()
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*write `await mcp_client(…)`*"])
