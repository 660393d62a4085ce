"""The client as OAuth client of a user: ``Client(url, auth=OAuth(…))``.

Logging out: what is kept is forgotten, and the authorization server told where it listens.

The tokens of a login that was made before: shown and renewed, and never asked for anew.

For programs that reach many servers, and must not open a browser for any of them by themselves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from isthmus.auth.client.discovery import STRICT_COMPAT, Compat, Discovery
from isthmus.auth.client.grants.user import UserGrant
from isthmus.auth.client.redirect import Loopback, OpenBrowser, Redirect, open_default_browser
from isthmus.auth.client.registration import ClientProfile, Preregistered, Registrar
from isthmus.auth.client.requests import Granting, check_scopes
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens, TokenStore
from isthmus.auth.client.token_request import DpopProofs
from isthmus.auth.net.network import Network, NetworkPolicy, check_policy, desktop
from isthmus.auth.net.urls import is_same_resource, is_secure
from isthmus.auth.protocol import authenticate_form
from isthmus.errors import AuthError, AuthRequired, ScopeShortfall, UsageError

if TYPE_CHECKING:
    import ssl

__all__ = [
    "ApproveScopes",
    "OAuth",
    "OnStatus",
    "ScopeRequest",
    "Status",
    "StoredLogin",
    "StoredLoginGrant",
    "forget_tokens",
]


class Status(msgspec.Struct, frozen=True):
    """What is going on while a client gets tokens.

    Attributes:
        step: ``"discovering"``, ``"registering"``, ``"authorizing"``, ``"exchanging"``,
            ``"refreshing"`` or ``"ready"``.
        url: the MCP server it is for.
        page: where the user is sent to, while they are; else empty.
    """

    step: str
    url: str
    page: str = ""


OnStatus: TypeAlias = Callable[[Status], object]
"""Told of each step; what it returns does not matter."""


class ScopeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user is about to be asked for.

    Attributes:
        url: the MCP server.
        issuer: the authorization server.
        scopes: what is to be asked for.
        granted: what was granted before.
        operation: for what, as in ``"tools/call delete"``; empty for the first login.
    """

    url: str
    issuer: str
    scopes: frozenset[str]
    granted: frozenset[str]
    operation: str = ""


ApproveScopes: TypeAlias = Callable[
    [ScopeRequest], "bool | Collection[str] | Awaitable[bool | Collection[str]]"
]
"""Says whether a user is asked for scopes: True, False, or only some of them."""


