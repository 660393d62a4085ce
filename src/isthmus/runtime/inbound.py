"""Inbound request, as the router and every feature see it, and the link back to its sender."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.runtime.channel import LOCAL, Origin
from isthmus.wire.struct import Id, Wire

R = TypeVar("R")

RestoreSession = Callable[[Any, Sequence[str], bool], None]
"""``(link, resources, stale) -> None``: go on with a session that was opened elsewhere, as after
``notifications/initialized``; it subscribed to ``resources``, and was told of no change if ``stale``."""


class Link(Protocol):
    """The way back to the side that sent a request: a pipe, a session, or one HTTP response."""

    async def note(
        self, method: str, params: Wire | None = None, *, relates_to: Id | None = None
    ) -> None:
        """Send a notification; silently nothing when the way is already closed."""
        ...

    async def call(
        self,
        method: str,
        params: Wire | None,
        result: type[R],
        *,
        relates_to: Id | None = None,
        timeout: float | None = None,
    ) -> R:
        """Send a request and wait for its answer.

        Raises:
            UsageError: this link cannot carry requests (a modern HTTP response).
            Refused, CallTimedOut, ConnectionLost: as it went.
        """
        ...

    def agree(self, caller: Caller) -> None:
        """Keep the facts a legacy handshake settled, for every later request on this link."""
        ...

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the link ends; the returned function takes that back."""
        ...


class RequestRecord(msgspec.Struct):
    """What layers around a handler must know of a request beside its result.

    A layer that needs it puts one on the request; copies of the request share it.

    Attributes:
        asked: the client was asked something meanwhile (up to 2025-11-25), so that the result
            is as its user answered.
        failed_with: the class of the exception by which a tool ended, or None.
        used_state: what is kept for the caller was looked at (``ctx.session``), so that the result
            is nobody else's, and soon another one.
        clocks: objects with ``pause()`` and ``resume()``, called around each such question.
    """

    asked: bool = False
    failed_with: type[BaseException] | None = None
    used_state: bool = False
    clocks: list[Any] = []

    def pause(self) -> None:
        """The user is asked: time that is spent on it does not count."""
        self.asked = True
        for clock in self.clocks:
            clock.pause()

    def resume(self) -> None:
        """There is an answer, or there will be none."""
        for clock in self.clocks:
            clock.resume()


class Inbound(msgspec.Struct, gc=True):
    """A request on its way through the router.

    Attributes:
        id: the JSON-RPC id.
        method: the method's name.
        params: the raw ``params``, or None.
        caller: who asks: revision, capabilities, log level.
        link: the way back.
        origin: where it came from.
        progress_token: what to report progress under, or None.
        record: a :class:`RequestRecord`, where some layer wants one.
    """

    id: Id
    method: str
    params: Raw | None
    caller: Caller
    link: Any  # a Link; msgspec cannot check protocols
    origin: Origin = LOCAL
    progress_token: Id | None = None
    record: Any = None

    def keep_record(self) -> RequestRecord:
        """The record of this request; one is begun where there was none."""
        record: RequestRecord = self.record or RequestRecord()
        self.record = record
        return record

    async def ask(self, method: str, params: Any, timeout: float | None) -> Raw:
        """Send the client a request on behalf of this one (up to 2025-11-25), and wait for the answer.

        Args:
            method: the method.
            params: its params.
            timeout: seconds without an answer; None waits as long as the request lasts.

        Raises:
            Refused, CallTimedOut, ConnectionLost: as it went.
        """
        record = self.record
        if record is not None:
            record.pause()
        try:
            answer: Raw = await self.link.call(
                method, params, Raw, relates_to=self.id, timeout=timeout
            )
        finally:
            if record is not None:
                record.resume()
        return answer

    @property
    def principal(self) -> Any:
        """The principal who authenticated with this very request, or else when the connection was opened."""
        known = self.origin.principal
        return self.caller.principal if known is None else known

    async def remember(self, change: Callable[[Any], Any]) -> None:
        """Keep what a client has set for as long as its session lasts, beyond this process.

        Args:
            change: makes the new record of the session out of the old one; see
                ``transports/http/sessions/records.py``. A pipe, which lasts as long as its process,
                has none.

        Raises:
            Refuse: it cannot be kept now; nothing has changed.
        """
        remember = getattr(getattr(self.link, "channel", None), "remember", None)
        if remember is not None:
            await remember(change, self.id)
