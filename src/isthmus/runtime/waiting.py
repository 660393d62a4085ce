"""What our calls wait with, and the small things they need on the way out and in."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.wire.base import Id, Wire
from isthmus.wire.reading import forgiving

__all__ = ["Waiting", "decoder", "earliest", "with_token"]

R = TypeVar("R")


class Waiting(msgspec.Struct):
    """What one of our calls is waiting with.

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
    on_progress: Any  # ProgressCallback | None
    sender: Any  # asyncio.Task[Any] | None
    cancelling: int = 0
    cut: bool = False

    def was_cut(self, task: Any) -> bool:
        """Whether the caller's cancellation is ours alone; it is then taken back."""
        return self.cut and bool(task.uncancel() <= self.cancelling)


def earliest(timeout: float | None, max_timeout: float | None) -> float | None:
    """Seconds until a call with these limits may first expire, or None."""
    if timeout is None or max_timeout is None:
        return max_timeout if timeout is None else timeout
    return min(timeout, max_timeout)


def with_token(params: Wire | None, token: Id) -> Wire | None:
    """``params`` asking for progress under ``token``."""
    if params is None or not hasattr(params, "meta"):
        return params
    meta: Any = params.meta
    return structs.replace(params, meta={**(meta or {}), "progressToken": token})


_readers: dict[Any, Callable[[Raw], Any]] = {}


def decoder(result: type[R]) -> Callable[[Raw], R]:
    """The decoder of a type of answer, made once."""
    read = _readers.get(result)
    if read is None:
        read = _readers[result] = forgiving(result)
    return read
