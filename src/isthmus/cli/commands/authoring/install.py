"""``isthmus install``: write a server into the configuration of an MCP client."""

from collections.abc import Coroutine
from typing import Annotated, Any, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Invocation, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish

app = CommandSet()

Several: TypeAlias = list[str] | None


def complete_client(incomplete: str) -> list[str]:
    """The clients whose names begin with what was typed, for the completion of a shell."""
    from isthmus.host.config.clients import CLIENTS

    return [name for name in CLIENTS if name.startswith(incomplete)]


INTO_HELP = "claude-code, claude, cursor, vscode, codex, gemini, goose, windsurf, cline or zed; repeatable."  # fmt: skip

ServerWord: TypeAlias = Annotated[str, Argument(metavar="FILE[:OBJECT]|URL", show_default=False)]
Into: TypeAlias = Annotated[
    Several, Option(metavar="CLIENT", help=INTO_HELP, autocompletion=complete_client)
]
Name: TypeAlias = Annotated[
    str | None, Option(metavar="NAME", help="Name of the entry; the file's name by default.")
]
Url: TypeAlias = Annotated[str | None, Option(metavar="URL", help="URL of a server over HTTP.")]
Env: TypeAlias = Annotated[
    Several,
    Option(
        metavar="NAME[=VALUE]",
        help="Environment variable; without a value the client uses its own, or asks. Repeatable.",
    ),
]
Header: TypeAlias = Annotated[
    Several, Option(metavar="NAME=VALUE", help="Header of requests to a URL; repeatable.")
]
ClientToken: TypeAlias = Annotated[
    str | None, Option(metavar="NAME", help="The client's variable that holds its token.")
]
Project: TypeAlias = Annotated[
    bool, Option("--project", help="Write the client's project file in this folder.")
]
WithUv: TypeAlias = Annotated[bool, Option("--uv", help="Start it with uv run.")]
Packages: TypeAlias = Annotated[
    Several, Option("--with", metavar="PACKAGE", help="A package for --uv; repeatable.")
]
PrintOnly: TypeAlias = Annotated[
    bool, Option("--print", help="Print the text to paste; write nothing.")
]
DryRun: TypeAlias = Annotated[
    bool, Option("--dry-run", help="Show what would change; write nothing.")
]
Remove: TypeAlias = Annotated[bool, Option("--remove", help="Remove the entry.")]
Force: TypeAlias = Annotated[
    bool, Option("--force", help="Replace an existing entry of this name.")
]
FollowLinks: TypeAlias = Annotated[
    bool, Option("--follow-links", help="Follow a symlink and write to its target.")
]
Check: TypeAlias = Annotated[
    bool | None,
    Option(
        "--check/--no-check",
        help="Only start the server as the client would; or write without starting it.",
    ),
]


@app.command("install")
def install(
    context: Invocation,
    server: ServerWord = "",
    *,
    into: Into = None,
    name: Name = None,
    url: Url = None,
    env: Env = None,
    header: Header = None,
    token_env: ClientToken = None,
    project: Project = False,
    uv: WithUv = False,
    with_: Packages = None,
    print_: PrintOnly = False,
    dry_run: DryRun = False,
    remove: Remove = False,
    force: Force = False,
    follow_links: FollowLinks = False,
    check: Check = None,
) -> None:
    """Write a server into the configuration of an MCP client."""

    def work() -> Coroutine[Any, Any, Exit]:
        from isthmus.cli.commands.authoring import installation

        words = installation.ServerWords(
            server=server,
            command=tuple(context.command),
            name=name,
            url=url,
            env=env or (),
            headers=header or (),
            token_env=token_env,
            uv=uv,
            packages=with_ or (),
        )
        options = installation.InstallOptions(
            clients=tuple(into or ()),
            project=project,
            print_only=print_,
            dry_run=dry_run,
            remove=remove,
            force=force,
            follow_links=follow_links,
            check=check,
        )
        return installation.run_install(words, options)

    finish(work)
