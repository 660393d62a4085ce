"""Transactions of the authorization server: Authlib serves one request in one, and what is over is deleted."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from isthmus.auth.arguments import missing_library_error
from isthmus.auth.authorization_server.core.lookups import Approval, LookupResult
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import Keyring
from isthmus.auth.authorization_server.storage.records import (
    CLEANUP_BATCH_ROWS,
    Records,
    delete_expired,
)

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.oauth_core import OAuthCore
    from isthmus.auth.authorization_server.storage.store import AuthStore

T = TypeVar("T")

HOUSEKEEPING_INTERVAL_S = 300.0
MAX_CLEANUP_ROUNDS = 20  # so that nobody waits long for one


class OAuthTransactions:
    """Has Authlib do something in a transaction of the store, and keeps house before it.

    Args:
        settings: what requests are judged by.
        store: where everything is kept.
        keyring: signs tokens.
        clock: says the seconds since the epoch.
        sweep: ends logins at providers on which no grant stands any more.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: "AuthStore",
        keyring: Keyring,
        *,
        clock: Callable[[], float],
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._sweep = sweep
        self._tidied = float("-inf")

    async def write(
        self,
        work: "Callable[[OAuthCore], T]",
        found: LookupResult,
        approval: Approval | None = None,
    ) -> T:
        """Do something in one transaction: what it answers is committed.

        Args:
            work: what to do.
            found: what was looked up before.
            approval: what somebody said yes to.

        Raises:
            UsageError: Authlib is not installed.
        """
        in_store = self._bind(work, found, approval)
        await self._keep_house()  # before, so that nothing can go wrong after what was committed
        return await self._store.write(in_store)

    async def read(self, work: "Callable[[OAuthCore], T]", found: LookupResult) -> T:
        """As :meth:`write`, for what changes nothing."""
        return await self._store.read(self._bind(work, found, None))

    def _bind(
        self, work: "Callable[[OAuthCore], T]", found: LookupResult, approval: Approval | None
    ) -> Callable[[Records], T]:
        """Work with an :class:`OAuthCore`, as work for the store."""
        try:
            from isthmus.auth.authorization_server.core.grants import register_grants
            from isthmus.auth.authorization_server.core.oauth_core import OAuthCore
        except ImportError as error:
            raise missing_library_error("An authorization server", error) from error

        def run(records: Records) -> T:
            core = OAuthCore(self._settings, self._keyring, records, found, approval)
            register_grants(core)
            return work(core)

        return run

    async def _keep_house(self) -> None:
        now = self._clock()
        if now - self._tidied <= HOUSEKEEPING_INTERVAL_S:
            return
        self._tidied = now
        for _ in range(MAX_CLEANUP_ROUNDS):
            if await self._store.write(self._tidy) < CLEANUP_BATCH_ROWS:
                break
        await self._sweep()

    def _tidy(self, records: Records) -> int:
        self._keyring.retire(records)
        return delete_expired(records)
