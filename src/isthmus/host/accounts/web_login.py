"""Web login: the authorization code flow in two steps, between which the browser is at the issuer.

What the first step decided is kept sealed, under the hash of the state, and read back once. It is bound to the
browser that began, to the principal and to the server, so that nobody can finish what somebody else began.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.auth.client.discovery import Discovery, DiscoveryResult
from isthmus.auth.client.grants.authorization_code import AuthorizationRequest
from isthmus.auth.client.redirect import AuthorizationParams, RedirectListener
from isthmus.auth.client.registration import Registrar
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs, make_tokens, request_token
from isthmus.auth.net.urls import is_loopback, split_url
from isthmus.auth.tokens.secret import Secret, decode_secret, encode_secret
from isthmus.errors import AuthRequired, AuthUnsafe, UsageError

if TYPE_CHECKING:
    from isthmus.auth.client.grants.login import UserLogin
    from isthmus.auth.net.network import Network


class WebRedirect:
    """The page of a gateway that users come back to.

    Args:
        uri: its URL.
    """

    def __init__(self, uri: str) -> None:
        parts = split_url(uri)
        self.uri = uri
        # spec 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints:
        # a web application comes back by https; one on its user's machine is native
        self.native = parts.scheme == "http" and is_loopback(parts.host)

    async def open(self, before: str | None = None) -> RedirectListener:  # noqa: ARG002 - as Redirect has it
        """Nobody waits there.

        Raises:
            UsageError: always: the browser comes to a page.
        """
        raise UsageError("a web login is completed by the page at its redirect URI")


class LoginProspect(msgspec.Struct, frozen=True, kw_only=True):
    """The login that a user is asked about, before the browser is sent anywhere.

    Attributes:
        discovered: the issuer and the resource.
        scopes: what is asked for.
    """

    discovered: DiscoveryResult
    scopes: frozenset[str]

    @property
    def issuer(self) -> str:
        """The issuer's URL."""
        return self.discovered.server.issuer


class PendingLogin(msgspec.Struct, frozen=True, kw_only=True):
    """A login whose user is at the issuer.

    Attributes:
        principal: whose account it is to be.
        server: at which server.
        url: that server's URL.
        browser: the digest of the cookie of the browser that began.
        redirect_uri: where it comes back to.
        discovered: the issuer and the resource.
        client_id: who asks there.
        scopes: for what.
        state: comes back with the browser.
        verifier: proves that who has the code is who asked for it (RFC 7636).
        proof_key: what tokens are bound to, or None.
    """

    principal: str
    server: str
    url: str
    browser: str
    redirect_uri: str
    discovered: DiscoveryResult
    client_id: str
    scopes: frozenset[str]
    state: Secret
    verifier: Secret
    proof_key: Secret | None = None


PENDING_ENCODER = msgspec.json.Encoder(enc_hook=encode_secret)
PENDING_DECODER = msgspec.json.Decoder(PendingLogin, dec_hook=decode_secret)


