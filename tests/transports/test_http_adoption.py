"""Sessions that need no memory: any process with the secret goes on with them."""

import asyncio

import msgspec
import pytest

from isthmus import Context, Server
from isthmus.store import MemoryKV, MemoryStore, StoreUnavailable
from support.clock import ManualClock
from support.http.asgi_driver import fetch
from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    begin_legacy_call,
    legacy_call_body,
    legacy_head,
    read_tool_text,
)

SECRET = b"s" * 32
LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]


def make_server(store=None, secret=SECRET, **settings):
    """A server with a tool that answers, one that asks, and a resource."""
    server = Server("adopted", version="1", secret=secret, store=store, **settings)

    @server.tool
    async def hello(ctx: Context) -> str:
        return f"hello {ctx.client.name}"

    @server.resource("notes://all")
    async def notes() -> str:
        return "none"

    return server


def make_app(store=None, secret=SECRET, options=None, **settings):
    """An app as a process of its own would have it."""
    return make_server(store, secret, **settings).asgi(**(options or {}))


def head(session=None, revision="2025-11-25", **more):
    """The headers of a POST in a revision."""
    named = legacy_head(session, **more)
    if session is not None:
        named["mcp-protocol-version"] = revision
    return named


async def open_session(app, revision="2025-11-25", **options):
    """A session whose handshake this app has seen whole."""
    session = await initialize(app, revision, **options)
    answer = await fetch(app, headers=head(session, revision), body=INITIALIZED, **options)
    assert 202 == answer.status
    return session


async def initialize(app, revision="2025-11-25", **options):
    """A session whose client has not said yet that it is initialized."""
    body = msgspec.json.decode(msgspec.json.encode(INITIALIZE))
    body["params"]["protocolVersion"] = revision
    answer = await fetch(app, headers=head(), body=body, **options)
    session = answer.header("mcp-session-id")
    assert session is not None, answer.body
    return session


async def call(app, session, revision="2025-11-25", id=1, **options):
    """The answer to a call of ``hello``."""
    body = legacy_call_body("hello", id)
    return await fetch(app, headers=head(session, revision), body=body, **options)


async def ask(app, session, method, params, id=2):
    """The answer to any request."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return await fetch(app, headers=head(session), body=body)


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_client_survives_the_restart_of_its_only_process(revision):
    """Ours: with a fixed secret and no store, in every revision that has sessions."""
    before = make_app()
    session = await open_session(before, revision)
    assert 200 == (await call(before, session, revision)).status
    await before.close()

    after = make_app()
    answer = await call(after, session, revision)

    assert "hello test" == read_tool_text(answer.json)
    await after.close()


@pytest.mark.parametrize("revision", LEGACY)
async def test_two_processes_serve_one_session_in_turn(revision):
    """Ours: no sticky routing, also in the middle of the handshake."""
    apps = [make_app(), make_app()]
    session = await initialize(apps[0], revision)
    await fetch(apps[1], headers=head(session, revision), body=INITIALIZED)

    answers = [await call(apps[n % 2], session, revision, id=n) for n in range(6)]

    assert ["hello test"] * 6 == [read_tool_text(answer.json) for answer in answers]
    for app in apps:
        await app.close()


async def test_without_the_secret_nobody_goes_on_with_a_session():
    """2025-11-25 basic/transports#session-management: 404 has the client initialize anew."""
    first, second = make_app(secret=None), make_app(secret=None)
    session = await open_session(first)

    answer = await call(second, session)

    assert 404 == answer.status
    assert "send initialize again" in answer.json["error"]["message"]
    for app in (first, second):
        await app.close()


async def test_an_older_secret_still_opens():
    """Ours: secrets can be rotated while sessions last."""
    old, new = make_app(), make_app(secret=[b"n" * 32, SECRET])
    later = make_app(secret=b"n" * 32)
    session = await open_session(old)

    assert [200, 404] == [(await call(app, session)).status for app in (new, later)]
    for app in (old, new, later):
        await app.close()


async def test_the_life_of_an_id_ends():
    """Ours: an id that was stolen is not good for ever."""
    clock = ManualClock()
    apps = [make_app(), make_app()]
    for app in apps:
        app._seal.clock = clock
    session = await open_session(apps[0])
    clock.now += 86_399

    assert 200 == (await call(apps[1], session)).status
    await apps[1].close()
    clock.now += 2
    assert 404 == (await call(apps[1], session)).status
    for app in apps:
        await app.close()


