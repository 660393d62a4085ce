"""T34: a client assertion or an ID-JAG is good once, for one audience, client and resource."""

import asyncio

import pytest

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy, TrustedIdp, Workload
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.protocol import CLIENT_ASSERTION_TYPE, CLIENT_CREDENTIALS_GRANT, JWT_BEARER_GRANT
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.secret import Secret
from support.auth.documents import DocumentShelf
from support.auth.small_authority import ISSUER, OTHER, RESOURCE, SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t34-assertion-replay")

KEY, THIEF = PrivateKey.generate("ES256", "k1"), PrivateKey.generate("ES256", "k1")
IDP = "https://idp.example"
PLATFORM = "https://platform.example"

SIGNER = RegisteredClient(
    client_id="nightly",
    auth_method="private_key_jwt",
    jwks={"keys": [dict(KEY.jwk)]},
    grant_types=(CLIENT_CREDENTIALS_GRANT, JWT_BEARER_GRANT),
)
DESK = RegisteredClient(
    client_id="desk", auth_method="client_secret_post", secret=Secret("d" * 32),
    grant_types=(JWT_BEARER_GRANT,),
)  # fmt: skip
ROBOT = RegisteredClient(client_id="robot", grant_types=(JWT_BEARER_GRANT,))


def authority(**more):
    return SmallAuthority(
        registration=RegistrationPolicy(static=[SIGNER, DESK, ROBOT]),
        trusted_idps=[TrustedIdp(issuer=IDP, jwks={"keys": [dict(KEY.jwk)]})],
        workloads=[
            Workload(issuer=PLATFORM, subject="ns:robot", client_id="robot",
                     jwks={"keys": [dict(KEY.jwk)]})
        ],
        **more,
    )  # fmt: skip


def assertion(now, key=KEY, typ="JWT", **claims):
    usual = {"iss": "nightly", "sub": "nightly", "aud": ISSUER, "iat": int(now),
             "exp": int(now) + 60, "jti": "j1", **claims}  # fmt: skip
    return sign_jwt({k: v for k, v in usual.items() if v is not None}, key, typ=typ)


async def machine(small, text, **fields):
    return await small.post(
        "/token",
        {"grant_type": "client_credentials", "client_assertion_type": CLIENT_ASSERTION_TYPE,
         "client_assertion": text, **fields},
    )  # fmt: skip


@pytest.mark.covers(
    "auth.extension.client-credentials-authority",
    "auth.authority.fitting-grants",
    "auth.authority.both-client-kinds",
)
@pytest.mark.parametrize("audience", [ISSUER, f"{ISSUER}/token", [ISSUER]])
async def test_a_client_authenticates_by_what_it_has_signed(audience):
    """RFC 7523 2.2: for the issuer, or for the endpoint as older clients have it."""
    async with authority() as small:
        answer = await machine(small, assertion(small.clock.now, aud=audience), scope="read")
        principal = await small.verified(answer.json["access_token"])

        assert 200 == answer.status
        assert "refresh_token" not in answer.json
        assert ("nightly", "nightly", {"read"}) == (
            principal.subject, principal.client_id, principal.scopes)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "https://other.example"},
        {"aud": [ISSUER, "https://other.example"]},
        {"aud": RESOURCE},
        {"aud": None},
        {"iss": "desk"},
        {"sub": "desk"},
        {"sub": None},
        {"jti": None},
        {"jti": ""},
        {"jti": 5},
        {"exp": None},
        {"exp": 1},
        {"exp": 4_000_000_000},
        {"nbf": 4_000_000_000},
        {"key": THIEF},
    ],
)
async def test_an_assertion_of_a_client_that_is_not_right_is_no_authentication(change):
    """RFC 7523 3: issuer, subject, audience, times and id are all looked at."""
    async with authority() as small:
        answer = await machine(small, assertion(small.clock.now, **change))

        assert "invalid_client" == answer.json["error"]


async def test_an_assertion_of_a_client_is_good_once_also_for_racers():
    """Ours: of two that present it at the same time, one gets a token."""
    async with authority() as small:
        text = assertion(small.clock.now)
        done = await asyncio.gather(*(machine(small, text) for _ in range(5)))

        assert [200, 400, 400, 400, 400] == sorted(min(one.status, 400) for one in done)


