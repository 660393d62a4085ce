"""JSON-RPC 2.0 frames: bytes in, one struct out, and back.

One :class:`Frame` stands for requests, notifications, answers and errors; which of them it is
follows from the members present. ``params`` and ``result`` stay raw bytes until somebody knows
their type, so that every message is decoded exactly once.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.wire.struct import Id, Wire

encode = msgspec.json.Encoder().encode
"""Any wire struct, or plain data, as JSON bytes."""

decode = msgspec.json.decode


class ErrorBody(Wire, frozen=True, kw_only=True):
    """The ``error`` member of a JSON-RPC answer.

    Attributes:
        code: JSON-RPC code; those from -32768 to -32000 are reserved.
        message: one sentence.
        data: details, any JSON.
    """

    code: int
    message: str
    data: Any = UNSET


class Frame(msgspec.Struct, frozen=True):
    """One JSON-RPC message as it came in."""

    jsonrpc: str = ""
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorBody | UnsetType = UNSET


class Unreadable(msgspec.Struct, frozen=True):
    """Bytes that are no JSON-RPC message: how to refuse them, and their id if one was legible."""

    code: int
    message: str
    id: Id | None = None


class ArrayMember(msgspec.Struct, frozen=True, gc=False):
    """The member that each message in an array has."""

    jsonrpc: str


class IdMember(msgspec.Struct, frozen=True, gc=False):
    """The member that is read of a message that is none."""

    id: Raw = Raw(b"")


_decode_frame = msgspec.json.Decoder(Frame).decode
_decode_frames = msgspec.json.Decoder(list[Raw]).decode
_check_members = msgspec.json.Decoder(list[ArrayMember]).decode
_decode_id_member = msgspec.json.Decoder(IdMember).decode

MAX_QUOTED_CHARS = 200
MAX_REPEATED_CHARS = 100
UTF8_PIECE_BYTES = 64 * 1024

MAX_LENIENT_BYTES = 64 * 1024  # bytes of an array whose members are each refused by themselves

MAX_ID_BYTES = 64 * 1024  # bytes of an id that is repeated with a refusal


def parse(data: bytes) -> Frame | Unreadable | Sequence[Raw]:
    """Read one message; never raises.

    Args:
        data: UTF-8 bytes of one JSON value.

    Returns:
        A checked frame; or, for a JSON array, its members unread (a 2025-03-26 batch); or
        what to refuse the bytes with.
    """
    try:
        frame = _decode_frame(data)
    except msgspec.ValidationError as error:
        return _read_misshapen(data, error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Unreadable(-32700, f"Parse error: {_describe_error(error)}")
    said, id = frame.method is not UNSET, frame.id
    answers = frame.result is not UNSET and frame.error is UNSET and id is not UNSET
    if frame.jsonrpc == "2.0" and id is not None and (said or answers):
        pass  # it is as it should be
    elif flaw := _find_flaw(frame):
        legible = id if isinstance(id, int | str) else None
        return Unreadable(-32600, f"Invalid request: {flaw}", legible)
    if not data.isascii() and frame.method is not UNSET:
        # spec 2026-07-28 basic/transports: messages MUST be UTF-8 encoded. What stays raw was not
        # looked at yet; an answer is, by whoever waits for it and is told.
        return _refuse_malformed_utf8(data) or frame
    return frame


def find_answered_id(data: bytes) -> Id | None:
    """The id of the call that an unreadable message is the answer to; None where it is not clear.

    Looked for where it stands in what is written by programs: before the result or the error, or at
    the end behind it. A request of the other side has a method there.
    """
    found = _ID_BEFORE.match(data)
    if found is None and _ANSWER_FIRST.match(data):
        found = _ID_BEHIND.search(data, max(0, len(data) - MAX_TAIL_BYTES))
    return None if found is None else _decode_id(found[1])


_VERSION_PATTERN = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID_PATTERN = rb'"id"\s*:\s*(0|[1-9]\d{0,17}|"[A-Za-z0-9_.:-]{1,100}")'
_ANSWER_PATTERN = rb'"(?:result|error)"\s*:'
_ID_BEFORE = re.compile(
    rb"\s*\{\s*(?:" + _VERSION_PATTERN + rb"\s*,\s*)?" + _ID_PATTERN + rb"\s*,\s*(?:" + _VERSION_PATTERN
    + rb"\s*,\s*)?" + _ANSWER_PATTERN
)  # fmt: skip
_ANSWER_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION_PATTERN + rb"\s*,\s*)?" + _ANSWER_PATTERN)
_ID_BEHIND = re.compile(
    rb",\s*" + _ID_PATTERN + rb"\s*(?:,\s*" + _VERSION_PATTERN + rb"\s*)?\}\s*$"
)
_decode_id = msgspec.json.Decoder(int | str).decode

MAX_TAIL_BYTES = 300  # bytes at the end of a message in which its id is looked for


def _refuse_malformed_utf8(data: bytes) -> Unreadable | None:
    """Refuse bytes that are not UTF-8; None for those that are."""
    decoder, whole = getincrementaldecoder("utf-8")(), memoryview(data)
    at = 0
    try:
        while at < len(whole):  # piece by piece: as a whole it would take four times the memory
            decoder.decode(whole[at : at + UTF8_PIECE_BYTES], at + UTF8_PIECE_BYTES >= len(whole))
            at += UTF8_PIECE_BYTES
    except UnicodeDecodeError as error:
        return Unreadable(-32700, f"Parse error: it is not UTF-8: {error.reason}")
    return None


def _find_flaw(frame: Frame) -> str | None:
    """Find what JSON-RPC 2.0 or MCP forbids about a frame that decoded; None where nothing."""
    if frame.jsonrpc != "2.0":
        return 'member "jsonrpc" must be "2.0"'
    if frame.method is not UNSET:
        # spec 2026-07-28 basic#requests: the id of a request MUST NOT be null
        return 'member "id" must not be null' if frame.id is None else None
    if frame.result is not UNSET and frame.error is UNSET:
        return None if isinstance(frame.id, int | str) else 'an answer needs an "id"'
    if frame.error is not UNSET and frame.result is UNSET:
        return None
    return 'needs "method", or one of "result" and "error"'


def _read_misshapen(data: bytes, error: msgspec.ValidationError) -> Unreadable | Sequence[Raw]:
    try:
        if data.lstrip()[:1] == b"[":
            return _read_members(data)
        id = _read_id(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as worse:
        return Unreadable(-32700, f"Parse error: {_describe_error(worse)}")
    return Unreadable(-32600, f"Invalid request: {_describe_error(error)}", id)


def _read_members(data: bytes) -> Unreadable | Sequence[Raw]:
    """The members of an array, unread; a long one with what is no message in it is refused.

    Millions of members can be as many bytes: what is taken apart must be worth it.
    """
    if len(data) > MAX_LENIENT_BYTES:
        try:
            _check_members(data)
        except msgspec.ValidationError as error:
            return Unreadable(-32600, f"Invalid request: {_describe_error(error)}")
    return _decode_frames(data)


def _read_id(data: bytes) -> Id | None:
    """The id of what is no frame, where that is legible."""
    try:
        raw = _decode_id_member(data).id
    except msgspec.ValidationError:
        return None  # it is no object
    id = msgspec.json.decode(raw) if 0 < len(memoryview(raw)) <= MAX_ID_BYTES else None
    return id if isinstance(id, int | str) and not isinstance(id, bool) else None


def _describe_error(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= MAX_QUOTED_CHARS else text[:MAX_QUOTED_CHARS] + "…"


def shorten(text: object, most: int = MAX_REPEATED_CHARS) -> str:
    """Shorten the other side's words to as much as an error repeats of them."""
    words = text if isinstance(text, str) else str(text)
    return words if len(words) <= most else words[:most] + "…"


