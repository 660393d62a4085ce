"""What another side sent: read as far as it is of use, shown as far as it does no harm."""

from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.auth.redaction import redact

__all__ = ["lifetime", "members", "said"]

LONGEST = 200
"""Characters of another side's words that are shown."""


def members(body: bytes) -> Mapping[str, Any]:
    """The members of a JSON object; none where a body is something else, whatever type it has."""
    try:
        read = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def lifetime(value: Any) -> float | None:
    """Seconds that something is good for; some servers write them as a text. None for nonsense."""
    try:
        life = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return life if 0 < life < 1e12 else None


def said(words: Any) -> str:
    """Another side's words as an error may show them: some, on one line, without control.

    Secrets are taken out: who does not know a code or a refresh token may say which it was.
    """
    text = redact(words if isinstance(words, str) else repr(words))
    return "".join(c if c.isprintable() else " " for c in text[:LONGEST])
