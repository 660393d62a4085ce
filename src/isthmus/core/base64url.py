"""Bytes as text that is safe in JSON, in a URL and in a header: base64url without padding.

Every byte string has exactly one spelling here. The standard library's decoder skips what it
does not know, so that many texts stand for the same bytes; a token that must be handed back
unmodified cannot allow that.
"""

from base64 import urlsafe_b64encode
from binascii import a2b_base64

__all__ = ["from_text", "to_text"]

_TO_STANDARD = str.maketrans("-_", "+/")


def to_text(data: bytes) -> str:
    """The one spelling of ``data``."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes | None:
    """What ``text`` spells, or None where :func:`to_text` cannot have written it."""
    padded = text.translate(_TO_STANDARD) + "=" * (-len(text) % 4)
    try:
        data = a2b_base64(padded)
    except ValueError:  # a wrong length, or characters outside ASCII
        return None
    return data if to_text(data) == text else None
