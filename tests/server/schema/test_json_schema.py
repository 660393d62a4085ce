"""Python types as JSON Schema: the two forms, and the profile."""

import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest
from msgspec import UNSET, Meta, UnsetType

from isthmus.errors import UsageError
from isthmus.server.schema import patterns
from isthmus.server.schema.annotations import PLAIN_TYPES
from isthmus.server.schema.json_schema import (
    PLAIN_SCHEMAS,
    SchemaBuilder,
    admits_string,
    make_schema,
)

T = TypeVar("T")
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


class Point(msgspec.Struct):
    """A place.

    Attributes:
        x: to the right.
    """

    x: int
    y: int = 0


class Node(msgspec.Struct):
    """A tree."""

    value: int
    below: list["Node"] = []


class Box(msgspec.Struct, Generic[T]):
    """Something boxed."""

    content: T


class Colour(enum.Enum):
    """What to paint with."""

    RED = "red"
    GREEN = "green"


POINT_IN = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "description": "to the right."},
        "y": {"type": "integer", "default": 0},
    },
    "required": ["x"],
    "description": "A place.",
}
POINT_OUT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "description": "to the right."}, "y": INTEGER},
    "required": ["x", "y"],
    "description": "A place.",
}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, INTEGER),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (str, STRING),
        (None, NULL),
        (Any, {}),
        (msgspec.Raw, {}),
        (pathlib.Path, STRING),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (
            Colour,
            {"type": "string", "enum": ["red", "green"], "description": "What to paint with."},
        ),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": INTEGER}),
        (collections.abc.Sequence[int], {"type": "array", "items": INTEGER}),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
        (
            set[Annotated[str, Meta(description="d")]],
            {"type": "array", "items": {"type": "string", "description": "d"}, "uniqueItems": True},
        ),
        (
            set[Any],
            {
                "type": "array",
                "items": {"type": ["string", "number", "null"]},
                "uniqueItems": True,
            },
        ),
        (bytes, {"type": "string", "contentEncoding": "base64", "pattern": patterns.ANY_BASE64}),
        (dt.time, {"type": "string", "pattern": patterns.TIMES_BY_ZONE[None]}),
        (
            tuple[int, str],
            {"type": "array", "minItems": 2, "prefixItems": [INTEGER, STRING], "maxItems": 2},
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (
            dict[Colour, int],
            {
                "type": "object",
                "additionalProperties": INTEGER,
                "propertyNames": {"enum": ["red", "green"]},
            },
        ),
        (int | str, {"anyOf": [INTEGER, STRING]}),
        (None | int | str, {"anyOf": [INTEGER, STRING, NULL]}),
        (int | Any, {}),
        (
            Annotated[int, Meta(ge=1, lt=5)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 5},
        ),
        (Annotated[int, Meta(description="n")], {"type": "integer", "description": "n"}),
        (Annotated[str, Meta(examples=["a"])], {"type": "string", "examples": ["a"]}),
    ],
)
def test_both_forms_of_a_simple_type_are_the_same(annotation, expected):
    """Ours: what goes in comes out."""
    assert [expected, expected] == [make_schema(annotation, m) for m in ("input", "output")]


@pytest.mark.parametrize(
    ("annotation", "accepted", "written"),
    [
        (dt.datetime, "format", "pattern"),
        (Annotated[dt.datetime, Meta(tz=True)], "format", "format"),
        (Annotated[dt.datetime, Meta(tz=False)], "pattern", "pattern"),
        (dt.timedelta, "format", "pattern"),
        (decimal.Decimal, "pattern", None),
    ],
)
def test_an_output_schema_admits_more_forms_than_the_input_schema(annotation, accepted, written):
    """Ours: a naive datetime is no "date-time", a negative duration no "duration"."""
    schemas = [make_schema(annotation, mode) for mode in ("input", "output")]

    assert accepted in schemas[0]
    assert {"type"} == schemas[1].keys() - {written}


def test_keys_that_are_numbers_look_like_numbers_going_in():
    """Ours: coming out, they may be longer than what is admitted going in."""
    values = {"type": "object", "additionalProperties": INTEGER}
    names = {"propertyNames": {"pattern": patterns.INTEGER_KEY}}
    schemas = [make_schema(dict[int, int], mode) for mode in ("input", "output")]

    assert [{**values, **names}, values] == schemas


def test_a_default_is_optional_going_in_and_always_there_coming_out():
    """Ours: input is the validation form, output the serialization form."""
    assert [POINT_IN, POINT_OUT] == [make_schema(Point, m) for m in ("input", "output")]


@dataclasses.dataclass
class Data:
    """Data."""

    a: int
    b: str | None = None
    c: list[int] = dataclasses.field(default_factory=list)


