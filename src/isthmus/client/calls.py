"""Calls of a client: the specification's requests to a server, from the cache where that may be.

:class:`ClientCalls` makes them over a :class:`~isthmus.client.connection.Connection`; what each one
promises stands at the method of the same name of :class:`~isthmus.client.client.Client`.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from isthmus.client.cache import Caching, ResponseCache
from isthmus.client.connection import Connection, add_facts
from isthmus.client.model.limits import Limits, OnProgress
from isthmus.client.model.list_hints import LIST_HINTS
from isthmus.client.model.results import ToolResult
from isthmus.client.model.trace_context import add_trace_context
from isthmus.client.subscriptions import Change, ChangeKind
from isthmus.client.tasks import OnTask, TaskTracker, ToolTask
from isthmus.client.tool_catalog import ToolCatalog
from isthmus.errors import (
    CapabilityMissing,
    HeaderMismatch,
    InvalidParams,
    MethodNotFound,
    Misbehaved,
    NotInRevision,
    UsageError,
)
from isthmus.revisions import METHODS
from isthmus.tasks.shapes import LenientListTasksResult, TaskState, to_task_state
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    CompleteParams,
    Completion,
    CompletionArgument,
    CompletionContext,
    DiscoverParams,
    DiscoverResult,
    GetPromptParams,
    GetPromptResult,
    ListPromptsParams,
    ListResourcesParams,
    ListResourceTemplatesParams,
    ListTasksParams,
    ListToolsParams,
    Prompt,
    ReadResourceParams,
    ReadResourceResult,
    Reference,
    Resource,
    ResourceTemplate,
    Task,
    Tool,
)

R = TypeVar("R")
T = TypeVar("T")

MaybeMeta = Mapping[str, Any] | None

MAX_PAGES = 1000  # of one list, after which a server is not believed to be near the end
MUST_BE_TASK = frozenset({"required"})  # what servers of 2025-11-25 say of such tools
MAY_BE_TASK = frozenset({"optional", "required"})

REQUIRED_CAPABILITIES = (  # by how the method begins
    ("tools/", "tools"),
    ("prompts/", "prompts"),
    ("resources/", "resources"),
    ("completion/", "completions"),
    ("logging/", "logging"),
)


class ClientCalls:
    """The calls that one client makes.

    Args:
        connection: carries them.
        limits: how much a list may hold.
        tools: what is known of the server's tools.
        tasks: follows the calls that run as tasks.
    """

    def __init__(
        self, connection: Connection, limits: Limits, tools: ToolCatalog, tasks: TaskTracker
    ) -> None:
        self._connection = connection
        self._ask: Callable[..., Awaitable[Any]] = connection.ask
        self.open: Callable[[], Awaitable[bool]] = connection.open
        self._limits = limits
        self._tools = tools
        self._tasks = tasks
        self._responses: ResponseCache | None = None
        self._latest: dict[ChangeKind, list[Any]] = {}
        self._limit_attempts()

    def _limit_attempts(self) -> None:
        """Put retries and the time limit of whole operations in place, where there are any."""
        connection, settings = self._connection, self._connection.settings
        if settings.retries is None and settings.total_timeout is None:
            return
        from isthmus.client.attempts import LIMITED_OPERATIONS, Attempts, limit_total

        opening: Callable[[], Awaitable[bool]] = connection.open
        if settings.retries is not None:
            attempts = Attempts(connection, settings.retries, self._tools)
            self._ask = attempts.ask
            opening = partial(attempts.repeat, opening, True)
        if settings.total_timeout is not None:
            opening = limit_total(opening, settings.total_timeout, connection)
            for name in LIMITED_OPERATIONS:
                whole = limit_total(getattr(self, name), settings.total_timeout, connection)
                setattr(self, name, whole)
        self.open = opening

    def begin(self, caching: Caching | None) -> None:
        """Take what the opened connection says: whether headers repeat arguments, what to cache."""
        connection = self._connection
        self._tools.mirrored = connection.target.http and connection.meta is not UNSET
        if caching is not None:
            target, revision = connection.target, connection.require_agreement().revision.name
            self._responses = ResponseCache(caching, target.key, revision, context=target.context)

    def forget_changed(self, change: Change) -> None:
        """Use nothing old from now on of what has changed at the server."""
        if change.kind == "tools":
            self._tools.forget()
        if self._responses is not None:
            self._responses.changed(change)

    async def discover(self, fresh: bool, meta: MaybeMeta) -> DiscoverResult:
        """``server/discover``."""
        params = DiscoverParams(meta=self._connection.about(meta))
        result: DiscoverResult = await self._fetch("server/discover", params, fresh=fresh)
        return result

    # Tools

    async def list_tools(self, fresh: bool = False, meta: MaybeMeta = None) -> list[Tool]:
        """``tools/list``, to its end."""
        self._connection.require("tools", "tools/list")
        tools = await self._fetch_list(
            "tools/list", ListToolsParams, lambda p: p.tools, fresh, meta
        )
        found = self._latest["tools"] = self._tools.learn(tools)
        return found

    async def call_tool(
        self,
        name: str,
        arguments: Any,
        on_progress: OnProgress | None,
        timeout: float | None,
        meta: MaybeMeta,
        *,
        on_task: OnTask | None,
        prefer_task: bool = False,
    ) -> ToolResult:
        """``tools/call``, to the end of its task where it becomes one."""
        connection = self._connection
        connection.require("tools", "tools/call")
        params = CallToolParams(
            name=name, arguments=encode_arguments(arguments), meta=connection.about(meta)
        )
        wanted = MAY_BE_TASK if prefer_task else MUST_BE_TASK
        if self._tasks.asks_itself and await self._is_task(name, wanted):
            return await self._tasks.call(params, on_progress, timeout, on_task)
        headers = self._tools.headers(name, arguments)
        try:
            result: CallToolResult = await self._ask(
                "tools/call", params, timeout, on_progress, name, headers
            )
        except HeaderMismatch:
            # spec 2026-07-28 basic/transports/streamable-http#client-behavior: SHOULD list the
            # tools again and retry with the headers they ask for
            await self.list_tools(True)
            again = self._tools.headers(name, arguments)
            if again == headers:
                raise
            result = await self._ask("tools/call", params, timeout, on_progress, name, again)
        except MethodNotFound:
            if not self._tasks.asks_itself or not await self._is_task(
                name, MUST_BE_TASK, fresh=True
            ):
                raise
            return await self._tasks.call(params, on_progress, timeout, on_task)
        if type(result) is CallToolResult:
            self._tools.check(name, result)
            return ToolResult(name, result)
        return await self._tasks.wait_or_cancel(self._tasks.handle(name, result), timeout, on_task)

    async def _is_task(self, name: str, wanted: frozenset[str], *, fresh: bool = False) -> bool:
        """Whether a server of 2025-11-25 that has tasks says one of some words of a tool."""
        # spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation: clients MUST then invoke
        # it as a task, so that they have to know
        if fresh or not self._tools.knows(name):
            await self.list_tools(fresh)
        return self._tools.task(name) in wanted

    async def start_tool(
        self,
        name: str,
        arguments: Any,
        ttl: float | None,
        on_progress: OnProgress | None,
        meta: MaybeMeta,
    ) -> ToolTask:
        """``tools/call``, not waiting for the end of its task."""
        connection = self._connection
        connection.require("tools", "tools/call")
        params = CallToolParams(
            name=name, arguments=encode_arguments(arguments), meta=connection.about(meta)
        )
        if self._tasks.asks_itself and not self._tools.knows(name):
            await self.list_tools()
        if self._tasks.asks_itself and self._tools.task(name) in MAY_BE_TASK:
            return await self._tasks.start(params, on_progress, ttl)
        headers = self._tools.headers(name, arguments)
        answer = await self._ask("tools/call", params, None, on_progress, name, headers)
        return self._tasks.handle(name, answer)

    async def list_tasks(self) -> list[TaskState]:
        """``tasks/list``, to its end."""
        connection = self._connection
        if not self._tasks.core:
            raise NotInRevision(
                f"revision {connection.require_agreement().revision.name} lists no tasks"
            )
        offered = connection.require_agreement().capabilities.tasks
        if offered is UNSET or offered.list is UNSET:
            raise CapabilityMissing("the server does not list tasks")

        async def page(cursor: Any) -> Any:
            params = ListTasksParams(cursor=cursor)
            return await connection.send("tasks/list", params, LenientListTasksResult)

        limits = self._limits
        found: list[Task] = await collect_pages(
            page, lambda page: page.tasks, pages=limits.pages, most=limits.items
        )
        return [to_task_state(task) for task in found]

    # Resources, prompts and completion

    async def list_resources(self, fresh: bool = False, meta: MaybeMeta = None) -> list[Resource]:
        """``resources/list``, to its end."""
        method = "resources/list"
        self._connection.require("resources", method)
        found = await self._fetch_list(
            method, ListResourcesParams, lambda p: p.resources, fresh, meta
        )
        self._latest["resources"] = found
        return found

    async def list_resource_templates(self, fresh: bool, meta: MaybeMeta) -> list[ResourceTemplate]:
        """``resources/templates/list``, to its end; empty where there is no such method."""
        method = "resources/templates/list"
        self._connection.require("resources", method)
        shape = ListResourceTemplatesParams
        try:
            return await self._fetch_list(
                method, shape, lambda p: p.resource_templates, fresh, meta
            )
        except MethodNotFound:
            return []

    async def read_resource(
        self,
        uri: str,
        on_progress: OnProgress | None,
        timeout: float | None,
        fresh: bool,
        meta: MaybeMeta,
    ) -> ReadResourceResult:
        """``resources/read``."""
        self._connection.require("resources", "resources/read")
        params = ReadResourceParams(uri=uri, meta=self._connection.about(meta))
        result: ReadResourceResult = await self._fetch(
            "resources/read", params, timeout, on_progress, uri, fresh=fresh
        )
        return result

    async def list_prompts(self, fresh: bool = False, meta: MaybeMeta = None) -> list[Prompt]:
        """``prompts/list``, to its end."""
        self._connection.require("prompts", "prompts/list")
        prompts = await self._fetch_list(
            "prompts/list", ListPromptsParams, lambda page: page.prompts, fresh, meta
        )
        self._latest["prompts"] = prompts
        return prompts

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None,
        on_progress: OnProgress | None,
        timeout: float | None,
        meta: MaybeMeta,
    ) -> GetPromptResult:
        """``prompts/get``."""
        self._connection.require("prompts", "prompts/get")
        params = GetPromptParams(
            name=name,
            arguments=dict(arguments) if arguments else UNSET,
            meta=self._connection.about(meta),
        )
        result: GetPromptResult = await self._ask("prompts/get", params, timeout, on_progress, name)
        return result

    async def complete(
        self,
        ref: Reference,
        argument: str,
        value: str,
        context: Mapping[str, str] | None,
        *,
        timeout: float | None,
        meta: MaybeMeta,
    ) -> Completion:
        """``completion/complete``."""
        self._connection.require("completions", "completion/complete")
        params = CompleteParams(
            ref=ref,
            argument=CompletionArgument(name=argument, value=value),
            context=CompletionContext(arguments=dict(context)) if context else UNSET,
            meta=self._connection.about(meta),
        )
        answer = await self._ask("completion/complete", params, timeout)
        completion: Completion = answer.completion
        return completion

    # Lists as they were fetched last

    def latest(self, kind: ChangeKind) -> list[Any] | None:
        """A list as it was fetched last; None where it never was."""
        found = self._latest.get(kind)
        return None if found is None else list(found)

    async def refresh(self, kind: ChangeKind) -> None:
        """Fetch a list anew that was fetched before."""
        fetch: dict[str, Callable[[bool], Awaitable[object]]] = {
            "tools": self.list_tools,
            "prompts": self.list_prompts,
            "resources": self.list_resources,
        }
        if kind in self._latest:
            await fetch[kind](True)

    # Any method

    async def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None,
        result: type[R],
        timeout: float | None,
        on_progress: OnProgress | None,
    ) -> R:
        """Any request, sent as it is."""
        connection = self._connection
        for start, capability in REQUIRED_CAPABILITIES:
            if method.startswith(start):
                # spec 2025-11-25 basic/lifecycle#operation: both parties MUST only use
                # capabilities that were negotiated
                connection.require(capability, method)
        said = add_facts(params, connection.meta)
        return await connection.send(
            method,
            said if connection.traced else add_trace_context(said),
            result,
            timeout=timeout,
            on_progress=on_progress,
            name=_find_header_name(method, params),
        )

    async def _fetch(
        self,
        method: str,
        params: Any,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        name: str | None = None,
        *,
        fresh: bool = False,
        private: bool = False,
    ) -> Any:
        """The answer to a request: the one that is kept, or the server's."""
        responses, ask = self._responses, self._ask
        if responses is None:
            return await ask(method, params, timeout, on_progress, name)
        found = None if fresh else responses.find(method, params)
        if found is not None:
            return found
        changes = responses.changes(method)
        result = await ask(method, params, timeout, on_progress, name)
        responses.keep(method, params, result, changes, private=private)
        return result

    async def _fetch_list(
        self,
        method: str,
        params: type,
        items: Callable[[Any], list[T]],
        fresh: bool,
        meta: Mapping[str, Any] | None,
    ) -> list[T]:
        """A list to its end."""
        try:
            return await self._fetch_pages(method, params, items, fresh, meta)
        except InvalidParams:
            if fresh or self._responses is None or not self._responses.holds(method):
                raise
        # spec 2026-07-28 server/utilities/caching#interaction-with-pagination: where a cursor has
        # become invalid, discard all cached pages and fetch from the beginning
        self._responses.forget(method)
        return await self._fetch_pages(method, params, items, True, meta)

    async def _fetch_pages(
        self,
        method: str,
        params: type,
        items: Callable[[Any], list[T]],
        fresh: bool,
        meta: Mapping[str, Any] | None,
    ) -> list[T]:
        about = self._connection.about(meta)
        private, hints = False, LIST_HINTS.get()

        async def page(cursor: str | UnsetType) -> Any:
            nonlocal private
            found = await self._fetch(
                method, params(cursor=cursor, meta=about), fresh=fresh, private=private
            )
            # A page of something private is private, whatever it says.
            private = private or found.cache_scope == "private"
            if hints is not None:
                hints.add(found.ttl_ms)
            return found

        limits = self._limits
        return await collect_pages(page, items, pages=limits.pages, most=limits.items)


