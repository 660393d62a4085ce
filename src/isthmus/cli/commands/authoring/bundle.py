"""``isthmus bundle``: pack a server into an MCPB file, which desktop clients install."""

from collections.abc import Coroutine
from typing import Annotated, Any, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish

app = CommandSet()

Several: TypeAlias = list[str] | None
BundledFile: TypeAlias = Annotated[str, Argument(metavar="FILE[:OBJECT]", show_default=False)]
Output: TypeAlias = Annotated[
    str | None, Option("--output", "-o", metavar="FILE", help="The bundle; NAME.mcpb by default.")
]
Author: TypeAlias = Annotated[
    str | None, Option(metavar="NAME", help="Author, if pyproject.toml does not name one.")
]
ReleaseVersion: TypeAlias = Annotated[
    str | None,
    Option("--release", metavar="VERSION", help="Version of the bundle; the server's by default."),
]
BundleEnv: TypeAlias = Annotated[
    Several,
    Option(
        metavar="NAME[=DEFAULT]",
        help="Environment variable that the client asks its user for; repeatable.",
    ),
]
BundleWith: TypeAlias = Annotated[
    Several, Option("--with", metavar="PACKAGE", help="A package that it needs; repeatable.")
]
Include: TypeAlias = Annotated[
    Several, Option(metavar="PATH", help="A file or folder that it reads; repeatable.")
]
Icon: TypeAlias = Annotated[
    str | None, Option(metavar="FILE", help="A PNG of 512 by 512; default icon.png if it exists.")
]
RegistryName: TypeAlias = Annotated[
    str | None,
    Option(metavar="DOMAIN/NAME", help="Write server.json for the registry, with this name."),
]
At: TypeAlias = Annotated[
    str | None, Option(metavar="URL", help="URL of the bundle, for server.json.")
]
Listing: TypeAlias = Annotated[
    bool, Option("--dry-run", help="List the files of the bundle; write nothing.")
]
Started: TypeAlias = Annotated[
    bool,
    Option("--check/--no-check", help="Start the packed server, and list its tools in the bundle."),
]


@app.command("bundle")
def bundle(
    file: BundledFile,
    *,
    output: Output = None,
    author: Author = None,
    release: ReleaseVersion = None,
    env: BundleEnv = None,
    with_: BundleWith = None,
    include: Include = None,
    icon: Icon = None,
    registry_name: RegistryName = None,
    at: At = None,
    dry_run: Listing = False,
    check: Started = True,
) -> None:
    """Pack a server into an MCPB file, for desktop clients."""

    def work() -> Coroutine[Any, Any, Exit]:
        from isthmus.cli.commands.authoring import bundling

        return bundling.run_bundle(
            bundling.BundleOptions(
                file=file,
                output=output,
                author=author,
                release=release,
                env=env or (),
                packages=with_ or (),
                include=include or (),
                icon=icon,
                registry_name=registry_name,
                at=at,
                dry_run=dry_run,
                check=check,
            )
        )

    finish(work)
