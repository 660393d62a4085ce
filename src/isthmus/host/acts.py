"""What can be done with servers: the only place that calls the methods of a client."""

import asyncio
from typing import TypeVar

import msgspec
from msgspec import UNSET, structs

from isthmus.client.client import Client
from isthmus.client.results import ToolResult
from isthmus.client.settings import OnProgress
from isthmus.errors import CallTimedOut, ConnectionLost, HttpRefused
from isthmus.host.act import Outcome, members
from isthmus.host.attempt import Attempt
from isthmus.host.catalog.names import namespace
from isthmus.host.errors import BadArguments, OutcomeUnknown, ServerUnavailable, Unknown
from isthmus.host.hiding import read_without, without
from isthmus.host.interaction import (
    CallAsked,
    Decision,
    Payload,
    PromptAsked,
    ReadAsked,
)
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.trace import Trace
from isthmus.host.server_act import Fixed, OfServer, sameness
from isthmus.host.servers import Known, Servers
from isthmus.host.validation import app_only, check_prompt
from isthmus.wire import (
    CallToolResult,
    Completion,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Reference,
    TextContent,
    Tool,
)

__all__ = [
    "Cancelling",
    "Completing",
    "Prompting",
    "Reading",
    "Resuming",
    "Subscribing",
    "ToolCall",
]

T = TypeVar("T")

LONGEST = 200
"""Characters of a name that are written down where it cannot be looked up."""


