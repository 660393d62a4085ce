"""MCP client: one object per connection, whatever the server speaks and wherever it is."""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import UNSET, Struct

from isthmus.client.cache import Caching
from isthmus.client.calls import ClientCalls
from isthmus.client.completion import Completer
from isthmus.client.connection import Connection
from isthmus.client.extensions import CustomMethods
from isthmus.client.features.answering import Answering
from isthmus.client.features.capabilities import add_capabilities
from isthmus.client.features.elicitation import Elicit
from isthmus.client.features.roots import Roots
from isthmus.client.features.sampling import Sample
from isthmus.client.model.limits import ClientSettings, Limits, OnProgress, check_limits
from isthmus.client.model.results import ToolResult
from isthmus.client.model.retries import Retries, check_retries, check_total_timeout
from isthmus.client.notifications import ListRefresher, Notifications, OnChange, OnLog
from isthmus.client.subscriptions import ChangeKind, ChangeStream
from isthmus.client.targets import (
    ClientTarget,
    EraChoice,
    Target,
    force_era,
    resolve_revision,
    resolve_target,
)
from isthmus.client.tasks import OnTask, TaskTracker, ToolTask
from isthmus.client.tool_catalog import ToolCatalog
from isthmus.client.upkeep import Upkeep
from isthmus.core.extensions import find_settings
from isthmus.errors import CapabilityMissing, ConnectionLost
from isthmus.revisions import Revision
from isthmus.runtime.extension import Extension, Extensions, collect_extensions
from isthmus.tasks.shapes import TaskState
from isthmus.wire import (
    ClientCapabilities,
    Completion,
    DiscoverResult,
    GetPromptResult,
    Implementation,
    LogLevel,
    Prompt,
    ReadResourceResult,
    Reference,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
    SubscriptionFilter,
    Tool,
)

if TYPE_CHECKING:
    from isthmus.client.skills import ServedSkill
    from isthmus.transports.http.client.requests import Authorization

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

UNKNOWN_SERVER = Implementation(name="", version="")

DEFAULT_LIMITS = Limits()  # nothing in them changes

REFRESH_DELAY_S = 0.3  # in which several changes of a list are one


