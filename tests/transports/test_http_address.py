"""What is said of a server beside its URL."""

import asyncio
import traceback

import pytest

from isthmus import Client
from isthmus.errors import ConnectFailed, UsageError
from isthmus.transports.http.client.address import Http, HttpSse, redact_url


def test_what_people_see_of_an_address_holds_no_secrets():
    """Ours: headers and proxies are where people put their keys."""
    at = Http("https://a.example/mcp", headers={"Authorization": "s3cret"}, proxy="http://u:pw@p")

    assert ("Http('https://a.example/mcp')", "https://a.example/mcp") == (repr(at), str(at))
    assert "HttpSse('https://a.example/sse')" == repr(HttpSse("https://a.example/sse"))


@pytest.mark.parametrize("url", ["a.example/mcp", "ws://a.example", "", "ftp://a.example"])
def test_what_is_no_url_of_http_is_refused(url):
    """Ours: before anything is connected to."""
    with pytest.raises(UsageError, match="is no URL of HTTP"):
        Http(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/mcp", "https://example.com/mcp"),
        ("https://ada:secret@example.com:8443", "https://example.com:8443"),
        ("wss://example.com/a@b?key=secret&x=@", "wss://example.com/a@b?…"),
        ("http://ada:se@cret@[::1]:1/?key=secret", "http://[::1]:1/?…"),
        ("no url", "no url"),
    ],
)
def test_a_url_is_shown_without_what_may_be_secret(url, expected):
    """Ours: errors and logs are read by others than who wrote the URL."""
    assert expected == redact_url(url)


@pytest.mark.parametrize(
    ("kind", "scheme"), [(Http, "http"), (HttpSse, "http"), (str, "http"), (str, "ws")]
)
async def test_no_error_shows_a_password_or_a_query(kind, scheme):
    """Ours: in the whole chain of what it was raised from."""
    with pytest.raises(ConnectFailed) as raised:
        await Client(kind(f"{scheme}://ada:secret-1@127.0.0.1:1/mcp?key=secret-2")).open()
    told = "".join(traceback.format_exception(raised.value))

    assert "127.0.0.1:1/mcp?…" in str(raised.value)
    assert [] == [line for line in told.splitlines() if "Error" in line and "secret-" in line]


async def test_an_answer_that_is_none_is_told_without_the_query():
    """Ours: the HTTP client's own words have the whole URL in them."""

    async def nonsense(_reader, writer):
        writer.write(b"this is no HTTP\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(nonsense, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailed) as raised:
            await Client(f"http://127.0.0.1:{port}/mcp?key=secret-2").open()

    assert "it is no HTTP" in str(raised.value)
    assert "secret-2" not in str(raised.value)
