"""Tests of the question, and of whom its answer goes to."""

import pytest

from isthmus.auth.authorization_server.pages.consent import describe_target
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from support.auth.authority import (
    Visitor,
    client_answer,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)

ISSUER = "https://login.example"


@pytest.mark.parametrize(
    ("uri", "target", "local"),
    [
        ("https://app.example/cb?x=1", "app.example", False),
        ("https://APP.example:444/cb", "app.example:444", False),
        ("https://xn--pple-43d.example/cb", "xn--pple-43d.example", False),
        ("https://127.0.0.1.evil.example/cb", "127.0.0.1.evil.example", False),
        ("http://127.0.0.1:4000/cb", "127.0.0.1:4000", True),
        ("http://localhost/cb", "localhost", True),
        ("http://[::1]:4000/cb", "[::1]:4000", True),
        ("com.example.app:/cb", "com.example.app:", True),
        ("cursor://anysphere.example/cb", "cursor:", True),
    ],
)
@pytest.mark.covers("auth.authority.redirect-host-shown")
def test_a_redirect_uri_is_shown_as_its_host_or_scheme(uri, target, local):
    """The specification demands the host, and a warning where that is this computer."""
    assert (target, local) == describe_target(uri)


@pytest.fixture
async def authority(tmp_path):
    made = make_authority(ISSUER, make_users(tmp_path))
    yield made
    await made.close()


@pytest.fixture
async def alice(authority):
    return Visitor(authority, ISSUER)


async def test_a_yes_is_a_code_for_the_client(alice):
    """We demand that approval ends at the client's redirect URI, with state and iss."""
    sent = await alice.decide(await alice.log_in(request_url(ISSUER)))
    assert 303 == sent.status
    assert str(sent.header("location")).startswith("https://notes.example/cb?")
    told = client_answer(sent)
    assert {"code", "state", "iss"} == told.keys()
    assert ("s1", ISSUER) == (told["state"], told["iss"])


async def test_a_no_is_an_error_for_the_client(alice):
    """The specification demands that errors reach the client, with iss."""
    sent = await alice.decide(await alice.log_in(request_url(ISSUER)), "deny")
    told = client_answer(sent)
    assert ("access_denied", "s1", ISSUER) == (told["error"], told["state"], told["iss"])
    assert "code" not in told


@pytest.mark.parametrize("decision", ["", "Allow", "allow ", "1"])
async def test_anything_else_is_neither(alice, decision):
    """We demand that only the button that says so means yes."""
    page = await alice.log_in(request_url(ISSUER))
    refused = await alice.decide(page, decision)
    assert (400, None) == (refused.status, refused.header("location"))
    assert "code" in client_answer(await alice.decide(page))


async def test_two_answers_at_once_are_one(alice):
    """We demand that a double click is one code."""
    import asyncio

    page = await alice.log_in(request_url(ISSUER))
    both = await asyncio.gather(alice.decide(page), alice.decide(page))
    assert [303, 410] == sorted(exchange.status for exchange in both)


async def test_a_disabled_user_approves_nothing(alice, authority):
    """We demand that disabling somebody counts at the next click."""
    page = await alice.log_in(request_url(ISSUER))
    authority.users.disable("alice")
    sent = await alice.decide(page)
    assert str(sent.header("location")).startswith("/auth/login?")
    assert b"Sign in</h1>" in (await alice.follow(sent)).body


async def test_an_unverified_client_is_shown_as_unverified(alice, authority):
    """We demand that the page tells registered names from names that were checked."""
    client = RegisteredClient(
        client_id="r1", name="<b>Bank</b>", redirect_uris=("https://notes.example/cb",),
        kind="dynamic",
    )  # fmt: skip
    await authority.store.write(lambda records: records.save_client(client))
    page = await alice.log_in(request_url(ISSUER, client_id="r1"))
    assert b"Not verified" in page.body
    assert b"&lt;b&gt;Bank&lt;/b&gt;" in page.body


async def test_the_page_can_be_opened_again(alice):
    """We demand that reloading a page asks the same question."""
    page = await alice.log_in(request_url(ISSUER))
    again = await alice.get(f"{form_action(page)}?request={hidden_fields(page)['request']}")
    assert (200, hidden_fields(page)) == (again.status, hidden_fields(again))
