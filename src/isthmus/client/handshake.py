"""Handshake of a connection: dial, negotiate the revision, and start a new session where one ends.

What to try, and what an outcome means, is decided in :mod:`isthmus.core.negotiation`, which does no
I/O. This is the other half: it dials, sends, waits, and says what came of it.

Spec 2026-07-28 basic/versioning: the era is a property of the server, which clients SHOULD
remember for the lifetime of the process or origin, and find out anew when the memory turns out
wrong. It is remembered per endpoint: the same server may differ between its transports.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from isthmus.client.features.answering import Answering
from isthmus.client.model.limits import ClientSettings
from isthmus.client.targets import Target
from isthmus.core.caller import Caller
from isthmus.core.negotiation import (
    Agreement,
    ClientOffer,
    ConnectionGone,
    HttpStatus,
    NoSseStream,
    OpeningAttempt,
    OpeningError,
    OpeningOutcome,
    OpeningResult,
    OpeningTimeout,
    UnknownReply,
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
from isthmus.runtime.clocks import CONNECTION_CLOCKS, CallsClock, Clocks, TimeoutClock
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.command import CLEAN_EXIT
from isthmus.wire.jsonrpc import Frame

PROBE_TIMEOUT_S = 2.0  # of silence after which a launched server is taken for a legacy one

# The same over HTTP, where old servers answer with a status, and silence is a cold start.
HTTP_PROBE_TIMEOUT_S = 10.0


class RunningPeer:
    """A peer of ours on a channel to the server, and the task that runs it.

    Args:
        channel: leads to the server.
        router: serves what the server asks for.
    """

    def __init__(self, channel: Channel, router: Router) -> None:
        self.peer = Peer(channel, router, side="client")
        attach = getattr(channel, "attach", None)  # transports that need no task to receive
        if attach is not None:
            attach(partial(take_delivery, self.peer))
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


class ConnectionOpener:
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
        settings: ClientSettings,
        on_dial: Callable[[Peer], None],
        *,
        clocks: Clocks,
    ) -> None:
        self.link: RunningPeer | None = None
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
                agreement = await self._agree_in_time(TimeoutClock(limit))
        except BaseException as error:
            if not isinstance(error, AuthError):
                forget_target(key)
            words = self._last_words()
            await self.give_up()
            if isinstance(error, AuthError):
                raise
            if isinstance(error, TimeoutError):
                raise self._make_failure(f"no connection within {patience:g} s", words) from None
            if isinstance(error, IsthmusError):
                raise self._make_failure(str(error), words) from error
            raise
        if (
            self._settings.revision is None and not self._target.handshake
        ):  # a pin says what we want, not what the server can
            remember_target(key, agreement.revision, sse=self._sse)
        return agreement

    async def _agree_in_time(self, clock: TimeoutClock) -> Agreement:
        """Agree, under a time limit that does not count what a user takes to log in."""
        self._clocks.add(clock)
        token = CONNECTION_CLOCKS.set(self._clocks)
        try:
            return await self._agree()
        finally:
            CONNECTION_CLOCKS.reset(token)
            self._clocks.remove(clock)

    def _last_words(self) -> str:
        """The last words of a launched server on standard error, which mostly says what it lacks."""
        channel = None if self.link is None else self.link.peer.channel
        words: Callable[[], str] = getattr(channel, "last_words", str)
        return words()

    def _make_failure(self, why: str, words: str = "") -> ConnectFailed:
        name = self._target.name
        if words and words not in why:
            why += f"\n{words}"
        if f"{name} {CLEAN_EXIT}" in why:
            why += "\nA server over stdio goes on until its input ends: does it call server.run()?"
        return ConnectFailed(why if name in why else f"cannot connect to {name}: {why}")

    async def _agree(self) -> Agreement:
        """Walk through the negotiation, doing what it asks and telling it what came of it."""
        steps = negotiate(self._offer())
        attempt = next(steps)
        while True:
            outcome: OpeningOutcome | None = None
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

    def _offer(self) -> ClientOffer:
        settings, target = self._settings, self._target
        patience = HTTP_PROBE_TIMEOUT_S if target.http else PROBE_TIMEOUT_S
        known = recall_target(target.key)
        return ClientOffer(
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

    async def _dial(self, *, sse: bool) -> NoSseStream | None:
        """Make a link; the outcome where the server is none of HTTP+SSE."""
        if self.link is not None:
            await self.link.end()
            self.link = None
        dial = self._target.sse if sse and self._target.sse is not None else self._target.dial
        try:
            channel = await self._open_channel(dial)
        except (HttpRefused, Misbehaved) as error:
            if sse and isinstance(error, HttpRefused):
                return NoSseStream(HttpStatus(error.status, error.body))
            if sse:
                return NoSseStream(UnknownReply(str(error)))
            raise
        if self._given_up:
            await channel.close()
            raise ConnectFailed("the client was closed meanwhile")
        self._sse = sse
        self.link = RunningPeer(channel, self._router)
        self.link.peer.other_name = self._target.name
        self.forget_calls()
        self._calls = CallsClock(self.link.peer)
        self._clocks.add(self._calls)
        self._on_dial(self.link.peer)
        return None

    async def _open_channel(self, dial: Callable[[], Awaitable[Channel]]) -> Channel:
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

    async def _try(self, attempt: OpeningAttempt) -> OpeningOutcome:
        """Make one attempt and say what came of it."""
        if self.link is None or self._given_up:
            raise OutOfPhase("this client was closed")
        peer = self.link.peer
        set_revision(peer, attempt.revision)
        if attempt.note:
            await peer.note(attempt.method, attempt.params)
            return OpeningTimeout(0.0)
        try:
            return OpeningResult(
                await peer.call(attempt.method, attempt.params, Raw, timeout=attempt.timeout)
            )
        except (ConnectionLost, OutOfPhase) as error:
            if not self._startable():
                raise
            return ConnectionGone(str(peer.lost or error))
        except (PeerError, CallTimedOut) as error:
            return classify_error(error, attempt)


def set_revision(peer: Peer, revision: Revision) -> None:
    """Let a peer write what follows as a revision has it."""
    peer.agree(Caller(revision=revision))
    # spec 2026-07-28 basic/transports/stdio#sending-messages: the client MUST NOT write
    # responses, whatever a server that MUST NOT send requests sends
    peer.session.deaf = states_facts(revision)
    told = getattr(peer.channel, "speak", None)  # transports that spell it out in headers
    if told is not None:
        told(revision)


def take_delivery(peer: Peer, delivery: Delivery, frame: Frame) -> None:
    """Let a peer have a message that arrived while somebody was sending one."""
    for inbound in peer.take(delivery, frame):
        peer.spawn(inbound)
    if peer.outbox:
        peer.start(peer.flush())


def classify_error(error: PeerError | CallTimedOut, attempt: OpeningAttempt) -> OpeningOutcome:
    """The outcome that an exception means for the negotiation."""
    if isinstance(error, Refused):
        return OpeningError(error.code, error.message, error.data, error.status)
    if isinstance(error, HttpRefused):
        return HttpStatus(error.status, error.body)
    if isinstance(error, CallTimedOut):
        return OpeningTimeout(attempt.timeout or 0.0)
    return UnknownReply(str(error))


MAX_KNOWN_TARGETS = 1024


class KnownTarget(msgspec.Struct, frozen=True):
    """A target as it was last time.

    Attributes:
        revision: what it spoke; None where nothing is known.
        sse: it did so over HTTP+SSE, the transport of 2024-11-05.
    """

    revision: Revision | None = None
    sse: bool = False


UNKNOWN_TARGET = KnownTarget()

_KNOWN_TARGETS: OrderedDict[Hashable, KnownTarget] = OrderedDict()


def recall_target(key: Hashable) -> KnownTarget:
    """A target as it was last time; nothing for one never met, or without a name."""
    return UNKNOWN_TARGET if key is None else _KNOWN_TARGETS.get(key, UNKNOWN_TARGET)


def remember_target(key: Hashable, revision: Revision, *, sse: bool = False) -> None:
    """Keep what a target speaks; the target met longest ago makes room."""
    if key is None:
        return
    _KNOWN_TARGETS[key] = KnownTarget(revision, sse)
    _KNOWN_TARGETS.move_to_end(key)
    if len(_KNOWN_TARGETS) > MAX_KNOWN_TARGETS:
        _KNOWN_TARGETS.popitem(last=False)


def forget_target(key: Hashable) -> None:
    """Find out anew next time."""
    _KNOWN_TARGETS.pop(key, None)


MIN_SESSION_S = 10.0  # that a new session has to last before it is replaced by another

CALL_DRAIN_S = 2.0  # seconds that the calls of an ended session have to hear of it


class SessionRenewal:
    """Starts new sessions for one connection, one at a time.

    Whoever needs a new session waits for the same one. A session that ends almost at once is not
    replaced: whatever is wrong there, asking again does not mend it.

    Args:
        renew: opens a session and puts it in the place of the one before.
        failed: told why there is none.
    """

    def __init__(
        self,
        renew: Callable[[], Coroutine[Any, Any, None]],
        failed: Callable[[ConnectionLost], None],
    ) -> None:
        self._renew = renew
        self._failed = failed
        self._task: asyncio.Task[None] | None = None
        self._leaving: dict[asyncio.Task[None], RunningPeer] = {}
        self._last = float("-inf")
        self._closed = False

    def begin(self) -> asyncio.Task[None]:
        """Start a new session, unless one is being started."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._done)
        return self._task

    async def join(self) -> None:
        """Start a new session, or wait until one is there that is being started.

        Raises:
            ConnectionLost: it could not be started, or the client was closed meanwhile.
        """
        if self._closed:
            raise ConnectionLost("this client was closed")
        task = self.begin()
        await asyncio.wait((task,))  # which a caller may leave, and it goes on
        if task.cancelled():
            raise ConnectionLost("this client was closed")
        error = task.exception()
        if error is not None:
            raise ConnectionLost(str(error)) from error

    def leave(self, link: RunningPeer) -> None:
        """End a link that was replaced, as soon as its calls have heard of that."""
        task = asyncio.get_running_loop().create_task(self._end_link(link))
        self._leaving[task] = link
        task.add_done_callback(self._forget_link)

    def _forget_link(self, task: asyncio.Task[None]) -> None:
        self._leaving.pop(task, None)

    async def close(self) -> None:
        """Start no session any more, and end what is left of the ones before."""
        self._closed = True
        links = list(self._leaving.values())
        tasks = [*self._leaving, *((self._task,) if self._task is not None else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for link in links:
            await link.end()  # a task that is cancelled before it begins has not done that

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        lasted = loop.time() - self._last
        if lasted < MIN_SESSION_S:
            raise ConnectionLost(
                f"the server has ended a new session after {lasted:.3g} s, as it did the one "
                "before: no other one is started"
            )
        try:
            await self._renew()
        except Exception as error:
            raise ConnectionLost(
                f"the server has ended the session, and no new one could be started: {error}"
            ) from error
        self._last = loop.time()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ConnectionLost):
            self._failed(error)

    async def _end_link(self, link: RunningPeer) -> None:
        try:
            async with asyncio.timeout(CALL_DRAIN_S):
                await link.over()
        except TimeoutError:
            pass
        finally:
            await link.end()