def encode_call(id: Id, method: str, params: bytes | None) -> bytes:
    """A request."""
    head = b'{"jsonrpc":"2.0","id":%b,"method":%b' % (encode(id), encode(method))
    return head + (b"}" if params is None else b',"params":%b}' % params)


def encode_note(method: str, params: bytes | None) -> bytes:
    """A notification."""
    head = b'{"jsonrpc":"2.0","method":%b' % encode(method)
    return head + (b"}" if params is None else b',"params":%b}' % params)


def encode_answer(id: Id, result: bytes) -> bytes:
    """A successful answer; ``result`` is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(id), result)


def encode_error(id: Id | None, error: ErrorBody, *, null_id: bool = True) -> bytes:
    """An error answer.

    Args:
        id: the request's id, or None where it could not be read.
        error: what to say.
        null_id: write ``"id":null`` for None, as JSON-RPC 2.0 has it; False leaves ``id`` out,
            as the schemas of 2025-11-25 and later have it.
    """
    if id is None and not null_id:
        return b'{"jsonrpc":"2.0","error":%b}' % encode(error)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(id), encode(error))


# How deeply JSON is nested is found out before anything is made of it: decoders stop where the
# interpreter's stack ends, and code that walks over what was decoded stops sooner. It is done by C
# code throughout: all but quotes and brackets is taken out, then the strings with what they hold, then
# the innermost brackets while that is worth it, and the rest is added up.

_MARKS = b'"[]'
_TO_MARKS = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(_MARKS) - set(b"{}"))
_DEPTH_STEPS = bytes.maketrans(b"[]", b"\x01\xff")  # as signed bytes: one up, one down


def is_nested_deeper(data: bytes, most: int) -> bool:
    """Whether JSON is nested more than ``most`` levels deep.

    Args:
        data: what should be JSON; of anything else the answer means nothing, and harms nobody.
        most: the levels of arrays and objects that are allowed.
    """
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    if b"\\" in data:  # an escaped quote ends no string
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes without a bracket between them are a string that holds none, or stand between two
    # strings that may as well be one.
    marks = data.translate(_TO_MARKS, _NO_MARKS).replace(b'""', b"")
    brackets = b"".join(marks.split(b'"')[::2])
    size = len(brackets)
    while size > 2 * most > 0:  # what is deeper is also longer
        brackets = brackets.replace(b"[]", b"")
        most -= 1
        if len(brackets) > size * 3 // 4:
            return max(accumulate(memoryview(brackets.translate(_DEPTH_STEPS)).cast("b"))) > most
        size = len(brackets)
    return size > 2 * most
