"""What all that is done with servers has in common."""

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET, structs

from isthmus.host.act import Act
from isthmus.host.attempt import Attempt
from isthmus.host.errors import BadArguments
from isthmus.host.interaction import Decision
from isthmus.host.policy.facts import Facts
from isthmus.host.servers import Servers

if TYPE_CHECKING:
    from isthmus.host.config.entries import ServerEntry

__all__ = ["Fixed", "OfServer", "sameness"]

T = TypeVar("T")


def sameness(attempt: Attempt) -> str:
    """What makes two attempts the same: who wants what, with which arguments, in which run."""
    try:
        said = msgspec.json.encode(
            [
                *(attempt.action, attempt.principal, attempt.server, attempt.object),
                *(attempt.run, attempt.isolation, attempt.arguments),
            ],
            order="deterministic",
        )
    except (TypeError, ValueError):  # half a character: it cannot be sent, and is like no other
        return ""
    return blake2b(said, digest_size=16).hexdigest()


class OfServer(Act[T]):
    """Something that is done with a server.

    Args:
        servers: what is known of servers.
    """

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self._decided: tuple[ServerEntry, str] | None = None

    def facts(self, attempt: Attempt) -> Facts:
        """What is known of the server; what it is now is what it has to be when it is done."""
        facts = self.servers.facts(attempt.server, attempt.isolation, attempt.object)
        if self._decided is None:
            self._decided = self.servers.entry(attempt.server), facts.identity
        return facts

    def coalesce(self, attempt: Attempt) -> str:
        """To ask twice for what changes nothing is to ask once."""
        return sameness(attempt)

    def isolated(self, attempt: Attempt, server: str) -> Attempt:
        """The attempt, at a server, on the connection that it uses there."""
        isolation = self.servers.isolation(server, attempt.principal, attempt.run)
        return structs.replace(attempt, server=server, isolation=isolation)

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:  # noqa: ARG002 - as Act has it
        """See whether it is still the server that was decided on.

        Raises:
            Denied: it is another one.
        """
        if self._decided is not None:
            self.servers.same(attempt, *self._decided)


class Fixed(OfServer[T]):
    """Something that is done with a server as it is asked, or not at all."""

    def edited(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt as it was.

        Raises:
            BadArguments: a person wanted something else than what would be done.
        """
        if decision.edited is UNSET or decision.edited == attempt.arguments:
            return attempt
        raise BadArguments(
            f"{attempt.action} {attempt.object!r} of server {attempt.server!r} has nothing that can "
            "be edited: ask for the other thing instead"
        )
