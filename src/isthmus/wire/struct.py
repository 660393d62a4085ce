"""The one base of every struct that travels, and the rule for what is absent.

**The UNSET rule**: a member that may be absent defaults to ``UNSET`` and is then not written;
a member with any other default is always written. ``None`` on the wire is JSON ``null`` and
nothing else. (msgspec's ``omit_defaults`` would also drop meaningful defaults such as
``resultType: "complete"``, so it is never used.)
"""

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

__all__ = ["UNSET", "Id", "Meta", "UnreadMeta", "UnsetType", "Wire", "wire_name"]

Id: TypeAlias = int | str
"""A JSON-RPC request id, and a progress token: their types are kept as they came."""

Meta: TypeAlias = dict[str, Any]
"""The contents of a ``_meta`` member, decoded."""

if TYPE_CHECKING:
    UnreadMeta: TypeAlias = Meta | Raw
else:
    UnreadMeta = Raw
"""The same, left undecoded where it comes in; whoever sends it may give either."""


def wire_name(name: str) -> str:
    """The wire's spelling of a Python attribute: ``input_schema`` → ``inputSchema``.

    ``meta`` becomes ``_meta``. This is the only translator between the two spellings.
    """
    if name == "meta":
        return "_meta"
    if "_" not in name:
        return name
    return re.sub(r"_([a-z0-9])", lambda m: m.group(1).upper(), name.rstrip("_"))


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename=wire_name):
    """A message, or a part of one, in the newest revision's shape.

    Subclasses restate ``frozen=True, kw_only=True``: type checkers do not inherit them.
    """
