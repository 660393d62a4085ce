"""Authorization session: the tokens of one client for one MCP server, their renewal and step-up.

One flight at a time gets new tokens, in a task of its own, and whoever needs them waits for it.
Nobody holds a lock while an MCP request is on its way, so calls run beside one another; and a
caller who is cancelled takes the flight along only when nobody else waits for it.

A :class:`TokenGrant` gets tokens: with the user (:mod:`isthmus.auth.client.grants.user`), or in one
of the ways of machines.

:class:`StepUps` gets more scopes, where a request takes some that the tokens do not have. A user is asked as long as that leads somewhere: twice at most for one operation, and no more once
an answer has brought nothing new.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any, Protocol

import msgspec

from isthmus.auth.cache import BoundedDict
from isthmus.auth.client.store.records import Tokens
from isthmus.errors import AuthRefused, ConnectionLost, IsthmusError, ScopeShortfall
from isthmus.runtime.clocks import Clocks

# Seconds before its end at which a token is renewed; a short one at 80 % of its life.
REFRESH_EARLY_S = 60.0

REFRESH_LIFE_FRACTION = 0.8

# Seconds until a renewal is tried again that failed while the token is still good.
REFRESH_RETRY_S = 10.0

MAX_STEP_UPS = 2  # how often one operation may ask for more

MAX_OPERATIONS = 1000  # operations that are remembered


class TokenDemand(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why new tokens are wanted.

    Attributes:
        before: the tokens that did not do, or None where there were none.
        scopes: what the server says a request takes; None where it did not say.
        metadata: where it says its metadata stand; None where it did not say.
        challenged: the server has refused a request; otherwise the tokens merely get old.
        more: the tokens are good, and their scopes too few.
        operation: what they are to be used for, for whoever is asked.
    """

    before: Tokens | None = None
    scopes: frozenset[str] | None = None
    metadata: str | None = None
    challenged: bool = True
    more: bool = False
    operation: str = ""


class TokenGrant(Protocol):
    """A way to get tokens for one MCP server.

    Attributes:
        asks_user: :meth:`obtain` may wait for a person.
    """

    asks_user: bool

    async def load(self) -> Tokens | None:
        """The tokens that were kept, if there are any."""
        ...

    async def refresh(self, tokens: Tokens, want: TokenDemand) -> Tokens | None:
        """Newer tokens without a person; None where that cannot be done.

        Raises:
            IsthmusError: it could be done, and it went wrong this time.
        """
        ...

    async def obtain(self, want: TokenDemand) -> Tokens:
        """New tokens, and keep them.

        Raises:
            AuthError: they are not to be had.
        """
        ...

    async def close(self) -> None:
        """Close connections; a later call opens new ones."""
        ...


class TokenFlight:
    """One attempt to get tokens, and how many wait for it."""

    def __init__(self, work: Coroutine[Any, Any, None], *, asks_user: bool) -> None:
        self.task = asyncio.get_running_loop().create_task(work)
        self.asks_user = asks_user
        self._waiters = 0

    async def join(self, clocks: Clocks | None) -> None:
        """Wait for its end; it ends with the last one who waits.

        Args:
            clocks: stand still meanwhile, if a person may be waited for.
        """
        self._waiters += 1
        try:
            with clocks.held() if clocks is not None and self.asks_user else nullcontext():
                await asyncio.wait((self.task,))
        except asyncio.CancelledError:
            if self._waiters == 1:
                self.task.cancel()
                await asyncio.wait((self.task,))  # it may be listening for a browser
            raise
        finally:
            self._waiters -= 1
        if not self.task.cancelled():
            self.task.result()


