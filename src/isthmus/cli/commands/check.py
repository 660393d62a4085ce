"""``isthmus check``: faults of a server, clause by clause, in every revision it speaks; or of a gateway."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

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
from isthmus.cli.targets import HTTP_SCHEMES, TARGET_HELP, CliTarget, extend_target
from isthmus.cli.terminal_client import ConnectOptions, TerminalClient, run_with_target
from isthmus.errors import UsageError
from isthmus.linter.doctor.doctor import Report, examine
from isthmus.linter.rules.catalog import select_rules
from isthmus.linter.rules.rule import fold_findings
from isthmus.revisions import BY_NAME, REVISIONS, Revision

if TYPE_CHECKING:
    from isthmus.linter.gateway.visit import GatewayReport

app = CommandSet()

CHECK_TIMEOUT_S = 5.0

# spec 2025-11-25 basic/transports#streamable-http: a gateway of several clients is reached over HTTP
GATEWAY_URL = "http://127.0.0.1:{port}/mcp"
UPSTREAM_PORT = 8701
GATEWAY_TIMEOUT_S = 4.0

GatewayWord: TypeAlias = Annotated[
    str | None,
    Option(
        "--gateway",
        metavar="URL|COMMAND",
        help="Check a gateway from both sides: a command with {config} and {port}, or the URL of one that has the servers of --upstream-config.",
    ),
]
GatewayUrl: TypeAlias = Annotated[
    str | None,
    Option(
        "--gateway-url", metavar="URL", help="URL of the gateway that the --gateway command starts."
    ),
]
UpstreamConfig: TypeAlias = Annotated[
    bool,
    Option("--upstream-config", help="Print the configuration for the gateway, and check nothing."),
]
UpstreamPort: TypeAlias = Annotated[
    int | None,
    Option(
        "--upstream-port",
        metavar="PORT",
        help="The first of three ports of the servers behind the gateway; 8701 with a URL.",
    ),
]
OtherTokenEnv: TypeAlias = Annotated[
    str | None,
    Option(
        "--other-token-env",
        metavar="NAME",
        help="Environment variable with the token of a second caller.",
    ),
]


@app.command("check", epilog=TARGET_HELP.format("list"))
def check(
    context: Invocation,
    target: Annotated[list[str] | None, Argument(metavar="TARGET")] = None,
    *,
    calls: Annotated[
        list[str] | None,
        Option("--call", metavar="NAME[:JSON]", help="Call this tool; no other tool is called."),
    ] = None,
    call_read_only: Annotated[
        bool, Option("--call-read-only", help="Call tools that are annotated as read-only.")
    ] = False,
    only: Rules = None,
    skip: Rules = None,
    strict: Strict = False,
    rules: Annotated[bool, Option("--rules", help="List the rules, and check nothing.")] = False,
    gateway: GatewayWord = None,
    gateway_url: GatewayUrl = None,
    upstream_config: UpstreamConfig = False,
    upstream_port: UpstreamPort = None,
    other_token_env: OtherTokenEnv = None,
    as_json: AsJson = False,
    revision: RevisionOption = None,
    timeout: Timeout = None,
    token_env: TokenEnv = None,
    header: HeaderWords = None,
    env: EnvWords = None,
) -> None:
    """Check a server against the specification, in every revision."""
    if rules:
        finish(lambda: print_all_rules(gateways=gateway is not None))
    if upstream_config:
        finish(lambda: print_upstream_config(upstream_port or UPSTREAM_PORT))
    if gateway is not None:
        tested = GatewayUnderTest(
            gateway, gateway_url, upstream_port, token_env, other_token_env, tuple(header or ())
        )
        words = [*(target or []), *context.command]
        chosen = GatewayChoices(only or (), skip or (), strict, as_json, revision, timeout)
        finish(lambda: check_gateway(tested, chosen, words))
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


# Gateways


class GatewayUnderTest(msgspec.Struct, frozen=True):
    """The gateway under test.

    Attributes:
        gateway: its URL, or the command that starts it.
        url: where that command's gateway answers.
        port: the first port of the servers behind it.
        token_env: the variable that holds a token for it.
        other_token_env: the same for a second caller.
        headers: ``NAME=VALUE`` each, for every request to it.
    """

    gateway: str
    url: str | None = None
    port: int | None = None
    token_env: str | None = None
    other_token_env: str | None = None
    headers: tuple[str, ...] = ()


class GatewayChoices(msgspec.Struct, frozen=True):
    """Options of a check of a gateway.

    Attributes:
        only: rules or areas to apply; all if there are none.
        skip: rules or areas to leave out.
        strict: warnings count as errors.
        as_json: print JSON for a program.
        revision: the one that clients speak.
        timeout: seconds that one probe may take.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    strict: bool = False
    as_json: bool = False
    revision: str | None = None
    timeout: float | None = None


