"""Translation of results and lists of a mounted server: their URIs and names as clients see them.

A URI is translated where it names a resource of the mounted server. Another one, such as a link to a
page of the web, stays what it is.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET, Raw, structs

from isthmus.revisions import METHODS
from isthmus.server.composition.names import NameMap
from isthmus.wire import (
    CallToolResult,
    DetailedTask,
    EmbeddedResource,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceLink,
    ResourceTemplate,
    Tool,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Meta, Wire


class Translator:
    """Translates what a mounted server answers.

    Args:
        names: its names, inside and outside.
        has: whether a URI names a resource of the mounted server.
    """

    def __init__(self, names: NameMap, has: Callable[[str], bool]) -> None:
        self._names = names
        self._has = has

    def uri(self, uri: str) -> str:
        """A URI in a result, as clients see it."""
        outer = self._names.outer_uri(uri) if self._has(uri) else None
        return uri if outer is None else outer

    def result(self, result: Any) -> Any:
        """A result, as clients see it."""
        if type(result) is CallToolResult:
            return structs.replace(result, content=[self._block(one) for one in result.content])
        if type(result) is ReadResourceResult:
            contents = [structs.replace(one, uri=self.uri(one.uri)) for one in result.contents]
            return structs.replace(result, contents=contents)
        if type(result) is GetPromptResult:
            messages = [
                structs.replace(one, content=self._block(one.content)) for one in result.messages
            ]
            return structs.replace(result, messages=messages)
        return self.task(result) if isinstance(result, DetailedTask) else result

    def task(self, task: Any) -> Any:
        """A task that brings its result along, as clients see it."""
        if not isinstance(task, DetailedTask) or task.result is UNSET:
            return task
        inside = METHODS["tools/call"].decode_result(task.result)
        return structs.replace(task, result=Raw(encode(self.result(inside))))

    def _block(self, block: Any) -> Any:
        if type(block) is ResourceLink:
            return structs.replace(block, uri=self.uri(block.uri))
        if type(block) is EmbeddedResource:
            inside = block.resource
            return structs.replace(
                block, resource=structs.replace(inside, uri=self.uri(inside.uri))
            )
        return block

    def item(self, item: Any) -> Wire | None:
        """An item of a list, as clients see it; None for one that they could not name."""
        names = self._names
        if isinstance(item, Tool):
            meta = UNSET if item.meta is UNSET else self._tool_meta(item.meta)
            return structs.replace(item, name=names.outer_name(item.name), meta=meta)
        if isinstance(item, Prompt):
            return structs.replace(item, name=names.outer_name(item.name))
        if isinstance(item, Resource):
            uri = names.outer_uri(item.uri)
            return None if uri is None else structs.replace(item, uri=uri)
        if isinstance(item, ResourceTemplate):
            uri = names.outer_uri(item.uri_template)
            return None if uri is None else structs.replace(item, uri_template=uri)
        raise TypeError(f"{type(item).__name__} is no item of a list")

    def _tool_meta(self, meta: Meta) -> Meta:
        """The ``_meta`` of a tool: the page that shows its results is a resource, too (SEP-1865)."""
        found, apps = dict(meta), meta.get("ui")
        if isinstance(apps, Mapping) and isinstance(apps.get("resourceUri"), str):
            found["ui"] = {**apps, "resourceUri": self.uri(apps["resourceUri"])}
        flat = meta.get("ui/resourceUri")
        if isinstance(flat, str):
            found["ui/resourceUri"] = self.uri(flat)
        return found


class TranslatedLink:
    """The way back to a client, for what a task of a mounted server tells on a stream of changes.

    Args:
        link: the way.
        translator: translates what is told.
    """

    def __init__(self, link: Any, translator: Translator) -> None:
        self._link = link
        self._translator = translator

    async def note(self, method: str, params: Any = None, **options: Any) -> None:
        """Send a notification, its task as clients see it."""
        await self._link.note(method, self._translator.task(params), **options)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the way can do."""
        return getattr(self._link, name)
