"""T15: the port of a loopback redirect URI is free, and nothing else of it is."""

import pytest

from support.auth.small_authority import SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t15-loopback-widened")


@pytest.mark.parametrize(
    ("registered", "given"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1:51000/callback"),
        ("http://127.0.0.1:3000/callback", "http://127.0.0.1:51000/callback"),
        ("http://localhost/callback", "http://localhost:51000/callback"),
        ("http://[::1]/callback", "http://[::1]:51000/callback"),
    ],
)
async def test_any_port_of_the_registered_host_will_do(registered, given):
    """RFC 8252 7.3: the port is whatever was free."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[registered])
        answer = await small.ask(client_id, redirect_uri=given)

        assert answer.header("location").startswith(f"{given}?code=")


@pytest.mark.parametrize(
    "given",
    [
        "http://127.0.0.1:51000@evil.example/callback",
        "http://127.0.0.1.evil.example:51000/callback",
        "http://localhost:51000/callback",
        "http://127.0.0.2:51000/callback",
        "http://127.0.0.1:51000/callback/../x",
        "http://127.0.0.1:51000/callback/",
        "http://127.0.0.1:51000/callback?x=1",
        "https://127.0.0.1:51000/callback",
        "http://127.0.0.1:0/callback",
        "http://127.0.0.1:99999/callback",
        "http://127.0.0.1:/callback",
        "http://0x7f.1:51000/callback",
    ],
)
async def test_nothing_else_may_differ(given):
    """RFC 8252 7.3: the exception is for the port."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=["http://127.0.0.1/callback"])
        answer = await small.ask(client_id, redirect_uri=given)

        assert (400, None) == (answer.status, answer.header("location"))


async def test_https_has_no_such_freedom():
    """RFC 8252 7.3: it is for http on the loopback interface."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=["https://app.example/cb"])
        answer = await small.ask(client_id, redirect_uri="https://app.example:8443/cb")

        assert 400 == answer.status
