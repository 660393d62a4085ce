"""Keys that stand at the bottom of the screen: those that do something just now, and no others."""

from typing import get_args

from msgspec import UNSET

from isthmus.host.interaction import FormAsked, Interaction
from isthmus.host.policy.trace import Assurance
from isthmus.terminal.payloads import editable
from isthmus.terminal.scopes import kept

__all__ = ["can_allow", "list_keys"]

ASSURANCES = get_args(Assurance)


def can_allow(interaction: Interaction, assurance: Assurance) -> bool:
    """Whether a yes from a surface of this assurance counts."""
    demanded = interaction.trace.obligations.assurance
    return ASSURANCES.index(demanded) <= ASSURANCES.index(assurance)


def list_keys(
    interaction: Interaction | None, assurance: Assurance, *, changed: bool = False, alike: int = 0
) -> str:
    """The keys that answer a question, or show more of it.

    Args:
        interaction: the question that is looked at; None for none.
        assurance: how sure one can be that a person sits at this surface.
        changed: whether there is a change that can be taken back.
        alike: how many questions may be answered together with it, itself among them.
    """
    if interaction is None:
        return "/ search"
    keys = _list_yes_keys(interaction) if can_allow(interaction, assurance) else []
    keys += ["u undo"] if changed else []
    keys += [f"g all {alike} of this kind"] if alike > 1 else []
    keys.append("d deny")
    keys += ["c cancel"] if interaction.attempt.action.startswith("elicit.") else []
    return "  ".join([*keys, "? why", "/ search"])


def _list_yes_keys(interaction: Interaction) -> list[str]:
    if isinstance(interaction.payload, FormAsked):
        return ["a fill in"]
    scopes = kept(interaction)
    # an agreement to run a server, or to connect to it, is kept until that is another one
    yes = "agree" if interaction.attempt.action.startswith("server.") else "once"
    keys = [f"A,y {yes}" if interaction.risk == "high" else f"a {yes}"]
    keys += ["s session"] if any(one.remember == "session" for one in scopes) else []
    keys += ["r remember"] if scopes else []
    keys += ["e edit"] if editable(interaction) is not UNSET else []
    return keys
