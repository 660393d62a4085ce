"""Session state: what ``ctx.session`` keeps for a caller between its calls.

Whom it is kept for is told by the transport and the token, never by what a client says:

- up to 2025-11-25 the session: over Streamable HTTP the one of ``Mcp-Session-Id``, elsewhere the connection;
- since 2026-07-28, which has no sessions, the principal who authenticated, otherwise the connection.

An anonymous request since 2026-07-28 that comes over HTTP is neither, and is refused: a bucket for all
strangers would show one of them what another one left. All values of one caller are one entry of a key-value
store, so that they are counted, kept and deleted together: in ``Server(store=…)``, sealed, where any node may
serve the caller, and otherwise in the memory of this process.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, overload
from weakref import WeakKeyDictionary, WeakValueDictionary

import msgspec
from msgspec import structs

from isthmus.core.principal import Principal, owner_of
from isthmus.core.sealing import NONCE_BYTES, SealBroken, decrypt, encrypt
from isthmus.errors import Refuse, StoreUnavailable, ToolError, UsageError
from isthmus.revisions.codes import UNAUTHENTICATED_CODE
from isthmus.runtime.failures import log_warning
from isthmus.runtime.peer import Peer
from isthmus.server.guard.tags import VisibilityRule, add_session_rule, make_rule
from isthmus.server.schema.custom_types import decode_custom, make_expressible, write_json
from isthmus.server.subscriptions import PROMPTS_CHANGED, RESOURCES_CHANGED, TOOLS_CHANGED
from isthmus.store.kv import MemoryKV, StoreFull
from isthmus.store.section import StoreSection
from isthmus.transports.http.sessions.records import SessionRecord, name_session_state

if TYPE_CHECKING:
    from isthmus.runtime.inbound import Inbound
    from isthmus.server.settings import SharedSettings
    from isthmus.store.kv import KV

T = TypeVar("T")
D = TypeVar("D")

VALUES_KIND = b"\x51"  # of what is sealed, beside journals, session ids and what nodes say

MAX_KEY_CHARS = 256

LINGER_S = 10.0  # after the end of a connection, for calls that are still at work

MAX_CHANGE_ATTEMPTS = 64  # to change values that other nodes change, too

Values = dict[str, bytes]
"""JSON by key."""

_decode_values = msgspec.msgpack.Decoder(Values).decode


class SessionState:
    """Values that a server keeps for a caller from one call to the next: ``ctx.session``.

    Example::

        @server.tool
        async def add_to_cart(item: str, ctx: Context) -> int:
            cart = await ctx.session.get("cart", [], type=list[str])
            await ctx.session.set("cart", [*cart, item])
            return len(cart) + 1

    Up to 2025-11-25 the values live and end with the session; since 2026-07-28 they belong to the principal who
    authenticated. **What stands before a question may run again**: setting a value there is done twice, which
    changes nothing; adding to one is not, and belongs behind the question or into ``ctx.once``.

    Made by the server; authors receive it.
    """

    __slots__ = ("_inbound", "_settings")

    def __init__(self, inbound: "Inbound", settings: "SharedSettings") -> None:
        self._inbound = inbound
        self._settings = settings

    @overload
    async def get(self, key: str, default: None = None) -> Any: ...
    @overload
    async def get(self, key: str, default: None = None, *, type: type[T]) -> T | None: ...
    @overload
    async def get(self, key: str, default: D, *, type: type[T]) -> T | D: ...
    @overload
    async def get(self, key: str, default: D, *, type: Any = Any) -> Any: ...
    async def get(self, key: str, default: Any = None, *, type: Any = Any) -> Any:
        """The value under a key.

        Args:
            key: the value's name.
            default: what to return where there is none.
            type: what to read it as: a class, ``list[Item]``; plain data if not given.

        Raises:
            Refuse: there is nobody to keep values for; it says how to mend that.
            UsageError: what was set does not fit the type.
            StoreUnavailable: the store cannot be reached.
        """
        place = find_place(self._inbound, self._settings)
        written = (await place.load()).get(check_key(key))
        return default if written is None else _read_value(key, written, type)

    async def set(self, key: str, value: Any) -> None:
        """Keep a value under a key; of several calls that set one at once, the last one wins.

        Args:
            key: the value's name, of up to 256 characters.
            value: what has a JSON form: plain data, dataclasses, msgspec and pydantic models.

        Raises:
            Refuse: there is nobody to keep values for; it says how to mend that.
            ToolError: it is larger than ``Limits(session_size=…)`` allows, or one more than
                ``Limits(session_values=…)``.
            UsageError: it has no JSON form.
            StoreUnavailable: the store cannot be reached.
        """
        check_key(key)
        try:
            written = write_json(value)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"ctx.session.set({key!r}): {error}; keep plain data, such as the id of what was made"
            ) from error
        await self._change(key, written)

    async def delete(self, key: str) -> bool:
        """Delete a value.

        Args:
            key: its name.

        Returns:
            whether there was one.

        Raises:
            Refuse: there is nobody to keep values for; it says how to mend that.
            StoreUnavailable: the store cannot be reached.
        """
        return await self._change(check_key(key), None)

    async def enable(self, *names: str, tags: Collection[str] = (), only: bool = False) -> None:
        """Offer tools, resources and prompts to this session again; see ``Server.enable``.

        Args:
            *names: names and URIs.
            tags: tags of what is offered again.
            only: hide everything else.

        Raises:
            UsageError: sessions have no rules here (``server.visibility(sessions=True)``), or nothing
                is selected.
            Refuse: there is nobody to keep rules for; it says how to mend that.
        """
        await self._add_rule(make_rule(names, tags, enables=True, only=only))

    async def disable(self, *names: str, tags: Collection[str] = ()) -> None:
        """Hide tools, resources and prompts from this session, or since 2026-07-28 from this principal.

        They are listed no longer, and a call of one is a call of an unknown one. The client is told
        that its lists changed.

        Args:
            *names: names, or URIs.
            tags: tags, of which an item has at least one.

        Raises:
            UsageError: as of :meth:`enable`.
            Refuse: there is nobody to keep rules for; it says how to mend that.
        """
        await self._add_rule(make_rule(names, tags, enables=False))

    async def _add_rule(self, rule: VisibilityRule) -> None:
        if not self._settings.has_session_rules:
            raise UsageError(
                "visibility by session is not enabled: call server.visibility(sessions=True) before "
                "the server serves"
            )
        place = find_place(self._inbound, self._settings)
        if await place.change(partial(add_session_rule, rule=rule)):
            for method in (TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED):
                self._settings.changes.announce_to(self._inbound, method)

    async def _change(self, key: str, written: bytes | None) -> bool:
        limits = self._settings.limits

        def change(values: Values) -> Values | None:
            if values.get(key) == written:
                return None
            changed = {name: value for name, value in values.items() if name != key}
            if written is not None:
                changed[key] = written
                _check_room(key, changed, limits.session_values, limits.session_size)
            return changed

        return await find_place(self._inbound, self._settings).change(change)


class StatePlace:
    """The entry that the values of one caller are kept in.

    Args:
        kv: the store.
        name: its key.
        ttl: seconds it is kept after it was last written; None keeps it until it is deleted.
        keys: what its content is sealed with; None where it stays in this process.
        lock: held while this process changes it.
        on_first: done before anything is written for the first time.
    """

    __slots__ = ("_keys", "_kv", "_lock", "_name", "_ttl", "on_first")

    def __init__(
        self,
        kv: "KV",
        name: str,
        ttl: float | None,
        *,
        keys: "list[bytes] | None" = None,
        lock: asyncio.Lock,
        on_first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._kv = kv
        self._name = name
        self._ttl = ttl
        self._keys = keys
        self._lock = lock
        self.on_first = on_first

    async def load(self) -> Values:
        """The values, by key.

        Raises:
            StoreUnavailable: the store cannot be reached.
        """
        entry = await self._kv.get(self._name)
        return {} if entry is None else self._open(entry.value)

    async def change(self, change: Callable[[Values], Values | None]) -> bool:
        """Change the values; says whether they have changed.

        What other nodes change at the same time stays, but for the values that both of them set.

        Args:
            change: makes the new values of the old ones, or None where nothing is to be changed; it may be
                called several times.

        Raises:
            ToolError: there is no room for them.
            StoreUnavailable: the store cannot be reached, or too many nodes change them at once.
        """
        async with self._lock:
            for _ in range(MAX_CHANGE_ATTEMPTS):
                entry = await self._kv.get(self._name)
                changed = change({} if entry is None else self._open(entry.value))
                if changed is None:
                    return False
                if entry is None and self.on_first is not None:
                    await self.on_first()
                if await self._put(changed, 0 if entry is None else entry.version):
                    return True
        raise StoreUnavailable("the state of a session is changed by too many at once")

    async def _put(self, values: Values, version: int) -> bool:
        content = msgspec.msgpack.encode(values)
        if self._keys is not None:
            nonce = os.urandom(NONCE_BYTES)
            content = encrypt(VALUES_KIND, content, self._keys, nonce, self._name.encode())
        try:
            return bool(await self._kv.cas(self._name, content, version, self._ttl))
        except StoreFull as full:
            raise ToolError(f"The server has no room for more session state: {full}") from full

    def _open(self, content: bytes) -> Values:
        """The values in an entry; none in what this server did not seal for this place."""
        try:
            if self._keys is not None:
                content = decrypt(VALUES_KIND, content, self._keys, self._name.encode())
            return _decode_values(content)
        except (SealBroken, msgspec.DecodeError, UnicodeDecodeError) as error:
            log_warning("the state of a session does not open, and is empty now: %s", error)
            return {}


class StatePlaces:
    """The places of all callers of one server.

    Args:
        settings: those of the server, shared by all its parts.
    """

    def __init__(self, settings: "SharedSettings") -> None:
        self._settings = settings
        self._memory = MemoryKV()
        self._links: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, inbound: "Inbound") -> StatePlace:
        """The place of the sender of a request.

        Raises:
            Refuse: there is nobody to keep values for.
        """
        principal, link = inbound.principal, inbound.link
        has_sessions = inbound.caller.revision.allows("client", "initialize")
        session = inbound.origin.session
        if has_sessions and self._settings.store is not None and _is_shared_session(inbound):
            place = self._find_shared(f"session {session}", owner_of(principal))
            place.on_first = partial(_bind_session, inbound)
            return place
        if isinstance(principal, Principal) and not (has_sessions and isinstance(link, Peer)):
            return self._find_shared(f"principal {principal.owner}")
        if isinstance(link, Peer):
            return self._find_linked(link, inbound)
        raise _make_anonymous_refusal(inbound)

    def _find_shared(self, whose: str, owner: str | None = None) -> StatePlace:
        """A place that any node may look for."""
        settings, store, sections = self._settings, self._settings.store, []
        # What is mounted has a section of a store: its state stands beside that of the server around it, so that
        # a session which is deleted takes both with it.
        while isinstance(store, StoreSection):
            sections.append(store.prefix)
            store = store.whole
        name = name_session_state(whose) + _digest_parts(settings.info.name, owner, *sections)
        ttl, lock = settings.limits.session_ttl, self._find_lock(name)
        if store is None:
            return StatePlace(self._memory, name, ttl, lock=lock)
        return StatePlace(store.kv, name, ttl, keys=settings.state_keys, lock=lock)

    def _find_linked(self, link: Peer, inbound: "Inbound") -> StatePlace:
        """The place of a connection, or of a session that this process alone knows.

        Raises:
            ToolError: the session has ended.
        """
        if link.lost is not None and inbound.origin.session is not None:
            raise ToolError("The session has ended, and with it what was kept for it")
        token = self._links.get(link)
        if token is None:
            # random, for an address in memory may be another connection's soon
            token = self._links[link] = f"link/{os.urandom(16).hex()}/"
            link.on_close(partial(self._drop_link, token, lingers=inbound.origin.session is None))
        name = token + _digest_parts(owner_of(inbound.principal))
        ttl = None if link.lost is None else LINGER_S
        on_first = partial(_bind_session, inbound)
        return StatePlace(self._memory, name, ttl, lock=self._find_lock(name), on_first=on_first)

    def _drop_link(self, token: str, *, lingers: bool) -> None:
        """Forget what was kept for a connection; calls of a pipe go on for a moment after its last word."""
        if lingers:
            asyncio.get_running_loop().call_later(LINGER_S, self._memory.drop, token)
        else:
            self._memory.drop(token)

    def _find_lock(self, name: str) -> asyncio.Lock:
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock


def find_place(inbound: "Inbound", settings: "SharedSettings") -> StatePlace:
    """The place in which the values of the sender of a request are kept.

    Raises:
        Refuse: there is nobody to keep values for; it says how to mend that.
        ToolError: the session has ended.
    """
    if settings.state_places is None:
        settings.state_places = StatePlaces(settings)
    if inbound.record is not None:
        inbound.record.used_state = True
    return settings.state_places.find(inbound)


def check_key(key: Any) -> str:
    """The key of a value, if it is one.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARS or key[0] == "\0":
        raise UsageError(
            f"the key of a value of ctx.session is a text of 1 to {MAX_KEY_CHARS} characters"
        )
    return key


