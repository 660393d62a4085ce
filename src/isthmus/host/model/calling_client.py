"""Calling clients: whoever a gateway makes an attempt for, where questions in its course may go back to them.

A gateway registers its client under the id of the attempt. What the server asks in the course of
that attempt is then put to this client and to no other, before or in place of the host's own surfaces.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from isthmus.wire import ClientCapabilities, InputRequest, LogLevel, LogMessageParams
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.client.tasks import ToolTask
    from isthmus.host.model.round_proof import RoundProof
    from isthmus.host.model.view import PrincipalLine, ProfileLine

Answerer: TypeAlias = Literal["client", "gateway"]
"""An answerer of what servers ask: the client that made the call, or the host's own surfaces."""

MAX_KEPT_CONNECTIONS = 4_096  # whose clients are remembered, for servers that are connected anew
MAX_OPEN_PAGES = 1_000  # that clients were sent to, and that servers may say to be dealt with


class WaitingApproval(Protocol):
    """A call that waits for the decision of a person."""

    @property
    def id(self) -> str:
        """The name of the question, which stands in the address of its page."""
        ...

    @property
    def expires(self) -> float:
        """When it counts no more, in seconds since the epoch."""
        ...

    @property
    def words(self) -> str:
        """The call in words."""
        ...

    @property
    def is_decided(self) -> bool:
        """Whether a person has decided, or the question has ended."""
        ...

    async def wait_decided(self) -> None:
        """Wait until a person has decided, or the question has ended."""
        ...


class CallingClient(Protocol):
    """The client of a gateway in whose course of a call something is asked."""

    @property
    def capabilities(self) -> ClientCapabilities:
        """The capabilities that it declared for this very call."""
        ...

    @property
    def introduction(self) -> tuple[str, str]:
        """The name and version that it gives itself, and the revision that it speaks."""
        ...

    @property
    def answerers(self) -> Sequence[Answerer]:
        """Those who may answer what is asked in the course of its call, the first who can."""
        ...

    @property
    def takes_progress(self) -> bool:
        """Whether it gave a progress token, so that it hears :meth:`say`."""
        ...

    @property
    def takes_task(self) -> bool:
        """Whether its call is a task, or may become one."""
        ...

    @property
    def session(self) -> object:
        """The session that the call belongs to, which is another object for each; None outside of one."""
        ...

    @property
    def log_level(self) -> LogLevel:
        """The level of log messages that the server is to be asked for on its behalf."""
        ...

    def log(self, params: LogMessageParams) -> None:
        """Tell it what the server has logged in the course of its call, if it wants to hear that."""
        ...

    async def put(self, method: str, params: Any) -> Wire:
        """Put a question to it, by the way that its revision has: a request, or the result of the call.

        Args:
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
            params: the decoded params.

        Raises:
            BadQuestion: it cannot be asked this.
            Refuse: it refused to answer.
        """
        ...

    def relay(self, method: str, params: Any) -> InputRequest | None:
        """Pass a question on with the result of its call, so that it comes again with the answer.

        Args:
            method: as of :meth:`put`.
            params: the decoded params.

        Returns:
            The question as it gets it; None where it is asked while the call waits.

        Raises:
            BadQuestion: it cannot be asked this.
        """
        ...

    @property
    def proof(self) -> "RoundProof | None":
        """What proves that an earlier round of its call was let through; None in the first one."""
        ...

    def tell_page_done(self, id: str) -> None:
        """Tell it that a page is dealt with that it was sent to (2025-11-25)."""
        ...

    def say(self, message: str) -> None:
        """Tell it of progress in words, where it gave a progress token."""
        ...

    async def follow_task(self, behind: "ToolTask") -> None:
        """Be told of the task that the server has made of its call, before that is waited for.

        Raises:
            Refuse: it cannot be told.
        """
        ...

    async def wait_approval(self, approval: WaitingApproval) -> str:
        """Keep it waiting until a person has decided, for as long as it bears that.

        It returns while the client is there for the result of the call, and only then: what was decided
        meanwhile is done next.

        Returns:
            The address of the page where a person decides; empty where there is none.

        Raises:
            Denied: the client, or whoever uses it, would not have a person asked.
        """
        ...

    def tell_edited(self, arguments: Mapping[str, Any]) -> None:
        """Tell it, with the result, of the arguments that a person put in place of its own."""
        ...


class Callers(Protocol):
    """Whoever calls through a gateway: facts that a gateway tells the host, for surfaces."""

    def principals(self) -> "Sequence[PrincipalLine]":
        """The principals that have called, each with its clients."""
        ...

    def profiles(self) -> "Sequence[ProfileLine]":
        """The profiles of the gateway."""
        ...


class CallingClients:
    """The clients in whose course attempts are under way, by the id of the attempt."""

    def __init__(self) -> None:
        self._clients: dict[str, CallingClient] = {}
        self._at: dict[str, dict[str, CallingClient]] = {}
        self._last: OrderedDict[str, tuple[ClientCapabilities, tuple[Answerer, ...]]] = (
            OrderedDict()
        )
        self._pages: OrderedDict[tuple[str, str, str], tuple[CallingClient, str]] = OrderedDict()

    def find(self, attempt: str) -> CallingClient | None:
        """The client that an attempt is made for; None where it is made for nobody of a gateway."""
        return self._clients.get(attempt)

    def add(self, attempt: str, client: CallingClient, isolation: str = "") -> None:
        """Let an attempt be made for a client, until :meth:`remove`.

        Args:
            attempt: its id.
            client: the client.
            isolation: the key of the connection that it uses; empty for the one that all share.
        """
        self._clients[attempt] = client
        if isolation:
            self._at.setdefault(isolation, {})[attempt] = client
            self.keep_facts(isolation, client)

    def remove(self, attempt: str, isolation: str = "") -> None:
        """It is over."""
        del self._clients[attempt]
        if isolation:
            there = self._at[isolation]
            del there[attempt]
            if not there:
                del self._at[isolation]

    def list_at(self, isolation: str) -> list[CallingClient]:
        """The clients that attempts on a connection of their own are made for, the newest last."""
        return list(self._at.get(isolation, {}).values())

    def keep_facts(self, isolation: str, client: CallingClient) -> None:
        """A client is about to use a connection of its own, which is opened with what it declared."""
        self._last[isolation] = client.capabilities, tuple(client.answerers)
        if len(self._last) > MAX_KEPT_CONNECTIONS:
            self._last.popitem(last=False)

    def find_facts(self, isolation: str) -> tuple[ClientCapabilities, tuple[Answerer, ...]] | None:
        """What the last client declared that used a connection of its own, and who may answer."""
        return self._last.get(isolation)

    @property
    def all(self) -> Mapping[str, CallingClient]:
        """All of them, by attempt."""
        return self._clients

    # Pages that clients were sent to

    def keep_page(
        self, server: str, isolation: str, id: str, client: CallingClient, own: str
    ) -> None:
        """A client was sent to a page of a server, under an id of our own."""
        self._pages[server, isolation, id] = client, own
        if len(self._pages) > MAX_OPEN_PAGES:
            self._pages.popitem(last=False)

    def complete_page(self, server: str, isolation: str, id: str) -> bool:
        """A server says that a page is dealt with; whether a client was told."""
        found = self._pages.pop((server, isolation, id), None)
        if found is not None:
            found[0].tell_page_done(found[1])
        return found is not None
