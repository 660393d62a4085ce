"""Search in a view: the few tools by which a client finds all others, in place of a large list."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.gateway.offers.views import GatewayView
from isthmus.host.catalog.finder import HideTools, ToolFinder, ViewMarks
from isthmus.host.catalog.metatools import SearchSettings, parse_meta_arguments
from isthmus.host.catalog.names import CatalogItem, CatalogView, Viewer
from isthmus.host.model.tokens import estimate_tokens
from isthmus.search.metatools import META_TOOLS, is_meta
from isthmus.wire import CallToolResult, Tool

if TYPE_CHECKING:
    from isthmus.host.catalog.lists import ServerLists
    from isthmus.host.host import Host
    from isthmus.host.model.entries import ToolSelection

# tokens of definitions from which on they are searched, where ``host.search`` sets no threshold
SEARCH_THRESHOLD_TOKENS = 20_000

# callers of whom it is known whether they are offered these tools; more than there are lists of
MAX_DECIDED_VIEWERS = 1000

DEFAULT_SETTINGS = SearchSettings()


class NarrowedCatalog:
    """The host's catalog, as far as a view has its servers.

    Args:
        host: has the catalog.
        view: the view.
    """

    def __init__(self, host: "Host", view: GatewayView) -> None:
        self._host = host
        self._view = view

    def view(self, isolation: Viewer) -> CatalogView:
        """The merged lists."""
        return self._host.catalog.view(isolation)

    def tools(self, isolation: Viewer) -> Sequence[CatalogItem[Tool]]:
        """Every tool of the view's servers."""
        servers = set(self._view.servers())
        return [one for one in self._host.catalog.tools(isolation) if one.server in servers]

    def sources(self, viewer: Viewer) -> "Mapping[str, tuple[str, ServerLists]]":
        """The last lists of each of its servers."""
        return self._narrow(self._host.catalog.sources(viewer))

    def choice(self, server: str) -> "ToolSelection":
        """The tool selection of a server."""
        return self._host.catalog.choice(server)

    def instructions(self, isolation: Viewer) -> Mapping[str, str]:
        """The instructions of its servers."""
        return self._narrow(self._host.catalog.instructions(isolation))

    def absent(self, isolation: Viewer) -> Mapping[str, str]:
        """Those of its servers of which nothing is known."""
        return self._narrow(self._host.catalog.absent(isolation))

    def _narrow(self, found: Mapping[str, Any]) -> dict[str, Any]:
        servers = set(self._view.servers())
        return {name: one for name, one in found.items() if name in servers}


class ViewSearch:
    """The tools that find tools, in a view.

    Args:
        view: the view.
        host: knows what servers have.
        hidden: the names of tools that a caller is not told of.
        marks: what that depends on.
        mode: says when they are offered.
    """

    def __init__(
        self,
        view: GatewayView,
        host: "Host",
        hidden: HideTools,
        marks: ViewMarks,
        mode: Callable[[], str],
    ) -> None:
        self._view = view
        self._host = host
        self._hidden = hidden
        self._marks = marks
        self._mode = mode
        self._finder: ToolFinder | None = None
        self._offered: dict[Viewer, bool] = {}

    def offer(
        self, tools: Sequence[tuple[CatalogItem[Tool], Tool]], viewer: Viewer
    ) -> Sequence[Tool]:
        """The tools that a caller is given: all, or those that find them and those that are pinned.

        Args:
            tools: those that it may know of, and each as the view spells it.
            viewer: the caller.
        """
        settings = self._find_settings()
        mode = self._mode()
        searching = mode == "always"
        if mode == "auto":
            most = settings.most(0)
            if settings.threshold == DEFAULT_SETTINGS.threshold:
                most = SEARCH_THRESHOLD_TOKENS
            searching = sum(estimate_tokens(tool) for _, tool in tools) > most
        self._offered.pop(viewer, None)
        self._offered[viewer] = searching
        if len(self._offered) > MAX_DECIDED_VIEWERS:
            del self._offered[next(iter(self._offered))]
        if not searching:
            return [tool for _, tool in tools]
        return [*META_TOOLS, *(tool for item, tool in tools if settings.pins(item.name))]

    def _find_settings(self) -> SearchSettings:
        return self._host.catalog.search or DEFAULT_SETTINGS

    def is_offered(self, viewer: Viewer) -> bool:
        """Whether a caller was given them, in the list that it has."""
        mode = self._mode()
        if mode != "auto":
            return mode == "always"
        return self._offered.get(viewer, False)

    def is_undecided(self, name: str, viewer: Viewer) -> bool:
        """Whether a call may be one of these tools', of a caller whose list this process has not made yet.

        Another one may have given it to them: another node, or this gateway before it was started anew.
        """
        return is_meta(name) and self._mode() == "auto" and viewer not in self._offered

    def takes(self, name: str, viewer: Viewer) -> bool:
        """Whether a call is one of these tools'."""
        return is_meta(name) and self._mode() != "never" and self.is_offered(viewer)

    def parse(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The arguments of one of these tools.

        Raises:
            BadArguments: they are none of it.
        """
        return parse_meta_arguments(name, arguments)

    async def answer(self, asked: Any, viewer: Viewer) -> CallToolResult:
        """The result of one of them; no server is asked for it.

        Raises:
            BadArguments: there is no such server.
        """
        if self._finder is None:
            narrowed = NarrowedCatalog(self._host, self._view)
            self._finder = ToolFinder(narrowed, hidden=self._hidden, marks=self._marks)
        return await self._finder.answer(asked, viewer)

    def close(self) -> None:
        """Let go of the index."""
        if self._finder is not None:
            self._finder.close()
