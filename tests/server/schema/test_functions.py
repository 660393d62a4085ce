"""Functions bound to the bytes of their arguments, and called."""

import dataclasses
import functools
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from msgspec import UNSET, Meta, Raw, UnsetType

from isthmus.errors import ToolError, UsageError
from isthmus.server.schema.functions import ArgumentError, UserFunction


class Context:
    """Stands for the context."""


class Point(msgspec.Struct):
    """A place."""

    x: int
    y: int = 0


class Circle(msgspec.Struct):
    """A round thing, which msgspec cannot tell from a point."""

    radius: float
    x: int = 0


class Model(pydantic.BaseModel):
    """A model with a name of its own for the wire."""

    size: int = pydantic.Field(alias="s", ge=0)


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def echo(annotation: Any, **options: Any) -> UserFunction:
    """A function that gives what it takes."""

    def tool(x):
        return x

    tool.__annotations__ = {"x": annotation}
    return UserFunction.of(tool, **options)


def call_function(function: UserFunction, arguments: bytes, context: Any = None) -> Any:
    """What the function gives for JSON."""
    return function.call(function.bind(Raw(arguments)), context)


def refusal(function: UserFunction, arguments: bytes) -> ArgumentError:
    """Why the arguments do not fit."""
    with pytest.raises(ArgumentError) as caught:
        function.bind(Raw(arguments))
    return caught.value


# ---------------------------------------------------------------- calling


def test_arguments_are_decoded_and_passed():
    """Ours: bytes in, a plain call, the value out."""
    function = UserFunction.of(add)

    assert (3, 7) == (
        call_function(function, b'{"a":1}'),
        call_function(function, b'{"b":4,"a":3}'),
    )


def test_absent_and_null_arguments_are_none_at_all():
    """Ours: the specification makes them optional, and some clients send null."""
    function = UserFunction.of(lambda: "ran", name="f")

    results = [function.call(function.bind(a), None) for a in (UNSET, b"{}", Raw(b"null"))]
    assert ["ran", "ran", "ran"] == results


def test_every_kind_of_parameter_arrives_where_it_belongs():
    """Ours: positional-only, keyword-only, the context in between, names Struct itself uses."""

    def tool(a: int, /, ctx: Context, __struct_fields__: int, *, self: int = 4, p0: int = 5):
        return a, ctx, __struct_fields__, self, p0

    context = Context()
    result = call_function(
        UserFunction.of(tool, context_type=Context),
        b'{"a":1,"__struct_fields__":2,"p0":3}',
        context,
    )

    assert (1, context, 2, 4, 3) == result


def test_arguments_bound_by_a_partial_are_passed_by_it():
    """Ours: it is neither asked for nor accepted from the caller."""

    def tool(where: str, a: int, b: int = 2, *, c: int):
        return where, a, b, c

    function = UserFunction.of(functools.partial(tool, "here", b=5))

    assert ("here", 1, 5, 3) == call_function(function, b'{"a":1,"c":3}')
    assert "b: unknown; known are: a, c" in str(refusal(function, b'{"a":1,"c":3,"b":4}'))


def test_a_default_may_be_of_any_type_and_a_list_is_copied():
    """Ours: a sentinel is the very object of the signature, what a call could change is not."""
    shared, odd = [1], object()

    def tool(
        a: list[int] = shared,
        b: Any = odd,
        c: int | UnsetType = UNSET,
        d: list[int] = pydantic.Field(default_factory=list),  # noqa: B008 - so it is written
    ):
        return a, b, c, d

    function = UserFunction.of(tool)
    a, b, c, d = call_function(function, b"{}")

    assert [1] == a
    assert a is not shared
    assert b is odd
    assert c is UNSET
    assert [] == d == function.input_schema["properties"]["d"]["default"]


async def test_an_async_function_gives_something_to_await():
    """Ours: it is neither awaited nor put into a thread here."""

    async def tool(a: int) -> int:
        return a

    function = UserFunction.of(tool)

    assert function.is_async
    assert not function.blocking
    assert 1 == await call_function(function, b'{"a":1}')


@pytest.mark.parametrize(("blocking", "expected"), [(None, True), (False, False), (True, True)])
def test_a_sync_function_may_block_unless_declared_otherwise(blocking, expected):
    """Ours: it goes to a worker thread, since nobody can see whether it waits."""
    assert expected == UserFunction.of(add, blocking=blocking).blocking


# ---------------------------------------------------------------- what is known about it


def test_name_and_description_come_from_the_function_unless_given():
    """Ours: the description is the docstring without what is about parameters."""

    def tool(a: int) -> None:
        """Do it.

        Args:
            a: how often.
        """

    plain, named = UserFunction.of(tool), UserFunction.of(tool, name="t", description="Other.")

    assert ("tool", "Do it.") == (plain.name, plain.description)
    assert ("t", "Other.") == (named.name, named.description)
    assert None is UserFunction.of(lambda: 1, name="f").description


