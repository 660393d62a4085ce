"""``sse_client`` of ``mcp``: the way to a server over HTTP+SSE, the transport of 2024-11-05."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from isthmus.compat.mcp.client.streams import check_auth, make_streams
from isthmus.transports.http.client.address import HttpSse


@asynccontextmanager
async def sse_client(
    url: str,
    headers: Mapping[str, str] | None = None,
    timeout: float = 5,
    sse_read_timeout: float = 300,
    httpx_client_factory: Any = None,
    auth: Any = None,
    on_session_created: Any = None,
) -> AsyncIterator[tuple[Any, Any]]:
    """Give the streams for ``ClientSession``.

    Args:
        url: the endpoint.
        headers: sent with every request.
        timeout: not heeded; ``read_timeout_seconds`` of the session is.
        sse_read_timeout: not heeded, as above.
        httpx_client_factory: not heeded; isthmus makes the requests itself.
        auth: one of isthmus.auth.
        on_session_created: not heeded.

    Raises:
        TypeError: ``auth`` is another library's.
    """
    del timeout, sse_read_timeout, httpx_client_factory, on_session_created
    yield make_streams(HttpSse(url), headers, check_auth(auth))
