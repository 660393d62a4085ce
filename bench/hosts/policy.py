"""What a decision of policy costs, and what it costs to decide again about a week of calls.

Run it: ``python bench/hosts/policy.py``. It prints microseconds of one decision under 50 rules, for
what is allowed, asked and denied, and for what looks at arguments; the target is below 20. Then it
writes an audit log of 100,000 attempts and prints how long a replay of it takes; the target is 10 s.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles

from isthmus.host.audit.log import AuditLog
from isthmus.host.audit.queries import open_log
from isthmus.host.audit.queries import read_attempts as past
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts, record_facts
from isthmus.host.model.row import AuditRow
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.replay import replay_policy
from isthmus.host.policy.rule import PolicyLayer
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.policy.shipped import read_policy_text
from isthmus.host.state.database import HostState
from isthmus.wire import ToolAnnotations

RULES = 50
ROUNDS = 20_000

UNDER = """
[[rule]]
id = "under"
effect = "allow"
when = { action = "tool.call", server = "disk" }
where = ["args.path under '/usr/lib'"]
"""

HARMLESS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def policy() -> Policy:
    """Fifty rules: a shipped policy, and as many of the user's own as it takes."""
    shipped = read_policy_text("personal-read-only")
    own = UNDER + "\n".join(_own(n) for n in range(RULES - 1 - shipped.count("[[rule]]")))
    layers = read_layers(shipped, "default") + read_layers(own, "user")
    layers.append(PolicyLayer(name="session"))
    return Policy(layers)


def _own(number: int) -> str:
    effect = ("ask", "allow", "deny")[number % 3]
    where = ("args.repo glob 'acme/*'", "args.body size < 20000", "args.n in [1, 2, 3]")[number % 3]
    server = "github" if number % 5 == 0 else f"server-{number}"
    return (
        f'[[rule]]\nid = "own-{number}"\neffect = "{effect}"\n'
        f'when = {{ action = "tool.call", server = "{server}", tool = "create_{number % 10}*" }}\n'
        f'where = ["{where}"]\n'
    )


def attempts() -> Iterator[tuple[str, Attempt, Facts]]:
    """What is decided about."""

    def call(server: str, tool: str, **arguments: object) -> Attempt:
        return Attempt(
            id="0",
            action="tool.call",
            principal="user:local",
            server=server,
            object=tool,
            arguments=arguments,
            run="r",
        )

    trusted = Facts(trust="annotations", annotations=HARMLESS, fingerprint="f", now=1.0)
    guarded = Facts(labels=frozenset({"private", "untrusted"}))
    yield "allowed: trusted, reads only", call("files", "read_file", path="/a"), trusted
    yield "asked: a stranger's tool", call("files", "write_file", path="/a"), Facts()
    yield "denied or asked: arguments", call("github", "create_5x", repo="acme/x", n=2), Facts()
    yield (
        "allowed: a path under a folder",
        call("disk", "write", path="/usr/lib/os-release"),
        Facts(),
    )
    yield "asked: labels", call("mail", "send", to="x"), guarded


def spread(work: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """Microseconds: the median, and what 99 of 100 stay below."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter_ns()
        work()
        took.append(time.perf_counter_ns() - began)
    cuts = quantiles(took, n=100)
    return cuts[49] / 1000, cuts[98] / 1000


async def log_of(folder: Path, count: int) -> None:
    """An audit log of so many attempts."""
    state = HostState(folder)
    log = AuditLog(state)
    several = list(attempts())
    for number in range(count):
        _, attempt, facts = several[number % len(several)]
        log.note(
            AuditRow(
                kind="intent",
                call=str(number),
                run=f"run-{number // 50}",
                principal=attempt.principal,
                action=attempt.action,
                server=attempt.server,
                object=attempt.object,
                effect="allow",
                arguments=attempt.arguments,
                labels=tuple(facts.labels),
                detail={"facts": record_facts(facts)},
            )
        )
        if number % 1_000 == 999:
            await log.flush()
    await log.close()
    await state.close()


def replayed(decided: Policy, count: int) -> None:
    """Print how long it takes to decide anew about so many attempts."""
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(log_of(Path(name), count))
        began = time.perf_counter()
        with open_log(Path(name)) as db:
            found = replay_policy(decided, past(db))
        took = time.perf_counter() - began
    print(f"replay of {found.rows:,} attempts from the audit log: {took:.1f} s")


def main() -> None:
    """Print a line for each."""
    rounds = ROUNDS // 10 if "--short" in sys.argv else ROUNDS
    decided = policy()
    print(f"a decision under {len(decided.rules)} rules, µs:")
    for name, attempt, facts in attempts():
        p50, p99 = spread(lambda a=attempt, f=facts: decided.decide(a, f), rounds)  # type: ignore[misc] # bound at once
        print(f"  {name:34} p50 {p50:6.1f}  p99 {p99:6.1f}")
    replayed(decided, 5_000 if "--short" in sys.argv else 100_000)


if __name__ == "__main__":
    main()
