"""Type annotations, walked into the classes they name, without asking msgspec.

Some annotations must be found before msgspec sees them: `find_peril` says which and why.
"""

import math
import types
from collections import abc
from collections.abc import Iterator
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

PLAIN_TYPES = frozenset((str, int, float, bool))  # of most parameters

SCALAR_TYPES = (str, bytes, bytearray, int, float, bool, type(None))

SCALAR_MODULES = frozenset(
    {"datetime", "uuid", "decimal", "pathlib"}
)  # whose classes travel as text

CONTAINER_TYPES = frozenset(
    {*(list, tuple, set, frozenset, dict), *(abc.Sequence, abc.MutableSequence, abc.Collection)}
    | {*(abc.Set, abc.MutableSet), *(abc.Mapping, abc.MutableMapping)}
)


def is_plain(annotation: Any) -> bool:
    """Whether the annotation is text, a number or a truth value, with nothing else said about it.

    There is nothing to walk into, to rewrite, to copy or to ask pydantic about.
    """
    return type(annotation) is type and annotation in PLAIN_TYPES


def is_union(annotation: Any) -> bool:
    """Whether the annotation is a union, in either spelling."""
    return get_origin(annotation) in (Union, types.UnionType)


def unwrap_annotation(annotation: Any) -> Any:
    """The annotation without ``Annotated``, NewType and aliases around it."""
    while (inner := _peel_annotation(annotation)) is not annotation:
        annotation = inner
    return annotation


def _peel_annotation(annotation: Any) -> Any:
    """The annotation without its outermost wrapper; itself if it has none."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__
    if type(annotation).__name__ == "TypeAliasType":
        return annotation.__value__
    return getattr(annotation, "__supertype__", annotation)


def walk_annotation(annotation: Any, seen: set[Any] | None = None) -> Iterator[Any]:
    """Every part of the annotation, itself first, the members of its classes included."""
    seen = set() if seen is None else seen
    yield annotation
    annotation = unwrap_annotation(annotation)
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return
    for argument in get_args(annotation):
        yield from walk_annotation(argument, seen)
    if isinstance(kind, type) and kind not in seen:
        seen.add(kind)
        for member in _list_member_annotations(kind):
            yield from walk_annotation(member, seen)


def _list_member_annotations(kind: type) -> list[Any]:
    """The annotations of a class's members, for the classes that are records."""
    if kind.__module__ == "builtins" or issubclass(kind, Enum):
        return []
    if hasattr(kind, "__pydantic_core_schema__"):
        return []  # pydantic's own business
    try:
        return list(get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):
        return []  # msgspec or pydantic will say what is wrong with it


def measure_depth(annotation: Any, within: frozenset[Any] = frozenset()) -> float:
    """The most levels of arrays and objects that JSON of a type has; infinite where it may have any.

    What is not known to be bounded is not: ``Any``, ``dict`` without arguments, a class that holds
    itself, a pydantic model.

    Args:
        annotation: the type.
        within: the classes it is a member of.
    """
    if is_plain(annotation):
        return 0
    annotation = unwrap_annotation(annotation)
    kind = get_origin(annotation) or annotation
    parts: tuple[Any, ...] = tuple(part for part in get_args(annotation) if part is not ...)
    if kind is Literal or _is_scalar(kind):
        return 0
    if is_union(annotation) or kind is Required or kind is NotRequired:
        return max(measure_depth(part, within) for part in parts)
    if kind not in CONTAINER_TYPES:
        if kind is not annotation or not isinstance(kind, type) or kind in within:
            return math.inf
        if hasattr(kind, "__attrs_attrs__"):  # whose members need no annotation
            return math.inf
        parts = tuple(_list_member_annotations(kind))
        within |= {kind}
    return 1 + max((measure_depth(part, within) for part in parts), default=math.inf)


def _is_scalar(kind: Any) -> bool:
    """Whether JSON of the type is neither an array nor an object."""
    if kind in SCALAR_TYPES or kind is None or kind is msgspec.UnsetType:
        return True
    if not isinstance(kind, type):
        return False
    return kind.__module__.partition(".")[0] in SCALAR_MODULES or issubclass(kind, Enum)


def find_peril(annotation: Any) -> str | None:
    """Why msgspec must not be given the annotation; None if it may.

    msgspec 0.22 reads and writes memory that is not its own when it meets certain unions: a tuple
    of fixed length beside anything constrained, a pattern beside any collection. And it knows only
    one constraint per kind of value, so it refuses 1 for ``float | Annotated[int, Meta(le=0)]``.
    """
    for part in walk_annotation(annotation):
        if is_union(unwrap_annotation(part)):
            branches = get_args(unwrap_annotation(part))
            for refuses, why in PERILS:
                if refuses(branches):
                    return f"msgspec cannot tell apart {part}, {why}"
    return None


def _list_constraints(branch: Any) -> list[msgspec.Meta]:
    found: list[msgspec.Meta] = []
    while (inner := _peel_annotation(branch)) is not branch:
        found += [m for m in getattr(branch, "__metadata__", ()) if isinstance(m, msgspec.Meta)]
        branch = inner
    return found


def _is_constrained(branch: Any) -> bool:
    return any(
        getattr(meta, name) is not None
        for meta in _list_constraints(branch)
        for name in CONSTRAINT_NAMES
    )


CONSTRAINT_NAMES = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


def _has_fixed_tuple_beside_constraint(branches: tuple[Any, ...]) -> bool:
    fixed = any(
        get_origin(unwrap_annotation(b)) is tuple and ... not in get_args(unwrap_annotation(b))
        for b in branches
    )
    return fixed and any(map(_is_constrained, branches))


def _has_pattern_beside_collection(branches: tuple[Any, ...]) -> bool:
    patterned = any(meta.pattern is not None for b in branches for meta in _list_constraints(b))
    return patterned and any(
        isinstance(get_origin(kind) or kind, type) and kind not in SCALAR_TYPES
        for kind in map(unwrap_annotation, branches)
    )


def _has_limited_scalars(branches: tuple[Any, ...]) -> bool:
    """Whether two branches are numbers, or strings, and one of them takes only some."""
    for family in ((int, float), (str,)):
        alike = [
            branch for branch in branches if _collect_scalar_types(branch).intersection(family)
        ]
        limited = any(unwrap_annotation(b) not in family or _is_constrained(b) for b in alike)
        if len(alike) > 1 and limited:
            return True
    return False


def _collect_scalar_types(branch: Any) -> set[Any]:
    """The types of the values a branch takes, as far as they are numbers and strings."""
    kind = unwrap_annotation(branch)
    if get_origin(kind) is Literal:
        return set(map(type, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {type(member.value) for member in kind}
    return {kind} if kind in (int, float, str) else set()


def _has_type_twice(branches: tuple[Any, ...]) -> bool:
    kinds = [unwrap_annotation(branch) for branch in branches]
    return any(kind in kinds[:i] for i, kind in enumerate(kinds))


PERILS = (
    (_has_fixed_tuple_beside_constraint, "a tuple of fixed length beside a constraint"),
    (_has_pattern_beside_collection, "a pattern beside a collection"),
    (_has_type_twice, "one type under several constraints"),
    (_has_limited_scalars, "numbers or strings of which one takes only some"),
)
