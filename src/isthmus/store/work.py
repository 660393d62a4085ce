"""One piece of work for a store's thread, and how whoever asked for it learns how it went."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

__all__ = ["Ask", "settle"]


class Ask:
    """Something to be done in the thread of a store.

    Args:
        work: what; None to end.
        writes: whether it changes anything.
        asked: when, by the store's clock.
        loop: where somebody waits for it in ``future``; both None where nobody does.
        after: hears how it ended, at once and in the store's thread: None, or the error.

    Attributes:
        result: what the work returned.
        error: why it was not done.
    """

    __slots__ = ("after", "asked", "error", "future", "loop", "result", "work", "writes")

    def __init__(
        self,
        work: Callable[[Any], Any] | None,
        *,
        asked: float,
        writes: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
        future: "asyncio.Future[object] | None" = None,
        after: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        self.work = work
        self.writes = writes
        self.asked = asked
        self.loop = loop
        self.future = future
        self.after = after
        self.result: object = None
        self.error: BaseException | None = None

    def do(self, subject: Any) -> None:
        """Do it."""
        if self.work is not None:
            self.result = self.work(subject)

    def tell(self) -> None:
        """Tell whoever waits, in the thread of their loop."""
        if self.future is None or self.future.done():
            return
        error, self.error = self.error, None  # it keeps frames in which this stands
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(self.result)


def settle(asks: Sequence[Ask]) -> None:
    """Tell everybody how it went, each loop with one call."""
    waiting: dict[asyncio.AbstractEventLoop, list[Ask]] = {}
    for ask in reversed(asks):  # what is put back goes to the front, the last first
        if ask.after is not None:
            ask.after(ask.error)
    for ask in asks:
        if ask.loop is not None:
            waiting.setdefault(ask.loop, []).append(ask)
    for loop, group in waiting.items():
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_tell, group)


def _tell(asks: Sequence[Ask]) -> None:
    for ask in asks:
        ask.tell()
