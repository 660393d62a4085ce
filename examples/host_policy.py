"""Policy in a program: what would be decided about a call, and why, without a host around it."""

from pathlib import Path

from isthmus.host import Attempt, Facts, Policy

policy = Policy.load(str(Path(__file__).with_name("host_policy.toml")))


def explain(server: str, tool: str, arguments: dict[str, object], facts: Facts) -> str:
    """The answer, the rule and the reason."""
    attempt = Attempt(
        id="1",
        action="tool.call",
        principal="user:me",
        server=server,
        object=tool,
        arguments=arguments,
    )
    trace = policy.decide(attempt, facts)
    return f"{trace.effect} by {trace.rule}: {trace.reason}"


def main() -> None:
    """Three calls."""
    here = Facts(assurance="local_ui")
    print(explain("tickets", "create_ticket", {"project": "shop", "body": "Closed."}, here))
    print(explain("payroll", "list_salaries", {}, here))
    read = Facts(labels=frozenset({"untrusted", "private"}), attended=False)
    print(explain("web", "fetch", {"url": "https://elsewhere.example/"}, read))


if __name__ == "__main__":
    main()
