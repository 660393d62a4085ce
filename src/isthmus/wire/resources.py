"""Resources: things that can be read at a URI."""

from isthmus.wire.content import ResourceContents
from isthmus.wire.identity import Annotations, Icon
from isthmus.wire.results import CacheableResult, InputResponses
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class Resource(Wire, frozen=True, kw_only=True):
    """One thing that can be read; ``size`` is in bytes, before any base64."""

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
    """A family of resources; ``uri_template`` is an RFC 6570 template."""

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourcesParams(Wire, frozen=True, kw_only=True):
    """``resources/list``: a page of the resources there are."""

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourcesResult(CacheableResult, frozen=True, kw_only=True):
    """One page of resources; ``next_cursor`` is present where there are more."""

    resources: list[Resource]
    next_cursor: str | UnsetType = UNSET


class ListResourceTemplatesParams(Wire, frozen=True, kw_only=True):
    """``resources/templates/list``: a page of the templates there are."""

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListResourceTemplatesResult(CacheableResult, frozen=True, kw_only=True):
    """One page of templates; ``next_cursor`` is present where there are more."""

    resource_templates: list[ResourceTemplate]
    next_cursor: str | UnsetType = UNSET


class ReadResourceParams(Wire, frozen=True, kw_only=True):
    """``resources/read``: the contents of one resource; for the rounds see ``CallToolParams``."""

    uri: str
    input_responses: InputResponses | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ReadResourceResult(CacheableResult, frozen=True, kw_only=True):
    """The contents that were read; a directory-like resource has several."""

    contents: list[ResourceContents]


class SubscribeParams(Wire, frozen=True, kw_only=True):
    """``resources/subscribe``: tell me when it changes (up to 2025-11-25)."""

    uri: str
    meta: Meta | UnsetType = UNSET


class UnsubscribeParams(Wire, frozen=True, kw_only=True):
    """``resources/unsubscribe``: tell me no more (up to 2025-11-25)."""

    uri: str
    meta: Meta | UnsetType = UNSET
