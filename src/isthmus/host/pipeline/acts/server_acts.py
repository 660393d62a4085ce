"""Acts on servers, but for calls of tools: reads, subscriptions, prompts, completions, and consent.

Consent is asked for the release of a tool that has changed since it was approved, and for sharing
what servers gave with somebody else: a provider of models, another server.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from isthmus.client.client import Client
from isthmus.core.encoding import is_same_json
from isthmus.host.approvals.fingerprints import ToolChange
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments, Denied, Quarantined, Unknown
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import (
    ChangeAsked,
    Decision,
    Payload,
    PromptAsked,
    ReadAsked,
    ShareAsked,
)
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import Act, ActOutcome, parse_edited_arguments
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.results import redact_resource
from isthmus.host.pipeline.servers import KnownServers, ReleaseTool
from isthmus.host.pipeline.validation import check_prompt
from isthmus.runtime.sorted_ids import new_id
from isthmus.wire import Completion, GetPromptResult, Prompt, ReadResourceResult, Reference, Tool

if TYPE_CHECKING:
    from isthmus.host.model.entries import ServerEntry

T = TypeVar("T")


def make_coalesce_key(attempt: Attempt) -> str:
    """Make the key of equal attempts: who wants what, with which arguments, in which run."""
    try:
        said = msgspec.json.encode(
            [
                *(attempt.action, attempt.principal, attempt.server, attempt.object),
                *(attempt.run, attempt.isolation, attempt.arguments, attempt.profile),
            ],
            order="deterministic",
        )
    except (TypeError, ValueError):  # half a character: it cannot be sent, and is like no other
        return ""
    return blake2b(said, digest_size=16).hexdigest()


class ServerAct(Act[T]):
    """An act on a server.

    Args:
        servers: what is known of servers.
    """

    def __init__(self, servers: KnownServers) -> None:
        self.servers = servers
        self._decided: tuple[ServerEntry, str] | None = None

    def facts(self, attempt: Attempt) -> Facts:
        """The facts of the server; what it is now it has to be when the act is done."""
        facts = self.servers.facts(attempt.server, attempt.isolation, attempt.object)
        if self._decided is None:
            self._decided = self.servers.entry(attempt.server), facts.identity
        return facts

    def coalesce(self, attempt: Attempt) -> str:
        """To ask twice for what changes nothing is to ask once."""
        return make_coalesce_key(attempt)

    def resolve_server(self, attempt: Attempt, server: str) -> Attempt:
        """Look up a server: the attempt at it, on the connection that it uses there."""
        self.server = self.servers.resolve(
            server, attempt.principal, attempt.run, attempt.isolation
        )
        return structs.replace(attempt, server=server, isolation=self.server.isolation)

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:  # noqa: ARG002 - as Act has it
        """See whether it is still the server that was decided on.

        Raises:
            Denied: it is another one.
        """
        if self._decided is not None:
            self.servers.check_server(attempt, *self._decided)


class UneditableAct(ServerAct[T]):
    """Something that is done with a server as it is asked, or not at all."""

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt as it was.

        Raises:
            BadArguments: a person wanted something else than what would be done.
        """
        if decision.edited is UNSET or is_same_json(decision.edited, attempt.arguments):
            return attempt
        raise BadArguments(
            f"{attempt.action} {attempt.object!r} of server {attempt.server!r} has nothing that can "
            "be edited: ask for the other thing instead"
        )


