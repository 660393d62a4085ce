"""``isthmus models``: the models that servers may have write, and which one would."""

import asyncio
from typing import Annotated, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["app"]

app = typer.Typer(
    name="models",
    help="List and check the models that servers may have write, and say which one would.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--file", metavar="FILE", help="The file of models; the configuration's by default."
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Priority: TypeAlias = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, help="How much that counts.")
]


@app.command("list")
def list_(*, file: File = None, as_json: AsJson = False) -> None:
    """List the models, in the order of their file."""

    def listed() -> Exit:
        from isthmus.cli.commands.models_shown import print_models

        return print_models(file, as_json=as_json)

    finish(listed)


@app.command()
def check(
    *,
    file: File = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Also ask each provider whether it has its models.")
    ] = False,
) -> None:
    """Check the file of models; its errors have line and key."""

    def checked() -> Exit:
        from isthmus.cli.commands.models_shown import check_models as look

        return asyncio.run(look(file, ask=ask))

    finish(checked)


@app.command("select")
def select_model(
    *,
    hint: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A hint; the first counts first.")
    ] = None,
    cost: Priority = None,
    speed: Priority = None,
    intelligence: Priority = None,
    tokens: Annotated[int, typer.Option(help="How long the prompt is.", min=0)] = 0,
    max_tokens: Annotated[int, typer.Option(help="How much is to be written.", min=1)] = 1000,
    image: Annotated[bool, typer.Option("--image", help="It has to read pictures.")] = False,
    tools: Annotated[bool, typer.Option("--tools", help="It has to be able to use tools.")] = False,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Say which model a server would get that prefers this, and why."""

    def selected() -> Exit:
        from isthmus.cli.commands.models_shown import make_preferences, print_choice
        from isthmus.host.sampling.selection import Need

        need = Need(
            inputs=frozenset({"text", "image"} if image else {"text"}),
            tools=tools,
            tokens=tokens,
            max_tokens=max_tokens,
        )
        preferences = make_preferences(hint or (), cost, speed, intelligence)
        return print_choice(file, need, preferences, as_json=as_json)

    finish(selected)


@app.command()
def sync(
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", show_default=False)],
    *,
    file: File = None,
) -> None:
    """Write the models that a provider has, and the file does not, into the file: disabled."""

    def synced() -> Exit:
        from isthmus.cli.commands.models_shown import sync_models as fetch

        return asyncio.run(fetch(file, provider))

    finish(synced)


@app.command()
def example() -> None:
    """Print a file to start from."""

    def printed() -> Exit:
        from isthmus.host.sampling.models import EXAMPLE_FILE

        print(EXAMPLE_FILE.read_text(encoding="utf-8"), end="")
        return Exit.OK

    finish(printed)
