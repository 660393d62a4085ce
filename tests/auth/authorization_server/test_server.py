"""The authorization server as a whole: what it says of itself, where it answers, and to whom."""

import asyncio
import base64

import pytest

from isthmus import Server
from isthmus.auth.authorization_server.core.requests import Limits, OAuthParameters
from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.protocol import CLIENT_CREDENTIALS_GRANT
from isthmus.auth.resource_server.resource_auth import ScopeModel
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.auth.tokens.jose import read_token
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, UsageError
from isthmus.store.meter import Rate
from isthmus.transports.http.app import HttpApp
from support.auth.small_authority import (
    BACK,
    ISSUER,
    OTHER,
    RESOURCE,
    SmallAuthority,
    redirect_parameters,
)
from support.http.asgi_driver import Exchange

MACHINE_CLIENT = RegisteredClient(
    client_id="a b+c", auth_method="client_secret_basic", secret=Secret("p:%w d" + "x" * 20),
    grant_types=(CLIENT_CREDENTIALS_GRANT,), scopes=("read",),
)  # fmt: skip


@pytest.mark.covers("auth.authority.metadata", "auth.authority.iss-sent")
async def test_the_metadata_says_what_clients_look_for():
    """RFC 8414: the issuer letter by letter, S256, iss, and how to authenticate where."""
    async with SmallAuthority() as small:
        answer = await small.get("/.well-known/oauth-authorization-server")
        told = answer.json

        assert ISSUER == told["issuer"]
        assert ["S256"] == told["code_challenge_methods_supported"]
        assert told["authorization_response_iss_parameter_supported"] is True
        assert told["client_id_metadata_document_supported"] is True
        assert "none" in told["token_endpoint_auth_methods_supported"]
        assert "none" not in told["introspection_endpoint_auth_methods_supported"]
        assert "ES256" in told["token_endpoint_auth_signing_alg_values_supported"]
        assert "application/json" == answer.header("content-type")


@pytest.mark.covers("auth.authority.metadata")
@pytest.mark.parametrize("issuer", ["https://h.example/tenant", "https://h.example/tenant/"])
async def test_an_issuer_with_a_path_has_its_metadata_where_rfc_8414_puts_it(issuer):
    """RFC 8414 3.1: the well-known part comes before the path."""
    async with SmallAuthority(issuer=issuer, legacy_paths=False, openid_alias=True) as small:
        answer = await small.get("/.well-known/oauth-authorization-server/tenant")
        alias = await small.get("/.well-known/openid-configuration/tenant")

        assert issuer == answer.json["issuer"] == alias.json["issuer"]
        assert "https://h.example/tenant/token" == answer.json["token_endpoint"]
        assert 400 == (await small.post("/tenant/token", {"grant_type": "x"})).status
        assert 404 == (await small.post("/token", {})).status


async def test_it_does_not_pass_for_an_openid_provider_unless_it_is_told_to():
    """Ours: it issues no ID tokens."""
    async with SmallAuthority() as small:
        assert 404 == (await small.get("/.well-known/openid-configuration")).status


@pytest.mark.covers("auth.authority.default-endpoints")
@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("issuer", [ISSUER, ISSUER + "/tenant"])
async def test_the_endpoints_of_2025_03_26_are_at_the_root_with_and_without_a_slash(slash, issuer):
    """2025-03-26: clients that find no metadata go there; nobody is redirected with a body."""
    async with SmallAuthority(issuer=issuer) as small:
        body = b'{"redirect_uris": ["http://127.0.0.1:51000/callback"]}'
        headers = {"content-type": "application/json"}
        path = f"/register{slash}"
        client = await Exchange(small.app, "POST", path, headers=headers, body=body).done()
        asked = await small.get(f"/authorize{slash}", small.request(client.json["client_id"]))
        token = await small.post(f"/token{slash}", {"grant_type": "password"})

        assert [201, 302, 400] == [client.status, asked.status, token.status]
        assert "unsupported_grant_type" == token.json["error"]


