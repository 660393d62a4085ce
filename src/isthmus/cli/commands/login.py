"""``isthmus login`` and ``logout``: get the tokens that other commands use, and drop them."""

import os
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from isthmus.auth.arguments import require_library
from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.login import UserLogin
from isthmus.auth.client.grants.oauth import OAuth
from isthmus.auth.client.grants.user import UserGrant
from isthmus.auth.client.redirect import ByHand, Loopback, Redirect, RedirectListener
from isthmus.auth.client.registration import ClientProfile, Preregistered, StaticClient
from isthmus.auth.client.requests import AuthorizedRequests, SharedSessions
from isthmus.auth.client.session import TokenDemand
from isthmus.auth.client.store.keyring_store import DefaultTokenStore
from isthmus.auth.client.store.records import MemoryTokenStore, Registration, Tokens
from isthmus.auth.client.store.vault import StoreBroken
from isthmus.auth.client.token_request import DpopProofs
from isthmus.auth.net.network import NetworkFailed
from isthmus.auth.net.urls import is_same_resource
from isthmus.auth.protocol import ClientIdentity, choose_auth_method
from isthmus.auth.tokens.secret import Secret
from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson, ClientId, OpenBrowser
from isthmus.cli.output import print_json, print_line, print_note
from isthmus.cli.targets import CliTarget, find_http_url, read_target
from isthmus.cli.terminal_client import StdioTerminal
from isthmus.client.client import Client
from isthmus.errors import AuthRequired, AuthUnsafe, DiscoveryFailed, UsageError
from isthmus.transports.http.client.requests import Requests
from isthmus.transports.http.client.websocket import to_http_url

app = CommandSet()

CALLBACK_PORT = 8976  # nobody listens there: the user copies the address

UNLOCK_TIMEOUT_S = 120.0  # a person may have to unlock the keyring


@app.command("login")
def login(
    target: Annotated[str, Argument(metavar="TARGET", show_default=False)],
    *,
    scope: Annotated[
        list[str] | None, Option("--scope", metavar="NAME", help="Scope to request; repeatable.")
    ] = None,
    client_id: ClientId = None,
    client_secret_env: Annotated[
        str | None, Option(metavar="NAME", help="Environment variable with the client's secret.")
    ] = None,
    issuer: Annotated[str | None, Option(metavar="URL", help="The authorization server.")] = None,
    resource: Annotated[
        str | None,
        Option(metavar="URL", help="Resource of the token, if it is above the server's URL."),
    ] = None,
    browser: OpenBrowser = True,
    as_json: AsJson = False,
) -> None:
    """Log in to an HTTP server; other commands use the token."""

    def work() -> Coroutine[Any, Any, Exit]:
        secret = read_client_secret(client_secret_env, os.environ)
        options = LoginOptions(scope or (), client_id, secret, issuer, browser, as_json, resource)
        return log_in(read_target(target, (), Path.cwd(), os.environ), options)

    finish(work)


@app.command("logout")
def logout(
    target: Annotated[str, Argument(metavar="TARGET", show_default=False)],
    *,
    registration: Annotated[
        bool, Option("--registration", help="Also delete the registration of isthmus there.")
    ] = False,
) -> None:
    """Delete and revoke the tokens for a server."""
    finish(
        lambda: log_out(read_target(target, (), Path.cwd(), os.environ), registration=registration)
    )


class LoginOptions(msgspec.Struct, frozen=True):
    """Options of a login.

    Attributes:
        scopes: what to ask for; nothing asks for what the server says.
        client_id: the client, where it is registered already.
        secret: its secret, if it has one.
        issuer: the authorization server; needed with a secret, which is for nobody else.
        browser: whether one is opened.
        as_json: print JSON for a program.
        resource: the resource above the server that its metadata may name as its own, or None.
    """

    scopes: Sequence[str] = ()
    client_id: str | None = None
    secret: Secret | None = None
    issuer: str | None = None
    browser: bool = True
    as_json: bool = False
    resource: str | None = None


