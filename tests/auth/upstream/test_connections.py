"""Tests of upstream tokens while they are used: renewed once, checked, ended, and never in clear."""

import asyncio

import msgspec
import pytest

from isthmus.auth.authorization_server.storage.records import ClientGrant
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore, SQLiteAuthStore
from isthmus.auth.authorization_server.upstream import token_rows
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.authorization_server.upstream.connections import UpstreamConnections
from isthmus.errors import UsageError
from support.auth.upstream_flow import log_in_user, make_upstream


@pytest.fixture
async def login(remote, acme, connections):
    """Alice's tokens, with a grant that stands on them."""
    tokens, _, _ = await log_in_user(remote, acme)
    await connections.add("login-1", "alice", tokens)
    await connections._store.write(lambda records: records.add_grant(grant(records.now)))
    return tokens


def grant(now, id="g1", upstream_id="login-1"):
    """A grant that stands on a login."""
    return ClientGrant(
        id=id,
        client_id="c",
        user_id="alice",
        scope="files",
        resource="https://mcp.example/mcp",
        gen=0,
        created_at=now,
        rotated_at=None,
        expires_at=now + 3600,
        ends_at=None,
        revoked_at=None,
        jkt=None,
        upstream_id=upstream_id,
    )


async def revoked(connections, id="g1"):
    """Whether a grant was revoked."""
    found = await connections._store.read(lambda records: records.grant(id))
    return found.revoked_at is not None


async def test_good_tokens_are_used_without_asking_anybody(remote, connections, login):
    """Ours: a status that is known costs nothing."""
    before = len(remote.asked)

    assert all([await connections.stands("login-1") for _ in range(5)])
    assert before == len(remote.asked)


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_twenty_that_find_a_token_expired_renew_it_once(remote, connections, login, clock):
    """Spec: renewal is handled; ours: in one flight, since the refresh token is good once."""
    clock.now += 3600

    assert all(await asyncio.gather(*(connections.stands("login-1") for _ in range(20))))
    assert 2 == remote.count("POST /token")  # the login's own, and one
    assert not await revoked(connections)


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_a_refresh_that_is_refused_revokes_the_grant_for_all(
    remote, connections, login, clock
):
    """Spec: our tokens have the life of the third party's."""
    clock.now += 3600
    remote.refresh_error = "invalid_grant"

    found = await asyncio.gather(*(connections.stands("login-1") for _ in range(20)))

    assert ([False] * 20, 2) == (found, remote.count("POST /token"))
    assert await revoked(connections)
    assert await connections.get("login-1") is None


@pytest.mark.covers("auth.authority.third-party-bound")
@pytest.mark.parametrize(
    "claims", [{"sub": "id-of-mallory"}, {"sub": None}, {"iss": "https://other.example"}]
)
async def test_a_renewal_for_another_user_ends_the_login(remote, connections, login, clock, claims):
    """OpenID Connect Core 12.2: a renewed ID token names the same issuer and the same user."""
    tokens = msgspec.structs.replace(login, subject="id-of-alice")
    await connections.add("login-1", "alice", tokens)
    clock.now += 3600
    remote.claims = claims

    assert not await connections.stands("login-1")
    assert await revoked(connections)
    assert await connections.get("login-1") is None


async def test_a_provider_that_is_down_ends_nothing(remote, connections, login, clock):
    """Ours: unavailable is not refused; when it is back, everything goes on."""
    clock.now += 3600
    await remote.stop()

    with pytest.raises(UpstreamUnavailable):
        await connections.stands("login-1")
    assert not await revoked(connections)
    await remote.start()
    assert await connections.stands("login-1")


async def test_a_token_is_looked_at_again_after_the_interval(remote, clock):
    """Ours: check_interval asks the provider, by introspection."""
    provider = make_upstream(remote, clock, check_interval=60)
    connections = UpstreamConnections(_memory(clock), [provider])
    tokens, _, _ = await log_in_user(remote, provider)
    await connections.add("login-1", "alice", tokens)

    assert await connections.stands("login-1")
    assert 0 == remote.count("POST /introspect")
    clock.now += 61
    assert await connections.stands("login-1")
    assert await connections.stands("login-1")
    assert 1 == remote.count("POST /introspect")
    clock.now += 61
    remote.revoke_all()
    assert not await connections.stands("login-1")
    await _closed(connections)


async def test_a_session_that_is_over_is_not_renewed(remote, clock):
    """Ours: session= ends a login however good its refresh token is."""
    provider = make_upstream(remote, clock, session=100)
    connections = UpstreamConnections(_memory(clock), [provider])
    tokens, _, _ = await log_in_user(remote, provider)
    await connections.add("login-1", "alice", tokens)
    clock.now += 101

    assert not await connections.stands("login-1")
    assert 1 == remote.count("POST /token")
    await _closed(connections)


async def test_two_processes_renew_a_token_once(remote, clock, tmp_path):
    """Ours: a refresh token that is used twice looks stolen, so processes take turns."""
    path, key = tmp_path / "auth.db", "k" * 43
    both = [
        UpstreamConnections(
            SQLiteAuthStore(path, key=key, clock=clock), [make_upstream(remote, clock)]
        )
        for _ in range(2)
    ]
    tokens, _, _ = await log_in_user(remote, both[0].providers["acme"])
    await both[0].add("login-1", "alice", tokens)
    clock.now += 3600
    remote.hold = asyncio.Event()

    waiting = asyncio.gather(*(c.usable("login-1") for c in both for _ in range(5)))
    await remote.held.wait()
    remote.hold.set()
    found = await waiting

    assert 2 == remote.count("POST /token")
    assert 1 == len({row.tokens.access for row in found})
    for connections in both:
        await _closed(connections)


