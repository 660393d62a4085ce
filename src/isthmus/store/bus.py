"""Bus: publish and subscribe between processes. What is published reaches who listens now, or nobody.

A bus keeps nothing and promises nothing: a message may be lost while the way to the engine is
interrupted. Whoever subscribed is told afterwards that there was a gap, and looks at what is stored.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from isthmus.runtime.failures import log_failure

Hear = Callable[[bytes], None]
"""Called on the event loop with each message of a channel, in the order of each publisher."""

Unsubscribe = Callable[[], None]
"""Ends a subscription; safe to call twice."""


class Bus(Protocol):
    """Message bus for all processes that listen; one in memory is :class:`MemoryBus`."""

    async def publish(self, channel: str, message: bytes) -> bool:
        """Send a message to all who listen to a channel, this process included.

        Args:
            channel: name of the channel.
            message: the message.

        Returns:
            False where it is known that nobody listens; True where somebody may.

        Raises:
            StoreUnavailable: it could not be sent.
        """
        ...

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """Listen to a channel, from the moment on at which this returns.

        Args:
            channel: name of the channel.
            hear: is called with each message.

        Returns:
            Ends the subscription when it is called.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        ...

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """Call ``callback`` whenever messages may have been lost, once they arrive again.

        Args:
            callback: called without arguments.

        Returns:
            Ends that when it is called.
        """
        ...


class MemoryBus:
    """A bus of this process: for one node, and for several in one event loop."""

    def __init__(self) -> None:
        self._channels: dict[str, dict[object, Hear]] = {}
        self._gaps: dict[object, Callable[[], None]] = {}

    async def publish(self, channel: str, message: bytes) -> bool:
        """Send a message to all who listen to a channel; see :meth:`Bus.publish`.

        Args:
            channel: name of the channel.
            message: the message.

        Returns:
            False where nobody listens.
        """
        listeners = self._channels.get(channel)
        if not listeners:
            return False
        loop = asyncio.get_running_loop()
        for key in listeners:
            loop.call_soon(self._deliver, channel, key, message)
        return True

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """Listen to a channel; see :meth:`Bus.subscribe`.

        Args:
            channel: name of the channel.
            hear: is called with each message.

        Returns:
            Ends the subscription when it is called.
        """
        key = object()
        self._channels.setdefault(channel, {})[key] = hear

        def unsubscribe() -> None:
            listeners = self._channels.get(channel, {})
            listeners.pop(key, None)
            if not listeners:
                self._channels.pop(channel, None)

        return unsubscribe

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """Call ``callback`` when messages were lost; a bus in memory loses none by itself.

        Args:
            callback: called without arguments.
        """
        key = object()
        self._gaps[key] = callback
        return lambda: self._gaps.pop(key, None) and None

    def report_gap(self) -> None:
        """Call the functions of :meth:`on_gap`: messages may have been lost."""
        for callback in tuple(self._gaps.values()):
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - one listener's fault is not another's
                log_failure("a listener for gaps", error)

    def _deliver(self, channel: str, key: object, message: bytes) -> None:
        hear = self._channels.get(channel, {}).get(key)
        if hear is None:  # the subscription ended meanwhile
            return
        try:
            hear(message)
        except Exception as error:  # noqa: BLE001 - one listener's fault is not another's
            log_failure(f"a listener of {channel}", error)
