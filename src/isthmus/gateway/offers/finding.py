"""Finding in a view: the server, and its own name, of what a client asks for by a name of the view.

What is barred, of another profile or quarantined is refused in the very words for what does not exist.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.gateway.offers.lists import ViewLists
from isthmus.gateway.offers.views import GatewayView, Owned, make_unknown
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.attempt import Action
from isthmus.host.model.errors import ServerUnavailable, Unknown
from isthmus.host.model.row import AuditRow
from isthmus.host.pipeline.results import RESULT_SCHEME
from isthmus.runtime.sorted_ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.host.host import Host

LIST_PATIENCE_S = 10.0  # servers that answer later are told of by a changed list

KEPT_PREFIX = f"{RESULT_SCHEME}://results/"

ACTIONS_BY_METHOD: dict[str, tuple[Action, str]] = {
    "tools/call": ("tool.call", "tool"),
    "prompts/get": ("prompt.get", "prompt"),
    "resources/read": ("resource.read", "resource"),
}


class ItemFinder:
    """Finds what clients of a view ask for.

    Args:
        view: the view.
        lists: those of the view.
        host: knows what servers have.
    """

    def __init__(self, view: GatewayView, lists: ViewLists, host: "Host") -> None:
        self._view = view
        self._lists = lists
        self._host = host

    async def find(self, method: str, name: str, principal: str) -> Owned:
        """The server that is meant, and its own name of what is meant.

        Args:
            method: ``tools/call``, ``prompts/get`` or ``resources/read``.
            name: the tool, prompt or URI.
            principal: who asks.

        Raises:
            Unknown: there is none for them.
            ServerUnavailable: its server was never reached.
        """
        view, viewer = self._view, self._lists.find_viewer(principal)
        find: Callable[[str, Viewer], Owned] = view.find_resource
        if method == "tools/call":
            find = view.find_tool
        elif method == "prompts/get":
            find = view.find_prompt
        try:
            server, own = find(name, viewer)
        except Unknown:
            owner = "" if method == "resources/read" else view.find_owner(name)
            if not owner:
                raise
            await self._learn(owner, viewer)
            try:
                server, own = find(name, viewer)
            except Unknown as error:
                raise self._explain(owner, viewer) or error from None
        if self._lists.hides(method, server, own, viewer):
            action, what = ACTIONS_BY_METHOD[method]
            self._record(action, server, own, principal)
            raise make_unknown(what, name)
        return server, own

    async def _learn(self, server: str, viewer: Viewer) -> None:
        """List a server, in bounded time: it may not be known yet, or have something new."""
        catalog = self._host.catalog
        with suppress(TimeoutError):
            async with asyncio.timeout(LIST_PATIENCE_S):
                await catalog.load([server], viewer)
                await catalog.look_again(server, viewer)

    def _explain(self, server: str, viewer: Viewer) -> ServerUnavailable | None:
        """The error for a name of a server of which nothing is known."""
        cause = self._host.catalog.absent(viewer).get(server)
        if cause is None:
            return None
        hosted = self._host.servers[server]
        shared = hosted.connections.get("")
        if shared is not None and shared.client is None:
            return shared.make_unavailable()
        return ServerUnavailable(
            f"nothing is known of server {server!r}, which is {hosted.state}: {cause}",
            server=server,
            state=hosted.state,
        )

    def _record(self, action: Action, server: str, own: str, principal: str) -> None:
        """Write down that somebody asked for what is not there for them."""
        self._host.parts.calls.pipeline.audit.note(
            AuditRow(
                kind="outcome",
                call=new_id(),
                principal=principal,
                action=action,
                server=server,
                object=own,
                origin="gateway",
                effect="deny",
                failed=True,
                error="Unknown",
                detail={"view": self._view.label},
            )
        )

    def is_kept(self, uri: str, principal: str) -> bool:
        """Whether a URI is that of a result whose rest the host keeps for somebody, and of this view."""
        if not uri.startswith(KEPT_PREFIX):
            return False
        try:
            source = self._host.parts.servers.results.source(uri, principal)
        except Unknown:
            return False
        if source is None:
            return False
        server, own = source[0].server, source[0].object
        view = self._view
        return server in view.servers() and view.offers(server, view.name_tool(server, own))
