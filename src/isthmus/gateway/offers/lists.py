"""Lists of a view: its tools, prompts and resources, for each of its callers, made once for each change.

What policy bars for a caller, and a tool that has changed since it was approved, stands in no list of theirs,
and is refused in the words for what does not exist. Where no rule says of whom it is, all callers share one
list.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isthmus.gateway.offers.search import ViewSearch
from isthmus.gateway.offers.views import (
    GatewayView,
    spell_prompt,
    spell_resource,
    spell_template,
    spell_tool,
)
from isthmus.host.catalog.names import CatalogItem, CatalogView, Viewer
from isthmus.host.model.gateway_options import GatewayProfile
from isthmus.host.supervisor.states import ConnectionState
from isthmus.host.visibility import Visibility
from isthmus.server.features.provided_items import ProvidedItems
from isthmus.wire import Tool
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.host.host import Host
    from isthmus.host.model.entries import HostConfig

MAX_VIEWERS = 256  # callers whose lists are kept; the oldest make room

# the caller whose lists are those of all, where no rule says of whom it is
SHARED_VIEWER = Viewer("user:local")

# the member of a list's ``_meta`` with the states of servers that cannot be used now
STATES_KEY = "io.github.isthmus/servers"

UNUSABLE_STATES: frozenset[ConnectionState] = frozenset(
    {"backoff", "failed", "needs_auth", "quarantined"}
)

# what the catalog calls the lists
KINDS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}

Signature = tuple[tuple[str, object, object], ...]
"""A list as far as its changes go: names, what has them, and descriptions of the configuration."""


class VisibleItems(Struct, frozen=True):
    """The things of a view that one caller may know of.

    Attributes:
        made_of: the objects that they were made of; others once anything changes.
        tools, prompts, resources, templates: the things.
        hidden: server and own name of the tools and prompts that are there for others.
        lists: the lists made of them so far, by method.
    """

    made_of: tuple[object, ...]
    tools: Sequence[CatalogItem[Any]]
    prompts: Sequence[CatalogItem[Any]]
    resources: Sequence[CatalogItem[Any]]
    templates: Sequence[CatalogItem[Any]]
    hidden: Collection[tuple[str, str, str]]
    lists: dict[str, ProvidedItems]


class ViewLists:
    """The lists of a view.

    Args:
        view: the view.
        host: knows what servers have, and the policy.
        search_mode: says when the view offers the tools that find tools.
        is_open: whether anybody may ask for the lists.

    Attributes:
        view: the view.
    """

    def __init__(
        self,
        view: GatewayView,
        host: "Host",
        search_mode: Callable[[], str],
        *,
        is_open: bool = True,
    ) -> None:
        self._is_open = is_open
        self.view = view
        self._host = host
        self._seen: dict[Viewer, VisibleItems] = {}
        self._shares: tuple[tuple[object, ...], bool] = (), False
        self._visibility_of: Visibility | None = None
        self.search = ViewSearch(view, host, self.find_hidden, self.make_marks, search_mode)

    @property
    def _visibility(self) -> Visibility:
        if self._visibility_of is None:
            parts, view = self._host.parts, self.view
            self._visibility_of = Visibility(
                parts.servers, parts.calls.pipeline, origin="gateway", profile=view.profile_name
            )
        return self._visibility_of

    # Callers

    def find_viewer(self, principal: str) -> Viewer:
        """The viewer whose lists a principal has: their own, or the one that all share."""
        return SHARED_VIEWER if self.is_shared() else Viewer(principal)

    def is_shared(self) -> bool:
        """Whether all callers have the same lists."""
        config, accounts = self._host.config, self._host.accounts
        made_of = (config, accounts.wanting_count, *self._visibility.marks())
        if self._shares[0] != made_of:
            entries = [config.servers[name] for name in self.view.servers()]
            shared = not self._visibility.depends_on_principal() and not any(
                entry.options.instance == "per-user" or accounts.has_personal(entry)
                for entry in entries
            )
            self._shares = made_of, shared
        return self._shares[1]

    def make_marks(self) -> tuple[object, ...]:
        """The objects that lists depend on besides those of the catalog."""
        profile: GatewayProfile | None = self.view.profile
        config: HostConfig = self._host.config
        return (profile, config.servers, *self._visibility.marks())

    # Things

    def find_hidden(self, items: Sequence[CatalogItem[Tool]], viewer: Viewer) -> Collection[str]:
        """The names of tools that a caller is not told of: of others, or barred."""
        view = self.view
        servers = set(view.servers())
        barred = self._visibility.hidden(items, viewer)
        return {
            one.name
            for one in items
            if one.name in barred
            or one.server not in servers
            or not view.offers(one.server, one.name)
        }

    def find_visible(self, viewer: Viewer) -> VisibleItems:
        """The things that a caller may know of."""
        catalog = self._host.catalog
        whole: CatalogView = catalog.view(viewer)
        made_of = (whole, *self.make_marks())
        known = self._seen.get(viewer)
        if known is not None and is_made_of(known.made_of, made_of):
            return known
        view, servers, hidden = self.view, set(self.view.servers()), set()
        barred = self._visibility.hidden(whole.tools, viewer)
        tools = []
        for item in whole.tools:
            if item.server in servers and view.offers(item.server, item.name):
                if item.name in barred:
                    hidden.add(("tools/call", item.server, item.what.name))
                else:
                    tools.append(item)
        offered = [
            item
            for item in whole.prompts
            if item.server in servers and view.offers(item.server, item.name)
        ]
        barred = self._visibility.barred("prompt.get", offered, viewer)
        hidden |= {
            ("prompts/get", one.server, one.what.name) for one in offered if one.name in barred
        }
        found = self._seen[viewer] = VisibleItems(
            made_of,
            tools,
            [one for one in offered if one.name not in barred],
            self._select_readable(catalog.resources(viewer), servers, viewer),
            self._select_readable(catalog.templates(viewer), servers, viewer),
            hidden,
            {},
        )
        while len(self._seen) > MAX_VIEWERS:
            del self._seen[next(iter(self._seen))]
        return found

    def _select_readable(
        self, items: Sequence[CatalogItem[Any]], servers: set[str], viewer: Viewer
    ) -> Sequence[CatalogItem[Any]]:
        offered = [one for one in items if one.server in servers]
        barred = self._visibility.barred("resource.read", offered, viewer)
        return [one for one in offered if one.name not in barred]

    def hides(self, method: str, server: str, own: str, viewer: Viewer) -> bool:
        """Whether something that the view has is not there for a caller."""
        if method == "resources/read":
            return self._visibility.bars("resource.read", server, own, viewer)
        return (method, server, own) in self.find_visible(viewer).hidden

    # Lists

    def find(self, method: str, viewer: Viewer) -> ProvidedItems:
        """All items of a list, as a caller is given them; the same object until it changes."""
        visible = self.find_visible(viewer)
        states, ttl = self.find_states(), self.find_ttl(method, viewer)
        known = visible.lists.get(method)
        if known is None or known.ttl_ms != ttl or known.meta.get(STATES_KEY, {}) != states:
            known = visible.lists[method] = ProvidedItems(
                self._spell(method, visible, viewer),
                meta={STATES_KEY: states} if states else {},
                cache_scope="public" if self._is_open and self.is_shared() else "private",
                ttl_ms=ttl,
            )
        return known

    def _spell(self, method: str, visible: VisibleItems, viewer: Viewer) -> Sequence[Wire]:
        view, catalog = self.view, self._host.catalog
        match method:
            case "tools/list":
                tools = [
                    (one, spell_tool(view, one, catalog.choice(one.server).describe))
                    for one in visible.tools
                ]
                return self.search.offer(tools, viewer)
            case "prompts/list":
                return [spell_prompt(view, one) for one in visible.prompts]
            case "resources/list":
                return [spell_resource(view, one) for one in visible.resources]
        return [spell_template(view, one) for one in visible.templates]

    def sign(self, method: str, viewer: Viewer) -> Signature:
        """A list as far as its changes go."""
        visible, catalog = self.find_visible(viewer), self._host.catalog
        match method:
            case "tools/list":
                if self.search.is_offered(viewer):
                    names = [one.name for one in self.find(method, viewer) if isinstance(one, Tool)]
                    return tuple((name, None, None) for name in names)
                return tuple(
                    (
                        one.name,
                        one.what,
                        catalog.choice(one.server).describe.get(one.what.name),
                    )
                    for one in visible.tools
                )
            case "prompts/list":
                items = visible.prompts
            case "resources/list":
                items = visible.resources
            case _:
                items = visible.templates
        return tuple((one.name, one.what, None) for one in items)

    def find_states(self) -> Mapping[str, str]:
        """The states of the view's servers that cannot be used now."""
        found = {}
        for name in self.view.servers():
            hosted = self._host.servers.get(name)
            shared = None if hosted is None else hosted.connections.get("")
            if shared is not None and shared.state in UNUSABLE_STATES:
                found[name] = shared.state
        return found

    def find_ttl(self, method: str, viewer: Viewer) -> int:
        """Milliseconds for which a list may be kept: the least of those that have a part of it.

        0 where one of them does not say it, or was not asked in this run.
        """
        catalog, kind, least = self._host.catalog, KINDS[method], 0
        for name in self.view.servers():
            listed = catalog.listed(name, viewer)
            if listed is None or listed.cached:
                return 0
            said = listed.ttls.get(kind)
            if said == 0:
                return 0
            if said is not None:
                least = min(least or said, said)
        return least

    def close(self) -> None:
        """Let go of the index of its tools."""
        self.search.close()


def is_made_of(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Whether two things were made of the same objects."""
    if len(some) != len(others):
        return False
    for one, other in zip(some, others, strict=True):  # for each call: a generator costs
        if one is not other and not (isinstance(one, int | GatewayProfile) and one == other):
            return False
    return True


def is_same_list(some: Signature, others: Signature) -> bool:
    """Whether a list has stayed the same."""
    return len(some) == len(others) and all(
        one[0] == other[0] and one[1] is other[1] and one[2] == other[2]
        for one, other in zip(some, others, strict=True)
    )
