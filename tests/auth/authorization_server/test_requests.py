"""Requests to the authorization server: read whole, and judged before anybody looks into them."""

import base64
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.core import requests
from isthmus.auth.authorization_server.core.requests import (
    RequestRefused,
    parse_parameters,
    read_basic,
)
from support.auth.small_authority import FORM, SmallAuthority, redirect_parameters
from support.http.asgi_driver import Exchange

BODY = [b"grant_type=pass", b"word"]


def basic(text):
    return ["Basic " + base64.b64encode(text).decode()]


@given(st.text(max_size=30))
def test_an_id_and_a_secret_may_have_any_characters(text):
    """RFC 6749 2.3.1: form-encoded, joined, then base64."""
    if not text:
        return
    spelt = quote_plus(text)
    found = read_basic(basic(f"{spelt}:{spelt}".encode()))

    assert (text, text) == (found.client_id, found.secret)


@pytest.mark.parametrize("value", ["Basic", "Basic %%%", "Basic YWRh", "Basic OnB3", "Basic /w=="])
def test_credentials_that_cannot_be_read_are_no_credentials(value):
    """RFC 6749 5.2: 401, since the header was there."""
    with pytest.raises(RequestRefused) as refused:
        read_basic([value])

    assert (401, "invalid_client") == (refused.value.status, refused.value.error)


def test_another_scheme_is_none_of_ours():
    """Ours: a bearer token does not authenticate a client."""
    assert read_basic(["Bearer x"]) is None
    assert read_basic([]) is None


def test_a_parameter_without_a_value_counts_as_left_out():
    """OAuth 2.1 3.1: but it is there for being there twice."""
    assert (("a", "1"),) == parse_parameters(b"a=1&b=&c")
    with pytest.raises(RequestRefused):
        parse_parameters(b"b=&b=")


@pytest.mark.parametrize("text", [b"a=%ff", b"\xff=1", b"&".join(b"a%d=1" % n for n in range(65))])
def test_what_is_no_form_is_refused(text):
    """Ours: other encodings than UTF-8, bytes that have to be escaped, too many of them."""
    with pytest.raises(RequestRefused):
        parse_parameters(text)


async def test_a_body_may_come_in_pieces():
    """ASGI: it is over when it says so."""
    async with SmallAuthority() as small:
        headers = {"content-type": f"{FORM}; charset=utf-8"}
        answer = await Exchange(small.app, "POST", "/token", headers=headers, body=BODY).done()

        assert "unsupported_grant_type" == answer.json["error"]


async def test_a_body_that_ends_early_is_no_request():
    """ASGI: the client left."""
    async with SmallAuthority() as small:
        exchange = Exchange(
            small.app, "POST", "/token", headers={"content-type": FORM}, body=BODY, whole=False
        )
        exchange.leave()

        assert 400 == (await exchange.done()).status


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    """Ours: a quarter of a minute at most."""
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.01)
    async with SmallAuthority() as small:
        exchange = Exchange(
            small.app, "POST", "/token", headers={"content-type": FORM}, body=BODY, whole=False
        )

        assert 408 == (await exchange.done()).status


async def test_an_announced_length_is_believed_where_it_is_too_much():
    """Ours: nothing of it is read."""
    async with SmallAuthority() as small:
        headers = {"content-length": "9999999"}
        answer = await small.post("/token", {"a": "b"}, headers)

        assert 413 == answer.status


async def test_a_query_has_a_length():
    """Ours: 16 KiB."""
    async with SmallAuthority() as small:
        assert 414 == (await small.get("/authorize", b"a=" + b"x" * 16_384)).status


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/token", {"client_id": "{id}"}),
        ("/token", {"client_id": "{id}", "grant_type": ""}),
        ("/token", {}),
        ("/token", {"client_id": "{id}", "grant_type": "authorization_code"}),
        ("/token", {"client_id": "{id}", "grant_type": "refresh_token"}),
        ("/revoke", {"client_id": "{id}"}),
    ],
)
async def test_a_parameter_that_is_missing_is_an_invalid_request(path, form):
    """RFC 6749 5.2: a required parameter is missing, which is no unsupported grant type."""
    async with SmallAuthority() as small:
        id = await small.public()
        answer = await small.post(path, {name: text.format(id=id) for name, text in form.items()})

    assert (400, "invalid_request") == (answer.status, answer.json["error"])


async def test_a_request_without_its_response_type_is_an_invalid_request():
    """RFC 6749 4.1.2.1: the client is told that a parameter is missing."""
    async with SmallAuthority() as small:
        id = await small.public()
        answer = await small.ask(id, response_type="")

    assert "invalid_request" == redirect_parameters(answer)["error"]


async def test_an_unknown_grant_type_is_refused_as_unsupported():
    """RFC 6749 5.2: unsupported_grant_type."""
    async with SmallAuthority() as small:
        form = {"client_id": await small.public(), "grant_type": "password"}
        answer = await small.post("/token", form)

    assert "unsupported_grant_type" == answer.json["error"]