async def test_a_cancelled_caller_does_not_stop_a_renewal(remote, connections, login, clock):
    """Ours: the refresh token was sent; whoever comes next finds the new one."""
    clock.now += 3600
    remote.hold = asyncio.Event()
    waiting = asyncio.ensure_future(connections.stands("login-1"))
    await remote.held.wait()
    waiting.cancel()
    remote.hold.set()

    assert await connections.stands("login-1")
    assert 2 == remote.count("POST /token")


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_ending_a_login_takes_it_back_at_the_provider(remote, connections, login):
    """Spec: one lifecycle: what is revoked with us is revoked there (RFC 7009)."""
    assert await connections.end("login-1")
    await connections.settled()

    assert ({}, {}, True) == (remote.access, remote.refresh, await revoked(connections))
    assert not await connections.end("login-1")


async def test_a_provider_hears_of_the_end_with_the_last_login_there(remote, acme, connections):
    """Ours: many providers end all that a user granted us; another client's login goes on."""
    for id in ("login-1", "login-2"):
        tokens, _, _ = await log_in_user(remote, acme)
        await connections.add(id, "alice", tokens, waits=True)

    await connections.end("login-1")
    await connections.settled()
    assert (0, True) == (remote.count("POST /revoke"), await connections.stands("login-2"))
    await connections.end("login-2")
    await connections.settled()
    assert {} == remote.access


async def test_a_renewal_is_not_written_over_a_newer_login(remote, acme, connections, clock):
    """Ours: somebody connects anew while an old token is being renewed."""
    id = token_rows.make_connection_id("alice", "acme")
    await connections.add(id, "alice", (await log_in_user(remote, acme))[0])
    clock.now += 3600
    remote.hold = asyncio.Event()
    renewing = asyncio.ensure_future(connections.usable(id))
    await remote.held.wait()
    remote.hold.set()
    remote.user = "bob"
    newer = (await log_in_user(remote, acme))[0]
    await connections.end(id)
    await connections.add(id, "alice", newer)
    await asyncio.gather(renewing, return_exceptions=True)

    assert newer.access == (await connections.get(id)).tokens.access


async def test_a_login_that_got_no_grant_is_not_kept(remote, acme, connections, clock):
    """Ours: a crash before our code was issued leaves tokens that nobody can use, and they go."""
    tokens, _, _ = await log_in_user(remote, acme)
    await connections.add("login-2", "alice", tokens, waits=True)
    await connections.sweep()
    assert await connections.get("login-2") is not None
    clock.now += 601

    await connections.sweep()
    await connections.settled()

    assert await connections.get("login-2") is None
    assert {} == remote.refresh


async def test_a_login_whose_grant_stands_is_kept(connections, login, clock):
    """Ours: what is in use is not swept away."""
    clock.now += 601

    await connections.sweep()

    assert await connections.get("login-1") is not None


async def test_a_connection_ends_when_its_user_is_revoked(remote, acme, connections):
    """Ours: a user who is revoked, from the command line too, has no account elsewhere any more."""
    tokens, _, _ = await log_in_user(remote, acme)
    id = token_rows.make_connection_id("alice", "acme")
    await connections.add(id, "alice", tokens)
    assert "acme" == (await connections.usable(id)).provider

    await connections._store.write(lambda records: records.revoke_user("alice"))

    assert await connections.get(id) is None
    with pytest.raises(UpstreamDenied):
        await connections.usable(id)
    assert [] == await connections._store.read(
        lambda records: token_rows.list_user_rows(records, "alice")
    )
    await connections.sweep()
    await connections.settled()
    assert {} == remote.refresh


@pytest.mark.covers("auth.all.tokens-stored-safely")
@pytest.mark.covers("auth.authority.third-party-safe")
async def test_nothing_of_a_token_is_in_the_file(remote, acme, clock, tmp_path):
    """Spec: third-party credentials are stored securely."""
    store = SQLiteAuthStore(tmp_path / "auth.db", key="k" * 43, clock=clock)
    connections = UpstreamConnections(store, [acme])
    tokens, _, _ = await log_in_user(remote, acme)
    await connections.add("login-1", "alice", tokens)
    await store.close()

    whole = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert tokens.access.reveal().encode() not in whole
    assert tokens.refresh.reveal().encode() not in whole


async def test_tokens_cannot_be_given_to_another_user(connections, login):
    """Ours: a row is sealed for its user and its id; who edits the file gains nothing."""
    store = connections._store
    await store.write(lambda r: r.db.execute("UPDATE upstream SET user_id = 'mallory'"))
    with pytest.raises(UsageError):
        await connections.get("login-1")
    await store.write(lambda r: r.db.execute("UPDATE upstream SET user_id = 'alice', id = 'other'"))
    with pytest.raises(UsageError):
        await connections.get("other")


async def test_tokens_of_a_provider_that_is_configured_no_more_say_so(remote, acme, clock):
    """Ours: the error names the provider."""
    store = _memory(clock)
    tokens, _, _ = await log_in_user(remote, acme)
    await UpstreamConnections(store, [acme]).add("login-1", "alice", tokens)

    with pytest.raises(UsageError, match="'acme'"):
        await UpstreamConnections(store, []).usable("login-1")
    await store.close()


async def test_without_a_row_there_is_no_login(connections):
    """Ours: what was taken away is gone at once."""
    with pytest.raises(UpstreamDenied):
        await connections.usable("login-7")


def _memory(clock):
    return MemoryAuthStore(clock=clock)


async def _closed(connections):
    await connections.close()
    await connections._store.close()
