"""Pydantic's JSON Schemas, in our profile, and true about what pydantic reads and writes."""

import functools
from typing import Any, Literal, cast

from isthmus.errors import UsageError
from isthmus.server import patterns
from isthmus.server.pydantic_types import adapter

__all__ = ["json_schema", "member_names"]

NUMBERS = {"int": patterns.INTEGER_KEY, "float": patterns.FLOAT_KEY}
UNNAMEABLE = {"bool", "decimal", "tuple", "none"}
KEYS = "a dictionary's keys must be strings, enumerations of strings, or numbers without bounds"
BOUNDS = {"ge", "gt", "le", "lt", "multiple_of", "max_digits"}


class TruthfulForms:
    """What we say otherwise than pydantic's own generator, which is the next class in line."""

    mode: Literal["validation", "serialization"]

    @property
    def _writes(self) -> bool:
        return self.mode == "serialization"

    @property
    def _usual(self) -> Any:
        return cast("Any", super())

    def field_title_should_be_set(self, _: Any) -> bool:
        """Titles made up from names are noise."""
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A default is written too, so output always has it."""
        if not self._writes or field["type"] == "typed-dict-field":
            return bool(self._usual.field_is_required(field, total))
        return field.get("serialization_exclude_if") is None

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        """The format "date-time" demands a zone."""
        return self._zoned(schema, patterns.LOCAL_DATETIME) or self._form("datetime", schema)

    def time_schema(self, schema: Any) -> dict[str, Any]:
        """The format "time" demands a zone."""
        return self._zoned(schema, patterns.TIMES[False]) or self._form("time", schema)

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        """The format "duration" has no sign, and a negative one may come out."""
        return {"type": "string"} if self._writes else self._form("timedelta", schema)

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Text like "1E+5" may come out; going in, text could break the bounds of a number."""
        if self._writes:
            return {"type": "string"}
        number, *text = self._form("decimal", schema)["anyOf"]
        if schema.keys() & BOUNDS:
            return cast("dict[str, Any]", number)
        return {"anyOf": [number, *({**form, "pattern": patterns.DECIMAL} for form in text)]}

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Keys are strings in JSON, whatever they are in Python."""
        form = self._form("dict", schema)
        keys = schema.get("keys_schema", {"type": "any"})
        if "patternProperties" in form:
            form["additionalProperties"] = False
        if keys["type"] in UNNAMEABLE or (keys["type"] in NUMBERS and keys.keys() & BOUNDS):
            raise UsageError(KEYS)
        if any(not isinstance(v, str) for v in (*keys.get("expected", ()), *_members(keys))):
            raise UsageError(KEYS)
        if keys["type"] in NUMBERS and not self._writes:
            form["propertyNames"] = {"pattern": NUMBERS[keys["type"]]}
        return form

    def _form(self, kind: str, schema: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", getattr(self._usual, f"{kind}_schema")(schema))

    def _zoned(self, schema: Any, local: str) -> dict[str, Any] | None:
        """The form of a time without a zone, or with or without one; None if it has one."""
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": local}
        return {"type": "string"} if self._writes and "tz_constraint" not in schema else None


def _members(keys: Any) -> list[Any]:
    """The values of a dictionary's keys, where they are an enumeration."""
    return [member.value for member in keys.get("members", ())]


@functools.cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    return type("Generator", (TruthfulForms, GenerateJsonSchema), {})


def json_schema(annotation: Any, mode: Literal["input", "output"]) -> dict[str, Any]:
    """Pydantic's schema: the validation form for input, the serialization form for output."""
    return adapter(annotation).json_schema(
        mode="validation" if mode == "input" else "serialization",
        schema_generator=_generator(),
    )


def member_names(model: Any) -> frozenset[str] | None:
    """The names under which a model reads its members; None if it is no object."""
    schema = json_schema(model, "input")
    if "$ref" in schema:  # a recursive model
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    names = schema.get("properties")
    return None if names is None else frozenset(names)
