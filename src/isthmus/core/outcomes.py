"""What may come of one attempt to open a connection, and what it tells."""

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from isthmus.errors import summed_up
from isthmus.revisions import METHODS
from isthmus.wire import DiscoverResult, Implementation
from isthmus.wire.meta import SERVER_INFO

__all__ = [
    "Answer",
    "Error",
    "Gone",
    "HttpStatus",
    "NoStream",
    "Nonsense",
    "Outcome",
    "Silence",
    "discovered",
    "modern",
    "server_info",
    "supported",
    "told",
]

# Spec 2026-07-28 basic/index#error-codes: nobody but the specification may use these, so one of
# them comes from a modern server. Every other code is a legacy server's, whatever it says.
UNSUPPORTED = -32022
MODERN_CODES = frozenset({-32020, -32021, UNSUPPORTED})


class Answer(msgspec.Struct, frozen=True):
    """The request was answered with a result."""

    result: Raw


class Error(msgspec.Struct, frozen=True):
    """The request was answered with a JSON-RPC error; ``status`` is the one of its HTTP response."""

    code: int
    message: str
    data: Any = None
    status: int = 200


class HttpStatus(msgspec.Struct, frozen=True):
    """An HTTP status without a JSON-RPC body; ``body`` is the beginning of what came instead."""

    status: int
    body: str = ""


class Silence(msgspec.Struct, frozen=True):
    """No answer in time."""

    waited: float


class Nonsense(msgspec.Struct, frozen=True):
    """Something came back, but nothing of ours: what, in words."""

    what: str


class Gone(msgspec.Struct, frozen=True):
    """The connection ended instead, and why as far as is known."""

    reason: str


class NoStream(msgspec.Struct, frozen=True):
    """The URL is no server of HTTP+SSE: what GET met instead of a stream with an endpoint."""

    why: HttpStatus | Nonsense


Outcome: TypeAlias = Answer | Error | HttpStatus | Nonsense | NoStream | Silence | Gone


def discovered(result: Raw) -> DiscoverResult | None:
    """The answer to the probe, or None where it is no ``DiscoverResult``."""
    try:
        found: DiscoverResult = METHODS["server/discover"].decode_result(result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def server_info(found: DiscoverResult) -> Implementation | None:
    """Who a modern server says it is, where it says so readably."""
    meta = {} if found.meta is UNSET else found.meta
    try:
        return msgspec.convert(meta.get(SERVER_INFO), Implementation)
    except msgspec.ValidationError:
        return None


def modern(error: Error) -> bool:
    """True where only a modern server answers so."""
    if error.code == UNSUPPORTED:
        return supported(error) is not None
    return error.code in MODERN_CODES


def supported(error: Error) -> list[str] | None:
    """The revisions an error says the server speaks, or None where it does not say."""
    data = error.data
    versions = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(versions, list):
        return None
    return [version for version in versions if isinstance(version, str)]


def told(outcome: Outcome) -> str:
    """An outcome in words."""
    match outcome:
        case Error(code=code, message=message):
            return f"{message} ({code})"
        case HttpStatus(status=status, body=body):
            return f"HTTP {status}" + (f": {summed_up(body)}" if body else "")
        case Silence(waited=waited):
            return f"no answer within {waited:g} s"
        case Gone(reason=words) | Nonsense(what=words):
            return words
        case NoStream(why=why):
            return told(why)
        case Answer():
            return "its answer makes no sense"
