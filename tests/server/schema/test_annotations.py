"""Annotations that msgspec must not be given, found without asking it."""

import enum
from typing import Annotated, Literal, NewType

import msgspec
import pytest
import typing_extensions
from msgspec import Meta

from isthmus.errors import UsageError
from isthmus.server.schema.annotations import find_peril, unwrap_annotation, walk_annotation
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
