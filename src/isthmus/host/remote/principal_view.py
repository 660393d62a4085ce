"""View for one principal: a user of a gateway sees what is theirs, and nothing that tells of others.

Whatever belongs to somebody else is answered as what does not exist, by its id as well.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, TypeAlias, TypeVar, cast

from msgspec import structs

from isthmus.errors import UsageError
from isthmus.host.model.errors import Unknown
from isthmus.host.model.events import (
    AttemptBegan,
    AttemptEnded,
    AttemptJudged,
    AttemptProgressed,
    HostEvent,
    HostNotice,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    close_events,
)
from isthmus.host.model.interaction import Interaction, QuestionTaker
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import AuditQuery, ServerStatus
from isthmus.host.remote.protocol import (
    AskAttend,
    AskAudit,
    AskCall,
    AskDecide,
    AskExplain,
    AskFree,
    AskGrants,
    AskHello,
    AskLeave,
    AskLog,
    AskNarrow,
    AskPrompt,
    AskRead,
    AskRevoke,
    AskServer,
    AskStop,
    AskTake,
    AskTools,
    HostRequest,
)
from isthmus.host.remote.requests import (
    AskAccounts,
    AskAddress,
    AskAddServer,
    AskAuditRow,
    AskAuditRows,
    AskCallRecord,
    AskCallRows,
    AskConnect,
    AskFigures,
    AskForget,
    AskLayers,
    AskMessages,
    AskPrincipals,
    AskProfiles,
    AskPromote,
    AskRelease,
    AskRemoveServer,
    AskReplay,
    AskRuns,
    AskStopCall,
    AskStopRun,
    AskToolStates,
    AskTraffic,
    AskTry,
    AskVerify,
    AskWatch,
)
from isthmus.host.remote.view import HostView

T = TypeVar("T")
MAX_OWN_IDS = 4_096  # of attempts and questions whose events go on
LISTENING_NOTICES = frozenset({"gone", "lost"})

RequestScope: TypeAlias = Literal["own", "operator", "public"]
"""``own`` is answered about what is the principal's; ``operator`` is refused to everybody else; ``public``
is answered to anybody as it is."""

REQUEST_SCOPES: Mapping[type, RequestScope] = {
    # of a connection, which a view for one principal is none of
    AskHello: "operator",
    AskAttend: "operator",
    AskLeave: "operator",
    AskStop: "operator",
    AskWatch: "operator",
    # questions and grants
    AskDecide: "own",
    AskTake: "own",
    AskFree: "own",
    AskExplain: "own",
    AskGrants: "own",
    AskRevoke: "own",
    AskNarrow: "own",
    # calls
    AskTools: "own",
    AskCall: "own",
    AskRead: "own",
    AskPrompt: "own",
    AskTraffic: "own",
    AskCallRecord: "own",
    AskMessages: "own",
    AskStopCall: "own",
    AskRuns: "own",
    AskStopRun: "own",
    AskFigures: "operator",
    # the audit log
    AskAudit: "own",
    AskAuditRows: "own",
    AskAuditRow: "own",
    AskCallRows: "own",
    AskVerify: "operator",
    # access
    AskAccounts: "own",
    AskConnect: "own",
    AskForget: "own",
    AskPrincipals: "operator",
    AskProfiles: "operator",
    # policy
    AskLayers: "operator",
    AskTry: "operator",
    AskReplay: "operator",
    AskPromote: "operator",
    # servers
    AskServer: "operator",
    AskLog: "operator",
    AskToolStates: "operator",
    AskRelease: "operator",
    AskAddServer: "operator",
    AskRemoveServer: "operator",
    AskAddress: "operator",
}


class OwnEvents:
    """Tells which events are about what is one principal's.

    Args:
        principal: who listens.
        known: ids of attempts and questions of theirs that are under way.
    """

    def __init__(self, principal: str, known: Iterable[str] = ()) -> None:
        self._principal = principal
        self._ids = dict.fromkeys(known)

    def holds(self, event: HostEvent) -> bool:
        """Whether an event is about something of the principal, or about the listening itself."""
        match event:
            case QuestionAsked(interaction=interaction):
                id, is_own = interaction.id, interaction.attempt.owner == self._principal
            case AttemptJudged(attempt=attempt) | AttemptBegan(attempt=attempt):
                id, is_own = attempt.id, attempt.owner == self._principal
            case QuestionAnswered(id=id) | QuestionTaken(id=id) | AttemptProgressed(id=id):
                return id in self._ids
            case AttemptEnded(id=id, attempt=ended):
                return id in self._ids or (ended is not None and ended.owner == self._principal)
            case HostNotice(about=about):
                return about in LISTENING_NOTICES
            case _:
                return False
        if is_own:
            self._ids[id] = None
            if len(self._ids) > MAX_OWN_IDS:
                del self._ids[next(iter(self._ids))]
        return is_own


class PrincipalView(HostView):
    """A view of a host that shows one principal what is theirs.

    Questions are theirs that are about attempts of theirs, or that a server asks in the course of one.
    It does not attend, and records nothing:
    whoever serves it does that at the view behind.

    Args:
        view: of the host, which shows everything.
        principal: who looks, as somebody has authenticated them.

    Raises:
        UsageError: the principal is empty, which requests take for everybody.
    """

    def __init__(self, view: HostView, principal: str) -> None:
        super().__init__()
        if not principal:
            raise UsageError("a view of one principal's data needs the principal")
        self.principal = principal
        self._view = view
        self._runs: set[str] = set()
        self._answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskDecide: self._decide,
            AskTake: self._take,
            AskFree: self._free,
            AskExplain: self._explain,
            AskGrants: self._list_grants,
            AskRevoke: self._revoke,
            AskNarrow: self._narrow,
            AskTraffic: self._list_calls,
            AskCallRecord: self._find_call,
            AskMessages: self._list_messages,
            AskStopCall: self._stop_call,
            AskRuns: self._list_runs,
            AskStopRun: self._stop_run,
            AskAudit: self._tail_audit,
            AskAuditRows: self._list_rows,
            AskAuditRow: self._find_row,
            AskCallRows: self._list_call_rows,
            AskAccounts: self._list_accounts,
            AskConnect: self._connect,
            AskForget: self._forget,
        }

    # What is seen

    def pending(self) -> Sequence[Interaction]:
        """The questions about attempts of the principal, and of servers in the course of these."""
        return [one for one in self._view.pending() if one.attempt.owner == self.principal]

    def takers(self) -> Mapping[str, QuestionTaker]:
        """Whoever has taken one of these questions, by its id."""
        own = {one.id for one in self.pending()}
        return {id: taker for id, taker in self._view.takers().items() if id in own}

    def servers(self) -> Sequence[ServerStatus]:
        """None: what servers there are, and how they are, is for the operator."""
        return []

    def events(self) -> AsyncIterator[HostEvent]:
        """Events about attempts of the principal, from now on."""
        own = OwnEvents(self.principal, [one.id for one in self.pending()])
        return self._filter(self._view.events(), own)

    async def _filter(
        self, events: AsyncIterator[HostEvent], own: OwnEvents
    ) -> AsyncIterator[HostEvent]:
        try:
            async for event in events:
                if own.holds(event):
                    yield event
        finally:
            await close_events(events)

    def attend(
        self,
        name: str,  # noqa: ARG002 - as a view has it
        assurance: Assurance = "local_ui",  # noqa: ARG002 - as above
    ) -> AbstractAsyncContextManager[None]:
        """Refused: who attends is asked about everybody's attempts.

        Raises:
            Unknown: always.
        """
        raise make_refusal("attend")

    def watch(self) -> AbstractAsyncContextManager[None]:
        """Refused: who watches has everybody's calls recorded.

        Raises:
            Unknown: always.
        """
        raise make_refusal("watch")

    def begin_run(self, principal: str = "") -> str:  # noqa: ARG002 - it is always their own
        """A run of the principal's."""
        run = self._view.begin_run(self.principal)
        self._runs.add(run)
        return run

    async def ask(self, request: HostRequest, kind: type[T], *, run: str | None = None) -> T:
        """Have a request answered about what is the principal's.

        Raises:
            Unknown: it is for the operator, or about nothing that they have.
            IsthmusError: what the host says against it.
        """
        scope = REQUEST_SCOPES.get(type(request), "operator")
        if scope == "operator":
            raise make_refusal(type(request).__name__)
        if isinstance(request, AskTools | AskCall | AskRead | AskPrompt):
            if run and run not in self._runs:
                raise Unknown(f"there is no run {run!r}: make one with host.run()")
            own = structs.replace(request, principal=self.principal)
            return await self._view.ask(own, kind, run=run)
        if scope == "public":
            return await self._view.ask(request, kind, run=run)
        return cast("T", await self._answers[type(request)](request))

    # Questions and grants

    def _find_question(self, id: str) -> Interaction | None:
        return next((one for one in self.pending() if one.id == id), None)

    async def _decide(self, request: AskDecide) -> bool:
        asked = self._find_question(request.question)
        if asked is None:
            return False
        said = structs.replace(request.decision, by=self.principal, principal=self.principal)
        if asked.attempt.principal != self.principal:
            # what a server is granted holds for everybody's calls: one user cannot say so
            said = structs.replace(said, remember="once", until=None)
        return await self._view.decide(request.question, said)

    async def _take(self, request: AskTake) -> QuestionTaker | None:
        if self._find_question(request.question) is None:
            return None
        taker = structs.replace(request.taker, by=self.principal)
        return await self._view.take_question(request.question, taker, over=request.over)

    async def _free(self, request: AskFree) -> bool:
        if self._find_question(request.question) is None:
            return False
        return await self._view.free_question(request.question, request.holder)

    async def _explain(self, request: AskExplain) -> object:
        if self._find_question(request.question) is None:
            return []
        return await self._view.explain(request.question)

    async def _list_grants(self, _request: AskGrants | None) -> Sequence[Any]:
        return [one for one in await self._view.grants() if one.principal == self.principal]

    async def _has_grant(self, id: str) -> bool:
        return any(one.id == id for one in await self._list_grants(None))

    async def _revoke(self, request: AskRevoke) -> bool:
        if not await self._has_grant(request.grant):
            return False
        return await self._view.revoke(request.grant, by=self.principal)

    async def _narrow(self, request: AskNarrow) -> bool:
        if not await self._has_grant(request.grant):
            return False
        return await self._view.ask(structs.replace(request, by=self.principal), bool)

    # Calls

    async def _list_calls(self, request: AskTraffic) -> object:
        query = request.query
        if query.principal not in {"", self.principal}:
            return []
        return await self._view.traffic(structs.replace(query, principal=self.principal))

    async def _find_call(self, request: AskCallRecord) -> object:
        found = await self._view.call_record(request.call)
        return found if found is not None and found.owner == self.principal else None

    async def _has_call(self, call: str) -> bool:
        found = await self._view.call_record(call)
        return found is not None and found.owner == self.principal

    async def _list_messages(self, request: AskMessages) -> object:
        return (
            await self._view.wire_messages(request.call)
            if await self._has_call(request.call)
            else []
        )

    async def _stop_call(self, request: AskStopCall) -> bool:
        if not await self._has_call(request.call):
            return False
        return await self._view.stop_call(request.call, by=self.principal)

    async def _list_runs(self, _request: AskRuns | None) -> Sequence[Any]:
        return [one for one in await self._view.runs() if one.principal == self.principal]

    async def _stop_run(self, request: AskStopRun) -> bool:
        if all(one.run != request.run for one in await self._list_runs(None)):
            return False
        return await self._view.stop_run(request.run, by=self.principal)

    # The audit log

    async def _tail_audit(self, request: AskAudit) -> object:
        rows = await self._view.audit_rows(
            AuditQuery(principal=self.principal, count=request.count)
        )
        return list(reversed(rows))

    async def _list_rows(self, request: AskAuditRows) -> object:
        query = request.query
        if query.principal not in {"", self.principal}:
            return []
        return await self._view.audit_rows(structs.replace(query, principal=self.principal))

    async def _find_row(self, request: AskAuditRow) -> object:
        found = await self._view.audit_row(request.seq)
        return found if found is not None and found.principal == self.principal else None

    async def _list_call_rows(self, request: AskCallRows) -> object:
        rows = await self._view.call_rows(request.call)
        if await self._has_call(request.call):  # also what a server asked in the course of theirs
            return rows
        return [row for row in rows if row.principal == self.principal]

    # Accounts

    async def _list_accounts(self, request: AskAccounts) -> object:
        if request.principal not in {"", self.principal}:
            return []
        return await self._view.accounts(self.principal)

    async def _has_account(self, server: str) -> bool:
        """Whether a server wants an account of the principal; which others there are is not told."""
        return any(one.server == server for one in await self._view.accounts(self.principal))

    async def _connect(self, request: AskConnect) -> str:
        if not await self._has_account(request.server):
            raise make_refusal("account")
        return await self._view.connect_account(request.server, self.principal, by=self.principal)

    async def _forget(self, request: AskForget) -> bool:
        if request.principal not in {"", self.principal}:
            return False
        if not await self._has_account(request.server):
            return False
        return await self._view.forget_account(request.server, self.principal, by=self.principal)


def make_refusal(what: str) -> Unknown:
    """The error about what only an operator has; it says nothing of what there is."""
    return Unknown(f"there is nothing like that here ({what})")
