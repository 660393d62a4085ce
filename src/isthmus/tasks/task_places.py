"""Task places: how many tasks there may be, counted once for all nodes.

A ledger in the store has, for each span of time, how many tasks are kept until then; what is over
counts no more. A node that makes a task takes a place by compare-and-swap. Where many are free it
takes some at a time, so that most tasks cost nothing; where few are left it takes one. So the limit
is never exceeded, and places that a node took and did not use are free again when their time is over.
"""

import time

import msgspec

from isthmus.errors import StoreUnavailable
from isthmus.store.kv import KV

LEDGER_PREFIX = "places/"

MAX_LEDGER_ATTEMPTS = 64  # while other nodes count as well

MAX_PLACES_TAKEN = 64  # places that a node takes at a time

SHARE_OF_FREE_PLACES = 64  # a node takes this part of those that are free, and one at least

SPANS_PER_TTL = 16  # into which the time that a task is kept is divided in a ledger

MIN_SPAN_S = 1.0

NEVER_OVER = 0  # the end of tasks that are kept for ever

MAX_COUNTED_LEDGERS = 10_000  # ledgers of which a node may have places left


class TakenPlaces(msgspec.Struct):
    """Places that this node has taken and not used.

    Attributes:
        left: how many.
        until: the seconds since 1970 until which tasks may be kept in them; None for ever.
    """

    left: int
    until: float | None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[int, int]).decode


class TaskPlaces:
    """The places of tasks, over all nodes.

    Args:
        kv: the store of the tasks.
    """

    def __init__(self, kv: KV) -> None:
        self._kv = kv
        self._taken: dict[str, TakenPlaces] = {}

    async def take(self, name: str, limit: int, ttl: float | None) -> bool:
        """Take a place for one task.

        Args:
            name: of the ledger.
            limit: places there are.
            ttl: seconds that the task is kept, or None.

        Returns:
            False where all are taken.
        """
        until = None if ttl is None else time.time() + ttl
        taken = self._taken.get(name)
        if taken is not None and taken.left > 0 and _lasts(taken.until, until):
            taken.left -= 1
            return True
        span = max(MIN_SPAN_S, (ttl or 0.0) / SPANS_PER_TTL)
        end = NEVER_OVER if until is None else int((until // span + 1) * span + 1)
        count = await self._book(name, limit, end)
        if count == 0:
            return False
        if len(self._taken) >= MAX_COUNTED_LEDGERS:
            self._taken.clear()
        self._taken[name] = TakenPlaces(count - 1, end or None)
        return True

    def give_back(self, name: str) -> None:
        """A place that was taken here is not used after all."""
        taken = self._taken.get(name)
        if taken is not None:
            taken.left += 1

    async def _book(self, name: str, limit: int, end: int) -> int:
        """Write in a ledger that places are taken; says how many, 0 where none is free."""
        key = LEDGER_PREFIX + name
        for _ in range(MAX_LEDGER_ATTEMPTS):
            entry = await self._kv.get(key)
            ledger = {} if entry is None else _read(entry.value)
            free = limit - sum(ledger.values())
            if free <= 0:
                return 0
            count = max(1, min(MAX_PLACES_TAKEN, free // SHARE_OF_FREE_PLACES))
            ledger[end] = ledger.get(end, 0) + count
            ends = [moment for moment in ledger if moment != NEVER_OVER]
            ttl = None if NEVER_OVER in ledger else max(1.0, max(ends) - time.time())
            version = 0 if entry is None else entry.version
            if await self._kv.cas(key, _encode(ledger), version, ttl) is not None:
                return count
        raise StoreUnavailable("too many nodes count tasks at a time")


def _lasts(kept: float | None, until: float | None) -> bool:
    """Whether a place that is kept until one moment is good for a task until another."""
    return kept is None or (until is not None and until <= kept)


def _read(value: bytes) -> dict[int, int]:
    """The ledger in a value, without what is over."""
    try:
        ledger = _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}  # nobody of ours wrote it
    now = time.time()
    return {end: count for end, count in ledger.items() if end == NEVER_OVER or end > now}
