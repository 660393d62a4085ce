"""Calls, reads, prompts and completions of a host: each becomes an attempt for the pipeline."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import to_builtins

from isthmus.client.model.limits import OnProgress
from isthmus.errors import UsageError
from isthmus.host.catalog.metatools import parse_meta_arguments
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.attempt import ASKER, Action, Attempt, Origin
from isthmus.host.model.calling_client import CallingClient
from isthmus.host.model.errors import BadArguments, Unknown
from isthmus.host.model.events import AttemptProgressed, HostEvents
from isthmus.host.model.row import AuditRow
from isthmus.host.pipeline.acts.act import Act
from isthmus.host.pipeline.acts.server_acts import (
    CompletionAct,
    FollowAct,
    PromptAct,
    ReadAct,
    SubscribeAct,
)
from isthmus.host.pipeline.acts.tool_call import TaskCancelAct, ToolCallAct
from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT, Pipeline
from isthmus.host.pipeline.results import HOST_SERVER, RESULT_SCHEME, ResultSource
from isthmus.host.pipeline.runs import Run
from isthmus.host.pipeline.servers import KnownServers
from isthmus.host.policy.profiles import PROFILE
from isthmus.runtime.sorted_ids import new_id
from isthmus.search.metatools import READ_REST_TOOL, CallWanted, RestWanted, is_meta
from isthmus.wire import CallToolResult, TextContent

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult
    from isthmus.wire import Completion, GetPromptResult, ReadResourceResult, Reference

T = TypeVar("T")
MAX_MESSAGE_CHARS = 1_000  # of a progress message: there may be much of it


def to_plain_arguments(name: str, arguments: Any) -> Any:
    """Arguments as plain data of their own.

    Raises:
        BadArguments: they hold what cannot be sent.
    """
    try:
        return to_builtins(arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(f"the arguments of {name!r} cannot be sent: {error}") from error


class SearchAnswers(Protocol):
    """Answers the tools that find tools."""

    async def answer(self, asked: Any, viewer: Viewer) -> CallToolResult:
        """The result of one of them."""
        ...


class HostCalls:
    """Makes attempts of what somebody wants of servers, and gives them to the pipeline.

    The methods are those of :class:`isthmus.host.Host` of the same names.

    Args:
        pipeline: what everything passes.
        servers: what is known of servers.
        search: answers the tools that find tools.
        events: told of progress.

    The methods take two further arguments from a gateway: ``client``, for whom the attempt is made, and
    ``isolation``, the key of the connection that it uses where the server's entry leaves that open.
    """

    def __init__(
        self, pipeline: Pipeline, servers: KnownServers, search: SearchAnswers, events: HostEvents
    ) -> None:
        self.pipeline = pipeline
        self.servers = servers
        self.clients = servers.clients
        self._search = search
        self._events = events

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        origin: Origin = "local",
        client: CallingClient | None = None,
        isolation: str = "",
    ) -> "ToolResult":
        """Call a tool."""
        if not server and origin == "local" and is_meta(name) and self._serves(name):
            asked = parse_meta_arguments(name, arguments or {})
            if not isinstance(asked, CallWanted):
                return await self._looked_up(name, asked, principal, run)
            # What was found goes the way of every call; that it was found changes nothing.
            name, arguments, origin = asked.name, asked.arguments, "search"
        own = name if server else ""
        attempt = self.attempt(
            "tool.call", server, own, arguments, principal, run, origin, isolation
        )
        act = ToolCallAct(
            self.servers,
            "" if server else name,
            timeout=timeout,
            on_progress=self._report(attempt, on_progress) if self._events else on_progress,
        )
        return await self._do(attempt, act, client)

    def _serves(self, name: str) -> bool:
        search = self.servers.catalog.search
        return name == READ_REST_TOOL or (search is not None and search.mode != "never")

    async def _looked_up(
        self, name: str, asked: Any, principal: str, run: Run | str | None
    ) -> "ToolResult":
        """Answer a tool that finds tools; no server is asked for it."""
        from isthmus.client.model.results import ToolResult

        if isinstance(asked, RestWanted):
            page = await self._kept(asked.uri, principal, run)
            texts = [TextContent(text=part.text or "") for part in page.contents]
            return ToolResult(name, CallToolResult(content=list(texts)))
        viewer = Viewer(principal, self.pipeline.runs.find_id(run))
        return ToolResult(name, await self._search.answer(asked, viewer))

    async def read(
        self,
        uri: str,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
        fresh: bool = False,
        origin: Origin = "local",
        client: CallingClient | None = None,
        isolation: str = "",
    ) -> "ReadResourceResult":
        """Read a resource."""
        if not server and uri.startswith(f"{RESULT_SCHEME}://"):
            return await self._kept(uri, principal, run, origin)
        attempt = self.attempt(
            "resource.read", server, uri, None, principal, run, origin, isolation
        )
        return await self._do(attempt, ReadAct(self.servers, fresh=fresh), client)

    async def _kept(
        self, uri: str, principal: str, run: Run | str | None, origin: Origin = "local"
    ) -> "ReadResourceResult":
        """The rest of a result, which is labelled as its beginning was; written down before it is read.

        Raises:
            Unknown: there is none, or it is somebody else's.
        """
        audit, results = self.pipeline.audit, self.servers.results
        attempt = self.attempt("resource.read", HOST_SERVER, uri, None, principal, run, origin)
        try:
            source = results.source(uri, principal)
        except Unknown as error:
            await audit.write(make_read_row(attempt, failed=type(error).__name__))
            raise
        await audit.write(make_read_row(attempt, of=source))
        within = self.pipeline.runs.find(attempt.run)
        if within is not None and source is not None:
            within.taken.take(*source)
        return results.read(uri, principal)

    async def subscribe(
        self,
        server: str,
        uri: str,
        *,
        on: bool = True,
        principal: str = "user:local",
        run: Run | str | None = None,
    ) -> None:
        """Have a server of up to 2025-11-25 tell when a resource changes, or not any more."""
        attempt = self.attempt("resource.subscribe", server, uri, None, principal, run)
        await self._do(attempt, SubscribeAct(self.servers, on=on))

    async def follow(
        self,
        server: str,
        uri: str,
        begin: Callable[[], Awaitable[None]],
        *,
        principal: str,
        client: CallingClient | None = None,
        isolation: str = "",
    ) -> None:
        """Have somebody of a gateway hear when a resource changes, by ``begin``, once that may be."""
        attempt = self.attempt(
            "resource.subscribe", server, uri, None, principal, None, "gateway", isolation
        )
        await self._do(attempt, FollowAct(self.servers, begin), client)

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
        origin: Origin = "local",
        client: CallingClient | None = None,
        isolation: str = "",
    ) -> "GetPromptResult":
        """Get a prompt, by the name it has in the catalog; with ``server``, by its own."""
        own = name if server else ""
        attempt = self.attempt(
            "prompt.get", server, own, arguments, principal, run, origin, isolation
        )
        return await self._do(attempt, PromptAct(self.servers, "" if server else name), client)

    async def complete(
        self,
        server: str,
        ref: "Reference",
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        principal: str = "user:local",
        run: Run | str | None = None,
        origin: Origin = "local",
        client: CallingClient | None = None,
        isolation: str = "",
    ) -> "Completion":
        """Completions for an argument of a prompt or a template."""
        named = getattr(ref, "name", "") or getattr(ref, "uri", "")
        typed = {"argument": argument, "value": value, "context": dict(context or {})}
        attempt = self.attempt(
            "completion", server, named, typed, principal, run, origin, isolation
        )
        return await self._do(attempt, CompletionAct(self.servers, ref), client)

    async def cancel_task(
        self, server: str, task: str, *, principal: str = "user:local", run: Run | str | None = None
    ) -> None:
        """Have a server stop a task, by its name there."""
        attempt = self.attempt("task.cancel", server, task, None, principal, run)
        await self._do(attempt, TaskCancelAct(self.servers))

    async def _do(self, attempt: Attempt, act: Act[T], client: CallingClient | None = None) -> T:
        if client is None:
            return await self.pipeline.run(attempt, act)
        self.clients.add(attempt.id, client, attempt.isolation)
        try:
            return await self.pipeline.run(attempt, act, client.proof)
        finally:
            self.clients.remove(attempt.id, attempt.isolation)

    def attempt(  # noqa: PLR0917 - an attempt is of these
        self,
        action: Action,
        server: str,
        object: str,
        arguments: Any,
        principal: str,
        run: Run | str | None,
        origin: Origin = "local",
        isolation: str = "",
    ) -> Attempt:
        """Something that somebody wants done, as the pipeline takes it.

        Raises:
            UsageError: a principal has no such form.
            Unknown: there is no such run.
        """
        parent, asker = CURRENT_ATTEMPT.get(), ASKER.get()
        if ":" not in principal:
            raise UsageError(f"a principal is user:NAME or agent:NAME, not {principal!r}")
        return Attempt(
            id=new_id(),
            action=action,
            principal=principal,
            server=server,
            object=object,
            # What is decided on is what is sent, whatever its caller does to it meanwhile.
            arguments=to_plain_arguments(name=object, arguments=arguments) if arguments else {},
            run=self.pipeline.runs.find_id(run),
            parent="" if parent is None else parent.id,
            origin=asker.origin if origin == "local" else origin,
            course="" if parent is None else parent.words,
            asker=asker.words,
            isolation=isolation,
            profile=PROFILE.get(),
        )

    def _report(self, attempt: Attempt, told: OnProgress | None) -> OnProgress:
        """Report progress to whoever watches the host, and to the caller."""

        def report(progress: Any) -> Any:
            total, message = progress.total or None, (progress.message or "")[:MAX_MESSAGE_CHARS]
            said = AttemptProgressed(
                id=attempt.id, progress=progress.progress, total=total, message=message
            )
            self._events.tell(said)
            return None if told is None else told(progress)

        return report


def make_read_row(
    attempt: Attempt, *, of: ResultSource | None = None, failed: str = ""
) -> AuditRow:
    """The row about a read of the rest of a result: nobody but the host itself was asked."""
    return AuditRow(
        kind="outcome",
        call=attempt.id,
        parent=attempt.parent or ("" if of is None else of[0].id),
        run=attempt.run,
        principal=attempt.principal,
        action=attempt.action,
        server=HOST_SERVER if of is None else of[0].server,
        object=attempt.object,
        origin=attempt.origin,
        failed=bool(failed),
        error=failed,
    )