class AuthSession:
    """The tokens of a client at one MCP server, and their renewal.

    Args:
        grant: gets tokens.
        now: the time in seconds since the epoch.

    Attributes:
        tokens: the current ones, or None.
        untried: how the current ones were had, ``"refreshed"`` or ``"obtained"``, as long as the
            server has not let in a request with them; empty after that.
    """

    def __init__(self, grant: TokenGrant, *, now: Callable[[], float] = time.time) -> None:
        self.tokens: Tokens | None = None
        self.untried = ""
        self._grant = grant
        self._now = now
        self._loaded = False
        self._closed = False
        self._flight: TokenFlight | None = None
        self._not_before = float("-inf")

    @property
    def fresh(self) -> bool:
        """Whether the tokens at hand can be sent as they are."""
        return self._loaded and (self.tokens is None or not self._is_due(self.tokens))

    async def ready(self, clocks: Clocks | None = None) -> Tokens | None:
        """The tokens to send, renewed where their end is near; None where there are none.

        Raises:
            IsthmusError: they are over, and could not be renewed this time.
        """
        if not self._loaded:
            await self._join_flight(self._load, clocks)
        waits = self._flight is not None and self._flight.asks_user  # whoever must, waits later
        if self.tokens is not None and self._is_due(self.tokens) and not waits:
            await self._join_flight(self._renew_in_time, clocks)
        return self.tokens

    async def renewed(
        self, want: TokenDemand, clocks: Clocks | None = None, *, patient: bool = True
    ) -> Tokens | None:
        """Other tokens than those that did not do.

        Args:
            want: what for.
            clocks: stand still while a person is waited for.
            patient: a person may be waited for.

        Returns:
            None where only a person could help, and nobody may be waited for.

        Raises:
            AuthError: they are not to be had.
        """
        while self._flight is not None:
            if self._flight.asks_user and not patient:
                return None
            await self._flight.join(clocks)
        if not self._has_other_tokens(want):
            asks_user = self._grant.asks_user and patient
            may = patient or not self._grant.asks_user
            await self._join_flight(lambda: self._renew(want, may=may), clocks, asks_user=asks_user)
        return self.tokens if self._has_other_tokens(want) else None

    def _has_other_tokens(self, want: TokenDemand) -> bool:
        """Whether the tokens at hand are others than those that did not do."""
        return self.tokens is not None and self.tokens is not want.before

    def worked(self, tokens: Tokens) -> None:
        """A request with these tokens was let in."""
        if tokens is self.tokens:
            self.untried = ""

    def forget(self) -> None:
        """Have no tokens any more."""
        self.tokens, self._loaded = None, True

    async def close(self) -> None:
        """End what is under way, and close connections."""
        self._closed = True
        flight = self._flight
        if flight is not None:
            flight.task.cancel()
            await asyncio.wait((flight.task,))
        await self._grant.close()

    # Flights

    async def _join_flight(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        clocks: Clocks | None,
        *,
        asks_user: bool = False,
    ) -> None:
        """Begin a flight and wait for it, or for the one that is under way."""
        while True:
            if self._closed:
                raise ConnectionLost("the client was closed while it got authorization")
            if self._flight is None:
                self._flight = TokenFlight(work(), asks_user=asks_user)
                self._flight.task.add_done_callback(self._end_flight)
            flight = self._flight
            await flight.join(clocks)
            if not flight.task.cancelled():  # by the last one who had waited for it
                return

    def _end_flight(self, task: asyncio.Task[None]) -> None:
        self._flight = None
        if not task.cancelled():
            task.exception()  # seen, though nobody may be left who waits for it

    async def _load(self) -> None:
        self.tokens = await self._grant.load()
        self._loaded = True

    async def _renew_in_time(self) -> None:
        """Renew tokens whose end is near; a failure is one only once they are over."""
        tokens = self.tokens
        if tokens is None:
            return
        try:
            await self._refresh(tokens, TokenDemand(before=tokens, challenged=False))
        except IsthmusError:
            if self._is_over(tokens):
                raise
            self._not_before = self._now() + REFRESH_RETRY_S

    async def _renew(self, want: TokenDemand, *, may: bool) -> None:
        """Get other tokens: by themselves if that can be, or else with the user."""
        tokens = self.tokens
        if tokens is not None and not want.more and self.untried == "obtained":
            raise AuthRefused(
                f"the server does not let in a token that {tokens.issuer} has just issued for "
                f"{tokens.resource}: do the two agree on who issues, and for which URL?"
            )
        old = None if want.more or self.untried else tokens
        if old is not None and await self._refresh(old, want):
            return
        if may:
            self.tokens, self.untried = await self._grant.obtain(want), "obtained"

    async def _refresh(self, tokens: Tokens, want: TokenDemand) -> bool:
        """Refresh; False where that leads nowhere."""
        newer = await self._grant.refresh(tokens, want)
        if newer is not None:
            self.tokens, self.untried = newer, "refreshed"
        elif want.challenged or self._is_over(tokens):
            self.tokens = None
        else:  # good for a while, and not to be tried again
            self.tokens = msgspec.structs.replace(tokens, refresh=None)
        return newer is not None

    # Time

    def _is_due(self, tokens: Tokens) -> bool:
        if tokens.expires_at is None or (tokens.refresh is None and self._grant.asks_user):
            return False  # the server says when they do no more
        now, life = self._now(), tokens.expires_at - tokens.issued_at
        due = max(
            tokens.expires_at - REFRESH_EARLY_S, tokens.issued_at + REFRESH_LIFE_FRACTION * life
        )
        return now >= max(due, self._not_before)

    def _is_over(self, tokens: Tokens) -> bool:
        return tokens.expires_at is not None and self._now() >= tokens.expires_at


