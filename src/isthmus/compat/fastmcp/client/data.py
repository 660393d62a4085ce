"""Values of structured content: ``result.data``, made by the output schema of a tool."""

from dataclasses import field, make_dataclass
from datetime import date, datetime, time
from typing import Any

WRAP_KEY = "x-fastmcp-wrap-result"

FORMATS: dict[str, Any] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def read_data(structured: Any, schema: dict[str, Any] | None) -> Any:
    """Structured content as values of Python: dates as such, objects with attributes.

    Args:
        structured: the structured content.
        schema: the output schema of its tool; None where it has none.
    """
    if structured is None or schema is None:
        return None if schema is None and structured is None else structured
    if schema.get(WRAP_KEY):
        inner = schema.get("properties", {}).get("result", {})
        return _read_value(structured.get("result"), inner, schema.get("$defs", {}), "Result")
    return _read_value(structured, schema, schema.get("$defs", {}), "Root")


def _read_value(value: Any, schema: Any, definitions: dict[str, Any], name: str) -> Any:
    if not isinstance(schema, dict):
        return value
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = definitions.get(name, {})
    if isinstance(value, str) and schema.get("format") in FORMATS:
        try:
            return FORMATS[schema["format"]](value)
        except ValueError:
            return value
    if isinstance(value, list):
        return [_read_value(one, schema.get("items"), definitions, name) for one in value]
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, dict) and properties:
        return _make_object(value, properties, definitions, schema.get("title") or name)
    return value


def _make_object(
    value: dict[str, Any], properties: dict[str, Any], definitions: dict[str, Any], name: str
) -> Any:
    """An object with the members as attributes; one whose members have no such names stays a dict."""
    names = [*properties, *(key for key in value if key not in properties)]
    if not all(key.isidentifier() for key in names):
        return value
    members = {
        key: _read_value(value.get(key), properties.get(key), definitions, key.title())
        for key in names
    }
    kind = make_dataclass(
        name if name.isidentifier() else "Root",
        [(key, Any, field(default=None)) for key in names],
    )
    return kind(**members)
