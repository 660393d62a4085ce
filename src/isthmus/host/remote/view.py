"""View of a host: the one interface of surfaces, whether the host is in this process or in another.

Every method makes a request of :mod:`isthmus.host.remote.protocol`; a view of a host in this process
answers it, and one of a host in another process sends it there.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.host.model.interaction import Decision, Interaction, QuestionTaker
from isthmus.host.model.trace import Assurance, Remember
from isthmus.host.model.view import (
    AccountLine,
    AttemptDraft,
    AuditLine,
    AuditQuery,
    AuditVerdict,
    CallRecord,
    GrantLine,
    HostEvent,
    PolicyAnswer,
    PolicyLayerLine,
    PrincipalLine,
    ProfileLine,
    PromotionOutcome,
    ReplayReport,
    RunLine,
    ServerAddress,
    ServerDo,
    ServerStatus,
    ToolLine,
    ToolState,
    TrafficFigures,
    TrafficQuery,
    WireMessage,
)
from isthmus.host.remote.protocol import (
    AskAudit,
    AskCall,
    AskDecide,
    AskExplain,
    AskFree,
    AskGrants,
    AskLog,
    AskNarrow,
    AskPrompt,
    AskRead,
    AskRevoke,
    AskServer,
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
)
from isthmus.wire import GetPromptResult, ReadResourceResult

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult

T = TypeVar("T")

NONE_TYPE = type(None)
NO_AUDIT_QUERY = AuditQuery()
NO_TRAFFIC_QUERY = TrafficQuery()


class HostView(ABC):
    """A host, as surfaces see it.

    Attributes:
        principal: for whom things are done where a call does not say so.
    """

    principal = ""

    def __init__(self) -> None:
        self._last_request = 0

    # What every view does in its own way

    @abstractmethod
    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""

    @abstractmethod
    def takers(self) -> Mapping[str, QuestionTaker]:
        """Whoever has taken a question that waits, by its id."""

    @abstractmethod
    def events(self) -> AsyncIterator[HostEvent]:
        """Events from now on; they end when the host does."""

    @abstractmethod
    def servers(self) -> Sequence[ServerStatus]:
        """The status of every server, in the configuration's order; then those that cannot be used."""

    @abstractmethod
    def attend(
        self, name: str, assurance: Assurance = "local_ui"
    ) -> AbstractAsyncContextManager[None]:
        """Show and answer questions here, as long as this lasts.

        Where nobody attends, what has to be asked is denied.

        Args:
            name: what the surface is called in the audit log.
            assurance: how sure one can be that a person decides there.
        """

    @abstractmethod
    def watch(self) -> AbstractAsyncContextManager[None]:
        """Record traffic, as long as this lasts: calls, their steps and messages.

        Where nobody watches, nothing is recorded, and :meth:`traffic` has what was recorded before.
        """

    @abstractmethod
    def begin_run(self, principal: str = "") -> str:
        """Begin a run for calls that belong together; the labels of results collect in it.

        Args:
            principal: for whom; the principal of this connection by default.

        Returns:
            Its id, for :meth:`call`.
        """

    @abstractmethod
    async def ask(self, request: HostRequest, kind: type[T], *, run: str | None = None) -> T:
        """Send a request to the host, and wait for the answer.

        Args:
            request: what is wanted.
            kind: what comes of it.
            run: the run that a call belongs to.

        Raises:
            IsthmusError: what the host says against it.
        """

    # What is a request

    def number_request(self) -> int:
        """An id for one more request."""
        self._last_request += 1
        return self._last_request

    async def decide(self, id: str, decision: Decision) -> bool:
        """Answer a question.

        Args:
            id: of the question.
            decision: the answer.

        Returns:
            False where somebody else was first, or the question waits no longer.
        """
        number = self.number_request()
        return await self.ask(AskDecide(id=number, question=id, decision=decision), bool)

    async def take_question(
        self, id: str, taker: QuestionTaker, *, over: bool = False
    ) -> QuestionTaker | None:
        """Take a question to answer it, or give a sign that one is still there.

        Args:
            id: of the question.
            taker: who.
            over: also from somebody else.

        Returns:
            Whoever has it now: the taker, or somebody else; None where it does not wait.
        """
        request = AskTake(id=self.number_request(), question=id, taker=taker, over=over)
        kind: Any = QuestionTaker | None
        found: QuestionTaker | None = await self.ask(request, kind)
        return found

    async def free_question(self, id: str, holder: str) -> bool:
        """Give a question back that was taken with :meth:`take_question`.

        Args:
            id: of the question.
            holder: id of the taker.

        Returns:
            False where another taker has it, or none.
        """
        return await self.ask(AskFree(id=self.number_request(), question=id, holder=holder), bool)

    async def server_do(self, name: str, what: ServerDo, *, by: str = "") -> None:
        """Start, stop, restart, enable or disable a server.

        Args:
            name: which.
            what: what is to be done.
            by: who wants that, for the audit log.

        Raises:
            Unknown: there is none of this name.
            ServerUnavailable: it did not start.
        """
        request = AskServer(id=self.number_request(), server=name, what=what, by=by)
        await self.ask(request, NONE_TYPE)

    async def log_tail(self, server: str) -> Sequence[str]:
        """The last lines that the process of ``server`` wrote to standard error.

        Args:
            server: the name of the server.
        """
        return await self.ask(AskLog(id=self.number_request(), server=server), list[str])

    async def grants(self) -> Sequence[GrantLine]:
        """Every yes that lasts, the newest first."""
        return await self.ask(AskGrants(id=self.number_request()), list[GrantLine])

    async def revoke(self, id: str, *, by: str = "") -> bool:
        """End a grant; False where there is none.

        Args:
            id: of the grant.
            by: the person or program that wants it, for the audit log.
        """
        return await self.ask(AskRevoke(id=self.number_request(), grant=id, by=by), bool)

    async def narrow_grant(
        self,
        id: str,
        *,
        until: float | None = None,
        uses: int | None = None,
        scope: Remember | None = None,
        by: str = "",
    ) -> bool:
        """Put a narrower grant in the place of one; False where there is none.

        Args:
            id: the grant's; the narrower one has an id of its own.
            until: when it ends, in seconds since the epoch; None for no other end.
            uses: how often it may still be used; None for as often as before.
            scope: ``session`` for as long as the host runs; None for as before.
            by: who narrows it, for the audit log.

        Raises:
            UsageError: it would not be narrower than it is.
        """
        request = AskNarrow(
            id=self.number_request(), grant=id, until=until, uses=uses, scope=scope, by=by
        )
        return await self.ask(request, bool)

    async def audit_tail(self, count: int = 50) -> Sequence[AuditLine]:
        """The last ``count`` rows of the audit log, the oldest first.

        Args:
            count: the most rows to give.
        """
        return await self.ask(AskAudit(id=self.number_request(), count=count), list[AuditLine])

    async def explain(self, id: str) -> Sequence[str]:
        """The reasons of the question ``id``, a line each; none where it is not asked any more.

        Args:
            id: the id of the question.
        """
        return await self.ask(AskExplain(id=self.number_request(), question=id), list[str])

    async def tools(self, server: str = "", *, principal: str = "") -> Sequence[ToolLine]:
        """The tools of one server, or of all; servers that were not asked yet are asked now.

        Args:
            server: name of the server; empty for all.
            principal: who calls; the principal of this connection by default.
        """
        request = AskTools(
            id=self.number_request(), server=server, principal=principal or self.principal
        )
        return await self.ask(request, list[ToolLine])

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str = "",
        principal: str = "",
        run: str | None = None,
        timeout: float | None = None,
    ) -> "ToolResult":
        """Call a tool; as :meth:`isthmus.host.Host.call`, with all that it raises.

        Args:
            name: its name in the catalog; with ``server``, its own.
            arguments: values by name.
            server: the server whose tool it is.
            principal: who calls; the principal of this connection by default.
            run: id of the run that the call belongs to; a connection has one of its own.
            timeout: seconds without answer or progress; None for the server's.
        """
        from isthmus.client.model.results import ToolResult  # few surfaces call

        request = AskCall(
            id=self.number_request(),
            name=name,
            arguments=arguments or {},
            server=server,
            principal=principal or self.principal,
            timeout=timeout,
        )
        return await self.ask(request, ToolResult, run=run)

    async def read(
        self, uri: str, *, server: str = "", principal: str = "", run: str | None = None
    ) -> ReadResourceResult:
        """Read a resource; as :meth:`isthmus.host.Host.read`, with all that it raises.

        Args:
            uri: ``SERVER+URI``, or a URI that one server lists; with ``server``, any URI of it.
            server: the server whose resource it is.
            principal: who calls; the principal of this connection by default.
            run: id of the run that the call belongs to; a connection has one of its own.
        """
        who = principal or self.principal
        request = AskRead(id=self.number_request(), uri=uri, server=server, principal=who)
        return await self.ask(request, ReadResourceResult, run=run)

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        server: str = "",
        principal: str = "",
        run: str | None = None,
    ) -> GetPromptResult:
        """Get a prompt; as :meth:`isthmus.host.Host.prompt`, with all that it raises.

        Args:
            name: its name in the catalog; with ``server``, its own.
            arguments: values by name.
            server: the server whose prompt it is.
            principal: who calls; the principal of this connection by default.
            run: id of the run that the call belongs to; a connection has one of its own.
        """
        request = AskPrompt(
            id=self.number_request(),
            name=name,
            arguments=arguments or {},
            server=server,
            principal=principal or self.principal,
        )
        return await self.ask(request, GetPromptResult, run=run)

    # Servers

    async def server_tools(self, server: str) -> Sequence[ToolState]:
        """The tools of a server, those kept from models included; empty where it has said none yet.

        Args:
            server: the name of the server.

        Raises:
            Unknown: there is none of this name.
        """
        return await self.ask(
            AskToolStates(id=self.number_request(), server=server), list[ToolState]
        )

    async def release_tool(
        self, server: str, tool: str, *, fingerprint: str = "", by: str = ""
    ) -> bool:
        """Take a tool out of quarantine; False where it is in none.

        Args:
            server: the server's name.
            tool: the tool's name there.
            fingerprint: of the definition that was looked at: one that has changed since is not
                released. Empty for the one that there is now.
            by: who releases it, for the audit log.

        Raises:
            Unknown: there is no such server, or no such tool.
            Denied: policy denies the release, or wants more assurance than a page gives.
        """
        request = AskRelease(
            id=self.number_request(), server=server, tool=tool, fingerprint=fingerprint, by=by
        )
        return await self.ask(request, bool)

    async def add_server(
        self, name: str, entry: Mapping[str, Any], *, by: str = ""
    ) -> ServerStatus:
        """Write a server into the configuration, and follow that; a person is asked before it starts.

        Args:
            name: lower case, digits, ``.`` and ``-``.
            entry: as it stands in ``mcpServers``.
            by: who adds it, for the audit log.

        Raises:
            ConfigError: there is one of this name already, or it cannot be written or read.
        """
        request = AskAddServer(id=self.number_request(), name=name, entry=dict(entry), by=by)
        return await self.ask(request, ServerStatus)

    async def remove_server(self, name: str, *, by: str = "") -> None:
        """Take a server out of the configuration, and end it.

        Args:
            name: of the server.
            by: the person or program that wants it, for the audit log.

        Raises:
            Unknown: there is none of this name, or it stands in no file.
            ConfigError: the file cannot be written.
        """
        await self.ask(AskRemoveServer(id=self.number_request(), name=name, by=by), NONE_TYPE)

    async def server_address(self, server: str) -> ServerAddress:
        """The address of ``server``, without secrets.

        Args:
            server: the name of the server.

        Raises:
            Unknown: there is none of this name.
        """
        return await self.ask(AskAddress(id=self.number_request(), server=server), ServerAddress)

    # Audit

    async def audit_rows(self, query: AuditQuery = NO_AUDIT_QUERY) -> Sequence[AuditLine]:
        """Rows of the audit log that fit, the newest first.

        Args:
            query: the filter; without it, the newest rows.

        Raises:
            UsageError: what is searched for are no words.
        """
        return await self.ask(AskAuditRows(id=self.number_request(), query=query), list[AuditLine])

    async def audit_row(self, seq: int) -> AuditLine | None:
        """The row of the audit log with the number ``seq``; None where there is none.

        Args:
            seq: the number of the row.
        """
        # what reads the answer takes a union, which no type parameter can say
        kind: Any = AuditLine | None
        found: AuditLine | None = await self.ask(
            AskAuditRow(id=self.number_request(), seq=seq), kind
        )
        return found

    async def call_rows(self, call: str) -> Sequence[AuditLine]:
        """The rows of the audit log of one ``call``, by its id, the oldest first.

        Args:
            call: the id of the call.
        """
        return await self.ask(AskCallRows(id=self.number_request(), call=call), list[AuditLine])

    async def verify_audit(self) -> AuditVerdict:
        """Verify the whole audit log."""
        return await self.ask(AskVerify(id=self.number_request()), AuditVerdict)

    # Traffic

    async def traffic(self, query: TrafficQuery = NO_TRAFFIC_QUERY) -> Sequence[CallRecord]:
        """Recorded calls that match ``query``, the newest first.

        Args:
            query: which calls, and how many; the newest of all by default.
        """
        return await self.ask(AskTraffic(id=self.number_request(), query=query), list[CallRecord])

    async def call_record(self, call: str) -> CallRecord | None:
        """The recorded call with the id ``call``; None where there is none, or none any more.

        Args:
            call: the id of the call.
        """
        kind: Any = CallRecord | None
        found: CallRecord | None = await self.ask(
            AskCallRecord(id=self.number_request(), call=call), kind
        )
        return found

    async def wire_messages(self, call: str) -> Sequence[WireMessage]:
        """The messages of a recorded ``call``, by its id, in order; empty where they are kept no more.

        Args:
            call: the id of the call.
        """
        return await self.ask(AskMessages(id=self.number_request(), call=call), list[WireMessage])

    async def figures(self, minutes: int = 60) -> TrafficFigures:
        """Figures of the traffic of the last ``minutes``.

        Args:
            minutes: the length of the period, in minutes; an hour by default.
        """
        return await self.ask(AskFigures(id=self.number_request(), minutes=minutes), TrafficFigures)

    # Policy

    async def policy_layers(self) -> Sequence[PolicyLayerLine]:
        """The layers of the policy in force, then the policy that is tried beside it."""
        return await self.ask(AskLayers(id=self.number_request()), list[PolicyLayerLine])

    async def try_policy(self, draft: AttemptDraft) -> PolicyAnswer:
        """Say how policy would decide on an attempt; nothing is done, and nothing written.

        Args:
            draft: the attempt: principal, server, tool and arguments.

        Raises:
            Unknown, BadArguments: it could not be done at all.
        """
        return await self.ask(AskTry(id=self.number_request(), draft=draft), PolicyAnswer)

    async def replay_policy(self, policy: str, since: float | None = None) -> ReplayReport:
        """Decide the attempts of the audit log anew.

        Args:
            policy: the name of a policy that comes with isthmus, or rules as they stand in a file.
            since: from then on, in seconds since the epoch.

        Raises:
            PolicyError: there is no such policy, or the rules cannot be read.
        """
        request = AskReplay(id=self.number_request(), policy=policy, since=since)
        return await self.ask(request, ReplayReport)

    async def promote_shadow(self, *, by: str = "", keep: bool = False) -> PromotionOutcome | None:
        """Put the policy in force that is tried beside; None where none is.

        Unless it is written into the configuration, it holds until that is read again or the host ends.

        Args:
            by: who wants that, for the audit log.
            keep: name it as ``policy`` in the file that names it as ``shadow``.
        """
        kind: Any = PromotionOutcome | None
        request = AskPromote(id=self.number_request(), by=by, keep=keep)
        found: PromotionOutcome | None = await self.ask(request, kind)
        return found

    # Access

    async def accounts(self, principal: str = "") -> Sequence[AccountLine]:
        """The accounts of a principal at servers; of all who have called, for nobody in particular."""
        request = AskAccounts(id=self.number_request(), principal=principal)
        return await self.ask(request, list[AccountLine])

    async def connect_account(self, server: str, principal: str = "", *, by: str = "") -> str:
        """The URL of the page on which a principal connects an account; the audit log gets an entry.

        Args:
            server: name of the server.
            principal: whose account; the principal of this connection by default.
            by: the person or program that wants it, for the audit log.

        Raises:
            Unknown: there is no such server.
            UsageError: there are no such pages.
        """
        request = AskConnect(
            id=self.number_request(), server=server, principal=principal or self.principal, by=by
        )
        return await self.ask(request, str)

    async def forget_account(self, server: str, principal: str = "", *, by: str = "") -> bool:
        """Forget an account; False where there is none.

        Args:
            server: name of the server.
            principal: whose account; the principal of this connection by default.
            by: the person or program that wants it, for the audit log.

        Raises:
            Unknown: there is no such server.
        """
        request = AskForget(
            id=self.number_request(), server=server, principal=principal or self.principal, by=by
        )
        return await self.ask(request, bool)

    async def principals(self) -> Sequence[PrincipalLine]:
        """The principals that have called, the one last seen first."""
        return await self.ask(AskPrincipals(id=self.number_request()), list[PrincipalLine])

    async def profiles(self) -> Sequence[ProfileLine]:
        """The profiles of the gateway."""
        return await self.ask(AskProfiles(id=self.number_request()), list[ProfileLine])

    async def runs(self) -> Sequence[RunLine]:
        """The runs that go on, the newest first."""
        return await self.ask(AskRuns(id=self.number_request()), list[RunLine])

    async def stop_call(self, id: str, *, by: str = "") -> bool:
        """Cancel a call that is under way; False where no such call is.

        Args:
            id: of the call.
            by: the person or program that wants it, for the audit log.
        """
        return await self.ask(AskStopCall(id=self.number_request(), call=id, by=by), bool)

    async def stop_run(self, run: str, *, by: str = "") -> bool:
        """End a run and cancel what is under way in it; False where there is no such run.

        Args:
            run: id of the run.
            by: the person or program that wants it, for the audit log.
        """
        return await self.ask(AskStopRun(id=self.number_request(), run=run, by=by), bool)
