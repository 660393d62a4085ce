"""A server's form, filled in blank by blank at a line-based terminal."""

from collections.abc import Mapping
from typing import Any, Protocol

from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.form_fields import FormField, format_answer, list_fields

YES_WORDS = {"y", "yes"}
NO_WORDS = {"n", "no"}


class FormTerminal(Protocol):
    """A person who can be told things and asked for a line."""

    def say(self, text: str) -> None:
        """Show a line."""
        ...

    async def ask(self, prompt: str) -> str | None:
        """The line typed after ``prompt``, or None at the end of input (control-D)."""
        ...


async def ask_form(schema: Mapping[str, Any], terminal: FormTerminal) -> Answer[Any]:
    """Ask for each blank of a form; the content counts once the person has seen it and said yes.

    Control-D anywhere is turning away without choosing.

    Args:
        schema: the form, in the subset that elicitation may ask with.
        terminal: where the person is.
    """
    form = list_fields(schema)
    content: dict[str, Any] = {}
    for blank in form:
        found = await _ask_blank(blank, content, terminal)
        if not found:
            return Cancelled()
    # spec 2026-07-28 client/elicitation#user-interaction-model: review before sending
    return await confirm_content(
        content, "Send this? [y/n] " if form else "Agree? [y/n] ", terminal
    )


async def _ask_blank(blank: FormField, content: dict[str, Any], terminal: FormTerminal) -> bool:
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


async def confirm_content(
    content: Mapping[str, Any], prompt: str, terminal: FormTerminal
) -> Answer[Any]:
    """Show what would be sent, and ask until there is a yes, a no, or the end of input."""
    for name, value in content.items():
        terminal.say(f"  {name}: {format_answer(value)}")
    while True:
        text = await terminal.ask(prompt)
        if text is None:
            return Cancelled()
        if text.strip().lower() in YES_WORDS:
            return Accepted(dict(content))
        if text.strip().lower() in NO_WORDS:
            return Declined()
