"""Tests of users with passwords."""

import asyncio
import sqlite3
import stat
import sys

import pytest

from isthmus.auth.authorization_server.users import passwords
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.auth.authorization_server.users.users import LoginPage, LoginRequest, User
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError

CHEAP = {"memory": 64, "rounds": 1, "lanes": 1}
GOOD = Secret("correct horse battery")
REQUEST = LoginRequest(pending=None)


@pytest.fixture
def users(tmp_path):
    found = PasswordUsers(tmp_path / "users.db", **CHEAP)
    found.add("Alice", GOOD, "Alice A.")
    return found


async def tried(users, account, password):
    return await users.submit(REQUEST, {"account": account, "password": password})


async def test_a_user_logs_in_by_name_and_password(users):
    """We demand a login that knows a name however it is typed."""
    alice = User(id="alice", name="Alice A.")
    assert alice == await tried(users, "alice", "correct horse battery")
    assert alice == await tried(users, " ALICE ", "correct horse battery")
    assert alice == await users.get("alice")
    assert await users.get("bob") is None


async def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(users):
    """We demand one answer for unknown names, wrong passwords and disabled users."""
    users.add("carol", GOOD)
    users.disable("carol")
    answers = [
        await tried(users, "alice", "wrong horse battery"),
        await tried(users, "alice", ""),
        await tried(users, "nobody", "correct horse battery"),
        await tried(users, "carol", "correct horse battery"),
        await tried(users, "", ""),
        await tried(users, "alice", "x" * 5000),
    ]
    assert {LoginPage} == {type(answer) for answer in answers}
    assert {(passwords.WRONG_LOGIN_TEXT, 403)} == {(a.notice, a.status) for a in answers}


@pytest.mark.covers("auth.threat.t36-brute-force")
async def test_unknown_names_and_disabled_users_cost_a_hash_as_known_ones_do(users, monkeypatch):
    """We demand that the time of an answer does not tell who is a user."""
    from argon2 import PasswordHasher

    verified = []
    verify = PasswordHasher.verify

    def counted(self, hashed, password):
        verified.append(hashed.rpartition("$")[0].rpartition("$")[0])
        return verify(self, hashed, password)

    users.add("carol", GOOD)
    users.disable("carol")
    monkeypatch.setattr(PasswordHasher, "verify", counted)
    for account in ("alice", "carol", "nobody", "x" * 1000):
        await tried(users, account, "wrong horse battery")
    assert 4 == len(verified)
    assert 1 == len(set(verified)), "hashes of one cost"


async def test_a_hash_made_at_another_cost_is_made_anew_at_the_next_login(users):
    """We demand that raising the cost reaches users without their doing."""
    dearer = PasswordUsers(users.path, memory=128, rounds=2, lanes=1)

    def stored():
        with sqlite3.connect(users.path) as rows:
            return rows.execute("SELECT hash FROM user").fetchone()[0]

    assert "m=64,t=1,p=1" in stored()
    await tried(dearer, "alice", "wrong horse battery")
    assert "m=64,t=1,p=1" in stored()
    assert isinstance(await tried(dearer, "alice", "correct horse battery"), User)
    assert "m=128,t=2,p=1" in stored()
    assert isinstance(await tried(dearer, "alice", "correct horse battery"), User)


async def test_a_password_may_be_composed_in_different_ways(users):
    """We demand that the same letters from another keyboard are the same password."""
    users.add("dora", Secret("caf\u00e9 caf\u00e9 caf\u00e9"))
    assert isinstance(await tried(users, "dora", "cafe\u0301 cafe\u0301 cafe\u0301"), User)


@pytest.mark.parametrize("password", ["", "short", "x" * 11, "x" * 1025])
def test_short_and_endless_passwords_are_refused(users, password):
    """We demand 12 characters, and no more than can be hashed in peace."""
    with pytest.raises(UsageError, match="12 to 1024"):
        users.add("bob", Secret(password))
    assert users.find("bob") is None


@pytest.mark.parametrize("account", ["", "  ", "a b", "a\nb", "a\u202eb", "x" * 129])
def test_names_that_cannot_be_typed_or_seen_are_refused(users, account):
    """We demand account names that people can read."""
    with pytest.raises(UsageError, match="account name"):
        users.add(account, GOOD)


async def test_a_password_may_be_given_as_a_text(users):
    """Ours: it is wrapped at once, as everywhere else."""
    users.add("carol", "correct horse battery")

    assert isinstance(await tried(users, "carol", "correct horse battery"), User)


async def test_a_taken_name_is_not_taken_over(users):
    """We demand that adding a user never changes another one by accident."""
    with pytest.raises(UsageError, match="--replace"):
        users.add("ALICE", Secret("another password"))
    users.disable("alice")
    users.add("alice", Secret("another password"), replace=True)
    assert User(id="alice", name="Alice A.") == await tried(users, "alice", "another password")
    assert [User(id="alice", name="Alice A.")] == users.all()


async def test_a_disabled_user_is_known_as_disabled(users):
    """We demand that the tokens of a disabled user can be told from others."""
    assert users.disable("alice")
    assert not users.disable("nobody")
    assert User(id="alice", name="Alice A.", disabled=True) == await users.get("alice")


def test_the_file_is_its_owners_alone_and_has_no_password_in_it(users):
    """We demand that other accounts of the machine cannot read the hashes."""
    assert 0o600 == stat.S_IMODE(users.path.stat().st_mode)
    assert b"correct horse" not in users.path.read_bytes()
    assert b"$argon2id$" in users.path.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_file_that_is_open_to_others_is_tightened_at_its_first_use(users):
    """We demand what holds for the store: a copy or another program may have made it readable."""
    users.path.chmod(0o644)
    again = PasswordUsers(users.path, **CHEAP)
    assert User(id="alice", name="Alice A.") == again.find("alice")
    assert 0o600 == stat.S_IMODE(users.path.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_folder_that_others_may_change_is_refused(tmp_path, caplog):
    """We demand a warning where somebody else could put another file in the place of ours."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    PasswordUsers(folder / "users.db", **CHEAP).add("alice", GOOD)
    assert f"{folder} can be changed by other users" in caplog.text
    caplog.clear()
    folder.chmod(0o700)
    PasswordUsers(folder / "users.db", **CHEAP).find("alice")
    assert "" == caplog.text


def test_a_missing_folder_is_refused(tmp_path):
    """We demand that an error names the file."""
    with pytest.raises(UsageError, match=r"users\.db cannot be the file of users"):
        PasswordUsers(tmp_path / "none" / "users.db", **CHEAP).find("alice")


async def test_more_logins_than_can_wait_get_503(users, monkeypatch):
    """We demand that a flood of logins takes bounded memory."""
    monkeypatch.setattr(passwords, "MAX_WAITING_LOGINS", 3)
    logins = [tried(users, "alice", "wrong horse battery") for _ in range(10)]
    answers = await asyncio.gather(*logins)
    assert {403, 503} == {answer.status for answer in answers}
    assert 3 == sum(answer.status == 403 for answer in answers)


async def test_a_damaged_hash_lets_nobody_in(users):
    """We demand that what cannot be read is not taken for a match."""
    with sqlite3.connect(users.path) as rows:
        rows.execute("UPDATE user SET hash = 'nonsense'")
    assert isinstance(await tried(users, "alice", "correct horse battery"), LoginPage)
