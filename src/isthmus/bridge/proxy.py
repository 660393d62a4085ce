"""Proxy: the tools, resources and prompts of a client's target, as a provider of a server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypedDict

from msgspec import UNSET, Raw, structs

from isthmus.bridge.forwarded import ForwardedCall, ParkedCalls
from isthmus.bridge.pool import UpstreamPool
from isthmus.bridge.rounds import ForwardedRounds
from isthmus.bridge.upstream import (
    HOPS_KEY,
    NO_CAPABILITIES,
    NOTHING_CAME,
    UpstreamClient,
    asks_in_result,
    is_askable,
    split_meta,
)
from isthmus.client.features.elicitation import read_required_pages
from isthmus.client.subscriptions import Change as ClientChange
from isthmus.client.targets import ClientTarget
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import (
    CallTimedOut,
    ConnectFailed,
    ConnectionLost,
    HttpRefused,
    IsthmusError,
    MethodNotFound,
    Refuse,
    Refused,
    UrlElicitationRequired,
    UrlRequired,
    UsageError,
)
from isthmus.revisions.codes import UNAVAILABLE_CODE, url_required_code
from isthmus.runtime.failures import log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.server.composition.provider import Changed
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    EmptyResult,
    PromptReference,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    Tool,
    ToolsCapability,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import read_meta
from isthmus.wire.struct import Wire

MAX_HOPS = 8  # proxies that one request may pass

CAPABILITIES_WAIT_S = 1.5  # for a connection that somebody else is opening just now

FIRST_REOPEN_S, MAX_REOPEN_S = 1.0, 60.0  # until a lost subscription is made again

LIST_KINDS = {"tools/call": "tools", "prompts/get": "prompts"}  # by what names their items

LISTED_KINDS = ("tools", "prompts", "resources")

# What is said to be there while the server behind has never been reached: a call says why not.
PRESUMED = ServerCapabilities(
    tools=ToolsCapability(list_changed=True),
    resources=ResourcesCapability(subscribe=True, list_changed=True),
    prompts=PromptsCapability(list_changed=True),
    completions={},
)


class ProxyOptions(TypedDict, total=False):
    """Options of ``Server.proxy``, beside those of ``Server(…)``.

    Attributes:
        headers: for every HTTP request to the server behind.
        auth: gets the tokens that the server behind wants. No caller's token is ever passed on.
        timeout: seconds that the server behind may be silent in a call; 1,800.
        connect_timeout: seconds that connecting to it may take; 30.
        limits_of_upstream: :class:`isthmus.client.Limits` for what the server behind may cost.
        max_connections: connections to it at once, beside the shared one; 64.
        idle_timeout: seconds that a connection nobody uses is kept; 300.
        max_parked: calls that may wait for their client to come again with answers; 256.
        max_parked_of_caller: of which one caller may have so many; 32.
        parked_timeout: seconds that each may wait; 600.
        optional: lists are empty while the server behind cannot be reached, and not refused.
        eager: connect when the proxy is opened, and not when something is first asked.
        on_state: told why the server behind cannot be reached, and None when it can.
    """

    headers: Mapping[str, str] | None
    auth: Any
    timeout: float
    connect_timeout: float
    limits_of_upstream: Any
    max_connections: int
    idle_timeout: float
    max_parked: int
    max_parked_of_caller: int
    parked_timeout: float
    optional: bool
    eager: bool
    on_state: Callable[[str | None], None]


class ProxyProvider:
    """The offers of the server behind a proxy.

    Args:
        target: the server behind: whatever a client can be pointed at.
        name: of the server behind, for messages.
        settings: those of the server that offers it.
        instruct: told of the instructions of the server behind, each time it is reached.
        options: see :class:`ProxyOptions`.

    Attributes:
        label: the provider as messages call it.
        tasks: none: tools of the server behind that run as tasks are awaited.
    """

    tasks = None

    def __init__(
        self,
        target: ClientTarget,
        name: str,
        settings: SharedSettings,
        options: ProxyOptions,
        instruct: Callable[[str | None], None] | None = None,
    ) -> None:
        self.name = name
        self.label = f"proxy to {name!r}"
        self._settings = settings
        self._instruct = instruct
        self._optional = options.get("optional", False)
        self._changed: Changed | None = None
        self._known: dict[str, frozenset[str]] = {}
        self._capabilities: ServerCapabilities | None = None
        self._subscribed: dict[str, tuple[int, asyncio.Task[None]]] = {}
        self._parked = ParkedCalls(
            options.get("max_parked", 256),
            options.get("max_parked_of_caller", 32),
            options.get("parked_timeout", 600.0),
        )
        self._rounds = ForwardedRounds(self, settings, self._parked)
        timeout = options.get("timeout", 1800.0)
        client_options: dict[str, Any] = {
            "name": settings.info.name,
            "version": settings.info.version,
            "headers": options.get("headers"),
            "auth": options.get("auth"),
            "timeout": timeout,
            "max_timeout": max(timeout, 1800.0),
            "connect_timeout": options.get("connect_timeout", 30.0),
            "on_change": self._on_change,
            "on_elicitation_complete": settings.changes.announce_page_done,
        }
        if "limits_of_upstream" in options:
            client_options["limits"] = options["limits_of_upstream"]
        UpstreamClient(target, NO_CAPABILITIES, client_options)  # says at once what is wrong
        self._pool = UpstreamPool(
            target,
            name,
            client_options,
            most=options.get("max_connections", 64),
            idle=options.get("idle_timeout", 300.0),
            on_shared=self._on_shared,
            on_state=options.get("on_state", ignore_state),
        )
        self._warned = ""
        self._eager = options.get("eager", False)
        self._connecting: asyncio.Task[None] | None = None

    # Beginning and end

    def attach(self, changed: Changed) -> None:
        """Tell of changes from now on."""
        self._changed = changed

    async def open(self) -> None:
        """Begin to connect, where that is wanted; else that happens when it is first needed."""
        if self._eager:
            self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        with suppress(IsthmusError):  # which was told, and which the next call meets
            await self._pool.get_shared()

    async def close(self) -> None:
        """End every connection, parked call and subscription."""
        if self._connecting is not None:
            self._connecting.cancel()
        self._parked.close()
        for _, task in self._subscribed.values():
            task.cancel()
        self._subscribed.clear()
        await self._pool.close()

    # Capabilities and lists

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:  # noqa: ARG002 - the same for everybody
        """Capabilities of the server behind; as last known, or presumed, while it cannot be reached."""
        try:
            pool = self._pool
            wait = max(0.0, CAPABILITIES_WAIT_S - pool.opening_for) if pool.is_opening else None
            async with asyncio.timeout(wait):
                await self._pool.get_shared()
        except TimeoutError:
            pass  # whoever opens it tells what becomes of it
        except IsthmusError as error:
            self._warn(f"cannot be reached: {error}")
        return self._capabilities or PRESUMED

    def _on_shared(self, client: UpstreamClient) -> None:
        """The server behind was reached: take in what it says of itself."""
        theirs, again = client.capabilities, self._capabilities is not None
        resources = theirs.resources
        self._capabilities = ServerCapabilities(
            tools=theirs.tools and ToolsCapability(list_changed=True),
            prompts=theirs.prompts and PromptsCapability(list_changed=True),
            resources=resources
            and ResourcesCapability(list_changed=True, subscribe=resources.subscribe),
            completions=theirs.completions,
        )
        self._known.clear()
        self._warned = ""
        if self._instruct is not None:
            self._instruct(client.instructions)
        if again:  # nobody knows what has changed meanwhile
            for kind in LISTED_KINDS:
                self._announce(f"notifications/{kind}/list_changed", None)

    def _on_change(self, change: ClientChange) -> None:
        if change.kind != "resource":
            self._known.clear()
            self._announce(f"notifications/{change.kind}/list_changed", None)

    def _announce(self, method: str, uri: str | None) -> None:
        if self._changed is not None:
            self._changed((method, uri))

    def serves(self, method: str, key: str) -> bool:
        """Whether the server behind may have it: by its lists, once somebody read them."""
        has = self._capabilities or PRESUMED
        if method == "resources/read":
            return has.resources is not UNSET
        if method == "completion/complete":
            return has.completions is not UNSET and ("://" in key or self._lists("prompts", key))
        kind = "tools" if method == "tools/call" else "prompts"
        return getattr(has, kind) is not UNSET and self._lists(kind, key)

    def guesses(self, method: str, key: str) -> bool:
        """Whether :meth:`serves` says yes for lack of a list; what is read may be of a template."""
        kind = LIST_KINDS.get(method)
        return self._known.get(kind) is None if kind else "://" in key or not self._known

    def _lists(self, kind: str, key: str) -> bool:
        known = self._known.get(kind)
        return known is None or key in known

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """All items of a list of the server behind.

        Raises:
            Refuse: it cannot be reached, unless it is optional; or it refused.
        """
        try:
            hops = self._count_hops(read_meta(inbound.params))
            client = await self._pool.get_shared()
            return await self._fetch_list(client, method, {HOPS_KEY: hops + 1})
        except MethodNotFound:
            return []
        except IsthmusError as error:
            if self._optional and not isinstance(error, Refuse):
                self._warn(f"cannot be reached: {error}")
                return []
            raise self._make_refusal(error) from error

    async def _fetch_list(
        self, client: UpstreamClient, method: str, meta: Mapping[str, Any]
    ) -> Sequence[Wire]:
        if method == "tools/list":
            tools = await client.list_tools(meta=meta)
            self._known["tools"] = frozenset(tool.name for tool in tools)
            return [without_tasks(tool) for tool in tools]
        if method == "prompts/list":
            prompts = await client.list_prompts(meta=meta)
            self._known["prompts"] = frozenset(prompt.name for prompt in prompts)
            return prompts
        if method == "resources/list":
            return await client.list_resources(meta=meta)
        return await client.list_resource_templates(meta=meta)

    # Scopes: whoever may ask the outer server may ask what it offers

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None: the server behind judges what the proxy itself may do there."""
        return NO_SCOPES

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None."""
        return NO_SCOPES

    def known_scopes(self) -> frozenset[str]:
        """None."""
        return NO_SCOPES

    # Requests

    def serve(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """Serve a request at the server behind.

        Raises:
            Refuse: it refused, or cannot be reached.
        """
        match method:
            case "tools/call" | "prompts/get":
                return self._serve(method, params, params.name, inbound)
            case "resources/read":
                return self._serve(method, params, params.uri, inbound)
            case "completion/complete":
                ref = params.ref
                name = ref.name if isinstance(ref, PromptReference) else ref.uri
                return self._serve(method, params, name, inbound)
            case _:
                return self._change_subscription(params.uri, begins=method == SUBSCRIBE)

    async def _serve(self, method: str, params: Any, name: str, inbound: Inbound) -> Wire:
        meta, hops = split_meta(params.meta)
        if hops >= MAX_HOPS:
            raise make_loop_refusal(hops)
        meta[HOPS_KEY] = hops + 1
        return await self._rounds.serve(method, params, name, inbound, meta)

    def make_call(self, inbound: Inbound, meta: Mapping[str, Any]) -> ForwardedCall:
        """A call of a client, whose ``_meta`` goes on."""
        return ForwardedCall(inbound, self._settings, meta)

    async def make_round(  # noqa: PLR0917 - the path of every call: keywords cost
        self,
        call: ForwardedCall,
        method: str,
        params: Any,
        name: str,
        state: str | None = None,
        answers: Mapping[str, Any] = NOTHING_CAME,
    ) -> Any:
        """Make one round of a call.

        Args:
            call: whose it is.
            method: the method.
            params: its parameters.
            name: the tool, prompt or URI.
            state: what the round before left: of the server behind, or the name of a parked call.
            answers: those that the client gave.

        Raises:
            Refuse: as it went.
            UrlRequired: the user must visit pages first.
        """
        pool, inbound = self._pool, call.inbound
        shared = pool.shared
        try:
            if shared is None or shared.is_lost:
                shared = await pool.get_shared()
            if shared.is_modern:
                came = NOTHING_CAME
                if answers or state is not None or getattr(params, "request_state", None):
                    came = {
                        "input_responses": to_raw(answers) if answers else UNSET,
                        "request_state": UNSET if state is None else state,
                    }
                try:
                    return await shared.forward(call, method, params, name, came)
                finally:
                    if call.has_notes:
                        await call.finish_notes()
            if state is not None:
                return await self._rounds.resume(state, inbound, answers)
            asks = asks_in_result(inbound.caller.revision) and method != "completion/complete"
            if not asks or not is_askable(inbound.caller.capabilities):
                return await self._forward(call, method, params, name)
            bare = structs.replace(params, input_responses=UNSET, request_state=UNSET)
            return await self._rounds.begin(call, self._forward(call, method, bare, name))
        except IsthmusError as error:
            raise self._make_refusal(error, inbound) from error

    async def _forward(self, call: ForwardedCall, method: str, params: Any, name: str) -> Any:
        async with self._pool.borrow(call.inbound) as client:
            try:
                return await client.forward(call, method, params, name)
            finally:
                await call.finish_notes()

    def _count_hops(self, meta: Mapping[str, Any]) -> int:
        _, hops = split_meta({**meta})
        if hops >= MAX_HOPS:
            raise make_loop_refusal(hops)
        return hops

    # Errors

    def _warn(self, what: str) -> None:
        """Log a failure, unless it is the same as the last one."""
        if what != self._warned:
            self._warned = what
            # It may have words of the server behind in it, which make no lines of the log.
            log_warning(
                "%s %s", self.label, "".join(one if one.isprintable() else " " for one in what)
            )

    def _make_refusal(self, error: IsthmusError, inbound: Inbound | None = None) -> Refuse:
        """The refusal of a request, where the server behind refused or failed."""
        if isinstance(error, Refuse):
            return error
        if isinstance(error, UrlElicitationRequired) and inbound is not None:
            return self._require_pages(error, inbound)
        if isinstance(error, Refused):
            return Refuse(error.code, self._clean_text(error.message), error.data)
        self._warn(f"failed: {error}")
        unsent = isinstance(error, ConnectionLost) and not error.sent
        code, data = -32603, None
        if isinstance(error, ConnectFailed) or unsent:
            code, data = UNAVAILABLE_CODE, {"retryAfterMs": 2000}
            what = "cannot be reached"
        elif isinstance(error, CallTimedOut):
            what = "did not answer in time"
        elif isinstance(error, ConnectionLost | HttpRefused):
            what = "failed during the call, which may have had an effect"
        else:
            what = "gave no usable answer"
        why = f": {error}" if self._settings.debug else ""
        return Refuse(code, f"The server {self.name!r} behind this one {what}{why}", data)

    def _require_pages(self, error: UrlElicitationRequired, inbound: Inbound) -> Refuse:
        """The demand that the user visit pages, in the form that the client's revision has."""
        try:
            pages = read_required_pages(error)
        except IsthmusError as wrong:  # it says which pages in no form that there is
            return self._make_refusal(wrong)
        code = url_required_code(inbound.caller.revision)
        if code is None:
            return UrlRequired(*((page.url or "", page.message) for page in pages))
        for page in pages:
            if page.elicitation_id:
                self._settings.changes.add_page(inbound.link, page.elicitation_id)
        return Refuse(code, self._clean_text(error.message), error.data)

    def _clean_text(self, text: str) -> str:
        """The words of the server behind, as safe to show as the output of its tools."""
        return text if self._settings.sanitise is None else self._settings.sanitise.text(text)

    # Subscriptions

    async def _change_subscription(self, uri: str, *, begins: bool) -> Wire:
        """Count who wants to hear of a resource; the server behind is asked once for all."""
        count, task = self._subscribed.get(uri, (0, None))
        if begins:
            if task is None:
                task = asyncio.ensure_future(self._follow(uri))
            self._subscribed[uri] = (count + 1, task)
        elif task is not None:
            if count > 1:
                self._subscribed[uri] = (count - 1, task)
            else:
                del self._subscribed[uri]
                task.cancel()
        return EmptyResult()

    async def _follow(self, uri: str) -> None:
        """Tell of updates of a resource until nobody wants to hear of them."""
        wait = FIRST_REOPEN_S
        while True:
            try:
                client = await self._pool.get_shared()
                async with client.listen(uris=[uri]) as changes:
                    wait = FIRST_REOPEN_S
                    async for change in changes:
                        self._announce("notifications/resources/updated", change.uri)
            except IsthmusError as error:
                log_warning("%s: updates of a resource are not heard of: %s", self.label, error)
                if isinstance(error, UsageError):
                    return
            await asyncio.sleep(wait)
            wait = min(wait * 2, MAX_REOPEN_S)


