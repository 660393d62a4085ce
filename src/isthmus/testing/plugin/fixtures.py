"""Fixtures of the plugin: each hands a test to a function of :mod:`isthmus.testing`."""

import asyncio
import json
import os
import re
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest

from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.errors import UsageError
from isthmus.linter.doctor.doctor import Report
from isthmus.server.server import Server
from isthmus.testing.cassettes import Cassette, Filter, RecordMode
from isthmus.testing.connections import connect, serving
from isthmus.testing.linting import lint
from isthmus.testing.plugin import has_fixture
from isthmus.testing.plugin.event_loops import WRITTEN_KEY, TestResources, find_resources
from isthmus.testing.scripts import Script
from isthmus.testing.surface import (
    SurfaceChanged,
    compare_surfaces,
    describe_changes,
    encode_surface,
    read_surface,
)

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

T = TypeVar("T")

FOLDER = "__mcp__"
MAX_NAME_CHARS = 100


class Opening(Generic[T]):
    """Something to be opened: ``await`` leaves it open until the test ends, ``async with`` for a block.

    Args:
        resources: of the test.
        manager: opens and closes it.
    """

    def __init__(self, resources: TestResources, manager: AbstractAsyncContextManager[T]) -> None:
        self._resources = resources
        self._manager = manager

    def __await__(self) -> Generator[Any, None, T]:
        return self._resources.enter(self._manager).__await__()

    async def __aenter__(self) -> T:
        self._resources.check_loop()
        return await self._manager.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, traceback)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"there is no {name!r} before it is opened: write `await mcp_client(…)` or "
            "`async with mcp_client(…) as client`"
        )


class ClientFactory:
    """Fixture ``mcp_client``: clients of servers, closed when the test ends.

    Args:
        request: of the fixture.
        target: the server of a call that names none.
        revision: what to speak where a call does not say it.
        transport: how to serve a ``Server`` where a call does not say it.
    """

    def __init__(
        self,
        request: pytest.FixtureRequest,
        target: Any,
        revision: str | None,
        transport: str | None,
    ) -> None:
        self._request = request
        self._target = target
        cases = getattr(getattr(request.node, "callspec", None), "params", {})
        self._revision = revision or _read_case(cases, "revision")
        self._transport = transport or _read_case(cases, "transport")
        self._resources = find_resources(request)

    def __call__(self, server: Any = None, **options: Any) -> Opening[Client]:
        """A client connected to a server.

        Args:
            server: a ``Server``, or whatever a client can be pointed at; by default the server of
                ``--mcp-target`` or of the ini option ``mcp_target``.
            **options: as :func:`isthmus.testing.connect` takes them. The revision and the transport
                are by default those of the test's case, and ``scripted_user`` and
                ``scripted_model`` answer where the test has them.

        Raises:
            UsageError: no server is named anywhere.
        """
        server = find_server(server, self._target)
        options.setdefault("revision", self._revision)
        if isinstance(server, Server):
            options.setdefault("transport", self._transport)
        elif self._transport is not None and "transport" not in options:
            pytest.skip(f"{server} is served already, and not over {self._transport} for a test")
        for option, fixture in (("elicit", "scripted_user"), ("sample", "scripted_model")):
            if option not in options and has_fixture(self._request.node, fixture):
                script: Script = self._request.getfixturevalue(fixture)
                options[option] = script.__call__  # it is played over all clients of the test
        return Opening(self._resources, connect(server, **options))


def _read_case(cases: Mapping[str, Any], name: str) -> str | None:
    """A value that a decorator of :mod:`isthmus.testing` gave the test, if there is one."""
    value = cases.get(name)
    return value if isinstance(value, str) else None


def find_server(server: Any, target: Any) -> Any:
    """The server that a call names, or that of the session.

    Raises:
        UsageError: there is neither.
    """
    if server is None and target is None:
        raise UsageError(
            "which server? Name it, as in mcp_client(server), or for the whole session by "
            "--mcp-target=… or the ini option mcp_target"
        )
    return target if server is None else server


class UrlFactory:
    """Fixture ``mcp_server_url``: servers over HTTP on a free port of the loopback.

    Args:
        request: of the fixture.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._resources = find_resources(request)

    def __call__(self, server: Server, **options: Any) -> Opening[str]:
        """Serve a server; gives its URL. The options are those of ``Server.asgi``."""
        return Opening(self._resources, serving(server, **options))


def make_script(request: pytest.FixtureRequest) -> Script:
    """Fixtures ``scripted_user`` and ``scripted_model``: answers that are checked at the end."""
    made, resources = Script(()), find_resources(request)

    def find_cause() -> str | None:
        return made.describe_unanswered() if made.unanswered else None

    resources.checks.append(made.finish)
    resources.causes.append(find_cause)
    return made


class VirtualTime:
    """Fixture ``virtual_time``: the clock of the loop that the test runs on."""

    @property
    def now(self) -> float:
        """Seconds since the loop was made, none of them real."""
        return asyncio.get_running_loop().time()

    async def pass_seconds(self, seconds: float) -> None:
        """Let so much time pass, with all that is due in it."""
        await asyncio.sleep(seconds)


def make_virtual_time(request: pytest.FixtureRequest) -> VirtualTime:
    """Fixture ``virtual_time``; the loop itself is made by whoever runs the test."""
    find_resources(request)
    return VirtualTime()


class LintFixture:
    """Fixture ``mcp_lint``: rules of the specification as assertions.

    Args:
        request: of the fixture.
        target: the server of a call that names none.
    """

    def __init__(self, request: pytest.FixtureRequest, target: Any) -> None:
        self._resources = find_resources(request)
        self._target = target

    async def __call__(self, server: Any = None, **options: Any) -> Report:
        """Examine a server; the options are those of :func:`isthmus.testing.lint`."""
        __tracebackhide__ = True
        self._resources.check_loop()
        return await lint(find_server(server, self._target), **options)


# Files beside the tests


def is_ci() -> bool:
    """Whether nobody sits at the keyboard."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def make_file_path(request: pytest.FixtureRequest, name: str | None, suffix: str) -> Path:
    """The file beside the tests that belongs to a test, or to a name that a test gives."""
    path: Path = request.node.path
    own = request.node.nodeid.partition("::")[2] or request.node.name
    return path.parent / FOLDER / f"{path.stem}.{make_safe_name(name or own)}{suffix}"


