"""Drafts: what a person has made of arguments or a message, as JSON that may still be wrong."""

import json
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


def read_draft(text: str, before: Any) -> Draft:
    """Read an edited text.

    Args:
        text: the JSON.
        before: what it was made of; the new value is of the same kind.
    """
    try:
        value = json.loads(text, parse_constant=refuse_constant)
        msgspec.json.encode(value)
    except RecursionError:
        return Draft(text, error="this is nested too deeply")
    except UnicodeEncodeError:
        return Draft(text, error="it has a text that cannot be sent: half of a surrogate pair")
    except ValueError as error:
        return Draft(text, error=f"this is no JSON: {error}")
    if isinstance(before, Mapping) is not isinstance(value, dict):
        return Draft(
            text, error=f"this is no {'object' if isinstance(before, Mapping) else 'list'}"
        )
    return Draft(text, value)


def refuse_constant(word: str) -> None:
    """Refuse ``NaN`` and ``Infinity``, which ``json`` reads and JSON does not have.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{word} is no number")


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: ``true`` is not ``1``, though they are equal in Python.

    Args:
        one: plain data.
        other: the same.
    """
    return _sort_json(one) == _sort_json(other)


def _sort_json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
