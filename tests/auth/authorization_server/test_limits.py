"""Limits: whose requests count together."""

import pytest

from isthmus.auth.authorization_server.core.requests import Limits, TooManyRequests
from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.net.addresses import address_block
from isthmus.auth.tokens.secret import Secret
from isthmus.store.meter import Rate
from support.auth.small_authority import SmallAuthority


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_an_ipv6_network_of_64_bits_counts_as_one_address(address, network):
    """Ours: everybody has 2**64 addresses there, and would change one to go on."""
    assert network == address_block(address)


def test_addresses_and_clients_are_counted_for_themselves():
    """Ours: one that asks too often takes nothing from others."""
    limits = Limits(1, per_address=Rate(1, seconds=60), per_client=Rate(1, seconds=60))
    limits.address("192.0.2.7")
    limits.client("192.0.2.7")
    limits.registration("192.0.2.7")
    limits.address("192.0.2.8")

    for again in (limits.address, limits.client, limits.registration):
        with pytest.raises(TooManyRequests) as refused:
            again("192.0.2.7")
        assert refused.value.retry_after > 0


async def test_failed_requests_do_not_use_up_a_clients_rate():
    """Ours: a client's name is no secret, and many clients are many users' at once."""
    limits = Limits(99, per_client=Rate(3, seconds=60))
    async with SmallAuthority(limits=limits) as small:
        client_id = await small.public()
        for _ in range(9):
            assert 400 == (await small.redeem("x", client_id)).status

        done = [await small.redeem(await small.code(client_id), client_id) for _ in range(4)]
        assert [200, 200, 200, 429] == [one.status for one in done]


async def test_introspection_does_not_use_up_the_rate_of_its_address():
    """Ours: it asks about whatever it is sent; a client that asks for itself is counted."""
    secret = {"secret": Secret("s" * 20), "grant_types": (), "auth_method": "client_secret_post"}
    files = RegisteredClient(client_id="files", introspects=True, **secret)
    other = RegisteredClient(client_id="other", **secret)
    policy = RegistrationPolicy(static=[files, other])
    limits = Limits(9, per_address=Rate(5, seconds=60))
    async with SmallAuthority(registration=policy, limits=limits) as small:

        async def asked(client_id, secret="s" * 20):
            fields = {"token": "x", "client_id": client_id, "client_secret": secret}
            return (await small.post("/introspect", fields)).status

        assert [200] * 20 == [await asked("files") for _ in range(20)]
        assert [200, 200, 200] == [await asked("other") for _ in range(3)]
        assert [401, 401, 429] == [await asked("files", "wrong") for _ in range(3)]
