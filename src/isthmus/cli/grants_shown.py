"""What the commands of ``isthmus grants`` do and print."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from msgspec import structs

from isthmus.cli.audit_rows import folder_of
from isthmus.cli.exits import Exit
from isthmus.cli.output import note, print_json, print_line
from isthmus.errors import UsageError
from isthmus.host.grants import Grant, Grants
from isthmus.host.state import HostState

__all__ = ["listing", "revoke", "show"]


@asynccontextmanager
async def grants_in(state: str | None) -> AsyncIterator[tuple[HostState, Grants]]:
    """The grants of a host, which may be running in another process.

    Raises:
        UsageError: there is no host's state there.
    """
    folder = folder_of(state)
    if not (folder / "host.db").is_file():
        raise UsageError(f"there is no state of a host in {folder}: nothing was granted there yet")
    held = HostState(folder)
    try:
        grants = Grants(held)
        await grants.refresh()
        await grants.end_dead()
        yield held, grants
    finally:
        await held.close()


async def listing(state: str | None, *, ended: bool, as_json: bool) -> Exit:
    """List what was granted."""
    async with grants_in(state) as (_, grants):
        found = await grants.history() if ended else grants.all()
    if as_json:
        print_json(found)
        return Exit.OK
    for grant in found:
        print_line(f"{grant.id}  {_sentence(grant)}")
    if not found:
        note("nothing is granted")
    return Exit.OK


def _sentence(grant: Grant) -> str:
    what = grant.object or "every tool that only reads"
    until = "" if grant.until is None else f", until {_time(grant.until)}"
    uses = "" if grant.uses is None else f", {grant.uses} times"
    ended = f" [{grant.ended}]" if grant.ended else ""
    return (
        f"{grant.principal} {grant.action} {what} of {grant.server}: {grant.scope}{until}{uses}"
        f"{ended}"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")


async def show(state: str | None, id: str, *, as_json: bool) -> Exit:
    """Print all about one grant."""
    async with grants_in(state) as (_, grants):
        grant = next((one for one in await grants.history() if one.id == id), None)
    if grant is None:
        raise UsageError(f"no grant is called {id!r}: isthmus grants list --ended has them all")
    if as_json:
        print_json(grant)
        return Exit.OK
    for name, value in structs.asdict(grant).items():
        if value not in {"", None, ()}:
            shown = _time(value) if name in {"created", "until"} else value
            print_line(f"{name:12} {', '.join(shown) if isinstance(shown, tuple) else shown}")
    return Exit.OK


async def revoke(state: str | None, ids: Sequence[str]) -> Exit:
    """Take grants back, and write it down."""
    from isthmus.host.audit.log import AuditLog
    from isthmus.host.audit.row import Row

    missing = []
    async with grants_in(state) as (held, grants):
        log = AuditLog(held)
        for id in ids:
            known = next((one for one in grants.all() if one.id == id), None)
            if known is None or not await grants.revoke(id):
                missing.append(id)
                continue
            await log.write(
                Row(
                    kind="grant",
                    principal=known.principal,
                    action=known.action,
                    server=known.server,
                    identity=known.identity,
                    object=known.object,
                    grant=id,
                    effect="revoked",
                    approver="command line",
                )
            )
            print_line(f"revoked {id}")
        await log.close()
    if missing:
        raise UsageError(f"no grant that holds is called {', '.join(missing)}")
    return Exit.OK
