"""Gateway provider: what a view of a host offers, as a provider of the server in front of it.

Lists come from the host's catalog, and everything that is asked of a server goes through the host's one
pipeline, as an attempt of the principal that asks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, structs

from isthmus.bridge.forwarded import ParkedCalls
from isthmus.bridge.upstream import asks_in_result, is_askable
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import IsthmusError, Refuse, Refused, UrlRequired
from isthmus.gateway.approvals.waiting import ApprovalWaiting
from isthmus.gateway.arguments import MirroredArguments, read_arguments
from isthmus.gateway.calls import GatewayCall
from isthmus.gateway.failures import make_refusal, make_tool_failure
from isthmus.gateway.logs import ConnectionLevels, asking_level
from isthmus.gateway.loops import GatewayMark, extend_trail, passing_on
from isthmus.gateway.principals import make_principal
from isthmus.gateway.tasks import GatewayTasks, offer_as_tasks
from isthmus.gateway.traffic import GatewayTraffic
from isthmus.gateway.views import (
    GatewayView,
    Owned,
    spell_prompt,
    spell_resource,
    spell_template,
    spell_tool,
)
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.calling_client import Answerer
from isthmus.host.model.errors import ConnectRequired, Unknown
from isthmus.runtime.inbound import Inbound
from isthmus.server.composition.provider import Changed
from isthmus.server.features.invocation import run_refusing
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    CallToolResult,
    CompleteResult,
    EmptyResult,
    InputRequiredResult,
    PromptReference,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
)
from isthmus.wire.meta import SERVER_INFO, read_meta
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.gateway.connections import CallerConnections
    from isthmus.host.host import Host

LIST_PATIENCE_S = 10.0  # servers that answer later are told of by a changed list

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
    """

    host: "Host"
    connections: "CallerConnections"
    parked: ParkedCalls
    open: Callable[[], Awaitable[None]]
    mark: GatewayMark
    answerers: Callable[[], Sequence[Answerer]]
    traffic: GatewayTraffic
    levels: "ConnectionLevels"
    approvals: ApprovalWaiting | None = None


