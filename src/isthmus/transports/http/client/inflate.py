"""Compressed bodies (gzip, deflate), unpacked in bounded pieces, so that a bomb stays packed."""

from typing import Protocol

# The most bytes that come out at once, however small they were when packed
MAX_INFLATED_PIECE_BYTES = 256 * 1024

GZIP_CODINGS = frozenset({"gzip", "x-gzip"})  # RFC 9110 8.4.1.3: the same


class Inflater(Protocol):
    """What zlib's decompressors have."""

    @property
    def eof(self) -> bool:
        """Whether the data have come to their end."""
        ...

    @property
    def unconsumed_tail(self) -> bytes:
        """What was not unpacked yet, since too much would have come out."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows the end of the data."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Unpack as much as may come out at once."""
        ...


class PackedBody:
    """A compressed body on its way.

    Args:
        coding: as ``Content-Encoding`` names it, in lower case.

    Raises:
        ValueError: it is a coding that was not asked for.
    """

    __slots__ = ("_coding", "_data", "_full", "_inflater")

    def __init__(self, coding: str) -> None:
        if coding not in GZIP_CODINGS and coding != "deflate":
            raise ValueError(f"it is encoded as {coding[:80]!r}, which was not asked for")
        self._coding = coding
        self._data = b""
        self._full = False  # the last piece was as long as may be: there may be more within
        self._inflater: Inflater | None = None

    def feed(self, data: bytes) -> None:
        """Add what has arrived."""
        self._data += data

    def take(self) -> bytes:
        """The next piece; empty where more has to arrive first.

        Raises:
            ValueError: it is not what its coding says.
        """
        while self._data or self._full:
            inflater = self._inflater = self._inflater or self._make_inflater()
            piece = self._unpack(inflater)
            self._full = len(piece) == MAX_INFLATED_PIECE_BYTES
            self._data = inflater.unconsumed_tail
            if inflater.eof:
                self._data, self._full = inflater.unused_data, False
                self._inflater = None  # RFC 1952 2.2: another member may follow
                if self._data and self._coding not in GZIP_CODINGS:
                    raise ValueError("something follows its deflate data")
            if piece:
                return piece
        return b""

    def finish(self) -> None:
        """See that nothing is missing, at the end of the body.

        Raises:
            ValueError: something is.
        """
        if self._inflater is not None:
            raise ValueError(f"its {self._coding} data end too early")

    def _unpack(self, inflater: Inflater) -> bytes:
        import zlib

        try:
            return inflater.decompress(self._data, MAX_INFLATED_PIECE_BYTES)
        except zlib.error:
            raise ValueError(f"its {self._coding} data are damaged") from None

    def _make_inflater(self) -> Inflater:
        import zlib

        if self._coding in GZIP_CODINGS:
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        # RFC 9110 8.4.1.2: the zlib format, which some servers leave out around the data
        wrapped = self._data[0] & 0x0F == 8
        return zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
