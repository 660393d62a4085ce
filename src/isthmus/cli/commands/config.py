"""``isthmus config``: the servers that are configured, trust, secrets, and folders (roots)."""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeAlias

from isthmus.auth.tokens.secret import Secret
from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson
from isthmus.cli.output import print_json, print_line, print_note, print_text
from isthmus.core.text import show_invisible
from isthmus.errors import UsageError
from isthmus.host.config import importing
from isthmus.host.config.explain import describe_server, explain_server, mask_entry
from isthmus.host.config.files import WORKSPACE_FILES, find_user_file, read_document
from isthmus.host.config.json_schema import make_config_schema
from isthmus.host.config.layouts import find_servers
from isthmus.host.config.load import LoadedConfig, merge_documents, read_config_layers
from isthmus.host.config.servers import list_exposures
from isthmus.host.config.trust import TrustReader, TrustStore, list_parts
from isthmus.host.config.trust import load_trusted_config as load_trusting
from isthmus.host.confinement.folders import RootFolder, resolve_folder
from isthmus.host.confinement.roots import RootGrants
from isthmus.host.model.entries import ServerEntry
from isthmus.host.state.database import HostState, find_user_folder
from isthmus.host.state.secrets import UserSecrets, check_path

app = CommandSet(
    name="config",
    no_args_is_help=True,
    help="Check and import configurations; manage trust, secrets, roots.",
)
secret = CommandSet(name="secret", no_args_is_help=True, help="Manage the values of ${secret:…}.")
roots = CommandSet(
    name="roots", no_args_is_help=True, help="Manage the folders that servers may use."
)
app.add_group(secret)
app.add_group(roots)

Files: TypeAlias = Annotated[
    list[Path] | None,
    Option(
        "--config",
        metavar="FILE",
        help="Configuration, instead of the user's and the folder's; repeatable.",
    ),
]
Folder: TypeAlias = Annotated[
    Path | None, Argument(metavar="FOLDER", help="Workspace; the current folder by default.")
]


def open_host_state() -> HostState:
    """The state of the user's host: where their configuration says, which is where a host looks.

    Raises:
        ConfigError: a file cannot be used.
    """
    return HostState(load_trusting()[1])


def load_trusted_config(files: Sequence[Path] | None) -> LoadedConfig:
    """The configuration, with what the user trusts.

    Raises:
        ConfigError: a file cannot be used.
    """
    layers, notes = read_config_layers(list(files) if files else None)
    place = merge_documents(layers, notes).config.options.state or find_user_folder()
    return merge_documents(layers, notes, trusted=TrustReader(place))


@app.command()
def check(
    files: Annotated[
        list[Path] | None, Argument(metavar="[FILE]...", help="The same as --config.")
    ] = None,
    *,
    config: Files = None,
    as_json: AsJson = False,
) -> None:
    """Check the configuration, and print its errors."""

    def work() -> Exit:
        found = load_trusted_config([*(files or ()), *(config or ())]).config
        if as_json:
            print_json(
                {
                    "sources": found.sources,
                    "servers": {
                        name: {
                            "where": describe_server(one),
                            "layer": one.layer,
                            "source": one.source,
                            "trusted": one.trusted,
                            "enabled": one.options.enabled,
                        }
                        for name, one in found.servers.items()
                    },
                    "broken": found.broken,
                    "notes": found.notes,
                }
            )
        else:
            for name, one in found.servers.items():
                off = "" if one.options.enabled else " (disabled)"
                inert = "" if one.trusted else " (not trusted: isthmus config trust)"
                print_line(f"ok      {name}: {describe_server(one)}{off}{inert}")
            for name, why in found.broken.items():
                print_line(f"broken  {name}: {why}")
            for said in found.notes:
                print_note(f"note: {said}")
            if not found.sources:
                print_note("there is no configuration; isthmus servers add makes one")
            elif not (found.servers or found.broken):
                print_note(f"no server stands in {', '.join(found.sources)}")
        named = bool(files or config)  # a file that is named to be checked is one that has servers
        nothing = named and not found.servers
        return Exit.TOOL_FAILED if found.broken or nothing else Exit.OK

    finish(work)


@app.command()
def explain(
    server: Annotated[str, Argument(metavar="SERVER", show_default=False)] = "",
    *,
    config: Files = None,
    as_json: AsJson = False,
) -> None:
    """Show the source of each setting of a server. Includes defaults, but no secrets."""

    def work() -> Exit:
        found = load_trusted_config(config)
        if not server:
            rows = {name: document.place(*keys) for name, (document, keys) in found.origins.items()}
            if as_json:
                print_json({"sources": found.config.sources, "servers": rows})
            else:
                for path in found.config.sources:
                    print_line(path)
                for name, place in rows.items():
                    print_line(f"  {name}: {place}")
            return Exit.OK
        lines = explain_server(found, server)
        if as_json:
            print_json(lines)
        else:
            for line in lines:
                print_line(f"{line.name} = {line.value}    ({line.place})")
        return Exit.OK

    finish(work)


