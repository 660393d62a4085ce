"""The file of tokens: what goes in comes out, for every program that knows its key."""

import asyncio
import json
import os
import stat
import sys

import pytest

from isthmus.auth.client.store.file_store import FileTokenStore, StoreBusy
from isthmus.auth.client.store.records import Key, Registration, Tokens
from isthmus.auth.client.store.vault import StoreBroken
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError

KEY = "k" * 43
OTHER = "o" * 43
TOKENS = Tokens(
    access=Secret("access-token-of-alice"),
    refresh=Secret("refresh-token-of-alice"),
    issuer="https://login.example",
    client_id="desktop",
    resource="https://mcp.example/mcp",
    scopes=frozenset({"files:read"}),
    expires_at=1000.0,
    token_endpoint="https://login.example/token",
)
REGISTRATION = Registration(
    issuer="https://login.example",
    client_id="made-up-by-it",
    redirect="http://127.0.0.1:0/callback",
    secret=Secret("secret-of-the-registration"),
)


@pytest.fixture
def path(tmp_path):
    """Where the file is to be; its folder is not there yet."""
    return tmp_path / "isthmus" / "tokens.json"


async def test_tokens_outlive_the_store_that_kept_them(path):
    """Ours: a program that starts again finds all that it kept, secrets and all."""
    await FileTokenStore(path, KEY).put(TOKENS.key, TOKENS)

    assert TOKENS == await FileTokenStore(path, KEY).get(TOKENS.key)


async def test_registrations_are_kept_beside_tokens(path):
    """Ours: one file has all that a client keeps of an authorization server."""
    store = FileTokenStore(path, KEY)
    await store.put(REGISTRATION.key, REGISTRATION)
    await store.put(TOKENS.key, TOKENS)

    assert REGISTRATION == await store.get(REGISTRATION.key)
    assert [REGISTRATION.key, TOKENS.key] == await store.keys()


async def test_what_was_put_last_is_at_the_end(path):
    """Ours: a client that has several accounts takes the one that was used last."""
    store = FileTokenStore(path, KEY)
    for key, record in (
        (TOKENS.key, TOKENS),
        (REGISTRATION.key, REGISTRATION),
        (TOKENS.key, TOKENS),
    ):
        await store.put(key, record)

    assert [REGISTRATION.key, TOKENS.key] == await store.keys()


async def test_what_is_deleted_is_gone(path):
    """Ours: and deleting what is not there, or from no file, does nothing."""
    store = FileTokenStore(path, KEY)
    await store.delete(TOKENS.key)
    missing = path.exists()
    await store.put(TOKENS.key, TOKENS)
    await store.delete(TOKENS.key)
    await store.delete(TOKENS.key)

    assert missing is False
    assert await store.get(TOKENS.key) is None
    assert [] == await store.keys()


async def test_the_oldest_records_go_when_there_are_too_many(path):
    """Ours: the file is bounded."""
    store = FileTokenStore(path, KEY, most=3)
    for number in range(5):
        await store.put(Key(f"https://login{number}.example"), REGISTRATION)

    assert [f"https://login{n}.example" for n in (2, 3, 4)] == [
        k.issuer for k in await store.keys()
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
@pytest.mark.covers("auth.all.tokens-stored-safely")
async def test_only_its_owner_may_read_the_file(path):
    """X5: the file is 0600 in a folder that is 0700, whatever the umask, and stays so."""
    before = os.umask(0o000)
    try:
        store = FileTokenStore(path, KEY)
        async with store.lock(TOKENS.key):
            await store.put(TOKENS.key, TOKENS)
        await store.put(REGISTRATION.key, REGISTRATION)
    finally:
        os.umask(before)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 0o700 == stat.S_IMODE(path.parent.stat().st_mode)
    assert {0o600, 0o700} >= {stat.S_IMODE(each.stat().st_mode) for each in path.parent.rglob("*")}


async def test_an_older_key_opens_and_the_newest_seals(path):
    """Ours: a key is replaced by naming the new one first; one change later the old one can go."""
    old, both = FileTokenStore(path, KEY), FileTokenStore(path, [OTHER, KEY])
    await old.put(TOKENS.key, TOKENS)
    found = await both.get(TOKENS.key)
    await both.put(REGISTRATION.key, REGISTRATION)

    assert TOKENS == found
    assert TOKENS == await FileTokenStore(path, OTHER).get(TOKENS.key)


async def test_another_key_is_told_apart_from_a_change(path):
    """Ours: the error says that the key is another one, and what was there stays."""
    await FileTokenStore(path, KEY).put(TOKENS.key, TOKENS)
    other = FileTokenStore(path, OTHER)

    with pytest.raises(StoreBroken, match="sealed with another key"):
        await other.get(TOKENS.key)
    await other.put(REGISTRATION.key, REGISTRATION)
    assert TOKENS == await FileTokenStore(path, KEY).get(TOKENS.key)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no whole file"),
        (b'{"format":"isthmus-tok', "no whole file"),
        (b"\x00\xff binary", "no whole file"),
        (b'{"format":"isthmus-tokens\xff","version":1,"records":{}}', "no whole file"),
        (b'{"x":' + b"[" * 100_000, "no whole file"),
        (b'{"mcpServers":{}}', "no whole file"),
        (b'{"format":"other","version":1,"records":{}}', "another kind"),
        (b'{"format":"isthmus-tokens","version":2,"records":{}}', "newer"),
    ],
)
async def test_a_torn_or_foreign_file_is_an_error_and_stays(path, content, words):
    """Ours: what is no file of ours is neither read nor written over."""
    path.parent.mkdir()
    path.write_bytes(content)
    store = FileTokenStore(path, KEY)

    with pytest.raises(StoreBroken, match=words):
        await store.get(TOKENS.key)
    with pytest.raises(StoreBroken, match=words):
        await store.put(TOKENS.key, TOKENS)
    with pytest.raises(StoreBroken, match=words):
        await store.delete(TOKENS.key)
    assert content == path.read_bytes()


