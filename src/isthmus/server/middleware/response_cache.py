"""Caching: results that are given again to the same caller for a time."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw

from isthmus.core.principal import Principal, owner_of
from isthmus.errors import UsageError
from isthmus.runtime.peer import Peer
from isthmus.server.middleware.hooks import (
    LIST_METHODS,
    CallNext,
    Middleware,
    MiddlewareContext,
    continues_rounds,
    has_hint,
)
from isthmus.wire import (
    CallToolResult,
    GetPromptResult,
    ReadResourceResult,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, read_meta

if TYPE_CHECKING:
    from isthmus.server.middleware.hook_layer import ServerParts

CachedFor: TypeAlias = (
    Literal["principal", "session", "everyone"] | Callable[[MiddlewareContext[Any]], str | None]
)

CACHED_METHODS = LIST_METHODS | {"tools/call", "resources/read", "prompts/get"}

# Members of _meta and headers that are of the request and say nothing of who asks, or for what.
PASSING_META = frozenset(
    {
        *("progressToken", "traceparent", "tracestate", "baggage"),
        *(PROTOCOL_VERSION, CLIENT_INFO, LOG_LEVEL),
    }
)
PASSING_CLAIMS = frozenset({"exp", "iat", "nbf", "jti", "auth_time"})
PASSING_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "date"),
        *("user-agent", "keep-alive", "transfer-encoding", "te", "cache-control", "pragma"),
        *("mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id"),
        *(
            "traceparent",
            "tracestate",
            "baggage",
            "x-request-id",
            "sec-fetch-mode",
            "authorization",
        ),
    }
)

CHANGED_METHODS = {
    "notifications/tools/list_changed": frozenset({"tools/list", "tools/call"}),
    "notifications/prompts/list_changed": frozenset({"prompts/list", "prompts/get"}),
    "notifications/resources/list_changed": frozenset(
        {"resources/list", "resources/templates/list", "resources/read"}
    ),
}
RESOURCE_UPDATED = "notifications/resources/updated"


class CachedResponse(msgspec.Struct, frozen=True):
    """A result that is kept.

    Attributes:
        result: the result.
        size: its bytes, with those of its key.
        until: when it is too old.
        method: what it is the result of.
        uri: the resource that it was read of, or None.
    """

    result: Any
    size: int
    until: float
    method: str
    uri: str | None


class Caching(Middleware):
    """Cache of results in this process, for a time.

    Kept are lists, resources, prompts, and calls of tools that are read-only as their annotations
    say; or, where ``tools`` is given, of those alone. An idempotent tool that writes is not: its second call has to write
    again. Never kept: errors, questions, tasks, what asked its user something in either era, what
    looked into ``ctx.session``, what a client sends with answers, and anything where ``Server.visibility`` decides for each caller
    what is there. A notification that a list or a resource changed drops what
    may depend on it. What is given from the cache counts for no limit of tools.

    Args:
        ttl: seconds that a result is kept.
        by: whose results they are. ``"principal"``: of who authenticated; without authorization, of
            the session, or of the connection where that is a pipe or a socket. ``"session"``: of one session alone, nothing without
            one. In both cases requests with other HTTP headers are somebody else's, but for headers
            that are the same for everybody. ``"everyone"``: of all. Or a function of the context
            that gives a key, and None for what must not be kept.
        methods: what is kept.
        tools: names of the tools whose results are kept, whatever they are annotated as; None
            keeps those of read-only tools.
        max_entries: how many results are kept; the least recently used one goes first.
        max_bytes: the bytes of all of them.
        clock: says the time in seconds.

    Raises:
        UsageError: a figure is none, or a method cannot be cached.
    """

    reads_results: ClassVar[bool] = False

    def __init__(
        self,
        ttl: float,
        *,
        by: CachedFor = "principal",
        methods: Collection[str] = CACHED_METHODS,
        tools: Collection[str] | None = None,
        max_entries: int = 1_000,
        max_bytes: int = 16 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not ttl > 0 or max_entries < 1 or max_bytes < 1:
            raise UsageError(
                f"Caching({ttl!r}, max_entries={max_entries!r}, max_bytes={max_bytes!r}): seconds "
                "above 0, and at least 1"
            )
        if not callable(by) and by not in ("principal", "session", "everyone"):
            raise UsageError(
                f'Caching(by={by!r}): it is "principal", "session", "everyone", or a function'
            )
        if isinstance(tools, str):
            raise UsageError(f"Caching(tools={tools!r}): it is a list of names")
        wrong = sorted(set(methods) - CACHED_METHODS)
        if wrong:
            raise UsageError(
                f"Caching(methods=…) cannot keep {wrong[0]!r}; it keeps {', '.join(sorted(CACHED_METHODS))}"
            )
        self.methods = frozenset(methods)
        self._ttl, self._by, self._clock = ttl, by, clock
        self._tools = None if tools is None else frozenset(tools)
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._bytes = 0
        self._changes = 0
        self._servers = self._named = 0
        self._connections: WeakKeyDictionary[Peer, str] = WeakKeyDictionary()

    def attach(self, server: "ServerParts") -> None:
        """Listen to changes on ``server``, which end kept results.

        Args:
            server: the parts of the server that a middleware may use.

        Raises:
            UsageError: it is in place on another server, whose results would be mixed with these.
        """
        self._servers += 1
        if self._servers > 1:
            raise UsageError("a Caching(…) belongs to one server: make one for each")
        server.watch_changes(self._drop_changed)

    def clear(self) -> None:
        """Keep nothing of what was kept so far."""
        self._changes += 1
        self._entries.clear()
        self._bytes = 0

    async def on_request(self, ctx: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Give the result that is kept, or serve the request and keep its result.

        Args:
            ctx: the request: its params, caller and server.
            call_next: ``await call_next(ctx)`` serves the request and gives its result.

        Returns:
            The result.
        """
        key = self._make_key(ctx) if self._may_keep(ctx) else None
        if key is None:
            return await call_next(ctx)
        found = self._entries.get(key)
        if found is not None and found.until > self._clock():
            self._entries.move_to_end(key)
            return found.result
        record, changes = ctx.inbound.keep_record(), self._changes
        result = await call_next(ctx)
        if record.asked or record.used_state:
            return result
        if self._changes == changes and is_final(result):
            self._keep(key, ctx, result)
        return result

    def _may_keep(self, ctx: MiddlewareContext[Any]) -> bool:
        params = ctx.params
        if ctx.server.varies_by_caller:  # what is kept must not be there for whom it is hidden
            return False
        if continues_rounds(params) or getattr(params, "task", UNSET) is not UNSET:
            return False
        if ctx.method != "tools/call":
            return True
        if self._tools is not None:
            return params.name in self._tools
        return has_hint(ctx.tool, "read_only_hint")

    def _make_key(self, ctx: MiddlewareContext[Any]) -> bytes | None:
        who = self._identify(ctx)
        if who is None:
            return None
        inbound, params = ctx.inbound, ctx.params
        try:
            given: dict[str, Any] = msgspec.json.decode(encode(params)) if params else {}
            meta = {k: v for k, v in read_meta(inbound.params).items() if k not in PASSING_META}
            said = [inbound.method, ctx.revision.name, who, {**given, "_meta": meta}]
            return msgspec.json.encode(said, order="deterministic")
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return None  # the handler says what is wrong with it

    def _identify(self, ctx: MiddlewareContext[Any]) -> list[Any] | None:
        if callable(self._by):
            named = self._by(ctx)
            return None if named is None else [named]
        if self._by == "everyone":
            return []
        session = ctx.session
        if self._by == "session" and session is None:
            return None
        owner = owner_of(ctx.principal)
        headers = sorted(
            (name, value)
            for name, value in ctx.headers.items()
            if name not in PASSING_HEADERS or (name == "authorization" and owner is None)
        )
        in_session = session if self._by == "session" or owner is None else None
        if owner is None and session is None and isinstance(ctx.inbound.link, Peer):
            in_session = self._name_connection(ctx.inbound.link)
        return [owner, list_grants(ctx.principal), in_session, headers]

    def _name_connection(self, link: Peer) -> str:
        """A name for a connection that has no session: a pipe, a socket, one in memory."""
        name = self._connections.get(link)
        if name is None:
            self._named += 1
            name = self._connections[link] = f"connection {self._named}"
        return name

    def _keep(self, key: bytes, ctx: MiddlewareContext[Any], result: Any) -> None:
        size = len(key) + len(result if type(result) is Raw else encode(result))
        if size > self._max_bytes:
            return
        self._drop(key)
        until = self._clock() + self._ttl
        uri = getattr(ctx.params, "uri", None)
        self._entries[key] = CachedResponse(result, size, until, ctx.method, uri)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        gone = self._entries.pop(key, None)
        if gone is not None:
            self._bytes -= gone.size

    def _drop_changed(self, notification: str, uri: str | None) -> None:
        """Drop what a change may have made wrong; from any thread."""
        self._changes += 1
        methods = CHANGED_METHODS.get(notification, frozenset())
        for key, entry in tuple(self._entries.items()):
            updated = notification == RESOURCE_UPDATED and entry.uri == uri
            if not notification or updated or entry.method in methods:
                self._drop(key)


def list_grants(principal: Any) -> list[Any]:
    """What a principal was granted beside being who it is; the times of its token are no part of it."""
    if not isinstance(principal, Principal):
        return []
    claims = {k: v for k, v in principal.claims.items() if k not in PASSING_CLAIMS}
    return [sorted(principal.scopes), claims]


def is_final(result: Any) -> bool:
    """Whether a result may be given again: a page, contents, a prompt, or what a tool gave."""
    if type(result) is CallToolResult:
        return result.is_error is not True
    kinds = ReadResourceResult | GetPromptResult | Raw
    return isinstance(result, kinds) or hasattr(result, "next_cursor")