async def log_in(target: CliTarget, options: LoginOptions) -> Exit:
    """Log in at a server's authorization server, and keep the tokens."""
    auth = await make_oauth(target, options)
    await connect_once(target, auth)
    tokens = auth.got
    if tokens is None:
        print_note(
            f"{target.label} asks for no authorization to begin with: there is nothing to log in to"
        )
        return Exit.OK
    if options.as_json:
        print_json(summarise_tokens(tokens))
        return Exit.OK
    print_line(f"logged in to {tokens.resource}")
    for name, value in summarise_tokens(tokens).items():
        print_line(f"  {name:9} {', '.join(value) if isinstance(value, list) else value}")
    return Exit.OK


async def obtain_tokens(target: CliTarget, options: LoginOptions) -> Tokens:
    """Log in, and give the tokens, which are kept as well.

    Raises:
        AuthRequired: the server asks nobody to log in.
    """
    auth = await make_oauth(target, options)
    await connect_once(target, auth)
    if auth.got is None:
        raise AuthRequired(f"{target.label} asks for no authorization to begin with")
    return auth.got


async def log_out(target: CliTarget, *, registration: bool = False) -> Exit:
    """Delete and revoke the tokens for a server."""
    url, store = require_http_url(target), DefaultTokenStore(patience=UNLOCK_TIMEOUT_S)
    try:
        count = await OAuth(store=store).logout(url, registrations=registration)
    except StoreBroken as error:
        print_note(f"{error}")
        count = await discard_unreadable(store, url)
    print_note(f"forgot {count} record(s)" if count else f"nothing is kept for {url}")
    return Exit.OK


async def discard_unreadable(store: DefaultTokenStore, url: str) -> int:
    """Take away what does not open, without telling anybody; how much that was."""
    keys = [
        key for key in await store.keys() if key.resource and is_same_resource(key.resource, url)
    ]
    for key in keys:
        await store.delete(key)
    return len(keys)


class FreshOAuth:
    """A login that is made in any case, whatever is kept.

    Args:
        options: options of the command line.
        redirect: where the user comes back to.
        store: keeps the tokens.
    """

    def __init__(self, options: LoginOptions, redirect: Redirect, store: DefaultTokenStore) -> None:
        client = None
        if options.client_id is not None:
            client = StaticClient(options.client_id, secret=options.secret)
        if client is not None and not options.issuer:
            profile: ClientProfile = PortableProgram(name="isthmus", client=client)
        else:
            clients = {options.issuer: client} if client is not None and options.issuer else {}
            profile = ClientProfile(name="isthmus", clients=clients)
        self.login = UserLogin(
            profile,
            authorization_server=options.issuer,
            scopes=frozenset(options.scopes) or None,
            redirect=redirect,
            store=store,
            compat=Compat(parent_resources=frozenset({options.resource}))
            if options.resource
            else None,
        )
        self.got: Tokens | None = None
        self.sessions = SharedSessions(self._make_grant, compat=self.login.compat)

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Requests that carry tokens; see ``Authorization``."""
        return self.sessions.over(url, requests)

    def context(self, url: str) -> object:
        """The token that requests to a URL carry just now; see ``Authorization``."""
        return self.sessions.context(url)

    def _make_grant(self, url: str, proofs: DpopProofs) -> "FreshGrant":
        return FreshGrant(self, UserGrant(url, self.login, proofs))


class FreshGrant:
    """The way to tokens that begins with the user.

    Args:
        auth: where the tokens are noted.
        user: asks the user.
    """

    asks_user = True

    def __init__(self, auth: FreshOAuth, user: UserGrant) -> None:
        self._auth = auth
        self._user = user

    async def load(self) -> Tokens | None:
        """Nothing, so that the server asks."""
        return None

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Newer tokens for the refresh token."""
        return await self._user.refresh(tokens, want)

    async def obtain(self, want: TokenDemand) -> Tokens:
        """New tokens, and a note of them."""
        login = self._auth.login
        tokens = self._auth.got = await self._user.obtain(want)
        known = login.profile.find_identity(tokens.issuer)
        if known is not None:  # so that other commands can refresh
            record = make_registration(tokens, known, login.redirect.uri)
            await login.store.put(record.key, record)
        return tokens

    async def close(self) -> None:
        """Close connections."""
        await self._user.close()