def test_the_schema_describes_the_parameters():
    """The specification wants an object; ours: closed, with descriptions and defaults."""

    def tool(a: int, ctx: Context, b: Annotated[str, Meta(max_length=9)] = "x"):  # noqa: D417 - silent on purpose
        """Do it.

        Args:
            a: how often.
        """

    expected = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "how often."},
            "b": {"type": "string", "maxLength": 9, "default": "x"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }

    assert expected == UserFunction.of(tool, context_type=Context).input_schema


def test_a_function_without_parameters_has_an_empty_closed_schema():
    """The specification recommends exactly this for tools without parameters."""
    expected = {"type": "object", "properties": {}, "additionalProperties": False}

    assert expected == UserFunction.of(lambda: 1, name="f").input_schema


def test_a_function_without_a_name_is_refused():
    """Ours: `<lambda>` is no name to show a model."""
    with pytest.raises(UsageError, match="it has no name: pass name="):
        UserFunction.of(lambda: 1)


def test_a_refusal_names_the_function_and_the_parameter():
    """Ours: the author must find the place."""

    def tool(a: complex) -> None: ...

    with pytest.raises(UsageError, match=r"tool: parameter 'a': 'complex' has no JSON form"):
        UserFunction.of(tool)


def test_two_parameters_of_one_alias_are_refused():
    """Ours: a caller could not tell them apart."""

    def tool(a: int, b: int = pydantic.Field(alias="a")) -> None: ...

    with pytest.raises(UsageError, match="two parameters are called 'a'"):
        UserFunction.of(tool)


