"""What policy says, for who wants to know without doing anything."""

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.host.act import Act
from isthmus.host.acts import Prompting, Reading, ToolCall
from isthmus.host.attempt import Action, Attempt, new_id
from isthmus.host.interaction import Connecting, Payload
from isthmus.host.pipeline import Pipeline
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.trace import Trace
from isthmus.host.server_act import OfServer
from isthmus.host.servers import Servers

__all__ = ["Ruling"]


class Ruling:
    """The policy of a host.

    Args:
        pipeline: where it stands.
        servers: what is known of servers.
    """

    def __init__(self, pipeline: Pipeline, servers: Servers) -> None:
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
    ) -> Trace:
        """What would be said to something, and why; nothing is done, and nothing written.

        Args:
            action: what would be wanted.
            server: of which server.
            tool: the tool, the URI or the prompt, as the server spells it.
            args: with which arguments.
            principal: by whom.
            run: in which run.

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
        )
        make: Callable[[Servers], Act[Any]] = ACTS.get(action, Anything)
        return await self._pipeline.explain(attempt, make(self._servers))


class Anything(OfServer[None]):
    """What is none of the others, as far as policy needs to know it."""

    async def resolve(self, attempt: Attempt) -> Attempt:
        """See that there is such a server."""
        self.servers.entry(attempt.server)
        return attempt

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """Never shown."""
        return Connecting(where=attempt.server)

    async def dispatch(self, attempt: Attempt) -> None:
        """Never done."""
        del attempt


ACTS: Mapping[str, Callable[[Servers], Act[Any]]] = {
    "tool.call": ToolCall,
    "resource.read": Reading,
    "prompt.get": Prompting,
}
