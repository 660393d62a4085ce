"""Control socket: serves surfaces in other processes, and only those of the same user."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec

from isthmus.core.text import clean_text
from isthmus.errors import IsthmusError, UsageError
from isthmus.host.model.attempt import asked_by
from isthmus.host.model.errors import Exhausted, HostError
from isthmus.host.model.events import (
    AttemptProgressed,
    HostEvent,
    HostNotice,
    close_events,
)
from isthmus.host.model.interaction import QuestionTaker
from isthmus.host.model.trace import Assurance
from isthmus.host.remote.protocol import (
    MAX_REQUEST_BYTES,
    PROTOCOL_VERSION,
    REQUEST_DECODER,
    SOCKET_NAME,
    AskAttend,
    AskAudit,
    AskCall,
    AskDecide,
    AskExplain,
    AskFree,
    AskGrants,
    AskHello,
    AskLeave,
    AskLog,
    AskPrompt,
    AskRead,
    AskServer,
    AskStop,
    AskTake,
    AskTools,
    ErrorDetail,
    EventMessage,
    HostRequest,
    Part,
    RequestDone,
    RequestFailed,
    StateMessage,
    encode_line,
)
from isthmus.host.remote.requests import AskWatch
from isthmus.host.remote.view import HostView
from isthmus.host.state.database import make_private_folder
from isthmus.host.state.presence import try_lock
from isthmus.transports.sockets import read_ancestry, read_peer_pid, read_peer_user

if TYPE_CHECKING:
    from isthmus.host.model.view import ServerStatus

RequestMethod: TypeAlias = Callable[[Any], Awaitable[object]]

MAX_SURFACES = 16
MAX_ATTENDING = 8  # names under which one surface looks at once
MAX_REQUESTS = 32  # of one surface at once
MAX_CALLS = 32  # of one surface at once: they may wait for a person, who answers here as well
CLOSE_TIMEOUT_S = 1.0  # a surface that does not read keeps no host
MAX_NAME_CHARS = 100
MAX_SOCKET_PATH_BYTES = 100  # the least that any system takes, less the end of a string
MAX_AUDIT_ROWS = 10_000


class ControlUnavailable(HostError):
    """Other processes cannot attach to a host here."""


class HostRuns(HostError, UsageError):
    """Another process is the host of this state."""


class Control:
    """Control socket: serves a view of a host on ``host.sock`` in the folder of its state.

    The socket can be opened by the user alone, and whoever connects is asked for their user id
    where the system tells it. What this host has started, its servers above all, is not served
    (Linux). A surface that goes, however, leaves nothing behind: what it was asked
    is denied where nobody else is there.

    Args:
        view: of the host.
        folder: of the host's state.

    Raises:
        HostRuns: another process is the host of this state.
        ControlUnavailable: there are no Unix sockets here, or the folder's path is too long.

    Example::

        async with Control(host.view, state.folder):
            ...
    """

    def __init__(self, view: HostView, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder).expanduser().absolute() / SOCKET_NAME
        self._view = view
        self._server: asyncio.Server | None = None
        self._lock: int | None = None
        self._surfaces: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        if not hasattr(asyncio, "start_unix_server"):
            raise ControlUnavailable(
                "other terminals cannot attach to a host here: this system's Python has no Unix "
                "sockets; use the surface of the host's own process"
            )
        if len(os.fsencode(self.path)) > MAX_SOCKET_PATH_BYTES:
            raise ControlUnavailable(
                f"{self.path} is too long for a socket ({MAX_SOCKET_PATH_BYTES} bytes): choose a state folder "
                "with a shorter path"
            )
        make_private_folder(self.path.parent)
        self._lock = lock_state(self.path.with_suffix(".lock"))
        try:
            self.path.unlink(missing_ok=True)  # one that is there is of a host that is gone
            self._server = await asyncio.start_unix_server(
                self._accept, self.path, limit=MAX_REQUEST_BYTES
            )
            self.path.chmod(0o600)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Disconnect every surface; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            with suppress(OSError):
                self.path.unlink()
        surfaces = list(self._surfaces)
        for surface in surfaces:
            surface.cancel()
        await asyncio.gather(*surfaces, return_exceptions=True)
        held, self._lock = self._lock, None
        if held is not None:
            os.close(held)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        surface = asyncio.current_task()
        if surface is None:  # pragma: no cover - a coroutine runs in a task
            return
        refusal = self._refusal(writer)
        if refusal:
            writer.write(
                encode_line(RequestFailed(refusal=ErrorDetail("ControlUnavailable", refusal)))
            )
        else:
            self._surfaces.add(surface)
            with suppress(ConnectionError, asyncio.CancelledError):
                await AttachedSurface(self._view, reader, writer).serve()
        await close_writer(writer)
        self._surfaces.discard(surface)

    def _refusal(self, writer: asyncio.StreamWriter) -> str:
        """The reason not to serve this connection; empty where it is served."""
        sock = writer.get_extra_info("socket")
        user = read_peer_user(sock)
        if user is not None and user != os.getuid():
            return "this host is another user's"
        process = read_peer_pid(sock)
        if process is not None and process != os.getpid() and self._is_child(process):
            return "a server that this host has started, or what came of it, does not attach to it"
        if len(self._surfaces) >= MAX_SURFACES:
            return f"{MAX_SURFACES} surfaces are attached to this host already: close one of them"
        return ""

    def _is_child(self, process: int) -> bool:
        """Whether a process comes from this one, or from a server that this one started.

        Servers are of the user, and could answer their own questions. Of one that has ended by the
        time at which it is looked at nobody can tell where it comes from.
        """
        if not os.path.exists("/proc/self/stat"):  # noqa: PTH110 - of the system
            return False
        ancestry = read_ancestry(process)
        ours = {os.getpid(), *(one.pid for one in self._view.servers() if one.pid)}
        return not ancestry or not ours.isdisjoint(ancestry)


# a program may ask for these alone; a surface may, too
CALL_REQUESTS = (AskTools, AskCall, AskRead, AskPrompt)
PRINCIPAL_PREFIXES = ("user:", "agent:")


class AttachedSurface:
    """One surface, or one program that calls, in another process.

    Args:
        view: of the host.
        reader, writer: the connection.
    """

    def __init__(
        self, view: HostView, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._view = view
        self._reader = reader
        self._writer = writer
        self._servers: list[ServerStatus] = []
        self._taken: set[tuple[str, str]] = set()
        self._attending: dict[int, AsyncExitStack] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_REQUESTS)
        self._part: Part | None = None
        self._program = ""
        self._runs: dict[str, str] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._does: dict[type, RequestMethod] = {
            AskHello: self._hello,
            AskAttend: self._attend,
            AskLeave: self._leave,
            AskDecide: self._decide,
            AskTake: self._take,
            AskFree: lambda ask: view.free_question(ask.question, ask.holder),
            AskServer: self._change_server,
            AskWatch: self._watch,
            AskLog: lambda ask: view.log_tail(ask.server),
            AskGrants: lambda _: view.grants(),
            AskAudit: lambda ask: view.audit_tail(max(1, min(ask.count, MAX_AUDIT_ROWS))),
            AskExplain: lambda ask: view.explain(ask.question),
            AskTools: self._tools,
            AskCall: self._call,
            AskRead: self._read,
            AskPrompt: self._prompt,
        }

    async def serve(self) -> None:
        """Do what it asks for, and tell it what happens, until it is gone or the host ends."""
        telling = asyncio.ensure_future(self._tell())
        hearing = asyncio.ensure_future(self._hear())
        try:
            await asyncio.wait({telling, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest = {telling, hearing, *self._under_way, *self._calls.values()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            for stack in self._attending.values():
                await stack.aclose()
            for question, holder in self._taken:
                await self._view.free_question(question, holder)

    async def _tell(self) -> None:
        events = self._view.events()
        try:
            async for event in events:
                if self._part == "surface":  # what others want is nothing that a program is told
                    await self._tell_event(event)
        finally:
            await close_events(events)

    async def _tell_event(self, event: HostEvent) -> None:
        if not isinstance(event, AttemptProgressed):
            await self._stand()
        await self._send(EventMessage(event=event))
        if isinstance(event, HostNotice) and event.about == "lost":
            await self._stand(pending=True)

    async def _stand(self, *, pending: bool = False) -> None:
        """Say how things stand, as far as that has changed."""
        servers = list(self._view.servers())
        if servers != self._servers or pending:
            self._servers = servers
            waiting = list(self._view.pending()) if pending else None
            takers = dict(self._view.takers()) if pending else None
            await self._send(StateMessage(servers=servers, pending=waiting, takers=takers))

    async def _hear(self) -> None:
        while True:
            try:
                said = await self._reader.readline()
                if not said:
                    return
                ask = REQUEST_DECODER.decode(said)
            except ValueError as error:  # too long, or not what we understand
                text = f"a line that a host does not understand: {error}"
                await self._send(RequestFailed(refusal=ErrorDetail("UsageError", text)))
                return
            if isinstance(ask, AskStop):
                if ask.asked in self._calls:
                    self._calls[ask.asked].cancel()
                continue
            if isinstance(ask, CALL_REQUESTS):
                if ask.id in self._calls:
                    twice = UsageError(
                        f"call {ask.id} is already running: every call needs an id of its own"
                    )
                    await self._send(RequestFailed(refusal=make_error_detail(twice)))
                    return
                if len(self._calls) < MAX_CALLS:
                    self._begin(ask)
                else:  # said from here: who does not read that is not heard either
                    full = Exhausted(f"{MAX_CALLS} calls of this program are under way already")
                    await self._send(RequestFailed(id=ask.id, refusal=make_error_detail(full)))
                continue
            await self._room.acquire()
            task = asyncio.ensure_future(self._do(ask))
            self._under_way.add(task)
            task.add_done_callback(self._done)

    def _begin(self, ask: HostRequest) -> None:
        """Begin a call; it takes no room from answers, for one of which it may be waiting."""
        task = self._calls[ask.id] = asyncio.ensure_future(self._do(ask))
        task.add_done_callback(lambda _: self._calls.pop(ask.id))

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        self._room.release()

    async def _do(self, ask: HostRequest) -> None:
        try:
            self._see_to(ask)
            result = await self._does.get(type(ask), self._operate)(ask)
            answer: RequestDone | RequestFailed = RequestDone(
                id=ask.id, result=msgspec.Raw(msgspec.json.encode(result))
            )
        except IsthmusError as error:
            answer = RequestFailed(id=ask.id, refusal=make_error_detail(error))
        except Exception as error:  # noqa: BLE001 - what fails in one answer does not end the others
            text = f"the host failed: {type(error).__name__}: {error}"
            answer = RequestFailed(id=ask.id, refusal=ErrorDetail("HostError", text))
        with suppress(ConnectionError):
            await self._send(answer)

    async def _send(self, value: object) -> None:
        self._writer.write(encode_line(value))
        await self._writer.drain()

    def _see_to(self, ask: HostRequest) -> None:
        """See that whoever asks may ask for this, by what they attached as.

        Raises:
            ControlUnavailable: they may not.
        """
        if isinstance(ask, AskHello):
            if self._part is not None:
                raise ControlUnavailable("hello was said already")
        elif self._part is None:
            raise ControlUnavailable("hello comes first")
        elif self._part == "program" and not isinstance(ask, CALL_REQUESTS):
            raise ControlUnavailable(
                "a program that is attached for calls answers no question and changes nothing here: "
                "whoever wants that attaches as a surface"
            )

    async def _hello(self, ask: AskHello) -> int:
        if ask.version != PROTOCOL_VERSION:
            raise ControlUnavailable(
                f"this host speaks version {PROTOCOL_VERSION} with surfaces, not {ask.version}: use the same "
                "isthmus for both"
            )
        process = read_peer_pid(self._writer.get_extra_info("socket"))
        program = clean_text(ask.name)[:MAX_NAME_CHARS] or "a program"
        self._program = program if process is None else f"{program} (process {process})"
        self._part = ask.part
        await self._stand(pending=ask.part == "surface")
        return PROTOCOL_VERSION

    # Calls

    def _principal(self, said: str) -> str:
        """On whose behalf something is called.

        Raises:
            UsageError: that is nobody who may call from outside, such as a server.
        """
        principal = said or "user:local"
        if not principal.startswith(PRINCIPAL_PREFIXES) or clean_text(principal) != principal:
            raise UsageError(f"a principal is user:NAME or agent:NAME, not {principal!r}")
        return principal

    def _run(self, principal: str) -> str:
        """The run of this connection: what its results hold is known of its next calls."""
        if principal not in self._runs:
            self._runs[principal] = self._view.begin_run(principal)
        return self._runs[principal]

    async def _tools(self, ask: AskTools) -> object:
        with asked_by(self._program, "attached"):
            return await self._view.tools(ask.server, principal=self._principal(ask.principal))

    async def _call(self, ask: AskCall) -> object:
        principal = self._principal(ask.principal)
        with asked_by(self._program, "attached"):
            result = await self._view.call(
                ask.name,
                ask.arguments,
                server=ask.server,
                principal=principal,
                run=self._run(principal),
                timeout=ask.timeout,
            )
        return result.wire

    async def _read(self, ask: AskRead) -> object:
        principal = self._principal(ask.principal)
        with asked_by(self._program, "attached"):
            return await self._view.read(
                ask.uri, server=ask.server, principal=principal, run=self._run(principal)
            )

    async def _prompt(self, ask: AskPrompt) -> object:
        principal = self._principal(ask.principal)
        with asked_by(self._program, "attached"):
            return await self._view.prompt(
                ask.name,
                ask.arguments,
                server=ask.server,
                principal=principal,
                run=self._run(principal),
            )

    async def _operate(self, ask: HostRequest) -> object:
        """What an operator wants: answered by the view, in the name of whoever the surface says."""
        by = getattr(ask, "by", None)
        if by is not None:
            ask = msgspec.structs.replace(ask, by=clean_name(by))
        return await self._view.ask(ask, object)

    async def _change_server(self, ask: AskServer) -> None:
        await self._view.server_do(ask.server, ask.what, by=clean_name(ask.by))

    def _stay(self, id: int) -> AsyncExitStack:
        """What lasts until it is left under this id.

        Raises:
            ControlUnavailable: too much lasts already, or under the same id.
        """
        if id in self._attending:
            raise ControlUnavailable(f"somebody looks here under {id} already: take another id")
        if len(self._attending) >= MAX_ATTENDING:
            raise ControlUnavailable(f"{MAX_ATTENDING} look here already from this process")
        stack = self._attending[id] = AsyncExitStack()
        return stack

    async def _watch(self, ask: AskWatch) -> None:
        await self._stay(ask.id).enter_async_context(self._view.watch())

    async def _attend(self, ask: AskAttend) -> None:
        stack = self._stay(ask.id)
        name = clean_name(ask.name)
        await stack.enter_async_context(self._view.attend(name, limit_assurance(ask.assurance)))

    async def _leave(self, ask: AskLeave) -> None:
        stack = self._attending.pop(ask.attended, None)
        if stack is not None:
            await stack.aclose()

    async def _decide(self, ask: AskDecide) -> bool:
        decision = msgspec.structs.replace(
            ask.decision,
            by=clean_name(ask.decision.by),
            assurance=limit_assurance(ask.decision.assurance),
            principal="",  # nobody has authenticated them
        )
        return await self._view.decide(ask.question, decision)

    async def _take(self, ask: AskTake) -> QuestionTaker | None:
        taker = QuestionTaker(clean_name(ask.taker.by), ask.taker.holder[:MAX_NAME_CHARS])
        found = await self._view.take_question(ask.question, taker, over=ask.over)
        waiting = {one.id for one in self._view.pending()}
        self._taken = {one for one in self._taken if one[0] in waiting}
        if found is not None and found.holder == taker.holder:
            self._taken.add((ask.question, taker.holder))
        return found


def clean_name(name: str) -> str:
    """The name that a surface gives somebody, as the audit log may have it."""
    return clean_text(name)[:MAX_NAME_CHARS] or "attached"


def make_error_detail(error: IsthmusError) -> ErrorDetail:
    """An error as the other process is told of it: its class, its text, and what else it knows."""
    known = {k: v for k, v in vars(error).items() if isinstance(v, str | int | float | None)}
    return ErrorDetail(type(error).__name__, str(error), known)


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Let go of whoever is there; what they do not read in time is dropped."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await writer.wait_closed()
    except (OSError, asyncio.CancelledError):
        writer.transport.abort()


def limit_assurance(assurance: Assurance) -> Assurance:
    """Limit an assurance to that of a terminal: a surface that claims more is believed that much."""
    return assurance if assurance in {"callback", "client_elicitation"} else "local_ui"


def lock_state(path: Path) -> int:
    """A file that is locked as long as this process is the host of a state.

    Raises:
        HostRuns: another process is.
    """
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if try_lock(held):
        return held
    os.close(held)
    raise HostRuns(
        f"a host runs on {path.parent} already: attach to it (isthmus host --attach), stop it, or choose another "
        "state folder (--state)"
    )
