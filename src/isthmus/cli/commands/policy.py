"""``isthmus policy``: show, test and lint the rules of a host, and replay attempts on others."""

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Struct, structs

from isthmus.cli.arguments import parse_time
from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.host_state import find_host_folder
from isthmus.cli.options import AsJson, StateFolder
from isthmus.cli.output import print_json, print_line, print_lines, print_note
from isthmus.errors import UsageError
from isthmus.host.audit.queries import AuditFilters, open_log, read_attempts
from isthmus.host.config.load import load_config
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.trace import Effect, Trace
from isthmus.host.pipeline.servers import find_labels
from isthmus.host.policy.cases import read_attempt, read_cases, read_facts, run_cases
from isthmus.host.policy.lint import lint_policy as findings
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.replay import ReplayResult
from isthmus.host.policy.replay import replay_policy as decided_anew
from isthmus.host.policy.rule import format_rules, rule_to_data

app = CommandSet(
    name="policy",
    help="Show, test and check the rules of a host.",
    no_args_is_help=True,
)

Rules: TypeAlias = Annotated[
    str | None,
    Option(
        "--policy",
        metavar="NAME|FILE",
        help="These rules: a file, or personal-read-only, developer, locked-down, unattended. "
        "By default those that the configuration names.",
    ),
]
File: TypeAlias = Annotated[
    str | None,
    Option("--file", metavar="FILE", help="Configuration; the user's and ./mcp.json by default."),
]


@app.command()
def show(*, policy: Rules = None, file: File = None, as_json: AsJson = False) -> None:
    """Print the active rules by layer."""
    finish(lambda: print_policy(policy, file, as_json=as_json))


