"""Keys that answer a question at a terminal: which there are, and when one counts."""

from collections.abc import Callable

from msgspec import UNSET

from isthmus.cards.cards import list_editable
from isthmus.cards.choices import can_allow, list_grant_choices
from isthmus.host.model.interaction import FormAsked, Interaction
from isthmus.host.model.trace import Assurance

QUIET_S = 0.4  # before an answer: nothing moves on the screen, and no key is pressed


class KeyGuard:
    """Says whether a key stands alone and the card it would answer has been there long enough.

    A surface tells it of every key before the key is acted upon, whichever widget gets the key:
    somebody who writes a sentence answers nothing, however long the card has been there.

    Args:
        clock: seconds that only go forward.
        pause: seconds of silence that an answer needs.
    """

    def __init__(self, clock: Callable[[], float], pause: float = QUIET_S) -> None:
        self._clock = clock
        self._pause = pause
        self._moved = clock()
        self._pressed = float("-inf")
        self._alone = True

    def note_change(self) -> None:
        """Note that the screen has changed: keys count again after a silence."""
        self._moved = self._clock()

    def note_key(self) -> None:
        """Note that a key was pressed, or something pasted."""
        now = self._clock()
        self._alone = now - self._pressed >= self._pause
        self._pressed = now

    def is_readable(self) -> bool:
        """Whether what is on the screen has been there long enough to be read."""
        return self._clock() - self._moved >= self._pause

    def is_quiet(self) -> bool:
        """Whether nobody has pressed a key for a while."""
        return self._clock() - self._pressed >= self._pause

    def is_ready(self) -> bool:
        """Whether the last key may answer."""
        return self.is_readable() and self._alone


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
    scopes = list_grant_choices(interaction)
    # an agreement to run a server, or to connect to it, is kept until that is another one
    yes = "agree" if interaction.attempt.action.startswith("server.") else "once"
    keys = [f"A,y {yes}" if interaction.risk == "high" else f"a {yes}"]
    keys += ["s session"] if any(one.remember == "session" for one in scopes) else []
    keys += ["r remember"] if scopes else []
    keys += ["e edit"] if list_editable(interaction) is not UNSET else []
    return keys
