"""Health and readiness: what balancers are told, and by whom it may be asked."""

import asyncio
import contextlib

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from isthmus import Server
from isthmus.nodes.node import Node
from isthmus.store import MemoryKV, MemoryStore, StoreUnavailable
from isthmus.testing import VirtualLoop
from isthmus.transports.http.app import HttpApp
from support.auth.protected_server import Files, make_guard
from support.http.asgi_driver import fetch
from support.http.messages import hello, make_http_app, make_router, modern_body, modern_head

ASGI_ONLY = {
    "test_a_mounted_app_is_probed_below_its_prefix",
    "test_a_server_that_has_stopped_is_ready_in_another_event_loop",
}
pytestmark = pytest.mark.usefixtures("carrier")
OK = {"status": "ok"}
UNAVAILABLE = {"status": "unavailable"}


async def probe(app, path, method="GET", host="10.0.0.7:8000"):
    """What a balancer is told, which asks by the address of a node."""
    return await fetch(app, method, path, headers={"host": host})


@pytest.mark.parametrize("path", ["/health", "/ready", "/ready/"])
async def test_a_probe_is_answered_to_everybody_and_kept_by_nobody(path):
    """Ours: by any name, and by nothing that stands between."""
    told = await probe(make_http_app({"public_url": "https://tools.example"}), path)

    assert (200, OK) == (told.status, told.json)
    assert "no-store" == told.header("cache-control")


async def test_a_guarded_server_is_probed_without_a_token():
    """Ours: a balancer has none."""
    guarded = Files(make_guard(resource="https://tools.example/mcp")).app

    assert (200, 200) == tuple(
        [(await probe(guarded, path)).status for path in ("/health", "/ready")]
    )


async def test_a_probe_may_ask_for_the_head_alone():
    """RFC 9110 9.3.2: HEAD is GET without the content."""
    assert 200 == (await probe(make_http_app(), "/health", "HEAD")).status


async def test_a_probe_that_posts_is_told_how_to_ask():
    """RFC 9110 15.5.6: 405 comes with Allow."""
    refused = await probe(make_http_app(), "/ready", "POST")

    assert (405, "GET, HEAD") == (refused.status, refused.header("allow"))


async def test_probes_have_other_paths_where_an_author_says_so():
    """Ours: the usual ones may be taken."""
    app = make_http_app({"health": "/live", "ready": None})
    told = {path: (await probe(app, path)).status for path in ("/live", "/health", "/ready")}

    assert {"/live": 200, "/health": 404, "/ready": 404} == told


async def test_the_endpoint_comes_before_a_probe_of_its_path():
    """Ours: an endpoint at /health goes on to be one."""
    app = make_http_app({"path": "/health"}, hello=hello)
    answer = await fetch(app, path="/health", headers=modern_head(), body=modern_body())

    assert 200 == answer.status


async def test_a_mounted_app_is_probed_below_its_prefix():
    """Ours: the origin's root is another application's."""
    outer = Starlette(routes=[Mount("/tools", make_http_app())])
    told = [(await probe(outer, path)).status for path in ("/tools/ready", "/ready")]

    assert [200, 404] == told


async def test_a_server_that_starts_is_alive_and_not_ready():
    """Ours: the probe starts it, since no request does before it is ready."""
    opening, opened = asyncio.Event(), asyncio.Event()

    async def open_slowly():
        opening.set()
        await opened.wait()

    app = make_http_app({"on_start": open_slowly})
    early = asyncio.create_task(probe(app, "/ready"))
    await opening.wait()
    assert 200 == (await probe(app, "/health")).status
    told = await early
    assert (503, UNAVAILABLE, "1") == (told.status, told.json, told.header("retry-after"))
    opened.set()
    assert 200 == (await probe(app, "/ready")).status


async def test_a_server_that_cannot_start_is_not_ready_until_it_can():
    """Ours: what is missing may come."""
    missing = [True]

    async def open_database():
        if missing:
            raise RuntimeError(missing.pop())

    app = make_http_app({"on_start": open_database})
    told = [(await probe(app, "/ready")).status for _ in range(2)]

    assert [503, 200] == told


async def test_a_server_that_has_stopped_is_not_ready_and_not_started_again():
    """Ours: whoever stopped it will end the process."""
    started = []

    async def count_starts():
        started.append(1)

    app = make_http_app({"on_start": count_starts})
    await app.start()
    await app.close()

    assert (503, 200) == tuple([(await probe(app, path)).status for path in ("/ready", "/health")])
    assert [1] == started


class LostKV(MemoryKV):
    """Values that can be lost.

    Args:
        lose: awaited by whoever reads them.
    """

    def __init__(self, lose):
        super().__init__()
        self.lose = lose

    async def get(self, _key):
        """Read nothing."""
        await self.lose()


def make_app_with(lose):
    """An app on a store that is never opened, and can be lost."""
    store = MemoryStore()
    store.kv = LostKV(lose)
    return HttpApp(make_router(), node=Node(store))


def test_a_server_that_has_stopped_is_ready_in_another_event_loop():
    """Ours: the first probe starts it there, as any request does."""
    app = make_http_app()

    async def look_and_close():
        status = (await fetch(app, "GET", "/ready", headers={"host": "10.0.0.7"})).status
        await app.close()
        return status

    assert [200, 200] == [asyncio.run(look_and_close()) for _ in range(2)]


async def test_a_store_that_cannot_be_reached_makes_a_server_unready():
    """Ours: another node may reach it; health goes on, since a restart would mend nothing."""

    async def lose():
        raise StoreUnavailable("gone")

    app = make_app_with(lose)

    assert [503, 200] == [(await probe(app, path)).status for path in ("/ready", "/health")]


def test_a_store_that_comes_back_is_noticed_within_a_second_or_so():
    """Ours: what was found is good for a second, however often a server is probed."""
    lost, asked = [True], []

    async def lose():
        asked.append(1)
        if lost:
            raise StoreUnavailable("gone")

    async def ask():
        app = make_app_with(lose)
        assert 503 == (await probe(app, "/ready")).status
        lost.clear()
        assert 503 == (await probe(app, "/ready")).status
        await asyncio.sleep(1.1)
        assert 200 == (await probe(app, "/ready")).status

    with contextlib.closing(VirtualLoop()) as loop:
        loop.run_until_complete(ask())
    assert [1, 1] == asked


def test_a_store_that_does_not_answer_makes_a_server_unready_within_a_second():
    """Ours: a probe has a time limit of its own."""

    async def ask():
        app = make_app_with(asyncio.Event().wait)
        return (await probe(app, "/ready")).status

    with contextlib.closing(VirtualLoop()) as loop:
        assert 503 == loop.run_until_complete(ask())
        assert 1.0 == pytest.approx(loop.time(), abs=0.2)


async def test_a_server_with_a_store_reads_it_when_it_is_probed():
    """Ours: the option is all there is to say."""
    server = Server("s", store=MemoryStore())
    app = server.asgi()

    assert 200 == (await probe(app, "/ready")).status
    await app.close()
