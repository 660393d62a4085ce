"""Mutable defaults: what one caller puts into one is not seen by the next."""

import copy
import datetime as dt
import threading
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from msgspec import Struct

from isthmus import Server
from isthmus.server.asking.forms import make_form
from isthmus.server.schema.defaults import make_default_factory, make_unsharer
from isthmus.server.schema.functions import UserFunction
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Mutable(Struct):
    items: list[str] = []


@dataclass
class Record:
    items: list[str] = field(default_factory=list)


@dataclass(eq=False)
class ByIdentity:
    items: list[str] = field(default_factory=list)


@attrs.define
class Attrs:
    items: list[str] = []  # noqa: RUF008 - what an author may write


class Named(NamedTuple):
    items: list[str] = []  # noqa: RUF012 - what an author may write


class Model(pydantic.BaseModel):
    items: list[str] = []


class StructWithRecord(Struct):
    record: Record = Record()


class StructWithTuple(Struct):
    items: tuple[list[str], ...] = ([],)


@dataclass
class RecordWithRecord:
    record: ByIdentity = ByIdentity()  # noqa: RUF009 - what an author may write


@dataclass
class RecordWithStruct:
    inner: Mutable = Mutable()  # noqa: RUF009 - what an author may write


class ModelWithRecord(pydantic.BaseModel):
    record: ByIdentity = ByIdentity()


class Typed(TypedDict, total=False):
    inner: Attrs


class Holder(Struct):
    many: list[Attrs]


def fill(value):
    """Put something into the first thing in a value that takes it."""
    if isinstance(value, list):
        return value.append("secret")
    if isinstance(value, set):
        return value.add("secret")
    if isinstance(value, bytearray):
        return value.extend(b"secret")
    if isinstance(value, tuple):
        return fill(value[0])
    if isinstance(value, dict):
        return fill(next(iter(value.values()))) if value else value.update(secret="secret")
    names = getattr(value, "__struct_fields__", None) or list(
        getattr(value, "__dataclass_fields__", None)
        or getattr(value, "__pydantic_fields__", None)
        or [a.name for a in value.__attrs_attrs__]
    )
    return fill(getattr(value, names[0]))


DEFAULTS = [
    (list, []),
    (list, ["a"]),
    (dict, {}),
    (dict, {"a": ["b"]}),
    (set, set()),
    (set, {"a"}),
    (bytearray, bytearray()),
    (bytearray, bytearray(b"a")),
    (tuple, ([],)),
    (Mutable, Mutable()),
    (Record, Record()),
    (ByIdentity, ByIdentity()),
    (Attrs, Attrs()),
    (Named, Named()),
    (Model, Model()),
    (dict[str, list[Mutable]], {"a": [Mutable()]}),
    (Annotated[list, "what was bought"], []),
    (list, pydantic.Field(default=["a"])),
    (Annotated[list, pydantic.Field(default=["a"])], NotImplemented),
    (Annotated[list[int], pydantic.Field(max_length=9)], []),
    (Model | None, Model()),
]


@pytest.mark.parametrize(("annotation", "default"), DEFAULTS, ids=range(len(DEFAULTS)))
def test_each_call_has_its_own_copy_of_a_default(annotation, default):
    """A default that one call changes is as it was written in the next."""

    def shop(basket):
        return basket

    shop.__annotations__ = {"basket": annotation}
    if default is not NotImplemented:
        shop.__defaults__ = (default,)
    function = UserFunction.of(shop)
    first = function.call(function.bind(b"{}"), None)
    before = copy.deepcopy(first)
    fill(first)
    assert before != first or isinstance(first, ByIdentity)
    second = function.call(function.bind(b"{}"), None)
    assert msgspec.to_builtins(before, enc_hook=vars) == msgspec.to_builtins(second, enc_hook=vars)


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (Attrs, b"{}"),
        (Named, b"[]"),
        (StructWithRecord, b"{}"),
        (StructWithTuple, b"{}"),
        (RecordWithRecord, b"{}"),
        (RecordWithStruct, b"{}"),
        (ModelWithRecord, b"{}"),
        (Mutable, b"{}"),
        (Model, b"{}"),
        (Typed, b'{"inner":{}}'),
        (Holder, b'{"many":[{}]}'),
        (list[Attrs], b"[{}]"),
        (Attrs | int, b"{}"),
    ],
    ids=repr,
)
def test_each_call_has_its_own_copy_of_a_fields_default(annotation, given):
    """Defaults of fields inside an argument's type are not shared either, in whatever class."""

    def shop(basket):
        return basket

    shop.__annotations__ = {"basket": annotation}
    function = UserFunction.of(shop)
    arguments = b'{"basket":%b}' % given
    first = function.call(function.bind(arguments), None)
    before = msgspec.to_builtins(first, enc_hook=dict)
    fill(first)
    second = function.call(function.bind(arguments), None)
    assert before == msgspec.to_builtins(second, enc_hook=dict)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class FrozenRecord:
    names: tuple[str, ...] = ("a",)


