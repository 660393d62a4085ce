"""T32: metadata that are about another server, to get its tokens."""

import pytest

from isthmus import Client
from isthmus.auth import Compat, MemoryTokenStore, OAuth
from isthmus.errors import AuthUnsafe
from oauth_town import PRM, Browser, town


@pytest.mark.covers("auth.threat.t32-other-resource", "auth.client.resource-must-cover")
@pytest.mark.parametrize(
    "resource",
    [
        "https://other.example/mcp",
        "{origin}/mc",
        "{origin}/mcp2",
        "{origin}/mcp/more",
        "{origin}.evil.example/mcp",
        "{origin}/x/../mcp",
        "",
    ],
)
async def test_no_token_is_asked_for(resource):
    """The spec: the resource covers the URL by whole segments of its path, or it ends here."""
    browser = Browser()
    async with town() as here:
        here.resource["resource"] = resource.format(origin=here.origin)
        auth = OAuth(open_browser=browser, store=MemoryTokenStore())
        with pytest.raises(AuthUnsafe, match="does not cover"):
            await Client(here.url, auth=auth).open()
        assert [] == here.authority.registered
    assert [] == browser.visited


async def test_what_stands_above_covers_and_is_asked_for_as_it_is_spelt():
    """The spec: the root's metadata may be about the whole origin."""
    browser = Browser()
    async with town() as here:
        here.place, here.announces = "", False
        here.resource["resource"] = here.origin
        auth = OAuth(open_browser=browser, store=MemoryTokenStore())
        async with Client(here.url, auth=auth):
            assert here.origin == browser.params()["resource"]
        tried = [path for _, path, _ in here.seen if path.startswith(PRM)]
    assert [f"{PRM}/mcp", PRM] == tried


async def test_a_challenge_names_no_metadata_of_another_origin():
    """Ours: unless that was allowed."""
    async with town() as here, town() as other:
        other.resource = {
            "resource": here.url, "authorization_servers": [here.authority.issuer],
        }  # fmt: skip
        here.gate_origin, real = here.origin, here.origin
        here.origin = other.origin  # which the challenge is written with
        auth = OAuth(open_browser=Browser(), store=MemoryTokenStore())
        with pytest.raises(AuthUnsafe, match="another origin"):
            await Client(here.url, auth=auth).open()
        compat = Compat(cross_origin_metadata=True)
        auth = OAuth(open_browser=Browser(), store=MemoryTokenStore(), compat=compat)
        async with Client(here.url, auth=auth) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert real != other.origin
