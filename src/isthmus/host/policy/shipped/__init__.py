"""Shipped policies, each a file of rules beside this one, with its cases."""

from functools import cache

from isthmus.host.model.errors import PolicyError
from isthmus.host.policy.rule import PolicyRule

__all__ = ["SHIPPED_POLICIES", "load_shipped_rules", "read_cases_text", "read_policy_text"]

SHIPPED_POLICIES = ("personal-read-only", "developer", "locked-down", "unattended")


def read_policy_text(name: str) -> str:
    """Read the file of a shipped policy.

    Raises:
        PolicyError: there is none of that name.
    """
    return _read_file(name, f"{name}.toml")


def read_cases_text(name: str) -> str:
    """Read the file of cases that a shipped policy is tested by.

    Raises:
        PolicyError: there is none of that name.
    """
    return _read_file(name, f"{name}.cases.toml")


def _read_file(name: str, file: str) -> str:
    from importlib.resources import files  # only where a policy is read

    if name not in SHIPPED_POLICIES:
        raise PolicyError(
            f"no shipped policy is called {name!r}; there are {', '.join(SHIPPED_POLICIES)}"
        )
    return files(__name__).joinpath(file).read_text(encoding="utf-8")


@cache
def load_shipped_rules(name: str) -> tuple[PolicyRule, ...]:
    """Load the rules of a shipped policy.

    Raises:
        PolicyError: there is none of that name.
    """
    from isthmus.host.policy.rule_file import read_layers

    return read_layers(read_policy_text(name), "default", source=f"{name}.toml")[0].rules