class ToolChangeAct(ServerAct[None]):
    """From now on a tool that has changed may be used as it is.

    Args:
        servers: what is known of servers.
        change: what has changed.
    """

    def __init__(self, servers: KnownServers, change: ToolChange) -> None:
        super().__init__(servers)
        self._change = change

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """A person looks at it, whatever the rules let through."""
        return True

    def coalesce(self, attempt: Attempt) -> str:  # noqa: ARG002 - as Act has it
        """Every call of the tool waits for the same answer."""
        change = self._change
        return repr((change.server, change.identity, change.tool, change.fingerprint))

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """Both definitions, and in which lines they differ."""
        change = self._change
        return ChangeAsked(before=Raw(change.before), after=Raw(change.after), diff=change.diff())

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:  # noqa: ARG002 - as above
        """There is nothing to edit."""
        return attempt

    def make_dry_result(self, attempt: Attempt, trace: Trace) -> None:
        """Nothing is released by a host that only says what it would do."""
        raise Denied(f"tool {attempt.object!r} of {attempt.server!r} has changed", rule=trace.rule)

    async def dispatch(self, attempt: Attempt) -> None:  # noqa: ARG002 - as Act has it
        """Release it."""
        await self.servers.fingerprints.release(self._change)


def release_tool(pipeline: Pipeline) -> ReleaseTool:
    """Release a tool that has changed, where a person agrees to what it is now.

    Args:
        pipeline: asks.
    """

    async def release(
        servers: KnownServers, attempt: Attempt, tool: Tool, change: ToolChange
    ) -> None:
        if attempt.origin == "search":  # a model that searches is not told of it, either
            raise Quarantined(
                f"tool {tool.name!r} of server {attempt.server!r} has changed since it was "
                "approved; a person has to look at it before it can be called",
                by="fingerprint",
            )
        wanted = structs.replace(
            attempt, id=new_id(), action="tool.change", arguments={}, parent=attempt.id
        )
        try:
            await pipeline.run(wanted, ToolChangeAct(servers, change))
        except Denied as error:
            raise Quarantined(
                f"tool {tool.name!r} of server {attempt.server!r} has changed since it was "
                f"approved, and nobody has released it as it is now: {error.reason}",
                rule=error.rule,
                by=error.by,
            ) from error

    return release


class SharedContext(Struct, frozen=True, kw_only=True):
    """Context of a server that could be added to a request.

    Attributes:
        server: whose it is.
        what: what it is, in a line.
        text: all of it.
    """

    server: str
    what: str
    text: str


class ShareAgreement:
    """A person's answer to one question about several servers.

    Attributes:
        by: the attempt that was asked about, once they have said yes; empty until then.
    """

    def __init__(self) -> None:
        self.by = ""


class ShareAct(Act[bool]):
    """Whether something of a server may be shared.

    Args:
        facts: what is known of the server.
        to: who would get it.
        what: what it would be, a line each: of all servers that one question is about.
        agreed: the answer to that question, which is asked for the first of them.
    """

    def __init__(
        self, facts: Facts, to: str, what: Sequence[str], agreed: ShareAgreement | None = None
    ) -> None:
        self._facts = facts
        self._to = to
        self._what = tuple(what)
        self._agreed = ShareAgreement() if agreed is None else agreed
        self._asked = False

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as Act has it
        """The facts for policy."""
        return self._facts

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """Whether a person is asked: where policy says so, and they were not asked just now."""
        self._asked = trace.effect == "ask"
        return self._asked and not self._agreed.by

    def payload(self, attempt: Attempt, trace: Trace) -> ShareAsked:  # noqa: ARG002 - as Act has it
        """The shared things, and the one who would get them."""
        return ShareAsked(to=self._to, what=self._what)

    async def dispatch(self, attempt: Attempt) -> bool:
        """Nothing more is needed than that it may be."""
        if self._asked and not self._agreed.by:
            self._agreed.by = attempt.id
        return True

    def outcome(self, result: bool) -> ActOutcome:  # noqa: ARG002 - as Act has it
        """The question that was answered, where several servers had one."""
        return ActOutcome(detail={"agreed": self._agreed.by} if self._asked else None)


