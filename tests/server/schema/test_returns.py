"""What a return annotation promises, and how values are held to it."""

import dataclasses
import datetime as dt
import enum
import json
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, NewType, TypedDict

import msgspec
import pydantic
import pytest
from msgspec import Meta

from isthmus import wire
from isthmus.errors import UsageError
from isthmus.server.schema.functions import UserFunction
from isthmus.server.schema.results import Audio, Image, ReturnPlan

Words = NewType("Words", str)
INTEGER = {"type": "integer"}


class Point(msgspec.Struct):
    """A place."""

    x: int
    y: int = 0


class Place(Point):
    """A place with a name."""

    name: str = "here"


class Model(pydantic.BaseModel):
    """Named differently on the way in and out."""

    size: int = pydantic.Field(validation_alias="in", serialization_alias="out")
    note: str | None = None


class Box(msgspec.Struct):
    """A struct with a model in it."""

    model: Model


@dataclasses.dataclass
class Data:
    """A dataclass."""

    x: int


class Dict(TypedDict):
    """A dictionary."""

    x: int


class Pair(NamedTuple):
    """Two numbers."""

    a: int
    b: int = 2


class Colour(enum.Enum):
    """Colours."""

    RED = "red"


def write_result(annotation: Any, value: Any) -> Any:
    """What a value of the type is written as, decoded."""
    write = ReturnPlan.of(annotation).write
    assert write is not None
    return json.loads(write(value))


@pytest.mark.parametrize(
    "annotation",
    [
        *(str, None, Any, object, Words, Annotated[str, Meta(min_length=1)], str | None),
        *(wire.TextContent, wire.ContentBlock, Image, Audio, Image | None),
        *(list[wire.ContentBlock], list[str | Image], Sequence[Image], tuple[str, Image]),
        *(wire.CallToolResult, wire.InputRequiredResult, str | wire.InputRequiredResult),
        *(list, list[Any], int | Any),
    ],
)
def test_content_for_the_model_has_no_schema(annotation):
    """Ours (D23): a schema of plain text says nothing."""
    plan = ReturnPlan.of(annotation)

    assert (None, None) == (plan.schema, plan.write)


@pytest.mark.parametrize("annotation", [Point, Data, Dict, Model, Box, dict[str, int], dict])
def test_an_object_is_described_as_it_is(annotation):
    """The specification wants structured content to be an object; this is one."""
    plan = ReturnPlan.of(annotation)

    assert "object" == plan.schema["type"]
    assert not plan.wrapped
    assert "result" not in plan.schema.get("properties", {})


@pytest.mark.parametrize(
    "annotation",
    [
        int,
        bool,
        list[int],
        list[str],
        Pair,
        Colour,
        Point | None,
        Point | Data,
        list[Model],
        dt.date,
    ],
)
def test_anything_else_is_wrapped(annotation):
    """Up to 2025-11-25 structured content must be an object, so it is made one."""
    plan = ReturnPlan.of(annotation)

    assert ["result"] == plan.schema["required"]
    assert plan.wrapped


def test_a_question_is_not_part_of_what_is_promised():
    """Ours: a tool may ask by its result and still promise what it gives in the end."""
    assert ReturnPlan.of(Point).schema == ReturnPlan.of(Point | wire.InputRequiredResult).schema


@pytest.mark.parametrize("annotation", [bytes, bytearray, Annotated[bytes, Meta(max_length=3)]])
def test_bytes_are_refused(annotation):
    """Ours: nobody could tell what they are; the message says what to return instead."""
    with pytest.raises(UsageError, match=r"return Image\(data\)"):
        ReturnPlan.of(annotation)


def test_the_docstring_describes_the_result():
    """Ours: what is said under Returns goes into the output schema."""

    def tool() -> int:
        """Count.

        Returns:
            How many there are.
        """
        return 1

    assert "How many there are." == UserFunction.of(tool).plan_returns().schema["description"]


def test_a_refusal_names_the_function():
    """Ours: the author must find the place."""

    def tool() -> complex:
        return 1j

    with pytest.raises(UsageError, match="tool: its return type: 'complex'"):
        UserFunction.of(tool).plan_returns()


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, 3, 3),
        (float, 3, 3),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Point, {"x": 1}, {"x": 1, "y": 0}),
        (Point, Place(1), {"x": 1, "y": 0, "name": "here"}),
        (list[Point], [Place(1)], [{"x": 1, "y": 0}]),
        (list[Point], [{"x": 1}], [{"x": 1, "y": 0}]),
        (Dict, {"x": 1}, {"x": 1}),
        (Pair, Pair(1), [1, 2]),
        (list[Colour], [Colour.RED], ["red"]),
        (pathlib.Path, pathlib.Path("/a"), "/a"),
        (list[pathlib.Path], [pathlib.Path("/a")], ["/a"]),
        (Model, Model(**{"in": 1}), {"out": 1, "note": None}),
        (Model, {"in": 1}, {"out": 1, "note": None}),
        (Box, Box(Model(**{"in": 1})), {"model": {"out": 1, "note": None}}),
        (list[Box], [Box(Model(**{"in": 1}))], [{"model": {"out": 1, "note": None}}]),
        (Point | Data | None, None, None),
    ],
)
def test_values_are_written_with_all_their_defaults(annotation, value, expected):
    """Ours: the output schema promises every member."""
    assert expected == write_result(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "3"),
        (int, True),
        (str | int, 2.5),
        (float, float("nan")),
        (list[float], [1.0, float("inf")]),
        (Point, Point("a")),
        (Point, {"y": 1}),
        (Point, None),
        (list[Point], [Point(1), 2]),
        (Annotated[int, Meta(ge=1)], 0),
        (Dict, {}),
        (dict[str, int], {"a": "b"}),
        (int, object()),
        (Model, 3),
        (Model, Model.model_construct(size="big")),
        (Box, Box(Model.model_construct(size="big"))),
        (Box, {"model": 3}),
        (Point | Data, 3),
    ],
)
def test_a_value_that_breaks_the_promise_is_refused(annotation, value):
    """The specification: structured results MUST conform to the output schema."""
    with pytest.raises(UsageError, match="it returned what its annotation does not allow"):
        ReturnPlan.of(annotation).write(value)
