"""Changes of a view's lists: announced when a list that somebody was given is really another one."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from isthmus.gateway.offers.lists import Signature, ViewLists, is_same_list
from isthmus.host.catalog.names import Viewer
from isthmus.runtime.failures import log_failure

if TYPE_CHECKING:
    from isthmus.host.host import Host

CHECK_DELAY_S = 0.05  # changes within it are looked at together

MAX_GIVEN_LISTS = 512  # lists that are compared; of older ones every change is announced

CHANGES_BY_LIST = {
    "tools/list": "notifications/tools/list_changed",
    "prompts/list": "notifications/prompts/list_changed",
    "resources/list": "notifications/resources/list_changed",
    "resources/templates/list": "notifications/resources/list_changed",
}


class ViewChanges:
    """Watches what the lists of a view are made of.

    Args:
        lists: those of the view.
        host: tells when its catalog, its policy or a tool's release is another one.
        announce: told of ``(notification, None)``.
    """

    def __init__(
        self, lists: ViewLists, host: "Host", announce: Callable[[tuple[str, None]], None]
    ) -> None:
        self._lists = lists
        self._host = host
        self._announce = announce
        self._given: dict[tuple[str, Viewer], Signature] = {}
        self._servers: frozenset[str] = frozenset()
        self._has_forgotten = False
        self._was_shared: bool | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Task[None] | None = None
        self._again = False
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        """Begin to watch."""
        parts, loop = self._host.parts, asyncio.get_running_loop()

        def tell() -> None:
            try:
                here = asyncio.get_running_loop()
            except RuntimeError:
                here = None
            if here is loop:
                self._schedule(loop)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(self._schedule, loop)

        watchers = parts.calls.pipeline.watchers, parts.servers.fingerprints.watchers
        for one in watchers:
            one.append(tell)
        self._undo = [
            parts.catalog.watch(tell),
            *(lambda one=one: one.remove(tell) for one in watchers),
        ]

    async def close(self) -> None:
        """Watch no longer."""
        undo, self._undo = self._undo, []
        for one in undo:
            one()
        if self._timer is not None:
            self._timer.cancel()
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])

    def remember(self, method: str, viewer: Viewer) -> None:
        """Somebody is given a list now; where another one was given before, that is announced."""
        signature = self._lists.sign(method, viewer)
        if not self._given:
            self._servers = frozenset(self._lists.view.servers())
        self._was_shared = self._lists.is_shared()
        before = self._given.pop((method, viewer), None)
        self._given[method, viewer] = signature
        if before is not None and not is_same_list(before, signature):
            self._announce((CHANGES_BY_LIST[method], None))
        if len(self._given) > MAX_GIVEN_LISTS:
            del self._given[next(iter(self._given))]
            self._has_forgotten = True

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._checking is not None:
            self._again = True
        elif self._timer is None:
            self._timer = loop.call_later(CHECK_DELAY_S, self._start)

    def _start(self) -> None:
        self._timer = None
        self._checking = asyncio.ensure_future(self._check())

    async def _check(self) -> None:
        """Compare what was given with what would be given now."""
        try:
            changed: set[str] = set()
            if self._has_forgotten or self._lists.is_shared() is not self._was_shared:
                changed |= {*CHANGES_BY_LIST.values()} if self._given else set()
                self._given.clear()
                self._has_forgotten = False
            servers = frozenset(self._lists.view.servers())
            if servers - self._servers:  # nobody has asked them for their lists: whoever lists does
                changed |= {CHANGES_BY_LIST[method] for method, _ in self._given}
            self._servers = servers
            for method, viewer in tuple(self._given):
                before, now = (
                    self._given.get((method, viewer)),
                    self._lists.sign(method, viewer),
                )
                if before is not None and not is_same_list(before, now):
                    self._given[method, viewer] = now
                    changed.add(CHANGES_BY_LIST[method])
                await asyncio.sleep(0)  # thousands of tools take a while
            for notification in sorted(changed):
                self._announce((notification, None))
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            log_failure("looking for changed lists of the gateway", error)
        finally:
            self._checking = None
            if self._again:
                self._again = False
                self._schedule(asyncio.get_running_loop())
