"""Functions bound to the bytes of their arguments, and called."""

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from msgspec import UNSET, Meta, Raw, UnsetType

from isthmus.errors import ToolError, UsageError
from isthmus.server.schema.functions import ArgumentError, UserFunction
from support.profiling import profile_calls


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


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("size", [1, 50_000])
def test_a_large_list_may_have_integers_with_a_point(repair, size):
    """What the schema admits is accepted at every size."""
    function = echo(list[list[int]], repair=repair)
    numbers = b"[" + b",".join([b"2.0,-0.0,10.0"] * size) + b"]"

    assert [[2, 0, 10] * size] * 2 == call_function(function, b'{"x":[%b,%b]}' % (numbers, numbers))


def take_two(x: int, items: Any, text: str = "") -> Any:
    """A function with a member that a caller may make large."""
    return x, items, text


LARGE_ITEMS = {
    "strings": b'["a",' + b'"a",' * 100_000 + b'"1.0,"]',
    "lists": b"[" + b"[]," * 100_000 + b"[]]",
    "chains": b"[" + (b"[" * 100 + b"]" * 100 + b",") * 2_000 + b"[]]",
    "numbers": b"[" + b"1.0," * 100_000 + b"1.5]",
    "objects": b'{"a":{},' + b",".join(b'"%d":{}' % i for i in range(30_000)) + b"}",
}


@pytest.mark.parametrize("items", LARGE_ITEMS.values(), ids=LARGE_ITEMS)
def test_small_members_beside_large_ones_are_mended(items):
    """Ours: a number in a string, and an integer with a point; what is large stays as it was sent."""
    function = UserFunction.of(take_two)
    text = "1.0," * 50_000
    arguments = b'{"items":%b,"text":"%b","x":' % (items, text.encode())

    for x in (b'"7"', b"7.0"):
        assert (7, msgspec.json.decode(items), text) == call_function(
            function, arguments + x + b"}"
        )
    assert 1 == function.repairs


@pytest.mark.parametrize("items", LARGE_ITEMS.values(), ids=LARGE_ITEMS)
def test_small_members_beside_large_ones_are_explained(items):
    """Ours: everything that is wrong with them, in the words of small arguments."""
    arguments = b'{"items":%b,"text":1,"x":"no"}' % items

    assert [
        ("$.x", 'expected an integer, got "no"'),
        ("$.text", "expected a string, got 1"),
    ] == refusal(UserFunction.of(take_two), arguments).problems


def test_a_large_member_is_refused_with_its_first_fault():
    """Ours: the decoder's, with its place."""
    arguments = b'{"x":[' + b"1," * 100_000 + b'"a","b"]}'

    ((path, what),) = refusal(echo(list[int]), arguments).problems
    assert ("$.x[100000]", "Expected `int`, got `str`") == (path, what)


def test_a_large_string_is_not_read_as_json():
    """Ours: it is told as it was sent."""
    text = "[" + "[]," * 30_000 + "[]]"

    assert f"({len(text)} characters)" in str(
        refusal(echo(list[Any]), b'{"x":"%b"}' % text.encode())
    )
    small = "[" + "[]," * 20_000 + "[]]"
    assert 20_001 == len(call_function(echo(list[Any]), b'{"x":"%b"}' % small.encode()))


def test_a_number_without_a_float_is_refused():
    """As the decoder does: it would become null."""
    assert "out of range" in str(refusal(echo(int), b'{"x":1e400}'))


def count_steps(function: UserFunction, arguments: bytes) -> int:
    """The calls of functions, Python's own and the library's, that refusing arguments takes."""
    refusal(function, b"[]")  # what only a first call does
    refusal(function, b'{"x":"no"}')
    steps = 0

    def count(_frame, event, _argument):
        nonlocal steps
        steps += event in {"call", "c_call"}

    with profile_calls(count):
        refusal(function, arguments)
    return steps


@pytest.mark.parametrize(
    "arguments",
    [
        *(b'{"x":"no","items":%b}' % items for items in LARGE_ITEMS.values()),
        b'{"x":"no","text":%b}' % LARGE_ITEMS["strings"],
        b'{"x":"' + b"[]," * 100_000 + b'","items":1}',
        b"{" + b",".join(b'"%d":"[1.0]"' % i for i in range(50_000)) + b"}",
    ],
    ids=[*LARGE_ITEMS, "wrong", "quoted", "unknown"],
)
def test_refusing_large_arguments_takes_few_steps(arguments):
    """Ours: 300 KB of members that were walked over took 100,000 steps and more."""
    assert len(arguments) > 300_000
    assert 5_000 > count_steps(UserFunction.of(take_two), arguments)


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


def list_builtin_calls(function, *given):
    """The names of the C functions that are called while a function runs."""
    calls = []

    def note(_frame, event, called):
        if event == "c_call":
            calls.append(called.__name__)

    with profile_calls(note):
        function(*given)
    return calls


def test_what_only_calls_need_is_made_at_the_first_call():
    """Ours: of thousands of tools most are never called, and a server with them starts quickly."""
    UserFunction.of(add)
    assert {"defstruct", "eval", "type_info"}.isdisjoint(list_builtin_calls(UserFunction.of, add))

    function = UserFunction.of(add)
    assert ["defstruct"] == [
        name for name in list_builtin_calls(function.bind, b'{"a":1}') if name == "defstruct"
    ]
    assert "defstruct" not in list_builtin_calls(function.bind, b'{"a":1}')


@pytest.mark.parametrize("fits", [True, False])
def test_the_first_call_is_bound_like_every_other(fits):
    """Ours: whatever arguments it has, and from however many threads it comes."""
    arguments = b'{"a":"3"}' if fits else b'{"a":"three"}'

    def bind_twice(function):
        said = []
        for _ in range(2):
            try:
                said.append(function.bind(arguments).p0)
            except ArgumentError as error:
                said.append(error.problems)
        return said

    function = UserFunction.of(add)
    with ThreadPoolExecutor(4) as pool:
        found = [one for both in pool.map(bind_twice, [function] * 8) for one in both]

    assert 16 == len(found)
    assert ([3] if fits else bind_twice(UserFunction.of(add))[:1]) * 16 == found


@pytest.mark.parametrize(
    "annotation",
    [
        set[list[int]],
        dict[Point, int],
        complex,
        Annotated[int, Meta(multiple_of=0.3)],
    ],
)
def test_what_cannot_be_decoded_is_refused_before_the_first_call(annotation):
    """Ours: a mistake shows when a tool is declared, not when somebody calls it."""

    def take(value):
        return value

    take.__annotations__["value"] = annotation
    with pytest.raises(UsageError):
        UserFunction.of(take)


def test_plain_parameters_and_results_have_the_schemas_of_all_others():
    """Ours: the short way to a schema leads to the one that the long way makes."""
    doc = "Do it.\n\n    Args:\n        a: the first.\n\n    Returns:\n        The sum.\n    "

    def make(number, text, real, truth):
        def take(a: number, b: text = "x", *, c: real = 1.5, d: truth = False) -> number:
            raise NotImplementedError

        take.__doc__ = doc
        return UserFunction.of(take)

    plain = make(int, str, float, bool)
    other = make(*(Annotated[kind, Meta()] for kind in (int, str, float, bool)))

    assert msgspec.json.encode(plain.input_schema) == msgspec.json.encode(other.input_schema)
    assert [plain.plan_returns().schema] == [other.plan_returns().schema]
