"""The store: a file for several processes, readable by its owner, and refused in clear words."""

import asyncio
import sqlite3
import stat

import pytest

from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.records import (
    MAX_KEPT_ROWS,
    PENDING_LIFE_S,
    PendingAuthorization,
)
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore, SQLiteAuthStore
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from support.auth.small_authority import BACK, SmallAuthority

KEY = "k" * 43
NEW = "n" * 43


async def noted(store, text="something"):
    await store.write(lambda records: records.audit(text))
    return [row.event for row in await store.read(lambda records: records.audited())]


async def test_only_its_owner_can_read_the_file(tmp_path):
    """Ours: the file, and those that SQLite keeps beside it."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key=KEY)
    await noted(store)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    await store.close()

    assert {0o600} == modes


async def test_records_survive_a_restart(tmp_path):
    """Ours: and closing twice does no harm."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key=KEY)
    await noted(store, "first")
    await store.close()
    await store.close()

    assert ["second", "first"] == await noted(store, "second")
    await store.close()


async def test_an_exception_undoes_the_whole_transaction(tmp_path):
    """Ours: nothing is half done."""
    store = MemoryAuthStore()

    def work(records):
        records.audit("lost")
        raise KeyError("x")

    with pytest.raises(KeyError):
        await store.write(work)

    assert ["kept"] == await noted(store, "kept")
    await store.close()


async def test_reading_changes_nothing():
    """Ours: what is written by mistake is gone."""
    store = MemoryAuthStore()
    await store.read(lambda records: records.audit("by mistake"))

    assert ["kept"] == await noted(store, "kept")
    await store.close()


async def test_two_processes_take_turns(tmp_path):
    """Ours: one waits for the other, and neither fails."""
    stores = [SQLiteAuthStore(tmp_path / "auth.db", key=KEY) for _ in range(4)]
    await asyncio.gather(*(noted(store) for store in stores for _ in range(10)))
    rows = await stores[0].read(lambda records: records.audited())
    for store in stores:
        await store.close()

    assert 40 == len(rows)


async def test_the_key_can_be_changed(tmp_path):
    """Ours: opened once with both, the file needs the former one no more; secrets of clients stay good."""
    path = tmp_path / "auth.db"
    client = RegisteredClient(
        client_id="c", auth_method="client_secret_post", secret=Secret("s" * 20)
    )

    def fill(records):
        records.put_ticket("t", "name", b"content", records.now + 60)
        records.save_client(client)

    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as before:
        await before.app.store.write(fill)
        tokens = await before.tokens(client_id := await before.public())
    both = SQLiteAuthStore(path, key=[Secret(NEW), KEY])
    await noted(both)
    await both.close()
    async with SmallAuthority(store=SQLiteAuthStore(path, key=NEW)) as after:
        found = await after.app.store.read(lambda records: records.ticket("t", "name"))
        _, digest = await after.app.store.read(lambda records: records.client("c"))
        fits = await after.app.store.read(lambda records: records.vault.matches(digest, "s" * 20))
        refreshed = await after.refresh(tokens["refresh_token"], client_id)

        assert b"content" == found
        assert fits
        assert 200 == refreshed.status
        assert await after.verified(tokens["access_token"]) is not None


@pytest.mark.parametrize("key", ["", "short", b"x" * 31, "é" * 40, Secret("x")])
def test_a_key_that_is_none_is_refused_with_how_to_make_one(tmp_path, key, monkeypatch):
    """Ours: before anything is written."""
    monkeypatch.delenv("ISTHMUS_AUTH_KEY", raising=False)
    with pytest.raises(UsageError, match="token_urlsafe"):
        SQLiteAuthStore(tmp_path / "auth.db", key=key)


def test_the_key_is_taken_from_the_environment(tmp_path, monkeypatch):
    """Ours: ISTHMUS_AUTH_KEY; without it, the error names it."""
    monkeypatch.delenv("ISTHMUS_AUTH_KEY", raising=False)
    with pytest.raises(UsageError, match="ISTHMUS_AUTH_KEY"):
        SQLiteAuthStore(tmp_path / "auth.db")
    monkeypatch.setenv("ISTHMUS_AUTH_KEY", KEY)

    assert "auth.db" in repr(SQLiteAuthStore(tmp_path / "auth.db"))


