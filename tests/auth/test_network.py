"""Requests to URLs that somebody else chose: bounded in every way, within a policy."""

import asyncio
import datetime as dt
import gzip
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from isthmus.auth.net.network import (
    PUBLIC_ONLY,
    Network,
    NetworkFailed,
    NetworkPolicy,
    NetworkRefused,
    desktop,
)
from isthmus.errors import AuthError
from support.http.local_web import make_json_response, make_response, serve_responses


async def test_json_is_fetched_whole():
    """Ours: a document comes decoded, from the URL letter by letter."""
    async with serve_responses(lambda asked: make_json_response({"issuer": "x"})) as web:
        network = Network(desktop(web.url))
        document = await network.json(f"{web.url}/a%2Fb/?q=%20")
        await network.close()

    assert {"issuer": "x"} == document
    assert ("GET", "/a%2Fb/?q=%20") == (web.requests[0].method, web.requests[0].target)
    assert "identity" == web.requests[0].headers["accept-encoding"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (make_response(b"{}", content_type="text/html"), "not JSON"),
        (make_response(b"{}"), "not JSON"),
        (make_response(b"{", content_type="application/json"), "no JSON"),
        (make_response(b"[" * 100_000, content_type="application/json"), "no JSON"),
        (make_json_response({}, status=404), "404"),
        (make_json_response({"x": "y" * 300_000}), "more than 262144 bytes"),
        (
            make_response(
                gzip.compress(b"{}"), content_type="application/json", content_encoding="gzip"
            ),
            "compressed",
        ),
        (b"nonsense\r\n\r\n", "no answer"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\ncontent-type: application/json\r\n\r\n{}",
            "no answer",
        ),
    ],
    ids=["html", "untyped", "broken", "deep", "404", "long", "compressed", "nonsense", "cut off"],
)
async def test_an_answer_of_no_use_is_one_error(said, told):
    """Ours: whatever comes, the caller hears what was wrong with it in one kind of exception."""

    def handler(asked):
        if b"content-length: 50" in said or said.startswith(b"nonsense"):
            asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)
        return said

    async with serve_responses(handler) as web:
        network = Network(desktop(web.url), total=1)
        with pytest.raises(NetworkFailed, match=told):
            await network.json(web.url + "/x")
        await network.close()


async def test_a_host_that_never_answers_times_out():
    """Ours: a request has a time, whatever its server does with it."""
    async with serve_responses(lambda asked: None) as web:
        network = Network(desktop(web.url), total=0.05)
        with pytest.raises(NetworkFailed, match="in time"):
            await network.json(web.url)
        await network.close()


async def test_a_form_is_posted_urlencoded():
    """RFC 6749 3.2: as token endpoints want it, whatever the answer's status."""
    async with serve_responses(
        lambda asked: make_json_response({"error": "invalid_grant"}, status=400)
    ) as web:
        network = Network(desktop(web.url))
        fetched = await network.form(
            f"{web.url}/token", [("resource", "https://h/a b"), ("x", "ü")], {"dpop": "p"}
        )
        await network.close()

    asked = web.requests[0]
    assert (400, {"error": "invalid_grant"}) == (fetched.status, fetched.json())
    assert b"resource=https%3A%2F%2Fh%2Fa+b&x=%C3%BC" == asked.body
    assert "application/x-www-form-urlencoded" == asked.headers["content-type"]
    assert "p" == asked.headers["dpop"]


