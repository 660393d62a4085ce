"""What a session reports: each event is one thing the other side did, or one thing to do.

``Called`` is the only event that asks for work; ``Send`` the only one that asks for I/O.
"""

from typing import TypeAlias

import msgspec
from msgspec import Raw

from isthmus.wire import ProgressParams
from isthmus.wire.base import Id
from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.meta import Envelope

__all__ = [
    "Answered",
    "Called",
    "Dropped",
    "Event",
    "Expired",
    "Failed",
    "Garbled",
    "Noted",
    "Progressed",
    "Send",
    "Withdrawn",
]


class Called(msgspec.Struct, frozen=True):
    """The other side asks for something; answer or fail it under this id, once.

    Attributes:
        id: the request's id.
        method: what is asked for.
        params: the raw parameters, or None.
        envelope: the parts of the parameters that concern every method.
        enveloped: True where the request states its own revision and capabilities.
    """

    id: Id
    method: str
    params: Raw | None
    envelope: Envelope
    enveloped: bool


class Noted(msgspec.Struct, frozen=True):
    """The other side tells us something that wants no answer."""

    method: str
    params: Raw | None


class Answered(msgspec.Struct, frozen=True):
    """Our call ``id`` went well; no later event mentions this id."""

    id: Id
    result: Raw


class Failed(msgspec.Struct, frozen=True):
    """Our call ``id`` was refused; no later event mentions this id."""

    id: Id
    error: ErrorBody


class Garbled(msgspec.Struct, frozen=True):
    """The answer to our call ``id`` came and cannot be read; no later event mentions this id.

    Attributes:
        id: the call's id.
        text: what is wrong with it.
    """

    id: Id
    text: str


class Progressed(msgspec.Struct, frozen=True):
    """Our call ``id`` is under way; its deadline has moved."""

    id: Id
    params: ProgressParams


class Withdrawn(msgspec.Struct, frozen=True):
    """The other side no longer wants the answer to its call ``id``: stop work, send nothing."""

    id: Id
    reason: str | None


class Expired(msgspec.Struct, frozen=True):
    """Our call ``id`` got no answer in time; no later event mentions this id.

    Attributes:
        id: the call's id.
        waited: seconds since it was sent.
        data: the notification that withdraws it, or None where none may be sent.
    """

    id: Id
    waited: float
    data: bytes | None


class Dropped(msgspec.Struct, frozen=True):
    """A message that nothing comes of: it may not be sent, or cannot be understood, or answered.

    Attributes:
        kind: one word for messages of this sort.
        what: the message in words, with nothing in it that a terminal obeys.
    """

    kind: str
    what: str


class Send(msgspec.Struct, frozen=True):
    """Bytes to put on the wire, and the id they answer if there is one."""

    data: bytes
    answers: Id | None = None


Event: TypeAlias = (
    Called | Noted | Answered | Failed | Garbled | Progressed | Withdrawn | Expired | Dropped | Send
)
