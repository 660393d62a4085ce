"""``network=`` means one thing wherever it stands: a policy."""

from functools import partial

import pytest

from isthmus.auth import (
    AuthorizationServer,
    ClientCredentials,
    IntrospectionVerifier,
    JWTVerifier,
    MemoryAuthStore,
    Network,
    NetworkPolicy,
    NetworkRefused,
    OAuth,
    Presented,
    Provider,
    Secret,
    VerifierUnavailable,
)
from isthmus.auth.net.network import make_network
from isthmus.errors import UsageError

ISSUER = "https://login.example"
INSIDE = NetworkPolicy(origins=frozenset({"https://other.example"}))

SERVERS = [
    partial(JWTVerifier, ISSUER, audience="https://mcp.example/mcp"),
    partial(
        IntrospectionVerifier,
        "http://127.0.0.1:9/introspect",
        client_id="c",
        client_secret="s" * 20,
        issuer=ISSUER,
    ),
    partial(Provider, "calendar", client_id="c", issuer=ISSUER),
    partial(
        AuthorizationServer,
        ISSUER,
        resources=["https://mcp.example/mcp"],
        scopes={"read": "Read"},
        users=None,
        store=MemoryAuthStore(),
    ),
]
CLIENTS = [OAuth, partial(ClientCredentials, "nightly", secret="s" * 20)]


@pytest.mark.parametrize("made", SERVERS)
def test_servers_take_a_policy_or_a_network(made):
    """Ours: the same object as a client does, or the whole way."""
    made(network=INSIDE)
    made(network=Network(INSIDE))
    with pytest.raises(UsageError, match="network= takes a NetworkPolicy"):
        made(network="https://other.example")


@pytest.mark.parametrize("made", CLIENTS)
def test_clients_take_a_policy(made):
    """Ours: what else is given is said at once."""
    made(network=INSIDE)
    with pytest.raises(UsageError, match="network= takes NetworkPolicy"):
        made(network=Network(INSIDE))


async def test_a_given_policy_replaces_the_default():
    """Ours: and not the usual one, which would go to the endpoint that was named."""
    verifier = SERVERS[1](network=NetworkPolicy())
    with pytest.raises(VerifierUnavailable, match=r"127\.0\.0\.1"):
        await verifier.verify(Presented("bearer", Secret("t" * 20)), "https://mcp.example/mcp")

    given = Network(INSIDE)
    assert given is make_network(given, keep=True, total=1.0)
    made = make_network(INSIDE, keep=False, total=1.0)
    assert INSIDE is made.policy
    with pytest.raises(NetworkRefused):
        await made.json("http://127.0.0.1:9/")
    await made.close()
