"""Gateway provider: what a view of a host offers, as a provider of the server in front of it.

Lists come from the host's catalog, and everything that is asked of a server goes through the host's one
pipeline, as an attempt of the principal that asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, json, structs

from isthmus.bridge.forwarded import ParkedCalls
from isthmus.bridge.rounds import ForwardedRounds
from isthmus.bridge.upstream import NOTHING_CAME, asks_in_result, is_askable
from isthmus.client.model.relay import RoundRelayed
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import CapabilityMissing, IsthmusError, Refuse, ResourceNotFound
from isthmus.gateway.approvals.waiting import ApprovalWaiting
from isthmus.gateway.arguments import MirroredArguments, read_arguments
from isthmus.gateway.calls import CallContext, GatewayCall
from isthmus.gateway.failures import make_refusal, make_tool_failure
from isthmus.gateway.loops import GatewayMark, extend_trail, passing_on
from isthmus.gateway.offers.changes import ViewChanges
from isthmus.gateway.offers.finding import LIST_PATIENCE_S, ItemFinder
from isthmus.gateway.offers.instructions import compose_instructions
from isthmus.gateway.offers.lists import ViewLists
from isthmus.gateway.offers.spelling import ResultSpeller
from isthmus.gateway.offers.updates import FollowKey, ResourceUpdates
from isthmus.gateway.offers.views import GatewayView, Owned, make_unknown
from isthmus.gateway.principals import make_principal
from isthmus.gateway.relay import check_relayed_round, make_relayed_result, read_relayed_round
from isthmus.gateway.tasks import GatewayTasks, offer_as_tasks
from isthmus.gateway.traffic import GatewayTraffic
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.calling_client import Answerer
from isthmus.host.model.errors import ConnectRequired, Unknown
from isthmus.host.policy.profiles import attempted_through
from isthmus.runtime.inbound import Inbound
from isthmus.search.metatools import CallWanted, RestWanted, is_meta
from isthmus.server.composition.provider import Changed
from isthmus.server.features.provided_items import ProvidedItems
from isthmus.server.features.resources import make_not_found
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    CallToolResult,
    CompleteResult,
    Completion,
    EmptyResult,
    PromptReference,
    PromptsCapability,
    ReadResourceResult,
    ResourcesCapability,
    ServerCapabilities,
    TextContent,
    ToolsCapability,
)
from isthmus.wire.meta import read_meta
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.gateway.connections import CallerConnections
    from isthmus.gateway.logs import ConnectionLevels
    from isthmus.host.host import Host

SUBSCRIBE = "resources/subscribe"
UPDATES_KEY = "updates"  # of the connection that hears of resources, where no session shares one

EDITED_KEY = "isthmus/edited-arguments"  # in the _meta of a result

OFFERED = ServerCapabilities(
    tools=ToolsCapability(list_changed=True),
    resources=ResourcesCapability(subscribe=True, list_changed=True),
    prompts=PromptsCapability(list_changed=True),
    completions={},
)


class GatewayParts(Struct, frozen=True, kw_only=True):
    """The parts of a gateway that its providers share.

    Attributes:
        host: reaches the servers.
        connections: chooses the connection of each call.
        parked: keeps calls whose clients have to come again with answers.
        open: opens the host, where that has not happened.
        mark: by which the gateway knows requests again that it has made itself.
        traffic: counts calls, and writes a line about each.
        levels: asks servers for log messages.
        approvals: keeps clients waiting while a person is asked; None tells them at once.
        answerers: says who may answer what servers ask, the first who can.
        updates: the resources that clients want to hear of.
        follow_options: sees that the options and rules in force are those of the configuration.
    """

    host: "Host"
    connections: "CallerConnections"
    parked: ParkedCalls
    open: Callable[[], Awaitable[None]]
    mark: GatewayMark
    answerers: Callable[[], Sequence[Answerer]]
    traffic: GatewayTraffic
    levels: "ConnectionLevels"
    updates: ResourceUpdates
    follow_options: Callable[[], None]
    approvals: ApprovalWaiting | None = None


class GatewayProvider:
    """The offers of one view of a gateway.

    Args:
        view: the view.
        parts: those of the gateway.
        settings: those of the server in front.
        tasks: has calls run as tasks.
        search_mode: says when the view offers the tools that find tools.
        is_open: whether nobody has to authenticate to the server in front.

    Attributes:
        label: the provider as messages call it.
        keeps_lists: its lists may be whole pages, which stay the same object until they change.
        tasks: none here: they are those of the server in front.
        lists: what the view offers to each of its callers.
    """

    tasks = None
    keeps_lists = True

    def __init__(
        self,
        view: GatewayView,
        parts: GatewayParts,
        settings: SharedSettings,
        tasks: GatewayTasks,
        search_mode: Callable[[], str] = lambda: "auto",
        *,
        is_open: bool = True,
    ) -> None:
        self.label = f"gateway to {view.label}"
        self.view = view
        self.lists = ViewLists(view, parts.host, search_mode, is_open=is_open)
        self._parts = parts
        self._settings = settings
        self._tasks = tasks
        self._rounds = ForwardedRounds(self, settings, parts.parked)
        self._changed: Changed | None = None
        self._mirrored = MirroredArguments(parts.host)
        self._changes = ViewChanges(self.lists, parts.host, self._announce)
        self._finder = ItemFinder(view, self.lists, parts.host)
        self._slow: set[str] = set()
        self._as_tasks: dict[Any, tuple[ProvidedItems, ProvidedItems]] = {}
        self._joined: dict[tuple[int, str], list[FollowKey]] = {}

    # Beginning and end

    def attach(self, changed: Changed) -> None:
        """Tell of changes from now on."""
        self._changed = changed

    async def open(self) -> None:
        """Open the host, and watch what the lists are made of."""
        await self._parts.open()
        self._changes.open()

    async def close(self) -> None:
        """Watch no longer; the gateway closes the host."""
        await self._changes.close()
        self.lists.close()

    def _announce(self, change: tuple[str, None]) -> None:
        if self._changed is not None:
            self._changed(change)

    # Capabilities and lists

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:  # noqa: ARG002 - the same for everybody
        """Everything: servers may come and go."""
        return OFFERED

    def serves(self, method: str, key: str) -> bool:  # noqa: ARG002 - as ItemProvider has it
        """Yes: there is nothing else in front of the host."""
        return True

    def guesses(self, method: str, key: str) -> bool:  # noqa: ARG002 - as ItemProvider has it
        """No: it is the only one."""
        return False

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """All items of a list, of all servers of the view that are known."""
        self._parts.follow_options()
        viewer = self.lists.find_viewer(make_principal(inbound.principal))
        with passing_on(self._extend_trail(read_meta(inbound.params))):
            await self._load(viewer)
        found = self.lists.find(method, viewer)
        self._changes.remember(method, viewer)
        if method != "tools/list" or self.lists.search.is_offered(viewer):
            return found
        known = self._as_tasks.get(inbound.caller.revision)
        if known is not None and known[0] is found:
            return known[1]
        offered = offer_as_tasks(found, inbound)
        if offered is found:
            return found
        made = ProvidedItems(
            offered, meta=found.meta, cache_scope=found.cache_scope, ttl_ms=found.ttl_ms
        )
        self._as_tasks[inbound.caller.revision] = found, made
        return made

    async def _load(self, viewer: Viewer) -> None:
        """Have the servers listed that are not known yet; one that let somebody wait is not waited for."""
        catalog, servers = self._parts.host.catalog, self.view.servers()
        try:
            async with asyncio.timeout(LIST_PATIENCE_S):
                await catalog.load([one for one in servers if one not in self._slow], viewer)
        except TimeoutError:  # the others are listed
            self._slow |= {one for one in servers if catalog.listed(one, viewer) is None}
        if self._slow:
            self._slow = {one for one in self._slow if catalog.listed(one, viewer) is None}
            with suppress(TimeoutError):
                async with asyncio.timeout(0):  # they are asked again all the same
                    await catalog.load([*self._slow], viewer)

    async def compose_instructions(self, inbound: Inbound) -> str:
        """The instructions of the view's servers that have something for the sender of a request."""
        viewer = self.lists.find_viewer(make_principal(inbound.principal))
        # a handshake does not say which gateways it came through: no server is started for one
        await self._parts.host.parts.catalog.recall(self.view.servers())
        visible = self.lists.find_visible(viewer)
        servers = {
            one.server
            for items in (visible.tools, visible.prompts, visible.resources, visible.templates)
            for one in items
        }
        said = self._parts.host.catalog.instructions(viewer)
        return compose_instructions(
            {name: text for name, text in said.items() if name in servers},
            self.lists.find_states(),
        )

    # Scopes: whoever may ask the gateway is judged by the host's policy

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:  # noqa: ARG002 - as ItemProvider has it
        """None."""
        return NO_SCOPES

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:  # noqa: ARG002 - as ItemProvider has it
        """None."""
        return NO_SCOPES

    def known_scopes(self) -> frozenset[str]:
        """None."""
        return NO_SCOPES

    # Requests

    def serve(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """Serve a request through the host's pipeline.

        Raises:
            Refuse: it is refused.
        """
        if method == "tools/call" and is_meta(params.name):
            viewer = self.lists.find_viewer(make_principal(inbound.principal))
            if self.lists.search.takes(params.name, viewer):
                return self._look_up(params, inbound, viewer)
            if self.lists.search.is_undecided(params.name, viewer):
                return self._decide_search(params, inbound, viewer)
        return self._serve_item(method, params, inbound)

    def _serve_item(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """Serve a request for something that a server has."""
        if self._tasks.wants_task(method, params, inbound):
            return self._begin_task(params, inbound)
        match method:
            case "tools/call" | "prompts/get":
                return self._serve(method, params, params.name, inbound)
            case "resources/read":
                return self._serve(method, params, params.uri, inbound)
            case "completion/complete":
                ref = params.ref
                name = ref.name if isinstance(ref, PromptReference) else ref.uri
                return self._serve(method, params, name, inbound)
        return self._change_subscription(params, inbound, begins=method == SUBSCRIBE)

    async def _decide_search(self, params: Any, inbound: Inbound, viewer: Viewer) -> Wire | Raw:
        """Answer a call that may be of a tool that finds tools, by the list that its caller would get now."""
        with passing_on(self._extend_trail(params.meta)):
            await self._load(viewer)
        self.lists.find("tools/list", viewer)
        if self.lists.search.takes(params.name, viewer):
            return await self._look_up(params, inbound, viewer)
        return await self._serve_item("tools/call", params, inbound)

    async def _look_up(self, params: Any, inbound: Inbound, viewer: Viewer) -> Wire:
        """Answer a tool that finds tools; a call of what was found goes the way of every call."""
        search, name = self.lists.search, params.name
        try:
            asked = search.parse(name, json.decode(params.arguments) if params.arguments else {})
            if isinstance(asked, CallWanted):
                found = self.view.find_searched(asked.name, viewer)
                meant = structs.replace(
                    params, name=found, arguments=Raw(json.encode(asked.arguments))
                )
                return await self._serve("tools/call", meant, found, inbound)
            if isinstance(asked, RestWanted):
                page = await self._read_kept(asked.uri, make_principal(inbound.principal))
                texts = [TextContent(text=part.text or "") for part in page.contents]
                return CallToolResult(content=[*texts])
            with passing_on(self._extend_trail(params.meta)):
                await self._load(viewer)
            return self._rounds.clean(await search.answer(asked, viewer))
        except IsthmusError as error:
            if isinstance(error, Unknown):
                return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
            failed = make_tool_failure(error)
            if failed is None:
                raise make_refusal(error, "") from error
            return failed

    async def _read_kept(self, uri: str, principal: str) -> ReadResourceResult:
        """The rest of a result that the host keeps.

        Raises:
            Unknown: there is none for them, in this view.
        """
        if not self._finder.is_kept(uri, principal):
            raise make_unknown("resource", uri)
        return await self._parts.host.parts.calls.read(uri, principal=principal, origin="gateway")

    async def _change_subscription(self, params: Any, inbound: Inbound, *, begins: bool) -> Wire:
        """Have a client hear of a resource, or not any more; the server behind is asked once for all."""
        uri = params.uri
        updates, who = self._parts.updates, (id(self), id(inbound.link), uri)
        place = id(inbound.link), uri
        if not begins:
            keys = self._joined.get(place, [])
            if keys:
                updates.leave(keys.pop(), who)
            if not keys:
                self._joined.pop(place, None)
            return EmptyResult()
        principal, server = make_principal(inbound.principal), ""
        try:
            server, own = await self._finder.find("resources/read", uri, principal)
            instance = self._parts.host.servers[server].entry.options.instance
            key = server, {"per-user": principal, "per-session": UPDATES_KEY}.get(instance, ""), own
            viewer = self.lists.find_viewer(principal)

            def hear() -> None:
                if not self.lists.hides("resources/read", server, own, viewer):
                    self._settings.changes.announce_update_to(inbound, uri)

            async def begin() -> None:
                await updates.join(key, who, hear)
                self._joined.setdefault(place, []).append(key)

            trail = self._extend_trail(params.meta)
            with attempted_through(self.view.profile_name), passing_on(trail):
                await self._parts.host.parts.calls.follow(
                    server, own, begin, principal=principal, isolation=key[1]
                )
        except IsthmusError as error:
            raise make_refusal(error, server) from error
        return EmptyResult()

    async def _serve(self, method: str, params: Any, name: str, inbound: Inbound) -> Wire:
        meta = self._extend_trail(params.meta)
        return await self._rounds.serve(method, params, name, inbound, meta)

    async def _begin_task(self, params: Any, inbound: Inbound) -> Wire:
        """Make a call that its client wants as a task (2025-11-25); it is answered at once."""
        call = self.make_call(inbound, self._extend_trail(params.meta))

        async def make(call: GatewayCall) -> Wire:
            return await self._forward_clean(call, params, params.name)

        return await self._tasks.begin(params, call, self._settings.limiters, make)

    async def _forward_clean(self, call: GatewayCall, params: Any, name: str) -> Wire:
        """Call a tool, and make safe what comes of it: a task keeps it as it is."""
        return self._rounds.clean(await self._forward(call, "tools/call", params, name))

    def make_call(self, inbound: Inbound, meta: Mapping[str, Any]) -> GatewayCall:
        """A call of a client, whose ``_meta`` goes on."""
        approvals, answerers = self._parts.approvals, self._parts.answerers()
        return GatewayCall(inbound, self._settings, meta, approvals=approvals, answerers=answerers)

    async def make_round(  # noqa: PLR0917 - the path of every call: keywords cost
        self,
        call: GatewayCall,
        method: str,
        params: Any,
        name: str,
        state: str | None = None,
        answers: Mapping[str, Any] = NOTHING_CAME,
    ) -> Any:
        """Make one round of a call; see :class:`~isthmus.bridge.rounds.RoundMaker`.

        Raises:
            Refuse: as it went.
        """
        if state is not None:
            left = call.left = read_relayed_round(state)
            if left is None:
                return await self._rounds.resume(state, call.inbound, answers)
            call.continued = left.continue_with(method, answers)
        elif answers:
            # questions of a server before 2026-07-28, and the gateway's own, have no key
            call.given = {key: answer for key, answer in answers.items() if key}
        caller = call.inbound.caller
        asks = asks_in_result(caller.revision) and method != "completion/complete"
        task = call.task = self._tasks.may_become(method, params, call.inbound)
        if task is not None:
            work = task.run(self._forward_clean(call, params, name))
            return await self._rounds.begin(call, work)
        if asks and is_askable(caller.capabilities):
            return await self._rounds.begin(call, self._forward(call, method, params, name))
        return await self._forward(call, method, params, name)

    async def _forward(self, call: GatewayCall, method: str, params: Any, name: str) -> Any:
        """Make the attempt, and say what is still to be said before its result."""
        began, failed, result = perf_counter(), None, None
        try:
            result = await self._make(call, method, params, name)
        except BaseException as error:
            failed = error.__cause__ if isinstance(error, Refuse) and error.__cause__ else error
            raise
        else:
            return result
        finally:
            self._parts.traffic.end(call, method, began, failed or call.failure, result)
            call.end_questions()
            await call.finish_notes()
            call.announce_end()

    async def _make(self, call: GatewayCall, method: str, params: Any, name: str) -> Any:
        """Make the attempt.

        Raises:
            Refuse: as it went.
        """
        principal, server = make_principal(call.inbound.principal), ""
        self._parts.follow_options()
        try:
            if method == "resources/read" and self._finder.is_kept(name, principal):
                return await self._read_kept(name, principal)
            try:
                call.target = server, own = await self._find(method, params, name, principal)
                made = await self._call(call, method, params, server, own, principal)
            except ConnectRequired as lack:
                from isthmus.gateway.accounts.questions import ask_to_connect  # few servers want it

                server = lack.server
                lack.principal = principal
                await ask_to_connect(self._parts.host.accounts, call, lack)
                # nothing was sent before, and the account is there now
                call.target = server, own = await self._find(method, params, name, principal)
                made = await self._call(call, method, params, server, own, principal)
        except RoundRelayed as relayed:
            return make_relayed_result(relayed, self.view.label, call.target, call.edited)
        except IsthmusError as error:
            failed = make_tool_failure(error) if method == "tools/call" else None
            if failed is not None:
                call.failure = error
                return failed
            lacks = isinstance(error, CapabilityMissing) and not error.required
            if lacks and method == "completion/complete":
                # the gateway declares completions for all of its servers: this one has none to give
                return CompleteResult(completion=Completion(values=[]))
            if method == "resources/read" and (
                lacks or isinstance(error, Unknown | ResourceNotFound)
            ):
                # a server of the other era has another code, and its URI is another here
                raise make_not_found(call.inbound, name) from error
            raise make_refusal(error, server) from error
        asked = own if method == "resources/read" else ""
        speller = ResultSpeller(
            self.view, server, lambda uri: self._finder.is_kept(uri, principal), asked
        )
        return speller.spell_result(made)

    async def _call(  # noqa: PLR0917 - the path of every call: keywords cost
        self, call: GatewayCall, method: str, params: Any, server: str, own: str, principal: str
    ) -> Any:
        """Make the attempt on the connection that the caller uses."""
        if call.left is not None:
            warnings = self._settings.state_warnings
            check_relayed_round(call.left, self.view.label, (server, own), warnings, principal)
        if method == "tools/call":
            self._mirrored.check((server, own), Viewer(principal), params, call.inbound)
        connections = self._parts.connections
        with CallContext(call, self.view.profile_name):
            if await connections.shares(server, call.inbound, principal):
                return await self._dispatch(call, method, params, server, own, principal, "")
            async with connections.borrow(server, call.inbound, principal, call) as key:
                return await self._dispatch(call, method, params, server, own, principal, key)

    async def _find(self, method: str, params: Any, name: str, principal: str) -> Owned:
        """The server that is meant, and its own name of what is meant.

        Raises:
            Unknown: there is none.
            ConnectRequired: the caller lacks an account there.
        """
        try:
            return await self._finder.find(find_kind(method, params), name, principal)
        except Unknown:
            self._check_account(name, principal)
            raise

    def _check_account(self, name: str, principal: str) -> None:
        """See that a caller does not just lack an account at the server of a name.

        Raises:
            ConnectRequired: they do.
        """
        from isthmus.gateway.accounts.questions import check_account  # few servers want one

        host, servers = self._parts.host, tuple(self.view.servers())
        owner = host.parts.servers.find_owner(name.partition("__")[0])
        server = servers[0] if len(servers) == 1 else owner
        if server in servers:
            check_account(host, server, principal)

    async def _dispatch(  # noqa: PLR0917 - the path of every call: keywords cost
        self,
        call: GatewayCall,
        method: str,
        params: Any,
        server: str,
        own: str,
        principal: str,
        isolation: str,
    ) -> Any:
        calls = self._parts.host.calls
        await self._parts.levels.follow(server, isolation, call)
        whom: dict[str, Any] = {
            "server": server,
            "principal": principal,
            "origin": "gateway",
            "client": call,
            "isolation": isolation,
        }
        match method:
            case "tools/call":
                arguments = read_arguments(params, self._settings.limits.depth)
                if call.left is not None and call.left.edited is not None:
                    call.edited = arguments = call.left.edited
                told = call.pass_progress if call.takes_progress or call.task else None
                result = await calls.call(own, arguments, on_progress=told, **whom)
                return result.wire if call.edited is None else tell_edit(result.wire, call.edited)
            case "prompts/get":
                blanks = params.arguments or None
                if call.left is not None and call.left.edited is not None:
                    blanks = call.left.edited
                return await calls.prompt(own, blanks, **whom)
            case "resources/read":
                return await calls.read(own, fresh=True, **whom)
        ref = params.ref
        spelt = {"name": own} if isinstance(ref, PromptReference) else {"uri": own}
        context = params.context.arguments if params.context else None
        completion = await calls.complete(
            server,
            structs.replace(ref, **spelt),
            params.argument.name,
            params.argument.value,
            context=context or None,
            **{key: value for key, value in whom.items() if key != "server"},
        )
        return CompleteResult(completion=completion)

    def _extend_trail(self, meta: Any) -> dict[str, Any]:
        """The gateways that a request came through, and this one.

        Raises:
            Refuse: it was here before.
        """
        parts = self._parts
        return extend_trail(meta, parts.mark.make(parts.host.config))


def tell_edit(result: CallToolResult, edited: Mapping[str, Any]) -> CallToolResult:
    """A result that says with which arguments its tool was called, which a person has edited."""
    return structs.replace(result, meta={**(result.meta or {}), EDITED_KEY: dict(edited)})


def find_kind(method: str, params: Any) -> str:
    """The method by which that is used which a request is about: a completion is about a prompt or URI."""
    if method != "completion/complete":
        return method
    return "prompts/get" if isinstance(params.ref, PromptReference) else "resources/read"
