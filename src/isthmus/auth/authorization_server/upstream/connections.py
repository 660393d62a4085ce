"""Upstream tokens in use: kept for everybody, refreshed once for all who wait, revoked when they are over."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from weakref import WeakValueDictionary

import msgspec

from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.storage.store import AuthStore
from isthmus.auth.authorization_server.upstream import token_rows
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.authorization_server.upstream.identity import is_token_alive
from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.authorization_server.upstream.token_rows import (
    EXPIRY_MARGIN_S,
    UpstreamRow,
    UpstreamTokens,
)
from isthmus.auth.cache import BoundedDict, SingleFlight
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError

RENEWAL_TURN_S = 60.0  # then another process tries it
RENEWAL_POLL_S = 0.2  # between two looks at whether another process is done
CONNECT_POLL_S = 1.0  # between two looks at whether another process has connected an account
MAX_REMEMBERED_ROWS = 10_000

FOREVER = float("inf")


class UpstreamConnections:
    """All upstream tokens of one authorization server.

    Args:
        store: where they are kept.
        providers: whose they are.
    """

    def __init__(self, store: AuthStore, providers: Iterable[Provider]) -> None:
        self._store = store
        self.providers: Mapping[str, Provider] = {p.name: p for p in providers}
        self._flights: SingleFlight[UpstreamRow] = SingleFlight()
        self._good: BoundedDict[str, float] = BoundedDict(MAX_REMEMBERED_ROWS)
        self._ending: set[asyncio.Task[None]] = set()
        self._added: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    async def add(
        self, id: str, user_id: str, tokens: UpstreamTokens, *, waits: bool = False
    ) -> None:
        """Keep tokens, in the place of those that were under the same id."""

        def work(records: Records) -> list[UpstreamRow]:
            gone = token_rows.purge_rows(records)
            token_rows.add_row(records, id, user_id, tokens, waits=waits)
            return gone

        self._good.pop(id, None)
        self._revoke_later(await self._store.write(work))
        if (added := self._added.pop(id, None)) is not None:
            added.set()

    async def get(self, id: str) -> UpstreamRow | None:
        """The tokens under an id, good or not."""
        return await self._store.read(lambda records: token_rows.load_row(records, id))

    async def wait_until_added(self, id: str, seconds: float) -> bool:
        """Wait until there are tokens under an id, kept here or by another process; False if not."""
        added = self._added.setdefault(id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                while await self.get(id) is None:
                    try:
                        async with asyncio.timeout(CONNECT_POLL_S):
                            await added.wait()
                    except TimeoutError:
                        continue
        except TimeoutError:
            return False
        return True

    async def user_name(self, user_id: str, provider: str) -> str:
        """A user's name at a provider; empty where nobody knows."""
        return await self._store.read(
            lambda records: token_rows.load_user_name(records, user_id, provider)
        )

    async def stands(self, id: str) -> bool:
        """Whether tokens can still be used; those that expired are renewed for that.

        Where it was settled a moment ago, and until when, nothing is asked.

        Raises:
            UpstreamUnavailable: the provider has to be asked, and does not answer.
        """
        # spec 2025-03-26 basic/authorization#session-binding-requirements: the status of the third
        # party's token MUST be validated before ours is honoured
        good_until = self._good.get(id)
        if good_until is not None and self._now(None) < good_until:
            return True
        try:
            await self.usable(id)
        except UpstreamDenied:
            return False
        return True

    async def usable(self, id: str) -> UpstreamRow:
        """Tokens with an access token that is good.

        Raises:
            UpstreamDenied: there are none any more; grants that stood on them are revoked.
            UpstreamUnavailable: the provider has to be asked, and does not answer.
        """
        return await self._flights.run(id, lambda: self._load_usable(id, None))

    async def instead(self, id: str, refused: Secret) -> UpstreamRow:
        """Tokens with another access token than one that the provider refuses.

        Raises:
            UpstreamDenied, UpstreamUnavailable: as :meth:`usable`.
        """
        return await self._flights.run((id, refused), lambda: self._load_usable(id, refused))

    async def end(self, id: str) -> bool:
        """Forget tokens, revoke the grants on them, and take them back at the provider.

        Returns:
            Whether there were any.
        """

        def work(records: Records) -> tuple[bool, UpstreamRow | None]:
            token_rows.revoke_dependent_grants(records, id)
            there = token_rows.load_row(records, id) is not None
            return there, token_rows.remove_row(records, id)

        self._good.pop(id, None)
        there, gone = await self._store.write(work)
        self._revoke_later([gone] if gone is not None else [])
        return there

    async def sweep(self) -> None:
        """Forget what no grant stands on any more, and take it back at the provider."""
        self._revoke_later(await self._store.write(token_rows.purge_rows))

    async def settled(self) -> None:
        """Wait until what was to be revoked at providers is, or could not be."""
        await asyncio.gather(*self._ending)

    async def close(self) -> None:
        """Finish what was begun, and close the connections to the providers."""
        await self.settled()
        for provider in self.providers.values():
            await provider.close()

    # One row at a time

    async def _load_usable(self, id: str, refused: Secret | None) -> UpstreamRow:
        row = await self.get(id)
        if row is None:
            self._good.pop(id, None)
            raise UpstreamDenied("there is no login at the provider any more")
        provider = self.providers.get(row.provider)
        if provider is None:
            raise UsageError(
                f"tokens of the provider {row.provider!r} are kept, and it is not configured"
            )
        try:
            return await self._judge_row(provider, row, refused)
        except UpstreamDenied:
            await self._drop_row(row)
            raise

    async def _judge_row(
        self, provider: Provider, row: UpstreamRow, refused: Secret | None
    ) -> UpstreamRow:
        now, tokens = provider.clock(), row.tokens
        if tokens.over(now):
            raise UpstreamDenied(f"the login at {provider.title} is over")
        if tokens.stale(now):
            return await self._renew_row(provider, row)
        if refused is not None and tokens.access == refused:
            return await self._replace_refused(provider, row)
        interval = provider.check_interval
        if interval is not None and now - tokens.checked_at >= interval:
            row = await self._check_row(provider, row)
        self._remember_good(provider, row)
        return row

    async def _replace_refused(self, provider: Provider, row: UpstreamRow) -> UpstreamRow:
        """Renew or check tokens that the API refuses."""
        if row.tokens.refresh is not None:
            return await self._renew_row(provider, row)
        return await self._check_row(provider, row)

    async def _check_row(self, provider: Provider, row: UpstreamRow) -> UpstreamRow:
        """Ask the provider whether it still honours its token."""
        if not await is_token_alive(provider, row.tokens):
            if row.tokens.refresh is None:
                raise UpstreamDenied(f"{provider.title} does not honour its token any more")
            return await self._renew_row(provider, row)
        return await self._store_row(
            provider, row, msgspec.structs.replace(row.tokens, checked_at=provider.clock())
        )

    async def _renew_row(self, provider: Provider, row: UpstreamRow) -> UpstreamRow:
        """Get the next tokens, or wait for the process that is getting them."""
        while not await self._store.write(
            lambda records: token_rows.take_renewal_turn(records, row, RENEWAL_TURN_S)
        ):
            await asyncio.sleep(RENEWAL_POLL_S)
            now = await self.get(row.id)
            if now is None:
                raise UpstreamDenied(f"the login at {provider.title} is over")
            if now.version != row.version:
                self._remember_good(provider, now)
                return now
        try:
            tokens = await provider.renew(row.tokens)
        except UpstreamUnavailable:
            await self._store.write(lambda records: token_rows.end_renewal_turn(records, row))
            raise
        return await self._store_row(provider, row, tokens)

    async def _store_row(
        self, provider: Provider, row: UpstreamRow, tokens: UpstreamTokens
    ) -> UpstreamRow:
        if not await self._store.write(
            lambda records: token_rows.replace_tokens(records, row, tokens)
        ):
            now = await self.get(row.id)
            if now is None:  # it was taken away meanwhile: what we got goes, too
                self._revoke_later([msgspec.structs.replace(row, tokens=tokens)])
                raise UpstreamDenied(f"the login at {provider.title} is over")
            return now
        row = msgspec.structs.replace(row, tokens=tokens, version=row.version + 1)  # as SQL has it
        self._remember_good(provider, row)
        return row

    async def _drop_row(self, row: UpstreamRow) -> None:
        """The provider wants its user to log in again: ours has to, too."""

        def work(records: Records) -> int:
            now = token_rows.load_row(records, row.id)
            if now is not None and now.version != row.version:
                return 0  # somebody logged in again meanwhile
            token_rows.remove_row(records, row.id)
            return token_rows.revoke_dependent_grants(records, row.id)

        self._good.pop(row.id, None)
        count = await self._store.write(work)
        logging.getLogger("isthmus.auth").info(
            "the provider %s ended a login: %d grants revoked", row.provider, count
        )

    def _remember_good(self, provider: Provider, row: UpstreamRow) -> None:
        """Remember until when a row is good."""
        tokens, interval = row.tokens, provider.check_interval
        until = min(
            FOREVER if tokens.expires_at is None else tokens.expires_at - EXPIRY_MARGIN_S,
            FOREVER if tokens.ends_at is None else tokens.ends_at,
            FOREVER if interval is None else tokens.checked_at + interval,
        )
        self._good[row.id] = until

    def _now(self, provider: Provider | None) -> float:
        some = provider or next(iter(self.providers.values()))
        return some.clock()

    # What is over

    def _revoke_later(self, gone: Iterable[UpstreamRow]) -> None:
        """Take tokens back at their providers, without anybody waiting for it."""
        for row in gone:
            provider = self.providers.get(row.provider)
            if provider is not None:
                task = asyncio.get_running_loop().create_task(revoke_tokens(provider, row.tokens))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)


class StoredTokenSource:
    """The tokens of one row, for requests to the provider's API.

    Args:
        connections: what keeps them.
        id: the row.
    """

    def __init__(self, connections: UpstreamConnections, id: str) -> None:
        self._connections = connections
        self._id = id

    async def current(self) -> Secret:
        """The access token that is good now."""
        return (await self._connections.usable(self._id)).tokens.access

    async def instead(self, refused: Secret) -> Secret | None:
        """Another one, as the provider refuses this; None where it gave no other."""
        row = await self._connections.instead(self._id, refused)
        return None if row.tokens.access == refused else row.tokens.access


async def revoke_tokens(provider: Provider, tokens: UpstreamTokens) -> None:
    """Take tokens back; that it did not work is logged."""
    try:
        await provider.revoke(tokens)
    except UpstreamUnavailable:
        logging.getLogger("isthmus.auth").warning(
            "the provider %s did not take back tokens that are not used any more", provider.name
        )
