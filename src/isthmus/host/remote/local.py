"""Local view: a host as surfaces in the same process see it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import structs

from isthmus.errors import UsageError
from isthmus.host.approvals.question_takers import QuestionTakers
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.interaction import Interaction, QuestionTaker
from isthmus.host.model.row import AuditRow
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import (
    AuditLine,
    GrantLine,
    HostEvent,
    ServerStatus,
    ToolLine,
    WatchingApprover,
)
from isthmus.host.remote.local_access import AccessRequests
from isthmus.host.remote.local_audit import AuditRequests
from isthmus.host.remote.local_policy import PolicyRequests
from isthmus.host.remote.local_servers import ServerRequests
from isthmus.host.remote.local_traffic import TrafficRequests
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
from isthmus.host.remote.view import HostView

if TYPE_CHECKING:
    from isthmus.host.approvals.grant_matching import Grant
    from isthmus.host.remote.viewed_host import ViewedHost

T = TypeVar("T")


class LocalView(HostView):
    """A host in this process, as surfaces see it.

    Args:
        host: the host, open.
    """

    principal = "user:local"

    def __init__(self, host: "ViewedHost") -> None:
        super().__init__()
        self._host = host
        self._answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskDecide: self._decide,
            AskTake: self._take,
            AskFree: self._free,
            AskServer: self._change_server,
            AskLog: self._tail_log,
            AskGrants: self._list_grants,
            AskRevoke: self._revoke,
            AskNarrow: self._narrow,
            AskAudit: self._tail_audit,
            AskExplain: self._explain,
        }
        self._servers = ServerRequests(host)
        for requests in (
            self._servers,
            AuditRequests(host),
            PolicyRequests(host),
            AccessRequests(host),
            TrafficRequests(host),
        ):
            self._answers |= requests.answers

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""
        return self._host.broker.pending()

    @cached_property
    def _takers(self) -> QuestionTakers:
        return QuestionTakers(self._host.broker, self._host.audit)

    def takers(self) -> Mapping[str, QuestionTaker]:
        """Whoever has taken a question that waits, by its id."""
        return self._takers.list()

    @asynccontextmanager
    async def attend(self, name: str, assurance: Assurance = "local_ui") -> AsyncIterator[None]:
        """Look and answer questions here, as long as this lasts."""
        watching, broker = WatchingApprover(name, assurance), self._host.broker
        broker.attach(watching)
        try:
            yield
        finally:
            broker.detach(watching)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Have traffic recorded, as long as this lasts."""
        with self._host.traffic.watch(lambda: self._host.servers):
            yield

    def events(self) -> AsyncIterator[HostEvent]:
        """Events from now on; they end when the host does."""
        return self._host.events()

    def servers(self) -> Sequence[ServerStatus]:
        """The status of every server, in the configuration's order; then those that cannot be used."""
        host = self._host
        found = [self._status(name) for name in host.servers]
        broken = host.config.broken.items()
        return [
            *found,
            *(ServerStatus(name=name, state="broken", error=why) for name, why in broken),
        ]

    def _status(self, name: str) -> ServerStatus:
        host = self._host
        status, listed = host.servers[name].status(), host.catalog.listed(name)
        return structs.replace(
            status,
            tools=None if listed is None else len(listed.tools),
            resources=None if listed is None else len(listed.resources),
            prompts=None if listed is None else len(listed.prompts),
            strikes=host.strikes.get(name, 0),
        )

    def begin_run(self, principal: str = "") -> str:
        """A run for what belongs together: its id."""
        return self._host.run(principal or self.principal).id

    async def ask(self, request: HostRequest, kind: type[T], *, run: str | None = None) -> T:
        """Answer a request.

        Raises:
            UsageError: it is one of a connection, and here is none.
            IsthmusError: what the host says against it.
        """
        del kind  # it is what the request gives
        if isinstance(request, AskTools | AskCall | AskRead | AskPrompt):
            return cast("T", await self._call(request, run))
        answer = self._answers.get(type(request))
        if answer is None:
            raise UsageError(f"{type(request).__name__} is for a host in another process")
        return cast("T", await answer(request))

    async def _call(
        self, request: AskTools | AskCall | AskRead | AskPrompt, run: str | None
    ) -> object:
        calls, server = self._host.calls, request.server
        who = request.principal or self.principal
        match request:
            case AskTools():
                return await self._list_tools(server, who)
            case AskCall(name=name, arguments=arguments, timeout=timeout):
                return await calls.call(
                    name, arguments, server=server, principal=who, run=run, timeout=timeout
                )
            case AskRead(uri=uri):
                return await calls.read(uri, server=server, principal=who, run=run)
            case AskPrompt(name=name, arguments=arguments):
                return await calls.prompt(name, arguments, server=server, principal=who, run=run)

    async def _list_tools(self, server: str, principal: str) -> Sequence[ToolLine]:
        viewer, catalog = Viewer(principal), self._host.catalog
        await catalog.load([server] if server else None, viewer)
        return [
            ToolLine(name=item.name, server=item.server, tool=item.what)
            for item in catalog.tools(viewer)
            if server in {"", item.server}
        ]

    async def _decide(self, request: AskDecide) -> bool:
        return await self._host.broker.decide(request.question, request.decision)

    async def _take(self, request: AskTake) -> QuestionTaker | None:
        return self._takers.take(request.question, request.taker, over=request.over)

    async def _free(self, request: AskFree) -> bool:
        return self._takers.free(request.question, request.holder)

    async def _change_server(self, request: AskServer) -> None:
        server = self._servers.find(request.server)
        if request.by:  # what becomes of it is a row of the server's own
            row = AuditRow(
                kind="server", action=f"server.{request.what}", server=request.server,
                object=request.server, approver=request.by,
            )  # fmt: skip
            self._host.audit.note(row)
        await getattr(server, request.what)()

    async def _tail_log(self, request: AskLog) -> Sequence[str]:
        found = self._host.servers.get(request.server)
        return [] if found is None else found.log

    async def _list_grants(self, _request: AskGrants) -> Sequence[GrantLine]:
        grants = self._host.grants
        await grants.fresh()
        await grants.end_dead()
        return [make_grant_line(grant) for grant in grants.all()]

    async def _revoke(self, request: AskRevoke) -> bool:
        id, host = request.grant, self._host
        ended = await host.grants.revoke(id)
        if ended:
            row = AuditRow(
                kind="grant", action="grant.revoke", grant=id, effect="deny", object=id,
                approver=request.by,
            )  # fmt: skip
            host.audit.note(row)
        return ended

    async def _narrow(self, request: AskNarrow) -> bool:
        narrower = await self._host.grants.narrow(
            request.grant, until=request.until, uses=request.uses, scope=request.scope
        )
        if narrower is None:
            return False
        row = AuditRow(
            kind="grant", action="grant.narrow", principal=narrower.principal,
            server=narrower.server, object=narrower.id, grant=narrower.id, effect="allow",
            approver=request.by, detail={"before": request.grant, "scope": narrower.scope,
            "until": narrower.until, "uses": narrower.uses},
        )  # fmt: skip
        self._host.audit.note(row)
        return True

    async def _tail_audit(self, request: AskAudit) -> Sequence[AuditLine]:
        return await self._host.audit.tail(request.count)

    async def _explain(self, request: AskExplain) -> Sequence[str]:
        asked = self._host.broker.find(request.question)
        if asked is None:
            return []
        trace = asked.trace
        return [
            f"{asked.attempt.action} {asked.attempt.object} of {asked.attempt.server}: {trace.effect}",
            trace.reason or f"rule {trace.rule}",
            *(f"{match.effect} by {match.rule} ({match.layer})" for match in trace.matches),
            *trace.chain,
        ]


def make_grant_line(grant: "Grant") -> GrantLine:
    """A grant, as a person is shown it."""
    what = grant.object or "every trusted tool that only reads"
    return GrantLine(
        id=grant.id,
        scope=grant.scope,
        principal=grant.principal,
        action=grant.action,
        server=grant.server,
        object=grant.object,
        text=f"{grant.principal} may {grant.action} {what} of {grant.server} ({grant.scope})",
        created=grant.created,
        until=grant.until,
        uses=grant.uses,
        by=grant.by,
        assurance=grant.assurance,
        ended=grant.ended,
    )
