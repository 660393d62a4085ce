"""State of a host: a folder of its own, with one database and one key.

The tables hold what must outlive the host, or be known to a second process.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from isthmus.runtime.failures import log_warning
from isthmus.store.files import create_file as make_file
from isthmus.store.sqlite import Database, DatabaseSchema, Durability, StoreUnusable

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
KEY_BYTES = 32


class HostState:
    """The state of a host; several processes may have the same one open.

    Args:
        folder: where it is; made, for its owner only, where there is none. None keeps everything
            in memory, until it is closed.
        durability: what a commit outlives: ``normal`` the end of the process, ``full`` the end of
            the machine's power, too.
        clock: says the seconds since the epoch.

    Attributes:
        folder: where it is.
        database: the file ``host.db``; its tables are those of :mod:`isthmus.host.state.database`.
        clock: see above.

    Raises:
        StoreUnusable: the folder cannot be made.

    Example::

        state = HostState("state")
        await state.write(lambda db: db.execute("INSERT INTO …"))
        await state.close()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        *,
        durability: Durability = "normal",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = None if folder is None else Path(folder).expanduser().absolute()
        self.clock = clock
        if self.folder is not None:
            make_private_folder(self.folder)
        path = ":memory:" if self.folder is None else self.folder / "host.db"
        self.database = Database(path, schema=SCHEMA, durability=durability)
        self._key: bytes | None = None

    def __repr__(self) -> str:
        return f"HostState({None if self.folder is None else str(self.folder)!r})"

    async def write(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """Change something, in one transaction; it is committed when this returns.

        Raises:
            StoreUnavailable: it was not done; see :meth:`Database.write`.
        """
        return await self.database.write(work)

    async def read(self, work: "Callable[[sqlite3.Connection], T]") -> T:
        """Look something up; see :meth:`Database.read`."""
        return await self.database.read(work)

    def post(
        self,
        work: "Callable[[sqlite3.Connection], object]",
        after: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """Have something changed within milliseconds; see :meth:`Database.post`."""
        self.database.post(work, after)

    def key(self) -> bytes:
        """32 random bytes that belong to this state: in ``host.key`` beside it, for its owner only.

        Raises:
            StoreUnusable: it cannot be read or made.
        """
        if self._key is None:
            path = None if self.folder is None else self.folder / "host.key"
            self._key = os.urandom(KEY_BYTES) if path is None else load_key(path)
        return self._key

    async def close(self) -> None:
        """Write what waits, and let go of the file; safe to call twice."""
        await self.database.close()


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may look into, and see that it is one.

    Raises:
        StoreUnusable: it cannot be made.
    """
    try:
        for one in reversed((folder, *folder.parents)):  # parents=True would obey the mask
            one.mkdir(mode=0o700, exist_ok=True)
        stranger = find_foreign_owner(folder)
        if stranger:
            raise StoreUnusable(
                f"{stranger} belongs to another user, who can read and change it: choose another "
                "folder for the host's state, or have what is in it given to you (chown)"
            )
        folder.chmod(0o700)
    except OSError as error:
        raise StoreUnusable(
            f"{folder} cannot be the folder of a host's state: {error.strerror}"
        ) from None


def find_foreign_owner(folder: Path) -> Path | None:
    """Find what of a folder belongs to somebody else: itself, or something in it; None for nothing."""
    if not hasattr(os, "getuid"):  # Windows says it otherwise
        return None
    me = os.getuid()
    if folder.stat().st_uid != me:
        return folder
    with os.scandir(folder) as found:
        return next((Path(one) for one in found if _find_owner(one, me) != me), None)


def _find_owner(one: "os.DirEntry[str]", me: int) -> int:
    """Whose something is, itself and what it leads to; ``me`` where it has just gone."""
    for follow in (False, True):
        with suppress(FileNotFoundError):
            owner = one.stat(follow_symlinks=follow).st_uid
            if owner != me:
                return owner
    return me


def load_key(path: Path, *, make: bool = True) -> bytes:
    """The key in a file; it is made there where there is none, unless somebody only reads.

    Raises:
        StoreUnusable: it cannot be read or made, or is no key.
    """
    try:
        if make and not path.exists():
            make_file(path, os.urandom(KEY_BYTES))
        if make and path.stat().st_mode & 0o077:
            path.chmod(0o600)
        key = path.read_bytes()
    except OSError as error:
        raise StoreUnusable(f"{path}, the key of a host's state: {error.strerror}") from None
    if len(key) != KEY_BYTES:
        raise StoreUnusable(
            f"{path} is no key of a host's state ({KEY_BYTES} bytes, not {len(key)}): put the right "
            "one back; without it, what was encrypted is lost and signatures cannot be checked"
        )
    return key


def find_user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for the user's own host, where the system wants such things.

    Args:
        environ: the environment; the process's own by default.

    Raises:
        StoreBroken: nobody says where the user's home is.
    """
    from isthmus.auth.client.store.keyring_store import find_state_folder

    return find_state_folder(os.environ if environ is None else environ, sys.platform) / "host"


def decode_row(decoder: msgspec.json.Decoder[T], body: bytes | str, what: str) -> T | None:
    """Decode a row; None, and a line in the log, where it says what is not known here.

    A yes, an answer or a task that cannot be read counts for nothing, and nothing else is lost.

    Args:
        decoder: reads it.
        body: as it is kept.
        what: what it is, for the log.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        log_warning("%s of the state cannot be read: %s", what, error)
        return None


AUDIT_TABLES = (
    # What happened, in order: each row holds the hash of the one before it.
    """
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY, ts_us INTEGER NOT NULL, node TEXT NOT NULL, kind TEXT NOT NULL,
        call_id TEXT, parent_id TEXT, run_id TEXT,
        principal TEXT NOT NULL, action TEXT NOT NULL,
        server TEXT, identity TEXT, object TEXT, fingerprint TEXT,
        era TEXT, transport TEXT, origin TEXT,
        effect TEXT, rule_id TEXT, grant_id TEXT, approver TEXT, assurance TEXT, wait_ms INTEGER,
        args_hash BLOB, args_redacted TEXT, result_hash BLOB, result_bytes INTEGER,
        is_error INTEGER, error_code INTEGER, error_class TEXT, dur_us INTEGER,
        tokens_in INTEGER, tokens_out INTEGER, cost_micro INTEGER, model TEXT,
        labels TEXT, policy TEXT, detail TEXT CHECK (detail IS NULL OR json_valid(detail)),
        prev BLOB NOT NULL, hash BLOB NOT NULL
    ) STRICT
    """,
    "CREATE INDEX event_call ON event (call_id) WHERE call_id IS NOT NULL",
    "CREATE INDEX event_time ON event (ts_us)",
    "CREATE INDEX event_object ON event (server, object, ts_us)",
    "CREATE INDEX event_who ON event (principal, ts_us)",
    # Where the chain stood, signed; up to the last one that is sealed, rows may have been dropped.
    """
    CREATE TABLE checkpoint (
        seq INTEGER PRIMARY KEY, ts_us INTEGER NOT NULL, hash BLOB NOT NULL,
        sealed INTEGER NOT NULL DEFAULT 0, sig BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TRIGGER event_stays_as_it_is BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'a row of the audit log is never changed'); END
    """,
    """
    CREATE TRIGGER event_stays BEFORE DELETE ON event
    WHEN old.seq > (SELECT coalesce(max(seq), 0) FROM checkpoint WHERE sealed = 1)
    BEGIN SELECT RAISE(ABORT, 'a row of the audit log is dropped with its whole segment only'); END
    """,
    # What was passed on, where it is kept at all; encrypted, by digest.
    """
    CREATE TABLE body (
        hash BLOB PRIMARY KEY, media TEXT NOT NULL, data BLOB NOT NULL, expires_us INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX body_expires ON body (expires_us)",
    # Intents whose outcome is not there yet, and whose they are.
    """
    CREATE TABLE open_call (
        call_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, node TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # How far the index for searching has come.
    "CREATE TABLE indexed (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL) STRICT",
    """
    CREATE VIRTUAL TABLE event_fts USING fts5(
        object, args_redacted, detail, content = 'event', content_rowid = 'seq'
    )
    """,
)

APPROVAL_ROW_TABLES = (
    # Calls of a gateway's clients that a person is asked about, until they expire.
    """
    CREATE TABLE IF NOT EXISTS approval (
        id TEXT PRIMARY KEY, expires_us INTEGER NOT NULL, body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

CATALOG_TABLES = (
    # What servers had in earlier runs, so that they need not be started to be known.
    """
    CREATE TABLE catalog_list (
        identity TEXT PRIMARY KEY, fetched REAL NOT NULL, listed BLOB NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

APPROVAL_TABLES = (
    # What was decided on the questions of tasks, until the task is over.
    """
    CREATE TABLE decision (
        identity TEXT NOT NULL, task TEXT NOT NULL, key TEXT NOT NULL, at_us INTEGER NOT NULL,
        decision BLOB NOT NULL, PRIMARY KEY (identity, task, key)
    ) STRICT, WITHOUT ROWID
    """,
    # Calls that became tasks, until they are over; which of their questions were answered.
    """
    CREATE TABLE task_handle (
        identity TEXT NOT NULL, task TEXT NOT NULL, at_us INTEGER NOT NULL, attempt BLOB NOT NULL,
        answered TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (identity, task)
    ) STRICT, WITHOUT ROWID
    """,
)

SAMPLING_TABLES = (
    # What each server had models read and write on each day, counted from the epoch.
    """
    CREATE TABLE sampling_usage (
        server TEXT NOT NULL, day INTEGER NOT NULL, requests INTEGER NOT NULL,
        tokens INTEGER NOT NULL, cost_micro INTEGER NOT NULL, PRIMARY KEY (server, day)
    ) STRICT, WITHOUT ROWID
    """,
    # What is left of what a person allowed a server for one run without being asked each time.
    """
    CREATE TABLE sampling_allowance (
        run TEXT NOT NULL, server TEXT NOT NULL, model TEXT NOT NULL, at_us INTEGER NOT NULL,
        tokens INTEGER, cost_micro INTEGER, PRIMARY KEY (run, server, model)
    ) STRICT, WITHOUT ROWID
    """,
)

CONFIG_TABLES = (
    # Parts of workspaces' files that the user trusts as they are: a server, or (no name) ``host``.
    """
    CREATE TABLE trust (
        folder TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
        file TEXT NOT NULL, given_us INTEGER NOT NULL, PRIMARY KEY (path, name)
    ) STRICT, WITHOUT ROWID
    """,
    # What the user agreed to run or reach, by what it is to the letter.
    """
    CREATE TABLE consent (
        digest TEXT PRIMARY KEY, server TEXT NOT NULL, given_by TEXT NOT NULL,
        given_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # Folders that a server may be told of, and work in; said no to where not granted.
    """
    CREATE TABLE root_grant (
        identity TEXT NOT NULL, path TEXT NOT NULL, server TEXT NOT NULL,
        granted INTEGER NOT NULL, given_by TEXT NOT NULL, given_us INTEGER NOT NULL,
        PRIMARY KEY (identity, path)
    ) STRICT, WITHOUT ROWID
    """,
)

POLICY_TABLES = (
    # What the user said yes to for longer than once; what has ended stays, and says why.
    """
    CREATE TABLE grant_ (
        id TEXT PRIMARY KEY, created_us INTEGER NOT NULL, until_us INTEGER, uses INTEGER,
        ended TEXT NOT NULL DEFAULT '', body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX grant_holds ON grant_ (created_us) WHERE ended = ''",
    # How often grants have changed, for other processes, and the latest time that was seen.
    """
    CREATE TABLE grant_clock (
        id INTEGER PRIMARY KEY CHECK (id = 1), changes INTEGER NOT NULL, seen_us INTEGER NOT NULL
    ) STRICT
    """,
    # What the tools of servers were when they were approved; definitions are compressed.
    """
    CREATE TABLE fingerprint (
        server TEXT NOT NULL, identity TEXT NOT NULL, tool TEXT NOT NULL, hash TEXT NOT NULL,
        first_us INTEGER NOT NULL, definition BLOB NOT NULL, PRIMARY KEY (server, identity, tool)
    ) STRICT, WITHOUT ROWID
    """,
)

# each part of the host has a tuple of its own above, and a line here
TABLES = (
    *AUDIT_TABLES,
    *APPROVAL_TABLES,
    *APPROVAL_ROW_TABLES,
    *CATALOG_TABLES,
    *SAMPLING_TABLES,
    *CONFIG_TABLES,
    *POLICY_TABLES,
)

SCHEMA = DatabaseSchema(
    application=0x15714A76,
    version=3,
    tables=TABLES,
    purpose="the state of a host",
    # 2: the hashes of the audit log have a key. An older isthmus would add rows without one.
    # 3: approvals of calls that a gateway's clients make.
    upgrades={1: (), 2: APPROVAL_ROW_TABLES},
)
