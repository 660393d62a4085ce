"""The policies that come with isthmus, each a file of rules beside this one, with its cases."""

from functools import cache

from isthmus.host.errors import PolicyError
from isthmus.host.policy.rule import Rule

__all__ = ["NAMES", "cases_of", "rules_of", "text_of"]

NAMES = ("personal-read-only", "developer", "locked-down", "unattended")


def text_of(name: str) -> str:
    """The file of one of them.

    Raises:
        PolicyError: there is none of that name.
    """
    return _text(name, f"{name}.toml")


def cases_of(name: str) -> str:
    """The file of cases that one of them is tested by.

    Raises:
        PolicyError: there is none of that name.
    """
    return _text(name, f"{name}.cases.toml")


def _text(name: str, file: str) -> str:
    from importlib.resources import files  # only where a policy is read

    if name not in NAMES:
        raise PolicyError(
            f"no policy comes with isthmus that is called {name!r}; there are {', '.join(NAMES)}"
        )
    return files(__name__).joinpath(file).read_text(encoding="utf-8")


@cache
def rules_of(name: str) -> tuple[Rule, ...]:
    """The rules of one of them.

    Raises:
        PolicyError: there is none of that name.
    """
    from isthmus.host.policy.reading import read_layers

    return read_layers(text_of(name), "default", source=f"{name}.toml")[0].rules
