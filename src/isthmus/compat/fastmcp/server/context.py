"""Context of a request, under the names of ``fastmcp.server.context``; isthmus' context is below it."""

import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from isthmus.compat.fastmcp.components.component import dump_model
from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.outputs import read_responses
from isthmus.core.answers import Accepted, Declined
from isthmus.errors import IsthmusError, UsageError
from isthmus.wire import ModelPreferences, SamplingMessage

if TYPE_CHECKING:
    from isthmus.compat.fastmcp.server.server import FastMCP
    from isthmus.server.asking.context import Context as OwnContext

CURRENT: ContextVar["Context | None"] = ContextVar("fastmcp_context", default=None)

logger = logging.getLogger("fastmcp.server.context.to_client")

PYTHON_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
}


def find_context() -> "Context | None":
    """The context of the request that is served; None outside of one."""
    return CURRENT.get()


def get_context() -> "Context":
    """The context of the request that is served.

    Raises:
        RuntimeError: none is.
    """
    context = CURRENT.get()
    if context is None:
        raise RuntimeError("No active context found.")
    return context


class RequestFacts:
    """Facts of a request: ``ctx.request_context``.

    Args:
        context: the context.
    """

    def __init__(self, context: "Context") -> None:
        own = context.own
        self.request_id = own.request_id
        self.session = ClientSession(context)
        self.lifespan_context = context.lifespan_context
        self.meta: Any = RequestMeta(own.meta) if own.meta else None
        self.request = context.find_request()


class RequestMeta(dict[str, Any]):
    """Meta of a request, its members as attributes, too."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


class ClientSession:
    """The side that sent a request: ``ctx.session``.

    Args:
        context: the context.
    """

    def __init__(self, context: "Context") -> None:
        self._context = context

    @property
    def client_params(self) -> Any:
        """What the client said of itself."""
        own = self._context.own
        return load_types().InitializeRequestParams.model_validate(
            {
                "protocolVersion": own.revision.name,
                "capabilities": dump_model(own.capabilities),
                "clientInfo": dump_model(own.client) or {"name": "", "version": ""},
            }
        )

    async def send_log_message(
        self, level: str, data: Any, logger: str | None = None, **_: Any
    ) -> None:
        """Send a log message."""
        send_log(self._context.own, level, data, logger)

    async def send_tool_list_changed(self) -> None:
        """Say that the list of tools changed: what is added and removed says so by itself."""

    async def send_resource_list_changed(self) -> None:
        """Say that the list of resources changed: what is added and removed says so by itself."""

    async def send_prompt_list_changed(self) -> None:
        """Say that the list of prompts changed: what is added and removed says so by itself."""

    async def send_resource_updated(self, uri: Any) -> None:
        """Say that a resource changed."""
        self._context.own.notify_resource_updated(str(uri))

    async def list_roots(self) -> Any:
        """Ask for the client's roots."""
        return load_types().ListRootsResult(roots=await self._context.list_roots())

    async def create_message(self, messages: Sequence[Any], *, max_tokens: int, **rest: Any) -> Any:
        """Have the client's model write a message."""
        return await self._context.ask_model(messages, max_tokens, **rest)


