"""Whether what servers gave may be given to somebody else: a provider of models, another server."""

from collections.abc import Sequence

from msgspec import Struct

from isthmus.host.act import Act, Outcome
from isthmus.host.attempt import Attempt
from isthmus.host.interaction import Sharing
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.trace import Trace

__all__ = ["Agreed", "ShareAct", "Shared"]


class Shared(Struct, frozen=True, kw_only=True):
    """Context of a server that could be added to a request.

    Attributes:
        server: whose it is.
        what: what it is, in a line.
        text: all of it.
    """

    server: str
    what: str
    text: str


class Agreed:
    """A person's answer to one question about several servers.

    Attributes:
        by: the attempt that was asked about, once they have said yes; empty until then.
    """

    def __init__(self) -> None:
        self.by = ""


class ShareAct(Act[bool]):
    """Whether something of a server may be shared.

    Args:
        facts: what is known of the server.
        to: who would get it.
        what: what it would be, a line each: of all servers that one question is about.
        agreed: the answer to that question, which is asked for the first of them.
    """

    def __init__(
        self, facts: Facts, to: str, what: Sequence[str], agreed: Agreed | None = None
    ) -> None:
        self._facts = facts
        self._to = to
        self._what = tuple(what)
        self._agreed = Agreed() if agreed is None else agreed
        self._asked = False

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as Act has it
        """What policy is to know."""
        return self._facts

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """Whether a person is asked: where policy says so, and they were not asked just now."""
        self._asked = trace.effect == "ask"
        return self._asked and not self._agreed.by

    def payload(self, attempt: Attempt, trace: Trace) -> Sharing:  # noqa: ARG002 - as Act has it
        """What would be shared, and with whom."""
        return Sharing(to=self._to, what=self._what)

    async def dispatch(self, attempt: Attempt) -> bool:
        """Nothing more is needed than that it may be."""
        if self._asked and not self._agreed.by:
            self._agreed.by = attempt.id
        return True

    def outcome(self, result: bool) -> Outcome:  # noqa: ARG002 - as Act has it
        """Which question the answer was given to, where several servers had one."""
        return Outcome(detail={"agreed": self._agreed.by} if self._asked else None)
