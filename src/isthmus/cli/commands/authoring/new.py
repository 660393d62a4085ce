"""``isthmus new``: make the project of a server, with a test that passes."""

import os
from typing import Annotated, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish

app = CommandSet()

ProjectName: TypeAlias = Annotated[str, Argument(metavar="[FOLDER/]NAME", show_default=False)]
Template: TypeAlias = Annotated[
    str | None,
    Option(metavar="NAME", help="basic (the default: tool, resource, prompt) or http (container)."),
]


@app.command("new")
def new(name: ProjectName, *, template: Template = None) -> None:
    """Create a server project with a passing test."""

    def work() -> Exit:
        from isthmus.cli.commands.authoring.projects import make_project, read_project_name
        from isthmus.cli.output import print_line

        place = read_project_name(name)
        for file in make_project(place, template or "basic"):
            print_line(os.path.join(name, file))  # noqa: PTH118 - as it was typed
        print_line(f"Next: cd {name} && pip install -e . pytest && pytest")
        return Exit.OK

    finish(work)
