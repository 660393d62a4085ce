"""Form fields of an elicitation: the question of each, and the value that a typed line means. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_YES_WORDS = {"y", "yes", "true", "1"}
_NO_WORDS = {"n", "no", "false", "0"}
_BOUND_PHRASES = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "{} characters or more"),
    ("maxLength", "{} characters or fewer"),
    ("minItems", "{} or more"),
    ("maxItems", "{} or fewer"),
    ("format", "{}"),
)


class FieldChoice(msgspec.Struct, frozen=True):
    """One value of an enumeration, with its title.

    Texts are what the specification has there; some servers have numbers.
    """

    value: Any
    title: str


@dataclass(frozen=True)
class FormField:
    """One property of a requested schema.

    Attributes:
        name: its key in the answer.
        schema: its schema: one of the primitive ones of elicitation.
        required: whether the answer must have it.
    """

    name: str
    schema: Mapping[str, Any] = field(hash=False)
    required: bool

    @property
    def title(self) -> str:
        """The field's title; its name where it has none."""
        title = self.schema.get("title")
        return title if isinstance(title, str) else self.name

    @property
    def kind(self) -> str:
        """Its type, which stands beside ``null`` where it may be left open."""
        kind = self.schema.get("type")
        if kind is None:
            ways = self.schema.get("anyOf") or self.schema.get("oneOf")
            kind = [way.get("type") for way in _list_objects(ways)]
        named = [one for one in (kind if isinstance(kind, list) else [kind]) if one != "null"]
        return str(named[0] if named and named[0] else "string")

    @property
    def many(self) -> bool:
        """Whether several choices may be made."""
        return self.kind == "array"

    @cached_property
    def choices(self) -> Sequence[FieldChoice]:
        """The choices, in the server's order; empty where anything can be typed."""
        source = self.schema.get("items") if self.many else self.schema
        if not isinstance(source, Mapping):
            return []
        options = _list_objects(source.get("oneOf") or source.get("anyOf"))
        titled = [_make_choice(o["const"], o.get("title")) for o in options if "const" in o]
        if titled:
            return titled
        values, names = source.get("enum"), source.get("enumNames")
        if not isinstance(values, list):
            return []
        if not isinstance(names, list) or len(names) != len(values):
            names = [None for _ in values]
        return [_make_choice(v, name) for v, name in zip(values, names, strict=True)]

    @property
    def default(self) -> Any:
        """The value that an empty line means; None where it means nothing."""
        return self.schema.get("default")

    def explanation(self) -> list[str]:
        """The lines before the question: the description, then the choices by number."""
        described = self.schema.get("description")
        lines = [described] if isinstance(described, str) and described else []
        for number, choice in enumerate(self.choices, 1):
            shown = format_answer(choice.value)
            also = f"  ({shown})" if choice.title != shown else ""
            lines.append(f"  {number}. {choice.title}{also}")
        return lines

    def question(self) -> str:
        """The question itself: a title, what is wanted, and what an empty line means."""
        empty = "" if self.required else ", empty to leave out"
        if self.default is not None:
            empty = f", empty for {format_answer(self.default)}"
        return f"{self.title} ({', '.join(self.describe_value())}{empty}): "

    def describe_value(self) -> list[str]:
        """The kind and the bounds of a value, in a few words each."""
        if self.choices:
            return ["numbers with commas" if self.many else f"1 to {len(self.choices)}"]
        kind = "y or n" if self.kind == "boolean" else self.kind
        bounds = [
            phrase_bound(say, self.schema[k]) for k, say in _BOUND_PHRASES if k in self.schema
        ]
        return ["text" if kind == "string" else kind, *bounds]

    def read(self, line: str) -> Any:
        """The value a line stands for; None to leave the blank out.

        Raises:
            ValueError: the line does not fit; the message says what would.
        """
        text = line.strip()
        if not text:
            if self.default is not None or not self.required:
                return self.default
            raise ValueError("an answer is needed here")
        value = self._parse_choices(text) if self.choices else self._parse_typed(text)
        self._check(value)
        return value

    def accept(self, value: Any) -> Any:
        """A value that was chosen rather than typed; None to leave the blank out.

        Raises:
            ValueError: it does not fit; the message says what would.
        """
        if value is None:
            if self.required:
                raise ValueError("an answer is needed here")
            return None
        self._check(value)
        return value

    def _parse_choices(self, text: str) -> Any:
        parts = [part.strip() for part in text.split(",")] if self.many else [text]
        values = [self._find_choice(part) for part in parts]
        return values if self.many else values[0]

    def _find_choice(self, text: str) -> Any:
        """A choice by its number, else by its value, else by its title: a value may be another one's number."""
        numbers = {str(number): choice for number, choice in enumerate(self.choices, 1)}
        found = [numbers[text]] if text in numbers else []
        found += [one for one in self.choices if text == one.value]
        found += [one for one in self.choices if text == one.title]
        if not found:
            raise ValueError(f"{text!r} is none of 1 to {len(self.choices)}")
        return found[0].value

    def _parse_typed(self, text: str) -> Any:
        kind = self.kind
        if kind == "boolean":
            if text.lower() not in _YES_WORDS | _NO_WORDS:
                raise ValueError("answer y or n")
            return text.lower() in _YES_WORDS
        if kind in {"integer", "number"}:
            return _parse_number(text, whole=kind == "integer")
        return text

    def _check(self, value: Any) -> None:
        """Hold a value against the blank's schema, formats too."""
        import jsonschema_rs

        validator = jsonschema_rs.validator_for(dict(self.schema), validate_formats=True)
        for error in validator.iter_errors(value):
            raise ValueError(error.message)


def _list_objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none where a server has put something else there."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _make_choice(value: Any, title: Any) -> FieldChoice:
    return FieldChoice(value, title if isinstance(title, str) else format_answer(value))


def format_answer(value: Any) -> str:
    """A value as a person would type it."""
    if isinstance(value, bool):
        return "y" if value else "n"
    if isinstance(value, list):
        return ", ".join(map(format_answer, value))
    return value if isinstance(value, str) else json.dumps(value)


def _parse_number(text: str, *, whole: bool) -> int | float:
    try:
        if whole or _WHOLE_NUMBER.fullmatch(
            text
        ):  # a float has no room for all digits of a long one
            return int(text)
        value = float(text)
        return int(value) if value == int(value) else value
    except (ValueError, OverflowError):  # the latter for infinity, which JSON does not have
        raise ValueError(f"{text!r} is not {'a whole' if whole else 'a'} number") from None


def phrase_bound(phrase: str, bound: Any) -> str:
    """Phrase a bound of a value: ``2 characters or more``, ``1 character or more``."""
    return (phrase.replace("characters", "character") if bound == 1 else phrase).format(bound)


def list_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The blanks of a requested schema, in the server's order."""
    required = set(schema.get("required", ()))
    properties = schema.get("properties", {})
    return [FormField(name, part, name in required) for name, part in properties.items()]
