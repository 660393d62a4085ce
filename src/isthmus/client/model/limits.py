"""Limits and settings of a client: what a server may cost it, and how long it waits."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from isthmus.client.model.retries import Retries
from isthmus.errors import UsageError
from isthmus.revisions import Revision
from isthmus.store.meter import Rate
from isthmus.wire import Implementation, LogLevel, ProgressParams


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on how much of a client one server may use.

    What goes beyond is refused with an error that names the limit, or dropped with a warning in
    the log where nobody can be told. What a :class:`~isthmus.store.meter.Rate` allows in its time
    may come at once. None switches a limit off.

    Example::

        Client(url, sample=think, limits=Limits(samplings=Rate(10, seconds=60)))

    Attributes:
        samplings: ``sampling/createMessage`` the server may ask for.
        samplings_in_flight: of which so many may be under way.
        elicitations: ``elicitation/create`` the server may ask for.
        elicitations_in_flight: of which so many may be waiting for the user.
        requests: requests of any kind the server may send, pings included.
        in_flight: of which so many may be under way.
        tasks: questions of both kinds that are answered as tasks, under way or kept for the server
            to fetch (2025-11-25, with ``answer_tasks=True``).
        task_ttl: seconds such a task is kept, from its creation, where the server does not say.
        max_task_ttl: the longest time that the server may ask for.
        task_poll: seconds that the server should wait before it asks again how one stands.
        conversation: messages in one sampling request.
        log_messages: log messages told; the rest is dropped, and counted in the log.
        waiting: notifications of one kind that wait for an async callback; the oldest make room.
        result_bytes: bytes of one result.
        pages: pages of one list.
        items: items of one list.
        page_wait: seconds that a call waits for the user to be done with a page elsewhere, after
            the server asked for one by an error (2025-11-25).
    """

    # spec 2025-11-25 client/sampling#security-considerations, client/elicitation#security-
    # considerations: clients SHOULD implement rate limiting
    samplings: Rate | None = Rate(120, 60.0)
    samplings_in_flight: int | None = 16
    elicitations: Rate | None = Rate(60, 60.0)
    elicitations_in_flight: int | None = 16
    requests: Rate | None = Rate(6_000_000, 60.0)
    in_flight: int | None = 1_000
    tasks: int | None = 1000
    task_ttl: float | None = 3600.0
    max_task_ttl: float | None = 86400.0
    task_poll: float = 1.0
    conversation: int | None = 2000
    log_messages: Rate | None = Rate(6_000_000, 60.0)
    waiting: int = 1000
    result_bytes: int | None = 256 * 1024 * 1024
    pages: int = 1000
    items: int = 1_000_000
    page_wait: float = 300.0


def check_limits(limits: object) -> Limits:
    """Check what was given as ``limits=``.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(limits, Limits):
        return limits
    raise UsageError(f"limits= takes isthmus.client.Limits(…), not {limits!r}")


OnProgress: TypeAlias = Callable[[ProgressParams], Awaitable[None] | None]
"""Called with each progress notification of a call, in order; an async one runs beside it."""


class ClientSettings(msgspec.Struct, frozen=True):
    """Times a client waits, and who it says it is; see ``Client`` for each."""

    info: Implementation
    revision: Revision | None = None
    timeout: float = 60.0
    max_timeout: float = 1800.0
    connect_timeout: float = 30.0
    probe_timeout: float | None = None
    max_rounds: int = 10
    log_level: LogLevel | None = None
    pings: tuple[float | None, int] = (None, 3)
    watch_roots: float | None = None
    progress: bool = False
    retries: Retries | None = None
    total_timeout: float | None = None
