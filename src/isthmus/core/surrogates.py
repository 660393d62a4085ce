r"""Text that no JSON can carry, as text that it can.

Python's strings may hold halves of surrogate pairs: names of files that are no UTF-8 have them,
and so has whatever was decoded with ``surrogateescape``. UTF-8 has no bytes for them.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import structs

__all__ = ["without_surrogates", "writable"]

T = TypeVar("T")


def writable(value: T) -> T:
    """The value itself where JSON can carry it, else `without_surrogates` of it."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return without_surrogates(value)  # type: ignore[no-any-return]  # of the same type
    except (TypeError, ValueError, RecursionError):
        pass  # who writes it says what else is wrong with it
    return value


def without_surrogates(value: Any) -> Any:
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
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            without_surrogates(key): without_surrogates(member) for key, member in value.items()
        }
    if isinstance(value, msgspec.Struct):
        members = {name: getattr(value, name) for name in value.__struct_fields__}
        return structs.replace(
            value, **{name: without_surrogates(member) for name, member in members.items()}
        )
    return value
