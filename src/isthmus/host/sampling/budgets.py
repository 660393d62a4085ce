"""Sampling budgets: tokens and cost of each server a day, which a restart does not forget.

What an answer may cost at most is charged before it is begun, and what it did cost is put right
afterwards: two answers at once cannot overspend together, and one that was cut off by the end of
the process stays charged.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.host.model.entries import SamplingLimits
from isthmus.host.model.errors import Exhausted
from isthmus.host.sampling.models import Model
from isthmus.host.sampling.usage import DAY_S, KEPT_DAYS, Usage, UsageStorage, UsageTable
from isthmus.host.state.database import HostState

if TYPE_CHECKING:
    import sqlite3

MAX_ALLOWANCES = 10_000

AllowanceKey = tuple[str, str, str]


class SamplingCharge(Struct, frozen=True, kw_only=True):
    """The charge for an answer before it begins.

    Attributes:
        server: whose account it is.
        day: of which day.
        tokens: read and written, at most.
        cost: in micro-dollars, at most.
        max_tokens: the most that may be written for it.
    """

    server: str
    day: int
    tokens: int
    cost: int
    max_tokens: int


class SamplingAllowance(Struct, frozen=True, kw_only=True):
    """An amount allowed in advance for a server, run and model; None for any amount.

    Attributes:
        tokens: tokens read and written that are left.
        cost: micro-dollars that are left.
    """

    tokens: int | None = None
    cost: int | None = None

    def covers(self, tokens: int, cost: int | None) -> bool:
        """Whether so much is left; what nobody knows the price of is not covered by a price."""
        if self.tokens is not None and tokens > self.tokens:
            return False
        return self.cost is None or (cost is not None and cost <= self.cost)


class SamplingBudgets:
    """The accounts of all servers.

    Args:
        state: where they are kept.
        usage: keeps what was used elsewhere: in a store that hosts share.
    """

    def __init__(self, state: HostState, usage: UsageStorage | None = None) -> None:
        self._state = state
        self._usage: UsageStorage = usage or UsageTable(state)
        self._clock = state.clock
        self._allowed: dict[AllowanceKey, SamplingAllowance] = {}

    async def load(self) -> None:
        """Load the allowances; old accounts are dropped."""
        oldest = self._today() - KEPT_DAYS

        def work(db: "sqlite3.Connection") -> list[tuple[str, str, str, int | None, int | None]]:
            db.execute("DELETE FROM sampling_usage WHERE day < ?", (oldest,))
            db.execute(
                "DELETE FROM sampling_allowance WHERE at_us < ?", (oldest * DAY_S * 1_000_000,)
            )
            return db.execute(
                "SELECT run, server, model, tokens, cost_micro FROM sampling_allowance"
            ).fetchall()

        for run, server, model, tokens, cost in await self._state.write(work):
            self._allowed[run, server, model] = SamplingAllowance(tokens=tokens, cost=cost)

    async def read_today(self, server: str) -> tuple[int, int, int]:
        """Requests, tokens and micro-dollars of a server today."""
        return await self._usage.read((server, self._today()))

    async def charge(
        self, server: str, limits: SamplingLimits, model: Model, tokens_in: int, max_tokens: int
    ) -> SamplingCharge:
        """Charge what an answer may cost at most; it is durable when this returns.

        Raises:
            Exhausted: the account of this day is empty.
            StoreUnavailable: nothing can be written down.
        """
        day = self._today()

        def work(so_far: Usage) -> tuple[Usage, SamplingCharge]:
            _, tokens, spent = so_far
            most = max_tokens
            if limits.tokens is not None:
                most = min(most, limits.tokens - tokens - tokens_in)
            if limits.cost is not None:
                most = min(
                    most, compute_affordable(model, limits.cost * 1e6 - spent, tokens_in, most)
                )
            if most < 1:
                raise self._make_exhausted(server, limits, tokens, spent)
            whole = tokens_in + most
            cost = model.cost(tokens_in, most) or 0
            charge = SamplingCharge(
                server=server, day=day, tokens=whole, cost=cost, max_tokens=most
            )
            return (1, whole, cost), charge

        return await self._usage.change((server, day), work)

    async def settle(self, charge: SamplingCharge, tokens: int, cost: int) -> None:
        """Put right what was charged: it took so many tokens and micro-dollars."""
        less = (0, tokens - charge.tokens, cost - charge.cost)
        await self._usage.change((charge.server, charge.day), lambda _so_far: (less, None))

    def settle_soon(self, charge: SamplingCharge, tokens: int, cost: int) -> None:
        """As :meth:`settle`, within milliseconds: for who must not wait, being cancelled."""
        less = (0, tokens - charge.tokens, cost - charge.cost)
        self._usage.change_soon((charge.server, charge.day), less)

    def allowance(self, run: str, server: str, model: str) -> SamplingAllowance | None:
        """The allowance that is left; None where there is none."""
        return self._allowed.get((run, server, model))

    async def allow(self, run: str, server: str, model: str, allowance: SamplingAllowance) -> None:
        """Allow so much in advance, in place of what was allowed before."""
        key = (run, server, model)
        row = (*key, int(self._clock() * 1e6), allowance.tokens, allowance.cost)
        await self._state.write(
            lambda db: db.execute(
                "INSERT OR REPLACE INTO sampling_allowance VALUES (?, ?, ?, ?, ?, ?)", row
            )
        )
        self._allowed.pop(key, None)
        self._allowed[key] = allowance
        while len(self._allowed) > MAX_ALLOWANCES:
            del self._allowed[next(iter(self._allowed))]

    async def forget(self, run: str, server: str, model: str) -> None:
        """Remove an allowance."""
        key = (run, server, model)
        if self._allowed.pop(key, None) is not None:
            await self._state.write(
                lambda db: db.execute(
                    "DELETE FROM sampling_allowance WHERE run = ? AND server = ? AND model = ?", key
                )
            )

    async def draw(self, run: str, server: str, model: str, tokens: int, cost: int) -> None:
        """Take an amount out of an allowance."""
        left = self._allowed.get((run, server, model))
        if left is not None:
            rest = SamplingAllowance(
                tokens=None if left.tokens is None else max(left.tokens - tokens, 0),
                cost=None if left.cost is None else max(left.cost - cost, 0),
            )
            await self.allow(run, server, model, rest)

    def _today(self) -> int:
        return int(self._clock() // DAY_S)

    def _make_exhausted(
        self, server: str, limits: SamplingLimits, tokens: int, spent: int
    ) -> Exhausted:
        parts = []
        if limits.tokens is not None:
            parts.append(f"{tokens} of {limits.tokens} tokens")
        if limits.cost is not None:
            parts.append(f"${spent / 1e6:.4f} of ${limits.cost:g}")
        return Exhausted(
            f"server {server!r} has used {' and '.join(parts)} that models may take for it in a "
            "day, and this would be more (host.sampling of its entry)",
            retry_after=DAY_S - self._clock() % DAY_S,
        )


def compute_affordable(model: Model, left: float, tokens_in: int, most: int) -> int:
    """Compute the tokens that can be written for the rest; all where prices are unknown."""
    if model.cost_in is None or model.cost_out is None:
        return most
    rest = left - model.cost_in * tokens_in
    if rest < 0 or not model.cost_out:
        return most if rest >= 0 else 0
    return int(rest // model.cost_out)
