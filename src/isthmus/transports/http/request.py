"""The parts of an HTTP request that the rules do not judge: its body, its path, all its headers."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from isthmus.transports.http.reply import Attended, Receive, Scope

__all__ = ["Headers", "TooLarge", "TooSlow", "Upload", "inner_path", "local_address"]


class Headers(Mapping[str, str]):
    """A request's headers for whoever wants to read them: a dictionary made when first used.

    Args:
        raw: all headers as they came, names in lower case.
    """

    __slots__ = ("_raw", "_read")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = raw
        self._read: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._read is None:
            self._read = {}
            for name, value in self._raw:
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


class Upload(Attended):
    """A request's body on its way in.

    Whole bodies that are there already, which most are, cost one look at the clock of the lookout;
    what is still on its way when that looks again is timed.

    Args:
        receive: the ASGI callable.
        scope: the ASGI scope; its Content-Length is believed where it says "too long".
        limit: the most bytes taken, however they come.
        idle: seconds from one piece to the next.
        total: seconds from the first to the last.
    """

    __slots__ = ("_end", "_heard", "_idle", "_limit", "_receive", "_scope", "_timer", "_total")

    def __init__(
        self, receive: Receive, scope: Scope, limit: int, idle: float, total: float
    ) -> None:
        self.task = asyncio.current_task()
        self._cut = False
        self._receive = receive
        self._scope = scope
        self._limit = limit
        self._idle = idle
        self._total = total
        self._end = self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def read(self) -> bytes | None:
        """The body, or None when the client left before its end.

        Raises:
            TooLarge: there is more of it than allowed.
            TooSlow: it took longer than allowed.
        """
        limit = self._limit
        try:
            message = await self._receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False):
                return await self._rest(body)
            if len(body) > limit:
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
        # Most bodies come in one piece; only for others does it pay to look what was announced.
        if _announced(self._scope) > self._limit:
            raise TooLarge
        parts, size, more = [body], len(body), True
        while more:
            if size > self._limit:
                raise TooLarge
            if self._timer is not None:
                self._heard = asyncio.get_running_loop().time()
            message = await self._receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
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
