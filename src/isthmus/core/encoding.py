"""Text that JSON can carry: strings without lone surrogates, and bytes as base64url.

Python's strings may hold halves of surrogate pairs: names of files that are no UTF-8 have them,
and so has whatever was decoded with ``surrogateescape``. UTF-8 has no bytes for them.

Every byte string has exactly one spelling in base64url without padding. The standard library's
decoder skips what it does not know, so that many texts stand for the same bytes; a token that must
be handed back unmodified cannot allow that.
"""

from binascii import b2a_base64
from typing import Any, TypeVar

import msgspec
from msgspec import structs

T = TypeVar("T")


def make_encodable(value: T) -> T:
    """The value itself where JSON can carry it, else `replace_surrogates` of it."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return replace_surrogates(value)  # type: ignore[no-any-return]  # of the same type
    except (TypeError, ValueError, RecursionError):
        pass  # who writes it says what else is wrong with it
    return value


def replace_surrogates(value: Any) -> Any:
    """The value with U+FFFD for each half that lacks its other half, in all its parts.

    Halves that belong together become the character they stand for. Strings, lists, tuples,
    dicts and structs are looked into; anything else is left as it is, and so is what is nested
    too deeply to be written anyway.

    Raises:
        RecursionError: it is nested too deeply.
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list | tuple):
        return [replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            replace_surrogates(key): replace_surrogates(member) for key, member in value.items()
        }
    if isinstance(value, msgspec.Struct):
        members = {name: getattr(value, name) for name in value.__struct_fields__}
        return structs.replace(
            value, **{name: replace_surrogates(member) for name, member in members.items()}
        )
    return value


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: ``true`` is not ``1``, though they are equal in Python.

    Args:
        one: plain data, or what msgspec encodes; what JSON cannot carry is like nothing else.
        other: the same.
    """
    try:
        return _sort_json(one) == _sort_json(other)
    except (TypeError, ValueError, RecursionError):
        return False


def _sort_json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def encode_base64url(data: bytes) -> str:
    """The one spelling of ``data``."""
    standard = b2a_base64(data, newline=False).rstrip(b"=")
    return standard.replace(b"+", b"-").replace(b"/", b"_").decode("ascii")


def decode_base64url(text: str) -> bytes | None:
    """The bytes that ``text`` spells; None where :func:`encode_base64url` cannot have written it."""
    if "+" in text or "/" in text or "=" in text:
        return None
    standard = text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4)
    try:
        data: bytes = msgspec.convert(standard, bytes)  # several times as fast as binascii
    except ValueError:  # a wrong length, or characters that have no place here
        return None
    # What is left over in the last character must be zero: only there could a spelling differ.
    rest = len(data) % 3
    if rest and not text.endswith(encode_base64url(data[-rest:])):
        return None
    return data
