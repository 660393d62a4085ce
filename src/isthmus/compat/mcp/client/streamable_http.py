"""``streamable_http_client`` of ``mcp``: the way to a server over Streamable HTTP."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from isthmus.compat.mcp.client.streams import ServerStream, check_auth, make_streams
from isthmus.compat.mcp.lowlevel import find_library_version

# Headers that an HTTP client of httpx sends by itself.
OWN_HEADERS = frozenset({"accept", "accept-encoding", "connection", "user-agent"})


@asynccontextmanager
async def streamable_http_client(
    url: str, *, http_client: Any = None, terminate_on_close: bool = True, **_: Any
) -> AsyncIterator[tuple[Any, ...]]:
    """Give the streams for ``ClientSession``, and in 1.x a function that gives the id of the session.

    Args:
        url: the endpoint.
        http_client: its headers are sent; isthmus makes the requests itself.
        terminate_on_close: not heeded; the session is ended.

    Raises:
        TypeError: the HTTP client has an ``auth`` of its own.
    """
    del terminate_on_close
    headers: dict[str, str] = {}
    if http_client is not None:
        check_auth(http_client.auth)
        headers = {
            name: value
            for name, value in http_client.headers.items()
            if name.lower() not in OWN_HEADERS
        }
    read, write = make_streams(url, headers)
    # 1.x gives three values, 2.x two; a program is written for the one that is installed.
    if find_library_version().startswith("1."):
        yield read, write, make_id_getter(read)
    else:
        yield read, write


@asynccontextmanager
async def streamablehttp_client(
    url: str,
    headers: Mapping[str, str] | None = None,
    timeout: Any = 30,
    sse_read_timeout: Any = 300,
    terminate_on_close: bool = True,
    httpx_client_factory: Any = None,
    auth: Any = None,
) -> AsyncIterator[tuple[Any, Any, Any]]:
    """Give the streams for ``ClientSession`` and a function that gives the id of the session, as 1.x does.

    Args:
        url: the endpoint.
        headers: sent with every request.
        timeout: not heeded; ``read_timeout_seconds`` of the session is.
        sse_read_timeout: not heeded, as above.
        terminate_on_close: not heeded; the session is ended.
        httpx_client_factory: not heeded; isthmus makes the requests itself.
        auth: one of isthmus.auth.

    Raises:
        TypeError: ``auth`` is another library's.
    """
    del timeout, sse_read_timeout, terminate_on_close, httpx_client_factory
    read, write = make_streams(url, headers, check_auth(auth))
    yield read, write, make_id_getter(read)


def make_id_getter(stream: ServerStream) -> Callable[[], str | None]:
    """A function that gives the id of the session that was opened by a stream; None while there is none."""

    def get_session_id() -> str | None:
        client = stream.client
        peer = None if client is None else client.connection.peer
        found: str | None = getattr(getattr(peer, "channel", None), "session_id", None)
        return found

    return get_session_id
