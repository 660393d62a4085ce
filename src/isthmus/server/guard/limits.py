"""Limits of a server: rates of each caller (rate limiting), and sizes of what comes from outside."""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from isthmus.core.principal import owner_of
from isthmus.core.schema_bounds import Bounds
from isthmus.errors import Refuse, UsageError
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.runtime.inbound import Inbound
from isthmus.store.meter import MemoryMeter, Meter, Rate

if TYPE_CHECKING:
    from isthmus.store.store import Store

NUMERIC_LIMITS = (
    *("threads", "request_state", "subscriptions", "streams", "depth", "in_flight", "file_size"),
    *("files", "tasks", "tasks_each", "task_ttl", "max_task_ttl", "task_poll", "answer_timeout"),
    *("stored_state", "stored_state_each", "session_values", "session_size", "session_ttl"),
)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a server; ``Server(limits=Limits(tool_calls=Rate(60, seconds=60)))``.

    The defaults are what no honest user meets, not even a program at full speed: they bound
    memory, and are no protection from strangers. Set lower ones for those. ``None`` switches a limit off.

    Rates are counted for each caller: for the principal who authenticated; otherwise for the
    session, up to 2025-11-25, or for the connection. A caller beyond one of the first two gets
    the error -31429, with ``data.retryAfterMs``. A rate below 10,000 is counted for all processes
    together where they share a store (``Server(store=…)``), and otherwise in this process; in place of
    a :class:`~isthmus.store.meter.Rate` may stand a :class:`~isthmus.store.meter.Meter` of one's own.
    The rate of ``progress`` is counted in each call.

    Attributes:
        tool_calls: calls of tools (spec 2026-07-28 server/tools#security-considerations: MUST).
        completions: completions (spec 2026-07-28 server/utilities/completion#security: MUST).
        log_messages: log messages sent to one caller; beyond it they are dropped, errors only
            after a hundred of one call, and one message says how many (spec 2026-07-28
            server/utilities/logging: SHOULD).
        progress: reports of progress that one call sends; beyond it the newest waits until its time
            has come, and the last one is always sent (spec 2026-07-28 basic/patterns/progress: SHOULD).
        subscriptions: resources that one session, or one stream of changes, may subscribe to.
        streams: streams of changes that one caller may have open at a time.
        depth: levels of arrays and objects in the parameters of a request. Arguments of a tool are
            measured only where its types allow more: ``list[Row]`` costs nothing, ``list[Any]`` does.
        in_flight: requests served at once on one connection, or in one session; one more is -32603.
        threads: plain functions at work at once, each in a thread; more wait their turn. One that
            waits in ``ctx.wait`` does not count.
        request_state: characters of the sealed ``requestState`` that a client carries from round to
            round of a call that asks (since 2026-07-28): answers and results of ``ctx.once``.
        stored_state: bytes of these that one call may have kept in ``Server(state_store=…)``.
        stored_state_each: the same of all calls of one principal, for as long as they are kept;
            all that nobody owns count as one.
        session_values: values that ``ctx.session`` keeps for one session or principal.
        session_size: bytes of these together, as JSON.
        session_ttl: seconds they are kept after one of them was last set, for a principal or in a
            store; those of a session or connection that ends before that go with it.
        schemas: what a schema may be that was not made from type hints.
        file_size: bytes of a file that is read as a resource.
        files: files of one directory that are listed, and entries of one folder that are shown.
        tasks: tasks that the server knows at a time, at work or kept for their results.
        tasks_each: the same of one principal; all that nobody owns count as one.
        task_ttl: seconds a task is kept whose client does not say (2025-11-25) or cannot.
        max_task_ttl: the longest time that a client may ask for.
        task_poll: seconds that clients should wait before they ask again how a task stands.
        answer_timeout: seconds a client may take to answer a question, up to 2025-11-25.

    Raises:
        UsageError: a figure is none, or ``progress`` is no rate.
    """

    # A rate that no program reaches: what a stranger may do is for each server to say.
    tool_calls: Rate | Meter | None = Rate(60_000_000, 60.0)
    completions: Rate | Meter | None = Rate(60_000_000, 60.0)
    log_messages: Rate | Meter | None = Rate(1_000_000, 10.0)
    progress: Rate | None = Rate(1_000, 1.0)
    subscriptions: int | None = 1_000
    streams: int | None = 100
    depth: int | None = 128
    in_flight: int | None = 10_000
    threads: int | None = 64
    request_state: int | None = 1024 * 1024
    stored_state: int | None = 16 * 1024 * 1024
    stored_state_each: int | None = 64 * 1024 * 1024
    session_values: int | None = 1_000
    session_size: int | None = 1024 * 1024
    session_ttl: float | None = 86_400.0
    schemas: Bounds | None = Bounds()
    file_size: int | None = 16 * 1024 * 1024
    files: int | None = 10_000
    tasks: int | None = 100_000
    tasks_each: int | None = 10_000
    task_ttl: float | None = 3_600.0
    max_task_ttl: float | None = 86_400.0
    task_poll: float = 1.0
    answer_timeout: float | None = 3600.0

    def __post_init__(self) -> None:
        if not isinstance(self.progress, Rate | None):
            raise UsageError(
                f"Limits(progress={self.progress!r}): it is counted in each call, so it takes a "
                "Rate(amount, seconds), or None"
            )
        for name in NUMERIC_LIMITS:
            figure = getattr(self, name)
            if figure is not None and not figure > 0:
                raise UsageError(f"Limits({name}={figure}): it must be greater than 0, or None")


# From it on, the half that all callers take first is not counted, and no store is asked.
HIGH_RATE_AMOUNT = 10_000

CALLER_DIGEST_BYTES = 16

SHARED_SESSION_TRANSPORTS = frozenset({"http", "http+sse"})  # any node may serve their sessions


class Limiter:
    """A rate limit, for every caller.

    A rate that is high costs a call one subtraction: nobody can be beyond it while all callers
    together are not beyond half of it, so that half is not counted, and what is counted after it
    is held to the other half.

    Args:
        what: what is limited, in the plural.
        setting: which limit it is, for the message.
        rate: how much, or what measures it.
        clock: says the time in seconds.
        shared: measures what callers do whom several nodes may serve, or None.

    Attributes:
        spare: what may happen before anything need be counted; whoever takes subtracts one, and
            asks :meth:`check` when it is below zero.
    """

    __slots__ = (
        *("_clock", "_free", "_meter", "_rate", "_setting", "_shared", "_since", "_what", "spare"),
    )

    def __init__(
        self,
        what: str,
        setting: str,
        rate: Rate | Meter,
        clock: Callable[[], float] = time.monotonic,
        shared: Meter | None = None,
    ) -> None:
        self._shared = shared
        self._what = what
        self._setting = setting
        self._clock = clock
        self._since = clock()
        self._free = 0
        self._rate = rate if isinstance(rate, Rate) else None
        if isinstance(rate, Rate):
            self._free = int(rate.amount // 2) if rate.amount >= HIGH_RATE_AMOUNT else 0
            rest = Rate(rate.amount - self._free, rate.seconds)
            self._meter: Meter = MemoryMeter(rest, clock=clock)
        else:
            self._meter = rate
        self.spare = self._free

    async def excess(self, inbound: Inbound) -> float:
        """Take one for the caller of a request; the seconds to wait if that is too much.

        Raises:
            StoreUnavailable: that cannot be told now, and nothing is counted.
        """
        if self._free and self._rate is not None:
            now = self._clock()
            if now - self._since >= self._rate.seconds:
                self._since, self.spare = now, self._free - 1
                return 0.0
        self.spare = 0
        if self._shared is not None and is_known_to_all_nodes(inbound):
            from hashlib import blake2b  # most servers are one process

            # who somebody is need not stand in a store in plain text, nor a session's id
            name = blake2b(identify_caller(inbound).encode(), digest_size=CALLER_DIGEST_BYTES)
            return await self._shared.take(name.hexdigest())
        return await self._meter.take(identify_caller(inbound))

    async def check(self, inbound: Inbound) -> None:
        """Take one for the caller of a request.

        Raises:
            Refuse: that is too much; it says how long to wait.
            StoreUnavailable: that cannot be told now.
        """
        wait = await self.excess(inbound)
        if wait > 0:
            allowed = "" if self._rate is None else f" ({self._rate} for each caller)"
            raise Refuse(
                LIMITED_CODE,
                f"Too many {self._what}{allowed}: try again in {max(wait, 0.001):.3g} s",
                {"limit": self._setting, "retryAfterMs": math.ceil(wait * 1000)},
            )


def identify_caller(inbound: Inbound) -> str:
    """Name the caller of a request, as far as limits are concerned.

    What a client says of itself is no part of it: anybody can say anything.
    """
    owner = owner_of(inbound.principal)
    if owner is not None:
        return f"principal {owner}"
    origin = inbound.origin
    if origin.session is not None:
        return f"session {origin.session}"
    if origin.peer is not None:
        return f"peer {origin.peer}"
    return f"link {id(inbound.link)}"


def is_known_to_all_nodes(inbound: Inbound) -> bool:
    """Whether the caller of a request has the same name at all nodes; a connection ends at one."""
    if owner_of(inbound.principal) is not None:
        return True
    origin = inbound.origin
    return origin.session is not None and origin.transport in SHARED_SESSION_TRANSPORTS


class Limiters:
    """The limits of one server that are rates.

    Args:
        limits: the server's limits.
        store: what the processes of the server share, or None.

    Attributes:
        tool_calls: holds back calls of tools, or None.
        completions: holds back completions, or None.
        log_messages: holds back log messages, or None.
        progress: how often one call may say how far it is, or None.
    """

    __slots__ = ("completions", "log_messages", "progress", "tool_calls")

    def __init__(self, limits: Limits, store: "Store | None" = None) -> None:
        self.tool_calls = _make_limiter("tool calls", "tool_calls", limits.tool_calls, store)
        self.completions = _make_limiter("completions", "completions", limits.completions, store)
        self.log_messages = _make_limiter(
            "log messages", "log_messages", limits.log_messages, store
        )
        self.progress = limits.progress


def _make_limiter(
    what: str, setting: str, rate: Rate | Meter | None, store: "Store | None"
) -> Limiter | None:
    if rate is None:
        return None
    shared = None
    if store is not None and isinstance(rate, Rate) and rate.amount < HIGH_RATE_AMOUNT:
        shared = store.meter(f"limits/{setting}", rate)
    return Limiter(what, setting, rate, shared=shared)
