"""Default token store, on systems with and without a keyring."""

import asyncio
import logging
import re
import stat
import subprocess
import sys
from pathlib import Path
from threading import Event

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked

from isthmus.auth.client.store.file_store import FileTokenStore
from isthmus.auth.client.store.keyring_store import (
    DefaultTokenStore,
    default_store,
    find_state_folder,
)
from isthmus.auth.client.store.records import Key, MemoryTokenStore, Tokens
from isthmus.auth.client.store.vault import StoreBroken
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError

TOKENS = Tokens(
    access=Secret("access-token-of-bob"),
    issuer="https://login.example",
    client_id="desktop",
    resource="https://mcp.example/mcp",
)
KEY = "e" * 43


class Ring(KeyringBackend):
    """A keyring of a desktop, in memory."""

    priority = 5

    def __init__(self):
        super().__init__()
        self.entries = {}

    def get_password(self, service, username):
        return self.entries.get((service, username))

    def set_password(self, service, username, password):
        self.entries[service, username] = password


class Locked(Ring):
    """A keyring that its user does not unlock."""

    def get_password(self, service, username):
        raise KeyringLocked("said no, and the password is hunter2-hunter2")


class Silent(Ring):
    """A keyring that never answers."""

    def __init__(self):
        super().__init__()
        self.end = Event()

    def get_password(self, service, username):
        self.end.wait()


class Open(Ring):
    """A keyring that writes in clear, as some that can be installed do."""

    priority = 0.5


class Forgetful(Ring):
    """A keyring that keeps nothing."""

    def set_password(self, service, username, password):
        pass


@pytest.fixture(autouse=True)
def restored():
    """The keyring of this system is back after the test."""
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def ring(backend):
    """Make a keyring the system's."""
    keyring.set_keyring(backend)
    return backend


async def test_the_keyring_holds_a_key_and_nothing_else(tmp_path):
    """Ours: tokens are in a file, and the one entry of the keyring is short on every system."""
    backend = ring(Ring())
    store = DefaultTokenStore(environ={}, folder=tmp_path / "state")
    await store.put(TOKENS.key, TOKENS)
    [(place, key)] = backend.entries.items()

    assert ("isthmus", "token store") == place
    assert 43 == len(key)
    assert TOKENS == await FileTokenStore(tmp_path / "state" / "tokens.json", key).get(TOKENS.key)
    assert 0o700 == stat.S_IMODE((tmp_path / "state").stat().st_mode)


async def test_the_next_program_finds_the_key(tmp_path):
    """Ours: a restart needs no login."""
    ring(Ring())
    await DefaultTokenStore(environ={}, folder=tmp_path).put(TOKENS.key, TOKENS)
    again = DefaultTokenStore(environ={}, folder=tmp_path)

    assert TOKENS == await again.get(TOKENS.key)
    assert [TOKENS.key] == await again.keys()
    async with again.lock(TOKENS.key):
        await again.delete(TOKENS.key)
    assert [] == await again.keys()


async def test_what_the_environment_says_comes_first(tmp_path):
    """Ours: a key that somebody set is used, and no keyring is asked."""
    backend = ring(Silent())
    store = DefaultTokenStore(environ={"ISTHMUS_STORE_KEY": KEY}, folder=tmp_path)
    await store.put(TOKENS.key, TOKENS)

    assert {} == backend.entries
    assert (tmp_path / "tokens-by-variable.json").exists()


async def test_the_key_in_the_environment_can_be_replaced(tmp_path):
    """Ours: of several keys the first encrypts, and the others open until the next change."""
    new = "n" * 43
    for keys in (KEY, f"{new} {KEY}", new):
        store = DefaultTokenStore(environ={"ISTHMUS_STORE_KEY": keys}, folder=tmp_path)
        if keys == new:
            assert TOKENS == await store.get(TOKENS.key)
        await store.put(TOKENS.key, TOKENS)


async def test_a_key_in_the_environment_that_is_too_short_is_an_error(tmp_path):
    """Ours: whoever sets a password there is told how to make a key, and nothing is kept."""
    store = DefaultTokenStore(environ={"ISTHMUS_STORE_KEY": "hunter2"}, folder=tmp_path)

    with pytest.raises(UsageError, match="32 characters"):
        await store.put(TOKENS.key, TOKENS)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.covers("auth.all.tokens-stored-safely")
@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (fail.Keyring, "there is no keyring"),
        (Locked, r"failed \(KeyringLocked\)"),
        (Silent, "did not answer"),
        (Open, "there is no keyring"),
        (Forgetful, "does not keep"),
    ],
)
async def test_without_a_usable_keyring_memory_has_to_do(tmp_path, caplog, backend, reason):
    """X5: nothing is written, one line says so and why, and the client goes on."""
    backend = ring(backend())
    store = DefaultTokenStore(environ={}, folder=tmp_path, patience=0.05)
    with caplog.at_level(logging.WARNING, "isthmus"):
        await asyncio.gather(*(store.put(TOKENS.key, TOKENS) for _ in range(3)))
        found = await store.get(TOKENS.key)
    if isinstance(backend, Silent):
        backend.end.set()

    assert TOKENS == found
    assert isinstance(await store.chosen(), MemoryTokenStore)
    assert [] == [each.name for each in tmp_path.iterdir() if each.suffix == ".json"]
    [line] = [r.getMessage() for r in caplog.records if r.name == "isthmus"]
    assert "ISTHMUS_STORE_KEY" in line
    assert re.search(reason, line)