def make_safe_name(name: str) -> str:
    """A name as part of a file's name on any system; different names stay different.

    Example:
        >>> make_safe_name("TestShop::test_surface[2025-11-25]")
        'TestShop.test_surface-2025-11-25'
        >>> make_safe_name("../etc/passwd")
        'etc_passwd-f57401c7'
    """
    plain = re.sub(r"\[([\w.-]+)\]$", r"-\1", name.replace("::", "."))
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", plain).strip("._-")[:MAX_NAME_CHARS] or "unnamed"
    return safe if safe == plain else f"{safe}-{zlib.crc32(name.encode('utf-8', 'replace')):08x}"


def make_command(request: pytest.FixtureRequest, option: str) -> str:
    """The command that runs a test with an option."""
    return f"pytest {quote(request.node.nodeid)} {option}"


def write_file(request: pytest.FixtureRequest, path: Path, text: str) -> None:
    """Write a file in one piece, and have it named at the end of the run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    note_file(request, path)


def note_file(request: pytest.FixtureRequest, path: Path) -> None:
    """Have a file named at the end of the run."""
    request.config.stash.setdefault(WRITTEN_KEY, []).append(show_path(request, path))


def show_path(request: pytest.FixtureRequest, path: Path) -> str:
    """A path as a person at the root of the project writes it."""
    root = request.config.rootpath
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


class SurfaceFixture:
    """Fixture ``assert_tools``: a snapshot of the tools, resources and prompts of a server.

    Args:
        request: of the fixture.
        clients: makes a client where a server is given.
    """

    def __init__(self, request: pytest.FixtureRequest, clients: ClientFactory) -> None:
        self._request = request
        self._clients = clients

    async def __call__(self, server: Any = None, *, name: str | None = None) -> None:
        """Compare what a server offers with its snapshot.

        Args:
            server: a server or whatever a client can be pointed at, or a client of it.
            name: of the snapshot; by default that of the test.

        Raises:
            SurfaceChanged: it is different, or there is no snapshot and this is CI.
        """
        __tracebackhide__ = True  # people want to read the difference
        if isinstance(server, Client):
            surface = await read_surface(server)
        else:
            async with self._clients(server) as client:
                surface = await read_surface(client)
        path, text = make_file_path(self._request, name, ".json"), encode_surface(surface)
        if self._request.config.getoption("--mcp-update", default=False):
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                write_file(self._request, path, text)
        elif path.exists():
            self._compare(path, surface)
        elif is_ci():
            raise SurfaceChanged(
                f"there is no snapshot {show_path(self._request, path)}; write and commit it: "
                f"{make_command(self._request, '--mcp-update')}"
            )
        else:
            write_file(self._request, path, text)

    def _compare(self, path: Path, surface: Any) -> None:
        __tracebackhide__ = True
        shown, accept = show_path(self._request, path), make_command(self._request, "--mcp-update")
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SurfaceChanged(f"{shown} is no JSON: {error}; write it anew: {accept}") from None
        changes = compare_surfaces(before, json.loads(encode_surface(surface)))
        if changes:
            raise SurfaceChanged(
                f"the server does not offer what {shown} says:\n{describe_changes(changes)}\n"
                f"If that is meant, accept it: {accept}"
            )


class RecordFixture:
    """Fixture ``recorded``: real servers, recorded once and replayed later.

    Args:
        request: of the fixture.
        redact: takes further secrets out of every recording.
    """

    def __init__(self, request: pytest.FixtureRequest, redact: Filter | None) -> None:
        self._request = request
        self._redact = redact
        self._resources = find_resources(request)
        self._names: list[str | None] = []

    def __call__(
        self,
        server: Any,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        auth: "Authorization | None" = None,
        redact: Callable[[Any], Any] | None = None,
    ) -> Target:
        """A server to point a client at; what is said to it is recorded, or replayed.

        Args:
            server: whatever a client can be pointed at.
            name: of the recording; by default that of the test.
            headers: for its HTTP requests; they are not recorded.
            auth: gets the tokens it wants; they are not recorded.
            redact: takes further secrets out of this recording.

        Raises:
            CassetteMismatch: there is no recording, and none is made in CI.
            UsageError: two recordings of a test have the same name.
        """
        if name in self._names:
            raise UsageError("a test with several recordings names them: recorded(…, name='…')")
        self._names.append(name)
        path = make_file_path(self._request, name, ".wire")
        default: RecordMode = "none" if is_ci() else "once"
        mode: RecordMode = self._request.config.getoption("--mcp-record", default=None) or default
        again = f"Record it anew: {make_command(self._request, '--mcp-record=all')}"
        cassette = Cassette(path, mode, redact=redact or self._redact, again=again)
        target = cassette.target(server, headers=headers, auth=auth)

        def finish() -> None:
            cassette.finish()
            if cassette.recording:
                note_file(self._request, path)

        def find_cause() -> str | None:
            return cassette.problem

        self._resources.checks.append(finish)
        self._resources.causes.append(find_cause)
        return target