@attrs.define
class Attrs:
    """Data."""

    a: int
    b: str | None = None
    c: list[int] = attrs.field(factory=list)


class Model(pydantic.BaseModel):
    """Data."""

    a: int
    b: str | None = None
    c: list[int] = pydantic.Field(default_factory=list)


class Struct(msgspec.Struct):
    """Data."""

    a: int
    b: str | None = None
    c: list[int] = []


@pytest.mark.parametrize("kind", [Data, Attrs, Model, Struct])
def test_every_library_gives_the_same_schema(kind):
    """Ours: hosts need not know what a server's author writes classes with."""
    items = {"type": "array", "items": INTEGER}
    accepted = {
        "type": "object",
        "properties": {"a": INTEGER, "b": STRING, "c": {**items, "default": []}},
        "required": ["a"],
        "description": "Data.",
    }
    written = {
        "type": "object",
        "properties": {"a": INTEGER, "b": {"anyOf": [STRING, NULL]}, "c": items},
        "required": ["a", "b", "c"],
        "description": "Data.",
    }
    if kind is Model:  # pydantic does not tell what a factory makes
        del accepted["properties"]["c"]["default"]
    function = SchemaBuilder("input"), SchemaBuilder("output")
    schemas = [b.finish(b.of_pydantic(kind) if kind is Model else b.of(kind)) for b in function]

    assert [accepted, written] == schemas


def test_null_is_left_out_where_leaving_the_member_out_says_the_same():
    """Ours: hosts trip over `anyOf` with null; a null that means something else stays."""

    class Choices(msgspec.Struct):
        """Three nullable members."""

        needed: int | None
        absent: int | None = None
        five: int | None = 5
        word: Literal["a", None] = None  # noqa: PYI061 - the other spelling is another schema

    properties = make_schema(Choices, "input")["properties"]

    assert {"anyOf": [INTEGER, NULL]} == properties["needed"]
    assert INTEGER == properties["absent"]
    assert {"anyOf": [INTEGER, NULL], "default": 5} == properties["five"]
    assert {"enum": ["a"]} == properties["word"]


def test_members_that_may_be_omitted_are_not_required_in_output():
    """Ours: UNSET, NotRequired and omit_defaults leave members out."""

    class Sparse(msgspec.Struct):
        """A member may be unset."""

        a: int
        b: int | UnsetType = UNSET

    class Omitting(msgspec.Struct, omit_defaults=True):
        """Defaults are not written."""

        a: int
        b: int = 1

    class Dict(TypedDict):
        """A member is not required."""

        a: int
        b: NotRequired[int]

    found = [make_schema(kind, "output")["required"] for kind in (Sparse, Omitting, Dict)]

    assert [["a"], ["a"], ["a"]] == found


def test_members_bear_their_names_on_the_wire():
    """Ours: renamed members, and the tag of a tagged struct."""

    class Tagged(msgspec.Struct, tag="t", rename="camel", forbid_unknown_fields=True):
        """Renamed."""

        two_words: int

    expected = {
        "type": "object",
        "properties": {"type": {"type": "string", "enum": ["t"]}, "twoWords": INTEGER},
        "required": ["type", "twoWords"],
        "additionalProperties": False,
        "description": "Renamed.",
    }

    assert expected == make_schema(Tagged, "input")


def test_tuples_with_names_are_arrays():
    """Msgspec reads and writes them so; a default shortens what may go in."""

    class Pair(NamedTuple):
        a: int
        b: str = "x"

    found = [make_schema(Pair, mode)["minItems"] for mode in ("input", "output")]

    assert [1, 2] == found


def test_definitions_used_once_are_inlined_and_shared_ones_are_kept():
    """Ours: hosts choke on references, and copies cost context."""

    class Once(msgspec.Struct):
        """Uses it once."""

        point: Point
        colours: list[Colour]
        colour: Colour

    class Twice(msgspec.Struct):
        """Uses it twice."""

        a: Point
        b: list[Point]

    once, twice = make_schema(Once, "output"), make_schema(Twice, "output")

    assert POINT_OUT == once["properties"]["point"]
    assert "$defs" not in once
    assert {"Point": POINT_OUT} == twice["$defs"]
    assert {"$ref": "#/$defs/Point"} == twice["properties"]["b"]["items"]


def test_a_recursive_type_refers_to_itself_below_an_object_at_the_root():
    """The specification wants `type: object` at the root."""
    schema = make_schema(Node, "input")

    assert "object" == schema["type"]
    assert {"$ref": "#/$defs/Node"} == schema["properties"]["below"]["items"]
    assert ["Node"] == list(schema["$defs"])