async def test_what_is_no_id_of_ours_is_404():
    """2025-11-25 basic/transports#session-management: garbage, truncated, changed, another server's."""
    app, other = make_app(), Server("other", secret=SECRET).asgi()
    session, foreign = await open_session(app), await initialize(other)
    middle = len(session) // 2
    flipped = session[:middle] + ("A" if session[middle] != "A" else "B") + session[middle + 1 :]
    wrong = ["x", "A" * 599, "A" * 5000, session[:-1], session[4:], flipped, session + "A", foreign]

    for verb in ("GET", "DELETE"):
        answer = await fetch(app, method=verb, headers=head(flipped))
        assert 404 == answer.status
    assert [404] * len(wrong) == [(await call(app, one)).status for one in wrong]
    assert 200 == (await call(app, session)).status
    for one in (app, other):
        await one.close()


async def test_requests_that_come_at_once_adopt_one_session():
    """Ours: also where the record has to be read first."""
    store = MemoryStore()
    apps = [make_app(store), make_app(store)]
    session = await open_session(apps[0])

    answers = await asyncio.gather(*(call(apps[1], session, id=n) for n in range(8)))

    assert [200] * 8 == [answer.status for answer in answers]
    assert 1 == len(apps[1]._book)
    for app in apps:
        await app.close()


class CountingKV(MemoryKV):
    """A store that counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def get(self, key):
        self.asked.append(("get", key))
        return await super().get(key)

    async def put(self, key, value, ttl=None):
        self.asked.append(("put", key))
        return await super().put(key, value, ttl)

    async def cas(self, key, value, version, ttl=None):
        self.asked.append(("cas", key))
        return await super().cas(key, value, version, ttl)

    def about_sessions(self):
        """What was asked about sessions since the last time."""
        asked, self.asked = self.asked, []
        return [one for one in asked if one[1].startswith("session/")]


async def test_plain_calls_of_sessions_cost_the_store_nothing():
    """Ours: opening costs nothing, adoption one read, and each call after that nothing."""
    store = MemoryStore()
    store.kv = CountingKV()
    apps = [make_app(store), make_app(store)]
    session = await open_session(apps[0])
    for number in range(5):
        await call(apps[0], session, id=number)
    at_home = store.kv.about_sessions()
    await call(apps[1], session)
    adopting = store.kv.about_sessions()
    for number in range(5):
        await call(apps[1], session, id=number)

    assert [] == at_home
    assert ["get"] == [verb for verb, _ in adopting]
    assert [] == store.kv.about_sessions()
    for app in apps:
        await app.close()


async def test_a_log_level_and_subscriptions_are_known_where_a_session_is_adopted():
    """Ours: what a client said once, it has said to all nodes."""
    store = MemoryStore()
    servers = [make_server(store), make_server(store)]
    apps = [server.asgi() for server in servers]
    session = await open_session(apps[0])
    await ask(apps[0], session, "logging/setLevel", {"level": "error"})
    await ask(apps[0], session, "resources/subscribe", {"uri": "notes://all"})
    await ask(apps[0], session, "resources/subscribe", {"uri": "notes://none"})
    await ask(apps[0], session, "resources/unsubscribe", {"uri": "notes://none"})

    await call(apps[1], session)

    there = apps[1]._book.find(session)
    assert "error" == there.peer.caller.log_level
    assert ("notes://all",) == there.record.subscriptions
    assert ("notes://all",) == apps[0]._book.find(session).record.subscriptions
    for app in apps:
        await app.close()


async def test_a_deleted_session_stays_ended_without_a_store():
    """2025-11-25 basic/transports#session-management: 404 after the session was terminated."""
    app = make_app()
    session = await open_session(app)

    deleted = await fetch(app, method="DELETE", headers=head(session))

    assert 200 == deleted.status
    assert 404 == (await call(app, session)).status
    assert 404 == (await fetch(app, method="DELETE", headers=head(session))).status
    await app.close()


async def test_a_deleted_session_stays_ended_when_its_app_stops_and_starts_again():
    """Spec 2025-11-25 session-management: the server MUST answer 404 once it has ended a session."""
    app = make_app()
    session = await open_session(app)
    other = await open_session(app)
    assert 200 == (await fetch(app, "DELETE", headers=head(session))).status
    await app.close()
    statuses = [(await call(app, one)).status for one in (session, other)]
    await app.close()

    assert [404, 200] == statuses


async def test_a_deleted_session_is_ended_at_all_nodes_of_a_store():
    """2025-11-25 basic/transports#session-management: also at one that has never seen it."""
    store = MemoryStore()
    apps = [make_app(store), make_app(store), make_app(store)]
    session = await open_session(apps[0])

    deleted = await fetch(apps[1], method="DELETE", headers=head(session))

    assert 200 == deleted.status
    assert [404, 404] == [(await call(app, session)).status for app in apps[1:]]
    for app in apps:
        await app.close()


async def test_state_that_would_be_lost_ends_its_session_instead():
    """Ours: without a store a client must learn that nobody knows its subscriptions any more."""
    app = make_app(options={"session_idle": 0.01})
    plain, subscribed = await open_session(app), await open_session(app)
    await ask(app, subscribed, "resources/subscribe", {"uri": "notes://all"})
    ended = asyncio.Event()
    app._book.find(subscribed).peer.on_close(ended.set)

    await ended.wait()

    assert [200, 404] == [(await call(app, one)).status for one in (plain, subscribed)]
    await app.close()


