"""Content blocks of tools, prompts and models, told apart by their ``type``."""

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import StructMeta

from isthmus.wire.identity import Annotations, Icon
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class TextContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text, as a block of content.

    Attributes:
        text: the text.
        annotations: hints on its use: audience, priority, time of change.
        meta: further members, in ``_meta``.
    """

    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ImageContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture; ``data`` is base64.

    Attributes:
        data: the bytes of the picture, as base64.
        mime_type: the media type, where it is known.
        annotations: hints on its use: audience, priority, time of change.
        meta: further members, in ``_meta``.
    """

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class AudioContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """Sound; ``data`` is base64 (since 2025-03-26).

    Attributes:
        data: the bytes of the sound, as base64.
        mime_type: the media type, where it is known.
        annotations: hints on its use: audience, priority, time of change.
        meta: further members, in ``_meta``.
    """

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ResourceLink(Wire, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A resource that can be read at ``uri``; it need not be in any list (since 2025-06-18).

    Attributes:
        uri: the URI of the resource.
        name: for programs.
        title: a name for people.
        description: an explanation for people and models.
        mime_type: the media type, where it is known.
        size: in bytes, before any base64.
        annotations: hints on its use: audience, priority, time of change.
        icons: pictures for user interfaces.
        meta: further members, in ``_meta``.
    """

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ResourceContents(Wire, frozen=True, kw_only=True):
    """The contents of a resource: exactly one of ``text`` and ``blob`` (base64) is present.

    JSON does not tag the two kinds, so this one struct is what both decode to. Build them as
    :class:`TextResourceContents` and :class:`BlobResourceContents`; ``isinstance`` answers for
    what was decoded as for what was built.

    Attributes:
        uri: of what was read, which may lie below the URI that was asked for.
        mime_type: the media type, where it is known.
        text: the text of a text resource.
        blob: the bytes of any other resource, as base64.
        meta: further members, in ``_meta``.
    """

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class _Kind(StructMeta):
    """Lets ``isinstance`` and ``match`` tell the two kinds apart in what was decoded, too."""

    def __instancecheck__(self, value: object) -> bool:
        if not issubclass(type(value), ResourceContents):
            return False
        member = "text" if issubclass(self, TextResourceContents) else "blob"
        return getattr(value, member) is not UNSET


class TextResourceContents(ResourceContents, frozen=True, kw_only=True, metaclass=_Kind):
    """Text read of a resource.

    Attributes:
        text: the text.
    """

    text: str


class BlobResourceContents(ResourceContents, frozen=True, kw_only=True, metaclass=_Kind):
    """Bytes read of a resource, as base64.

    Attributes:
        blob: the bytes, as base64.
    """

    blob: str


class EmbeddedResource(Wire, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """A resource's contents inside a message.

    Attributes:
        resource: the contents.
        annotations: hints on its use: audience, priority, time of change.
        meta: further members, in ``_meta``.
    """

    resource: ResourceContents
    annotations: Annotations | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class UnknownContent(dict[str, Any]):
    """A block of a ``type`` this version does not know, as it came; it is written back the same.

    Made by :func:`isthmus.wire.reading.reader`, so that one unknown block does not lose the
    message around it.
    """

    __slots__ = ()


if TYPE_CHECKING:
    ContentBlock: TypeAlias = (
        TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
    )
    """A block of content of a tool's result or of a prompt."""
else:
    # msgspec tells the members of a union apart by their tag, and an unknown one has none.
    ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