class PagedResult(Protocol):
    """A result that may have a sequel."""

    @property
    def next_cursor(self) -> str | UnsetType:
        """The cursor of the next page; UNSET on the last one."""
        ...


P = TypeVar("P", bound=PagedResult)


async def collect_pages(
    fetch: Callable[[str | UnsetType], Awaitable[P]],
    items: Callable[[P], list[T]],
    *,
    pages: int = MAX_PAGES,
    most: int | None = None,
) -> list[T]:
    """Every item of a list, page after page.

    Args:
        fetch: gets the page at a cursor, UNSET for the first one.
        items: what a page holds.
        pages: after how many it is not believed to be near its end.
        most: items it may have; None for any number.

    Raises:
        Misbehaved: the pages go round in a circle, or on and on, or hold too much.
    """
    found: list[T] = []
    seen: set[str] = set()
    cursor: str | UnsetType = UNSET
    for _ in range(pages):
        page = await fetch(cursor)
        found += items(page)
        if most is not None and len(found) > most:
            raise Misbehaved(f"the server's list has more than {most} items (Limits.items)")
        cursor = page.next_cursor
        if cursor is UNSET:
            return found
        if cursor in seen:
            raise Misbehaved(f"the server's list goes in circles: cursor {cursor!r} came twice")
        # spec 2026-07-28 server/utilities/pagination: clients MUST treat cursors as opaque
        seen.add(cursor)
    raise Misbehaved(f"the server's list has no end: {len(found)} items on {pages} pages")


def _find_header_name(method: str, params: Struct | Mapping[str, Any] | None) -> str | None:
    """The value of a request's ``Mcp-Name`` header: a tool's name, a URI, a task's id; or None."""
    row = METHODS.get(method)
    if row is None or row.named_by is None or params is None:
        return None
    if isinstance(params, Mapping):
        name = params.get(row.named_by)
    else:
        fields = {field.encode_name: field.name for field in structs.fields(params)}
        name = getattr(params, fields.get(row.named_by, ""), None)
    return name if isinstance(name, str) else None


def encode_model(value: Any) -> Any:
    """Encode what msgspec does not know by itself: pydantic models."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} is no JSON")


_encode = msgspec.json.Encoder(enc_hook=encode_model).encode
_NO_ARGUMENTS = Raw(b"{}")


def encode_arguments(arguments: Any) -> Raw:
    """Arguments as the raw JSON of an object.

    Raises:
        UsageError: they are no object.
    """
    if arguments is None:
        return _NO_ARGUMENTS
    try:
        data = _encode(arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the arguments cannot be sent: {error}") from error
    if data[:1] != b"{":
        raise UsageError(f"arguments are an object, not {arguments!r}")
    return Raw(data)
