"""What a yes may hold for beyond this once, in words."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from isthmus.host.interaction import Interaction
from isthmus.host.policy.trace import Remember

__all__ = ["Kept", "kept"]

HOUR = 3600.0
TIMES = (("for an hour", HOUR), ("for a day", 24 * HOUR), ("for 30 days", 30 * 24 * HOUR))

SCOPES: Mapping[Remember, str] = {
    "arguments": "these exact arguments",
    "shape": "arguments of this shape",
    "tool_run": "this tool, for this run",
    "session": "this tool, until the host ends",
    "server_read_only": "all tools of this server that only read",
    "tool_always": "ALWAYS, with any arguments (press it twice)",
}


class Kept(Struct, frozen=True):
    """What a yes may hold for beyond this once.

    Attributes:
        remember: the scope.
        label: the same for a person.
        seconds: until when it holds, from now; None for no end of its own.
    """

    remember: Remember
    label: str
    seconds: float | None = None


def kept(interaction: Interaction) -> list[Kept]:
    """The choices there are, of what policy offers, in its order and with times spelt out.

    None for what servers ask their user: somebody answers that each time; nor for the consent to
    run a server or connect to it, which is kept until the server is another one.
    """
    if interaction.attempt.action.startswith(("elicit.", "server.")):
        return []
    offered: Iterable[Remember] = interaction.trace.obligations.remember
    found: list[Kept] = []
    for scope in offered:
        if scope == "until":
            found += [Kept("until", f"this tool {label}", seconds) for label, seconds in TIMES]
        elif scope != "once":
            found.append(Kept(scope, SCOPES[scope]))
    return found
