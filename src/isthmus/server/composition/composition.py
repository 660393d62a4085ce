"""Composition: one server's own declarations and its providers, behind the same methods.

It stands in a server's routes from its first provider on, so that a server without one has no step
more. Own names win: a provider is looked at only where a name is not the server's own, and the first
provider that has it serves it.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import UNSET, Raw, structs

from isthmus.core.pagination import BadCursor, paginate
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import IsthmusError, Refuse
from isthmus.revisions import METHODS
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler
from isthmus.server.composition.provided_tasks import ComposedTasks
from isthmus.server.composition.provider import LISTED_BY, ItemProvider
from isthmus.server.composition.visibility import CallerGate, Shows, matches_item
from isthmus.server.features.listing import Listing, get_item_key
from isthmus.server.features.provided_items import ProvidedItems
from isthmus.server.features.resources import make_not_found
from isthmus.server.guard.scopes import is_listed_for
from isthmus.server.guard.versions import (
    VERSION_META,
    make_unknown_version,
    rank_version,
    read_version,
    replace_version,
)
from isthmus.server.subscriptions import PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED
from isthmus.tasks.receiver import DEFAULT_PAGE_SIZE
from isthmus.tasks.records import task_owner
from isthmus.wire import (
    TASKS,
    CompleteParams,
    EmptyResult,
    ListenParams,
    ListTasksParams,
    ListTasksResult,
    PromptReference,
    ReadResourceParams,
    ServerCapabilities,
    SubscribeParams,
    Task,
    UnsubscribeParams,
)
from isthmus.wire.jsonrpc import shorten
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.runtime.router import Needs
    from isthmus.server.change_broadcast import Change
    from isthmus.server.composition.include import IncludedTools
    from isthmus.server.composition.mount import Mount
    from isthmus.server.composition.transformation import IncludeOptions
    from isthmus.server.declare import Declarations

TASK_METHODS = ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update")

LIST_KINDS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}  # the capability that a list belongs to

MAX_CLASH_WARNINGS = 1_000  # different names that are warned of


class Composition:
    """The providers of one server, and its methods with them.

    Args:
        declared: the server's own declarations; its routes are replaced.

    Attributes:
        providers: the providers, in the order in which they are looked at.
        included: the tools that are transformed, which is the first of them, or None.
        gate: what depends on who asks, or None.
    """

    def __init__(self, declared: "Declarations") -> None:
        self.providers: list[ItemProvider] = []
        self.included: IncludedTools | None = None
        self.gate: CallerGate | None = None
        self._declared = declared
        self._settings = declared.settings
        self._get_tool = declared.tools.listing.get
        self._warned: set[str] = set()
        self._open: list[ItemProvider] = []
        self._own: dict[str, Handler] = dict(declared.routes)
        self._own_needs: dict[str, Needs] = dict(declared.needs)
        self._leaving: set[asyncio.Task[None]] = set()
        self._joined: WeakKeyDictionary[Any, dict[str, ItemProvider]] = WeakKeyDictionary()
        declared.routes.update(self._list_routes())
        declared.needs.update(self._list_needs())
        self._settings.changes.offer_all()
        self._settings.changes.tasks = ComposedTasks(self.providers, self._settings.changes.tasks)
        self._settings.lifespan.nest(self._open_all, self._close_all)

    def add(self, provider: ItemProvider) -> None:
        """Offer what a provider has, after all that is offered already."""
        self.providers.append(provider)

    def restrict(self, fn: Any, *, sessions: bool) -> None:
        """Look for each request at what is there for its sender; see ``Server.visibility``.

        Raises:
            UsageError: the function cannot be asked.
        """
        if self.gate is None:
            self.gate = CallerGate(self._settings)
            self._settings.caching.make_private()
        if fn is not None:
            self.gate.add_function(fn)
        self._settings.changes.sift = self._sift_topics
        if sessions and not self._settings.has_session_rules:
            self._settings.has_session_rules = True
            for listing in self._declared.listings.values():
                listing.apply_rules()  # what is hidden for everybody may be shown to a session

    def announce_lists(self) -> None:
        """Tell everybody that lists may have changed: what is offered has."""
        for method in (TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED):
            self._settings.changes.announce(method, None)

    # Visibility

    @property
    def _is_restricted(self) -> bool:
        return self.gate is not None or bool(self._settings.visibility_rules)

    async def _is_there(self, method: str, key: str, inbound: Inbound) -> bool:
        """Whether something is there for the sender of a request; also for what exists nowhere."""
        gate = self.gate or CallerGate(self._settings)
        item = self._declared.find_item(method, key)
        if item is None:
            provider = self.find(method, key)
            if provider is None:
                return True  # refused as unknown by whoever serves it
            item = await self._find_provided(provider, method, key, inbound)
        return item is not None and (await gate.load(inbound))(item)

    async def _choose(self, method: str, key: str, params: Any, inbound: Inbound) -> Any:
        """The params of a request for what is there for its sender, with its version where it has some.

        Returns:
            The params, or None: it is not there.

        Raises:
            Refuse: it is not there in the version that was asked for.
        """
        versions = self._declared.find_versions(method, key, inbound.principal)
        if not versions:
            return params if await self._is_there(method, key, inbound) else None
        shows = await (self.gate or CallerGate(self._settings)).load(inbound)
        seen = [version for version, item in versions.items() if shows(item)]
        if not seen:
            return None
        wanted = read_version(params.meta)
        if wanted is not None and wanted not in seen:
            what = "tool" if method == "tools/call" else "prompt"
            # Rules of sessions of a mounted server are its own: of its versions none is told here.
            known = seen if self._declared.owns(method, key) else ()
            raise make_unknown_version(what, key, wanted, known)
        return replace_version(params, wanted or seen[0])

    def add_versions(
        self, own: Mapping[str, Any], method: str, key: str, principal: Principal | None
    ) -> Mapping[str, Any]:
        """The versions of something that a principal may see: its own, or those of a provider."""
        found = own
        if not found and not self._declared.owns(method, key):
            find = getattr(self.find(method, key), "find_versions", None)
            found = {} if find is None else find(method, key, principal)
        if not found or not self._is_restricted:
            return found
        gate = self.gate or CallerGate(self._settings)
        return {one: item for one, item in found.items() if gate.shows_to(item, principal)}

    def find_provided(self, method: str, key: str) -> Any:
        """Something of a provider's as it is listed, if that is known without waiting."""
        find = getattr(self.find(method, key), "find_item", None)
        return None if find is None else find(method, key)

    async def _find_provided(
        self, provider: ItemProvider, method: str, key: str, inbound: Inbound
    ) -> Any:
        """Something of a provider's as it is listed; None for what it does not list."""
        known = self.find_provided(method, key)
        if known is not None:
            return known
        lists: Sequence[str] = (LISTED_BY.get(method, ""),)
        if method == "resources/read":
            lists = ("resources/list", "resources/templates/list")
        elif method == "completion/complete":
            lists = ("prompts/list", "resources/templates/list", "resources/list")
        theirs = await provider.capabilities(inbound)
        for one in lists:
            if getattr(theirs, LIST_KINDS[one]) is UNSET:
                continue
            for item in await provider.list(one, inbound):
                if matches_item(item, key):
                    return item
        return None

    async def _serve_visible(
        self, serve: Handler, method: str, key: str, params: Any, inbound: Inbound
    ) -> Wire | Raw:
        """Serve a request for what is there for its sender.

        Raises:
            Refuse: it is not, or does not exist: the same words for both.
        """
        chosen = await self._choose(method, key, params, inbound)
        if chosen is not None:
            return await serve(chosen, inbound)
        if method == "tools/call":
            await self._declared.tools.refuse_unknown(key, inbound)
        if method == "prompts/get":
            raise Refuse(-32602, f"Unknown prompt: {shorten(key)}")
        if method == "resources/read":
            raise make_not_found(inbound, key)
        await self._declared.completions.check_rate(inbound)
        raise Refuse(-32602, f"Unknown prompt or resource template: {shorten(key)}")

    async def _sift_topics(self, uris: Sequence[str], inbound: Inbound) -> Sequence[str]:
        """The resources whose updates a stream may be told of."""
        return [uri for uri in uris if await self._is_there("resources/read", uri, inbound)]

    def include(self, tool: Any, source: "Mount | None", options: "IncludeOptions") -> None:
        """Include a transformed tool; see ``Server.include``. These stand before all other providers."""
        if self.included is None:
            from isthmus.server.composition.include import IncludedTools  # few servers have any

            self.included = IncludedTools(self._declared)
            self.providers.insert(0, self.included)
        self.included.include(tool, source, options)

    def attach(self) -> None:
        """The server begins to serve: providers tell of changes from now on."""
        for provider in self.providers:
            provider.attach(self._announce)

    def adopt_tasks(self, routes: Iterable[str]) -> None:
        """Take in the routes of the server's own tasks, which were offered after the first provider."""
        for method in routes:
            self._own[method] = self._declared.routes[method]
        changes = self._settings.changes
        if not isinstance(changes.tasks, ComposedTasks):
            changes.tasks = ComposedTasks(self.providers, changes.tasks)
        self._declared.routes.update(self._list_task_routes())

    def _announce(self, change: "Change") -> None:
        self._settings.changes.announce(*change)

    # Beginning and end

    async def _open_all(self) -> None:
        try:
            for provider in self.providers:
                await provider.open()
                self._open.append(provider)
        except BaseException:
            await self._close_all()
            raise

    async def _close_all(self) -> None:
        """Close the providers, the last one first, each of them whatever becomes of the others."""
        while self._open:
            provider = self._open.pop()
            try:
                await provider.close()
            except Exception as error:  # noqa: BLE001 - one provider's fault is not another's
                log_failure(f"closing the {provider.label}", error)

    # Finding

    def find(self, method: str, key: str) -> ItemProvider | None:
        """The provider that serves what is not the server's own; None where none does.

        One that is sure to have it goes before one that may: a server behind a proxy must not get what is
        meant for another one, because its lists were not read yet, or it says that they changed.
        """
        guess: ItemProvider | None = None
        for provider in self.providers:
            if provider.serves(method, key):
                if len(self.providers) == 1 or not provider.guesses(method, key):
                    return provider
                guess = guess or provider
        return guess

    def _is_contested(self, provider: ItemProvider, method: str, key: str) -> bool:
        """Whether a provider that may have something is not the only one."""
        return (
            provider.guesses(method, key)
            and sum(one.serves(method, key) for one in self.providers) > 1
        )

    async def _serve_contested(
        self, method: str, key: str, params: Any, inbound: Inbound
    ) -> Wire | Raw:
        """Serve what several providers may have: who has it is read from their lists."""
        for provider in self.providers:
            if provider.serves(method, key) and provider.guesses(method, key):
                try:
                    await provider.list(LISTED_BY[method], inbound)
                except IsthmusError:  # it cannot be reached, which a call of its own tells
                    continue
        found = self.find(method, key)
        if found is None:
            return await self._own[method](params, inbound)
        return await found.serve(method, params, inbound)

    # Handlers

    def _list_routes(self) -> dict[str, Handler]:
        return {
            **{
                method: partial(self._list_page, method, listing)
                for method, listing in self._declared.listings.items()
            },
            "tools/call": self._call_tool,
            "prompts/get": self._get_prompt,
            "resources/read": self._read_resource,
            "completion/complete": self._complete,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
            **self._list_task_routes(),
        }

    def _list_task_routes(self) -> dict[str, Handler]:
        return {
            **{method: partial(self._use_task, method) for method in TASK_METHODS},
            "tasks/list": self._list_tasks,
        }

    def _call_tool(self, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        if self.gate is not None or self._settings.visibility_rules:
            serve = self._call_offered
            return self._serve_visible(serve, "tools/call", params.name, params, inbound)
        return self._call_offered(params, inbound)

    def _call_offered(self, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        name = params.name
        if self._get_tool(name) is None:
            provider = self.find("tools/call", name)
            if provider is not None:
                limit = self._declared.tools.limit
                if limit is not None:
                    limit.spare -= 1
                    if limit.spare < 0:
                        return self._check_and_call(provider, params, inbound)
                return self._serve_by(provider, "tools/call", name, params, inbound)
        return self._declared.tools.call(params, inbound)

    async def _check_and_call(
        self, provider: ItemProvider, params: Any, inbound: Inbound
    ) -> Wire | Raw:
        limit = self._declared.tools.limit
        if limit is not None:
            # spec 2026-07-28 server/tools#security-considerations: MUST rate limit invocations
            await limit.check(inbound)
        return await self._serve_by(provider, "tools/call", params.name, params, inbound)

    def _serve_by(
        self, provider: ItemProvider, method: str, key: str, params: Any, inbound: Inbound
    ) -> Awaitable[Wire | Raw]:
        if len(self.providers) > 1 and self._is_contested(provider, method, key):
            return self._serve_contested(method, key, params, inbound)
        return provider.serve(method, params, inbound)

    def _get_prompt(self, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        return self._route("prompts/get", params.name, params, inbound)

    def _read_resource(self, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        return self._route("resources/read", params.uri, params, inbound)

    def _route(self, method: str, key: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        serve = self._own[method]
        if not self._declared.owns(method, key):
            provider = self.find(method, key)
            if provider is not None:
                serve = partial(provider.serve, method)
                if method == "prompts/get" and self._is_contested(provider, method, key):
                    serve = partial(self._serve_contested, method, key)
        if self._is_restricted:
            return self._serve_visible(serve, method, key, params, inbound)
        return serve(params, inbound)

    async def _complete(self, params: CompleteParams, inbound: Inbound) -> Wire | Raw:
        key, method = _read_reference(params), "completion/complete"
        if self._is_restricted:
            chosen = await self._choose(method, key, params, inbound)
            if chosen is None:
                return await self._serve_visible(self._own[method], method, key, params, inbound)
            params = chosen
        if not self._declared.owns("completion/complete", key):
            provider = self.find("completion/complete", key)
            if provider is not None:
                await self._declared.completions.check_rate(inbound)
                return await provider.serve("completion/complete", params, inbound)
        return await self._own["completion/complete"](params, inbound)

    # Lists

    async def _list_page(
        self, method: str, listing: Listing[Any], params: Any, inbound: Inbound
    ) -> Wire | Raw:
        """Handle a method that lists: own items, and those of every provider after them."""
        alone = len(self.providers) == 1 and not self._is_restricted and listing.is_empty
        if alone and getattr(self.providers[0], "keeps_lists", False):
            items = await self.providers[0].list(method, inbound)
            if type(items) is ProvidedItems:
                return await listing.page_provided(items, params, inbound)
        kind, has_kind = LIST_KINDS[method], False
        beside: list[Wire] = []
        for provider in self.providers:
            if getattr(await provider.capabilities(inbound), kind) is not UNSET:
                has_kind = True
                beside += await self._list_of(provider, method, inbound)
        if not (has_kind or (self._is_restricted and listing.used)):
            return await listing.page(params, inbound)
        offered = self._drop_clashes(method, beside)
        if not self._is_restricted:
            return await listing.page_beside(offered, params, inbound)
        shows = await (self.gate or CallerGate(self._settings)).load(inbound)
        seen = [one for item in offered if (one := self._find_shown(method, item, inbound, shows))]
        return await listing.page_beside(seen, params, inbound, shows)

    def _find_shown(self, method: str, item: Wire, inbound: Inbound, shows: Shows) -> Wire | None:
        """An item of a provider's, or the highest of its versions, that is there for a reader."""
        use = next((use for use, lists in LISTED_BY.items() if lists == method), "resources/read")
        key = get_item_key(item)
        versions = self._declared.find_versions(use, key, inbound.principal)
        if versions:
            meta: Any = getattr(item, "meta", UNSET)
            listed: Any = meta.get(VERSION_META) if isinstance(meta, Mapping) else None
            highest = rank_version(listed) if isinstance(listed, str) else None
            for version, one in versions.items():
                # None above the one that the provider listed: that may be hidden there.
                if (highest is None or rank_version(version) <= highest) and shows(one):
                    if version == listed:
                        return item
                    return one if self._is_granted(use, key, version, inbound) else None
            return None
        # An older revision's item lacks what rules look at: the whole one decides.
        return item if shows(self.find_provided(use, key) or item) else None

    def _is_granted(self, use: str, key: str, version: str, inbound: Inbound) -> bool:
        """Whether the reader of a list may use a version, where lists are cut by scopes."""
        visible = self._settings.visible
        if visible is None:
            return True
        params = METHODS[use].params(name=key, meta={VERSION_META: version})
        demand = self._ask_needs(use, key, params, inbound.principal)
        return is_listed_for(visible.find_granted(inbound, [demand]), demand)

    async def _list_of(
        self, provider: ItemProvider, method: str, inbound: Inbound
    ) -> Sequence[Wire]:
        """The items of a provider that the reader of a list may use."""
        items, visible = await provider.list(method, inbound), self._settings.visible
        if visible is None:
            return items
        uses = next((use for use, lists in LISTED_BY.items() if lists == method), "resources/read")
        demands = [provider.fixed_scopes(uses, get_item_key(item)) for item in items]
        granted = visible.find_granted(inbound, demands)
        pairs = zip(items, demands, strict=True)
        return [item for item, demand in pairs if is_listed_for(granted, demand)]

    def _drop_clashes(self, method: str, beside: Sequence[Wire]) -> list[Wire]:
        """The items of providers, each name once; the first one has it, and the other is logged."""
        kept: dict[str, Wire] = {}
        for item in beside:
            key = get_item_key(item)
            if key in kept or self._declared.lists(method, key):
                if self.included is None or not self.included.serves("tools/call", key):
                    self._warn_of_clash(key)
            else:
                kept[key] = item
        return [*kept.values()]

    def _warn_of_clash(self, key: str) -> None:
        if key not in self._warned and len(self._warned) < MAX_CLASH_WARNINGS:
            self._warned.add(key)
            log_warning(
                "%r is offered twice: by this server or an earlier one, which serves it, and by a "
                "mounted one; mount that under a prefix",
                key,
            )

    # Subscriptions

    async def _subscribe(self, params: Any, inbound: Inbound) -> Wire | Raw:
        if self._is_restricted and not await self._is_there("resources/read", params.uri, inbound):
            return EmptyResult()  # as for a URI at which there is nothing, of which nothing is told
        provider = self.find_resource(params.uri)
        answer = await self._own["resources/subscribe"](params, inbound)
        if provider is not None:
            try:
                await self._join(provider, params, inbound)
            except BaseException:
                await self._own["resources/unsubscribe"](params, inbound)
                raise
        return answer

    async def _join(self, provider: ItemProvider, params: Any, inbound: Inbound) -> None:
        """Subscribe a session at a provider, which counts it once, whatever the session repeats."""
        link = inbound.link
        joined = self._joined.get(link)
        if joined is None:
            joined = self._joined[link] = {}
            link.on_close(partial(self._leave_all, joined, inbound))
        if params.uri in joined:
            return
        joined[params.uri] = provider
        try:
            await provider.serve("resources/subscribe", params, inbound)
        except BaseException:
            joined.pop(params.uri, None)
            raise

    async def _unsubscribe(self, params: Any, inbound: Inbound) -> Wire | Raw:
        answer = await self._own["resources/unsubscribe"](params, inbound)
        # Only what this session has subscribed to: the count at the provider is everybody's.
        provider = self._joined.get(inbound.link, {}).pop(params.uri, None)
        if provider is not None:
            await provider.serve("resources/unsubscribe", params, inbound)
        return answer

    def _leave_all(self, joined: dict[str, ItemProvider], inbound: Inbound) -> None:
        """End what a session has subscribed to at providers."""
        while joined:
            uri, provider = joined.popitem()
            self._leave_soon(provider, SubscribeParams(uri=uri), inbound)

    async def _listen(self, params: ListenParams, inbound: Inbound) -> Wire | Raw:
        joined: list[tuple[ItemProvider, str]] = []
        told = structs.replace(inbound, method="resources/subscribe", params=None)
        try:
            uris: Sequence[str] = params.notifications.resource_subscriptions or ()
            refused: set[str] = set()
            for uri in await self._sift_topics(uris, inbound) if self._is_restricted else uris:
                provider = self.find_resource(uri)
                if provider is not None:
                    wish = SubscribeParams(uri=uri, meta=params.meta)
                    try:
                        await provider.serve("resources/subscribe", wish, told)
                    except Refuse:
                        # spec 2026-07-28 basic/patterns/subscriptions#acknowledgment: it says
                        # what the server agrees to tell
                        refused.add(uri)
                    else:
                        joined.append((provider, uri))
            if refused:
                left = [uri for uri in uris if uri not in refused]
                wanted = structs.replace(params.notifications, resource_subscriptions=left)
                params = structs.replace(params, notifications=wanted)
            return await self._own["subscriptions/listen"](params, inbound)
        finally:
            for provider, uri in joined:
                self._leave_soon(provider, UnsubscribeParams(uri=uri), inbound)

    def find_resource(self, uri: str) -> ItemProvider | None:
        """The provider of a resource; None for one of the server's own, and for none."""
        if self._declared.owns("resources/read", uri):
            return None
        return self.find("resources/read", uri)

    def _leave_soon(self, provider: ItemProvider, params: Any, inbound: Inbound) -> None:
        """Tell a provider that a session or a stream has ended, which waits for nothing any more."""
        wanted = UnsubscribeParams(uri=params.uri)
        told = structs.replace(inbound, method="resources/unsubscribe", params=None)

        async def leave() -> None:
            try:
                await provider.serve("resources/unsubscribe", wanted, told)
            except Exception as error:  # noqa: BLE001 - nobody waits for it
                log_failure(f"unsubscribing at the {provider.label}", error)

        try:
            task = asyncio.get_running_loop().create_task(leave())
        except RuntimeError:  # the loop has gone, and every subscription with it
            return
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    # Tasks

    async def _use_task(self, method: str, params: Any, inbound: Inbound) -> Wire | Raw:
        """Handle a method about one task: of the server's own, or of the provider that knows its id."""
        for provider in self.providers:
            if provider.tasks is not None and await provider.tasks.knows(params.task_id, inbound):
                return await provider.serve(method, params, inbound)
        own = self._own.get(method)
        if own is None:
            self._check_tasks(method, inbound)
            raise Refuse(-32602, "Failed to retrieve task: Task not found")
        return await own(params, inbound)

    def _check_tasks(self, method: str, inbound: Inbound) -> None:
        own = self._declared.tools.tasks
        if own is None and all(provider.tasks is None for provider in self.providers):
            where = f"in revision {inbound.caller.revision.name}"
            raise Refuse(-32601, f"Method not found: {method} {where}")

    async def _list_tasks(self, params: ListTasksParams, inbound: Inbound) -> Wire | Raw:
        from isthmus.server.features.tasks import may_list_tasks

        self._check_tasks("tasks/list", inbound)
        if not may_list_tasks(inbound):
            raise Refuse(-32601, "Method not found: tasks are listed to those who authenticate")
        own = self._declared.tools.tasks
        found: list[Task] = [] if own is None else [*await own.list_all(inbound)]
        for provider in self.providers:
            if provider.tasks is not None:
                found += await provider.tasks.list_all(inbound)
        try:
            page, following = paginate(
                found,
                lambda task: f"{task.created_at} {task.task_id}",
                cursor=None if params.cursor is UNSET else params.cursor,
                size=self._settings.page_size or DEFAULT_PAGE_SIZE,
                secret=self._settings.cursor_secret,
                scope=f"tasks/list {task_owner(inbound)}",
            )
        except BadCursor as error:
            # spec 2025-11-25 basic/utilities/tasks#protocol-errors: MUST be -32602
            raise Refuse(-32602, f"Invalid params: {error}") from error
        return ListTasksResult(tasks=page, next_cursor=UNSET if following is None else following)

    # Scopes and capabilities

    def _list_needs(self) -> "dict[str, Needs]":
        return {
            "tools/call": lambda params, who: self._need("tools/call", params.name, params, who),
            "prompts/get": lambda params, who: self._need("prompts/get", params.name, params, who),
            "completion/complete": lambda params, who: self._need(
                "completion/complete", _read_reference(params), params, who
            ),
            "resources/read": lambda params, who: self._need_resource(params.uri, who),
            "resources/subscribe": lambda params, who: self._need_resource(params.uri, who),
            "subscriptions/listen": lambda params, who: NO_SCOPES.union(
                *(
                    self._need_resource(uri, who)
                    for uri in params.notifications.resource_subscriptions or ()
                )
            ),
        }

    def _need(
        self, method: str, key: str, params: Any, principal: Principal | None
    ) -> frozenset[str]:
        item = self._declared.find_item(method, key)
        if self.gate is not None or self._settings.visibility_rules:
            versions = self._declared.find_versions(method, key, principal)
            if versions:
                return self._need_version(method, key, params, principal, versions)
            known = self.find_provided(method, key) if item is None else item
            gate = self.gate or CallerGate(self._settings)
            if known is not None and not gate.shows_to(known, principal):
                return NO_SCOPES  # it is answered as if it were not there
        return self._ask_needs(method, key, params, principal)

    def _need_version(
        self,
        method: str,
        key: str,
        params: Any,
        principal: Principal | None,
        versions: Mapping[str, Any],
    ) -> frozenset[str]:
        """The scopes of the version that :meth:`_choose` will choose.

        Rules of sessions are not known yet, so that it may be any of them there.
        """
        try:
            wanted = read_version(params.meta)
        except Refuse:
            return NO_SCOPES  # it is refused for that anyhow
        chosen = [*versions] if wanted is None else [one for one in versions if one == wanted]
        if not self._settings.has_session_rules:
            chosen = chosen[:1]
        return NO_SCOPES.union(
            *(
                self._ask_needs(method, key, replace_version(params, one), principal)
                for one in chosen
            )
        )

    def _ask_needs(
        self, method: str, key: str, params: Any, principal: Principal | None
    ) -> frozenset[str]:
        if self._declared.find_item(method, key) is None:
            provider = self.find(method, key)
            if provider is not None:
                return provider.needs(method, params, principal)
        return self._own_needs[method](params, principal)

    def _need_resource(self, uri: str, principal: Principal | None) -> frozenset[str]:
        return self._need("resources/read", uri, ReadResourceParams(uri=uri), principal)

    def known_scopes(self) -> frozenset[str]:
        """Every scope that anything of a provider's takes."""
        return NO_SCOPES.union(*(provider.known_scopes() for provider in self.providers))

    async def add_capabilities(
        self, own: ServerCapabilities, inbound: Inbound
    ) -> ServerCapabilities:
        """The capabilities of the server together with those of its providers."""
        for provider in self.providers:
            theirs = await provider.capabilities(inbound)
            own = structs.replace(
                own,
                **{
                    name: getattr(own, name) if getattr(own, name) is not UNSET else capability
                    for name in ("tools", "resources", "prompts", "completions", "tasks")
                    if (capability := getattr(theirs, name)) is not UNSET
                },
            )
            if theirs.extensions is not UNSET and TASKS in theirs.extensions:
                extensions = {} if own.extensions is UNSET else own.extensions
                own = structs.replace(own, extensions={TASKS: {}, **extensions})
        return own


def _read_reference(params: CompleteParams) -> str:
    """The prompt's name or the URI that a completion is for."""
    return params.ref.name if isinstance(params.ref, PromptReference) else params.ref.uri