class Context:
    """Context of a request of a server written for fastmcp: ``ctx.info``, ``ctx.report_progress``, ``ctx.elicit``.

    Args:
        fastmcp: the server.
        own: the context of isthmus; None outside of a request.
        link: the way back to who sent it.
        task_id: the task that the request has become; None for none.
    """

    is_fastmcp_context = True

    def __init__(
        self,
        fastmcp: "FastMCP",
        own: "OwnContext[Any] | None" = None,
        link: Any = None,
        task_id: str | None = None,
    ) -> None:
        self.fastmcp = fastmcp
        self._own = own
        self._link = link
        self._task_id = task_id
        self._tokens: list[Token[Context | None]] = []
        self._values: dict[str, Any] = {}
        self._questions: list[str] = []

    async def __aenter__(self) -> Self:
        outer = CURRENT.get()
        if outer is not None:
            self._inherit(outer.__dict__)
        self._tokens.append(CURRENT.set(self))
        return self

    def _inherit(self, outer: Mapping[str, Any]) -> None:
        """Take over the request of the context around this one."""
        self._own, self._link = self._own or outer["_own"], self._link or outer["_link"]
        self._task_id = self._task_id or outer["_task_id"]
        self._values, self._questions = outer["_values"], outer["_questions"]

    async def __aexit__(self, *_: object) -> None:
        CURRENT.reset(self._tokens.pop())

    @property
    def own(self) -> "OwnContext[Any]":
        """The context of isthmus.

        Raises:
            RuntimeError: no request is served.
        """
        if self._own is None:
            raise RuntimeError(
                "session is not available because the MCP session has not been established yet."
            )
        return self._own

    @property
    def has_asked(self) -> bool:
        """Whether the client has been asked something while this request was served."""
        return bool(self._questions)

    def find_own(self) -> "OwnContext[Any] | None":
        """The context of isthmus; None outside of a request."""
        return self._own

    # Who asks

    @property
    def request_context(self) -> RequestFacts | None:
        """Facts of the request; None outside of one."""
        return None if self._own is None else RequestFacts(self)

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return str(self.own.request_id)

    @property
    def origin_request_id(self) -> str | None:
        """The id of the request; None outside of one."""
        return None if self._own is None else self.request_id

    @property
    def client_id(self) -> str | None:
        """What the client calls itself in the request's meta."""
        client: str | None = self.own.meta.get("client_id")
        return client

    @property
    def session_id(self) -> str:
        """An id that lasts as long as the connection, or the session over HTTP."""
        return self.own.headers.get("mcp-session-id") or self.fastmcp.sessions.find_id(self._link)

    @property
    def session(self) -> ClientSession:
        """The side that sent the request."""
        self.own  # noqa: B018 - outside of a request there is none
        return ClientSession(self)

    @property
    def transport(self) -> str | None:
        """What the server is run over."""
        return self.fastmcp.transport

    @property
    def lifespan_context(self) -> Any:
        """What the lifespan gave."""
        return self.fastmcp.lifespan_value or {}

    @property
    def is_background_task(self) -> bool:
        """Whether this runs as a task."""
        return self._task_id is not None

    @property
    def task_id(self) -> str | None:
        """The task that this runs as; None for none."""
        return self._task_id

    @property
    def input_responses(self) -> Any:
        """What was answered to questions that the tool returned (2026-07-28)."""
        return None if self._own is None else read_responses(self._own.input_responses)

    @property
    def request_state(self) -> str | None:
        """What the tool gave the client to bring again (2026-07-28)."""
        return None if self._own is None else self._own.request_state

    def find_request(self) -> Any:
        """The HTTP request as starlette has it; None where it did not come over HTTP."""
        from isthmus.compat.fastmcp.server.dependencies import find_http_request

        return find_http_request()

    def get_http_request(self) -> Any:
        """The HTTP request as starlette has it (2.x)."""
        from isthmus.compat.fastmcp.server.dependencies import get_http_request

        return get_http_request()

    # Telling

    async def log(
        self,
        message: str,
        level: Any = None,
        logger_name: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Send a log message to the client, if it wants that level."""
        level = level or "info"
        logger.log(PYTHON_LEVELS.get(level, logging.ERROR), "%s", message)
        send_log(self.own, level, {"msg": message, "extra": extra}, logger_name)

    async def debug(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Send a message of level ``debug``."""
        await self.log(message, "debug", logger_name, extra)

    async def info(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Send a message of level ``info``."""
        await self.log(message, "info", logger_name, extra)

    async def warning(
        self, message: str, logger_name: str | None = None, extra: Any = None
    ) -> None:
        """Send a message of level ``warning``."""
        await self.log(message, "warning", logger_name, extra)

    async def error(self, message: str, logger_name: str | None = None, extra: Any = None) -> None:
        """Send a message of level ``error``."""
        await self.log(message, "error", logger_name, extra)

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the call has come, if the client wants to know."""
        await self.own.progress(progress, total, message)

    async def send_notification(self, notification: Any) -> None:
        """Send a notification of one's own."""
        told = dump_model(notification)
        if (
            not str(told["method"]).startswith("notifications/")
            or "list_changed" not in told["method"]
        ):
            await self.own.notify(told["method"], told.get("params"))

    # Asking

    async def elicit(
        self,
        message: str,
        response_type: Any = None,
        *,
        response_title: str | None = None,
        response_description: str | None = None,
    ) -> Any:
        """Ask the user to fill in a form; gives an ``AcceptedElicitation``, or declined or cancelled."""
        from isthmus.compat.fastmcp.server import elicitation

        form = elicitation.make_form(response_type, response_title, response_description)
        self._questions.append("elicitation/create")
        answer = await self.own.elicit(message, form.schema)
        if isinstance(answer, Accepted):
            return elicitation.AcceptedElicitation(data=form.read(answer.value))
        if isinstance(answer, Declined):
            return elicitation.DeclinedElicitation()
        return elicitation.CancelledElicitation()

    async def sample(
        self,
        messages: Any,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_preferences: Any = None,
        **others: Any,
    ) -> Any:
        """Have the client's model write a message; gives its content.

        Raises:
            NotImplementedError: tools or a result type are asked for.
        """
        if unknown := {key for key, one in others.items() if one is not None}:
            raise NotImplementedError(
                f"ctx.sample of isthmus.compat.fastmcp lacks {', '.join(sorted(unknown))}: use ctx.sample of isthmus "
                "(docs/guide/from-fastmcp.md)"
            )
        result = await self.ask_model(
            messages, max_tokens or 512, system_prompt=system_prompt, temperature=temperature,
            model_preferences=model_preferences,
        )  # fmt: skip
        return result.content

    async def ask_model(
        self,
        messages: Any,
        max_tokens: int,
        *,
        system_prompt: str | None = None,
        temperature: float | None = None,
        model_preferences: Any = None,
        **_: Any,
    ) -> Any:
        """Have the client's model write a message; gives a ``CreateMessageResult``."""
        listed = [messages] if isinstance(messages, str) else list(messages)
        self._questions.append("sampling/createMessage")
        sampled = await self.own.sample(
            [one if isinstance(one, str) else to_sampling_message(one) for one in listed],
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            temperature=temperature,
            model=to_preferences(model_preferences),
        )
        return load_types().CreateMessageResult.model_validate(
            {
                "role": sampled.role,
                "model": sampled.model,
                "stopReason": sampled.stop_reason,
                "content": dump_model(sampled.content[0])
                if sampled.content
                else {"type": "text", "text": ""},
            }
        )

    async def list_roots(self) -> list[Any]:
        """Ask where the client lets this server work."""
        self._questions.append("roots/list")
        root = load_types().Root
        return [root.model_validate(dump_model(one)) for one in await self.own.roots()]

    # The server's own

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource of this server."""
        return await self.fastmcp.read_resource(str(uri))

    async def list_resources(self) -> list[Any]:
        """The resources of this server."""
        return [one.to_mcp_resource() for one in await self.fastmcp.list_resources()]

    async def list_prompts(self) -> list[Any]:
        """The prompts of this server."""
        return [one.to_mcp_prompt() for one in await self.fastmcp.list_prompts()]

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Render a prompt of this server."""
        return (await self.fastmcp.render_prompt(name, arguments)).to_mcp_prompt_result()

    # State

    async def set_state(self, key: str, value: Any, *, serializable: bool = True) -> None:
        """Keep a value for the session, or for this request alone where it has no form in JSON."""
        self._values.pop(key, None)
        if not serializable or self._own is None:
            self._values[key] = value
            return
        try:
            await self._own.session.set(key, value)
        except UsageError as error:
            raise TypeError(
                f"Value for state key {key!r} is not serializable. Use set_state({key!r}, value, serializable=False)"
            ) from error

    async def get_state(self, key: str) -> Any:
        """The value that was kept; None for none."""
        if key in self._values or self._own is None:
            return self._values.get(key)
        try:
            return await self._own.session.get(key)
        except IsthmusError:  # an anonymous caller over HTTP has nothing kept
            return None

    async def delete_state(self, key: str) -> None:
        """Forget a value."""
        self._values.pop(key, None)
        if self._own is not None:
            await self._own.session.delete(key)


def send_log(own: "OwnContext[Any]", level: Any, data: Any, name: str | None) -> None:
    """Send a log message under the name of a logger, if there is one."""
    log = own.log.with_default("debug")  # fastmcp sends every level
    if name is not None:
        log = log.named(name)
    log(level, data)


TransportType = Literal["stdio", "sse", "streamable-http"]


def to_sampling_message(message: Any) -> Any:
    """A message of ``mcp.types`` as isthmus asks with it."""
    return msgspec.convert(dump_model(message), SamplingMessage)


def to_preferences(given: Any) -> Any:
    """Preferences of models as isthmus asks with them; names stay as they are."""
    if given is None or isinstance(given, str | list):
        return given
    return msgspec.convert(dump_model(given), ModelPreferences)
