"""A client's connection between two requests: whose it is, and what must not reach the next one."""

import asyncio
import gc

from isthmus.transports.http.client.connection import HttpConnection
from support.http.scripted_connection import ScriptedConnection

EVERY_LOOP = True

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def test_a_status_that_does_not_exist_ends_the_connection():
    """RFC 9110 15: codes are 100 to 599; the body of another is no part of what follows."""
    scripted = ScriptedConnection()
    said = b"HTTP/1.1 099 Low\r\ncontent-length: 3\r\n\r\nnot" + OK

    assert ("MalformedResponse", "there is no status 99") == await scripted.ask(said)
    assert scripted.wire.closed
    assert [] == scripted.kept


async def test_a_request_cancelled_after_its_response_leaves_the_connection_to_the_next():
    """Ours: by then the connection is back, and may be another request's already."""
    scripted = ScriptedConnection()

    def begin():
        return asyncio.create_task(
            scripted.connection.exchange("GET", "http://a/", b"GET / HTTP/1.1\r\n", None)
        )

    first = begin()
    await asyncio.sleep(0)
    second = begin()  # begins in the very turn in which the first would go on
    scripted.connection.data_received(OK)
    assert 1 == len(scripted.kept)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert not scripted.connection.ended
    scripted.connection.data_received(OK)
    async with asyncio.timeout(5):
        response = await second

    assert b"ok" == await response.read(10)
    assert 2 == len(scripted.kept)
    assert not scripted.wire.closed


async def test_a_connection_that_never_came_about_leaves_no_cycle():
    """Ours: who tries again and again, and fails at TLS, leaves nothing for the collector."""
    loop, kept = asyncio.get_running_loop(), []
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            HttpConnection(loop, kept.append, kept.append)
        found = gc.collect()
    finally:
        gc.enable()

    assert 0 == found
