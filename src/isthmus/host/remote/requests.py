"""Requests about traffic, audit, policy, access and servers: what a console asks of a host.

Each that changes something says ``by`` whom, for the audit log.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from isthmus.host.model.view import AttemptDraft, AuditQuery, TrafficQuery


class AskWatch(Struct, frozen=True, kw_only=True, tag="watch", tag_field="do"):
    """Record traffic, until they leave or the connection ends."""

    id: int


class AskToolStates(Struct, frozen=True, kw_only=True, tag="tool-states", tag_field="do"):
    """The tools of a server, and whether each is what it was."""

    id: int
    server: str


class AskRelease(Struct, frozen=True, kw_only=True, tag="release", tag_field="do"):
    """Take a tool out of quarantine."""

    id: int
    server: str
    tool: str
    fingerprint: str = ""
    by: str = ""


class AskAddServer(Struct, frozen=True, kw_only=True, tag="add-server", tag_field="do"):
    """Write a server into the configuration."""

    id: int
    name: str
    entry: Mapping[str, Any]
    by: str = ""


class AskRemoveServer(Struct, frozen=True, kw_only=True, tag="remove-server", tag_field="do"):
    """Take a server out of the configuration."""

    id: int
    name: str
    by: str = ""


class AskAddress(Struct, frozen=True, kw_only=True, tag="address", tag_field="do"):
    """The address of a server."""

    id: int
    server: str


class AskAuditRows(Struct, frozen=True, kw_only=True, tag="audit-rows", tag_field="do"):
    """Rows of the audit log."""

    id: int
    query: AuditQuery = AuditQuery()


class AskAuditRow(Struct, frozen=True, kw_only=True, tag="audit-row", tag_field="do"):
    """One row of the audit log."""

    id: int
    seq: int


class AskCallRows(Struct, frozen=True, kw_only=True, tag="call-rows", tag_field="do"):
    """The rows of one call."""

    id: int
    call: str


class AskVerify(Struct, frozen=True, kw_only=True, tag="verify", tag_field="do"):
    """Verify the audit log."""

    id: int


class AskTraffic(Struct, frozen=True, kw_only=True, tag="traffic", tag_field="do"):
    """Recorded calls."""

    id: int
    query: TrafficQuery = TrafficQuery()


class AskCallRecord(Struct, frozen=True, kw_only=True, tag="call-record", tag_field="do"):
    """One recorded call."""

    id: int
    call: str


class AskMessages(Struct, frozen=True, kw_only=True, tag="messages", tag_field="do"):
    """The messages of one recorded call."""

    id: int
    call: str


class AskFigures(Struct, frozen=True, kw_only=True, tag="figures", tag_field="do"):
    """Figures of the last minutes."""

    id: int
    minutes: int = 60


class AskLayers(Struct, frozen=True, kw_only=True, tag="layers", tag_field="do"):
    """The layers of the policy."""

    id: int


class AskTry(Struct, frozen=True, kw_only=True, tag="try", tag_field="do"):
    """Say what policy would answer; nothing is done."""

    id: int
    draft: AttemptDraft


class AskReplay(Struct, frozen=True, kw_only=True, tag="replay", tag_field="do"):
    """Decide past attempts anew."""

    id: int
    policy: str
    since: float | None = None


class AskPromote(Struct, frozen=True, kw_only=True, tag="promote", tag_field="do"):
    """Put the shadow policy in force.

    Attributes:
        keep: write it into the configuration, too.
    """

    id: int
    by: str = ""
    keep: bool = False


class AskAccounts(Struct, frozen=True, kw_only=True, tag="accounts", tag_field="do"):
    """Accounts at servers."""

    id: int
    principal: str = ""


class AskConnect(Struct, frozen=True, kw_only=True, tag="connect", tag_field="do"):
    """The page on which an account is connected."""

    id: int
    server: str
    principal: str = ""
    by: str = ""


class AskForget(Struct, frozen=True, kw_only=True, tag="forget", tag_field="do"):
    """Forget an account."""

    id: int
    server: str
    principal: str = ""
    by: str = ""


class AskPrincipals(Struct, frozen=True, kw_only=True, tag="principals", tag_field="do"):
    """Who has called."""

    id: int


class AskProfiles(Struct, frozen=True, kw_only=True, tag="profiles", tag_field="do"):
    """The profiles of a gateway."""

    id: int


class AskRuns(Struct, frozen=True, kw_only=True, tag="runs", tag_field="do"):
    """The runs that go on."""

    id: int


class AskStopCall(Struct, frozen=True, kw_only=True, tag="stop-call", tag_field="do"):
    """Cancel a call that is under way."""

    id: int
    call: str
    by: str = ""


class AskStopRun(Struct, frozen=True, kw_only=True, tag="stop-run", tag_field="do"):
    """End a run, and cancel what is under way in it."""

    id: int
    run: str
    by: str = ""


OperatorRequest: TypeAlias = (
    AskToolStates
    | AskRelease
    | AskAddServer
    | AskRemoveServer
    | AskAddress
    | AskAuditRows
    | AskAuditRow
    | AskCallRows
    | AskVerify
    | AskTraffic
    | AskCallRecord
    | AskMessages
    | AskFigures
    | AskLayers
    | AskTry
    | AskReplay
    | AskPromote
    | AskAccounts
    | AskConnect
    | AskForget
    | AskPrincipals
    | AskProfiles
    | AskRuns
    | AskStopCall
    | AskStopRun
)
