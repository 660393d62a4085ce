"""Calling clients: whoever a gateway makes an attempt for, where questions in its course may go back to them.

A gateway registers its client under the id of the attempt. What the server asks in the course of
that attempt is then put to this client and to no other, before or in place of the host's own surfaces.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from isthmus.wire import ClientCapabilities, LogLevel, LogMessageParams
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.client.tasks import ToolTask

Answerer: TypeAlias = Literal["client", "gateway"]
"""Who may answer what a server asks: the client that made the call, or the host's own surfaces."""


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
    def takes_progress(self) -> bool:
        """Whether it gave a progress token, so that it hears :meth:`say`."""
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


class CallingClients:
    """The clients in whose course attempts are under way, by the id of the attempt."""

    def __init__(self) -> None:
        self._clients: dict[str, CallingClient] = {}

    def find(self, attempt: str) -> CallingClient | None:
        """The client that an attempt is made for; None where it is made for nobody of a gateway."""
        return self._clients.get(attempt)

    @contextmanager
    def register(self, attempt: str, client: CallingClient | None) -> Iterator[None]:
        """Let an attempt be made for a client, until the block is left."""
        if client is None:
            yield
            return
        self._clients[attempt] = client
        try:
            yield
        finally:
            del self._clients[attempt]

    @property
    def all(self) -> Mapping[str, CallingClient]:
        """All of them, by attempt."""
        return self._clients
