"""View of a host: what a surface sees of it, in the same process or in another one.

All values can be encoded with msgspec, so that a surface works the same on both.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.model.attempt import Action, Origin
from isthmus.host.model.events import HostEvent
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Assurance, Effect, Match
from isthmus.wire import Tool

__all__ = [
    "AccountLine",
    "AttemptDraft",
    "AuditLine",
    "AuditQuery",
    "AuditVerdict",
    "CallRecord",
    "CallStep",
    "GrantLine",
    "HostEvent",
    "MinuteFigures",
    "PolicyAnswer",
    "PolicyLayerLine",
    "PolicyRuleLine",
    "PrincipalLine",
    "ProfileLine",
    "ReplayChange",
    "ReplayReport",
    "RunLine",
    "ServerAddress",
    "ServerDo",
    "ServerStatus",
    "ToolLine",
    "ToolState",
    "TrafficFigures",
    "TrafficQuery",
    "WatchingApprover",
    "WireMessage",
]

MAX_QUERY_ROWS = 500  # of calls or audit rows in one answer

ServerDo: TypeAlias = Literal["start", "stop", "restart", "enable", "disable"]
"""What a person can have done with a server."""


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The status of a server.

    Attributes:
        name: in the configuration.
        state: as the supervisor calls it: ``idle``, ``ready``, ``backoff`` …
        error: why it is not ready; empty where it is.
        where: its command line or its URL, without secrets.
        revision: the revision spoken; empty where it is not connected.
        said: the name and version it gives itself.
        tools, resources, prompts: how many it has; None where it was not asked yet.
        in_flight: calls under way.
        restarts: how often it was started again by itself.
        since: when it came into this state, in seconds since the epoch.
        retry_at: when the next attempt is made, in seconds since the epoch; None for none.
        pid: its process; None where it is none of ours.
        connections: how many there are, where principals do not share one.
        trust: whether what it says about its tools counts.
        source: the file that it stands in.
        strikes: how often it broke the rules.
    """

    name: str
    state: str
    error: str = ""
    where: str = ""
    revision: str = ""
    said: str = ""
    tools: int | None = None
    resources: int | None = None
    prompts: int | None = None
    in_flight: int = 0
    restarts: int = 0
    since: float = 0.0
    retry_at: float | None = None
    pid: int | None = None
    connections: int = 0
    trust: str = "untrusted"
    source: str = ""
    strikes: int = 0


class AuditLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the audit log, as it is kept: what was secret in it is not there any more.

    Attributes:
        seq: its number.
        at: when, in seconds since the epoch.
        node: which process wrote it.
        hash: its hash, in hex, and ``prev`` that of the row before it.
        arguments: what is left of the arguments after redaction, as plain data.
        arguments_hash, result_hash: digests under the state's key, in hex.
        result_bytes: how long the result was, as JSON.

    The others are those of :class:`~isthmus.host.model.row.AuditRow`.
    """

    seq: int
    at: float
    node: str = ""
    kind: str
    call: str = ""
    parent: str = ""
    run: str = ""
    principal: str = ""
    action: str = ""
    server: str = ""
    identity: str = ""
    object: str = ""
    fingerprint: str = ""
    era: str = ""
    transport: str = ""
    origin: str = ""
    effect: str = ""
    rule: str = ""
    grant: str = ""
    approver: str = ""
    assurance: str = ""
    wait: float | None = None
    arguments_hash: str = ""
    arguments: Any = None
    result_hash: str = ""
    result_bytes: int | None = None
    failed: bool | None = None
    code: int | None = None
    error: str = ""
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    model: str = ""
    labels: tuple[str, ...] = ()
    policy: str = ""
    detail: Any = None
    prev: str = ""
    hash: str = ""


class GrantLine(Struct, frozen=True, kw_only=True):
    """One yes that lasts, as a person is shown it.

    Attributes:
        id: its name.
        scope: what it holds for.
        principal, action, server, object: for whom, and for what.
        text: what it means, in a sentence.
        created: when it was given, in seconds since the epoch.
        until: when it ends; None for no end of its own.
        uses: how often it may still be used; None for any number.
        by: who gave it, and ``assurance`` how sure one can be.
        ended: why it counts no longer; empty while it does.
    """

    id: str
    scope: str
    principal: str = ""
    action: str = ""
    server: str = ""
    object: str = ""
    text: str = ""
    created: float = 0.0
    until: float | None = None
    uses: int | None = None
    by: str = ""
    assurance: str = ""
    ended: str = ""


class ToolLine(Struct, frozen=True, kw_only=True):
    """A tool that may be called.

    Attributes:
        name: what it is called here: ``server__tool``.
        server: whose it is.
        tool: its definition, as the server gave it.
    """

    name: str
    server: str
    tool: Tool


ToolStateName: TypeAlias = Literal["known", "new", "changed", "quarantined"]
"""``new`` was never seen before; ``changed`` is not what it was, and a person is asked about that just
now; ``quarantined`` is not what it was, and is kept from models until somebody releases it."""


class ToolState(Struct, frozen=True, kw_only=True):
    """A tool of a server, and whether it is what it was when it was approved.

    Attributes:
        name: what it is called here: ``server__tool``.
        tool: its definition, as the server gives it now.
        state: see there.
        fingerprint: of the definition now, in hex.
        trusted: whether the server's claims about it count.
        diff: the lines in which it differs from what is known, ``-`` before and ``+`` after.
    """

    name: str
    tool: Tool
    state: ToolStateName = "known"
    fingerprint: str = ""
    trusted: bool = False
    diff: tuple[str, ...] = ()


class ServerAddress(Struct, frozen=True, kw_only=True):
    """The address of a server, without secrets: what a doctor needs.

    Attributes:
        url: of a server that is reached over HTTP or a WebSocket; empty for others.
        argv: the command line of one that is started here.
        transport: as the configuration calls it: ``stdio``, ``http`` …
        era: the revision that it speaks just now; empty where it is not connected.
    """

    url: str = ""
    argv: tuple[str, ...] = ()
    transport: str = ""
    era: str = ""


# Audit


class AuditQuery(Struct, frozen=True, kw_only=True):
    """A query of the audit log; what is empty accepts everything.

    Attributes:
        text: words that stand in the object, the arguments or the detail.
        kind, principal, server, call, effect: equal to this.
        since, until: from this moment on, and before that one, in seconds since the epoch.
        before: only rows with a smaller number: the next page.
        count: at most so many, and never more than 500.
    """

    text: str = ""
    kind: str = ""
    principal: str = ""
    server: str = ""
    call: str = ""
    effect: str = ""
    since: float | None = None
    until: float | None = None
    before: int | None = None
    count: int = 100


class AuditVerdict(Struct, frozen=True, kw_only=True):
    """The verdict of a verification of the audit log.

    Attributes:
        verdict: ``broken`` where something is wrong; ``unproved`` where nothing is, and not all is proved.
        rows: how many rows were checked.
        head: the number and the hash of the last one, ``SEQ:HASH``: noted elsewhere, it proves later that
            nothing up to there was changed.
        text: what was found, a line each.
    """

    verdict: Literal["proved", "unproved", "broken"]
    rows: int
    head: str = ""
    text: str = ""


# Traffic


StepKind: TypeAlias = Literal[
    "attempt", "rule", "question", "answer", "sent", "progress", "retry", "outcome"
]
CallState: TypeAlias = Literal["running", "ok", "failed", "denied", "cancelled"]


class CallStep(Struct, frozen=True, kw_only=True):
    """One step of a call.

    Attributes:
        kind: what sort of step it is.
        at: when, in seconds since the epoch.
        text: what happened, in a sentence.
    """

    kind: StepKind
    at: float
    text: str = ""


class CallRecord(Struct, frozen=True, kw_only=True):
    """A call of the recent past, or one under way; what was secret in it is not there.

    Attributes:
        id: that of the attempt.
        at: when it was wanted, in seconds since the epoch.
        principal, asker: for whom, and who asked for it, in words.
        client: the name and version of the client of a gateway that called, as it says itself.
        client_revision: the revision that this client speaks.
        origin: by which way it came.
        server, action, object: what was wanted.
        arguments: with what, after redaction.
        effect, rule, reason: what policy or a person said, and why.
        steps: what happened, in order.
        revision: the revision that the server speaks.
        outcome: how it ended.
        error: the class of the error, and why; empty where there is none.
        seconds: how long it took; None while it runs.
        tokens: what models read and wrote in it; None where none did.
        questions: the ids of the questions that were asked in its course.
        parent: the call in whose course this came about, such as what a server asks; empty for none.
        user: the principal of that call, where a server asks; empty where that is not known.
        run: the run it belongs to; empty for none.
    """

    id: str
    at: float
    parent: str = ""
    user: str = ""
    run: str = ""
    principal: str = ""
    asker: str = ""
    client: str = ""
    client_revision: str = ""
    origin: str = "local"
    server: str = ""
    action: str = "tool.call"
    object: str = ""
    arguments: Any = None
    effect: str = ""
    rule: str = ""
    reason: str = ""
    steps: tuple[CallStep, ...] = ()
    revision: str = ""
    outcome: CallState = "running"
    error: str = ""
    seconds: float | None = None
    tokens: int | None = None
    questions: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """The principal whose it is, as of an attempt."""
        return self.user or self.principal


class WireMessage(Struct, frozen=True, kw_only=True):
    """One message of a call as it went over the wire, after redaction.

    Attributes:
        at: when, in seconds since the epoch.
        direction: as the host sees it.
        text: the message, as JSON.
        side: with whom: the server behind, or the client in front.
    """

    at: float
    direction: Literal["sent", "received"]
    text: str
    side: Literal["client", "server"] = "server"


class TrafficQuery(Struct, frozen=True, kw_only=True):
    """A query of the recorded calls; what is empty accepts everything.

    Attributes:
        server, principal, outcome: equal to this; to a principal belongs, too, what a server asks in
            the course of their calls.
        text: stands in the object, the arguments, the error or the id.
        before: only calls that began before the one of this id: the next page.
        count: at most so many, and never more than 500.
    """

    server: str = ""
    principal: str = ""
    outcome: str = ""
    text: str = ""
    before: str = ""
    count: int = 100


class MinuteFigures(Struct, frozen=True, kw_only=True):
    """The figures of one minute.

    Attributes:
        at: its beginning, in seconds since the epoch.
        calls: how many ended in it.
        failed: how many of those did not end well.
        p50, p95, p99: percentiles of the seconds that they took; None where none ended.
    """

    at: float
    calls: int = 0
    failed: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class TrafficFigures(Struct, frozen=True, kw_only=True):
    """The figures of the last minutes, of the calls that are recorded.

    Attributes:
        minutes: each minute, the oldest first.
        errors: the number of calls that did not end well, by server.
        decisions: the number of decisions, by rule and effect.
    """

    minutes: tuple[MinuteFigures, ...] = ()
    errors: Mapping[str, int] = {}
    decisions: Mapping[str, Mapping[str, int]] = {}


# Policy


class PolicyRuleLine(Struct, frozen=True, kw_only=True):
    """A rule, as a person is shown it.

    Attributes:
        name: its id.
        effect: what it would have.
        text: the rule as it stands in a file.
        hits: how often it decided since traffic is recorded.
    """

    name: str
    effect: Effect
    text: str = ""
    hits: int = 0


class PolicyLayerLine(Struct, frozen=True, kw_only=True):
    """A layer of the policy in force, or the policy that is tried beside it.

    Attributes:
        layer: ``managed``, ``user`` …; ``shadow`` for the policy that is tried.
        source: the file or the name; empty for one that was made in a program.
        rules: its rules.
        broken: why it cannot be read; empty where it can.
    """

    layer: str
    source: str = ""
    rules: tuple[PolicyRuleLine, ...] = ()
    broken: str = ""


class AttemptDraft(Struct, frozen=True, kw_only=True):
    """An attempt that is only thought of.

    Attributes:
        action, server, object, arguments, principal, origin, profile: as of an attempt.
    """

    action: Action = "tool.call"
    server: str = ""
    object: str = ""
    arguments: Mapping[str, Any] = {}
    principal: str = "user:local"
    origin: Origin = "local"
    profile: str = ""


class PromotionOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of putting a shadow policy in force.

    Attributes:
        file: the configuration that it was written into; empty where none was.
        reason: why none was written, where that was asked for.
        paste: what makes it last, to be put into the configuration or the program.
        place: where that belongs: a file, or empty for the program that made the host.
    """

    file: str = ""
    reason: str = ""
    paste: str = ""
    place: str = ""


