"""Drafts: what a person has made of arguments or a message, as JSON that may still be wrong."""

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from isthmus.core.text import show_invisible


class Draft(Struct, frozen=True):
    """A draft: the text that a user has edited so far, and its faults.

    Attributes:
        text: as they wrote it.
        value: what it means; unset where it means nothing.
        error: why it means nothing.
    """

    text: str
    value: Any | UnsetType = UNSET
    error: str = ""


def to_editor_json(value: Any) -> str:
    """Plain data as JSON for an editor, with what cannot be seen escaped."""
    plain = msgspec.to_builtins(value)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    # Outside of strings JSON is ASCII, so that whatever is replaced stands within one.
    text = "".join(c if show_invisible(c) == c else json.dumps(c)[1:-1] for c in text)
    if show_invisible(text) != text:  # each can be seen alone, and not so many upon each other
        text = json.dumps(plain, indent=2)
    return text + "\n"


def count_form_bytes(text: str) -> int:
    """The bytes that a text of an editor takes in a form, as browsers send it (URL-encoded, lines ended by CRLF)."""
    from urllib.parse import quote_plus  # slow to import

    return len(quote_plus(text.replace("\n", "\r\n")))


def read_draft(text: str, before: Any) -> Draft:
    """Read an edited text.

    Args:
        text: the JSON.
        before: what it was made of; the new value is of the same kind.
    """
    try:
        value = read_json(text)
    except ValueError as error:
        return Draft(text, error=str(error))
    if isinstance(before, Mapping) is not isinstance(value, dict):
        return Draft(
            text, error=f"this is no {'object' if isinstance(before, Mapping) else 'list'}"
        )
    return Draft(text, value)


def read_json(text: str) -> Any:
    """Read a JSON text of which nothing is lost on the way: what cannot be sent as it stands is refused.

    Raises:
        ValueError: it is no JSON, or means something else to whoever reads it next; the message says why.
    """
    try:
        value = json.loads(
            text,
            parse_constant=_refuse_number,
            parse_float=_read_float,
            object_pairs_hook=_make_object,
        )
        msgspec.json.encode(value)
    except RecursionError:
        raise ValueError("this is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it has a text that cannot be sent: half of a surrogate pair") from None
    except ValueError as error:
        raise ValueError(f"this is no JSON: {error}") from None
    return value


def _refuse_number(word: str) -> None:
    """Refuse ``NaN`` and ``Infinity``, which ``json`` reads and JSON does not have.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{word[:40]} is no number")


def _read_float(text: str) -> float:
    """A number; one that is too large would be infinite, and is sent as ``null``."""
    number = float(text)
    if math.isinf(number):
        _refuse_number(text)
    return number


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two members of one name nobody knows which one counts."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {show_invisible(twice)[:40]!r} is there twice")
    return made
