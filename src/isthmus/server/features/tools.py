"""Tools: the functions a model may call."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.http_params import BadAnnotation, HeaderParam, check, header_params
from isthmus.errors import CapabilityMissing, NotInRevision, Refuse, ToolError, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking import run_rounds
from isthmus.server.context import Context
from isthmus.server.custom_types import encode
from isthmus.server.facilities import Facilities
from isthmus.server.features.listing import Listing
from isthmus.server.functions import ArgumentError, Function
from isthmus.server.results import to_call_result
from isthmus.server.returns import Returns
from isthmus.server.running import Run, is_withdrawn, report, runner
from isthmus.server.validation import Validator
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    Icon,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)
from isthmus.wire.base import Meta, Wire

__all__ = ["RegisteredTool", "Tools"]


NULL = Raw(b"null")
"""What some clients send for no arguments."""


class RegisteredTool:
    """A function as a tool.

    Args:
        function: the function.
        shown: how it is listed.
        returns: how its return values become results.
        run: runs the function.
        given: whether an author wrote its schemas by hand: (input, output).

    Attributes:
        mirrored: its arguments that travel in HTTP headers, too.
        checks: results are held against a schema an author wrote.
        alone: it takes no context, so that it is run without further ado.

    Raises:
        UsageError: a hand-written schema cannot be that of a tool.
    """

    __slots__ = ("_admits", "_output", "_whole", "alone", "bind", "checks", "function", "mirrored", "name", "returns", "run", "shown",)  # fmt: skip

    def __init__(
        self,
        function: Function,
        shown: Tool,
        returns: Returns,
        *,
        run: Run,
        given: tuple[bool, bool],
    ) -> None:
        self.function = function
        self.name = shown.name
        self.shown = shown
        self.returns = returns
        self.alone = function.signature.context is None
        self.bind: Callable[[Raw | UnsetType], Any] = self._bind if given[0] else function.bind
        self._admits = Validator(shown.input_schema)
        self.checks = given[1]
        self._output = Validator(shown.output_schema or {}) if given[1] else None
        self._whole = _whole(function, shown.input_schema) if given[0] else None
        self.run = run
        try:
            self.mirrored: tuple[HeaderParam, ...] = header_params(shown.input_schema)
        except BadAnnotation as error:
            raise UsageError(f"tool {self.name!r}: {error}") from error

    def _bind(self, arguments: Raw | UnsetType) -> Any:
        """As ``Function.bind``, by the schema an author wrote.

        Raises:
            ArgumentError: the arguments do not fit.
        """
        raw = Raw(b"{}") if arguments is UNSET or arguments == NULL else arguments
        problems = self._admits.problems(msgspec.json.decode(raw))
        if problems:
            raise ArgumentError(self.name, problems)
        return self.function.bind(raw if self._whole is None else Raw(self._whole % bytes(raw)))

    def checked(self, result: CallToolResult | InputRequiredResult) -> Wire:
        """A result held against the output schema an author wrote.

        Raises:
            UsageError: it does not fit.
        """
        if self._output is not None and isinstance(result, CallToolResult) and not result.is_error:
            content = result.structured_content
            if isinstance(content, Raw):
                content = msgspec.json.decode(content)
            # spec 2026-07-28 server/tools#output-schema: results MUST conform to it
            problems = self._output.problems(None if content is UNSET else content)
            if problems:
                flaws = "; ".join(f"{what} at {path}" for path, what in problems)
                raise UsageError(f"it returned what its output schema does not allow: {flaws}")
        return result


def _whole(function: Function, schema: Mapping[str, Any]) -> bytes | None:
    """How the only parameter of a function gets all arguments at once, if that is meant.

    It is, where the schema knows no argument of the parameter's name: such a function serves
    tools that are described elsewhere.
    """
    parameters = function.parameters
    if len(parameters) != 1 or parameters[0].wire in schema.get("properties", {}):
        return None
    return b'{"%b":%%b}' % parameters[0].wire.encode()


class Tools:
    """The tools of one server.

    Args:
        facilities: the server's.
    """

    def __init__(self, facilities: Facilities) -> None:
        self.listing: Listing[RegisteredTool] = Listing(
            "tool",
            "tools/list",
            show=lambda tool: tool.shown,
            result=lambda items, cursor: ListToolsResult(tools=items, next_cursor=cursor),
            facilities=facilities,
            announce=facilities.changes.tools,
        )
        self._facilities = facilities
        self._get = self.listing.get

    def add(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        icons: Sequence[Icon] | None = None,
        meta: Meta | None = None,
        text: bool = True,
        blocking: bool | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
    ) -> None:
        """Offer a function as a tool; see ``Server.tool`` for the arguments."""
        function = Function.of(
            fn, context_type=Context, name=name, description=description, blocking=blocking
        )
        returns = function.returns(text=text)
        if output_schema is not None:
            returns = Returns(output_schema, returns.write or encode, text)
        shown = Tool(
            name=function.name,
            title=title or UNSET,
            description=function.description or UNSET,
            input_schema=function.input_schema if input_schema is None else input_schema,
            output_schema=UNSET if returns.schema is None else returns.schema,
            annotations=_annotations(read_only, destructive, idempotent, open_world),
            icons=list(icons) if icons else UNSET,
            meta=meta or UNSET,
        )
        if shown.input_schema.get("type") != "object":
            # spec 2026-07-28 server/tools#tool: arguments are an object
            raise UsageError(f'tool {shown.name!r}: its input schema needs "type": "object"')
        given = (input_schema is not None, output_schema is not None)
        run = runner(function, self._facilities.workers)
        tool = RegisteredTool(function, shown, returns, run=run, given=given)
        self.listing.add(tool.name, tool)

    async def call(self, params: CallToolParams, inbound: Inbound) -> Wire:
        """Handle ``tools/call``.

        What goes wrong inside the tool is a result that says so, for the model to read; what is
        wrong with the request is refused.

        Raises:
            Refuse: there is no such tool, headers and arguments differ, the tool refused, or
                the client lacks what it takes.
        """
        tool = self._get(params.name)
        if tool is None:
            # spec 2026-07-28 server/tools#error-handling: an unknown tool is a protocol error
            raise Refuse(-32602, f"Unknown tool: {params.name}")
        if tool.mirrored:
            _compare(tool, params, inbound)
        try:
            bound = tool.bind(params.arguments)
            if tool.alone:
                value = await tool.run(bound, None)
                if type(value) is InputRequiredResult:
                    value = await self._asked(tool, value, params, inbound)
            else:
                value = await self._rounds(tool, bound, params, inbound)
            result = to_call_result(value, tool.returns)
            return tool.checked(result) if tool.checks else result
        except Refuse:
            raise
        except ToolError as error:
            return _failed(str(error))
        except asyncio.CancelledError as error:
            if is_withdrawn():
                raise
            return self._unexpected(tool, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything, and its caller is told
            return self._unexpected(tool, error)

    def _rounds(
        self, tool: RegisteredTool, bound: Any, params: CallToolParams, inbound: Inbound
    ) -> Awaitable[Any]:
        async def body(context: Context) -> Any:
            return await tool.run(bound, context)

        return run_rounds(body, inbound, params, tool.name, self._facilities)

    def _asked(
        self,
        tool: RegisteredTool,
        first: InputRequiredResult,
        params: CallToolParams,
        inbound: Inbound,
    ) -> Awaitable[Any]:
        """A function without a context returned questions: go on as if it had one."""
        results = [first]

        async def body(_context: Context) -> Any:
            return results.pop() if results else await tool.run(tool.bind(params.arguments), None)

        return run_rounds(body, inbound, params, tool.name, self._facilities)

    def _unexpected(self, tool: RegisteredTool, error: BaseException) -> CallToolResult:
        """The result of a tool that broke: what its author must know is logged, not told."""
        failed = f"Tool {tool.name!r} failed"
        if isinstance(error, CapabilityMissing | NotInRevision):
            return _failed(f"{failed}: {error}")  # nothing broke: this client cannot do it
        report(f"tool {tool.name!r}", error)
        kind = type(error).__name__
        return _failed(
            f"{failed}: {kind}: {error}" if self._facilities.debug else f"{failed}: {kind}"
        )


def _annotations(*hints: bool | None) -> ToolAnnotations | UnsetType:
    """Hints on what a tool does, as far as they were given."""
    if all(hint is None for hint in hints):
        return UNSET
    read_only, destructive, idempotent, open_world = (
        UNSET if hint is None else hint for hint in hints
    )
    return ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=open_world,
    )


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _compare(tool: RegisteredTool, params: CallToolParams, inbound: Inbound) -> None:
    """Hold the headers of a request against its arguments.

    Raises:
        Refuse: they differ.
    """
    headers = inbound.origin.headers
    if "mcp-method" not in headers:
        return  # no HTTP, or a revision that mirrors nothing: the transport insists on this one
    arguments = {} if params.arguments is UNSET else msgspec.json.decode(params.arguments)
    flaw = check(tool.mirrored, arguments if isinstance(arguments, dict) else {}, headers)
    if flaw is not None:
        # spec 2026-07-28 basic/transports/streamable-http#server-validation: MUST reject
        raise Refuse(-32020, f"Header mismatch: {flaw}")
