"""Redirect URIs: the loopback server, and addresses that are brought by hand."""

import socket

import aiohttp
import pytest

from isthmus.auth import ByHand, Loopback, Secret
from isthmus.auth.client.redirect import MAX_CONNECTIONS, parse_params, parse_port
from isthmus.errors import AuthRequired, AuthUnsafe, UsageError


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_loopback_takes_one_response_and_shows_one_page(host):
    """Ours: with headers that let nothing be made of it."""
    landing = await Loopback(host).open()
    pages = []

    async def browser(url):
        async with aiohttp.ClientSession() as session:
            for query in ("state=s&code=c&x=<script>", "state=s&code=second"):
                async with session.get(f"{landing.uri}?{query}") as page:
                    pages.append((page.status, await page.text(), page.headers))

    params = await landing.visit("https://login.example/", Secret("s"), browser)
    await landing.close()

    assert "c" == params["code"]
    assert [200, 200] == [status for status, _, _ in pages]
    assert "script" not in pages[0][1]
    headers = pages[0][2]
    assert ("no-store", "no-referrer") == (headers["Cache-Control"], headers["Referrer-Policy"])
    assert "default-src 'none'" in headers["Content-Security-Policy"]


async def test_localhost_is_listened_for_on_ipv4_and_ipv6():
    """Ours: browsers choose either; without IPv6 the other one does."""
    landing = await Loopback("localhost").open()
    addresses = {server.sockets[0].getsockname()[0] for server in landing._servers}
    ports = {server.sockets[0].getsockname()[1] for server in landing._servers}
    await landing.close()

    assert "127.0.0.1" in addresses <= {"127.0.0.1", "::1"}
    assert 1 == len(ports)


async def test_the_previous_port_is_used_again_if_it_is_free():
    """Ours: or another one is."""
    first = await Loopback().open()
    uri = first.uri
    other = await Loopback().open(uri)
    await first.close()
    again = await Loopback().open(uri)
    await other.close()
    await again.close()

    assert uri != other.uri
    assert uri == again.uri


async def test_idle_connections_keep_no_browser_out(caplog):
    """Ours: anybody on this machine can open connections; the oldest one makes room."""
    landing = await Loopback().open()
    address = ("127.0.0.1", parse_port(landing.uri))
    idle = [socket.create_connection(address) for _ in range(40)]
    async with aiohttp.ClientSession() as session, session.get(landing.uri) as page:
        assert 400 == page.status
    assert len(landing._connections) <= MAX_CONNECTIONS
    for one in idle:
        one.close()
    await landing.close()
    assert [] == list(landing._connections)
    assert [] == [line for line in caplog.messages if "Exception" in line]


async def test_localhost_is_not_used_where_its_other_address_is_taken():
    """Ours: a browser may go to either, and somebody else would get the code."""
    port = 0
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AuthRequired, match="is taken"):
            await Loopback("localhost", port).open()
        landing = await Loopback("localhost").open(f"http://localhost:{port}/callback")
        assert port != parse_port(landing.uri)
        await landing.close()


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    "place",
    [
        {"host": "0.0.0.0"},  # noqa: S104 - that is what must not be
        {"host": "192.168.0.1"},
        {"host": "example.com"},
        {"path": "callback"},
        {"port": 70000},
    ],
)
def test_a_loopback_redirect_is_on_this_machine(place):
    """The spec: redirect URIs are https or localhost."""
    with pytest.raises(UsageError, match="users cannot come back to"):
        Loopback(**place)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("a=1&b=", {"a": "1", "b": ""}),
        ("a=1&a=1", None),
        ("iss=https%3A%2F%2Fx", {"iss": "https://x"}),
        ("&".join(f"a{n}=1" for n in range(60)), None),
        ("", {}),
    ],
)
def test_a_repeated_parameter_is_refused(query, expected):
    """RFC 6749 3.1: parameters must not be included more than once."""
    assert expected == parse_params(query)


async def test_what_is_brought_by_hand_is_a_whole_address():
    """Ours: a fragment is no part of it, and the URL shown is a safe one."""

    async def visit(url):
        return "https://app.example/cb?state=s&code=c#x"

    landing = await ByHand("https://app.example/cb", visit).open()
    assert "c" == (await landing.visit("https://login.example/", Secret("s"), None))["code"]
    with pytest.raises(AuthUnsafe, match="not opened in a browser"):
        await landing.visit("file:///etc/passwd", Secret("s"), None)
    await landing.close()