class ReadAct(UneditableAct[ReadResourceResult]):
    """A read of a resource.

    Args:
        servers: what is known of servers.
        fresh: ask the server, whatever is kept.
    """

    def __init__(self, servers: KnownServers, *, fresh: bool = False) -> None:
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
        return structs.replace(self.resolve_server(attempt, server), object=uri)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The URI."""
        return ReadAsked(uri=attempt.object)

    async def dispatch(self, attempt: Attempt) -> ReadResourceResult:
        """Read it; once more, where the connection breaks."""

        async def read(client: Client) -> ReadResourceResult:
            return await client.read_resource(attempt.object, fresh=self._fresh)

        use = self.servers.supervisor.run_repeatable
        return await use(attempt.server, attempt.isolation, read)

    def redact(self, result: ReadResourceResult, pointers: tuple[str, ...]) -> ReadResourceResult:
        """The contents without what a rule hides, where they are JSON."""
        return redact_resource(result, pointers)

    def outcome(self, result: ReadResourceResult) -> ActOutcome:
        """The contents."""
        return ActOutcome(result=result)


class SubscribeAct(UneditableAct[None]):
    """Having a server tell when a resource changes, or not any more (up to 2025-11-25)."""

    def __init__(self, servers: KnownServers, *, on: bool = True) -> None:
        super().__init__(servers)
        self._on = on

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.resolve_server(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The URI."""
        return ReadAsked(uri=attempt.object)

    async def dispatch(self, attempt: Attempt) -> None:
        """Subscribe, or unsubscribe."""
        async with self.servers.supervisor.use(attempt.server, attempt.isolation) as client:
            await (client.subscribe if self._on else client.unsubscribe)(attempt.object)


class FollowAct(UneditableAct[None]):
    """Having somebody of a gateway hear when a resource changes.

    Args:
        servers: what is known of servers.
        begin: has them hear of it.
    """

    def __init__(self, servers: KnownServers, begin: Callable[[], Awaitable[None]]) -> None:
        super().__init__(servers)
        self._begin = begin

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.resolve_server(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The URI."""
        return ReadAsked(uri=attempt.object)

    async def dispatch(self, attempt: Attempt) -> None:
        """Begin."""
        del attempt
        await self._begin()


class PromptAct(ServerAct[GetPromptResult]):
    """Getting a prompt with its blanks filled.

    Args:
        servers: what is known of servers.
        name: the prompt's name in the catalog; empty where the attempt says server and prompt.
    """

    def __init__(self, servers: KnownServers, name: str = "") -> None:
        super().__init__(servers)
        self._name = name
        self._prompt: Prompt | None = None

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find the prompt."""
        catalog = self.servers.catalog
        if self._name:
            server, own = await catalog.find_prompt(self._name)
            attempt = structs.replace(attempt, server=server, object=own)
        attempt = self.resolve_server(attempt, attempt.server)
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

        use = self.servers.supervisor.run_repeatable
        return await use(attempt.server, attempt.isolation, get)

    def outcome(self, result: GetPromptResult) -> ActOutcome:
        """The messages of the prompt."""
        return ActOutcome(result=result)


class CompletionAct(ServerAct[Completion]):
    """Having a server say what might go into a blank.

    Args:
        servers: what is known of servers.
        ref: the prompt or template that has the blank; what is typed stands in the attempt.
    """

    def __init__(self, servers: KnownServers, ref: Reference) -> None:
        super().__init__(servers)
        self._ref = ref

    async def resolve(self, attempt: Attempt) -> Attempt:
        """On which connection."""
        return self.resolve_server(attempt, attempt.server)

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The arguments that the server would be told."""
        typed = attempt.arguments
        shown = {**typed["context"], typed["argument"]: typed["value"]}
        return PromptAsked(name=attempt.object, arguments=shown)

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """With what a person left in the blanks.

        Raises:
            BadArguments: that is no text, or the blank is gone that is asked about.
        """
        if decision.edited is UNSET:
            return attempt
        left = parse_edited_arguments(attempt, decision.edited)
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

        use = self.servers.supervisor.run_repeatable
        return await use(attempt.server, attempt.isolation, complete)
