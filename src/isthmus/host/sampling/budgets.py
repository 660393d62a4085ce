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
from isthmus.host.state.database import HostState

if TYPE_CHECKING:
    import sqlite3

DAY_S = 86_400
KEPT_DAYS = 90
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
    """

    def __init__(self, state: HostState) -> None:
        self._state = state
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
        day = self._today()
        row: tuple[int, int, int] | None = await self._state.read(
            lambda db: read_usage(db, server, day)
        )
        return row or (0, 0, 0)

    async def charge(
        self, server: str, limits: SamplingLimits, model: Model, tokens_in: int, max_tokens: int
    ) -> SamplingCharge:
        """Charge what an answer may cost at most; it is durable when this returns.

        Raises:
            Exhausted: the account of this day is empty.
            StoreUnavailable: nothing can be written down.
        """
        day = self._today()

        def work(db: "sqlite3.Connection") -> SamplingCharge:
            _, tokens, spent = read_usage(db, server, day) or (0, 0, 0)
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
            add_usage(db, (server, day), 1, whole, cost)
            return SamplingCharge(server=server, day=day, tokens=whole, cost=cost, max_tokens=most)

        return await self._state.write(work)

    async def settle(self, charge: SamplingCharge, tokens: int, cost: int) -> None:
        """Put right what was charged: it took so many tokens and micro-dollars."""
        await self._state.write(
            lambda db: add_usage(
                db, (charge.server, charge.day), 0, tokens - charge.tokens, cost - charge.cost
            )
        )

    def settle_soon(self, charge: SamplingCharge, tokens: int, cost: int) -> None:
        """As :meth:`settle`, within milliseconds: for who must not wait, being cancelled."""
        account = charge.server, charge.day
        self._state.post(
            lambda db: add_usage(db, account, 0, tokens - charge.tokens, cost - charge.cost)
        )

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


def read_usage(db: "sqlite3.Connection", server: str, day: int) -> tuple[int, int, int] | None:
    """The row of an account."""
    row: tuple[int, int, int] | None = db.execute(
        "SELECT requests, tokens, cost_micro FROM sampling_usage WHERE server = ? AND day = ?",
        (server, day),
    ).fetchone()
    return row


def add_usage(
    db: "sqlite3.Connection", account: tuple[str, int], requests: int, tokens: int, cost: int
) -> None:
    """Count more, or less, on the account of a server on a day."""
    db.execute(
        "INSERT INTO sampling_usage VALUES (?1, ?2, ?3, max(?4, 0), max(?5, 0)) "
        "ON CONFLICT (server, day) DO UPDATE SET requests = requests + ?3, "
        "tokens = max(tokens + ?4, 0), cost_micro = max(cost_micro + ?5, 0)",
        (*account, requests, tokens, cost),
    )
