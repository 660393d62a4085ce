"""Store in an SQLite file."""

from typing import Any


class SqliteStore:
    """A store in an SQLite file.

    Args:
        url: where it is.
    """

    name: Any
    kv: Any
    log: Any
    bus: Any
    meter: Any

    def __init__(self, url: str) -> None:
        self.name = url

    async def open(self, *, durable: bool = False) -> None:
        """As of a store."""
        raise NotImplementedError

    async def close(self) -> None:
        """As of a store."""
