"""User grant: tokens by the authorization code flow, and then by refresh tokens.

A server is discovered, the client registered, the user asked, the code exchanged; each step is made
where the one before is not kept.
"""

import asyncio

import msgspec

from isthmus.auth.client.discovery import Discovery, DiscoveryResult, ServerMetadata
from isthmus.auth.client.grants.authorization_code import AuthorizationRequest
from isthmus.auth.client.grants.login import ScopeRequest, UserLogin
from isthmus.auth.client.redirect import AuthorizationParams, LoginTimeout, visit_in_browser
from isthmus.auth.client.registration import Registrar
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Registration, Tokens
from isthmus.auth.client.token_request import (
    DpopProofs,
    TokenResponse,
    check_token_type,
    make_tokens,
    request_token,
)
from isthmus.auth.net.urls import is_same_issuer, is_same_resource
from isthmus.auth.protocol import ClientIdentity, quote_foreign
from isthmus.errors import (
    AuthRefused,
    AuthUnsafe,
    IssuerChanged,
    ScopeShortfall,
    UsageError,
)

# Errors of RFC 6749 5.2 after which renewing leads nowhere. Only the first is about the token.
FINAL_ERRORS = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type"}
)

# Refusals of RFC 6749 5.2 that some servers send without its JSON. Any other status without it,
# such as 403 and 404, may be the page of a proxy, and says nothing about the login.
UNEXPLAINED_STATUSES = frozenset({400, 401})

CLOSE_TIMEOUT_S = 3.0  # seconds that a renewal has to come to its end once nobody wants it any more

# Seconds that tokens of another program's have to be good for, so that they are taken.
REFRESH_SKEW_S = 1.0


