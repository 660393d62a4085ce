"""Whether a value has the shape that a revision gives it; every flaw with its JSON path.

The shapes are those of :mod:`isthmus.wire` as a revision's table cuts them. One struct serves all
revisions, so it is more lenient here and there than any one of them; what a revision demands
beyond the structs stands in :mod:`~isthmus.linter.demands`.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import inspect

from isthmus.linter.demands import ALSO_REQUIRED, DEMANDS, EXTENDED, WILD, Inside, Placeholder
from isthmus.revisions import REVISIONS, Revision

__all__ = ["Flaw", "flaws"]


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is not as the revision has it.

    Attributes:
        path: where, as a JSON path: ``$.tools[3].name``.
        kind: a member is missing, a value does not fit, or the revision knows no such member.
        text: what is wrong, in words.
    """

    path: str
    kind: Literal["missing", "unfit", "unknown"]
    text: str


def flaws(value: Any, shape: Any, revision: Revision, path: str = "$") -> list[Flaw]:
    """Everything about ``value`` that does not fit ``shape`` in ``revision``.

    Args:
        value: decoded JSON. Text in angle brackets beside a member ``"..."``, or anywhere in a
            transcript's message, is taken as a placeholder by whoever reads transcripts, not here.
        shape: a struct of :mod:`isthmus.wire`, or another type of its members.
        revision: whose members count.
        path: what to call the value's place.
    """
    return list(_walk(value, _node(shape), revision, path))


_Walker: TypeAlias = Callable[[Any, Any, Revision, str], Iterator[Flaw]]


@cache
def _node(shape: Any) -> inspect.Type:
    if isinstance(shape, types.UnionType):  # msgspec takes none of structs without tags
        return inspect.UnionType(tuple(_node(one) for one in get_args(shape)))
    return inspect.type_info(shape)


def _walk(value: Any, node: Any, revision: Revision, path: str) -> Iterator[Flaw]:
    if isinstance(value, Placeholder):
        return
    walker = _WALKERS.get(type(node))
    if walker is not None:
        yield from walker(value, node, revision, path)
    elif not _fits_plainly(value, node):
        yield Flaw(path, "unfit", f"must be {_called(node)}, not {_shown(value)}")


def _fits_plainly(value: Any, node: Any) -> bool:
    """Whether a value is of a type that has no parts."""
    if isinstance(node, inspect.LiteralType):
        return value in node.values and not isinstance(value, bool)
    kinds = _PLAIN.get(type(node))
    if kinds is None:
        return True  # anything goes
    if isinstance(value, bool):
        return kinds == (bool,)
    if kinds == (int,) and isinstance(value, float):
        return value.is_integer()  # as JSON Schema has it
    return isinstance(value, kinds)


_PLAIN: Mapping[type, tuple[type, ...]] = {
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}

_NAMES: Mapping[type, str] = {
    inspect.StrType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.ListType: "an array",
    inspect.DictType: "an object",
    inspect.StructType: "an object",
}


def _called(node: Any) -> str:
    """A type in words."""
    if isinstance(node, inspect.LiteralType):
        return "one of " + ", ".join(sorted(map(repr, node.values)))
    if isinstance(node, inspect.UnionType):
        names = dict.fromkeys(_called(one) for one in node.types)
        if "an integer" in names and "a number" in names:
            del names["an integer"]
        return " or ".join(names)
    return _NAMES.get(type(node), "JSON")


