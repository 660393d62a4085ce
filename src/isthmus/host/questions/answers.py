"""Answers to what servers ask: makes their clients, and finds the call in whose course they ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import UNSET, Struct

from isthmus.client.model.questions import QUESTION_ORIGIN, BadQuestion, UndeclaredQuestion
from isthmus.core.answers import Answer, Cancelled
from isthmus.errors import CapabilityMissing, Rejected
from isthmus.host.model.attempt import Action, Attempt, Origin
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import Denied, HostError
from isthmus.host.model.events import HostEvents, HostNotice
from isthmus.host.model.row import AuditRow
from isthmus.host.questions.capabilities import (
    NO_CAPABILITIES,
    join_capabilities,
    limit_capabilities,
    make_full_capabilities,
    make_own_capabilities,
)
from isthmus.runtime.sorted_ids import new_id
from isthmus.server.asking.requirements import find_missing_capability
from isthmus.wire import ClientCapabilities
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from isthmus.client.client import Client
    from isthmus.client.features.roots import Roots
    from isthmus.client.features.sampling import Sampled
    from isthmus.client.model.limits import Limits
    from isthmus.client.targets import ClientTarget
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.model.calling_client import Answerer, CallingClient
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.pipeline.servers import KnownServers
    from isthmus.host.questions.callers import CallerAnswers
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.transports.command import Command
    from isthmus.wire import CreateMessageParams, ElicitParams, LogMessageParams

CALLER_PAGE_WAIT_S = 40.0  # for a server's word that a page is dealt with: clients give up after 50
T = TypeVar("T")

MAX_STRIKE_ROWS = 1_000  # of one server; it does nothing else by then
MAX_KEPT_CAPABILITIES = 256  # different ones of calls, of all servers
MIXED_INSTANCES = frozenset(
    {"shared", "per-user"}
)  # of which clients that differ share a connection

OWN_SURFACES = {
    "elicitation/create": "nobody who is there to be asked",
    "sampling/createMessage": "no model for this server",
    "roots/list": "no folders for this server",
}


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
        callers: the clients of a gateway in the course of whose calls it may have been asked.
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
    callers: "tuple[CallingClient, ...]" = ()

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
            user="" if self.parent is None else self.parent.owner,
            course="" if self.parent is None else self.parent.words,
            asker="" if self.parent is None else self.parent.asker,
            origin=self.origin,
            isolation=self.isolation,
            profile="" if self.parent is None else self.parent.profile,
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

    def list_declared(self, entry: ServerEntry) -> "Sequence[Any]":
        """The folders that are meant for a server."""
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
        serves_callers: a gateway makes attempts for its clients, which may be asked, too.
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
        self.serves_callers = False
        self._of_calls: dict[tuple[Any, ...], tuple[ServerEntry, ClientCapabilities]] = {}
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
            callers=self._find_callers(entry, isolation, parent) if self.serves_callers else (),
        )

    async def answer_within(
        self, asking: ServerQuestion, answer: "Coroutine[object, object, T]", void: T
    ) -> T:
        """Answer a question unless the attempt in whose course it was asked fails meanwhile: then ``void``."""
        return await self._pipeline.flying.answer_within(asking.parent, answer, void)

    # Clients of a gateway

    @cached_property
    def callers(self) -> "CallerAnswers":
        """Puts questions to the clients of a gateway."""
        from isthmus.host.questions.callers import CallerAnswers  # few hosts have a gateway

        return CallerAnswers(self._pipeline, self._servers.clients)

    def _find_callers(
        self, entry: ServerEntry, isolation: str, parent: Attempt | None
    ) -> "tuple[CallingClient, ...]":
        """The clients in the course of whose calls something may have been asked; one of each session."""
        clients = self._servers.clients
        if parent is not None:
            client = clients.find(parent.id)
            return () if client is None else (client,)
        flying = self._pipeline.flying.at(entry.name, isolation)
        found = [client for one in flying if (client := clients.find(one.id)) is not None]
        if not flying and isolation:  # it is only being connected
            found = clients.list_at(isolation)
        # The newest call of a session: whatever is asked there concerns that session.
        return tuple(
            {
                id(client if client.session is None else client.session): client for client in found
            }.values()
        )

    def choose(self, asking: ServerQuestion, method: str, params: Any) -> "CallingClient | None":
        """Choose who answers a question: a client of a gateway, or None for the host's own surfaces.

        Raises:
            BadQuestion: nobody can, or it may be more than one client's question.
            CapabilityMissing: nobody can, where the question lay in the result of a call.
        """
        chosen = [self._choose_of(asking, client, method, params) for client in asking.callers]
        if not chosen:
            if method == "sampling/createMessage" and self.sampler is None:
                raise UndeclaredQuestion(-32601, f"Method not found: {method}: nobody answers it")
            if method == "roots/list" and self.serves_callers and not self._has_roots(asking.entry):
                # "No folders" would be kept by the server for calls of clients that have some.
                # spec 2025-11-25 client/roots#error-handling: internal errors are -32603
                raise BadQuestion(
                    -32603,
                    f"{method} outside of a call: nobody can tell which client is meant, and the "
                    "gateway has no folders of its own for this server. Ask in the course of a call",
                )
            return None
        if len(chosen) == 1:
            if chosen[0] == "nobody":
                self._refuse(asking, asking.callers[0], method, params)
            return asking.callers[0] if chosen[0] == "client" else None
        if "client" not in chosen and "gateway" in chosen:
            return None
        name = asking.entry.name
        text = (
            f"{name} asks {method} while calls of several clients are under way on one connection: "
            "nobody can tell whose question it is, so nobody is asked. Set host.instance of its entry "
            'to "auto" or "per-session"'
        )
        self._events.tell(HostNotice(about="question", server=name, text=text))
        raise BadQuestion(-32603, text)

    def _choose_of(
        self, asking: ServerQuestion, client: "CallingClient", method: str, params: Any
    ) -> "Answerer | Literal['nobody']":
        for who in client.answerers:
            able = client.capabilities if who == "client" else self.find_own(asking.entry)
            if find_missing_capability(able, method, params) is None:
                return who
        return "nobody"

    def _refuse(
        self, asking: ServerQuestion, client: "CallingClient", method: str, params: Any
    ) -> None:
        """Refuse what neither the client nor the gateway can answer."""
        missing = find_missing_capability(NO_CAPABILITIES, method, params) or {}
        if "client" in client.answerers:
            missing = find_missing_capability(client.capabilities, method, params) or missing
        lacking = ".".join(["", *next(iter(missing.items()))])[1:]
        text = (
            f"{asking.entry.name} asks {method}, which neither the client can answer nor the gateway: "
            f"the client did not declare the capability {lacking}, and the gateway has "
            f"{OWN_SURFACES[method]}"
        )
        if asking.origin == "request":
            # spec 2025-11-25 client/elicitation#error-handling: MUST be -32602; of the others
            # client/roots#error-handling has -32601
            code = -32602 if method == "elicitation/create" or "tools" in lacking else -32601
            if (
                asking.entry.options.instance in MIXED_INSTANCES
            ):  # was told of what others can answer
                raise BadQuestion(code, text)
            raise UndeclaredQuestion(code, text)
        self.record_strike(asking.entry, asking.isolation, method)
        raise CapabilityMissing(text, missing)

    def find_own(self, entry: ServerEntry) -> ClientCapabilities:
        """What the host's own surfaces can answer a server just now."""
        return make_own_capabilities(
            entry.options.advertise,
            elicits=self.elicitor is not None and self._pipeline.broker.answers_questions,
            samples=self.sampler is not None,
            roots=self._has_roots(entry),
        )

    def _has_roots(self, entry: ServerEntry) -> bool:
        """Whether the host has folders of its own for a server."""
        return self.roots is not None and bool(self.roots.list_declared(entry))

    def find_declared(self, entry: ServerEntry, isolation: str) -> ClientCapabilities:
        """What a server is told on a connection: the most of what those who use it can answer."""
        full, own = make_full_capabilities(entry.options.advertise), self.find_own(entry)
        if entry.options.instance in MIXED_INSTANCES:
            return full
        known = self._servers.clients.find_facts(isolation) if isolation else None
        if known is None:
            return own
        return self._join(*known, own, full)

    def find_of_call(self, entry: ServerEntry) -> ClientCapabilities | None:
        """What can be answered in the course of the call that is being made here; None outside of one."""
        from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT

        attempt = CURRENT_ATTEMPT.get()
        client = None if attempt is None else self._servers.clients.find(attempt.id)
        if client is None:
            return None
        roots = self._has_roots(entry)
        key = (
            entry.name,
            encode(client.capabilities),
            tuple(client.answerers),
            self._pipeline.broker.answers_questions,
            roots,
        )
        known = self._of_calls.get(key)
        if known is None or known[0] is not entry:
            if len(self._of_calls) >= MAX_KEPT_CAPABILITIES:
                self._of_calls.clear()
            full = make_full_capabilities(entry.options.advertise)
            own = self.find_own(entry)
            known = entry, self._join(client.capabilities, client.answerers, own, full)
            self._of_calls[key] = known
        return known[1]

    @staticmethod
    def _join(
        declared: ClientCapabilities,
        answerers: "Sequence[Answerer]",
        own: ClientCapabilities,
        full: ClientCapabilities,
    ) -> ClientCapabilities:
        able = declared if "client" in answerers else NO_CAPABILITIES
        if "gateway" in answerers:
            able = join_capabilities(able, own)
        return limit_capabilities(able, full)

    def complete_page(self, server: str, isolation: str, id: str) -> None:
        """A server says that the user is done with a page."""
        told = self._servers.clients.complete_page(server, isolation, id)
        if not told and self.elicitor is not None:
            self.elicitor.completed(server, id)

    # What servers may not ask

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
        if answers.serves_callers:
            self._declare()

    def _make_client(self) -> "Client":
        from isthmus.client.client import Client
        from isthmus.host.supervisor.targets import get_pinned_revision

        answers, entry = self._answers, self._entry
        offered, times = entry.options.advertise, entry.options.timeouts
        samples = bool(offered.sampling) and answers.sampler is not None
        elicits = bool(offered.elicitation) and answers.elicitor is not None
        tells = offered.roots and answers.roots is not None
        declared, full = None, make_full_capabilities(offered)
        if answers.serves_callers:  # who can answer more than the host itself
            declared = full
            samples, elicits, tells = (
                member is not UNSET for member in (full.sampling, full.elicitation, full.roots)
            )
        elif elicits:
            declared = ClientCapabilities(elicitation=full.elicitation)
        elicit: Any = self._elicit if elicits else None
        roots: Roots | None = self._expose_roots if tells else None
        return Client(
            answers.find_target(entry, self._isolation),
            elicit=elicit,
            sample=self._sample if samples else None,
            roots=roots,
            sample_tools=samples and bool(offered.sampling_tools),
            sample_context=samples and bool(offered.sampling_context),
            answer_tasks=offered.tasks and (elicits or samples),
            on_log=self._report_log,
            on_change=self._report_change,
            on_elicitation_complete=self._complete_page if "url" in offered.elicitation else None,
            revision=get_pinned_revision(entry),
            timeout=times.call,
            max_timeout=times.total,
            connect_timeout=times.connect,
            capabilities=declared,
            limits=self._make_limits(),
        )

    def _make_limits(self) -> "Limits":
        from isthmus.client.model.limits import Limits

        most = max(64 * self._entry.options.limits.result_bytes, 1024 * 1024)
        if not self._answers.serves_callers:
            return Limits(result_bytes=most)
        # Of many clients: what each may be asked is counted by principal, and by the elicitor and sampler.
        return Limits(
            result_bytes=most,
            elicitations=None,
            elicitations_in_flight=None,
            samplings=None,
            samplings_in_flight=None,
            page_wait=CALLER_PAGE_WAIT_S,
        )

    def _declare(self) -> None:
        """Tell the server what the callers of this very connection, or of each call, can answer."""
        answers, entry = self._answers, self._entry
        connection = self.client.connection
        connection.answering.declare(answers.find_declared(entry, self._isolation))
        connection.find_call_capabilities = lambda: answers.find_of_call(entry)

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
        client = self._answers.choose(asking, "elicitation/create", params)
        with self._busy():
            try:
                if client is not None:
                    return await self._answers.callers.elicit(asking, client, params)
                given = elicitor.answer(asking, params)
                answer: Answer[Any] = await self._answers.answer_within(asking, given, Cancelled())
            except HostError as error:
                self._report_error(error)
                return Cancelled()
            return answer

    async def _sample(self, params: "CreateMessageParams") -> "Sampled":
        asking = self._answers.make_question(self._entry, self._isolation)
        sampler: Any = self._answers.sampler
        client = self._answers.choose(asking, "sampling/createMessage", params)
        with self._busy():
            try:
                if client is not None:
                    return await self._answers.callers.sample(asking, client, params)
                given = sampler.answer(asking, params)
                written: Sampled | None = await self._answers.answer_within(asking, given, None)
            except Denied as error:
                raise Rejected from error
            if written is None:
                raise Rejected
            return written

    async def _expose_roots(self) -> Any:
        asking = self._answers.make_question(self._entry, self._isolation)
        roots: Any = self._answers.roots
        client = self._answers.choose(asking, "roots/list", None)
        with self._busy():
            if client is not None:
                return await self._answers.callers.list_roots(asking, client)
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
        self._answers.complete_page(self._entry.name, self._isolation, id)

    def _record_strike(self, method: str) -> None:
        self._answers.record_strike(self._entry, self._isolation, method)
