"""DPoP proofs are good once for all processes that share a store, and over a restart."""

import sqlite3
import stat

import pytest

from isthmus.auth import KVReplays, SQLiteAuthStore, SQLiteReplays
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.errors import UsageError
from isthmus.store.kv import MemoryKV
from support.auth.authority import make_authority
from support.auth.protected_server import READ, RESOURCE, Files, make_guard, make_person
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

NOW = 1_800_000_000.0
KEY = DpopKey.generate()


def make_dpop_server(replays):
    """A server that takes tokens bound to a key, as a process of its own would have it."""
    people = {"bound": make_person("ada", READ, jkt=KEY.jkt)}
    return Files(make_guard(people, clock=lambda: NOW, dpop="require", replays=replays))


async def show(files, proof):
    """The status with which a server answers a proof."""
    head = {**modern_head(name="read"), "authorization": "DPoP bound", "dpop": proof}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    return await fetch(files.app, headers=head, body=body)


def proof():
    """A new proof for one request."""
    return KEY.proof("POST", RESOURCE, token="bound", now=NOW)


@pytest.mark.covers("auth.threat.t33-proof-replay")
async def test_a_proof_is_good_once_for_all_processes_of_a_file(tmp_path):
    """RFC 9449 11.1: the jti of proofs is remembered; a second process, or the next, knows it, too."""
    path, shown = tmp_path / "proofs.db", proof()
    replays = [SQLiteReplays(path, clock=lambda: NOW) for _ in range(2)]
    first, second = map(make_dpop_server, replays)
    assert 200 == (await show(first, shown)).status
    assert 401 == (await show(second, shown)).status
    assert 200 == (await show(second, proof())).status
    for one in replays:
        await one.close()
    again = SQLiteReplays(path, clock=lambda: NOW)
    assert 401 == (await show(make_dpop_server(again), shown)).status
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    await again.close()


async def test_proofs_that_are_over_are_forgotten(tmp_path):
    """Ours: the file holds the proofs of some minutes."""
    clock = [NOW]
    replays = SQLiteReplays(tmp_path / "proofs.db", clock=lambda: clock[0])
    for n in range(5):
        assert await replays.first("jkt", str(n), NOW + 300)
    clock[0] += 301
    assert await replays.first("jkt", "new", clock[0] + 300)
    await replays.close()
    with sqlite3.connect(tmp_path / "proofs.db") as db:
        assert (1,) == db.execute("SELECT count(*) FROM proof").fetchone()


async def test_a_key_value_store_remembers_proofs_for_all_machines():
    """Ours: the seam of all other stores will do, too."""
    kv, shown = MemoryKV(), proof()
    first, second = (make_dpop_server(KVReplays(kv, clock=lambda: NOW)) for _ in range(2))
    assert [200, 401] == [(await show(one, shown)).status for one in (first, second)]


async def test_a_store_that_cannot_be_asked_is_503(tmp_path):
    """Ours: who cannot tell whether a proof is new takes none, and says when to come again."""
    replays = SQLiteReplays(tmp_path / "proofs.db", clock=lambda: NOW)
    files = make_dpop_server(replays)
    assert 200 == (await show(files, proof())).status
    replays._database.patience = 0.1
    with sqlite3.connect(tmp_path / "proofs.db", isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        refused = await show(files, proof())
    assert (503, "5") == (refused.status, refused.header("retry-after"))
    assert ["read"] == [done.partition(" ")[0] for done in files.done]
    await replays.close()


async def test_an_authorization_server_with_a_file_keeps_the_proofs_of_its_resources(tmp_path):
    """Ours: nobody has to think of it where there is a file."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key="k" * 43)
    authority = make_authority("http://localhost:8000", None, store=store)
    auth = authority.resource_auth(RESOURCE, dpop="allow")
    assert "SQLiteReplays" in repr(auth._stored_replays)
    assert str(tmp_path / "auth.db.proofs") in repr(auth._stored_replays)
    assert None is authority.resource_auth(RESOURCE)._stored_replays
    await authority.close()


def test_what_is_no_store_of_proofs_is_refused_when_it_is_given():
    """Ours: with what to give in its place."""
    with pytest.raises(UsageError, match="SQLiteReplays"):
        make_guard({}, dpop="allow", replays="proofs.db")
