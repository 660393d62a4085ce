"""Strategies for the values a JSON Schema of ours admits, written from the schema alone."""

import datetime as dt
import math
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

from support.schemas.random_types import AWARE, JSON

FORMATS = {
    "date-time": st.datetimes(timezones=AWARE).map(dt.datetime.isoformat),
    "date": st.dates().map(dt.date.isoformat),
    "time": st.times(timezones=AWARE).map(dt.time.isoformat),
    "uuid": st.uuids().map(str),
    "duration": st.sampled_from(["P1Y", "P2M", "P3W", "P1Y2M3DT4H5M6S", "PT1H", "P1D", "PT0S"]),
}


def admitted_values(schema: Any) -> st.SearchStrategy[Any]:
    """Values that a schema of ours admits."""
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    return draw_values(schema, schema.get("$defs", {})).filter(validator.is_valid)


def draw_values(schema: Any, definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that look like the schema; a few may break a constraint."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return st.deferred(lambda: draw_values(definitions[name], definitions))
    if "anyOf" in schema:
        return st.one_of([draw_values(branch, definitions) for branch in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"]).flatmap(perhaps_a_float)
    kinds = schema.get("type")
    if kinds is None:
        return JSON
    return st.one_of(
        [DRAWS[k](schema, definitions) for k in ([kinds] if isinstance(kinds, str) else kinds)]
    )


def perhaps_a_float(value: Any) -> st.SearchStrategy[Any]:
    """An integer may as well be written 2.0."""
    if type(value) is int and abs(value) < 2**53:
        return st.sampled_from([value, float(value)])
    return st.just(value)


def integers(schema: Any, _: Any) -> st.SearchStrategy[Any]:
    """Integers, small and very large."""
    step = int(schema.get("multipleOf", 1))
    low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf) - 1)
    bounds = [None if math.isinf(b) else b for b in (low, high)]
    return st.integers(*bounds).map(lambda n: n // step * step).flatmap(perhaps_a_float)


def numbers(schema: Any, _: Any) -> st.SearchStrategy[Any]:
    """Numbers, with and without a fraction."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if step := schema.get("multipleOf"):
        return st.integers(-(2**40), 2**40).map(lambda n: n * step)
    whole = st.integers(
        math.ceil(low) if low is not None else -(2**70),
        math.floor(high) if high is not None else 2**70,
    )
    return whole | st.floats(low, high, allow_nan=False, allow_infinity=False)


def strings(schema: Any, _: Any) -> st.SearchStrategy[Any]:
    """Strings of a format, of a pattern, or any."""
    if pattern := schema.get("pattern"):
        if "-(0[1-9]|1[0-2])-" in pattern:  # no pattern knows the calendar
            return st.datetimes().map(dt.datetime.isoformat)
        return st.from_regex(
            pattern.replace("(?<n>", "(?P<n>"), alphabet=st.characters(codec="utf-8")
        )
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    return st.text(
        st.characters(exclude_categories=["Cs"]),
        min_size=schema.get("minLength", 0),
        max_size=schema.get("maxLength"),
    )


def arrays(schema: Any, definitions: Any) -> st.SearchStrategy[Any]:
    """Arrays with the right things in the right places."""
    if "prefixItems" in schema:
        items = [draw_values(item, definitions) for item in schema["prefixItems"]]
        sizes = st.integers(schema["minItems"], len(items))
        return sizes.flatmap(lambda n: st.tuples(*items[:n]).map(list))
    return st.lists(
        draw_values(schema.get("items", {}), definitions),
        min_size=schema.get("minItems", 0),
        max_size=schema.get("maxItems", 4),
    )


def objects(schema: Any, definitions: Any) -> st.SearchStrategy[Any]:
    """Objects with what they need, perhaps what they may have, perhaps more."""
    properties = {n: draw_values(s, definitions) for n, s in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    known = st.fixed_dictionaries(
        {n: properties[n] for n in required},
        optional={n: s for n, s in properties.items() if n not in required},
    )
    rest = schema.get("additionalProperties", {})
    if rest is False:
        return known
    names = schema.get("propertyNames", {})
    more = st.dictionaries(
        draw_values({"type": "string", **names}, definitions).map(str),
        draw_values(rest, definitions),
        min_size=schema.get("minProperties", 0),
        max_size=schema.get("maxProperties", 2),
    )
    return st.tuples(more, known).map(lambda pair: {**pair[0], **pair[1]})


DRAWS = {
    "null": lambda *_: st.none(),
    "boolean": lambda *_: st.booleans(),
    "integer": integers,
    "number": numbers,
    "string": strings,
    "array": arrays,
    "object": objects,
}
