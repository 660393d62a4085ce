"""Accounts of a host: whose account is shown to which server, their states, and links to connect them."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.core.encoding import decode_base64url, encode_base64url
from isthmus.core.sealing import NONCE_BYTES, SealBroken, decrypt, encrypt
from isthmus.errors import UsageError
from isthmus.host.accounts.ownership import (
    IMPLICIT_KIND,
    LOCAL_PRINCIPAL,
    NAMED_KINDS,
    PERSONAL_KINDS,
    find_kind,
    has_own_accounts,
    name_connection,
    read_owner,
)
from isthmus.host.accounts.vault import AccountState, AccountVault
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import Unknown

if TYPE_CHECKING:
    from isthmus.auth.client.grants.login import UserLogin
    from isthmus.auth.client.store.records import Tokens
    from isthmus.auth.tokens.secret import Secret
    from isthmus.host.accounts.personal import AccountLogin
    from isthmus.host.accounts.web_login import WebLogin

LINK_KIND = b"\x43"
LINK_BINDING = b"account link"
LINK_LIFE_S = 900.0
CLIENT_NAME = "isthmus gateway"


class AccountStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an account, for people: nothing in it is secret.

    Attributes:
        server: the server's name.
        kind: how its credentials are made.
        state: ``connected``, ``expired``, ``refused`` or ``missing``.
        resource: what the tokens are for.
        issuer: who issued them.
        scopes: what they allow.
        since: when it was connected, in seconds since the epoch; None where it is not.
        expires_at: when the tokens end that are not renewed by themselves, or None.
        by_person: whether a person connects it, on a page.
    """

    server: str
    kind: str
    state: AccountState
    resource: str = ""
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    since: float | None = None
    expires_at: float | None = None
    by_person: bool = True


class AccountLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link to a page about accounts, for one principal.

    Attributes:
        principal: for whom it is.
        server: which account is to be connected; empty for a list of all.
        scopes: what the server has asked for.
        expires_at: seconds since the epoch.
        nonce: marks it as used.
    """

    principal: str
    server: str
    scopes: tuple[str, ...]
    expires_at: float
    nonce: str


class Accounts:
    """The accounts of a host: one for each principal at each server that wants one.

    Args:
        vault: keeps them.
        entries: gives the servers by name.
        drop: ends the connections of a principal at a server, whose account is another one now.

    Attributes:
        vault: see above.
        public_url: where the pages stand; empty where there are none.
        has_guests: somebody else than the user of the host has called.
    """

    def __init__(
        self,
        vault: AccountVault,
        entries: Callable[[], Mapping[str, ServerEntry]],
        drop: Callable[[str, str], None] = lambda _server, _principal: None,
    ) -> None:
        self.vault = vault
        self.public_url = ""
        self._entries = entries
        self._drop = drop
        self.has_guests = False
        self._wanting: set[str] = set()
        self._metadata: dict[str, str] = {}
        self._good: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}

    # Whose account is shown

    def is_personal(self, entry: ServerEntry, principal: str) -> bool:
        """Whether a principal has a connection of their own to a server, for the account it shows.

        From the first call of somebody else on, the login of the user of the host is shown for nobody
        but them.
        """
        if not has_own_accounts(principal):
            return self.has_guests and principal == LOCAL_PRINCIPAL and self._wants_login(entry)
        self.has_guests = True
        kind = find_kind(entry)
        if kind is None or (entry.options.instance == "shared" and kind not in NAMED_KINDS):
            return kind is not None and kind == IMPLICIT_KIND and entry.name in self._wanting
        return kind in PERSONAL_KINDS or self._wants_login(entry)

    def has_personal(self, entry: ServerEntry) -> bool:
        """Whether a server shows each principal what belongs to an account of theirs."""
        return find_kind(entry) in PERSONAL_KINDS or self._wants_login(entry)

    @property
    def wanting_count(self) -> int:
        """The number of servers that were found to want a login; it only grows."""
        return len(self._wanting)

    def _wants_login(self, entry: ServerEntry) -> bool:
        """Whether a server about whose credentials nothing is configured wants some."""
        if find_kind(entry) != IMPLICIT_KIND:
            return False
        return entry.name in self._wanting or entry.options.instance == "per-user"

    def find_isolation(self, entry: ServerEntry, principal: str, key: str) -> str:
        """The isolation key of the connection that a principal uses at a server.

        Args:
            entry: the server.
            principal: who uses it.
            key: which of several it would be, if accounts did not matter.
        """
        return name_connection(principal, key) if self.is_personal(entry, principal) else key

    def is_noted(self, entry: ServerEntry, isolation: str) -> bool:
        """Whether the state of the account is kept that a connection shows."""
        kind = find_kind(entry)
        return kind in NAMED_KINDS or (kind is not None and has_own_accounts(read_owner(isolation)))

    def make_login(self, entry: ServerEntry, isolation: str) -> "AccountLogin":
        """The login that a connection shows."""
        from isthmus.auth.client.grants.oauth import StoredLogin  # authorization is for few servers
        from isthmus.host.accounts.personal import AccountLogin

        owner = read_owner(isolation)
        local = owner == LOCAL_PRINCIPAL
        implicit = find_kind(entry) == IMPLICIT_KIND
        own = isolation.partition(" ")[0] == owner

        def is_shown() -> bool:
            return own or not implicit or not self.has_guests

        return AccountLogin(
            entry.name,
            owner,
            self.vault,
            self._make_user_login(entry, owner),
            shown=is_shown,
            wanted=lambda metadata: self._note_wanting(entry.name, metadata),
            stored=StoredLogin(entry.url) if local else None,
            asks=lambda: not local or bool(self.public_url),
        )

    def _note_wanting(self, server: str, metadata: str | None) -> None:
        self._wanting.add(server)
        if metadata is not None:
            self._metadata[server] = metadata

    def _make_user_login(self, entry: ServerEntry, principal: str) -> "UserLogin":
        from isthmus.auth.client.grants.login import UserLogin
        from isthmus.auth.client.registration import ClientProfile, StaticClient
        from isthmus.host.accounts.web_login import WebRedirect

        auth = entry.options.auth
        issuer, id = auth.get("issuer"), auth.get("clientId")
        clients = {}
        if issuer and id:
            clients = {str(issuer): StaticClient(str(id), secret=auth.get("clientSecret") or None)}
        scopes = auth.get("scopes")
        return UserLogin(
            ClientProfile(
                name=str(auth.get("clientName", CLIENT_NAME)),
                metadata_url=auth.get("clientMetadataUrl"),
                clients=clients,
            ),
            authorization_server=issuer,
            scopes=None if scopes is None else frozenset(map(str, scopes)),
            redirect=WebRedirect(f"{self.public_url or 'http://127.0.0.1'}/connect/back"),
            store=self.vault.of(principal),
            account=principal,
        )

    def make_web_login(self, server: str, principal: str) -> "WebLogin":
        """The login of a principal at a server, by way of their browser.

        Raises:
            Unknown: there is no such server.
            UsageError: nobody logs in there.
        """
        from isthmus.host.accounts.web_login import WebLogin

        entry = self._find_entry(server)
        if find_kind(entry) not in {IMPLICIT_KIND, "user-oauth"}:
            raise UsageError(f"users cannot log in to {server}: it has other credentials")
        return WebLogin(server, entry.url, principal, self._make_user_login(entry, principal))

    def find_metadata(self, server: str) -> str | None:
        """Where a server has said that its metadata stand."""
        return self._metadata.get(server)

    # States

    async def list(self, principal: str) -> list[AccountStatus]:
        """The accounts of a principal: one for each server that shows any."""
        found = []
        for name, entry in sorted(self._entries().items()):
            if self._has_account(entry, principal):
                found.append(await self.state(principal, name))
        return found

    def _has_account(self, entry: ServerEntry, principal: str) -> bool:
        kind = find_kind(entry)
        if kind == IMPLICIT_KIND:
            return self._wants_login(entry)
        shared = entry.options.instance == "shared"
        return kind in PERSONAL_KINDS and not (shared and principal != LOCAL_PRINCIPAL)

    async def state(self, principal: str, server: str) -> AccountStatus:
        """The state of an account.

        Raises:
            Unknown: there is no such server.
        """
        entry = self._find_entry(server)
        kind = find_kind(entry) or "user-oauth"
        note = await self.vault.read_note(principal, server)
        if kind in {"token-exchange", "id-jag"}:
            good = (server, principal) in self._good
            state: AccountState = "connected" if good else "missing"
            return AccountStatus(
                server=server,
                kind=kind,
                state=state if note is None else note.state,
                resource=entry.url,
                issuer=str(entry.options.auth.get("issuer", "")),
                by_person=False,
            )
        kept = await self._find_tokens(entry, principal)
        if kept is None:
            state = "missing" if note is None else note.state
            return AccountStatus(server=server, kind=kind, state=state, resource=entry.url)
        since, tokens = kept
        ends = tokens.expires_at if tokens.refresh is None else None
        state = "connected"
        if note is not None:
            state = note.state
        elif ends is not None and ends <= self.vault.clock():
            state = "expired"
        return AccountStatus(
            server=server,
            kind=kind,
            state=state,
            resource=tokens.resource,
            issuer="" if kind == "pasted-key" else tokens.issuer,
            scopes=tuple(sorted(tokens.scopes)),
            since=since,
            expires_at=ends,
        )

    async def _find_tokens(
        self, entry: ServerEntry, principal: str
    ) -> "tuple[float, Tokens] | None":
        from isthmus.auth.net.urls import is_same_resource

        for since, tokens in await self.vault.of(principal).list_tokens():
            if tokens.client_id == entry.name or is_same_resource(
                tokens.server or tokens.resource, entry.url
            ):
                return since, tokens
        return None

    async def note_ready(self, server: str, isolation: str) -> None:
        """Note that a server has let somebody in: what was wrong with their account is over."""
        owner = read_owner(isolation)
        self._good.add((server, owner))
        await self.vault.clear_note(owner, server)

    async def note_refused(self, server: str, isolation: str) -> None:
        """Note that an issuer gives no token for somebody."""
        owner = read_owner(isolation)
        self._good.discard((server, owner))
        await self.vault.note(owner, server, "refused")

    # Changes

    async def forget(self, principal: str, server: str) -> bool:
        """Forget an account: revoke its tokens where the issuer takes that, and keep none.

        Returns:
            Whether there was one.

        Raises:
            Unknown: there is no such server.
        """
        from isthmus.auth.client.grants.oauth import revoke_tokens

        entry, vault = self._find_entry(server), self.vault.of(principal)
        login = self._make_user_login(entry, principal)
        found = False
        while (kept := await self._find_tokens(entry, principal)) is not None:
            _, tokens = kept
            async with vault.lock(tokens.key):
                await vault.delete(tokens.key)
            if tokens.token_endpoint:
                with suppress(OSError):
                    await revoke_tokens(login, tokens)
            found = True
        await self.vault.clear_note(principal, server)
        self._good.discard((server, principal))
        self._drop(server, principal)
        return found

    async def put_key(self, principal: str, server: str, key: "Secret") -> None:
        """Keep a key that its owner has pasted.

        Raises:
            Unknown: there is no such server.
            UsageError: it takes no pasted key, or this can be none.
        """
        from isthmus.auth.client.store.records import Tokens
        from isthmus.auth.client.token_request import is_header_safe
        from isthmus.host.accounts.personal import PASTED_ISSUER

        entry = self._find_entry(server)
        if find_kind(entry) != "pasted-key":
            raise UsageError(f"{server} takes no pasted key")
        if not is_header_safe(key.reveal()):
            raise UsageError("this is not a key: it is empty, or has spaces or invalid characters")
        tokens = Tokens(
            access=key,
            issuer=PASTED_ISSUER,
            client_id=server,
            resource=entry.url,
            issued_at=self.vault.clock(),
            account=principal,
        )
        await self.vault.of(principal).put(tokens.key, tokens)
        await self.note_connected(principal, server)

    async def note_connected(self, principal: str, server: str) -> None:
        """An account was connected: whoever waits for that goes on, by a new connection."""
        await self.vault.clear_note(principal, server)
        self._wanting.add(server)
        self._drop(server, principal)
        for event in self._waiting.get((principal, server), ()):
            event.set()

    @asynccontextmanager
    async def wait_for_connection(
        self, principal: str, server: str
    ) -> AsyncIterator[asyncio.Event]:
        """While the block runs: an event that is set once the account is connected in this process."""
        event, key = asyncio.Event(), (principal, server)
        self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            waiting = self._waiting[key]
            waiting.discard(event)
            if not waiting:
                del self._waiting[key]

    # Links

    def connect(self, principal: str, server: str, scopes: frozenset[str] = frozenset()) -> str:
        """The URL of the page on which a principal connects an account; good once, and for a while.

        Args:
            principal: who; nobody else can use it.
            server: where.
            scopes: what the server has asked for.

        Raises:
            Unknown: there is no such server.
            UsageError: the host has no pages.
        """
        self._find_entry(server)
        return f"{self.public_url}/connect?handle={self.seal_link(principal, server, scopes)}"

    def seal_link(
        self, principal: str, server: str = "", scopes: frozenset[str] = frozenset()
    ) -> str:
        """Seal who a link is for.

        Raises:
            UsageError: the host has no pages.
        """
        if not self.public_url:
            raise UsageError("this host has no pages to connect accounts")
        link = AccountLink(
            principal=principal,
            server=server,
            scopes=tuple(sorted(scopes)[:50]),
            expires_at=self.vault.clock() + LINK_LIFE_S,
            nonce=secrets.token_urlsafe(16),
        )
        keys = self.vault.storage.list_keys()
        body = msgspec.msgpack.encode(link)
        sealed = encrypt(LINK_KIND, body, keys, os.urandom(NONCE_BYTES), LINK_BINDING)
        return encode_base64url(sealed)

    def open_link(self, handle: str) -> AccountLink | None:
        """Whom a link is for; None where it is none of ours, or over."""
        try:
            keys = self.vault.storage.list_keys()
            body = decrypt(LINK_KIND, decode_base64url(handle) or b"", keys, LINK_BINDING)
            link = msgspec.msgpack.decode(body, type=AccountLink)
        except (SealBroken, ValueError):
            return None
        return link if link.expires_at > self.vault.clock() else None

    def find_kind(self, server: str) -> str:
        """The kind of a server's credentials.

        Raises:
            Unknown: there is no such server.
        """
        return find_kind(self._find_entry(server)) or "user-oauth"

    def find_url(self, server: str) -> str:
        """The URL of a server.

        Raises:
            Unknown: there is no such server.
        """
        return self._find_entry(server).url

    def _find_entry(self, server: str) -> ServerEntry:
        entry = self._entries().get(server)
        if entry is None:
            raise Unknown(f"there is no server {server!r}")
        return entry

    async def close(self) -> None:
        """Let go of what keeps accounts."""
        close: Any = getattr(self.vault.storage, "close", None)
        if close is not None:
            await close()
