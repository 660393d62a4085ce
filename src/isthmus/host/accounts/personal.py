"""Credentials of one principal at one server: a login, or a key that was pasted; none opens a browser.

Where only a person can help, they raise :class:`~isthmus.host.model.errors.AccountRequired`, and the call that
needed them ends as a question to connect an account.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from isthmus.auth.client.grants.login import UserLogin
from isthmus.auth.client.grants.oauth import StoredLogin, StoredLoginGrant
from isthmus.auth.client.grants.user import UserGrant
from isthmus.auth.client.requests import PendingRequest, RedactedResponse, SharedSessions
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs
from isthmus.auth.net.urls import is_secure
from isthmus.errors import AuthUnsafe, ConnectionLost
from isthmus.host.accounts.vault import AccountState, AccountVault
from isthmus.host.model.errors import AccountRequired
from isthmus.transports.http.client.requests import Requests, Response, same_origin

if TYPE_CHECKING:
    from isthmus.auth.client.requests import AuthorizedRequests
    from isthmus.auth.tokens.secret import Secret

PASTED_ISSUER = (
    "isthmus:pasted-key"  # stands where tokens have their issuer: no issuer is called so
)

ACCOUNT_TEXTS: Mapping[str, str] = {
    "missing": "{server} wants an account there, and you have connected none",
    "expired": "your login at {server} is over",
    "refused": "{server} does not take your account any more",
    "scopes": "your account at {server} does not allow {operation}: it wants {scopes}",
}


def make_account_error(
    server: str, reason: str, *, scopes: frozenset[str] = frozenset(), operation: str = ""
) -> AccountRequired:
    """The error for an account that is not there, or not good enough."""
    named = ", ".join(sorted(scopes)[:20]) or "more"
    text = ACCOUNT_TEXTS[reason].format(
        server=server, scopes=named, operation=operation or "this call"
    )
    return AccountRequired(text, server=server, reason=reason, scopes=scopes)


class AccountLogin:
    """The login of one principal at one server, as an ``Authorization``.

    Args:
        server: the server's name.
        principal: whose.
        vault: keeps tokens.
        login: how the issuer is reached.
        shown: whether the login may be shown at all; asked when its tokens have been read.
        wanted: told of a server that wants a login, and where it says that its metadata stand.
        stored: the login that the user of the host has made by ``isthmus login``, used where there is no
            other.
        asks: whether the host has a page on which an account is connected.
    """

    def __init__(
        self,
        server: str,
        principal: str,
        vault: AccountVault,
        login: UserLogin,
        *,
        shown: Callable[[], bool] = lambda: True,
        wanted: Callable[[str | None], None] = lambda _metadata: None,
        stored: StoredLogin | None = None,
        asks: Callable[[], bool] = lambda: True,
    ) -> None:
        self.server = server
        self.principal = principal
        self.vault = vault
        self.login = login
        self.shown = shown
        self.wanted = wanted
        self.stored = stored
        self.asks = asks
        self.sessions = SharedSessions(
            lambda url, proofs: AccountGrant(self, url, proofs), compat=login.compat, now=login.now
        )

    def __repr__(self) -> str:
        return f"AccountLogin({self.server!r}, {self.principal!r})"

    def over(self, url: str, requests: Requests) -> "AuthorizedRequests":
        """Requests that carry tokens; see ``Authorization``."""
        return self.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to a URL carry just now; see ``Authorization``."""
        return self.sessions.context(url)


