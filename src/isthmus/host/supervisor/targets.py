"""Client targets of servers: launched by a command, or reached over HTTP with credentials."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.client.targets import ClientTarget, command_target, resolve_target
from isthmus.host.model.entries import ServerEntry
from isthmus.host.model.errors import ConfigError
from isthmus.host.supervisor.identity import identify_server
from isthmus.revisions import LATEST
from isthmus.transports.command import Command
from isthmus.transports.http.client.address import Http, HttpSse

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

KINDS_WITH_TOKENS = frozenset({"http", "sse", "ws"})


def make_target(
    entry: ServerEntry, confine: Callable[[Command], Command] = lambda c: c
) -> ClientTarget:
    """Make the target of a server for a :class:`~isthmus.client.Client`.

    What revision it speaks is remembered by its identity: another program is asked anew.

    Args:
        entry: the server.
        confine: makes of its command the one that is run, such as one within a sandbox.

    Raises:
        ConfigError: the entry cannot be reached as it says.
    """
    if entry.command:
        command = Command(*entry.command, env=entry.env, cwd=entry.cwd or None)
        target = command_target(confine(command))
        target = structs.replace(
            target, name=str(command), key=(identify_server(entry), target.key)
        )
    else:
        at = HttpSse(entry.url) if entry.kind == "sse" else entry.url
        where: Http | str = at
        timeout = entry.options.timeouts.connect
        target = resolve_target(where, dict(entry.headers), timeout, make_credentials(entry))
    return apply_era(target, entry)


def apply_era(target: ClientTarget, entry: ServerEntry) -> ClientTarget:
    """Restrict a server with ``era = "legacy"`` to the handshake of before 2026-07-28."""
    if entry.options.era != "legacy":
        return target
    found = resolve_target(target, None, entry.options.timeouts.connect)
    return structs.replace(found, handshake=True)


def get_pinned_revision(entry: ServerEntry) -> str | None:
    """The one revision to speak, for ``Client(revision=…)``; None negotiates it."""
    return LATEST.name if entry.options.era == "modern" else None


def make_credentials(entry: ServerEntry) -> "Authorization | None":
    """Make the credentials of a server over HTTP; None where it needs none.

    No browser is opened by any of them: a server that wants a login is ``needs_auth``.

    Raises:
        ConfigError: the entry's ``auth`` is of no kind there is, or lacks a member.
    """
    if entry.kind not in KINDS_WITH_TOKENS or any(
        name.lower() == "authorization" for name in entry.headers
    ):
        return None
    kind = str(entry.options.auth.get("kind", "user-oauth"))
    make = AUTH_KINDS.get(kind)
    if make is None:
        raise ConfigError(
            f"{entry.name}: host.auth.kind is {kind!r}; there are: {', '.join(sorted(AUTH_KINDS))}"
        )
    return make(entry, entry.options.auth)


AuthOptions = Mapping[str, Any]


def _make_none(_entry: ServerEntry, _auth: AuthOptions) -> None:
    """No credentials."""


def _make_user_oauth(entry: ServerEntry, _auth: AuthOptions) -> "Authorization":
    """The tokens of an earlier login of the user."""
    from isthmus.auth.client.grants.oauth import StoredLogin  # authorization is for few servers

    return StoredLogin(entry.url)


def _make_static_token(entry: ServerEntry, auth: AuthOptions) -> "Authorization":
    from isthmus.auth.client.grants.bearer_token import BearerToken  # as above
    from isthmus.auth.tokens.secret import Secret

    return BearerToken(Secret(_read_member(entry, auth, "token")))


def _make_client_credentials(entry: ServerEntry, auth: AuthOptions) -> "Authorization":
    from isthmus.auth.client.grants.client_credentials import ClientCredentials  # as above
    from isthmus.auth.tokens.secret import Secret

    return ClientCredentials(
        _read_member(entry, auth, "clientId"),
        secret=Secret(_read_member(entry, auth, "clientSecret")),
        scopes=auth.get("scopes"),
        authorization_server=auth.get("issuer"),
    )


def _read_member(entry: ServerEntry, auth: AuthOptions, member: str) -> str:
    value = auth.get(member)
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"{entry.name}: host.auth of the kind {auth['kind']!r} needs {member!r}, a text"
        )
    return value


# of host.auth.kind; without one the tokens of a login are shown, if there was one
AUTH_KINDS: Mapping[str, Callable[[ServerEntry, AuthOptions], "Authorization | None"]] = {
    "none": _make_none,
    "user-oauth": _make_user_oauth,
    "static": _make_static_token,
    "client-credentials": _make_client_credentials,
}
