"""The authorization server under random requests: it always answers, and never with a fault of its own."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.core.requests import Limits
from isthmus.store.meter import Rate
from support.auth.small_authority import SmallAuthority

NAMES = (
    *("grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier", "scope"),
    *("resource", "refresh_token", "assertion", "client_assertion", "client_assertion_type"),
    *("token", "token_type_hint", "response_type", "state", "code_challenge", "dpop_jkt"),
    *("code_challenge_method", "request", "prompt"),
)
VALUES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["authorization_code", "refresh_token", "client_credentials", "code", "S256", "read",
         "urn:ietf:params:oauth:grant-type:jwt-bearer", "rt.a.0.b", "eyJhbGciOiJub25lIn0.e30.AA",
         "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "https://as.example/mcp",
         "https://127.0.0.1/client.json", "v" * 43]
    ),
)  # fmt: skip
FIELDS = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["redirect_uris", "grant_types", "client_name", "jwks", "keys", "scope",
             "token_endpoint_auth_method", "response_types", "application_type", "kty"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip
BROAD = Rate(1e9, seconds=1)


def ask_authority(how):
    """Ask a new authorization server something."""

    async def run():
        limits = Limits(10**9, per_address=BROAD, per_client=BROAD)
        async with SmallAuthority(limits=limits) as small:
            return (await how(small)).status

    return asyncio.run(run())


@given(
    path=st.sampled_from(["/token", "/revoke", "/introspect"]),
    fields=FIELDS,
    headers=st.dictionaries(
        st.sampled_from(["authorization", "dpop", "content-type"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
        | st.sampled_from(["Basic", "Basic Og==", "Basic YTpi", "Bearer x"]),
        max_size=2,
    ),
)
def test_no_form_is_a_fault_of_the_server(path, fields, headers):
    """Ours: 400, 401, 413 or 415; 503 where a client's document is out of reach; but never 500."""
    status = ask_authority(lambda small: small.post(path, fields, headers))

    assert status < 500 or status == 503


@given(query=st.binary(max_size=60) | FIELDS)
def test_no_query_is_a_fault_of_the_server(query):
    """Ours: a page or a redirect, but never 500."""
    assert ask_authority(lambda small: small.get("/authorize", query)) < 500


@given(fields=FIELDS)
def test_no_change_of_a_good_request_is_a_fault_of_the_server(fields):
    """Ours: what comes beside a client that is known."""

    async def how(small):
        client_id = await small.public()
        return await small.get(
            "/authorize", list({**small.request(client_id), **dict(fields)}.items())
        )

    assert ask_authority(how) < 500


@given(body=st.binary(max_size=60) | JSON)
def test_no_registration_is_a_fault_of_the_server(body):
    """Ours: 201 or 400, but never 500."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    assert ask_authority(lambda small: small.registering(raw)) in {201, 400}