@pytest.mark.parametrize("path", ["/token", "/register", "/revoke"])
async def test_pages_of_any_origin_may_call_what_programs_call_without_cookies(path):
    """Ours: browser-based clients do; credentials are never let along."""
    async with SmallAuthority() as small:
        asked = await Exchange(small.app, "OPTIONS", path, headers={"origin": "https://x"}).done()
        done = await small.post(path, {})

        assert (204, "*") == (asked.status, asked.header("access-control-allow-origin"))
        assert "*" == done.header("access-control-allow-origin")
        assert None is done.header("access-control-allow-credentials")
        assert "no-store" == done.header("cache-control")


async def test_no_page_may_call_what_people_look_at():
    """Ours: nor what authenticated resource servers ask."""
    async with SmallAuthority() as small:
        for path in ("/authorize", "/introspect"):
            asked = await Exchange(small.app, "OPTIONS", path, headers={"origin": "https://x"}).done()  # fmt: skip

            assert 405 == asked.status
            assert None is asked.header("access-control-allow-origin")


@pytest.mark.covers("auth.authority.iss-sent", "auth.authority.both-client-kinds")
async def test_an_answer_names_the_issuer_whether_it_is_yes_or_no():
    """RFC 9207 2: success and error alike, byte for byte."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        yes = redirect_parameters(await small.ask(client_id))
        pending = await small.app.ask(asked_for(small, client_id))
        no = await small.app.deny(pending)

        assert (ISSUER, "s1") == (yes["iss"], yes["state"])
        assert no == f"{BACK}?error=access_denied&state=s1&iss=https%3A%2F%2Fas.example"


def asked_for(small, client_id, **params):
    return OAuthParameters(method="GET", pairs=tuple(small.request(client_id, **params).items()))


async def test_an_authorization_request_is_answered_once():
    """Ours: two tabs, or two processes, cannot both say something."""
    async with SmallAuthority() as small:
        pending = await small.app.ask(asked_for(small, await small.public()))
        answers = [small.app.approve(pending, User(id="ada")), small.app.deny(pending)]
        done = await asyncio.gather(*answers, return_exceptions=True)

        assert 1 == len([one for one in done if isinstance(one, AuthRefused)])


async def test_an_authorization_request_expires_after_ten_minutes():
    """Ours: it has to be asked again."""
    async with SmallAuthority() as small:
        pending = await small.app.ask(asked_for(small, await small.public()))
        small.clock.now += 601

        with pytest.raises(AuthRefused):
            await small.app.approve(pending, User(id="ada"))


async def test_people_may_allow_less_than_was_asked():
    """RFC 6749 3.3: the answer says what was granted."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        pending = await small.app.ask(asked_for(small, client_id, scope="read write"))
        url = await small.app.approve(pending, User(id="ada"), scopes={"read"})
        code = url.partition("code=")[2].partition("&")[0]

        assert "read" == (await small.redeem(code, client_id)).json["scope"]


async def test_a_request_without_scope_and_resource_has_the_usual_ones():
    """RFC 6749 3.3, RFC 8707 2: the first resource, and the scopes that were set up."""
    async with SmallAuthority(usual_scopes=["read"]) as small:
        client_id = await small.public()
        usual = await small.tokens(client_id)
        named = await small.tokens(client_id, scope="write read", resource=OTHER + "/")

        assert "read" == usual["scope"]
        assert await small.verified(usual["access_token"], RESOURCE) is not None
        assert "write read" == named["scope"]
        assert await small.verified(named["access_token"], RESOURCE) is None
        assert await small.verified(named["access_token"], OTHER) is not None


