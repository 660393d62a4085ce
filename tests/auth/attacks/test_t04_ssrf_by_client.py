"""T4: what clients name is fetched under the guard or not at all, and a failure is not cached."""

import base64
import json

import pytest

from isthmus.auth.net.network import PUBLIC_ONLY, Network
from support.auth.documents import DocumentShelf
from support.auth.small_authority import BACK, SmallAuthority, redirect_parameters
from support.http.local_web import make_json_response, serve_responses

pytestmark = pytest.mark.covers(
    "auth.threat.t04-ssrf-by-client", "auth.authority.documents-guarded"
)

ID = "https://rebind.example/client.json"


async def test_a_document_on_a_private_address_gets_no_connection():
    """2026-07-28: the name is judged where the connection is made; the browser sees a page."""
    looked_up = []

    async def resolve(host, port):
        looked_up.append(host)
        return ["127.0.0.1"]

    async with serve_responses(lambda asked: make_json_response({})) as web:
        id = f"https://rebind.example:{web.port}/client.json"
        network = Network(PUBLIC_ONLY, resolve=resolve)
        async with SmallAuthority(network=network) as small:
            answer = await small.ask(id)

        assert (400, None) == (answer.status, answer.header("location"))
        assert 0 == web.connections
        assert ["rebind.example"] == looked_up


@pytest.mark.parametrize(
    "id",
    [
        "https://127.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://169.254.169.254/latest",
        "https://2130706433/client.json",
        "https://localhost/client.json",
    ],
)
async def test_a_document_on_this_machine_is_not_asked_for(id):
    """2026-07-28: neither is one of a cloud's metadata service."""
    async with SmallAuthority() as small:
        assert 400 == (await small.ask(id)).status


async def test_keys_that_a_client_names_are_fetched_under_the_same_guard():
    """Ours: a jwks_uri is a URL that somebody else chose, too."""
    async with serve_responses(lambda asked: make_json_response({"keys": []})) as web:
        async with SmallAuthority() as small:
            client = await small.register(
                token_endpoint_auth_method="private_key_jwt",
                jwks_uri=f"https://127.0.0.1:{web.port}/jwks",
            )
            assertion = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDIn0.AA".replace(
                "eyJzdWIiOiJDIn0", encoded(client["client_id"])
            )
            kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            answer = await small.post(
                "/token",
                {
                    "grant_type": "authorization_code",
                    "code": "x",
                    "client_assertion": assertion,
                    "client_assertion_type": kind,
                },
            )

        assert 503 == answer.status
        assert 0 == web.connections


def encoded(subject):
    return base64.urlsafe_b64encode(json.dumps({"sub": subject}).encode()).rstrip(b"=").decode()


async def test_a_failure_is_not_remembered_and_a_success_is():
    """CIMD 4.3: errors are not cached; whoever mends a document is let in at once."""
    shelf = DocumentShelf()
    async with SmallAuthority(network=shelf) as small:
        before = await small.ask(ID)
        shelf.put(ID, {"client_id": ID, "client_name": "N", "redirect_uris": [BACK]})
        after = await small.ask(ID)
        again = await small.ask(ID)

        assert 400 == before.status
        assert "code" in redirect_parameters(after)
        assert "code" in redirect_parameters(again)
        assert 2 == shelf.asked[ID]


async def test_a_logo_is_never_fetched():
    """Ours: nothing of a document is asked for that is not needed."""
    shelf, logo = DocumentShelf(), "https://app.example/logo.png"
    shelf.put(ID, {"client_id": ID, "client_name": "N", "redirect_uris": [BACK], "logo_uri": logo})
    async with SmallAuthority(network=shelf) as small:
        await small.ask(ID)

    assert {ID: 1} == shelf.asked