async def test_a_write_that_fails_leaves_what_was_there(path, monkeypatch):
    """Ours: the file is replaced whole or not at all, and nothing is left beside it."""
    store = FileTokenStore(path, KEY)
    await store.put(TOKENS.key, TOKENS)
    before = path.read_bytes()

    def full(_handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreBroken, match="cannot be written: No space left"):
            await store.put(REGISTRATION.key, REGISTRATION)

    assert before == path.read_bytes()
    assert [] == [each.name for each in path.parent.iterdir() if each.name.startswith(".")]


async def test_a_folder_that_cannot_be_synced_loses_nothing(path, monkeypatch):
    """Ours: the file is there by then, and whoever renewed a token must not think that it is lost."""
    store, opened = FileTokenStore(path, KEY), os.open

    def stubborn(name, *more, **named):
        if name == path.parent:
            raise OSError(22, "Invalid argument")
        return opened(name, *more, **named)

    monkeypatch.setattr(os, "open", stubborn)
    await store.put(TOKENS.key, TOKENS)

    assert TOKENS == await store.get(TOKENS.key)


async def test_changes_of_many_are_all_kept(path):
    """Ours: whoever changes the file at the same time as others loses nothing of theirs."""
    keys = [Key(f"https://login{number}.example") for number in range(20)]
    await asyncio.gather(*(FileTokenStore(path, KEY).put(key, REGISTRATION) for key in keys))

    assert set(keys) == set(await FileTokenStore(path, KEY).keys())


async def test_renewals_of_one_key_take_turns_and_others_go_on(path):
    """Ours: a lock is about one key, among all stores of the file."""
    first, second = FileTokenStore(path, KEY), FileTokenStore(path, KEY, patience=0.0)
    async with first.lock(TOKENS.key):
        with pytest.raises(StoreBusy, match="renews tokens"):
            async with second.lock(TOKENS.key):
                pass
        async with second.lock(REGISTRATION.key):
            entered = True
    async with second.lock(TOKENS.key):
        again = True

    assert entered
    assert again


async def test_a_link_to_the_file_stays_a_link(path, tmp_path):
    """Ours: a file that is kept elsewhere is changed there."""
    real = tmp_path / "real.json"
    path.parent.mkdir()
    path.symlink_to(real)
    await FileTokenStore(path, KEY).put(TOKENS.key, TOKENS)

    assert path.is_symlink()
    assert TOKENS == await FileTokenStore(real, KEY).get(TOKENS.key)


@pytest.mark.parametrize("key", ["", "password", b"16 bytes of key.", []])
def test_a_key_that_can_be_guessed_is_refused(path, key):
    """Ours: a key is 32 characters or more, and the error says how to make one."""
    with pytest.raises(UsageError, match=r"32 characters|give it a key"):
        FileTokenStore(path, key)


def test_without_filelock_the_error_names_the_extra(path, monkeypatch):
    """Ours: what is missing is said when the store is made, with what to install."""
    monkeypatch.setitem(sys.modules, "filelock", None)

    with pytest.raises(UsageError, match=r"pip install 'isthmus\[auth\]'"):
        FileTokenStore(path, KEY)


async def test_the_file_says_what_it_is(path):
    """Ours: a later isthmus can tell the format of what it finds."""
    await FileTokenStore(path, KEY).put(TOKENS.key, TOKENS)
    written = json.loads(path.read_bytes())

    assert ("isthmus-tokens", 1) == (written["format"], written["version"])
    assert [TOKENS.key.text] == list(written["records"])
