"""Client targets of servers: launched by a command, or reached over HTTP with credentials."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import structs

from isthmus.client.targets import ClientTarget, command_target, resolve_target
from isthmus.host.accounts.kinds import make_credentials
from isthmus.host.model.entries import ServerEntry
from isthmus.host.supervisor.identity import identify_server
from isthmus.revisions import BY_NAME, LATEST
from isthmus.transports.command import Command
from isthmus.transports.http.client.address import Http, HttpSse

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts

__all__ = ["apply_era", "get_pinned_revision", "make_credentials", "make_target"]


def make_target(
    entry: ServerEntry,
    confine: Callable[[Command], Command] = lambda c: c,
    *,
    isolation: str = "",
    accounts: "Accounts | None" = None,
) -> ClientTarget:
    """Make the target of a server for a :class:`~isthmus.client.Client`.

    What revision it speaks is remembered by its identity: another program is asked anew.

    Args:
        entry: the server.
        confine: makes of its command the one that is run, such as one within a sandbox.
        isolation: whose connection it is.
        accounts: the accounts that it may show.

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
        credentials = make_credentials(entry, isolation, accounts)
        target = resolve_target(where, dict(entry.headers), timeout, credentials)
    return apply_era(target, entry)


def apply_era(target: ClientTarget, entry: ServerEntry) -> ClientTarget:
    """Restrict a server with ``era = "legacy"`` to the handshake of before 2026-07-28."""
    if entry.options.era != "legacy":
        return target
    found = resolve_target(target, None, entry.options.timeouts.connect)
    return structs.replace(found, handshake=True)


def get_pinned_revision(entry: ServerEntry) -> str | None:
    """The one revision to speak, for ``Client(revision=…)``; None negotiates it."""
    era = entry.options.era
    if era == "modern":
        return LATEST.name
    return era if era in BY_NAME else None
