"""``isthmus grants``: list and revoke what the user allowed for longer than once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

from msgspec import structs

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.host_state import find_host_folder
from isthmus.cli.options import AsJson, StateFolder
from isthmus.cli.output import print_json, print_line, print_note
from isthmus.errors import UsageError
from isthmus.host.approvals.grant_matching import Grant
from isthmus.host.approvals.grants import Grants
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.row import AuditRow
from isthmus.host.state.database import HostState

app = CommandSet(
    name="grants",
    help="List and revoke grants that outlast a single call.",
    no_args_is_help=True,
)


@app.command("list")
def list_(
    *,
    ended: Annotated[bool, Option("--ended", help="Include expired and revoked grants.")] = False,
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """List grants, the newest first."""
    finish(lambda: print_grants(state, ended=ended, as_json=as_json))


@app.command()
def show(
    id: Annotated[str, Argument(metavar="ID", show_default=False)],
    *,
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Print all details of one grant."""
    finish(lambda: print_grant(state, id, as_json=as_json))


@app.command()
def revoke(
    ids: Annotated[list[str], Argument(metavar="ID...", show_default=False)],
    *,
    state: StateFolder = None,
) -> None:
    """Revoke grants; a running host asks again within a second."""
    finish(lambda: revoke_grants(state, ids))


@asynccontextmanager
async def open_grants(state: str | None) -> AsyncIterator[tuple[HostState, Grants]]:
    """The grants of a host, which may be running in another process.

    Raises:
        UsageError: there is no host's state there.
    """
    folder = find_host_folder(state)
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


async def print_grants(state: str | None, *, ended: bool, as_json: bool) -> Exit:
    """List what was granted."""
    async with open_grants(state) as (_, grants):
        found = await grants.history() if ended else grants.all()
    if as_json:
        print_json(found)
        return Exit.OK
    for grant in found:
        print_line(f"{grant.id}  {_format_grant(grant)}")
    if not found:
        print_note("nothing is granted")
    return Exit.OK


def _format_grant(grant: Grant) -> str:
    what = grant.object or "every tool that only reads"
    until = "" if grant.until is None else f", until {_format_time(grant.until)}"
    uses = "" if grant.uses is None else f", {grant.uses} times"
    ended = f" [{grant.ended}]" if grant.ended else ""
    return (
        f"{grant.principal} {grant.action} {what} of {grant.server}: {grant.scope}{until}{uses}"
        f"{ended}"
    )


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(" ", "seconds")


async def print_grant(state: str | None, id: str, *, as_json: bool) -> Exit:
    """Print all details of one grant."""
    async with open_grants(state) as (_, grants):
        grant = next((one for one in await grants.history() if one.id == id), None)
    if grant is None:
        raise UsageError(f"there is no grant {id!r}: isthmus grants list --ended lists all of them")
    if as_json:
        print_json(grant)
        return Exit.OK
    for name, value in structs.asdict(grant).items():
        if value not in {"", None, ()}:
            shown = _format_time(value) if name in {"created", "until"} else value
            print_line(f"{name:12} {', '.join(shown) if isinstance(shown, tuple) else shown}")
    return Exit.OK


async def revoke_grants(state: str | None, ids: Sequence[str]) -> Exit:
    """Take grants back, and write it down."""
    missing = []
    async with open_grants(state) as (held, grants):
        log = AuditLog(held)
        for id in ids:
            known = next((one for one in grants.all() if one.id == id), None)
            if known is None or not await grants.revoke(id):
                missing.append(id)
                continue
            await log.write(
                AuditRow(
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
        raise UsageError(f"there is no active grant {', '.join(missing)}")
    return Exit.OK
