"""``isthmus models``: list, check and choose the models that servers may have write."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson
from isthmus.cli.output import print_json, print_line, print_note
from isthmus.errors import UsageError
from isthmus.host.config.load import load_config
from isthmus.host.model.errors import ConfigError
from isthmus.host.providers.factory import make_providers
from isthmus.host.providers.provider import Offered, Provider, ProviderError
from isthmus.host.sampling.models import EXAMPLE_FILE, Model, Models
from isthmus.host.sampling.selection import Need, select
from isthmus.host.state.secrets import UserSecrets
from isthmus.store.files import replace_file
from isthmus.wire import ModelHint, ModelPreferences

app = CommandSet(
    name="models",
    help="List and check the models that servers may use.",
    no_args_is_help=True,
)

File: TypeAlias = Annotated[
    str | None,
    Option("--file", metavar="FILE", help="Models file; the configuration's by default."),
]
Priority: TypeAlias = Annotated[
    float | None, Option(metavar="0..1", min=0.0, max=1.0, help="Weight of this priority.")
]


@app.command("list")
def list_(*, file: File = None, as_json: AsJson = False) -> None:
    """List the models in the order of the models file."""
    finish(lambda: print_models(file, as_json=as_json))


@app.command()
def check(
    *,
    file: File = None,
    ask: Annotated[
        bool, Option("--ask", help="Also ask each provider whether it offers the models.")
    ] = False,
) -> None:
    """Check the models file; errors name line and key."""
    finish(lambda: check_models(file, ask=ask))


@app.command("select")
def select_model(
    *,
    hint: Annotated[
        list[str] | None,
        Option(metavar="TEXT", help="Hint for a model name; the first one has priority."),
    ] = None,
    cost: Priority = None,
    speed: Priority = None,
    intelligence: Priority = None,
    tokens: Annotated[int, Option(help="Length of the prompt in tokens.", min=0)] = 0,
    max_tokens: Annotated[
        int, Option(help="Maximum length of the answer in tokens.", min=1)
    ] = 1000,
    image: Annotated[bool, Option("--image", help="Require support for images.")] = False,
    tools: Annotated[bool, Option("--tools", help="Require support for tools.")] = False,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Show which model these preferences select, and why."""

    def work() -> Exit:
        need = Need(
            inputs=frozenset({"text", "image"} if image else {"text"}),
            tools=tools,
            tokens=tokens,
            max_tokens=max_tokens,
        )
        preferences = make_preferences(hint or (), cost, speed, intelligence)
        return print_choice(file, need, preferences, as_json=as_json)

    finish(work)


@app.command()
def sync(
    provider: Annotated[str, Argument(metavar="PROVIDER", show_default=False)],
    *,
    file: File = None,
) -> None:
    """Add missing models of a provider to the models file, disabled."""
    finish(lambda: sync_models(file, provider))


@app.command()
def example() -> None:
    """Print an example of a models file."""

    def work() -> Exit:
        print(EXAMPLE_FILE.read_text(encoding="utf-8"), end="")
        return Exit.OK

    finish(work)


TABLE_HEAD = ("model", "provider", "context", "in/out $", "tok/s", "iq", "reads", "")


def find_models_file(file: str | None) -> Path:
    """The file of models: what is said, or what the configuration names, or the one that is here.

    Raises:
        UsageError: there is none.
        ConfigError: the configuration cannot be read.
    """
    if file is not None:
        return Path(file)

    named = load_config().options.models
    if named:
        return Path(named)
    here = Path("models.toml")
    if here.is_file():
        return here
    raise UsageError(
        "there is no file of models: isthmus models example > models.toml, and name it in the "
        'configuration ("host": {"models": "models.toml"})'
    )


def print_models(file: str | None, *, as_json: bool) -> Exit:
    """List the models."""
    models = Models.read(find_models_file(file))
    if as_json:
        print_json(models.all)
        return Exit.OK
    rows = [TABLE_HEAD, *(format_model(model) for model in models)]
    widths = [max(len(one[column]) for one in rows) for column in range(len(TABLE_HEAD))]
    for one in rows:
        line = "  ".join(text.ljust(width) for text, width in zip(one, widths, strict=True))
        print_line(line.rstrip())
    if not models.all:
        print_note("the file has no models")
    return Exit.OK


def format_model(model: Model) -> tuple[str, ...]:
    """The columns of one model."""
    notes = [
        *([] if model.enabled else ["disabled"]),
        *(["tools"] if model.tools else []),
        *model.tags,
    ]
    return (
        model.id,
        model.provider,
        str(model.context),
        f"{format_figure(model.cost_in)}/{format_figure(model.cost_out)}",
        format_figure(model.tok_s),
        format_figure(model.intelligence),
        ",".join(model.inputs),
        " ".join(notes),
    )


