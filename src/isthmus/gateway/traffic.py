"""Traffic of a gateway: how many calls each server had, how long they took, and a line of JSON for each.

Neither has an argument, a result or a name that a client made up: numbers, and what the configuration and
the servers are called.
"""

import os
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, json

from isthmus.core.redaction.texts import redact_text
from isthmus.core.text import clean_text
from isthmus.errors import CallTimedOut
from isthmus.gateway.principals import make_principal
from isthmus.host.model.errors import (
    BadArguments,
    Denied,
    Exhausted,
    OutcomeUnknown,
    ServerUnavailable,
    UserDeclined,
)
from isthmus.runtime.failures import log_warning

if TYPE_CHECKING:
    from isthmus.gateway.calls import GatewayCall

CallOutcome: TypeAlias = Literal[
    "ok",
    "tool-error",
    "bad-arguments",
    "denied",
    "limited",
    "unavailable",
    "unknown",
    "timeout",
    "refused",
    "cancelled",
]
"""The end of a call; ``unknown`` where the server was lost, so that nobody can tell what it did."""

SECONDS_BOUNDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    60.0,
)
MAX_NAME_CHARS = 200  # of a name that a server or a client has chosen

OUTCOMES_BY_ERROR: tuple[tuple[type[BaseException], CallOutcome], ...] = (
    (BadArguments, "bad-arguments"),
    (Denied, "denied"),
    (UserDeclined, "denied"),
    (Exhausted, "limited"),
    (ServerUnavailable, "unavailable"),
    (OutcomeUnknown, "unknown"),
    (CallTimedOut, "timeout"),
)

WriteLine: TypeAlias = Callable[[bytes], None]


class AccessLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the access log: one call.

    Attributes:
        time: when it ended, in UTC.
        id: the id of the client's request.
        principal: who called, and ``client`` by which program, as that says of itself.
        method: ``tools/call``, ``resources/read``, ``prompts/get`` or ``completion/complete``.
        server: the server, and ``name`` the tool, prompt or resource there; empty where there is none.
        era: the revision of the client, and ``server_era`` that of the server.
        outcome: how it ended.
        ms: milliseconds that it took, in which people may have been asked.
    """

    time: str
    id: Any
    principal: str
    method: str
    outcome: CallOutcome
    ms: float
    client: str = ""
    server: str = ""
    name: str = ""
    era: str = ""
    server_era: str = ""


class CallTimes:
    """How long the calls of one server took, as a histogram counts them."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(SECONDS_BOUNDS) + 1)
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a call."""
        self.buckets[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        self.count += 1
        self.seconds += seconds


class GatewayTraffic:
    """Counts the calls of a gateway, and writes a line about each where that is wanted.

    Args:
        find_era: says which revision a server speaks just now.

    Attributes:
        calls: the number of calls by server and outcome.
        times: how long they took, by server.
        write: writes a line; None where nobody wants them.
    """

    def __init__(self, find_era: Callable[[str], str] = lambda _server: "") -> None:
        self._find_era = find_era
        self.calls: defaultdict[tuple[str, CallOutcome], int] = defaultdict(int)
        self.times: defaultdict[str, CallTimes] = defaultdict(CallTimes)
        self.write: WriteLine | None = None

    def end(
        self,
        call: "GatewayCall",
        method: str,
        began: float,
        failed: BaseException | None,
        result: Any,
    ) -> None:
        """Count a call that has ended.

        Args:
            call: the call.
            method: its method.
            began: when it began, by ``time.perf_counter``.
            failed: the error by which it ended; None where it has a result.
            result: that.
        """
        seconds, outcome = time.perf_counter() - began, find_outcome(failed, result)
        server, own = call.target
        self.calls[server, outcome] += 1
        self.times[server].add(seconds)
        if self.write is None:
            return
        inbound = call.inbound
        caller = inbound.caller
        info = caller.info
        line = AccessLine(
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            id=shorten_name(inbound.id) if isinstance(inbound.id, str) else inbound.id,
            principal=make_principal(inbound.principal),
            client="" if info is None else shorten_name(f"{info.name} {info.version}"),
            method=method,
            server=server,
            name=shorten_name(own.partition("?")[0] if "://" in own else own),
            era=caller.revision.name,
            server_era=self._find_era(server) if server else "",
            outcome=outcome,
            ms=round(seconds * 1000, 3),
        )
        self.write(json.encode(line) + b"\n")


def find_outcome(failed: BaseException | None, result: Any) -> CallOutcome:
    """The outcome of a call."""
    if failed is None:
        return "tool-error" if getattr(result, "is_error", False) is True else "ok"
    if not isinstance(failed, Exception):
        return "cancelled"
    return next((out for kind, out in OUTCOMES_BY_ERROR if isinstance(failed, kind)), "refused")


def shorten_name(name: str) -> str:
    """A name that somebody else has chosen, fit for a line: short, and without what looks like a secret."""
    return redact_text(clean_text(name[:MAX_NAME_CHARS]), chance=False)


class AccessLog:
    """A file of access lines, or standard error.

    Args:
        path: the file, which lines are added to; ``-`` for standard error.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._own = path != "-"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o600) if self._own else sys.stderr.fileno()
        self._has_failed = False

    def write(self, line: bytes) -> None:
        """Write a line; what cannot be written is told once, and stops no call."""
        try:
            os.write(self._file, line)
        except OSError as error:
            if not self._has_failed:
                log_warning("the access log cannot be written: %s", error)
            self._has_failed = True
        else:
            self._has_failed = False

    def close(self) -> None:
        """Close the file."""
        if self._own and self._file >= 0:
            os.close(self._file)
        self._file = -1