class PortableProgram(ClientProfile, frozen=True, kw_only=True):
    """A program that has one name wherever it comes; it has no secret that could go astray.

    Attributes:
        client: the name.
    """

    client: Preregistered

    def find_identity(self, issuer: str) -> ClientIdentity | None:  # noqa: ARG002 - it is the same everywhere
        """The identity of the client at an issuer."""
        return self.client.identity


class PastedRedirect:
    """The user brings back the address that a browser, anywhere, was sent to.

    It is configured like :class:`Loopback`, so that both use one registration.
    """

    native = True

    def __init__(self) -> None:
        self.uri = Loopback().uri

    async def open(self, before: str | None = None) -> RedirectListener:
        """Be ready for the user."""
        return ByHand(before or f"http://127.0.0.1:{CALLBACK_PORT}/callback", ask_for_redirect)


async def ask_for_redirect(url: str) -> str:
    """Show the user an address, and have them paste the one they end at."""
    keyboard = StdioTerminal()
    keyboard.say(f"Open this address in any browser and log in:\n\n{url}\n")
    keyboard.say("It ends at an address that begins with http://127.0.0.1 and may not load.")
    answer = await keyboard.ask("Paste that address here: ")
    if not answer:
        raise AuthRequired("no address was pasted, so nobody is logged in")
    return answer.strip()


async def make_oauth(target: CliTarget, options: LoginOptions) -> FreshOAuth:
    """The OAuth client of a login, with a store for its tokens.

    Raises:
        UsageError: there is no such place, or the command line does not add up.
    """
    require_http_url(target)
    if options.secret is not None and not (options.client_id and options.issuer):
        raise UsageError(
            "a client's secret is for one authorization server: name it by --issuer, and the "
            "client by --client-id"
        )
    require_library("filelock", "Keeping tokens between two commands")
    store = DefaultTokenStore(patience=UNLOCK_TIMEOUT_S)
    if isinstance(await store.chosen(), MemoryTokenStore):
        raise UsageError(
            "tokens cannot be stored between two commands: set ISTHMUS_STORE_KEY to what "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))' prints, once, and log in"
        )
    return FreshOAuth(options, Loopback() if options.browser else PastedRedirect(), store)


async def connect_once(target: CliTarget, auth: FreshOAuth) -> None:
    """Connect, which has the server ask whoever it wants to know."""
    headers = dict(target.headers) or None
    try:
        async with Client(target.where, auth=auth, headers=headers, name="isthmus-cli"):
            pass
    except (AuthUnsafe, DiscoveryFailed, NetworkFailed):
        print_note(f"isthmus auth doctor {target.label} walks the way to a token, hop by hop")
        raise


def require_http_url(target: CliTarget) -> str:
    """The URL of a server that may want a login; that of a WebSocket as its handshake has it.

    Raises:
        UsageError: it is not reached over HTTP.
    """
    url = find_http_url(target)
    if url is None:
        raise UsageError(
            f"{target.label} is not reached over HTTP: it takes its credentials from its environment"
        )
    return to_http_url(url)


def read_client_secret(variable: str | None, environ: Mapping[str, str]) -> Secret | None:
    """A client's secret, which is never taken from the command line.

    Raises:
        UsageError: there is no such variable.
    """
    if variable is None:
        return None
    if not environ.get(variable):
        raise UsageError(f"--client-secret-env {variable}: there is no such variable")
    return Secret(environ[variable])


def make_registration(tokens: Tokens, client: ClientIdentity, redirect: str) -> Registration:
    """A client that the command line named, as one that other commands find."""
    return Registration(
        issuer=tokens.issuer,
        client_id=client.client_id,
        redirect=redirect,
        method=choose_auth_method(client, tokens.methods),
        secret=client.secret,
    )


def summarise_tokens(tokens: Tokens) -> Mapping[str, str | list[str]]:
    """Facts about tokens that may be shown: everything but the tokens."""
    until = "the server ends it"
    if tokens.expires_at is not None:
        until = datetime.fromtimestamp(tokens.expires_at, UTC).isoformat(timespec="seconds")
    return {
        "resource": tokens.resource,
        "issuer": tokens.issuer,
        "client": tokens.client_id,
        "scopes": sorted(tokens.scopes),
        "until": until,
        "renewed": "by itself" if tokens.refresh is not None else "by logging in again",
    }
