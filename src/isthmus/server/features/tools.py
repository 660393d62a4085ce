"""Tools: the functions a model may call."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.http.params import (
    ANNOTATION,
    BadAnnotation,
    HeaderParam,
    check_headers,
    find_header_params,
)
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.core.redaction.forms import is_secret_name
from isthmus.core.schema_bounds import Bounds, find_bounds_flaw
from isthmus.errors import (
    CapabilityMissing,
    NotInRevision,
    Refuse,
    StoreUnavailable,
    ToolError,
    UrlRequired,
    UsageError,
)
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import is_cancellation
from isthmus.server.asking.context import Body, Context
from isthmus.server.features.invocation import (
    Run,
    load_run_rounds,
    make_runner,
    report_failure,
)
from isthmus.server.features.listing import Listing, make_meta, make_target
from isthmus.server.guard.scopes import ScopeDemand, Scopes, find_required_scopes, parse_scopes
from isthmus.server.options import (
    TaskStarts,
    TaskSupport,
    check_task_options,
    check_task_start,
)
from isthmus.server.schema.custom_types import write_json
from isthmus.server.schema.functions import (
    ArgumentError,
    UserFunction,
    check_depth,
    is_json_object,
)
from isthmus.server.schema.results import ReturnPlan, WrongReturn, to_call_result
from isthmus.server.schema.validation import Validator
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    Icon,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolExecution,
)
from isthmus.wire.jsonrpc import shorten
from isthmus.wire.struct import Meta, Wire

if TYPE_CHECKING:
    from isthmus.server.features.tasks import Tasks

BodyDriver: TypeAlias = Callable[[Body], Awaitable[Any]]


EMPTY_ARGUMENTS = Raw(b"{}")

NULL_ARGUMENTS = Raw(b"null")  # some clients send it for no arguments


class RegisteredTool:
    """A function as a tool.

    Args:
        function: the function.
        shown: how it is listed.
        returns: how its return values become results.
        run: runs the function.
        given: whether an author wrote its schemas by hand: (input, output).
        task: whether its calls may or must run as tasks; None where they must not.
        in_body: it says itself when a call becomes a task.
        immediate: what the model may be told while its call runs as a task.
        retry_safe: its task may be started again by another node.
        scopes: what its caller must have been granted.
        version: which of several under one name it is, or None.

    Attributes:
        target: what sealed states are bound to: its name and version.
        mirrored: its arguments that travel in HTTP headers, too.
        checks: results are held against a schema an author wrote.
        alone: it takes nothing of the context, so that it is run without further ado.

    Raises:
        UsageError: a hand-written schema cannot be that of a tool.
    """

    __slots__ = ("_admits", "_output", "_whole", "alone", "bind", "checks", "function", "immediate", "in_body", "mirrored", "name", "retry_safe", "returns", "run", "scopes", "shown", "target", "task", "version",)  # fmt: skip

    def __init__(
        self,
        function: UserFunction,
        shown: Tool,
        returns: ReturnPlan,
        *,
        run: Run,
        given: tuple[bool, bool],
        task: TaskSupport | None = None,
        in_body: bool = False,
        immediate: str | None = None,
        retry_safe: bool = False,
        scopes: ScopeDemand = NO_SCOPES,
        version: str | None = None,
    ) -> None:
        self.scopes = scopes
        self.version = version
        self.target = make_target(shown.name, version)
        self.retry_safe = retry_safe
        self.task = task
        self.in_body = in_body
        self.immediate = immediate
        self.function = function
        self.name = shown.name
        self.shown = shown
        self.returns = returns
        self.alone = function.signature.is_alone
        self.bind: Callable[[Raw | UnsetType, int | None], Any] = (
            self._bind if given[0] else function.bind
        )
        self._admits = Validator(shown.input_schema)
        self.checks = given[1]
        self._output = Validator(shown.output_schema or {}) if given[1] else None
        self._whole = _make_whole_template(function, shown.input_schema) if given[0] else None
        self.run = run
        try:
            self.mirrored: tuple[HeaderParam, ...] = find_header_params(shown.input_schema)
        except BadAnnotation as error:
            raise UsageError(f"tool {self.name!r}: {error}") from error

    def _bind(self, arguments: Raw | UnsetType, depth: int | None) -> Any:
        """As ``Function.bind``, by the schema an author wrote.

        Raises:
            ArgumentError: the arguments do not fit.
            Refuse: they are nested too deeply.
        """
        raw = EMPTY_ARGUMENTS if arguments is UNSET or arguments == NULL_ARGUMENTS else arguments
        check_depth(raw, depth)  # whatever the schema says
        problems = self._admits.problems(msgspec.json.decode(raw))
        if problems:
            raise ArgumentError(self.name, problems)
        return self.function.bind(raw if self._whole is None else Raw(self._whole % bytes(raw)))

    def arguments(self, raw: Raw | UnsetType, depth: int | None) -> Mapping[str, Any] | None:
        """The arguments of a call as the function will get them, by name; None if they do not fit."""
        try:
            named = self.function.name_arguments(self.bind(raw, depth))
        except (ArgumentError, Refuse):
            return None
        whole = None if self._whole is None else next(iter(named.values()))
        return whole if isinstance(whole, Mapping) else named

    def check_result(self, result: CallToolResult | InputRequiredResult) -> Wire:
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


def _make_whole_template(function: UserFunction, schema: Mapping[str, Any]) -> bytes | None:
    """Make what gives all arguments to the only parameter of a function, if that is meant.

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
        settings: those of the server, shared by all its parts.

    Attributes:
        tasks: what runs calls as tasks, where a tool may be one.
        limit: the rate of calls, or None.
    """

    def __init__(self, settings: SharedSettings) -> None:
        self.listing: Listing[RegisteredTool] = Listing(
            "tool",
            "tools/list",
            show=lambda tool: tool.shown,
            result=lambda items, cursor: ListToolsResult(tools=items, next_cursor=cursor),
            settings=settings,
            announce=settings.changes.announce_tools,
        )
        self._settings = settings
        self._get = self.listing.get_plain
        self.tasks: Tasks | None = None
        self.settle()

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
        tags: Collection[str] = (),
        version: str | None = None,
        text: bool = True,
        structured: bool = False,
        blocking: bool | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        task: TaskSupport | None = None,
        task_starts: TaskStarts = "at_call",
        immediate_response: str | None = None,
        retry_safe: bool = False,
        timeout: float | None = None,
        scopes: Scopes = NO_SCOPES,
    ) -> None:
        """Offer a function as a tool; see ``Server.tool`` for the arguments."""
        said: dict[str, Any] = {"name": name, "description": description, "blocking": blocking}
        function = UserFunction.of(fn, context_type=Context, **said)
        returns = _plan_returns(function, output_schema, text=text, structured=structured)
        given = (input_schema is not None, output_schema is not None)
        shown = Tool(
            name=function.name,
            title=title or UNSET,
            description=function.description or UNSET,
            input_schema=function.input_schema if input_schema is None else input_schema,
            output_schema=UNSET if returns.schema is None else returns.schema,
            annotations=_make_annotations(read_only, destructive, idempotent, open_world),
            execution=ToolExecution(task_support=task) if task else UNSET,
            icons=list(icons) if icons else UNSET,
            meta=make_meta(meta, tags, f"tool {function.name!r}", version) or UNSET,
        )
        check_definition(shown, given, self._settings.limits.schemas)
        in_body = check_task_start(shown.name, task, task_starts, function.signature.context)
        check_task_options(shown.name, immediate_response, task, in_body, retry=retry_safe)
        tool = RegisteredTool(
            function, shown, returns, run=make_runner(function, self._settings, timeout), given=given, task=task,
            in_body=in_body, immediate=immediate_response, retry_safe=retry_safe,
            scopes=parse_scopes(scopes, f"tool {shown.name!r}"), version=version,
        )  # fmt: skip
        self.listing.add(shown.name, tool, version)
        warn_of_definition(shown.name, tool.mirrored)

    async def refuse_unknown(self, name: str, inbound: Inbound) -> NoReturn:
        """Refuse a call of what is no tool, or none for its caller, as :meth:`call` does.

        Raises:
            Refuse: always.
        """
        limit = self.limit
        if limit is not None:
            limit.spare -= 1
            if limit.spare < 0:
                await limit.check(inbound)
        # spec 2026-07-28 server/tools#error-handling: an unknown tool is a protocol error
        raise Refuse(-32602, f"Unknown tool: {shorten(name)}")

    def settle(self) -> None:
        """Take what each call needs of the server's settings: it begins to serve."""
        self.limit = self._settings.limiters.tool_calls
        depth = self._settings.limits.depth
        self._depth = (
            None if depth is None else depth - 1
        )  # parameters are a level around arguments
        self._clean = self._settings.sanitise
        if self.tasks is not None:
            self.tasks.settle()

    def needs(self, params: CallToolParams, principal: Principal | None) -> frozenset[str]:
        """The scopes that a call takes."""
        tool = self._get(params.name) or self.listing.seek(params.name, params.meta)
        if tool is None or not tool.scopes:
            return NO_SCOPES
        what = f"tool {tool.name!r}"
        return find_required_scopes(
            tool.scopes, principal, what, partial(tool.arguments, params.arguments, self._depth)
        )

    async def call(self, params: CallToolParams, inbound: Inbound) -> Wire:  # noqa: C901 - the path of every call
        """Handle ``tools/call``.

        What goes wrong inside the tool is a result that says so, for the model to read; what is
        wrong with the request is refused.

        Raises:
            Refuse: there is no such tool, headers and arguments differ, the tool refused, the
                client lacks what it takes, or calls too often.
        """
        limit = self.limit
        if limit is not None:
            limit.spare -= 1
            if limit.spare < 0:
                # spec 2026-07-28 server/tools#security-considerations: MUST rate limit invocations
                await limit.check(inbound)
        tool = self._get(params.name)
        if tool is None:  # it has versions, or is none
            # spec 2026-07-28 server/tools#error-handling: an unknown tool is a protocol error
            tool = self.listing.find(params.name, params.meta)
        if tool.mirrored:
            check_depth(params.arguments or EMPTY_ARGUMENTS, self._depth)
            check_mirrored_headers(tool.mirrored, params, inbound)
        if (tool.task is not None or params.task is not UNSET) and self.tasks is not None:
            answer = await self.tasks.call(tool, params, inbound)
            if answer is not None:
                return answer
        try:
            bound = tool.bind(params.arguments, self._depth)
            if tool.alone:
                value = await tool.run(bound, None)
                if type(value) is InputRequiredResult:
                    value = await self._ask_first(tool, value, params, inbound)
            else:
                value = await self._run_rounds(tool, bound, params, inbound)
            result = to_call_result(value, tool.returns, self._clean)
            return tool.check_result(result) if tool.checks else result
        except BaseException as error:
            if is_passed_on(error) and not (tool.alone and isinstance(error, UrlRequired)):
                raise
            if isinstance(error, ArgumentError):
                check_object(params.arguments)
            return await self._answer_exception(tool, error, params, inbound)

    async def _answer_exception(
        self, tool: RegisteredTool, error: BaseException, params: CallToolParams, inbound: Inbound
    ) -> Wire:
        """Answer a call that raised: by a question, where the user must visit a page first."""
        if inbound.record is not None:
            inbound.record.failed_with = type(error)
        if not tool.alone or not isinstance(error, UrlRequired):
            return self._make_failure(tool, error)
        asked = self._ask_first(tool, error, params, inbound)
        del error  # it is raised again in there
        try:
            return to_call_result(await asked, tool.returns, self._clean)
        except BaseException as other:
            if is_passed_on(other):
                raise
            return self._make_failure(tool, other)

    def _make_failure(self, tool: RegisteredTool, error: BaseException) -> CallToolResult:
        """Make the result of a call that ended by an exception."""
        if isinstance(error, ToolError):
            text = str(error)  # which the tool's author may have from anywhere
            return _make_error_result(text if self._clean is None else self._clean.text(text))
        return self._make_unexpected_failure(tool, error)

    async def drive(self, tool: RegisteredTool, params: CallToolParams, way: BodyDriver) -> Wire:
        """Run a tool as :meth:`call` does, its body driven in another way: as a task.

        Raises:
            Refuse: the call is refused, and has no result.
        """
        try:
            bound = tool.bind(params.arguments, self._depth)

            async def body(context: Context) -> Any:
                return await tool.run(bound, None if tool.alone else context)

            result = to_call_result(await way(body), tool.returns, self._clean)
            return tool.check_result(result) if tool.checks else result
        except BaseException as error:
            if is_passed_on(error):
                raise
            if isinstance(error, ArgumentError):
                check_object(params.arguments)
            return self._make_failure(tool, error)

    def _run_rounds(
        self, tool: RegisteredTool, bound: Any, params: CallToolParams, inbound: Inbound
    ) -> Awaitable[Any]:
        async def body(context: Context) -> Any:
            return await tool.run(bound, context)

        return load_run_rounds()(body, inbound, params, tool.target, self._settings)

    def _ask_first(
        self,
        tool: RegisteredTool,
        first: InputRequiredResult | UrlRequired,
        params: CallToolParams,
        inbound: Inbound,
    ) -> Awaitable[Any]:
        """Go on as if a function without a context had one: it has questions."""
        left = [first]

        async def body(_context: Context) -> Any:
            if not left:
                return await tool.run(tool.bind(params.arguments, self._depth), None)
            asked = left.pop()
            if isinstance(asked, UrlRequired):
                try:
                    raise asked
                finally:
                    del asked  # it keeps this frame, and must not be kept by it
            return asked

        return load_run_rounds()(body, inbound, params, tool.target, self._settings)

    def _make_unexpected_failure(
        self, tool: RegisteredTool, error: BaseException
    ) -> CallToolResult:
        """Make the result of a tool that broke: what its author must know is logged, not told."""
        failed = f"Tool {tool.name!r} failed"
        if isinstance(error, CapabilityMissing | NotInRevision):
            return _make_error_result(
                f"{failed}: {error}"
            )  # nothing broke: this client cannot do it
        report_failure(f"tool {tool.name!r}", error, tool.function.fn)
        if isinstance(error, WrongReturn):
            return _make_error_result(f"{failed}: {error if self._settings.debug else error.told}")
        kind = type(error).__name__
        return _make_error_result(
            f"{failed}: {kind}: {error}" if self._settings.debug else f"{failed}: {kind}"
        )


