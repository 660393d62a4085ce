"""Pydantic's schemas, made true and portable."""

import datetime as dt
import decimal
import enum
from typing import Annotated, Literal

import pydantic
import pytest

from isthmus.errors import UsageError
from isthmus.server.schema import patterns
from isthmus.server.schema.pydantic_types import find_model_members, make_pydantic_schema

Level = enum.Enum("Level", {"ONE": 1})


class Model(pydantic.BaseModel):
    """All that comes out otherwise than it goes in."""

    when: dt.datetime
    aware: pydantic.AwareDatetime
    naive: pydantic.NaiveDatetime
    clock: dt.time
    span: dt.timedelta
    price: decimal.Decimal
    bounded: Annotated[decimal.Decimal, pydantic.Field(ge=0)]
    keys: dict[int, str] = {}
    maybe: int = pydantic.Field(0, exclude_if=lambda n: n == 0)


def test_formats_promise_no_more_than_what_is_written():
    """Ours: a naive datetime is no "date-time", "1E+5" is no plain decimal."""
    schema = make_pydantic_schema(Model, "output")
    said = {n: p.keys() - {"type", "title"} for n, p in schema["properties"].items()}

    assert {"format"} == said["aware"]
    assert {"pattern"} == said["naive"]
    assert [set()] * 5 == [said[n] for n in ("when", "clock", "span", "price", "bounded")]
    assert "propertyNames" not in schema["properties"]["keys"]
    assert ("keys" in schema["required"], "maybe" in schema["required"]) == (True, False)


def test_the_input_schema_is_as_pydantic_reads():
    """Ours: text could break the bounds of a number, and keys must look like numbers."""
    properties = make_pydantic_schema(Model, "input")["properties"]

    assert ["date-time", "date-time", "time", "duration"] == [
        properties[name]["format"] for name in ("when", "aware", "clock", "span")
    ]
    assert ["number", "string"] == [form["type"] for form in properties["price"]["anyOf"]]
    assert ("number", 0) == (properties["bounded"]["type"], properties["bounded"]["minimum"])
    assert {"pattern": patterns.INTEGER_KEY} == properties["keys"]["propertyNames"]


def test_keys_with_a_pattern_are_the_only_ones():
    """Ours: pydantic refuses other keys, so the schema must."""
    schema = make_pydantic_schema(dict[Annotated[str, pydantic.Field(pattern="^a")], int], "input")

    assert {"^a": {"type": "integer"}} == schema["patternProperties"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    "key",
    [
        bool,
        decimal.Decimal,
        tuple[int, int],
        Level,
        Literal[1],
        Annotated[int, pydantic.Field(ge=0)],
    ],
)
def test_keys_that_json_cannot_describe_are_refused(key):
    """Ours: names are strings; what they mean beyond that, a schema cannot say."""
    with pytest.raises(UsageError, match="a dictionary's keys"):
        make_pydantic_schema(dict[key, int], "input")


class Tree(pydantic.BaseModel):
    """Recursive."""

    kids: list["Tree"] = pydantic.Field(alias="below")


@pytest.mark.parametrize(
    ("model", "expected"), [(Tree, {"below"}), (pydantic.RootModel[list[int]], None)]
)
def test_the_members_of_a_model_are_known_by_the_names_it_reads(model, expected):
    """Ours: they tell which alternative of a union an object is."""
    assert expected == find_model_members(model)
