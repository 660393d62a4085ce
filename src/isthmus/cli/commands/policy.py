"""``isthmus policy``: what a host may do, why, and whether another policy would do better."""

from typing import Annotated, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["app"]

app = typer.Typer(
    name="policy",
    help="Look at the rules of a host, test them, and try others on what was done.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Rules: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME|FILE",
        help="These rules: a file, or personal-read-only, developer, locked-down, unattended. "
        "By default those that the configuration names.",
    ),
]
File: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--file", metavar="FILE", help="The configuration; the user's and ./mcp.json by default."
    ),
]


@app.command()
def show(*, policy: Rules = None, file: File = None, as_json: AsJson = False) -> None:
    """Print the rules in force, layer by layer."""

    def shown() -> Exit:
        from isthmus.cli.commands.policy_shown import print_policy as print_rules

        return print_rules(policy, file, as_json=as_json)

    finish(shown)


@app.command("test")
def decide_cases(
    cases: Annotated[str, typer.Argument(metavar="CASES.toml", show_default=False)],
    *,
    policy: Rules = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Decide about a table of attempts; exits with 1 where one comes out another way."""

    def tested() -> Exit:
        from isthmus.cli.commands.policy_shown import print_cases as run

        return run(cases, policy, file, as_json=as_json)

    finish(tested)


@app.command()
def lint(*, policy: Rules = None, file: File = None, as_json: AsJson = False) -> None:
    """Find rules that never count, rules too broad, and names that nobody has; exits with 1 then."""

    def linted() -> Exit:
        from isthmus.cli.commands.policy_shown import print_lint as look

        return look(policy, file, as_json=as_json)

    finish(linted)


@app.command()
def explain(
    server: Annotated[str, typer.Argument(metavar="SERVER", show_default=False)],
    object_: Annotated[
        str, typer.Argument(metavar="OBJECT", help="The tool, URI or prompt.", show_default=False)
    ] = "",
    *,
    action: Annotated[str, typer.Option(metavar="ACTION", help="What is wanted.")] = "tool.call",
    args: Annotated[str, typer.Option(metavar="JSON", help="The arguments.")] = "{}",
    facts: Annotated[
        str,
        typer.Option(
            metavar="JSON",
            help='Circumstances, as in a file of cases: {"annotations": {"read_only": true}, …}. '
            "Trust and labels of a configured server are known.",
        ),
    ] = "{}",
    principal: Annotated[
        str, typer.Option(metavar="WHO", help="Who wants it: user:NAME or agent:RUN.")
    ] = "user:local",
    policy: Rules = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Say what would be decided about one attempt, by which rule, and what else would fit."""

    def explained() -> Exit:
        from isthmus.cli.commands.policy_shown import PolicyQuestion
        from isthmus.cli.commands.policy_shown import print_explanation as say

        asked = PolicyQuestion(action, server, object_, args, facts, principal)
        return say(asked, policy, file, as_json=as_json)

    finish(explained)


@app.command()
def replay(
    *,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="From then on: 7d, or 2026-11-21T08:00.")
    ] = "7d",
    policy: Rules = None,
    file: File = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="The host's state; the user's own host by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide anew about what was done, and print what would be allowed, asked or denied instead."""

    def replayed() -> Exit:
        from isthmus.cli.commands.policy_shown import print_replay as again

        return again(since, policy, file, state, as_json=as_json)

    finish(replayed)
