"""Event loops of tests: the plugin beside pytest-asyncio, anyio, and alone."""

import subprocess
import sys

import pytest

from isthmus.testing.plugin.event_loops import TestResources

pytest_plugins = ["pytester"]

USING = """
import asyncio

@pytest.fixture
async def town():
    await asyncio.sleep(0)
    return "Ulm"

@pytest.fixture
async def client(mcp_client):
    async with mcp_client(server) as client:
        yield client
    client.closed_by_fixture = True

@pytest.fixture
async def left_open(mcp_client):
    return await mcp_client(server)

MARK
class TestShop:
    name = "class"

    @pytest.fixture
    async def own(self, client):
        return f"{self.name} {client.revision}"

    async def test_method(self, own, client, town):
        assert "class 2026-07-28" == own
        assert "3" == (await client.call_tool("add", {"a": 1, "b": 2})).text

MARK
async def test_fixtures(mcp_client, client, town, left_open):
    other = await mcp_client(server)
    for one in (client, other, left_open):
        assert "3" == (await one.call_tool("add", {"a": 1, "b": 2})).text
    assert "Ulm" == town

MARK
@pytest.mark.parametrize("number", [1, 2])
async def test_cases(mcp_client, number):
    assert await (await mcp_client(server)).list_tools()
"""
SYNC = """

def test_not_async(left_open):
    assert "2026-07-28" == str(left_open.revision)
"""


@pytest.mark.parametrize(
    ("others", "options", "mark"),
    [
        ((), (), ""),
        (("asyncio", "anyio"), (), ""),
        (("asyncio",), (), "@pytest.mark.asyncio"),
        (("asyncio",), ("-o", "asyncio_mode=auto"), ""),
        (
            ("anyio",),
            (),
            "@pytest.mark.parametrize('anyio_backend', ['asyncio'])\n@pytest.mark.anyio",
        ),
    ],
    ids=["alone", "strict, not marked", "strict, marked", "auto", "anyio"],
)
def test_async_tests_and_fixtures_run_whoever_runs_them(run, others, options, mark):
    """Each on one loop, which closes what was opened on it; nothing warns (ours)."""
    sync = "" if "anyio" in mark else SYNC
    result = run(USING.replace("MARK", mark) + sync, *options, others=others)

    result.assert_outcomes(passed=4 + bool(sync))


def test_a_test_that_runs_on_trio_is_skipped():
    """It is no fault of the server (ours)."""
    with pytest.raises(pytest.skip.Exception, match="isthmus runs on asyncio"):
        TestResources(None).check_loop()  # no loop of asyncio runs here


def test_async_tests_of_others_are_left_alone(run):
    """Neither run nor changed: pytest says itself that nobody runs them (ours)."""
    result = run("""
async def test_mine(mcp_client):
    await mcp_client(server)

async def test_theirs():
    pass
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


def test_an_async_test_without_fixtures_is_marked(run):
    """``connect`` alone suffices then (ours)."""
    result = run("""
from isthmus.testing import connect
pytestmark = pytest.mark.mcp_asyncio

async def test_it():
    async with connect(server) as client:
        assert await client.list_tools()
""")
    result.assert_outcomes(passed=1)


def test_fixtures_of_a_project_with_the_same_names_are_its_own(run):
    """Its async tests are left to whoever runs them, and its loops as they are (ours)."""
    result = run(
        """
import asyncio

@pytest.fixture
def recorded():
    return "by the project"

@pytest.fixture
def virtual_time():
    return "of the project"

async def test_not_run(recorded): ...

@pytest.mark.asyncio
async def test_loop(recorded, virtual_time, mcp_client):
    assert "Virtual" not in type(asyncio.get_running_loop()).__name__
    assert ("by the project", "of the project") == (recorded, virtual_time)
    assert await (await mcp_client(server)).list_tools()
""",
        others=("asyncio",),
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


def test_a_fixture_that_is_made_from_ours_is_ours(run):
    """A project gives `mcp_client` options of its own (ours)."""
    result = run("""
from functools import partial

@pytest.fixture
def mcp_client(mcp_client):
    return partial(mcp_client, name="Ada")

async def test_it(mcp_client):
    assert await (await mcp_client(server)).list_tools()
""")
    result.assert_outcomes(passed=1)


VIRTUAL = """
import asyncio

@server.tool
async def hang() -> str:
    await asyncio.Event().wait()

async def test_an_hour(mcp_client, virtual_time):
    from isthmus.errors import CallTimedOut
    client = await mcp_client(server)
    begun = virtual_time.now
    with pytest.raises(CallTimedOut):
        await client.call_tool("hang", timeout=3600)
    await virtual_time.pass_seconds(3600)
    assert virtual_time.now - begun >= 7200
"""


@pytest.mark.parametrize(
    ("others", "options"),
    [((), ()), (("asyncio",), ()), (("asyncio",), ("-o", "asyncio_mode=auto"))],
    ids=["alone", "strict", "auto"],
)
def test_time_is_virtual_whoever_runs_the_test(run, others, options):
    """And the loops of other tests stay as they are (ours)."""
    others_test = """
async def test_other(mcp_client):
    await mcp_client(server)
    assert "Virtual" not in type(asyncio.get_running_loop()).__name__
"""
    result = run(VIRTUAL + others_test, *options, others=others)

    result.assert_outcomes(passed=2)


def test_virtual_time_on_another_loop_fails_with_what_to_do(run):
    """A timeout of an hour would be one (ours)."""
    result = run("""
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it(virtual_time):
    pass
""", others=("anyio",))  # fmt: skip
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*virtual_time needs isthmus.testing.VirtualLoop*"])


def test_an_error_of_a_test_or_a_fixture_closes_what_was_opened(run):
    """And comes out as it is (ours)."""
    result = run("""
clients = []

@pytest.fixture
async def broken(mcp_client):
    clients.append(await mcp_client(server))
    raise ZeroDivisionError("in the fixture")

async def test_fixture(broken): ...

async def test_itself(mcp_client):
    clients.append(await mcp_client(server))
    raise ZeroDivisionError("in the test")

@pytest.mark.mcp_asyncio
async def test_closed():
    from isthmus.errors import OutOfPhase
    for client in clients:
        with pytest.raises(OutOfPhase):
            await client.list_tools()
    assert 2 == len(clients)
""")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError: in the fixture*"])
    result.stdout.fnmatch_lines(["*ZeroDivisionError: in the test*"])


UNUSED = """
import sys
import pytest

assert 0 == pytest.main(["-q", "-p", "no:schemathesis", "test_plain.py"])
loaded = [name for name in sys.modules if name.split(".")[0] in {"isthmus", "msgspec"}]
print("\\nLOADED", *sorted(loaded))
"""


def test_a_project_that_does_not_use_it_loads_the_entry_module_alone(pytester):
    """Ours: pytest loads entry points always, in projects that never heard of us."""
    pytester.makepyfile(test_plain="def test_it(): ...")
    done = subprocess.run(
        [sys.executable, "-c", UNUSED],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]

    allowed = {"isthmus", "isthmus.lazy", "isthmus.testing", "isthmus.testing.plugin"}
    assert allowed == set(line.split()[1:])
