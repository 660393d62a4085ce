"""Streams of ``mcp``'s client transports: tokens that only :class:`ClientSession` opens."""

from collections.abc import Mapping
from typing import Any

from isthmus.errors import UsageError


class ServerStream:
    """Stream to or from a server; isthmus' client reads and writes it itself.

    Args:
        name: of the stream.
        target: where isthmus' client connects to.
        headers: sent with every request over HTTP.
        auth: gets the tokens that a server over HTTP wants; None for none.

    Attributes:
        client: the client that was opened by it, or None.
    """

    def __init__(
        self,
        name: str,
        target: Any,
        headers: Mapping[str, str] | None = None,
        auth: Any = None,
    ) -> None:
        self.name = name
        self.target = target
        self.headers = headers
        self.auth = auth
        self.client: Any = None

    def __getattr__(self, attribute: str) -> Any:
        """Say what to do instead.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(
            f"the {self.name} stream of a client is for ClientSession alone in isthmus, and has no "
            f"{attribute!r}: use isthmus.Client, see docs/guide/compat.md"
        )


def make_streams(
    target: Any, headers: Mapping[str, str] | None = None, auth: Any = None
) -> tuple[ServerStream, ServerStream]:
    """The two streams of a target, for ``ClientSession(read, write)``."""
    read = ServerStream("read", target, headers, auth)
    return read, ServerStream("write", target, headers, auth)


def check_stream(stream: Any) -> ServerStream:
    """The stream that a session was given.

    Raises:
        UsageError: it is of another transport than the façades'.
    """
    if isinstance(stream, ServerStream):
        return stream
    raise UsageError(
        f"ClientSession opens the streams of isthmus' own transports, and {type(stream).__name__} is none: "
        "use stdio_client, streamable_http_client or sse_client, or isthmus.Client"
    )


def check_auth(auth: Any) -> Any:
    """What gets the tokens for a server over HTTP.

    Raises:
        TypeError: it is another library's.
    """
    if auth is None or hasattr(auth, "over"):
        return auth
    raise TypeError(
        f"auth={type(auth).__name__}(…) makes requests of httpx, and isthmus makes its own: give isthmus.auth.OAuth(…), "
        "or headers with a token; see docs/guide/auth-clients.md"
    )