def _check_room(key: str, values: Values, most: int | None, size: int | None) -> None:
    """See that values are not more than one caller may have.

    Raises:
        ToolError: they are.
    """
    total = sum(
        len(name.encode("utf-8", "surrogatepass")) + len(value) for name, value in values.items()
    )
    if most is not None and len(values) > most:
        raise ToolError(
            f"Session state: {key!r} would be value {len(values)} of {most} (Limits.session_values)"
        )
    if size is not None and total > size:
        raise ToolError(
            f"Session state: with {key!r} it would be {total} bytes, of {size} (Limits.session_size)"
        )


def _read_value(key: str, written: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(written) if kind is Any else _make_reader(kind)(written)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"ctx.session.get({key!r}): what was set does not fit {kind!r}: {error}; read it with its former "
            "type, or set it again"
        ) from error


@lru_cache(maxsize=256)
def _make_reader(kind: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(make_expressible(kind), dec_hook=decode_custom).decode


async def _bind_session(inbound: "Inbound") -> None:
    """Write down that a session has state: it goes when the session is deleted.

    A session that nodes do not share has ended when its memory is given back, instead of going on without it.
    """
    await inbound.remember(_note_state)


def _note_state(record: SessionRecord) -> SessionRecord:
    return structs.replace(record, has_state=True)


def _is_shared_session(inbound: "Inbound") -> bool:
    """Whether any node may serve the session: a stream of HTTP+SSE, as a connection, ends at one."""
    return inbound.origin.session is not None and inbound.origin.transport == "http"


def _digest_parts(*parts: str | None) -> str:
    """Names as a part of a key, where they need not stand in plain text."""
    return sha256(msgspec.msgpack.encode(parts)).hexdigest()[:32]


def _make_anonymous_refusal(inbound: "Inbound") -> Refuse:
    return Refuse(
        UNAUTHENTICATED_CODE,
        f"{inbound.method} of this keeps state for its caller (ctx.session), and cannot tell who that is: "
        f"revision {inbound.caller.revision.name} over {inbound.origin.transport} has no session here, and nobody "
        "has authenticated. Mend it by Server(auth=…), by stdio, or by a client that opens a session (up to "
        "2025-11-25); or give out an id that the model passes back as an argument",
    )