class OAuth(Granting):
    """Has the user log in to whatever a server names as its authorization server.

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
        super().__init__()
        if client_metadata_url is not None and not document_url(client_metadata_url):
            raise UsageError(
                f"client_metadata_url={client_metadata_url!r}: it is an https URL with a path, "
                "such as https://app.example.com/client.json"
            )
        check_policy(network)
        if dpop not in {"auto", "off", "require"}:
            raise UsageError(f"dpop={dpop!r}: it is 'auto', 'off' or 'require'")
        for issuer, one in (clients or {}).items():
            if not hasattr(one, "identity"):
                raise UsageError(f"clients={{{issuer!r}: …}}: give it a StaticClient(client_id)")
        if store is not None and not hasattr(store, "get"):
            raise UsageError("store= is MemoryTokenStore() or FileTokenStore(path, key)")
        if isinstance(redirect, str):
            raise UsageError(f"redirect= is Loopback(…), or ByHand({redirect!r}, visit)")
        self.program = ClientProfile(
            name=client_name,
            uri=client_uri,
            metadata_url=client_metadata_url,
            key=client_key,
            clients=dict(clients or {}),
        )
        self.authorization_server = authorization_server
        self.scopes = check_scopes(scopes)
        self.redirect: Redirect = redirect or Loopback()
        self.open_browser = open_browser
        self.account = account
        self.dpop = dpop
        self.compat = compat or STRICT_COMPAT
        self._approve = approve_scopes
        self._store = store
        self._policy = network
        self._tls = tls
        self._on_status = on_status

    def grant(self, url: str, proofs: DpopProofs) -> UserGrant:
        """The way to tokens for one MCP server."""
        return UserGrant(url, self, self.reach(url), proofs)

    @property
    def store(self) -> TokenStore:
        """Where tokens and registrations are kept."""
        if self._store is None:
            from isthmus.auth.client.store.keyring_store import default_store

            self._store = default_store()
        return self._store

    def reach(self, url: str) -> Network:
        """The way to the servers that an MCP server names."""
        policy = self._policy
        if policy is None:
            named = [self.authorization_server] if self.authorization_server else []
            policy = desktop(url, *named, *self.program.clients)
        return Network(policy, tls=self._tls)

    def tell(self, step: str, url: str, page: str = "") -> None:
        """Say what is going on, to whoever wants to know."""
        if self._on_status is not None:
            self._on_status(Status(step, url, page))

    async def approved(self, request: ScopeRequest) -> frozenset[str]:
        """The scopes that the application lets the user be asked for; nothing where it does not."""
        if self._approve is None:
            return request.scopes
        said: Any = self._approve(request)
        if isawaitable(said):
            said = await said
        if isinstance(said, bool):
            return request.scopes if said else frozenset()
        return request.scopes & frozenset(said)

    def document(self) -> dict[str, Any]:
        """The metadata document that ``client_metadata_url`` has to have, to be published there."""
        key = self.program.key
        document: dict[str, Any] = {
            # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements:
            # the very URL, a name and the redirect URIs
            "client_id": self.program.metadata_url,
            "client_name": self.program.name,
            # without a port, which is whatever is free (RFC 8252 7.3)
            "redirect_uris": [self.redirect.uri.replace(":0/", "/")],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none" if key is None else "private_key_jwt",
            "application_type": "native" if self.redirect.native else "web",
        }
        if self.program.uri is not None:
            document["client_uri"] = self.program.uri
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
        # refit  # needed for a logout only

        self._forget(url)
        count = await asyncio.shield(forget_tokens(self, url, registrations=registrations))
        self._forget(url)  # what was renewed meanwhile
        return count

    def _forget(self, url: str | None) -> None:
        for known, shared in self._shared.items():
            if url is None or known == url:
                shared.session.forget()


def document_url(url: str) -> bool:
    """Whether a URL can be the ``client_id`` of a client with a metadata document."""
    from isthmus.auth.net.urls import split_url

    try:
        parts = split_url(url)
    except ValueError:
        return False
    # spec 2026-07-28 basic/authorization/client-registration#implementation-requirements
    return parts.scheme == "https" and len(parts.path) > 1


async def forget_tokens(auth: "OAuth", url: str | None, *, registrations: bool) -> int:
    """Forget tokens; see :meth:`isthmus.auth.client.grants.oauth.OAuth.logout`."""
    store, count, issuers = auth.store, 0, set[str]()
    for key in await store.keys():
        if key.redirect or key.account != auth.account:
            continue
        if url is not None and not is_same_resource(key.resource, url):
            continue
        async with store.lock(key):  # what is just being renewed ends like the rest
            record = await store.get(key)
            if isinstance(record, Tokens):
                try:
                    await revoke_tokens(auth, record)
                finally:
                    await store.delete(key)
                issuers.add(key.issuer)
                count += 1
    for key in await store.keys() if registrations else ():
        if key.redirect and (url is None or key.issuer in issuers):
            await store.delete(key)
            count += 1
    return count


async def revoke_tokens(auth: "OAuth", tokens: Tokens) -> None:
    """Tell the issuer that tokens are of no use any more; what it makes of that does not matter."""
    network = auth.reach(tokens.resource)
    try:
        server = await Discovery(tokens.resource, network, compat=auth.compat).server(tokens.issuer)
        identity = await Registrar(auth.program, auth.redirect, auth.store, network).of(tokens)
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


class StoredLogin(OAuth):
    """Shows and refreshes the tokens of an earlier login, and leaves logging in to ``isthmus login``.

    Args:
        label: the target as one would type it there.
    """

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    def grant(self, url: str, proofs: DpopProofs) -> "StoredLoginGrant":
        """The way to the tokens that are kept for one MCP server."""
        return StoredLoginGrant(url, self, proofs)


class StoredLoginGrant(UserGrant):
    """The way to tokens that ends where the user would have to log in.

    Args:
        url: the MCP server.
        auth: how it was typed.
        proofs: binds tokens to a key, where they are bound.
    """

    def __init__(self, url: str, auth: StoredLogin, proofs: DpopProofs) -> None:
        super().__init__(url, auth, auth.reach(url), proofs)
        self._label = auth.label

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
