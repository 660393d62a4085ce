"""Spelling of results: the URIs in what a server answers, as the view of a gateway has them.

Whatever a client may read through the gateway is spelt as the client has to ask for it. A page of the web
that a server links to stays what it is, and so does the rest of a result that the host itself keeps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, structs

from isthmus.wire import (
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ReadResourceResult,
    ResourceLink,
)

if TYPE_CHECKING:
    from isthmus.wire.struct import Meta

WEB_SCHEMES = ("http://", "https://")


class SpellsUris(Protocol):
    """A view, as far as URIs are concerned."""

    def spell_uri(self, server: str, uri: str) -> str:
        """The URI of a resource here."""
        ...


class ResultSpeller:
    """Spells the URIs in what a server answers.

    Args:
        view: has the URIs of its clients.
        server: answers.
        is_kept: whether a URI is one of the host's own, under which it keeps the rest of a result.
        asked: the URI that was asked for, as the server spells it; empty where none was.
    """

    def __init__(
        self,
        view: SpellsUris,
        server: str,
        is_kept: Callable[[str], bool] = lambda _uri: False,
        asked: str = "",
    ) -> None:
        self._view = view
        self._server = server
        self._is_kept = is_kept
        self._asked = asked

    def spell_uri(self, uri: str) -> str:
        """A URI in a result, as the clients of the view see it."""
        # a client may fetch a page of the web itself (server/resources, "Common URI schemes")
        if (uri.startswith(WEB_SCHEMES) and uri != self._asked) or self._is_kept(uri):
            return uri
        return self._view.spell_uri(self._server, uri)

    def spell_result(self, result: Any) -> Any:
        """A result, as the clients of the view see it; the same object where nothing is spelt anew."""
        kind = type(result)
        if kind is CallToolResult:
            content = self._spell_blocks(result.content)
            return result if content is result.content else structs.replace(result, content=content)
        if kind is ReadResourceResult:
            contents = [
                structs.replace(one, uri=self.spell_uri(one.uri)) for one in result.contents
            ]
            return structs.replace(result, contents=contents)
        if kind is GetPromptResult:
            messages = [
                structs.replace(one, content=self._spell_block(one.content))
                for one in result.messages
            ]
            return structs.replace(result, messages=messages)
        return result

    def _spell_blocks(self, blocks: Sequence[Any]) -> Sequence[Any]:
        if not any(type(one) is ResourceLink or type(one) is EmbeddedResource for one in blocks):
            return blocks
        return [self._spell_block(one) for one in blocks]

    def _spell_block(self, block: Any) -> Any:
        if type(block) is ResourceLink:
            return structs.replace(block, uri=self.spell_uri(block.uri))
        if type(block) is EmbeddedResource:
            inside = block.resource
            spelt = structs.replace(inside, uri=self.spell_uri(inside.uri))
            return structs.replace(block, resource=spelt)
        return block


def spell_app_page(meta: Any, spell: Callable[[str], str]) -> Any:
    """The ``_meta`` of a tool: the page of an app that shows its results is a resource, too (SEP-1865)."""
    if not isinstance(meta, Mapping):
        return UNSET if meta is UNSET else meta
    app, flat = meta.get("ui"), meta.get("ui/resourceUri")
    found: Meta = dict(meta)
    if isinstance(app, Mapping) and isinstance(app.get("resourceUri"), str):
        found["ui"] = {**app, "resourceUri": spell(app["resourceUri"])}
    if isinstance(flat, str):
        found["ui/resourceUri"] = spell(flat)
    return found
