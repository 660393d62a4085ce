"""Resources: things that can be read at a URI."""

from isthmus.wire.content import ResourceContents
from isthmus.wire.identity import Annotations, Icon
from isthmus.wire.results import CacheableResult, InputResponses
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class Resource(Wire, frozen=True, kw_only=True):
    """A resource that can be read; ``size`` is in bytes, before any base64.

    Attributes:
        uri: its address, which is its identity.
        name: for programs.
        title: a name for people.
        description: an explanation for people and models.
        mime_type: the media type, where it is known.
        size: in bytes, before any base64, where it is known.
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


class ResourceTemplate(Wire, frozen=True, kw_only=True):
    """A family of resources; ``uri_template`` is an RFC 6570 template.

    Attributes:
        uri_template: the template of RFC 6570.
        name: for programs.
        title: a name for people.
        description: an explanation for people and models.
        mime_type: the media type, where it is known.
        annotations: hints on its use: audience, priority, time of change.
        icons: pictures for user interfaces.
        meta: further members, in ``_meta``.
    """

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourcesParams(Wire, frozen=True, kw_only=True):
    """``resources/list``: one page of resources.

    Attributes:
        cursor: ``next_cursor`` of the page before; absent for the first page.
        meta: further members, in ``_meta``.
    """

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourcesResult(CacheableResult, frozen=True, kw_only=True):
    """One page of resources; ``next_cursor`` is present where there are more.

    Attributes:
        resources: the resources of this page.
        next_cursor: the cursor of the next page, where there is one.
    """

    resources: list[Resource]
    next_cursor: str | UnsetType = UNSET


class ListResourceTemplatesParams(Wire, frozen=True, kw_only=True):
    """``resources/templates/list``: one page of templates.

    Attributes:
        cursor: ``next_cursor`` of the page before; absent for the first page.
        meta: further members, in ``_meta``.
    """

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourceTemplatesResult(CacheableResult, frozen=True, kw_only=True):
    """One page of templates; ``next_cursor`` is present where there are more.

    Attributes:
        resource_templates: the templates of this page.
        next_cursor: the cursor of the next page, where there is one.
    """

    resource_templates: list[ResourceTemplate]
    next_cursor: str | UnsetType = UNSET


class ReadResourceParams(Wire, frozen=True, kw_only=True):
    """``resources/read``: the contents of one resource; for the rounds see ``CallToolParams``.

    Attributes:
        uri: of the resource.
        input_responses: answers to the questions of the round before (since 2026-07-28).
        request_state: the server's state of the round before, handed back (since 2026-07-28).
        meta: further members, in ``_meta``.
    """

    uri: str
    input_responses: InputResponses | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ReadResourceResult(CacheableResult, frozen=True, kw_only=True):
    """The contents that were read; a directory-like resource has several.

    Attributes:
        contents: the contents: one, or several where the URI is of a folder.
    """

    contents: list[ResourceContents]


class SubscribeParams(Wire, frozen=True, kw_only=True):
    """``resources/subscribe``: notify the client when a resource changes (up to 2025-11-25).

    Attributes:
        uri: of the resource.
        meta: further members, in ``_meta``.
    """

    uri: str
    meta: Meta | UnsetType = UNSET


class UnsubscribeParams(Wire, frozen=True, kw_only=True):
    """``resources/unsubscribe``: end a subscription (up to 2025-11-25).

    Attributes:
        uri: as it was subscribed to.
        meta: further members, in ``_meta``.
    """

    uri: str
    meta: Meta | UnsetType = UNSET
