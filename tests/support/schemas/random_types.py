"""Random types, by every library a user may bring, with strategies for their values."""

import dataclasses
import datetime as dt
import decimal
import enum
import itertools
import keyword
import string
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

import attrs
import msgspec
import pydantic
from hypothesis import strategies as st
from msgspec import Meta

from isthmus.errors import UsageError
from isthmus.server.schema.custom_types import make_expressible


class Kind(NamedTuple):
    """A type, how to draw values of it, and what may contain it."""

    annotation: Any
    values: st.SearchStrategy[Any]
    pydantic: bool = True  # pydantic can handle it
    hashable: bool = True
    default: Any = None  # a value that may be a default


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
DIGITS = st.text("0123456789", min_size=1, max_size=6)
ZONES = st.one_of(
    st.none(), st.integers(-23 * 60, 23 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
)
AWARE = ZONES.filter(bool)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
COUNT = itertools.count()
# "schema", "copy", "json" and "dict" are methods of pydantic's models, which warn where they are hidden
TAKEN_NAMES = {"self", "cls", *dir(pydantic.BaseModel)}
NAMES = st.text(string.ascii_lowercase + "_", min_size=1, max_size=6).filter(
    lambda n: not (keyword.iskeyword(n) or n.startswith("_") or n in TAKEN_NAMES)
)


def named(prefix: str) -> str:
    """A name for a class that no other has."""
    return f"{prefix}{next(COUNT)}"


PLAIN = st.sampled_from(
    [
        Kind(int, st.integers()),
        Kind(float, FLOATS),
        Kind(bool, st.booleans()),
        Kind(str, TEXT),
        Kind(type(None), st.none()),
        Kind(dt.datetime, st.datetimes(timezones=ZONES)),
        Kind(dt.date, st.dates()),
        Kind(dt.time, st.times(timezones=ZONES)),
        Kind(dt.timedelta, st.timedeltas()),
        Kind(uuid.UUID, st.uuids()),
        Kind(decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
        # Not plain bytes: beside a model they are pydantic's, which wants them to be UTF-8.
        Kind(Annotated[bytes, Meta(max_length=8)], st.binary(max_size=8), pydantic=False),
        Kind(Any, JSON, hashable=False),
    ]
)


@st.composite
def constrained(draw: st.DrawFn) -> Kind:
    """A plain type with constraints of msgspec's."""
    low = draw(st.integers(-1000, 1000))
    high = low + draw(st.integers(0, 100))
    size = draw(st.integers(0, 5))
    step = draw(st.sampled_from([1, 2, 5, 7]))
    kinds = [
        Kind(Annotated[int, Meta(ge=low, le=high)], st.integers(low, high)),
        Kind(Annotated[int, Meta(gt=low)], st.integers(min_value=low + 1)),
        Kind(Annotated[int, Meta(multiple_of=step)], st.integers().map(lambda n: n * step)),
        Kind(Annotated[float, Meta(ge=low, lt=high + 1)], st.floats(low, high)),
        Kind(
            Annotated[float, Meta(multiple_of=0.25)],
            st.integers(-(2**40), 2**40).map(lambda n: n / 4),
        ),
        Kind(Annotated[str, Meta(min_length=size)], st.text("aé€😀", min_size=size)),
        Kind(Annotated[str, Meta(max_length=size)], st.text("aé€😀", max_size=size)),
        Kind(Annotated[str, Meta(pattern="^[a-z]+(-[0-9]{2})?$")], st.just("abc-12")),
        Kind(Annotated[str, Meta(pattern=r"\A(?P<n>[xy])+\Z")], st.text("xy", min_size=1)),
        Kind(
            Annotated[bytes, Meta(min_length=size, max_length=size + 2)],
            st.binary(min_size=size, max_size=size + 2),
        ),
        Kind(Annotated[dt.datetime, Meta(tz=True)], st.datetimes(timezones=AWARE)),
        Kind(Annotated[dt.datetime, Meta(tz=False)], st.datetimes()),
        Kind(Annotated[dt.time, Meta(tz=True)], st.times(timezones=AWARE)),
        Kind(Annotated[dt.time, Meta(tz=False)], st.times()),
    ]
    return draw(st.sampled_from(kinds))._replace(pydantic=False)


@st.composite
def pydantic_constrained(draw: st.DrawFn) -> Kind:
    """A plain type with constraints of pydantic's."""
    low = draw(st.integers(-1000, 1000))
    size = draw(st.integers(0, 5))
    kinds = [
        Kind(
            Annotated[int, pydantic.Field(ge=low, description="a number")],
            st.integers(min_value=low),
        ),
        Kind(Annotated[str, pydantic.Field(min_length=size)], st.text("aé😀", min_size=size)),
        Kind(pydantic.PositiveInt, st.integers(min_value=1)),
        Kind(pydantic.AwareDatetime, st.datetimes(timezones=AWARE)),
        Kind(pydantic.NaiveDatetime, st.datetimes()),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def choices(draw: st.DrawFn) -> Kind:
    """An enumeration of words or numbers, as a Literal or a class."""
    elements = draw(st.sampled_from([st.integers(-99, 99), TEXT.filter(bool)]))
    values = draw(st.lists(elements, min_size=1, max_size=4, unique=True))
    if draw(st.booleans()):
        return Kind(Literal[tuple(values)], st.sampled_from(values))
    kind = enum.Enum(named("Colour"), {f"M{i}": value for i, value in enumerate(values)})
    return Kind(kind, st.sampled_from(list(kind)))


@st.composite
def collections(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """A list, tuple, set or dictionary of something."""
    item = draw(inner)
    low = draw(st.integers(0, 2))
    bounded = draw(st.booleans())

    def sized(annotation: Any, **fixed: bool) -> Any:
        return (
            Annotated[annotation, Meta(min_length=low, max_length=low + 3)]
            if bounded and not fixed
            else annotation
        )

    least, most = (low, low + 3) if bounded else (0, 4)
    lists = st.lists(item.values, min_size=least, max_size=most)
    free = item.pydantic and not bounded
    forms = [
        Kind(sized(list[item.annotation]), lists, free, hashable=False),
        Kind(sized(tuple[item.annotation, ...]), lists.map(tuple), free, item.hashable),
        Kind(
            sized(dict[str, item.annotation]),
            st.dictionaries(TEXT, item.values, min_size=least, max_size=most),
            free,
            hashable=False,
        ),
        Kind(
            dict[int, item.annotation],
            st.dictionaries(st.integers(-(10**17), 10**17), item.values, max_size=3),
            pydantic=False,
            hashable=False,
        ),
    ]
    if item.hashable:
        forms.append(
            Kind(set[item.annotation], st.sets(item.values, max_size=4), item.pydantic, False)
        )
        forms.append(
            Kind(
                frozenset[item.annotation],
                st.frozensets(item.values, max_size=4),
                item.pydantic,
                item.hashable,
            )
        )
    return draw(st.sampled_from(forms))


@st.composite
def fixed_tuples(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """A tuple of fixed length, anonymous or named."""
    classy = draw(st.booleans())
    items = draw(st.lists(inner.filter(tellable) if classy else inner, min_size=1, max_size=3))
    traits = all(i.pydantic for i in items), all(i.hashable for i in items)
    values = st.tuples(*(i.values for i in items))
    if not classy:
        return Kind(tuple[tuple(i.annotation for i in items)], values, *traits)
    kind = NamedTuple(named("Pair"), [(f"f{n}", i.annotation) for n, i in enumerate(items)])
    return Kind(kind, values.map(lambda v: kind(*v)), *traits)


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Kind]) -> Kind:
    """Two or three alternatives, often None among them."""
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    if len(parts) == 1:
        parts.append(Kind(type(None), st.none()))
    return Kind(
        Union[tuple(p.annotation for p in parts)],  # noqa: UP007 - made at run time
        st.one_of([p.values for p in parts]),
        all(p.pydantic for p in parts),
        all(p.hashable for p in parts),
    )


def tellable(kind: Kind) -> bool:
    """Whether msgspec can tell its alternatives apart: in a class of the user's it must."""
    try:
        return make_expressible(kind.annotation) is kind.annotation
    except UsageError:
        return False


@st.composite
def records(draw: st.DrawFn, inner: st.SearchStrategy[Kind], *, modern: bool = False) -> Kind:
    """A class with members, some of them with defaults, by any library."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    members = [(name, draw(inner.filter(tellable)), draw(st.booleans())) for name in names]
    members.sort(key=lambda member: member[2])
    makers = [dataclass] if modern else [struct, dataclass, attrs_class, typed_dict]
    if all(kind.pydantic for _, kind, _ in members):
        makers.append(pydantic_model)
    return draw(draw(st.sampled_from(makers))(members))


Members = list[tuple[str, Kind, bool]]


def annotated(members: Members) -> list[tuple[str, Any, bool]]:
    """Members with a type that admits None where None is their default."""
    return [
        (name, Optional[kind.annotation] if optional else kind.annotation, optional)  # noqa: UP045 - made at run time
        for name, kind, optional in members
    ]


def arguments(members: Members) -> st.SearchStrategy[dict[str, Any]]:
    """Values for the members; optional ones may be left out."""
    return st.fixed_dictionaries(
        {name: kind.values for name, kind, optional in members if not optional},
        optional={name: st.none() | kind.values for name, kind, optional in members if optional},
    )


def built(kind: Any, members: Members, *, friendly: bool = True) -> st.SearchStrategy[Kind]:
    """The class with values made by calling it."""
    free = friendly and all(k.pydantic for _, k, _ in members)
    return st.just(Kind(kind, arguments(members).map(lambda a: kind(**a)), free, hashable=False))


def struct(members: Members) -> st.SearchStrategy[Kind]:
    """A msgspec struct, with and without its peculiarities."""

    def made(options: dict[str, Any]) -> Kind:
        fields = [(n, t, None) if o else (n, t) for n, t, o in annotated(members)]
        kind = msgspec.defstruct(named("S"), fields, **options)
        return Kind(
            kind, arguments(members).map(lambda a: kind(**a)), pydantic=False, hashable=False
        )

    return st.fixed_dictionaries(
        {},
        optional={
            "rename": st.just("camel"),
            "omit_defaults": st.booleans(),
            "forbid_unknown_fields": st.booleans(),
            "array_like": st.booleans(),
            "tag": st.sampled_from([None, "t", 7]),
        },
    ).map(made)


def dataclass(members: Members) -> st.SearchStrategy[Kind]:
    """A dataclass."""
    fields = [
        (n, t, dataclasses.field(default=None)) if o else (n, t) for n, t, o in annotated(members)
    ]
    return built(dataclasses.make_dataclass(named("D"), fields), members)


def attrs_class(members: Members) -> st.SearchStrategy[Kind]:
    """An attrs class."""
    fields = {
        n: attrs.field(type=t, default=None) if o else attrs.field(type=t)
        for n, t, o in annotated(members)
    }
    return built(attrs.make_class(named("A"), fields), members, friendly=False)


def typed_dict(members: Members) -> st.SearchStrategy[Kind]:
    """A TypedDict; what is optional is not required."""
    fields = {n: NotRequired[t] if o else t for n, t, o in annotated(members)}
    kind = TypedDict(named("T"), fields)  # type: ignore[operator]  # the functional form, with names drawn
    # pydantic wants typing_extensions' TypedDict before Python 3.12
    return st.just(Kind(kind, arguments(members), pydantic=False, hashable=False))


def pydantic_model(members: Members) -> st.SearchStrategy[Kind]:
    """A pydantic model with distinct names for reading and writing."""
    fields = {
        n: (t, pydantic.Field(None, alias=f"{n}In", serialization_alias=f"{n}Out"))
        if o
        else (t, pydantic.Field(alias=f"{n}In", serialization_alias=f"{n}Out"))
        for n, t, o in annotated(members)
    }
    model = pydantic.create_model(named("M"), **fields)
    values = arguments(members).map(lambda a: model(**{f"{n}In": v for n, v in a.items()}))
    return st.just(Kind(model, values, hashable=False))


def parts(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    """Types that have these as their parts."""
    return collections(inner) | fixed_tuples(inner) | unions(inner)


PYDANTIC = st.recursive(
    PLAIN.filter(lambda kind: kind.pydantic) | pydantic_constrained() | choices(),
    lambda inner: parts(inner).filter(lambda k: k.pydantic) | records(inner, modern=True),
    max_leaves=4,
)
"""Types that pydantic handles from top to bottom."""

NATIVE = st.recursive(
    PLAIN | constrained() | choices(),
    lambda inner: parts(inner) | records(inner),
    max_leaves=5,
)
"""Types that msgspec handles, with pydantic models among their parts."""

KINDS = NATIVE | PYDANTIC