def _plan_returns(
    function: UserFunction, output_schema: dict[str, Any] | None, *, text: bool, structured: bool
) -> ReturnPlan:
    """Plan how what a function returns becomes a result, by the schema an author wrote if there is one."""
    returns = function.plan_returns(text=text, structured=structured)
    if output_schema is None:
        return returns
    return ReturnPlan(output_schema, returns.write or write_json, text)


def _make_annotations(*hints: bool | None) -> ToolAnnotations | UnsetType:
    """Make the hints on what a tool does, as far as they were given."""
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


def is_passed_on(error: BaseException) -> bool:
    """Whether an exception ends the request, and is no result: a refusal, no store, or nobody waits."""
    return isinstance(error, Refuse | StoreUnavailable) or is_cancellation(error)


def check_object(arguments: Raw | UnsetType) -> None:
    """See that arguments which do not fit are an object at all: else the request is wrong.

    Raises:
        Refuse: they are none.
    """
    # spec 2026-07-28 server/tools#error-handling: a malformed request is a protocol error; every
    # revision's schema has the arguments as an object
    if arguments is not UNSET and not is_json_object(arguments):
        raise Refuse(-32602, "Invalid params: Expected `object` - at `$.arguments`")


def _make_error_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def check_mirrored_headers(
    mirrored: tuple[HeaderParam, ...], params: CallToolParams, inbound: Inbound
) -> None:
    """Hold the headers of a request against its arguments.

    Raises:
        Refuse: they differ.
    """
    headers = inbound.origin.headers
    if "mcp-method" not in headers:
        return  # no HTTP, or a revision that mirrors nothing: the transport insists on this one
    arguments = {} if params.arguments is UNSET else msgspec.json.decode(params.arguments)
    flaw = check_headers(mirrored, arguments if isinstance(arguments, dict) else {}, headers)
    if flaw is not None:
        # spec 2026-07-28 basic/transports/streamable-http#server-validation: MUST reject
        raise Refuse(-32020, f"Header mismatch: {flaw}")


