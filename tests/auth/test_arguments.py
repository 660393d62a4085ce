"""Numbers that cannot be are refused where they are given, in words."""

from functools import partial

import pytest

from isthmus.auth import (
    AuthorizationServer,
    IntrospectionVerifier,
    JWTVerifier,
    Loopback,
    MemoryAuthStore,
    Network,
    Provider,
)
from isthmus.auth.arguments import check_number
from isthmus.auth.authorization_server.core.settings import (
    CimdPolicy,
    DcrPolicy,
    RegistrationPolicy,
)
from isthmus.auth.authorization_server.pages.login import BrowserSessions
from isthmus.auth.client.store.file_store import FileTokenStore
from isthmus.errors import UsageError

ISSUER = "https://as.example"


def authority(**given):
    """An authorization server."""
    return AuthorizationServer(
        ISSUER,
        resources=[f"{ISSUER}/mcp"],
        scopes={"read": "Read"},
        users=None,
        store=MemoryAuthStore(),
        **given,
    )


def registering(**given):
    """One that lets clients register so."""
    return authority(registration=RegistrationPolicy(dcr=DcrPolicy(**given)))


def documents(**given):
    """One that believes documents so."""
    return authority(registration=RegistrationPolicy(cimd=CimdPolicy(**given)))


introspection = partial(
    IntrospectionVerifier, ISSUER, client_id="c", client_secret="s" * 20, issuer=ISSUER
)
WRONG = [
    (authority, "access_ttl", "10m"),
    (authority, "access_ttl", 0),
    (authority, "access_ttl", 0.5),
    (authority, "access_ttl", True),
    (authority, "refresh_ttl", -1),
    (authority, "refresh_ttl", None),
    (authority, "rotation_grace", -0.1),
    (authority, "code_ttl", 0),
    (authority, "key_life", float("nan")),
    (registering, "per_ip_hour", "20"),
    (registering, "ttl_unused_days", -1),
    (registering, "most", 0),
    (documents, "cache", "1h"),
    (documents, "cache_most", -5),
    (introspection, "fresh", "60"),
    (introspection, "leeway", -1),
    (partial(JWTVerifier, ISSUER, audience=f"{ISSUER}/mcp"), "leeway", "60"),
    (partial(JWTVerifier, ISSUER, audience=f"{ISSUER}/mcp"), "remember", -1),
    (Loopback, "wait", 0),
    (Loopback, "wait", "5m"),
    (Loopback, "port", "80"),
    (partial(FileTokenStore, "tokens", "k" * 43), "most", 0),
    (partial(FileTokenStore, "tokens", "k" * 43), "patience", "long"),
    (Network, "total", 0),
    (Network, "connect", "1s"),
    (partial(Provider, "calendar", client_id="c", issuer=ISSUER), "check_interval", "1m"),
    (partial(Provider, "calendar", client_id="c", issuer=ISSUER), "session", -1),
    (partial(BrowserSessions, None, None, None), "idle", 0),
    (partial(BrowserSessions, None, None, None), "life", "a day"),
]


@pytest.mark.parametrize(("made", "name", "value"), WRONG)
def test_an_impossible_number_is_refused_at_construction(made, name, value):
    """Ours: not in the first login, nor by tokens that never end."""
    with pytest.raises(UsageError, match=rf"^{name}= is a .*number of .*, not "):
        made(**{name: value})


def test_a_number_that_can_be_is_taken():
    """Ours: bounds are where they are said to be, and a whole number is a number."""
    check_number("n", 0)
    check_number("n", 0.001, above=0)
    check_number("n", 1, least=1, whole=True)
    check_number("n", float("inf"))
