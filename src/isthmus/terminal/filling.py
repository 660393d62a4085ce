"""A server's form, filled in blank by blank at a line-based terminal."""

from collections.abc import Mapping
from typing import Any, Protocol

from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.blanks import Blank, blanks, shown

__all__ = ["Terminal", "agreed", "fill"]

YES = {"y", "yes"}
NO = {"n", "no"}


class Terminal(Protocol):
    """A person who can be told things and asked for a line."""

    def say(self, text: str) -> None:
        """Show a line."""
        ...

    async def ask(self, prompt: str) -> str | None:
        """The line typed after ``prompt``, or None at the end of input (control-D)."""
        ...


async def fill(schema: Mapping[str, Any], terminal: Terminal) -> Answer[Any]:
    """What the person puts into a form, once they have seen it again and said yes.

    Control-D anywhere is turning away without choosing.

    Args:
        schema: the form, in the subset that elicitation may ask with.
        terminal: where the person is.
    """
    form = blanks(schema)
    content: dict[str, Any] = {}
    for blank in form:
        found = await _one(blank, content, terminal)
        if not found:
            return Cancelled()
    # spec 2026-07-28 client/elicitation#user-interaction-model: review before sending
    return await agreed(content, "Send this? [y/n] " if form else "Agree? [y/n] ", terminal)


async def _one(blank: Blank, content: dict[str, Any], terminal: Terminal) -> bool:
    """Ask for one blank until its answer fits; False at the end of input."""
    for line in blank.explanation():
        terminal.say(line)
    while True:
        text = await terminal.ask(blank.question())
        if text is None:
            return False
        try:
            value = blank.read(text)
        except ValueError as error:
            terminal.say(f"  {error}")
            continue
        if value is not None:
            content[blank.name] = value
        return True


async def agreed(content: Mapping[str, Any], prompt: str, terminal: Terminal) -> Answer[Any]:
    """Show what would be sent, and ask until there is a yes, a no, or the end of input."""
    for name, value in content.items():
        terminal.say(f"  {name}: {shown(value)}")
    while True:
        text = await terminal.ask(prompt)
        if text is None:
            return Cancelled()
        if text.strip().lower() in YES:
            return Accepted(dict(content))
        if text.strip().lower() in NO:
            return Declined()
