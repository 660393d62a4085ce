"""Clocks that stand still while a user is waited for, in time that only the test lets pass."""

import asyncio
import gc
import weakref

import pytest

from isthmus import Client
from isthmus.auth.client.requests import SharedSessions
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.tokens.secret import Secret
from isthmus.client.targets import Target
from isthmus.errors import CallTimedOut, ConnectFailed
from isthmus.runtime.clocks import Clocks, TimeoutClock
from isthmus.testing.clock import VirtualLoop
from isthmus.transports.http.client.channel import HttpClientChannel
from support.http.scripted_requests import HOLD, ScriptedReply, ScriptedRequests

URL = "https://mcp.example.com/mcp"
RESULT = (
    b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"s","version":"1"},"content":[]}}'
)


class Slow:
    """Gets tokens from a user who takes their time."""

    def __init__(self, *seconds):
        sessions = SharedSessions(lambda _url, _proofs: self)
        self.over, self.context = sessions.over, sessions.context
        self.seconds = list(seconds)
        self.asked = 0

    asks_user = True

    async def load(self):
        return None

    async def refresh(self, tokens, want):
        return None

    async def obtain(self, want):
        self.asked += 1
        await asyncio.sleep(self.seconds.pop(0))
        return Tokens(access=Secret(f"t{self.asked}"), issuer="i", client_id="c", resource=URL)

    async def close(self):
        return


class Server:
    """Wants a token for everything; ``wanted`` is the one it takes."""

    def __init__(self):
        self.wanted = "t1"
        self.silent = False

    async def __call__(self, method, url, headers, body):
        if method != "POST":
            return ScriptedReply(405)
        if headers.get("Authorization") != f"Bearer {self.wanted}":
            return ScriptedReply(401, WWW_Authenticate="Bearer")
        if b'"id"' not in body:
            return ScriptedReply(202)
        if self.silent:
            return ScriptedReply(200, HOLD)
        number = int(body.partition(b'"id":')[2].partition(b",")[0])
        return ScriptedReply(200, RESULT % number, kind="application/json")


def open_client(server, auth, **options):
    async def dial():
        return HttpClientChannel(URL, requests=auth.over(URL, ScriptedRequests(server)))

    target = Target(URL, dial, http=True, handshake=True)
    return Client(target, revision="2025-11-25", **options)


def played(work):
    """Run a test on a clock of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def test_a_login_of_an_hour_counts_for_no_time_limit_of_opening():
    """Ours: neither the opening nor the first call times out."""

    async def work():
        async with open_client(Server(), Slow(3600), connect_timeout=5, timeout=3) as client:
            return (await client.call_tool("x")).text, asyncio.get_running_loop().time()

    text, elapsed = played(work())
    assert ("", True) == (text, elapsed >= 3600)


def test_a_login_in_the_middle_counts_for_no_time_limit_of_calls():
    """Ours: and their limits hold as before once it is over."""

    async def work():
        server = Server()
        async with open_client(server, Slow(1, 3600), timeout=3, max_timeout=4) as client:
            server.wanted = "t2"
            await client.call_tool("x")
            server.silent = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(CallTimedOut):
                await client.call_tool("x")
            return asyncio.get_running_loop().time() - began

    assert 3 == pytest.approx(played(work()), abs=0.1)


def test_a_login_in_the_middle_leaves_no_timer_behind():
    """Ours: what is closed is gone at once, tokens included, and not when its calls had expired."""

    async def visit():
        server = Server()
        async with open_client(server, Slow(1, 2)) as client:
            server.wanted = "t2"
            await client.call_tool("x")
            return weakref.ref(client)

    async def work():
        client = await visit()
        gc.collect()
        return client()

    assert None is played(work())


def test_what_the_server_takes_still_counts():
    """Ours: before the login as well as after it."""

    async def work():
        server = Server()
        server.silent = True
        with pytest.raises(ConnectFailed, match="within 5 s"):
            await open_client(server, Slow(3600), connect_timeout=5).open()
        return asyncio.get_running_loop().time()

    assert 3605 == pytest.approx(played(work()), abs=0.1)


def test_holds_may_overlap_and_clocks_may_come_later():
    """Ours: they go on when the last one ends."""

    class Counting:
        def __init__(self):
            self.said = []

        def stop(self):
            self.said.append("stop")

        def go(self, elapsed):
            self.said.append(elapsed)

    async def work():
        clocks, first, late = Clocks(), Counting(), Counting()
        clocks.add(first)
        with clocks.held():
            await asyncio.sleep(1)
            with clocks.held():
                clocks.add(late)
                await asyncio.sleep(2)
        clocks.remove(first)
        with clocks.held():
            pass
        return first.said, late.said

    assert (["stop", 3.0], ["stop", 3.0, "stop", 0.0]) == played(work())


def test_a_limit_that_has_passed_is_left_alone():
    """Ours: who is being cancelled is cancelled."""

    async def work():
        try:
            async with asyncio.timeout(1) as limit:
                try:
                    await asyncio.sleep(2)
                finally:
                    clock = TimeoutClock(limit)
                    clock.stop()
                    clock.go(5.0)
        except TimeoutError:
            return True

    assert played(work())
