"""Roots: the places a client lets a server work in."""

from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class Root(Wire, frozen=True, kw_only=True):
    """One place where a server may work; ``uri`` is a ``file://`` URI.

    Attributes:
        uri: the place; a ``file://`` URI.
        name: for people.
        meta: further members, in ``_meta``.
    """

    uri: str
    name: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListRootsParams(Wire, frozen=True, kw_only=True):
    """``roots/list``: ask where the server may work.

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class ListRootsResult(Wire, frozen=True, kw_only=True):
    """The places where a server may work; ``meta`` is for revisions up to 2025-11-25.

    Attributes:
        roots: the places.
        meta: further members, in ``_meta``, for revisions up to 2025-11-25.
    """

    roots: list[Root]
    meta: Meta | UnsetType = UNSET
