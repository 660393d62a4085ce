"""Fetching lists anew when a server says that they are others: in rounds, and not too often."""

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.store.meter import MemoryMeter, Rate

__all__ = ["RENEWALS", "Renewing"]

RENEWALS = Rate(30, seconds=60)
"""Rounds of one connection: a server whose every list is followed by another has its pauses."""


class Renewing:
    """The lists of one connection, as far as they are out of date.

    Args:
        fetch: fetches the lists of these kinds.
        clock: gives seconds that never go back; the event loop's by default.

    Attributes:
        wanted: kinds of lists that the next round fetches.
        fetching: kinds that the round under way fetches.
    """

    def __init__(
        self,
        fetch: Callable[[set[str]], Awaitable[None]],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.wanted: set[str] = set()
        self.fetching: set[str] = set()
        self._fetch = fetch
        clock = clock or asyncio.get_running_loop().time
        self._meter = MemoryMeter(RENEWALS, clock=clock)
        self._next: asyncio.Future[None] | None = None
        self._now: asyncio.Future[None] | None = None
        self._work: asyncio.Task[None] | None = None

    async def renew(self, *kinds: str) -> None:
        """Have these lists fetched; returns when those are there that were asked for after this.

        Whoever gives up stops nobody else.

        Raises:
            IsthmusError: they cannot be had.
        """
        await asyncio.shield(self.want(*kinds))

    def want(self, *kinds: str) -> "asyncio.Future[None]":
        """Have these lists fetched, without waiting; however often it is said, that is one round.

        Returns:
            What is done when they are there.
        """
        self.wanted.update(kinds)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        ended = self._next
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._rounds())
        return ended

    async def settle(self, *kinds: str) -> None:
        """Wait for these lists where they are out of date, and not at all where they are not.

        Raises:
            IsthmusError: they cannot be had.
        """
        if self._next is not None and self.wanted.intersection(kinds):
            await asyncio.shield(self._next)
        elif self._now is not None and self.fetching.intersection(kinds):
            await asyncio.shield(self._now)

    async def close(self) -> None:
        """Fetch nothing more."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if self._next is not None:
            self._next.cancel()

    async def _rounds(self) -> None:
        while self._next is not None:
            wait = self._meter.spend("")
            if wait:
                await asyncio.sleep(wait)
                self._meter.spend("")
            # from here on what changes is for the next round: it may have been listed already
            ended, self._next = self._next, None
            wanted, self.wanted = self.wanted, set()
            self._now, self.fetching = ended, wanted
            try:
                await self._fetch(wanted)
            except asyncio.CancelledError:
                ended.cancel()
                raise
            except Exception as error:  # noqa: BLE001 - it is for those who wait for it
                ended.set_exception(error)
                ended.exception()  # perhaps nobody does
            else:
                ended.set_result(None)
            finally:
                self._now, self.fetching = None, set()
