"""Middleware that limits requests, under the names of ``fastmcp.server.middleware.rate_limiting``."""

import inspect
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Generic, TypeVar

from isthmus.compat.exceptions import MCPError
from isthmus.compat.fastmcp.server.middleware.middleware import (
    CallNext,
    Middleware,
    MiddlewareContext,
)

T = TypeVar("T")

LIMITED_CODE = -32000
MAX_FORGOTTEN = 64  # clients that one request looks at, to forget those that are idle


class RateLimitError(MCPError):
    """Refusal of a request of somebody who sends too many.

    Args:
        message: the text.
    """

    def __init__(self, message: str = "Rate limit exceeded") -> None:
        super().__init__(LIMITED_CODE, message)


class TokenBucketRateLimiter:
    """Token bucket: so many at once, and so many a second.

    Args:
        capacity: the most at once.
        refill_rate: how many a second.
    """

    def __init__(self, capacity: float, refill_rate: float) -> None:
        self.capacity, self.refill_rate = capacity, refill_rate
        self.tokens = float(capacity)
        self.last_refill = time.monotonic()

    async def consume(self, tokens: int = 1) -> bool:
        """Take tokens; False where there are too few."""
        now = time.monotonic()
        gained = (now - self.last_refill) * self.refill_rate
        self.tokens, self.last_refill = min(self.capacity, self.tokens + gained), now
        if self.tokens < tokens:
            return False
        self.tokens -= tokens
        return True


class SlidingWindowRateLimiter:
    """Sliding window: so many in any window of time.

    Args:
        max_requests: the most in a window.
        window_seconds: how long that is.
    """

    def __init__(self, max_requests: int, window_seconds: float) -> None:
        self.max_requests, self.window_seconds = max_requests, window_seconds
        self.requests: deque[float] = deque()

    async def is_allowed(self) -> bool:
        """Count a request; False where it is one too many."""
        now = time.monotonic()
        while self.requests and self.requests[0] < now - self.window_seconds:
            self.requests.popleft()
        if len(self.requests) >= self.max_requests:
            return False
        self.requests.append(now)
        return True


class ClientLimiters(Generic[T]):
    """Limiters by client; one that has been idle until it is as good as new is forgotten.

    Args:
        make: makes a limiter.
        idle_s: seconds after which it is as good as new; None for never.
    """

    def __init__(self, make: Callable[[], T], idle_s: float | None) -> None:
        self._make, self._idle_s = make, idle_s
        self._used: OrderedDict[str, float] = OrderedDict()
        self.limiters: dict[str, T] = {}

    def find_limiter(self, client: str) -> T:
        """The limiter of a client."""
        now = time.monotonic()
        self._forget_idle(now)
        self._used[client] = now
        self._used.move_to_end(client)
        if client not in self.limiters:
            self.limiters[client] = self._make()
        return self.limiters[client]

    def _forget_idle(self, now: float) -> None:
        if self._idle_s is None:
            return
        for client in [*islice(self._used, MAX_FORGOTTEN)]:
            if self._used[client] >= now - self._idle_s:
                return
            del self._used[client], self.limiters[client]


class ClientNames:
    """Names of clients, by a function of the author's.

    Args:
        get_client_id: gives the name of who sent a message; all are one without it.
    """

    def __init__(self, get_client_id: Callable[[MiddlewareContext[Any]], Any] | None) -> None:
        self._get_client_id = get_client_id

    async def find_name(self, context: MiddlewareContext[Any]) -> str:
        """The name of who sent a message."""
        if self._get_client_id is None:
            return "global"
        found = self._get_client_id(context)
        return str(await found if inspect.isawaitable(found) else found)


class RateLimitingMiddleware(Middleware):
    """Limit requests by token buckets.

    Args:
        max_requests_per_second: how many a second, in the long run.
        burst_capacity: how many at once; twice as many by default.
        get_client_id: gives the name of who sent a message; all are one without it.
        global_limit: one bucket for all.
    """

    def __init__(
        self,
        max_requests_per_second: float = 10.0,
        burst_capacity: int | None = None,
        get_client_id: Callable[[MiddlewareContext[Any]], Any] | None = None,
        global_limit: bool = False,
    ) -> None:
        rate = self.max_requests_per_second = max_requests_per_second
        self.burst_capacity = burst_capacity or max(int(rate * 2), 1 if rate > 0 else 0)
        self.get_client_id, self.global_limit = get_client_id, global_limit
        self.global_limiter = self._make_limiter()
        self._names = ClientNames(get_client_id)
        idle_s = self.burst_capacity / rate if rate > 0 else None
        self._clients = ClientLimiters(self._make_limiter, idle_s)
        self.limiters = self._clients.limiters

    def _make_limiter(self) -> TokenBucketRateLimiter:
        return TokenBucketRateLimiter(self.burst_capacity, self.max_requests_per_second)

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Serve a request, or refuse it.

        Raises:
            RateLimitError: its sender sends too many.
        """
        if self.global_limit:
            if not await self.global_limiter.consume():
                raise RateLimitError("Global rate limit exceeded")
            return await call_next(context)
        name = await self._names.find_name(context)
        if not await self._clients.find_limiter(name).consume():
            raise RateLimitError(f"Rate limit exceeded for client: {name}")
        return await call_next(context)


class SlidingWindowRateLimitingMiddleware(Middleware):
    """Limit requests in any window of time.

    Args:
        max_requests: the most in a window.
        window_minutes: how long that is.
        get_client_id: gives the name of who sent a message; all are one without it.
    """

    def __init__(
        self,
        max_requests: int,
        window_minutes: int = 1,
        get_client_id: Callable[[MiddlewareContext[Any]], Any] | None = None,
    ) -> None:
        self.max_requests, self.window_seconds = max_requests, window_minutes * 60
        self.get_client_id = get_client_id
        self._names = ClientNames(get_client_id)
        self._clients = ClientLimiters(
            lambda: SlidingWindowRateLimiter(max_requests, self.window_seconds),
            max(0, self.window_seconds),
        )
        self.limiters = self._clients.limiters

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext) -> Any:
        """Serve a request, or refuse it.

        Raises:
            RateLimitError: its sender sends too many.
        """
        name = await self._names.find_name(context)
        if not await self._clients.find_limiter(name).is_allowed():
            raise RateLimitError(
                f"Rate limit exceeded: {self.max_requests} requests per {self.window_seconds // 60} minutes for client: "
                f"{name}"
            )
        return await call_next(context)
