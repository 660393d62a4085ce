"""What a function may do beside returning: ask, report, log, and do a thing just once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw, Struct

from isthmus.core.extensions import settings_of
from isthmus.core.meta import meta_in
from isthmus.core.principal import Principal
from isthmus.core.surrogates import without_surrogates, writable
from isthmus.core.trace import Trace, trace_of
from isthmus.errors import Refuse, UsageError
from isthmus.revisions import Revision
from isthmus.revisions.codes import UNAUTHENTICATED
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server.extensions import ask_own, check_own, require_extension
from isthmus.server.facilities import Facilities
from isthmus.server.features.logging import Log
from isthmus.server.notes import Notes
from isthmus.server.questions import Questions
from isthmus.server.workers import Leave
from isthmus.wire import (
    ClientCapabilities,
    Implementation,
    LogMessageParams,
    ProgressParams,
)
from isthmus.wire.base import Id, Meta

if TYPE_CHECKING:
    from isthmus.server.askers import Asker

__all__ = ["Context"]

T = TypeVar("T")

_NOTHING: Mapping[str, Any] = {}
INFINITE = float("inf")


class Context(Questions):
    """The call a function serves, and what it may do about it.

    A parameter of this type is filled by the server and is no part of the tool's schema::

        @server.tool
        async def book(date: str, ctx: Context) -> str:
            match await ctx.elicit(f"Which seat on {date}?", Seat):
                case Accepted(seat):
                    return f"row {seat.row}"
            raise ToolError("no seat was chosen")

    **Everything before a question may run again**: since 2026-07-28 a question ends the call, and
    the body runs from the top once it is answered. Effects belong into :meth:`once`.

    Made by the server; authors receive it.
    """

    __slots__ = ("_asker", "_facilities", "_inbound", "_leave", "_meta", "_notes",
                 "_responses", "request_state")  # fmt: skip

    def __init__(
        self,
        inbound: Inbound,
        facilities: Facilities,
        asker: "Asker",
        notes: Notes,
        *,
        responses: Mapping[str, Any] = _NOTHING,
        request_state: str | None = None,
        leave: Leave | None = None,
    ) -> None:
        self._notes = notes
        self.request_state = request_state
        self._inbound = inbound
        self._facilities = facilities
        self._asker = asker
        self._responses = responses
        self._leave = leave or Leave()
        self._meta: Meta | None = None

    # Who asks

    @property
    def request_id(self) -> Id:
        """The id of the request this serves."""
        return self._inbound.id

    @property
    def method(self) -> str:
        """The method this serves, such as ``tools/call``."""
        return self._inbound.method

    @property
    def revision(self) -> Revision:
        """The revision this is served in."""
        revision: Revision = self._inbound.caller.revision
        return revision

    @property
    def client(self) -> Implementation | None:
        """The name and version the client gives itself, if it does; proof of nothing."""
        return self._inbound.caller.info

    @property
    def capabilities(self) -> ClientCapabilities:
        """What the client declared it can do."""
        return self._inbound.caller.capabilities

    @property
    def principal(self) -> Principal | None:
        """Who authenticated, or None; a parameter of this type is filled with it, too.

        It is what the token says that came with this request, and never what a client says of
        itself. The token is not in it.
        """
        return self._inbound.principal  # type: ignore[no-any-return]  # transports give nothing else

    @property
    def authenticated(self) -> Principal:
        """Who authenticated.

        Raises:
            Refuse: nobody has.
        """
        principal = self.principal
        if principal is None:
            raise Refuse(
                UNAUTHENTICATED,
                f"{self.method} of this takes an authenticated caller: over {self.origin.transport} "
                "nobody has authenticated",
            )
        return principal

    async def upstream(self, name: str) -> Any:
        """The API of a service behind the server, as the caller of this.

        It carries the service's own token, never the caller's. A user who has connected no
        account there is asked to, on a page of the server's; the call goes on afterwards.

        Example::

            github = await ctx.upstream("github")
            return await github.json("/user")

        Args:
            name: of the provider, as the authorization server knows it.

        Returns:
            A :class:`~isthmus.auth.upstream.api.Upstream`.

        Raises:
            UsageError: the server has no authorization, or no such provider.
            Refuse: nobody has authenticated.
            ToolError: no account was connected, or the service does not answer.
        """
        from isthmus.server.upstream import reach  # few servers have services behind them

        return await reach(self, self._facilities, name)

    @property
    def origin(self) -> Origin:
        """Where the request came from."""
        return self._inbound.origin

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's headers by lower-case name; empty on other transports."""
        return self._inbound.origin.headers

    @property
    def meta(self) -> Meta:
        """The whole ``_meta`` of the request."""
        if self._meta is None:
            self._meta = meta_in(self._inbound.params)
        return self._meta

    @property
    def trace(self) -> Trace | None:
        """The trace the request belongs to (W3C Trace Context), or None.

        What is asked of the client goes on in it; ``ctx.trace.members()`` are the headers that
        carry it on to others.
        """
        return trace_of(self.meta)

    @property
    def state(self) -> Any:
        """What the server's lifespan gave, or None."""
        return self._facilities.state

    # Extensions, and requests of one's own

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings the client declared for an extension, or None where it has it not."""
        return settings_of(self.capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings the client declared for an extension.

        Raises:
            CapabilityMissing: it did not declare it; since 2026-07-28 a call that lets this pass
                is refused with -32021.
        """
        return require_extension(self.capabilities, identifier)

    async def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        result: type[T] = dict,  # type: ignore[assignment]  # T is dict where nothing is given
        *,
        timeout: float | None = None,
    ) -> T:
        """Send a client of up to 2025-11-25 a request of your own.

        Args:
            method: its method, with a prefix of yours.
            params: a struct or plain data.
            result: what to read the answer into.
            timeout: seconds without an answer; None waits as long as the call lasts.

        Raises:
            NotInRevision: since 2026-07-28 servers send no requests.
            UsageError: the specification has a method of this name.
            Refused, CallTimedOut, ConnectionLost, Misbehaved: as it went.
        """
        return await ask_own(self._inbound, method, params, result, timeout)

    async def ping(self, *, timeout: float | None = 10.0) -> float:
        """Ask the client whether it is still there (up to 2025-11-25).

        Args:
            timeout: seconds without an answer; None waits as long as the call lasts.

        Returns:
            The seconds until it answered.

        Raises:
            NotInRevision: since 2026-07-28 servers send no requests; who hangs up is noticed.
            CallTimedOut, ConnectionLost: it is gone, or does not answer.
        """
        from isthmus.server.pings import ping_client

        return await ping_client(self._inbound, timeout)

    # Telling

    @property
    def log(self) -> Log:
        """Log messages to the client: ``ctx.log.info("done", rows=3)``.

        What is said here goes to the client and may be shown to its user; the program's own log
        is ``logging``. Nothing is sent that the client did not ask for.
        """
        return Log(self._inbound.caller, self._logged, redact=self._facilities.redact)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far this has come, if the client wants to know.

        Args:
            progress: how far; what does not exceed the value before is not sent.
            total: how far it will go, if known.
            message: the same in words.
        """
        token = self._inbound.progress_token
        if token is None or self._notes.over or self._asker.silent:
            return
        # spec 2026-07-28 basic/patterns/progress#progress-flow: MUST increase each time
        if not self._notes.progress < progress < INFINITE:
            return  # and what is no number has no form in JSON
        self._notes.progress = progress
        params = ProgressParams(
            progress_token=token,
            progress=progress,
            total=UNSET if total is None or not abs(total) < INFINITE else total,
            message=UNSET if message is None else without_surrogates(message),
        )
        await self._notes.report(params)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell everybody who subscribed to a resource that it changed."""
        self._facilities.changes.updated(uri)

    async def notify(self, method: str, params: Struct | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own, ahead of the answer.

        Args:
            method: its method, with a prefix of yours.
            params: a struct or plain data.

        Raises:
            UsageError: the specification has a method of this name.
        """
        check_own(method)
        if not (self._notes.over or self._asker.silent):
            await self._notes.send(method, writable(params))

    def _logged(self, params: LogMessageParams) -> None:
        if not self._asker.silent:
            self._notes.put("notifications/message", params)

    # What happens once

    @overload
    async def once(
        self, effect: Callable[..., Awaitable[T]], *args: Any, key: str | None = None
    ) -> T: ...

    @overload
    async def once(self, effect: Callable[..., T], *args: Any, key: str | None = None) -> T: ...

    async def once(self, effect: Callable[..., Any], *args: Any, key: str | None = None) -> Any:
        """Do something that must happen once, however often the body runs.

        What it gave is written down and handed to every later run: it must be plain data, and
        comes back as the type the function is annotated to return. So is the exception it
        raised. What has begun is finished, even if nobody waits for it any more.

        Args:
            effect: what to do; a plain function runs in a worker thread.
            args: what to call it with.
            key: what it is known by from run to run, instead of its name and arguments.

        Raises:
            UsageError: what it gave cannot be written down.
            Exception: whatever it raised.
        """
        return await self._asker.once(effect, args, key)

    async def start_task(self, message: str | None = None) -> bool:  # noqa: ARG002 - for tasks
        """Go on as a task, where the tool has ``task_starts="in_body"``: the call is answered now.

        Questions put before this are part of the call, those after it part of the task.

        Args:
            message: how the task stands, in words.

        Returns:
            Whether this is a task now; where the client can have none, it goes on as a call.

        Raises:
            Refuse: the server has too many tasks.
        """
        return False

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The answers to the questions of an ``InputRequiredResult`` that was returned, by key."""
        return {
            key: msgspec.json.decode(value) if isinstance(value, Raw) else value
            for key, value in self._responses.items()
        }

    # In plain functions

    @property
    def cancelled(self) -> bool:
        """The call was given up: a plain function that runs long looks here, and returns."""
        return self._leave.given

    def check_cancelled(self) -> None:
        """Leave, if the call was given up.

        Raises:
            asyncio.CancelledError: it was.
        """
        if self._leave.given:
            raise asyncio.CancelledError

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for something asynchronous, in a plain function: ``ctx.wait(ctx.elicit(…))``.

        Raises:
            UsageError: this is not a worker thread, and waiting would stop the event loop.
            asyncio.CancelledError: the call was given up, or goes on in another round.
        """
        if self._notes.here:
            if isinstance(awaitable, Coroutine):
                awaitable.close()
            raise UsageError("ctx.wait blocks its thread: in an async function, use await")
        return self._leave.block(self._notes.loop, awaitable)

    @property
    def leave(self) -> Leave:
        """How a function in a thread hears that its call is over."""
        return self._leave
