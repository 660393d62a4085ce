"""Visibility of tools, and policy explained: what policy says where nothing is done."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from isthmus.host.catalog.names import CatalogItem, Viewer
from isthmus.host.model.attempt import Action, Attempt, Origin
from isthmus.host.model.errors import HostError
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import ConnectAsked, Payload
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import Act
from isthmus.host.pipeline.acts.server_acts import PromptAct, ReadAct, ServerAct
from isthmus.host.pipeline.acts.tool_call import ToolCallAct
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.servers import KnownServers, find_labels
from isthmus.host.policy.policy import Policy
from isthmus.runtime.sorted_ids import new_id
from isthmus.wire import CallToolResult, Tool

if TYPE_CHECKING:
    from isthmus.host.catalog.finder import ToolFinder


class Visibility:
    """Tools that policy denies whatever their arguments are, and tools that have changed.

    This is no guard: a call of what is hidden here meets policy as any other. It only keeps a model
    from trying what cannot be.

    Args:
        servers: what is known of servers.
        pipeline: has the policy in force.
        origin: by which way attempts would come.
        profile: the profile of a gateway that they would be made through; empty for none.
    """

    def __init__(
        self,
        servers: KnownServers,
        pipeline: Pipeline,
        *,
        origin: Origin = "search",
        profile: str = "",
    ) -> None:
        self._servers = servers
        self._pipeline = pipeline
        self._origin = origin
        self._profile = profile

    def marks(self) -> tuple[object, ...]:
        """The objects that visibility depends on besides the tools themselves."""
        layers = self._pipeline.profiles.layers.get(self._profile)
        return self._pipeline.policy, self._servers.fingerprints.releases, layers

    def depends_on_principal(self) -> bool:
        """Whether rules that hide something say of whom."""
        rules = self._pipeline.policy.layers, self._pipeline.profiles.layers.get(self._profile, ())
        return any(
            rule.effect == "deny" and rule.when.principal
            for layers in rules
            for layer in layers
            for rule in layer.rules
        )

    def barred(
        self, action: Action, items: Sequence[CatalogItem[Any]], viewer: Viewer
    ) -> Collection[str]:
        """The names of those resources or prompts that policy denies, whatever their arguments are."""
        circumstances: dict[str, Facts | None] = {}
        found = set()
        for item in items:
            if item.server not in circumstances:
                circumstances[item.server] = self._circumstances(item.server, viewer)
            what, facts = item.what, circumstances[item.server]
            own = getattr(what, "uri", "") or getattr(what, "uri_template", "") or what.name
            if facts is None or self._bars(action, item.server, own, facts, viewer):
                found.add(item.name)
        return found

    def bars(self, action: Action, server: str, own: str, viewer: Viewer) -> bool:
        """Whether policy denies something of a server that is no tool, whatever its arguments are."""
        facts = self._circumstances(server, viewer)
        return facts is None or self._bars(action, server, own, facts, viewer)

    def _bars(self, action: Action, server: str, own: str, facts: Facts, viewer: Viewer) -> bool:
        attempt = self._make_attempt(action, server, own, viewer)
        labelled = structs.replace(facts, target=find_labels(self._servers.entry(server), own))
        return self._pipeline.find_policy(attempt).bars(attempt, labelled)

    def _make_attempt(self, action: Action, server: str, own: str, viewer: Viewer) -> Attempt:
        return Attempt(
            id="",
            action=action,
            principal=viewer.principal,
            server=server,
            object=own,
            run=viewer.run,
            origin=self._origin,
            profile=self._profile,
        )

    def hidden(self, items: Sequence[CatalogItem[Tool]], viewer: Viewer) -> Collection[str]:
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
            servers = self._servers
            if (
                self._origin == "gateway"
            ):  # which finds a connection for each session when something is called
                isolation = servers.catalog.find_isolation(server, viewer)
            else:
                isolation = servers.isolation(server, viewer.principal, viewer.run)
            return servers.facts(server, isolation)
        except HostError:  # it went meanwhile, or there is no run for it
            return None

    def _hides(self, item: CatalogItem[Tool], facts: Facts, viewer: Viewer) -> bool:
        server, tool = item.server, item.what
        if self._servers.fingerprints.hides(server, facts.identity, tool):
            return True
        attempt = self._make_attempt("tool.call", server, tool.name, viewer)
        circumstances = structs.replace(
            facts,
            annotations=None if tool.annotations is UNSET else tool.annotations,
            target=find_labels(self._servers.entry(server), tool.name),
        )
        return self._pipeline.find_policy(attempt).bars(attempt, circumstances)


class ToolSearch:
    """Finds tools for whoever may know of them; the index is made for the first who searches.

    Args:
        servers: what is known of servers.
        pipeline: has the policy in force.
    """

    def __init__(self, servers: KnownServers, pipeline: Pipeline) -> None:
        self._servers = servers
        self._pipeline = pipeline
        self._finder: ToolFinder | None = None

    async def answer(self, asked: Any, viewer: Viewer) -> CallToolResult:
        """The result of one of the tools that find tools.

        Raises:
            BadArguments: there is no such server.
        """
        if self._finder is None:
            from isthmus.host.catalog.finder import ToolFinder

            seen = Visibility(self._servers, self._pipeline)
            self._finder = ToolFinder(self._servers.catalog, hidden=seen.hidden, marks=seen.marks)
        return await self._finder.answer(asked, viewer)

    def close(self) -> None:
        """Let go of the index."""
        if self._finder is not None:
            self._finder.close()


class HostPolicy:
    """The policy of a host.

    Args:
        pipeline: where it stands.
        servers: what is known of servers.
    """

    def __init__(self, pipeline: Pipeline, servers: KnownServers) -> None:
        self._pipeline = pipeline
        self._servers = servers

    @property
    def policy(self) -> Policy:
        """The rules in force."""
        return self._pipeline.policy

    @property
    def version(self) -> str:
        """A digest of the rules in force."""
        return self._pipeline.policy.version

    @property
    def mode(self) -> str:
        """``enforce``; ``shadow`` tries another policy beside it, ``dry-run`` does nothing."""
        return self._pipeline.mode

    def replace(self, policy: Policy) -> None:
        """From now on these rules are in force."""
        self._pipeline.policy = policy

    async def explain(
        self,
        *,
        action: Action = "tool.call",
        server: str,
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        principal: str = "user:local",
        run: str = "",
        origin: Origin = "local",
        profile: str = "",
    ) -> Trace:
        """Explain what policy would say to an attempt; nothing is done, and nothing written.

        Args:
            action: what would be wanted.
            server: of which server.
            tool: the tool, the URI or the prompt, as the server spells it.
            args: with which arguments.
            principal: by whom.
            run: in which run.
            origin: by which way it would come.
            profile: through which profile of a gateway; empty for none.

        Raises:
            Unknown, BadArguments: it could not be done at all.
        """
        attempt = Attempt(
            id=new_id(),
            action=action,
            principal=principal,
            server=server,
            object=tool,
            arguments=dict(args or {}),
            run=run,
            origin=origin,
            profile=profile,
        )
        make: Callable[[KnownServers], Act[Any]] = ACTS_BY_ACTION.get(action, OtherAct)
        return await self._pipeline.explain(attempt, make(self._servers))


class OtherAct(ServerAct[None]):
    """Any other act, as far as policy needs to know it."""

    async def resolve(self, attempt: Attempt) -> Attempt:
        """See that there is such a server."""
        self.servers.entry(attempt.server)
        return attempt

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """Never shown."""
        return ConnectAsked(where=attempt.server)

    async def dispatch(self, attempt: Attempt) -> None:
        """Never done."""
        del attempt


ACTS_BY_ACTION: Mapping[str, Callable[[KnownServers], Act[Any]]] = {
    "tool.call": ToolCallAct,
    "resource.read": ReadAct,
    "prompt.get": PromptAct,
}
