"""Concurrency: how many requests are served at once, with a bounded queue before them."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Literal, TypeAlias

from isthmus.errors import Refuse, UsageError
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.server.guard.limits import identify_caller
from isthmus.server.middleware.hooks import CallNext, Middleware, MiddlewareContext

Grouping: TypeAlias = Literal["server", "caller", "tool"] | Callable[[MiddlewareContext[Any]], str]

MIN_RETRY_AFTER_S, MAX_RETRY_AFTER_S = 0.1, 60.0
NEW_SHARE = 0.2  # of the latest duration in the mean of all


class Concurrency(Middleware):
    """Limit of concurrent calls: further ones wait in a queue, and beyond it they are refused.

    A refusal is the error -31429 with ``data.retryAfterMs``. How often somebody may call is for
    ``Server(limits=Limits(tool_calls=Rate(…)))``. A call that waits for its user up to 2025-11-25
    keeps its place; since 2026-07-28 it has ended with its question.

    Args:
        most: how many at once.
        per: what they are counted for: ``"server"``; ``"caller"``, which is the principal, or the
            session or connection without one; ``"tool"``; or a function of the context.
        queue: how many may wait for each of these.
        wait: the most seconds that one waits.
        methods: what is counted.

    Raises:
        UsageError: a figure is none, or there is no such ``per``.
    """

    reads_results: ClassVar[bool] = False

    def __init__(
        self,
        most: int,
        *,
        per: Grouping = "server",
        queue: int = 100,
        wait: float = 30.0,
        methods: Collection[str] = ("tools/call",),
    ) -> None:
        if most < 1 or queue < 0 or not wait > 0:
            raise UsageError(
                f"Concurrency({most!r}, queue={queue!r}, wait={wait!r}): at least 1, 0 or more, and "
                "seconds above 0"
            )
        if not callable(per) and per not in ("server", "caller", "tool"):
            raise UsageError(
                f'Concurrency(per={per!r}): it is "server", "caller", "tool", or a function'
            )
        self.methods = frozenset(methods)
        self._most, self._queue, self._wait = most, queue, wait
        self._per = per
        self._gates: dict[str, Gate] = {}
        self._mean_s = 1.0

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Serve a call when it is its turn.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result of its method.
        """
        key = self._find_group(ctx)
        gate = self._gates.setdefault(key, Gate(self._most))
        try:
            if not gate.try_enter():
                await self._wait_turn(gate)
            began = time.monotonic()
            try:
                return await call_next(ctx)
            finally:
                self._mean_s += NEW_SHARE * (time.monotonic() - began - self._mean_s)
                gate.leave()
        finally:
            if gate.is_idle and self._gates.get(key) is gate:
                del self._gates[key]

    def _find_group(self, ctx: MiddlewareContext[Any]) -> str:
        if callable(self._per):
            return self._per(ctx)
        if self._per == "caller":
            return identify_caller(ctx.inbound)
        return ctx.name or "" if self._per == "tool" else ""

    async def _wait_turn(self, gate: "Gate") -> None:
        if len(gate.waiting) >= self._queue:
            raise self._make_refusal(gate)
        place = gate.queue_up()
        try:
            async with asyncio.timeout(self._wait):
                await place
        except BaseException as error:
            gate.give_up(place)
            if isinstance(error, TimeoutError):
                raise self._make_refusal(gate) from None
            raise

    def _make_refusal(self, gate: "Gate") -> Refuse:
        expected = self._mean_s * (len(gate.waiting) + 1) / self._most
        seconds = min(max(expected, MIN_RETRY_AFTER_S), MAX_RETRY_AFTER_S)
        return Refuse(
            LIMITED_CODE,
            f"Too many calls at once: {self._most} are served and {len(gate.waiting)} wait; "
            f"try again in {seconds:.3g} s",
            {"limit": "concurrency", "retryAfterMs": math.ceil(seconds * 1000)},
        )


class Gate:
    """The places of one group, and who waits for one, in order.

    Args:
        most: how many places there are.

    Attributes:
        waiting: a future for each that waits, done when it has a place.
    """

    __slots__ = ("_free", "_most", "waiting")

    def __init__(self, most: int) -> None:
        self._free = self._most = most
        self.waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether nobody is inside or waits."""
        return self._free == self._most and not self.waiting

    def try_enter(self) -> bool:
        """Take a place if one is free and nobody waits."""
        if self._free == 0 or self.waiting:
            return False
        self._free -= 1
        return True

    def queue_up(self) -> asyncio.Future[None]:
        """Wait for a place at the end of the queue."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(place)
        return place

    def give_up(self, place: asyncio.Future[None]) -> None:
        """Wait no longer; a place that was given meanwhile goes to the next."""
        if place in self.waiting:
            self.waiting.remove(place)
        elif place.done() and not place.cancelled():
            self.leave()

    def leave(self) -> None:
        """Give a place to whoever waits longest, or free it."""
        while self.waiting:
            place = self.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
