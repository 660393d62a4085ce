"""T1: metadata names a machine that only we can reach."""

from ipaddress import ip_address

import pytest

from isthmus.auth.net.addresses import special_purpose
from isthmus.auth.net.network import PUBLIC_ONLY, Network, NetworkPolicy, NetworkRefused, desktop
from support.http.local_web import make_json_response, serve_responses

SPELLINGS = """
127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 0x7f.0.0.1 127.0.0.1. localhost
[::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] 0.0.0.0
"""

RESERVED = """
10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 100.100.100.200 169.254.169.254
168.63.129.16 192.0.0.192 198.18.0.1 203.0.113.7 224.0.0.1 240.0.0.1 255.255.255.255 0.0.0.0
127.255.255.254 fd00::1 fe80::1 fe80::1%1 ff02::1 :: ::1 ::7f00:1 2001:db8::1 2002:7f00:1::
2002:808:808:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b:1::1 64:ff9b::a9fe:a9fe fec0::1
::ffff:10.0.0.1 ::ffff:0:7f00:1 fd00:ec2::254 4000::1
"""

GLOBAL = "8.8.8.8 1.1.1.1 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808"

NOT_HTTP = r"""
file:///etc/passwd unix:///run/docker.sock http+unix://x/ ftp://h/ //h/ h gopher://h
https://user:pw@login.example/ https://h/#f https://h\@x/ https://h:0/ https://h:99999/
"""


@pytest.mark.covers("auth.threat.t01-ssrf-by-metadata", "auth.client.ssrf-considered")
@pytest.mark.parametrize(
    "policy", [PUBLIC_ONLY, desktop("https://mcp.example/mcp")], ids=["public", "desktop"]
)
async def test_no_spelling_of_this_machine_gets_a_connection(policy):
    """Ours: whoever names this machine, in whatever letters, reaches nothing on it."""
    async with serve_responses(lambda asked: make_json_response({})) as web:
        network = Network(policy)
        for host in SPELLINGS.split():
            for scheme in ("https", "http"):
                with pytest.raises(NetworkRefused):
                    await network.json(f"{scheme}://{host}:{web.port}/.well-known/x")
        await network.close()

    assert 0 == web.connections


@pytest.mark.covers("auth.threat.t01-ssrf-by-metadata")
@pytest.mark.parametrize("address", RESERVED.split())
async def test_a_name_with_one_reserved_address_is_refused_whole(address):
    """Ours: an address that is not for everybody is not dialled, nor what stands beside it."""

    async def resolve(host, port):
        return ["8.8.8.8", address]

    network = Network(PUBLIC_ONLY, resolve=resolve)
    with pytest.raises(NetworkRefused, match=r"only public addresses"):
        await network.fetch("GET", "https://login.example/")
    await network.close()


@pytest.mark.parametrize("address", GLOBAL.split())
def test_public_addresses_are_for_everybody(address):
    """Ours: the guard stops nobody on the way to the internet."""
    assert None is special_purpose(ip_address(address))


@pytest.mark.covers("auth.threat.t01-ssrf-by-metadata")
async def test_what_the_user_typed_opens_nothing_beside_it():
    """Ours: one private origin that was asked for is one origin."""

    async def resolve(host, port):
        return ["127.0.0.1"]

    async with serve_responses(
        lambda asked: make_json_response({"host": asked.headers["host"]})
    ) as web:
        network = Network(desktop(f"http://intranet.example:{web.port}/mcp"), resolve=resolve)
        own = await network.json(f"http://intranet.example:{web.port}/x")
        for other in (
            f"https://other.example:{web.port}/",
            f"http://other.example:{web.port}/",
            "http://intranet.example:1/",
            f"https://127.0.0.1:{web.port}/",
        ):
            with pytest.raises(NetworkRefused):
                await network.fetch("GET", other)
        await network.close()

    assert {"host": f"intranet.example:{web.port}"} == own
    assert 1 == web.connections


@pytest.mark.parametrize("url", NOT_HTTP.split())
async def test_only_http_is_asked(url):
    """Ours: sockets of Unix, files and URLs that hide where they lead are no places to go."""
    with pytest.raises(NetworkRefused):
        await Network(NetworkPolicy(loopback=True)).fetch("GET", url)
