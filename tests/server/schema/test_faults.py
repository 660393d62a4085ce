"""Wrong arguments: every fault is told at once, with its path, what is allowed and what was given."""

import datetime as dt
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import attrs
import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct

from isthmus import Server
from isthmus.server.schema.faults import MAX_FAULTS, find_faults
from isthmus.server.schema.functions import ArgumentError, UserFunction
from isthmus.server.schema.validation import Validator
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Count = Annotated[int, Meta(ge=1, le=9)]


class StructOrder(Struct, forbid_unknown_fields=True):
    count: Count
    size: Size
    day: dt.date
    pay: Literal["card", "cash"] = "card"


@dataclass
class DataclassOrder:
    count: Count
    size: Size
    day: dt.date
    pay: Literal["card", "cash"] = "card"


@attrs.define
class AttrsOrder:
    count: Count
    size: Size
    day: dt.date
    pay: Literal["card", "cash"] = "card"


class DictOrder(TypedDict, total=False):
    count: Count
    size: Size
    day: dt.date
    pay: Literal["card", "cash"]


class ModelOrder(pydantic.BaseModel):
    count: Annotated[int, pydantic.Field(ge=1, le=9)]
    size: Size
    day: dt.date
    pay: Literal["card", "cash"] = "card"


def faults(annotation: Any, given: Any) -> list[str]:
    """What a function with one parameter says of an argument."""

    def tool(x): ...

    tool.__annotations__ = {"x": annotation}
    with pytest.raises(ArgumentError) as caught:
        UserFunction.of(tool).bind(msgspec.json.encode({"x": given}))
    return [f"{path[2:]}: {what}" for path, what in caught.value.problems]


@pytest.mark.parametrize(
    "kind",
    [StructOrder, DataclassOrder, AttrsOrder, DictOrder, ModelOrder],
    ids=lambda k: k.__name__,
)
def test_all_faults_are_told_alike_for_every_kind_of_class(kind):
    """A model mends its call in one turn, however the author wrote the type."""
    assert sorted(
        [
            "x.count: expected an integer from 1 to 9, got 12",
            'x.size: expected one of "small", "large", got "tiny"',
            'x.day: expected a date such as 2026-07-28, got "soon"',
            'x.pay: expected one of "card", "cash", got "crad"; did you mean "card"?',
        ]
    ) == sorted(faults(kind, {"count": 12, "size": "tiny", "day": "soon", "pay": "crad"}))


@pytest.mark.parametrize(
    "kind", [StructOrder, DataclassOrder, AttrsOrder, ModelOrder], ids=lambda k: k.__name__
)
def test_missing_members_say_what_they_should_be(kind):
    """And a member that is nearly called so is named."""
    told = faults(kind, {"cuont": 1, "size": "small"})
    assert told[0].startswith("x.count: missing, expected an integer from 1 to 9")
    assert told[1].startswith("x.day: missing, expected a date")
    assert any(word in " ".join(told) for word in ('is "cuont" meant', "cuont: unknown"))


class Cat(Struct, tag="cat"):
    lives: Count


class Dog(Struct, tag="dog"):
    name: str


class Checked(pydantic.BaseModel):
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def _is_odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("must be odd")
        return value


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (Level, 3, "x: expected one of 1, 2, got 3"),
        (Size, "RED", 'x: expected one of "small", "large", got "RED"'),
        (int, "a", 'x: expected an integer, got "a"'),
        (bool, 1, "x: expected true or false, got 1"),
        (Annotated[float, Meta(gt=0)], 0, "x: expected a number of more than 0, got 0"),
        (Annotated[int, Meta(multiple_of=5)], 7, "x: expected a multiple of 5, got 7"),
        (Annotated[str, Meta(min_length=3)], "a", "x: expected at least 3 characters, got 1"),
        (Annotated[str, Meta(max_length=1)], "ab", "x: expected at most 1 character, got 2"),
        (Annotated[str, Meta(pattern="^a+$")], "b", 'x: expected text that matches ^a+$, got "b"'),
        (Annotated[list[int], Meta(max_length=1)], [1, 2], "x: expected at most 1 item, got 2"),
        (dt.datetime, "x", 'x: expected a date and time such as 2026-07-28T09:30:00Z, got "x"'),
        (dict[str, int], {"a": "b"}, 'x.a: expected an integer, got "b"'),
        (tuple[int, str], [1, 2], "x[1]: expected a string, got 2"),
        (int | list[int], "a", 'x: expected an integer or a list, each item an integer, got "a"'),
        (int | list[int], ["a"], 'x[0]: expected an integer, got "a"'),
        (Cat | Dog, {"type": "cow"}, 'x.type: expected one of "cat", "dog", got "cow"'),
        (
            Cat | Dog,
            {"type": "cat", "lives": 10},
            "x.lives: expected an integer from 1 to 9, got 10",
        ),
        (Checked, {"a": 2}, "x.a: must be odd, got 2"),
        (list[int], {"a": 1}, "x: expected a list, each item an integer, got an object with a"),
    ],
    ids=range(19),
)
def test_a_fault_says_what_is_allowed_and_what_was_given(annotation, given, expected):
    """Choices, ranges, formats, alternatives and validators of the author's."""
    assert [expected] == faults(annotation, given)


