"""What the user said yes to for longer than once."""

from collections.abc import Sequence

from msgspec import Struct

from isthmus.host.attempt import Attempt
from isthmus.host.interaction import Decision
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.trace import Assurance, Remember

__all__ = ["Grant", "Grants"]


class Grant(Struct, frozen=True, kw_only=True):
    """One yes that lasts.

    Attributes:
        id: its name.
        scope: what it holds for.
        principal: for whom.
        action: for what.
        server: the server's name when it was given, ``identity`` what it is bound to.
        object: the tool, URI or prompt; empty for every trusted tool that only reads.
        fingerprint: of the tool's definition.
        arguments: digest of the arguments it is bound to; empty for any.
        shape: predicates that the arguments must meet, as in the ``where`` of a rule.
        run: the run it is bound to, ``session`` the life of a host.
        created: seconds since the epoch.
        until: when it ends, in seconds since the epoch; None for no end of its own.
        uses: how often it may still be used; None for any number.
        by: who gave it.
        assurance: how sure one can be that it was a person.
        ended: why it counts no longer: ``revoked``, ``expired`` or ``used up``; empty while it does.
    """

    id: str
    scope: Remember
    principal: str
    action: str
    server: str
    identity: str = ""
    object: str = ""
    fingerprint: str = ""
    arguments: str = ""
    shape: tuple[str, ...] = ()
    run: str = ""
    session: str = ""
    created: float = 0.0
    until: float | None = None
    uses: int | None = None
    by: str = ""
    assurance: Assurance = "callback"
    ended: str = ""


class Grants:
    """The grants of a host, in its state.

    ``find`` does not wait; what changes something is durable when it returns.
    """

    async def load(self) -> None:
        """Read what there is, and keep up with what other processes revoke."""
        raise NotImplementedError

    async def close(self) -> None:
        """Keep up no longer."""
        raise NotImplementedError

    def find(
        self,
        attempt: Attempt,
        facts: Facts,
        *,
        remember: tuple[Remember, ...] | None = None,
        assurance: Assurance = "callback",
    ) -> Grant | None:
        """The grant that covers an attempt."""
        raise NotImplementedError

    async def use(self, id: str) -> bool:
        """Count a use, durably, before it: False where the grant holds no longer (ask then)."""
        raise NotImplementedError

    async def remember(
        self, attempt: Attempt, facts: Facts, decision: Decision, *, uses: int | None = None
    ) -> Grant | None:
        """Keep a yes for as long as the decision says; None where that is only once."""
        raise NotImplementedError

    async def revoke(self, id: str) -> bool:
        """End a grant at once; False where there is none that still holds."""
        raise NotImplementedError

    def all(self) -> Sequence[Grant]:
        """Those that hold, the newest first."""
        raise NotImplementedError
