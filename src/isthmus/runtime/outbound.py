"""Outbound calls: what one of them waits with, its parameters on the way out, its answer's decoder."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.errors import CallTimedOut, OutOfPhase
from isthmus.revisions import Revision, project
from isthmus.wire import ProgressParams
from isthmus.wire.jsonrpc import encode
from isthmus.wire.reading import forgiving_reader
from isthmus.wire.struct import Id, Wire

# That a client may take to say ``notifications/initialized`` once it is asked something.
HANDSHAKE_TIMEOUT_S = 5.0

HANDSHAKE_ELSEWHERE_S = 0.5  # the same, where it may be said to another process

MAX_UNCLAIMED_CALLS = 1_000  # that were given up, and whose results may still come

ProgressCallback = Callable[[ProgressParams], None]
"""Called with each progress notification of a call, in order."""

R = TypeVar("R")


class AwaitedCall(msgspec.Struct):
    """One of our calls, while it waits for its answer.

    Attributes:
        method: what was asked.
        future: gets the answer.
        on_progress: told of progress.
        sender: the caller's task as long as the channel has not taken the call.
        cancelling: how often that task had been cancelled before it called.
        cut: the sender was cancelled by us, because the call has ended before that.
    """

    method: str
    future: Any  # asyncio.Future[Raw]
    on_progress: ProgressCallback | None
    sender: Any  # asyncio.Task[Any] | None
    cancelling: int = 0
    cut: bool = False

    def was_cut(self, task: Any) -> bool:
        """Whether the caller's cancellation is ours alone; it is then taken back."""
        return self.cut and bool(task.uncancel() <= self.cancelling)


class UnclaimedCalls:
    """Our calls that were given up: a result that comes all the same may have begun what has to end.

    Args:
        tell: told of the method and the result of each; None keeps nothing.
    """

    __slots__ = ("_methods", "_tell")

    def __init__(self, tell: Callable[[str, Raw], None] | None = None) -> None:
        self._tell = tell
        self._methods: dict[Id, str] = {}

    def add(self, id: Id, call: AwaitedCall) -> None:
        """Take a call whose caller has stopped waiting; tell of its result now, or when it comes."""
        future, tell = call.future, self._tell
        if tell is None:
            return
        if not future.done() or future.cancelled() or isinstance(future.exception(), CallTimedOut):
            if len(self._methods) >= MAX_UNCLAIMED_CALLS:
                del self._methods[next(iter(self._methods))]
            self._methods[id] = call.method
        elif (
            future.exception() is None
        ):  # it came in the turn of the loop in which nobody wanted it
            tell(call.method, future.result())

    def take(self, id: Id, result: Raw) -> None:
        """A late result has come; nothing happens where its caller has had an answer before."""
        method = self._methods.pop(id, None)
        if method is not None and self._tell is not None:
            self._tell(method, result)


async def wait_until_open(peer: Any, method: str) -> None:
    """Hold a request back until the client's handshake has ended, or its connection has.

    Raises:
        OutOfPhase: it does not end.
    """
    if method == "ping":
        return
    if peer.opening is None:
        peer.opening = asyncio.Event()
        peer.on_close(peer.opening.set)
    # spec 2025-11-25 basic/lifecycle#initialization: a server SHOULD NOT send anything but pings
    # and logging before; the word may be on its way beside the call that asks
    elsewhere = getattr(type(peer.channel), "opens_elsewhere", False)
    try:
        timeout = HANDSHAKE_ELSEWHERE_S if elsewhere else HANDSHAKE_TIMEOUT_S
        await asyncio.wait_for(peer.opening.wait(), timeout)
    except TimeoutError:
        if elsewhere:
            return  # another process has heard it, as far as anybody here can tell
        raise OutOfPhase(
            f"cannot call {method}: the client has not said notifications/initialized"
        ) from None


def first_timeout(timeout: float | None, max_timeout: float | None) -> float | None:
    """Seconds until a call with these limits may first expire, or None."""
    if timeout is None or max_timeout is None:
        return max_timeout if timeout is None else timeout
    return min(timeout, max_timeout)


def add_progress_token(params: Wire | None, token: Id) -> Wire | None:
    """``params`` asking for progress under ``token``."""
    if params is None or not hasattr(params, "meta"):
        return params
    meta: Any = params.meta
    return structs.replace(params, meta={**(meta or {}), "progressToken": token})


def encode_params(params: Wire | None, revision: Revision) -> bytes | None:
    """Parameters as JSON, cut to a revision."""
    return None if params is None else encode(project(params, revision))


_DECODERS: dict[Any, Callable[[Raw], Any]] = {}


def make_decoder(result: type[R]) -> Callable[[Raw], R]:
    """The decoder of a type of answer, made once."""
    read = _DECODERS.get(result)
    if read is None:
        read = _DECODERS[result] = forgiving_reader(result)
    return read
