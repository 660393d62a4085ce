"""What is read from a function's signature, and what is refused there."""

import functools
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
import pydantic
import pytest
from msgspec import NODEFAULT

from isthmus.errors import UsageError
from isthmus.server.schema.signatures import read_signature

if TYPE_CHECKING:
    from nowhere import Absent, Context  # what type checkers alone import

T = TypeVar("T")


class Ctx:
    """Stands for the context."""


class State(Ctx, Generic[T]):
    """A generic context."""


class Counter:
    """Methods of every kind."""

    def add(self, by: int) -> int:
        """Add."""
        return by

    @classmethod
    def made(cls, by: int) -> int:
        """Make."""
        return by

    @staticmethod
    def fixed(by: int) -> int:
        """Fix."""
        return by

    def __call__(self, by: int) -> int:
        """Call."""
        return by


async def waits(by: int) -> int:
    """Wait."""
    return by


def names(signature):
    """The names a caller uses."""
    return [parameter.wire for parameter in signature.parameters]


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        (Counter().add, "add", "Add."),
        (Counter.made, "made", "Make."),
        (Counter.fixed, "fixed", "Fix."),
        (Counter(), "Counter", "Call."),
        (functools.partial(Counter().add), "add", "Add."),
        (waits, "waits", "Wait."),
    ],
)
def test_anything_callable_can_be_read(function, name, text):
    """Ours: bound, static, class methods, objects and partials are functions to us."""
    signature = read_signature(function)

    assert (name, text, ["by"], int) == (
        signature.name,
        signature.doc.text,
        names(signature),
        signature.returns,
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [(waits, True), (functools.partial(waits, 1), True), (Counter(), False), (len, False)],
)
def test_async_is_seen_through_wrappings(function, expected):
    """Ours: whoever calls must know whether there is something to await."""
    assert expected == read_signature(function).is_async


def test_arguments_bound_by_a_partial_are_not_offered():
    """Ours: a bound argument, positional or by name, is nobody else's business."""

    def search(database: object, query: str, limit: int = 5, *, secret: str) -> str: ...

    signature = read_signature(functools.partial(search, object(), secret="x"))

    assert ["query", "limit"] == names(signature)


@pytest.mark.parametrize(
    "annotation", [Ctx, Ctx | None, State, State[int], Annotated[Ctx, "given"], "Ctx"]
)
def test_the_context_is_found_by_its_annotation(annotation):
    """Ours: its parameter is not part of the schema, however it is spelt."""

    def tool(a: int, where) -> None: ...

    tool.__annotations__["where"] = annotation
    signature = read_signature(tool, Ctx)

    assert ("where", ["a"], ("a", "where")) == (
        signature.context,
        names(signature),
        signature.order,
    )


def test_the_context_may_be_imported_for_type_checkers_only():
    """Ours: linters move that import below TYPE_CHECKING, and it still means the context."""

    def tool(a: int, ctx: "Context") -> None: ...

    class Other:
        """The real one is called otherwise here."""

    found = [read_signature(tool, "Context"), read_signature(tool, type("Context", (), {}))]

    assert ["ctx", "ctx"] == [signature.context for signature in found]
    with pytest.raises(UsageError, match="'Context'"):
        read_signature(tool, Other)


@pytest.mark.parametrize("name", ["ctx", "context"])
def test_a_context_without_its_annotation_is_refused(name):
    """Ours: a model would be asked to fill it in, and the author would wonder."""
    namespace = {}
    exec(f"def tool(a: int, {name}): ...", namespace)  # noqa: S102 - one function, two names

    with pytest.raises(UsageError, match=f"'{name}' has no annotation: write {name}: Context, or"):
        read_signature(namespace["tool"], "Context")


def test_two_contexts_are_refused():
    """Ours: it would be unclear what the second is for."""

    def tool(a: Ctx, b: Ctx) -> None: ...

    with pytest.raises(UsageError, match="'a' and 'b' both take the context"):
        read_signature(tool, Ctx)


def test_string_annotations_see_globals_closures_and_the_namespace():
    """Ours: `from __future__ import annotations` changes nothing."""

    class Local:
        """Known to the closure only."""

    def tool(a: "Counter", b: "Local", c: "Passed") -> "list[Local]":  # noqa: F821 - passed below
        return [Local()]

    signature = read_signature(tool, namespace={"Passed": int})

    assert [Counter, Local, int] == [p.annotation for p in signature.parameters]
    assert list[Local] == signature.returns


def test_a_name_that_does_not_exist_is_named_with_its_parameter():
    """Ours: the message says which annotation, which name, and how to mend it."""

    def tool(a: int, b: "list[Absent]") -> None: ...

    with pytest.raises(UsageError, match=r"annotation of 'b' names 'Absent'.*TYPE_CHECKING"):
        read_signature(tool)