async def test_an_idle_session_comes_back_with_its_subscriptions_where_there_is_a_store():
    """Ours: its memory is given back, and nothing else."""
    app = make_app(MemoryStore(), options={"session_idle": 0.01})
    session = await open_session(app)
    await ask(app, session, "resources/subscribe", {"uri": "notes://all"})
    ended = asyncio.Event()
    app._book.find(session).peer.on_close(ended.set)
    await ended.wait()

    assert 200 == (await call(app, session)).status
    assert ("notes://all",) == app._book.find(session).record.subscriptions
    await app.close()


async def test_an_adopted_client_is_told_that_lists_may_have_changed():
    """Ours: a restart is when tools change, and nobody else could tell."""
    before = make_app()
    session = await open_session(before)
    await before.close()
    after = make_app()
    await call(after, session)

    stream = begin_get(after, session)
    event = await stream.event()
    stream.leave()

    assert event["method"].endswith("/list_changed")
    await after.close()


def begin_get(app, session):
    """A standing stream."""
    from support.http.asgi_driver import Exchange

    headers = {**head(session), "accept": "text/event-stream"}
    return Exchange(app, method="GET", headers=headers)


async def test_a_full_table_refuses_an_adoption_as_it_refuses_a_new_session():
    """Ours: sessions that are in use are not thrown out for one that comes back."""
    before, app = make_app(), make_app(options={"max_sessions": 1})
    session = await open_session(before)
    standing = begin_get(app, await open_session(app))
    await standing.started.wait()

    answer = await begin_legacy_call(app, session).done()

    assert 503 == answer.status
    standing.leave()
    for one in (before, app):
        await one.close()


class LostKV(MemoryKV):
    """A store that can be lost."""

    lost = False

    async def get(self, key):
        """As ever, while it is there."""
        if self.lost:
            raise StoreUnavailable("the store is away")
        return await super().get(key)


async def test_a_store_that_is_lost_stops_what_needs_it_and_nothing_else():
    """Ours: 503 with Retry-After, never an answer that other nodes know nothing of."""
    store = MemoryStore()
    store.kv = LostKV()
    apps = [make_app(store), make_app(store)]
    session = await open_session(apps[0])
    await call(apps[1], await open_session(apps[1]))
    store.kv.lost = True

    adopted = await call(apps[1], session)
    subscribed = await ask(apps[0], session, "resources/subscribe", {"uri": "notes://all"})
    deleted = await fetch(apps[0], method="DELETE", headers=head(session))

    for answer in (adopted, subscribed, deleted):
        assert 503 == answer.status
        assert "2" == answer.header("retry-after")
        assert "cannot be reached" in answer.json["error"]["message"]
    assert 200 == (await call(apps[0], session)).status
    store.kv.lost = False
    assert 200 == (await call(apps[1], session)).status
    for app in apps:
        await app.close()


async def test_a_record_that_nobody_can_read_ends_its_session():
    """Ours: what another hand wrote into the store opens nothing."""
    store = MemoryStore()
    apps = [make_app(store), make_app(store)]
    session = await open_session(apps[0])
    await store.kv.put(f"session/{apps[0]._book.find(session).mark}", b"\xc1 no record")

    assert 404 == (await call(apps[1], session)).status
    for app in apps:
        await app.close()


async def test_streams_of_an_adopted_session_have_names_of_their_own():
    """Ours: a node that adopts a session again never says two things under one event id."""
    app = make_app(options={"session_idle": 0.01})
    session = await open_session(app)
    first = begin_get(app, session)
    await first.started.wait()
    before = first.ids[0]
    first.leave()
    ended = asyncio.Event()
    app._book.find(session).peer.on_close(ended.set)
    await ended.wait()
    await call(app, session)

    again = await fetch(app, method="GET", headers={**head(session), "last-event-id": before})

    assert 400 == again.status
    await app.close()


async def test_a_question_is_asked_where_the_end_of_the_handshake_was_not_heard():
    """Ours: it was said to another process, and nobody could tell this one."""
    servers = [make_server(), make_server()]

    @servers[0].tool
    async def ask_roots(ctx: Context) -> str:
        return str(len(await ctx.roots()))

    apps = [server.asgi() for server in servers]
    session = await initialize(apps[0])
    await fetch(apps[1], headers=head(session), body=INITIALIZED)
    asking = begin_legacy_call(apps[0], session, "ask_roots")
    question = await asking.event()
    while "method" not in question:
        question = await asking.event()
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
    await fetch(apps[0], headers=head(session), body=answer)

    assert "0" == read_tool_text(await asking.event())
    for app in apps:
        await app.close()
