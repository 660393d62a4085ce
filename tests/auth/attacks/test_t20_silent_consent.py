"""T20: a remembered consent is not used when another site started it."""

import msgspec
import pytest

from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from support.auth.authority import (
    APP,
    Visitor,
    client_answer,
    make_authority,
    make_users,
    request_url,
)

ISSUER = "https://login.example"
PROVES = pytest.mark.covers("auth.threat.t20-silent-consent")
LOCAL = RegisteredClient(
    client_id="local",
    name="Local",
    redirect_uris=("http://127.0.0.1/cb", "com.example.app:/cb"),
    auth_method="none",
)


@pytest.fixture
async def authority(tmp_path):
    made = make_authority(ISSUER, make_users(tmp_path, "alice", "bob"), consent="remember")
    yield made
    await made.close()


@pytest.fixture
async def alice(authority):
    """Somebody who has approved ``files:read`` for ``app`` once."""
    visitor = Visitor(authority, ISSUER)
    page = await visitor.log_in(request_url(ISSUER))
    assert "code" in client_answer(await visitor.decide(page))
    return visitor


def asks_for_consent(exchange):
    """Whether the consent page came."""
    return b"Allow" in exchange.body


@PROVES
@pytest.mark.parametrize("site", ["none", "same-origin"])
async def test_what_was_approved_is_not_asked_again(alice, site):
    """We demand that ``remember`` spares people the same question."""
    sent = await alice.follow(await alice.get(request_url(ISSUER), site), site)
    assert "code" in client_answer(sent)


@PROVES
@pytest.mark.parametrize("site", ["cross-site", "same-site", None, "nonsense"])
async def test_another_site_does_not_get_a_silent_answer(alice, site):
    """We demand that a link on another page leads to the question, not to a code."""
    assert asks_for_consent(await alice.follow(await alice.get(request_url(ISSUER), site), site))


@PROVES
@pytest.mark.parametrize(
    "change",
    [
        {"scope": "files:read files:write"},
        {"scope": "files:write"},
        {"client_id": "other"},
        {"redirect_uri": "https://notes.example/second"},
        {"resource": f"{ISSUER}/other"},
    ],
)
async def test_more_than_was_approved_is_asked(tmp_path, change):
    """We demand that consent is for this user, client, redirect URI, resource and scopes."""
    urls = ("https://notes.example/cb", "https://notes.example/second")
    both = msgspec.structs.replace(APP, redirect_uris=urls)
    other = msgspec.structs.replace(both, client_id="other")
    from isthmus.auth.authorization_server.core.settings import RegistrationPolicy

    authority = make_authority(
        ISSUER,
        make_users(tmp_path),
        consent="remember",
        resources=[f"{ISSUER}/mcp", f"{ISSUER}/other"],
        registration=RegistrationPolicy(static=[both, other]),
    )
    alice = Visitor(authority, ISSUER)
    await alice.decide(await alice.log_in(request_url(ISSUER)))
    assert "code" in client_answer(await alice.get(request_url(ISSUER)))
    assert asks_for_consent(await alice.follow(await alice.get(request_url(ISSUER, **change))))
    await authority.close()


@PROVES
async def test_another_user_of_the_same_browser_is_asked(alice):
    """We demand that nobody inherits what somebody else approved."""
    del alice.cookies["__Host-isthmus-session"]
    assert asks_for_consent(await alice.log_in(request_url(ISSUER), account="bob"))


@PROVES
async def test_a_denial_is_not_remembered_as_anything(authority):
    """We demand that only a yes is remembered."""
    bob = Visitor(authority, ISSUER)
    page = await bob.log_in(request_url(ISSUER), account="bob")
    assert "access_denied" == client_answer(await bob.decide(page, "deny"))["error"]
    assert asks_for_consent(await bob.follow(await bob.get(request_url(ISSUER))))


@PROVES
@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("back", ["http://127.0.0.1:4000/cb", "com.example.app:/cb"])
async def test_for_a_program_on_this_computer_one_is_asked_each_time(alice, authority, kind, back):
    """OAuth 2.1 7.3.1: no silent answer to a client that another program can pretend to be."""
    local = msgspec.structs.replace(LOCAL, kind=kind)
    await authority.store.write(lambda records: records.save_client(local))
    url = request_url(ISSUER, client_id="local", redirect_uri=back)
    for _ in range(2):
        page = await alice.follow(await alice.get(url))
        assert asks_for_consent(page)
        assert "code" in client_answer(await alice.decide(page))


@PROVES
async def test_always_means_always(tmp_path):
    """We demand that nothing is remembered unless the operator wants it."""
    authority = make_authority(ISSUER, make_users(tmp_path))
    alice = Visitor(authority, ISSUER)
    await alice.decide(await alice.log_in(request_url(ISSUER)))
    assert asks_for_consent(await alice.follow(await alice.get(request_url(ISSUER))))
    await authority.close()
