"""One typed method for each thing a server offers."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.client.cache import Caching, Responses
from isthmus.client.catalog import Catalog
from isthmus.client.completing import Completer
from isthmus.client.connection import Connection, OnProgress
from isthmus.client.limits import Limits
from isthmus.client.listening import Kind
from isthmus.client.listing import collect
from isthmus.client.results import ToolResult
from isthmus.client.tasks import OnTask, TaskRoom
from isthmus.errors import HeaderMismatch, InvalidParams, MethodNotFound, UsageError
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

    Every list, :meth:`read_resource` and :meth:`discover` may be answered from what is kept, as
    long as the server says that it is fresh; ``fresh=True`` asks the server in any case.

    Args:
        connection: carries the calls.
        limits: how much a list may hold.
        tasks: where calls that run as tasks are followed.
    """

    def __init__(self, connection: Connection, limits: Limits, tasks: TaskRoom) -> None:
        self._connection = connection
        self._limits = limits
        self._catalog = Catalog()
        self._tasks = tasks
        tasks.attach(connection, self._catalog)
        self._responses: Responses | None = None
        self._latest: dict[Kind, list[Any]] = {}

    def _keep(self, caching: Caching) -> None:
        """Keep answers from now on; the connection is open."""
        target, revision = self._connection.target, self._connection.settled().revision.name
        self._responses = Responses(caching, target.key, revision, context=target.context)

    async def discover(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> DiscoverResult:
        """What the server says about itself now (since 2026-07-28).

        Raises:
            NotInRevision: a server of up to 2025-11-25 says it once, when the connection opens.
        """
        params = DiscoverParams(meta=self._connection.about(meta))
        result: DiscoverResult = await self._kept("server/discover", params, fresh=fresh)
        return result

    async def list_tools(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Tool]:
        """Every tool of the server.

        Over HTTP since 2026-07-28, tools with forbidden ``x-mcp-header`` marks are left out.

        Args:
            fresh: ask the server, whatever is kept.
            meta: further members of ``_meta``.

        Raises:
            CapabilityMissing: the server has no tools.
        """
        self._connection.require("tools", "tools/list")
        tools = await self._list("tools/list", ListToolsParams, lambda p: p.tools, fresh, meta)
        found = self._latest["tools"] = self._catalog.learn(tools)
        return found

    async def call_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
        on_task: OnTask | None = None,
    ) -> ToolResult:
        """Call a tool, answering what the server asks on the way.

        A task is awaited to its end all the same, and cancelled when nobody waits for it any more.

        Args:
            name: the tool.
            arguments: a mapping, or what becomes one.
            on_progress: told of progress, in order; may be async.
            timeout: seconds without answer or progress, or those of a task in all; None for the
                client's.
            meta: further members of ``_meta``.
            on_task: told of the task, and awaited, where it becomes one.

        Returns:
            The result, also where the tool itself failed: look at ``is_error``, or call ``parse``.

        Raises:
            Refused: the server answered with an error; there is no such tool, for example.
            CallTimedOut: no answer in time; the call was cancelled.
            ConnectionLost: the connection ended first.
            Misbehaved: the result breaks the tool's output schema (as last listed), or the rules.
            TooManyRounds: the server kept asking.
            TaskCancelled: it ran as a task, and somebody cancelled it.
        """
        connection = self._connection
        connection.require("tools", "tools/call")
        params = CallToolParams(name=name, arguments=raw(arguments), meta=connection.about(meta))
        if self._tasks.asks_itself and await self._must_be_task(name):
            return await self._tasks.call(params, on_progress, timeout, on_task)
        headers = self._catalog.headers(name, arguments)
        try:
            result: CallToolResult = await connection.ask(
                "tools/call", params, timeout, on_progress, name, headers
            )
        except HeaderMismatch:
            # spec 2026-07-28 basic/transports/streamable-http#client-behavior: SHOULD list the
            # tools again and retry with the headers they ask for
            await self.list_tools(fresh=True)
            again = self._catalog.headers(name, arguments)
            if again == headers:
                raise
            result = await connection.ask("tools/call", params, timeout, on_progress, name, again)
        except MethodNotFound:
            if not self._tasks.asks_itself or not await self._must_be_task(name, fresh=True):
                raise
            return await self._tasks.call(params, on_progress, timeout, on_task)
        if type(result) is CallToolResult:
            self._catalog.check(name, result)
            return ToolResult(name, result)
        return await self._tasks.wait_or_cancel(self._tasks.handle(name, result), timeout, on_task)

    async def _must_be_task(self, name: str, *, fresh: bool = False) -> bool:
        """Whether a tool runs as a task only, on a server of 2025-11-25 that has tasks."""
        # spec 2025-11-25 basic/utilities/tasks#tool-level-negotiation: clients MUST then invoke
        # it as a task, so that they have to know
        if fresh or not self._catalog.knows(name):
            await self.list_tools(fresh=fresh)
        return self._catalog.task(name) == "required"

    async def list_resources(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Resource]:
        """Every resource of the server.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        method = "resources/list"
        self._connection.require("resources", method)
        found = await self._list(method, ListResourcesParams, lambda p: p.resources, fresh, meta)
        self._latest["resources"] = found
        return found

    async def list_resource_templates(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[ResourceTemplate]:
        """Every resource template of the server; none where it has resources but no such list.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        method = "resources/templates/list"
        self._connection.require("resources", method)
        shape = ListResourceTemplatesParams
        try:
            return await self._list(method, shape, lambda p: p.resource_templates, fresh, meta)
        except MethodNotFound:
            return []

    async def read_resource(
        self,
        uri: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        fresh: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Read a resource.

        Args:
            uri: the resource.
            on_progress: told of progress, in order; may be async.
            timeout: seconds without answer or progress; None for the client's.
            fresh: ask the server, whatever is kept.
            meta: further members of ``_meta``.

        Raises:
            ResourceNotFound: there is nothing at this URI.
        """
        self._connection.require("resources", "resources/read")
        params = ReadResourceParams(uri=uri, meta=self._connection.about(meta))
        result: ReadResourceResult = await self._kept(
            "resources/read", params, timeout, on_progress, uri, fresh=fresh
        )
        return result

    async def list_prompts(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Prompt]:
        """Every prompt of the server.

        Raises:
            CapabilityMissing: the server has no prompts.
        """
        self._connection.require("prompts", "prompts/list")
        prompts = await self._list(
            "prompts/list", ListPromptsParams, lambda page: page.prompts, fresh, meta
        )
        self._latest["prompts"] = prompts
        return prompts

    def latest(self, kind: Kind) -> list[Any] | None:
        """A list as it was fetched last, without asking anybody; None where it never was.

        With ``Client(auto_refresh=True)`` it is fetched anew whenever the server says that it has
        changed.

        Args:
            kind: ``"tools"``, ``"prompts"`` or ``"resources"``.
        """
        found = self._latest.get(kind)
        return None if found is None else list(found)

    async def _refresh(self, kind: Kind) -> None:
        """Fetch a list anew that was fetched before."""
        if kind not in self._latest:
            return
        if kind == "tools":
            await self.list_tools(fresh=True)
        elif kind == "prompts":
            await self.list_prompts(fresh=True)
        else:
            await self.list_resources(fresh=True)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        on_progress: OnProgress | None = None,
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
            "prompts/get", params, timeout, on_progress, name
        )
        return result

    async def complete(
        self,
        ref: Reference,
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Completion:
        """What might go into a blank; see :meth:`completer` for one that is being typed.

        Args:
            ref: the prompt or resource template that has it.
            argument: the blank's name.
            value: what has been typed.
            context: what the other blanks hold already.
            timeout: seconds without an answer; None for the client's.
            meta: further members of ``_meta``.
        """
        self._connection.require("completions", "completion/complete")
        params = CompleteParams(
            ref=ref,
            argument=CompletionArgument(name=argument, value=value),
            context=CompletionContext(arguments=dict(context)) if context else UNSET,
            meta=self._connection.about(meta),
        )
        answer = await self._connection.ask("completion/complete", params, timeout)
        completion: Completion = answer.completion
        return completion

    def completer(
        self, ref: Reference, argument: str, *, delay: float = 0.15, ttl: float = 60.0
    ) -> Completer:
        """Completes one blank while it is being typed.

        Args:
            ref: the prompt or resource template that has it.
            argument: the blank's name.
            delay: seconds without another keystroke before the server is asked.
            ttl: seconds that an answer is good for.
        """

        async def ask(value: str, context: Mapping[str, str] | None) -> Completion:
            return await self.complete(ref, argument, value, context=context)

        return Completer(ask, delay=delay, ttl=ttl)

    async def batch(self, calls: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Send several messages as one array, which revision 2025-03-26 alone has.

        What each call says first goes into the array; what it says later, for example because it
        asks for the next page, goes by itself::

            hello, tools = await client.batch([client.call_tool("hello"), client.list_tools()])

        Args:
            calls: what to do, as coroutines that nobody has awaited yet.

        Returns:
            What each of them returned, in order; where one failed, the exception it raised.

        Raises:
            NotInRevision: the revision agreed on has no batches; nothing was sent.
            UsageError: there are more than 100 calls.
        """
        return await self._connection.live().batch(list(calls))

    async def _kept(
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
        responses, ask = self._responses, self._connection.ask
        if responses is None:
            return await ask(method, params, timeout, on_progress, name)
        found = None if fresh else responses.find(method, params)
        if found is not None:
            return found
        changes = responses.changes(method)
        result = await ask(method, params, timeout, on_progress, name)
        responses.keep(method, params, result, changes, private=private)
        return result

    async def _list(
        self,
        method: str,
        params: type,
        items: Callable[[Any], list[T]],
        fresh: bool,
        meta: Mapping[str, Any] | None,
    ) -> list[T]:
        """A list to its end."""
        try:
            return await self._pages(method, params, items, fresh, meta)
        except InvalidParams:
            if fresh or self._responses is None or not self._responses.holds(method):
                raise
        # spec 2026-07-28 server/utilities/caching#interaction-with-pagination: where a cursor has
        # become invalid, discard all cached pages and fetch from the beginning
        self._responses.forget(method)
        return await self._pages(method, params, items, True, meta)

    async def _pages(
        self,
        method: str,
        params: type,
        items: Callable[[Any], list[T]],
        fresh: bool,
        meta: Mapping[str, Any] | None,
    ) -> list[T]:
        about = self._connection.about(meta)
        private = False

        async def page(cursor: str | UnsetType) -> Any:
            nonlocal private
            found = await self._kept(
                method, params(cursor=cursor, meta=about), fresh=fresh, private=private
            )
            # A page of something private is private, whatever it says.
            private = private or found.cache_scope == "private"
            return found

        limits = self._limits
        return await collect(page, items, pages=limits.pages, most=limits.items)


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