def test_an_annotation_that_is_no_type_is_refused():
    """Ours: what Python cannot evaluate is the author's to mend."""

    def tool(a: "1 +") -> None: ...  # noqa: F722 - the point

    with pytest.raises(UsageError, match="cannot be evaluated"):
        read_signature(tool)


def unbound(self, a: int) -> None:
    """Look like a method of a class."""


def yields(a: int):
    """Yield."""
    yield a


async def yields_later(a: int):
    """Yield later."""
    yield a


def stars(*many: int) -> None:
    """Take as many as there are."""


def pairs(**named: int) -> None:
    """Take any name."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (stars, r"\*many .* name every parameter, or take one of type list"),
        (pairs, r"\*\*named .* or take one of type dict"),
        (unbound, "register the method of an object"),
        (Counter.add, "register the method of an object"),
        (yields, "it is a generator"),
        (yields_later, "it is a generator"),
        (Counter, "is not a function"),
        (3, "is not a function"),
        ("add", "'add' is not a function: a name is given as name='add'"),
        (print, r"\*args"),
        (max, "cannot be read"),
    ],
)
def test_parameters_that_no_caller_can_fill_are_refused(function, said):
    """Ours: the message says what is wrong and what to do."""
    with pytest.raises(UsageError, match=said):
        read_signature(function)


def test_defaults_and_names_are_kept():
    """Ours: what is absent has the very default the function has."""
    default = [1]

    def tool(a: int, b: list[int] = default, *, c: str = "x", d) -> None: ...

    a, b, c, d = read_signature(tool).parameters

    assert a.required
    assert not b.required
    assert not c.required
    assert d.required
    assert default is b.default
    assert Any == d.annotation
    assert not a.by_name
    assert c.by_name


def test_words_around_a_type_are_taken_off_it():
    """Ours: a description is for the schema; what is left is only what constrains."""

    class Doc:
        """As in PEP 727."""

        documentation = "documented"

    def tool(  # noqa: D417 - the others speak for themselves
        a: Annotated[int, "plain"],
        b: Annotated[int, Doc()],
        c: Annotated[int, msgspec.Meta(description="meta", ge=1)],
        d: Annotated[int, pydantic.Field(description="field", examples=[4])],
        e: int,
    ) -> None:
        """Tool.

        Args:
            d: less telling
            e: from the docstring
        """

    parameters = read_signature(tool).parameters

    assert ["plain", "documented", "meta", "field", "from the docstring"] == [
        p.description for p in parameters
    ]
    assert [int, int, int, int] == [p.annotation for i, p in enumerate(parameters) if i != 2]
    assert [4] == parameters[3].examples


def test_a_field_is_honoured_in_the_annotation_and_as_the_default():
    """Ours: pydantic's users write it in both places."""

    def tool(
        a: Annotated[int, pydantic.Field(alias="A", default=2)],
        b: int = pydantic.Field(3, ge=1, alias="B"),
        c: list[int] = pydantic.Field(default_factory=list),  # noqa: B008 - so it is written
        d: int = pydantic.Field(..., le=9),
    ) -> None: ...

    a, b, c, d = read_signature(tool).parameters

    assert ("A", 2, int) == (a.wire, a.default, a.annotation)
    assert ("B", 3, 1) == (b.wire, b.default, b.annotation.__metadata__[0].ge)
    assert (NODEFAULT, list) == (c.default, c.default_factory)
    assert 9 == d.annotation.__metadata__[0].le
    assert d.required


def test_the_default_of_the_signature_wins_over_the_fields():
    """Ours: it is what Python itself would use; and words inside a union are words."""

    def tool(
        a: Annotated[int, pydantic.Field(default=1)] = 2,
        b: Annotated[Counter, pydantic.Field(description="which")] | None = None,
    ) -> None: ...

    a, b = read_signature(tool).parameters

    assert (2, int) == (a.default, a.annotation)
    assert ("which", Counter | None) == (b.description, b.annotation)


def test_a_parameter_with_several_names_is_refused():
    """Ours: a schema has one name for a property."""

    def tool(a: int = pydantic.Field(validation_alias=pydantic.AliasChoices("x", "y"))): ...

    with pytest.raises(UsageError, match="one name on the wire"):
        read_signature(tool)


def test_a_lambda_has_no_name():
    """Ours: whoever registers one must say what it is called."""
    assert "" == read_signature(lambda a: a).name


def test_a_name_around_the_function_may_be_given_its_value_later():
    """Ours: a tool may use what its enclosing function makes after it."""

    def tool(n: int) -> str:
        return later + str(n)

    signature = read_signature(tool, None)
    later = "x"

    assert ["n"] == [parameter.name for parameter in signature.parameters]
    assert "x1" == tool(1)
