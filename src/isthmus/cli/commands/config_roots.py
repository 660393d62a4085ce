"""What ``isthmus config roots`` does: folders, and which servers may know of them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from isthmus.cli.exits import Exit
from isthmus.cli.output import print_json, print_line, print_note
from isthmus.errors import UsageError
from isthmus.host.config.load import LoadedConfig
from isthmus.host.confinement.folders import RootFolder, resolve_folder
from isthmus.host.confinement.roots import RootGrants
from isthmus.host.model.entries import ServerEntry
from isthmus.host.state.database import HostState, find_user_folder

__all__ = ["grant_or_revoke", "print_roots"]


@asynccontextmanager
async def open_root_manager(loaded: LoadedConfig) -> AsyncIterator[RootGrants]:
    """What knows of grants, in the state of the user's host."""
    options = loaded.config.options
    state = HostState(options.state or find_user_folder())
    try:
        manager = RootGrants(options.roots, state)
        await manager.load()
        yield manager
    finally:
        await state.close()


async def print_roots(loaded: LoadedConfig, *, as_json: bool) -> Exit:
    """Every folder, how it is, and the servers that may know of it."""
    async with open_root_manager(loaded) as manager:
        rows = [
            {
                "name": folder.entry.name,
                "path": folder.path,
                "state": folder.state,
                "why": folder.why,
                "writable": folder.entry.writable,
                "granted": [
                    name
                    for name, entry in loaded.config.servers.items()
                    if any(one.path == folder.path for one in manager.granted(entry))
                ],
            }
            for folder in manager.folders
        ]
    if as_json:
        print_json(rows)
        return Exit.OK
    for row in rows:
        granted = ", ".join(row["granted"]) if isinstance(row["granted"], list) else ""
        why = f" ({row['why']})" if row["why"] else ""
        print_line(
            f"{row['state']:8}{row['name']}: {row['path']}{why}; granted to {granted or 'none'}"
        )
    if not rows:
        print_note('no roots are declared; {"host": {"roots": [{"path": "~/work"}]}} declares one')
    return Exit.OK


async def grant_or_revoke(
    loaded: LoadedConfig, server: str, names: Sequence[str], *, granted: bool
) -> Exit:
    """Grant folders to a server, or take them back.

    Raises:
        UsageError: there is no such server or folder.
    """
    entry = loaded.config.servers.get(server)
    if entry is None:
        there = ", ".join(loaded.config.servers) or "none"
        raise UsageError(
            loaded.config.broken.get(server) or f"there is no server {server!r}; there are: {there}"
        )
    async with open_root_manager(loaded) as manager:
        paths = [find_folder(manager, entry, name).path for name in names]
        if granted:
            await manager.grant(entry, paths, "command line")
        else:
            await manager.revoke(entry, paths, "command line")
    for path in paths:
        print_note(f"{server} may {'' if granted else 'not '}know of {path}")
    return Exit.OK


def find_folder(manager: RootGrants, entry: ServerEntry, name: str) -> RootFolder:
    """The folder that somebody means, by its name or path.

    Raises:
        UsageError: none is meant, or it cannot be told to this server.
    """
    path = resolve_folder(name)
    for folder in manager.folders:
        if name == folder.entry.name or path == folder.path:
            if folder.state != "there":
                raise UsageError(f"{folder.entry.path} cannot be told to servers: {folder.why}")
            if folder not in manager.declared(entry):
                raise UsageError(f"host.roots declares {folder.entry.name} for other servers only")
            return folder
    there = ", ".join(folder.entry.name for folder in manager.folders) or "none"
    raise UsageError(f"host.roots has no {name!r}; it has: {there}")
