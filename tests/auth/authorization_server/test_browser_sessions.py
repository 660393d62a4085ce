"""Tests of what the pages share: requests, logins and what forms are proved by."""

import pytest

from isthmus.auth.authorization_server.pages.login import BrowserSessions, OpenedRequest
from isthmus.auth.authorization_server.storage.records import PendingAuthorization
from isthmus.auth.authorization_server.users.users import User
from support.auth.authority import (
    PASSWORD,
    Visitor,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)

ISSUER = "https://login.example"


@pytest.fixture
async def authority(tmp_path):
    made = make_authority(ISSUER, make_users(tmp_path))
    yield made
    await made.close()


def sessions_of(authority):
    return BrowserSessions(authority.settings, authority.store, authority.users, idle=60, life=60)


def make_pending(**changed):
    pending = {
        "txn": "t", "client_id": "c", "client_name": "C", "client_kind": "static",
        "redirect_uri": "https://c.example/cb", "scopes": (), "resource": "r", "query": (),
        "created_at": 0.0, "expires_at": 1.0,
    }  # fmt: skip
    binding = changed.pop("binding", "b")
    return OpenedRequest(PendingAuthorization(**{**pending, **changed}), "h", binding, None, None)


@pytest.mark.covers("auth.authority.consent-page")
async def test_a_form_is_proved_for_one_form_request_browser_client_place_and_user(authority):
    """The security best practices demand that what a form carries is bound to the client."""
    sessions = sessions_of(authority)
    tokens = [
        await sessions.form_token("consent", make_pending()),
        await sessions.form_token("login", make_pending()),
        await sessions.form_token("consent", make_pending(txn="u")),
        await sessions.form_token("consent", make_pending(binding="d")),
        await sessions.form_token("consent", make_pending(client_id="d")),
        await sessions.form_token("consent", make_pending(redirect_uri="https://c.example/cc")),
        await sessions.form_token("consent", make_pending(), User(id="alice")),
        await sessions.form_token("consent", make_pending(), User(id="bob")),
    ]
    assert 8 == len(set(tokens))
    assert tokens[0] == await sessions.form_token("consent", make_pending())


async def test_two_servers_do_not_believe_each_others_forms(authority, tmp_path):
    """We demand that a proof takes the key of the store."""
    other = make_authority(ISSUER, make_users(tmp_path, "bob"))
    here, there = sessions_of(authority), sessions_of(other)
    assert await here.form_token("consent", make_pending()) != await there.form_token(
        "consent", make_pending()
    )
    await other.close()


async def test_a_login_takes_the_place_of_the_one_before(authority):
    """We demand that the session of a browser that logs in again is worth nothing afterwards."""
    alice = Visitor(authority, ISSUER)
    forms = [await alice.follow(await alice.get(request_url(ISSUER))) for _ in range(2)]
    sessions = []
    for page in forms:
        fields = {**hidden_fields(page), "account": "alice", "password": PASSWORD}
        await alice.post(form_action(page), fields)
        sessions.append(alice.cookies["__Host-isthmus-session"])
    assert sessions[0] != sessions[1]
    found = [await authority.store.read(lambda records, s=s: records.session(s)) for s in sessions]
    assert [None, "alice"] == found


async def test_a_session_is_not_in_the_store_in_clear(authority):
    """We demand that who reads the store is nobody's browser."""
    alice = Visitor(authority, ISSUER)
    await alice.log_in(request_url(ISSUER))
    session = alice.cookies["__Host-isthmus-session"]
    rows = await authority.store.read(
        lambda records: records.db.execute("SELECT * FROM login_session").fetchall()
    )
    assert 1 == len(rows)
    assert session not in repr(rows)
