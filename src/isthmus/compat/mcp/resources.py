"""Resources of ``MCPServer`` and ``FastMCP``: text, bytes, files, functions, and templates of them."""

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pydantic_core
from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
    validate_call,
)

from isthmus.compat import types
from isthmus.compat.exceptions import MCPError, ResourceError, UnexpectedResourceError
from isthmus.compat.functions import (
    RunInThread,
    find_context_name,
    get_function_name,
    is_async_callable,
)
from isthmus.compat.mcp.context import Context
from isthmus.compat.mcp.lowlevel import read_url
from isthmus.core.uri_template import UriTemplate

TEXT_TYPES = ("text/", "application/json", "application/xml")


class Resource(BaseModel):
    """Base of resources: what each of them says of itself."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    uri: Any
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str = "text/plain"
    icons: Any = None
    annotations: Any = None
    meta: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _name_by_uri(self) -> "Resource":
        self.name = self.name or str(self.uri)
        return self

    async def read(self) -> str | bytes:
        """Its content."""
        raise NotImplementedError

    def list_item(self) -> Any:
        """The resource as it is listed."""
        return types.Resource(
            uri=str(self.uri),
            name=self.name or "",
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            icons=self.icons,
            annotations=self.annotations,
            meta=self.meta,
        )


class TextResource(Resource):
    """A resource of text."""

    text: str

    async def read(self) -> str:
        """The text."""
        return self.text


class BinaryResource(Resource):
    """A resource of bytes."""

    data: bytes

    async def read(self) -> bytes:
        """The bytes."""
        return self.data


class FileResource(Resource):
    """A file as a resource: text where its MIME type is textual."""

    path: Path
    is_binary: bool | None = None
    encoding: str | None = None

    async def read(self) -> str | bytes:
        """The content of the file."""
        data = await asyncio.to_thread(self.path.read_bytes)
        textual = self.mime_type.startswith(TEXT_TYPES) or self.mime_type.endswith(
            ("+json", "+xml")
        )
        if self.is_binary or not (textual or self.encoding):
            return data
        return data.decode(self.encoding or "utf-8-sig")


class DirectoryResource(Resource):
    """The names of the files in a folder, as a resource."""

    path: Path
    recursive: bool = False
    pattern: str | None = None
    mime_type: str = "application/json"

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: Path) -> Path:
        if not path.is_absolute():
            raise ValueError("Path must be absolute")
        return path

    def list_files(self) -> list[Path]:
        """All that is in the folder and has a name of the pattern.

        Raises:
            OSError: there is no such folder.
        """
        if not self.path.exists():
            raise FileNotFoundError(f"Directory not found: {self.path}")
        if not self.path.is_dir():
            raise NotADirectoryError(f"Not a directory: {self.path}")
        find = self.path.rglob if self.recursive else self.path.glob
        return [*find(self.pattern or "*")]

    async def read(self) -> str:
        """The files' names, relative to the folder, as JSON."""
        found = await asyncio.to_thread(self.list_files)
        names = [str(one.relative_to(self.path)) for one in found if one.is_file()]
        return json.dumps({"files": names}, indent=2)


class FunctionResource(Resource):
    """A resource that a function reads."""

    fn: Callable[..., Any] = Field(exclude=True)
    threads: bool = Field(default=True, exclude=True)

    @classmethod
    def from_function(
        cls, fn: Callable[..., Any], uri: Any, name: str | None = None, **given: Any
    ) -> "FunctionResource":
        """The resource of a function."""
        described = given.pop("description", None) or fn.__doc__ or ""
        mime_type = given.pop("mime_type", None) or "text/plain"
        return cls(
            uri=uri,
            name=name or get_function_name(fn),
            description=described,
            mime_type=mime_type,
            fn=validate_call(fn),
            **given,
        )

    async def read(self) -> str | bytes:
        """What the function gives."""
        if is_async_callable(self.fn):
            made = await self.fn()
        else:
            made = await asyncio.to_thread(self.fn) if self.threads else self.fn()
        if hasattr(made, "__await__"):
            made = await made
        if isinstance(made, Resource):
            return await made.read()
        return to_content(made)


def to_content(value: Any) -> str | bytes:
    """What a resource's function gave, as content: text and bytes as they are, else JSON."""
    if isinstance(value, str | bytes):
        return value
    return pydantic_core.to_json(value, fallback=str, indent=2).decode()


