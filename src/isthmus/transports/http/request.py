"""The parts of an HTTP request that the rules do not judge: its body, its path, all its headers."""

from collections.abc import Iterable, Iterator, Mapping

from isthmus.transports.http.reply import Receive, Scope

__all__ = ["Headers", "TooLarge", "inner_path", "local_address", "read_body"]


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


async def read_body(receive: Receive, scope: Scope, limit: int) -> bytes | None:
    """Read a request's body.

    Args:
        receive: the ASGI callable.
        scope: the ASGI scope; its Content-Length is believed where it says "too long".
        limit: the most bytes taken, however they come.

    Returns:
        The body, or None when the client left before its end.

    Raises:
        TooLarge: there is more than ``limit``.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > limit:
            raise TooLarge
        return body if message["type"] == "http.request" else None
    # Most bodies come in one piece; only for others does it pay to look what was announced.
    if _announced(scope) > limit:
        raise TooLarge
    parts, size = [body], len(body)
    while message.get("more_body", False):
        if size > limit:
            raise TooLarge
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limit:
        raise TooLarge
    return b"".join(parts) if message["type"] == "http.request" else None


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
