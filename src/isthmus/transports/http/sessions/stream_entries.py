"""Entries of a stream in the log that nodes share: a message, and what another node has to know.

Each entry says what it is, and which requests its stream answers: a node that finds the producer of
the stream dead can tell whoever waits, also where older entries are not kept any more.
"""

from typing import NamedTuple

import msgspec

from isthmus.store.log import Forgotten
from isthmus.wire.struct import Id

OPENING = b"o"  # the stream begins: sent as an event that has nothing but an id
MESSAGE = b"m"
LAST = b"l"  # a message, and the end of the stream
END = b"e"  # the end of the stream, without a message
CONTINUED = b"c"  # a standing stream goes on as another, whose name is the message

KINDS = frozenset((OPENING, MESSAGE, LAST, END, CONTINUED))
ENDS = frozenset((LAST, END, CONTINUED))

MAX_CALLS_BYTES = (
    4096  # of the ids of requests in each entry; the ids of a longer list are left out
)

_encode_calls = msgspec.json.Encoder().encode
_decode_calls = msgspec.json.Decoder(tuple[Id, ...] | None).decode


class StreamEntry(NamedTuple):
    """One entry.

    Attributes:
        kind: one of :data:`KINDS`.
        calls: ids of the requests that the stream answers; None of a standing stream.
        message: the message, or nothing.
    """

    kind: bytes
    calls: tuple[Id, ...] | None
    message: bytes


def encode_calls(calls: tuple[Id, ...] | None) -> bytes:
    """The ids of the requests that a stream answers, as each of its entries has them."""
    encoded = _encode_calls(calls)
    return encoded if len(encoded) <= MAX_CALLS_BYTES else b"[]"


def encode_entry(kind: bytes, calls: bytes, message: bytes) -> bytes:
    """An entry for the log.

    Args:
        kind: one of :data:`KINDS`.
        calls: from :func:`encode_calls`.
        message: the message, or nothing.
    """
    return b"%b%b\n%b" % (kind, calls, message)


def decode_entry(value: bytes) -> StreamEntry:
    """An entry of the log.

    Raises:
        Forgotten: it is none of ours, so that the stream cannot be told.
    """
    calls, line_end, message = value[1:].partition(b"\n")
    if line_end and value[:1] in KINDS:
        try:
            return StreamEntry(value[:1], _decode_calls(calls), message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    raise Forgotten("the log has an entry that no node wrote")
