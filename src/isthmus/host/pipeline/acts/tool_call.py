"""Tool calls, and the tasks that they become."""

import asyncio
from typing import TypeVar

import msgspec
from msgspec import structs

from isthmus.client.model.limits import OnProgress
from isthmus.client.model.results import ToolResult
from isthmus.errors import CallTimedOut, ConnectionLost, HttpRefused
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import OutcomeUnknown, ServerUnavailable, Unknown
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import CallAsked, Payload, ReadAsked
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import ActOutcome
from isthmus.host.pipeline.acts.server_acts import ServerAct, UneditableAct, make_coalesce_key
from isthmus.host.pipeline.results import redact_result
from isthmus.host.pipeline.servers import KnownServers, KnownTool
from isthmus.wire import (
    CallToolResult,
    TextContent,
)

T = TypeVar("T")
MAX_NAME_CHARS = 200  # of a name that is written down without being looked up


class ToolCallAct(ServerAct[ToolResult]):
    """A call of a tool.

    Args:
        servers: what is known of servers.
        name: the tool's name in the catalog; empty where the attempt says server and tool.
        timeout: seconds without answer or progress; None for the server's.
        on_progress: told of progress.

    Attributes:
        known: what is known of the tool, once it is resolved.
    """

    known: KnownTool

    def __init__(
        self,
        servers: KnownServers,
        name: str = "",
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        super().__init__(servers)
        self._name = name
        self._timeout = timeout
        self._on_progress = on_progress

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find the tool, and see whether it is what it was."""
        if self._name:
            attempt = await self._find_named(attempt)
        else:
            attempt = self.resolve_server(attempt, attempt.server)
        self.meant = attempt
        if await self._ensure_listed(attempt.server, attempt.isolation):
            attempt = self.resolve_server(attempt, attempt.server)  # it may be another one by now
        known = self.known = await self.servers.find_tool(attempt, self.server)
        if attempt.origin != "app" and known.app_only:
            raise Unknown(
                f"tool {attempt.object!r} of server {attempt.server!r} is for the server's own "
                "pages, and for no model or program"
            )
        return attempt

    async def _ensure_listed(self, server: str, isolation: str) -> bool:
        """Have the server list what it has, where that is not known; whether that was needed.

        Raises:
            ServerUnavailable: it is not there to say so.
        """
        catalog = self.servers.catalog
        if catalog.listed(server, isolation) is not None:
            return False
        await catalog.load([server], isolation)
        if catalog.listed(server, isolation) is None:
            async with self.servers.supervisor.use(server, isolation, again=True):
                pass  # where it cannot be reached, this says why
        return True

    async def _find_named(self, attempt: Attempt) -> Attempt:
        """Find the tool of this name in the catalog; the attempt at it."""
        servers, name = self.servers, self._name
        before, _, rest = name.partition("__")
        owner, isolation = servers.find_owner(before), ""
        if owner:
            at_owner = self.resolve_server(attempt, owner)
            isolation = at_owner.isolation
            self.meant = structs.replace(attempt, server=owner, object=rest[:MAX_NAME_CHARS])
        try:
            server, own = servers.catalog.resolve(name, isolation)
            if server == owner:
                return structs.replace(at_owner, object=own)
        except Unknown:
            broken = servers.supervisor.config.broken.get(before)
            if broken is not None:
                raise Unknown(f"server {before!r} cannot be used: {broken}") from None
            if owner:
                await self._ensure_listed(owner, isolation)
            server, own = await servers.catalog.find(name, isolation)
        return structs.replace(self.resolve_server(attempt, server), object=own)

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as Act has it
        """The facts of the tool."""
        return self.known.facts

    def check(self, attempt: Attempt) -> None:
        """Hold the arguments against the input schema."""
        self.servers.schemas.check(attempt.server, self.known.tool, attempt.arguments)

    def coalesce(self, attempt: Attempt) -> str:
        """One answer is for two calls only where a call more or less makes no difference."""
        facts = self.known.facts
        hints = facts.annotations if facts.trust != "untrusted" else None
        harmless = hints is not None and (
            hints.read_only_hint is True or hints.idempotent_hint is True
        )
        return make_coalesce_key(attempt) if harmless else ""

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The tool as its server describes it, and every argument."""
        trusted = self.known.facts.trust != "untrusted"
        return CallAsked(tool=self.known.tool, arguments=attempt.arguments, trusted=trusted)

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:
        """See whether the tool is still the one that was decided on."""
        await self.servers.check_tool(attempt, self.known, waited=waited)

    def make_dry_result(self, attempt: Attempt, trace: Trace) -> ToolResult:
        """A result that says what would have been called."""
        said = msgspec.json.encode(attempt.arguments).decode()
        text = (
            f"Nothing was called: this host only says what it would do. It would call "
            f"{attempt.object!r} of server {attempt.server!r} with {said}; policy says "
            f"{trace.effect} ({trace.rule or 'by default'})."
        )
        meta = {"isthmus/dry-run": {"effect": trace.effect, "rule": trace.rule}}
        wire = CallToolResult(content=[TextContent(text=text)], meta=meta)
        return ToolResult(attempt.object, wire)

    async def dispatch(self, attempt: Attempt) -> ToolResult:
        """Call it."""
        servers, tasks = self.servers, self.servers.tasks
        caller = servers.clients.find(attempt.id) if attempt.origin == "gateway" else None
        keep = tasks.keeper(attempt, self.known.facts.identity, servers.clients)
        try:
            async with servers.supervisor.use(attempt.server, attempt.isolation) as client:
                if client is not self.known.client:  # it was started anew since it was decided on
                    await servers.check_tool(attempt, self.known, waited=True)
                result = await client.call_tool(
                    attempt.object,
                    attempt.arguments,
                    timeout=self._timeout,
                    on_progress=self._on_progress,
                    on_task=keep,
                    prefer_task=caller is not None and caller.takes_task,
                )
        except (CallTimedOut, HttpRefused) as error:
            tasks.over(attempt.id)
            if not is_ambiguous(error):
                raise
            raise OutcomeUnknown(
                f"{attempt.server} was asked, and gave no answer: nobody can tell whether it was "
                f"done, and it is not sent again. {error}"
            ) from error
        except (OutcomeUnknown, ServerUnavailable) as error:
            if attempt.id in tasks.open:
                raise OutcomeUnknown(
                    f"{attempt.object!r} of server {attempt.server!r} has become a task, which goes "
                    f"on there; it is followed when this host is opened again: {error}"
                ) from error
            raise
        except BaseException:
            tasks.over(attempt.id)
            raise
        tasks.over(attempt.id)
        return result

    async def review(self, attempt: Attempt, result: ToolResult) -> ToolResult:
        """Keep what is too large behind a link, and what the server links to."""
        self.servers.links.take(attempt, result.wire)
        # of the entry that it was called by: the configuration may have none of this name by now
        most = self.known.entry.options.limits.result_bytes
        wire, results, source = result.wire, self.servers.results, (attempt, self.known.facts)
        kept = results.cap(wire, most, call=attempt.id, principal=attempt.principal, source=source)
        return result if kept is wire else ToolResult(result.tool, kept)

    def redact(self, result: ToolResult, pointers: tuple[str, ...]) -> ToolResult:
        """The result without what a rule hides, in both its forms."""
        return ToolResult(result.tool, redact_result(result.wire, pointers))

    def outcome(self, result: ToolResult) -> ActOutcome:
        """Whether the tool failed, and what it gave."""
        return ActOutcome(failed=result.is_error, result=result.wire)


def is_ambiguous(error: Exception) -> bool:
    """Whether a server may have done what it gave no answer to of its own.

    A status that says that the request was wrong says that nothing was done; one of a server that
    failed, or of somebody on the way who waited no longer, says nothing about it.
    """
    return not isinstance(error, HttpRefused) or not 300 <= error.status < 500


class TaskAct(UneditableAct[T]):
    """Something that is done with a task of a server; the attempt's object is its name there."""

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.resolve_server(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The task."""
        return ReadAsked(uri=f"task:{attempt.object}")


class TaskCancelAct(TaskAct[None]):
    """Having a server stop a task."""

    async def dispatch(self, attempt: Attempt) -> None:
        """Cancel it."""
        async with self.servers.supervisor.use(attempt.server, attempt.isolation) as client:
            await client.task(attempt.object).cancel()


class TaskResumeAct(ToolCallAct):
    """Going on with a call that became a task before this host started: nothing is called again.

    Args:
        servers: what is known of servers.
        task: the task's name on its server.
        answered: names of its questions that were answered before.
    """

    begun = True

    def __init__(self, servers: KnownServers, task: str, answered: tuple[str, ...] = ()) -> None:
        super().__init__(servers)
        self._task = task
        self._answered = answered

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """It was allowed when it was called."""
        return False

    def check(self, attempt: Attempt) -> None:
        """The arguments were sent long ago."""

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:
        """Nothing is called."""

    async def dispatch(self, attempt: Attempt) -> ToolResult:
        """Follow the task to its end."""
        servers, tasks = self.servers, self.servers.tasks
        use = servers.supervisor.use(attempt.server, attempt.isolation, again=True)
        try:
            async with use as client:
                task = client.task(self._task, tool=attempt.object, answered=self._answered)
                tasks.follow(task, attempt.id)
                result = await task.result()
        except (ServerUnavailable, ConnectionLost, asyncio.CancelledError):
            raise  # the task goes on without us
        except BaseException:
            tasks.over(attempt.id)
            raise
        tasks.over(attempt.id)
        return result
