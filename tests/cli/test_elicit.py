"""A server's question at the terminal, with a person whose lines are written down beforehand."""

import os
import pty
import select

import pytest

from isthmus.cli.terminal_client import answer_question, discard_typed
from isthmus.core.answers import Accepted, Cancelled, Declined
from isthmus.wire import ElicitParams

SEAT = ElicitParams(
    message="Which seat?",
    requested_schema={
        "type": "object",
        "properties": {
            "row": {"type": "integer", "maximum": 30},
            "side": {"type": "string", "enum": ["aisle", "window"]},
            "note": {"type": "string"},
        },
        "required": ["row", "side"],
    },
)


class Person:
    """Types the given lines, then control-D; remembers what was shown."""

    def __init__(self, *lines):
        self.lines = list(lines)
        self.shown = []

    def say(self, text):
        """Read it."""
        self.shown.append(text)

    async def ask(self, prompt):
        """Type the next line."""
        self.shown.append(prompt)
        return self.lines.pop(0) if self.lines else None


async def test_a_form_is_filled_blank_by_blank_and_reviewed():
    """Ours: each blank is asked, and nothing is sent before a last yes."""
    person = Person("12", "2", "", "y")

    assert Accepted({"row": 12, "side": "window"}) == await answer_question(SEAT, person)
    assert ["  row: 12", "  side: window", "Send this? [y/n] "] == person.shown[-3:]


async def test_a_line_that_does_not_fit_is_asked_again():
    """Ours: a mistake costs a line, not the call."""
    person = Person("many", "31", "30", "1", "", "y")

    assert Accepted({"row": 30, "side": "aisle"}) == await answer_question(SEAT, person)
    assert "  'many' is not a whole number" in person.shown


async def test_no_at_the_review_declines():
    """Spec: declining is the user's explicit no."""
    assert Declined() == await answer_question(SEAT, Person("1", "1", "", "n"))


async def test_the_end_of_input_cancels_at_any_blank():
    """Spec: cancelling is turning away without a choice."""
    assert Cancelled() == await answer_question(SEAT, Person("1"))
    assert Cancelled() == await answer_question(SEAT, Person("1", "1", ""))


async def test_a_form_without_blanks_asks_for_consent():
    """Ours: an empty form is a yes-or-no question, asked until it has an answer."""
    question = ElicitParams(message="Delete it?", requested_schema={"type": "object"})

    assert Accepted({}) == await answer_question(question, Person("perhaps", "yes"))
    assert Declined() == await answer_question(question, Person("n"))


@pytest.mark.covers("elicitation.url.shown-whole-first")
async def test_a_page_is_shown_whole_and_not_opened_without_a_yes():
    """Spec: the user sees the full URL and decides."""
    question = ElicitParams(message="Sign in", mode="url", url="https://example.com/login?a=b")
    person = Person("n")

    assert Declined() == await answer_question(question, person)
    assert any("https://example.com/login?a=b" in line for line in person.shown)


def test_text_typed_before_a_question_does_not_answer_it():
    """Ours: a line that waits in the terminal was meant for something else."""
    master, slave = pty.openpty()
    try:
        os.write(master, b"y\n")
        select.select([slave], [], [], 5)
        discard_typed(slave)

        assert ([], [], []) == select.select([slave], [], [], 0)
    finally:
        os.close(master)
        os.close(slave)
