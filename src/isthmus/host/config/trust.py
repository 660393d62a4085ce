"""Which workspaces the user trusts: their files start nothing until they do.

What is trusted is a part of a file as it is: one server, or the member ``host``. A part that is
changed, or new, is not trusted again before somebody says so.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from isthmus.host.config.document import Document
from isthmus.host.config.load import digest_of_part
from isthmus.host.config.shapes import inputs_of, servers_of

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state import HostState

__all__ = ["Part", "Trust", "parts_of"]


class Part(Struct, frozen=True):
    """One part of a workspace's file.

    Attributes:
        path: the file.
        name: the server; empty for the member ``host``.
        digest: what it says.
    """

    path: str
    name: str
    digest: str


def parts_of(document: Document, folder: str) -> list[Part]:
    """What of a file can be trusted or not."""
    inputs, path = inputs_of(document), str(document.path)
    named = {raw.name: raw.value for raw in reversed([*servers_of(document, folder)])}
    found = [Part(path, name, digest_of_part(value, inputs)) for name, value in named.items()]
    if "host" in document.value:
        found.append(Part(path, "", digest_of_part(document.value["host"], inputs)))
    return found


class Trust:
    """What the user trusts; several processes may share it.

    Args:
        state: where it is kept.
    """

    def __init__(self, state: "HostState") -> None:
        self._state = state
        self._known: set[Part] = set()

    async def load(self) -> None:
        """Learn what is kept; again, to see what other processes have done."""
        rows = await self._state.read(
            lambda db: db.execute("SELECT path, name, digest FROM trust").fetchall()
        )
        self._known = {Part(*row) for row in rows}

    def allows(self, path: str, name: str, digest: str) -> bool:
        """Whether a part of a file is trusted as it is."""
        return Part(path, name, digest) in self._known

    async def trust(self, folder: str, documents: Sequence[Document]) -> list[Part]:
        """Trust files of a workspace as they are now; in place of what was trusted of it before."""
        parts = [part for document in documents for part in parts_of(document, folder)]
        digests = {str(document.path): document.digest for document in documents}
        now = int(self._state.clock() * 1_000_000)

        def work(db: "sqlite3.Connection") -> None:
            db.execute("DELETE FROM trust WHERE folder = ?", (folder,))
            db.executemany(
                "INSERT OR REPLACE INTO trust (folder, path, name, digest, file, given_us)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(folder, p.path, p.name, p.digest, digests[p.path], now) for p in parts],
            )

        await self._state.write(work)
        await self.load()
        return parts

    async def untrust(self, folder: str) -> bool:
        """Trust a workspace no more; False where it was not trusted."""
        gone = await self._state.write(
            lambda db: db.execute("DELETE FROM trust WHERE folder = ?", (folder,)).rowcount
        )
        await self.load()
        return gone > 0
