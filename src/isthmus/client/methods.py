"""One typed method for each thing a server offers."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.client.catalog import Catalog
from isthmus.client.connection import Connection, OnProgress
from isthmus.client.listing import collect
from isthmus.client.results import ToolResult
from isthmus.errors import HeaderMismatch, MethodNotFound, UsageError
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    CompleteParams,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptParams,
    GetPromptResult,
    ListPromptsParams,
    ListResourcesParams,
    ListResourceTemplatesParams,
    ListToolsParams,
    Prompt,
    ReadResourceParams,
    ReadResourceResult,
    Reference,
    Resource,
    ResourceTemplate,
    Tool,
)

__all__ = ["Methods"]

T = TypeVar("T")


class Methods:
    """Tools, resources, prompts and completion of the server at the other end of a connection.

    Args:
        connection: carries the calls.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._catalog = Catalog()

    async def list_tools(self) -> list[Tool]:
        """Every tool of the server.

        Over HTTP since 2026-07-28, tools with forbidden ``x-mcp-header`` marks are left out.

        Raises:
            CapabilityMissing: the server has no tools.
        """
        self._connection.require("tools", "tools/list")
        tools = await self._list("tools/list", ListToolsParams, lambda page: page.tools)
        return self._catalog.learn(tools)

    async def call_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool, answering what the server asks on the way.

        Args:
            name: the tool.
            arguments: a mapping, or a struct, dataclass or model that becomes one.
            on_progress: told of progress, in order; may be async.
            timeout: seconds without answer or progress; None for the client's.
            meta: further members of ``_meta``.

        Returns:
            The result, also where the tool itself failed: look at ``is_error``, or let
            ``parse`` and ``raise_for_error`` raise :class:`~isthmus.errors.ToolFailed`.

        Raises:
            Refused: the server answered with an error; there is no such tool, for example.
            CallTimedOut: no answer in time; the call was cancelled.
            ConnectionLost: the connection ended first.
            Misbehaved: the result breaks the tool's output schema (as last listed), or the rules.
            TooManyRounds: the server kept asking.
        """
        connection = self._connection
        connection.require("tools", "tools/call")
        params = CallToolParams(name=name, arguments=raw(arguments), meta=connection.about(meta))
        headers = self._catalog.headers(name, arguments)
        try:
            result: CallToolResult = await connection.ask(
                "tools/call", params, timeout, on_progress, name, headers
            )
        except HeaderMismatch:
            # spec 2026-07-28 basic/transports/streamable-http#client-behavior: SHOULD list the
            # tools again and retry with the headers they ask for
            await self.list_tools()
            again = self._catalog.headers(name, arguments)
            if again == headers:
                raise
            result = await connection.ask("tools/call", params, timeout, on_progress, name, again)
        self._catalog.check(name, result)
        return ToolResult(name, result)

    async def list_resources(self) -> list[Resource]:
        """Every resource of the server.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        self._connection.require("resources", "resources/list")
        return await self._list("resources/list", ListResourcesParams, lambda p: p.resources)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Every resource template of the server; none where it has resources but no such list.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        method = "resources/templates/list"
        self._connection.require("resources", method)
        try:
            return await self._list(
                method, ListResourceTemplatesParams, lambda page: page.resource_templates
            )
        except MethodNotFound:
            return []

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, meta: Mapping[str, Any] | None = None
    ) -> ReadResourceResult:
        """Read a resource.

        Raises:
            ResourceNotFound: there is nothing at this URI.
        """
        self._connection.require("resources", "resources/read")
        params = ReadResourceParams(uri=uri, meta=self._connection.about(meta))
        result: ReadResourceResult = await self._connection.ask(
            "resources/read", params, timeout, None, uri
        )
        return result

    async def list_prompts(self) -> list[Prompt]:
        """Every prompt of the server.

        Raises:
            CapabilityMissing: the server has no prompts.
        """
        self._connection.require("prompts", "prompts/list")
        return await self._list("prompts/list", ListPromptsParams, lambda page: page.prompts)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """A prompt with its blanks filled."""
        self._connection.require("prompts", "prompts/get")
        params = GetPromptParams(
            name=name,
            arguments=dict(arguments) if arguments else UNSET,
            meta=self._connection.about(meta),
        )
        result: GetPromptResult = await self._connection.ask(
            "prompts/get", params, timeout, None, name
        )
        return result

    async def complete(
        self,
        ref: Reference,
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """What might go into a blank.

        Args:
            ref: the prompt or resource template that has it.
            argument: the blank's name.
            value: what has been typed.
            context: what the other blanks hold already.
        """
        self._connection.require("completions", "completion/complete")
        params = CompleteParams(
            ref=ref,
            argument=CompletionArgument(name=argument, value=value),
            context=CompletionContext(arguments=dict(context)) if context else UNSET,
            meta=self._connection.meta,
        )
        completion: Completion = (
            await self._connection.ask("completion/complete", params)
        ).completion
        return completion

    async def _list(self, method: str, params: type, items: Callable[[Any], list[T]]) -> list[T]:
        """A list to its end."""

        async def page(cursor: str | UnsetType) -> Any:
            asked = params(cursor=cursor, meta=self._connection.meta)
            return await self._connection.ask(method, asked)

        return await collect(page, items)


def plain(value: Any) -> Any:
    """What msgspec does not know by itself: pydantic models."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} is no JSON")


_encode = msgspec.json.Encoder(enc_hook=plain).encode
_NOTHING = Raw(b"{}")


def raw(arguments: Any) -> Raw:
    """Arguments as the raw JSON of an object.

    Raises:
        UsageError: they are no object.
    """
    if arguments is None:
        return _NOTHING
    try:
        data = _encode(arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the arguments cannot be sent: {error}") from error
    if data[:1] != b"{":
        raise UsageError(f"arguments are an object, not {arguments!r}")
    return Raw(data)
