"""Links to resources that tools gave, by run: what a context of that run may be made of."""

from collections import OrderedDict
from collections.abc import Sequence

from isthmus.host.attempt import Attempt
from isthmus.wire import CallToolResult, ResourceLink

__all__ = ["Links"]

MOST_RUNS = 1_000
MOST_LINKS = 100
"""Links of one run; the newest stay."""


class Links:
    """The newest links of each run, each with the server that gave it."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[tuple[str, str], ResourceLink]] = OrderedDict()

    def take(self, attempt: Attempt, result: CallToolResult) -> None:
        """A call of a tool gave this."""
        links = [block for block in result.content if isinstance(block, ResourceLink)]
        if not links or not attempt.run:
            return
        known = self._of.setdefault(attempt.run, OrderedDict())
        self._of.move_to_end(attempt.run)
        for link in links[-MOST_LINKS:]:
            known[attempt.server, link.uri] = link
            known.move_to_end((attempt.server, link.uri))
        while len(known) > MOST_LINKS:
            known.popitem(last=False)
        while len(self._of) > MOST_RUNS:
            self._of.popitem(last=False)

    def of(self, run: str) -> Sequence[tuple[str, ResourceLink]]:
        """The links of a run, each with its server, the newest first."""
        known = self._of.get(run, OrderedDict())
        return [(server, link) for (server, _), link in reversed(known.items())]
