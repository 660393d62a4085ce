"""Rows of the audit log about servers themselves: starts, ends, restarts, switching on and off."""

from typing import TYPE_CHECKING

from isthmus.host.audit.row import Row
from isthmus.host.supervisor.identity import identity
from isthmus.host.supervisor.states import LIVE, State

if TYPE_CHECKING:
    from isthmus.host.supervisor.line import Line

__all__ = ["make_server_row"]

FAILED: frozenset[State] = frozenset({"backoff", "failed", "needs_auth", "quarantined"})


def make_server_row(line: "Line", before: State) -> Row | None:
    """The row for a connection that came into another state; None where that is no news.

    Args:
        line: the connection, in its new state.
        before: the state that it was in.
    """
    action = _name_move(line, before)
    if not action:
        return None
    entry, client, failed = line.entry, line.client, line.state in FAILED
    detail = {
        "state": line.state,
        "before": before,
        "starts": line.starts,
        "pid": line.pid,
        "isolation": line.isolation,
    }
    return Row(
        kind="server",
        action=action,
        server=entry.name,
        object=entry.name,
        identity=identity(entry),
        era="" if client is None else client.revision.name,
        transport=entry.kind if entry.command or entry.url else "memory",
        failed=failed,
        error=line.error if failed else "",
        detail={name: value for name, value in detail.items() if value not in (None, "")},
    )


def _name_move(line: "Line", before: State) -> str:
    """What became of a server, as an action; empty where nothing did."""
    state = line.state
    if state == "ready" and before == "connecting":
        return "server.start" if line.starts <= 1 else "server.restart"
    if state in FAILED:
        return "server.lost" if before in LIVE else "server.fail"
    if state == "idle" and before == "draining":
        return "server.stop"
    if state == "disabled":
        return "server.disable"
    return "server.enable" if before == "disabled" else ""
