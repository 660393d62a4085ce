"""Labels of a run: taken over from the results it has read, and what it may then not do unasked.

Somebody who can write where the run reads (a web page, a ticket) may tell the model what to do. That
is harmless until the run also holds what is private and can send it away; the three together are
how data are stolen, and so the third step is never taken unasked.
"""

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts

UNTRUSTED = "untrusted"  # the label of what nobody vouches for
PRIVATE = "private"  # the label of what is not meant for others
FLOW_LABELS = frozenset({UNTRUSTED, PRIVATE})

# they give the server nothing of what the run has read
ACTIONS_WITHOUT_EGRESS = frozenset(
    {"server.install", "server.connect", "tool.change", "task.cancel"}
)

MAX_CHAIN_LINES = 100  # the first lines tell where it began


def derive_labels(facts: Facts) -> frozenset[str]:
    """The labels of a result that comes under these circumstances.

    They are what the configuration says that the server reads and returns, and ``untrusted`` besides
    for a server that is not trusted, or that is trusted to say what it does and does not say that
    it keeps to itself: what comes from one server is to be distrusted as input of another.
    """
    labels = frozenset(facts.target.reads) | frozenset(facts.target.returns)
    if facts.trust == "untrusted":
        return labels | {UNTRUSTED}
    if facts.trust == "annotations":
        closed = facts.annotations is not None and facts.annotations.open_world_hint is False
        return labels if closed else labels | {UNTRUSTED}
    return labels


class RunLabels:
    """Labels that one run has taken over so far.

    Attributes:
        labels: the union of the labels of all results that it has read.
        chain: where each label came from first, a line for a person each.
    """

    def __init__(self) -> None:
        self.labels: frozenset[str] = frozenset()
        self.chain: tuple[str, ...] = ()

    def take(self, attempt: Attempt, facts: Facts) -> frozenset[str]:
        """The run has read what came of an attempt.

        Returns:
            The labels that are new to it.
        """
        new = derive_labels(facts) - self.labels
        if new:
            self.labels |= new
            what = f"{attempt.action} {attempt.object!r}" if attempt.object else attempt.action
            line = f"{', '.join(sorted(new))}: {what} of {attempt.server!r}"
            self.chain = (*self.chain, line)[:MAX_CHAIN_LINES]
        return new


def find_flow(attempt: Attempt, facts: Facts) -> tuple[str, ...]:
    """The chain that makes an attempt one to ask about; empty where it is none."""
    if not facts.target.egress or not facts.labels >= FLOW_LABELS:
        return ()
    if attempt.action in ACTIONS_WITHOUT_EGRESS:
        return ()
    told = facts.chain or ("untrusted and private: read earlier in this run",)
    return (
        *told,
        f"egress: {attempt.action} {attempt.object!r} of {attempt.server!r} sends it out",
    )
