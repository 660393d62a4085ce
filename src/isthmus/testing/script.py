"""Answers given in advance: a user, or a model, that has learnt its lines."""

from typing import Any

from isthmus.core.answers import Accepted, Cancelled, Declined

__all__ = ["Script", "script"]


class Script:
    """A handler for questions that gives the next answer of a list; made by :func:`script`.

    Attributes:
        questions: what was asked, in order.
    """

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.questions: list[Any] = []
        self._answers = list(answers)

    async def __call__(self, question: Any) -> Any:
        """The next answer.

        Raises:
            AssertionError: there is none left; the message has the question.
        """
        self.questions.append(question)
        if not self._answers:
            raise AssertionError(f"the script has no answer left for: {question}")
        answer = self._answers.pop(0)
        return answer(question) if callable(answer) else answer

    @property
    def left(self) -> int:
        """How many answers nobody has asked for yet."""
        return len(self._answers)

    def finish(self) -> None:
        """Check that every answer was asked for.

        Raises:
            AssertionError: some were not; the message has them.
        """
        if self._answers:
            raise AssertionError(f"nobody asked for these answers: {self._answers}")


def script(*answers: Accepted[Any] | Declined | Cancelled | Any) -> Script:
    """Answer questions from a list, in order: for ``elicit=`` and ``sample=``.

    Args:
        *answers: for elicitation ``Accepted(value)``, ``Declined()`` or ``Cancelled()``; for
            sampling a text or a result; or a function from the question to one of these.

    Example::

        async with connect(server, elicit=script(Accepted(Seat(row=12)))) as bookings:
            await bookings.call_tool("book", {"date": "2026-05-01"})
    """
    return Script(answers)
