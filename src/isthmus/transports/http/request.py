"""The parts of an HTTP request that the rules do not judge: its body, its path, all its headers."""

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeAlias, TypeVar

from isthmus.transports.http.reply import Attended, Receive, Scope

__all__ = ["Begun", "Headers", "Message", "OverBudget", "TooLarge", "TooSlow", "Upload",
           "UploadBudget", "begun", "inner_path", "local_address"]  # fmt: skip

T = TypeVar("T")
Message: TypeAlias = MutableMapping[str, Any]


CREDENTIALS = frozenset({b"authorization", b"dpop"})
"""What proves who sends a request."""


class Headers(Mapping[str, str]):
    """A request's headers for whoever wants to read them: a dictionary made when first used.

    Args:
        raw: all headers as they came, names in lower case.
        bare: without credentials: somebody has judged them, and whoever reads on needs none.
    """

    __slots__ = ("_bare", "_raw", "_read")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], *, bare: bool = False) -> None:
        self._raw = raw
        self._bare = bare
        self._read: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for name, value in self._raw:
                # spec 2025-11-25 basic/authorization#access-token-privilege-restriction: MUST NOT
                # pass through the token; what no handler has, is handed to nobody
                if self._bare and name in CREDENTIALS:
                    continue
                key, text = name.decode("latin-1"), value.decode("latin-1")
                self._read[key] = f"{self._read[key]}, {text}" if key in self._read else text
        return self._read

    def __getitem__(self, name: str) -> str:
        return self._all()[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class TooLarge(Exception):
    """A body longer than allowed; raised as soon as that is known."""


class TooSlow(Exception):
    """A body that took longer than allowed, as a whole or from one piece to the next."""


class Begun(Generic[T]):
    """Something that was begun, had to wait, and is still to be awaited: once.

    Args:
        steps: its steps, as ``__await__`` gives them.
        wanted: what it waits for.
    """

    __slots__ = ("_steps", "_wanted")

    def __init__(self, steps: Generator[Any, Any, T], wanted: Any) -> None:
        self._steps = steps
        self._wanted = wanted

    def __await__(self) -> Generator[Any, Any, T]:
        wanted = self._wanted
        while True:
            try:
                yield wanted
                break
            except BaseException as error:
                throw = getattr(self._steps, "throw", None)  # not every server's steps have it
                if throw is None:
                    raise
                try:
                    wanted = throw(error)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]  # what the steps give
        return (yield from self._steps)


def begun(something: Awaitable[T]) -> T | Begun[T]:
    """What something gives if it need not wait for that; otherwise what remains of it to await.

    It tells which of the two it is, which an ``await`` does not.
    """
    steps = something.__await__()
    try:
        wanted = next(steps)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the steps give
    return Begun(steps, wanted)


class OverBudget(Exception):
    """All bodies on their way in are together more than is kept of them."""


class UploadBudget:
    """The bytes that unfinished bodies may take, of all connections together.

    Args:
        limit: so many.
    """

    __slots__ = ("_limit", "_used")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0

    def take(self, size: int) -> None:
        """Keep so many bytes more.

        Raises:
            OverBudget: that is too many; they are counted, and are to be given back.
        """
        self._used += size
        if self._used > self._limit:
            raise OverBudget

    def give_back(self, size: int) -> None:
        """Keep so many bytes less."""
        self._used -= size


class Upload(Attended):
    """A request's body on its way in: one that is not there as a whole yet, and so is timed.

    Args:
        first: the first piece, if it is there.
        receive: the ASGI callable.
        scope: the ASGI scope; its Content-Length is believed where it says "too long".
        limit: the most bytes taken, however they come.
        budget: the bytes that all bodies may take while they come.
        idle: seconds from one piece to the next.
        total: seconds from the first to the last.

    Attributes:
        is_open: there is more to come.
    """

    __slots__ = (
        "_budget",
        "_end",
        "_first",
        "_heard",
        "_idle",
        "_limit",
        "_receive",
        "_scope",
        "_timer",
        "_total",
        "is_open",
    )  # fmt: skip

    def __init__(
        self,
        first: Message | Begun[Message],
        receive: Receive,
        scope: Scope,
        limit: int,
        budget: UploadBudget,
        *,
        idle: float,
        total: float,
    ) -> None:
        super().__init__()
        self.is_open = True
        self._first = first
        self._receive = receive
        self._scope = scope
        self._limit = limit
        self._budget = budget
        self._idle = idle
        self._total = total
        self._end = self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes | None:
        """The body, or None when the client left before its end.

        Raises:
            TooLarge: there is more of it than allowed.
            TooSlow: it took longer than allowed.
            OverBudget: there are too many bodies on their way.
        """
        try:
            first = self._first
            message = await first if isinstance(first, Begun) else first
            body: bytes = message.get("body", b"")
            if message.get("more_body", False):
                return await self._rest(body)
            self.is_open = False
            if len(body) > self._limit:
                raise TooLarge
            return body if message["type"] == "http.request" else None
        except asyncio.CancelledError:
            if not self.was_cut():
                raise
            raise TooSlow from None
        finally:
            self.task = None
            if self._timer is not None:
                self._timer.cancel()

    async def _rest(self, body: bytes) -> bytes | None:
        """What comes in pieces."""
        # Only for bodies in pieces does it pay to look what was announced.
        if _announced(self._scope) > self._limit:
            raise TooLarge
        parts, size, more = [body], len(body), True
        try:
            self._budget.take(size)
            while more:
                if size > self._limit:
                    raise TooLarge
                if self._timer is not None:
                    self._heard = asyncio.get_running_loop().time()
                message = await self._receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                self._budget.take(len(parts[-1]))
                self.is_open = more = message.get("more_body", False)
        finally:
            self._budget.give_back(size)
        if size > self._limit:
            raise TooLarge
        return b"".join(parts) if message["type"] == "http.request" else None

    def linger(self, loop: asyncio.AbstractEventLoop) -> None:
        """It was not there at once: it is timed from now on."""
        self._heard = loop.time()
        self._end = self._heard + self._total
        self._timer = loop.call_at(min(self._end, self._heard + self._idle), self._late, loop)

    def _late(self, loop: asyncio.AbstractEventLoop) -> None:
        due = min(self._end, self._heard + self._idle)
        if due <= loop.time():
            self.cut()
        else:
            self._timer = loop.call_at(due, self._late, loop)


def _announced(scope: Scope) -> int:
    """The body's length as its head gives it; 0 where it does not."""
    lengths = [int(v) for name, v in scope["headers"] if name == b"content-length" and v.isdigit()]
    return max(lengths, default=0)


def inner_path(scope: Scope) -> str:
    """The path below the prefix that an app is mounted under, without a slash at its end.

    Frameworks differ in whether ``scope["path"]`` begins with ``scope["root_path"]``; since the
    ASGI specification settled it, it does. Both are understood.
    """
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "").rstrip("/")
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
        path = path[len(prefix) :]
    return path.rstrip("/")


def local_address(scope: Scope) -> str:
    """The address of ours that a request came in on, or "" where the server does not say."""
    server = scope.get("server")
    return server[0] or "" if server else ""
