"""Answers that a person may give: how long a yes holds, and whose yes counts."""

from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec import Struct

from isthmus.host.model.interaction import Interaction
from isthmus.host.model.trace import Assurance, Remember

HOUR_S = 3600.0
LIFETIMES = (("for an hour", HOUR_S), ("for a day", 24 * HOUR_S), ("for 30 days", 30 * 24 * HOUR_S))

SCOPE_TEXTS: Mapping[Remember, str] = {
    "arguments": "these exact arguments",
    "shape": "arguments of this shape",
    "tool_run": "this tool, during this run",
    "session": "this tool, until the host ends",
    "server_read_only": "all tools of this server that only read",
    "tool_always": "ALWAYS, with any arguments (press it twice)",
}


class GrantChoice(Struct, frozen=True):
    """A lifetime of a yes beyond this once: a scope, and a time.

    Attributes:
        remember: the scope.
        label: the same for a person.
        seconds: until when it holds, from now; None for no end of its own.
    """

    remember: Remember
    label: str
    seconds: float | None = None


def list_grant_choices(interaction: Interaction) -> list[GrantChoice]:
    """The choices there are, of what policy offers, in its order and with times spelt out.

    None for what servers ask their user: somebody answers that each time; nor for the consent to
    run a server or connect to it, which is kept until the server is another one.
    """
    if interaction.attempt.action.startswith(("elicit.", "server.")):
        return []
    offered: Iterable[Remember] = interaction.trace.obligations.remember
    found: list[GrantChoice] = []
    for scope in offered:
        if scope == "until":
            found += [
                GrantChoice("until", f"this tool {label}", seconds) for label, seconds in LIFETIMES
            ]
        elif scope != "once":
            found.append(GrantChoice(scope, SCOPE_TEXTS[scope]))
    return found


ASSURANCE_ORDER = get_args(Assurance)


def can_allow(interaction: Interaction, assurance: Assurance) -> bool:
    """Whether a yes from a surface of this assurance counts."""
    demanded = interaction.trace.obligations.assurance
    return ASSURANCE_ORDER.index(demanded) <= ASSURANCE_ORDER.index(assurance)