async def test_a_wrong_key_is_noticed_when_the_file_is_opened(tmp_path):
    """Ours: not when the first token is to be signed."""
    path = tmp_path / "auth.db"
    store = SQLiteAuthStore(path, key=KEY)
    await noted(store)
    await store.close()
    wrong = SQLiteAuthStore(path, key=NEW)
    with pytest.raises(UsageError, match="another ISTHMUS_AUTH_KEY"):
        await noted(wrong)
    await wrong.close()


def spoil(path, statement):
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("PRAGMA user_version = 99", "newer isthmus"),
        ("PRAGMA user_version = 0", "older isthmus"),
        ("PRAGMA application_id = 5", "something else"),
    ],
)
async def test_a_file_of_another_version_is_left_alone(tmp_path, statement, says):
    """Ours: it says which version it is, and what to do."""
    path = tmp_path / "auth.db"
    store = SQLiteAuthStore(path, key=KEY)
    await noted(store)
    await store.close()
    spoil(path, statement)
    again = SQLiteAuthStore(path, key=KEY)
    with pytest.raises(UsageError, match=says):
        await noted(again)
    await again.close()


async def test_a_file_of_another_program_is_left_alone(tmp_path):
    """Ours: a database of something else, no database at all, a folder, a place that is not there."""
    spoil(tmp_path / "other.db", "CREATE TABLE cats (name)")
    (tmp_path / "text.db").write_text("hello " * 1000)
    for place in ("other.db", "text.db", ".", "nowhere/auth.db"):
        store = SQLiteAuthStore(tmp_path / place, key=KEY)
        with pytest.raises(UsageError):
            await noted(store)
        await store.close()


async def test_nothing_that_is_secret_stands_in_the_file(tmp_path):
    """Ours: codes, client secrets, keys and refresh tokens are digests, or encrypted."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        client = await small.register(token_endpoint_auth_method="client_secret_post")
        code, secret = await small.code(client["client_id"]), client["client_secret"]
        tokens = (await small.redeem(code, client["client_id"], client_secret=secret)).json
    whole = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    texts = [code, secret, tokens["access_token"], tokens["refresh_token"], '"d":', KEY]
    assert [] == [text for text in texts if text.encode() in whole]


async def test_pending_requests_and_tickets_are_bounded():
    """Ours: what would end first is forgotten, and what was just begun is there."""
    async with SmallAuthority() as small:

        def fill(records):
            rows = [(f"{n}", b"", records.now + n / 1e6) for n in range(MAX_KEPT_ROWS)]
            records.db.executemany("INSERT INTO pending VALUES (?, ?, ?)", rows)
            rows = [
                ("k", f"{n}".encode(), b"", records.now + n / 1e6) for n in range(MAX_KEPT_ROWS)
            ]
            records.db.executemany("INSERT INTO ticket VALUES (?, ?, ?, ?)", rows)
            records.put_ticket("mine", "name", b"it", records.now + 600)
            records.save_pending(pending(records.now))
            return [
                records.db.execute("SELECT count(*) FROM pending").fetchone()[0],
                records.db.execute("SELECT count(*) FROM ticket").fetchone()[0],
                records.ticket("mine", "name"),
                records.pending("txn").txn,
            ]

        assert [MAX_KEPT_ROWS, MAX_KEPT_ROWS, b"it", "txn"] == await small.app.store.write(fill)


def pending(now):
    return PendingAuthorization(
        txn="txn",
        client_id="app",
        client_name="App",
        client_kind="static",
        redirect_uri="https://app.example/cb",
        scopes=(),
        resource="",
        query=(),
        created_at=now,
        expires_at=now + PENDING_LIFE_S,
    )


async def test_two_authorization_servers_do_not_share_a_store(tmp_path, caplog):
    """Ours: users of the same id are not the same, and a login at one is none at the other."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key=KEY)
    async with SmallAuthority(store=store) as small:
        assert 201 == (await small.registering({"redirect_uris": [BACK]})).status
        other = SmallAuthority(store=store, issuer="https://other.example")

        assert 500 == (await other.registering({"redirect_uris": [BACK]})).status
        assert "give each a file of its own" in caplog.text
