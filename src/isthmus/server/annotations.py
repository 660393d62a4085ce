"""Walking through annotations, into the classes they name, without asking msgspec.

Some annotations must be found before msgspec sees them: `perilous` says which and why.
"""

import types
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

__all__ = ["bare", "is_union", "perilous", "walk"]

SCALARS = (str, bytes, bytearray, int, float, bool, type(None))


def is_union(annotation: Any) -> bool:
    """Whether the annotation is a union, in either spelling."""
    return get_origin(annotation) in (Union, types.UnionType)


def bare(annotation: Any) -> Any:
    """The annotation without ``Annotated``, NewType and aliases around it."""
    while (inner := _peeled(annotation)) is not annotation:
        annotation = inner
    return annotation


def _peeled(annotation: Any) -> Any:
    """The annotation without its outermost wrapper; itself if it has none."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__
    if type(annotation).__name__ == "TypeAliasType":
        return annotation.__value__
    return getattr(annotation, "__supertype__", annotation)


def walk(annotation: Any, seen: set[Any] | None = None) -> Iterator[Any]:
    """Every part of the annotation, itself first, the members of its classes included."""
    seen = set() if seen is None else seen
    yield annotation
    annotation = bare(annotation)
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return
    for argument in get_args(annotation):
        yield from walk(argument, seen)
    if isinstance(kind, type) and kind not in seen:
        seen.add(kind)
        for member in _members(kind):
            yield from walk(member, seen)


def _members(kind: type) -> list[Any]:
    """The annotations of a class's members, for the classes that are records."""
    if kind.__module__ == "builtins" or issubclass(kind, Enum):
        return []
    if hasattr(kind, "__pydantic_core_schema__"):
        return []  # pydantic's own business
    try:
        return list(get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):
        return []  # msgspec or pydantic will say what is wrong with it


def perilous(annotation: Any) -> str | None:
    """Why msgspec must not be given the annotation; None if it may.

    msgspec 0.22 reads and writes memory that is not its own when it meets certain unions: a tuple
    of fixed length beside anything constrained, a pattern beside any collection. And it knows only
    one constraint per kind of value, so it refuses 1 for ``float | Annotated[int, Meta(le=0)]``.
    """
    for part in walk(annotation):
        if is_union(bare(part)):
            branches = get_args(bare(part))
            for refuses, why in PERILS:
                if refuses(branches):
                    return f"msgspec cannot tell apart {part}, {why}"
    return None


def _constraints(branch: Any) -> list[msgspec.Meta]:
    """The msgspec metadata around a branch, through NewType and aliases."""
    found: list[msgspec.Meta] = []
    while (inner := _peeled(branch)) is not branch:
        found += [m for m in getattr(branch, "__metadata__", ()) if isinstance(m, msgspec.Meta)]
        branch = inner
    return found


def _is_constrained(branch: Any) -> bool:
    return any(getattr(meta, name) is not None for meta in _constraints(branch) for name in LIMITS)


LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


def _fixed_tuple_beside_constraint(branches: tuple[Any, ...]) -> bool:
    fixed = any(get_origin(bare(b)) is tuple and ... not in get_args(bare(b)) for b in branches)
    return fixed and any(map(_is_constrained, branches))


def _pattern_beside_collection(branches: tuple[Any, ...]) -> bool:
    patterned = any(meta.pattern is not None for b in branches for meta in _constraints(b))
    return patterned and any(
        isinstance(get_origin(kind) or kind, type) and kind not in SCALARS
        for kind in map(bare, branches)
    )


def _alike_and_limited(branches: tuple[Any, ...]) -> bool:
    """Whether two branches are numbers, or strings, and one of them takes only some."""
    for family in ((int, float), (str,)):
        alike = [branch for branch in branches if _values(branch).intersection(family)]
        limited = any(bare(b) not in family or _is_constrained(b) for b in alike)
        if len(alike) > 1 and limited:
            return True
    return False


def _values(branch: Any) -> set[Any]:
    """The types of the values a branch takes, as far as they are numbers and strings."""
    kind = bare(branch)
    if get_origin(kind) is Literal:
        return set(map(type, get_args(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {type(member.value) for member in kind}
    return {kind} if kind in (int, float, str) else set()


def _same_type_twice(branches: tuple[Any, ...]) -> bool:
    kinds = [bare(branch) for branch in branches]
    return any(kind in kinds[:i] for i, kind in enumerate(kinds))


PERILS = (
    (_fixed_tuple_beside_constraint, "a tuple of fixed length beside a constraint"),
    (_pattern_beside_collection, "a pattern beside a collection"),
    (_same_type_twice, "one type under several constraints"),
    (_alike_and_limited, "numbers or strings of which one takes only some"),
)
