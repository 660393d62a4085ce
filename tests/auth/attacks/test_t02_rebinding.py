"""T2: a name has a public address when it is checked, and another when it is used."""

import socket

import pytest

from isthmus.auth.net.network import (
    PUBLIC_ONLY,
    Network,
    NetworkFailed,
    NetworkPolicy,
    NetworkRefused,
)
from isthmus.transports.http.client import dial
from support.http.local_web import make_json_response, serve_responses


class Rebinding:
    """A resolver whose answers change."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host, port):
        self.asked += 1
        return self.answers.pop(0)


@pytest.mark.covers("auth.threat.t02-dns-rebinding")
async def test_the_address_that_was_judged_is_the_one_that_is_dialled(monkeypatch):
    """Ours: a name is looked up once for a connection, and there is no second answer to believe."""
    resolve = Rebinding(["93.184.215.14"], ["127.0.0.1"])
    dialled = []

    class Refusing(socket.socket):
        """Connects to nothing, and tells where it was to."""

        def connect(self, address):
            dialled.append(address)
            raise ConnectionRefusedError(111, "no network in tests")

    monkeypatch.setattr(dial.socket, "socket", Refusing)
    async with serve_responses(lambda asked: make_json_response({})) as web:
        network = Network(PUBLIC_ONLY, resolve=resolve)
        with pytest.raises(NetworkFailed):
            await network.fetch("GET", f"https://rebind.example:{web.port}/")
        await network.close()

    assert 1 == resolve.asked
    assert [("93.184.215.14", web.port)] == dialled
    assert 0 == web.connections


@pytest.mark.covers("auth.threat.t02-dns-rebinding")
async def test_the_next_connection_is_judged_again():
    """Ours: what was right once gives nobody a right; a later answer is judged like the first."""
    resolve = Rebinding(["127.0.0.1"])
    async with serve_responses(lambda asked: make_json_response({})) as web:
        network = Network(PUBLIC_ONLY, resolve=resolve)
        with pytest.raises(NetworkRefused, match="loopback"):
            await network.fetch("GET", f"https://rebind.example:{web.port}/")
        await network.close()

    assert 0 == web.connections


@pytest.mark.covers("auth.threat.t02-dns-rebinding")
@pytest.mark.parametrize(
    ("addresses", "told"),
    [
        (["93.184.215.14", "10.0.0.1"], "10.0.0.1, which is private"),
        (["93.184.215.14", "no-address"], "no address"),
        (["::ffff:127.0.0.1"], "loopback"),
    ],
)
async def test_one_address_that_is_not_for_everybody_refuses_them_all(addresses, told):
    """Ours: which of them would be dialled first is nothing to rely on."""
    network = Network(PUBLIC_ONLY, resolve=Rebinding(addresses))
    with pytest.raises(NetworkRefused, match=told):
        await network.fetch("GET", "https://rebind.example/")
    await network.close()


async def test_name_and_certificate_stay_what_was_asked_for():
    """Ours: dialling an address changes neither Host nor the name that TLS checks."""

    async def resolve(host, port):
        return ["127.0.0.1"]

    async with serve_responses(lambda asked: make_json_response({})) as web:
        own = NetworkPolicy(origins=frozenset({f"http://mine.example:{web.port}"}))
        network = Network(own, resolve=resolve)
        await network.json(f"http://mine.example:{web.port}/a?b=%2e")
        await network.close()

    assert ["/a?b=%2e"] == [asked.target for asked in web.requests]
    assert f"mine.example:{web.port}" == web.requests[0].headers["host"]
