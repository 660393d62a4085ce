"""Traffic recorder: keeps the calls of the recent past for whoever watches, and nothing while nobody does.

It is one more listener of the host's events while somebody watches; otherwise no call knows of it.
"""

import asyncio
import json
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from isthmus.core.redaction.values import Redactor
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.calling_client import CallingClients
from isthmus.host.model.events import (
    AttemptBegan,
    AttemptEnded,
    AttemptJudged,
    AttemptProgressed,
    HostEvent,
    HostEvents,
    QuestionAnswered,
    QuestionAsked,
    ServerMoved,
)
from isthmus.host.model.interaction import Interaction
from isthmus.host.model.trace import Trace
from isthmus.host.model.view import (
    MAX_QUERY_ROWS,
    CallRecord,
    CallState,
    CallStep,
    PrincipalLine,
    StepKind,
    TrafficFigures,
    TrafficQuery,
    WireMessage,
)
from isthmus.host.pipeline.attempt_events import StoppedAttempts
from isthmus.host.traffic.client_messages import FrontRouters, InboundKey, make_key
from isthmus.host.traffic.figures import TrafficCounts
from isthmus.host.traffic.messages import MessageRecorder

if TYPE_CHECKING:
    from isthmus.host.supervisor.hosted_server import HostedServer

MAX_CALLS = 2_000  # that are over
MAX_RUNNING_CALLS = 10_000
MAX_STEPS = 200  # of one call
MAX_PRINCIPALS = 1_000
MAX_CLIENTS = 20  # of one principal
MAX_RULES = 4_096
MAX_ARGUMENTS_BYTES = 64 * 1024  # of one call, as JSON
RuleKey: TypeAlias = tuple[str, str]
"""The layer of a rule, and its id."""
DENIALS = frozenset({"Denied", "Quarantined", "UserDeclined"})
CANCELLATIONS = frozenset({"CancelledError"})


class RecordedCall:
    """A call that is being recorded.

    Attributes:
        attempt: what was wanted.
        record: what is known of it so far.
        steps: what happened.
        task: the task that makes it; None once it is over.
        is_stopped: a person has stopped it.
    """

    __slots__ = ("attempt", "is_stopped", "record", "steps", "task")

    def __init__(self, attempt: Attempt, record: CallRecord) -> None:
        self.attempt = attempt
        self.record = record
        self.steps: list[CallStep] = []
        self.is_stopped = False
        self.task: asyncio.Task[object] | None = asyncio.current_task()

    def add_step(self, kind: StepKind, at: float, text: str) -> None:
        """One more step; of many, the last progress makes room."""
        if kind == "progress" and self.steps and self.steps[-1].kind == "progress":
            self.steps[-1] = CallStep(kind=kind, at=at, text=text)
        elif len(self.steps) < MAX_STEPS or kind == "outcome":
            self.steps.append(CallStep(kind=kind, at=at, text=text))

    def change(self, **members: object) -> None:
        """Know more of it."""
        self.record = msgspec.structs.replace(self.record, **members)

    def show(self) -> CallRecord:
        """The record as it is now."""
        return msgspec.structs.replace(self.record, steps=tuple(self.steps))


class CallerCounts:
    """Calls of one principal."""

    __slots__ = ("calls", "clients", "last")

    def __init__(self) -> None:
        self.calls = 0
        self.last = 0.0
        self.clients: dict[str, None] = {}


