"""The tables of a host's state: what must outlive it, or be known to a second process."""

from isthmus.store.database import Schema

__all__ = ["SCHEMA", "TABLES"]

AUDIT = (
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

CATALOG = (
    # What servers had in earlier runs, so that they need not be started to be known.
    """
    CREATE TABLE catalog_list (
        identity TEXT PRIMARY KEY, fetched REAL NOT NULL, listed BLOB NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
)

KERNEL = (
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

SAMPLING = (
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

CONFIG = (
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

POLICY = (
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

TABLES = (*AUDIT, *KERNEL, *CATALOG, *SAMPLING, *CONFIG, *POLICY)
"""Each part of the host has a tuple of its own above, and a line here."""

SCHEMA = Schema(
    application=0x15714A76,
    version=2,
    tables=TABLES,
    purpose="the state of a host",
    # 2: the hashes of the audit log have a key. An older isthmus would add rows without one.
    upgrades={1: ()},
)
