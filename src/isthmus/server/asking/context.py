"""The context of a call: who calls, and what its function may ask, say and do once."""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs
from typing_extensions import TypeVar as TypeVarWithDefault

from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.encoding import make_encodable, replace_surrogates
from isthmus.core.extensions import check_own_method, find_settings
from isthmus.core.principal import Principal
from isthmus.core.trace import TraceContext, parse_trace
from isthmus.errors import (
    CapabilityMissing,
    Misbehaved,
    NotInRevision,
    Refuse,
    ToolError,
    UpstreamRequired,
    UsageError,
)
from isthmus.revisions import METHODS, Revision
from isthmus.revisions.codes import UNAUTHENTICATED_CODE
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.logging import ClientLog
from isthmus.server.asking.notifications import CallNotifications
from isthmus.server.serve.workers import CallCancellation
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    ClientCapabilities,
    CreateMessageParams,
    ElicitParams,
    ElicitResult,
    Implementation,
    ListRootsParams,
    LogMessageParams,
    ModelPreferences,
    PingParams,
    ProgressParams,
    Root,
    TaskMetadata,
    Tool,
    ToolChoice,
)
from isthmus.wire.meta import read_meta
from isthmus.wire.struct import Id, Meta, Wire

if TYPE_CHECKING:
    from isthmus.server.asking.askers import Asker
    from isthmus.server.asking.sampling import SampledMessage, SamplingInput
    from isthmus.server.asking.session_state import SessionState
    from isthmus.wire import ReadResourceResult

# Every server has this class, and few ask: what a question takes is imported when one is asked.

T = TypeVar("T")
StateT = TypeVarWithDefault("StateT", default=Any)

CONNECT_TIMEOUT_S = 45.0  # for a user in the browser: less than clients wait for a call
_NO_RESPONSES: Mapping[str, Any] = {}


