"""Home of a session: the node that says what belongs to no request, on the session's standing stream.

It is the node that the newest standing GET came to, and before the first the one that the session was
born at. A GET that comes elsewhere takes the home along: the former home ends its own, hands over what
it has kept for a stream that was not open, and says nothing more. Where it is dead, nobody knows what it
would have said: the session's client is told that lists may have changed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import msgspec

from isthmus.core.http.sse import make_stream_name, parse_event_id
from isthmus.errors import IsthmusError
from isthmus.nodes.node import Node
from isthmus.runtime.failures import log_warning
from isthmus.store.lease import Lease
from isthmus.store.log import Forgotten, Overtaken
from isthmus.store.mailbox import MailRefused, MailUndelivered
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.sessions.records import SessionRecord
from isthmus.transports.http.sessions.shared_streams import encode_entries, make_log_key
from isthmus.transports.http.sessions.stream_entries import CONTINUED, encode_calls, encode_entry

if TYPE_CHECKING:
    from isthmus.transports.http.sessions.stream_letters import StreamLetters

HAND_OVER_TOPIC = "standing/hand-over"
SAY_TOPIC = "standing/say"
CHANGED_TOPIC = "standing/changed"

HOME_TTL_S = 86_400.0  # that a home is remembered; longer than a session lasts without one

MAX_SWAP_ATTEMPTS = 16  # while other nodes take over the same home

MAX_CONTINUATIONS = 64  # standing streams that one request goes through, from one to the next

MAX_ENTRIES_READ = 1_000

OVERLAP_S = 1.0  # in which a former home still tells of changes

MAX_OVERLAPS = 10_000  # former homes that are remembered for that


class HousedSession(Protocol):
    """A session, as far as its home is concerned.

    Attributes:
        mark: its name in the store.
        birth_node: the node that it was opened at.
        is_home: this node is its home.
        home_version: of the lease by which it is; 0 where it was born here.
        record: what its client has subscribed to, as far as this node knows.
    """

    mark: str
    birth_node: str
    is_home: bool
    home_version: int
    record: SessionRecord

    async def hand_over(self) -> list[bytes]:
        """End the standing streams here; gives what was kept for one that was not open."""
        ...

    def become_home(self, kept: list[bytes], *, from_dead: bool) -> None:
        """Take over what a former home has kept."""
        ...

    async def say_standing(self, message: bytes) -> None:
        """Say what belongs to no request, here."""
        ...


FindSession = Callable[[str], HousedSession | None]
"""Finds a session that this node holds, by its mark."""


_encode = msgspec.msgpack.Encoder().encode
_decode_claim = msgspec.msgpack.Decoder(tuple[str, int]).decode
_decode_mark = msgspec.msgpack.Decoder(str).decode
_decode_message = msgspec.msgpack.Decoder(tuple[str, bytes]).decode
_decode_kept = msgspec.msgpack.Decoder(tuple[bool, list[bytes]]).decode


class TakeOver:
    """One take-over of a session's home that is under way at this node.

    Attributes:
        version: of the lease that it holds; 0 before that.
        given: the versions of leases that other nodes have taken over from this one meanwhile.
        finished: set when it is over.
    """

    __slots__ = ("finished", "given", "version")

    def __init__(self) -> None:
        self.version = 0
        self.given: set[int] = set()
        self.finished = asyncio.Event()

    @property
    def is_lost(self) -> bool:
        """Whether another node is the home by now."""
        return self.version in self.given


class SessionHomes:
    """Homes of the sessions that this node holds.

    Args:
        node: this process, which has a store.
        find: finds a session by its mark.
        read_record: reads the record of a session by its mark, and acts on it.
    """

    def __init__(
        self, node: Node, find: FindSession, read_record: Callable[[str], Awaitable[None]]
    ) -> None:
        self._node = node
        self._find = find
        self._read_record = read_record
        self._left: dict[str, float] = {}
        self._under_way: dict[str, list[TakeOver]] = {}
        if node.mailbox is not None:
            node.mailbox.handle(HAND_OVER_TOPIC, self._take_hand_over)
            node.mailbox.handle(SAY_TOPIC, self._take_say)
            node.mailbox.handle(CHANGED_TOPIC, self._take_changed)

    async def take_over(self, session: HousedSession) -> None:
        """Make this node the home of a session, unless another one takes it over meanwhile.

        Raises:
            StoreUnavailable: nobody can tell where it was.
        """
        mark, taking, kept = session.mark, TakeOver(), list[bytes]()
        under_way = self._under_way.setdefault(mark, [])
        before = under_way[-1] if under_way else None
        under_way.append(taking)
        try:
            if before is not None:
                await before.finished.wait()
            former, version = await self._swap_lease(session, taking)
            there = former == self._node.id and session.is_home
            if former != self._node.id:  # else it may have been released, with what it had to say
                there, kept = await self._ask_for_kept(former, session, version)
            if taking.is_lost:
                kept += await session.hand_over()
            else:
                session.home_version = taking.version
                session.become_home(kept, from_dead=not there)
        finally:
            taking.finished.set()
            under_way.remove(taking)
            if not under_way:
                del self._under_way[mark]
        if taking.is_lost:
            for message in kept:
                await self.say(session, message)

    async def _swap_lease(self, session: HousedSession, taking: TakeOver) -> tuple[str, int]:
        """Hold the lease of a home; the node that was it before, and the version of its lease.

        Raises:
            StoreUnavailable: it cannot be held.
        """
        leases, name, id = self._node.leases, _make_lease_name(session.mark), self._node.id
        for _ in range(MAX_SWAP_ATTEMPTS):
            known = await leases.find(name)
            if known is None:
                mine = await leases.acquire(name, id, HOME_TTL_S)
            else:
                mine = await leases.renew(Lease(name, id, known.version), HOME_TTL_S)
            if mine is not None:
                taking.version = mine.version
                return (session.birth_node, 0) if known is None else (known.holder, known.version)
        raise StoreUnavailable("the home of a session is taken over by too many nodes at once")

    async def say(self, session: HousedSession, message: bytes) -> None:
        """Say what belongs to no request, on a session whose home is another node."""
        node = self._node
        try:
            known = await node.leases.find(_make_lease_name(session.mark))
            home = session.birth_node if known is None else known.holder
            if home != node.id and await self._mail_message(home, session.mark, message):
                return
            if home == node.id or not await node.is_alive(home):
                await self.take_over(session)
        except IsthmusError as error:
            log_warning("what a session says is kept at this node: %s", error)
        await session.say_standing(message)

    def tells_changes(self, mark: str) -> bool:
        """Whether changes are told from here, although another node is the home of a session.

        This one takes it over now, or it was the home of a session with subscriptions until a moment
        ago: both tell then, so that no change is missed, and some may be told twice.
        """
        until = self._left.get(mark)
        if until is not None and asyncio.get_running_loop().time() >= until:
            del self._left[mark]
            until = None
        return until is not None or mark in self._under_way

    async def tell_changed(self, session: HousedSession) -> None:
        """Have the home of a session read its record; where it is gone, the next one does.

        Raises:
            StoreUnavailable: nobody can tell where it is.
        """
        known = await self._node.leases.find(_make_lease_name(session.mark))
        home = session.birth_node if known is None else known.holder
        if home != self._node.id and self._node.mailbox is not None:
            with suppress(MailUndelivered, MailRefused):
                await self._node.mailbox.send(home, CHANGED_TOPIC, _encode(session.mark))

    async def _ask_for_kept(
        self, home: str, session: HousedSession, version: int
    ) -> tuple[bool, list[bytes]]:
        """What a former home has kept; False where it does not know any more."""
        mailbox = self._node.mailbox
        if mailbox is None:
            return False, []
        try:
            letter = _encode((session.mark, version))
            return _decode_kept(await mailbox.send(home, HAND_OVER_TOPIC, letter))
        except (MailUndelivered, MailRefused, msgspec.DecodeError):
            return False, []

    async def _mail_message(self, home: str, mark: str, message: bytes) -> bool:
        mailbox = self._node.mailbox
        if mailbox is None:
            return False
        try:
            return await mailbox.send(home, SAY_TOPIC, _encode((mark, message))) == b"said"
        except (MailUndelivered, MailRefused):
            return False

    async def _take_hand_over(self, body: bytes) -> bytes:
        mark, version = _decode_claim(body)
        for taking in self._under_way.get(mark, ()):
            taking.given.add(version)
        session = self._find(mark)
        if session is None or not session.is_home or session.home_version > version:
            return _encode((False, []))  # a later version: it was taken back meanwhile
        if session.record.subscriptions:
            # The next home may have learned of one after a change that is still on its way here.
            self._left[mark] = asyncio.get_running_loop().time() + OVERLAP_S
            while len(self._left) > MAX_OVERLAPS:
                del self._left[next(iter(self._left))]
        return _encode((True, await session.hand_over()))

    async def _take_say(self, body: bytes) -> bytes:
        mark, message = _decode_message(body)
        session = self._find(mark)
        if session is None or not (session.is_home or mark in self._under_way):
            return b"unknown"  # while it is taken over, it is kept for the stream that comes
        await session.say_standing(message)
        return b"said"

    async def _take_changed(self, body: bytes) -> bytes:
        await self._read_record(_decode_mark(body))
        return b""


async def continue_stream(
    letters: "StreamLetters",
    session: str,
    event_id: str,
    following: str,
    *,
    primes: bool,
) -> bytes:
    """Continue a standing stream that another node began as one of this node.

    The log of the old stream gets one last entry that names the new one, so that a client which comes
    back after an older event finds both, and the node that wrote it is refused.

    Args:
        letters: has the log.
        session: what the session's streams are kept under.
        event_id: the event after which a client comes back.
        following: the name of the new stream.
        primes: streams begin with an event that has nothing but an id.

    Returns:
        What is to be sent of the old stream.

    Raises:
        Forgotten: some of it is not there any more.
        StoreUnavailable: it cannot be read or written now.
    """
    found = parse_event_id(event_id)
    chunks: list[bytes] = []
    for _ in range(MAX_CONTINUATIONS):
        if found is None:
            break
        name = make_stream_name(found.mark, found.node, found.stream)
        chunk, next_name = await _read_standing(
            letters, make_log_key(session, name), name, found.place, following, primes=primes
        )
        chunks.append(chunk)
        if next_name == following:
            return b"".join(chunks)
        found = parse_event_id(f"{next_name}-0")
    raise Forgotten("its continuation is not known")


async def _read_standing(
    letters: "StreamLetters", key: str, name: str, place: int, following: str, *, primes: bool
) -> tuple[bytes, str]:
    """The rest of a standing stream, and the name of the one that continues it."""
    log, chunks = letters.log, list[bytes]()
    link = encode_entry(CONTINUED, encode_calls(None), following.encode())
    while True:
        entries = await log.read(key, place, MAX_ENTRIES_READ)
        if not entries:
            try:
                await log.write(key, place + 1, (link,))
            except Overtaken:
                continue  # somebody wrote meanwhile
            return b"".join(chunks), following
        chunk, is_over, next_name = encode_entries(name, entries, primes=primes)
        chunks.append(chunk)
        place = entries[-1][0]
        if is_over:
            return b"".join(chunks), next_name or following


def _make_lease_name(mark: str) -> str:
    return f"standing/{mark}"
