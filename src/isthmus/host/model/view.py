"""View of a host: what a surface sees of it, in the same process or in another one.

All values can be encoded with msgspec, so that a surface works the same on both.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from isthmus.host.model.events import HostEvent
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.wire import Tool

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult
    from isthmus.wire import GetPromptResult, ReadResourceResult

__all__ = [
    "AuditLine",
    "GrantLine",
    "HostEvent",
    "HostView",
    "ServerDo",
    "ServerStatus",
    "ToolLine",
    "WatchingApprover",
]

ServerDo: TypeAlias = Literal["start", "stop", "restart", "enable", "disable"]
"""What a person can have done with a server."""


class ServerStatus(Struct, frozen=True, kw_only=True):
    """How a server is.

    Attributes:
        name: in the configuration.
        state: as the supervisor calls it: ``idle``, ``ready``, ``backoff`` …
        error: why it is not ready; empty where it is.
        where: its command line or its URL, without secrets.
        revision: the revision spoken; empty where it is not connected.
        said: the name and version it gives itself.
        tools, resources, prompts: how many it has; None where it was not asked yet.
        in_flight: calls under way.
        restarts: how often it was started again by itself.
        since: when it came into this state, in seconds since the epoch.
        retry_at: when the next attempt is made, in seconds since the epoch; None for none.
        pid: its process; None where it is none of ours.
        connections: how many there are, where principals do not share one.
        trust: whether what it says about its tools counts.
        source: the file that it stands in.
        strikes: how often it broke the rules.
    """

    name: str
    state: str
    error: str = ""
    where: str = ""
    revision: str = ""
    said: str = ""
    tools: int | None = None
    resources: int | None = None
    prompts: int | None = None
    in_flight: int = 0
    restarts: int = 0
    since: float = 0.0
    retry_at: float | None = None
    pid: int | None = None
    connections: int = 0
    trust: str = "untrusted"
    source: str = ""
    strikes: int = 0


class AuditLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the audit log, as it is kept: what was secret in it is not there any more.

    Attributes:
        seq: its number.
        at: when, in seconds since the epoch.
        node: which process wrote it.
        hash: its hash, in hex, and ``prev`` that of the row before it.
        arguments: what is left of the arguments after redaction, as plain data.
        arguments_hash, result_hash: digests under the state's key, in hex.
        result_bytes: how long the result was, as JSON.

    The others are those of :class:`~isthmus.host.model.row.AuditRow`.
    """

    seq: int
    at: float
    node: str = ""
    kind: str
    call: str = ""
    parent: str = ""
    run: str = ""
    principal: str = ""
    action: str = ""
    server: str = ""
    identity: str = ""
    object: str = ""
    fingerprint: str = ""
    era: str = ""
    transport: str = ""
    origin: str = ""
    effect: str = ""
    rule: str = ""
    grant: str = ""
    approver: str = ""
    assurance: str = ""
    wait: float | None = None
    arguments_hash: str = ""
    arguments: Any = None
    result_hash: str = ""
    result_bytes: int | None = None
    failed: bool | None = None
    code: int | None = None
    error: str = ""
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    model: str = ""
    labels: tuple[str, ...] = ()
    policy: str = ""
    detail: Any = None
    prev: str = ""
    hash: str = ""


class GrantLine(Struct, frozen=True, kw_only=True):
    """One yes that lasts, as a person is shown it.

    Attributes:
        id: its name.
        scope: what it holds for.
        principal, action, server, object: for whom, and for what.
        text: what it means, in a sentence.
        created: when it was given, in seconds since the epoch.
        until: when it ends; None for no end of its own.
        uses: how often it may still be used; None for any number.
        by: who gave it, and ``assurance`` how sure one can be.
        ended: why it counts no longer; empty while it does.
    """

    id: str
    scope: str
    principal: str = ""
    action: str = ""
    server: str = ""
    object: str = ""
    text: str = ""
    created: float = 0.0
    until: float | None = None
    uses: int | None = None
    by: str = ""
    assurance: str = ""
    ended: str = ""


class ToolLine(Struct, frozen=True, kw_only=True):
    """A tool that may be called.

    Attributes:
        name: what it is called here: ``server__tool``.
        server: whose it is.
        tool: its definition, as the server gave it.
    """

    name: str
    server: str
    tool: Tool


class HostView(Protocol):
    """A host, as surfaces see it."""

    def pending(self) -> Sequence[Interaction]:
        """The questions that wait, those that matter most first."""
        ...

    async def decide(self, id: str, decision: Decision) -> bool:
        """Answer a question; False where somebody else was first, or nobody asks it any more."""
        ...

    def attend(
        self, name: str, assurance: Assurance = "local_ui"
    ) -> AbstractAsyncContextManager[None]:
        """Somebody looks here and answers, as long as this lasts.

        Where nobody attends, what has to be asked is denied.

        Args:
            name: what the surface is called in the audit log.
            assurance: how sure one can be that a person decides there.
        """
        ...

    def events(self) -> AsyncIterator[HostEvent]:
        """What happens from now on; it ends when the host does."""
        ...

    def servers(self) -> Sequence[ServerStatus]:
        """How every server is, in the configuration's order."""
        ...

    async def server_do(self, name: str, what: ServerDo) -> None:
        """Have something done with a server.

        Raises:
            Unknown: there is none of this name.
            ServerUnavailable: it did not start.
        """
        ...

    async def log_tail(self, server: str) -> Sequence[str]:
        """The last lines that a server's process wrote for people."""
        ...

    async def grants(self) -> Sequence[GrantLine]:
        """Every yes that lasts, the newest first."""
        ...

    async def revoke(self, id: str) -> bool:
        """End a grant; False where there is none."""
        ...

    async def audit_tail(self, count: int = 50) -> Sequence[AuditLine]:
        """The last rows of the audit log, the oldest first."""
        ...

    async def explain(self, id: str) -> Sequence[str]:
        """Why a question is asked, a line each; none where it is not asked any more."""
        ...

    def begin_run(self, principal: str = "") -> str:
        """A run for what belongs together: its id, for :meth:`call`; labels of results collect there."""
        ...

    async def tools(self, server: str = "", *, principal: str = "") -> Sequence[ToolLine]:
        """The tools of one server, or of all; servers that were not asked yet are asked now."""
        ...

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str = "",
        principal: str = "",
        run: str | None = None,
        timeout: float | None = None,
    ) -> "ToolResult":
        """Call a tool; as :meth:`isthmus.host.Host.call`, with all that it raises."""
        ...

    async def read(
        self, uri: str, *, server: str = "", principal: str = "", run: str | None = None
    ) -> "ReadResourceResult":
        """Read a resource; as :meth:`isthmus.host.Host.read`."""
        ...

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        server: str = "",
        principal: str = "",
        run: str | None = None,
    ) -> "GetPromptResult":
        """Get a prompt; as :meth:`isthmus.host.Host.prompt`."""
        ...


class WatchingApprover:
    """An approver for a surface that answers by :meth:`HostView.decide`: it shows, and waits.

    Args:
        name: what it is called in the audit log.
        assurance: how sure one can be that a person decides there.
    """

    def __init__(self, name: str, assurance: Assurance = "local_ui") -> None:
        self.name = name
        self.assurance: Assurance = assurance

    async def offer(self, interaction: Interaction) -> Decision:  # noqa: ARG002 - Approver's shape
        """Wait until somebody answers by another way; only being cancelled ends it."""
        never: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        return await never
