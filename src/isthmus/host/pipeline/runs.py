"""Runs: calls that belong together share labels, budgets, grants, and the links that tools gave."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

from msgspec import Struct

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Exhausted, Unknown
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import ActOutcome
from isthmus.host.policy.flow_labels import RunLabels
from isthmus.runtime.sorted_ids import new_id
from isthmus.wire import CallToolResult, ResourceLink

MAX_RUNS = 10_000  # the one that was used longest ago makes room


class Budget(Struct, frozen=True, kw_only=True):
    """The budget of a run in all; None for any amount.

    Attributes:
        calls: attempts of any kind.
        tokens: tokens that models read and wrote in its course.
        cost: what they cost, in micro-dollars.
        seconds: how long it lasts.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: int | None = None
    seconds: float | None = None


class Run:
    """A run of attempts that belong together: a conversation, a job.

    What its results are labelled with stays with it, and decides what it may still do unasked.

    Example::

        with host.run(budget=Budget(calls=20)) as run:
            await host.call("files__read", {"path": "notes.txt"}, run=run)

    Args:
        id: its name.
        principal: for whom it runs.
        budget: how much it may do.
        clock: says seconds.

    Attributes:
        taken: what it has taken over from results.
        counts: attempts that each rule let through, by the rule's id.
        calls: attempts so far; ``tokens`` and ``cost`` of models likewise.
    """

    def __init__(self, id: str, principal: str, budget: Budget, clock: Callable[[], float]) -> None:
        self.id = id
        self.principal = principal
        self.budget = budget
        self.taken = RunLabels()
        self.counts: dict[str, int] = {}
        self.calls = 0
        self.tokens = 0
        self.cost = 0
        self._clock = clock
        self._began = clock()
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"Run({self.id!r}, {self.principal!r})"

    @property
    def labels(self) -> frozenset[str]:
        """The labels of what it has read."""
        return self.taken.labels

    @property
    def chain(self) -> tuple[str, ...]:
        """The sources of its labels, a line each."""
        return self.taken.chain

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is done in it."""
        return self._ended

    def end(self) -> None:
        """Nothing more is done in it."""
        self._ended = True

    def check_open(self) -> None:
        """See that the run goes on.

        Raises:
            Exhausted: it has ended.
        """
        if self._ended:
            raise Exhausted(f"run {self.id} has ended: begin another one")

    def begin(self) -> None:
        """One more attempt is let through.

        Raises:
            Exhausted: that is more than the run may do.
        """
        budget = self.budget
        self.check_open()
        for name, most, so_far in (
            ("calls", budget.calls, self.calls),
            ("tokens", budget.tokens, self.tokens),
            ("micro-dollars", budget.cost, self.cost),
            ("seconds", budget.seconds, self._clock() - self._began),
        ):
            if most is not None and so_far >= most:
                raise Exhausted(f"run {self.id} has used up its {most:g} {name} (Budget)")
        self.calls += 1

    def spend(self, outcome: ActOutcome) -> None:
        """Count what an attempt took."""
        self.tokens += (outcome.tokens_in or 0) + (outcome.tokens_out or 0)
        self.cost += outcome.cost or 0


NO_BUDGET = Budget()
NO_COUNTS: Mapping[str, int] = {}


class Runs:
    """The runs of a host, by id.

    Args:
        clock: says seconds that never go back.

    Attributes:
        let_through: attempts of no run so far.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.let_through = 0
        self._clock = clock
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._outside: OrderedDict[str, dict[str, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def begin(
        self, principal: str = "user:local", *, budget: Budget = NO_BUDGET, id: str = ""
    ) -> Run:
        """A new run; the one of this id where there is one."""
        found = self._runs.get(id)
        if found is not None:
            return found
        run = Run(id or new_id(), principal, budget, self._clock)
        self._runs[run.id] = run
        if len(self._runs) > MAX_RUNS:
            self._runs.popitem(last=False)
        return run

    def find(self, id: str) -> Run | None:
        """The run of this id, used just now; None where there is none, or none any more."""
        run = self._runs.get(id)
        if run is not None:
            self._runs.move_to_end(id)
        return run

    def list_open(self, count: int) -> list[Run]:
        """The runs that go on, the one that was used last first; at most so many."""
        going = (run for run in reversed(self._runs.values()) if not run.has_ended)
        return list(islice(going, count))

    def find_id(self, run: Run | str | None) -> str:
        """The id of a run that somebody has; empty for none.

        Raises:
            Unknown: there is no run of this id.
        """
        if run is None:
            return ""
        id = run.id if isinstance(run, Run) else run
        if id and id not in self._runs:
            raise Unknown(f"there is no run {id!r}: make one with host.run()")
        return id

    def outside(self, principal: str) -> Mapping[str, int]:
        """The attempts that each rule let through for a principal in no run, by the rule's id.

        It is one run as far as rules count: whoever leaves the run out is not counted less.
        """
        return self._outside.get(principal, NO_COUNTS)

    def count(self, run: Run | None, principal: str, rules: Iterable[str]) -> None:
        """Rules let one more attempt through.

        Args:
            run: in which run; None for none.
            principal: who wanted it.
            rules: their ids.
        """
        if run is not None:
            counts = run.counts
        else:
            self.let_through += 1
            counts = self._outside.setdefault(principal, {})
            self._outside.move_to_end(principal)
            if len(self._outside) > MAX_RUNS:
                self._outside.popitem(last=False)
        for rule in rules:
            counts[rule] = counts.get(rule, 0) + 1

    def learn_counts(self, principal: str, counts: Mapping[str, int]) -> None:
        """Take over how many attempts outside runs rules let through at all processes of the host."""
        self._outside.setdefault(principal, {}).update(counts)

    def labels(self, ids: Iterable[str]) -> frozenset[str]:
        """The labels of these runs together."""
        found: frozenset[str] = frozenset()
        for id in ids:
            run = self._runs.get(id)
            found |= frozenset() if run is None else run.labels
        return found


def find_counted_rules(trace: Trace) -> list[str]:
    """The rules that an attempt counts for: the deciding one, and where it asks all that ask."""
    if not trace.matches or trace.matches[0].effect != "ask":
        return [trace.rule]
    others = (match.rule for match in trace.matches if match.effect == "ask")
    return list(dict.fromkeys((trace.rule, *others)))


MAX_LINKED_RUNS = 1_000
MAX_LINKS_PER_RUN = 100  # the newest stay


class RunLinks:
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
        for link in links[-MAX_LINKS_PER_RUN:]:
            known[attempt.server, link.uri] = link
            known.move_to_end((attempt.server, link.uri))
        while len(known) > MAX_LINKS_PER_RUN:
            known.popitem(last=False)
        while len(self._of) > MAX_LINKED_RUNS:
            self._of.popitem(last=False)

    def of(self, run: str) -> Sequence[tuple[str, ResourceLink]]:
        """The links of a run, each with its server, the newest first."""
        known = self._of.get(run, OrderedDict())
        return [(server, link) for (server, _), link in reversed(known.items())]
