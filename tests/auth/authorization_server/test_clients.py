"""Clients: what is allowed to each."""

import pytest

from isthmus.auth.authorization_server.storage.clients import AuthlibClient, RegisteredClient
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.protocol import AUTHORIZATION_CODE_GRANT
from isthmus.auth.tokens.secret import Secret

OFFERED = ("read", "write", "admin")


def known(**of):
    client = RegisteredClient(client_id="c", **of)
    return AuthlibClient(client, digest=None, matches=None, offered=OFFERED, usual=("read",))


@pytest.mark.parametrize(
    ("limit", "asked", "gets"),
    [
        (None, None, "read"),
        (None, "  ", "read"),
        (None, "write read write", "write read"),
        (None, "unheard-of", None),
        (("write",), None, ""),
        (("write",), "write", "write"),
        (("write",), "write read", None),
    ],
)
def test_a_client_gets_what_it_asks_for_or_nothing(limit, asked, gets):
    """RFC 6749 3.3: it is never given less without being told."""
    assert gets == known(scopes=limit).get_allowed_scope(asked)


def test_only_a_single_redirect_uri_need_not_be_named():
    """RFC 6749 3.1.2.3: of several, one has to be."""
    assert (
        "https://a.example/cb"
        == known(redirect_uris=("https://a.example/cb",)).get_default_redirect_uri()
    )
    assert None is known(redirect_uris=("https://a.example", "https://b.example")).get_default_redirect_uri()  # fmt: skip


def test_a_secret_may_come_in_the_header_or_in_the_body():
    """Ours: many clients register for the one and use the other."""
    by_secret, public = known(auth_method="client_secret_basic"), known()

    assert by_secret.check_endpoint_auth_method("client_secret_post", "token")
    assert not by_secret.check_endpoint_auth_method("none", "token")
    assert not public.check_endpoint_auth_method("client_secret_post", "token")


def test_no_secret_fits_a_client_without_one():
    """Ours: neither an empty one."""
    assert not known().check_client_secret("")
    assert not known(secret=Secret("s")).check_client_secret("")
    assert known(secret=Secret("s")).check_client_secret("s")


def test_only_codes_are_given_at_the_authorization_endpoint():
    """OAuth 2.1 10: the implicit grant is gone."""
    assert known(grant_types=(AUTHORIZATION_CODE_GRANT,)).check_response_type("code")
    assert not known(grant_types=(AUTHORIZATION_CODE_GRANT,)).check_response_type("token")
    assert not known(grant_types=("client_credentials",)).check_response_type("code")


async def test_a_stored_client_holds_no_secret():
    """Ours: its digest, under a key that is not in the file."""
    store = MemoryAuthStore()
    client = RegisteredClient(
        client_id="c", secret=Secret("s" * 20), auth_method="client_secret_post"
    )
    await store.write(lambda records: records.save_client(client))
    found, digest = await store.read(lambda records: records.client("c"))
    fits = await store.read(lambda records: records.vault.matches(digest, "s" * 20))
    listed = await store.read(lambda records: records.clients())
    await store.close()

    assert None is found.secret
    assert fits
    assert [found] == listed
    assert "c" in repr(known())
