"""Tool finder: the answers of the meta-tools, looked up here without asking any server."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, structs

from isthmus.host.catalog.lists import ServerLists
from isthmus.host.catalog.names import CatalogItem, CatalogView, Viewer, suggest_names
from isthmus.host.catalog.offer import (
    MAX_DEFINITION_BYTES,
    ToolCandidate,
    is_for_models,
    make_definition,
)
from isthmus.host.model.errors import BadArguments
from isthmus.search.brief import list_arguments, shorten_description
from isthmus.search.metatools import DetailsWanted, SearchWanted, ServersWanted
from isthmus.search.tool_index import SearchResult, ToolIndex
from isthmus.wire import CallToolResult, TextContent, Tool

if TYPE_CHECKING:
    from isthmus.host.model.entries import ToolSelection

MAX_INDEXED_GROUPS = 2_000  # one list of tools for each server and connection
MAX_VIEWERS = 200
MAX_ANSWER_CHARS = 64 * 1024

# the tools of a viewer, and the objects they were computed from
SeenTools: TypeAlias = tuple[CatalogView, tuple[object, ...], Mapping[str, CatalogItem[Tool]]]

HideTools = Callable[[Sequence[CatalogItem[Tool]], Viewer], Collection[str]]
ViewMarks = Callable[[], tuple[object, ...]]


class SearchedCatalog(Protocol):
    """A catalog whose tools are found: that of a host, or the part of it that somebody is offered."""

    def view(self, isolation: Viewer) -> CatalogView:
        """The merged lists of a viewer."""
        ...

    def tools(self, isolation: Viewer) -> Sequence[CatalogItem[Tool]]:
        """Every tool that can be called."""
        ...

    def sources(self, viewer: Viewer) -> Mapping[str, tuple[str, ServerLists]]:
        """The last lists of each server, and whose connection they are of."""
        ...

    def choice(self, server: str) -> "ToolSelection":
        """The tool selection of a server."""
        ...

    def instructions(self, isolation: Viewer) -> Mapping[str, str]:
        """The instructions of servers, by server."""
        ...

    def absent(self, isolation: Viewer) -> Mapping[str, str]:
        """Servers of which nothing is known, and the reasons."""
        ...


class ToolFinder:
    """Finds tools for a viewer.

    Args:
        catalog: what there is; the index follows it.
        hidden: the names, among some tools, that somebody is not to be told of.
        marks: what that depends on besides the catalog: objects that are others when it changes.
    """

    def __init__(
        self,
        catalog: SearchedCatalog,
        *,
        hidden: HideTools = lambda _items, _viewer: (),
        marks: ViewMarks = tuple,
    ) -> None:
        self._catalog = catalog
        self._hidden = hidden
        self._marks = marks
        self._index = ToolIndex()
        self._indexed: dict[tuple[str, str], tuple[ServerLists, ToolSelection]] = {}
        self._seen: dict[Viewer, SeenTools] = {}
        self._isolations: dict[Viewer, tuple[CatalogView, Mapping[str, str]]] = {}

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    async def answer(self, asked: Any, viewer: Viewer) -> CallToolResult:
        """Answer a call of a meta-tool.

        Raises:
            BadArguments: there is no such server.
        """
        match asked:
            case SearchWanted():
                text = await self._answer_search(asked, viewer)
            case DetailsWanted():
                text = self._answer_details(asked.names, viewer)
            case ServersWanted():
                text = self._answer_servers(viewer)
            case _:
                raise BadArguments(f"{type(asked).__name__} is nothing that is looked up")
        return CallToolResult(content=[TextContent(text=text)])

    def visible(self, viewer: Viewer) -> Mapping[str, CatalogItem[Tool]]:
        """The tools that a viewer may know of, by name."""
        view, marks = self._catalog.view(viewer), self._marks()
        known = self._seen.get(viewer)
        if known is not None and known[0] is view and known[1] == marks:
            return known[2]
        items = [item for item in view.tools if is_for_models(item.what)]
        hidden = self._hidden(items, viewer)
        found = {item.name: item for item in items if item.name not in hidden}
        if len(self._seen) >= MAX_VIEWERS:
            self._seen.clear()
        self._seen[viewer] = view, marks, found
        return found

    async def search(
        self, query: str, viewer: Viewer, *, server: str | None, limit: int
    ) -> SearchResult:
        """The tools that fit a query best, among those that a viewer may know of."""
        visible = self.visible(viewer)
        isolations = await self._update_index(viewer)
        return self._index.search(
            query, server=server, limit=limit, visible=visible.__contains__, isolations=isolations
        )

    async def _update_index(self, viewer: Viewer) -> Mapping[str, str]:
        """Bring the index up to date for a viewer; the isolation key of each server."""
        view, known = self._catalog.view(viewer), self._isolations.get(viewer)
        if known is not None and known[0] is view:
            return known[1]
        sources, of = self._catalog.sources(viewer), self._catalog.choice
        stale = [server for server in sources if not self._is_indexed(server, *sources[server])]
        if stale:
            if self._indexed and len(self._indexed) + len(stale) > MAX_INDEXED_GROUPS:
                self._index.close()
                self._index, self._indexed, self._isolations = ToolIndex(), {}, {}
                return await self._update_index(viewer)
            tools: dict[str, list[tuple[str, Tool]]] = {server: [] for server in stale}
            for item in self._catalog.tools(viewer):
                if item.server in tools:
                    said = of(item.server).describe.get(item.what.name, UNSET)
                    tool = (
                        item.what if said is UNSET else structs.replace(item.what, description=said)
                    )
                    tools[item.server].append((item.name, tool))
            for server, named in tools.items():
                key, listed = sources[server]
                self._index.replace(server, named, isolation=key)
                self._indexed[server, key] = listed, of(server)
                await asyncio.sleep(
                    0
                )  # thousands of tools take a while, and others have work to do
        if len(self._isolations) >= MAX_VIEWERS:
            self._isolations.clear()
        isolations = {server: key for server, (key, _) in sources.items()}
        self._isolations[viewer] = view, isolations
        return isolations

    def _is_indexed(self, server: str, key: str, listed: ServerLists) -> bool:
        known = self._indexed.get((server, key))
        return known is not None and known[0] is listed and known[1] is self._catalog.choice(server)

    # Answers for a model

    async def _answer_search(self, asked: SearchWanted, viewer: Viewer) -> str:
        visible = self.visible(viewer)
        if asked.server is not None and asked.server not in self._catalog.sources(viewer):
            known = ", ".join(sorted({item.server for item in visible.values()}))
            raise BadArguments(f"there is no server {asked.server[:100]!r}; there are: {known}")
        found = await self.search(asked.query, viewer, server=asked.server, limit=asked.limit)
        lines = [f"{len(found.names)} of {len(visible)} tools"]
        if not found.names:
            lines[0] = (
                f"None of {len(visible)} tools fits these words. Try others, or list_servers."
            )
        for said, meant in found.instead.items():
            lines.append(f"({said!r} was taken for {meant!r})")
        room = MAX_ANSWER_CHARS
        for server, items in group_by_server([visible[name] for name in found.names]):
            lines.append(f"\n{server}")
            for item in items:
                line = f"- {self._format_tool(item, asked.detail)}"
                room -= len(line)
                if room < 0:
                    line = f"- {item.name}: its definition is long, get_tool_details has it"
                lines.append(line)
        return "\n".join(lines + self._list_absent(viewer))

    def _answer_details(self, names: Iterable[str], viewer: Viewer) -> str:
        visible, room, lines = self.visible(viewer), MAX_ANSWER_CHARS, []
        for name in dict.fromkeys(names):
            item = visible.get(name)
            if item is None:
                lines.append(f"There is no tool {name[:100]!r}{suggest_names(name, visible)}.")
                continue
            line = self._format_tool(item, "full")
            if lines and len(line) > room:
                line = f"{name}: its definition is long: ask for it alone"
            room -= len(line)
            lines.append(line)
        return "\n".join(lines)

    def _answer_servers(self, viewer: Viewer) -> str:
        counts: dict[str, int] = dict.fromkeys(self._catalog.sources(viewer), 0)
        for item in self.visible(viewer).values():
            counts[item.server] += 1
        said = self._catalog.instructions(viewer)
        lines = [f"{sum(counts.values())} tools of {len(counts)} servers"]
        for server, count in sorted(counts.items()):
            about = shorten_description(said.get(server, ""))
            lines.append(f"- {server}: {count} tools" + (f". It says: {about}" if about else ""))
        return "\n".join(lines + self._list_absent(viewer))

    def _list_absent(self, viewer: Viewer) -> list[str]:
        # without the reason, in which a server may speak to the model as if it were us
        return [f"\nThe server {name} has no tools now." for name in self._catalog.absent(viewer)]

    def _format_tool(self, item: CatalogItem[Tool], detail: str) -> str:
        """Format a tool in one line, so that no text of a server looks like another one's tool."""
        describe = self._catalog.choice(item.server).describe
        tool = make_definition(
            ToolCandidate(item.name, item.server, item.what, describe.get(item.what.name))
        )
        if detail == "full":
            data = msgspec.json.encode(tool)
            if len(data) <= MAX_DEFINITION_BYTES:
                return data.decode()
            return f"{item.name}: its definition has {len(data)} bytes, too many to be read"
        if detail == "name":
            return item.name
        about = shorten_description(tool.description or tool.title or "")
        return f"{item.name}({list_arguments(tool.input_schema)})" + (f": {about}" if about else "")


def group_by_server(
    items: Iterable[CatalogItem[Tool]],
) -> list[tuple[str, list[CatalogItem[Tool]]]]:
    """Group tools by server, the server of the best one first."""
    groups: dict[str, list[CatalogItem[Tool]]] = {}
    for item in items:
        groups.setdefault(item.server, []).append(item)
    return list(groups.items())
