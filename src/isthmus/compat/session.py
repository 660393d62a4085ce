"""Session and request of ``mcp``'s handlers: what they send and ask, done by isthmus' context."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.compat import types
from isthmus.compat.outputs import dump_wire
from isthmus.errors import CapabilityMissing, Refused
from isthmus.server.asking.context import Context as CallContext
from isthmus.wire import (
    ClientCapabilities,
    CreateMessageParams,
    ElicitParams,
    ListRootsParams,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import read_meta

if TYPE_CHECKING:
    from isthmus.compat.engine import Backend
    from isthmus.runtime.inbound import Inbound


class RequestMeta(dict[str, Any]):
    """The ``_meta`` of a request, with its members as attributes, as in ``mcp`` 1.x."""

    def __getattr__(self, name: str) -> Any:
        """A member by its name of either version; None for what was not sent."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get("progressToken" if name == "progress_token" else name)


class ForeignRequest:
    """A request on its way to a handler of another library.

    Args:
        backend: the server that serves it.
        inbound: the request.

    Attributes:
        backend, inbound: see there.
        context: what its handler may ask and send with; None where it declared no context.
    """

    __slots__ = ("_session", "backend", "context", "inbound")

    def __init__(self, backend: "Backend", inbound: "Inbound") -> None:
        self.backend = backend
        self.inbound = inbound
        self.context: CallContext[Any] | None = None
        self._session: ServerSession | None = None

    @property
    def session(self) -> "ServerSession":
        """The session of the client that sent it."""
        if self._session is None:
            self._session = ServerSession(self)
        return self._session

    @property
    def meta(self) -> RequestMeta:
        """The ``_meta`` of the request."""
        return RequestMeta(read_meta(self.inbound.params))

    def make_context(self) -> "ServerRequestContext":
        """The request as ``mcp`` tells its handlers of it."""
        inbound = self.inbound
        params = None if inbound.params is None else msgspec.json.decode(inbound.params)
        return ServerRequestContext(
            session=self.session,
            lifespan_context=self.backend.lifespan_value,
            protocol_version=inbound.caller.revision.name,
            method=inbound.method,
            params=params,
            request_id=inbound.id,
            meta=self.meta or None,
            request=HttpHeaders(inbound.origin.headers) if inbound.origin.headers else None,
        )


# The request that is being served.
REQUEST: ContextVar[ForeignRequest] = ContextVar("isthmus_compat_request")


@dataclass
class HttpHeaders:
    """What is known of an HTTP request: its headers.

    Attributes:
        headers: by name.
    """

    headers: Mapping[str, str]


@dataclass
class ServerRequestContext:
    """The request as ``mcp`` tells its handlers of it.

    Attributes:
        session: the session of the client that sent it.
        lifespan_context: what the server's lifespan gave.
        protocol_version: the revision of the request.
        method: its method.
        params: its params as they came, or None.
        request_id: its id.
        meta: its ``_meta``.
        request: the HTTP request, as far as it is known; None over stdio.
        close_sse_stream: None: ``Context.close_sse_stream`` does it.
        close_standalone_sse_stream: None.
    """

    session: Any
    lifespan_context: Any = None
    protocol_version: str = ""
    method: str = ""
    params: Any = None
    request_id: Any = None
    meta: Any = None
    request: Any = None
    close_sse_stream: Any = None
    close_standalone_sse_stream: Any = None
    experimental: Any = None

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls


RequestContext = ServerRequestContext  # as 1.x calls it
HandlerResult = Any
ProgressFnT = Callable[[float, float | None, str | None], Awaitable[None]]
CallNext = Callable[[Any], Awaitable[Any]]


class RequestResponder:
    """The type of a question at a client's ``message_handler``, for annotations: isthmus answers by itself."""

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls


class ServerMiddleware:
    """The type of a layer around handlers, for annotations: ``async (ctx, call_next)``."""

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls


