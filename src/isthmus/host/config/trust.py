"""Trust in workspaces: their files start nothing until the user trusts them.

A part of a file is trusted as it is: one server, or the member ``host``. A part that is changed, or
new, is not trusted again before somebody says so.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isthmus.host.config.files import ConfigDocument
from isthmus.host.config.layouts import find_servers, read_inputs
from isthmus.host.config.load import digest_part, merge_documents, read_config_layers
from isthmus.host.model.entries import HostConfig

if TYPE_CHECKING:
    import sqlite3

    from isthmus.host.state.database import HostState

STAMP_FILE = "trust.changed"


class TrustedPart(Struct, frozen=True):
    """One part of a workspace's file.

    Attributes:
        path: the file.
        name: the server; empty for the member ``host``.
        digest: what it says.
    """

    path: str
    name: str
    digest: str


def list_parts(document: ConfigDocument, folder: str) -> list[TrustedPart]:
    """List the parts of a file that can be trusted."""
    inputs, path = read_inputs(document), str(document.path)
    named = {raw.name: raw.value for raw in reversed([*find_servers(document, folder)])}
    found = [TrustedPart(path, name, digest_part(value, inputs)) for name, value in named.items()]
    if "host" in document.value:
        found.append(TrustedPart(path, "", digest_part(document.value["host"], inputs)))
    return found


class TrustStore:
    """The parts that the user trusts, in the state; several processes may share it.

    Args:
        state: where it is kept.
    """

    def __init__(self, state: "HostState") -> None:
        self._state = state
        self._known: set[TrustedPart] = set()

    async def load(self) -> None:
        """Load the trusted parts; again, to see changes of other processes."""
        rows = await self._state.read(
            lambda db: db.execute("SELECT path, name, digest FROM trust").fetchall()
        )
        self._known = {TrustedPart(*row) for row in rows}

    def allows(self, path: str, name: str, digest: str) -> bool:
        """Whether a part of a file is trusted as it is."""
        return TrustedPart(path, name, digest) in self._known

    async def trust(self, folder: str, documents: Sequence[ConfigDocument]) -> list[TrustedPart]:
        """Trust files of a workspace as they are now, in place of earlier trust."""
        parts = [part for document in documents for part in list_parts(document, folder)]
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
        await self._publish()
        return parts

    async def untrust(self, folder: str) -> bool:
        """Withdraw trust from a workspace; False where it was not trusted."""
        gone = await self._state.write(
            lambda db: db.execute("DELETE FROM trust WHERE folder = ?", (folder,)).rowcount
        )
        await self._publish()
        return gone > 0

    async def _publish(self) -> None:
        """Load the trusted parts, and touch a file that running hosts watch."""
        await self.load()
        if self._state.folder is not None:
            (self._state.folder / STAMP_FILE).touch(mode=0o600)


class TrustReader:
    """Reads the trusted parts in a state's folder whenever one is asked for.

    Args:
        folder: of the state; there may be none yet.

    Attributes:
        stamp: a file that is touched when somebody trusts something, or does so no more.
    """

    def __init__(self, folder: "str | os.PathLike[str]") -> None:
        self.stamp = Path(folder).expanduser().absolute() / STAMP_FILE

    def allows(self, path: str, name: str, digest: str) -> bool:
        """Whether a part of a file is trusted as it is; where that cannot be read, it is not."""
        database = self.stamp.with_name("host.db")
        if not database.is_file():
            return False
        import sqlite3  # where there is a workspace with files

        query = "SELECT 1 FROM trust WHERE path = ? AND name = ? AND digest = ?"
        try:
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
                return db.execute(query, (path, name, digest)).fetchone() is not None
        except sqlite3.Error:
            return False


def load_trusted_config(
    paths: "Sequence[str | os.PathLike[str]] | None" = None,
    *,
    folder: "str | os.PathLike[str] | None" = None,
    environ: Mapping[str, str] | None = None,
    state: "str | os.PathLike[str] | None" = None,
) -> tuple[HostConfig, Path]:
    """Load the configuration with what the user trusts, and the folder of its state.

    Args:
        paths: as for :func:`isthmus.host.config.load.load_config`, like the next two.
        folder: the workspace.
        environ: the environment.
        state: the folder of the state; by default what the configuration says, or the user's own.

    Raises:
        ConfigError: as there.
    """
    from isthmus.host.state.database import find_user_folder
    from isthmus.host.state.secrets import UserSecrets

    layers, notes = read_config_layers(paths, folder=folder, environ=environ)
    secrets = UserSecrets(os.environ if environ is None else environ)
    more: Any = {"folder": folder, "environ": environ, "secrets": secrets}
    config = merge_documents(layers, notes, **more).config
    place = Path(state or config.options.state or find_user_folder(environ))
    if any(layer == "workspace" for layer, _ in layers):
        config = merge_documents(layers, notes, **more, trusted=TrustReader(place)).config
    return config, place
