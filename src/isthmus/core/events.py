"""Events of a session: each is one thing the other side did, or one thing to do.

``RequestReceived`` is the only event that asks for work; ``SendBytes`` the only one that asks for I/O.
"""

from typing import TypeAlias

import msgspec
from msgspec import Raw

from isthmus.wire import ProgressParams
from isthmus.wire.jsonrpc import ErrorBody
from isthmus.wire.meta import Envelope
from isthmus.wire.struct import Id


class RequestReceived(msgspec.Struct, frozen=True):
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


class NotificationReceived(msgspec.Struct, frozen=True):
    """The other side tells us something that wants no answer."""

    method: str
    params: Raw | None


class CallAnswered(msgspec.Struct, frozen=True):
    """Our call ``id`` went well; no later event mentions this id."""

    id: Id
    result: Raw


class CallFailed(msgspec.Struct, frozen=True):
    """Our call ``id`` was refused; no later event mentions this id."""

    id: Id
    error: ErrorBody


class CallGarbled(msgspec.Struct, frozen=True):
    """The answer to our call ``id`` came and cannot be read; no later event mentions this id.

    Attributes:
        id: the call's id.
        text: what is wrong with it.
    """

    id: Id
    text: str


class CallProgressed(msgspec.Struct, frozen=True):
    """Our call ``id`` is under way; its deadline has moved."""

    id: Id
    params: ProgressParams


class RequestWithdrawn(msgspec.Struct, frozen=True):
    """The other side no longer wants the answer to its call ``id``: stop work, send nothing."""

    id: Id
    reason: str | None


class CallExpired(msgspec.Struct, frozen=True):
    """Our call ``id`` got no answer in time; no later event but :class:`LateAnswer` mentions it.

    Attributes:
        id: the call's id.
        waited: seconds since it was sent.
        data: the notification that withdraws it, or None where none may be sent.
    """

    id: Id
    waited: float
    data: bytes | None


class LateAnswer(msgspec.Struct, frozen=True):
    """The result of one of our calls, which had ended before: cancelled, expired, or answered.

    Attributes:
        id: the call's id.
        result: the result as it came.
    """

    id: Id
    result: Raw


class MessageDropped(msgspec.Struct, frozen=True):
    """A message that nothing comes of: it may not be sent, or cannot be understood, or answered.

    Attributes:
        kind: one word for messages of this sort.
        what: the message in words, with nothing in it that a terminal obeys.
    """

    kind: str
    what: str


class SendBytes(msgspec.Struct, frozen=True):
    """Bytes to put on the wire, and the id they answer if there is one."""

    data: bytes
    answers: Id | None = None


SessionEvent: TypeAlias = (
    RequestReceived
    | NotificationReceived
    | CallAnswered
    | CallFailed
    | CallGarbled
    | CallProgressed
    | RequestWithdrawn
    | CallExpired
    | LateAnswer
    | MessageDropped
    | SendBytes
)
