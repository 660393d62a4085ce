"""``isthmus run --reload``: a new server at every change of the file's folder, on the same pipe.

Over stdio the host launched *this* process and holds its pipe, so the server runs in a child
that can be replaced. What the host said to open the conversation is said again to each new
child, and the host is told that the lists may have changed.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from isthmus.cli.output import print_note
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Channel, Outgoing
from isthmus.wire.jsonrpc import ErrorBody, Frame, encode_error, encode_note, parse
from isthmus.wire.meta import SUBSCRIPTION_ID
from isthmus.wire.struct import Id

POLL_INTERVAL_S = 0.3

CHILD_EXIT_TIMEOUT_S = 5.0  # then it is killed

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
LISTS = ("tools", "resources", "prompts")
SERVER_GONE_CODE = -32603
RESTART_HINT = "it is started again at the next change"

Start: TypeAlias = Callable[[], Channel]
Wait: TypeAlias = Callable[[], Awaitable[object]]


def snapshot(folder: Path) -> dict[Path, int]:
    """The modification time of each Python file below a folder, hidden folders left out."""
    found = {}
    for path in _walk_python_files(folder):
        with suppress(OSError):  # it went away while we looked
            found[path] = path.stat().st_mtime_ns
    return found


def _walk_python_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.suffix == ".py":
            yield path
        elif path.name not in SKIPPED_FOLDERS and not path.name.startswith(".") and path.is_dir():
            yield from _walk_python_files(path)


async def wait_for_change(folder: Path) -> None:
    """Return when a Python file below the folder was written, made or removed."""
    before = snapshot(folder)
    while before == snapshot(folder):  # noqa: ASYNC110 - a folder has no event to wait for
        await asyncio.sleep(POLL_INTERVAL_S)


class Relay:
    """The host's pipe, kept open while the server behind it is replaced.

    Args:
        host: the channel to the host.
        start: makes a channel to a new server.
        wait: returns when it is time for a new one.
    """

    def __init__(self, host: Channel, start: Start, wait: Wait) -> None:
        self._host = host
        self._start = start
        self._wait = wait
        self._server: Channel | None = None
        self._changing = asyncio.Lock()
        self._pending: set[Id] = set()
        self._said: dict[str, bytes] = {}
        self._listening: dict[Id, bytes] = {}
        self._reading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Carry messages both ways until the host is done."""
        await self._replace()
        renewing = asyncio.ensure_future(self._renew())
        try:
            while (delivery := await self._host.receive()) is not None:
                await self._forward(delivery.data)
        finally:
            renewing.cancel()
            await self._drop()
            await self._host.close()

    async def _renew(self) -> None:
        while True:
            await self._wait()
            print_note("reloading")
            await self._replace()

    async def _forward(self, data: bytes) -> None:
        """Forward one message of the host, and remember what a new server must hear again."""
        frame = parse(data)
        if isinstance(frame, Frame) and isinstance(frame.method, str):
            self._remember(frame, data)
        async with self._changing:  # what comes while one server follows another goes to the next
            if self._server is None:
                await self._fail(f"the server is not running; {RESTART_HINT}")
                return
            with suppress(ConnectionLost):  # whoever reads from it says so, and fails the rest
                await self._server.send(Outgoing(data))

    def _remember(self, frame: Frame, data: bytes) -> None:
        if frame.method in {"initialize", "notifications/initialized"}:
            self._said[str(frame.method)] = data
        if frame.method == "notifications/cancelled":
            id = _read_params(frame).get("requestId")
            self._listening.pop(id if isinstance(id, int | str) else "", None)
        if not isinstance(frame.id, int | str):
            return
        if frame.method == "subscriptions/listen":
            self._listening[frame.id] = data  # goes on with the next server
        else:
            self._pending.add(frame.id)

    async def _replace(self) -> None:
        """End the server and start a new one in its place; a failure waits for the next change."""
        async with self._changing:
            await self._drop()
            await self._fail("the server was reloaded; send this again")
            try:
                self._server = self._start()
                await self._reopen(self._server)
                await self._listen(self._server)
            except (ConnectFailed, ConnectionLost) as error:
                await self._drop()
                await self._lost(error)
                return
            self._reading = asyncio.ensure_future(self._read(self._server))

    async def _reopen(self, server: Channel) -> None:
        """Say to a new server what the host said to the first, and keep its answer from the host."""
        opening = self._said.get("initialize")
        if opening is None:
            return
        await server.send(Outgoing(opening))
        answer = await _read_initialize_answer(server)
        if "notifications/initialized" in self._said:
            await server.send(Outgoing(self._said["notifications/initialized"]))
            await self._announce(answer.get("capabilities", {}))

    async def _listen(self, server: Channel) -> None:
        """Ask a new server for the changes the host listens to, and tell which there may be."""
        for id, request in self._listening.items():
            await server.send(Outgoing(request))
            frame = parse(request)
            wanted = (
                _read_params(frame).get("notifications", {}) if isinstance(frame, Frame) else {}
            )
            about = msgspec.json.encode({"_meta": {SUBSCRIPTION_ID: id}})
            for kind in LISTS:
                if isinstance(wanted, dict) and wanted.get(f"{kind}ListChanged"):
                    method = f"notifications/{kind}/list_changed"
                    await self._host.send(Outgoing(encode_note(method, about)))

    async def _announce(self, capabilities: dict[str, Any]) -> None:
        """Tell the host which lists to fetch again: those whose changes it was promised."""
        for kind in LISTS:
            if (capabilities.get(kind) or {}).get("listChanged"):
                method = f"notifications/{kind}/list_changed"
                await self._host.send(Outgoing(encode_note(method, None)))

    async def _read(self, server: Channel) -> None:
        """Carry the server's messages to the host, until it ends."""
        end = ConnectionLost("the server closed its connection")
        try:
            while (delivery := await server.receive()) is not None:
                frame = parse(delivery.data)
                if isinstance(frame, Frame) and frame.method is msgspec.UNSET:
                    self._pending.discard(_read_id(frame))
                    self._listening.pop(_read_id(frame), None)
                await self._host.send(Outgoing(delivery.data))
        except ConnectionLost as error:
            end = error.with_traceback(None)
        await self._lost(end)

    async def _lost(self, error: Exception) -> None:
        print_note(f"{error}\nwaiting for a change")
        self._server = None
        await self._fail(f"the server ended; {RESTART_HINT}")

    async def _drop(self) -> None:
        """End the server, if there is one."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def _fail(self, why: str) -> None:
        """Answer everything under way, so that the host waits for nothing that cannot come."""
        pending, self._pending = self._pending, set()
        for id in pending:
            refusal = encode_error(id, ErrorBody(code=SERVER_GONE_CODE, message=why))
            with suppress(ConnectionLost):
                await self._host.send(Outgoing(refusal))


async def _read_initialize_answer(server: Channel) -> dict[str, Any]:
    """A new server's answer to ``initialize``; what it says before is not for the host."""
    while (delivery := await server.receive()) is not None:
        frame = parse(delivery.data)
        if isinstance(frame, Frame) and isinstance(frame.result, msgspec.Raw):
            answer: dict[str, Any] = msgspec.json.decode(frame.result)
            return answer
    raise ConnectionLost("the server ended while it was started again")


