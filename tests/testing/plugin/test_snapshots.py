"""Files beside the tests: snapshots of what a server offers, and recordings."""

import json

import pytest

from isthmus.testing.plugin.fixtures import make_safe_name

pytest_plugins = ["pytester"]

SURFACE = """
async def test_surface(assert_tools):
    await assert_tools(server)
"""
CHANGED = (
    """
@server.tool
async def subtract(a: int, b: int) -> int:
    "Subtract."
server.remove_tool("think")
server.remove_tool("add")

@server.tool
async def add(a: float, b: int, c: int) -> int:
    "Add two numbers."
"""
    + SURFACE
)


def test_a_snapshot_is_written_first_and_compared_then(run, pytester):
    """As JSON that a person can read in a review (ours)."""
    run(SURFACE).stdout.fnmatch_lines(["isthmus: wrote __mcp__/test_shop.test_surface.json"])
    written = json.loads((pytester.path / "__mcp__/test_shop.test_surface.json").read_text())
    assert ["add", "greet", "think"] == list(written["tools"])

    run(SURFACE).assert_outcomes(passed=1)
    result = run(CHANGED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*the server does not offer what __mcp__/test_shop.test_surface.json says:",
        "*  - tools.think  (breaking: it is gone)",
        "*  + tools.subtract  (compatible: it is new)",
        "*  tools.add.inputSchema.properties.a.type: integer → number  (compatible)",
        '*  tools.add.inputSchema.required: ?"a", "b"? → ?"a", "b", "c"?  (breaking)',
        "*2 changes break callers.",
        "*accept it: pytest test_shop.py::test_surface --mcp-update",
    ])  # fmt: skip
    assert "fixtures.py" not in result.stdout.str()  # the line of the test is what matters

    run(CHANGED, "--mcp-update").assert_outcomes(passed=1)
    run(CHANGED).assert_outcomes(passed=1)


def test_in_ci_a_missing_snapshot_fails_with_the_command(run, monkeypatch, pytester):
    """Nobody would commit it there (ours)."""
    monkeypatch.setenv("CI", "true")
    result = run(SURFACE)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*write and commit it: pytest *test_surface --mcp-update"])
    assert not (pytester.path / "__mcp__").exists()


def test_each_case_has_a_snapshot_of_its_own(run, pytester):
    """A client and a name may be given, too; no name leads out of the folder (ours)."""
    run("""
@pytest.mark.mcp_revisions("2025-11-25", "2026-07-28")
async def test_surface(assert_tools, mcp_client):
    await assert_tools(server)
    await assert_tools(await mcp_client(server), name="../../shop's")
""").assert_outcomes(passed=2)
    names = {path.name for path in (pytester.path / "__mcp__").iterdir()}

    assert {
        "test_shop.test_surface-2025-11-25.json",
        "test_shop.test_surface-2026-07-28.json",
        "test_shop.shop_s-7fda0c20.json",
    } == names


def test_a_spoilt_snapshot_is_told(run, pytester):
    """A merge leaves its marks (ours)."""
    (pytester.path / "__mcp__").mkdir()
    (pytester.path / "__mcp__/test_shop.test_surface.json").write_text("<<<<<<< HEAD")

    run(SURFACE).stdout.fnmatch_lines(["*is no JSON:*write it anew: pytest*--mcp-update"])


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("test_it", "test_it"),
        ("TestShop::test_it[2025-11-25]", "TestShop.test_it-2025-11-25"),
        ("a/../b", "a_.._b-"),
        ("..", "unnamed-"),
        ("con\x00\u202e", "con-"),
        ("x" * 1000, "x" * 100 + "-"),
    ],
)
def test_names_of_files_are_safe_on_any_file_system(name, safe):
    """Where something was taken out, a digest keeps different names apart (ours)."""
    made = make_safe_name(name)

    assert made.startswith(safe)
    assert len(made) <= len(safe) + 8
    assert make_safe_name("a b") != make_safe_name("a/b")


RECORDED = """
async def test_recorded(mcp_client, recorded, mcp_server_url):
    url = TARGET
    client = await mcp_client(recorded(url, headers={"X-Key": "k3y-of-the-shop"}))
    result = await client.call_tool("add", {"a": 1, "b": OTHER})
    assert "3" == result.text
"""


def recorded(target, other="2"):
    """A test of a real server."""
    return RECORDED.replace("TARGET", target).replace("OTHER", other)


def test_a_real_server_is_recorded_once_and_replayed_then(run, pytester, monkeypatch):
    """In CI too; a request that differs fails with the difference and the command (ours)."""
    real, gone = recorded("await mcp_server_url(server)"), recorded("'http://127.0.0.1:1/mcp'")
    run(real).stdout.fnmatch_lines(["isthmus: wrote __mcp__/test_shop.test_recorded.wire"])
    monkeypatch.setenv("CI", "1")
    run(gone).assert_outcomes(passed=1)
    result = run(recorded("'http://127.0.0.1:1/mcp'", other="3"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "tools/call add is not what was recorded in __mcp__/*",
        '  -       "b": 2',
        '  +       "b": 3',
        "Record it anew: pytest test_shop.py::test_recorded --mcp-record=all",
    ])  # fmt: skip
    run(real, "--mcp-record=all").assert_outcomes(passed=1)
    text = (pytester.path / "__mcp__/test_shop.test_recorded.wire").read_text()
    assert "k3y-of-the-shop" not in text


def test_in_ci_nothing_is_recorded(run, pytester, monkeypatch):
    """A missing recording fails there (ours)."""
    monkeypatch.setenv("CI", "1")
    result = run(recorded("await mcp_server_url(server)"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no recording*"])
    assert not (pytester.path / "__mcp__").exists()


def test_a_project_takes_secrets_of_its_own_out(run, pytester):
    """By overriding one fixture (ours)."""
    pytester.makeconftest("""
import pytest
from isthmus.server import Redact

@pytest.fixture(scope="session")
def mcp_redact():
    return Redact(names=["b"])
""")
    run(recorded("await mcp_server_url(server)")).assert_outcomes(passed=1)
    text = (pytester.path / "__mcp__/test_shop.test_recorded.wire").read_text()

    assert '"b": "[redacted]"' in text
    run(recorded("'http://127.0.0.1:1/mcp'")).assert_outcomes(passed=1)