# Definitions

TOOL_NAME_PATTERN = r"[A-Za-z0-9_.-]{1,128}"


def mirrored(header: str) -> msgspec.Meta:
    """Mark an argument that also travels in an HTTP header, for proxies to route by (since 2026-07-28).

    ``region: Annotated[str, mirrored("Region")]`` travels in ``Mcp-Param-Region``. It must be a
    string, an integer or a boolean, and none that must stay between the two sides.

    Args:
        header: the end of the header's name.
    """
    return msgspec.Meta(extra_json_schema={ANNOTATION: header})


def check_definition(tool: Tool, given: tuple[bool, bool], bounds: Bounds | None) -> None:
    """See to it that a tool can be offered.

    Args:
        tool: how it is listed.
        given: whether an author wrote its schemas by hand: (input, output).
        bounds: how much such a schema may be, or None.

    Raises:
        UsageError: a schema cannot be that of a tool; the message says why.
    """
    if not tool.name:
        raise UsageError("a tool needs a name")
    schemas = (("input", tool.input_schema), ("output", tool.output_schema))
    for (side, schema), by_hand in zip(schemas, given, strict=True):
        wrong = (
            find_bounds_flaw(schema, bounds) if by_hand and bounds and schema is not UNSET else None
        )
        if wrong:
            raise UsageError(f"tool {tool.name!r}: its {side} schema {wrong}")
    if tool.input_schema.get("type") != "object":
        # spec 2026-07-28 server/tools#tool: arguments are an object
        raise UsageError(f'tool {tool.name!r}: its input schema needs "type": "object"')


def warn_of_definition(name: str, mirrored: Iterable[HeaderParam]) -> None:
    """Log what is allowed and yet unwise."""
    if not re.fullmatch(TOOL_NAME_PATTERN, name):
        # spec 2026-07-28 server/tools#tool-names: SHOULD be of these, and of 1 to 128
        log_warning(
            "tool %r: some clients take only names of up to 128 letters, digits, '_', '-' and '.'",
            name,
        )
    for param in mirrored:
        if is_secret_name(param.path[-1]):
            # spec 2026-07-28 server/tools#x-mcp-header: SHOULD NOT mark sensitive parameters
            log_warning(
                "tool %r: %s travels in the header %s, which every proxy on the way reads",
                name,
                ".".join(param.path),
                param.header,
            )
