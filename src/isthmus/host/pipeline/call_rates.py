"""Rates of calls: which of them an attempt at a server counts for, and what a refusal says."""

from typing import Literal

from msgspec import UNSET, Struct

from isthmus.host.model.attempt import Attempt, Origin
from isthmus.host.model.entries import DEFAULT_CALLS_PER_MINUTE, ServerLimits
from isthmus.host.model.errors import Exhausted
from isthmus.store.meter import Rate

RATE_WINDOW_S = 60.0


class CallRate(Struct, frozen=True):
    """A rate of calls to one server.

    Attributes:
        name: of its meter.
        amount: calls a minute.
        member: of the configuration that says so, for messages.
        counts: by whom and by what calls are counted.
    """

    name: str
    amount: float
    member: str
    counts: Literal["server", "tool", "client"]

    @property
    def rate(self) -> Rate:
        """The same as a meter has it."""
        return Rate(self.amount, RATE_WINDOW_S)

    def make_key(self, attempt: Attempt) -> str:
        """The key that an attempt is counted under."""
        match self.counts:
            case "tool":
                return f"{attempt.principal}\0{attempt.object}"
            case "client":
                return attempt.principal
            case _:
                return ""

    def make_error(self, attempt: Attempt, wait: float) -> Exhausted:
        """Make the error of a call that comes too soon."""
        what = f"server {attempt.server!r}"
        if self.counts == "tool":
            what = f"{attempt.object!r} of {what}"
        elif self.counts == "client":
            what = f"{what} by {attempt.principal}"
        return Exhausted(
            f"{what} is called too often: {self.amount:g} a minute ({self.member}), again in "
            f"{wait:.1f} s",
            retry_after=wait,
        )


def find_rates(
    limits: ServerLimits, client_calls: float | None, origin: Origin
) -> tuple[CallRate, ...]:
    """The rates that an attempt at a server counts for.

    Args:
        limits: of the server.
        client_calls: calls a minute that a principal of a gateway may make at it; None for any number.
        origin: by which way the attempt came.
    """
    rates = []
    if limits.tool_calls is not None:
        rates.append(CallRate("tool", limits.tool_calls, "limits.toolCalls", "tool"))
    if origin == "gateway" and client_calls is not None:
        rates.append(CallRate("client", client_calls, "gateway.limits.calls", "client"))
    calls = limits.calls
    if calls is UNSET:
        # The default protects a server from one program. A gateway has many callers, each with a rate.
        calls = None if origin == "gateway" else DEFAULT_CALLS_PER_MINUTE
    if calls is not None:
        rates.append(CallRate("server", calls, "limits.calls", "server"))
    return tuple(rates)
