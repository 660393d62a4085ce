"""What clients may say of themselves: where they can be sent, and which keys they have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.auth.authorization_server.storage.clients import (
    UnacceptableClient,
    check_jwks,
    check_redirect,
    choose_grants,
    is_app_redirect,
)
from isthmus.auth.tokens.jose import PrivateKey

KEY = PrivateKey.generate("ES256")


@pytest.mark.covers("auth.threat.t16-dangerous-urls")
@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "about:blank",
        "blob:https://x",
        "ms-msdt:/id",
        "http://app.example/cb",
        "ftp://app.example/",
        "//app.example/cb",
        "cb",
        "https://ada@app.example/",
        "https://app.example/#f",
        "https:///cb",
        "unheard-of:/cb",
        "://x",
        "1a:/cb",
    ],
)
def test_dangerous_redirect_uris_are_refused(uri):
    """Ours: what a browser runs, what a file is, what others on the way can read."""
    with pytest.raises(UnacceptableClient) as refused:
        check_redirect(uri, ("cursor",))

    assert "invalid_redirect_uri" == refused.value.error
    assert uri not in str(refused.value)


@pytest.mark.parametrize(
    ("uri", "app"),
    [
        ("https://app.example/cb", False),
        ("http://localhost:1/cb", True),
        ("https://127.0.0.1/cb", True),
        ("com.example.app:/cb", True),
        ("cursor://x/cb", True),
    ],
)
def test_an_app_redirect_is_told_from_a_site(uri, app):
    """OpenID Connect Registration 2: native and web."""
    check_redirect(uri, ("cursor",))

    assert app == is_app_redirect(uri)


@given(st.text(max_size=60))
def test_any_text_is_taken_or_refused(text):
    """Ours: what a stranger registers raises nothing else."""
    try:
        check_redirect(text, ())
    except UnacceptableClient:
        return
    assert text.isascii()
    is_app_redirect(text)


def test_grants_that_there_are_not_are_left_out():
    """RFC 7591 2: the answer says what was registered."""
    wanted = ["implicit", "refresh_token", "authorization_code", "refresh_token"]

    assert ("refresh_token", "authorization_code") == choose_grants(wanted)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [1],
        [{"kty": "oct", "k": "AA"}],
        [{**KEY.jwk, "d": "AA"}],
        [{**KEY.jwk, "x": 1}],
        [{**KEY.jwk, "x": "ä"}],
        [dict(KEY.jwk)] * 11,
    ],
)
def test_a_set_of_keys_has_public_ones_alone(keys):
    """Ours: a client that publishes its private key is told so."""
    with pytest.raises(UnacceptableClient):
        check_jwks({"keys": keys})


def test_a_good_set_is_good():
    """RFC 7591 2: as it is published."""
    check_jwks({"keys": [dict(KEY.jwk)]})
