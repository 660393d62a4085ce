"""Enterprise-managed authorization: from the company's login to the server's token."""

import pytest

from isthmus import Client
from isthmus.auth import EnterpriseManaged, StaticClient
from isthmus.auth.client.grants.jwt_bearer import JWT_BEARER_GRANT
from isthmus.errors import AuthRefused, AuthUnsafe, UsageError
from support.auth.oauth_town import open_machine_town
from support.http.loopback_pages import json_page, serve_pages

JAG = "urn:ietf:params:oauth:token-type:id-jag"
SAID = "what-the-provider-said-of-alice"
GRANT = "the-grant-for-the-mcp-server"


@pytest.fixture
async def place():
    """A town whose authorization server gives machines what they ask for."""
    async with open_machine_town() as here:
        yield here


@pytest.fixture
async def provider():
    """A company's identity provider."""
    async with serve_pages() as made:
        made.answer_ = {"access_token": GRANT, "issued_token_type": JAG, "token_type": "N_A"}
        made.pages["/token"] = lambda _: json_page(made.answer_)
        yield made


def employee(provider, **more):
    """Alice, who is logged in."""

    async def said():
        return SAID

    return EnterpriseManaged(
        f"{provider.url}/token",
        idp_client=StaticClient("chat", secret="secret-at-the-provider"),
        subject_token=said,
        client=StaticClient("chat-at-mcp", secret="secret-at-the-server"),
        **more,
    )


@pytest.mark.covers("auth.extension.enterprise-client")
@pytest.mark.parametrize("kind", ["id_token", "saml2"])
async def test_the_login_becomes_a_grant_and_the_grant_a_token(place, provider, kind):
    """1.4: all five parameters to the provider, then jwt-bearer, authenticated; no /authorize."""
    auth = employee(provider, subject_token_type=kind)
    async with Client(place.url, auth=auth) as client:
        result = await client.call_tool("hello")
    [exchange], [form] = [asked.form for asked in provider.asked], place.authority.forms

    assert "hello" == result.text
    assert {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": JAG,
        "audience": place.authority.issuer,
        "resource": place.url,
        "scope": "read",
        "subject_token": SAID,
        "subject_token_type": f"urn:ietf:params:oauth:token-type:{kind}",
    }.items() <= exchange.items()
    assert (JWT_BEARER_GRANT, GRANT, place.url) == (
        form["grant_type"], form["assertion"], form["resource"],
    )  # fmt: skip
    assert form["Authorization"].startswith("Basic ")
    assert "actor_token" not in exchange
    assert [] == [path for _, path, _ in place.seen if path.endswith(("/authorize", "/register"))]


async def test_scopes_that_the_company_left_out_are_not_asked_for(place, provider):
    """1.4: the provider may grant fewer scopes, and those are what the server is asked for."""
    provider.answer_["scope"] = "little"
    async with Client(place.url, auth=employee(provider)):
        pass

    assert "little" == place.authority.forms[0]["scope"]


async def test_a_company_that_says_no_is_believed(place, provider):
    """1.4: the refusal is told, and the server's authorization server hears of nothing."""
    refusal = {"error": "invalid_grant", "error_description": "not this one"}
    provider.pages["/token"] = lambda _: json_page(refusal, 400)
    with pytest.raises(AuthRefused, match="not this one"):
        async with Client(place.url, auth=employee(provider)):
            pass

    assert [] == place.authority.forms


@pytest.mark.parametrize("kind", [None, "urn:ietf:params:oauth:token-type:access_token"])
async def test_an_exchange_for_another_token_type_is_sent_nowhere(place, provider, kind):
    """1.4: what is no ID-JAG could be a token for something else, and leaves us by no door."""
    provider.answer_["issued_token_type"] = kind
    with pytest.raises(AuthUnsafe, match="sent nowhere"):
        async with Client(place.url, auth=employee(provider)):
            pass

    assert [] == place.authority.forms


def test_a_kind_of_token_that_nobody_knows_is_refused():
    """Ours: a slip is told when it is written."""
    with pytest.raises(UsageError, match="id_token, saml2 or jwt"):
        EnterpriseManaged(
            "https://idp.example/token",
            idp_client=StaticClient("chat"),
            subject_token=None,
            client=StaticClient("chat"),
            subject_token_type="kerberos",
        )


@pytest.mark.covers("auth.all.https-or-loopback")
async def test_the_users_token_is_not_sent_in_clear():
    """The spec: the endpoints of authorization servers are https, the identity provider's too."""
    with pytest.raises(UsageError, match="it is an https URL"):
        EnterpriseManaged(
            "http://idp.example/token", idp_client=StaticClient("a", secret="s-1"),
            subject_token=None, client=StaticClient("b", secret="s-2"),
        )  # fmt: skip