class TrafficRecorder:
    """Records calls while somebody watches.

    Args:
        events: of the host.
        clients: say for whom of a gateway an attempt is made.
        stopped: ends attempts that a person stops.
        redactor: takes out what is secret.
        clock: says the seconds since the epoch.
    """

    def __init__(
        self,
        events: HostEvents,
        clients: CallingClients,
        stopped: StoppedAttempts,
        redactor: Redactor,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._events = events
        self._clients = clients
        self._stopped = stopped
        self._clock = clock
        self._watchers = 0
        self._redactor = redactor
        self._servers: Callable[[], Mapping[str, HostedServer]] = dict
        self._calls: OrderedDict[str, RecordedCall] = OrderedDict()
        self._running: OrderedDict[str, RecordedCall] = OrderedDict()
        self._ended: deque[str] = deque()
        self._questions: OrderedDict[str, list[str]] = OrderedDict()
        self._messages = MessageRecorder(redactor, clock, self._find_lone_call, self._take_retry)
        self.fronts = FrontRouters(clock, self._messages.take_client, self._find_client_call)
        self._counts = TrafficCounts()
        self._hits: Counter[RuleKey] = Counter()
        self._callers: OrderedDict[str, CallerCounts] = OrderedDict()

    @property
    def is_recording(self) -> bool:
        """Whether somebody watches."""
        return self._watchers > 0

    @contextmanager
    def watch(self, servers: "Callable[[], Mapping[str, HostedServer]]") -> Iterator[None]:
        """Record what goes on, as long as this lasts for anybody.

        Args:
            servers: gives the servers of now, whose connections are listened to.
        """
        self._watchers += 1
        if self._watchers == 1:
            self._servers = servers
            self._events.attach(self)
            self._messages.listen(servers())
            self.fronts.listen()
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                self.close()

    def close(self) -> None:
        """Record nothing more."""
        self._events.leave(self)
        self._messages.release()
        self.fronts.release()

    # Events

    def put(self, event: HostEvent) -> None:
        """Take down what has happened."""
        match event:
            case AttemptJudged():
                self._take_judged(event)
            case QuestionAsked(interaction=interaction):
                self._take_question(interaction)
            case QuestionAnswered():
                self._take_answer(event)
            case ServerMoved():
                self._messages.listen(self._servers())
            case AttemptBegan(attempt=attempt):
                self._messages.listen(self._servers())
                self._add_step(attempt.id, "sent", f"sent to {attempt.server or 'nobody'}")
            case AttemptProgressed():
                self._take_progress(event)
            case AttemptEnded():
                self._take_end(event)
            case _:
                pass

    def _take_judged(self, event: AttemptJudged) -> None:
        attempt, trace, now = event.attempt, event.trace, self._clock()
        call = self._calls.get(attempt.id) or self._begin(attempt, now)
        call.change(
            arguments=self._redact(attempt.arguments),
            effect=trace.effect,
            rule=trace.rule,
            reason=trace.reason,
            revision=event.revision,
        )
        if trace.obligations.redact:
            self._messages.hide(attempt.id)
        self._join_client(attempt.id)
        call.add_step("rule", now, f"{trace.effect} by {trace.rule}: {trace.reason}")
        self._counts.count_decision(now, trace.rule, trace.effect)
        rule = make_rule_key(trace)
        if rule in self._hits or len(self._hits) < MAX_RULES:
            self._hits[rule] += 1

    def _begin(self, attempt: Attempt, now: float) -> RecordedCall:
        """Begin a record; the oldest that is over makes room."""
        client = self._clients.find(attempt.id)
        name, revision = ("", "") if client is None else client.introduction
        record = CallRecord(
            id=attempt.id, at=now, principal=attempt.principal, asker=attempt.asker, client=name,
            client_revision=revision, origin=attempt.origin, server=attempt.server,
            action=attempt.action, object=attempt.object, parent=attempt.parent, user=attempt.user, run=attempt.run,
            arguments=self._redact(attempt.arguments),
        )  # fmt: skip
        call = self._calls[attempt.id] = self._running[attempt.id] = RecordedCall(attempt, record)
        whose = attempt.asker or attempt.principal
        call.add_step(
            "attempt", now, f"{whose} wants {attempt.action} {attempt.object} of {attempt.server}"
        )
        if len(self._running) > MAX_RUNNING_CALLS:
            self._end(next(iter(self._running)))
        self._count_caller(attempt.principal, f"{name} {revision}".strip(), now)
        return call

    def _end(self, id: str) -> None:
        """A call is over: it makes room in its turn; one that still runs never does."""
        if self._running.pop(id, None) is not None:
            self._ended.append(id)
        while len(self._ended) > MAX_CALLS:
            self._calls.pop(self._ended.popleft(), None)

    def _count_caller(self, principal: str, client: str, now: float) -> None:
        counts = self._callers.pop(principal, None) or CallerCounts()
        self._callers[principal] = counts
        counts.calls += 1
        counts.last = now
        if client:
            counts.clients[client] = None
            if len(counts.clients) > MAX_CLIENTS:
                del counts.clients[next(iter(counts.clients))]
        if len(self._callers) > MAX_PRINCIPALS:
            self._callers.popitem(last=False)

    def _take_question(self, interaction: Interaction) -> None:
        attempt = interaction.attempt
        concerned = [id for id in (attempt.id, attempt.parent) if id in self._calls]
        for id in concerned:
            call = self._calls[id]
            call.change(questions=(*call.record.questions, interaction.id))
            about = "" if id == attempt.id else f": {attempt.action} {attempt.object}"
            self._add_step(id, "question", f"a person is asked{about}")
        if concerned:
            self._questions[interaction.id] = concerned
            if len(self._questions) > MAX_CALLS:
                self._questions.popitem(last=False)

    def _take_answer(self, event: QuestionAnswered) -> None:
        decision = event.decision
        for number, id in enumerate(self._questions.pop(event.id, ())):
            call = self._calls.get(id)
            if call is None:
                continue
            self._add_step(id, "answer", f"{decision.verdict} by {decision.by or 'nobody'}")
            if not number:
                call.change(effect=decision.verdict)

    def _take_progress(self, event: AttemptProgressed) -> None:
        total = "" if event.total is None else f" of {event.total:g}"
        text = self._redactor.text(f"{event.progress:g}{total} {event.message}".strip())
        self._add_step(event.id, "progress", text)

    def _take_end(self, event: AttemptEnded) -> None:
        now, call = self._clock(), self._calls.get(event.id)
        if call is None and event.attempt is not None:
            call = self._begin(event.attempt, now)
        if call is None:  # it began before anybody watched
            return
        self._join_client(event.id)
        error = self._redactor.text(f"{event.error}: {event.reason}".strip(": "))
        self._stopped.forget(event.id)
        outcome = name_outcome(event, stopped=call.is_stopped)
        call.change(outcome=outcome, error=error, seconds=event.seconds, tokens=event.tokens)
        call.add_step("outcome", now, f"{outcome}{f': {error}' if error else ''}")
        call.task = None
        self._end(event.id)
        failed = outcome != "ok"
        self._counts.count_call(now, call.record.server, event.seconds, failed=failed)

    def _add_step(self, id: str, kind: StepKind, text: str) -> None:
        call = self._calls.get(id)
        if call is not None:
            call.add_step(kind, self._clock(), text)

    def _take_retry(self, id: str) -> None:
        """The request of a call is sent once more, since 2026-07-28 with what was answered."""
        self._add_step(id, "retry", "sent again, with the answers")

    def _find_lone_call(self, server: str, isolation: str) -> str:
        """The one call under way at a connection; empty where there are none or several."""
        at = [
            id
            for id, call in self._running.items()
            if (call.attempt.server, call.attempt.isolation) == (server, isolation)
            and not call.attempt.action.startswith(("elicit.", "sampling.", "roots."))
        ]
        return at[0] if len(at) == 1 else ""

    def _join_client(self, id: str) -> None:
        """The request of a gateway's client that this call is made for, if any, belongs to it."""
        inbound = getattr(self._clients.find(id), "inbound", None)
        if inbound is not None:
            self.fronts.join(id, inbound)

    def _find_client_call(self, key: InboundKey) -> str:
        """The call that goes on with a request of a gateway's client; empty for none."""
        for id, client in self._clients.all.items():
            inbound = getattr(client, "inbound", None)
            if inbound is not None and make_key(inbound) == key:
                return id
        return ""

    def _redact(self, arguments: object) -> object:
        """Arguments without secrets; of very large ones their size."""
        redacted = self._redactor.redact(arguments)
        size = len(msgspec.json.encode(redacted))
        return redacted if size <= MAX_ARGUMENTS_BYTES else f"[{size:,} bytes of JSON]"

    # Queries

    def list(self, query: TrafficQuery) -> Sequence[CallRecord]:
        """The recorded calls that fit, the newest first."""
        most, found = max(1, min(query.count, MAX_QUERY_ROWS)), []
        calls: Iterator[RecordedCall] = reversed(self._calls.values())
        if query.before:  # by place: ids of one millisecond are in no order
            calls = islice(dropwhile(lambda one: one.record.id != query.before, calls), 1, None)
        for call in calls:
            if fits_query(query, call.record):
                found.append(call.show())
                if len(found) == most:
                    break
        return found

    def find(self, id: str) -> CallRecord | None:
        """The recorded call of this id."""
        call = self._calls.get(id)
        return None if call is None else call.show()

    def list_messages(self, id: str) -> Sequence[WireMessage]:
        """The messages of a recorded call, in order."""
        return self._messages.list(id)

    def count(self, minutes: int) -> TrafficFigures:
        """The figures of the last minutes."""
        return self._counts.summarize(self._clock(), minutes)

    def count_hits(self) -> Mapping[RuleKey, int]:
        """How often each rule of each layer decided since somebody watched first."""
        return self._hits

    def count_running(self) -> Mapping[str, int]:
        """The number of calls under way, by run."""
        return Counter(call.attempt.run for call in self._running.values())

    def list_principals(self) -> Sequence[PrincipalLine]:
        """The principals of the recorded calls."""
        running = Counter(call.attempt.principal for call in self._running.values())
        return [
            PrincipalLine(
                principal=principal,
                clients=tuple(counts.clients),
                in_flight=running[principal],
                calls=counts.calls,
                last=counts.last,
            )
            for principal, counts in reversed(self._callers.items())
        ]

    # Stops

    def list_running(self, *, run: str) -> Sequence[str]:
        """The ids of the calls of a run that are under way."""
        return [id for id, call in self._running.items() if call.attempt.run == run]

    def stop(self, id: str, by: str) -> bool:
        """Cancel a call; False where it is not under way.

        Args:
            id: of the call.
            by: who stops it.
        """
        call = self._calls.get(id)
        if call is None or call.task is None:
            return False
        call.is_stopped = self._stopped.stop(id, call.task, by)
        return call.is_stopped


def make_rule_key(trace: Trace) -> RuleKey:
    """The layer and the id of the rule that decided: two layers may have rules of one id."""
    return next((one.layer for one in trace.matches if one.rule == trace.rule), ""), trace.rule


def name_outcome(event: AttemptEnded, *, stopped: bool) -> CallState:
    """The outcome of a call that has ended."""
    if stopped or event.error in CANCELLATIONS:
        return "cancelled"
    if event.error in DENIALS:
        return "denied"
    return "failed" if event.failed else "ok"


def fits_query(query: TrafficQuery, record: CallRecord) -> bool:
    """Whether a recorded call is one that somebody looks for."""
    if query.server not in {"", record.server}:
        return False
    if query.principal not in {"", record.principal, record.user}:
        return False
    if query.outcome not in {"", record.outcome}:
        return False
    if not query.text:
        return True
    # as a page shows them
    arguments = json.dumps(record.arguments, ensure_ascii=False, default=str)
    where = (record.id, record.object, record.error, arguments)
    return any(query.text.casefold() in text.casefold() for text in where)
