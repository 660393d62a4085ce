"""Figures of traffic: for each minute how many calls ended, how they ended, and how long they took."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

from isthmus.host.model.view import MinuteFigures, TrafficFigures

MAX_MINUTES = 24 * 60
MAX_SAMPLES = 256  # of the times of one minute
MAX_NAMES = 256  # of servers and rules in one minute
MINUTE_S = 60


class MinuteCounts:
    """The counts of one minute."""

    __slots__ = ("calls", "decisions", "errors", "failed", "samples")

    def __init__(self) -> None:
        self.calls = 0
        self.failed = 0
        self.samples: list[float] = []
        self.errors: Counter[str] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()

    def add(self, seconds: float) -> None:
        """Count a call that has ended; of many the times of the last ones stay."""
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(seconds)
        else:
            self.samples[self.calls % MAX_SAMPLES] = seconds
        self.calls += 1


class TrafficCounts:
    """The counts of the last day, by minute."""

    def __init__(self) -> None:
        self._minutes: OrderedDict[int, MinuteCounts] = OrderedDict()

    def _find(self, at: float) -> MinuteCounts:
        minute = int(at // MINUTE_S)
        counts = self._minutes.get(minute)
        if counts is None:
            counts = self._minutes[minute] = MinuteCounts()
            if len(self._minutes) > MAX_MINUTES:
                self._minutes.popitem(last=False)
        return counts

    def count_decision(self, at: float, rule: str, effect: str) -> None:
        """Count a decision."""
        decisions = self._find(at).decisions
        if (rule, effect) in decisions or len(decisions) < MAX_NAMES:
            decisions[rule, effect] += 1

    def count_call(self, at: float, server: str, seconds: float, *, failed: bool) -> None:
        """Count a call that has ended."""
        counts = self._find(at)
        counts.add(seconds)
        if failed:
            counts.failed += 1
            if server in counts.errors or len(counts.errors) < MAX_NAMES:
                counts.errors[server] += 1

    def summarize(self, now: float, minutes: int) -> TrafficFigures:
        """The figures of the last minutes, the one that is not over yet included."""
        last = int(now // MINUTE_S)
        errors: Counter[str] = Counter()
        decisions: dict[str, dict[str, int]] = {}
        found = []
        for minute in range(last - minutes + 1, last + 1):
            counts = self._minutes.get(minute)
            at = float(minute * MINUTE_S)
            if counts is None:
                found.append(MinuteFigures(at=at))
                continue
            errors.update(counts.errors)
            for (rule, effect), number in counts.decisions.items():
                effects = decisions.setdefault(rule, {})
                effects[effect] = effects.get(effect, 0) + number
            p50, p95, p99 = find_percentiles(counts.samples, (50, 95, 99))
            found.append(
                MinuteFigures(
                    at=at, calls=counts.calls, failed=counts.failed, p50=p50, p95=p95, p99=p99
                )
            )
        return TrafficFigures(minutes=tuple(found), errors=dict(errors), decisions=decisions)


def find_percentiles(samples: Iterable[float], wanted: Sequence[int]) -> list[float | None]:
    """Percentiles of samples, by the nearest rank; None for each where there are none."""
    ordered = sorted(samples)
    if not ordered:
        return [None for _ in wanted]
    return [ordered[max(0, -(-len(ordered) * one // 100) - 1)] for one in wanted]