class Context(Generic[StateT]):
    """The call a function serves, and what it may do about it.

    ``Context[Database]`` tells type checkers that ``ctx.state`` is a ``Database``; any other use is the same.

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

    __slots__ = (
        "_asker",
        "_inbound",
        "_leave",
        "_meta",
        "_notes",
        "_responses",
        "_settings",
        "request_state",
    )  # fmt: skip

    def __init__(
        self,
        inbound: Inbound,
        settings: SharedSettings,
        asker: "Asker",
        notes: CallNotifications,
        *,
        responses: Mapping[str, Any] = _NO_RESPONSES,
        request_state: str | None = None,
        leave: CallCancellation | None = None,
    ) -> None:
        self._notes = notes
        self.request_state = request_state
        self._inbound = inbound
        self._settings = settings
        self._asker = asker
        self._responses = responses
        self._leave = leave or CallCancellation()
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
        """The capabilities that the client declared."""
        return self._inbound.caller.capabilities

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller, or None; a parameter of this type is filled with it, too.

        It is what the token says that came with this request, and never what a client says of
        itself. The token is not in it.
        """
        return self._inbound.principal  # type: ignore[no-any-return]  # transports give nothing else

    @property
    def authenticated(self) -> Principal:
        """The authenticated caller, where there must be one.

        Raises:
            Refuse: nobody has.
        """
        principal = self.principal
        if principal is None:
            raise Refuse(
                UNAUTHENTICATED_CODE,
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
            A :class:`~isthmus.auth.authorization_server.upstream.api.Upstream`.

        Raises:
            UsageError: the server has no authorization, or no such provider.
            Refuse: nobody has authenticated.
            ToolError: no account was connected, or the service does not answer.
        """
        auth, caller = self._settings.upstreams, self.authenticated
        if auth is None:
            raise UsageError(
                "ctx.upstream takes Server(auth=…), whose users have accounts elsewhere"
            )
        try:
            return await auth.upstream(caller, name)
        except UpstreamRequired as lack:
            need = lack.with_traceback(None)  # without the frames, of which this is one
        # The body runs again after the answer: the same page is asked for, no second one is made.
        url = await self.once(need.page, key=f"upstream {name}")
        await self._ask_to_connect(need, url, name)
        return await auth.upstream(caller, name)

    @property
    def origin(self) -> Origin:
        """The origin of the request: transport, headers and session."""
        return self._inbound.origin

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's headers by lower-case name; empty on other transports."""
        return self._inbound.origin.headers

    @property
    def meta(self) -> Meta:
        """The whole ``_meta`` of the request."""
        if self._meta is None:
            self._meta = read_meta(self._inbound.params)
        return self._meta

    @property
    def trace(self) -> TraceContext | None:
        """The trace the request belongs to (W3C Trace Context), or None.

        What is asked of the client goes on in it; ``ctx.trace.members()`` are the headers that
        carry it on to others.
        """
        return parse_trace(self.meta)

    @property
    def state(self) -> StateT:
        """The value of the server's lifespan, or None where it has no lifespan."""
        return self._settings.state  # type: ignore[no-any-return]  # what the author says

    @property
    def session(self) -> "SessionState":
        """Values kept for the caller between calls: ``await ctx.session.get("cart", [])``.

        They belong to the session, or since 2026-07-28 to the principal who authenticated; an anonymous caller
        over HTTP has none then, and the call is refused.
        """
        from isthmus.server.asking.session_state import SessionState  # few servers keep any

        return SessionState(self._inbound, self._settings)

    # Asking the client: its user, its model, its roots

    @overload
    async def elicit(
        self, message: str, schema: None = None, *, key: str | None = None, task: bool = False
    ) -> Answer[None]: ...

    @overload
    async def elicit(
        self, message: str, schema: type[T], *, key: str | None = None, task: bool = False
    ) -> Answer[T]: ...

    @overload
    async def elicit(
        self, message: str, schema: Any, *, key: str | None = None, task: bool = False
    ) -> Answer[Any]: ...

    async def elicit(
        self, message: str, schema: Any = None, *, key: str | None = None, task: bool = False
    ) -> Answer[Any]:
        """Ask the user to fill in a form (``elicitation/create``).

        Never ask for passwords or keys this way: the client sees the answer. Use
        :meth:`elicit_url` (spec 2026-07-28 client/elicitation).

        Args:
            message: the question.
            schema: a class with the blanks as fields; or ``bool``, ``str``, a number, an enum or
                a ``Literal`` for one blank; or a JSON Schema, whose answer is a dict; or None
                to ask for consent alone.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Returns:
            ``Accepted(value)``, ``Declined()`` or ``Cancelled()``.

        Raises:
            CapabilityMissing: the client shows no forms.
            UsageError: a form cannot have such a blank.
            Misbehaved: the answer does not fit the form; the call is refused with the reason if
                nobody catches it.
            TaskCancelled: the client cancelled the task it made of it.
        """
        form = _load_make_form()(schema)
        method = "elicitation/create"
        params = ElicitParams(
            message=message,
            mode="form",
            requested_schema=form.schema,
            task=_make_task_metadata(task),
        )
        raw: bytes | Raw | None = self._asker.recall(method, params)
        if raw is None:
            raw = await self._put(method, params, key)
        else:
            accepted: Accepted[Any] | None = form.read_plain(raw)
            if accepted is not None:
                return accepted
        result: ElicitResult = self._read(method, raw)
        if result.action == "accept":
            try:
                return Accepted(form.read(result.content or {}))
            except Misbehaved as misfit:
                raise self._asker.make_misfit(method, misfit) from misfit
        return Declined() if result.action == "decline" else Cancelled()

    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        elicitation_id: str | None = None,
        key: str | None = None,
        task: bool = False,
    ) -> Answer[None]:
        """Ask the user to open a page, for data that must not pass through the client.

        Args:
            message: why.
            url: the page. Whoever opens it must be the one who is asked: see the specification's
                safe URL handling.
            elicitation_id: what 2025-11-25 calls it by, and what to give
                ``Server.notify_elicitation_complete`` afterwards; made up if not given.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Returns:
            ``Accepted(None)`` says that the user agreed to open it, not that anything was done
            there.

        Raises:
            CapabilityMissing: the client opens no pages.
            TaskCancelled: the client cancelled the task it made of it.
        """
        from isthmus.server.asking.requirements import require_askable

        params = ElicitParams(message=message, mode="url", url=url, task=_make_task_metadata(task))
        require_askable(self._inbound.caller, "elicitation/create", params)
        if self._inbound.caller.revision.allows("server", "notifications/elicitation/complete"):
            id = elicitation_id or os.urandom(16).hex()
            params = structs.replace(params, elicitation_id=id)
            self._settings.changes.add_page(self._inbound.link, id)
        result: ElicitResult = await self._ask("elicitation/create", params, key)
        if result.action == "accept":
            return Accepted(None)
        return Declined() if result.action == "decline" else Cancelled()

    async def sample(
        self,
        messages: "SamplingInput | Sequence[SamplingInput]",
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model: ModelPreferences | str | Sequence[str] | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        task: bool = False,
    ) -> "SampledMessage":
        """Ask the client's model to write the next message (``sampling/createMessage``).

        Deprecated since 2026-07-28 (SEP-2577); a revision from 2027-07-28 on may remove it. New
        servers call a provider's API themselves.

        Args:
            messages: a prompt, or the conversation so far.
            max_tokens: the most it may write.
            system_prompt: a suggestion; the client may change or drop it.
            model: which would be best: names, the best first, or preferences.
            temperature: on the provider's scale.
            stop_sequences: where it is to stop.
            include_context: whose context to add; left out where the client cannot.
                Deprecated since 2025-11-25 (SEP-2596); a revision from 2027-07-28 on may remove it.
            tools: what the model may ask to have called.
            tool_choice: whether it must.
            metadata: for the provider, in its own format.
            key: a name for the question on the wire, instead of one made up.
            task: let the client make a task of it, where it can (2025-11-25): for questions that
                may take minutes. It is a question as any other elsewhere.

        Raises:
            CapabilityMissing: the client has no model for servers, or none that uses tools.
            TaskCancelled: the client cancelled the task it made of it.
        """
        from isthmus.server.asking import sampling

        params = CreateMessageParams(
            messages=sampling.make_conversation(messages),
            max_tokens=max_tokens,
            system_prompt=sampling.omit_none(system_prompt),
            model_preferences=sampling.make_preferences(model),
            temperature=sampling.omit_none(temperature),
            stop_sequences=UNSET if stop_sequences is None else list(stop_sequences),
            include_context=sampling.choose_context(
                include_context, self._inbound.caller.capabilities
            ),
            tools=UNSET if tools is None else list(tools),
            tool_choice=UNSET if tool_choice is None else ToolChoice(mode=tool_choice),
            metadata=UNSET if metadata is None else dict(metadata),
            task=_make_task_metadata(task),
        )
        return sampling.SampledMessage(await self._ask("sampling/createMessage", params, key))

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask the client for its roots, the places where this server may work (``roots/list``).

        Deprecated since 2026-07-28 (SEP-2577); a revision from 2027-07-28 on may remove it. New
        servers take folders as arguments of tools, or of their own command.

        Args:
            key: a name for the question on the wire, instead of one made up.

        Raises:
            CapabilityMissing: the client has no roots.
        """
        roots: list[Root] = (await self._ask("roots/list", ListRootsParams(), key)).roots
        return roots

    # Extensions, and requests of one's own

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings that the client declared for an extension; None if it declared none.

        Args:
            identifier: name of the extension, as ``io.modelcontextprotocol/ui``.
        """
        return find_settings(self.capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings that the client declared for an extension.

        Args:
            identifier: name of the extension, as ``io.modelcontextprotocol/ui``.

        Raises:
            CapabilityMissing: it did not declare it; since 2026-07-28 a call that lets this pass
                is refused with -32021.
        """
        settings = find_settings(self.capabilities, identifier)
        if settings is None:
            raise CapabilityMissing(
                f"the client did not declare the extension {identifier}",
                {"extensions": {identifier: {}}},
            )
        return settings

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
        check_own_method(method)
        if not self.revision.allows("server", "ping"):  # where servers may ping, they may request
            raise NotInRevision(f"revision {self.revision.name} has no requests of servers")
        inbound = self._inbound
        if inbound.record is not None:
            inbound.record.asked = True
        answer: T = await inbound.link.call(
            method, make_encodable(params), result, relates_to=inbound.id, timeout=timeout
        )
        return answer

    async def ping(self, *, timeout: float | None = 10.0) -> float:
        """Ask the client whether it still answers (``ping``, up to 2025-11-25).

        Args:
            timeout: seconds without an answer; None waits as long as the call lasts.

        Returns:
            The seconds until it answered.

        Raises:
            NotInRevision: since 2026-07-28 servers send no requests; who hangs up is noticed.
            CallTimedOut, ConnectionLost: it is gone, or does not answer.
        """
        inbound, revision = self._inbound, self.revision
        if not revision.allows("server", "ping"):
            raise NotInRevision(f"revision {revision.name} has no pings of servers")
        begun = time.monotonic()
        await inbound.link.call("ping", PingParams(), Raw, relates_to=inbound.id, timeout=timeout)
        return time.monotonic() - begun

    # Telling

    @property
    def log(self) -> ClientLog:
        """Log messages to the client: ``ctx.log.info("done", rows=3)``.

        What is said here goes to the client and may be shown to its user; the program's own log
        is ``logging``. Nothing is sent that the client did not ask for.

        Deprecated since 2026-07-28 (SEP-2577); a revision from 2027-07-28 on may remove it. New
        servers log to stderr, or by OpenTelemetry.
        """
        return ClientLog(self._inbound.caller, self._send_log, redact=self._settings.redact)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress of this call, if the client asked for it (``notifications/progress``).

        Args:
            progress: how far; what does not exceed the value before is not sent.
            total: how far it will go, if known.
            message: the same in words.
        """
        token = self._inbound.progress_token
        if token is None or self._notes.over or self._asker.silent:
            return
        # spec 2026-07-28 basic/patterns/progress#progress-flow: MUST increase each time
        if not self._notes.progress < progress < math.inf:
            return  # and what is no number has no form in JSON
        self._notes.progress = progress
        params = ProgressParams(
            progress_token=token,
            progress=progress,
            total=UNSET if total is None or not abs(total) < math.inf else total,
            message=UNSET if message is None else replace_surrogates(message),
        )
        await self._notes.report(params)

    async def read_resource(self, uri: str) -> "ReadResourceResult":
        """Read a resource of this server, or of one mounted in it, with the rights of the caller.

        Args:
            uri: of a resource, or one that fits a template.

        Raises:
            ToolError: there is no such resource, the caller lacks its scopes, or it refuses.
            UsageError: it asks the user, which only its own reader can answer.
        """
        from isthmus.server.asking.own_resources import read_own_resource  # few tools read any

        return await read_own_resource(uri, self._inbound, self._settings)

    def notify_resource_updated(self, uri: str) -> None:
        """Notify all subscribers of a resource that it changed (``notifications/resources/updated``).

        Args:
            uri: of the resource.
        """
        self._settings.changes.announce_update(uri)

    async def notify(self, method: str, params: Struct | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own, ahead of the answer.

        Args:
            method: its method, with a prefix of yours.
            params: a struct or plain data.

        Raises:
            UsageError: the specification has a method of this name.
        """
        check_own_method(method)
        if not (self._notes.over or self._asker.silent):
            await self._notes.send(method, make_encodable(params))

    async def close_stream(self, *, retry: float | None = None) -> None:
        """Close the connection that the client waits on; the call goes on.

        Over Streamable HTTP in revision 2025-11-25 the client comes back for the rest, answer
        included, as soon as ``retry`` has passed, and waits again. Everywhere else nothing
        happens, so that a tool can say this wherever a long wait begins.

        Args:
            retry: seconds the client is asked to wait until it comes back; None for the
                endpoint's own setting.
        """
        if self._notes.busy:
            await self._notes.drain()
        # spec 2025-11-25 basic/transports#sending-messages-to-the-server: MAY close the connection
        # at any time, without terminating the stream
        let_go = getattr(self._inbound.link, "let_go", None)  # a task's link has no connection
        if let_go is not None:
            await let_go(self._inbound.id, retry)

    # What happens once

    @overload
    async def once(
        self, effect: Callable[..., Awaitable[T]], *args: Any, key: str | None = None
    ) -> T: ...

    @overload
    async def once(self, effect: Callable[..., T], *args: Any, key: str | None = None) -> T: ...

    async def once(self, effect: Callable[..., Any], *args: Any, key: str | None = None) -> Any:
        """Run an effect that must happen once, however often the body runs.

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
        return self._leave.cancelled

    def check_cancelled(self) -> None:
        """Raise ``CancelledError`` if the call was given up.

        Raises:
            asyncio.CancelledError: it was.
        """
        if self._leave.cancelled:
            raise asyncio.CancelledError

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for something asynchronous, in a plain function: ``ctx.wait(ctx.elicit(…))``.

        Args:
            awaitable: a coroutine or another awaitable; it runs in the server's event loop.

        Returns:
            its result.

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
    def leave(self) -> CallCancellation:
        """The cancellation of the call, by which a function in a thread notices that the call is over."""
        return self._leave

    # Inside

    async def _ask(self, method: str, params: Wire, key: str | None) -> Any:
        raw = self._asker.recall(method, params)
        return self._read(method, await self._put(method, params, key) if raw is None else raw)

    async def _put(self, method: str, params: Wire, key: str | None) -> bytes | Raw:
        from isthmus.server.asking.deadline import CALL_DEADLINE  # most calls ask nothing
        from isthmus.server.asking.requirements import require_askable

        require_askable(self._inbound.caller, method, params)
        if self._notes.busy:
            await self._notes.drain()
        deadline = CALL_DEADLINE.get()
        if deadline is None:
            return await self._asker.ask(method, params, key)
        with deadline.hold():
            return await self._asker.ask(method, params, key)

    def _read(self, method: str, raw: bytes | Raw) -> Any:
        try:
            return METHODS[method].decode_result(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._asker.make_misfit(method, error) from error

    async def _ask_to_connect(self, need: UpstreamRequired, url: str, name: str) -> None:
        """Have the user connect an account of a service behind the server.

        Raises:
            ToolError: they did not.
        """
        id = os.urandom(16).hex()
        try:
            answer = await self.elicit_url(
                str(need), url, elicitation_id=id, key=f"upstream.{name}"
            )
        except (CapabilityMissing, NotInRevision):
            # The page lets nobody in but this user, so that it may stand in a result.
            raise ToolError(f"{need} Open {url} in a browser, then call again.") from None
        if not isinstance(answer, Accepted):
            raise ToolError(f"{need} The user did not agree to that.")
        # 2026-07-28, URL mode flow: it may need to block until that is done
        if not await need.connected(CONNECT_TIMEOUT_S):
            raise ToolError(
                f"{need} It has not been done yet: finish it in the browser, then call again."
            )
        self._settings.changes.announce_page_done(id)

    def _send_log(self, params: LogMessageParams) -> None:
        if not self._asker.silent:
            self._notes.put("notifications/message", params)


@cache
def _load_make_form() -> Callable[[Any], Any]:
    from isthmus.server.asking.forms import make_form  # when a call first asks

    return make_form


def _make_task_metadata(task: bool) -> TaskMetadata | UnsetType:
    return TaskMetadata() if task else UNSET


Body: TypeAlias = Callable[[Context], Awaitable[Any]]  # it may run more than once
