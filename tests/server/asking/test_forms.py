"""Forms: from types and from schemas, and what comes back."""

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Annotated, Literal, NotRequired, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from isthmus.errors import Misbehaved, UsageError
from isthmus.revisions import METHODS
from isthmus.server.asking.forms import make_form


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Trip(Struct):
    """All blanks there are."""

    name: Annotated[str, Meta(min_length=1, max_length=9, title="Name", description="Who.")]
    age: Annotated[int, Meta(ge=0, lt=150)]
    score: Annotated[float, Meta(gt=0.5, le=9)]
    agreed: bool
    colour: Colour
    meal: Literal["fish", "veg"]
    extras: list[Literal["bag", "bike"]]
    day: dt.date
    at: dt.datetime
    note: str | None = None
    tags: list[Colour] = []
    email: Annotated[str, Meta(extra_json_schema={"format": "email"})] = "a@b.example"


def test_every_blank_has_its_schema():
    """The restricted subset, constraints included (spec: requested schema)."""
    schema = make_form(Trip).schema

    assert {
        "name": {
            "type": "string",
            "title": "Name",
            "description": "Who.",
            "minLength": 1,
            "maxLength": 9,
        },
        "age": {"type": "integer", "minimum": 0, "maximum": 149},
        "score": {"type": "number", "maximum": 9},
        "agreed": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "meal": {"type": "string", "enum": ["fish", "veg"]},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["bag", "bike"]}},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "note": {"type": "string"},
        "tags": {
            "type": "array",
            "default": [],
            "items": {"type": "string", "enum": ["red", "blue"]},
        },
        "email": {"type": "string", "default": "a@b.example", "format": "email"},
    } == schema["properties"]
    assert {"note", "tags", "email"}.isdisjoint(schema["required"])


ANSWER = {
    "name": "ann",
    "age": 7.0,
    "score": 1,
    "agreed": True,
    "colour": "blue",
    "meal": "veg",
    "extras": ["bag"],
    "day": "2026-05-01",
    "at": "2026-05-01T10:00:00Z",
}


def test_an_answer_becomes_the_type():
    """Typed, defaults filled in, 7.0 for an integer (ours)."""
    trip = make_form(Trip).read(ANSWER)

    assert (7, Colour.BLUE, dt.date(2026, 5, 1)) == (trip.age, trip.colour, trip.day)
    assert (None, [], "a@b.example") == (trip.note, trip.tags, trip.email)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"age": 150}, "age:"),
        ({"score": 0.5}, "score"),
        ({"meal": "beef"}, "meal:"),
        ({"name": ""}, "name:"),
        ({"day": "soon"}, "day:"),
    ],
)
def test_an_answer_that_breaks_the_type_is_not_taken(change, where):
    """Also where the form could not say it (spec: servers validate)."""
    with pytest.raises(Misbehaved) as caught:
        make_form(Trip).read({**ANSWER, **change})

    assert where in str(caught.value)


class Typed(TypedDict):
    row: int
    window: NotRequired[bool]


@dataclass
class Data:
    row: int
    window: bool = field(default_factory=lambda: True)


@attrs.define
class Attr:
    row: int
    window: bool = False


class Model(pydantic.BaseModel):
    row: int = pydantic.Field(ge=1)
    window: bool = False


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Typed, {"row": 3}),
        (Data, Data(3, window=True)),
        (Attr, Attr(3)),
        (Model, Model(row=3)),
    ],
)
def test_every_kind_of_class_is_a_form(kind, value):
    """msgspec, dataclass, TypedDict, attrs, pydantic (decision D4)."""
    form = make_form(kind)

    assert {"row", "window"} == set(form.schema["properties"])
    assert ["row"] == form.schema["required"]
    assert "integer" == form.schema["properties"]["row"]["type"]
    assert value == form.read({"row": 3})


class Grades(enum.Enum):
    """How good."""

    GOOD = "good"
    BAD = "bad"


class Review(pydantic.BaseModel):
    first: Grades
    second: Grades | None = None
    stars: int = pydantic.Field(gt=0, lt=6)
    score: float = pydantic.Field(gt=0.5)
    text: str | None


def test_a_pydantic_models_form_is_as_flat_as_any():
    """References, exclusive bounds and nulls are put in a form's terms (ours)."""
    form = make_form(Review)
    grade = {"type": "string", "description": "How good.", "enum": ["good", "bad"]}

    assert {
        "first": grade,
        "second": grade,
        "stars": {"type": "integer", "minimum": 1, "maximum": 5},
        "score": {"type": "number"},
        "text": {"type": "string"},
    } == form.schema["properties"]
    review = form.read({"first": "good", "stars": 1, "score": 1, "text": "x"})
    assert (Grades.GOOD, None, 1) == (review.first, review.second, review.stars)


class Left(Struct):
    note: str | None
    more: int | str | None = None


def test_a_blank_that_could_be_two_things_is_refused():
    """There is no blank for either text or a number (spec: requested schema)."""
    with pytest.raises(UsageError, match="'more'"):
        make_form(Left)


