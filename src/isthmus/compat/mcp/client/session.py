"""``ClientSession`` of ``mcp`` 2.x and 1.x, on isthmus' client."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import msgspec
from msgspec import Raw

from isthmus.client.client import Client as OwnClient
from isthmus.client.model.schema_validation import SchemaValidator
from isthmus.client.targets import resolve_target, tap_target
from isthmus.compat import types
from isthmus.compat.exceptions import MCPError
from isthmus.compat.mcp.client.callbacks import (
    CALLBACK_WAITS,
    NotificationTap,
    answer_question,
)
from isthmus.compat.mcp.client.streams import check_stream
from isthmus.compat.placement import COMMAND_LINE
from isthmus.errors import (
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Misbehaved,
    NotInRevision,
    OutOfPhase,
    Refuse,
    Refused,
    UsageError,
)
from isthmus.wire.jsonrpc import encode

CONNECT_TIMEOUT_S = 30.0
MAX_CALL_S = 86_400.0  # of a call without a limit of its own
OLD_REQUEST_TIMEOUT = 408  # code of 1.x, which takes the time as a timedelta

log = logging.getLogger("isthmus.compat")

# Types of callbacks, for annotations.
SamplingFnT = ElicitationFnT = ListRootsFnT = LoggingFnT = MessageHandlerFnT = Callable[..., Any]


@dataclass(kw_only=True)
class ClientRequestContext:
    """A question of the server's, as its callback is told of it.

    Attributes:
        session: the session that it came over.
        request_id: its id; 0, since isthmus answers by itself.
        meta: its ``_meta``, or None.
        lifespan_context: None.
    """

    session: Any
    request_id: Any = 0
    meta: Any = None
    lifespan_context: Any = None


class ClientSession:
    """Session of a client with one server: ``async with ClientSession(read, write) as session``.

    Args:
        read_stream, write_stream: what one of the client transports gave.
        read_timeout_seconds: seconds, or a ``timedelta``, that a call may take.
        sampling_callback, elicitation_callback, list_roots_callback: answer the server's questions.
        logging_callback: told of log messages.
        message_handler: told of every notification.
        client_info: who the client is.
        log_level: the least severe log messages wanted, since 2026-07-28.
        sampling_capabilities: more that the model may be given.
        extensions: settings by identifier.
        **others: of the libraries, for what isthmus has not.

    Raises:
        UsageError: the streams are none of isthmus' own.
        TypeError: an argument is not known here.
    """

    def __init__(
        self,
        read_stream: Any = None,
        write_stream: Any = None,
        read_timeout_seconds: float | timedelta | None = None,
        sampling_callback: Any = None,
        elicitation_callback: Any = None,
        list_roots_callback: Any = None,
        logging_callback: Any = None,
        message_handler: Any = None,
        client_info: Any = None,
        *,
        log_level: Any = None,
        sampling_capabilities: Any = None,
        extensions: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise TypeError(
                f"ClientSession of isthmus has no {given[0]}=: see docs/guide/compat.md for what it has"
            )
        self._stream = check_stream(read_stream)
        check_stream(write_stream)
        self._timeout = read_timeout_seconds
        self._callbacks = {
            "sampling/createMessage": sampling_callback,
            "elicitation/create": elicitation_callback,
            "roots/list": list_roots_callback,
        }
        self._logging_callback = logging_callback
        self._message_handler = message_handler
        self._client_info = client_info
        self._log_level = log_level
        self._sampling = sampling_capabilities
        self._extensions = extensions
        self._client: OwnClient | None = None
        self._schemas: dict[str, Any] = {}

    # Opening

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def initialize(self) -> Any:
        """Open the connection by the handshake; gives what the server said of itself."""
        if self._client is None:
            await self.open(era="legacy")
        return self.initialize_result

    async def discover(self) -> Any:
        """Open the connection by ``server/discover``; gives what the server said of itself."""
        if self._client is None:
            await self.open(era="modern")
        return self.discover_result

    async def open(self, **options: Any) -> None:
        """Open the connection.

        Args:
            **options: of isthmus' client, about the revision.
        """
        COMMAND_LINE.connected = True
        client = OwnClient(
            self._make_target(), **self._make_options(), log_level=self._log_level, **options
        )
        client.connection.answering.redirect(self._answer)
        with self._translate_errors("initialize", None):
            try:
                await client.open()
            except BaseException:
                await client.close()
                raise
        self._client = self._stream.client = client

    def _make_target(self) -> Any:
        stream = self._stream
        target = resolve_target(stream.target, stream.headers, CONNECT_TIMEOUT_S, stream.auth)
        if self._logging_callback is None and self._message_handler is None:
            return target
        return tap_target(target, lambda channel: NotificationTap(channel, self._hear))

    def _make_options(self) -> dict[str, Any]:
        info, sampling = self._client_info, self._sampling
        options: dict[str, Any] = {
            "name": getattr(info, "name", "mcp"),
            "version": getattr(info, "version", "0.1.0"),
            "cache": False,
            "timeout": MAX_CALL_S if self._timeout is None else _count_seconds(self._timeout),
            "extensions": self._extensions,
        }
        # None of these is called: every question goes to `_answer`.
        if self._callbacks["sampling/createMessage"] is not None:
            options["sample"] = str
            options["sample_tools"] = getattr(sampling, "tools", None) is not None
            options["sample_context"] = getattr(sampling, "context", None) is not None
        if self._callbacks["elicitation/create"] is not None:
            options["elicit"] = str
        if self._callbacks["roots/list"] is not None:
            options["roots"] = ()
        return options

    async def _answer(self, method: str, params: Any, _revision: Any) -> Any:
        meta = getattr(params, "meta", None) or None
        context = ClientRequestContext(session=self, meta=meta)
        return await answer_question(self._callbacks[method], context, method, params)

    async def _hear(self, notification: Any) -> None:
        if self._logging_callback is not None and notification.method == "notifications/message":
            await self._logging_callback(notification.params)
        if self._message_handler is not None:
            await self._message_handler(notification)

    # The server

    @property
    def own(self) -> OwnClient:
        """Isthmus' client.

        Raises:
            RuntimeError: it is not connected.
        """
        if self._client is None:
            raise RuntimeError("the session is not open: await session.initialize() first")
        return self._client

    @property
    def initialize_result(self) -> Any:
        """What the server said of itself in the handshake; None without one."""
        if self._client is None or self._is_modern():
            return None
        return types.InitializeResult(
            protocol_version=self.protocol_version,
            capabilities=self.server_capabilities,
            server_info=self.server_info,
            instructions=self.instructions,
        )

    @property
    def discover_result(self) -> Any:
        """What the server said of itself to ``server/discover``; None where it was not asked."""
        if self._client is None or not self._is_modern():
            return None
        return types.DiscoverResult(
            supported_versions=[self.protocol_version],
            capabilities=self.server_capabilities,
            instructions=self.instructions,
        )

    def _is_modern(self) -> bool:
        return self.own.connection.meta is not msgspec.UNSET

    @property
    def protocol_version(self) -> Any:
        """The revision; None before there is one."""
        return None if self._client is None else self._client.revision.name

    @property
    def server_info(self) -> Any:
        """Name and version of the server; None before they are known."""
        if self._client is None:
            return None
        return types.Implementation.model_validate_json(encode(self._client.info))

    @property
    def server_capabilities(self) -> Any:
        """What the server can do; None before it is known."""
        if self._client is None:
            return None
        return types.ServerCapabilities.model_validate_json(encode(self._client.capabilities))

    def get_server_capabilities(self) -> Any:
        """What the server can do, as 1.x asks for it; None before it is known."""
        return self.server_capabilities

    @property
    def instructions(self) -> str | None:
        """Instructions of the server; None where it has none."""
        return None if self._client is None else self._client.instructions

    # Requests

    async def send_request(
        self,
        request: Any,
        result_type: Any,
        request_read_timeout_seconds: float | timedelta | None = None,
        metadata: Any = None,
        progress_callback: Any = None,
    ) -> Any:
        """Send a request; gives its result as ``result_type``."""
        del metadata
        said = dump_json(request)
        return await self._request(
            said["method"],
            said.get("params"),
            result_type,
            request_read_timeout_seconds,
            progress_callback,
        )

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send a notification."""
        del related_request_id
        said = dump_json(notification)
        with self._translate_errors(said["method"], None), suppress(NotInRevision):
            await self.own.notify(said["method"], said.get("params"))

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        result_type: Any,
        timeout: float | timedelta | None = None,
        progress: Any = None,
    ) -> Any:
        with self._translate_errors(method, timeout):
            raw: Raw = await self.own.request(
                method,
                params,
                Raw,
                timeout=None if timeout is None else _count_seconds(timeout),
                on_progress=make_progress(progress),
            )
        return result_type.model_validate(msgspec.json.decode(raw))

    async def send_ping(self, *, meta: Mapping[str, Any] | None = None) -> Any:
        """Ping the server."""
        return await self._request("ping", add_meta({}, meta), types.EmptyResult)

    async def send_progress_notification(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Say how far a request of the server's has come."""
        params = types.ProgressNotificationParams(
            progress_token=progress_token, progress=progress, total=total, message=message
        )
        await self.send_notification(types.ProgressNotification(params=params))

    async def set_logging_level(self, level: Any, *, meta: Mapping[str, Any] | None = None) -> Any:
        """Ask for log messages of this level and above."""
        return await self._request(
            "logging/setLevel", add_meta({"level": level}, meta), types.EmptyResult
        )

    async def send_roots_list_changed(self) -> None:
        """Tell the server that the roots changed."""
        await self.send_notification(types.RootsListChangedNotification())

    async def list_tools(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """One page of the tools."""
        listed = await self._list("tools/list", cursor, params, types.ListToolsResult)
        self._schemas.update({tool.name: tool.output_schema for tool in listed.tools})
        return listed

    async def list_resources(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """One page of the resources."""
        return await self._list("resources/list", cursor, params, types.ListResourcesResult)

    async def list_resource_templates(
        self, cursor: str | None = None, *, params: Any = None
    ) -> Any:
        """One page of the templates."""
        kind = types.ListResourceTemplatesResult
        return await self._list("resources/templates/list", cursor, params, kind)

    async def list_prompts(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """One page of the prompts."""
        return await self._list("prompts/list", cursor, params, types.ListPromptsResult)

    async def _list(self, method: str, cursor: str | None, params: Any, kind: Any) -> Any:
        if cursor is not None and params is not None:
            raise ValueError(f"{method} takes cursor or params, not both: params has a cursor, too")
        said = None if cursor is None else {"cursor": cursor}
        if params is not None:
            said = dump_json(params)
        return await self._request(method, said, kind)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | timedelta | None = None,
        progress_callback: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        """Call a tool.

        Raises:
            MCPError: the server refused, or was silent for too long.
            RuntimeError: the result does not fit the tool's output schema.
        """
        with self._translate_errors("tools/call", read_timeout_seconds):
            answer = await self.own.call_tool(
                name,
                arguments,
                timeout=None
                if read_timeout_seconds is None
                else _count_seconds(read_timeout_seconds),
                on_progress=make_progress(progress_callback),
                meta=meta,
            )
        result = types.CallToolResult.model_validate_json(encode(answer.wire))
        if not result.is_error:
            await self.validate_tool_result(name, result)
        return result

    async def validate_tool_result(self, name: str, result: Any) -> None:
        """Check a result against the output schema of its tool.

        Raises:
            RuntimeError: it does not fit.
        """
        if name not in self._schemas:
            await self.list_tools()
        schema = self._schemas.get(name)
        if schema is None:
            if name not in self._schemas:
                log.warning("tool %s is not listed, so that its result cannot be checked", name)
            return
        if result.structured_content is None:
            raise RuntimeError(
                f"Tool {name} has an output schema but did not return structured content"
            )
        try:
            wrong = SchemaValidator(schema, f"the output schema of {name}").complaint(
                result.structured_content
            )
        except Misbehaved as error:
            raise RuntimeError(f"Invalid schema for tool {name}: {error}") from error
        if wrong:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {wrong}")

    async def read_resource(
        self, uri: Any, *, meta: Mapping[str, Any] | None = None, **_: Any
    ) -> Any:
        """Read a resource."""
        with self._translate_errors("resources/read", None):
            read = await self.own.read_resource(str(uri), meta=meta)
        return types.ReadResourceResult.model_validate_json(encode(read))

    async def subscribe_resource(self, uri: Any, *, meta: Mapping[str, Any] | None = None) -> Any:
        """Ask to be told when a resource changes."""
        params = add_meta({"uri": str(uri)}, meta)
        return await self._request("resources/subscribe", params, types.EmptyResult)

    async def unsubscribe_resource(self, uri: Any, *, meta: Mapping[str, Any] | None = None) -> Any:
        """Ask to be told no more when a resource changes."""
        params = add_meta({"uri": str(uri)}, meta)
        return await self._request("resources/unsubscribe", params, types.EmptyResult)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        """Render a prompt."""
        with self._translate_errors("prompts/get", None):
            prompt = await self.own.get_prompt(name, arguments, meta=meta)
        return types.GetPromptResult.model_validate_json(encode(prompt))

    async def complete(
        self,
        ref: Any,
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> Any:
        """Complete an argument of a prompt or of a template."""
        params = {"ref": dump_json(ref), "argument": argument}
        if context_arguments is not None:
            params["context"] = {"arguments": context_arguments}
        return await self._request("completion/complete", params, types.CompleteResult)

    # Errors

    @contextmanager
    def _translate_errors(self, method: str, timeout: float | timedelta | None) -> Iterator[None]:
        """Errors of isthmus as the libraries raise them."""
        waits = CALLBACK_WAITS.get(None)
        if waits is not None:
            waits.set()
        try:
            yield
        except (Refused, Refuse) as no:
            raise MCPError(no.code, no.message, no.data) from no
        except CallTimedOut as error:
            raise make_timeout_error(
                method, self._timeout if timeout is None else timeout
            ) from error
        except (NotInRevision, CapabilityMissing) as error:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method) from error
        except (ConnectFailed, ConnectionLost, HttpRefused) as error:
            raise MCPError(types.CONNECTION_CLOSED, f"Connection closed: {error}") from error
        except (OutOfPhase, Misbehaved, UsageError) as error:
            raise RuntimeError(str(error)) from error


def make_timeout_error(method: str, timeout: float | timedelta | None) -> MCPError:
    """The error of a call without an answer in time, as the generation raises it that was given the time."""
    if isinstance(timeout, timedelta):
        seconds = timeout.total_seconds()
        return MCPError(
            OLD_REQUEST_TIMEOUT,
            f"Timed out while waiting for response to {method}. Waited {seconds} seconds.",
        )
    return MCPError(types.REQUEST_TIMEOUT, f"Request {method!r} timed out")


def make_progress(callback: Any) -> Callable[[Any], Any] | None:
    """Tell a callback ``(progress, total, message)`` of progress; None without one."""
    if callback is None:
        return None
    return lambda said: callback(said.progress, said.total or None, said.message or None)


def dump_json(model: Any) -> dict[str, Any]:
    """A model as plain data, as it goes over the wire."""
    said: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return said


def add_meta(params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Params with a ``_meta``, where there is one."""
    return {**params, "_meta": dict(meta)} if meta else params


def _count_seconds(timeout: float | timedelta) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
