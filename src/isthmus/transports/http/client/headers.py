"""HTTP/1.1 heads of a client: the request's as bytes, the response's headers as they came."""

import re
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

D = TypeVar("D")

# RFC 9110 5.6.2: what a method and the name of a header are made of
TOKEN_PATTERN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# RFC 9110 5.5: CR, LF and NUL in a value are invalid and dangerous
FORBIDDEN_PATTERN = re.compile("[\r\n\0]")

# Methods whose requests say how long their body is even where they have none (RFC 9110 8.6)
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})

DEFAULT_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "user-agent": "isthmus",
}


def encode_request_head(method: str, target: str, host: str, headers: Mapping[str, str]) -> bytes:
    """A request's head without the length of its body, and without the empty line at its end.

    What every request carries is added where the headers do not name it. The length is the body's
    own: a ``Content-Length`` among the headers is left out.

    Args:
        method: of HTTP.
        target: path and query.
        host: what ``Host`` says.
        headers: as they are to be sent.

    Raises:
        ValueError: there is something in it that would end a line, or it names a transfer coding.
    """
    names = {name.lower() for name in headers}
    if "transfer-encoding" in names:
        raise ValueError("a request is sent with its length: leave out Transfer-Encoding")
    lines = [f"{check_token(method, 'method')} {check_value(target, 'target')} HTTP/1.1"]
    if "host" not in names:  # RFC 9112 3.2: a client MUST send it
        lines.append(f"Host: {check_value(host, 'host')}")
    for name, value in headers.items():
        if name.lower() != "content-length":
            lines.append(f"{check_token(name, 'header name')}: {check_value(value, name)}")
    lines.extend(f"{name}: {value}" for name, value in DEFAULT_HEADERS.items() if name not in names)
    return "\r\n".join([*lines, ""]).encode()


def encode_body_length(method: str, body: bytes | None) -> bytes:
    """The end of a request's head: the length of its body, and the empty line."""
    if body is None:
        return b"content-length: 0\r\n\r\n" if method in BODY_METHODS else b"\r\n"
    return b"content-length: %d\r\n\r\n" % len(body)


def check_token(text: str, what: str) -> str:
    """The text, if it is one token of HTTP.

    Raises:
        ValueError: it is not.
    """
    if not TOKEN_PATTERN.fullmatch(text):
        raise ValueError(f"{text!r} is no {what} of HTTP")
    return text


def check_value(text: str, what: str) -> str:
    """The text, if it stays on its line.

    Raises:
        ValueError: it does not.
    """
    if FORBIDDEN_PATTERN.search(text):
        raise ValueError(f"a line break or NUL is in {what}, where it would begin another header")
    return text


class ResponseHeaders(Mapping[str, str]):
    """Headers of a response: bytes as they came, decoded when somebody asks.

    Names are case-insensitive, and given in lower case. Where a name came several times, looking
    it up gives the first value, and ``items`` has all of them.

    Args:
        pairs: names in lower case, and values.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def __getitem__(self, name: str) -> str:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (decode_field(name) for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"  # values may be secrets

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, /, default: str | D) -> str | D: ...

    def get(self, name: str, /, default: Any = None) -> Any:
        """The first value of a name."""
        wanted = name.lower().encode("utf-8", "surrogateescape")
        for key, value in self._pairs:
            if key == wanted:
                return decode_field(value)
        return default

    def items(self) -> ItemsView[str, str]:
        """Names and values; a name as often as it came."""
        return HeaderItems(self)

    def iterate_pairs(self) -> Iterator[tuple[str, str]]:
        """Iterate over names and values, a name as often as it came."""
        return ((decode_field(name), decode_field(value)) for name, value in self._pairs)


class HeaderItems(ItemsView[str, str]):
    """The items of :class:`ResponseHeaders`, repeated names and all."""

    _mapping: ResponseHeaders

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self._mapping.iterate_pairs()


def decode_field(data: bytes) -> str:
    """Bytes of a head as text; what is no UTF-8 survives as surrogates."""
    return data.decode("utf-8", "surrogateescape")