SUBSCRIBE = "resources/subscribe"


def split_options(
    target: ClientTarget, name: str | None, options: Mapping[str, Any]
) -> tuple[str, ProxyOptions, dict[str, Any]]:
    """The name of a proxy, its own options, and those of its server."""
    if name is None:
        # A command or a URL may hold secrets, and is not shown to clients.
        name = str(getattr(getattr(target, "info", None), "name", None) or "proxy")
    keys = ProxyOptions.__annotations__
    proxying: Any = {key: value for key, value in options.items() if key in keys}
    return name, proxying, {key: value for key, value in options.items() if key not in keys}


def without_tasks(tool: Tool) -> Tool:
    """A tool that is not offered as a task: the proxy awaits what is one."""
    return tool if tool.execution is UNSET else structs.replace(tool, execution=UNSET)


def to_raw(answers: Mapping[str, Any]) -> dict[str, Raw]:
    """Answers as the JSON that travels."""
    return {key: Raw(encode(answer)) for key, answer in answers.items()}


def ignore_state(_why: str | None) -> None:
    """Nobody wants to know."""


def make_loop_refusal(hops: int) -> Refuse:
    """The refusal of a request that came through too many proxies."""
    return Refuse(
        -32603, f"This request came through {hops} proxies: they lead to each other in a circle"
    )
