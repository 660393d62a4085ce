"""Lazy imports: public names that are imported on their first use, and optional libraries.

A server over stdio starts in a tenth of a second because it imports only what it uses.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports a public name on its first use (PEP 562).

    Args:
        package: the package's ``__name__``.
        homes: the module that each name is defined in.

    Example::

        __getattr__ = lazy_getattr(__name__, {"Client": "isthmus.client.client"})
    """

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def is_installed(library: str) -> bool:
    """Whether a library is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec(library) is not None
