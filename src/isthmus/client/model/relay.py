"""Relay of a round: questions in the result of a call that somebody else answers, in a later round.

A gateway between two sides since 2026-07-28 keeps nothing while its client asks its user: the round ends
with :class:`RoundRelayed`, and a later one is made with what came back, by :data:`CONTINUED_ROUND`.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Literal

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, json, structs

from isthmus.core.journal import UNUSABLE_STATE
from isthmus.errors import IsthmusError, Refuse
from isthmus.wire import InputRequest


class AnswerAction(Struct):
    """An answer, as far as it says yes or no."""

    action: Literal["accept", "decline", "cancel"]


_decode_action = json.Decoder(AnswerAction).decode


def read_action(answer: Raw) -> str:
    """The action of a person's answer; ``answer`` for one of another kind, whatever else is in it."""
    try:
        return _decode_action(answer).action
    except DecodeError:
        return "answer"


class QuestionRelayed(IsthmusError):
    """A function that answers has passed the question on, and no answer comes in this round.

    Attributes:
        request: the question, as it was passed on.
    """

    def __init__(self, request: InputRequest) -> None:
        super().__init__(f"the question {request.method} is answered in a later round")
        self.request = request


class RoundRelayed(IsthmusError):
    """A round that ended with questions which were passed on.

    Attributes:
        questions: those, by the keys that the server gave them.
        answers: the answers to the others.
        state: the state that the server wants to have back.
        proof: what proves later that this round was let through; whoever makes the call adds it.
    """

    def __init__(self, questions: Mapping[str, InputRequest], answers: Mapping[str, Raw]) -> None:
        super().__init__("the server's questions are answered in a later round")
        self.questions = questions
        self.answers = answers
        self.state: str | UnsetType = UNSET
        self.proof: Any = None


class ContinuedRound:
    """A round that goes on where an earlier one has ended.

    Args:
        method: of the call.
        answers: those to the questions of the earlier round.
        state: the state that the server gave.
    """

    __slots__ = ("answers", "is_over", "method", "state")

    def __init__(
        self, method: str, answers: Mapping[str, Raw], state: str | UnsetType = UNSET
    ) -> None:
        self.method = method
        self.answers = answers
        self.state = state
        self.is_over = False

    def list_actions(self) -> dict[str, str]:
        """What was answered, by keys and in a word: ``accept``, ``decline``, ``cancel``, or ``answer``."""
        return {key: read_action(answer) for key, answer in self.answers.items()}

    def fill(self, method: str, params: Any, *, modern: bool) -> Any:
        """The parameters of a request, with what came back where it is the call that goes on.

        Raises:
            Refuse: the server has no such rounds any more, and would begin anew.
        """
        if self.is_over or method != self.method:
            return params
        if not modern:
            raise Refuse(-32602, UNUSABLE_STATE)
        # spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow: the state MUST be
        # echoed exactly, and MUST NOT be sent where none was given
        return structs.replace(
            params, input_responses=dict(self.answers) or UNSET, request_state=self.state
        )


# the round that the calls of this context go on with; None for calls that begin
CONTINUED_ROUND: ContextVar[ContinuedRound | None] = ContextVar("isthmus_round", default=None)