class PolicyAnswer(Struct, frozen=True, kw_only=True):
    """The answer of policy to an attempt that is only thought of.

    Attributes:
        effect, rule, reason: what would happen, and why.
        matches: every rule that fits, the deciding one first.
        obligations: what else would be demanded, as words.
        grant: the grant that would allow it; empty for none.
        chain: what a guard of data flow saw.
    """

    effect: Effect
    rule: str
    reason: str = ""
    matches: tuple[Match, ...] = ()
    obligations: tuple[str, ...] = ()
    grant: str = ""
    chain: tuple[str, ...] = ()


class ReplayChange(Struct, frozen=True, kw_only=True):
    """A decision that another policy would have made differently.

    Attributes:
        before, after: what was decided, and what would be.
        action, server, object: about what.
        rule: the rule that would decide.
        times: how often.
    """

    before: Effect
    after: Effect
    action: str
    server: str
    object: str
    rule: str
    times: int


class ReplayReport(Struct, frozen=True, kw_only=True):
    """The report of a replay of past attempts on another policy.

    Attributes:
        attempts: how many were decided anew.
        skipped: how many could not be, since no policy had decided them.
        changed: how many would be decided another way.
        changes: those, the most frequent first.
    """

    attempts: int
    skipped: int = 0
    changed: int = 0
    changes: tuple[ReplayChange, ...] = ()


