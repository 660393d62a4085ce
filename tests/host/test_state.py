"""The state of a host: a folder for its owner only, one database, one key."""

import asyncio
import os
import stat

import pytest

from isthmus.host.state.database import HostState, find_user_folder, load_key
from isthmus.store.sqlite import StoreUnusable


@pytest.mark.covers("hostaudit.store.owner-only")
async def test_only_its_owner_can_look_into_the_state(tmp_path):
    """Ours: the folder, also one that was there, the database and the key."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    state = HostState(folder)
    await state.write(lambda db: None)
    state.key()
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}
    await state.close()

    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
    assert {0o600} == set(modes.values())
    assert {"host.db", "host.key"} <= set(modes)


def test_the_key_stays_the_same(tmp_path):
    """Ours: whichever process makes it."""
    one, other = HostState(tmp_path), HostState(tmp_path)

    assert one.key() == other.key() == HostState(tmp_path).key()
    assert HostState(None).key() != HostState(None).key()


def test_a_key_that_is_none_is_refused(tmp_path):
    """Ours: it is never replaced, since what it opened would be lost."""
    (tmp_path / "host.key").write_bytes(b"short")
    with pytest.raises(StoreUnusable, match=r"host\.key is no key"):
        HostState(tmp_path).key()
    with pytest.raises(StoreUnusable, match="No such file"):
        load_key(tmp_path / "other.key", make=False)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    """Ours: with its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="file/state cannot be the folder"):
        HostState(tmp_path / "file" / "state")


async def test_two_processes_may_have_one_state(tmp_path):
    """Ours: a running host, and a command beside it."""
    one, other = HostState(tmp_path), HostState(tmp_path)
    add = "INSERT INTO body VALUES (?, 'x', x'00', 0)"
    await asyncio.gather(
        *(s.write(lambda db, n=n: db.execute(add, (b"%d" % n,))) for n, s in enumerate([one, other] * 10))
    )  # fmt: skip
    found = await other.read(lambda db: db.execute("SELECT count(*) FROM body").fetchone()[0])
    await one.close()
    await other.close()

    assert 20 == found


def test_the_users_own_state_is_where_the_system_wants_it(tmp_path, monkeypatch):
    """Ours: beside what else of isthmus lasts."""
    monkeypatch.setattr("sys.platform", "linux")

    assert tmp_path / "isthmus" / "host" == find_user_folder({"XDG_STATE_HOME": str(tmp_path)})


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give away")
@pytest.mark.parametrize("what", ["", "host.db", "host.key", "link"])
def test_a_state_of_somebody_elses_is_refused(tmp_path, what):
    """Ours: who owns the folder, or a file that lies in it already, could write the grants."""
    folder = tmp_path / "state"
    folder.mkdir()
    (tmp_path / "theirs").write_text("")
    os.chown(tmp_path / "theirs", 12345, -1)
    if what == "link":
        (folder / "host.db").symlink_to(tmp_path / "theirs")
    elif what:
        (folder / what).write_text("")
        os.chown(folder / what, 12345, -1)
    else:
        os.chown(folder, 12345, -1)

    with pytest.raises(StoreUnusable, match="belongs to another user"):
        HostState(folder)


@pytest.mark.covers("hostaudit.store.owner-only")
def test_folders_on_the_way_are_the_owners_too(tmp_path):
    """Ours: whoever could rename the folder could put another one in its place."""
    before = os.umask(0)
    try:
        HostState(tmp_path / "a" / "b" / "state")
    finally:
        os.umask(before)

    assert {0o700} == {stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "a").rglob("*")}
    assert 0o700 == stat.S_IMODE((tmp_path / "a").stat().st_mode)
