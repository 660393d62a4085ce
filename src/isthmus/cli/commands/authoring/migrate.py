"""``isthmus migrate``: rewrite code that was written for ``fastmcp`` or ``mcp``."""

from typing import Annotated, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.errors import UsageError

app = CommandSet()

ProjectPath: TypeAlias = Annotated[str, Argument(metavar="PATH", show_default=False)]
Write: TypeAlias = Annotated[
    bool, Option("--write", help="Write the files; without it, only the difference is printed.")
]
Native: TypeAlias = Annotated[
    bool,
    Option(
        "--native",
        help="Rewrite simple modules to isthmus' own API; the others stay at isthmus.compat.",
    ),
]


@app.command("migrate")
def migrate(path: ProjectPath, *, write: Write = False, native: Native = False) -> None:
    """Rewrite a file or project from fastmcp or mcp to isthmus."""

    def work() -> Exit:
        return run_migration(path, write=write, native=native)

    finish(work)


def run_migration(path: str, *, write: bool, native: bool = False) -> Exit:
    """Migrate what stands at a path, and print what changes.

    Raises:
        UsageError: there is nothing there, libcst is not installed, or a file cannot be written.
    """
    from pathlib import Path

    from isthmus.cli.output import print_line, print_text

    place = Path(path)
    if not place.exists():
        raise UsageError(f"{path} does not exist: name the folder or file of a server")
    try:
        from isthmus.migration.project import migrate_project
        from isthmus.migration.report import format_difference, list_summary
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in {"libcst", "pydantic"}:
            raise
        raise UsageError(
            f"isthmus migrate takes {error.name}: pip install 'isthmus[migrate]'"
        ) from error
    migration = migrate_project(place, native=native)
    if write:
        migration.write()
    else:
        for change in migration.list_changes():
            print_text("\n".join(format_difference(change)))
    for line in list_summary(migration, written=write):
        print_line(line)
    return Exit.TOOL_FAILED if migration.untouched else Exit.OK
