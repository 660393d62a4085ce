"""``login`` and ``logout``: tokens that other commands then use, and their end."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from isthmus.auth.client.callback import ByHand, Landing, Loopback, Redirect
from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.keyring_store import DefaultTokenStore
from isthmus.auth.client.oauth import OAuth
from isthmus.auth.client.proofs import Proofs
from isthmus.auth.client.registration import Preregistered, Program
from isthmus.auth.client.session import Want
from isthmus.auth.client.static import StaticClient
from isthmus.auth.client.tokens import MemoryTokenStore, Registration, Tokens
from isthmus.auth.client.user_grant import UserGrant
from isthmus.auth.client.vault import StoreBroken
from isthmus.auth.client_identity import Identity, method_of
from isthmus.auth.extra import require
from isthmus.auth.network import NetworkFailed
from isthmus.auth.secret import Secret
from isthmus.auth.urls import is_same_resource
from isthmus.cli.credentials import over_http
from isthmus.cli.elicit import Keyboard
from isthmus.cli.exits import Exit
from isthmus.cli.output import note, print_json, print_line
from isthmus.cli.targets import Target
from isthmus.client.client import Client
from isthmus.errors import AuthRequired, AuthUnsafe, DiscoveryFailed, UsageError
from isthmus.transports.websocket_client import plain

__all__ = ["Login", "login", "logout", "secret_of", "tokens_of", "url_of"]

PORT = 8976
"""Where users come back to whose browser is elsewhere: nobody listens, the address is copied."""

UNLOCKING = 120.0
"""Seconds for the keyring, where a person is there who may have to unlock it."""


class Login(msgspec.Struct, frozen=True):
    """What the command line says about a login.

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


async def login(target: Target, said: Login) -> Exit:
    """Log in at a server's authorization server, and keep the tokens."""
    auth = await prepared(target, said)
    await connected(target, auth)
    tokens = auth.got
    if tokens is None:
        note(
            f"{target.label} asks for no authorization to begin with: there is nothing to log in to"
        )
        return Exit.OK
    if said.as_json:
        print_json(described(tokens))
        return Exit.OK
    print_line(f"logged in to {tokens.resource}")
    for name, value in described(tokens).items():
        print_line(f"  {name:9} {', '.join(value) if isinstance(value, list) else value}")
    return Exit.OK


async def tokens_of(target: Target, said: Login) -> Tokens:
    """Log in, and give the tokens, which are kept as well.

    Raises:
        AuthRequired: the server asks nobody to log in.
    """
    auth = await prepared(target, said)
    await connected(target, auth)
    if auth.got is None:
        raise AuthRequired(f"{target.label} asks for no authorization to begin with")
    return auth.got


async def logout(target: Target, *, registration: bool = False) -> Exit:
    """Forget the tokens for a server, and have them revoked where that can be done."""
    url, store = url_of(target), DefaultTokenStore(patience=UNLOCKING)
    try:
        count = await OAuth(store=store).logout(url, registrations=registration)
    except StoreBroken as error:
        note(f"{error}")
        count = await dropped(store, url)
    note(f"forgot {count} record(s)" if count else f"nothing is kept for {url}")
    return Exit.OK


async def dropped(store: DefaultTokenStore, url: str) -> int:
    """Take away what does not open, without telling anybody; how much that was."""
    keys = [
        key for key in await store.keys() if key.resource and is_same_resource(key.resource, url)
    ]
    for key in keys:
        await store.delete(key)
    return len(keys)


class FreshOAuth(OAuth):
    """A login that is made in any case, whatever is kept.

    Args:
        said: what the command line says.
        redirect: where the user comes back to.
        store: keeps the tokens.
    """

    def __init__(self, said: Login, redirect: Redirect, store: DefaultTokenStore) -> None:
        client = None
        if said.client_id is not None:
            client = StaticClient(said.client_id, secret=said.secret)
        super().__init__(
            clients={said.issuer: client} if client is not None and said.issuer else None,
            authorization_server=said.issuer,
            scopes=said.scopes or None,
            redirect=redirect,
            store=store,
            compat=Compat(parent_resources=frozenset({said.resource})) if said.resource else None,
        )
        self.got: Tokens | None = None
        if client is not None and not said.issuer:
            self.program = Anywhere(name=self.program.name, client=client)

    def grant(self, url: str, proofs: Proofs) -> "FreshGrant":
        """The way to tokens for one MCP server."""
        return FreshGrant(url, self, proofs)