async def test_no_cookie_and_no_proxy_of_the_environment_is_used(monkeypatch):
    """Ours: what one server sets, and what a variable says, changes no request to another."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serve_responses(lambda asked: make_json_response({}, set_cookie="a=b")) as web:
        network = Network(desktop(web.url))
        await network.json(web.url)
        await network.json(web.url)
        await network.close()

    assert [None, None] == [asked.headers.get("cookie") for asked in web.requests]


async def test_an_egress_proxy_takes_everything_but_what_is_refused_anyway():
    """Ours: the proxy judges addresses; literal ones and plain http are refused before it is asked."""
    async with serve_responses(lambda asked: make_json_response({"via": asked.target})) as proxy:
        origins = frozenset({"http://intranet.example"})
        network = Network(NetworkPolicy(origins=origins, proxy=proxy.url.replace("//", "//u:p@")))
        got = await network.json("http://intranet.example/x")
        for url in ("https://10.0.0.1/", "http://public.example/"):
            with pytest.raises(NetworkRefused):
                await network.json(url)
        await network.close()

    assert {"via": "http://intranet.example/x"} == got
    assert "Basic dTpw" == proxy.requests[0].headers["proxy-authorization"]
    assert 1 == proxy.connections


async def test_connections_are_kept_or_not_as_one_likes():
    """Ours: a program that has no moment to close things in leaves nothing open either."""
    for keep, connections in ((True, 1), (False, 2)):
        async with serve_responses(lambda asked: make_json_response({})) as web:
            network = Network(desktop(web.url), keep=keep)
            await network.json(web.url)
            await network.json(web.url)
            assert connections == web.connections
            assert keep == (network._requests is not None)
            await network.close()
            await network.close()


def test_a_desktop_policy_allows_the_typed_origins():
    """Ours: a server on this machine may name another port of it, one elsewhere may not."""
    assert not desktop("https://mcp.example/mcp").loopback
    assert desktop("http://localhost:8000/mcp").loopback
    assert frozenset() == PUBLIC_ONLY.origins
    with pytest.raises(ValueError, match="URL"):
        desktop("mcp.example")


async def test_a_refusal_names_the_setting_that_would_allow_it():
    """Ours: errors tell how to mend them, and one kind covers all of authorization."""
    with pytest.raises(AuthError, match=r"127\.0\.0\.1 is loopback.*NetworkPolicy\(origins="):
        await Network().fetch("GET", "https://127.0.0.1/")
    with pytest.raises(NetworkRefused, match=r"plain http.*NetworkPolicy\(origins="):
        await Network().fetch("GET", "http://h.example/")


async def test_a_name_without_an_address_is_a_failure():
    """Ours: what cannot be looked up is out of reach, not forbidden."""

    async def nowhere(host, port):
        return []

    with pytest.raises(NetworkFailed, match=r"h\.example"):
        await Network(resolve=nowhere, keep=False).fetch("GET", "https://h.example/")


def test_one_network_serves_one_loop_after_another():
    """Ours: connections belong to a loop, and a new loop gets new ones."""
    network = Network(desktop("http://127.0.0.1:1"), keep=False)

    async def once():
        async with serve_responses(lambda asked: make_json_response({})) as web:
            await network.json(web.url)

    asyncio.run(once())
    asyncio.run(once())


def certificate(tmp_path, name):
    """What a server of that name shows, and what a client has to trust for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    made = (
        x509.CertificateBuilder(names, names, key.public_key(), x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    shown = made.public_bytes(Encoding.PEM)
    path = tmp_path / f"{name}.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + shown)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(path)
    return served, ssl.create_default_context(cadata=shown.decode())


@pytest.mark.covers("auth.threat.t02-dns-rebinding")
async def test_certificates_are_held_against_the_name_and_not_the_address(tmp_path):
    """Ours: an address is dialled, and who answers there must still be who was asked for."""

    async def resolve(host, port):
        return ["127.0.0.1"]

    served, trusted = certificate(tmp_path, "login.example")
    async with serve_responses(
        lambda asked: make_json_response({"host": asked.headers["host"]}), served
    ) as web:
        urls = [f"https://{name}.example:{web.port}" for name in ("login", "other")]
        network = Network(desktop(*urls), resolve=resolve, tls=trusted)
        got = await network.json(f"{urls[0]}/x")
        with pytest.raises(NetworkFailed, match=r"other\.example"):
            await network.json(f"{urls[1]}/x")
        await network.close()

    assert {"host": f"login.example:{web.port}"} == got
