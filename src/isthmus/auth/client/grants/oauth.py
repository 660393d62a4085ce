"""OAuth client of a user, by the authorization code grant: ``Client(url, auth=OAuth(…))``.

Logging out forgets what is kept, and revokes it where the authorization server listens.
:class:`StoredLogin` shows and renews the tokens of an earlier login, and never asks for new ones.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from isthmus.auth.client.discovery import Compat, Discovery
from isthmus.auth.client.grants.login import ApproveScopes, OnStatus, UserLogin
from isthmus.auth.client.grants.user import UserGrant
from isthmus.auth.client.redirect import OpenBrowser, Redirect, open_default_browser
from isthmus.auth.client.registration import ClientProfile, Preregistered, Registrar
from isthmus.auth.client.requests import AuthorizedRequests, SharedSessions, check_scopes
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens, TokenStore
from isthmus.auth.net.network import NetworkPolicy, check_policy
from isthmus.auth.net.urls import is_same_resource, is_secure, split_url
from isthmus.auth.protocol import authenticate_form
from isthmus.errors import AuthError, AuthRequired, ScopeShortfall, UsageError
from isthmus.transports.http.client.requests import Requests

if TYPE_CHECKING:
    import ssl


class OAuth:
    """Authorization-code grant (OAuth 2.1): the user logs in at the authorization server that a server names.

    The browser is opened when a server first answers 401 or wants more scopes, and at no other
    time: tokens are kept, and renewed by themselves before they end, also after a restart.

    Example::

        async with Client("https://mcp.example.com/mcp", auth=OAuth()) as client:
            print(await client.list_tools())

    Args:
        client_name: what users read when they are asked.
        client_uri: a page about the program.
        client_metadata_url: where its metadata document stands (an ``https`` URL with a path),
            which then is its ``client_id`` wherever a server takes such documents.
        client_key: a ``PrivateKey`` whose public half that document has.
        clients: who the program is where it was registered beforehand:
            ``{issuer: StaticClient(…)}``.
        authorization_server: the issuer, where the MCP server does not name it.
        scopes: what to ask for at first; None asks for what the server says.
        approve_scopes: may refuse scopes before the user is asked for them.
        redirect: where users come back to: ``Loopback()``, or ``ByHand(…)``.
        open_browser: shows the user a URL; by default their browser does.
        store: keeps tokens and registrations; None takes an encrypted file where its key can be
            kept, and memory elsewhere.
        account: tells several accounts of the user at one server apart.
        dpop: bind tokens to a key of this program's: ``"auto"`` where both servers say that they
            can, ``"off"``, ``"require"``.
        network: where discovery may go; by default the origins named here, and public addresses.
        tls: how the certificates of authorization servers are checked; None trusts what the
            system trusts.
        compat: what is put up with for servers that do not keep to the specification.
        on_status: told of each step.

    Raises:
        UsageError: the metadata document has no URL that could be a ``client_id``, ``dpop`` is
            none of the three, or something is no such thing at all.
    """

    def __init__(
        self,
        client_name: str = "isthmus",
        *,
        client_uri: str | None = None,
        client_metadata_url: str | None = None,
        client_key: Any = None,
        clients: Mapping[str, Preregistered] | None = None,
        authorization_server: str | None = None,
        scopes: Iterable[str] | None = None,
        approve_scopes: ApproveScopes | None = None,
        redirect: Redirect | None = None,
        open_browser: OpenBrowser = open_default_browser,
        store: TokenStore | None = None,
        account: str = "",
        dpop: Literal["auto", "off", "require"] = "auto",
        network: NetworkPolicy | None = None,
        tls: "ssl.SSLContext | None" = None,
        compat: Compat | None = None,
        on_status: OnStatus | None = None,
    ) -> None:
        if client_metadata_url is not None and not is_document_url(client_metadata_url):
            raise UsageError(
                f"client_metadata_url={client_metadata_url!r}: it is an https URL with a path, "
                "such as https://app.example.com/client.json"
            )
        check_policy(network)
        if dpop not in {"auto", "off", "require"}:
            raise UsageError(f"dpop={dpop!r}: it is 'auto', 'off' or 'require'")
        check_parts(clients or {}, store, redirect)
        self.login = UserLogin(
            ClientProfile(
                name=client_name,
                uri=client_uri,
                metadata_url=client_metadata_url,
                key=client_key,
                clients=dict(clients or {}),
            ),
            authorization_server=authorization_server,
            scopes=check_scopes(scopes),
            approve_scopes=approve_scopes,
            redirect=redirect,
            open_browser=open_browser,
            store=store,
            account=account,
            dpop=dpop,
            policy=network,
            tls=tls,
            compat=compat,
            on_status=on_status,
        )
        self.sessions = SharedSessions(
            lambda url, proofs: UserGrant(url, self.login, proofs),
            compat=self.login.compat,
            now=self.login.now,
        )

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Put tokens into the requests of a connection; see ``Authorization``.

        Args:
            url: the URL of the server.
            requests: sends the requests.
        """
        return self.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to ``url`` carry just now; see ``Authorization``.

        Args:
            url: the URL of the MCP endpoint.
        """
        return self.sessions.context(url)

    def document(self) -> dict[str, Any]:
        """The metadata document that ``client_metadata_url`` has to have, to be published there."""
        profile, redirect = self.login.profile, self.login.redirect
        key = profile.key
        document: dict[str, Any] = {
            # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements:
            # the very URL, a name and the redirect URIs
            "client_id": profile.metadata_url,
            "client_name": profile.name,
            # without a port, which is whatever is free (RFC 8252 7.3)
            "redirect_uris": [redirect.uri.replace(":0/", "/")],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none" if key is None else "private_key_jwt",
            "application_type": "native" if redirect.native else "web",
        }
        if profile.uri is not None:
            document["client_uri"] = profile.uri
        if key is not None:
            document["jwks"] = {"keys": [dict(key.jwk)]}
        return document

    async def logout(self, url: str | None = None, *, registrations: bool = False) -> int:
        """Forget tokens, and tell the authorization server where it wants to know (RFC 7009).

        Args:
            url: of the one MCP server; None for all of this account.
            registrations: forget how the program is registered, too.

        Returns:
            How many records were forgotten.
        """
        self.sessions.forget(url)
        count = await asyncio.shield(forget_tokens(self.login, url, registrations=registrations))
        self.sessions.forget(url)  # what was renewed meanwhile
        return count


def check_parts(clients: Mapping[str, object], store: object, redirect: object) -> None:
    """See that a user's login is made of what it can use.

    Raises:
        UsageError: something is of another kind.
    """
    for issuer, one in clients.items():
        if not hasattr(one, "identity"):
            raise UsageError(f"clients={{{issuer!r}: …}}: give it a StaticClient(client_id)")
    if store is not None and not hasattr(store, "get"):
        raise UsageError("store= is MemoryTokenStore() or FileTokenStore(path, key)")
    if isinstance(redirect, str):
        raise UsageError(f"redirect= is Loopback(…), or ByHand({redirect!r}, visit)")


def is_document_url(url: str) -> bool:
    """Whether a URL can be the ``client_id`` of a client with a metadata document."""
    try:
        parts = split_url(url)
    except ValueError:
        return False
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    return parts.scheme == "https" and len(parts.path) > 1


async def forget_tokens(login: UserLogin, url: str | None, *, registrations: bool) -> int:
    """Forget tokens; see :meth:`OAuth.logout`."""
    store, count, issuers = login.store, 0, set[str]()
    for key in await store.keys():
        if key.redirect or key.account != login.account:
            continue
        if url is not None and not is_same_resource(key.resource, url):
            continue
        async with store.lock(key):  # what is just being renewed ends like the rest
            record = await store.get(key)
            if isinstance(record, Tokens):
                try:
                    await revoke_tokens(login, record)
                finally:
                    await store.delete(key)
                issuers.add(key.issuer)
                count += 1
    for key in await store.keys() if registrations else ():
        if key.redirect and (url is None or key.issuer in issuers):
            await store.delete(key)
            count += 1
    return count


async def revoke_tokens(login: UserLogin, tokens: Tokens) -> None:
    """Tell the issuer that tokens are of no use any more; what it makes of that does not matter."""
    network = login.make_network(tokens.resource)
    try:
        server = await Discovery(tokens.resource, network, compat=login.compat).server(
            tokens.issuer
        )
        identity = await Registrar(
            login.profile, login.redirect, login.store, network
        ).find_identity(tokens)
        endpoint = server.revocation_endpoint or ""
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if identity is None or not is_secure(endpoint):
            return
        token = tokens.refresh or tokens.access
        form, headers = authenticate_form(
            {"token": token.reveal()}, identity, issuer=tokens.issuer, methods=server.methods
        )
        await network.form(endpoint, form, headers)
    except AuthError:
        return
    finally:
        await network.close()


class StoredLogin:
    """Shows and refreshes the tokens of an earlier login, and leaves logging in to ``isthmus login``.

    For programs that reach many servers, and must not open a browser for any of them by themselves.

    Args:
        label: the target as one would type it there.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.login = UserLogin(ClientProfile(name="isthmus"))
        self.sessions = SharedSessions(
            lambda url, proofs: StoredLoginGrant(UserGrant(url, self.login, proofs), label)
        )

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Requests that carry tokens; see ``Authorization``."""
        return self.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to a URL carry just now; see ``Authorization``."""
        return self.sessions.context(url)


