"""Whose turn it is: everybody's once a round, so that noise meets all alike."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from contenders import Contender
from processes import find_free_port, limit_time, run_child, say, wait_listening
from results import Results
from talks import PIPES, HttpTalk, PipeTalk

Talk = TypeVar("Talk")
Work = Callable[[], Mapping[str, float]]
"""Measures once; the columns of a row."""

TURN_TIMEOUT_S = 120.0
OPEN_TIMEOUT_S = 90.0


@dataclass(frozen=True)
class Effort:
    """How long and how much: a short form for CI, a full one for RESULTS.md.

    Attributes:
        short: CI's form: small sizes, the official SDK alone.
        rounds: how often each has its turn.
        seconds: how long a turn of calls lasts.
        endurance: seconds of the run at full speed.
    """

    short: bool
    rounds: int
    seconds: float
    endurance: float


@dataclass
class Run:
    """One run of the benchmarks: who takes part, how much, and what was found.

    Attributes:
        field: everybody who takes part.
        effort: how much.
        results: what was found.
    """

    field: list[Contender]
    effort: Effort
    results: Results

    def take(self, table: str, row: str, work: Work, timeout: float = TURN_TIMEOUT_S) -> bool:
        """Measure one row once; who fails is named in the report and stops nobody else."""
        try:
            with limit_time(timeout):
                columns = work()
                self.results.add(table, row, **columns)
        except Exception as error:  # noqa: BLE001 - a broken one must not end the run
            self.results.fail(table, row, error)
            say(f"  {table:26} {row:22} FAILED: {error}")
            return False
        cells = "  ".join(f"{column} {value:,.4g}" for column, value in columns.items())
        say(f"  {table:26} {row:22} {cells}")
        return True

    def take_turns(
        self,
        table: str,
        works: Mapping[str, Work],
        rounds: int | None = None,
        timeout: float = TURN_TIMEOUT_S,
    ) -> None:
        """Measure every row once in each round; a row that fails has no further turn."""
        left = dict(works)
        for _ in range(rounds or self.effort.rounds):
            for row, work in list(left.items()):
                if not self.take(table, row, work, timeout):
                    del left[row]

    @contextmanager
    def open_pipes(self, table: str, case: str, *names: str) -> Iterator[dict[str, PipeTalk]]:
        """Start everybody's stdio server of a case, hands shaken, all at once.

        Args:
            table: where it is told who does not start.
            case: what the servers offer.
            names: who is wanted; everybody if left out.
        """
        with ExitStack() as stack:
            talks: dict[str, PipeTalk] = {}
            for one in self.field:
                if one.stdio and one.offers(case) and (not names or one.name in names):
                    self._open(table, one, partial(open_pipe, stack, one, case), talks)
            yield talks

    @contextmanager
    def open_http(
        self, table: str, case: str, wire: str, *names: str, token: str = ""
    ) -> Iterator[dict[str, HttpTalk]]:
        """Start everybody's HTTP server of a case that answers as ``wire`` has it, all at once."""
        with ExitStack() as stack:
            talks: dict[str, HttpTalk] = {}
            for one in self.field:
                wanted = wire in one.wires and one.offers(case) and (not names or one.name in names)
                if wanted:
                    start = partial(open_http, stack, one, case, wire, token)
                    self._open(table, one, start, talks)
            yield talks

    def _open(
        self, table: str, one: Contender, start: Callable[[], Talk], talks: dict[str, Talk]
    ) -> None:
        """Start one server, if need be twice: another program may take the port that was free."""
        for last in (False, True):
            try:
                with limit_time(OPEN_TIMEOUT_S):
                    talks[one.name] = start()
            except Exception as error:  # noqa: BLE001 - a broken one must not end the run
                say(f"  {table:26} {one.name:22} DID NOT START: {error}")
                if last:
                    self.results.fail(table, one.name, error)
            else:
                return


def open_pipe(stack: ExitStack, one: Contender, case: str) -> PipeTalk:
    """Start a stdio server and shake hands with it."""
    talk = PipeTalk(stack.enter_context(run_child(one.over_stdio(case), **PIPES)))
    talk.shake_hands()
    return talk


def open_http(stack: ExitStack, one: Contender, case: str, wire: str, token: str) -> HttpTalk:
    """Start an HTTP server and open a session with it, where its wire has sessions."""
    port = find_free_port()
    process = stack.enter_context(run_child(one.over_http(port, wire, case)))
    wait_listening(port, process)
    talk = HttpTalk(process.pid, port, wire, token)
    stack.callback(talk.close)
    talk.shake_hands()
    return talk
