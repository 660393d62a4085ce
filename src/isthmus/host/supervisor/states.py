"""The states a connection to a server can be in, and what leads from one to another: a table."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

__all__ = [
    "FIRST_WAIT_S",
    "HEALTHY_AFTER_S",
    "LIVE_STATES",
    "MAX_CRASHES",
    "MAX_WAIT_S",
    "REQUESTED_SIGNALS",
    "SETTLED_STATES",
    "TRANSITIONS",
    "ConnectionSignal",
    "ConnectionState",
    "RestartBackoff",
    "next_state",
]

ConnectionState: TypeAlias = Literal[
    "disabled",
    "idle",
    "connecting",
    "ready",
    "degraded",
    "backoff",
    "needs_auth",
    "quarantined",
    "failed",
    "draining",
]
"""Where a connection stands.

``degraded`` still takes calls, but has left a probe or a call without an answer; ``backoff`` waits
for its next attempt; ``quarantined`` is a program that nobody has agreed to run as it is now;
``failed`` has crashed too often, and stays so until somebody asks for another start.
"""

ConnectionSignal: TypeAlias = Literal[
    "start",
    "stop",
    "enable",
    "disable",
    "use",
    "opened",
    "lost",
    "looped",
    "unauthorized",
    "unapproved",
    "missed",
    "answered",
    "retry",
    "drained",
]
"""What happens to a connection: the first four by somebody's wish, the others by themselves."""

REQUESTED_SIGNALS: frozenset[ConnectionSignal] = frozenset({"start", "stop", "enable", "disable"})
"""What only somebody who may decide about servers can say."""

LIVE_STATES: frozenset[ConnectionState] = frozenset({"ready", "degraded"})
"""Calls go out in these."""

SETTLED_STATES: frozenset[ConnectionState] = frozenset({
    "ready", "backoff", "needs_auth", "quarantined", "failed", "idle", "disabled",
})  # fmt: skip
"""What a start can come to."""

_OPEN: Mapping[ConnectionSignal, ConnectionState] = {
    "lost": "backoff",
    "looped": "failed",
    "unauthorized": "needs_auth",
    "stop": "draining",
}
_SHUT: Mapping[ConnectionSignal, ConnectionState] = {
    "start": "connecting",
    "stop": "idle",
    "disable": "disabled",
}

TRANSITIONS: Mapping[ConnectionState, Mapping[ConnectionSignal, ConnectionState]] = {
    "disabled": {"enable": "idle"},
    "idle": {"start": "connecting", "use": "connecting", "disable": "disabled"},
    "connecting": {
        "opened": "ready",
        "lost": "backoff",
        "looped": "failed",
        "unauthorized": "needs_auth",
        "unapproved": "quarantined",
        "stop": "idle",
    },
    "ready": {**_OPEN, "missed": "degraded"},
    "degraded": {**_OPEN, "answered": "ready"},
    "backoff": {**_SHUT, "retry": "connecting"},
    # who logs in elsewhere cannot tell us: the next call finds out
    "needs_auth": {**_SHUT, "use": "connecting"},
    "quarantined": _SHUT,
    "failed": _SHUT,
    "draining": {"drained": "idle"},
}
"""Every way from one state to another; what is not here does not happen."""


def next_state(state: ConnectionState, signal: ConnectionSignal) -> ConnectionState | None:
    """The state that follows; None where the signal means nothing in this one."""
    return TRANSITIONS[state].get(signal)


FIRST_WAIT_S = 0.5
"""Seconds that the first wait is shorter than."""

MAX_WAIT_S = 60.0
"""Seconds that every wait is shorter than."""

HEALTHY_AFTER_S = 60.0
"""Seconds after which a connection counts as a good one: waits begin small again after it."""

MAX_CRASHES = 5
"""So many crashes within a minute, and nobody starts it again without being asked."""

CRASH_WINDOW_S = 60.0


class RestartBackoff:
    """How long to wait before the next attempt, and when to make none.

    Args:
        random: gives numbers from 0 up to, but not including, 1.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._crashes: deque[float] = deque(maxlen=MAX_CRASHES)
        self._opened: float | None = None
        self.attempt = 0

    def asked(self) -> None:
        """Somebody wants another start: what was before does not count."""
        self._crashes.clear()
        self._opened = None
        self.attempt = 0

    def opened(self, now: float) -> None:
        """It is connected, at this time in seconds."""
        self._opened = now

    def lost(self, now: float, *, crash: bool = True) -> float | None:
        """It could not be connected, or the connection ended by itself.

        Args:
            now: when, in seconds.
            crash: whether it counts as a crash; a network that is down is none.

        Returns:
            Seconds to wait before the next attempt; None where there must be none.
        """
        if self._opened is not None and now - self._opened >= HEALTHY_AFTER_S:
            self.attempt = 0
        self._opened = None
        if crash:
            self._crashes.append(now)
            if len(self._crashes) == MAX_CRASHES and now - self._crashes[0] < CRASH_WINDOW_S:
                return None
        # full jitter: whoever lost the same server at the same time does not come back together
        wait = self._random() * min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self.attempt, 16))
        self.attempt += 1
        return wait