async def test_refreshing_may_narrow_the_scopes_and_not_widen_them():
    """RFC 6749 6: for this token; the grant keeps what it has."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        tokens = await small.tokens(client_id, scope="read write")
        narrow = (await small.refresh(tokens["refresh_token"], client_id, scope="read")).json
        whole = (await small.refresh(narrow["refresh_token"], client_id)).json
        wider = await small.refresh(whole["refresh_token"], client_id, scope="read admin")

        assert ["read", "read write"] == [narrow["scope"], whole["scope"]]
        assert "invalid_scope" == wider.json["error"]


@pytest.mark.covers("auth.authority.fitting-grants", "auth.authority.both-client-kinds")
async def test_a_machine_authenticates_in_the_header_both_halves_form_encoded():
    """RFC 6749 2.3.1: an id and a secret may have any characters."""
    async with SmallAuthority(registration=RegistrationPolicy(static=[MACHINE_CLIENT])) as small:
        pair = base64.b64encode(b"a+b%2Bc:p%3A%25w+d" + b"x" * 20).decode()
        fields = {"grant_type": "client_credentials"}
        done = await small.post("/token", fields, {"authorization": f"Basic {pair}"})
        wrong = base64.b64encode(b"a+b%2Bc:no").decode()
        refused = await small.post("/token", fields, {"authorization": f"Basic {wrong}"})

        assert (200, "read") == (done.status, done.json["scope"])
        assert (401, "invalid_client") == (refused.status, refused.json["error"])
        assert refused.header("www-authenticate").startswith("Basic")


async def test_a_public_client_is_no_machine():
    """RFC 6749 4.4: client credentials take credentials."""
    client = RegisteredClient(client_id="open", grant_types=(CLIENT_CREDENTIALS_GRANT,))
    async with SmallAuthority(registration=RegistrationPolicy(static=[client])) as small:
        fields = {"grant_type": "client_credentials", "client_id": "open"}

        assert "invalid_client" == (await small.post("/token", fields)).json["error"]


@pytest.mark.covers("auth.extension.dpop-authority")
async def test_a_proof_binds_the_token_to_its_key():
    """RFC 9449 5: cnf.jkt, token_type DPoP, and the algorithms are in the metadata."""
    async with SmallAuthority() as small:
        key, client_id = DpopKey.generate(), await small.public()
        headers = {"dpop": key.proof("POST", f"{ISSUER}/token", now=small.clock.now)}
        tokens = (await small.redeem(await small.code(client_id), client_id, headers)).json
        principal = await small.verified(tokens["access_token"], scheme="dpop")
        document = (await small.get("/.well-known/oauth-authorization-server")).json
        listed = document["dpop_signing_alg_values_supported"]

        assert ("DPoP", key.jkt) == (tokens["token_type"], principal.jkt)
        assert [] == [alg for alg in listed if alg.startswith("HS") or alg == "none"]


@pytest.mark.covers("auth.extension.dpop-authority")
async def test_a_proof_is_good_once_and_for_this_endpoint():
    """RFC 9449 4.3: also after a restart, since proofs are remembered in the store."""
    async with SmallAuthority() as small:
        key, client_id = DpopKey.generate(), await small.public()
        proof = {"dpop": key.proof("POST", f"{ISSUER}/token", now=small.clock.now)}
        other = {"dpop": key.proof("POST", f"{ISSUER}/revoke", now=small.clock.now)}
        first = await small.redeem(await small.code(client_id), client_id, proof)
        again = await small.redeem(await small.code(client_id), client_id, proof)
        elsewhere = await small.redeem(await small.code(client_id), client_id, other)

        assert 200 == first.status
        assert "invalid_dpop_proof" == again.json["error"]
        assert "invalid_dpop_proof" == elsewhere.json["error"]


@pytest.mark.covers("auth.extension.dpop-authority")
async def test_a_nonce_of_ours_can_be_wanted_in_proofs():
    """RFC 9449 8: it is given with the refusal, and good for the next try."""
    async with SmallAuthority(dpop_nonce=True) as small:
        key, client_id = DpopKey.generate(), await small.public()
        code, url, now = await small.code(client_id), f"{ISSUER}/token", small.clock.now
        bare = await small.redeem(code, client_id, {"dpop": key.proof("POST", url, now=now)})
        nonce = bare.header("dpop-nonce")
        proof = key.proof("POST", url, now=now, nonce=nonce)

        assert "use_dpop_nonce" == bare.json["error"]
        assert 200 == (await small.redeem(code, client_id, {"dpop": proof})).status


@pytest.mark.covers("auth.extension.dpop-authority")
async def test_a_client_that_wants_bound_tokens_gets_no_others():
    """RFC 9449 5.2: dpop_bound_access_tokens."""
    async with SmallAuthority() as small:
        client_id = await small.public(dpop_bound_access_tokens=True)

        assert 400 == (await small.redeem(await small.code(client_id), client_id)).status


@pytest.mark.parametrize("by", ["refresh_token", "access_token"])
async def test_a_token_is_revoked_by_its_own_client_only(by):
    """RFC 7009 2: a refresh token with its grant; somebody else's is not there."""
    async with SmallAuthority() as small:
        client_id, other = await small.public(), await small.public()
        tokens = await small.tokens(client_id)
        fields = {"token": tokens[by], "token_type_hint": "something-else"}
        stranger = await small.post("/revoke", {**fields, "client_id": other})
        still = await small.verified(tokens["access_token"])
        own = await small.post("/revoke", {**fields, "client_id": client_id})

        assert [200, 200] == [stranger.status, own.status]
        assert still is not None
        assert await small.verified(tokens["access_token"]) is None
        after = await small.refresh(tokens["refresh_token"], client_id)
        assert (400 if by == "refresh_token" else 200) == after.status


