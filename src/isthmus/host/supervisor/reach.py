"""How an entry of the configuration is reached: launched, or over HTTP with its credentials."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.client.targets import ClientTarget, launched, resolve
from isthmus.host.config.entries import ServerEntry
from isthmus.host.errors import ConfigError
from isthmus.host.supervisor.identity import identity
from isthmus.revisions import LATEST
from isthmus.transports.command import Command
from isthmus.transports.http.address import Http, HttpSse

if TYPE_CHECKING:
    from isthmus.transports.http.bearer import Authorization

__all__ = ["credentials", "opened_as_said", "pinned", "reach"]

WITH_TOKENS = frozenset({"http", "sse", "ws"})
"""Kinds of servers that can be shown a token."""


def reach(entry: ServerEntry, confine: Callable[[Command], Command] = lambda c: c) -> ClientTarget:
    """Where a server is, for a :class:`~isthmus.client.Client`.

    What revision it speaks is remembered by its identity: another program is asked anew.

    Args:
        entry: the server.
        confine: makes of its command the one that is run, such as one within a sandbox.

    Raises:
        ConfigError: the entry cannot be reached as it says.
    """
    if entry.command:
        command = Command(*entry.command, env=entry.env, cwd=entry.cwd or None)
        target = launched(confine(command))
        target = structs.replace(target, name=str(command), key=(identity(entry), target.key))
    else:
        at = HttpSse(entry.url) if entry.kind == "sse" else entry.url
        where: Http | str = at
        timeout = entry.options.timeouts.connect
        target = resolve(where, dict(entry.headers), timeout, credentials(entry))
    return opened_as_said(target, entry)


def opened_as_said(target: ClientTarget, entry: ServerEntry) -> ClientTarget:
    """A server that is said to be of before 2026-07-28: nothing but the handshake is tried."""
    if entry.options.era != "legacy":
        return target
    found = resolve(target, None, entry.options.timeouts.connect)
    return structs.replace(found, handshake=True)


def pinned(entry: ServerEntry) -> str | None:
    """The one revision to speak with it, for ``Client(revision=…)``; None finds out."""
    return LATEST.name if entry.options.era == "modern" else None


def credentials(entry: ServerEntry) -> "Authorization | None":
    """What gets the tokens for a server over HTTP; None where it needs none.

    No browser is opened by any of them: a server that wants a login is ``needs_auth``.

    Raises:
        ConfigError: the entry's ``auth`` is of no kind there is, or lacks a member.
    """
    if entry.kind not in WITH_TOKENS or any(
        name.lower() == "authorization" for name in entry.headers
    ):
        return None
    kind = str(entry.options.auth.get("kind", "user-oauth"))
    make = KINDS.get(kind)
    if make is None:
        raise ConfigError(
            f"{entry.name}: host.auth.kind is {kind!r}; there are: {', '.join(sorted(KINDS))}"
        )
    return make(entry, entry.options.auth)


Auth = Mapping[str, Any]


def _none(_entry: ServerEntry, _auth: Auth) -> None:
    """Nothing."""


def _kept(entry: ServerEntry, _auth: Auth) -> "Authorization":
    """The tokens of an earlier login of the user's."""
    from isthmus.auth.client.kept import KeptOAuth  # authorization is for few servers

    return KeptOAuth(entry.url)


def _static(entry: ServerEntry, auth: Auth) -> "Authorization":
    """One token."""
    from isthmus.auth.client.bearer_token import BearerToken  # as above
    from isthmus.auth.secret import Secret

    return BearerToken(Secret(_member(entry, auth, "token")))


def _machine(entry: ServerEntry, auth: Auth) -> "Authorization":
    """What a program gets for what it is."""
    from isthmus.auth.client.client_credentials import ClientCredentials  # as above
    from isthmus.auth.secret import Secret

    return ClientCredentials(
        _member(entry, auth, "clientId"),
        secret=Secret(_member(entry, auth, "clientSecret")),
        scopes=auth.get("scopes"),
        authorization_server=auth.get("issuer"),
    )


def _member(entry: ServerEntry, auth: Auth, member: str) -> str:
    value = auth.get(member)
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"{entry.name}: host.auth of the kind {auth['kind']!r} needs {member!r}, a text"
        )
    return value


KINDS: Mapping[str, Callable[[ServerEntry, Auth], "Authorization | None"]] = {
    "none": _none,
    "user-oauth": _kept,
    "static": _static,
    "client-credentials": _machine,
}
"""What ``host.auth.kind`` may be; without one the tokens of a login are shown, if there was one."""
