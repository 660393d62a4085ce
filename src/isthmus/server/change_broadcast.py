"""Broadcast of changes: what changed at one node is told to the listeners of all nodes.

Changes go on one channel of the bus. Those of one turn of the loop are one message, and what
changes while a message is on its way waits for the next. A message that cannot be sent is sent
later; where too much waits for that, it says that everything may have changed, as a node says
to its own listeners after a gap in the bus.
"""

import asyncio
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import msgspec

from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_warning

if TYPE_CHECKING:
    from isthmus.store.bus import Bus, Unsubscribe

CHANGES_CHANNEL = "changes"

MAX_CHANGES_PER_MESSAGE = 256

MAX_PENDING_CHANGES = 10_000  # that wait to be sent; more of them are "everything"

BROADCAST_RETRY_S = 1.0  # from one attempt to send to the next

Change = tuple[str, str | None]
"""A notification, and the resource's URI or the elicitation's id, where it is about one."""


class ChangeMessage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Changes on their way to the other nodes.

    Attributes:
        sender: the node they come from.
        changes: what changed; None for everything.
    """

    sender: str
    changes: list[Change] | None


class ChangeHearer(Protocol):
    """Tells the listeners of this node."""

    def hear_change(self, method: str, what: str | None) -> None:
        """Tell those who want to know that something changed."""
        ...

    def hear_gap(self) -> None:
        """Tell everybody that everything may have changed."""
        ...


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ChangeMessage).decode


class ChangeBroadcast:
    """Changes between this node and the others.

    Args:
        bus: carries them.
        node: the id of this node.
        hearer: is told what other nodes publish.
    """

    def __init__(self, bus: "Bus", node: str, hearer: ChangeHearer) -> None:
        self._bus = bus
        self._node = node
        self._hearer = hearer
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._pending: dict[Change, None] = {}
        self._overflown = False
        self._sending: asyncio.Task[None] | None = None
        self._undo: list[Unsubscribe] = []
        self._is_open = False

    async def open(self) -> None:
        """Begin to hear and to publish.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        self._undo.append(await self._bus.subscribe(CHANGES_CHANNEL, self._hear))
        self._undo.append(self._bus.on_gap(self._hearer.hear_gap))
        self._is_open = True

    async def close(self) -> None:
        """Hear nothing more, and give up what waits to be sent."""
        self._is_open = False
        undo, self._undo = self._undo, []
        for unsubscribe in undo:
            unsubscribe()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait((self._sending,))

    def publish(self, method: str, what: str | None = None) -> None:
        """Tell the other nodes of a change, soon; callable from any thread."""
        with self._lock:
            first = not self._pending and not self._overflown
            if len(self._pending) < MAX_PENDING_CHANGES:
                self._pending[method, what] = None
            else:
                self._overflown = True
                self._pending.clear()
        if first and not self._loop.is_closed():
            self._call_soon(self._start)

    def _call_soon(self, callback: Callable[[], None]) -> None:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._loop.call_soon(callback)
        else:
            self._loop.call_soon_threadsafe(callback)

    def _start(self) -> None:
        if self._is_open and self._sending is None:
            self._sending = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send until nothing waits, however long the bus cannot be reached."""
        warned = False
        try:
            while self._pending or self._overflown:
                changes = self._take_pending()
                try:
                    await self._bus.publish(
                        CHANGES_CHANNEL, _encode(ChangeMessage(self._node, changes))
                    )
                except IsthmusError as error:
                    self._put_back(changes)
                    if not warned:
                        log_warning("other nodes cannot be told of changes now: %s", error)
                        warned = True
                    await asyncio.sleep(BROADCAST_RETRY_S)
        finally:
            self._sending = None

    def _take_pending(self) -> list[Change] | None:
        with self._lock:
            if self._overflown:
                self._overflown = False
                self._pending.clear()
                return None
            changes = [*self._pending][:MAX_CHANGES_PER_MESSAGE]
            for change in changes:
                del self._pending[change]
            return changes

    def _put_back(self, changes: list[Change] | None) -> None:
        with self._lock:
            if changes is None or self._overflown:
                self._overflown = True
            else:
                self._pending = {**dict.fromkeys(changes), **self._pending}

    def _hear(self, message: bytes) -> None:
        """Tell the listeners here of what another node published."""
        try:
            heard = _decode(message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            log_warning("the bus carried changes that no node of this version sends")
            return
        if heard.sender == self._node:
            return
        if heard.changes is None:
            self._hearer.hear_gap()
            return
        for method, what in heard.changes[:MAX_CHANGES_PER_MESSAGE]:
            self._hearer.hear_change(method, what)
