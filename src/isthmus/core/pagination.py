"""Pagination: long lists in pages, and the cursors that lead from one page to the next.

A cursor names the last item its page held, not a position: while the list changes between two
pages, no item that stays is skipped or shown twice. For that a paged list is in the order of its
items' keys. A cursor carries a seal (HMAC-SHA256), so that the only cursors that work are those
a server with the same secret made, for the same list.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.errors import IsthmusError, UsageError

T = TypeVar("T")

_SEAL_BYTES = 16  # bytes: half of SHA-256, past guessing


class BadCursor(IsthmusError):
    """A cursor that this server did not make for this list; answer it with -32602."""


class ItemPage(NamedTuple, Generic[T]):
    """A part of a list.

    Attributes:
        items: what it holds.
        next_cursor: what leads to the page after it, or None on the last.
    """

    items: list[T]
    next_cursor: str | None


def paginate(
    items: Iterable[T],
    key: Callable[[T], str],
    *,
    cursor: str | None,
    size: int | None,
    secret: bytes,
    scope: str,
) -> ItemPage[T]:
    """The page that ``cursor`` leads to.

    Args:
        items: the whole list as it is now.
        key: what tells an item from all others: a name, a URI.
        cursor: what the other side sent, or None for the first page. The empty string is a
            cursor like any other (spec 2026-07-28 server/utilities/pagination).
        size: the most items a page may hold, or None for all in one page, in their own order.
        secret: what cursors are sealed with, the same on every server that answers for this
            list; 16 bytes or more.
        scope: which list it is, for example its method: cursors of other lists are refused.

    Raises:
        BadCursor: the cursor was made up, changed, or made for another list.
        UsageError: a page size below one.
    """
    if cursor is None and size is None:
        return ItemPage(list(items), None)
    ordered = sorted(items, key=key)
    return cut_page(ordered, key, cursor=cursor, size=size, secret=secret, scope=scope)


def cut_page(
    ordered: Sequence[T],
    key: Callable[[T], str],
    *,
    cursor: str | None,
    size: int | None,
    secret: bytes,
    scope: str,
) -> ItemPage[T]:
    """The page that ``cursor`` leads to, of a list that is in the order of its keys already.

    It looks at the items of the page and, to find where it begins, at a logarithm of the others.
    The arguments are those of :func:`paginate`.

    Raises:
        BadCursor: the cursor was made up, changed, or made for another list.
        UsageError: a page size below one.
    """
    if size is not None and size < 1:
        raise UsageError(f"a page holds one item or more, got a page size of {size}")
    start = (
        0 if cursor is None else bisect_right(ordered, _open_cursor(cursor, secret, scope), key=key)
    )
    end = len(ordered) if size is None else start + size
    page = list(ordered[start:end])
    more = end < len(ordered)
    return ItemPage(page, _seal_cursor(key(page[-1]), secret, scope) if more else None)


def _seal_cursor(key: str, secret: bytes, scope: str) -> str:
    data = key.encode("utf-8", "surrogatepass")
    return encode_base64url(_make_code(data, secret, scope) + data)


def _open_cursor(cursor: str, secret: bytes, scope: str) -> str:
    from hmac import compare_digest

    token = decode_base64url(cursor) or b""
    code, data = token[:_SEAL_BYTES], token[_SEAL_BYTES:]
    if not compare_digest(code, _make_code(data, secret, scope)):
        # spec 2026-07-28 server/utilities/pagination#error-handling: -32602, says the caller
        raise BadCursor("this cursor was not made by this server for this list")
    return data.decode("utf-8", "surrogatepass")


def _make_code(data: bytes, secret: bytes, scope: str) -> bytes:
    """The seal; the length keeps the end of the scope and the start of the data apart."""
    from hmac import digest

    name = scope.encode()
    return digest(secret, b"isthmus cursor 1 %d %b%b" % (len(name), name, data), "sha256")[
        :_SEAL_BYTES
    ]