def test_pydantic_checks_what_is_its_own():
    """A pydantic model's constraints hold (decision D4)."""
    with pytest.raises(Misbehaved, match="row: expected an integer of at least 1, got 0"):
        make_form(Model).read({"row": 0})


@pytest.mark.parametrize(
    ("kind", "blank", "content", "value"),
    [
        (bool, {"type": "boolean"}, True, True),
        (str, {"type": "string"}, "x", "x"),
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 3, 3.0),
        (Colour, {"type": "string", "enum": ["red", "blue"]}, "red", Colour.RED),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "a"),
        (
            list[Colour],
            {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
            ["red"],
            [Colour.RED],
        ),
        (Annotated[int, Meta(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
    ],
)
def test_a_single_value_is_a_form_of_one_blank(kind, blank, content, value):
    """Asked for under a name of ours, and handed out alone (ours)."""
    form = make_form(kind)

    assert {
        "type": "object",
        "properties": {"value": blank},
        "required": ["value"],
    } == form.schema
    assert value == form.read({"value": content})
    with pytest.raises(Misbehaved):
        form.read({})


@pytest.mark.parametrize(
    "kind",
    [
        dict[str, int],
        list[int],
        list[str],
        Literal[1, 2],
        msgspec.Raw,
        list[Data],
        int | str,
        bytes | int,
    ],
)
def test_a_schema_that_is_not_flat_is_no_form(kind):
    """Refused before anything is asked (spec: requested schema)."""
    with pytest.raises(UsageError):
        make_form(kind)


SHAPES = {
    "untitledSingle": {"type": "string", "enum": ["a", "b"]},
    "titledSingle": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
    "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    "name": {"type": "string", "default": "ann"},
}


def test_a_schema_by_hand_is_sent_as_it_is():
    """All five shapes of choices (conformance: sep1330), defaults filled in (sep1034)."""
    schema = {"type": "object", "properties": SHAPES, "required": ["untitledSingle"]}
    form = make_form(schema)

    assert schema is form.schema
    assert {"untitledSingle": "b", "name": "ann"} == form.read({"untitledSingle": "b"})
    with pytest.raises(Misbehaved, match="untitledSingle"):
        form.read({})


@pytest.mark.covers("elicitation.schema.flat-only")
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {}, "allOf": []},
    ],
)
def test_a_schema_by_hand_must_be_flat(schema):
    """Nothing nested (spec: requested schema)."""
    with pytest.raises(UsageError):
        make_form(schema)


def test_a_form_is_made_once():
    """Types are looked at once (performance.md)."""
    assert make_form(Trip) is make_form(Trip)
    assert make_form(None).schema == {"type": "object", "properties": {}}


class Blanks(Struct):
    """Blanks that are read in one go."""

    name: str
    age: Annotated[int, Meta(ge=0, lt=150)] = 3
    agreed: bool = False
    colour: Colour = Colour.RED
    day: dt.date | None = None


ANSWERS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.one_of(
                st.text(max_size=3),
                st.sampled_from(["red", "2026-01-02", "{", "[", "null"]),
                st.integers(-3, 200),
                st.sampled_from([3.0, 3.5, 1e20, True, False, None, [], ["x"], {}, {"a": 1}]),
            )
            for name in ("name", "age", "agreed", "colour", "day", "value", "more")
        },
    ),
    st.none(),
)


@given(
    st.sampled_from([Blanks, str, bool, int, Colour, dt.date, Literal["a", "red"], Trip, float]),
    ANSWERS,
    st.sampled_from(["accept", "accept", "accept", "decline", "cancel", "other"]),
    st.sampled_from([{}, {}, {}, {"_meta": {}}, {"_meta": 3}, {"more": 1}]),
)
def test_an_answer_that_is_read_in_one_go_is_what_it_is_read_step_by_step(
    shape, content, action, more
):
    """A round that replays an answer gives the tool what the round before gave it."""
    form, members = make_form(shape), {"content": content} if content is not None else {}
    raw = msgspec.json.encode({"action": action, **members, **more})
    read = form.read_plain(raw)
    if read is not None:
        result = METHODS["elicitation/create"].decode_result(raw)
        assert "accept" == result.action
        assert repr(read.value) == repr(form.read(result.content))


@pytest.mark.parametrize(
    ("shape", "content"),
    [(Blanks, {"name": "Ada", "age": 36}), (str, {"value": "x"}), (Colour, {"value": "red"})],
)
def test_a_plain_answer_is_read_in_one_go(shape, content):
    """What most answers are."""
    read = make_form(shape).read_plain(
        msgspec.json.encode({"action": "accept", "content": content})
    )
    assert make_form(shape).read(content) == read.value


def test_a_blank_for_fractions_is_read_step_by_step():
    """3.0 is 3 where a blank takes whole numbers too, and JSON alone does not say which it is."""
    answer = b'{"action":"accept","content":{"value":3.0}}'
    assert None is make_form(float).read_plain(answer)