def id_jag(now, **claims):
    usual = {"iss": IDP, "sub": "ada", "client_id": "desk", "resource": RESOURCE,
             "scope": "read", "typ": "oauth-id-jag+jwt"}  # fmt: skip
    return assertion(now, **{**usual, **claims})


async def presenting(small, text, **fields):
    named = {"client_id": "desk", "client_secret": "d" * 32, **fields}
    return await small.post("/token", {"grant_type": JWT_BEARER_GRANT, "assertion": text, **named})


@pytest.mark.covers("auth.extension.enterprise-authority")
async def test_an_id_jag_is_a_token_for_what_it_names():
    """Enterprise-managed authorization: the user of the assertion, its resource, its scopes, no refresh."""
    async with authority() as small:
        answer = await presenting(small, id_jag(small.clock.now, resource=OTHER))
        principal = await small.verified(answer.json["access_token"], OTHER)
        document = (await small.get("/.well-known/oauth-authorization-server")).json

        assert (200, "read") == (answer.status, answer.json["scope"])
        assert "refresh_token" not in answer.json
        assert f"{IDP}|ada" == principal.subject
        assert ["urn:ietf:params:oauth:grant-profile:id-jag"] == document[
            "authorization_grant_profiles_supported"
        ]


@pytest.mark.covers("auth.extension.enterprise-authority")
@pytest.mark.parametrize(
    ("change", "fields", "error"),
    [
        ({"aud": "https://other.example"}, {}, "invalid_grant"),
        ({"aud": f"{ISSUER}/token"}, {}, "invalid_grant"),
        ({"aud": [ISSUER, "https://other.example"]}, {}, "invalid_grant"),
        ({"client_id": "nightly"}, {}, "invalid_grant"),
        ({"client_id": None}, {}, "invalid_grant"),
        ({"resource": None}, {}, "invalid_grant"),
        ({"resource": "https://nobody.example"}, {}, "invalid_target"),
        ({}, {"resource": OTHER}, "invalid_target"),
        ({}, {"scope": "write"}, "invalid_scope"),
        ({"typ": "JWT"}, {}, "invalid_grant"),
        ({"iss": "https://nobody.example"}, {}, "invalid_grant"),
        ({"key": THIEF}, {}, "invalid_grant"),
        ({"exp": 1}, {}, "invalid_grant"),
        ({"jti": None}, {}, "invalid_grant"),
        ({"sub": None}, {}, "invalid_grant"),
        ({"tenant": "stranger"}, {}, "invalid_grant"),
        ({"cnf": {"jkt": "x"}}, {}, "invalid_grant"),
        ({"cnf": {}}, {}, "invalid_grant"),
        ({"cnf": {"x5t#S256": "x"}}, {}, "invalid_grant"),
        ({"scope": ""}, {}, "invalid_grant"),
        ({"scope": " "}, {}, "invalid_grant"),
        ({"scope": ["read"]}, {}, "invalid_grant"),
        ({}, {"client_secret": "wrong"}, "invalid_client"),
        ({}, {"client_secret": None}, "invalid_client"),
    ],
)
async def test_an_id_jag_that_is_not_right_is_no_token(change, fields, error):
    """Enterprise-managed authorization: type, audience, client, resource and signature all count."""
    async with authority() as small:
        named = {"client_secret": "d" * 32, **fields}
        kept = {k: v for k, v in named.items() if v is not None}
        text = id_jag(small.clock.now, **change)
        answer = await small.post(
            "/token",
            {"grant_type": JWT_BEARER_GRANT, "assertion": text, "client_id": "desk", **kept},
        )

        assert error == answer.json["error"]


@pytest.mark.covers("auth.extension.enterprise-authority")
async def test_an_id_jag_is_good_once():
    """Enterprise-managed authorization: its jti is remembered."""
    async with authority() as small:
        text = id_jag(small.clock.now)

        assert [200, 400] == [(await presenting(small, text)).status for _ in range(2)]