def _shown(value: Any) -> str:
    """The beginning of a value, as JSON."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"


# Parts


def _list(value: Any, node: inspect.ListType, revision: Revision, path: str) -> Iterator[Flaw]:
    if not isinstance(value, list):
        yield Flaw(path, "unfit", f"must be an array, not {_shown(value)}")
        return
    for i, item in enumerate(value):
        yield from _walk(item, node.item_type, revision, f"{path}[{i}]")


def _dict(value: Any, node: inspect.DictType, revision: Revision, path: str) -> Iterator[Flaw]:
    if not isinstance(value, dict):
        yield Flaw(path, "unfit", f"must be an object, not {_shown(value)}")
        return
    for key, item in value.items():
        yield from _walk(item, node.value_type, revision, f"{path}.{key}")


def _union(value: Any, node: inspect.UnionType, revision: Revision, path: str) -> Iterator[Flaw]:
    """The flaws of the alternative that fits best."""
    structs = [one for one in node.types if isinstance(one, inspect.StructType)]
    tagged = [one for one in structs if one.tag_field is not None]
    if tagged and isinstance(value, dict):
        yield from _tagged(value, tagged, revision, path)
        return
    alternatives = [one for one in node.types if one not in structs or revision.knows(one.cls)]
    tried = [list(_walk(value, one, revision, path)) for one in alternatives]
    # Fewest real flaws, then fewest flaws; one that is of another kind of JSON altogether loses.
    best = min(tried, key=lambda found: (_misses(found, path), len(found)))
    if _misses(best, path) == FAR:
        best = [Flaw(path, "unfit", f"must be {_called(node)}, not {_shown(value)}")]
    yield from best


FAR = 1_000_000


def _misses(found: list[Flaw], path: str) -> int:
    """How far a value is from an alternative."""
    if any(flaw.path == path and flaw.kind == "unfit" for flaw in found):
        return FAR
    return sum(flaw.kind != "unknown" for flaw in found)


def _tagged(
    value: dict[str, Any], structs: list[inspect.StructType], revision: Revision, path: str
) -> Iterator[Flaw]:
    """The flaws of the alternative that the value says it is."""
    field = structs[0].tag_field or "type"
    known = {one.tag: one for one in structs if revision.knows(one.cls)}
    if field not in value:
        yield Flaw(path, "missing", f"the member {field!r} is required")
    elif (tag := value[field]) in known if isinstance(value[field], str) else False:
        yield from _struct(value, known[tag], revision, path)
    else:
        options = ", ".join(repr(tag) for tag in known)
        yield Flaw(f"{path}.{field}", "unfit", f"is {_shown(value[field])}, not one of {options}")


def _struct(value: Any, node: inspect.StructType, revision: Revision, path: str) -> Iterator[Flaw]:
    if not isinstance(value, dict):
        yield Flaw(path, "unfit", f"must be an object, not {_shown(value)}")
        return
    if WILD not in value:
        for name in _members(node.cls, revision)[1]:
            if name not in value:
                yield Flaw(path, "missing", f"the member {name!r} is required")
    yield from _each_member(value, node, revision, path)
    for demand in (demand for base in node.cls.__mro__ for demand in DEMANDS.get(base, ())):
        for place, said in demand(value, revision):
            if isinstance(said, Inside):
                yield from _walk(said.value, _node(said.shape), revision, path + place)
            else:
                yield Flaw(path + place, "unfit", said)


def _each_member(
    value: dict[str, Any], node: inspect.StructType, revision: Revision, path: str
) -> Iterator[Flaw]:
    visible = _members(node.cls, revision)[0]
    for name, member in value.items():
        field = visible.get(name)
        if field is not None:
            yield from _walk(member, field.type, revision, f"{path}.{name}")
        elif name == node.tag_field:
            if member != node.tag:
                yield Flaw(f"{path}.{name}", "unfit", f"must be {node.tag!r}")
        elif name != WILD:
            yield Flaw(f"{path}.{name}", "unknown", _unknown(node.cls, name, revision))


@cache
def _members(
    shape: type, revision: Revision
) -> tuple[Mapping[str, inspect.Field], tuple[str, ...]]:
    """The members of a struct that a revision has, and those that must be there."""
    node = inspect.type_info(shape)
    assert isinstance(node, inspect.StructType)  # noqa: S101 - for mypy: it is asked of structs
    known = revision.members.get(shape, frozenset(shape.__struct_fields__))  # type: ignore[attr-defined]  # structs have it
    known |= EXTENDED.get(shape, frozenset())
    visible = {field.encode_name: field for field in node.fields if field.name in known}
    required = [name for name, field in visible.items() if field.required]
    also = [
        name
        for base in shape.__mro__
        for name, holds in ALSO_REQUIRED.get(base, ())
        if name in visible and name not in required and holds(revision)
    ]
    tag = [node.tag_field] if node.tag_field is not None else []
    return visible, (*tag, *required, *also)


def _unknown(shape: type, name: str, revision: Revision) -> str:
    """What to say of a member that the revision does not have."""
    having = [r.name for r in REVISIONS if r.knows(shape) and name in _members(shape, r)[0]]
    if not having:
        return f"no revision has a member {name!r} here"
    when = f"since {having[0]}" if having[0] > revision.name else f"up to {having[-1]}"
    return f"{revision.name} has no member {name!r} here; there is one {when}"


_WALKERS: Mapping[type, _Walker] = {
    inspect.ListType: _list,
    inspect.DictType: _dict,
    inspect.UnionType: _union,
    inspect.StructType: _struct,
}