async def test_a_keyring_that_is_not_installed_is_like_none(tmp_path, caplog, monkeypatch):
    """Ours: without the extra a client works, and says what would make tokens last."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    store = DefaultTokenStore(environ={}, folder=tmp_path)
    with caplog.at_level(logging.WARNING, "isthmus"):
        await store.put(TOKENS.key, TOKENS)

    assert "pip install 'isthmus[auth]'" in caplog.text


async def test_without_a_home_memory_has_to_do(caplog, monkeypatch):
    """Ours: a user without a home folder, as in some containers, is a user without a keyring."""

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    store = DefaultTokenStore(environ={})
    empty = await store.keys()
    await store.put(TOKENS.key, TOKENS)

    assert [] == empty
    assert TOKENS == await store.get(TOKENS.key)
    assert "no home folder" in caplog.text


async def test_a_key_that_the_keyring_lost_is_not_made_anew(tmp_path):
    """Ours: a file that can no longer be read is an error, and is not begun afresh."""
    backend = ring(Ring())
    await DefaultTokenStore(environ={}, folder=tmp_path).put(TOKENS.key, TOKENS)
    before = (tmp_path / "tokens.json").read_bytes()
    backend.entries.clear()

    with pytest.raises(StoreBroken, match=r"no key for .* any more"):
        await DefaultTokenStore(environ={}, folder=tmp_path).put(TOKENS.key, TOKENS)
    assert {} == backend.entries
    assert before == (tmp_path / "tokens.json").read_bytes()


async def test_a_cancelled_caller_leaves_the_choice_of_a_store_to_the_others(tmp_path):
    """Ours: a task that is cancelled while the keyring is asked leaves the others their answer."""
    ring(Ring())
    store = DefaultTokenStore(environ={}, folder=tmp_path)
    first, second = (asyncio.create_task(store.put(TOKENS.key, TOKENS)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)

    assert first.cancelled()
    assert TOKENS == await store.get(TOKENS.key)


async def test_no_keyring_is_asked_for_what_is_not_there(tmp_path):
    """Ours: a server that wants no login costs nobody a look into the keyring, or its prompt."""
    backend = ring(Ring())
    await DefaultTokenStore(environ={}, folder=tmp_path).put(TOKENS.key, TOKENS)
    backend.get_password = None
    store = DefaultTokenStore(environ={}, folder=tmp_path)
    other = Key("https://another.example", "desktop", "https://mcp.example/mcp")
    await store.delete(other)

    assert [TOKENS.key] == await store.keys()
    assert await store.get(other) is None


def test_one_store_serves_several_loops(tmp_path):
    """Ours: a store that is a default argument may be used by one loop after another."""
    ring(Ring())
    store = DefaultTokenStore(environ={}, folder=tmp_path)
    asyncio.run(store.put(TOKENS.key, TOKENS))

    assert TOKENS == asyncio.run(store.get(TOKENS.key))


def test_making_the_default_store_looks_at_nothing():
    """Ours: neither keyring nor filelock nor cryptography is imported before a token is asked for."""
    code = (
        "import sys; from isthmus.auth.client.store.keyring_store import default_store; default_store();"
        "print(sorted({'keyring', 'filelock', 'cryptography'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == said.stdout.strip()
    assert "not asked yet" in repr(default_store())


def test_a_silent_keyring_keeps_no_program_alive(tmp_path):
    """Ours: a program ends although the keyring never answered it."""
    code = """
import asyncio, sys, threading, keyring
from pathlib import Path
from keyring.backend import KeyringBackend
from isthmus.auth.client.store.keyring_store import DefaultTokenStore
class Silent(KeyringBackend):
    priority = 5
    def get_password(self, service, username): threading.Event().wait()
    def set_password(self, service, username, password): pass
keyring.set_keyring(Silent())
store = DefaultTokenStore(environ={}, folder=Path(sys.argv[1]), patience=0.01)
async def main():
    await store.chosen()
    print(await store.keys())
asyncio.run(main())
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)

    assert "[]" == said.stdout.strip()


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, ".local/state/isthmus"),
        ("linux", {"XDG_STATE_HOME": "/var/states"}, "/var/states/isthmus"),
        ("linux", {"XDG_STATE_HOME": "relative"}, ".local/state/isthmus"),
        ("darwin", {}, "Library/Application Support/isthmus"),
        ("win32", {}, "AppData/Local/isthmus"),
        ("win32", {"LOCALAPPDATA": "/locals"}, "/locals/isthmus"),
    ],
)
def test_each_system_has_its_place_for_state(platform, environ, expected):
    """Ours: files stand where the system's users and backups expect them."""
    assert Path.home() / expected == find_state_folder(environ, platform)
