"""Completion while somebody types: debounced, and answered from what is known."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from isthmus.wire import Completion

AskCompletion: TypeAlias = Callable[[str, Mapping[str, str] | None], Awaitable[Completion]]


class Completer:
    """Completions for one argument, asked for while it is being typed; made by ``client.completer``.

    Example::

        completer = client.completer(PromptReference(name="trip"), "city")
        found = await completer("par")
        if found is not None:  # nobody has typed on meanwhile
            show(found.values)

    Args:
        ask: asks the server.
        delay: seconds without another keystroke before it is asked.
        ttl: seconds that an answer is good for.
        room: answers that are kept.
        clock: gives seconds that never go back.
    """

    def __init__(
        self,
        ask: AskCompletion,
        *,
        delay: float = 0.15,
        ttl: float = 60.0,
        room: int = 200,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._delay = delay
        self._ttl = ttl
        self._room = room
        self._clock = clock
        self._known: OrderedDict[object, tuple[float, Completion]] = OrderedDict()
        self._latest: asyncio.Task[Completion] | None = None

    async def __call__(
        self, value: str, context: Mapping[str, str] | None = None
    ) -> Completion | None:
        """What might go on from here; None where a later call has taken over.

        Args:
            value: what has been typed.
            context: what the other blanks hold already.

        Raises:
            Refused, CallTimedOut, ConnectionLost: as it went.
        """
        # spec 2026-07-28 server/utilities/completion#implementation-considerations: clients
        # SHOULD debounce rapid requests, and cache results where appropriate
        overtaken, self._latest = self._latest, None
        if overtaken is not None:
            overtaken.cancel()
        key = value, frozenset((context or {}).items())
        known = self._known.get(key)
        if known is not None and self._clock() < known[0]:
            return known[1]
        task = asyncio.ensure_future(self._later(value, context))
        self._latest = task
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            return None
        if self._latest is task:
            self._latest = None
        try:
            found = task.result()
        finally:
            del task  # which keeps what is raised, and so would this frame
        self._keep(key, found)
        return found

    async def _later(self, value: str, context: Mapping[str, str] | None) -> Completion:
        await asyncio.sleep(self._delay)
        return await self._ask(value, context)

    def _keep(self, key: object, found: Completion) -> None:
        self._known[key] = self._clock() + self._ttl, found
        self._known.move_to_end(key)
        while len(self._known) > self._room:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Drop the kept answers, so that the server is asked anew."""
        self._known.clear()