@app.command("test")
def decide_cases(
    cases: Annotated[str, Argument(metavar="CASES.toml", show_default=False)],
    *,
    policy: Rules = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Test the rules on a table of attempts. Exits with 1 if a decision differs."""
    finish(lambda: print_cases(cases, policy, file, as_json=as_json))


@app.command()
def lint(*, policy: Rules = None, file: File = None, as_json: AsJson = False) -> None:
    """Find useless rules, broad rules and unknown names. Exits with 1 if there are any."""
    finish(lambda: print_lint(policy, file, as_json=as_json))


@app.command()
def explain(
    server: Annotated[str, Argument(metavar="SERVER", show_default=False)],
    object_: Annotated[
        str, Argument(metavar="OBJECT", help="The tool, URI or prompt.", show_default=False)
    ] = "",
    *,
    action: Annotated[str, Option(metavar="ACTION", help="Action of the attempt.")] = "tool.call",
    args: Annotated[str, Option(metavar="JSON", help="Arguments of the attempt.")] = "{}",
    facts: Annotated[
        str,
        Option(
            metavar="JSON",
            help='Circumstances, as in a file of cases: {"annotations": {"read_only": true}, …}. '
            "Trust and labels of a configured server are known.",
        ),
    ] = "{}",
    principal: Annotated[
        str, Option(metavar="WHO", help="Principal of the attempt: user:NAME or agent:RUN.")
    ] = "user:local",
    policy: Rules = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Show the decision on one attempt. Names the deciding rule, and other rules that match."""
    asked = PolicyQuestion(action, server, object_, args, facts, principal)
    finish(lambda: print_explanation(asked, policy, file, as_json=as_json))


@app.command()
def replay(
    *,
    since: Annotated[
        str, Option(metavar="TIME", help="Only attempts since this time: 7d, or 2026-11-21T08:00.")
    ] = "7d",
    policy: Rules = None,
    file: File = None,
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Apply rules to recorded attempts, and print changed decisions."""
    finish(lambda: print_replay(since, policy, file, state, as_json=as_json))


NEW_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
MAX_CASES_BYTES = 4 * 1024 * 1024


class PolicyQuestion(Struct, frozen=True):
    """The attempt that ``explain`` is about, as it stands on the command line."""

    action: str
    server: str
    object: str
    args: str
    facts: str
    principal: str


def read_policy(policy: str | None, file: str | None) -> tuple[Policy, HostConfig | None]:
    """The policy that is meant, and the configuration where one was read.

    Raises:
        PolicyError: the policy that was named cannot be read.
    """
    config = None if policy and file is None else load_config(file)
    if policy:
        found = Policy.load(policy)
    else:
        found = Policy.configured(config.options) if config else Policy.load()
    if found.broken:
        raise UsageError("\n".join(found.broken))
    return found, config


def print_policy(policy: str | None, file: str | None, *, as_json: bool) -> Exit:
    """Print the rules."""
    found, _ = read_policy(policy, file)
    if as_json:
        layers = [
            {
                "layer": one.name,
                "source": one.source,
                "rules": [rule_to_data(rule) for rule in one.rules],
            }
            for one in found.layers
        ]
        print_json({"version": found.version, "layers": layers})
        return Exit.OK
    for layer in found.layers:
        print_line(f"# {layer.name}: {layer.source or 'made in a program'}")
        print_line("")
        print_lines(format_rules(layer.rules))
    print_line(f"# version {found.version}")
    return Exit.OK


def print_cases(cases: str, policy: str | None, file: str | None, *, as_json: bool) -> Exit:
    """Decide about a table of attempts."""
    found, _ = read_policy(policy, file)
    path = Path(cases).expanduser()
    try:
        if path.stat().st_size > MAX_CASES_BYTES:
            raise UsageError(f"{cases} is larger than {MAX_CASES_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{cases} cannot be read: {error}") from error
    table = read_cases(text, source=cases)
    failures = list(run_cases(found, table))
    if as_json:
        print_json(
            {
                "cases": len(table),
                "failures": [{"name": f.case.name, "trace": f.trace} for f in failures],
            }
        )
    else:
        for failure in failures:
            print_lines(f"✗ {failure}")
        print_line(f"{len(table)} cases, {len(failures) or 'none'} of them came out another way")
    return Exit.TOOL_FAILED if failures else Exit.OK


def print_lint(policy: str | None, file: str | None, *, as_json: bool) -> Exit:
    """Print what is doubtful."""
    found, config = read_policy(policy, file)
    servers: dict[str, Collection[str]] | None = None
    if config is not None and config.servers:
        servers = dict.fromkeys((*config.servers, *config.broken), ())
    labels = None if servers is None or config is None else collect_labels(config)
    doubtful = findings(found, servers, labels)
    if as_json:
        print_json(doubtful)
    else:
        for one in doubtful:
            line = f", line {one.line}" if one.line else ""
            print_line(f"{one.code:12} {one.rule} ({one.layer}{line}): {one.text}")
        print_line(f"{len(found.rules)} rules, {len(doubtful) or 'nothing'} doubtful")
    return Exit.TOOL_FAILED if doubtful else Exit.OK


def collect_labels(config: HostConfig) -> dict[str, Collection[str]]:
    """The labels that the entries of servers give their data, by server."""
    found: dict[str, Collection[str]] = {}
    for name, entry in config.servers.items():
        all_of = (entry.options.labels, *entry.options.tools.labels.values())
        found[name] = sorted({label for one in all_of for label in (*one.reads, *one.returns)})
    return found


def print_explanation(
    asked: PolicyQuestion, policy: str | None, file: str | None, *, as_json: bool
) -> Exit:
    """Print what would be decided about one attempt."""
    found, config = read_policy(policy, file)
    typed = {"action": asked.action, "server": asked.server, "principal": asked.principal}
    attempt = read_attempt(
        typed
        | ({"object": asked.object} if asked.object else {})
        | {"args": _parse_json(asked.args)},
        where="the attempt",
    )
    facts = read_facts(_parse_json(asked.facts), where="the facts")

    entry = config.servers.get(asked.server) if config else None
    if entry is not None:
        trust = entry.options.trust if "trust" not in _parse_json(asked.facts) else facts.trust
        facts = structs.replace(facts, trust=trust, target=find_labels(entry, asked.object))
    trace = found.decide(attempt, facts)
    if as_json:
        print_json(trace)
    else:
        print_lines(format_trace(trace))
    return Exit.OK


def format_trace(trace: Trace) -> str:
    """A trace for a person: the answer, the reason, and every rule that fits."""
    lines = [f"{trace.effect} by {trace.rule}: {trace.reason}"]
    lines += [f"  chain   {line}" for line in trace.chain]
    for number, match in enumerate(trace.matches):
        lines.append(
            f"  {'decides' if not number else 'fits   '} {match.rule} ({match.layer}): {match.effect}"
        )
    lines += [f"  demands {key} = {value}" for key, value in _list_obligations(trace).items()]
    return "\n".join((*lines, f"  policy  {trace.policy}"))


def _list_obligations(trace: Trace) -> Mapping[str, Any]:
    usual = structs.asdict(type(trace.obligations)())
    demanded = structs.asdict(trace.obligations)
    return {
        key: ", ".join(value) if isinstance(value, tuple) else value
        for key, value in demanded.items()
        if value != usual[key]
    }


def print_replay(
    since: str, policy: str | None, file: str | None, state: str | None, *, as_json: bool
) -> Exit:
    """Print what would be decided another way."""
    found, _ = read_policy(policy, file)
    with open_log(find_host_folder(state)) as db:
        past = read_attempts(db, AuditFilters(since=parse_time(since, time.time())))
        replayed = decided_anew(found, past)
    if as_json:
        differences = [{**structs.asdict(d), "count": n} for d, n in replayed.differences]
        print_json({"rows": replayed.rows, "skipped": replayed.skipped, "differences": differences})
    else:
        _print_replayed(replayed)
    return Exit.OK


def _print_replayed(replayed: ReplayResult) -> None:
    for effect in NEW_EFFECTS:
        changed = [(d, n) for d, n in replayed.differences if d.after == effect]
        print_line(f"newly {effect}: {replayed.newly(effect)}")
        for one, count in changed:
            about = " ".join(part for part in (one.action, one.server, one.object) if part)
            print_line(f"  {count:>7} {about}: {one.before} before, {one.rule} decides")
    print_line(f"{replayed.rows} attempts decided anew")
    if replayed.skipped:
        print_note(
            f"{replayed.skipped} attempts were not decided by a policy then, and are left out"
        )


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"{text!r} is not JSON: {error}") from error
