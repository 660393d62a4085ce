"""Scripted answers: a user or a model, for tests, that gives the next answer of a list."""

from typing import Any

from isthmus.core.answers import Accepted, Cancelled, Declined


class Script:
    """A handler for questions that gives the next answer of a list; made by :func:`script`.

    Attributes:
        questions: what was asked, in order.
        unanswered: those among them that no answer was left for.
    """

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.questions: list[Any] = []
        self.unanswered: list[Any] = []
        self._answers = list(answers)

    def answer_with(self, *answers: Any) -> None:
        """Add answers to the end of the list, as :func:`script` takes them."""
        self._answers += answers

    async def __call__(self, question: Any) -> Any:
        """The next answer.

        Raises:
            AssertionError: there is none left; the message has the question.
        """
        self.questions.append(question)
        if not self._answers:
            self.unanswered.append(question)
            raise AssertionError(
                f"the script has no answer left for: {describe_question(question)}"
            )
        answer = self._answers.pop(0)
        return answer(question) if callable(answer) else answer

    @property
    def left(self) -> int:
        """How many answers nobody has asked for yet."""
        return len(self._answers)

    def finish(self) -> None:
        """Check that every question had an answer, and every answer was asked for.

        Raises:
            AssertionError: some were not; the message has them.
        """
        if self.unanswered:
            raise AssertionError(self.describe_unanswered())
        if self._answers:
            raise AssertionError(f"nobody asked for these answers: {self._answers}")

    def describe_unanswered(self) -> str:
        """The questions that no answer was left for, for people."""
        asked = "; ".join(map(describe_question, self.unanswered))
        return f"the script has no answer left for: {asked}"


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


def describe_question(question: Any) -> str:
    """A question for people: of a form its message and fields, of a conversation its last text."""
    message = getattr(question, "message", None)
    if message is not None:
        schema = getattr(question, "requested_schema", None)
        fields = schema.get("properties", ()) if isinstance(schema, dict) else ()
        return f"{message!r} (fields: {', '.join(fields)})" if fields else repr(message)
    messages = getattr(question, "messages", None)
    text = getattr(messages[-1].content, "text", None) if messages else None
    return repr(text) if text is not None else str(question)
