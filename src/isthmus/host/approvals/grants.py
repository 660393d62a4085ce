"""Grants: each a yes of the user that lasts, kept in the state of the host or in a shared store.

A grant is bound to what the server is and to what the tool was: under another program, or with
another definition, it does not count. It turns a question into a yes and does nothing else; what is
denied, what a managed rule asks, and what would carry private data away it does not reach.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from isthmus.errors import UsageError
from isthmus.host.approvals.grant_matching import Grant, GrantMatcher, bind_arguments, is_read_only
from isthmus.host.approvals.grant_table import GrantsRead, GrantStorage, GrantTable
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Exhausted
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision
from isthmus.host.model.trace import Assurance, Remember
from isthmus.runtime.sorted_ids import new_id
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.host.state.database import HostState

REFRESH_INTERVAL_S = 0.4  # between two looks at what other processes did
STALE_AFTER_S = 1.0  # what was read counts no more then: a yes may have been taken back
MAX_GRANTS = 10_000
LEFTOVER_AGE_S = 7 * 86_400.0  # then grants of runs, and of hosts that are gone, are tidied away
DEFAULT_GRANT_S = 86_400.0  # of a grant ``until`` where nobody said until when

# they end with the host, unless an end is named
SESSION_SCOPES: tuple[Remember, ...] = ("arguments", "shape", "session")
WIDER_THAN_SESSION: tuple[Remember, ...] = ("until", "tool_always")


class Grants:
    """The grants of a host.

    ``find`` does not wait; what changes something is durable when it returns. A grant that another
    process takes back counts no more within a second, and where they cannot be read, none does.

    Args:
        state: where they are kept, unless ``storage`` says so.
        session: names this life of the host; a new name by default.
        steady: says seconds that only go forward, to know how old is what was read.
        storage: keeps them elsewhere: in a store that hosts share.
    """

    def __init__(
        self,
        state: "HostState",
        *,
        session: str = "",
        steady: Callable[[], float] = time.monotonic,
        storage: "GrantStorage | None" = None,
    ) -> None:
        self._storage = storage or GrantTable(state, session)
        self._clock = state.clock
        self._steady = steady
        self._known: dict[str, Grant] = {}
        self._matcher = GrantMatcher(self._storage.session, self._over)
        self._changes = -1
        self._seen = 0.0
        self._read_at = float("-inf")
        self._keeping_up: asyncio.Task[None] | None = None

    @property
    def session(self) -> str:
        """The name of this life of the host."""
        return self._storage.session

    async def load(self) -> None:
        """Read what there is, and from now on keep up with what other processes do.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        await self._storage.open()
        await self.refresh()
        await self.end_dead()
        long_ago = self._clock() - LEFTOVER_AGE_S
        await self._end_all(
            lambda grant: (
                grant.created < long_ago
                and (bool(grant.run) or grant.session not in {"", self.session})
            )
        )
        if self._storage.is_shared and self._keeping_up is None:
            self._keeping_up = asyncio.create_task(self._keep_up(), name="isthmus grants")

    async def close(self) -> None:
        """Keep up no longer, and end what holds for this life of the host; safe to call twice."""
        task, self._keeping_up = self._keeping_up, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if not self._storage.outlives_process:
            with suppress(StoreUnavailable):  # they are bound to this session, and so end with it
                await self._end_all(lambda grant: grant.session == self.session)
        await self._storage.close()

    async def end_dead(self) -> None:
        """End what was granted for lives of hosts that are over, also of those that were killed.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        others = {grant.session for grant in self._known.values()} - {"", self.session}
        dead = {one for one in others if self._storage.is_over(one)}
        await self._end_all(lambda grant: grant.session in dead)

    async def _end_all(self, which: "Callable[[Grant], bool]") -> None:
        over = [grant.id for grant in self._known.values() if which(grant)]
        if over:
            await self._change(self._storage.end(over, "expired", self._see()))

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL_S)
            with suppress(StoreUnavailable):  # then what was read grows stale, and counts no more
                await self.refresh()

    async def refresh(self) -> None:
        """Read what has changed since the last time, and end what has expired.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        began = self._steady()
        await self._end_all(self._over)
        self._learn(await self._storage.read(self._changes))
        self._read_at = began

    async def fresh(self) -> None:
        """Read again where what is known is too old to count; without waiting where it is not.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        if self._stale:
            await self.refresh()

    @property
    def _stale(self) -> bool:
        shared = self._storage.is_shared and self._known
        return bool(shared) and self._steady() - self._read_at > STALE_AFTER_S

    def _learn(self, found: GrantsRead) -> None:
        self._changes = found.changes
        self._seen = max(self._seen, found.seen, self._clock())
        self._matcher.session = self._storage.session
        if found.grants is not None:
            self._known = {grant.id: grant for grant in found.grants}
            self._matcher.replace(found.grants)

    def _see(self) -> float:
        """The latest time that was seen."""
        return max(self._seen, self._clock())

    def _over(self, grant: Grant, now: float = 0.0) -> bool:
        """Whether its time is over: once it was, no clock that is set back makes it new."""
        if grant.until is None:
            return False
        self._seen = max(self._seen, now, self._clock())
        return grant.until <= self._seen

    def find(
        self,
        attempt: Attempt,
        facts: Facts,
        *,
        remember: tuple[Remember, ...] | None = None,
        assurance: Assurance = "callback",
    ) -> Grant | None:
        """The grant that covers an attempt, the narrowest where several do.

        One that may be used a number of times has to be counted with :meth:`use` before it is used.

        Args:
            attempt: what somebody wants.
            facts: what else is known.
            remember: the scopes that the rules accept; None for all.
            assurance: how sure one must be that it was a person who gave it.
        """
        if self._stale:
            return None
        return self._matcher.find(attempt, facts, remember=remember, assurance=assurance)

    def is_sure(self, id: str) -> bool:
        """Whether a grant holds, as was read within the last second."""
        return id in self._known and not self._stale

    def holds(self, id: str) -> bool:
        """Whether a grant holds, as far as this process knows: neither taken back nor used up."""
        return id in self._known

    async def use(self, id: str) -> bool:
        """Count a use, durably, before it.

        Args:
            id: the grant's, as in ``Trace.grant``.

        Returns:
            False where it holds no longer: it was used up or taken back meanwhile, so ask.

        Raises:
            StoreUnavailable: it cannot be counted, so it was not used.
        """
        await self.fresh()
        grant = self._known.get(id)
        if grant is None:
            return False
        if grant.uses is None:
            return True
        return bool(await self._change(self._storage.use(id, self._see())))

    async def remember(
        self, attempt: Attempt, facts: Facts, decision: Decision, *, uses: int | None = None
    ) -> Grant | None:
        """Keep a yes for as long as the decision says; it is durable when this returns.

        Args:
            attempt: what was decided on, as it was dispatched.
            facts: the circumstances.
            decision: what the person said.
            uses: how often it may be used; None for any number.

        Returns:
            None where the yes is for this once: because it says so, because it is no yes, or
            because there is nothing to bind it to (``tool_run`` without a run, ``server_read_only``
            for a tool that nobody vouches for).

        Raises:
            Exhausted: there are more grants than anybody could look through.
            StoreUnavailable: it was not kept.
        """
        grant = self._made(attempt, facts, decision, uses)
        if grant is None or (uses is not None and uses < 1):
            return None
        if len(self._known) >= MAX_GRANTS:
            raise Exhausted(
                f"{MAX_GRANTS} grants hold already: revoke some with isthmus grants revoke"
            )
        await self._change(self._storage.insert(grant, self._see()))
        return grant

    def _made(
        self, attempt: Attempt, facts: Facts, decision: Decision, uses: int | None
    ) -> Grant | None:
        scope, now, until = decision.remember, self._clock(), decision.until
        if decision.verdict != "allow" or scope == "once":
            return None
        if until is None and scope == "until":
            until = now + DEFAULT_GRANT_S
        all_reading = scope == "server_read_only"
        if (until is not None and until <= now) or (scope == "tool_run" and not attempt.run):
            return None
        if all_reading and not (attempt.action == "tool.call" and is_read_only(facts)):
            return None
        shape, arguments = bind_arguments(scope, attempt, facts)
        if arguments is None:
            return None
        return Grant(
            id=new_id(self._clock),
            scope=scope,
            principal=attempt.principal,
            action=attempt.action,
            server=attempt.server,
            identity=facts.identity,
            object="" if all_reading else attempt.object,
            fingerprint="" if all_reading else facts.fingerprint,
            arguments=arguments,
            shape=shape,
            run=attempt.run if scope == "tool_run" else "",
            session=self.session if scope in SESSION_SCOPES and until is None else "",
            created=now,
            until=until,
            uses=uses,
            by=decision.by,
            assurance=decision.assurance,
        )

    async def revoke(self, id: str) -> bool:
        """End a grant; it counts no more at once, here, and within a second elsewhere.

        Returns:
            False where there is none of that name that still holds.

        Raises:
            StoreUnavailable: it is not known to have been written; here it counts no more.
        """
        known = self._known.pop(id, None)
        if known is not None:
            self._matcher.remove(known)
        return bool(await self._change(self._storage.end([id], "revoked", self._see())))

    async def narrow(
        self,
        id: str,
        *,
        until: float | None = None,
        uses: int | None = None,
        scope: Remember | None = None,
    ) -> Grant | None:
        """Put a narrower grant in the place of one: it ends sooner, or may be used less often.

        The old one ends first, so that a process that dies in between leaves none of the two.

        Args:
            id: the grant's.
            until: when it ends, in seconds since the epoch; None for no other end.
            uses: how often it may still be used; None for as often as before.
            scope: ``session`` for as long as this host runs; None for as before.

        Returns:
            The narrower one; None where none of that name holds.

        Raises:
            UsageError: it would not be narrower than it is.
            StoreUnavailable: it is not known to have been written; here the old one counts no more.
        """
        known = self._known.get(id)
        if known is None or self._over(known):
            return None
        narrower = self._narrow(known, until, uses, scope)
        if not await self.revoke(id):
            return None
        await self._change(self._storage.insert(narrower, self._see()))
        return narrower

    def _narrow(
        self, grant: Grant, until: float | None, uses: int | None, scope: Remember | None
    ) -> Grant:
        """The narrower grant.

        Raises:
            UsageError: it would not be narrower.
        """
        given = structs.replace(grant, id=new_id(self._clock))
        if until is not None:
            if until <= self._see() or (grant.until is not None and until >= grant.until):
                raise UsageError(
                    "the new end of a grant must be in the future, and before its present end"
                )
            given = structs.replace(given, until=until)
        if uses is not None:
            if uses < 1 or (grant.uses is not None and uses >= grant.uses):
                raise UsageError(
                    "the new number of uses of a grant must be less than the present one, and at least one"
                )
            given = structs.replace(given, uses=uses)
        if scope is not None:
            if scope != "session" or grant.scope not in WIDER_THAN_SESSION:
                raise UsageError(
                    f"a grant for {grant.scope!r} is not narrowed to {scope!r}: what it would be bound "
                    "to is not known any more. One that outlives the host is narrowed to 'session'; "
                    "for anything else revoke it, and the next call is asked about"
                )
            given = structs.replace(given, scope="session", session=self.session)
        if (until, uses, scope) == (None, None, None):
            raise UsageError(
                "give an end, a number of uses or a scope: nothing else narrows a grant"
            )
        return given

    def all(self) -> Sequence[Grant]:
        """Those that hold, the newest first."""
        held = [grant for grant in self._known.values() if not self._over(grant)]
        return sorted(held, key=lambda grant: grant.id, reverse=True)

    async def history(self, most: int = 1_000) -> Sequence[Grant]:
        """Those that hold and those that have ended, the newest first.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        return await self._storage.read_history(most)

    async def _change(self, work: "Awaitable[tuple[int, GrantsRead]]") -> int:
        """Change something, and know what holds now."""
        began = self._steady()
        done, found = await work
        self._learn(found)
        self._read_at = began
        return done