class GatewayProvider:
    """The offers of one view of a gateway.

    Args:
        view: the view.
        parts: those of the gateway.
        settings: those of the server in front.
        tasks: has calls run as tasks.

    Attributes:
        label: the provider as messages call it.
        tasks: none here: they are those of the server in front.
    """

    tasks = None

    def __init__(
        self,
        view: GatewayView,
        parts: GatewayParts,
        settings: SharedSettings,
        tasks: GatewayTasks,
    ) -> None:
        self.label = f"gateway to {view.label}"
        self.view = view
        self._parts = parts
        self._settings = settings
        self._tasks = tasks
        self._changed: Changed | None = None
        self._mirrored = MirroredArguments(parts.host)

    # Beginning and end

    def attach(self, changed: Changed) -> None:
        """Tell of changes from now on."""
        self._changed = changed

    async def open(self) -> None:
        """Open the host."""
        await self._parts.open()

    async def close(self) -> None:
        """Nothing: the gateway closes the host."""

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
        view, catalog = self.view, self._parts.host.catalog
        viewer = Viewer(make_principal(inbound.principal))
        try:
            with passing_on(self._extend_trail(read_meta(inbound.params))):
                async with asyncio.timeout(LIST_PATIENCE_S):
                    await catalog.load(view.servers(), viewer)
        except TimeoutError:
            pass  # the others are listed
        match method:
            case "tools/list":
                tools = [
                    spell_tool(view, item, catalog.choice(item.server).describe)
                    for item in catalog.tools(viewer)
                    if view.offers(item.server, item.name)
                ]
                return offer_as_tasks(tools, inbound)
            case "prompts/list":
                return [
                    spell_prompt(view, item)
                    for item in catalog.prompts(viewer)
                    if view.offers(item.server, item.name)
                ]
        servers = set(view.servers())
        if method == "resources/list":
            return [
                spell_resource(view, item)
                for item in catalog.resources(viewer)
                if item.server in servers
            ]
        return [
            spell_template(view, item)
            for item in catalog.templates(viewer)
            if item.server in servers
        ]

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
        return self._change_subscription(params.uri)

    async def _change_subscription(self, uri: str) -> Wire:
        del uri
        return EmptyResult()

    async def _serve(self, method: str, params: Any, name: str, inbound: Inbound) -> Wire:
        meta = self._extend_trail(params.meta)
        first: list[Any] = []
        if getattr(params, "request_state", UNSET) is UNSET and not getattr(
            params, "input_responses", UNSET
        ):
            call = self._make_call(inbound, meta)
            try:
                result = await self._attempt(call, method, params, name)
            except UrlRequired as error:
                first.append(error)
            else:
                if type(result) is not InputRequiredResult:
                    return self._clean(result)
                first.append(result)

        async def body(context: Any) -> Any:
            if first:
                asked = first.pop()
                if isinstance(asked, UrlRequired):
                    raise UrlRequired(*asked.pages, message=str(asked))
                return asked
            state = context.request_state
            if state is None:
                call = self._make_call(inbound, meta)
                return await self._attempt(call, method, params, name)
            return await self._return(inbound, state, context.input_responses)

        try:
            ended: Wire = await run_refusing(body, inbound, params, name, self._settings)
        except Refused as no:  # by the client, of what the server behind asked in its result
            raise Refuse(no.code, no.message, no.data) from no
        return self._clean(ended)

    async def _begin_task(self, params: Any, inbound: Inbound) -> Wire:
        """Make a call that its client wants as a task (2025-11-25); it is answered at once."""
        call = self._make_call(inbound, self._extend_trail(params.meta))

        async def make(call: GatewayCall) -> Wire:
            return await self._forward_clean(call, params, params.name)

        return await self._tasks.begin(params, call, self._settings.limiters, make)

    async def _forward_clean(self, call: GatewayCall, params: Any, name: str) -> Wire:
        """Call a tool, and make safe what comes of it: a task keeps it as it is."""
        return self._clean(await self._forward(call, "tools/call", params, name))

    def _make_call(self, inbound: Inbound, meta: Mapping[str, Any]) -> GatewayCall:
        approvals, answerers = self._parts.approvals, self._parts.answerers()
        return GatewayCall(inbound, self._settings, meta, approvals=approvals, answerers=answerers)

    async def _attempt(self, call: GatewayCall, method: str, params: Any, name: str) -> Any:
        """Begin a call.

        Returns:
            Its result, or an ``InputRequiredResult`` with what is asked first.

        Raises:
            Refuse: as it went.
        """
        caller = call.inbound.caller
        asks = asks_in_result(caller.revision) and method != "completion/complete"
        task = call.task = self._tasks.may_become(method, params, call.inbound)
        if task is not None:
            call.begin(task.run(self._forward_clean(call, params, name)))
        elif asks and is_askable(caller.capabilities):
            call.begin(self._forward(call, method, params, name))
        else:
            return await self._forward(call, method, params, name)
        return await self._go_on(call)

    async def _return(self, inbound: Inbound, state: str, answers: Mapping[str, Any]) -> Any:
        """Go on with a parked call whose client has come again.

        Raises:
            Refuse: it is not here any more.
        """
        parked = self._parts.parked
        # a request that was made again before anybody answered
        asked = None if answers else parked.ask_again(state, inbound)
        if asked is not None:
            return asked
        return await self._go_on(parked.take(state, inbound, answers))

    async def _go_on(self, call: Any) -> Any:
        result = await call.wait()
        if call.is_task:
            return result
        if result is None:
            call.hold_notes()
        await call.finish_notes()
        return self._parts.parked.park(call) if result is None else result

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

    async def _make(self, call: GatewayCall, method: str, params: Any, name: str) -> Any:
        """Make the attempt.

        Raises:
            Refuse: as it went.
        """
        principal = make_principal(call.inbound.principal)
        viewer, server = Viewer(principal), ""
        try:
            try:
                call.target = server, own = await self._find(method, name, viewer)
                return await self._call(call, method, params, server, own, principal)
            except ConnectRequired as lack:
                from isthmus.gateway.accounts.questions import ask_to_connect  # few servers want it

                server = lack.server
                lack.principal = principal
                await ask_to_connect(self._parts.host.accounts, call, lack)
            # nothing was sent before, and the account is there now
            call.target = server, own = await self._find(method, name, viewer)
            return await self._call(call, method, params, server, own, principal)
        except IsthmusError as error:
            failed = make_tool_failure(error) if method == "tools/call" else None
            if failed is not None:
                call.failure = error
                return failed
            raise make_refusal(error, server) from error

    async def _call(  # noqa: PLR0917 - the path of every call: keywords cost
        self, call: GatewayCall, method: str, params: Any, server: str, own: str, principal: str
    ) -> Any:
        """Make the attempt on the connection that the caller uses."""
        if method == "tools/call":
            self._mirrored.check((server, own), Viewer(principal), params, call.inbound)
        with passing_on(call.meta), asking_level(call.inbound.caller):
            async with self._parts.connections.borrow(server, call.inbound, principal) as key:
                return await self._dispatch(call, method, params, server, own, principal, key)

    async def _find(self, method: str, name: str, viewer: Viewer) -> Owned:
        """The server that is meant, and its own name of what is meant.

        Raises:
            Unknown: there is none.
        """
        view = self.view
        find: Callable[[str, Viewer], Owned] = view.find_prompt
        if method == "tools/call":
            find = view.find_tool
        elif method == "resources/read" or (method == "completion/complete" and "://" in name):
            find = view.find_resource
        try:
            return find(name, viewer)
        except Unknown:
            await self._parts.host.catalog.load(view.servers(), viewer)
        try:
            return find(name, viewer)
        except Unknown:
            self._check_account(name, viewer)
            raise

    def _check_account(self, name: str, viewer: Viewer) -> None:
        """See that a caller does not just lack an account at the server of a name.

        Raises:
            ConnectRequired: they do.
        """
        from isthmus.gateway.accounts.questions import check_account  # as above

        host, servers = self._parts.host, tuple(self.view.servers())
        owner = host.parts.servers.find_owner(name.partition("__")[0])
        server = servers[0] if len(servers) == 1 else owner
        if server in servers:
            check_account(host, server, viewer.principal)

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
        await self._parts.levels.follow(server, isolation, call.inbound.caller)
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
                told = call.pass_progress if call.takes_progress or call.task else None
                result = await calls.call(own, arguments, on_progress=told, **whom)
                return result.wire if call.edited is None else tell_edit(result.wire, call.edited)
            case "prompts/get":
                return await calls.prompt(own, params.arguments or None, **whom)
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

    def _clean(self, result: Any) -> Wire:
        """A result that is safe to show, without what the server behind says of itself."""
        meta = getattr(result, "meta", UNSET)
        if meta and SERVER_INFO in meta:
            rest = {key: value for key, value in meta.items() if key != SERVER_INFO}
            result = structs.replace(result, meta=rest or UNSET)
        sanitise = self._settings.sanitise
        if sanitise is None or type(result) is not CallToolResult:
            return result  # type: ignore[no-any-return]  # each of them is one
        return sanitise.result(result)


def tell_edit(result: CallToolResult, edited: Mapping[str, Any]) -> CallToolResult:
    """A result that says with which arguments its tool was called, which a person has edited."""
    return structs.replace(result, meta={**(result.meta or {}), EDITED_KEY: dict(edited)})
