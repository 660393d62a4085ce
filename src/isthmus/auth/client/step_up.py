"""More scopes, where a request takes some that the tokens do not have.

A user is asked as long as that leads somewhere: twice at most for one operation, and no more once
an answer has brought nothing new.
"""

from isthmus.auth.client.session import AuthSession, Want
from isthmus.auth.client.tokens import Tokens
from isthmus.auth.newest import Newest
from isthmus.errors import ScopeShortfall
from isthmus.runtime.holding import Clocks

__all__ = ["StepUps"]

TRIES = 2
"""How often one operation may ask for more."""

MOST = 1000
"""Operations that are remembered."""


class StepUps:
    """Gets more scopes for the operations at one MCP server.

    Args:
        session: the tokens.
        url: the MCP server, for messages.
        tries: how often one operation may ask for more.
    """

    def __init__(self, session: AuthSession, url: str, *, tries: int = TRIES) -> None:
        self._session = session
        self._url = url
        self._most_tries = tries
        self._tries: Newest[str, int] = Newest(MOST)

    async def tokens(
        self, want: Want, clocks: Clocks | None = None, *, patient: bool = True
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
                f"{listed(needed)}, so asking the user again would change nothing"
            )
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: no more than a few
        # times, and what was tried is remembered
        if self._tries.get(want.operation, 0) >= self._most_tries:
            raise ScopeShortfall(
                f"{self._url} wants yet other scopes for {want.operation}{listed(needed)} after "
                f"{self._most_tries} attempt(s) to get them: ask whoever runs it",
                needed - before,
            )
        if patient:
            self._tries[want.operation] = self._tries.get(want.operation, 0) + 1
        newer = await self._session.renewed(want, clocks, patient=patient)
        if newer is not None and not newer.scopes - before:
            raise ScopeShortfall(
                f"{newer.issuer} granted nothing new for {want.operation}: "
                f"{self._url} wants{listed(needed)}",
                needed - newer.scopes,
            )
        return newer

    def worked(self, operation: str) -> None:
        """An operation was let in: it may ask again some day."""
        self._tries.pop(operation, None)


def listed(scopes: frozenset[str]) -> str:
    """Scopes for a message."""
    named = [scope[:80] for scope in sorted(scopes)[:20]]
    return f" ({', '.join(named)})" if named else ""
