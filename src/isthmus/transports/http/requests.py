"""The five things needed of an HTTP client, and aiohttp doing them.

Nothing else in isthmus knows which library makes the requests: :class:`Requests` sends one and is
closed in the end; the :class:`Response` is read whole, read in pieces, or closed. Whoever wants
another library, or a network guard in between, writes these five methods.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from isthmus.errors import ConnectionLost, Misbehaved

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Requests", "Response", "connect"]


class Response(Protocol):
    """The answer to one HTTP request: its head is here, its body may still be on its way.

    Attributes:
        status: the HTTP status code.
        headers: case-insensitive by name.
    """

    status: int
    headers: Mapping[str, str]

    async def read(self, limit: int) -> bytes:
        """The whole body, decompressed.

        Raises:
            Misbehaved: it has more than ``limit`` bytes.
            ConnectionLost: it broke off.
        """
        ...

    async def piece(self) -> bytes:
        """The next piece of the body as it arrives; empty at its end.

        Raises:
            ConnectionLost: it broke off.
        """
        ...

    def close(self) -> None:
        """Let go of it; a body not read to its end takes its connection along."""
        ...


class Requests(Protocol):
    """Makes HTTP requests to one server, on connections it keeps."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request and wait for the head of the response; redirects are not followed.

        Raises:
            ConnectionLost: no connection, or it ended before the response; says which.
        """
        ...

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        ...


def connect(*, connect_timeout: float) -> Requests:
    """Requests made by aiohttp, which is imported by this call and not earlier.

    Args:
        connect_timeout: seconds until a connection counts as failed. Nothing else is timed here:
            who waits for an answer knows how long.
    """
    import aiohttp

    # No limit: each call in flight and each stream holds a connection of its own.
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=connect_timeout),
    )
    # RuntimeError is what reading from a closed connection, or sending after the end, raises.
    return AiohttpRequests(session, (aiohttp.ClientError, OSError, ValueError, RuntimeError))


class AiohttpRequests:
    """:class:`Requests` on an aiohttp session.

    Args:
        session: makes the requests; closed with this.
        faults: what its methods raise when something goes wrong.
    """

    def __init__(
        self, session: "aiohttp.ClientSession", faults: tuple[type[Exception], ...]
    ) -> None:
        self._session = session
        self._faults = faults

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> "AiohttpResponse":
        """Send a request and wait for the head of the response."""
        try:
            response = await self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            )
        except self._faults as error:
            raise ConnectionLost(f"{method} {url}: {said(error)}{hint(error)}") from error
        return AiohttpResponse(response, self._faults)

    async def close(self) -> None:
        """Close every connection, and let the loop finish closing their sockets."""
        if self._session.closed:
            return
        await self._session.close()
        await asyncio.sleep(0)


class AiohttpResponse:
    """:class:`Response` around an aiohttp response."""

    __slots__ = ("_faults", "_response", "headers", "status")

    def __init__(
        self, response: "aiohttp.ClientResponse", faults: tuple[type[Exception], ...]
    ) -> None:
        self._response = response
        self._faults = faults
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, limit: int) -> bytes:
        """The whole body: in one go where its length is known beforehand."""
        length = self.headers.get("Content-Length", "")
        if length.isdigit() and "Content-Encoding" not in self.headers:
            self._bound(int(length), limit)
            try:
                return await self._response.read()
            except self._faults as error:
                raise self._broken(error) from error
        pieces: list[bytes] = []
        size = 0
        while piece := await self.piece():
            size += len(piece)
            self._bound(size, limit)
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """The next piece of the body as it arrives; empty at its end."""
        try:
            return await self._response.content.readany()
        except self._faults as error:
            raise self._broken(error) from error

    def close(self) -> None:
        """Let go of it."""
        self._response.close()

    def _bound(self, size: int, limit: int) -> None:
        if size > limit:
            self.close()
            raise Misbehaved(
                f"the answer of {self._response.url} has more than {limit} bytes, "
                "which is as much as this client takes"
            )

    def _broken(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"the answer of {self._response.url} broke off: {said(error)}")


def said(error: Exception) -> str:
    """An exception in words: the system's where it comes from there; some of aiohttp's have none."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return str(cause.strerror)
    # The numbers of TLS errors are not the system's.
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__


def hint(error: Exception) -> str:
    """What to look at first, after an exception where that is known."""
    cause = getattr(error, "os_error", error)
    refused = getattr(cause, "errno", None) == errno.ECONNREFUSED
    return ": is a server running there?" if refused else ""
