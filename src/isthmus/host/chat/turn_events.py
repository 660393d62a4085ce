"""Events of a conversation's turn, for whoever shows them; public as :mod:`isthmus.host.turns`."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.model.interaction import Interaction
from isthmus.wire import SamplingMessage, ToolResultContent

Why: TypeAlias = Literal["done", "length", "rounds", "budget", "cancelled", "failed"]
"""Ways a turn ends: the model is done, or has written as much as it may; tools were used in too many
rounds; the budget is used up; the user stopped it; there is no answer to be had."""


class Text(Struct, frozen=True, tag="text"):
    """A piece of what the model writes.

    Attributes:
        text: the piece.
    """

    text: str


class Inserted(Struct, frozen=True, kw_only=True, tag="inserted"):
    """Messages of a server's prompt are part of the conversation now.

    Attributes:
        name: of the prompt, in the catalog.
        messages: the messages.
    """

    name: str
    messages: tuple[SamplingMessage, ...]


class ToolAsked(Struct, frozen=True, kw_only=True, tag="tool_asked"):
    """The model wants a tool called; nothing of it has been done yet.

    Attributes:
        id: names the call in the events that follow.
        name: the tool, as the model was told of it.
        server: whose it is, and ``tool`` its name there; empty where there is no such tool.
        tool: the name of the tool at its server; empty where there is no such tool.
        arguments: all of them.
    """

    id: str
    name: str
    server: str
    tool: str
    arguments: dict[str, Any]


class ToolRunning(Struct, frozen=True, kw_only=True, tag="tool_running"):
    """The progress that a server reports; ``total`` is None where it does not know it.

    Attributes:
        id: of the call.
        progress: how far it has come.
        total: how far it will come; None where the server does not know.
        message: the same in words.
    """

    id: str
    progress: float
    total: float | None = None
    message: str = ""


class ToolDone(Struct, frozen=True, kw_only=True, tag="tool_done"):
    """A call is over, and the model reads what came of it.

    Attributes:
        id: as in :class:`ToolAsked`.
        name: see there.
        result: what the model reads.
        failed: whether it went wrong, in whichever way.
        error: the class of the error where the tool gave no result; ``Denied``, for example.
    """

    id: str
    name: str
    result: ToolResultContent
    failed: bool = False
    error: str = ""


class Question(Struct, frozen=True, tag="question"):
    """A person is asked something in the course of this; the host's surfaces show it.

    Attributes:
        interaction: the question.
    """

    interaction: Interaction


class Noted(Struct, frozen=True, tag="noted"):
    """Something that the user should know: tools that were left out, for example.

    Attributes:
        text: the note.
    """

    text: str


class Ended(Struct, frozen=True, kw_only=True, tag="ended"):
    """The turn is over.

    Attributes:
        why: how it ended.
        text: all that the model wrote in it.
        reason: what went wrong, in a sentence; empty where nothing did.
        tokens_in: tokens that the model read in this turn; estimated where nobody says.
        tokens_out: tokens that it wrote.
    """

    why: Why
    text: str = ""
    reason: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


ConversationEvent: TypeAlias = (
    Text | Inserted | ToolAsked | ToolRunning | ToolDone | Question | Noted | Ended
)
"""An event of a turn of a conversation."""