class FreshGrant(UserGrant):
    """The way to tokens that begins with the user.

    Args:
        url: the MCP server.
        auth: where the tokens are noted.
        proofs: binds them to a key, where they are to be bound.
    """

    def __init__(self, url: str, auth: FreshOAuth, proofs: Proofs) -> None:
        super().__init__(url, auth, auth.reach(url), proofs)
        self._login = auth

    async def load(self) -> Tokens | None:
        """Nothing, so that the server asks."""
        return None

    async def obtain(self, want: Want) -> Tokens:
        """New tokens, and a note of them."""
        tokens = self._login.got = await super().obtain(want)
        known = self._login.program.known(tokens.issuer)
        if known is not None:  # so that other commands can refresh
            record = registered(tokens, known, self._login.redirect.uri)
            await self._login.store.put(record.key, record)
        return tokens


class Anywhere(Program, frozen=True, kw_only=True):
    """A program that has one name wherever it comes; it has no secret that could go astray.

    Attributes:
        client: the name.
    """

    client: Preregistered

    def known(self, issuer: str) -> Identity | None:  # noqa: ARG002 - it is the same everywhere
        """Who it is at an issuer."""
        return self.client.identity


class Pasted:
    """The user brings back the address that a browser, anywhere, was sent to.

    It is configured like :class:`Loopback`, so that both use one registration.
    """

    native = True

    def __init__(self) -> None:
        self.uri = Loopback().uri

    async def open(self, before: str | None = None) -> Landing:
        """Be ready for the user."""
        return ByHand(before or f"http://127.0.0.1:{PORT}/callback", pasted)


async def pasted(url: str) -> str:
    """Show the user an address, and have them paste the one they end at."""
    keyboard = Keyboard()
    keyboard.say(f"Open this address in any browser and log in:\n\n{url}\n")
    keyboard.say("It ends at an address that begins with http://127.0.0.1 and may not load.")
    answer = await keyboard.ask("Paste that address here: ")
    if not answer:
        raise AuthRequired("no address was pasted, so nobody is logged in")
    return answer.strip()


async def prepared(target: Target, said: Login) -> FreshOAuth:
    """What logs in, with a place to keep tokens.

    Raises:
        UsageError: there is no such place, or the command line does not add up.
    """
    url_of(target)
    if said.secret is not None and not (said.client_id and said.issuer):
        raise UsageError(
            "a client's secret is for one authorization server: name it by --issuer, and the "
            "client by --client-id"
        )
    require("filelock", "Keeping tokens between two commands")
    store = DefaultTokenStore(patience=UNLOCKING)
    if isinstance(await store.chosen(), MemoryTokenStore):
        raise UsageError(
            "there is nowhere to keep tokens between two commands: set ISTHMUS_STORE_KEY to what "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))' prints, once, and log in"
        )
    return FreshOAuth(said, Loopback() if said.browser else Pasted(), store)


async def connected(target: Target, auth: FreshOAuth) -> None:
    """Connect, which has the server ask whoever it wants to know."""
    headers = dict(target.headers) or None
    try:
        async with Client(target.where, auth=auth, headers=headers, name="isthmus-cli"):
            pass
    except (AuthUnsafe, DiscoveryFailed, NetworkFailed):
        note(f"isthmus auth doctor {target.label} walks the way to a token, hop by hop")
        raise


def url_of(target: Target) -> str:
    """The URL of a server that may want a login; that of a WebSocket as its handshake has it.

    Raises:
        UsageError: it is not reached over HTTP.
    """
    url = over_http(target)
    if url is None:
        raise UsageError(
            f"{target.label} is not reached over HTTP: it takes its credentials from its environment"
        )
    return plain(url)


def secret_of(variable: str | None, environ: Mapping[str, str]) -> Secret | None:
    """A client's secret, which is never taken from the command line.

    Raises:
        UsageError: there is no such variable.
    """
    if variable is None:
        return None
    if not environ.get(variable):
        raise UsageError(f"--client-secret-env {variable}: there is no such variable")
    return Secret(environ[variable])


def registered(tokens: Tokens, client: Identity, redirect: str) -> Registration:
    """A client that the command line named, as one that other commands find."""
    return Registration(
        issuer=tokens.issuer,
        client_id=client.client_id,
        redirect=redirect,
        method=method_of(client, tokens.methods),
        secret=client.secret,
    )


def described(tokens: Tokens) -> Mapping[str, str | list[str]]:
    """What may be said of tokens: everything but themselves."""
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
