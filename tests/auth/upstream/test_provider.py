"""Tests of a provider as our server sees it: its metadata, its tokens, its refusals."""

import asyncio

import pytest

from isthmus.auth.authorization_server.upstream.api import UpstreamDenied, UpstreamUnavailable
from isthmus.auth.authorization_server.upstream.provider import Endpoints, Provider, read_metadata
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from support.auth.upstream_flow import BACK, authorize_user, log_in_user, make_upstream
from support.auth.upstream_provider import RUDE, UpstreamProvider


async def test_a_code_becomes_tokens_with_our_secret_and_our_verifier(remote, acme):
    """Ours: the code flow with PKCE, as any client of the provider's."""
    tokens, _, _ = await log_in_user(remote, acme)

    assert "alice" == remote.access[tokens.access.reveal()]["user"]
    assert ("openid", "files") == tokens.scopes
    assert "S256" == remote.authorizations[0]["code_challenge_method"]
    assert remote.client_id == remote.authorizations[0]["client_id"]


async def test_a_code_is_worth_nothing_with_another_verifier(remote, acme):
    """Ours: PKCE is in force upstream, too, and the refusal is the provider's word for no."""
    back, _, _ = await authorize_user(remote, acme)

    with pytest.raises(UpstreamDenied) as denied:
        await acme.exchange(Secret(back["code"]), Secret.random(), BACK)

    assert "invalid_grant" == denied.value.error


async def test_error_texts_of_a_provider_are_not_repeated(remote, acme, caplog):
    """Ours: a provider's text may be anybody's, so no exception and no log has it."""
    remote.refresh_error = "temporarily_unavailable"
    tokens, _, _ = await log_in_user(remote, acme)

    with pytest.raises(UpstreamUnavailable) as caught:
        await acme.renew(tokens)

    assert RUDE not in str(caught.value) + caplog.text
    assert "400 temporarily_unavailable" in caplog.text


async def test_an_unknown_error_code_is_not_repeated(remote, acme, caplog):
    """Ours: an unregistered code is text like any other."""
    remote.refresh_error = RUDE
    tokens, _, _ = await log_in_user(remote, acme)

    with pytest.raises(UpstreamUnavailable):
        await acme.renew(tokens)

    assert RUDE not in caplog.text


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("invalid_grant", UpstreamDenied),
        ("access_denied", UpstreamDenied),
        ("interaction_required", UpstreamDenied),
        ("bad_refresh_token", UpstreamDenied),
        ("invalid_client", UpstreamUnavailable),
        ("invalid_request", UpstreamUnavailable),
        ("server_error", UpstreamUnavailable),
    ],
)
async def test_only_a_provider_that_means_the_user_ends_their_login(remote, acme, error, kind):
    """Ours: a wrong secret of our own, or a broken provider, sends nobody into a login again."""
    tokens, _, _ = await log_in_user(remote, acme)
    remote.refresh_error = error

    with pytest.raises(kind):
        await acme.renew(tokens)


@pytest.mark.parametrize("status", [500, 503, 429, 404])
async def test_a_provider_that_is_broken_is_unavailable(remote, acme, status):
    """Ours: whatever it answers without a code of OAuth says nothing about the user."""
    tokens, _, _ = await log_in_user(remote, acme)
    remote.fault = status

    with pytest.raises(UpstreamUnavailable):
        await acme.renew(tokens)


async def test_a_provider_that_is_gone_is_unavailable(remote, acme):
    """Ours: no answer says nothing about the user."""
    tokens, _, _ = await log_in_user(remote, acme)
    await remote.stop()

    with pytest.raises(UpstreamUnavailable):
        await acme.renew(tokens)


async def test_a_renewal_rotates_tokens_and_keeps_their_user(remote, acme):
    """Ours: after a refresh there is the next refresh token; the one before is used up."""
    tokens, _, _ = await log_in_user(remote, acme)

    renewed = await acme.renew(tokens)

    assert tokens.refresh != renewed.refresh
    assert tokens.access != renewed.access
    with pytest.raises(UpstreamDenied):
        await acme.renew(tokens)


async def test_a_refresh_without_a_new_refresh_token_keeps_the_old_one(remote, acme):
    """Ours: RFC 6749 6: the provider may leave it out."""
    tokens, _, _ = await log_in_user(remote, acme)
    remote.refreshes = False

    assert tokens.refresh == (await acme.renew(tokens)).refresh


