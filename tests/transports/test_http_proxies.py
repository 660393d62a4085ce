"""Which proxy a request goes through, and that it does."""

import asyncio
import base64
import ssl

import pytest
from aiohttp import web

from isthmus.client import handshake
from isthmus.client.client import Client
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.transports.http.client.address import Http
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.client.proxies import HttpProxy, choose_proxy

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "REQUEST_METHOD")


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """No proxy in the environment of the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.covers("httpclient.proxy.environment")
@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "http://a.example/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://a.example/", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "http://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "https://a.example/", "http://p:1"),
        ({"HTTPS_PROXY": ""}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b"}, "https://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "http://localhost:80/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://mcp.localhost/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://127.0.0.1:80/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://[::1]:80/", None),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://a.example/", None),
    ],
)
def test_the_environment_names_the_proxy(monkeypatch, environment, url, expected):
    """Ours: as other programs do it, except that what runs here is always asked directly."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found = choose_proxy(url, setting=True)

    assert expected == (found and found.url)


def test_a_proxy_may_be_switched_off_or_named(monkeypatch):
    """Ours: what is said in the program goes before the environment."""
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")

    assert None is choose_proxy("http://a.example/", setting=False)
    assert HttpProxy("https://q:2") == choose_proxy("http://127.0.0.1/", setting="https://q:2")


def test_credentials_of_a_proxy_go_to_the_proxy():
    """Ours: they may be escaped, and stay out of the URL, which messages show."""
    pair = base64.b64encode(b"me:se@cret").decode()

    assert HttpProxy("http://p:1", f"Basic {pair}") == choose_proxy(
        "http://a/", "http://me:se%40cret@p:1"
    )


def test_a_proxy_that_cannot_be_used_is_told(monkeypatch):
    """Ours: with the variable it is in, and what to do."""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://p:1")

    with pytest.raises(ConnectionLost, match=r"HTTPS_PROXY names a socks5 proxy.*proxy=False"):
        choose_proxy("https://a.example/", setting=True)


class Proxying:
    """A proxy that answers for the server, and keeps the heads of what it was asked."""

    def __init__(self, status=None):
        self.heads, self.status = [], status

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", 0)
        self.url = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def connected(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head.decode())
            status = self.status or b"200 OK"
            body = b"" if self.status else b"through"
            writer.write(b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def test_a_plain_request_goes_through_the_proxy_with_its_credentials(monkeypatch):
    """Ours: the whole URL, and who we are to the proxy."""
    async with Proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pw@{proxy.url}")
        requests = open_requests(connect_timeout=5)
        response = await requests.send("GET", "http://server.example/mcp", {"X": "y"})
        assert b"through" == await response.read(100)
        await requests.close()

    (head,) = proxy.heads
    assert head.startswith("GET http://server.example/mcp HTTP/1.1\r\n")
    assert "proxy-authorization: basic bwu6chc=" in head.lower()


async def test_a_secret_request_asks_the_proxy_for_a_tunnel(monkeypatch):
    """Ours: and what the proxy answers is told, with what to do."""
    async with Proxying(b"407 Proxy Authentication Required") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.url}")
        requests = open_requests(connect_timeout=5)
        with pytest.raises(ConnectionLost, match="it wants credentials") as caught:
            await requests.send("GET", "https://server.example/mcp", {"Authorization": "Bearer t"})
        await requests.close()

    assert f"through the proxy http://{proxy.url}" in str(caught.value)
    (head,) = proxy.heads
    assert head.startswith("CONNECT server.example:443 HTTP/1.1\r\n")
    assert "bearer" not in head.lower()


async def test_a_proxy_that_refuses_is_told(monkeypatch):
    """Ours: NO_PROXY or proxy=False are the ways out."""
    async with Proxying(b"403 Forbidden") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:pw@{proxy.url}")
        requests = open_requests(connect_timeout=5)
        with pytest.raises(ConnectionLost, match="NO_PROXY names hosts"):
            await requests.send("GET", "https://server.example/mcp", {})
        await requests.close()

    assert "proxy-authorization: basic" in proxy.heads[0].lower()


async def test_a_proxy_that_is_not_there_is_told(monkeypatch):
    """Ours: it is the proxy that cannot be reached, not the server."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    with pytest.raises(ConnectFailed, match=r"through the proxy http://127\.0\.0\.1:1: Conn"):
        await Client("http://server.example/mcp").open()
    handshake.forget_target("http://server.example/mcp")


# TLS


def certificate(folder):
    """A certificate for localhost that nobody trusts, and its key."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "both.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.mark.covers("httpclient.tls.context")
async def test_a_context_of_ones_own_is_trusted(tmp_path):
    """Ours: without it, the message says what to pass."""
    path = certificate(tmp_path)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(path)

    async def secret(_request):
        return web.Response(text="secret")

    app = web.Application()
    app.router.add_get("/", secret)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served).start()
    url = f"https://localhost:{runner.addresses[0][1]}/"

    requests = open_requests(connect_timeout=5)
    with pytest.raises(ConnectionLost, match="pass tls= a context that trusts"):
        await requests.send("GET", url, {})
    await requests.close()

    requests = open_requests(connect_timeout=5, tls=ssl.create_default_context(cafile=path))
    response = await requests.send("GET", url, {})
    assert b"secret" == await response.read(100)
    await requests.close()
    await runner.cleanup()


async def test_what_a_url_leaves_out_reaches_the_requests(monkeypatch):
    """Ours: Http carries headers, context and proxy to every request."""
    seen = {}

    def remember(**options):
        seen.update(options)
        raise ConnectionLost("seen enough")

    monkeypatch.setattr("isthmus.client.targets.open_requests", remember)
    context = ssl.create_default_context()
    with pytest.raises(ConnectFailed, match="seen enough"):
        await Client(Http("http://a.example/", tls=context, proxy="http://p:1")).open()

    assert {"connect_timeout": 30.0, "tls": context, "proxy": "http://p:1"} == seen
