"""Roots: the places a client lets a server work in."""

from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class Root(Wire, frozen=True, kw_only=True):
    """One place; ``uri`` is a ``file://`` URI."""

    uri: str
    name: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListRootsParams(Wire, frozen=True, kw_only=True):
    """``roots/list``: where may I work?"""

    meta: Meta | UnsetType = UNSET


class ListRootsResult(Wire, frozen=True, kw_only=True):
    """The places there are; ``meta`` is for revisions up to 2025-11-25."""

    roots: list[Root]
    meta: Meta | UnsetType = UNSET
