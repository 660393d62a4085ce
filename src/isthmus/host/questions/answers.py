"""Answers to what servers ask: makes their clients, and finds the call in whose course they ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, Struct

from isthmus.client.model.questions import QUESTION_ORIGIN
from isthmus.core.answers import Answer, Cancelled
from isthmus.errors import Rejected
from isthmus.host.model.attempt import Action, Attempt, Origin, new_id
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import Denied, HostError
from isthmus.host.model.events import HostEvents, HostNotice
from isthmus.host.model.row import AuditRow
from isthmus.wire import ClientCapabilities, ElicitationCapability

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isthmus.client.client import Client
    from isthmus.client.features.roots import Roots
    from isthmus.client.features.sampling import Sampled
    from isthmus.client.targets import ClientTarget
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.model.calling_client import CallingClient
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.pipeline.servers import KnownServers
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.transports.command import Command
    from isthmus.wire import CreateMessageParams, ElicitParams, LogMessageParams

MAX_STRIKE_ROWS = 1_000  # of one server; it does nothing else by then


class ServerQuestion(Struct, frozen=True, kw_only=True):
    """A question of a server: who asks, and in the course of which attempt.

    Attributes:
        entry: the server.
        identity: what the server is bound to: its program, or its origin.
        isolation: whose connection to it the question came on.
        principal: ``server:NAME``.
        run: the run it belongs to; empty where that is not known.
        parent: the attempt in whose course it was asked; None where that is not known.
        origin: by which route.
        revision: the name of the revision spoken.
        labels: what the run has consumed; of all runs in flight there, where it is not known which.
        task: the task it belongs to, and ``key`` its name within task or result; else empty.
        depth: how many samplings it is within.
    """

    entry: ServerEntry
    identity: str = ""
    isolation: str = ""
    run: str = ""
    parent: Attempt | None = None
    origin: Origin = "request"
    revision: str = ""
    labels: frozenset[str] = frozenset()
    task: str = ""
    key: str = ""
    depth: int = 0

    @property
    def principal(self) -> str:
        """The principal that asks: the server."""
        return f"server:{self.entry.name}"

    def attempt(self, action: Action, object: str = "", arguments: Any = None) -> Attempt:
        """Make an attempt of what the server wants, in the course of its parent.

        Args:
            action: what is wanted.
            object: the model, or the page.
            arguments: with what, as plain data.
        """
        return Attempt(
            id=new_id(),
            action=action,
            principal=self.principal,
            server=self.entry.name,
            object=object,
            arguments=arguments or {},
            run=self.run,
            parent="" if self.parent is None else self.parent.id,
            course="" if self.parent is None else self.parent.words,
            asker="" if self.parent is None else self.parent.asker,
            origin=self.origin,
            isolation=self.isolation,
        )


class AnswersSampling(Protocol):
    """Has a model write for a server."""

    async def answer(self, asking: ServerQuestion, params: "CreateMessageParams") -> "Sampled":
        """The text of a model, or ``Declined()``."""
        ...


class AnswersElicitation(Protocol):
    """Asks the user for a server."""

    async def answer(self, asking: ServerQuestion, params: "ElicitParams") -> Answer[Any]:
        """The answer of the user."""
        ...

    def completed(self, server: str, id: str) -> None:
        """A page is dealt with, as its server says."""
        ...


class AnswersRoots(Protocol):
    """Knows where servers may work."""

    async def answer(self, asking: ServerQuestion) -> Any:
        """The folders that a server is told."""
        ...


class ServerAnswers:
    """Makes the clients of servers, and answers what comes in by them.

    Args:
        pipeline: what everything passes.
        servers: what is known of servers.
        targets: servers that stand in no file, by name.
        events: tells of servers that break the rules.
        sampler, elicitor, roots: who answers; None where that is not offered.
        confine: puts a command into the sandbox of its entry.
        accounts: those that are shown to servers.

    Attributes:
        strikes: how often each server asked what it was not offered.
    """

    def __init__(
        self,
        pipeline: "Pipeline",
        servers: "KnownServers",
        targets: "Mapping[str, ClientTarget]",
        events: HostEvents,
        *,
        sampler: AnswersSampling | None = None,
        elicitor: AnswersElicitation | None = None,
        roots: AnswersRoots | None = None,
        confine: "Callable[[ServerEntry], Callable[[Command], Command]] | None" = None,
        accounts: "Accounts | None" = None,
    ) -> None:
        self.sampler = sampler
        self.elicitor = elicitor
        self.roots = roots
        self.confine = confine
        self.accounts = accounts
        self.strikes: dict[str, int] = {}
        self._pipeline = pipeline
        self._servers = servers
        self._targets = targets
        self._events = events

    def make_client(self, entry: ServerEntry, isolation: str) -> "Client":
        """The client for a server and an isolation key: it offers what the entry says, and no more.

        Raises:
            ConfigError: the entry cannot be reached as it says.
        """
        return HostedClient(self, entry, isolation).client

    def find_target(self, entry: ServerEntry, isolation: str) -> "ClientTarget":
        """The target of a server, with the credentials of whose connection it is."""
        from isthmus.host.supervisor.targets import apply_era, make_target  # elsewhere

        found = self._targets.get(entry.name)
        plain = isinstance(found, str) and entry.url  # tokens of an earlier login go with it
        if found is not None and not plain and not entry.command:
            return apply_era(found, entry)
        given = () if self.confine is None else (self.confine(entry),)
        return make_target(entry, *given, isolation=isolation, accounts=self.accounts)

    def find_connection(
        self, server: str, isolation: str, client: "Client"
    ) -> "ServerConnection | None":
        """The connection of a client, as the supervisor keeps it."""
        return self._servers.supervisor.find_connection(server, isolation, client)

    def report_change(self, server: str, kind: str, isolation: str) -> None:
        """A server has told on a connection that a list of its has changed."""
        self._servers.supervisor.changed(server, kind, isolation)

    def report_log(self, server: str, isolation: str, message: "LogMessageParams") -> None:
        """A server has logged something on a connection."""
        hosted = self._servers.supervisor.servers.get(server)
        if hosted is not None and message.level != "debug":  # for which callers alone may ask
            hosted.keep_log(message)
        listener = self._find_listener(server, isolation)
        if listener is not None:
            listener.log(message)

    def _find_listener(self, server: str, isolation: str) -> "CallingClient | None":
        """The client that what is said on a connection is for; None where it may be for another one.

        It is one whose call is the only one there, or the last one of a session that has all of them.
        """
        find = self._servers.clients.find
        found = [find(attempt.id) for attempt in self._pipeline.flying.at(server, isolation)]
        last = found[-1] if found else None
        if last is None or any(one is None or one.session is not last.session for one in found):
            return None
        return last if len(found) == 1 or last.session is not None else None

    def make_question(self, entry: ServerEntry, isolation: str) -> ServerQuestion:
        """Make the question that is being answered here: who asks, and in the course of which attempt."""
        asked = QUESTION_ORIGIN.get()
        pipeline, servers = self._pipeline, self._servers
        identity = servers.identity_of(entry, isolation)  # it may be none of ours any more
        route = "request" if asked is None else asked.route
        task = "" if asked is None else asked.task
        parent, labels = None, frozenset[str]()
        if task:
            parent = servers.tasks.parent(entry.name, isolation, identity, task)
        if parent is None and route != "request":
            from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT

            parent = CURRENT_ATTEMPT.get()
        if parent is None:
            # A request of the server's own: only where one call is under way is it known for which.
            flying = pipeline.flying.at(entry.name, isolation)
            parent = flying[0] if len(flying) == 1 else None
            labels = pipeline.runs.labels({attempt.run for attempt in flying})
        run = "" if parent is None else parent.run
        return ServerQuestion(
            entry=entry,
            identity=identity,
            isolation=isolation,
            run=run,
            parent=parent,
            origin="task" if task else route,
            revision="" if asked is None else asked.revision.name,
            labels=labels | pipeline.runs.labels((run,)),
            task=task,
            key="" if asked is None else asked.key,
            depth=0 if parent is None else pipeline.flying.depth(parent.id),
        )

    def record_strike(self, entry: ServerEntry, isolation: str, method: str) -> None:
        """A server asks what it was not offered to ask."""
        count = self.strikes[entry.name] = self.strikes.get(entry.name, 0) + 1
        if count > MAX_STRIKE_ROWS:
            return
        asking = self.make_question(entry, isolation)
        text = f"{entry.name} asks {method}, which it was not offered (strike {count})"
        self._events.tell(HostNotice(about="strike", server=entry.name, text=text))
        self._pipeline.audit.note(
            AuditRow(
                kind="server",
                parent="" if asking.parent is None else asking.parent.id,
                run=asking.run,
                principal=asking.principal,
                server=entry.name,
                identity=asking.identity,
                era=asking.revision,
                origin=asking.origin,
                object=method,
                effect="deny",
                failed=True,
                error="undeclared",
                detail={"strike": count},
            )
        )


class HostedClient:
    """One client of a host, and what it answers.

    Args:
        answers: who answers.
        entry: the server.
        isolation: whose connection it is.
    """

    def __init__(self, answers: ServerAnswers, entry: ServerEntry, isolation: str) -> None:
        self._answers = answers
        self._entry = entry
        self._isolation = isolation
        self.client = self._make_client()
        self.client.on_undeclared(self._record_strike)

    def _make_client(self) -> "Client":
        from isthmus.client.client import Client
        from isthmus.client.model.limits import Limits
        from isthmus.host.supervisor.targets import get_pinned_revision

        answers, entry = self._answers, self._entry
        offered, times = entry.options.advertise, entry.options.timeouts
        samples = offered.sampling and answers.sampler is not None
        elicits = bool(offered.elicitation) and answers.elicitor is not None
        elicit: Any = self._elicit if elicits else None
        roots: Roots | None = None
        if offered.roots and answers.roots is not None:
            roots = self._expose_roots
        return Client(
            answers.find_target(entry, self._isolation),
            elicit=elicit,
            sample=self._sample if samples else None,
            roots=roots,
            sample_tools=samples and offered.sampling_tools,
            sample_context=samples and offered.sampling_context,
            answer_tasks=offered.tasks and (elicits or samples),
            on_log=self._report_log,
            on_change=self._report_change,
            on_elicitation_complete=self._complete_page if "url" in offered.elicitation else None,
            revision=get_pinned_revision(entry),
            timeout=times.call,
            max_timeout=times.total,
            connect_timeout=times.connect,
            capabilities=make_elicitation_capability(offered.elicitation) if elicits else None,
            limits=Limits(result_bytes=max(64 * entry.options.limits.result_bytes, 1024 * 1024)),
        )

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """While a person or a model is asked, nothing times out: the server waits for us.

        Nor is the connection closed for being idle.
        """
        line = self._answers.find_connection(self._entry.name, self._isolation, self.client)
        if line is not None:
            line.in_flight += 1
        try:
            with self.client.held():
                yield
        finally:
            if line is not None:
                line.release()

    async def _elicit(self, params: "ElicitParams") -> Answer[Any]:
        asking = self._answers.make_question(self._entry, self._isolation)
        elicitor: Any = self._answers.elicitor
        with self._busy():
            try:
                answer: Answer[Any] = await elicitor.answer(asking, params)
            except HostError as error:
                self._report_error(error)
                return Cancelled()
            return answer

    async def _sample(self, params: "CreateMessageParams") -> "Sampled":
        asking = self._answers.make_question(self._entry, self._isolation)
        sampler: Any = self._answers.sampler
        with self._busy():
            try:
                written: Sampled = await sampler.answer(asking, params)
            except Denied as error:
                raise Rejected from error
            return written

    async def _expose_roots(self) -> Any:
        asking = self._answers.make_question(self._entry, self._isolation)
        roots: Any = self._answers.roots
        with self._busy():
            try:
                return await roots.answer(asking)
            except Denied:
                return []

    def _report_error(self, error: HostError) -> None:
        said = HostNotice(about="question", server=self._entry.name, text=str(error))
        self._answers._events.tell(said)  # noqa: SLF001 - of the same file

    def _report_change(self, change: Any) -> None:
        self._answers.report_change(self._entry.name, change.kind, self._isolation)

    def _report_log(self, message: Any) -> None:
        self._answers.report_log(self._entry.name, self._isolation, message)

    def _complete_page(self, id: str) -> None:
        if self._answers.elicitor is not None:
            self._answers.elicitor.completed(self._entry.name, id)

    def _record_strike(self, method: str) -> None:
        self._answers.record_strike(self._entry, self._isolation, method)


def make_elicitation_capability(offered: tuple[str, ...]) -> Any:
    """The ways to ask the user that a server is told of."""
    return ClientCapabilities(
        elicitation=ElicitationCapability(
            form={} if "form" in offered else UNSET, url={} if "url" in offered else UNSET
        )
    )
