"""Visit to a gateway: what came of each probe, for one revision of the client, as the rules judge it."""

from typing import Literal, TypeAlias

import msgspec

from isthmus.linter.rules.rule import Finding, Violation
from isthmus.revisions import Revision

# "ok" worked; "refused" was told clearly that it does not; "wrong" ended otherwise than it must; "silent" did not end
# in time; "lost" the connection ended; "skipped" could not be tried
ProbeState: TypeAlias = Literal["ok", "refused", "wrong", "silent", "lost", "skipped"]


class GatewayOutcome(msgspec.Struct, frozen=True):
    """What came of one probe of a gateway.

    Attributes:
        probe: its name; rules look for it.
        where: the place in words.
        state: how it went.
        said: what was seen.
    """

    probe: str
    where: str
    state: ProbeState
    said: str = ""

    def as_violation(self) -> Violation:
        """The outcome as a place where a rule is broken."""
        return Violation(self.where, self.said)


class GatewayVisit(msgspec.Struct, eq=False):
    """A gateway, seen by clients of one revision.

    Attributes:
        revision: the clients' revision.
        outcomes: what came of the probes, in their order.
    """

    revision: Revision
    outcomes: list[GatewayOutcome] = []

    def note(self, probe: str, where: str, state: ProbeState, said: str = "") -> None:
        """Take down what came of a probe."""
        self.outcomes.append(GatewayOutcome(probe, where, state, said))


class GatewayReport(msgspec.Struct):
    """The findings of a gateway's examination.

    Attributes:
        spoken: the revisions that the gateway speaks to clients, newest first.
        unspoken: the others, and why.
        findings: what is wrong.
        asked: how many probes were made.
        skipped: probes that could not be made, and why.
    """

    spoken: list[str] = []
    unspoken: dict[str, str] = {}
    findings: list[Finding] = []
    asked: int = 0
    skipped: list[str] = []
