"""Annotations that msgspec must not be given, found without asking it."""

import collections
import dataclasses
import datetime as dt
import enum
import math
import pathlib
import typing
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NewType

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions
from msgspec import Meta

from isthmus.errors import UsageError
from isthmus.server.schema.annotations import (
    find_peril,
    measure_depth,
    unwrap_annotation,
    walk_annotation,
)
from isthmus.server.schema.custom_types import UnionChoice, make_expressible

SOME = Annotated[int, Meta(ge=1)]
LONG = Annotated[str, Meta(min_length=2)]
LIKE = Annotated[str, Meta(pattern="a")]
Named = NewType("Named", SOME)
Numbers = enum.Enum("Numbers", {"ONE": 1})


class Holder(msgspec.Struct):
    """A class with a union in it that msgspec must not see."""

    value: LONG | tuple[int]


@pytest.mark.parametrize(
    "annotation",
    [
        LONG | tuple[int],
        SOME | tuple[int, str],
        LIKE | list[int],
        LIKE | dict[str, int],
        LIKE | set[int],
        float | SOME,
        float | Literal[1],
        float | Numbers,
        int | SOME,
        Literal["auto"] | LONG,
        Named | tuple[int],
        list[LONG | tuple[int] | None],
        Annotated[LONG | tuple[int], Meta(description="both")],
    ],
)
def test_unions_msgspec_gets_wrong_become_choices(annotation):
    """Ours: some of them make msgspec 0.22 write into memory that is not its own."""
    assert find_peril(annotation)
    assert make_expressible(annotation) is not annotation


@pytest.mark.parametrize(
    "annotation",
    [
        SOME | None,
        SOME | LONG,
        LONG | list[int] | None,
        LONG | tuple[int, ...],
        float | int,
        Literal["auto"] | SOME,
        LIKE | int | None,
        tuple[LONG, int],
    ],
)
def test_unions_msgspec_gets_right_are_left_to_it(annotation):
    """Ours: it is much faster at them."""
    assert None is find_peril(annotation)
    assert annotation is make_expressible(annotation)


def test_a_perilous_union_inside_a_class_is_refused():
    """Ours: the class is the author's; the message names the union and what is wrong with it."""
    with pytest.raises(UsageError, match="a tuple of fixed length beside a constraint"):
        make_expressible(Holder)


def test_a_choice_takes_what_one_of_its_alternatives_takes():
    """Ours: constraints of the alternatives hold, each for itself."""
    kind = make_expressible(LONG | tuple[int])

    assert issubclass(kind, UnionChoice)
    assert ["ab", (1,)] == [kind.choose(value) for value in ("ab", [1])]
    with pytest.raises(ValueError, match="got `array`"):
        kind.choose(["ab"])


def test_walking_sees_members_of_classes_once():
    """Ours: recursive classes end, and generics are entered."""

    class Outer(msgspec.Struct):
        """Holds."""

        inner: dict[str, list[LONG]]

    assert {Outer, str, LONG} <= {
        p for p in walk_annotation(list[Outer]) if p in (Outer, str, LONG)
    }
    assert int is unwrap_annotation(Annotated[Named, "x"])
    assert int is unwrap_annotation(typing_extensions.TypeAliasType("Alias", Named))


def test_walking_does_not_mind_what_cannot_be_resolved():
    """Ours: whoever has to build the class will say what is wrong with it."""

    class Broken(msgspec.Struct):
        """Names what does not exist."""

        value: "Absent"  # noqa: F821 - the point

    assert [Broken] == list(walk_annotation(Broken))
    with pytest.raises(UsageError, match="Absent"):
        make_expressible(Broken)


class Leaf(msgspec.Struct):
    """An object of scalars."""

    name: str
    made: dt.date | None = None
    unset: int | msgspec.UnsetType = msgspec.UNSET


@dataclasses.dataclass
class Branch:
    """An object of objects."""

    leaves: list[Leaf]
    by_name: dict[str, Leaf] = dataclasses.field(default_factory=dict)


class Typed(typing.TypedDict):
    """An object with a member that may be absent."""

    leaf: typing.NotRequired[Leaf]


class Recursive(msgspec.Struct):
    """An object that holds its own kind."""

    name: str
    inner: "list[Recursive]"


class Left(msgspec.Struct):
    """One of two that hold each other."""

    right: "Right | None" = None


class Right(msgspec.Struct):
    """The other one."""

    left: Left | None = None


class Loose(msgspec.Struct):
    """An object with a member of which nothing is known."""

    leaf: Leaf
    more: Any = None


@attrs.define
class Attrs:
    """A class whose second member has no annotation."""

    first: int
    second = attrs.field()


class Model(pydantic.BaseModel):
    """Pydantic's own business."""

    a: int


Text = NewType("Text", str)
Untyped = collections.namedtuple("Untyped", "a b")  # noqa: PYI024 - untyped is the point


@pytest.mark.parametrize(
    ("annotation", "levels"),
    [
        (int, 0),
        (Text, 0),
        (LONG | None, 0),
        (Literal["a", 1], 0),
        (Numbers, 0),
        (dt.datetime | uuid.UUID | pathlib.Path, 0),
        (list[int], 1),
        (Annotated[tuple[int, ...], Meta(min_length=1)], 1),
        (Sequence[Mapping[str, set[str]]], 3),
        (dict[str, list[int] | str], 2),
        (Leaf, 1),
        (list[Leaf], 2),
        (Branch, 3),
        (Typed, 2),
        (tuple[Leaf, Leaf | list[list[int]]], 3),
        (Any, math.inf),
        (object, math.inf),
        (list, math.inf),
        (dict[str, Any], math.inf),
        (list[int] | dict, math.inf),
        (msgspec.Raw, math.inf),
        (Recursive, math.inf),
        (Left, math.inf),
        (Loose, math.inf),
        (Attrs, math.inf),
        (Model, math.inf),
        (list[Model], math.inf),
        (Untyped, math.inf),
        (typing.TypeVar("T"), math.inf),
    ],
)
def test_a_type_says_how_deeply_its_json_can_be_nested(annotation, levels):
    """Ours: where it does, nobody has to measure what comes; where it does not know, it is any."""
    assert measure_depth(annotation) == levels
