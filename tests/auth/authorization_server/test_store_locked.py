"""A store that another process holds: everybody is told so soon, and to come back."""

import asyncio
import sqlite3
from contextlib import closing, contextmanager

import pytest

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.storage import store as storing
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore, StoreLocked
from isthmus.auth.authorization_server.users import passwords
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.auth.resource_server.verifier import VerifierUnavailable
from isthmus.store import sqlite
from support.auth.small_authority import BACK, RESOURCE, SmallAuthority, redirect_parameters

KEY = "k" * 43
WEB = "https://app.example/back"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Nobody waits long in here."""
    monkeypatch.setattr(storing, "LOCK_TIMEOUT_S", 0.05)
    monkeypatch.setattr(passwords, "LOCK_TIMEOUT_S", 0.1)


@contextmanager
def held(path, how="BEGIN IMMEDIATE"):
    """Somebody else writes to a file, and takes their time."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        if how != "BEGIN IMMEDIATE":
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute(how)
        yield


def test_the_lock_timeout_is_a_few_seconds():
    """Ours: who asks is gone after ten."""
    assert 1 <= sqlite.LOCK_TIMEOUT_S <= 3


async def test_a_locked_store_is_503_with_retry_after(tmp_path, caplog):
    """Ours: 503 with Retry-After and a code that clients know, not a failure of the server."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        client_id = await small.public()
        tokens = await small.tokens(client_id)
        with held(path):
            done = await small.refresh(tokens["refresh_token"], client_id)
            registered = await small.registering({"redirect_uris": [BACK]})
        again = await small.refresh(tokens["refresh_token"], client_id)

    for one in (done, registered):
        assert [503, "temporarily_unavailable"] == [one.status, one.json["error"]]
        assert one.header("retry-after") == "5"
    assert 200 == again.status
    assert "failed" not in caplog.text


async def test_a_browser_takes_the_news_to_the_client(tmp_path):
    """Ours, by RFC 6749 4.1.2.1: a client on this computer learns it, with its state."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        client_id = await small.public()
        with held(path):
            answer = redirect_parameters(await small.ask(client_id))

    assert ["temporarily_unavailable", "s1"] == [answer["error"], answer["state"]]


@pytest.mark.parametrize("static", [False, True])
async def test_a_locked_store_redirects_only_to_trusted_pages(tmp_path, static):
    """Ours: whoever registered by themselves has nobody sent to them, lock or not."""
    path = tmp_path / "auth.db"
    app = RegisteredClient(client_id="app", auth_method="none", redirect_uris=(WEB,))
    policy = RegistrationPolicy(static=[app])
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY), registration=policy) as small:
        client_id = "app" if static else await small.public(redirect_uris=[WEB])
        await small.ask(client_id, redirect_uri=WEB)
        with held(path):
            answer = await small.ask(client_id, redirect_uri=WEB)

    assert (302 if static else 503) == answer.status


def paged(path):
    return {"store": SQLiteAuthStore(path, key=KEY), "front": None}


async def test_pages_say_that_the_server_is_busy(tmp_path):
    """Ours: 503 and when to try again, in words."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(**paged(path)) as small:
        client_id = await small.public(redirect_uris=[WEB])
        with held(path):
            page = await small.ask(client_id, redirect_uri=WEB)

    assert [503, "5"] == [page.status, page.header("retry-after")]
    assert b"try again in a few seconds" in page.body


@pytest.mark.parametrize("before", [True, False])
async def test_a_locked_store_makes_the_verifier_unavailable(tmp_path, before):
    """Ours: 503, since 401 would start a login; also where a file is locked that is not open yet."""
    path = tmp_path / "auth.db"
    async with SmallAuthority(store=SQLiteAuthStore(path, key=KEY)) as small:
        token = (await small.tokens(await small.public()))["access_token"]
        if before:
            await small.verified(token)
            small.clock.now += 60
        await small.app.store.close()
        with held(path, "BEGIN EXCLUSIVE"):
            with pytest.raises(VerifierUnavailable, match="locked by another process"):
                await small.verified(token)
            headers = {"authorization": f"Bearer {token}"}
            guard = small.app.resource_auth(RESOURCE)
            refusal = await guard.admit({"headers": [(k.encode(), v.encode()) for k, v in
                                                     headers.items()], "path": "/mcp"})  # fmt: skip
        assert await small.verified(token) is not None

    assert 503 == refusal.status


class Traced(SQLiteAuthStore):
    """Notes how long SQLite is told to wait."""

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.plain, self.database.connect = self.database.connect, self.connect

    def connect(self):
        db = self.plain()
        self.waits = []
        db.set_trace_callback(lambda text: "busy" in text and self.waits.append(text[-3:]))
        return db


async def test_those_in_the_queue_wait_at_the_same_time(tmp_path):
    """Ours: who asks at the same time as another is told at the same time, and not one by one."""
    path = tmp_path / "auth.db"
    store = Traced(path, key=KEY)
    await store.write(lambda records: records.audit("first"))
    with held(path):
        done = await asyncio.gather(
            *(store.write(lambda records: records.audit("x")) for _ in range(9)),
            return_exceptions=True,
        )
    assert [StoreLocked] * 9 == [type(one) for one in done]
    assert {"100"} <= set(store.waits) <= {"100", "= 0"}  # nobody waits anew

    await store.write(lambda records: records.audit("last"))
    await store.close()


async def test_other_errors_of_the_store_are_passed_on(tmp_path):
    """Ours: only a lock passes by itself."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key=KEY)
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await store.write(lambda records: records.db.execute("SELECT * FROM cats"))
    await store.write(lambda records: records.audit("still good"))
    await store.close()


async def test_a_locked_file_of_users_is_no_unknown_user(tmp_path):
    """Ours: whoever is logged in stays so; nobody is told that they do not exist."""
    path = tmp_path / "users.db"
    users = PasswordUsers(path)
    users.add("ada", "correct horse battery")
    with held(path, "BEGIN EXCLUSIVE"), pytest.raises(StoreLocked, match=r"users\.db"):
        await users.get("ada")

    assert "ada" == (await users.get("ada")).id
