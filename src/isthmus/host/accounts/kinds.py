"""Kinds of ``host.auth``: how the credentials of a server are made, as data.

Some are the same for whoever calls; the others are those of one principal, and take the accounts of the host.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.host.accounts.ownership import (
    IMPLICIT_KIND,
    NAMED_KINDS,
    find_kind,
    read_owner,
)
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import ConfigError

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.transports.http.client.requests import Authorization

AuthOptions: TypeAlias = Mapping[str, Any]

DEFAULT_KEY_HEADER = "Authorization"
DEFAULT_KEY_PREFIX = "Bearer "


def make_credentials(
    entry: ServerEntry, isolation: str = "", accounts: "Accounts | None" = None
) -> "Authorization | None":
    """Make the credentials of a connection to a server over HTTP; None where it needs none.

    No browser is opened by any of them: a server that wants a login is ``needs_auth``.

    Args:
        entry: the server.
        isolation: whose connection it is.
        accounts: the accounts of the host; None where it keeps none.

    Raises:
        ConfigError: the entry's ``auth`` is of no kind there is, or lacks a member.
    """
    kind = find_kind(entry)
    if kind is None:
        return None
    if kind not in AUTH_KINDS:
        raise ConfigError(
            f"{entry.name}: host.auth.kind is {kind!r}; there are: "
            f"{', '.join(sorted(filter(None, AUTH_KINDS)))}"
        )
    if kind in NAMED_KINDS and accounts is None:
        raise ConfigError(f"{entry.name}: host.auth.kind {kind!r} needs a host with accounts")
    if kind in NAMED_KINDS and entry.options.instance == "shared":
        raise ConfigError(
            f"{entry.name}: host.auth.kind {kind!r} belongs to one user, so a shared connection "
            "cannot use it: leave instance out, or write per-user"
        )
    return AUTH_KINDS[kind](entry, isolation, accounts)


def _make_none(_entry: ServerEntry, _isolation: str, _accounts: "Accounts | None") -> None:
    """No credentials."""


def _make_user_oauth(
    entry: ServerEntry, isolation: str, accounts: "Accounts | None"
) -> "Authorization":
    """The tokens of an earlier login."""
    if accounts is None:
        from isthmus.auth.client.grants.oauth import StoredLogin  # authorization is for few servers

        return StoredLogin(entry.url)
    return accounts.make_login(entry, isolation)


def _make_pasted_key(
    entry: ServerEntry, isolation: str, accounts: "Accounts | None"
) -> "Authorization":
    from isthmus.host.accounts.personal import PastedKey

    header, prefix = find_key_header(entry)
    assert accounts is not None  # noqa: S101 - make_credentials has seen to it
    owner = read_owner(isolation)
    return PastedKey(entry.name, owner, accounts.vault, header=header, prefix=prefix)


def _make_token_exchange(
    entry: ServerEntry, isolation: str, accounts: "Accounts | None"
) -> "Authorization":
    """A token of the server's issuer for what this gateway says of a principal.

    spec 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction: the
    server MUST NOT pass through the token it received from the client; it is no part of this.
    """
    from isthmus.auth.client.grants.token_exchange import TokenExchange
    from isthmus.host.accounts.assertions import make_assertions

    auth = entry.options.auth
    assert accounts is not None  # noqa: S101 - as above
    assertions = make_assertions(entry, auth, accounts.vault.clock)

    principal = read_owner(isolation)

    async def sign(audience: str) -> Any:
        return assertions.sign(principal, audience)

    return TokenExchange(
        _read_client(entry, "clientId", "clientSecret"),
        sign,
        audience=str(auth.get("audience", "")),
        scopes=auth.get("scopes"),
        authorization_server=auth.get("issuer"),
    )


def _make_id_jag(
    entry: ServerEntry, isolation: str, accounts: "Accounts | None"
) -> "Authorization":
    """A token by an identity provider's grant for a principal, whom this gateway names to it."""
    from isthmus.auth.client.grants.enterprise import EnterpriseManaged
    from isthmus.host.accounts.assertions import make_assertions

    auth = entry.options.auth
    assert accounts is not None  # noqa: S101 - as above
    assertions = make_assertions(entry, auth, accounts.vault.clock)
    endpoint = _read_member(entry, "idpTokenEndpoint")
    audience = str(auth.get("idpIssuer", endpoint))

    principal = read_owner(isolation)

    async def sign() -> Any:
        return assertions.sign(principal, audience)

    return EnterpriseManaged(
        endpoint,
        idp_client=_read_client(entry, "idpClientId", "idpClientSecret"),
        subject_token=sign,
        subject_token_type="jwt",  # noqa: S106 - a kind
        client=_read_client(entry, "clientId", "clientSecret"),
        scopes=auth.get("scopes"),
        authorization_server=auth.get("issuer"),
    )


def _make_static_token(
    entry: ServerEntry, _isolation: str, _accounts: "Accounts | None"
) -> "Authorization":
    from isthmus.auth.client.grants.bearer_token import BearerToken  # as above
    from isthmus.auth.tokens.secret import Secret

    return BearerToken(Secret(_read_member(entry, "token")))


def _make_client_credentials(
    entry: ServerEntry, _isolation: str, _accounts: "Accounts | None"
) -> "Authorization":
    from isthmus.auth.client.grants.client_credentials import ClientCredentials  # as above
    from isthmus.auth.tokens.secret import Secret

    auth = entry.options.auth
    return ClientCredentials(
        _read_member(entry, "clientId"),
        secret=Secret(_read_member(entry, "clientSecret")),
        scopes=auth.get("scopes"),
        authorization_server=auth.get("issuer"),
    )


def find_key_header(entry: ServerEntry) -> tuple[str, str]:
    """The header of a pasted key, and what stands before the key in it.

    Raises:
        ConfigError: they cannot be in a header.
    """
    auth = entry.options.auth
    header, prefix = auth.get("header", DEFAULT_KEY_HEADER), auth.get("prefix")
    if prefix is None:
        prefix = DEFAULT_KEY_PREFIX if header == DEFAULT_KEY_HEADER else ""
    if (
        not isinstance(header, str)
        or not isinstance(prefix, str)
        or not header.replace("-", "").isalnum()
        or not header.isascii()
        or (prefix and not (prefix.isascii() and prefix.isprintable()))
    ):
        raise ConfigError(
            f"{entry.name}: host.auth of the kind 'pasted-key' takes 'header', the name of a header, "
            "and 'prefix', the text before the key in it"
        )
    return header, prefix


def _read_client(entry: ServerEntry, id: str, secret: str) -> Any:
    from isthmus.auth.client.registration import StaticClient
    from isthmus.auth.tokens.secret import Secret

    return StaticClient(_read_member(entry, id), secret=Secret(_read_member(entry, secret)))


def _read_member(entry: ServerEntry, member: str) -> str:
    auth = entry.options.auth
    value = auth.get(member)
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"{entry.name}: host.auth of the kind {auth['kind']!r} needs {member!r}, a text"
        )
    return value


MakeCredentials: TypeAlias = Callable[[ServerEntry, str, "Accounts | None"], "Authorization | None"]

# of host.auth.kind; without one the tokens of a login are shown, if there was one
AUTH_KINDS: Mapping[str, MakeCredentials] = {
    IMPLICIT_KIND: _make_user_oauth,
    "none": _make_none,
    "user-oauth": _make_user_oauth,
    "static": _make_static_token,
    "client-credentials": _make_client_credentials,
    "pasted-key": _make_pasted_key,
    "token-exchange": _make_token_exchange,
    "id-jag": _make_id_jag,
}
