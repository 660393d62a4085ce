"""Defaults that msgspec leaves in the class: a decoded dataclass gets them written into itself.

A dataclass keeps plain defaults as attributes of the class. msgspec 0.22 does not copy them into
an instance it decodes, reads them there like anybody else, and then does not find them when it
writes the instance: they would be missing from what a function returns. Slots, attrs classes and
structs are not concerned.
"""

from collections.abc import Callable, Iterable
from typing import Any, get_origin

from isthmus.server.annotations import bare, walk

__all__ = ["completing"]


def completing(annotation: Any, write: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """``write``, completing values first where values of the type may lack defaults."""
    if not any(_is_forgetful(part) for part in walk(annotation)):
        return write

    def complete(value: Any) -> bytes:
        _complete(value)
        return write(value)

    return complete


def _is_forgetful(annotation: Any) -> bool:
    annotation = bare(annotation)
    kind = get_origin(annotation) or annotation
    return hasattr(kind, "__dataclass_fields__") and "__slots__" not in vars(kind)


def _complete(value: Any) -> None:
    """Write the defaults of every dataclass in a value into it."""
    for part in _parts(value):
        _complete(part)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset):
        return value
    kind: Any = type(value)
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        return [_kept(value, name) for name in fields if hasattr(value, name)]
    fields = getattr(kind, "__struct_fields__", None)
    if fields is None:
        fields = [field.name for field in getattr(kind, "__attrs_attrs__", ())]
    return [getattr(value, name) for name in fields]


def _kept(value: Any, name: str) -> Any:
    """A member of a dataclass, which is in the instance from now on, frozen or not."""
    member = getattr(value, name)
    if name not in getattr(value, "__dict__", {name}):
        object.__setattr__(value, name, member)
    return member
