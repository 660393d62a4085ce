"""Sealed state of a call that asks: its journal in ``requestState``, and what is kept in a store.

What a client carries from round to round stays short where the server has a store
(``Server(state_store=…)``): steps beyond :data:`MAX_CARRIED_BYTES` are sealed into a segment, and the
token holds the segment's id. A segment is never changed, so that a state may be answered twice, or
sent again, as any other state may; it opens for its own call and principal only, and is gone when
its time is over.
"""

import os
import time
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.journal import (
    NO_STEPS,
    UNUSABLE_STATE,
    Journal,
    JournalSegment,
    JournalTooLarge,
    Unsealed,
    digest_binding,
    seal,
    seal_steps,
    unseal,
    unseal_steps,
)
from isthmus.core.principal import owner_of
from isthmus.core.text import show_invisible
from isthmus.errors import IsthmusError, Refuse
from isthmus.runtime.inbound import Inbound
from isthmus.server.settings import SharedSettings
from isthmus.store.kv import KV, StoreFull
from isthmus.wire.jsonrpc import encode, shorten

MAX_CARRIED_BYTES = 24 * 1024  # of steps in a token where there is a store: 32 KiB in base64url

SEGMENT_LIVES = 2  # a segment is kept for so many times as long as the token that names it
USE_PERIODS = 32  # into which that time is divided, when what a caller has kept is counted
MAX_COUNT_ATTEMPTS = 16  # while others count as well

EMPTY_JOURNAL = Journal()


class StateNotKept(IsthmusError):
    """A store did not take what was to be kept; the message says which limit it would break."""


class CallState:
    """The state of one call that may ask: opened when it comes, sealed when it asks again.

    Args:
        inbound: the call.
        params: its parameters.
        target: the tool's or prompt's name, or the resource's URI.
        settings: those of the server.

    Attributes:
        journal: what the rounds before left.
        kept: the steps of it that lie in the store.
    """

    __slots__ = ("_bound", "_inbound", "_params", "_parts", "_settings", "_target", "journal", "kept")  # fmt: skip

    def __init__(
        self, inbound: Inbound, params: Any, target: str, settings: SharedSettings
    ) -> None:
        self.journal = EMPTY_JOURNAL
        self.kept = NO_STEPS
        self._parts: list[dict[bytes, bytes]] = []
        self._inbound = inbound
        self._params = params
        self._target = target
        self._settings = settings
        self._bound = b""

    async def open(self, token: str) -> None:
        """Open the ``requestState`` that came back with the call.

        Raises:
            Refuse: it is not to be trusted, or what it names is not in the store any more.
        """
        keys, most = self._settings.journal_keys, self._settings.limits.request_state
        try:
            self.journal = unseal(token, keys, time.time(), self._bind(), max_chars=most)
            if self.journal.segments:
                await self._load_segments()
        except Unsealed as error:
            self._warn("refused", error)
            # One answer for every reason, so that it tells an attacker nothing.
            raise Refuse(-32602, UNUSABLE_STATE) from error

    async def seal(self, journal: Journal) -> str:
        """Seal a journal into the ``requestState`` that the client hands back.

        Args:
            journal: what this round leaves beside what is kept.

        Raises:
            Refuse: it is too large for a token, and is not kept in a store.
        """
        settings, why = self._settings, "or have it kept (Server(state_store=…))"
        expires_at, store = time.time() + settings.state_ttl, settings.state_store
        if store is not None:
            try:
                journal = await self._keep_steps(journal, store)
            except StateNotKept as error:
                why = f"for it cannot be kept here: {error}"
                journal = structs.replace(journal, segments=self.journal.segments)
            # A token must not open when what it names is gone.
            expires_at = min([expires_at, *(segment.until for segment in journal.segments)])
        most, nonce = settings.limits.request_state, os.urandom(12)
        try:
            return seal(
                journal, settings.journal_keys, nonce, expires_at, self._bind(), max_chars=most
            )
        except JournalTooLarge as error:
            text = f"{error}: {_describe_largest(journal)}. Ask for less, or keep large data elsewhere, {why}"
            self._warn("too large", text)
            raise Refuse(-32603, f"Internal error: {text}") from error

    async def _load_segments(self) -> None:
        """Load what is kept for the journal.

        Raises:
            Unsealed: something is not there, or not what was put there.
        """
        store = self._settings.state_store
        if store is None:
            raise Unsealed("a store keeps its answers, and here is none (Server(state_store=…))")
        kept: dict[bytes, bytes] = {}
        for segment in self.journal.segments:
            entry = await store.get(_make_key(self._owner, segment.id))
            if entry is None:
                raise Unsealed("its answers are no longer in the store")
            keys = self._settings.journal_keys
            part = unseal_steps(entry.value, segment.id, keys, self._bind())
            self._parts.append(part)
            kept |= part
        self.kept = kept

    async def _keep_steps(self, journal: Journal, store: KV) -> Journal:
        """Keep the steps of a journal where they are too large to be carried.

        What was kept long ago is kept anew together with them, so that it outlives the next token.

        Raises:
            StateNotKept: the store has no room for them, or for more of this caller.
        """
        ends_at = time.time() + self._settings.state_ttl
        segments: list[JournalSegment] = []
        steps: dict[bytes, bytes] = {}
        for segment, part in zip(self.journal.segments, self._parts, strict=True):
            if segment.until < ends_at:
                steps |= part
            else:
                segments.append(segment)
        carried = journal.steps
        if sum(map(len, carried.values())) > MAX_CARRIED_BYTES:
            steps |= carried
            carried = {}
        if steps:
            size = sum(segment.size for segment in segments)
            segments.append(await self._keep_segment(steps, size, store))
        return structs.replace(journal, steps=carried, segments=segments)

    async def _keep_segment(
        self, steps: dict[bytes, bytes], beside: int, store: KV
    ) -> JournalSegment:
        """Put steps into the store, as a segment of their own.

        Args:
            steps: the steps.
            beside: the bytes of the call's other segments.
            store: where.

        Raises:
            StateNotKept: there is no room: in the call, for its caller, or in the store.
        """
        settings, id = self._settings, os.urandom(16)
        value = seal_steps(steps, id, settings.journal_keys, os.urandom(12), self._bind())
        size, most = beside + len(value), settings.limits.stored_state
        if most is not None and size > most:
            raise StateNotKept(f"{size} bytes for one call, of {most} (Limits.stored_state)")
        life = SEGMENT_LIVES * settings.state_ttl
        until = time.time() + life
        try:
            if settings.limits.stored_state_each is not None:
                await _count_use(
                    store, self._owner, len(value), life, settings.limits.stored_state_each
                )
            await store.put(_make_key(self._owner, id), value, life)
        except StoreFull as error:
            raise StateNotKept(str(error)) from error
        return JournalSegment(id, until, len(value))

    def _warn(self, kind: str, text: object) -> None:
        """Write what is wrong with a state, once a minute for each owner: anybody can send any number."""
        owner = self._owner
        who = "callers without a login" if owner is None else show_line(owner)
        method, target = self._inbound.method, show_line(self._target)
        self._settings.state_warnings.warn(
            (kind, owner), f"requestState {kind}, of {who}", "%s of %s: %s", method, target, text
        )

    @property
    def _owner(self) -> str | None:
        return owner_of(self._inbound.principal)

    def _bind(self) -> bytes:
        """Bind the state to this call, with these arguments, by this principal."""
        if not self._bound:
            arguments = getattr(self._params, "arguments", UNSET)
            if arguments is UNSET:
                raw = None
            else:
                raw = arguments if isinstance(arguments, Raw) else encode(arguments)
            self._bound = digest_binding(self._inbound.method, self._target, raw, self._owner)
        return self._bound