def test_faults_of_all_parameters_are_told_at_once():
    """Unknown ones with the nearest name; what is null though it may be left out is no fault."""

    def tool(colour: Literal["red"], size: int, checked: Checked, note: str | None = None): ...

    with pytest.raises(ArgumentError) as caught:
        UserFunction.of(tool).bind(
            b'{"color":"red","size":"big","checked":{"a":2},"note":null,"n":1}'
        )
    assert (
        "Invalid arguments for tool:\n"
        '- colour: missing, expected "red"\n'
        '- size: expected an integer, got "big"\n'
        '- color: unknown; did you mean "colour"?; known are: colour, size, checked, note\n'
        "- n: unknown; known are: colour, size, checked, note\n"
        "- checked.a: must be odd, got 2"
    ) == str(caught.value)


def test_so_many_faults_are_told_and_no_more():
    """What a refused call costs is bounded."""
    told = faults(list[int], ["a"] * 10_000)
    assert MAX_FAULTS + 1 == len(told)
    assert "and more" in told[-1]


def test_a_fault_behind_many_good_values_is_told():
    """Where the search ends before it, the first one is told by who refused it."""
    (told,) = faults(list[int], [*([1] * 100_000), "a"])
    assert "x[...]" in told or "x[100000]" in told or "Expected `int`" in told


def test_of_a_long_value_the_beginning_is_told():
    """An answer does not repeat megabytes."""
    (told,) = faults(int, "a" * 100_000)
    assert len(told) < 200
    assert "(100000 characters)" in told


def test_a_secret_is_not_repeated():
    """Whatever is called like a credential is told by its length."""

    def tool(api_key: int): ...

    with pytest.raises(ArgumentError) as caught:
        UserFunction.of(tool).bind(b'{"api_key":"hunter2"}')
    assert "hunter2" not in str(caught.value)
    assert "text of 7 characters" in str(caught.value)


def test_a_schema_written_by_hand_is_told_in_the_same_words():
    """Keywords that are not known here are told by the library that validates."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}
    assert [
        ("$.b", "missing, expected anything"),
        ("$.a", 'expected an integer, got "x"'),
    ] == Validator(schema).problems({"a": "x"})
    assert [("$", '{"type":"object"} is not allowed for {"a":1}')] == Validator(
        {"not": {"type": "object"}}
    ).problems({"a": 1})
    assert [] == Validator(schema).problems({"b": 1})


def test_patterns_written_by_hand_are_left_to_the_library():
    """Ours: Python's engine takes a time without bound for some of them, the library's does not."""
    name = {"type": "string", "pattern": "^(a+)+$", "minLength": 3}
    schema = {"properties": {"a": name}, "patternProperties": {"^(b+)+$": {"type": "integer"}}}
    validator = Validator({**schema, "additionalProperties": False})

    assert [("$.a", '"aaaaaa!" does not match "^(a+)+$"')] == validator.problems({"a": "aaaaaa!"})
    assert ["$.a"] == [path for path, _ in validator.problems({"a": "a" * 50 + "!"})]
    assert ["$"] == [path for path, _ in validator.problems({"b" * 50 + "!": 1})]
    assert ["$.a"] == [path for path, _ in validator.problems({"a": "a", "bb": 1})]


def test_references_and_recursion_are_followed_within_bounds():
    """A schema that refers to itself for ever has no faults to tell."""
    schema = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert [] == find_faults(schema, 1)
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}, "type": "object"}},
    }
    assert [("$.n.n", "expected an object with n, got 1")] == find_faults(tree, {"n": {"n": 1}})


class Counted(str):
    """A name that counts how often it is looked at."""

    __slots__ = ()
    looks = 0

    def __hash__(self):
        Counted.looks += 1
        return super().__hash__()

    def lower(self):
        Counted.looks += 1
        return super().lower()


def alternatives(member, **more):
    """An object of one of two kinds, of which each has a member that the other has not."""
    parts = [{"type": "object", "required": [name]} for name in ("first", "second")]
    return {"anyOf": [{**part, "properties": {member: more}} for part in parts]}


def test_a_large_object_is_not_looked_at_for_every_way_to_it():
    """Alternatives within alternatives are twice as many with each level."""
    schema = {"$defs": {"n": alternatives("child", **{"$ref": "#/$defs/n"})}, "$ref": "#/$defs/n"}
    value = {Counted(f"name{i}"): 1 for i in range(20_000)}
    for _ in range(6):
        value = {"child": value}
    Counted.looks = 0
    find_faults(schema, value)

    assert 500_000 > Counted.looks


def test_a_missing_member_is_compared_with_a_few_names():
    """A stranger gives any number of names, which all look like it."""
    value = {Counted(f"firts{i}"): 1 for i in range(1_000)}
    Counted.looks = 0
    told = find_faults({"type": "array", "items": alternatives("other")}, [value] * 20)

    assert MAX_FAULTS == len(told)
    assert 'is "firts' in told[0][1]
    assert 100_000 > Counted.looks


@BOTH
async def test_a_model_reads_all_faults_in_the_result(revision):
    """Tools answer with isError, prompts with -32602: both with everything."""
    server = Server("shop")

    @server.tool
    def buy(count: Count, size: Size) -> str:
        return ""

    @server.prompt
    def ask(count: Count, size: Size) -> str:
        return ""

    client, wrong = EraClient(server, revision), {"count": "12", "size": "tiny"}
    result = await client.send("tools/call", {"name": "buy", "arguments": wrong})
    refused = await client.send("prompts/get", {"name": "ask", "arguments": wrong})
    for said in (tool_text(result), refused.message):
        assert "count: expected an integer from 1 to 9, got 12" in said
        assert 'size: expected one of "small", "large", got "tiny"' in said
    assert result["isError"]