def format_figure(value: float | None) -> str:
    """A figure, or a question mark for one that nobody knows."""
    return "?" if value is None else f"{value:g}"


async def check_models(file: str | None, *, ask: bool) -> Exit:
    """Check the file, and that each model has a provider; ask them if wanted."""
    path = find_models_file(file)
    models = Models.read(path)
    wrong = [
        f"{path}: model {model.id!r}: there is no [providers.{model.provider}]"
        for model in models
        if model.provider not in models.providers
    ]
    found = list_providers(models)
    if ask:
        for name, provider in found.items():
            wrong += await list_missing(models, name, provider)
    for provider in found.values():
        await provider.close()
    for line in wrong:
        print_line(line)
    if wrong:
        return Exit.TOOL_FAILED
    count = sum(model.enabled for model in models)
    print_note(f"{path}: {len(models)} models, {count} of them enabled")
    return Exit.OK


async def list_missing(models: Models, name: str, provider: Provider) -> list[str]:
    """The models of the file that their provider does not have."""
    mine = [model for model in models if model.provider == name and model.enabled]
    try:
        offered = {one.id for one in await provider.models()}
    except ProviderError as error:
        return [f"providers.{name}: {error}"]
    return [
        f"model {model.id!r}: provider {name!r} has no {model.called!r}"
        for model in mine
        if model.called not in offered
    ]


def list_providers(models: Models) -> dict[str, Provider]:
    """The providers of a file that can be asked.

    Raises:
        ConfigError: an entry says what cannot be.
    """
    entries = {name: one for name, one in models.providers.items() if one.kind != "manual"}
    return make_providers(
        entries, environ=os.environ, secrets=UserSecrets(os.environ), source=models.source
    )


def make_preferences(
    hints: Sequence[str], cost: float | None, speed: float | None, intelligence: float | None
) -> ModelPreferences:
    """The preferences of a server."""
    return ModelPreferences(
        hints=[ModelHint(name=name) for name in hints] or UNSET,
        cost_priority=UNSET if cost is None else cost,
        speed_priority=UNSET if speed is None else speed,
        intelligence_priority=UNSET if intelligence is None else intelligence,
    )


def print_choice(
    file: str | None, need: Need, preferences: ModelPreferences, *, as_json: bool
) -> Exit:
    """Say which model would be chosen, and why."""
    selection = select(Models.read(find_models_file(file)), need, preferences)
    if as_json:
        print_json(selection)
        return Exit.OK if selection.model else Exit.TOOL_FAILED
    for line in selection.lines():
        print_note(line)
    if selection.model is None:
        print_note("no permitted model")
        return Exit.TOOL_FAILED
    print_line(selection.model.id)
    return Exit.OK


async def sync_models(file: str | None, name: str) -> Exit:
    """Write what a provider has, and the file does not, into the file.

    Raises:
        ConfigError: the file has no such provider, or cannot be written.
        ProviderError: the provider does not say what it has.
    """
    path = find_models_file(file)
    models = Models.read(path)
    if name not in models.providers:
        known = ", ".join(models.providers) or "none"
        raise ConfigError(f"{path}: there is no [providers.{name}]; there are: {known}")
    found = list_providers(models)
    if name not in found:
        raise ConfigError(f"provider {name!r} has no list of models: a person writes its answers")
    try:
        offered = await found[name].models()
    finally:
        for provider in found.values():
            await provider.close()
    mine = {model.called for model in models if model.provider == name}
    fresh = [one for one in offered if one.id not in mine]
    if fresh:
        append_models(path, name, fresh, set(models.by_id))
    for one in fresh:
        print_line(one.id)
    print_note(
        f"{len(fresh)} of {len(offered)} models of {name!r} are new, and disabled, in {path}"
    )
    return Exit.OK


def append_models(path: Path, provider: str, fresh: Sequence[Offered], taken: set[str]) -> None:
    """Add models at the end of the file; what stands there stays as it is.

    They are disabled, since nobody has said yet what they can do and cost.
    """
    text = path.read_text(encoding="utf-8")
    for one in fresh:
        id = one.id if one.id not in taken else f"{provider}/{one.id}"
        taken.add(id)
        lines = [f"id = {quote_toml(id)}", f"provider = {quote_toml(provider)}"]
        if id != one.id:
            lines.append(f"remote = {quote_toml(one.id)}")
        if one.context is not None:
            lines.append(f"context = {one.context}")
        text += "\n[[model]]\n" + "\n".join([*lines, "enabled = false"]) + "\n"
    Models.parse(text, str(path))  # what is written can be read again
    replace_file(path.resolve(), text.encode(), as_open=True)


def quote_toml(text: str) -> str:
    """A text as TOML has it, which quotes like JSON."""
    return msgspec.json.encode(text).decode()
