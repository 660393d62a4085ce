"""States of a server connection, the table of transitions, and the backoff of restarts."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

# degraded still takes calls, but has left a probe or a call without an answer; backoff waits for
# its next attempt; quarantined is a program that nobody has agreed to run as it is now; failed
# has crashed too often, and stays so until somebody asks for another start
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

# the first four come by somebody's wish, the others by themselves
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

# only somebody who may decide about servers can send them
REQUESTED_SIGNALS: frozenset[ConnectionSignal] = frozenset({"start", "stop", "enable", "disable"})
LIVE_STATES: frozenset[ConnectionState] = frozenset({"ready", "degraded"})  # calls go out in these

# a start ends in one of these
SETTLED_STATES: frozenset[ConnectionState] = frozenset({
    "ready", "backoff", "needs_auth", "quarantined", "failed", "idle", "disabled",
})  # fmt: skip

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

# a transition that is not here does not happen
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

FIRST_WAIT_S = 0.5  # the first wait is shorter than this
MAX_WAIT_S = 60.0
HEALTHY_AFTER_S = 60.0  # waits begin small again after a connection of that length
MAX_CRASHES = 5  # within CRASH_WINDOW_S: nobody starts it again without being asked
CRASH_WINDOW_S = 60.0


def next_state(state: ConnectionState, signal: ConnectionSignal) -> ConnectionState | None:
    """The next state; None where the signal means nothing in this one."""
    return TRANSITIONS[state].get(signal)


class RestartBackoff:
    """Backoff of restarts: the wait before the next attempt, or none after too many crashes.

    Args:
        random: gives numbers from 0 up to, but not including, 1.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._crashes: deque[float] = deque(maxlen=MAX_CRASHES)
        self._opened: float | None = None
        self.attempt = 0

    def reset(self) -> None:
        """Forget what was before: somebody asks for another start."""
        self._crashes.clear()
        self._opened = None
        self.attempt = 0

    def note_open(self, now: float) -> None:
        """Note that the connection is open, at this time in seconds."""
        self._opened = now

    def next_wait(self, now: float, *, crash: bool = True) -> float | None:
        """Compute the wait after a failed attempt, or a connection that ended by itself.

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