@pytest.mark.covers("auth.extension.enterprise-authority")
async def test_an_id_jag_that_is_bound_to_a_key_is_for_who_shows_that():
    """RFC 7800 3.1: and for nobody else, nor for who shows one key of two."""
    async with authority() as small:
        key, now = DpopKey.generate(), small.clock.now

        async def shown(jti, holder, **more):
            text = id_jag(now, jti=jti, cnf={"jkt": key.jkt, **more})
            fields = {"grant_type": JWT_BEARER_GRANT, "assertion": text, "client_id": "desk",
                      "client_secret": "d" * 32}  # fmt: skip
            headers = {"dpop": holder.proof("POST", f"{ISSUER}/token", now=now)}
            return (await small.post("/token", fields, headers=headers)).status

        assert 400 == await shown("b1", DpopKey.generate())
        assert 400 == await shown("b2", key, **{"x5t#S256": "x"})
        assert 200 == await shown("b3", key)


async def test_an_id_that_somebody_else_gave_an_assertion_does_not_use_it_up():
    """RFC 7519 4.1.7: a jti is its issuer's; nobody spends that of another's assertions."""
    async with authority() as small:
        used = [
            await presenting(small, id_jag(small.clock.now)),
            await machine(small, assertion(small.clock.now)),
            await presenting(small, id_jag(small.clock.now)),
            await machine(small, assertion(small.clock.now)),
        ]

        assert [200, 200, 400, 400] == [min(one.status, 400) for one in used]


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "é.é.é", "." * 20_000])
async def test_what_is_no_assertion_is_told_so(text):
    """Ours: bytes that anybody can send."""
    async with authority() as small:
        assert 400 == (await presenting(small, text)).status


async def test_a_disabled_user_gets_nothing_by_an_id_jag():
    """Ours: whatever their enterprise says."""
    async with authority() as small:
        small.users.disabled.add(f"{IDP}|ada")

        assert 400 == (await presenting(small, id_jag(small.clock.now))).status


@pytest.mark.covers("auth.extension.workload-authority")
async def test_a_workload_is_the_client_that_it_was_set_up_as():
    """Workload identity: issuer and subject name the client."""
    async with authority() as small:
        text = assertion(small.clock.now, iss=PLATFORM, sub="ns:robot", jti=None)
        answer = await small.post("/token", {"grant_type": JWT_BEARER_GRANT, "assertion": text})

        assert "robot" == (await small.verified(answer.json["access_token"])).client_id


@pytest.mark.covers("auth.extension.workload-authority")
@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"sub": "ns:other"}, {}),
        ({"iss": IDP}, {}),
        ({"aud": "https://other.example"}, {}),
        ({"exp": 1}, {}),
        ({"key": THIEF}, {}),
        ({}, {"client_id": "desk"}),
    ],
)
async def test_another_workload_is_nobody(change, fields):
    """Workload identity: whoever is not listed gets nothing."""
    async with authority() as small:
        usual = {"iss": PLATFORM, "sub": "ns:robot", **change}
        text = assertion(small.clock.now, **usual)
        answer = await small.post(
            "/token", {"grant_type": JWT_BEARER_GRANT, "assertion": text, **fields}
        )

        assert "invalid_grant" == answer.json["error"]


async def test_keys_of_an_identity_provider_are_fetched_where_it_has_them():
    """Ours: and where they are not to be had, it is nobody's fault, and 503."""
    shelf, uri = DocumentShelf(), f"{IDP}/jwks"
    async with SmallAuthority(
        registration=RegistrationPolicy(static=[DESK]),
        trusted_idps={IDP: TrustedIdp(issuer=IDP, jwks_uri=uri)},
        network=shelf,
    ) as small:
        before = await presenting(small, id_jag(small.clock.now))

        assert (503, "temporarily_unavailable") == (before.status, before.json["error"])
    shelf.put(uri, {"keys": [dict(KEY.jwk)]})
    async with SmallAuthority(
        registration=RegistrationPolicy(static=[DESK]),
        trusted_idps={IDP: TrustedIdp(issuer=IDP, jwks_uri=uri)},
        network=shelf,
    ) as small:
        assert 200 == (await presenting(small, id_jag(small.clock.now))).status
