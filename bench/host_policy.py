"""What a decision of policy costs, and what it costs to decide again about a week of calls.

Run it: ``python bench/host_policy.py``. It prints microseconds of one decision under 50 rules, for
what is allowed, asked and denied, and for what looks at arguments; the target is below 20.
"""

import sys
import time
from collections.abc import Callable, Iterator
from statistics import quantiles

from isthmus.host.attempt import Attempt
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.reading import read_layers
from isthmus.host.policy.rule import PolicyLayer
from isthmus.host.policy.shipped import text_of
from isthmus.wire import ToolAnnotations

RULES = 50
ROUNDS = 20_000

HARMLESS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def policy() -> Policy:
    """Fifty rules: a shipped policy, and as many of the user's own as it takes."""
    shipped = text_of("personal-read-only")
    own = "\n".join(_own(number) for number in range(RULES - shipped.count("[[rule]]")))
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


def main() -> None:
    """Print a line for each."""
    rounds = ROUNDS // 10 if "--short" in sys.argv else ROUNDS
    decided = policy()
    print(f"a decision under {len(decided.rules)} rules, µs:")
    for name, attempt, facts in attempts():
        p50, p99 = spread(lambda a=attempt, f=facts: decided.decide(a, f), rounds)  # type: ignore[misc] # bound at once
        print(f"  {name:34} p50 {p50:6.1f}  p99 {p99:6.1f}")


if __name__ == "__main__":
    main()
