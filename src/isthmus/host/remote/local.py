"""Local view: a host as surfaces in the same process see it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from isthmus.host.catalog.names import Viewer
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import Unknown
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.row import AuditRow
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import (
    AuditLine,
    GrantLine,
    HostEvent,
    ServerDo,
    ServerStatus,
    ToolLine,
    WatchingApprover,
)

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult
    from isthmus.host.approvals.broker import Broker
    from isthmus.host.approvals.grant_matching import Grant
    from isthmus.host.approvals.grants import Grants
    from isthmus.host.audit.log import AuditLog
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.pipeline.calls import HostCalls
    from isthmus.host.pipeline.runs import Run
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.wire import GetPromptResult, ReadResourceResult

__all__ = ["LocalView"]

DEFAULT_PRINCIPAL = "user:local"


class ViewedHost(Protocol):
    """What a view needs of a host."""

    @property
    def config(self) -> HostConfig: ...
    @property
    def servers(self) -> "Mapping[str, HostedServer]": ...
    @property
    def strikes(self) -> Mapping[str, int]: ...
    @property
    def catalog(self) -> "HostCatalog": ...
    @property
    def broker(self) -> "Broker": ...
    @property
    def grants(self) -> "Grants": ...
    @property
    def audit(self) -> "AuditLog": ...
    @property
    def calls(self) -> "HostCalls": ...

    def events(self) -> AsyncIterator[HostEvent]: ...
    def run(self, principal: str) -> "Run": ...


class LocalView:
    """A host as surfaces see it; see :class:`isthmus.host.model.view.HostView`.

    Args:
        host: the host, open.
    """

    def __init__(self, host: ViewedHost) -> None:
        self._host = host

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""
        return self._host.broker.pending()

    async def decide(self, id: str, decision: Decision) -> bool:
        """Answer a question; False where somebody else was first, or nobody asks it any more."""
        return await self._host.broker.decide(id, decision)

    @asynccontextmanager
    async def attend(self, name: str, assurance: Assurance = "local_ui") -> AsyncIterator[None]:
        """Somebody looks here and answers, as long as this lasts."""
        watching, broker = WatchingApprover(name, assurance), self._host.broker
        broker.attach(watching)
        try:
            yield
        finally:
            broker.detach(watching)

    def events(self) -> AsyncIterator[HostEvent]:
        """What happens from now on; it ends when the host does."""
        return self._host.events()

    def servers(self) -> Sequence[ServerStatus]:
        """How every server is, in the configuration's order; then those that cannot be used."""
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

    async def server_do(self, name: str, what: ServerDo) -> None:
        """Have something done with a server.

        Raises:
            Unknown: there is none of this name.
            ServerUnavailable: it did not start.
        """
        server = self._host.servers.get(name)
        if server is None:
            known = ", ".join(self._host.servers) or "none"
            raise Unknown(f"there is no server {name!r}; there are: {known}")
        await getattr(server, what)()

    async def log_tail(self, server: str) -> Sequence[str]:
        """The last lines that a server wrote for people."""
        found = self._host.servers.get(server)
        return [] if found is None else found.log

    async def grants(self) -> Sequence[GrantLine]:
        """Every yes that lasts, the newest first."""
        await self._host.grants.fresh()
        await self._host.grants.end_dead()
        return [make_grant_line(grant) for grant in self._host.grants.all()]

    async def revoke(self, id: str) -> bool:
        """End a grant; False where there is none."""
        ended = await self._host.grants.revoke(id)
        if ended:
            self._host.audit.note(
                AuditRow(kind="grant", action="grant.revoke", grant=id, effect="deny", object=id)
            )
        return ended

    async def audit_tail(self, count: int = 50) -> Sequence[AuditLine]:
        """The last rows of the audit log, the oldest first."""
        return await self._host.audit.tail(count)

    async def explain(self, id: str) -> Sequence[str]:
        """Why a question is asked, a line each; none where it is not asked any more."""
        asked = self._host.broker.find(id)
        if asked is None:
            return []
        trace = asked.trace
        return [
            f"{asked.attempt.action} {asked.attempt.object} of {asked.attempt.server}: {trace.effect}",
            trace.reason or f"rule {trace.rule}",
            *(f"{match.effect} by {match.rule} ({match.layer})" for match in trace.matches),
            *trace.chain,
        ]

    def begin_run(self, principal: str = "") -> str:
        """A run for what belongs together: its id."""
        return self._host.run(principal or DEFAULT_PRINCIPAL).id

    async def tools(self, server: str = "", *, principal: str = "") -> Sequence[ToolLine]:
        """The tools of one server, or of all; servers that were not asked yet are asked now."""
        viewer, catalog = Viewer(principal or DEFAULT_PRINCIPAL), self._host.catalog
        await catalog.load([server] if server else None, viewer)
        return [
            ToolLine(name=item.name, server=item.server, tool=item.what)
            for item in catalog.tools(viewer)
            if server in {"", item.server}
        ]

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
        """Call a tool; see :meth:`isthmus.host.Host.call`."""
        return await self._host.calls.call(
            name,
            arguments,
            server=server,
            principal=principal or DEFAULT_PRINCIPAL,
            run=run,
            timeout=timeout,
        )

    async def read(
        self, uri: str, *, server: str = "", principal: str = "", run: str | None = None
    ) -> "ReadResourceResult":
        """Read a resource; see :meth:`isthmus.host.Host.read`."""
        return await self._host.calls.read(
            uri, server=server, principal=principal or DEFAULT_PRINCIPAL, run=run
        )

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        server: str = "",
        principal: str = "",
        run: str | None = None,
    ) -> "GetPromptResult":
        """Get a prompt; see :meth:`isthmus.host.Host.prompt`."""
        return await self._host.calls.prompt(
            name, arguments, server=server, principal=principal or DEFAULT_PRINCIPAL, run=run
        )


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