# Access


class AccountLine(Struct, frozen=True, kw_only=True):
    """An account of a principal at a server; nothing in it is secret.

    Attributes:
        server, principal: where, and whose.
        kind: how its credentials are made.
        state: see there; ``none`` is not connected.
        since: when it was connected, in seconds since the epoch.
        until: when it ends; None where it is renewed by itself.
        by_person: whether a person connects it, on a page.
    """

    server: str
    principal: str
    kind: str = ""
    state: Literal["connected", "expired", "refused", "none"] = "none"
    since: float | None = None
    until: float | None = None
    by_person: bool = True


class PrincipalLine(Struct, frozen=True, kw_only=True):
    """A principal that has called, through a gateway or otherwise.

    Attributes:
        principal: who.
        clients: the clients that it called with, each with its version and revision.
        sessions: how many of them are open.
        in_flight: calls under way.
        calls: calls so far.
        last: when the last one was made, in seconds since the epoch.
    """

    principal: str
    clients: tuple[str, ...] = ()
    sessions: int = 0
    in_flight: int = 0
    calls: int = 0
    last: float | None = None


class ProfileLine(Struct, frozen=True, kw_only=True):
    """A profile of a gateway.

    Attributes:
        name: its name.
        servers: globs of the servers that it has; none means all.
        tools: globs of names that it has, those that it has not with a ``!`` before them.
        rules: how many rules it lays over the policy.
        policy: the file or the name of those; empty for none.
    """

    name: str
    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    rules: int = 0
    policy: str = ""


class RunLine(Struct, frozen=True, kw_only=True):
    """A run that goes on.

    Attributes:
        run: its id.
        principal: for whom it runs.
        calls: attempts so far.
        labels: what it has taken over from results.
        in_flight: attempts under way.
    """

    run: str
    principal: str
    calls: int = 0
    labels: tuple[str, ...] = ()
    in_flight: int = 0


class WatchingApprover:
    """An approver for a surface that answers by :meth:`isthmus.host.remote.view.HostView.decide`: it shows, and waits.

    Args:
        name: what it is called in the audit log.
        assurance: how sure one can be that a person decides there.
    """

    def __init__(self, name: str, assurance: Assurance = "local_ui") -> None:
        self.name = name
        self.assurance: Assurance = assurance

    async def offer(self, interaction: Interaction) -> Decision:  # noqa: ARG002 - Approver's shape
        """Wait until somebody answers by another way; only being cancelled ends it."""
        never: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        return await never
