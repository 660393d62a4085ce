"""Opening one conversation: dial, and walk through the negotiation to its end.

What to try, and what an outcome means, is decided in :mod:`isthmus.core.opening`, which does no
I/O. This is the other half: it dials, sends, waits, and says what came of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw

from isthmus.client.answering import Answering
from isthmus.client.known import forget, recall, remember
from isthmus.client.settings import Settings
from isthmus.client.targets import Target
from isthmus.core.caller import Caller
from isthmus.core.opening import (
    Agreement,
    Answer,
    Attempt,
    Error,
    Gone,
    HttpStatus,
    Nonsense,
    NoStream,
    Offer,
    Outcome,
    Silence,
    negotiate,
    states_facts,
)
from isthmus.errors import (
    AuthError,
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    IsthmusError,
    Misbehaved,
    OutOfPhase,
    PeerError,
    Refused,
)
from isthmus.revisions import Revision
from isthmus.runtime.channel import Channel, Delivery
from isthmus.runtime.holding import CLOCKS, CallsClock, Clocks, OpeningClock
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.command import ENDED
from isthmus.wire.jsonrpc import Frame

__all__ = ["Link", "Opening", "speak"]

PROBE_TIMEOUT = 2.0
"""Seconds of silence after which a launched server is taken for a legacy one."""

PROBE_TIMEOUT_HTTP = 10.0
"""The same over HTTP, where old servers answer with a status, and silence is a cold start."""


class Link:
    """A peer of ours on a channel to the server, and the task that runs it.

    Args:
        channel: leads to the server.
        router: serves what the server asks for.
    """

    def __init__(self, channel: Channel, router: Router) -> None:
        self.peer = Peer(channel, router, side="client")
        attach = getattr(channel, "attach", None)  # transports that need no task to receive
        if attach is not None:
            attach(partial(take, self.peer))
        self._running = asyncio.get_running_loop().create_task(self.peer.run())

    async def over(self) -> None:
        """Wait until the conversation has ended."""
        await asyncio.wait((self._running,))

    async def end(self) -> None:
        """End the channel, and with it the conversation; safe to call twice."""
        try:
            await self.peer.close()
        finally:
            await asyncio.wait((self._running,))


class Opening:
    """Finds out how to talk to a target, and leaves a link on which that was agreed.

    Args:
        target: where the server is.
        router: serves what it asks for.
        answering: what we can do for it.
        settings: how patient we are.
        on_dial: told of each peer as soon as there is one.
        clocks: stop while a user is waited for.

    Attributes:
        link: what was dialled last; what was agreed holds on it.
    """

    def __init__(
        self,
        target: Target,
        router: Router,
        answering: Answering,
        settings: Settings,
        on_dial: Callable[[Peer], None],
        *,
        clocks: Clocks,
    ) -> None:
        self.link: Link | None = None
        self._target = target
        self._router = router
        self._answering = answering
        self._settings = settings
        self._on_dial = on_dial
        self._given_up = False
        self._clocks = clocks
        self._calls: CallsClock | None = None
        self._dialling: asyncio.Task[Any] | None = None
        self._sse = False  # the link is one over HTTP+SSE, found out by this negotiation

    async def open(self) -> Agreement:
        """Dial and agree on a revision; what was dialled is ended where that fails.

        Raises:
            ConnectFailed: no connection came about; the message says why and what to try.
            AuthError: no authorization was to be had.
        """
        key, patience = self._target.key, self._settings.connect_timeout
        try:
            async with asyncio.timeout(patience) as limit:
                agreement = await self._timed(OpeningClock(limit))
        except BaseException as error:
            if not isinstance(error, AuthError):
                forget(key)
            words = self._last_words()
            await self.give_up()
            if isinstance(error, AuthError):
                raise
            if isinstance(error, TimeoutError):
                raise self._failed(f"no connection within {patience:g} s", words) from None
            if isinstance(error, IsthmusError):
                raise self._failed(str(error), words) from error
            raise
        if (
            self._settings.revision is None and not self._target.handshake
        ):  # a pin says what we want, not what the server can
            remember(key, agreement.revision, sse=self._sse)
        return agreement

    async def _timed(self, clock: OpeningClock) -> Agreement:
        """Agree, under a time limit that does not count what a user takes to log in."""
        self._clocks.add(clock)
        token = CLOCKS.set(self._clocks)
        try:
            return await self._agree()
        finally:
            CLOCKS.reset(token)
            self._clocks.remove(clock)

    def _last_words(self) -> str:
        """What a launched server wrote to standard error, which mostly says what it lacks."""
        channel = None if self.link is None else self.link.peer.channel
        words: Callable[[], str] = getattr(channel, "last_words", str)
        return words()

    def _failed(self, why: str, words: str = "") -> ConnectFailed:
        name = self._target.name
        if words and words not in why:
            why += f"\n{words}"
        if f"{name} {ENDED}" in why:
            why += "\nA server over stdio goes on until its input ends: does it call server.run()?"
        return ConnectFailed(why if name in why else f"cannot connect to {name}: {why}")

    async def _agree(self) -> Agreement:
        """Walk through the negotiation, doing what it asks and telling it what came of it."""
        steps = negotiate(self._offer())
        attempt = next(steps)
        while True:
            outcome: Outcome | None = None
            if attempt.again or self.link is None or attempt.sse is not self._sse:
                outcome = await self._dial(sse=attempt.sse)
            if outcome is None:
                outcome = await self._try(attempt)
            try:
                attempt = steps.send(outcome)
            except StopIteration as agreed:
                agreement: Agreement = agreed.value
                return agreement

    async def give_up(self) -> None:
        """End what was dialled, and dial no more."""
        self._given_up = True
        if self._dialling is not None:
            self._dialling.cancel()
        self.forget_calls()
        if self.link is not None:
            await self.link.end()

    def forget_calls(self) -> None:
        """The peer before is no more."""
        if self._calls is not None:
            self._clocks.remove(self._calls)
            self._calls = None

    def _offer(self) -> Offer:
        settings, target = self._settings, self._target
        patience = PROBE_TIMEOUT_HTTP if target.http else PROBE_TIMEOUT
        known = recall(target.key)
        return Offer(
            settings.info,
            self._answering.capabilities,
            pin=settings.revision,
            known=known.revision,
            known_sse=known.sse,
            sse=target.sse is not None,
            handshake=target.handshake,
            startable=self._startable(),
            probe_timeout=patience if settings.probe_timeout is None else settings.probe_timeout,
        )

    def _startable(self) -> bool:
        """Whether there is a process that can be started again."""
        return self._target.key is not None and not self._target.http

    async def _dial(self, *, sse: bool) -> NoStream | None:
        """Make a link; the outcome where the server is none of HTTP+SSE."""
        if self.link is not None:
            await self.link.end()
            self.link = None
        dial = self._target.sse if sse and self._target.sse is not None else self._target.dial
        try:
            channel = await self._dialled(dial)
        except (HttpRefused, Misbehaved) as error:
            if sse and isinstance(error, HttpRefused):
                return NoStream(HttpStatus(error.status, error.body))
            if sse:
                return NoStream(Nonsense(str(error)))
            raise
        if self._given_up:
            await channel.close()
            raise ConnectFailed("the client was closed meanwhile")
        self._sse = sse
        self.link = Link(channel, self._router)
        self.link.peer.other_name = self._target.name
        self.forget_calls()
        self._calls = CallsClock(self.link.peer)
        self._clocks.add(self._calls)
        self._on_dial(self.link.peer)
        return None

    async def _dialled(self, dial: Callable[[], Awaitable[Channel]]) -> Channel:
        """The channel, unless we are given up while it is dialled: a user may be logging in."""
        task = self._dialling = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            return await dial()
        except asyncio.CancelledError:
            if self._given_up and task and task.uncancel() <= before:
                raise ConnectFailed("the client was closed meanwhile") from None
            raise
        finally:
            del task  # which keeps what is raised, and so would this frame
            self._dialling = None

    async def _try(self, attempt: Attempt) -> Outcome:
        """Make one attempt and say what came of it."""
        if self.link is None or self._given_up:
            raise OutOfPhase("this client was closed")
        peer = self.link.peer
        speak(peer, attempt.revision)
        if attempt.note:
            await peer.note(attempt.method, attempt.params)
            return Silence(0.0)
        try:
            return Answer(
                await peer.call(attempt.method, attempt.params, Raw, timeout=attempt.timeout)
            )
        except (ConnectionLost, OutOfPhase) as error:
            if not self._startable():
                raise
            return Gone(str(peer.lost or error))
        except (PeerError, CallTimedOut) as error:
            return outcome(error, attempt)


def speak(peer: Peer, revision: Revision) -> None:
    """Let a peer write what follows as a revision has it."""
    peer.agree(Caller(revision=revision))
    # spec 2026-07-28 basic/transports/stdio#sending-messages: the client MUST NOT write
    # responses, whatever a server that MUST NOT send requests sends
    peer.session.deaf = states_facts(revision)
    told = getattr(peer.channel, "speak", None)  # transports that spell it out in headers
    if told is not None:
        told(revision)


def take(peer: Peer, delivery: Delivery, frame: Frame) -> None:
    """Let a peer have a message that arrived while somebody was sending one."""
    for inbound in peer.take(delivery, frame):
        peer.spawn(inbound)
    if peer.outbox:
        peer.start(peer.flush())


def outcome(error: PeerError | CallTimedOut, attempt: Attempt) -> Outcome:
    """What an exception means for the negotiation."""
    if isinstance(error, Refused):
        return Error(error.code, error.message, error.data, error.status)
    if isinstance(error, HttpRefused):
        return HttpStatus(error.status, error.body)
    if isinstance(error, CallTimedOut):
        return Silence(attempt.timeout or 0.0)
    return Nonsense(str(error))
