"""Servers of a host in this process, as its surfaces ask for them: tools, addresses, the configuration."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from isthmus.core.redaction.lines import redact_command
from isthmus.core.redaction.texts import redact_text
from isthmus.core.redaction.values import Redactor
from isthmus.errors import IsthmusError
from isthmus.host.approvals.fingerprints import ToolChange, compute_fingerprint
from isthmus.host.catalog.names import make_name
from isthmus.host.model.errors import Denied, Unknown
from isthmus.host.model.interaction import ChangeAsked, Decision, find_lack
from isthmus.host.model.row import AuditRow
from isthmus.host.model.view import ServerAddress, ServerStatus, ToolState
from isthmus.host.remote.requests import (
    AskAddress,
    AskAddServer,
    AskRelease,
    AskRemoveServer,
    AskToolStates,
)
from isthmus.transports.http.client.address import redact_url

if TYPE_CHECKING:
    from isthmus.host.remote.viewed_host import ViewedHost
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.wire import Tool

PROGRAM_SOURCE = "program"  # of servers that stand in no file
LISTING_TIMEOUT_S = 5.0  # of a server that has just started


class ServerRequests:
    """Answers requests about servers.

    Args:
        host: whose servers they are.
    """

    def __init__(self, host: "ViewedHost") -> None:
        self._host = host
        self.answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskToolStates: self._list_tools,
            AskRelease: self._release,
            AskAddress: self._find_address,
            AskAddServer: self._add,
            AskRemoveServer: self._remove,
        }

    def find(self, name: str) -> "HostedServer":
        """The server of this name.

        Raises:
            Unknown: there is none.
        """
        server = self._host.servers.get(name)
        if server is None:
            known = ", ".join(self._host.servers) or "none"
            raise Unknown(f"there is no server {name!r}; there are: {known}")
        return server

    # Tools

    async def _wait_for_lists(self, server: "HostedServer") -> None:
        """Wait for the lists of connections that are open: what is kept of an earlier run is out of date then."""
        name, catalog = server.entry.name, self._host.catalog
        for isolation in ("", *server.connections):
            client = self._host.calls.servers.client(name, isolation)
            if client is None:
                continue
            with suppress(IsthmusError, TimeoutError):  # then what is known is shown
                async with asyncio.timeout(LISTING_TIMEOUT_S):
                    await catalog.on_ready(name, client, isolation)

    def _find_tools(self, server: "HostedServer") -> tuple[Sequence["Tool"], str]:
        """The tools that a server has said it has, and the isolation key of who was told."""
        for isolation in ("", *server.connections):
            listed = self._host.catalog.listed(server.entry.name, isolation)
            if listed is not None:
                return listed.tools, isolation
        return (), ""

    def _compare(
        self, server: "HostedServer", tool: "Tool", isolation: str
    ) -> "str | ToolChange | None":
        known = self._host.calls.servers
        identity = known.identity_of(server.entry, isolation)
        return known.fingerprints.check(server.entry.name, identity, tool)

    async def _list_tools(self, request: AskToolStates) -> Sequence[ToolState]:
        server = self.find(request.server)
        await self._wait_for_lists(server)
        tools, isolation = self._find_tools(server)
        asked = {
            (one.attempt.server, one.attempt.object)
            for one in self._host.broker.pending()
            if isinstance(one.payload, ChangeAsked)
        }
        trusted = server.entry.options.trust != "untrusted"
        found = []
        for tool in tools:
            name = make_name(server.entry.name, tool.name)
            compared = self._compare(server, tool, isolation)
            if isinstance(compared, ToolChange):
                is_asked = (server.entry.name, tool.name) in asked
                found.append(
                    ToolState(
                        name=name,
                        tool=tool,
                        state="changed" if is_asked else "quarantined",
                        fingerprint=compared.fingerprint,
                        trusted=trusted,
                        diff=compared.diff(),
                    )
                )
            else:
                found.append(
                    ToolState(
                        name=name,
                        tool=tool,
                        state="new" if compared is None else "known",
                        fingerprint=compared or compute_fingerprint(tool),
                        trusted=trusted,
                    )
                )
        return found

    async def _release(self, request: AskRelease) -> bool:
        server = self.find(request.server)
        await self._wait_for_lists(server)
        tools, isolation = self._find_tools(server)
        tool = next((one for one in tools if one.name == request.tool), None)
        if tool is None:
            raise Unknown(f"server {request.server!r} has no tool {request.tool!r}")
        change = self._compare(server, tool, isolation)
        if not isinstance(change, ToolChange):
            return False
        if request.fingerprint not in {"", change.fingerprint}:
            return False
        said = Decision(verdict="allow", by=request.by, assurance="local_ui")
        await self._require_release(change, said)
        row = AuditRow(
            kind="decision", action="tool.change", server=change.server, identity=change.identity,
            object=change.tool, fingerprint=change.fingerprint, effect="allow",
            approver=request.by, assurance="local_ui", detail={"before": change.known},
        )  # fmt: skip
        await self._host.audit.write(row)
        await self._host.calls.servers.fingerprints.release(change)
        await self._answer_changes(change, said)
        return True

    async def _require_release(self, change: ToolChange, said: Decision) -> None:
        """Require that policy lets one person at a page release a changed tool.

        Raises:
            Denied: it denies every release, or wants more assurance than the page gives.
        """
        trace = await self._host.policy.explain(
            action="tool.change", server=change.server, tool=change.tool
        )
        # by the rule alone: whoever releases it is there, whether or not anybody can be asked
        denies = bool(trace.matches) and trace.matches[0].effect == "deny"
        why = trace.reason if denies else find_lack(said, trace.obligations.assurance, "user:local")
        if why:
            raise Denied(
                f"tool {change.tool!r} of server {change.server!r} was not released: {why}",
                rule=trace.rule,
            )

    async def _answer_changes(self, change: ToolChange, said: Decision) -> None:
        """Answer whoever is asked about the same change just now."""
        broker = self._host.broker
        for one in broker.pending():
            if not isinstance(one.payload, ChangeAsked):
                continue
            if (one.attempt.server, one.attempt.object) != (change.server, change.tool):
                continue
            if bytes(one.payload.after) == change.after:
                await broker.decide(one.id, said)

    # Addresses

    async def _find_address(self, request: AskAddress) -> ServerAddress:
        server = self.find(request.server)
        entry = server.entry
        argv = Redactor().redact(redact_command(entry.command)) if entry.command else ()
        return ServerAddress(
            url=redact_text(redact_url(entry.url), chance=False) if entry.url else "",
            argv=tuple(argv),
            transport=entry.kind if entry.command or entry.url else "memory",
            era=server.status().revision,
        )

    # The configuration

    async def _add(self, request: AskAddServer) -> ServerStatus:
        from isthmus.host.config.write import add_server  # few surfaces change servers

        path = self._host.find_config_file()
        await self._write_row("config.add", request.name, request.by, path)
        add_server(path, request.name, dict(request.entry))
        await self._host.reread()
        server = self._host.servers.get(request.name)
        if server is not None:
            return server.status()
        why = self._host.config.broken.get(request.name, "another file has a server of this name")
        return ServerStatus(name=request.name, state="broken", error=why, source=path)

    async def _remove(self, request: AskRemoveServer) -> None:
        from isthmus.host.config.write import remove_server

        name, entry = request.name, self._host.config.servers.get(request.name)
        if entry is None and name not in self._host.config.broken:
            self.find(name)
        path = self._host.find_config_file() if entry is None else entry.source
        if path in {"", PROGRAM_SOURCE}:
            raise Unknown(f"server {name!r} stands in no file: the program that added it has it")
        await self._write_row("config.remove", name, request.by, path)
        if not remove_server(path, name):
            raise Unknown(f"{path} has no server {name!r}")
        await self._host.reread()

    async def _write_row(self, action: str, name: str, by: str, path: str) -> None:
        row = AuditRow(
            kind="config", action=action, server=name, object=name, approver=by,
            detail={"file": path},
        )  # fmt: skip
        await self._host.audit.write(row)
