"""View of a host: what a surface sees of it, in the same process or in another one.

All values can be encoded with msgspec, so that a surface works the same on both.
"""

import asyncio
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.host.model.events import HostEvent
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.wire import Tool

__all__ = [
    "AuditLine",
    "GrantLine",
    "HostEvent",
    "ServerDo",
    "ServerStatus",
    "ToolLine",
    "WatchingApprover",
]

ServerDo: TypeAlias = Literal["start", "stop", "restart", "enable", "disable"]
"""What a person can have done with a server."""


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The status of a server.

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


class WatchingApprover:
    """An approver for a surface that answers by :meth:`isthmus.host.remote.view.HostView.decide`: it shows, and waits.

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
