"""Retries of a client: which calls are made again, how often, and after which pause."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import (
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    Refused,
    SessionEnded,
    UsageError,
)
from isthmus.revisions.codes import LIMITED_CODE, UNAVAILABLE_CODE

Sleep: TypeAlias = Callable[[float], Awaitable[Any]]
"""Waits for so many seconds."""

RETRIED_STATUSES = frozenset({429, 502, 503, 504})

# Methods that change nothing at the server, so that a second time does no harm.
SAFE_METHODS = frozenset(
    {
        "completion/complete",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tasks/list",
        "tools/list",
    }
)


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """Retries of a client: how often, and after which pauses, it makes a failed call again.

    Lists, reads, prompts, completion, pings and the opening of the connection are made again after
    an error of the connection, HTTP 429, 502, 503 and 504, and the errors -31429 and -31503 of
    isthmus servers. A tool call is made again only where no byte of it was sent, unless
    ``trust_hints``. No call is made again in which a user or a model was asked.

    Attributes:
        times: how often at most, after the first time.
        pause: seconds before the first retry; each further pause is twice as long.
        max_pause: the longest pause; where a server asks for a longer one (``Retry-After``,
            ``retryAfterMs``), the call fails at once.
        trust_hints: make calls of tools again, too, whose list entry says ``readOnlyHint`` or
            ``idempotentHint``. Hints are what the server says of itself.
        sleep: waits for so many seconds.
        random: gives a number from 0 to 1, by which a pause is shortened by up to a half; None for
            ``random.random``.
    """

    times: int = 3
    pause: float = 0.25
    max_pause: float = 20.0
    trust_hints: bool = False
    sleep: Sleep = asyncio.sleep
    random: Callable[[], float] | None = None

    def find_pause(self, error: BaseException, done: int) -> float | None:
        """Seconds until the next attempt; None where there shall be none.

        Args:
            error: what the last attempt ended with.
            done: how many retries there were.
        """
        if done >= self.times or not is_passing(error):
            return None
        asked = read_retry_after(error)
        if asked is not None and asked > self.max_pause:
            return None
        pause = min(self.pause * 2.0 ** min(done, 30), self.max_pause)
        if self.random is None:
            import random  # only who fails needs it

            shorter = random.random() / 2  # noqa: S311 - spreads retries, and hides nothing
        else:
            shorter = self.random() / 2
        return max(pause * (1 - shorter), asked or 0.0)


def check_retries(retries: object) -> Retries | None:
    """Check what was given as ``retries=``; None where nothing is made again.

    Raises:
        UsageError: it is neither a number nor ``Retries(…)``, or one of its numbers is negative.
    """
    if isinstance(retries, int) and not isinstance(retries, bool):
        retries = Retries(times=retries)
    if not isinstance(retries, Retries):
        raise UsageError(f"retries= takes a number or isthmus.client.Retries(…), not {retries!r}")
    if retries.times < 0 or retries.pause < 0 or retries.max_pause < 0:
        raise UsageError(f"retries= takes no negative numbers: {retries!r}")
    return retries if retries.times else None


def is_passing(error: BaseException) -> bool:
    """Whether an error may be gone at the next attempt."""
    if isinstance(error, HttpRefused):
        return error.status in RETRIED_STATUSES
    if isinstance(error, Refused):
        return error.code in {LIMITED_CODE, UNAVAILABLE_CODE}
    return isinstance(error, ConnectFailed | ConnectionLost) and not isinstance(error, SessionEnded)


def read_retry_after(error: BaseException) -> float | None:
    """Seconds that the server asks for before the next attempt; None where it says nothing."""
    cause = error.__cause__
    if isinstance(error, ConnectFailed) and cause is not None:
        return read_retry_after(cause)
    if isinstance(error, HttpRefused):
        return parse_retry_after(next(
            (value for name, value in error.headers.items() if name.lower() == "retry-after"), ""
        ))  # fmt: skip
    data = error.data if isinstance(error, Refused) else None
    wait = data.get("retryAfterMs") if isinstance(data, dict) else None
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        return None
    return max(0.0, wait / 1000) if wait == wait else None  # noqa: PLR0124 - not a number


def parse_retry_after(value: str) -> float | None:
    """Seconds of a ``Retry-After`` header: a number, or a date (RFC 9110 10.2.3)."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def check_total_timeout(seconds: object) -> float | None:
    """Check what was given as ``total_timeout=``.

    Raises:
        UsageError: it is no positive number.
    """
    if seconds is None:
        return None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
        return seconds
    raise UsageError(f"total_timeout= takes seconds, more than 0, not {seconds!r}")