async def test_without_refresh_token_the_session_ends_with_the_access_token(clock):
    """Ours: what cannot be renewed caps what we issue."""
    async with UpstreamProvider(refreshes=False, lifetime=100) as remote:
        provider = make_upstream(remote, clock)
        tokens, _, _ = await log_in_user(remote, provider)
        await provider.close()

    assert tokens.ends_at == tokens.expires_at


async def test_a_session_limit_is_not_prolonged_by_renewing(remote, clock):
    """Ours: session= counts from the login."""
    provider = make_upstream(remote, clock, session=1000)
    tokens, _, _ = await log_in_user(remote, provider)
    clock.now += 500

    renewed = await provider.renew(tokens)
    await provider.close()

    assert tokens.ends_at == renewed.ends_at


async def test_metadata_of_another_issuer_are_not_used(remote, clock):
    """Ours: RFC 8414 3.3, upstream as well."""
    provider = make_upstream(remote, clock, issuer=f"{remote.url}/.")

    with pytest.raises(UpstreamUnavailable):
        await provider.endpoints()
    await provider.close()


@pytest.mark.parametrize("named", ["https://evil.example", "https://acme.example/other", None, 7])
def test_metadata_that_name_another_issuer_are_refused_though_they_were_found(named):
    """Ours: RFC 8414 3.3: where a document lies does not say whose it is."""
    document = {
        "issuer": named,
        "authorization_endpoint": "https://acme.example/authorize",
        "token_endpoint": "https://acme.example/token",
    }
    right = {**document, "issuer": "https://acme.example"}

    assert "https://acme.example" == read_metadata(right, "https://acme.example", "acme").issuer
    with pytest.raises(UpstreamUnavailable):
        read_metadata(document, "https://acme.example", "acme")


@pytest.mark.parametrize("told", [{"token_type": "mac"}, {"token_type": "DPoP"}, {"token_type": 5}])
async def test_a_token_that_is_no_bearer_token_is_not_used_as_one(remote, acme, told):
    """Ours: RFC 6749 7.1: a type that is not understood must not be used."""
    back, verifier, _ = await authorize_user(remote, acme)
    remote.told = told

    with pytest.raises(UpstreamUnavailable):
        await acme.exchange(Secret(back["code"]), verifier, BACK)


async def test_metadata_are_asked_for_once_by_many(remote, acme):
    """Ours: twenty logins at once make one request for metadata."""
    await asyncio.gather(*(acme.endpoints() for _ in range(20)))

    assert 1 == remote.count("GET /.well-known/openid-configuration")


async def test_revoking_takes_both_tokens_back(remote, acme):
    """Ours: RFC 7009: nothing that we got is good afterwards."""
    tokens, _, _ = await log_in_user(remote, acme)

    await acme.revoke(tokens)

    assert ({}, {}) == (remote.access, remote.refresh)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "Has Spaces", "issuer": "https://a.example"}, "no name of a provider"),
        ({"name": "a"}, "either issuer= or endpoints="),
        (
            {
                "name": "a",
                "issuer": "https://a.example",
                "endpoints": Endpoints(
                    authorize="https://a.example/a", token="https://a.example/t"
                ),
            },
            "either issuer= or endpoints=",
        ),
        ({"name": "a", "issuer": "http://a.example"}, "it takes https"),
        ({"name": "a", "issuer": "https://a.example", "api": ["http://b.example"]}, "takes https"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_at_once(settings, words):
    """Ours: a mistake is told where the provider is made, and says what helps."""
    with pytest.raises(UsageError, match=words):
        Provider(**settings, client_id="c")


@pytest.mark.parametrize(
    "given",
    [
        {"scopes": "openid"},
        {"api": "https://api.example"},
        {"api": ["api.example"]},
        {"api": ["https://api.example/v4"]},
    ],
)
def test_scopes_and_origins_have_to_be_lists(given):
    """Ours: a text in place of a list would be taken letter by letter."""
    with pytest.raises(UsageError, match="the provider 'acme'"):
        Provider("acme", issuer="https://login.example", client_id="x", **given)


@pytest.mark.parametrize("status", [403, 404, 407, 502])
def test_the_code_of_a_page_in_place_of_the_token_endpoint_ends_no_login(acme, status):
    """RFC 6749 5.2: errors come with 400 or 401; a proxy's access_denied is not the provider's."""
    refusal = acme._make_refusal(status, {"error": "access_denied"})

    assert UpstreamUnavailable is type(refusal)
