"""Updates of resources: the subscriptions at servers that the clients of a gateway share.

A server is asked once for a resource, however many clients want to hear of it, in the way that its revision
has. Where the connection is lost it is asked again, and as nobody knows what has changed meanwhile, the
clients are told once that something may have.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from isthmus.errors import IsthmusError, Refused

if TYPE_CHECKING:
    from isthmus.host.host import Host

FIRST_REOPEN_S = 0.25
MAX_REOPEN_S = 30.0
OPEN_PATIENCE_S = 5.0  # a client that subscribes waits so long for the server behind

FollowKey = tuple[str, str, str]
"""A server, the isolation key of a connection to it, and a resource as the server spells it."""


class FollowedResource:
    """One resource that clients want to hear of.

    Args:
        host: reaches its server.
        key: says which.
    """

    def __init__(self, host: "Host", key: FollowKey) -> None:
        self._host = host
        self._server, self._isolation, self._uri = key
        self.hearers: dict[object, tuple[int, Callable[[], None]]] = {}
        self._opened = asyncio.Event()
        self.refusal: Refused | None = None
        self.task = asyncio.ensure_future(self._follow())

    async def wait_until_open(self) -> None:
        """Wait for the first answer of the server, and no longer than a while.

        Raises:
            Refused: the server has no such resource, or tells nobody of it.
        """
        try:
            async with asyncio.timeout(OPEN_PATIENCE_S):
                await self._opened.wait()
        except TimeoutError:
            return  # it is asked on
        if self.refusal is not None:
            raise Refused(self.refusal.code, self.refusal.message, self.refusal.data)

    async def _follow(self) -> None:
        wait, lost = FIRST_REOPEN_S, False
        while True:
            try:
                supervisor = self._host.parts.supervisor
                async with supervisor.use(self._server, self._isolation, again=True) as client:
                    pass  # what is heard keeps no server from being stopped
                async with client.listen(uris=[self._uri]) as changes:
                    self._check_granted(changes.granted.resource_subscriptions)
                    self._opened.set()
                    if lost:
                        self._tell()
                    wait, lost = FIRST_REOPEN_S, False
                    async for _ in changes:
                        self._tell()
            except Refused as error:
                self.refusal = None if self._opened.is_set() else error
                if self.refusal is not None:
                    self._opened.set()
                    return
            except IsthmusError:
                pass  # its state is told elsewhere
            self._opened.set()
            lost = True
            await asyncio.sleep(wait)
            wait = min(2 * wait, MAX_REOPEN_S)

    def _check_granted(self, uris: object) -> None:
        """See that the server has agreed to tell.

        Raises:
            Refused: it has not.
        """
        if not uris or uris is UNSET:
            raise Refused(-32602, f"{self._server} tells nobody of {self._uri}", None)

    def _tell(self) -> None:
        for _, hear in tuple(self.hearers.values()):
            hear()


class ResourceUpdates:
    """The resources that clients of a gateway want to hear of.

    Args:
        host: reaches the servers.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._followed: dict[FollowKey, FollowedResource] = {}

    def __len__(self) -> int:
        return len(self._followed)

    async def join(self, key: FollowKey, who: object, hear: Callable[[], None]) -> None:
        """Have somebody hear of a resource; counted, if they are told to several times.

        Args:
            key: the resource.
            who: hears.
            hear: tells them.

        Raises:
            Refused: the server refuses.
        """
        followed = self._followed.get(key)
        if followed is None or followed.task.done():
            followed = self._followed[key] = FollowedResource(self._host, key)
        count, _ = followed.hearers.get(who, (0, hear))
        followed.hearers[who] = count + 1, hear
        try:
            await followed.wait_until_open()
        except BaseException:
            self.leave(key, who)
            raise

    def leave(self, key: FollowKey, who: object) -> None:
        """Have somebody hear of it no longer; the server is told when nobody does."""
        followed = self._followed.get(key)
        if followed is None or who not in followed.hearers:
            return
        count, hear = followed.hearers.pop(who)
        if count > 1:
            followed.hearers[who] = count - 1, hear
        if not followed.hearers:
            del self._followed[key]
            followed.task.cancel()

    async def close(self) -> None:
        """Hear of nothing any more."""
        tasks = [one.task for one in self._followed.values()]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
