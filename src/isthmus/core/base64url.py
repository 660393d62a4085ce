"""Bytes as text that is safe in JSON, in a URL and in a header: base64url without padding.

Every byte string has exactly one spelling here. The standard library's decoder skips what it
does not know, so that many texts stand for the same bytes; a token that must be handed back
unmodified cannot allow that.
"""

from base64 import urlsafe_b64encode
from binascii import a2b_base64, b2a_base64

__all__ = ["from_text", "to_text"]

_TO_STANDARD = bytes.maketrans(b"-_+/=", b"+/!!!")  # what has no place here becomes nonsense


def to_text(data: bytes) -> str:
    """The one spelling of ``data``."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_text(text: str) -> bytes | None:
    """What ``text`` spells, or None where :func:`to_text` cannot have written it."""
    try:
        standard = text.encode("ascii").translate(_TO_STANDARD)
        data = a2b_base64(standard + b"=" * (-len(standard) % 4))
    except ValueError:  # a wrong length, or characters outside ASCII
        return None
    return data if b2a_base64(data, newline=False).rstrip(b"=") == standard else None
