"""The release of a tool that has changed since it was approved."""

from msgspec import Raw

from isthmus.host.attempt import Attempt
from isthmus.host.errors import Denied
from isthmus.host.fingerprints import Change
from isthmus.host.interaction import Changed, Decision, Payload
from isthmus.host.policy.trace import Trace
from isthmus.host.server_act import OfServer
from isthmus.host.servers import Servers

__all__ = ["Releasing"]


class Releasing(OfServer[None]):
    """From now on a tool that has changed may be used as it is.

    Args:
        servers: what is known of servers.
        change: what has changed.
    """

    def __init__(self, servers: Servers, change: Change) -> None:
        super().__init__(servers)
        self._change = change

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """A person looks at it, whatever the rules let through."""
        return True

    def coalesce(self, attempt: Attempt) -> str:  # noqa: ARG002 - as Act has it
        """Every call of the tool waits for the same answer."""
        change = self._change
        return repr((change.server, change.identity, change.tool, change.fingerprint))

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """Both definitions, and in which lines they differ."""
        change = self._change
        return Changed(before=Raw(change.before), after=Raw(change.after), diff=change.diff())

    def edited(self, attempt: Attempt, decision: Decision) -> Attempt:  # noqa: ARG002 - as above
        """There is nothing to edit."""
        return attempt

    def imagined(self, attempt: Attempt, trace: Trace) -> None:
        """Nothing is released by a host that only says what it would do."""
        raise Denied(f"tool {attempt.object!r} of {attempt.server!r} has changed", rule=trace.rule)

    async def dispatch(self, attempt: Attempt) -> None:  # noqa: ARG002 - as Act has it
        """Release it."""
        await self.servers.fingerprints.release(self._change)