class UserGrant:
    """The way to tokens for one MCP server, with its user.

    Args:
        url: the MCP server.
        login: what the application has said.
        proofs: binds tokens to a key, where they are to be bound.
    """

    asks_user = True

    def __init__(self, url: str, login: UserLogin, proofs: DpopProofs) -> None:
        self._url = url
        self._login = login
        self._network = network = login.make_network(url)
        self._proofs = proofs
        self._registrar = Registrar(login.profile, login.redirect, login.store, network, login.now)
        self._discovery = Discovery(
            url,
            network,
            authorization_server=login.authorization_server,
            known=lambda issuer: login.profile.find_identity(issuer) is not None,
            compat=login.compat,
        )
        self._last: Tokens | None = None  # whose issuer the next ones are held against
        self._renewal: asyncio.Task[Tokens | None] | None = None
        self._server: ServerMetadata | None = None  # where to renew, as last discovered
        self._unkept: Tokens | None = None  # newer than what the store has, which took them not

    # Without the user

    async def load(self) -> Tokens | None:
        """The newest tokens that were kept for this server, and not for others above or below it."""
        # spec 2026-07-28 basic/authorization#token-handling: "MUST NOT send tokens to the MCP
        # server other than ones issued by the MCP server's authorization server", for the server
        store = self._login.store
        keys = [
            key
            for key in reversed(await store.keys())
            if key.account == self._login.account and is_same_resource(key.resource, self._url)
        ]
        for key in sorted(keys, key=lambda one: -len(one.resource)):
            record = await store.get(key)
            if isinstance(record, Tokens) and self._is_expected(record.issuer):
                if record.server:
                    self._discovery.accept_parent(record.resource)
                self._last = record
                return record
        return None

    def _is_expected(self, issuer: str) -> bool:
        named = self._login.authorization_server
        return named is None or is_same_issuer(named, issuer)

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Newer tokens for the refresh token; None where it leads nowhere."""
        if tokens.refresh is None or not tokens.token_endpoint:
            return None
        if want.challenged and self._login.authorization_server is None:
            # spec 2026-07-28 basic/authorization/client-registration#authorization-server-binding:
            # the server may name another authorization server by now
            discovered = await self._discovery.find(want.metadata, prefer=tokens.issuer)
            if discovered.server.issuer != tokens.issuer:
                return None
            self._server = discovered.server
        self._login.report("refreshing", self._url)
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew(tokens))
            self._renewal.add_done_callback(self._end_renewal)
        # Whoever gives up waiting does not end it: the server may have taken the refresh token,
        # and what it answers is the only one that is good from then on.
        try:
            return await asyncio.shield(self._renewal)
        except AuthRefused as error:
            if not want.challenged or error.error or error.status not in UNEXPLAINED_STATUSES:
                raise
            return None

    def _end_renewal(self, renewal: asyncio.Task[Tokens | None]) -> None:
        self._renewal = None
        if not renewal.cancelled():
            renewal.exception()  # seen, though nobody may be left who waits for it

    async def _renew(self, tokens: Tokens) -> Tokens | None:
        async with self._login.store.lock(tokens.key):
            kept = self._unkept or await self._login.store.get(tokens.key)
            if (
                isinstance(kept, Tokens)
                and kept.access != tokens.access
                and not self._is_over(kept)
            ):
                return kept  # another program has been here
            # what is there no more was logged out of
            return await self._refresh(kept) if isinstance(kept, Tokens) else None

    async def _refresh(self, tokens: Tokens) -> Tokens | None:
        identity, refresh = await self._registrar.find_identity(tokens), tokens.refresh
        if identity is None or refresh is None:
            return None
        self._proofs.load(tokens)
        if self._server is not None and self._server.issuer == tokens.issuer:
            server = self._server  # its endpoint may have moved since the login
            tokens = msgspec.structs.replace(
                tokens,
                token_endpoint=server.token_endpoint or tokens.token_endpoint,
                methods=server.methods,
            )
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh.reveal(),
            "resource": tokens.resource,
        }
        try:
            granted = await request_token(
                self._network,
                tokens.token_endpoint,
                form,
                identity,
                issuer=tokens.issuer,
                methods=tokens.methods,
                proofs=self._proofs,
            )
        except AuthRefused as error:
            if error.error not in FINAL_ERRORS:
                raise
            if error.error == "invalid_grant":
                self._unkept = None
                await self._login.store.delete(tokens.key)
            elif error.error == "invalid_client":
                await self._registrar.doubt(tokens.issuer, tokens.client_id)
            return None
        check_token_type(granted, tokens.issuer, self._proofs)
        if self._login.dpop == "require":
            check_bound(granted, tokens.issuer)
        now = self._login.now()
        newer = msgspec.structs.replace(
            tokens,
            access=granted.access,
            kind=granted.kind,
            # spec 2026-07-28 basic/authorization#refresh-tokens: the server may keep the old one
            refresh=granted.refresh or refresh,
            issued_at=now,
            expires_at=None if granted.expires_in is None else now + granted.expires_in,
            scopes=tokens.scopes if granted.scopes is None else granted.scopes,
        )
        await self._store_tokens(newer)
        self._login.report("ready", self._url)
        return newer

    async def _store_tokens(self, newer: Tokens) -> None:
        """Keep tokens whose forerunners are good no more; here, where the store cannot."""
        self._unkept = newer
        try:
            await self._login.store.put(newer.key, newer)
        except Exception as error:  # noqa: BLE001 - stores are anybody's, and the tokens are good
            import logging  # not needed until something fails

            logging.getLogger("isthmus").warning(
                "the new tokens for %s last until this program ends, and then its user has to log "
                "in again: they could not be kept: %s",
                self._url,
                error,
            )
        else:
            self._unkept = None

    def _is_over(self, tokens: Tokens) -> bool:
        end = tokens.expires_at
        return end is not None and self._login.now() + REFRESH_SKEW_S >= end

    # With the user

    async def obtain(self, want: TokenDemand) -> Tokens:
        """New tokens, after the user has logged in, and keep them."""
        return await self._obtain(want, again=True)

    async def _obtain(self, want: TokenDemand, *, again: bool) -> Tokens:
        self._login.report("discovering", self._url)
        before = want.before or self._last
        discovered = await self._discovery.find(
            want.metadata, prefer=before.issuer if before else None
        )
        issuer, same = discovered.server.issuer, self._keep_issuer(discovered, before)
        kept = await self._registrar.load(issuer)
        try:
            tokens = await self._log_in(discovered, want, same, kept)
        except AuthRefused as error:
            # what the server has forgotten is registered anew, once
            if not again or error.error != "invalid_client" or kept is None:
                raise
        except LoginTimeout:
            # It may have shown the user a page that says it does not know the client.
            if kept is not None:
                await self._registrar.doubt(issuer, kept.client_id)
            raise
        else:
            if before is not None and same is None:
                # only now: what named another server may have been somebody else's answer
                await self._login.store.delete(before.key)
            return tokens
        await self._registrar.doubt(issuer, kept.client_id)
        return await self._obtain(want, again=False)

    def _keep_issuer(self, discovered: DiscoveryResult, before: Tokens | None) -> Tokens | None:
        """The tokens granted before, where they are of the same authorization server.

        Raises:
            IssuerChanged: the client was registered by hand with the one before.
        """
        if before is None or before.issuer == discovered.server.issuer:
            return before
        # spec 2026-07-28 basic/authorization/client-registration#authorization-server-binding
        program, issuer = self._login.profile, discovered.server.issuer
        if (
            program.find_identity(before.issuer) is not None
            and program.find_identity(issuer) is None
        ):
            raise IssuerChanged(
                f"{self._url} now names {quote_foreign(issuer)} as its authorization server, and this "
                f"client is registered with {quote_foreign(before.issuer)}: if that is right, register it "
                "there and add it to OAuth(clients=…)",
                before.issuer,
                issuer,
            )
        return None

    async def _log_in(
        self,
        discovered: DiscoveryResult,
        want: TokenDemand,
        before: Tokens | None,
        kept: Registration | None,
    ) -> Tokens:
        self._discovery.check_pkce(discovered)
        scopes = await self._choose_scopes(discovered, want, before)
        self._choose_key(discovered)
        landing = await self._login.redirect.open(kept.redirect_uri if kept else None)
        try:
            self._login.report("registering", self._url)
            identity = await self._registrar.identity(discovered, landing.uri, kept)
            login = AuthorizationRequest(
                discovered=discovered,
                identity=identity,
                redirect_uri=landing.uri,
                scopes=scopes,
                proof_key=None if self._proofs.key is None else self._proofs.key.jkt,
            )
            url = login.url()
            self._login.report("authorizing", self._url, url)
            params = await landing.visit(url, login.state, self._open_page)
        finally:
            await landing.close()
        return await self._exchange(login, identity, params)

    async def _open_page(self, url: str) -> None:
        await visit_in_browser(self._login.open_browser, url)

    async def _exchange(
        self, login: AuthorizationRequest, identity: ClientIdentity, params: AuthorizationParams
    ) -> Tokens:
        """Tokens for what the user came back with, kept."""
        code, discovered = login.code(params), login.discovered
        self._login.report("exchanging", self._url)
        granted = await request_token(
            self._network,
            discovered.server.token_endpoint,
            login.form(code),
            identity,
            issuer=discovered.server.issuer,
            methods=discovered.server.methods,
            proofs=self._proofs,
        )
        tokens = make_tokens(
            granted,
            discovered=discovered,
            client_id=identity.client_id,
            asked=login.scopes,
            proofs=self._proofs,
            now=self._login.now(),
            account=self._login.account,
        )
        if self._must_bind(discovered):
            check_bound(granted, tokens.issuer)
        self._last, self._unkept = tokens, None
        await self._login.store.put(tokens.key, tokens)
        self._login.report("ready", self._url)
        return tokens

    async def _choose_scopes(
        self, discovered: DiscoveryResult, want: TokenDemand, before: Tokens | None
    ) -> frozenset[str]:
        """The scopes that the user is asked for; none leaves them to the authorization server."""
        # spec 2026-07-28 basic/authorization#scope-selection-strategy: the challenge's, or else
        # what the resource lists, or else none
        first = self._login.scopes
        wanted = want.scopes
        if wanted is None:
            wanted = first if first is not None else (discovered.scopes or frozenset())
        scopes = wanted | (first or frozenset())
        granted = frozenset[str]()
        if before is not None:
            # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
            granted = before.scopes
            scopes |= before.asked | granted
        # spec 2026-07-28 basic/authorization#refresh-tokens: only where the server lists it
        if scopes and "offline_access" in (discovered.server.scopes_supported or ()):
            scopes |= {"offline_access"}
        return await self._ask_approval(discovered, scopes, granted, want)

    async def _ask_approval(
        self,
        discovered: DiscoveryResult,
        scopes: frozenset[str],
        granted: frozenset[str],
        want: TokenDemand,
    ) -> frozenset[str]:
        approved = await self._login.approve_scopes(
            ScopeRequest(
                url=self._url,
                issuer=discovered.server.issuer,
                scopes=scopes,
                granted=granted,
                operation=want.operation if want.more else "",
            )
        )
        missing = (want.scopes or frozenset()) - approved
        if missing or (scopes and not approved):
            raise ScopeShortfall(
                f"this program does not ask its user for {', '.join(sorted(missing or scopes))}, "
                f"which {self._url} wants: approve_scopes= refused it",
                missing or scopes,
            )
        return approved

    def _must_bind(self, discovered: DiscoveryResult) -> bool:
        return self._login.dpop == "require" or discovered.bound

    def _choose_key(self, discovered: DiscoveryResult) -> None:
        """Have a key for tokens to be bound to, where they are to be.

        Raises:
            AuthUnsafe: they must be, and the authorization server cannot.
        """
        listed = discovered.server.dpop_signing_alg_values_supported or ()
        able, must = "ES256" in listed, self._must_bind(discovered)
        if must and not able and discovered.server.dpop_signing_alg_values_supported is not None:
            raise AuthUnsafe(
                f"{quote_foreign(discovered.server.issuer)} takes no proofs signed with ES256, so it cannot "
                "bind tokens to a key, and dpop='require' wants that"
            )
        # A server that takes no bound tokens would refuse ours, however well they were issued.
        if self._login.dpop == "off" or not (must or (able and discovered.proofs)):
            self._proofs.key = None
            return
        if self._proofs.key is not None:
            return
        from isthmus.auth.tokens.dpop import (
            DpopKey,  # the JOSE library is loaded where it is needed
        )

        try:
            self._proofs.key = DpopKey.generate()
        except UsageError:  # it is not installed
            if must:
                raise

    async def close(self) -> None:
        """Close connections, once what was being renewed is kept."""
        renewal = self._renewal
        if renewal is not None:
            await asyncio.wait((renewal,), timeout=CLOSE_TIMEOUT_S)
            renewal.cancel()
        await self._network.close()


def check_bound(granted: TokenResponse, issuer: str) -> None:
    """See to it that a token is bound to a key.

    Raises:
        AuthUnsafe: it is not.
    """
    if granted.kind != "DPoP":
        raise AuthUnsafe(
            f"{quote_foreign(issuer)} bound the token to no key, and dpop='require' wants that: it is not used"
        )