class StepUps:
    """Gets more scopes for the operations at one MCP server.

    Args:
        session: the tokens.
        url: the MCP server, for messages.
        tries: how often one operation may ask for more.
    """

    def __init__(self, session: AuthSession, url: str, *, tries: int = MAX_STEP_UPS) -> None:
        self._session = session
        self._url = url
        self._most_tries = tries
        self._tries: BoundedDict[str, int] = BoundedDict(MAX_OPERATIONS)

    async def tokens(
        self, want: TokenDemand, clocks: Clocks | None = None, *, patient: bool = True
    ) -> Tokens | None:
        """Tokens that have the scopes wanted.

        Returns:
            None where only a person could help, and nobody may be waited for.

        Raises:
            ScopeShortfall: they are not to be had.
            AuthError: something else went wrong.
        """
        needed = want.scopes or frozenset()
        current = self._session.tokens
        if current is not None and current is not want.before and needed <= current.scopes:
            return current  # somebody else has asked for them meanwhile
        before = current.scopes if current is not None else frozenset()
        if needed <= before:
            raise ScopeShortfall(
                f"{self._url} refuses {want.operation}: its scopes were granted already"
                f"{format_scopes(needed)}, so asking the user again would change nothing"
            )
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: no more than a few
        # times, and what was tried is remembered
        if self._tries.get(want.operation, 0) >= self._most_tries:
            raise ScopeShortfall(
                f"{self._url} wants yet other scopes for {want.operation}{format_scopes(needed)} after "
                f"{self._most_tries} attempt(s) to get them: ask whoever runs it",
                needed - before,
            )
        if patient:
            self._tries[want.operation] = self._tries.get(want.operation, 0) + 1
        newer = await self._session.renewed(want, clocks, patient=patient)
        if newer is not None and not newer.scopes - before:
            raise ScopeShortfall(
                f"{newer.issuer} granted nothing new for {want.operation}: "
                f"{self._url} wants{format_scopes(needed)}",
                needed - newer.scopes,
            )
        return newer

    def worked(self, operation: str) -> None:
        """An operation was let in: it may ask again some day."""
        self._tries.pop(operation, None)


def format_scopes(scopes: frozenset[str]) -> str:
    """Scopes for a message."""
    named = [scope[:80] for scope in sorted(scopes)[:20]]
    return f" ({', '.join(named)})" if named else ""
