"""Protocol between a host and a surface in another process: one JSON value a line."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from isthmus.host.model.events import HostEvent
from isthmus.host.model.interaction import Decision, Interaction, QuestionTaker
from isthmus.host.model.trace import Assurance, Remember
from isthmus.host.model.view import ServerDo, ServerStatus
from isthmus.host.remote.requests import AskWatch, OperatorRequest

SOCKET_NAME = "host.sock"
PROTOCOL_VERSION = 6

Part: TypeAlias = Literal["surface", "program"]
"""Roles on the control socket. A ``program`` calls, and neither sees nor answers questions: it cannot
approve what it wants. A ``surface`` shows them, answers them, and may call, too."""

MAX_REQUEST_BYTES = 8 * 1024 * 1024  # of a line that a surface sends: an edited message fits in
MAX_ANSWER_BYTES = 64 * 1024 * 1024  # of a line that a host sends: a question is never cut


class AskHello(Struct, frozen=True, kw_only=True, tag="hello", tag_field="do"):
    """Begin: events and states follow.

    Attributes:
        part: what it attaches as.
        name: what a program calls itself.
    """

    id: int
    version: int = PROTOCOL_VERSION
    part: Part = "surface"
    name: str = ""


class AskAttend(Struct, frozen=True, kw_only=True, tag="attend", tag_field="do"):
    """Somebody looks and answers, until they leave or the connection ends."""

    id: int
    name: str
    assurance: Assurance = "local_ui"


class AskLeave(Struct, frozen=True, kw_only=True, tag="leave", tag_field="do"):
    """Nobody looks any more."""

    id: int
    attended: int


class AskDecide(Struct, frozen=True, kw_only=True, tag="decide", tag_field="do"):
    """Answer a question."""

    id: int
    question: str
    decision: Decision


class AskTake(Struct, frozen=True, kw_only=True, tag="take", tag_field="do"):
    """Take a question to answer it, or say that one is still there.

    Attributes:
        taker: who.
        over: also from somebody else.
    """

    id: int
    question: str
    taker: QuestionTaker
    over: bool = False


class AskFree(Struct, frozen=True, kw_only=True, tag="free", tag_field="do"):
    """Give a question back that was taken."""

    id: int
    question: str
    holder: str


class AskServer(Struct, frozen=True, kw_only=True, tag="server", tag_field="do"):
    """Have something done with a server."""

    id: int
    server: str
    what: ServerDo
    by: str = ""


class AskLog(Struct, frozen=True, kw_only=True, tag="log", tag_field="do"):
    """The last lines of a server's log."""

    id: int
    server: str


class AskGrants(Struct, frozen=True, kw_only=True, tag="grants", tag_field="do"):
    """Every yes that lasts."""

    id: int


class AskRevoke(Struct, frozen=True, kw_only=True, tag="revoke", tag_field="do"):
    """End a grant."""

    id: int
    grant: str
    by: str = ""


class AskNarrow(Struct, frozen=True, kw_only=True, tag="narrow", tag_field="do"):
    """Put a narrower grant in the place of one."""

    id: int
    grant: str
    until: float | None = None
    uses: int | None = None
    scope: Remember | None = None
    by: str = ""


class AskAudit(Struct, frozen=True, kw_only=True, tag="audit", tag_field="do"):
    """The last rows of the audit log."""

    id: int
    count: int = 50


class AskExplain(Struct, frozen=True, kw_only=True, tag="explain", tag_field="do"):
    """Explain why a question is asked."""

    id: int
    question: str


class AskTools(Struct, frozen=True, kw_only=True, tag="tools", tag_field="do"):
    """The tools of one server, or of all."""

    id: int
    server: str = ""
    principal: str = ""


class AskCall(Struct, frozen=True, kw_only=True, tag="call", tag_field="do"):
    """Call a tool; who asks goes on while that lasts."""

    id: int
    name: str
    arguments: Mapping[str, Any] = {}
    server: str = ""
    principal: str = ""
    timeout: float | None = None


class AskRead(Struct, frozen=True, kw_only=True, tag="read", tag_field="do"):
    """Read a resource."""

    id: int
    uri: str
    server: str = ""
    principal: str = ""


class AskPrompt(Struct, frozen=True, kw_only=True, tag="prompt", tag_field="do"):
    """Get a prompt."""

    id: int
    name: str
    arguments: Mapping[str, str] = {}
    server: str = ""
    principal: str = ""


class AskStop(Struct, frozen=True, kw_only=True, tag="stop", tag_field="do"):
    """Stop a request that nobody waits for any more; there is no answer to this."""

    id: int
    asked: int


HostRequest: TypeAlias = (
    AskHello
    | AskAttend
    | AskLeave
    | AskDecide
    | AskTake
    | AskFree
    | AskServer
    | AskLog
    | AskGrants
    | AskRevoke
    | AskNarrow
    | AskAudit
    | AskExplain
    | AskTools
    | AskCall
    | AskRead
    | AskPrompt
    | AskStop
    | AskWatch
    | OperatorRequest
)


class ErrorDetail(Struct, frozen=True):
    """The error of a request.

    Attributes:
        error: the name of the error's class.
        text: what it says.
        more: what else it knows, by the names of its attributes.
    """

    error: str
    text: str
    more: Mapping[str, str | int | float | bool | None] = {}


class RequestDone(Struct, frozen=True, kw_only=True, tag="answer", tag_field="is"):
    """The result of a request."""

    id: int
    result: Raw


class RequestFailed(Struct, frozen=True, kw_only=True, tag="failed", tag_field="is"):
    """The failure of a request; without an ``id`` the connection ends."""

    refusal: ErrorDetail
    id: int | None = None


class EventMessage(Struct, frozen=True, kw_only=True, tag="event", tag_field="is"):
    """Something has happened."""

    event: HostEvent


class StateMessage(Struct, frozen=True, kw_only=True, tag="state", tag_field="is"):
    """The state of the host; what is None is as it was."""

    pending: list[Interaction] | None = None
    servers: list[ServerStatus] | None = None
    takers: dict[str, QuestionTaker] | None = None


HostMessage: TypeAlias = RequestDone | RequestFailed | EventMessage | StateMessage


def encode_line(value: Any) -> bytes:
    """One value as a line."""
    return msgspec.json.encode(value) + b"\n"


REQUEST_DECODER = msgspec.json.Decoder(HostRequest)