class StoredLoginGrant:
    """The way to tokens that ends where the user would have to log in.

    Args:
        stored: loads and refreshes the tokens.
        label: how the server was typed.
    """

    asks_user = True

    def __init__(self, stored: UserGrant, label: str) -> None:
        self._stored = stored
        self._label = label

    async def load(self) -> Tokens | None:
        """The tokens of the earlier login."""
        return await self._stored.load()

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Newer tokens for the refresh token; None where it leads nowhere."""
        return await self._stored.refresh(tokens, want)

    async def close(self) -> None:
        """Close connections, once what was being renewed is kept."""
        await self._stored.close()

    async def obtain(self, want: TokenDemand) -> Tokens:
        """Say how to log in.

        Raises:
            AuthRequired: there are no tokens, or the server takes them no more.
            ScopeShortfall: they are not enough.
        """
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: and those of before
        before = want.before.scopes if want.before is not None else frozenset[str]()
        words = "".join(f" --scope {scope}" for scope in sorted((want.scopes or before) | before))
        if want.more:
            raise ScopeShortfall(
                f"{self._label} wants more than was granted for {want.operation}: isthmus login "
                f"{self._label}{words}",
                want.scopes or frozenset(),
            )
        reason = "takes the kept tokens no more" if want.before else "wants a login"
        raise AuthRequired(f"{self._label} {reason}: isthmus login {self._label}")