class WebLogin:
    """Logs one principal in to one server, by way of their browser.

    Args:
        server: the server's name.
        url: the server.
        principal: whose login it is.
        login: the settings; its redirect is a :class:`WebRedirect`.
    """

    def __init__(self, server: str, url: str, principal: str, login: "UserLogin") -> None:
        self._server = server
        self._url = url
        self._principal = principal
        self._login = login

    async def prepare(
        self, wanted: Collection[str] = (), metadata: str | None = None
    ) -> LoginProspect:
        """Find out where the user would log in, and for what.

        Args:
            wanted: scopes that the server has asked for.
            metadata: where the server says that its metadata stand.

        Raises:
            AuthError: nobody says, or what is said cannot be believed.
        """
        network = self._login.make_network(self._url)
        try:
            discovery = self._make_discovery(network)
            discovered = await discovery.find(metadata)
            # spec 2026-07-28 basic/authorization/security-considerations#authorization-code-protection
            discovery.check_pkce(discovered)
        finally:
            await network.close()
        return LoginProspect(
            discovered=discovered, scopes=await self._choose_scopes(discovered, frozenset(wanted))
        )

    async def begin(self, prospect: LoginProspect, browser: str) -> tuple[str, PendingLogin]:
        """Begin a login: the URL that the browser is sent to, and what is kept meanwhile.

        Args:
            prospect: what the user has agreed to.
            browser: the digest of the browser's cookie.

        Raises:
            AuthError: the issuer registers no client, or names no usable endpoint.
        """
        login, discovered = self._login, prospect.discovered
        network = login.make_network(self._url)
        try:
            registrar = self._make_registrar(network)
            kept = await registrar.load(prospect.issuer)
            identity = await registrar.identity(discovered, login.redirect.uri, kept)
        finally:
            await network.close()
        key = make_proof_key(discovered)
        request = AuthorizationRequest(
            discovered=discovered,
            identity=identity,
            redirect_uri=login.redirect.uri,
            scopes=prospect.scopes,
            proof_key=None if key is None else key.jkt,
        )
        pending = PendingLogin(
            principal=self._principal,
            server=self._server,
            url=self._url,
            browser=browser,
            redirect_uri=login.redirect.uri,
            discovered=discovered,
            client_id=identity.client_id,
            scopes=prospect.scopes,
            state=request.state,
            verifier=request.verifier,
            proof_key=None if key is None else key.secret_jwk(),
        )
        return request.url(), pending

    async def finish(self, pending: PendingLogin, params: AuthorizationParams) -> Tokens:
        """The tokens for what the browser came back with, kept.

        Raises:
            AuthError: the issuer, or the user there, said no; or the answer is somebody else's.
        """
        login, discovered = self._login, pending.discovered
        network = login.make_network(self._url)
        proofs = DpopProofs(load_proof_key(pending))
        asked = Tokens(
            access=Secret(""),
            issuer=discovered.server.issuer,
            client_id=pending.client_id,
            resource=discovered.resource,
        )
        try:
            identity = await self._make_registrar(network).find_identity(asked)
            if identity is None:
                raise AuthRequired(
                    f"{discovered.server.issuer} knows this gateway no more: connect again"
                )
            request = AuthorizationRequest(
                discovered=discovered,
                identity=identity,
                redirect_uri=pending.redirect_uri,
                scopes=pending.scopes,
                state=pending.state,
                verifier=pending.verifier,
            )
            granted = await request_token(
                network,
                discovered.server.token_endpoint,
                request.form(request.code(params)),
                identity,
                issuer=discovered.server.issuer,
                methods=discovered.server.methods,
                proofs=proofs,
            )
        finally:
            await network.close()
        tokens = make_tokens(
            granted,
            discovered=discovered,
            client_id=identity.client_id,
            asked=pending.scopes,
            proofs=proofs,
            now=login.now(),
            account=login.account,
        )
        if discovered.bound and tokens.kind != "DPoP":
            raise AuthUnsafe(
                f"{asked.issuer} bound the token to no key, and {self._server} wants that"
            )
        await login.store.put(tokens.key, tokens)
        return tokens

    def _make_discovery(self, network: "Network") -> Discovery:
        login = self._login
        return Discovery(
            self._url,
            network,
            authorization_server=login.authorization_server,
            known=lambda issuer: login.profile.find_identity(issuer) is not None,
            compat=login.compat,
        )

    def _make_registrar(self, network: "Network") -> Registrar:
        login = self._login
        return Registrar(login.profile, login.redirect, login.store, network, login.now)

    async def _choose_scopes(
        self, discovered: DiscoveryResult, wanted: frozenset[str]
    ) -> frozenset[str]:
        # spec 2026-07-28 basic/authorization#scope-selection-strategy: what was asked for, or else
        # what the resource lists, or else none
        scopes = wanted | (self._login.scopes or frozenset())
        if not scopes:
            scopes = discovered.scopes or frozenset()
        if wanted:
            # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
            for key in await self._login.store.keys():
                record = await self._login.store.get(key)
                if isinstance(record, Tokens) and record.resource == discovered.resource:
                    scopes |= record.scopes | record.asked
        # spec 2026-07-28 basic/authorization#refresh-tokens: only where the server lists it
        if scopes and "offline_access" in (discovered.server.scopes_supported or ()):
            scopes |= {"offline_access"}
        return scopes


def make_proof_key(discovered: DiscoveryResult) -> Any:
    """A key for tokens to be bound to, where the resource wants that; else None."""
    if not discovered.bound:
        return None
    from isthmus.auth.tokens.dpop import DpopKey  # the JOSE library is loaded where it is needed

    return DpopKey.generate()


def load_proof_key(pending: PendingLogin) -> Any:
    """The key that a login has begun with, or None."""
    if pending.proof_key is None:
        return None
    from isthmus.auth.tokens.dpop import DpopKey  # as above

    return DpopKey.load(pending.proof_key)
