"""View of a host: the one interface of surfaces, whether the host is in this process or in another.

Every method makes a request of :mod:`isthmus.host.remote.protocol`; a view of a host in this process
answers it, and one of a host in another process sends it there.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import (
    AuditLine,
    GrantLine,
    HostEvent,
    ServerDo,
    ServerStatus,
    ToolLine,
)
from isthmus.host.remote.protocol import (
    AskAudit,
    AskCall,
    AskDecide,
    AskExplain,
    AskGrants,
    AskLog,
    AskPrompt,
    AskRead,
    AskRevoke,
    AskServer,
    AskTools,
    HostRequest,
)
from isthmus.wire import GetPromptResult, ReadResourceResult

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult

T = TypeVar("T")

NONE_TYPE = type(None)


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
    def events(self) -> AsyncIterator[HostEvent]:
        """Events from now on; they end when the host does."""

    @abstractmethod
    def servers(self) -> Sequence[ServerStatus]:
        """The status of every server, in the configuration's order; then those that cannot be used."""

    @abstractmethod
    def attend(
        self, name: str, assurance: Assurance = "local_ui"
    ) -> AbstractAsyncContextManager[None]:
        """Look and answer questions here, as long as this lasts.

        Where nobody attends, what has to be asked is denied.

        Args:
            name: what the surface is called in the audit log.
            assurance: how sure one can be that a person decides there.
        """

    @abstractmethod
    def begin_run(self, principal: str = "") -> str:
        """A run for what belongs together: its id, for :meth:`call`; labels of results collect there."""

    @abstractmethod
    async def ask(self, request: HostRequest, kind: type[T], *, run: str | None = None) -> T:
        """Have a request answered.

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
        """Answer a question; False where somebody else was first, or nobody asks it any more."""
        number = self.number_request()
        return await self.ask(AskDecide(id=number, question=id, decision=decision), bool)

    async def server_do(self, name: str, what: ServerDo) -> None:
        """Have something done with a server.

        Raises:
            Unknown: there is none of this name.
            ServerUnavailable: it did not start.
        """
        await self.ask(AskServer(id=self.number_request(), server=name, what=what), NONE_TYPE)

    async def log_tail(self, server: str) -> Sequence[str]:
        """The last lines that a server's process wrote for people."""
        return await self.ask(AskLog(id=self.number_request(), server=server), list[str])

    async def grants(self) -> Sequence[GrantLine]:
        """Every yes that lasts, the newest first."""
        return await self.ask(AskGrants(id=self.number_request()), list[GrantLine])

    async def revoke(self, id: str) -> bool:
        """End a grant; False where there is none."""
        return await self.ask(AskRevoke(id=self.number_request(), grant=id), bool)

    async def audit_tail(self, count: int = 50) -> Sequence[AuditLine]:
        """The last rows of the audit log, the oldest first."""
        return await self.ask(AskAudit(id=self.number_request(), count=count), list[AuditLine])

    async def explain(self, id: str) -> Sequence[str]:
        """The reasons of a question, a line each; none where it is not asked any more."""
        return await self.ask(AskExplain(id=self.number_request(), question=id), list[str])

    async def tools(self, server: str = "", *, principal: str = "") -> Sequence[ToolLine]:
        """The tools of one server, or of all; servers that were not asked yet are asked now."""
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
        """Call a tool; as :meth:`isthmus.host.Host.call`, with all that it raises."""
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
        """Read a resource; as :meth:`isthmus.host.Host.read`."""
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
        """Get a prompt; as :meth:`isthmus.host.Host.prompt`."""
        request = AskPrompt(
            id=self.number_request(),
            name=name,
            arguments=arguments or {},
            server=server,
            principal=principal or self.principal,
        )
        return await self.ask(request, GetPromptResult, run=run)
