"""``isthmus check``: faults of a server, clause by clause, in every revision it speaks."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from isthmus.cli.declarations import Argument, CommandSet, Invocation, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.findings import judge_findings, print_findings, print_rules
from isthmus.cli.options import (
    AsJson,
    EnvWords,
    HeaderWords,
    RevisionOption,
    Rules,
    Strict,
    Timeout,
    TokenEnv,
)
from isthmus.cli.output import print_json, print_note
from isthmus.cli.targets import TARGET_HELP
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient, run_with_target
from isthmus.errors import UsageError
from isthmus.linter.doctor.doctor import Report, examine
from isthmus.linter.rules.catalog import select_rules
from isthmus.linter.rules.rule import fold_findings
from isthmus.revisions import BY_NAME, REVISIONS, Revision

app = CommandSet()

CHECK_TIMEOUT_S = 5.0


@app.command("check", epilog=TARGET_HELP.format("list"))
def check(
    context: Invocation,
    target: Annotated[list[str] | None, Argument(metavar="TARGET")] = None,
    *,
    calls: Annotated[
        list[str] | None,
        Option("--call", metavar="NAME[:JSON]", help="Call this tool; none is called else."),
    ] = None,
    call_read_only: Annotated[
        bool, Option("--call-read-only", help="Call tools that say they change nothing.")
    ] = False,
    only: Rules = None,
    skip: Rules = None,
    strict: Strict = False,
    rules: Annotated[bool, Option("--rules", help="List the rules instead.")] = False,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    header: HeaderWords = None,
    env: EnvWords = None,
) -> None:
    """Say what a server does wrong, in every revision it speaks."""
    if rules:
        finish(print_rules)
    choices = CheckOptions(only or (), skip or (), calls or (), call_read_only, strict)
    options = ConnectOptions(
        as_json, revision, timeout, token_env, headers=tuple(header or ()), env=tuple(env or ())
    )
    run_with_target(context, target or [], options, lambda client, _: check_server(client, choices))


class CheckOptions(msgspec.Struct, frozen=True):
    """Options of a check.

    Attributes:
        only: rules or areas to apply; all if there are none.
        skip: rules or areas to leave out.
        calls: tools to call: ``NAME`` or ``NAME:JSON``.
        call_read_only: call the tools that say they change nothing.
        strict: warnings count as errors.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    calls: Sequence[str] = ()
    call_read_only: bool = False
    strict: bool = False


async def check_server(terminal: TerminalClient, choices: CheckOptions) -> Exit:
    """Examine a server, and print what was found."""
    wanted = select_rules(choices.only, choices.skip)
    calls = dict(map(_parse_call, choices.calls))
    revisions: Sequence[Revision] = REVISIONS
    if terminal.options.revision is not None:
        revisions = (_find_revision(terminal.options.revision),)
    report = await examine(
        terminal.target.where,
        headers=dict(terminal.target.headers) or None,
        revisions=revisions,
        timeout=terminal.options.timeout or CHECK_TIMEOUT_S,
        rules=wanted,
        calls=calls,
        call_read_only=choices.call_read_only,
        auth=terminal.options.authorization(terminal.target),
    )
    if terminal.options.as_json:
        folded = msgspec.to_builtins(fold_findings(report.findings))
        whole = {"target": terminal.target.label, **msgspec.to_builtins(report), "folded": folded}
        print_json(whole)
    else:
        _print_report(report, terminal.target.label)
    for reason, names in _list_reasons(report):
        print_note(f"{', '.join(names)}: {reason}")
    if not report.spoken:
        print_note(f"isthmus: {terminal.target.label} speaks none of {', '.join(report.unspoken)}")
        return Exit.USAGE
    code = judge_findings(report.findings, strict=choices.strict)
    return Exit.UNREACHABLE if report.broken and code is Exit.OK else code


def _list_reasons(report: Report) -> list[tuple[str, list[str]]]:
    """The reasons why something could not be asked, each with its revisions."""
    found: dict[str, list[str]] = {}
    for name, reason in (report.broken if report.spoken else report.unspoken).items():
        found.setdefault(reason, []).append(name)
    return list(found.items())


def _parse_call(text: str) -> tuple[str, Any]:
    """A tool to call, and its arguments.

    Raises:
        UsageError: the arguments are no JSON object.
    """
    name, _, arguments = text.partition(":")
    try:
        decoded = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError as error:
        raise UsageError(f"--call {name}: the arguments are no JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise UsageError(f"--call {name}: the arguments are a JSON object, not {arguments}")
    return name, decoded


def _find_revision(name: str) -> Revision:
    if name not in BY_NAME:
        raise UsageError(f"there is no revision {name!r}: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _print_report(report: Report, label: str) -> None:
    if not report.spoken:
        return
    print(f"{label} speaks {', '.join(report.spoken)}")
    print(f"{report.asked} questions asked, {report.said} messages looked at")
    if report.broken:
        print(f"not everything could be asked in {', '.join(report.broken)}: the server was gone")
    if report.findings or not report.broken:
        print_findings(report.findings)
