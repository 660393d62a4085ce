"""One typed method for each thing a server offers.

Tasks as a program handles them: started, found again, listed.

What is sent to a server as it is, and what is not of the specification.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, structs

from isthmus.client.cache import Caching, ResponseCache
from isthmus.client.completion import Completer
from isthmus.client.connection import Connection, OnProgress, add_facts, add_trace_context
from isthmus.client.extensions import CustomMethods
from isthmus.client.listing import collect_pages
from isthmus.client.model.limits import Limits
from isthmus.client.model.results import ToolResult
from isthmus.client.subscriptions import ChangeKind
from isthmus.client.tasks import OnTask, TaskTracker, ToolTask
from isthmus.client.tool_catalog import ToolCatalog
from isthmus.core.extensions import find_settings
from isthmus.core.negotiation import states_facts
from isthmus.errors import (
    CapabilityMissing,
    HeaderMismatch,
    InvalidParams,
    MethodNotFound,
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
    PingParams,
    Prompt,
    ReadResourceParams,
    ReadResourceResult,
    Reference,
    Resource,
    ResourceTemplate,
    Task,
    Tool,
)

__all__ = ["Custom", "Methods", "TaskMethods"]

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

    def __init__(self, connection: Connection, limits: Limits, tasks: TaskTracker) -> None:
        self._connection = connection
        self._limits = limits
        self._catalog = ToolCatalog()
        self._tasks = tasks
        tasks.attach(connection, self._catalog)
        self._responses: ResponseCache | None = None
        self._latest: dict[ChangeKind, list[Any]] = {}

    def _keep(self, caching: Caching) -> None:
        """Keep answers from now on; the connection is open."""
        target, revision = self._connection.target, self._connection.settled().revision.name
        self._responses = ResponseCache(caching, target.key, revision, context=target.context)

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
            timeout: seconds without answer or progress, of a task in all; None for the client's.
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
        encoded, about = encode_arguments(arguments), connection.about(meta)
        params = CallToolParams(name=name, arguments=encoded, meta=about)
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

    def latest(self, kind: ChangeKind) -> list[Any] | None:
        """A list as it was fetched last, without asking anybody; None where it never was.

        With ``Client(auto_refresh=True)`` it is fetched anew whenever the server says that it has
        changed.

        Args:
            kind: ``"tools"``, ``"prompts"`` or ``"resources"``.
        """
        found = self._latest.get(kind)
        return None if found is None else list(found)

    async def _refresh(self, kind: ChangeKind) -> None:
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
        return await collect_pages(page, items, pages=limits.pages, most=limits.items)


def encode_model(value: Any) -> Any:
    """What msgspec does not know by itself: pydantic models."""
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


class TaskMethods(Methods):
    """What may be done with calls that run as tasks."""

    async def start_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        ttl: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolTask:
        """Call a tool without waiting for its end, where it runs as a task.

        In 2025-11-25 it does where it says that it may; since 2026-07-28 the server decides. A
        call that is no task is awaited to its end, and the handle has its result already.

        Example::

            task = await client.start_tool("render", {"scene": "beach"})
            keep(task.id)
            result = await task.result()

        Args:
            name: the tool.
            arguments: a mapping, or a struct, dataclass or model that becomes one.
            ttl: seconds the server shall keep the task (2025-11-25); it may say otherwise.
            on_progress: told of progress, in order; may be async. Since 2026-07-28 tasks report
                none: see the message of ``status()``.
            meta: further members of ``_meta``.

        Raises:
            Refused: the server answered with an error.
            CallTimedOut: no answer in time.
            ConnectionLost: the connection ended first.
        """
        connection = self._connection
        connection.require("tools", "tools/call")
        encoded, about = encode_arguments(arguments), connection.about(meta)
        params = CallToolParams(name=name, arguments=encoded, meta=about)
        if self._tasks.asks_itself and not self._catalog.knows(name):
            await self.list_tools()
        if self._tasks.asks_itself and self._catalog.task(name) in {"optional", "required"}:
            return await self._tasks.start(params, on_progress, ttl)
        headers = self._catalog.headers(name, arguments)
        answer = await connection.ask("tools/call", params, None, on_progress, name, headers)
        return self._tasks.handle(name, answer)

    def task(self, id: str, *, tool: str = "", answered: Iterable[str] = ()) -> ToolTask:
        """A task that was started before, maybe over another connection.

        Args:
            id: what ``ToolTask.id`` was.
            tool: the tool, if its results are to be held against its schema.
            answered: names of its questions that were answered before, and are not answered again
                (since 2026-07-28): what ``ToolTask.on_answered`` was told.
        """
        return ToolTask(self._tasks, tool, id, answered=answered)

    async def list_tasks(self) -> list[TaskState]:
        """Every task of ours that the server knows (2025-11-25).

        Raises:
            NotInRevision: other revisions list none.
            CapabilityMissing: the server does not list tasks to us.
        """
        connection = self._connection
        if not self._tasks.core:
            raise NotInRevision(f"revision {connection.settled().revision.name} lists no tasks")
        offered = connection.settled().capabilities.tasks
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


R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

REQUIRED_CAPABILITIES = (
    ("tools/", "tools"),
    ("prompts/", "prompts"),
    ("resources/", "resources"),
    ("completion/", "completions"),
    ("logging/", "logging"),
)
"""The capability that methods need, by how they begin."""


class Custom(TaskMethods):
    """Requests and notifications of the program's own, and of the server's own.

    Args:
        connection: carries the calls.
        limits: how much a list may hold.
        tasks: where calls that run as tasks are followed.
        additions: what serves and hears what is the server's own.
    """

    def __init__(
        self, connection: Connection, limits: Limits, tasks: TaskTracker, additions: CustomMethods
    ) -> None:
        super().__init__(connection, limits, tasks)
        self._additions = additions

    async def ping(self, *, timeout: float | None = None) -> None:
        """See whether the server answers: ``ping``, or since 2026-07-28 ``server/discover``."""
        if states_facts(self._connection.settled().revision):
            params = DiscoverParams(meta=self._connection.meta)
            await self._connection.ask("server/discover", params, timeout=timeout)
        else:
            await self._connection.ask("ping", PingParams(), timeout=timeout)

    async def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        result: type[R] = dict,  # type: ignore[assignment]  # R is dict where nothing is given
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> R:
        """Send a request of your own, as it is: no question of the server's is answered.

        Args:
            method: any method; one of the specification's must be in the revision.
            params: a struct or plain data; what the revision wants in ``_meta`` is added.
            result: what to read the answer into.
            timeout: seconds without answer or progress; None for the client's.
            on_progress: told of progress.

        Raises:
            NotInRevision: the revision has no such method.
            CapabilityMissing: the server does not offer what it needs.
        """
        connection = self._connection
        for start, capability in REQUIRED_CAPABILITIES:
            if method.startswith(start):
                # spec 2025-11-25 basic/lifecycle#operation: both parties MUST only use
                # capabilities that were negotiated
                connection.require(capability, method)
        return await connection.send(
            method,
            add_trace_context(add_facts(params, connection.meta)),
            result,
            timeout=timeout,
            on_progress=on_progress,
            name=_find_header_name(method, params),
        )

    async def notify(self, method: str, params: Struct | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own.

        Args:
            method: any notification; one of the specification's must be in the revision.
            params: a struct or plain data.
        """
        await self._connection.live().note(method, params)

    def held(self) -> AbstractContextManager[None]:
        """Let no call on this connection time out meanwhile: ``with client.held():``.

        For who answers a server's question and asks a person, which takes as long as it takes; a
        time limit for that is theirs.
        """
        return self._connection.clocks.held()

    @property
    def is_held(self) -> bool:
        """Whether a person is asked on the server's behalf just now; see :meth:`held`."""
        return self._connection.clocks.still

    def on_undeclared(self, fn: F) -> F:
        """Decorate a function told of each question that this client did not offer to answer.

        The server was told what the client answers, and is refused: ``fn(method)``.
        """
        self._connection.answering.on_undeclared = fn
        return fn

    def on_notification(self, name: str, /, *, params: Any = dict) -> Callable[[F], F]:
        """Decorate a function told of a notification of the server's own: ``fn(params)``.

        Args:
            name: the notification's method.
            params: what its params decode to; what does not fit is ignored.

        Raises:
            UsageError: the name is taken, or the specification's: see ``on_log`` and ``on_change``.
        """
        return self._additions.on_notification(name, params)

    def method(self, name: str, /, *, params: Any = dict, result: Any = None) -> Callable[[F], F]:
        """Decorate what serves a request of a server's own, up to 2025-11-25: ``fn(params)``.

        Since 2026-07-28 servers send no requests.

        Args:
            name: the method.
            params: what its params decode to.
            result: the type of what the function returns; None where it returns nothing.

        Raises:
            UsageError: the name is taken, or the specification's.
        """
        return self._additions.method(name, params, result)

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings the server declared for an extension, or None where it has it not."""
        return find_settings(self._connection.settled().capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings the server declared for an extension.

        Raises:
            CapabilityMissing: it did not declare it.
        """
        settings = self.extension(identifier)
        if settings is None:
            raise CapabilityMissing(
                f"the server does not offer the extension {identifier}",
                {"extensions": {identifier: {}}},
            )
        return settings


def _find_header_name(method: str, params: Struct | Mapping[str, Any] | None) -> str | None:
    """What the ``Mcp-Name`` header of a request says: a tool's name, a URI, a task's id; or None."""
    row = METHODS.get(method)
    if row is None or row.named_by is None or params is None:
        return None
    if isinstance(params, Mapping):
        name = params.get(row.named_by)
    else:
        fields = {field.encode_name: field.name for field in structs.fields(params)}
        name = getattr(params, fields.get(row.named_by, ""), None)
    return name if isinstance(name, str) else None