class ServerSession:
    """The session of a client, as ``mcp``'s handlers use it.

    Args:
        request: the request in whose course it is used.
    """

    def __init__(self, request: ForeignRequest) -> None:
        self._request = request

    @property
    def _context(self) -> CallContext[Any]:
        context = self._request.context
        if context is None:
            raise RuntimeError(
                "the client cannot be reached from here: ask and report in a tool, a prompt or a resource"
            )
        return context

    # What is known of the client

    @property
    def client_params(self) -> Any:
        """What the client said of itself when it began."""
        caller = self._request.inbound.caller
        info = caller.info
        return types.InitializeRequestParams(
            protocol_version=caller.revision.name,
            capabilities=self.client_capabilities,
            client_info=types.Implementation(
                name=info.name if info else "", version=info.version if info else ""
            ),
        )

    @property
    def client_capabilities(self) -> Any:
        """What the client can do."""
        return types.ClientCapabilities.model_validate_json(
            encode(self._request.inbound.caller.capabilities)
        )

    @property
    def protocol_version(self) -> str:
        """The revision of the request."""
        return self._request.inbound.caller.revision.name

    def check_client_capability(self, capability: Any) -> bool:
        """Whether the client has capabilities."""
        wanted = capability.model_dump(by_alias=True, exclude_none=True)
        has: ClientCapabilities = self._request.inbound.caller.capabilities
        return _covers(msgspec.to_builtins(has), wanted)

    # Notifications

    async def send_log_message(
        self,
        level: Any,
        data: Any,
        logger: str | None = None,
        related_request_id: Any = None,
    ) -> None:
        """Send a log message, if the client wants its level."""
        del related_request_id
        log = self._context.log.with_default("debug")  # the other libraries send every level
        if logger is not None:
            log = log.named(logger)
        log(level, data)

    async def send_progress_notification(
        self,
        progress_token: Any,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        related_request_id: Any = None,
    ) -> None:
        """Say how far the request has come."""
        del progress_token, related_request_id
        await self.report_progress(progress, total, message)

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the request has come, if the client wants to know."""
        await self._context.progress(progress, total, message)

    async def send_resource_updated(self, uri: Any) -> None:
        """Tell everybody who subscribed to a resource that it changed."""
        self._request.backend.announce(("notifications/resources/updated", str(uri)))

    async def send_resource_list_changed(self) -> None:
        """Tell everybody that the list of resources changed."""
        self._request.backend.announce(("notifications/resources/list_changed", None))

    async def send_tool_list_changed(self) -> None:
        """Tell everybody that the list of tools changed."""
        self._request.backend.announce(("notifications/tools/list_changed", None))

    async def send_prompt_list_changed(self) -> None:
        """Tell everybody that the list of prompts changed."""
        self._request.backend.announce(("notifications/prompts/list_changed", None))

    # Questions

    async def elicit(
        self,
        message: str,
        requested_schema: Any = None,
        related_request_id: Any = None,
        **given: Any,
    ) -> Any:
        """Ask the user to fill in a form."""
        return await self.elicit_form(
            message, requested_schema or given.get("requestedSchema"), related_request_id
        )

    async def elicit_form(
        self, message: str, requested_schema: Any, related_request_id: Any = None
    ) -> Any:
        """Ask the user to fill in a form."""
        del related_request_id
        params = ElicitParams(message=message, mode="form", requested_schema=requested_schema)
        return await self._ask("elicitation/create", params, types.ElicitResult)

    async def elicit_url(
        self, message: str, url: str, elicitation_id: str, related_request_id: Any = None
    ) -> Any:
        """Ask the user to visit a page."""
        del related_request_id
        params = ElicitParams(message=message, mode="url", url=url, elicitation_id=elicitation_id)
        return await self._ask("elicitation/create", params, types.ElicitResult)

    async def create_message(self, messages: Any, *, max_tokens: int, **given: Any) -> Any:
        """Have the client's model write a message."""
        given.pop("related_request_id", None)
        asked = types.CreateMessageRequestParams(messages=messages, max_tokens=max_tokens, **given)
        params = msgspec.json.decode(dump_wire(asked), type=CreateMessageParams)
        return await self._ask("sampling/createMessage", params, types.CreateMessageResult)

    async def list_roots(self) -> Any:
        """Ask where the client lets the server work."""
        return await self._ask("roots/list", ListRootsParams(), types.ListRootsResult)

    async def send_ping(self) -> Any:
        """See whether the client is there."""
        await self._context.ping()
        return types.EmptyResult()

    async def _ask(self, method: str, params: Any, result: Any) -> Any:
        """Ask the client.

        Raises:
            MCPError: it cannot, or refuses.
        """
        from isthmus.compat.exceptions import MCPError

        try:
            answer = await self._context._ask(method, params, None)  # noqa: SLF001 - its public questions have forms of their own
        except Refused as no:
            raise MCPError(no.code, no.message, no.data) from no
        except CapabilityMissing as lack:
            raise MCPError(types.INVALID_REQUEST, str(lack)) from lack
        return result.model_validate_json(encode(answer))


def _covers(has: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return bool(has == wanted)
    return isinstance(has, dict) and all(
        key in has and _covers(has[key], value) for key, value in wanted.items()
    )
