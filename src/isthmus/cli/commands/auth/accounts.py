"""``isthmus auth add-user`` and ``add-client``: accounts of an authorization server."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.auth.protocol import (
    AUTH_METHODS,
    AUTHORIZATION_CODE_GRANT,
    CLIENT_CREDENTIALS_GRANT,
    REFRESH_GRANT,
    SECRET_METHODS,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import print_json, print_note
from isthmus.core.principal import is_scope
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.clients import RegisteredClient
    from isthmus.auth.authorization_server.storage.records import Records
    from isthmus.cli.commands.auth.config import AuthConfig


def add_user(config: "AuthConfig", account: str, name: str, *, replace: bool) -> Exit:
    """Add a user with the password that is typed or piped in.

    Raises:
        UsageError: the name is taken, or it or the password will not do.
    """
    users = config.passwords()
    user = users.add(account, read_password(), name, replace=replace)
    print_note(f"{user.id} can sign in ({users.path})")
    if replace:
        print_note(
            f"whoever signed in with the former password still is: if it was stolen, run isthmus "
            f"auth revoke user {user.id}, and this once more"
        )
    return Exit.OK


def read_password() -> Secret:
    """A password from the terminal, typed twice; or the first line of standard input.

    Raises:
        UsageError: the two differ, or there is none.
    """
    if not sys.stdin.isatty():
        piped = Secret(sys.stdin.readline().rstrip("\r\n"))
        if not piped:
            raise UsageError("no password came on standard input")
        return piped
    typed = Secret(getpass("Password: "))
    if typed != Secret(getpass("Once more: ")):
        raise UsageError("the two passwords differ")
    return typed


@dataclass(frozen=True)
class ClientOptions:
    """A client as the command line describes it."""

    client_id: str
    name: str
    redirect_uris: Sequence[str]
    grants: Sequence[str]
    auth_method: str | None
    scopes: Sequence[str] | None
    jwks: str | None
    introspects: bool

    def client(self) -> "RegisteredClient":
        """The client that is meant.

        Raises:
            UsageError: what was said does not go together.
        """
        from isthmus.auth.authorization_server.storage.clients import RegisteredClient

        grants = tuple(self.grants) or self._usual_grants()
        method: Any = self.auth_method or ("private_key_jwt" if self.jwks else self._usual(grants))
        if method not in AUTH_METHODS:
            raise UsageError(f"--auth-method {method}: one of {', '.join(AUTH_METHODS)}")
        if unknown := set(grants) - {
            AUTHORIZATION_CODE_GRANT,
            REFRESH_GRANT,
            CLIENT_CREDENTIALS_GRANT,
        }:
            raise UsageError(
                f"--grant {unknown.pop()}: one of {AUTHORIZATION_CODE_GRANT}, {REFRESH_GRANT}, {CLIENT_CREDENTIALS_GRANT}"
            )
        if (AUTHORIZATION_CODE_GRANT in grants) != bool(self.redirect_uris):
            raise UsageError(
                f"--redirect-uri goes with --grant {AUTHORIZATION_CODE_GRANT}, and the other way round"
            )
        if CLIENT_CREDENTIALS_GRANT in grants and method == "none":
            raise UsageError(
                f"--grant {CLIENT_CREDENTIALS_GRANT} needs a client that authenticates: --auth-method"
            )
        if (method == "private_key_jwt") != bool(self.jwks):
            raise UsageError("--jwks goes with --auth-method private_key_jwt")
        for scope in self.scopes or ():
            if not is_scope(scope):
                raise UsageError(f"--scope {scope!r}: write one name, and repeat --scope for more")
        return RegisteredClient(
            client_id=self.client_id,
            name=self.name,
            redirect_uris=tuple(map(check_redirect_uri, self.redirect_uris)),
            grant_types=grants,
            auth_method=method,
            jwks=read_jwks(self.jwks) if self.jwks else None,
            scopes=tuple(self.scopes) if self.scopes else None,
            introspects=self.introspects,
        )

    def _usual_grants(self) -> tuple[str, ...]:
        if self.redirect_uris:
            return (AUTHORIZATION_CODE_GRANT, REFRESH_GRANT)
        return () if self.introspects else (CLIENT_CREDENTIALS_GRANT,)

    def _usual(self, grants: Sequence[str]) -> str:
        return (
            "client_secret_basic"
            if CLIENT_CREDENTIALS_GRANT in grants or self.introspects
            else "none"
        )


def check_redirect_uri(uri: str) -> str:
    """A redirect URI that an operator typed.

    Raises:
        UsageError: codes must not be sent there.
    """
    from isthmus.auth.authorization_server.storage.clients import UnacceptableClient, check_redirect

    try:
        # An operator knows which apps there are, so that any scheme of one will do.
        check_redirect(uri, schemes=[uri.partition(":")[0]])
    except UnacceptableClient as flaw:
        raise UsageError(f"--redirect-uri {uri}: {flaw}") from None
    return uri


def read_jwks(file: str) -> dict[str, Any]:
    """A file with a JWK set, or with one key.

    Raises:
        UsageError: it is none, or it holds a private key.
    """
    from isthmus.auth.authorization_server.storage.clients import UnacceptableClient, check_jwks

    try:
        found = json.loads(Path(file).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--jwks {file} cannot be read: {error}") from None
    whole = {"keys": found.get("keys", [found]) if isinstance(found, dict) else []}
    try:
        check_jwks(whole)
    except UnacceptableClient as flaw:
        raise UsageError(f"--jwks {file}: {flaw}") from None
    return whole


def add_client(config: "AuthConfig", words: ClientOptions, *, replace: bool, as_json: bool) -> Exit:
    """Add a client, and print its secret where it has one; it is not to be had again.

    Raises:
        UsageError: there is such a client already, or it makes no sense.
    """
    client = words.client()
    if config.scopes:  # else nobody knows them here
        from isthmus.auth.authorization_server.core.settings import check_client_scopes

        check_client_scopes(client.client_id, client.scopes or (), config.scopes)
    secret = Secret.random() if client.auth_method in SECRET_METHODS else None
    asyncio.run(_save_client(config, client, secret, replace=replace))
    shown = None if secret is None else secret.reveal()
    if as_json:
        print_json({"client_id": client.client_id, "client_secret": shown})
    elif shown is not None:
        print_note(f"{client.client_id} is added; its secret is shown this once:")
        print(shown)
    else:
        print_note(f"{client.client_id} is added")
    return Exit.OK


async def _save_client(
    config: "AuthConfig", client: "RegisteredClient", secret: Secret | None, *, replace: bool
) -> None:
    def save(records: "Records") -> None:
        if records.client(client.client_id) is not None and not replace:
            raise UsageError(f"there is a client {client.client_id} already: --replace changes it")
        records.save_client(client, None if secret is None else secret.reveal())
        records.audit("client_added", client_id=client.client_id)

    store = config.opened_store()
    try:
        await store.write(save)
    finally:
        await store.close()