async def _count_use(store: KV, owner: str | None, size: int, life: float, most: int) -> None:
    """Count bytes that are kept for a caller for a time; those whose time is over count no more.

    Raises:
        StateNotKept: they would be too many, or too many count at once.
        StoreFull: there is no room for the count.
    """
    key, period = f"state-use/{_name_owner(owner)}", max(life / USE_PERIODS, 1.0)
    for _ in range(MAX_COUNT_ATTEMPTS):
        entry, now = await store.get(key), time.time()
        used = {} if entry is None else _decode_use(entry.value)
        used = {end: count for end, count in used.items() if end * period > now}
        total = sum(used.values()) + size
        if total > most:
            raise StateNotKept(
                f"{total} bytes for one caller, of {most} (Limits.stored_state_each)"
            )
        end = int((now + life) / period) + 1
        used[end] = used.get(end, 0) + size
        version = 0 if entry is None else entry.version
        if await store.cas(key, msgspec.msgpack.encode(used), version, life + period) is not None:
            return
    raise StateNotKept("too many calls of one caller ask for it at the same moment")


_decode_use = msgspec.msgpack.Decoder(dict[int, int]).decode


def show_line(text: str) -> str:
    """A text that a caller has chosen, as it stands in one line of a log."""
    return show_invisible(shorten(text), line=True)


def _make_key(owner: str | None, id: bytes) -> str:
    return f"state/{_name_owner(owner)}/{id.hex()}"


def _name_owner(owner: str | None) -> str:
    """To whom a state belongs, as a part of a key; all that nobody owns is one owner's."""
    return "-" if owner is None else sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()


def _describe_largest(journal: Journal) -> str:
    """Say which step of a journal is the largest: its kind, its place among these, its size."""
    steps = journal.steps
    if not steps:
        return "most of it is what the function returned as its request_state"
    largest = max(steps, key=lambda digest: len(steps[digest]))
    alike = [digest for digest in steps if digest[:1] == largest[:1]]
    what = "the answer to question" if largest[:1] == b"?" else "the result of ctx.once"
    place = f"{alike.index(largest) + 1} of {len(alike)}"
    return f"the largest is {what} {place}, with {len(steps[largest])} bytes"