class ToolCall(OfServer[ToolResult]):
    """A call of a tool.

    Args:
        servers: what is known of servers.
        name: the tool's name in the catalog; empty where the attempt says server and tool.
        timeout: seconds without answer or progress; None for the server's.
        on_progress: told of progress.
    """

    def __init__(
        self,
        servers: Servers,
        name: str = "",
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        super().__init__(servers)
        self._name = name
        self._timeout = timeout
        self._on_progress = on_progress
        self._known: Known | None = None

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find the tool, and see whether it is what it was."""
        attempt = await self._named(attempt) if self._name else self._told(attempt)
        self.meant = attempt
        if attempt.server:
            await self._heard(attempt.server, attempt.isolation)
        known = self._known = await self.servers.known(attempt)
        if attempt.origin != "app" and app_only(known.tool):
            raise Unknown(
                f"tool {attempt.object!r} of server {attempt.server!r} is for the server's own "
                "pages, and for no model or program"
            )
        return attempt

    async def _heard(self, server: str, isolation: str) -> None:
        """See to it that it is known what a server has.

        Raises:
            ServerUnavailable: it is not there to say so.
        """
        catalog = self.servers.catalog
        if catalog.listed(server, isolation) is None:
            await catalog.load([server], isolation)
        if catalog.listed(server, isolation) is None:
            async with self.servers.supervisor.use(server, isolation, again=True):
                pass  # where it cannot be reached, this says why

    def _told(self, attempt: Attempt) -> Attempt:
        return self.isolated(attempt, attempt.server)

    async def _named(self, attempt: Attempt) -> Attempt:
        """The attempt at the tool of this name in the catalog."""
        servers, name = self.servers, self._name
        before = name.partition("__")[0]
        owner = next((one for one in servers.supervisor.servers if namespace(one) == before), "")
        isolation = servers.isolation(owner, attempt.principal, attempt.run) if owner else ""
        if owner:
            self.meant = structs.replace(attempt, server=owner, object=name[:LONGEST])
        try:
            server, own = servers.catalog.resolve(name, isolation)
        except Unknown:
            broken = servers.supervisor.config.broken.get(before)
            if broken is not None:
                raise Unknown(f"server {before!r} cannot be used: {broken}") from None
            if owner:
                await self._heard(owner, isolation)
            server, own = await servers.catalog.find(name, isolation)
        if server != owner:
            isolation = servers.isolation(server, attempt.principal, attempt.run)
        return structs.replace(attempt, server=server, object=own, isolation=isolation)

    @property
    def tool(self) -> Tool:
        """The tool's definition."""
        return self.known.tool

    @property
    def known(self) -> Known:
        """What is known of the tool, once it is resolved."""
        if self._known is None:
            raise Unknown("the tool was not looked up yet")
        return self._known

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as Act has it
        """What is known of the tool."""
        return self.known.facts

    def check(self, attempt: Attempt) -> None:
        """Hold the arguments against the input schema."""
        self.servers.schemas.check(attempt.server, self.tool, attempt.arguments)

    def coalesce(self, attempt: Attempt) -> str:
        """One answer is for two calls only where a call more or less makes no difference."""
        facts = self.known.facts
        hints = facts.annotations if facts.trust != "untrusted" else None
        harmless = hints is not None and (
            hints.read_only_hint is True or hints.idempotent_hint is True
        )
        return sameness(attempt) if harmless else ""

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The tool as its server describes it, and every argument."""
        trusted = self.known.facts.trust != "untrusted"
        return CallAsked(tool=self.tool, arguments=attempt.arguments, trusted=trusted)

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:
        """See whether the tool is still the one that was decided on."""
        await self.servers.still(attempt, self.known, waited=waited)

    def imagined(self, attempt: Attempt, trace: Trace) -> ToolResult:
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
        keep = None if tasks is None else tasks.keeper(attempt, self.known.facts.identity)
        try:
            async with servers.supervisor.use(attempt.server, attempt.isolation) as client:
                if client is not self.known.client:  # it was started anew since it was decided on
                    await servers.still(attempt, self.known, waited=True)
                result = await client.call_tool(
                    attempt.object,
                    attempt.arguments,
                    timeout=self._timeout,
                    on_progress=self._on_progress,
                    on_task=keep,
                )
        except (CallTimedOut, HttpRefused) as error:
            self.over(attempt)
            if not ambiguous(error):
                raise
            raise OutcomeUnknown(
                f"{attempt.server} was asked, and gave no answer: nobody can tell whether it was "
                f"done, and it is not sent again. {error}"
            ) from error
        except (OutcomeUnknown, ServerUnavailable) as error:
            if tasks is not None and attempt.id in tasks.open:
                raise OutcomeUnknown(
                    f"{attempt.object!r} of server {attempt.server!r} has become a task, which goes "
                    f"on there; it is followed when this host is opened again: {error}"
                ) from error
            raise
        except BaseException:
            self.over(attempt)
            raise
        self.over(attempt)
        return result

    def over(self, attempt: Attempt) -> None:
        """The call is over: it is no open task any more, if it was one."""
        if self.servers.tasks is not None:
            self.servers.tasks.over(attempt.id)

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
        return ToolResult(result.tool, without(result.wire, pointers))

    def outcome(self, result: ToolResult) -> Outcome:
        """Whether the tool failed, and what it gave."""
        return Outcome(failed=result.is_error, result=result.wire)


def ambiguous(error: Exception) -> bool:
    """Whether a server may have done what it gave no answer to of its own.

    A status that says that the request was wrong says that nothing was done; one of a server that
    failed, or of somebody on the way who waited no longer, says nothing about it.
    """
    return not isinstance(error, HttpRefused) or not 300 <= error.status < 500


class Reading(Fixed[ReadResourceResult]):
    """A read of a resource.

    Args:
        servers: what is known of servers.
        fresh: ask the server, whatever is kept.
    """

    def __init__(self, servers: Servers, *, fresh: bool = False) -> None:
        super().__init__(servers)
        self._fresh = fresh

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find out which server has the resource."""
        server, uri = attempt.server, attempt.object
        catalog = self.servers.catalog
        if not server:
            try:
                server, uri = catalog.resolve_resource(uri)
            except Unknown:
                await catalog.load()  # somebody may list it who was not asked yet
                server, uri = catalog.resolve_resource(uri)
        return structs.replace(self.isolated(attempt, server), object=uri)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The URI."""
        return ReadAsked(uri=attempt.object)

    async def dispatch(self, attempt: Attempt) -> ReadResourceResult:
        """Read it; once more, where the connection breaks."""

        async def read(client: Client) -> ReadResourceResult:
            return await client.read_resource(attempt.object, fresh=self._fresh)

        use = self.servers.supervisor.repeatable
        return await use(attempt.server, attempt.isolation, read)

    def redact(self, result: ReadResourceResult, pointers: tuple[str, ...]) -> ReadResourceResult:
        """What was read without what a rule hides, where it is JSON."""
        return read_without(result, pointers)

    def outcome(self, result: ReadResourceResult) -> Outcome:
        """What was read."""
        return Outcome(result=result)


class Subscribing(Fixed[None]):
    """Having a server tell when a resource changes, or not any more (up to 2025-11-25)."""

    def __init__(self, servers: Servers, *, on: bool = True) -> None:
        super().__init__(servers)
        self._on = on

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.isolated(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The URI."""
        return ReadAsked(uri=attempt.object)

    async def dispatch(self, attempt: Attempt) -> None:
        """Subscribe, or unsubscribe."""
        async with self.servers.supervisor.use(attempt.server, attempt.isolation) as client:
            await (client.subscribe if self._on else client.unsubscribe)(attempt.object)


class Prompting(OfServer[GetPromptResult]):
    """Getting a prompt with its blanks filled.

    Args:
        servers: what is known of servers.
        name: the prompt's name in the catalog; empty where the attempt says server and prompt.
    """

    def __init__(self, servers: Servers, name: str = "") -> None:
        super().__init__(servers)
        self._name = name
        self._prompt: Prompt | None = None

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find the prompt."""
        catalog = self.servers.catalog
        if self._name:
            server, own = await catalog.find_prompt(self._name)
            attempt = structs.replace(attempt, server=server, object=own)
        attempt = self.isolated(attempt, attempt.server)
        listed = catalog.listed(attempt.server, attempt.isolation)
        found = () if listed is None else listed.prompts
        self._prompt = next((one for one in found if one.name == attempt.object), None)
        return attempt

    def check(self, attempt: Attempt) -> None:
        """Hold the arguments against the prompt's blanks, where they are known."""
        if self._prompt is not None:
            check_prompt(attempt.server, self._prompt, attempt.arguments)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The prompt's name and what goes into its blanks."""
        return PromptAsked(name=attempt.object, arguments=dict(attempt.arguments))

    async def dispatch(self, attempt: Attempt) -> GetPromptResult:
        """Get it; once more, where the connection breaks."""

        async def get(client: Client) -> GetPromptResult:
            return await client.get_prompt(attempt.object, attempt.arguments)

        use = self.servers.supervisor.repeatable
        return await use(attempt.server, attempt.isolation, get)

    def outcome(self, result: GetPromptResult) -> Outcome:
        """What it says."""
        return Outcome(result=result)


class Completing(OfServer[Completion]):
    """Having a server say what might go into a blank.

    Args:
        servers: what is known of servers.
        ref: the prompt or template that has the blank; what is typed stands in the attempt.
    """

    def __init__(self, servers: Servers, ref: Reference) -> None:
        super().__init__(servers)
        self._ref = ref

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.isolated(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """What would be told to the server."""
        typed = attempt.arguments
        shown = {**typed["context"], typed["argument"]: typed["value"]}
        return PromptAsked(name=attempt.object, arguments=shown)

    def edited(self, attempt: Attempt, decision: Decision) -> Attempt:
        """With what a person left in the blanks.

        Raises:
            BadArguments: that is no text, or the blank is gone that is asked about.
        """
        if decision.edited is UNSET:
            return attempt
        left = members(attempt, decision.edited)
        blank = attempt.arguments["argument"]
        if blank not in left or not all(isinstance(text, str) for text in left.values()):
            raise BadArguments(f"blanks hold texts, and {blank!r} has to be one of them: {left}")
        typed = {"argument": blank, "value": left.pop(blank), "context": left}
        return attempt if typed == attempt.arguments else structs.replace(attempt, arguments=typed)

    async def dispatch(self, attempt: Attempt) -> Completion:
        """Ask."""
        typed = attempt.arguments

        async def complete(client: Client) -> Completion:
            return await client.complete(
                self._ref, typed["argument"], typed["value"], context=typed["context"] or None
            )

        use = self.servers.supervisor.repeatable
        return await use(attempt.server, attempt.isolation, complete)


class OfTask(Fixed[T]):
    """Something that is done with a task of a server; the attempt's object is its name there."""

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.isolated(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """Which task."""
        return ReadAsked(uri=f"task:{attempt.object}")


class Cancelling(OfTask[None]):
    """Having a server stop a task."""

    async def dispatch(self, attempt: Attempt) -> None:
        """Cancel it."""
        async with self.servers.supervisor.use(attempt.server, attempt.isolation) as client:
            await client.task(attempt.object).cancel()


class Resuming(ToolCall):
    """Going on with a call that became a task before this host started: nothing is called again.

    Args:
        servers: what is known of servers.
        task: the task's name on its server.
        answered: names of its questions that were answered before.
    """

    begun = True

    def __init__(self, servers: Servers, task: str, answered: tuple[str, ...] = ()) -> None:
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
                if tasks is not None:
                    tasks.follow(task, attempt.id)
                result = await task.result()
        except (ServerUnavailable, ConnectionLost, asyncio.CancelledError):
            raise  # the task goes on without us
        except BaseException:
            self.over(attempt)
            raise
        self.over(attempt)
        return result