class AccountGrant:
    """The way to the tokens of an account, which ends where its owner would have to log in.

    Args:
        account: whose, and where they are kept.
        url: the MCP server.
        proofs: binds tokens to a key.
    """

    asks_user = True

    def __init__(self, account: AccountLogin, url: str, proofs: DpopProofs) -> None:
        self._account = account
        self._kept = UserGrant(url, account.login, proofs)
        stored = account.stored
        self._stored = (
            None
            if stored is None
            else StoredLoginGrant(UserGrant(url, stored.login, proofs), stored.label)
        )
        self._used: UserGrant | StoredLoginGrant = self._kept

    async def load(self) -> Tokens | None:
        """The tokens that were kept, if they may be shown."""
        account, stored = self._account, self._stored
        tokens = None
        if stored is None or account.asks():
            tokens = await self._kept.load()
        if tokens is None and stored is not None:
            tokens = await stored.load()
            if tokens is not None:
                self._used = stored
        if tokens is None or not account.shown():
            return None
        account.wanted(None)
        return tokens

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Newer tokens for the refresh token; None where it leads nowhere."""
        account = self._account
        newer = await self._used.refresh(tokens, want)
        if newer is None and self._used is self._kept:
            # spec 2026-07-28 basic/authorization#refresh-tokens: one that the issuer takes no more
            # has been cleared by now; its owner is told what became of it
            gone = await account.login.store.get(tokens.key) is None
            await account.vault.note(
                account.principal, account.server, "expired" if gone else "refused"
            )
        return newer

    async def obtain(self, want: TokenDemand) -> Tokens:
        """Say that an account has to be connected.

        Raises:
            AccountRequired: always, but for a user of a host without pages: they log in at a terminal.
        """
        account = self._account
        account.wanted(want.metadata)
        if self._stored is not None and not account.asks():
            return await self._stored.obtain(want)
        scopes = want.scopes or frozenset()
        if want.more:
            raise make_account_error(
                account.server, "scopes", scopes=scopes, operation=want.operation
            )
        reason: AccountState = "missing"
        if want.before is not None:
            reason = "refused"
            gone = await account.login.store.get(want.before.key) is None
            end = want.before.expires_at
            if gone or (end is not None and account.login.now() >= end):
                reason = "expired"
            await account.vault.note(account.principal, account.server, reason)
        else:
            note = await account.vault.read_note(account.principal, account.server)
            reason = reason if note is None else note.state
        raise make_account_error(account.server, reason, scopes=scopes)

    async def close(self) -> None:
        """Close connections, once what was being renewed is kept."""
        await self._kept.close()
        if self._stored is not None:
            await self._stored.close()


class PastedKey:
    """A key that its owner has pasted, as an ``Authorization``: a header of each request to the server.

    Args:
        server: the server's name.
        principal: whose key it is.
        vault: keeps it.
        header: the header's name.
        prefix: what stands before the key in it.
    """

    def __init__(
        self, server: str, principal: str, vault: AccountVault, *, header: str, prefix: str
    ) -> None:
        self.server = server
        self.principal = principal
        self.vault = vault
        self.header = header
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"PastedKey({self.server!r}, {self.principal!r})"

    def over(self, url: str, requests: Requests) -> "KeyedRequests":
        """Requests that carry the key; see ``Authorization``.

        Raises:
            AuthUnsafe: it could be read on its way.
        """
        if url.startswith("http:") and not is_secure(url):
            raise AuthUnsafe(f"{self.server} is reached by plain http: no key is sent there")
        return KeyedRequests(self, url, requests, self._load)

    async def _load(self) -> "Secret | None":
        for _, tokens in await self.vault.of(self.principal).list_tokens():
            if tokens.issuer == PASTED_ISSUER and tokens.client_id == self.server:
                return tokens.access
        return None

    def context(self, url: str) -> object:  # noqa: ARG002 - as Authorization has it
        """Whose key it is; see ``Authorization``."""
        return self.principal


class KeyedRequests:
    """Requests that carry a key, to one origin and no other.

    Args:
        key: says which header.
        url: the MCP server.
        requests: sends them.
        load: reads the key.
    """

    def __init__(
        self,
        key: PastedKey,
        url: str,
        requests: Requests,
        load: "Callable[[], Awaitable[Secret | None]]",
    ) -> None:
        self._key = key
        self._url = url
        self._requests = requests
        self._load = load
        self._secret: Secret | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request with the key.

        Raises:
            AccountRequired: there is no key, or the server does not take it.
            ConnectionLost: no connection; or one of these, where nobody waits for the request.
        """
        # spec 2026-07-28 basic/authorization#token-handling: no server gets what is for another
        if not same_origin(self._url, url):
            return await self._requests.send(method, url, headers, body)
        try:
            return await self._send_keyed(method, url, headers, body)
        except AccountRequired as error:
            if PendingRequest(method, url, headers, body).patient:
                raise
            raise ConnectionLost(str(error)) from error

    async def _send_keyed(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        key = self._key
        if self._secret is None:
            self._secret = await self._load()
        if self._secret is None:
            raise make_account_error(key.server, "missing")
        shown = {**headers, key.header: f"{key.prefix}{self._secret.reveal()}"}
        response: Response = RedactedResponse(
            await self._requests.send(method, url, shown, body), self._secret.reveal()
        )
        if response.status != 401:
            return response
        response.close()
        self._secret = None
        await key.vault.note(key.principal, key.server, "refused")
        raise make_account_error(key.server, "refused")

    async def close(self) -> None:
        """Close every connection."""
        await self._requests.close()
