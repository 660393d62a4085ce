"""Providers of logins under the names of ``fastmcp.server.auth.providers``: each says what isthmus has instead."""

from typing import Any

from isthmus.compat.fastmcp.server.auth.auth import RefusedProvider


def __getattr__(name: str) -> Any:
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = type(name, (RefusedProvider,), {"__doc__": "Provider of logins, which cannot be had."})
    globals()[name] = made
    return made