# ---------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    ("arguments", "path", "said"),
    [
        (b'{"a":"x"}', "$.a", 'a: expected an integer, got "x"'),
        (b"{}", "$.a", "a: missing, expected an integer"),
        (b'{"a":1,"c":2}', "$.c", "c: unknown; known are: a, b"),
        (b"[1]", "$", "expected an object with a, got a list of 1 item"),
        (b'{"a":1', "$", "Input data was truncated"),
        (b'{"a":1.5}', "$.a", "a: expected an integer, got 1.5"),
        (b'{"a":1.0,"b":"x"}', "$.b", 'b: expected an integer, got "x"'),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_path(arguments, path, said):
    """Ours: the text lets a model mend its call; it is an error a tool's result can carry."""
    error = refusal(UserFunction.of(add), arguments)

    assert path == error.path
    assert said in str(error)
    assert isinstance(error, ToolError)


@pytest.mark.parametrize(
    "arguments", [b'{"x":' + b"9" * 5000 + b"}", b'{"x":' + b"[" * 100000, b'{"x":[[1]]}', b"\xff"]
)
def test_nothing_a_caller_sends_escapes_as_another_exception(arguments):
    """Ours: huge numbers, deep nesting, unhashable items and broken text are bad arguments too."""
    assert "$" in refusal(echo(set[Any] | int), arguments).path


def test_the_place_is_deep_where_the_problem_is():
    """Ours: a path into lists and objects."""
    error = refusal(echo(list[Point]), b'{"x":[{"x":1},{"x":"a"}]}')

    assert [("$.x[1].x", 'expected an integer, got "a"')] == error.problems
    assert 'Invalid arguments for tool: x[1].x: expected an integer, got "a"' == str(error)


def test_pydantic_tells_all_problems_with_their_places():
    """Ours: under the names the caller used."""

    def tool(models: list[Model] = pydantic.Field(alias="ms")): ...  # noqa: B008 - so it is written

    error = refusal(UserFunction.of(tool), b'{"ms":[{"s":-1},{}]}')

    assert ["$.ms[0].s", "$.ms[1].s"] == [path for path, _ in error.problems]


# ---------------------------------------------------------------- mending


@pytest.mark.parametrize(
    ("annotation", "given", "expected"),
    [
        (list[int], b'"[1,2,3]"', [1, 2, 3]),
        (int, b'"7"', 7),
        (bool, b'"true"', True),
        (Point, b'"{\\"x\\":1}"', Point(1)),
        (int | None, b'"null"', None),
        (list[int] | None, b'"[1]"', [1]),
        (list[Model], b'"[{\\"s\\":1}]"', [Model(s=1)]),
        (Literal[1, 2], b'"2"', 2),
        (float, b'"2"', 2.0),
    ],
)
def test_json_in_a_string_is_understood_where_no_string_is_expected(annotation, given, expected):
    """Ours: models often write arguments twice encoded; the repair is counted."""
    function = echo(annotation)

    assert expected == call_function(function, b'{"x":' + given + b"}")
    assert 1 == function.repairs


@pytest.mark.parametrize("given", [b'"{\\"a\\":3}"', b"[3]", b"3"])
def test_arguments_that_are_no_object_are_not_mended(given):
    """Ours: a model writes members, but what is around them is its client's: a wrong request."""
    with pytest.raises(ArgumentError, match="object"):
        call_function(UserFunction.of(add), given)


@pytest.mark.parametrize("annotation", [str, Any, str | int, Literal["1"] | int, str | None])
def test_a_string_stays_a_string_where_one_is_expected(annotation):
    """Ours: the repair never changes what fits, even when another argument is repaired."""

    def tool(x, n):
        return x, n

    tool.__annotations__ = {"x": annotation, "n": int}

    assert ("1", 2) == call_function(UserFunction.of(tool), b'{"x":"1","n":"2"}')


def test_a_repair_that_does_not_help_tells_what_is_wrong_inside():
    """Ours: JSON in a string is read, and what is no JSON is told as it was sent."""
    function = echo(list[int])

    assert 'x[0]: expected an integer, got "a"' in str(refusal(function, b'{"x":"[\\"a\\"]"}'))
    assert 'x: expected a list, each item an integer, got "[1"' in str(
        refusal(function, b'{"x":"[1"}')
    )
    assert 0 == function.repairs


def test_the_repair_can_be_declined():
    """Ours: some want their callers strict."""
    assert "expected a list" in str(refusal(echo(list[int], repair=False), b'{"x":"[1]"}'))


@pytest.mark.parametrize("repair", [True, False])
def test_an_integer_may_be_written_with_a_point(repair):
    """JSON Schema counts 2.0 among the integers, so what it admits is accepted, repair or not."""
    function = echo(dict[str, list[int]], repair=repair)

    assert {"a": [2, 3]} == call_function(function, b'{"x":{"a":[2.0,3]}}')
    assert 0 == function.repairs


def test_text_arguments_are_read_as_what_they_say():
    """Ours: prompts and resource templates have nothing but text."""

    def prompt(n: int, name: str, flags: list[str] | None = None):
        return n, name, flags

    function = UserFunction.of(prompt)
    bound = function.bind_text({"n": "3", "name": "4", "flags": '["a"]'})

    assert (3, "4", ["a"]) == function.call(bound, None)


# ---------------------------------------------------------------- types msgspec alone cannot handle


def test_untagged_structs_are_told_apart_by_their_members():
    """Ours: the alternative that leaves fewest members unread, else the first that fits."""
    function = echo(list[Point | Circle | None])
    given = b'{"x":[{"x":1},{"radius":2,"x":3},{"x":1,"y":2},null]}'

    assert [Point(1), Circle(2.0, 3), Point(1, 2), None] == call_function(function, given)
    assert "x[0].x: missing, expected an integer" in str(refusal(function, b'{"x":[{"y":1}]}'))


def test_a_union_inside_a_class_that_cannot_be_told_apart_is_refused():
    """Ours: we do not rewrite an author's class; the message says what msgspec says."""

    class Shape(msgspec.Struct):
        """Holds what cannot be told apart."""

        form: Point | Circle

    with pytest.raises(UsageError, match="must be tagged"):
        echo(Shape)


def test_models_mix_with_everything():
    """Ours: a model beside plain parameters, inside lists, dictionaries, structs, unions."""

    class Box(msgspec.Struct):
        """A struct with a model in it."""

        model: Model

    @dataclasses.dataclass
    class Crate:
        """A dataclass with a model in it."""

        model: Model

    def tool(  # noqa: PLR0917 - one of each
        a: int,
        b: Model,
        c: dict[str, Model],
        d: Box,
        e: Crate,
        f: Model | Point,
        g: Model | None = None,
    ):
        return a, b, c, d, e, f, g

    one = Model(s=1)
    given = (
        b'{"a":1,"b":{"s":1},"c":{"k":{"s":1}},"d":{"model":{"s":1}},"e":{"model":{"s":1}},'
        b'"f":{"s":1}}'
    )

    expected = (1, one, {"k": one}, Box(one), Crate(one), one, None)
    assert expected == call_function(UserFunction.of(tool), given)


def test_pydantic_constraints_on_a_plain_parameter_are_kept():
    """Ours: `Field` and annotated-types mean the same here as in pydantic."""

    def tool(a: Annotated[int, pydantic.Field(ge=3)], b: pydantic.PositiveInt = 1):
        return a, b

    function = UserFunction.of(tool)

    assert (3, 1) == call_function(function, b'{"a":3}')
    assert ["$.a"] == [path for path, _ in refusal(function, b'{"a":2}').problems]
    assert {"type": "integer", "minimum": 3} == function.input_schema["properties"]["a"]


def test_pydantic_constraints_in_msgspec_types_are_refused():
    """Ours: msgspec would ignore them, and silence is worse."""

    class Box(msgspec.Struct):
        """A struct with a constraint nobody would check."""

        n: Annotated[int, pydantic.Field(ge=3)]

    with pytest.raises(UsageError, match=r"use msgspec\.Meta"):
        echo(Box)