async def test_introspection_takes_client_authentication():
    """RFC 7662 2.1: and of others' tokens only those hear that were set up to ask."""
    guard = RegisteredClient(
        client_id="rs", auth_method="client_secret_post", secret=Secret("r" * 32),
        grant_types=(), introspects=True,
    )  # fmt: skip
    plain = RegisteredClient(
        client_id="app", auth_method="client_secret_post", secret=Secret("a" * 32), grant_types=()
    )
    async with SmallAuthority(registration=RegistrationPolicy(static=[guard, plain])) as small:
        tokens = await small.tokens(client_id := await small.public())

        async def told(**fields):
            return await small.post("/introspect", {"token": tokens["access_token"], **fields})

        assert "invalid_client" == (await told(client_id=client_id)).json["error"]
        assert {"active": False} == (await told(client_id="app", client_secret="a" * 32)).json
        whole = (await told(client_id="rs", client_secret="r" * 32)).json
        assert ("ada", RESOURCE, True) == (whole["sub"], whole["aud"], whole["active"])
        none = await small.post(
            "/introspect", {"token": "x", "client_id": "rs", "client_secret": "r" * 32}
        )
        assert {"active": False} == none.json


async def test_a_disabled_user_is_refused_at_once_and_comes_back_when_enabled():
    """Ours: refreshing, redeeming and what was issued before."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        tokens, code = await small.tokens(client_id), await small.code(client_id)
        small.users.disabled.add("ada")

        assert "invalid_grant" == (await small.redeem(code, client_id)).json["error"]
        assert 400 == (await small.refresh(tokens["refresh_token"], client_id)).status
        assert await small.verified(tokens["access_token"]) is None
        small.users.disabled.clear()
        assert 200 == (await small.refresh(tokens["refresh_token"], client_id)).status


async def test_a_client_that_was_removed_has_no_tokens():
    """Ours: neither those that were issued, nor new ones."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        tokens = await small.tokens(client_id)
        await small.app.store.write(lambda records: records.remove_client(client_id))

        assert await small.verified(tokens["access_token"]) is None
        assert 400 == (await small.refresh(tokens["refresh_token"], client_id)).status


async def test_keys_change_without_anybody_noticing():
    """Ours: the next key is published before it signs, and the previous one is believed on."""
    async with SmallAuthority() as small:
        before = await small.tokens(client_id := await small.public())
        published = {key["kid"] for key in (await small.get("/jwks")).json["keys"]}
        await small.app.rotate_keys()
        after = await small.tokens(client_id)

        assert read_token(after["access_token"]).header["kid"] in published
        assert await small.verified(before["access_token"]) is not None
        assert await small.verified(after["access_token"]) is not None


async def test_a_rate_limited_request_gets_retry_after():
    """Ours: by address, at /authorize and at /token."""
    limits = Limits(20, per_address=Rate(3, seconds=60))
    async with SmallAuthority(limits=limits) as small:
        done = [await small.post("/token", {"grant_type": "x"}) for _ in range(4)]
        page = await small.ask("nobody")

        assert [400, 400, 400, 429] == [one.status for one in done]
        assert "20" == done[-1].header("retry-after")
        assert 429 == page.status


