"""Resource and what reading it gives, under the names of ``fastmcp.resources.base``."""

import base64
import json
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

import msgspec
import pydantic_core
from pydantic import AnyUrl, field_validator, model_validator
from pydantic.networks import UrlConstraints

from isthmus.compat.fastmcp.components.component import (
    FastMCPComponent,
    drop_none,
    dump_model,
    make_public_meta,
)
from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.wire import ReadResourceResult
from isthmus.wire import Resource as WireResource

PlainUrl = Annotated[AnyUrl, UrlConstraints(host_required=False)]


class ResourceContent:
    """Part of what a resource has: text, bytes, or a value that is written as JSON.

    Args:
        content: the text, bytes or value.
        mime_type: its type; by what it is if not given.
        meta: meta of this part.
    """

    def __init__(
        self, content: Any, mime_type: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        kind = "text/plain" if isinstance(content, str) else "application/octet-stream"
        if not isinstance(content, str | bytes):
            content = pydantic_core.to_json(content, fallback=str).decode()
            kind = "application/json"
        self.content: str | bytes = content
        self.mime_type = mime_type or kind
        self.meta = meta

    def to_members(self, uri: str) -> dict[str, Any]:
        """The members of the contents on the wire."""
        members = {"uri": uri, "mimeType": self.mime_type, "_meta": self.meta}
        if isinstance(self.content, str):
            members["text"] = self.content
        else:
            members["blob"] = base64.b64encode(self.content).decode()
        return drop_none(members)

    def to_mcp_resource_contents(self, uri: Any) -> Any:
        """Convert it to the contents of ``mcp.types``."""
        types, members = load_types(), self.to_members(str(uri))
        kind = types.TextResourceContents if "text" in members else types.BlobResourceContents
        return kind.model_validate(members)


class ResourceResult:
    """Result of reading a resource: its parts, and meta.

    Args:
        contents: text, bytes, plain data, or a list of :class:`ResourceContent`.
        meta: meta of the result.

    Raises:
        TypeError: the contents are something else.
    """

    def __init__(self, contents: Any, meta: dict[str, Any] | None = None) -> None:
        if isinstance(contents, list):
            for number, one in enumerate(contents):
                if not isinstance(one, ResourceContent):
                    raise TypeError(
                        f"contents[{number}] must be ResourceContent, got {type(one).__name__}. "
                        f"Use ResourceContent({one!r}) to wrap the value."
                    )
            self.contents: list[ResourceContent] = contents
        elif isinstance(contents, str | bytes):
            self.contents = [ResourceContent(contents)]
        elif contents is None or isinstance(contents, dict | tuple | int | float):
            self.contents = [ResourceContent(write_plain(contents), "application/json")]
        else:
            raise TypeError(
                f"contents must be str, bytes, or list[ResourceContent], got {type(contents).__name__}"
            )
        self.meta = meta

    def to_wire(self, uri: str) -> ReadResourceResult:
        """The result as isthmus sends it."""
        members = {"contents": [one.to_members(uri) for one in self.contents], "_meta": self.meta}
        return msgspec.convert(drop_none(members), ReadResourceResult)

    def to_mcp_result(self, uri: Any) -> Any:
        """Convert it to ``mcp.types.ReadResourceResult``."""
        return load_types().ReadResourceResult.model_validate(
            msgspec.to_builtins(self.to_wire(str(uri)))
        )


def write_plain(value: Any) -> str:
    """Plain data as JSON."""
    if FLAVOUR.writes_compact_json:
        return pydantic_core.to_json(value, fallback=str).decode()
    return json.dumps(value)


def make_resource_result(
    value: Any, mime_type: str | None, meta: dict[str, Any] | None
) -> ResourceResult:
    """Make a result of what a function returned, with the type and meta that its resource is listed with."""
    if isinstance(value, ResourceResult):
        return value
    meta = make_public_meta(meta)
    if isinstance(value, str | bytes):
        return ResourceResult([ResourceContent(value, mime_type, meta)])
    if isinstance(value, list) and value and isinstance(value[0], ResourceContent):
        result = ResourceResult(value)
        if meta is not None:
            result.contents = [
                ResourceContent(one.content, one.mime_type, {**meta, **(one.meta or {})})
                for one in result.contents
            ]
        return result
    if value is None or isinstance(value, dict | list | tuple | int | float):
        text = write_plain(value)
        return ResourceResult([ResourceContent(text, mime_type or "application/json", meta)])
    return ResourceResult(value)


class Resource(FastMCPComponent):
    """Resource of a server written for fastmcp; a subclass overrides ``read``.

    Attributes:
        uri: where it is read.
        mime_type: the type of what it has.
        annotations: for whom it is, and how important.
    """

    KEY_PREFIX: ClassVar[str] = "resource"

    uri: PlainUrl
    name: str = ""
    mime_type: str = "text/plain"
    annotations: Any = None

    @field_validator("mime_type", mode="before")
    @classmethod
    def set_default_mime_type(cls, mime_type: str | None) -> str:
        """The type, plain text if none was given."""
        return mime_type or "text/plain"

    @model_validator(mode="after")
    def set_default_name(self) -> Self:
        """Give it its URI for a name, if none was given."""
        self.name = self.name or str(self.uri)
        return self

    @property
    def identifier(self) -> str:
        """What requests name it by: its URI."""
        return str(self.uri)

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri: Any, **options: Any) -> Any:
        """Make a resource of a function; the options are those of ``@mcp.resource``."""
        from isthmus.compat.fastmcp.resources.function_resource import FunctionResource

        return FunctionResource.from_function(fn, uri, **options)

    async def read(self) -> Any:
        """Read it: a subclass does, and returns text, bytes or a :class:`ResourceResult`."""
        raise NotImplementedError("Subclasses must implement read()")

    def convert_result(self, value: Any) -> ResourceResult:
        """Make a result of what a function returned."""
        return make_resource_result(value, self.mime_type, self.meta)

    def to_wire(self, uri: str) -> WireResource:
        """The resource as isthmus lists it."""
        listed = {
            **self.list_shared_members(),
            "uri": uri,
            "mimeType": self.mime_type,
            "annotations": dump_model(self.annotations),
        }
        return msgspec.convert(drop_none(listed), WireResource)

    def to_mcp_resource(self, **overrides: Any) -> Any:
        """Convert it to ``mcp.types.Resource``."""
        listed = msgspec.to_builtins(self.to_wire(str(overrides.pop("uri", self.uri))))
        return load_types().Resource.model_validate({**listed, **overrides})
