"""Attached host: the view of a host in another process, through its control socket."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import msgspec
from msgspec import structs

from isthmus import errors as every
from isthmus.errors import IsthmusError
from isthmus.host.approvals.broker import RISK_RANKS
from isthmus.host.model import errors
from isthmus.host.model.errors import BadArguments, HostError
from isthmus.host.model.events import (
    HostEvent,
    HostEvents,
    HostNotice,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
)
from isthmus.host.model.interaction import Interaction, QuestionTaker
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import ServerStatus
from isthmus.host.remote.protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    SOCKET_NAME,
    AskAttend,
    AskCall,
    AskHello,
    AskLeave,
    AskPrompt,
    AskStop,
    ErrorDetail,
    EventMessage,
    HostMessage,
    HostRequest,
    Part,
    RequestDone,
    RequestFailed,
    StateMessage,
    encode_line,
)
from isthmus.host.remote.requests import AskWatch
from isthmus.host.remote.view import NONE_TYPE, HostView
from isthmus.wire import CallToolResult
from isthmus.wire.reading import reader

T = TypeVar("T")
MESSAGE_DECODER = msgspec.json.Decoder(HostMessage)
CONNECT_TIMEOUT_S = 10.0  # until the host has said hello


class HostGone(HostError):
    """The host that this surface was attached to is not there, or is there no more."""


class AttachedHost(HostView):
    """A view of the host that runs on a state, in whichever process that is.

    When the host goes, questions go from :meth:`pending`, :meth:`events` ends after an event that
    says so, and everything else raises :class:`HostGone`.

    Args:
        folder: of the host's state.
        part: ``surface`` to show questions and answer them; ``program`` to call and nothing else.
        name: what a program is called on cards, and in the audit log as ``agent:NAME``.

    Attributes:
        gone: why nothing more comes; empty while the host is there.

    Raises:
        HostGone: no host runs on this state.

    Example::

        async with Attached("state") as view:
            for interaction in view.pending():
                ...
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, part: Part = "surface", name: str = ""
    ) -> None:
        super().__init__()
        self.gone = ""
        self.principal = f"agent:{name}" if name else ""
        self._part: Part = part
        self._name = name
        self._path = Path(folder).expanduser().absolute() / SOCKET_NAME
        self._events = HostEvents()
        self._pending: dict[str, Interaction] = {}
        self._servers: list[ServerStatus] = []
        self._takers: dict[str, QuestionTaker] = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._kinds: dict[int, Any] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._hearing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                reader, writer = await self._connected()
                self._writer = writer
                self._hearing = asyncio.ensure_future(self._hear(reader))
                await self.ask(
                    AskHello(id=self.number_request(), part=self._part, name=self._name), int
                )
        except TimeoutError:
            await self.close()
            raise HostGone(f"the host at {self._path} does not answer") from None
        except BaseException:
            await self.close()
            raise
        return self

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not hasattr(asyncio, "open_unix_connection"):
            raise HostGone("this system's Python has no Unix sockets: no host can be attached to")
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=MAX_ANSWER_BYTES)
        except OSError as error:
            raise HostGone(
                f"no host runs on {self._path.parent} ({error.strerror}): start one with "
                "`isthmus host`"
            ) from None
        from isthmus.transports.sockets import read_peer_user  # not needed until it connects

        user = read_peer_user(writer.get_extra_info("socket"))
        if user is not None and user != os.getuid():
            writer.close()  # whoever made the socket would show us questions of their own
            raise HostGone(f"the host at {self._path} is another user's: it is not attached to")
        return reader, writer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection to the host; safe to call twice."""
        hearing, self._hearing = self._hearing, None
        if hearing is not None:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
        self._end("this surface was closed")
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    # The view

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""
        order = self._pending.values()
        return sorted(order, key=lambda one: (RISK_RANKS[one.risk], one.opened, one.id))

    def takers(self) -> Mapping[str, QuestionTaker]:
        """Whoever has taken a question that waits, as the host said last, by its id."""
        return dict(self._takers)

    @asynccontextmanager
    async def attend(self, name: str, assurance: Assurance = "local_ui") -> AsyncIterator[None]:
        """Show and answer questions here, as long as this lasts.

        Args:
            name: name of the surface in the audit log.
            assurance: how sure one can be that a person decides there.
        """
        number = self.number_request()
        async with self._stay(AskAttend(id=number, name=name, assurance=assurance)):
            yield

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Record traffic in the host, as long as this lasts."""
        async with self._stay(AskWatch(id=self.number_request())):
            yield

    @asynccontextmanager
    async def _stay(self, request: AskAttend | AskWatch) -> AsyncIterator[None]:
        """Ask for what lasts until it is left."""
        await self.ask(request, NONE_TYPE)
        try:
            yield
        finally:
            with suppress(HostGone):  # then nobody attends there anyway
                await self.ask(AskLeave(id=self.number_request(), attended=request.id), NONE_TYPE)

    def events(self) -> AsyncIterator[HostEvent]:
        """Events from now on; they end when the host does."""
        stream = self._events.listen()
        if self.gone:
            stream.put(HostNotice(about="gone", text=self.gone))
            stream.close()
        return stream

    def servers(self) -> Sequence[ServerStatus]:
        """The status of every server, as the host said last."""
        return list(self._servers)

    def begin_run(self, principal: str = "") -> str:  # noqa: ARG002 - as the host has it
        """The run of this connection, which the host keeps; ``principal`` is not used."""
        return ""

    # The connection

    async def ask(
        self,
        request: HostRequest,
        kind: type[T],
        *,
        run: str | None = None,  # noqa: ARG002 - this connection has one
    ) -> T:
        """Send a request to the host, and wait for the answer.

        What a call gives, and what policy makes of that, counts for all calls of this connection.

        Args:
            request: the request.
            kind: the type of the answer.
            run: not used: the connection has one run.

        Raises:
            HostGone: the host is not there any more.
            BadArguments: it is too much for one line, or the arguments have no names.
            IsthmusError: what the host says against it.
        """
        if isinstance(request, AskCall | AskPrompt):
            request = name_arguments(request)
        if isinstance(request, AskCall):
            from isthmus.client.model.results import ToolResult  # few surfaces call

            wire = await self._send(request, CallToolResult)
            return cast("T", ToolResult(request.name, wire))
        return cast("T", await self._send(request, kind))

    async def _send(self, ask: HostRequest, kind: Any) -> Any:
        if self.gone or self._writer is None:
            raise HostGone(self.gone or "this surface is not attached yet")
        try:
            said = encode_line(ask)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArguments(f"what is given cannot be sent: {error}") from error
        if len(said) > MAX_REQUEST_BYTES:
            raise BadArguments(
                f"{len(said)} bytes are more than a host takes ({MAX_REQUEST_BYTES})"
            )
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[ask.id] = answer
        self._kinds[ask.id] = kind
        try:
            self._writer.write(said)
            with suppress(ConnectionError):  # whoever hears tells us so
                await self._writer.drain()
            return await answer
        except asyncio.CancelledError:
            self._stop(ask.id)
            raise
        finally:
            self._answers.pop(ask.id, None)
            self._kinds.pop(ask.id, None)

    def _stop(self, asked: int) -> None:
        """Tell the host that nobody waits for this any more."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(encode_line(AskStop(id=self.number_request(), asked=asked)))

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        why = "the host is gone"
        try:
            while said := await reader.readline():
                told = MESSAGE_DECODER.decode(said)
                if isinstance(told, RequestFailed) and told.id is None:
                    why = told.refusal.text
                    break
                self._take(told)
        except (ConnectionError, ValueError) as error:
            why = f"the host is gone: {error}"
        finally:
            self._end(why)

    def _take(self, told: RequestDone | RequestFailed | EventMessage | StateMessage) -> None:
        match told:
            case StateMessage():
                if told.servers is not None:
                    self._servers = told.servers
                if told.pending is not None:
                    self._pending = {one.id: one for one in told.pending}
                if told.takers is not None:
                    self._takers = told.takers
            case EventMessage():
                self._happened(told.event)
            case RequestFailed():
                self._settle(told.id or 0, error=make_error(told.refusal))
            case RequestDone():
                self._answered(told)

    def _answered(self, told: RequestDone) -> None:
        try:
            result = reader(self._kinds.get(told.id, Any))(told.result)
        except ValueError as error:
            self._settle(told.id, error=HostError(f"the host's answer is none: {error}"))
        else:
            self._settle(told.id, result)

    def _settle(self, id: int, result: Any = None, error: Exception | None = None) -> None:
        answer = self._answers.get(id)
        if answer is None or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)

    def _happened(self, event: HostEvent) -> None:
        if isinstance(event, QuestionAsked):
            self._pending[event.interaction.id] = event.interaction
        elif isinstance(event, QuestionAnswered):
            self._pending.pop(event.id, None)
            self._takers.pop(event.id, None)
        elif isinstance(event, QuestionTaken):
            self._takers.pop(event.id, None)
            if event.taker is not None:
                self._takers[event.id] = event.taker
        self._events.tell(event)

    def _end(self, why: str) -> None:
        """Nothing more comes: whoever waits is told."""
        if self.gone:
            return
        self.gone = why
        self._pending.clear()
        self._takers.clear()
        for id in list(self._answers):
            self._settle(id, error=HostGone(why))
        self._events.tell(HostNotice(about="gone", text=why))
        self._events.close()


def name_arguments(request: AskCall | AskPrompt) -> AskCall | AskPrompt:
    """The request with arguments that can be sent.

    Raises:
        BadArguments: they are no names and values, which the host could not even read.
    """
    given = request.arguments
    if not isinstance(given, Mapping):
        raise BadArguments(
            f"the arguments of {request.name!r} are names and values, not {type(given).__name__}"
        )
    return structs.replace(request, arguments=dict(given))


def make_error(refusal: ErrorDetail) -> IsthmusError:
    """The error that the host raised, by its name, with its text and what else it knows."""
    room = next((one for one in (errors, every) if refusal.error in one.__all__), None)
    kind = HostError if room is None else getattr(room, refusal.error)
    try:
        made: IsthmusError = kind(refusal.text)
    except TypeError:  # it is made of more than a text
        made = HostError(refusal.text)
    for name, value in refusal.more.items():
        if name in vars(made):
            setattr(made, name, value)
    return made