class ResourceTemplate:
    """A template of resources, which a function reads by the variables of the URI."""

    def __init__(self, fn: Callable[..., Any], uri_template: str, **given: Any) -> None:
        self.uri_template = uri_template
        self.name = given.get("name") or get_function_name(fn)
        self.title = given.get("title")
        self.description = given.get("description") or fn.__doc__ or ""
        self.mime_type = given.get("mime_type") or "text/plain"
        self.icons, self.annotations = given.get("icons"), given.get("annotations")
        self.meta = given.get("meta")
        self.context_name = find_context_name(fn, Context)
        self.is_async = is_async_callable(fn)
        self.fn = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(fn)
        self._template = UriTemplate(uri_template)

    @property
    def names(self) -> list[str]:
        """The variables of the template."""
        return [*self._template.names]

    def match(self, uri: str) -> dict[str, Any] | None:
        """The variables of a URI; None if it is none of the template's."""
        return self._template.match(uri)

    def list_item(self) -> Any:
        """The template as it is listed."""
        return types.ResourceTemplate(
            uri_template=self.uri_template,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            icons=self.icons,
            annotations=self.annotations,
            meta=self.meta,
        )

    async def read(
        self, uri: str, values: dict[str, Any], context: Any, run_in_thread: RunInThread
    ) -> Any:
        """The content at a URI.

        Raises:
            ResourceError: the function failed.
        """
        bound = values if self.context_name is None else {**values, self.context_name: context}
        try:
            call = partial(self.fn, **bound)
            made = await call() if self.is_async else await run_in_thread(call)
        except (ResourceError, MCPError):
            raise
        except Exception as error:
            raise UnexpectedResourceError(f"Error creating resource from template {uri}") from error
        if isinstance(made, types.InputRequiredResult):
            return made
        return await made.read() if isinstance(made, Resource) else to_content(made)


# What mcp 1.x does otherwise


class OlderTemplate(ResourceTemplate):
    """A template of ``mcp`` 1.x: variables have the URI's own spelling, and functions run on the event loop."""

    def __init__(self, fn: Callable[..., Any], uri_template: str, **given: Any) -> None:
        super().__init__(fn, uri_template, **given)
        pieces = re.split(r"\{(\w+)\}", uri_template)
        self._pattern = re.compile(
            "".join(
                f"(?P<{piece}>[^/]+)" if number % 2 else re.escape(piece)
                for number, piece in enumerate(pieces)
            )
        )

    def match(self, uri: str) -> dict[str, Any] | None:
        """The variables of a URI, with its percent escapes; dot segments are refused, as everywhere in isthmus."""
        found = self._pattern.fullmatch(uri)
        if found is None or any(value in DOT_SEGMENTS for value in found.groups()):
            return None
        return found.groupdict()

    async def read(
        self, uri: str, values: dict[str, Any], context: Any, run_in_thread: RunInThread
    ) -> Any:
        """The content at a URI.

        Raises:
            ResourceError: the function failed; with its text.
        """
        del run_in_thread
        bound = values if self.context_name is None else {**values, self.context_name: context}
        try:
            made = self.fn(**bound)
            if hasattr(made, "__await__"):
                made = await made
        except Exception as error:
            failed = "Error creating resource from template: "
            raise UnexpectedResourceError(f"{failed}{failed}{error}") from error
        try:
            return await made.read() if isinstance(made, Resource) else to_content(made)
        except Exception as error:
            raise UnexpectedResourceError(f"Error reading resource {uri}: {error}") from error


DOT_SEGMENTS = (".", "..")


def spell_uri(uri: Any) -> str:
    """A URI in the spelling of ``mcp`` 1.x.

    Raises:
        MCPError: it is none.
    """
    return str(read_url(uri))


def prepare_older_resource(resource: Any) -> None:
    """Make a resource one of ``mcp`` 1.x: its URI's spelling, its thread, and what is binary of files."""
    if not isinstance(resource, Resource):
        return
    resource.uri = AnyUrl(str(resource.uri))
    if isinstance(resource, FunctionResource):
        resource.threads = False
    if isinstance(resource, FileResource) and resource.is_binary is None:
        resource.is_binary = not resource.mime_type.startswith("text/")
        resource.encoding = "utf-8"


def describe_older_failure(resource: Any, error: Exception) -> str:
    """What ``mcp`` 1.x says of a resource that cannot be read."""
    if isinstance(resource, FunctionResource):
        return f"Error reading resource {resource.uri}: {error}"
    if isinstance(resource, FileResource):
        return f"Error reading file {resource.path}: {error}"
    if isinstance(resource, DirectoryResource):
        return f"Error reading directory {resource.path}: {error}"
    return str(error)
