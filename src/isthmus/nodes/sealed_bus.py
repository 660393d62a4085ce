"""Bus whose messages are sealed: only nodes that share the secret can write or read them.

What nodes tell each other makes them act: a message posted at one is served by another as its owner's.
So whoever can write to the store, and has not the secret, must not be able to say any of it.
"""

import os
from collections.abc import Callable, Sequence
from hmac import digest

from isthmus.core.sealing import NONCE_BYTES, SealBroken, decrypt, encrypt
from isthmus.runtime.failures import log_warning
from isthmus.store.bus import Bus, Hear, Unsubscribe

MESSAGE_KIND = b"\x31"  # of what is sealed, beside journals and the ids of sessions


class SealedBus:
    """A bus for the nodes that have a secret in common.

    Args:
        bus: carries the messages.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._keys: list[bytes] = []
        self._warned = False

    def use_secrets(self, secrets: Sequence[bytes]) -> None:
        """Seal with the first of these secrets, and open what any of them has sealed."""
        self._keys = [digest(secret, b"isthmus bus", "sha256") for secret in secrets]

    async def publish(self, channel: str, message: bytes) -> bool:
        """As :meth:`~isthmus.store.bus.Bus.publish`."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = encrypt(MESSAGE_KIND, message, self._keys, nonce, channel.encode())
        return await self._bus.publish(channel, sealed)

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.subscribe`; what does not open is dropped."""
        binding = channel.encode()

        def open_and_hear(sealed: bytes) -> None:
            try:
                message = decrypt(MESSAGE_KIND, sealed, self._keys, binding)
            except SealBroken as error:
                self._warn(channel, error)
                return
            hear(message)

        return await self._bus.subscribe(channel, open_and_hear)

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.on_gap`."""
        return self._bus.on_gap(callback)

    def _warn(self, channel: str, error: SealBroken) -> None:
        """Log the first message that does not open: others may be many."""
        if not self._warned:
            self._warned = True
            log_warning("a message on %s is dropped: %s", channel, error.reason)
