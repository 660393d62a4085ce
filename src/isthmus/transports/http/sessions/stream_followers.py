"""Followers of streams: a client takes at this node what another one says.

A follower reads the log and sends what is there; a letter of the stream's producer wakes it when there
is more. It looks at the lease of the producer, too: where that has ended, the follower writes the end
of the stream itself, behind the last entry, so that no call is waited for in vain. The log takes one
such entry: of several followers one writes it and the others read it, and a producer that was only
stopped finds that the stream has ended.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.core.batch import join_messages
from isthmus.core.http.sse import encode_comment, encode_event
from isthmus.nodes.node import OUTCOME_UNKNOWN
from isthmus.runtime.failures import log_failure
from isthmus.store.log import Forgotten, Overtaken
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.sessions.shared_streams import encode_entries, make_log_key
from isthmus.transports.http.sessions.stream_carrier import StreamCarrier
from isthmus.transports.http.sessions.stream_entries import (
    END,
    LAST,
    decode_entry,
    encode_calls,
    encode_entry,
)
from isthmus.transports.http.sessions.stream_letters import (
    FOLLOWED,
    YIELDED,
    StreamLetters,
)
from isthmus.wire.jsonrpc import ErrorBody, encode_error

if TYPE_CHECKING:
    from isthmus.wire.struct import Id

PRODUCER_CHECK_INTERVAL_S = 0.5  # between looks at the producer's lease while nothing comes

WAITS_PER_READ = 10  # without a letter, until the log is looked at all the same

MAX_ENTRIES_READ = 1_000  # entries of a stream that are read and sent at a time

STREAM_NOT_KEPT = "the rest of this stream was not kept; whether the call was done is not known"

FORGOTTEN_HINT = encode_comment(b"some of what was said is not kept any more")


class StreamFollower:
    """One stream of another node, for a client of this one.

    Args:
        letters: tell the producer of it.
        session: what the session's streams are kept under.
        name: the stream's.
        producer: the node that writes it.
        primes: streams begin with an event that has nothing but an id.

    Attributes:
        key: the stream's name in the log.
        standing: it is not the answer to a request: then it is continued as a stream of this node.
    """

    __slots__ = ("_calls", "_carrier", "_idle_waits", "_is_doubted", "_is_over", "_letters", "_name", "_place", "_primes", "_producer",
                 "_state", "_task", "_was_followed", "_woken", "key", "standing")  # fmt: skip

    def __init__(
        self, letters: StreamLetters, session: str, name: str, producer: str, *, primes: bool
    ) -> None:
        self.key = make_log_key(session, name)
        self.standing = False
        self._letters = letters
        self._name = name
        self._producer = producer
        self._primes = primes
        self._place = 0
        self._calls: tuple[Id, ...] = ()
        self._carrier: StreamCarrier | None = None
        self._idle_waits = 0
        self._is_doubted = False
        self._is_over = False
        self._state: bytes | None = None
        self._was_followed = False
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # As a stream

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:  # noqa: ARG002
        """False: only its producer speaks on it."""
        return False

    async def begin(self, sign: bytes = b"") -> None:
        """Do nothing: it has begun elsewhere."""

    async def check(self, after: int) -> None:
        """See to it that everything after a place in the stream is there.

        Raises:
            Forgotten: it is not, or there is nobody who could say more.
            StoreUnavailable: nobody can tell now.
        """
        log = self._letters.log
        entries = await log.read(self.key, max(after - 1, 0), 1)
        if entries:
            calls = decode_entry(entries[0][1]).calls
            self.standing = calls is None
            self._calls = calls or ()
        await log.read(self.key, after, 1)
        self._place = after

    async def resume(self, carrier: StreamCarrier, after: int) -> None:
        """Begin to send what came after a place in the stream, and what comes."""
        self._place = after
        self._carrier = carrier
        # Asked first: from its answer on nothing more is said where the client was before.
        state = await self._letters.follow(self, self._producer)
        if self._carrier is not None:
            await carrier.writer.write(b"")
            self._task = self._letters.start(self._follow(state))

    async def let_go(self, retry: int) -> None:
        """End the response: its client comes back for the rest."""
        carrier = self._carrier
        if carrier is not None:
            self._stop()
            await carrier.writer.write(encode_event(b"", retry=retry), more=False)
            carrier.hang_up()

    def leave(self, carrier: StreamCarrier) -> None:
        """The client takes nothing more here."""
        if self._carrier is carrier:
            self._stop()

    # Letters

    def wake(self) -> None:
        """Look at the log: there may be more in it."""
        self._woken.set()

    def doubt(self) -> None:
        """Another response may carry the stream: ask its producer before anything more is sent."""
        self._is_doubted = True
        self._woken.set()

    def give_way(self) -> None:
        """Another response carries the stream from now on: end this one."""
        carrier = self._carrier
        self._stop()
        if carrier is not None:
            carrier.writer.release()
            carrier.give_way()

    # Following

    def _stop(self) -> None:
        self._carrier = None
        self._letters.unfollow(self, self._producer, over=self._is_over)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _follow(self, state: bytes | None) -> None:
        """Send what is in the log until the stream is over, or its client gone.

        Args:
            state: how the stream stands, as its producer says; None where that does not answer.
        """
        carrier = self._carrier
        try:
            await self._send_until_over(state)
        except Forgotten as error:
            # A client that takes nothing while much is said: its next request is refused.
            log_failure("a client is too slow for its stream", error)
            if carrier is not None:
                await carrier.writer.write(FORGOTTEN_HINT)
        except Exception as error:  # noqa: BLE001 - its client must not wait in vain
            log_failure("a stream of another node", error)
        finally:
            if carrier is not None and self._carrier is carrier:
                self._stop()
                if self._is_over:
                    carrier.hang_up()
                else:
                    carrier.give_way()  # which ends the response, too

    async def _send_until_over(self, state: bytes | None) -> None:
        """Send what there is, and what comes.

        Args:
            state: as of :meth:`_follow`.

        Raises:
            Forgotten: something is not kept any more, or nobody can say the rest.
        """
        self._state, self._was_followed = state, state == FOLLOWED
        is_asked = True  # since something new came, or a letter did
        while self._carrier is not None and self._state != YIELDED:
            self._woken.clear()
            if self._is_doubted:
                self._is_doubted = False
                await self._ask_producer()
                continue
            if self._state not in (None, FOLLOWED):
                await self._send_rest()
                return
            is_new = await self._send_new()
            if self._is_over:
                return
            if is_new:
                continue
            if not is_asked:
                # A letter came and nothing is new: the producer says how the stream stands.
                is_asked = True
                await self._ask_producer()
            elif await self._wait_for_more():
                is_asked = False
            else:
                await self._look_at_producer()

    async def _ask_producer(self) -> None:
        """Ask how the stream stands; the first time it is told that a client has come back here."""
        ask = self._letters.ask if self._was_followed else self._letters.follow
        self._state = await ask(self, self._producer)
        self._was_followed = self._was_followed or self._state == FOLLOWED

    async def _look_at_producer(self) -> None:
        """Write the end of the stream where its producer is dead."""
        if await self._is_producer_dead():
            await self._write_end(OUTCOME_UNKNOWN)
        elif self._state is None:
            await self._ask_producer()

    async def _send_rest(self) -> None:
        """Send what a stream had to say of which nothing more comes.

        Where its producer wrote no end, for its log failed or its session was released, the client
        would come back for ever: the end is written here.

        Raises:
            Forgotten: it has no end, and none can be written now.
        """
        while await self._send_new():
            pass
        if not self._is_over:
            await self._write_end(STREAM_NOT_KEPT)
            await self._send_new()
        if self._carrier is not None and not self._is_over:
            raise Forgotten("its producer has no such stream any more")

    async def _wait_for_more(self) -> bool:
        """Wait until there may be more in the log; False where the producer is to be looked at."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PRODUCER_CHECK_INTERVAL_S):
                await self._woken.wait()
                return True
        self._idle_waits += 1
        return self._idle_waits % WAITS_PER_READ == 0

    async def _send_new(self) -> bool:
        """Send what is new in the log; whether there was something."""
        carrier = self._carrier
        if carrier is None:
            return False
        try:
            entries = await self._letters.log.read(self.key, self._place, MAX_ENTRIES_READ)
        except StoreUnavailable as error:
            log_failure("following a stream of another node", error)
            return False  # it is tried again
        if not entries:
            return False
        self._calls = decode_entry(entries[-1][1]).calls or ()
        chunk, self._is_over, _ = encode_entries(self._name, entries, primes=self._primes)
        self._place = entries[-1][0]
        taken = await carrier.writer.write(chunk, more=not self._is_over)
        if not (taken or self._is_over):
            self._stop()
        return True

    async def _is_producer_dead(self) -> bool:
        try:
            return not await self._letters.node.is_alive(self._producer)
        except StoreUnavailable:
            return False  # nobody can tell

    async def _write_end(self, why: str) -> None:
        """Write the end of a stream that nobody else ends; somebody may do it first."""
        error = ErrorBody(code=-32603, message=why)
        errors = [encode_error(id, error) for id in self._calls]
        message = errors[0] if len(errors) == 1 else join_messages(errors) if errors else b""
        kind = LAST if message else END
        entry = encode_entry(kind, encode_calls(self._calls), message)
        with suppress(Overtaken, StoreUnavailable):
            await self._letters.log.write(self.key, self._place + 1, (entry,))
