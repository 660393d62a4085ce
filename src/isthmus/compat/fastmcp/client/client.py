"""``Client`` of fastmcp, on isthmus' client."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import msgspec

from isthmus.client.client import Client as OwnClient
from isthmus.compat.fastmcp.client.data import read_data
from isthmus.compat.fastmcp.client.transports import add_bearer, find_transport
from isthmus.compat.fastmcp.components.component import dump_model
from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.exceptions import ToolError
from isthmus.core.answers import Accepted, Cancelled, Declined
from isthmus.wire import CreateMessageResult, PromptReference, ResourceTemplateReference


@dataclass
class CallToolResult:
    """Result of a call of a tool.

    Attributes:
        content: its content blocks.
        structured_content: its structured content.
        meta: its meta.
        data: the structured content as values of Python.
        is_error: the tool failed.
    """

    content: list[Any]
    structured_content: dict[str, Any] | None
    meta: dict[str, Any] | None
    data: Any = None
    is_error: bool = False


class Client:
    """Client of fastmcp: ``async with Client(server) as client``.

    Args:
        transport: a server, a URL, the path of a script, a configuration, or a transport.
        name: what it calls itself.
        timeout: seconds that a call may be silent.
        auth: a bearer token.
        elicitation_handler, sampling_handler, log_handler, progress_handler, roots: as of fastmcp.
        **ignored: other options of fastmcp, which isthmus needs not.
    """

    def __init__(
        self,
        transport: Any,
        *,
        name: str | None = None,
        roots: Any = None,
        sampling_handler: Any = None,
        elicitation_handler: Any = None,
        log_handler: Any = None,
        progress_handler: Any = None,
        timeout: float | timedelta | None = None,
        auth: Any = None,
        **ignored: Any,
    ) -> None:
        self.transport = find_transport(transport)
        self.name = name or "fastmcp-client"
        self._progress_handler = progress_handler
        self._opened = 0
        options: dict[str, Any] = {"name": self.name, "roots": roots}
        headers = add_bearer(self.transport.headers, auth)
        options |= {"headers": headers} if headers else {}
        options |= {} if timeout is None else {"timeout": _count_seconds(timeout)}
        if elicitation_handler is not None:
            options["elicit"] = make_elicit(elicitation_handler)
        if sampling_handler is not None:
            options["sample"] = make_sample(sampling_handler)
        if log_handler is not None:
            options["on_log"] = lambda params: log_handler(
                _to_type("LoggingMessageNotificationParams", params)
            )
        if isinstance(ignored.get("mode"), str) and ignored["mode"] == "legacy":
            options["era"] = "legacy"
        self._options = options
        self._client: OwnClient | None = None

    async def __aenter__(self) -> Self:
        if self._client is None:
            self._client = OwnClient(self.transport.target, **self._options)
            await self._client.open()
        self._opened += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._opened -= 1
        if self._opened == 0:
            await self.close()

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def new(self) -> "Client":
        """Another client of the same server."""
        made = Client(self.transport, name=self.name, progress_handler=self._progress_handler)
        made._options = self._options
        return made

    @property
    def own(self) -> OwnClient:
        """Isthmus' client.

        Raises:
            RuntimeError: it is not connected.
        """
        if self._client is None:
            raise RuntimeError(
                "Client is not connected. Use the 'async with client:' context manager first."
            )
        return self._client

    def is_connected(self) -> bool:
        """Whether it is connected."""
        return self._client is not None

    @property
    def initialize_result(self) -> Any:
        """What the server said of itself."""
        own = self.own
        return load_types().InitializeResult.model_validate(
            {
                "protocolVersion": own.revision.name,
                "capabilities": msgspec.to_builtins(own.capabilities),
                "serverInfo": msgspec.to_builtins(own.info),
                "instructions": own.instructions,
            }
        )

    async def ping(self) -> bool:
        """Ping the server."""
        await self.own.ping()
        return True

    async def list_tools(self) -> list[Any]:
        """The tools."""
        return [_to_type("Tool", one) for one in await self.own.list_tools()]

    async def list_resources(self) -> list[Any]:
        """The resources."""
        return [_to_type("Resource", one) for one in await self.own.list_resources()]

    async def list_resource_templates(self) -> list[Any]:
        """The templates."""
        listed = await self.own.list_resource_templates()
        return [_to_type("ResourceTemplate", one) for one in listed]

    async def list_prompts(self) -> list[Any]:
        """The prompts."""
        return [_to_type("Prompt", one) for one in await self.own.list_prompts()]

    async def call_tool_mcp(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        progress_handler: Any = None,
        timeout: float | timedelta | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """Call a tool; gives the result of ``mcp.types``."""
        result = await self._call(name, arguments, progress_handler, timeout, meta)
        return _to_type("CallToolResult", result.wire)

    async def _call(
        self, name: str, arguments: Any, progress_handler: Any, timeout: Any, meta: Any
    ) -> Any:
        handler = progress_handler or self._progress_handler
        return await self.own.call_tool(
            name,
            {key: dump_model(one) for key, one in (arguments or {}).items()},
            on_progress=None if handler is None else make_progress(handler),
            timeout=None if timeout is None else _count_seconds(timeout),
            meta=meta,
        )

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        timeout: float | timedelta | None = None,
        progress_handler: Any = None,
        raise_on_error: bool = True,
        meta: dict[str, Any] | None = None,
        **_: Any,
    ) -> CallToolResult:
        """Call a tool.

        Raises:
            ToolError: it failed.
        """
        result = await self._call(name, arguments, progress_handler, timeout, meta)
        if result.is_error and raise_on_error:
            raise ToolError(result.text or "Tool call failed")
        schema = None
        if result.structured is not None and not result.is_error:
            schema = await self._find_output_schema(name)
        return CallToolResult(
            content=list(_to_type("CallToolResult", result.wire).content),
            structured_content=result.structured,
            meta=dict(result.meta) or None,
            data=read_data(result.structured, schema),
            is_error=result.is_error,
        )

    async def _find_output_schema(self, name: str) -> dict[str, Any] | None:
        for tool in await self.own.list_tools():
            if tool.name == name:
                return tool.output_schema or None
        return None

    async def read_resource(self, uri: Any, **_: Any) -> list[Any]:
        """Read a resource; gives its parts."""
        result = await self.own.read_resource(str(uri))
        return list(_to_type("ReadResourceResult", result).contents)

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None, **_: Any) -> Any:
        """Render a prompt; values that are no text are written as JSON."""
        given = {
            key: one if isinstance(one, str) else msgspec.json.encode(dump_model(one)).decode()
            for key, one in (arguments or {}).items()
        }
        return _to_type("GetPromptResult", await self.own.get_prompt(name, given))

    async def complete(self, ref: Any, argument: dict[str, str], **_: Any) -> Any:
        """Complete an argument of a prompt or a template."""
        kind: Any = PromptReference if getattr(ref, "name", None) else ResourceTemplateReference
        named = msgspec.convert(dump_model(ref), kind)
        found = await self.own.complete(named, argument["name"], argument["value"])
        return _to_type("Completion", found)

    async def set_logging_level(self, level: Any) -> None:
        """Ask for log messages of this level and above."""
        await self.own.set_log_level(level)

    async def send_roots_list_changed(self) -> None:
        """Tell the server that the roots changed."""
        await self.own.roots_changed()


def _to_type(name: str, value: Any) -> Any:
    """A value of isthmus as the type of ``mcp.types``."""
    return getattr(load_types(), name).model_validate(msgspec.to_builtins(value))


def _count_seconds(timeout: float | timedelta) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


def make_progress(handler: Any) -> Callable[[Any], Any]:
    """What isthmus tells of progress, for a handler of fastmcp."""

    async def tell(progress: Any) -> None:
        told = handler(progress.progress, progress.total or None, progress.message or None)
        if inspect.isawaitable(told):
            await told

    return tell


def make_elicit(handler: Any) -> Callable[[Any], Any]:
    """What isthmus asks with, for a handler of fastmcp: ``(message, response_type, params, context)``."""

    async def ask(params: Any) -> Any:
        said = handler(params.message, dict, _to_type("ElicitRequestFormParams", params), None)
        answer = await said if inspect.isawaitable(said) else said
        action = getattr(answer, "action", "accept")
        if action != "accept":
            return Declined() if action == "decline" else Cancelled()
        content = getattr(answer, "content", answer)
        return Accepted(dump_model(content) or {})

    return ask


def make_sample(handler: Any) -> Callable[[Any], Any]:
    """What isthmus has a model write with, for a handler of fastmcp: ``(messages, params, context)``."""

    async def write(params: Any) -> Any:
        asked = _to_type("CreateMessageRequestParams", params)
        said = handler(asked.messages, asked, None)
        answer = await said if inspect.isawaitable(said) else said
        if isinstance(answer, str):
            return answer
        return msgspec.convert(dump_model(answer), CreateMessageResult)

    return write
