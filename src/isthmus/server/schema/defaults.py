"""Default values: given to each call as its own copy, and written into what a call returns.

A default in Python is one object for ever: a list that one call fills is full for the next. So
what can change is copied for each call (`make_default_factory`), also where it is the default of a
field inside an argument's type, which msgspec and pydantic hand out as it is (`make_unsharer`).

A dataclass keeps plain defaults as attributes of the class. msgspec 0.22 does not copy them into
an instance it decodes, reads them there like anybody else, and then does not find them when it
writes the instance: they would be missing from what a function returns (`complete_defaults`). Slots,
attrs classes and structs are not concerned.
"""

import datetime as dt
import decimal
import enum
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, get_origin

import msgspec

from isthmus.server.schema.annotations import is_plain, unwrap_annotation, walk_annotation

T = TypeVar("T")

IMMUTABLE_TYPES = (
    type(None), bool, int, float, complex, str, bytes, range, type, enum.Enum, msgspec.UnsetType,
    types.EllipsisType, types.NotImplementedType, types.FunctionType, types.BuiltinFunctionType,
    types.MethodType, types.ModuleType, types.MappingProxyType, dt.date, dt.time,
    dt.timedelta, dt.tzinfo, decimal.Decimal, uuid.UUID,
)  # fmt: skip


def is_immutable(value: Any) -> bool:
    """Whether nobody can change the value, nor anything in it."""
    if isinstance(value, IMMUTABLE_TYPES):
        return True
    if isinstance(value, tuple | frozenset):
        return all(map(is_immutable, value))
    kind = type(value)
    if kind.__module__.partition(".")[0] in {"pathlib", "re"}:  # found without importing them
        return True
    names = _list_frozen_fields(kind)
    if names is not None:
        return all(is_immutable(getattr(value, name, None)) for name in names)
    # An object without state is a sentinel: what counts is that it is this one.
    return _is_stateless(value)


def _list_frozen_fields(kind: Any) -> list[str] | None:
    """The names of the fields of a frozen class; None if it is none."""
    if hasattr(kind, "__struct_config__"):
        return list(kind.__struct_fields__) if kind.__struct_config__.frozen else None
    if hasattr(kind, "__dataclass_params__"):
        return list(kind.__dataclass_fields__) if kind.__dataclass_params__.frozen else None
    if hasattr(kind, "__attrs_attrs__"):
        frozen = kind.__setattr__.__name__ == "_frozen_setattrs"
        return [field.name for field in kind.__attrs_attrs__] if frozen else None
    if hasattr(kind, "__pydantic_fields__"):
        config = getattr(kind, "model_config", {})
        return list(kind.__pydantic_fields__) if config.get("frozen") else None
    return None


def _is_hashable(value: Any) -> bool:
    """Whether the value has a hash: pydantic copies what has none."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_stateless(value: Any) -> bool:
    """Whether a copy would be made of the class alone, or of a name."""
    try:
        made = value.__reduce_ex__(4)
    except Exception:  # noqa: BLE001 - as in copy_value
        return False
    if isinstance(made, str):
        return True
    return (
        len(made) == 5 and made[0] is NEW_OBJECT_FUNCTION and all(part is None for part in made[2:])
    )


NEW_OBJECT_FUNCTION = object().__reduce_ex__(4)[0]  # ``copy`` calls it for a class alone


def copy_value(value: T, shared: dict[int, Any] | None = None) -> T:
    """A copy that shares nothing with the value; the value itself where it cannot be copied.

    What has no copy, such as a lock or a connection, is meant to be shared.

    Args:
        value: what to copy.
        shared: objects inside it that stay as they are, by their ids.
    """
    import copy  # no server needs it to start

    try:
        return copy.deepcopy(value, dict(shared) if shared else None)
    except Exception:  # noqa: BLE001 - a class may refuse its copy with any exception
        return value


def make_default_factory(value: T) -> Callable[[], T] | None:
    """Make a factory of defaults, one for each call; None where all can have the same object."""
    if is_immutable(value):
        return None
    if not value and type(value) in COLLECTION_TYPES:
        return type(value)
    return lambda: copy_value(value)


COLLECTION_TYPES = (list, dict, set, bytearray)


def make_unsharer(annotation: Any) -> Callable[[Any], Any] | None:
    """Make what takes a decoded value out of defaults that its classes share; None if none do.

    msgspec and pydantic refuse or copy most defaults that can change. They hand out as they are
    those of attrs classes and named tuples, tuples with lists in them, and objects.
    """
    defaults = [] if is_plain(annotation) else list(_walk_defaults(annotation, set()))
    if all(map(is_immutable, defaults)):
        return None
    shared = {id(default): default for default in defaults if is_immutable(default)}
    return lambda value: copy_value(value, shared)


def _walk_defaults(annotation: Any, seen: set[Any]) -> Iterator[Any]:
    """The defaults of all fields in the classes of an annotation, those by factories left out."""
    for part in map(unwrap_annotation, walk_annotation(annotation)):
        kind: Any = get_origin(part) or part
        if not isinstance(kind, type) or kind in seen:
            continue
        seen.add(kind)
        yield from _list_field_defaults(kind)
        if "__pydantic_fields__" in vars(kind):  # which `walk_annotation` leaves to pydantic
            for field in vars(kind)["__pydantic_fields__"].values():
                yield from _walk_defaults(field.annotation, seen)


def _list_field_defaults(kind: Any) -> Iterable[Any]:
    """The defaults of a class's own fields, those left out that decoding makes anew."""
    if hasattr(kind, "__struct_fields__"):
        defaults = [field.default for field in msgspec.structs.fields(kind)]
        return [default for default in defaults if type(default) not in COLLECTION_TYPES]
    if "__pydantic_fields__" in vars(kind):
        return filter(_is_hashable, [f.default for f in kind.__pydantic_fields__.values()])
    if hasattr(kind, "__dataclass_fields__"):
        return [field.default for field in kind.__dataclass_fields__.values()]
    if hasattr(kind, "__attrs_attrs__"):
        defaults = [field.default for field in kind.__attrs_attrs__]
        return [default for default in defaults if type(default).__name__ != "Factory"]
    return getattr(kind, "_field_defaults", {}).values()  # of a named tuple


def complete_defaults(annotation: Any, write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """``write``, completing values first where values of the type may lack defaults."""
    if not any(_is_forgetful(part) for part in walk_annotation(annotation)):
        return write

    def complete(value: Any) -> bytes:
        _write_defaults(value)
        return write(value)

    return complete


def _is_forgetful(annotation: Any) -> bool:
    annotation = unwrap_annotation(annotation)
    kind = get_origin(annotation) or annotation
    return hasattr(kind, "__dataclass_fields__") and "__slots__" not in vars(kind)


def _write_defaults(value: Any) -> None:
    """Write the defaults of every dataclass in a value into it."""
    for part in _list_parts(value):
        _write_defaults(part)


def _list_parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    kind: Any = type(value)
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        return [_store_member(value, name) for name in fields if hasattr(value, name)]
    fields = getattr(kind, "__struct_fields__", None)
    if fields is None:
        fields = [field.name for field in getattr(kind, "__attrs_attrs__", ())]
    return [getattr(value, name) for name in fields]


def _store_member(value: Any, name: str) -> Any:
    """A member of a dataclass, which is in the instance from now on, frozen or not."""
    member = getattr(value, name)
    if name not in getattr(value, "__dict__", {name}):
        object.__setattr__(value, name, member)
    return member
