"""``isthmus auth list``, ``revoke`` and ``rotate-keys``: the store of an authorization server."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import print_json, print_lines, print_note
from isthmus.core.text import show_invisible
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.records import Records
    from isthmus.cli.commands.auth.config import AuthConfig

RECORD_KINDS = ("clients", "users", "grants")
T = TypeVar("T")


def print_records(config: "AuthConfig", kinds: Sequence[str], *, as_json: bool) -> Exit:
    """Print clients, users and grants, without anything secret.

    Raises:
        UsageError: there is no such kind of thing.
    """
    if unknown := [kind for kind in kinds if kind not in RECORD_KINDS]:
        raise UsageError(f"{unknown[0]}: what can be listed is {', '.join(RECORD_KINDS)}")
    wanted = [kind for kind in RECORD_KINDS if not kinds or kind in kinds]
    found: dict[str, list[dict[str, Any]]] = {}
    if "users" in wanted and Path(config.users).exists():
        found["users"] = [
            {"id": user.id, "name": user.name, "disabled": user.disabled}
            for user in config.passwords().all()
        ]
    if {"clients", "grants"} & {*wanted}:
        found |= run_in_store(config, read_records, write=False)
    found = {kind: found.get(kind, []) for kind in wanted}
    if as_json:
        print_json(found)
    else:
        print_lines("\n\n".join(format_table(kind, rows) for kind, rows in found.items()))
    return Exit.OK


def read_records(records: "Records") -> dict[str, list[dict[str, Any]]]:
    """The clients and the grants that hold."""
    return {
        "clients": [
            {
                "id": client.client_id,
                "name": client.name,
                "kind": client.kind,
                "auth_method": client.auth_method,
                "grant_types": list(client.grant_types),
                "redirect_uris": list(client.redirect_uris),
            }
            for client in records.clients()
        ],
        "grants": [
            {
                "id": grant.id,
                "client": grant.client_id,
                "user": grant.user_id,
                "scope": grant.scope,
                "resource": grant.resource,
                "since": grant.created_at,
                "until": grant.expires_at,
            }
            for grant in records.grants()
        ],
    }


def format_table(kind: str, rows: Sequence[dict[str, Any]]) -> str:
    """Rows for people: a heading, and columns as wide as they have to be."""
    if not rows:
        return f"no {kind}"
    cells = [[heading.replace("_", " ") for heading in rows[0]]]
    cells += [
        [show_invisible(format_cell(name, value), line=True) for name, value in row.items()]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    return "\n".join([f"{len(rows)} {kind if len(rows) > 1 else kind[:-1]}", *lines])


def format_cell(name: str, value: Any) -> str:
    """A value for people."""
    if name in {"since", "until"}:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return str(value) or "-"


def revoke_record(config: "AuthConfig", kind: str, name: str) -> Exit:
    """End a grant, forget a client, or disable a user.

    Raises:
        UsageError: there is no such thing.
    """
    enders: dict[str, Callable[[AuthConfig, str], str | None]] = {
        "grant": end_grant,
        "client": end_client,
        "user": end_user,
    }
    if kind not in enders:
        raise UsageError(f"{kind}: what can be revoked is a {', a '.join(enders)}")
    done = enders[kind](config, name)
    if done is None:
        raise UsageError(
            f"there is no {kind} {name}: isthmus auth list {kind}s shows those there are"
        )
    print_note(done)
    return Exit.OK


def end_grant(config: "AuthConfig", name: str) -> str | None:
    """Revoke one grant."""

    def end(records: "Records") -> bool:
        grant = records.grant(name)
        if grant is None or not records.revoke_grant(name):
            return False
        records.forget_consent(grant.client_id, grant.user_id)  # else the next one needs no yes
        records.audit("grant_revoked", grant_id=name)
        return True

    return "the grant has ended" if run_in_store(config, end, write=True) else None


def end_client(config: "AuthConfig", name: str) -> str | None:
    """Forget a client; one that a document describes is unknown here, but for its grants."""

    def end(records: "Records") -> tuple[int, bool]:
        grants = len(records.grants(client_id=name))
        gone = records.remove_client(name)
        records.audit("client_revoked", client_id=name)
        return grants, gone

    grants, gone = run_in_store(config, end, write=True)
    return f"the client is gone, with {format_grant_count(grants)}" if gone or grants else None


def end_user(config: "AuthConfig", name: str) -> str | None:
    """Disable a user and end what they granted; they may be known to a proxy or a provider only."""
    known = Path(config.users).exists() and config.passwords().disable(name)

    def end(records: "Records") -> int:
        records.audit("user_revoked", user_id=name)
        return records.revoke_user(name)

    grants = run_in_store(config, end, write=True)
    if known:
        return f"the user cannot sign in any more, and {format_grant_count(grants)} ended"
    return f"{format_grant_count(grants)} of that user ended" if grants else None


def format_grant_count(grants: int) -> str:
    """A number of grants, in words."""
    return "1 grant" if grants == 1 else f"{grants} grants"


def rotate_signing_keys(config: "AuthConfig", *, as_json: bool) -> Exit:
    """Make the next signing key the current one."""
    from isthmus.auth.authorization_server.core.tokens import Keyring  # with the extra
    from isthmus.auth.authorization_server.core.tokens import load_keys as keys

    def rotate(records: "Records") -> list[dict[str, Any]]:
        now = keys(records)
        ring = Keyring(now[0].alg if now else "ES256", life=0, overlap=0)
        ring.rotate(records)
        return [{"kid": key.kid, "alg": key.alg, "state": key.state} for key in keys(records)]

    found = run_in_store(config, rotate, write=True)
    if as_json:
        print_json(found)
    else:
        print_lines(format_table("keys", found))
        print_note("running servers use it from the next token on")
    return Exit.OK


def run_in_store(config: "AuthConfig", work: "Callable[[Records], T]", *, write: bool) -> T:
    """Do something in one transaction of the store, and close it.

    Raises:
        UsageError: the store cannot be opened, or is not there when it is only to be read.
    """

    async def done() -> T:
        store = config.opened_store()
        try:
            return await (store.write(work) if write else store.read(work))
        finally:
            await store.close()

    if not Path(config.store).exists():
        raise UsageError(f"there is no store {config.store}: name it with --store or --config")
    return asyncio.run(done())