async def check_gateway(
    tested: GatewayUnderTest, choices: GatewayChoices, words: Sequence[str]
) -> Exit:
    """Examine a gateway from both sides, and print what was found.

    Args:
        tested: the gateway.
        choices: what else the command line said.
        words: a target beside it, which there cannot be.

    Raises:
        UsageError: the command line contradicts itself.
        ConnectFailed: the gateway does not start.
    """
    from isthmus.linter.gateway.examination import examine_gateway  # servers are checked more often
    from isthmus.linter.gateway.launch import CommandGateway, RunningGateway
    from isthmus.linter.gateway.rules import GATEWAY_RULES
    from isthmus.linter.gateway.upstream import open_upstreams

    if words:
        raise UsageError(f"--gateway already names the target: leave out {' '.join(words)!r}")
    wanted = select_rules(choices.only, choices.skip, GATEWAY_RULES)
    runs = tested.gateway.startswith(HTTP_SCHEMES)
    if runs and tested.url is not None:
        raise UsageError("--gateway-url goes with a command, and --gateway is a URL already")
    runner = (
        RunningGateway(tested.gateway)
        if runs
        else CommandGateway(tested.gateway, tested.url or GATEWAY_URL)
    )
    target = extend_target(CliTarget(runner.url, runner.url), tested.headers, ())
    revisions = REVISIONS if choices.revision is None else (_find_revision(choices.revision),)
    port = tested.port or (UPSTREAM_PORT if runs else 0)
    async with open_upstreams(port) as upstreams:
        report = await examine_gateway(
            runner,
            upstreams,
            tokens=(_read_token(tested.token_env), _read_token(tested.other_token_env)),
            headers=target.headers,
            revisions=revisions,
            rules=wanted,
            timeout=choices.timeout or GATEWAY_TIMEOUT_S,
        )
    return _tell_of_gateway(report, tested, choices)


def _tell_of_gateway(
    report: "GatewayReport", tested: GatewayUnderTest, choices: GatewayChoices
) -> Exit:
    if choices.as_json:
        folded = msgspec.to_builtins(fold_findings(report.findings))
        print_json({"target": tested.gateway, **msgspec.to_builtins(report), "folded": folded})
    elif report.spoken:
        print(f"the gateway speaks {', '.join(report.spoken)}")
        print(f"{report.asked} probes made from both sides")
        print_findings(report.findings)
    for one in report.skipped:
        print_note(f"not probed: {one}")
    if not report.spoken:
        reasons = dict.fromkeys(report.unspoken.values())
        print_note(f"isthmus: the gateway speaks no revision: {'; '.join(reasons)}")
        return Exit.USAGE
    code = judge_findings(report.findings, strict=choices.strict)
    return Exit.UNPROVED if report.skipped and code is Exit.OK else code


def _read_token(name: str | None) -> str | None:
    """The token that a variable holds.

    Raises:
        UsageError: there is no such variable.
    """
    if name is None:
        return None
    token = os.environ.get(name)
    if not token:
        raise UsageError(f"the environment has no variable {name}")
    return token


def print_upstream_config(first_port: int) -> None:
    """Print the configuration that a gateway is given before it is checked by its URL."""
    from isthmus.linter.gateway.upstream import make_fixed_config

    print_json(make_fixed_config(first_port))


def print_all_rules(*, gateways: bool) -> None:
    """Print the rules about servers, or those about gateways."""
    if not gateways:
        print_rules()
        return
    from isthmus.linter.gateway.rules import GATEWAY_RULES

    print_rules(GATEWAY_RULES)
