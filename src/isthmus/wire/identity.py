"""Implementation, icons and annotations: names and versions, pictures, audiences."""

from typing import Literal, TypeAlias

from isthmus.wire.struct import UNSET, UnsetType, Wire

Role: TypeAlias = Literal["user", "assistant"]
"""The two sides of a conversation with a model."""


class Icon(Wire, frozen=True, kw_only=True):
    """A picture that stands for something in a user interface.

    Attributes:
        src: an ``https:`` or ``data:`` URI; other schemes are to be refused by whoever shows it.
        mime_type: the picture's media type where the source does not say it, or wrongly.
        sizes: what it fits: ``"48x48"``, or ``"any"`` for one that scales.
        theme: the background it is drawn for; absent for either.
    """

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: list[str] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class Implementation(Wire, frozen=True, kw_only=True):
    """The name and version of a program that speaks MCP; self-reported, so proof of nothing.

    Attributes:
        name: for programs.
        version: in any format.
        title: a name for people.
        description: what it is (since 2025-11-25).
        website_url: a page about it.
        icons: pictures for user interfaces.
    """

    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET


class Annotations(Wire, frozen=True, kw_only=True):
    """Hints on how a client may use or show something; from an untrusted server, hints only.

    Attributes:
        audience: whom it is for.
        priority: from 0 (entirely optional) to 1 (effectively required).
        last_modified: an ISO 8601 moment.
    """

    audience: list[Role] | UnsetType = UNSET
    priority: int | float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET
