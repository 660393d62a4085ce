"""Façade packages as they are: which names of ``mcp`` and ``fastmcp`` they have, and what they say otherwise."""

import importlib
import warnings
from functools import cache
from types import ModuleType
from typing import NamedTuple

from isthmus.compat.imports import OWN_ROOTS, describe_missing, find_own_name


@cache
def find_facade_module(module: str) -> str | None:
    """The façade's module for a foreign one; None where the façades have none.

    >>> find_facade_module("mcp.types")
    'isthmus.compat.types'
    """
    if module.partition(".")[0] not in OWN_ROOTS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = find_own_name(module)
    return own if own is not None and isinstance(_load(own), ModuleType) else None


class FacadePath(NamedTuple):
    """The façade's spelling of a module or of a name in one."""

    module: str
    rest: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join([self.module, *self.rest])


def find_facade_path(path: str) -> FacadePath | None:
    """The façade's spelling of the path of a module or of a name in one; None where it has none."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        own = find_facade_module(".".join(parts[:count]))
        if own is not None:
            rest = tuple(parts[count:])
            return FacadePath(own, rest) if not rest or _has_name(own, rest[0]) else None
    return None


def find_imported_path(module: str, name: str) -> FacadePath | None:
    """The façade's spelling of ``from module import name``; None where it has none.

    A function or class of the module goes before a module below it, as in ``from fastmcp.tools import tool``.
    """
    own = find_facade_module(module)
    if own is not None and _has_name(own, name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not isinstance(getattr(_load(own), name), ModuleType):
                return FacadePath(own, (name,))
    return find_facade_path(f"{module}.{name}")


def _has_name(module: str, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hasattr(_load(module), name)
        except ImportError:  # a façade that says what to use instead
            return False


def describe_missing_name(path: str) -> str:
    """The words for a module or a name that the façades lack: what to use instead, and the page."""
    return describe_missing(path)


@cache
def _load(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("isthmus."):
            return None
        raise
    except ImportError:
        return None
