"""Arguments on a command line: ``key=value`` as JSON for a tool's schema, and times."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from isthmus.errors import UsageError

Schema: TypeAlias = Mapping[str, Any]

_KIND_OF = {bool: "boolean", int: "integer", float: "number", str: "string"}
_KIND_OF |= {list: "array", dict: "object", type(None): "null"}


def split_pairs(words: Sequence[str]) -> dict[str, list[str]]:
    """Each key with the values given for it, in order.

    Raises:
        UsageError: a word has no ``=``, or nothing before it.
    """
    found: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not key=value; write for example date=2026-05-01")
        found.setdefault(key, []).append(value)
    return found


def parse_json_object(text: str) -> dict[str, Any]:
    """The object given to ``--json-args``.

    Raises:
        UsageError: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--json-args is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"--json-args must be a JSON object, not {_find_kind(value)}")
    return value


def parse_arguments(given: Mapping[str, Sequence[str]], schema: Schema) -> dict[str, Any]:
    """Arguments as a tool's input schema wants them.

    Text stays text where the schema allows a string; otherwise it is read as JSON. A key given
    more than once makes an array.

    Args:
        given: what :func:`split_pairs` made of the command line.
        schema: the tool's ``inputSchema``.

    Raises:
        UsageError: a key the tool does not take, or a value of the wrong kind.
    """
    properties: Schema = schema.get("properties", {})
    closed = schema.get("additionalProperties") is False
    result = {}
    for key, values in given.items():
        if key not in properties and (closed or properties):
            known = ", ".join(properties) or "none"
            raise UsageError(f"the tool has no parameter {key!r}; it has: {known}")
        result[key] = _parse_value(key, values, properties.get(key, {}), schema)
    return result


def _parse_value(key: str, values: Sequence[str], wanted: Schema, root: Schema) -> Any:
    """The value of one argument, from all words that were given for it."""
    allowed = list_kinds(wanted, root)
    if "array" in allowed and (len(values) > 1 or not values[0].lstrip().startswith("[")):
        items = wanted.get("items", {})
        return [_parse_scalar(key, text, list_kinds(items, root)) for text in values]
    if len(values) > 1:
        raise UsageError(f"{key} is given {len(values)} times, and the tool takes one value")
    return _parse_scalar(key, values[0], allowed)


def _parse_scalar(key: str, text: str, allowed: set[str]) -> Any:
    if "string" in allowed:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        if not allowed:
            return text
        raise UsageError(
            f"{key}={text}: {_describe_kinds(allowed)}, and this is not JSON"
        ) from None
    if allowed and not _fits(value, allowed):
        raise UsageError(f"{key}={text}: {_describe_kinds(allowed)}, not {_find_kind(value)}")
    return value


def _describe_kinds(allowed: set[str]) -> str:
    return f"the tool wants {' or '.join(sorted(allowed))}"


def _find_kind(value: Any) -> str:
    return _KIND_OF[type(value)]


def _fits(value: Any, allowed: set[str]) -> bool:
    kind = _find_kind(value)
    return kind in allowed or (kind == "integer" and "number" in allowed)


def list_kinds(schema: Any, root: Schema) -> set[str]:
    """The JSON types a schema allows; empty where it does not say.

    Args:
        schema: a part of ``root``.
        root: the whole, for references into ``$defs``.
    """
    if not isinstance(schema, Mapping):
        return set()
    if isinstance(schema.get("$ref"), str):
        return list_kinds(
            _resolve_reference(schema["$ref"], root),
            {**root, "$defs": _drop_definition(schema, root)},
        )
    said = schema.get("type")
    if said is not None:
        return {said} if isinstance(said, str) else set(said)
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if values:
        return {_find_kind(value) for value in values}
    branches = [list_kinds(s, root) for s in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    return set().union(*branches) if all(branches) else set()


def _resolve_reference(reference: str, root: Schema) -> Any:
    """The schema that ``#/$defs/Name`` refers to; nothing for references elsewhere."""
    prefix = "#/$defs/"
    found: Any = root.get("$defs", {})
    return found.get(reference.removeprefix(prefix)) if reference.startswith(prefix) else None


def _drop_definition(schema: Schema, root: Schema) -> dict[str, Any]:
    """The definitions but the one just followed, so that a circle ends."""
    name = schema["$ref"].rpartition("/")[2]
    return {key: value for key, value in root.get("$defs", {}).items() if key != name}


def parse_time(text: str, now: float) -> float | None:
    """A moment as people write it, in seconds since the epoch; None for none.

    Args:
        text: ``2026-11-21``, ``2026-11-21T08:00``, with an offset or in local time; or ``2h``.
        now: seconds since the epoch.

    Raises:
        UsageError: it is no moment.
    """
    if not text:
        return None
    if ago := AGO_PATTERN.fullmatch(text):
        return now - float(ago[1]) * UNIT_SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(
            f"{text!r} is no time: write 2026-11-21, 2026-11-21T08:00, or 2h for two hours ago"
        ) from None


AGO_PATTERN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")


UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