def _read_id(frame: Frame) -> Id:
    return frame.id if isinstance(frame.id, int | str) else ""


def _read_params(frame: Frame) -> dict[str, Any]:
    """The parameters of a message; none where they are no object."""
    params = msgspec.json.decode(frame.params) if isinstance(frame.params, msgspec.Raw) else {}
    return params if isinstance(params, dict) else {}


def make_run_command(file: str, *more: str) -> list[str]:
    """The command line of a server process that serves a file as ``isthmus run`` does."""
    return [sys.executable, "-m", "isthmus", "run", file, *more]


async def reload_stdio(
    argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None
) -> None:
    """Serve over this process's stdio, with a new server at every change of a folder.

    Args:
        argv: starts a server.
        folder: is watched.
        environ: the variables of the server; those of this process by default.
    """
    from isthmus.transports.command import Command, CommandChannel
    from isthmus.transports.stdio import StdioChannel

    command = Command(*argv, env=os.environ if environ is None else environ)

    def start() -> Channel:
        return CommandChannel(command, on_stderr=print_note)

    await Relay(StdioChannel(), start, lambda: wait_for_change(folder)).run()


async def reload_listening(
    argv: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None
) -> None:
    """Serve where clients connect, with a new server at every change of a folder, until SIGTERM.

    Args:
        argv: starts a server.
        folder: is watched.
        environ: the variables of the server; those of this process by default.
    """
    stop = asyncio.Event()
    with suppress(NotImplementedError):  # Windows has no such signal to handle
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        while not stopped.done():
            await _run_child(argv, folder, stopped, environ)
    finally:
        stopped.cancel()


async def _run_child(
    argv: Sequence[str],
    folder: Path,
    stopped: asyncio.Future[Any],
    environ: Mapping[str, str] | None,
) -> None:
    """Run one server until the next change or the end."""
    process = await asyncio.create_subprocess_exec(*argv, env=environ)
    watch = asyncio.ensure_future(wait_for_change(folder))
    ended = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait({watch, ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            print_note(f"the server ended with {process.returncode}; waiting for a change")
            await asyncio.wait({watch, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            print_note("reloading")
    finally:
        watch.cancel()
        await _end_child(process)


async def _end_child(process: asyncio.subprocess.Process) -> None:
    """Ask a child to end, and make it after a while."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), CHILD_EXIT_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
