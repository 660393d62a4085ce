"""``isthmus config``: which servers there are, why, and what they may know."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish
from isthmus.cli.output import print_json, print_line, print_note, print_text
from isthmus.core.text import show_invisible
from isthmus.errors import UsageError

if TYPE_CHECKING:
    from isthmus.host.config.load import LoadedConfig
    from isthmus.host.state.database import HostState

__all__ = ["app"]

app = typer.Typer(
    name="config",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Which servers there are, where that is said, and what may be known of you.",
)
secret = typer.Typer(
    name="secret", no_args_is_help=True, rich_markup_mode=None, help="What ${secret:…} stands for."
)
roots = typer.Typer(
    name="roots", no_args_is_help=True, rich_markup_mode=None, help="Folders that servers work in."
)
app.add_typer(secret)
app.add_typer(roots)

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", metavar="FILE", help="In place of your own and the folder's; repeat it."
    ),
]
Folder: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="The workspace; this folder by default.")
]


def open_host_state() -> "HostState":
    """The state of the user's host: where their configuration says, which is where a host looks.

    Raises:
        ConfigError: a file cannot be used.
    """
    from isthmus.host.config.trust import load_trusted_config
    from isthmus.host.state.database import HostState

    return HostState(load_trusted_config()[1])


def load_config(files: Sequence[Path] | None) -> "LoadedConfig":
    """The configuration, with what the user trusts.

    Raises:
        ConfigError: a file cannot be used.
    """
    from isthmus.host.config.load import merge_documents, read_config_layers
    from isthmus.host.config.trust import TrustReader
    from isthmus.host.state.database import find_user_folder

    layers, notes = read_config_layers(list(files) if files else None)
    place = merge_documents(layers, notes).config.options.state or find_user_folder()
    return merge_documents(layers, notes, trusted=TrustReader(place))


@app.command()
def check(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="The same as --config.")
    ] = None,
    *,
    config: Files = None,
    as_json: AsJson = False,
) -> None:
    """Read the configuration, and say what is wrong with it."""

    def checked() -> Exit:
        from isthmus.host.config.explain import describe_server

        found = load_config([*(files or ()), *(config or ())]).config
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

    finish(checked)


@app.command()
def explain(
    server: Annotated[str, typer.Argument(metavar="SERVER", show_default=False)] = "",
    *,
    config: Files = None,
    as_json: AsJson = False,
) -> None:
    """Say where each member of a server stands, and what holds by default; never a secret."""

    def explained() -> Exit:
        from isthmus.host.config.explain import explain_server as lines_of

        found = load_config(config)
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
        lines = lines_of(found, server)
        if as_json:
            print_json(lines)
        else:
            for line in lines:
                print_line(f"{line.name} = {line.value}    ({line.place})")
        return Exit.OK

    finish(explained)


@app.command("import")
def import_(
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PROGRAM|FILE",
            help="claude, claude-code, codex, continue, copilot, cursor, cline, gemini, goose, kiro, "
            "lmstudio, opencode, roo, vscode, windsurf, zed, or a file.",
        ),
    ],
    write: Annotated[bool, typer.Option("--write", help="Write them into your own file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take over the servers of another program; without --write they are only shown."""

    def imported() -> Exit:
        from isthmus.host.config import importing
        from isthmus.host.config.explain import mask_entry
        from isthmus.host.config.files import find_user_file

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

    finish(imported)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the file, for editors."""

    def printed() -> Exit:
        from isthmus.host.config.json_schema import make_config_schema as made

        print_json(made())
        return Exit.OK

    finish(printed)


@app.command()
def trust(
    folder: Folder = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; you have looked at it.")] = False,
) -> None:
    """Let the files of a workspace start servers, as they are now."""

    def trusted() -> Exit:
        return asyncio.run(_trust_folder((folder or Path.cwd()).absolute(), yes=yes))

    finish(trusted)


async def _trust_folder(place: Path, *, yes: bool) -> Exit:
    from isthmus.host.config.files import WORKSPACE_FILES, read_document
    from isthmus.host.config.layouts import find_servers
    from isthmus.host.config.servers import list_exposures
    from isthmus.host.config.trust import TrustStore, list_parts

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
        raise UsageError("nobody is there to be asked: --yes says that you have looked at it")
    with suppress(ImportError, OSError, ValueError):  # what was typed before is no answer
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageError("nothing was trusted")


@app.command()
def untrust(folder: Folder = None) -> None:
    """Let the files of a workspace start nothing any more."""

    async def ended() -> Exit:
        from isthmus.host.config.trust import TrustStore

        place, state = str((folder or Path.cwd()).absolute()), open_host_state()
        try:
            was = await TrustStore(state).untrust(place)
        finally:
            await state.close()
        print_note(f"{place} is trusted no more" if was else f"{place} was not trusted")
        return Exit.OK

    finish(lambda: asyncio.run(ended()))


@secret.command("set")
def set_(name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)]) -> None:
    """Keep a secret: it is read from the terminal without being shown, or from standard input."""

    def kept() -> Exit:
        from isthmus.auth.tokens.secret import Secret
        from isthmus.host.state.secrets import UserSecrets, check_path

        check_path(name)
        UserSecrets(os.environ).put(name, Secret(_read_secret(name)))
        print_note(f"kept; write it as ${{secret:{name}}}")
        return Exit.OK

    finish(kept)


def _read_secret(name: str) -> str:
    """What a person types, or a program writes to standard input."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"{name}: ")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


@secret.command("remove")
def remove(name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)]) -> None:
    """Forget a secret."""

    def gone() -> Exit:
        from isthmus.host.state.secrets import UserSecrets

        if not UserSecrets(os.environ).remove(name):
            raise UsageError(f"there is no secret {name!r}; isthmus config secret list has them")
        print_note(f"{name} is kept no more")
        return Exit.OK

    finish(gone)


@secret.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the names of all secrets, and nothing of what they say."""

    def listed() -> Exit:
        from isthmus.host.state.secrets import UserSecrets

        names = UserSecrets(os.environ).names()
        if as_json:
            print_json(names)
        else:
            for name in names:
                print_line(name)
            if not names:
                print_note("no secret is kept; isthmus config secret set NAME keeps one")
        return Exit.OK

    finish(listed)


@roots.command("list")
def list_roots(*, config: Files = None, as_json: AsJson = False) -> None:
    """List the folders that are declared, how they are, and which servers may know of them."""

    async def work() -> Exit:
        from isthmus.cli.commands.config_roots import print_roots

        return await print_roots(load_config(config), as_json=as_json)

    finish(lambda: asyncio.run(work()))


Server: TypeAlias = Annotated[str, typer.Argument(metavar="SERVER", show_default=False)]
RootNames: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="ROOT...", help="Names or paths.", show_default=False)
]


@roots.command()
def grant(server: Server, root: RootNames, *, config: Files = None) -> None:
    """Let a server know of folders, and work there, without being asked when it wants to."""
    _change_roots(server, root, config, granted=True)


@roots.command()
def revoke(server: Server, root: RootNames, *, config: Files = None) -> None:
    """Let a server know of folders no more, and ask no more whether it may."""
    _change_roots(server, root, config, granted=False)


def _change_roots(
    server: str, names: list[str], config: list[Path] | None, *, granted: bool
) -> None:
    async def work() -> Exit:
        from isthmus.cli.commands.config_roots import grant_or_revoke

        return await grant_or_revoke(load_config(config), server, names, granted=granted)

    finish(lambda: asyncio.run(work()))