@app.command("import")
def import_(
    *,
    source: Annotated[
        str,
        Option(
            "--from",
            metavar="PROGRAM|FILE",
            help="claude, claude-code, codex, continue, copilot, cursor, cline, gemini, goose, kiro, "
            "lmstudio, opencode, roo, vscode, windsurf, zed, or a file.",
        ),
    ],
    write: Annotated[
        bool, Option("--write", help="Write them into the user's configuration.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import the servers of another program. Without --write, only show them."""

    def work() -> Exit:
        taken = importing.import_servers(importing.find_source(source, os.environ), str(Path.cwd()))
        path = find_user_file(os.environ)
        written = importing.write_imported(taken, path) if write else []
        shown = {name: mask_entry(entry) for name, entry in taken.servers.items()}
        whole = {"mcpServers": shown} | ({"inputs": taken.inputs} if taken.inputs else {})
        if as_json:
            more = {"written": written, "refused": taken.refused, "notes": taken.notes}
            print_json({"path": str(taken.path), **whole, **more})
        elif not write:
            print_json(whole)
        for one in taken.notes:
            print_note(f"note: {one}")
        for name, why in taken.refused.items():
            print_note(f"error: {name} is left out: {why}")
        if write:
            print_note(
                f"{len(written)} servers written into {path}; each is shown before it first runs"
            )
        return Exit.TOOL_FAILED if taken.refused or not taken.servers else Exit.OK

    finish(work)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the configuration, for editors."""

    def work() -> Exit:
        print_json(make_config_schema())
        return Exit.OK

    finish(work)


@app.command()
def trust(
    folder: Folder = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Trust the current files of a workspace: they may start servers."""
    finish(lambda: _trust_folder((folder or Path.cwd()).absolute(), yes=yes))


async def _trust_folder(place: Path, *, yes: bool) -> Exit:

    documents = [
        read_document(place / name) for name in WORKSPACE_FILES if (place / name).is_file()
    ]
    if not documents:
        raise UsageError(
            f"{place} has none of {', '.join(WORKSPACE_FILES)}: there is nothing to trust"
        )
    for document in documents:
        print_line(f"{document.path}:")
        print_text(
            show_invisible(document.text.rstrip("\n"))
        )  # a mark that was dropped would be a lie
        for raw in find_servers(document, str(place)):
            for line in list_exposures(raw):
                print_text(f"warning: {show_invisible(line, line=True)}")
    parts = [part for document in documents for part in list_parts(document, str(place))]
    names = ", ".join(part.name or "host" for part in parts) or "nothing"
    if not yes:
        _confirm(
            f"Trust {names} of {place}, as it stands above? It names programs that would run. [y/N] "
        )
    state = open_host_state()
    try:
        await TrustStore(state).trust(str(place), documents)
    finally:
        await state.close()
    print_note(
        f"trusted: {names}; what changes in these files is not trusted until you say so again"
    )
    return Exit.OK


def _confirm(question: str) -> None:
    """Go on if a person says yes.

    Raises:
        UsageError: they do not, or there is none.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            "there is no terminal to ask for confirmation: pass --yes once you have reviewed the files"
        )
    with suppress(ImportError, OSError, ValueError):  # what was typed before is no answer
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was trusted")


@app.command()
def untrust(folder: Folder = None) -> None:
    """Stop trusting the files of a workspace."""

    async def work() -> Exit:
        place, state = str((folder or Path.cwd()).absolute()), open_host_state()
        try:
            was = await TrustStore(state).untrust(place)
        finally:
            await state.close()
        print_note(f"{place} is trusted no more" if was else f"{place} was not trusted")
        return Exit.OK

    finish(work)


@secret.command("set")
def set_(name: Annotated[str, Argument(metavar="NAME", show_default=False)]) -> None:
    """Store a secret. It is read from the terminal without echo, or from standard input."""

    def work() -> Exit:
        check_path(name)
        UserSecrets(os.environ).put(name, Secret(_read_secret(name)))
        print_note(f"kept; write it as ${{secret:{name}}}")
        return Exit.OK

    finish(work)


def _read_secret(name: str) -> str:
    """A secret that a person types, or a program writes to standard input."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"{name}: ")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


@secret.command("remove")
def remove(name: Annotated[str, Argument(metavar="NAME", show_default=False)]) -> None:
    """Delete a secret."""

    def work() -> Exit:
        if not UserSecrets(os.environ).remove(name):
            raise UsageError(f"there is no secret {name!r}; isthmus config secret list lists them")
        print_note(f"{name} is kept no more")
        return Exit.OK

    finish(work)


@secret.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the names of all secrets, without their values."""

    def work() -> Exit:
        names = UserSecrets(os.environ).names()
        if as_json:
            print_json(names)
        else:
            for name in names:
                print_line(name)
            if not names:
                print_note("no secret is kept; isthmus config secret set NAME keeps one")
        return Exit.OK

    finish(work)


@roots.command("list")
def list_roots(*, config: Files = None, as_json: AsJson = False) -> None:
    """List the declared folders, and the servers that may use them."""
    finish(lambda: print_roots(load_trusted_config(config), as_json=as_json))


Server: TypeAlias = Annotated[str, Argument(metavar="SERVER", show_default=False)]
RootNames: TypeAlias = Annotated[
    list[str], Argument(metavar="ROOT...", help="Names or paths.", show_default=False)
]


@roots.command()
def grant(server: Server, root: RootNames, *, config: Files = None) -> None:
    """Grant folders to a server. You are not asked again when it uses them."""
    _change_roots(server, root, config, granted=True)


@roots.command()
def revoke(server: Server, root: RootNames, *, config: Files = None) -> None:
    """Revoke a server's access to folders; later requests are denied."""
    _change_roots(server, root, config, granted=False)


def _change_roots(
    server: str, names: list[str], config: list[Path] | None, *, granted: bool
) -> None:
    finish(lambda: grant_or_revoke(load_trusted_config(config), server, names, granted=granted))


@asynccontextmanager
async def open_root_manager(loaded: LoadedConfig) -> AsyncIterator[RootGrants]:
    """The grants of folders, in the state of the user's host."""
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
                    if any(one.path == folder.path for one in manager.list_granted(entry))
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
            if folder not in manager.list_declared(entry):
                raise UsageError(f"host.roots declares {folder.entry.name} for other servers only")
            return folder
    there = ", ".join(folder.entry.name for folder in manager.folders) or "none"
    raise UsageError(f"host.roots has no {name!r}; it has: {there}")
