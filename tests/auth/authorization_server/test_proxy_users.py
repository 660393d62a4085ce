"""Tests of users whom a proxy names."""

import logging

import pytest

from isthmus.auth.authorization_server.users.users import (
    HeaderUsers,
    LoginRefused,
    LoginRequest,
    User,
)
from isthmus.errors import UsageError


def request(address="10.0.0.7", **headers):
    return LoginRequest(
        pending=None,
        address=address,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


@pytest.fixture
def users():
    return HeaderUsers(
        "X-Forwarded-User",
        trusted_proxies=["10.0.0.0/24", "::1"],
        name_header="X-Forwarded-Name",
    )


@pytest.mark.parametrize("address", ["10.0.0.7", "::1", "::ffff:10.0.0.9"])
async def test_the_header_of_the_proxy_names_the_user(users, address):
    """We demand that a trusted proxy's word is enough, on every page."""
    asked = request(address, x_forwarded_user="alice@corp.example", x_forwarded_name="Alice")
    alice = User(id="alice@corp.example", name="Alice")
    assert alice == await users.begin(asked)
    assert alice == await users.submit(asked, {"account": "bob"})
    assert User(id="alice@corp.example") == await users.get("alice@corp.example")


@pytest.mark.parametrize("address", ["10.0.1.7", "127.0.0.1", "::2", "", "unix:", "10.0.0.7.evil"])
async def test_the_header_of_another_peer_is_refused_and_logged_once(users, address, caplog):
    """We demand that a header from elsewhere is worth nothing, and that operators learn why."""
    with caplog.at_level(logging.WARNING, "isthmus.auth"):
        answers = [await users.begin(request(address, x_forwarded_user="root")) for _ in range(3)]
    assert {LoginRefused} == {type(answer) for answer in answers}
    assert 1 == len(caplog.records)
    assert "trusted_proxies" in caplog.text
    assert "--no-proxy-headers" in caplog.text


@pytest.mark.parametrize("value", ["", "  ", "alice, root", "a\x00b", "x" * 256])
async def test_a_name_that_is_not_one_is_refused(users, value):
    """We demand that two headers, the visitor's own among them, do not pass for one."""
    assert isinstance(await users.begin(request(x_forwarded_user=value)), LoginRefused)


@pytest.mark.parametrize(
    ("trusted", "match"),
    [([], "needs"), (["0.0.0.0/0"], "covers every address"), (["proxy"], "no address")],
)
def test_a_trust_in_everybody_is_a_mistake(trusted, match):
    """We demand that the setting which matters cannot be left out."""
    with pytest.raises(UsageError, match=match):
        HeaderUsers("X-User", trusted_proxies=trusted)