class Client:
    """A connection to one server.

    Example::

        async with Client("https://example.com/mcp") as client:
            for tool in await client.list_tools():
                print(tool.name, "-", tool.description)
            result = await client.call_tool("book", {"date": "2026-05-01"})
            print(result.text)

    It may be used from any task, opened in one and closed in another. Whatever happens to the
    connection, each call ends once: with its result, or with one exception of
    :mod:`isthmus.errors`.

    Args:
        target: a URL, ``Command(…)``, the path of a ``.py`` script, an entry of ``mcpServers``, a server in this
            process, a channel; or ``{"mcpServers": …}`` with several servers as one, the names of their tools and
            prompts beginning with ``NAME_``.
        elicit: asks the user for the server: gets the question, gives ``Accepted(value)``, ``Declined()`` or
            ``Cancelled()``. Without it the client does not offer elicitation.
        sample: has a model write for the server: gets the conversation, gives text or a ``CreateMessageResult``.
            Without it the client does not offer sampling (deprecated since 2026-07-28).
        roots: where the server may work: paths, ``file://`` URIs, ``Root`` objects, or a function that gives them.
            None does not offer roots (deprecated since 2026-07-28).
        watch_roots: seconds from one look at the roots to the next: those that are not there are left out, and a
            server of up to 2025-11-25 is told when that changes. None does not look; :meth:`set_roots` tells.
        sample_tools: the model may be given tools (since 2025-11-25).
        sample_context: the model may be given what other servers said (since 2025-11-25).
        answer_tasks: the server may have its questions answered as tasks, and fetch the answers when they are there
            (2025-11-25); the functions that answer are the same.
        on_log: told of the server's log messages.
        on_change: told of every :class:`~isthmus.client.subscriptions.Change` the server tells of.
        on_elicitation_complete: told of the id of each page that the user was sent to, once the server says that it
            was dealt with (2025-11-25).
        auto_refresh: fetch lists that were fetched before anew when they change, after so many seconds or 0.3;
            ``on_change`` is told after that, and :meth:`latest` has them.
        cache: keep answers for as long as the server allows; False keeps none.
        log_level: the least severe messages wanted; with ``on_log``, ``"info"`` by default.
        name: who we say we are.
        version: and in which version.
        revision: the one revision to speak; None finds the newest that both sides speak.
        era: ``"legacy"`` opens by ``initialize`` whatever the server offers, and ``"modern"`` tries nothing but
            2026-07-28; ``"auto"`` finds out.
        timeout: seconds a call may be silent, without answer and progress. Progress is asked for, and so counts, where
            the call has an ``on_progress``, or with ``progress``.
        max_timeout: seconds one request may take whatever its progress.
        total_timeout: seconds that a whole operation may take: opening, or a call with all its rounds, pages and
            retries, and the task that it becomes.
        progress: ask every tool call for progress, so that it counts without an ``on_progress``.
        retries: how often a call that is safe to repeat is made again when the connection breaks or the server is too
            busy: a number, or :class:`isthmus.client.Retries`.
        connect_timeout: seconds opening may take.
        probe_timeout: seconds of silence that mean the server is of before 2026-07-28; None for 2 where it is launched
            and 10 over HTTP.
        max_rounds: how often in a row a server may ask while it serves one call.
        ping_every: seconds from one ping to the next; None does not ping.
        ping_misses: how many pings in a row without an answer mean that the server is gone.
        limits: what else the server may cost: :class:`isthmus.client.Limits`.
        headers: for every HTTP request, for example ``{"X-Api-Key": "…"}``.
        auth: gets the tokens that a server over HTTP wants: ``isthmus.auth.OAuth(…)`` with the user, or one of the
            grants of machines. What the user takes for it counts for none of the times above.
        capabilities: what the client can do beyond what follows from the arguments above.
        extensions: what it supports beside the specification: settings by identifier, or
            :class:`~isthmus.runtime.extension.Extension` objects (since 2026-07-28).

    Raises:
        UsageError: the target is of no known kind, there is no such revision, a root cannot be one, something is
            declared that nothing answers, or an extension cannot be put in place.
    """

    def __init__(
        self,
        target: ClientTarget,
        *,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        roots: Roots | None = None,
        watch_roots: float | None = None,
        sample_tools: bool = False,
        sample_context: bool = False,
        answer_tasks: bool = False,
        on_log: OnLog | None = None,
        on_change: OnChange | None = None,
        on_elicitation_complete: Callable[[str], Awaitable[None] | None] | None = None,
        auto_refresh: bool | float = False,
        cache: bool | Caching = True,
        log_level: LogLevel | None = None,
        name: str = "isthmus",
        version: str = "0.1.0",
        revision: str | Revision | None = None,
        era: EraChoice = "auto",
        timeout: float = 60.0,
        max_timeout: float = 1800.0,
        total_timeout: float | None = None,
        progress: bool = False,
        retries: int | Retries = 0,
        connect_timeout: float = 30.0,
        probe_timeout: float | None = None,
        max_rounds: int = 10,
        ping_every: float | None = None,
        ping_misses: int = 3,
        headers: Mapping[str, str] | None = None,
        auth: "Authorization | None" = None,
        capabilities: ClientCapabilities | None = None,
        extensions: Extensions | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        limits, supported = check_limits(limits), collect_extensions(extensions)
        heard = self._notifications = Notifications(on_log, on_change, limits)
        declared = add_capabilities(
            capabilities, supported, sample_tools, sample_context, answer_tasks
        )
        done, watched = heard.bind_callback(on_elicitation_complete), watch_roots is not None
        self._answering = Answering(
            elicit, sample, roots, declared, limits=limits, watched=watched, page_done=done
        )
        self._caching = (Caching() if cache else None) if isinstance(cache, bool) else cache
        settings = ClientSettings(
            info=Implementation(name=name, version=version),
            revision=resolve_revision(revision, era),
            timeout=timeout, max_timeout=max_timeout, connect_timeout=connect_timeout,
            probe_timeout=probe_timeout, max_rounds=max_rounds, watch_roots=watch_roots,
            log_level=log_level or ("info" if on_log is not None else None),
            pings=(ping_every, ping_misses),
            progress=progress,
            retries=check_retries(retries),
            total_timeout=check_total_timeout(total_timeout),
        )  # fmt: skip
        where = force_era(era, resolve_target(target, headers, connect_timeout, auth))
        self._assemble(where, settings, limits, supported, log_level, refresh=auto_refresh)

    def _assemble(
        self,
        where: Target,
        settings: ClientSettings,
        limits: Limits,
        supported: Sequence[Extension],
        log_level: LogLevel | None,
        *,
        refresh: bool | float,
    ) -> None:
        """Build the parts, each from those below it."""
        heard, answering, self._tools = self._notifications, self._answering, ToolCatalog()
        notices = heard.notices(answering.pages.done)
        self._custom = CustomMethods(
            answering.routes, notices, heard.tell, answering.limit_requests
        )
        for extension in supported:
            self._custom.extend(extension)
        connection = Connection(
            where, self._custom.router(), answering, settings, limits.result_bytes
        )
        self._tasks = TaskTracker(connection, answering, heard.subscriptions, self._tools)
        self._calls = ClientCalls(connection, limits, self._tools, self._tasks)
        self._upkeep = Upkeep(connection, heard, answering, log_level)
        notices.update(self._tasks.notices())  # the router has this dictionary
        heard.attach(connection, self._calls.forget_changed)
        connection.on_lost = heard.subscriptions.lost
        connection.on_renewed = self._upkeep.restore
        self._connection = self.connection = connection
        if refresh is not False:
            delay = REFRESH_DELAY_S if refresh is True else refresh
            heard.refresher = ListRefresher(
                delay, self._calls.refresh, heard.tell_change, heard.start
            )

    # Opening and closing

    async def open(self) -> None:
        """Connect; ``async with`` does it for you.

        Raises:
            ConnectFailed: no connection came about; the message says why and what to try.
            AuthError: the server wants authorization, and none was to be had.
            OutOfPhase: the client was closed before.
        """
        if not await self._calls.open():
            return
        self._calls.begin(self._caching)
        await self._upkeep.send_log_level()
        self._upkeep.start()

    async def close(self) -> None:
        """Disconnect: calls in flight fail with ``ConnectionLost``. Safe to call twice."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def on_reconnect(self, fn: F) -> F:
        """Decorate a function told that a new session has begun, with this client: ``fn(client)``.

        That happens over HTTP up to 2025-11-25, where a server has ended the session. The log
        level and the subscriptions are as they were; what else the server kept is gone.
        """
        self._upkeep.on_restored = lambda: self._notifications.tell(fn, self)
        return fn

    def on_lost(self, fn: F) -> F:
        """Decorate a function told, once, that this connection has ended for good: ``fn(error)``.

        It is called before the calls in flight end, and must not wait; whoever wants another
        connection makes a new client. Closing the client ends the connection, too.
        """
        before = self._connection.on_lost

        def lost(error: ConnectionLost) -> None:
            before(error)
            fn(error)

        self._connection.on_lost = lost
        return fn

    @property
    def stderr(self) -> list[str]:
        """The last lines that a launched server wrote to standard error, fit to be shown."""
        return getattr(getattr(self._connection.peer, "channel", None), "stderr", [])

    @property
    def pid(self) -> int | None:
        """The process id of a launched server; None for any other."""
        return getattr(getattr(self._connection.peer, "channel", None), "pid", None)

    # Who is there

    @property
    def servers(self) -> Mapping[str, str | None]:
        """Of ``Client({"mcpServers": …})`` with several servers: why each cannot be reached, or None."""
        return self._connection.target.servers

    @property
    def revision(self) -> Revision:
        """The protocol revision that both sides agreed on."""
        return self._connection.require_agreement().revision

    @property
    def info(self) -> Implementation:
        """The server's name and version, as it states them; empty strings where it states none."""
        return self._connection.require_agreement().info or UNKNOWN_SERVER

    @property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declared."""
        return self._connection.require_agreement().capabilities

    @property
    def instructions(self) -> str | None:
        """The instructions of the server for a model; None where it gives none."""
        return self._connection.require_agreement().instructions

    def extension(self, identifier: str) -> Mapping[str, Any] | None:
        """The settings that the server declared for the extension ``identifier``; None if it declared none."""
        return find_settings(self._connection.require_agreement().capabilities, identifier)

    def require_extension(self, identifier: str) -> Mapping[str, Any]:
        """The settings that the server declared for the extension ``identifier``.

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

    async def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server answers in ``timeout`` seconds: ``ping``, since 2026-07-28 ``server/discover``."""
        await self._upkeep.ping(timeout)

    async def discover(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> DiscoverResult:
        """The answer to ``server/discover``, since 2026-07-28; ``fresh`` disregards a kept one, ``meta`` goes along.

        Raises:
            NotInRevision: a server of up to 2025-11-25 says it once, when the connection opens.
        """
        return await self._calls.discover(fresh, meta)

    # Tools and their tasks

    async def list_tools(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Tool]:
        """Every tool of the server, of all pages (``tools/list``).

        Over HTTP since 2026-07-28, tools with forbidden ``x-mcp-header`` marks are left out.

        Args:
            fresh: ask the server, whatever is kept.
            meta: further members of ``_meta``.

        Raises:
            CapabilityMissing: the server has no tools.
        """
        return await self._calls.list_tools(fresh, meta)

    async def call_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
        on_task: OnTask | None = None,
        prefer_task: bool = False,
    ) -> ToolResult:
        """Call a tool (``tools/call``), and answer what the server asks on the way.

        A task is awaited to its end all the same, and cancelled when nobody waits for it any more.

        Args:
            name: the tool.
            arguments: a mapping, or what becomes one.
            on_progress: told of progress, in order; may be async.
            timeout: seconds without answer or progress, or of a task in all; None for the client's.
            meta: further members of ``_meta``.
            on_task: told of the task, and awaited, where it becomes one.
            prefer_task: have it be a task where a server of 2025-11-25 leaves that to its clients.

        Returns:
            The result, also where the tool itself failed: look at ``is_error``, or call ``parse``.

        Raises:
            Refused: the server answered with an error; there is no such tool, for example.
            CallTimedOut: no answer in time; the call was cancelled.
            ConnectionLost: the connection ended first.
            Misbehaved: the result breaks the tool's output schema (as last listed), or the rules.
            TooManyRounds, TaskCancelled: the server kept asking; somebody cancelled its task.
        """
        return await self._calls.call_tool(
            name, arguments, on_progress, timeout, meta, on_task=on_task, prefer_task=prefer_task
        )

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
            on_progress: told of progress, in order; may be async. Since 2026-07-28 tasks report none: see the message
                of ``status()``.
            meta: further members of ``_meta``.

        Raises:
            Refused: the server answered with an error.
            CallTimedOut: no answer in time.
            ConnectionLost: the connection ended first.
        """
        return await self._calls.start_tool(name, arguments, ttl, on_progress, meta)

    def task(self, id: str, *, tool: str = "", answered: Iterable[str] = ()) -> ToolTask:
        """A task that was started before, maybe over another connection.

        Args:
            id: what ``ToolTask.id`` was.
            tool: the tool, if its results are to be held against its schema.
            answered: names of its questions that were answered before, and are not answered again (since 2026-07-28):
                what ``ToolTask.on_answered`` was told.
        """
        return ToolTask(self._tasks, tool, id, answered=answered)

    async def list_tasks(self) -> list[TaskState]:
        """Every task of this client that the server knows (``tasks/list`` of 2025-11-25).

        Raises:
            NotInRevision: other revisions list none.
            CapabilityMissing: the server does not list tasks to us.
        """
        return await self._calls.list_tasks()

    # Resources, prompts and completion

    async def list_resources(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Resource]:
        """Every resource of the server (``resources/list``); ``fresh`` and ``meta`` as for :meth:`list_tools`.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        return await self._calls.list_resources(fresh, meta)

    async def list_resource_templates(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[ResourceTemplate]:
        """Every resource template (``resources/templates/list``); ``fresh``, ``meta`` as for :meth:`list_tools`.

        It is empty where the server has resources but no list of templates.

        Raises:
            CapabilityMissing: the server has no resources.
        """
        return await self._calls.list_resource_templates(fresh, meta)

    async def read_resource(
        self,
        uri: str,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        fresh: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Read a resource (``resources/read``).

        Args:
            uri: the resource.
            on_progress: told of progress, in order; may be async.
            timeout: seconds without answer or progress; None for the client's.
            fresh: ask the server, whatever is kept.
            meta: further members of ``_meta``.

        Raises:
            ResourceNotFound: there is nothing at this URI.
        """
        return await self._calls.read_resource(uri, on_progress, timeout, fresh, meta)

    async def skills(self) -> "list[ServedSkill]":
        """The skills that the server lists (SEP-2640); nothing of them is read.

        Raises:
            CapabilityMissing: the server does not offer skills.
        """
        from isthmus.client.skills import list_skills  # few servers offer any

        return await list_skills(self)

    async def skill(self, uri: str) -> "ServedSkill":
        """A skill by ``uri``, which is that of its ``SKILL.md``, whether it is listed or not.

        Raises:
            CapabilityMissing: the server does not offer skills.
            InvalidParams: there is no such skill.
        """
        from isthmus.client.skills import get_skill

        return await get_skill(self, uri)

    async def list_prompts(
        self, *, fresh: bool = False, meta: Mapping[str, Any] | None = None
    ) -> list[Prompt]:
        """Every prompt of the server (``prompts/list``); ``fresh`` and ``meta`` as for :meth:`list_tools`.

        Raises:
            CapabilityMissing: the server has no prompts.
        """
        return await self._calls.list_prompts(fresh, meta)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """The messages of the prompt ``name``, with ``arguments`` filled in by the server (``prompts/get``).

        ``on_progress``, ``timeout`` (seconds) and ``meta`` mean what they mean in :meth:`call_tool`.
        """
        return await self._calls.get_prompt(name, arguments, on_progress, timeout, meta)

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
        """Values that complete an argument (``completion/complete``); :meth:`completer` asks while it is typed.

        Args:
            ref: the prompt or resource template that has it.
            argument: the blank's name.
            value: what has been typed.
            context: what the other blanks hold already.
            timeout: seconds without an answer; None for the client's.
            meta: further members of ``_meta``.
        """
        return await self._calls.complete(ref, argument, value, context, timeout=timeout, meta=meta)

    def completer(
        self, ref: Reference, argument: str, *, delay: float = 0.15, ttl: float = 60.0
    ) -> Completer:
        """Completer of one argument while it is being typed.

        Args:
            ref: the prompt or resource template that has it.
            argument: the blank's name.
            delay: seconds without another keystroke before the server is asked.
            ttl: seconds that an answer is good for.
        """

        async def ask(value: str, context: Mapping[str, str] | None) -> Completion:
            return await self.complete(ref, argument, value, context=context)

        return Completer(ask, delay=delay, ttl=ttl)

    def latest(self, kind: ChangeKind) -> list[Any] | None:
        """The list that was fetched last, without a request; None where none was.

        With ``Client(auto_refresh=True)`` it is fetched anew whenever the server says that it has changed.

        Args:
            kind: ``"tools"``, ``"prompts"`` or ``"resources"``.
        """
        return self._calls.latest(kind)

    # Changes, logs, roots

    async def subscribe(self, uri: str) -> None:
        """Ask a server of up to 2025-11-25 to report changes of the resource at ``uri``; see :meth:`listen`.

        Raises:
            NotInRevision: since 2026-07-28 only :meth:`listen` does that.
            CapabilityMissing: the server offers no subscriptions.
        """
        await self._notifications.subscribe(self._connection, uri)

    async def unsubscribe(self, uri: str) -> None:
        """End the subscription of ``uri`` that :meth:`subscribe` began."""
        await self._notifications.unsubscribe(self._connection, uri)

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str] = (),
    ) -> AsyncIterator[ChangeStream]:
        """Listen for changes, in either era.

        Example::

            async with client.listen(tools=True, uris=["file:///config.json"]) as changes:
                async for change in changes:
                    print(change.kind, change.uri)

        Args:
            tools: the list of tools changes.
            prompts: the list of prompts changes.
            resources: the list of resources changes.
            uris: these resources change, or what lies below them.

        Raises:
            CallTimedOut: the server did not agree in time.
        """
        uris = list(uris)
        wanted = SubscriptionFilter(
            tools_list_changed=tools or UNSET,
            prompts_list_changed=prompts or UNSET,
            resources_list_changed=resources or UNSET,
            resource_subscriptions=uris or UNSET,
        )
        async with self._notifications.listen(self._connection, wanted) as changes:
            yield changes

    async def set_log_level(self, level: LogLevel) -> None:
        """Ask for log messages of this ``level`` and the more severe, from now on (``"debug"`` … ``"emergency"``).

        Raises:
            CapabilityMissing: the server sends none.
        """
        await self._upkeep.set_log_level(level)

    async def set_roots(self, roots: Roots) -> None:
        """Change the ``roots``, where the server may work, and notify a server of up to 2025-11-25.

        Raises:
            UsageError: the client was made without roots, so the server does not know of any; or a root cannot be one.
        """
        if await self._answering.move(roots):
            await self._upkeep.tell_roots_changed()

    async def roots_changed(self) -> None:
        """Notify a server of up to 2025-11-25 that the function for roots gives others than before."""
        # spec 2025-11-25 client/roots#root-list-changes: clients that declared listChanged MUST
        # send it; since 2026-07-28 there is no such notification
        await self._upkeep.tell_roots_changed()

    # Messages of one's own

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
        return await self._calls.request(method, params, result, timeout, on_progress)

    async def notify(self, method: str, params: Struct | Mapping[str, Any] | None = None) -> None:
        """Send a notification of your own.

        Args:
            method: any notification; one of the specification's must be in the revision.
            params: a struct or plain data.
        """
        await self._connection.live().note(method, params)

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
        return self._custom.method(name, params, result)

    def on_notification(self, name: str, /, *, params: Any = dict) -> Callable[[F], F]:
        """Decorate a function told of a notification of the server's own: ``fn(params)``.

        Args:
            name: the notification's method.
            params: what its params decode to; what does not fit is ignored.

        Raises:
            UsageError: the name is taken, or the specification's: see ``on_log`` and ``on_change``.
        """
        return self._custom.on_notification(name, params)

    def on_undeclared(self, fn: F) -> F:
        """Decorate a function told of each question that this client did not offer to answer.

        The server was told what the client answers, and is refused: ``fn(method)``.
        """
        self._connection.answering.on_undeclared = fn
        return fn

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
