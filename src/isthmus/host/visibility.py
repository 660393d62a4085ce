"""Which tools somebody is not even told of: those that they could not call in any case."""

from collections.abc import Collection, Sequence

from msgspec import UNSET, structs

from isthmus.host.attempt import Attempt
from isthmus.host.catalog.merged import Item, Viewer
from isthmus.host.errors import HostError
from isthmus.host.pipeline import Pipeline
from isthmus.host.policy.facts import Facts
from isthmus.host.servers import Servers, labels_of
from isthmus.wire import Tool

__all__ = ["Visibility"]


class Visibility:
    """Tools that policy denies whatever their arguments are, and tools that have changed.

    This is no guard: a call of what is hidden here meets policy as any other. It only keeps a model
    from trying what cannot be.

    Args:
        servers: what is known of servers.
        pipeline: has the policy in force.
    """

    def __init__(self, servers: Servers, pipeline: Pipeline) -> None:
        self._servers = servers
        self._pipeline = pipeline

    def marks(self) -> tuple[object, ...]:
        """What it depends on besides the tools themselves."""
        return self._pipeline.policy, self._servers.fingerprints.releases

    def hidden(self, items: Sequence[Item[Tool]], viewer: Viewer) -> Collection[str]:
        """The names of those that somebody is not told of."""
        circumstances: dict[str, Facts | None] = {}
        found = set()
        for item in items:
            if item.server not in circumstances:
                circumstances[item.server] = self._circumstances(item.server, viewer)
            facts = circumstances[item.server]
            if facts is None or self._hides(item, facts, viewer):
                found.add(item.name)
        return found

    def _circumstances(self, server: str, viewer: Viewer) -> Facts | None:
        try:
            isolation = self._servers.isolation(server, viewer.principal, viewer.run)
            return self._servers.facts(server, isolation)
        except HostError:  # it went meanwhile, or there is no run for it
            return None

    def _hides(self, item: Item[Tool], facts: Facts, viewer: Viewer) -> bool:
        server, tool = item.server, item.what
        if self._servers.fingerprints.hides(server, facts.identity, tool):
            return True
        attempt = Attempt(
            id="",
            action="tool.call",
            principal=viewer.principal,
            server=server,
            object=tool.name,
            run=viewer.run,
            origin="search",
        )
        circumstances = structs.replace(
            facts,
            annotations=None if tool.annotations is UNSET else tool.annotations,
            target=labels_of(self._servers.entry(server), tool.name),
        )
        return self._pipeline.policy.bars(attempt, circumstances)
