"""Tests of reading what browsers send, and of cookies."""

import asyncio

import pytest

from isthmus.auth.authorization_server.core import requests
from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import (
    MAX_FORM_BYTES,
    BrowserCookies,
    BrowserRequest,
    CsrfSeal,
    browser_binding,
    is_cross_site,
    read_browser_request,
    send_redirect,
)
from isthmus.auth.tokens.secret import Secret

FORM = (b"content-type", b"application/x-www-form-urlencoded; charset=UTF-8")


def scope(method="POST", *headers, query=b"", client=("192.0.2.1", 1)):
    return {"method": method, "headers": headers, "query_string": query, "client": client}


def sending(*pieces, more=False):
    queue = [
        {"type": "http.request", "body": piece, "more_body": more or n < len(pieces) - 1}
        for n, piece in enumerate(pieces)
    ]

    async def receive():
        if not queue:
            await asyncio.Event().wait()
        return queue.pop(0)

    return receive


async def test_a_form_is_read_in_any_pieces():
    """We demand that fields in pieces are the same fields."""
    visit = await read_browser_request(scope("POST", FORM), sending(b"a=1&b", b"=x%20y", b"&c="))
    assert {"a": "1", "b": "x y", "c": ""} == visit.fields
    assert visit.posted
    assert "192.0.2.1" == visit.address


async def test_the_fields_of_a_link_are_those_of_its_query():
    """We demand one way to name a request, in links and forms."""
    visit = await read_browser_request(
        scope("GET", query=b"request=a.b", client=None), sending(b"")
    )
    assert ({"request": "a.b"}, "", False) == (visit.fields, visit.address, visit.posted)


@pytest.mark.parametrize(
    ("request_scope", "pieces", "status"),
    [
        (scope("PUT", FORM), (b"",), 405),
        (scope("POST"), (b"a=1",), 415),
        (scope("POST", (b"content-type", b"application/json")), (b"{}",), 415),
        (scope("POST", FORM), (b"a=1&a=2",), 400),
        (scope("POST", FORM), (b"&".join(b"f%d=" % n for n in range(21)),), 400),
        (scope("POST", FORM), (b"a=%ff",), 400),
        (scope("POST", FORM), (b"a=\xff",), 400),
        (scope("POST", FORM), (b"a=" + b"x" * MAX_FORM_BYTES,), 413),
        (scope("POST", FORM), (b"a=", b"x" * MAX_FORM_BYTES), 413),
        (scope("GET", query=b"request=a&request=b"), (b"",), 400),
    ],
)
async def test_a_form_of_another_shape_is_refused(request_scope, pieces, status):
    """We demand bounds on forms, and that a field that comes twice means nothing."""
    with pytest.raises(RequestRefused) as refused:
        await read_browser_request(request_scope, sending(*pieces))
    assert status == refused.value.status


async def test_a_form_that_never_ends_is_given_up(monkeypatch):
    """We demand that a slow sender holds nothing open."""
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.01)
    with pytest.raises(RequestRefused) as refused:
        await read_browser_request(scope("POST", FORM), sending(b"a=1", more=True))
    assert 408 == refused.value.status


def test_cookies_are_host_bound_under_https_and_apart_by_port_without():
    """We demand __Host- where there is https, and names that two servers on one host do not share."""
    remote, local = BrowserCookies("https://login.example"), BrowserCookies("http://127.0.0.1:9000")
    assert "__Host-isthmus-session" == remote.session
    assert "isthmus-session-9000" == local.session
    assert "__Host-up" == remote.named("up")
    value = Secret("v")
    assert "a=v; Path=/; HttpOnly; SameSite=Lax; Secure" == remote.set("a", value)
    assert "a=v; Path=/; HttpOnly; SameSite=Lax; Max-Age=9" == local.set("a", value, 9)
    assert "a=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0" == remote.clear("a")


@pytest.mark.parametrize("sign", [b"\x85", b"\xa0", b"\x1c", b"\x0b"])
async def test_no_other_host_can_set_a_cookie_that_is_read_as_ours(sign):
    """We demand that a name which browsers let a sibling host set is none with ``__Host-``."""
    cookies = BrowserCookies("https://login.example")
    mine, theirs = b"m" * 43, b"t" * 43
    name = cookies.session.encode()
    for pair in ((name, mine, sign + name, theirs), (sign + name, theirs, name, mine)):
        header = b"%b=%b; %b=%b" % pair
        visit = await read_browser_request(scope("GET", (b"cookie", header)), sending(b""))
        assert Secret("m" * 43) == cookies.opaque(visit, cookies.session)
    alone = await read_browser_request(
        scope("GET", (b"cookie", sign + name + b"=" + theirs)), sending(b"")
    )
    assert cookies.opaque(alone, cookies.session) is None


@pytest.mark.parametrize("value", ["", "x", "é" * 43, "a" * 44, "a" * 42 + "!"])
async def test_a_cookie_of_another_shape_is_none_of_ours(value):
    """We demand that only what we could have set is looked up."""
    cookies = BrowserCookies("https://login.example")
    header = f"other=1; {cookies.session}={value}".encode()
    visit = await read_browser_request(scope("GET", (b"cookie", header)), sending(b""))
    assert cookies.opaque(visit, cookies.session) is None


def test_the_kept_digest_of_a_browser_is_no_cookie():
    """We demand that the binding is not the cookie."""
    cookie = Secret("c" * 43)
    assert "c" * 43 not in browser_binding(cookie)
    assert browser_binding(cookie) == browser_binding(Secret("c" * 43))
    assert "" == browser_binding(None)


def test_a_seal_holds_for_its_parts_only():
    """We demand that parts cannot be shifted from one place to the next."""
    seal = CsrfSeal(lambda text: text.encode())
    tied = seal.tie("a", "bc")
    assert seal.holds(tied, "a", "bc")
    for parts in (("ab", "c"), ("a", "b", "c"), ("a", 'b","c'), ("a",)):
        assert not seal.holds(tied, *parts)


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"origin": "null"}, False),
        ({"origin": "https://login.example"}, False),
        ({"sec-fetch-site": "same-origin", "origin": "null"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "null"}, True),
        ({"origin": "https://evil.example"}, True),
        ({"origin": "https://login.example:444"}, True),
        ({"origin": "http://login.example"}, True),
    ],
)
def test_a_cross_site_form_is_recognised_by_its_headers(headers, is_foreign):
    """We demand that either header is enough to refuse; the token decides where both are silent."""
    visit = BrowserRequest("POST", {}, headers, {}, "")
    assert is_foreign is is_cross_site(visit, "https://login.example")


async def test_nothing_in_a_url_becomes_a_header():
    """We demand that where a browser is sent is one line."""
    sent = []

    async def send(message):
        sent.append(message)

    await send_redirect(send, "https://a.example/\r\nset-cookie: a=b\u00e9", ("c=d",))
    headers = sent[0]["headers"]
    away = b"https://a.example/%0D%0Aset-cookie:%20a=b%C3%A9"
    assert [away] == [value for name, value in headers if name == b"location"]
    assert [b"c=d"] == [value for name, value in headers if name == b"set-cookie"]
    assert 303 == sent[0]["status"]
