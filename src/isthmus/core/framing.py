r"""Newline framing: a byte stream in, whole lines out.

stdio and plain sockets put one JSON-RPC message on each line. A reader gets the bytes cut
anywhere, so :class:`LineSplitter` keeps the unfinished line and hands out the finished ones. What comes
out depends on the bytes alone, never on how they were cut, and every byte is copied a fixed
number of times, so a line of many pieces costs no more than the same line in one piece.
"""

import msgspec


class Oversize(msgspec.Struct, frozen=True, gc=False):
    """Stands where something too long to keep was thrown away.

    Attributes:
        size: how many bytes it had; where its end was not waited for, how many had come.
    """

    size: int


class LineSplitter:
    r"""Cuts a stream of bytes into lines of bounded length.

    A line ends with ``\n``, and a ``\r`` before it is not part of it. Lines of blanks alone are
    skipped. A line longer than the limit is thrown away as it comes in and reported once, where
    it ends; the lines after it are unharmed.

    Example:
        >>> lines = Lines(limit=1024)
        >>> lines.feed(b'{"a":1}\n{"b"')
        [b'{"a":1}']
        >>> lines.feed(b":2}\r\n")
        [b'{"b":2}']

    Args:
        limit: the most bytes a line may have, a ``\r`` included and the ``\n`` not.
    """

    __slots__ = ("_held", "_limit", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines that ``data`` completes, in order."""
        if self._size and b"\n" not in data:  # looked for much faster than by cutting
            self._hold(data)
            return []
        pieces = data.split(b"\n")
        last = pieces.pop()
        if not self._size and len(data) <= self._limit and b"\r" not in data:
            # nearly every chunk: nothing in it can be too long, or need more than cutting
            if last:
                self._hold(last)
            if len(pieces) == 1 and pieces[0][:1] == b"{":
                return pieces  # type: ignore[return-value]  # a list of one, which nobody else has
            return [line for line in pieces if line and not line.isspace()]
        lines: list[bytes | Oversize] = []
        for piece in pieces:
            self._hold(piece)
            lines += self._take()
        self._hold(last)
        return lines

    @property
    def overlong(self) -> int:
        """The bytes of the unfinished last line, where it is too long already; 0 where it is not."""
        return self._size if self._size > self._limit else 0

    def rest(self) -> bytes:
        """The unfinished last line, empty where there is none or it was too long; forgets it."""
        return b"".join(line for line in self._take() if isinstance(line, bytes))

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._held.clear()
        elif piece:
            self._held.append(piece)

    def _take(self) -> list[bytes | Oversize]:
        """End the held line: nothing, the line, or what stands for it."""
        line, size = b"".join(self._held), self._size
        self._held.clear()
        self._size = 0
        if size > self._limit:
            return [Oversize(size)]
        return [line.removesuffix(b"\r")] if line and not line.isspace() else []