class FrozenStruct(Struct, frozen=True):
    name: str = "a"


@attrs.frozen
class FrozenAttrs:
    name: str = "a"


MISSING = object()


class Sentinel:
    """A class of an author's whose only instance says that nothing was given."""


IMMUTABLE = [
    None, True, 1, 1.5, "a", b"a", (), (1, "a"), frozenset({1}), Colour.RED, dt.date(2026, 1, 1),
    dt.timedelta(1), UUID(int=1), Path("a"), FrozenRecord(), FrozenStruct(), FrozenAttrs(), MISSING,
    Sentinel(), print, int, msgspec.UNSET,
]  # fmt: skip


@pytest.mark.parametrize("default", IMMUTABLE, ids=range(len(IMMUTABLE)))
def test_a_default_that_cannot_change_is_passed_as_it_is(default):
    """Immutable defaults cost nothing, and a sentinel is the one that the author compares with."""

    def shop(basket: Any = default) -> Any:
        return basket

    function = UserFunction.of(shop)
    assert make_default_factory(default) is None
    assert function.call(function.bind(b"{}"), None) is default


def test_types_whose_defaults_cannot_leak_cost_nothing():
    """Nothing is copied after decoding where classes hand out fresh defaults by themselves."""
    for kind in (int, list[str], Mutable, Record, Model, FrozenStruct, dict[str, Any]):
        assert make_unsharer(kind) is None


def test_a_default_without_a_copy_is_shared():
    """A lock or a connection is meant to be the same for every call."""
    lock = threading.Lock()

    def shop(guard: Any = lock, line: Any = deque(["a"])) -> Any:  # noqa: B006 - as an author may write
        line.append("b")
        return guard, list(line)

    function = UserFunction.of(shop)
    for _ in range(2):
        assert (lock, ["a", "b"]) == function.call(function.bind(b"{}"), None)


@BOTH
async def test_one_user_does_not_see_another_ones_basket(revision):
    """Tools, prompts and resource templates alike start from the default as it was written."""
    server = Server("shop")

    def add(item: str, basket: list[str] = []) -> list[str]:  # noqa: B006 - the very fault
        basket.append(item)
        return basket

    server.add_tool(add)
    server.prompt(name="add")(lambda item, basket=[]: str(basket.append(item) or basket))
    server.resource("shop://{item}{?basket}", name="add")(
        lambda item, basket=[]: str(basket.append(item) or basket)
    )
    for item in ("ada's secret", "tea"):
        client = EraClient(server, revision)
        called = await client.send("tools/call", {"name": "add", "arguments": {"item": item}})
        prompted = await client.send("prompts/get", {"name": "add", "arguments": {"item": item}})
        read = await client.send("resources/read", {"uri": f"shop://{item[-3:]}"})
        assert str([item[-3:]]) == read["contents"][0]["text"]
        assert {"result": [item]} == called["structuredContent"]
        assert str([item]) == prompted["messages"][0]["content"]["text"]


CHOICES = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]}


@attrs.define
class Choices:
    items: list[Literal["a", "b"]] = ["a"]  # noqa: RUF008 - what an author may write


@pytest.mark.parametrize(
    "form", [Choices, {"type": "object", "properties": {"items": CHOICES}}], ids=["type", "schema"]
)
def test_each_answer_to_a_form_has_its_own_copy_of_a_default(form):
    """Two answers that leave out the same blank share nothing."""
    read = make_form(form).read
    first = read({})
    before = copy.deepcopy(first)
    fill(first)
    assert before == read({})


@BOTH
async def test_the_parameters_of_an_own_method_share_no_default(revision):
    """A method beside the specification's reads its params as tools read their arguments."""
    server = Server("shop")

    @server.method("x-shop/add", params=Attrs)
    async def add(params: Attrs) -> dict[str, Any]:
        params.items.append("tea")
        return {"items": list(params.items)}

    for _ in range(2):
        answer = await EraClient(server, revision).send("x-shop/add", {})
        assert ["tea"] == answer["items"]