async def test_a_server_without_users_is_for_machines():
    """Ours: nobody can log in, and /authorize says so."""
    async with SmallAuthority(users=None) as small:
        assert 400 == (await small.ask(await small.public())).status


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://as.example"},
        {"issuer": "as.example"},
        {"issuer": "https://as.example#x"},
        {"issuer": "https://as.example?x=1"},
        {"resources": []},
        {"resources": ["http://as.example/mcp"]},
        {"scopes": {"a b": "x"}},
        {"usual_scopes": ["admin"]},
        {"access_ttl": 0},
        {"registration": RegistrationPolicy(static=[RegisteredClient(
            client_id="x", auth_method="client_secret_basic")])},
    ],
)  # fmt: skip
def test_impossible_arguments_are_refused_at_construction(wrong):
    """Ours: not when the first user comes."""
    with pytest.raises(UsageError):
        SmallAuthority(**wrong)


async def test_beside_an_mcp_server_its_app_answers_for_both():
    """Ours: one process, one port, one origin."""
    async with SmallAuthority() as small:
        server = Server("files", auth=small.app.resource_auth(RESOURCE))
        app = HttpApp(server.router, auth=small.app.resource_auth(RESOURCE))
        home = {"host": "as.example"}
        told = await Exchange(
            app, "GET", "/.well-known/oauth-authorization-server", headers=home
        ).done()
        about = await Exchange(
            app, "GET", "/.well-known/oauth-protected-resource/mcp", headers=home
        ).done()

        assert (200, ISSUER) == (told.status, told.json["issuer"])
        assert [ISSUER] == about.json["authorization_servers"]
        with pytest.raises(UsageError):
            small.app.resource_auth("https://as.example/other")
        with pytest.raises(UsageError, match="/sse"):
            small.app.resource_auth(RESOURCE, sse="https://as.example/sse")


async def test_alone_it_is_an_app_with_a_life_of_its_own():
    """Ours: any ASGI server can run it; a path that is none is a page."""
    app = AuthorizationServer(
        ISSUER, resources=[RESOURCE], scopes={"read": "Read"}, users=None, store=MemoryAuthStore()
    )
    said, heard = [], iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(heard)

    async def send(message):
        said.append(message["type"])

    missing = await Exchange(app, "GET", "/nothing").done()
    await app({"type": "lifespan"}, receive, send)

    assert 404 == missing.status
    assert ["lifespan.startup.complete", "lifespan.shutdown.complete"] == said


MISTAKES = [
    ({"resources": RESOURCE}, "resources= is a list"),
    ({"scopes": ["read"]}, "the text that people read"),
    ({"scopes": "read"}, "the text that people read"),
    ({"users": "users.db"}, r"PasswordUsers\(path\) or one of its kind, not str"),
    ({"store": "auth.db"}, r"SQLiteAuthStore\(path\) or one of its kind, not str"),
    ({"consent": "never"}, "consent= is 'always' or 'remember', not 'never'"),
]


@pytest.mark.parametrize(("given", "says"), MISTAKES)
def test_impossible_settings_are_refused_at_construction(given, says):
    """Ours: a wrong kind of thing is no crash in the first login."""
    whole = {
        "issuer": ISSUER,
        "resources": [RESOURCE],
        "scopes": {"read": "Read"},
        "users": None,
        "store": MemoryAuthStore(),
    }
    with pytest.raises(UsageError, match=says):
        AuthorizationServer(**{**whole, **given})


def test_a_resource_cannot_require_a_scope_that_is_never_granted():
    """Ours: otherwise every login would fail, and only then."""
    small = SmallAuthority(scopes={"read": "Read", "admin": "Everything"})

    with pytest.raises(UsageError, match="'raed' is required by every request"):
        small.app.resource_auth(RESOURCE, scopes={"read", "raed"})
    implied = ScopeModel({"list"}, implies={"admin": {"list"}})
    assert small.app.resource_auth(RESOURCE, scopes=implied).scopes is implied
