"""Early refusals: whoever is still uploading reads why, whichever way it reads."""

import asyncio
import http.client
import io
import json
import shutil

import aiohttp
import pytest

from isthmus.transports.http import asgi_exchange
from isthmus.transports.http.connections import Connection
from isthmus.transports.http.connections.h11_connection import H11Connection
from support.auth.protected_server import Files, make_guard
from support.http.asgi_driver import Exchange
from support.http.messages import hello, make_http_app, modern_body, modern_head
from support.http.uvicorn_server import serve_uvicorn

LARGE = b'{"jsonrpc":"2.0","id":1,"method":"x","params":"' + b"x" * 20_000_000 + b'"}'
REFUSED = {
    "too large": (413, {}, "/mcp"),
    "no such path": (404, {}, "/other"),
    "foreign": (403, {"origin": "https://evil.example"}, "/mcp"),
    "another type": (415, {"content-type": "text/plain"}, "/mcp"),
}


def head(more):
    """The headers of an upload, refused for one of them."""
    return {**modern_head(host="localhost"), **more}


def upload_first(port, path, headers, body):
    """Status and text, for a client that reads when all is sent: http.client, and requests on it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    said = response.status, response.read().decode()
    connection.close()
    return said


@pytest.mark.parametrize("kind", [Connection, H11Connection, "httptools", "h11"])
@pytest.mark.parametrize("refused", REFUSED)
async def test_a_client_that_uploads_first_reads_why_it_is_refused(kind, refused):
    """RFC 9112 9.6: also under plain uvicorn, with either parser."""
    status, more, path = REFUSED[refused]
    async with serve_uvicorn(make_http_app(hello=hello), kind) as port:
        found, text = await asyncio.to_thread(upload_first, port, path, head(more), LARGE)

    assert status == found
    assert json.loads(text)["error"]["message"]


@pytest.mark.parametrize("kind", [Connection, "h11"])
async def test_aiohttp_reads_why_it_is_refused(kind):
    """Ours: it reads while it sends."""
    async with (
        serve_uvicorn(make_http_app(hello=hello), kind) as port,
        aiohttp.ClientSession() as session,
    ):
        where = f"http://127.0.0.1:{port}/mcp"
        async with session.post(where, data=io.BytesIO(LARGE), headers=head({})) as response:
            assert 413 == response.status
            assert "body_limit" in await response.text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
@pytest.mark.parametrize("expect", [True, False])
async def test_curl_reads_why_it_is_refused(tmp_path, expect):
    """Ours: it asks first whether it may send so much, unless told not to."""
    (tmp_path / "body").write_bytes(LARGE)
    more = {} if expect else {"expect": ""}
    lines = [part for pair in head(more).items() for part in ("-H", f"{pair[0]}: {pair[1]}")]
    async with serve_uvicorn(make_http_app(hello=hello), Connection) as port:
        process = await asyncio.create_subprocess_exec(
            *["curl", "-s", *lines, "--data-binary", f"@{tmp_path / 'body'}"],
            *["-w", "%{http_code}", f"http://127.0.0.1:{port}/mcp"],
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()

    assert 0 == process.returncode
    assert said.endswith(b"413")
    assert b"body_limit" in said


async def test_who_lacks_a_token_reads_that_while_it_uploads():
    """Ours: 401 comes before the body is read."""
    async with serve_uvicorn(Files(make_guard()).app, Connection) as port:
        headers = {**modern_head(name="read"), "host": "localhost"}
        status, _ = await asyncio.to_thread(upload_first, port, "/mcp", headers, LARGE)

    assert 401 == status


async def test_a_body_that_is_there_costs_no_connection():
    """Ours: what came as a whole need not be drained, and the connection may be used again."""
    exchange = Exchange(
        make_http_app(hello=hello), path="/other", headers=modern_head(), body=modern_body()
    )
    await exchange.done()

    assert 404 == exchange.status
    assert exchange.header("connection") is None


async def test_who_waits_to_be_told_is_told_the_refusal_alone():
    """RFC 9110 10.1.1: no 100 is sent for a body that is not wanted, by asking for it."""
    more = {"expect": "100-continue", "content-length": "1000"}
    exchange = Exchange(
        make_http_app(hello=hello), path="/other", headers=head(more), body=[b"x"], whole=False
    )
    await exchange.done()

    assert (404, 0, "close") == (exchange.status, exchange.read, exchange.header("connection"))


async def test_a_body_without_an_end_is_not_drained_for_ever(monkeypatch):
    """Ours: so many bytes, and so long."""
    monkeypatch.setattr(asgi_exchange, "MAX_DRAIN_BYTES", 10_000)
    pieces = [b"x" * 1000] * 50
    exchange = Exchange(
        make_http_app(hello=hello),
        path="/other",
        headers=head({"content-length": "99999"}),
        body=pieces,
    )
    await exchange.done()
    assert (404, "close") == (exchange.status, exchange.header("connection"))
    assert 12 >= exchange.read

    monkeypatch.setattr(asgi_exchange, "DRAIN_TIMEOUT_S", 0.01)
    slow = Exchange(
        make_http_app(hello=hello),
        path="/other",
        headers=head({"content-length": "99999"}),
        body=pieces[:2],
        whole=False,
    )
    await slow.done()
    assert (404, 2) == (slow.status, slow.read)
