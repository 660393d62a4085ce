"""The catalog of all servers: their tools, prompts and resources, in an order that stays."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from isthmus.errors import ConnectionLost, IsthmusError
from isthmus.host.accounts.ownership import LOCAL_PRINCIPAL
from isthmus.host.catalog.lists import (
    LIST_KINDS,
    LISTS_BY_CHANGE,
    ListingClient,
    ListRenewal,
    ServerLists,
    fetch_lists,
    merge_lists,
)
from isthmus.host.catalog.names import (
    CatalogItem,
    CatalogView,
    Isolation,
    ItemNaming,
    NameTable,
    Viewer,
    digest_target,
    is_chosen,
    join_uri,
    make_items,
    make_namespace,
    split_uri,
)
from isthmus.host.catalog.offer import (
    ToolCandidate,
    ToolOffer,
    make_offer,
    offer_search,
    renew_offer,
)
from isthmus.host.model.entries import ServerEntry, ToolSelection
from isthmus.host.model.errors import Denied, Unknown
from isthmus.host.model.events import HostNotice
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.wire import Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.catalog.lists import ListCache
    from isthmus.host.catalog.metatools import SearchSettings

__all__ = ["CatalogItem", "HostCatalog"]

OFFER_TIMEOUT_S = 10.0  # servers that answer later are in the next list of tools

# listings of one connection for a model that wants a tool nobody announced
LOOK_RATE = Rate(10, seconds=60)
RELIST_AFTER_S = 30.0
KEEP_INTERVAL_S = 3600.0

# connections of one user or session whose lists are known while they are closed
MAX_OWN_LISTS = 1_000

# states of a server in which only a person can do something
FINAL_STATES = {"disabled", "needs_auth", "quarantined", "failed"}

# lends an open client of a server and an isolation key, starting the server where needed
LendClient = Callable[[str, str], AbstractAsyncContextManager[ListingClient]]


class HostCatalog:
    """The tools, prompts, resources and instructions of all servers.

    What is known of a server comes from the server itself when it has started, or from an earlier
    run. A server that neither runs nor is known is started the first time that its lists are
    needed. What is wrong with one server is told, and costs the others nothing.

    Args:
        entries: the servers, by name.
        use: lends a client of one of them.
        cache: lists of earlier runs; None keeps none.
        identity: what a server is bound to, under which its lists are kept.
        search: when a model finds tools by searching; None for never.
        quarantined: says whether a tool of a server is not to be offered to a model now.
        notice: told of what a person should know.
        clock: says the seconds since the epoch.
        accounts: says who has connections of their own, for the accounts that they show.
    """

    def __init__(
        self,
        entries: Mapping[str, ServerEntry],
        use: LendClient,
        *,
        cache: "ListCache | None" = None,
        identity: Callable[[ServerEntry], str] | None = None,
        search: "SearchSettings | None" = None,
        quarantined: Callable[[str, Tool], bool] = lambda _server, _tool: False,
        notice: Callable[[HostNotice], None] = lambda _event: None,
        clock: Callable[[], float] = time.time,
        accounts: "Accounts | None" = None,
    ) -> None:
        self._entries = dict(entries)
        self._accounts = accounts
        self._use = use
        self._cache = cache
        self._identity = identity or digest_target
        self.search = search
        self._quarantined = quarantined
        self._notice = notice
        self._clock = clock
        self._switched: dict[str, bool] = {}
        self._known: dict[tuple[str, str], ServerLists] = {}
        self._numbers = count(1)
        self._listed_at: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
        self._kept_at: dict[tuple[str, str], float] = {}
        self._clients: dict[tuple[str, str], ListingClient] = {}
        self._listings: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._views: dict[Isolation, CatalogView] = {}
        self._notices: set[tuple[str, str]] = set()
        self._failed: dict[tuple[str, str], tuple[float, str]] = {}
        self._loading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._renewing: dict[tuple[str, str], ListRenewal] = {}
        self._looks = MemoryMeter(LOOK_RATE, clock=clock)
        self._watchers: list[Callable[[], None]] = []

    def watch(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told whenever a list may be another one; returns what ends that."""
        self._watchers.append(tell)
        return lambda: self._watchers.remove(tell) if tell in self._watchers else None

    def _drop_views(self, server: str = "", isolation: str = "") -> None:
        """Make views anew that are of a server's connection; of all of them by default."""
        if isolation:  # else it is what a viewer sees who has no connection of their own
            for viewer in [
                one for one in self._views if self.find_isolation(server, one) == isolation
            ]:
                del self._views[viewer]
        else:
            self._views.clear()
        for tell in self._watchers:
            tell()

    # Events of the supervisor and the configuration

    async def on_ready(self, server: str, client: ListingClient, isolation: str = "") -> None:
        """List a server that has started.

        Args:
            server: its name.
            client: is open; it is asked again when the server says that a list has changed.
            isolation: whose connection it is.
        """
        key = server, isolation
        heard = self._listings.get(key)
        broke = heard is not None and heard.done() and not heard.cancelled() and heard.exception()
        if broke or self._clients.get(key) is not client:
            self._clients[key] = client
            self._listings[key] = asyncio.ensure_future(
                self._list_server(key, client, tuple(LIST_KINDS))
            )
        # Two may say so at once: the supervisor, and who has had the server started to be known.
        await asyncio.shield(self._listings[key])

    async def on_changed(self, server: str, kind: str, isolation: str = "") -> None:
        """List a server anew after it announced a change; several announcements in a row are one."""
        if self.changed(server, kind, isolation):
            await self._get_renewal((server, isolation)).renew(*LISTS_BY_CHANGE.get(kind, ()))

    def changed(self, server: str, kind: str, isolation: str = "") -> bool:
        """As :meth:`on_changed`, without waiting; however often it is told, one round is pending.

        Returns:
            Whether the server is asked: one that is not there is not.
        """
        key = server, isolation
        if key not in self._clients:
            return False
        self._get_renewal(key).want(*LISTS_BY_CHANGE.get(kind, ()))
        return True

    async def settle(self, server: str, kind: str, isolation: str = "", *, tells: bool) -> None:
        """Wait until a list is current; the server is asked again only where need be.

        Args:
            server: its name.
            kind: ``tools``, ``prompts`` or ``resources``.
            isolation: whose connection.
            tells: whether the server says when the list is another one. Where it does not, a list
                of more than half a minute ago is asked for again.

        Raises:
            ConnectionLost: it cannot be asked.
        """
        key, kinds = (server, isolation), LISTS_BY_CHANGE.get(kind, ())
        written = self._listed_at.get(key, {})
        old = [
            one for one in kinds if self._clock() >= written.get(one, (0, 0.0))[1] + RELIST_AFTER_S
        ]
        if old and not tells and key in self._clients:
            self._get_renewal(key).want(*old)
        renewal = self._renewing.get(key)
        if renewal is not None:
            await renewal.settle(*kinds)

    async def look_again(self, server: str, isolation: Isolation = "") -> bool:
        """List tools that have only just appeared, for a model that wants an unknown one.

        What the server has told of is waited for; where it told nothing, its tools are listed again,
        unless that was done too often.

        Returns:
            Whether anything can have become known.
        """
        key = server, self.find_isolation(server, isolation)
        listed = self._find_lists(*key)
        if key not in self._clients or listed is None or listed.missing:
            return False  # it is listed again after a while
        renewal, kinds = self._get_renewal(key), LISTS_BY_CHANGE["tools"]
        pending = not (renewal.wanted | renewal.fetching).isdisjoint(kinds)
        if not pending and self._looks.spend(repr(key)):
            return False
        if not pending:
            renewal.want(*kinds)
        with suppress(IsthmusError):
            await renewal.settle(*kinds)
        return True

    def _get_renewal(self, key: tuple[str, str]) -> ListRenewal:
        """Get or make the renewal of a connection's lists."""

        async def fetched(wanted: set[str]) -> None:
            client = self._clients.get(key)
            if client is not None:
                await self._list_server(
                    key, client, tuple(kind for kind in LIST_KINDS if kind in wanted)
                )

        found = self._renewing.get(key)
        if found is None:
            found = self._renewing[key] = ListRenewal(fetched)
        return found

    def on_stopped(self, server: str, isolation: str = "") -> None:
        """Forget the client of a server that has stopped; its lists stay."""
        self._clients.pop((server, isolation), None)
        self._listings.pop((server, isolation), None)
        if isolation:  # the one that all share keeps its pauses, however often it comes back
            self._renewing.pop((server, isolation), None)
            own = [key for key in self._known if key[1] and key not in self._clients]
            for key in own[:-MAX_OWN_LISTS]:
                self._drop(key)

    def switch(self, server: str, *, on: bool) -> None:
        """Switch a server on or off: the tools of one that is off exist for nobody.

        It holds until the configuration has another entry for it.
        """
        self._switched[server] = on
        self._drop_views()

    def configure(self, entries: Mapping[str, ServerEntry]) -> None:
        """Follow another configuration; changed servers are forgotten."""
        for name, entry in self._entries.items():
            new = entries.get(name)
            if new != entry:
                self._switched.pop(name, None)
            if new is None or self._identity(new) != self._identity(entry):
                self._forget(name)
        self._entries = dict(entries)
        self._drop_views()

    def _forget(self, server: str) -> None:
        known = {*self._known, *self._clients, *self._listings, *self._failed}
        for key in known:
            if key[0] == server:
                self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        of: tuple[dict[tuple[str, str], Any], ...] = (
            *(self._known, self._clients, self._listings, self._failed),
            *(self._listed_at, self._kept_at),
        )
        for one in of:
            one.pop(key, None)

    def forget_failures(self, server: str) -> None:
        """Ask a server again at the next occasion, on whosever connection it could not be listed."""
        for key in [key for key in self._failed if key[0] == server]:
            del self._failed[key]

    async def close(self) -> None:
        """Stop asking servers."""
        tasks = [*self._loading.values(), *self._listings.values()]
        for task in tasks:
            task.cancel()
        for renewing in self._renewing.values():
            await renewing.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Listing servers

    async def load(self, servers: Iterable[str] | None = None, isolation: Isolation = "") -> None:
        """List servers, starting those that were never seen; never raises for one of them.

        Args:
            servers: their names; None for all that are started by themselves.
            isolation: whose connections to use.
        """
        if servers is None:
            wanted = [n for n, e in self._entries.items() if e.options.start != "manual"]
        else:
            wanted = [name for name in servers if name in self._entries]
        tasks = [self._start_loading(name, isolation) for name in wanted if self._is_enabled(name)]
        waiting = [task for task in tasks if task is not None]
        if waiting:  # shared with others who want the same, so that giving up stops nobody
            await asyncio.wait(waiting)

    async def recall(self, servers: Iterable[str]) -> None:
        """Know of servers what an earlier run has kept of their lists; none of them is started."""
        for name in servers:
            entry, key = self._entries.get(name), (name, "")
            if entry is None or key in self._known or self._cache is None:
                continue
            with suppress(IsthmusError):
                listed = await self._cache.find(self._identity(entry))
                if listed is not None and key not in self._known:
                    self._store_lists(key, listed)

    def _start_loading(self, server: str, isolation: Isolation) -> asyncio.Task[None] | None:
        """Get or make the task that lists a server; None where it needs no listing now."""
        key = server, self.find_isolation(server, isolation)
        listed = self._find_lists(*key)
        if listed is not None and listed.settled and not self._may_relist(listed):
            return None
        failed = self._failed.get(key)
        if failed is not None and self._clock() < failed[0]:
            return None
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.ensure_future(self._load_server(key))
            task.add_done_callback(lambda _: self._loading.pop(key, None))
        return task

    def _may_relist(self, listed: ServerLists) -> bool:
        """Whether a missing list may come at another try."""
        return bool(listed.missing) and self._clock() >= listed.fetched + RELIST_AFTER_S

    async def _load_server(self, key: tuple[str, str]) -> None:
        server, isolation = key
        entry = self._entries.get(server)
        if entry is None:  # it was taken out of the configuration meanwhile
            return
        try:
            if self._cache is not None and not isolation:
                listed = await self._cache.find(self._identity(entry))
                if listed is not None and key not in self._known:
                    self._store_lists(key, listed)
                    return
            async with self._use(server, isolation) as client:
                await self.on_ready(server, client, isolation)
                known = self._known.get(key)
                if known is not None and self._may_relist(known):
                    await self._get_renewal(key).renew(*known.missing)
        except IsthmusError as error:
            # A person who has said no is not asked again for every list that a model is given.
            final = isinstance(error, Denied) or getattr(error, "state", "") in FINAL_STATES
            later = 0.0 if isinstance(error, ConnectionLost) else RELIST_AFTER_S
            self._failed[key] = math.inf if final else self._clock() + later, str(error)
            self._notify_once(server, f"{server} cannot be listed: {error}")

    async def _list_server(
        self, key: tuple[str, str], client: ListingClient, kinds: tuple[str, ...]
    ) -> None:
        number = next(self._numbers)
        fetched = await fetch_lists(client, kinds)
        if self._clients.get(key) is not client:  # it is another server by now, or none
            return
        # A list that was asked for after this one, and came before it, is the newer of the two.
        written, now = self._listed_at.setdefault(key, {}), self._clock()
        kinds = tuple(kind for kind in kinds if written.get(kind, (0, 0.0))[0] < number)
        written.update(dict.fromkeys(kinds, (number, now)))
        before = self._known.get(key)
        # Merged with what is known now, and not with what was known when it was asked.
        listed = merge_lists(before, fetched, kinds, now)
        same = before is not None and is_same(before, listed)
        if not same:
            self._store_lists(key, listed)
        if self._cache is not None and not key[1]:
            if same and now < self._kept_at.get(key, 0.0) + KEEP_INTERVAL_S:
                return
            await self._keep(self._cache, key, listed)

    async def _keep(self, cache: "ListCache", key: tuple[str, str], listed: ServerLists) -> None:
        self._kept_at[key] = self._clock()
        try:
            await cache.keep(self._identity(self._entries[key[0]]), listed)
        except IsthmusError as error:
            self._notify_once(
                key[0], f"the lists of {key[0]} cannot be kept for the next run: {error}"
            )

    def _store_lists(self, key: tuple[str, str], listed: ServerLists) -> None:
        self._known[key] = listed
        self._failed.pop(key, None)
        self._drop_views(*key)
        for text in listed.faults.values():
            self._notify_once(key[0], f"{key[0]}: {text}")

    def _notify_once(self, server: str, text: str) -> None:
        if (server, text) not in self._notices:
            if len(self._notices) >= 10_000:
                self._notices.clear()
            self._notices.add((server, text))
            self._notice(HostNotice(about="catalog", server=server, text=text))

    # Resolving names, and reading lists

    def resolve(self, name: str, isolation: Isolation = "") -> tuple[str, str]:
        """Resolve the name of a tool to its server and its own name.

        Raises:
            Unknown: no known server has it; the message has the nearest names.
        """
        return self.view(isolation).tool_names.owner(name, "tool")

    def resolve_prompt(self, name: str, isolation: Isolation = "") -> tuple[str, str]:
        """Resolve the name of a prompt to its server and its own name.

        Raises:
            Unknown: no known server has it.
        """
        return self.view(isolation).prompt_names.owner(name, "prompt")

    def resolve_resource(self, text: str, isolation: Isolation = "") -> tuple[str, str]:
        """Resolve ``server+uri``, or a URI that one server lists, to the server and the URI.

        Raises:
            Unknown: no server lists it, or several do.
        """
        parts = split_uri(text)
        if parts is not None and parts[0] in self._entries:
            return parts
        of = [i.server for i in self.resources(isolation) if i.what.uri == text]
        if len(of) == 1:
            return of[0], text
        if of:
            said = " or ".join(join_uri(server, text) for server in of)
            raise Unknown(f"several servers have {text!r}: say {said}")
        raise Unknown(f"no server lists {text!r}; SERVER+URI reads it from a server all the same")

    async def find(self, name: str, isolation: Isolation = "") -> tuple[str, str]:
        """Resolve the name of a tool, listing its server where it is not known yet.

        Raises:
            Unknown: there is no such tool.
        """
        why = await self._load_owner(name, isolation)
        with suppress(Unknown):
            return self.resolve(name, isolation)
        for owner in self._list_owners(name):
            await self.look_again(owner, isolation)
        try:
            return self.resolve(name, isolation)
        except Unknown as error:
            raise Unknown(f"{error}{why}") from None

    async def find_prompt(self, name: str, isolation: Isolation = "") -> tuple[str, str]:
        """Resolve the name of a prompt, listing its server where it is not known yet.

        Raises:
            Unknown: there is no such prompt.
        """
        why = await self._load_owner(name, isolation)
        try:
            return self.resolve_prompt(name, isolation)
        except Unknown as error:
            raise Unknown(f"{error}{why}") from None

    def _list_owners(self, name: str) -> list[str]:
        before = name.split("__", 1)[0]
        return [one for one in self._entries if make_namespace(one) == before]

    async def _load_owner(self, name: str, isolation: Isolation) -> str:
        """List the server that a name belongs to; the text says why nothing is known of it."""
        owners = self._list_owners(name)
        await self.load(owners, isolation)
        absent = self.absent(isolation)
        absent |= {
            server: f"it is switched off: isthmus servers enable {server}"
            for server in owners
            if not self._is_enabled(server)
        }
        return "".join(f" ({server}: {absent[server]})" for server in owners if server in absent)

    def tool(self, server: str, own: str, isolation: Isolation = "") -> Tool:
        """A tool's definition, whole, as its server gave it.

        Raises:
            Unknown: the server has no such tool, or the configuration leaves it out.
        """
        found = self.view(isolation).definitions.get((server, own))
        if found is None:
            raise Unknown(f"{server} has no tool {own!r}{self._explain_absence(server, isolation)}")
        return found

    def name_of(self, server: str, own: str, isolation: Isolation = "") -> str:
        """The name of a server's tool in the catalog.

        Raises:
            Unknown: it has no name, since there is none, or something else has the same.
        """
        found = self.view(isolation).tool_names.names.get((server, own))
        if found is None:
            raise Unknown(f"{server} has no tool {own!r}{self._explain_absence(server, isolation)}")
        return found

    def tools(self, isolation: Isolation = "") -> Sequence[CatalogItem[Tool]]:
        """Every tool that can be called, by server and then in the server's own order."""
        return self.view(isolation).tools

    def prompts(self, isolation: Isolation = "") -> Sequence[CatalogItem[Prompt]]:
        """Every prompt, in the same order."""
        return self.view(isolation).prompts

    def resources(self, isolation: Isolation = "") -> Sequence[CatalogItem[Resource]]:
        """Every resource that is listed, in the same order."""
        return [
            CatalogItem(join_uri(name, what.uri), name, what)
            for name, listed in self._list_visible(isolation)
            for what in listed.resources
        ]

    def templates(self, isolation: Isolation = "") -> Sequence[CatalogItem[ResourceTemplate]]:
        """Every template of resources, in the same order."""
        return [
            CatalogItem(join_uri(name, what.uri_template), name, what)
            for name, listed in self._list_visible(isolation)
            for what in listed.templates
        ]

    def instructions(self, isolation: Isolation = "") -> Mapping[str, str]:
        """The instructions of servers for their use, by server; without those that have none."""
        return {
            name: listed.instructions
            for name, listed in self._list_visible(isolation)
            if listed.instructions
        }

    def listed(self, server: str, isolation: Isolation = "") -> ServerLists | None:
        """The last lists of a server; None where it was never listed, or is switched off."""
        if server not in self._entries or not self._is_enabled(server):
            return None
        return self._find_lists(server, isolation)

    def sources(self, viewer: Viewer) -> Mapping[str, tuple[str, ServerLists]]:
        """The last lists of each server for a viewer, and the isolation key of the connection."""
        of = {
            name: (self.find_isolation(name, viewer), listed)
            for name, listed in self._list_visible(viewer)
        }
        return {n: (key if (n, key) in self._known else "", one) for n, (key, one) in of.items()}

    def choice(self, server: str) -> ToolSelection:
        """The tool selection of a server in :meth:`sources`, from the configuration."""
        return self._entries[server].options.tools

    async def for_model(
        self,
        principal: str = "user:local",
        *,
        run: str = "",
        budget_tokens: int | None = None,
        window: int = 0,
        before: ToolOffer | None = None,
        patience: float = OFFER_TIMEOUT_S,
        is_held: Callable[[], bool] = lambda: False,
    ) -> ToolOffer:
        """The tools that a model is offered, under their names here, and those left out.

        Args:
            principal: whose model it is.
            run: in which run it will call them.
            budget_tokens: tokens that the definitions may take; None for any number.
            window: tokens that the model reads at most; 0 where that is not known.
            before: what it was given before; tools that were searched then still are.
            patience: seconds to wait for servers that are not known yet.
            is_held: says whether a person is asked something: then it waits on.
        """
        isolation = Viewer(principal, run)
        while True:
            try:
                async with asyncio.timeout(patience):
                    await self.load(isolation=isolation)
            except TimeoutError:
                if is_held():
                    continue
            break  # who has not answered is in the note
        absent, candidates = self.absent(isolation), []
        if before is not None and before.searching and self.search and self.search.mode != "never":
            return renew_offer(before, absent)
        for item in self.tools(isolation):
            describe = self._entries[item.server].options.tools.describe
            hidden = self._quarantined(item.server, item.what)
            candidates.append(
                ToolCandidate(
                    item.name, item.server, item.what, describe.get(item.what.name), hidden
                )
            )
        given, search = make_offer(candidates, budget_tokens, absent), self.search
        return given if search is None else offer_search(candidates, given, search, window=window)

    def absent(self, isolation: Isolation) -> dict[str, str]:
        """Servers of which nothing is known, and the reasons."""
        return {
            name: self._failed.get(
                (name, self.find_isolation(name, isolation)), (0.0, "it has not answered yet")
            )[1]
            for name, entry in sorted(self._entries.items())
            if self._is_enabled(name)
            and entry.options.start != "manual"
            and self._find_lists(name, isolation) is None
        }

    # Views

    def _is_enabled(self, server: str) -> bool:
        return self._switched.get(server, self._entries[server].options.enabled)

    def _find_lists(self, server: str, isolation: Isolation) -> ServerLists | None:
        found = self._known.get((server, self.find_isolation(server, isolation)))
        return found or self._known.get((server, ""))

    def find_isolation(self, server: str, isolation: Isolation) -> str:
        """Find the isolation key of the connection that a viewer uses."""
        if isinstance(isolation, str) or server not in self._entries:
            return "" if isinstance(isolation, Viewer) else isolation
        entry, principal = self._entries[server], isolation.principal
        own = {"per-user": principal, "per-session": isolation.run}
        key, accounts = own.get(entry.options.instance, ""), self._accounts
        if accounts is not None and (accounts.has_guests or principal != LOCAL_PRINCIPAL):
            key = accounts.find_isolation(entry, principal, key)
        return key

    def _list_visible(self, isolation: Isolation) -> list[tuple[str, ServerLists]]:
        return [
            (name, listed)
            for name in sorted(self._entries)
            if self._is_enabled(name) and (listed := self._find_lists(name, isolation)) is not None
        ]

    def view(self, isolation: Isolation) -> CatalogView:
        """The view of a viewer; another object once anything changes."""
        view = self._views.get(isolation)
        if view is None:
            if len(self._views) > 1000:
                self._views.clear()
            view = self._views[isolation] = self._make_view(isolation)
        return view

    def _make_view(self, isolation: Isolation) -> CatalogView:
        tools: list[tuple[ItemNaming, Tool]] = []
        prompts: list[tuple[ItemNaming, Prompt]] = []
        for name, listed in self._list_visible(isolation):
            choice = self._entries[name].options.tools
            tools += (
                (ItemNaming(name, tool.name, choice.rename.get(tool.name, "")), tool)
                for tool in listed.tools
                if is_chosen(choice, tool.name)
            )
            prompts += ((ItemNaming(name, prompt.name), prompt) for prompt in listed.prompts)
        tool_names, prompt_names = NameTable(n for n, _ in tools), NameTable(n for n, _ in prompts)
        for table in (tool_names, prompt_names):
            for clash in table.clashes:
                self._notify_once(clash.of[0][0], str(clash))
        return CatalogView(
            make_items(tools, tool_names),
            make_items(prompts, prompt_names),
            tool_names,
            prompt_names,
            {(naming.server, naming.own): tool for naming, tool in tools},
        )

    def _explain_absence(self, server: str, isolation: Isolation) -> str:
        if server not in self._entries:
            return ": there is no such server"
        if not self._is_enabled(server):
            return ": the server is disabled"
        listed = self._find_lists(server, isolation)
        if listed is None:
            return f": {self.absent(isolation).get(server, 'it was not started yet')}"
        fault = listed.faults.get("tools")
        return f" ({fault})" if fault else ""


def is_same(before: ServerLists, now: ServerLists) -> bool:
    """Whether a server's lists have stayed the same, so that nothing is merged anew."""
    return (
        not (before.cached or before.missing or now.missing)
        and before.instructions == now.instructions
        and before.faults == now.faults
        and (before.heard, before.ttls) == (now.heard, now.ttls)
        and all(getattr(before, kind) is getattr(now, kind) for kind in LIST_KINDS)
    )