def test_classes_of_one_name_have_definitions_of_their_own():
    """Ours: two classes may be called alike, and generics are one class for each argument."""
    other = msgspec.defstruct("Point", [("z", int)])
    builder = SchemaBuilder("input")
    whole = builder.finish(
        builder.of(tuple[Point, Point, other, other, Box[int], Box[int], Box[str], Box[str]])
    )

    assert ["Box_int", "Box_str", "Point", "Point_2"] == sorted(whole["$defs"])


def test_models_share_the_definitions_of_the_rest():
    """Ours: pydantic's names for definitions give way where they are taken."""
    builder = SchemaBuilder("input")
    taken = msgspec.defstruct("Model", [("z", int)])
    schemas = [builder.of(tuple[taken, taken]), builder.of_pydantic(tuple[Model, Model])]
    whole = builder.finish({"anyOf": schemas})

    assert ["Model", "Model_2"] == sorted(whole["$defs"])
    assert {"$ref": "#/$defs/Model_2"} == whole["anyOf"][1]["prefixItems"][0]


def test_generated_titles_and_docstrings_are_not_taken_for_words():
    """Ours: what dataclasses, enums and tuples say of themselves is noise."""

    @dataclasses.dataclass
    class Silent:
        a: int

    class Quiet(enum.Enum):
        A = 1

    class Mute(pydantic.BaseModel):
        title: int

    builder = SchemaBuilder("input")

    assert {"type", "properties", "required"} == make_schema(Silent, "input").keys()
    assert {"type", "enum"} == make_schema(Quiet, "input").keys()
    assert {"title": INTEGER} == builder.finish(builder.of_pydantic(Mute))["properties"]


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (complex, "'complex' has no JSON form: use a dataclass, a msgspec Struct, a TypedDict, "),
        (list[type], "'type' has no JSON form"),
        (set[list[int]], "must be hashable"),
        (set[Point], "must be hashable"),
        (frozenset[Data], "must be hashable"),
        (set[tuple[list[int], ...]], "must be hashable"),
        (dict[Annotated[int, Meta(ge=1)], int], "constraints on numeric dictionary keys"),
        (dict[tuple[int, int], int], "keys"),
        (dict[bool, int], "keys must be strings, numbers or enumerations"),
        (msgspec.msgpack.Ext, "Ext has no JSON form"),
        (Annotated[float, Meta(multiple_of=0.1)], "not exact in binary"),
        (Annotated[str, Meta(pattern="(?i)a")], "ECMAScript"),
        (enum.Enum("Mixed", {"A": 1, "B": "b"}), "either all str or all int"),
        (list["Absent"], "Absent"),  # noqa: F821 - the point
    ],
)
def test_types_without_a_truthful_schema_are_refused(annotation, said):
    """Ours: a schema that lies is worse than a message at registration."""
    with pytest.raises(UsageError, match=said):
        make_schema(annotation, "input")


def test_a_builder_takes_what_is_expressible_only():
    """Ours: an annotation that was not looked at first is refused in msgspec's words."""
    with pytest.raises(UsageError, match="str-like"):
        SchemaBuilder("input").of(str | dt.date)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, True),
        (STRING, True),
        (INTEGER, False),
        ({"type": ["integer", "string"]}, True),
        ({"enum": [1]}, False),
        ({"enum": [1, "a"]}, True),
        ({"anyOf": [INTEGER, STRING]}, True),
        ({"anyOf": [INTEGER, NULL]}, False),
        ({"$ref": "#/$defs/A"}, False),
    ],
)
def test_whether_a_string_can_be_valid_is_seen_from_the_schema(schema, expected):
    """Ours: where one can, a string is never taken for JSON in a string."""
    assert expected == admits_string(schema, {"A": INTEGER})


def test_choices_keep_the_order_they_were_written_in():
    """Small, medium, large is how people read it; msgspec sorts what a Literal holds (ours)."""

    class Shirt(msgspec.Struct):
        size: Literal["small", "medium", "large"]
        fits: list[Literal["women", "men"]] = []

    schema = make_schema(Shirt, "input")

    assert ["small", "medium", "large"] == schema["properties"]["size"]["enum"]
    assert ["women", "men"] == schema["properties"]["fits"]["items"]["enum"]


@pytest.mark.parametrize("mode", ["input", "output"])
def test_the_plain_schemas_are_those_that_a_builder_makes(mode):
    """Ours: what most parameters have is a table, and says the same as msgspec's description."""
    assert PLAIN_TYPES == PLAIN_SCHEMAS.keys()
    assert PLAIN_SCHEMAS == {kind: SchemaBuilder(mode).of(kind) for kind in PLAIN_TYPES}
