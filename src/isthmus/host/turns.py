"""Events of a conversation: the public names of :mod:`isthmus.host.chat.turn_events`."""

from isthmus.host.chat.turn_events import (
    ConversationEvent,
    Ended,
    Inserted,
    Noted,
    Question,
    Text,
    ToolAsked,
    ToolDone,
    ToolRunning,
    Why,
)

__all__ = [
    "ConversationEvent",
    "Ended",
    "Inserted",
    "Noted",
    "Question",
    "Text",
    "ToolAsked",
    "ToolDone",
    "ToolRunning",
    "Why",
]
