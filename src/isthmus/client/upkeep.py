"""Upkeep of a client's connection: pings, changes, roots and log level, in each of its sessions."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from isthmus.client.connection import Connection
from isthmus.client.features.answering import Answering
from isthmus.client.features.roots import watch_for_changes
from isthmus.client.notifications import Notifications
from isthmus.core.negotiation import states_facts
from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_warning
from isthmus.runtime.pings import keep_pinging
from isthmus.wire import (
    DiscoverParams,
    LogLevel,
    PingParams,
    RootsListChangedParams,
    SetLevelParams,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Upkeep:
    """Work beside the calls of one connection, begun anew with every session.

    Args:
        connection: carries the messages.
        notifications: hears the server.
        answering: has the roots.
        log_level: the level that the program asked for; None where it did not.

    Attributes:
        on_restored: called when a new session has begun, or None.
    """

    def __init__(
        self,
        connection: Connection,
        notifications: Notifications,
        answering: Answering,
        log_level: LogLevel | None,
    ) -> None:
        self.on_restored: Callable[[], None] | None = None
        self._connection = connection
        self._notifications = notifications
        self._answering = answering
        self._log_level = log_level

    def start(self) -> None:
        """Start what the program wants: streams of changes, pings, a watch on the roots."""
        connection, settings = self._connection, self._connection.settings
        start = self._notifications.start
        if self._notifications.attends and connection.meta is not UNSET:
            wanted = self._notifications.make_list_filter(
                connection.require_agreement().capabilities
            )
            if wanted is not None:
                start(self._notifications.attend(connection, wanted))
        every, misses = settings.pings
        if every is not None:
            start(keep_pinging(connection.live(), self.ping, every, misses))
        if settings.watch_roots is not None and self._answering.roots is not None:
            watch = watch_for_changes(
                self._answering, settings.watch_roots, self.tell_roots_changed
            )
            start(watch)

    async def restore(self) -> None:
        """Make of a new session what the one before had become."""
        self.start()
        try:
            await self.send_log_level()
            await self._notifications.resume(self._connection)
        except IsthmusError as error:
            log_warning("a new session is not what the one before was: %s", error)
        if self.on_restored is not None:
            self.on_restored()

    async def ping(self, timeout: float | None) -> None:
        """``ping``, or since 2026-07-28 ``server/discover``."""
        connection = self._connection
        if states_facts(connection.require_agreement().revision):
            params = DiscoverParams(meta=connection.meta)
            await connection.ask("server/discover", params, timeout=timeout)
        else:
            await connection.ask("ping", PingParams(), timeout=timeout)

    async def set_log_level(self, level: LogLevel) -> None:
        """Say which log messages are wanted from now on.

        Raises:
            CapabilityMissing: the server sends none.
        """
        connection = self._connection
        connection.require("logging", "logging/setLevel")
        self._log_level = level
        connection.state_facts(level)
        if connection.meta is UNSET:  # else every request says it from now on
            await connection.ask("logging/setLevel", SetLevelParams(level=level))

    async def send_log_level(self) -> None:
        """Say the level that the program asked for, where the server sends log messages."""
        level = self._log_level
        if (
            level is not None
            and self._connection.require_agreement().capabilities.logging is not UNSET
        ):
            await self.set_log_level(level)

    async def tell_roots_changed(self) -> None:
        """``notifications/roots/list_changed``, up to 2025-11-25."""
        # spec 2025-11-25 client/roots#root-list-changes: clients that declared listChanged MUST
        # send it; since 2026-07-28 there is no such notification
        method = "notifications/roots/list_changed"
        if self._connection.require_agreement().revision.allows("client", method):
            await self._connection.live().note(method, RootsListChangedParams())
