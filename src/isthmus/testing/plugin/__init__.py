"""pytest plugin of isthmus: fixtures and markers for tests of MCP servers, in any language.

pytest loads this module in every environment that has isthmus, and nothing of it goes on before a
test asks for one of its fixtures: what they need is imported then. They are :mod:`isthmus.testing`
underneath; see ``docs/guide/pytest-plugin.md``.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from isthmus.testing.plugin.fixtures import (
        ClientFactory,
        LintFixture,
        RecordFixture,
        SurfaceFixture,
        UrlFactory,
        VirtualTime,
    )
    from isthmus.testing.scripts import Script

OWN_FIXTURES = frozenset({
    "mcp_client",
    "mcp_server_url",
    "mcp_lint",
    "assert_tools",
    "recorded",
    "scripted_user",
    "scripted_model",
    "virtual_time",
})  # fmt: skip

MARKERS = (
    "mcp_asyncio: run this async test on an event loop of isthmus, without another plugin.",
    "mcp_revisions(*names, needs=()): run the test in these revisions of MCP, or in all that suffice.",
    "mcp_transports(*names): run the test over these transports, or over all.",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; a name that another plugin took before is left to it."""
    group = parser.getgroup("mcp", "Model Context Protocol (isthmus)")
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("--mcp-update", {"action": "store_true", "help": "write the snapshots of assert_tools"}),
        (
            "--mcp-record",
            {
                "choices": ("once", "none", "all"),
                "help": "when recorded() records: what there is no file for (once), never (none; in CI), anew (all)",
            },
        ),
        (
            "--mcp-target",
            {
                "metavar": "TARGET",
                "help": "the server of mcp_client(): a URL, a .py file, module:server, or a command",
            },
        ),
    )
    for name, settings in options:
        try:
            group.addoption(name, **settings)
        except ValueError:
            continue
    parser.addini("mcp_target", "the server of mcp_client(), where --mcp-target does not say it")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Make a case of each revision and transport; let pytest-asyncio have virtual time."""
    marked = metafunc.definition.get_closest_marker
    if marked("mcp_revisions") is not None or marked("mcp_transports") is not None:
        from isthmus.testing.plugin.markers import add_cases

        add_cases(metafunc)
    if not has_fixture(metafunc.definition, "virtual_time"):
        return (yield)
    from isthmus.testing.plugin.event_loops import offer_virtual_loop

    with offer_virtual_loop(metafunc.config):
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the hooks in place that run tests, where there are tests that need them."""
    if any(uses_plugin(item) for item in items):
        from isthmus.testing.plugin.event_loops import install

        install(config)


def uses_plugin(item: pytest.Item) -> bool:
    """Whether a test has one of our fixtures, or is marked to be run by us."""
    if not isinstance(item, pytest.Function):
        return False
    if item.get_closest_marker("mcp_asyncio") is not None:
        return True
    return any(has_fixture(item, name) for name in OWN_FIXTURES.intersection(item.fixturenames))


def has_fixture(item: pytest.Item, name: str) -> bool:
    """Whether a test has a fixture of ours, and not one of its project that has the same name."""
    info = getattr(item, "_fixtureinfo", None)
    for found in reversed(info.name2fixturedefs.get(name, ()) if info is not None else ()):
        if found.func.__module__ == __name__:
            return True
        if name not in found.argnames:  # else it is made from the one that it stands for
            return False
    return False


@pytest.fixture
def mcp_revision(request: pytest.FixtureRequest) -> str | None:
    """The revision that the test runs in, from ``mcp_revisions``; None negotiates."""
    return getattr(request, "param", None)


@pytest.fixture
def mcp_transport(request: pytest.FixtureRequest) -> str | None:
    """The transport that the test runs over, from ``mcp_transports``; None is in memory."""
    return getattr(request, "param", None)


@pytest.fixture
def mcp_target(request: pytest.FixtureRequest) -> Any:
    """The server of ``--mcp-target``, or of the ini option ``mcp_target``; None without."""
    from isthmus.testing.plugin.targets import find_target

    return find_target(request.config)


@pytest.fixture(scope="session")
def mcp_redact() -> Any:
    """Takes further secrets out of recordings; override it with ``Redact(…)`` or a function."""
    return None


@pytest.fixture
def mcp_client(
    request: pytest.FixtureRequest,
    mcp_target: Any,
    mcp_revision: str | None,
    mcp_transport: str | None,
) -> "ClientFactory":
    """Clients that close by themselves, each of a call that is awaited, or in an ``async with``."""
    from isthmus.testing.plugin.fixtures import ClientFactory

    return ClientFactory(request, mcp_target, mcp_revision, mcp_transport)


@pytest.fixture
def mcp_server_url(request: pytest.FixtureRequest) -> "UrlFactory":
    """URLs of servers that a call serves on 127.0.0.1, awaited, or in an ``async with``."""
    from isthmus.testing.plugin.fixtures import UrlFactory

    return UrlFactory(request)


@pytest.fixture
def scripted_user(request: pytest.FixtureRequest) -> "Script":
    """A user that gives the next answer: ``scripted_user.answer_with(Accepted(…), Declined())``."""
    from isthmus.testing.plugin.fixtures import make_script

    return make_script(request)


@pytest.fixture
def scripted_model(request: pytest.FixtureRequest) -> "Script":
    """A model that gives the next answer: ``scripted_model.answer_with("Paris.")``."""
    from isthmus.testing.plugin.fixtures import make_script

    return make_script(request)


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> "VirtualTime":
    """Time that passes at once when everybody waits: timeouts of an hour take a millisecond."""
    from isthmus.testing.plugin.fixtures import make_virtual_time

    return make_virtual_time(request)


@pytest.fixture
def mcp_lint(request: pytest.FixtureRequest, mcp_target: Any) -> "LintFixture":
    """Linter: to be awaited with a server, and failing where that breaks the specification."""
    from isthmus.testing.plugin.fixtures import LintFixture

    return LintFixture(request, mcp_target)


@pytest.fixture
def assert_tools(request: pytest.FixtureRequest, mcp_client: "ClientFactory") -> "SurfaceFixture":
    """Snapshot of all that a server offers: to be awaited with a server, or a client of it."""
    from isthmus.testing.plugin.fixtures import SurfaceFixture

    return SurfaceFixture(request, mcp_client)


@pytest.fixture
def recorded(request: pytest.FixtureRequest, mcp_redact: Any) -> "RecordFixture":
    """A real server, recorded once and replayed later: ``mcp_client(recorded("https://…"))``."""
    from isthmus.testing.plugin.fixtures import RecordFixture

    return RecordFixture(request, mcp_redact)
