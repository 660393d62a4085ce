"""T32: metadata that are about another server, to get its tokens."""

import contextlib

import pytest

from isthmus import Client
from isthmus.auth import ClientCredentials, Compat, MemoryTokenStore, OAuth
from isthmus.errors import AuthUnsafe, IsthmusError
from support.auth.oauth_town import PRM, TownBrowser, open_town


def oauth_of(browser=None, *, store=None, **more):
    """A user who agrees to everything."""
    store = MemoryTokenStore() if store is None else store
    return OAuth(open_browser=browser or TownBrowser(), store=store, **more)


def overheard(here, heard):
    """The pages of a town, and a note of the credentials that others than /mcp are shown."""
    before = here.page

    def page(method, path, query, body, headers):
        served = path.startswith(PRM) or method == "GET" or path in {"/token", "/register"}
        if not served:
            heard.append(headers.get("authorization"))
        return before(method, path, query, body, headers)

    return page


def announcing(here, at):
    """The pages of a town, and a server at a path that announces the metadata of /mcp."""
    before = here.page

    def page(*request):
        if request[1] == at:
            named = f'Bearer resource_metadata="{here.origin}{PRM}/mcp"'
            return 401, {}, {"www-authenticate": named}
        return before(*request)

    return page


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
    browser = TownBrowser()
    async with open_town() as here:
        here.resource["resource"] = resource.format(origin=here.origin)
        auth = OAuth(open_browser=browser, store=MemoryTokenStore())
        with pytest.raises(AuthUnsafe, match="does not cover"):
            await Client(here.url, auth=auth).open()
        assert [] == here.authority.registered
    assert [] == browser.visited


@pytest.mark.covers("auth.client.parent-by-setting")
async def test_a_resource_above_the_server_takes_a_setting():
    """RFC 9728 3.3: metadata about the whole origin are not those of a server on it."""
    async with open_town() as here:
        here.place, here.announces = "", False
        here.resource["resource"] = here.origin
        with pytest.raises(AuthUnsafe, match=r"stands above .*Compat\(parent_resources="):
            await Client(here.url, auth=oauth_of()).open()
        assert [] == here.authority.registered

        browser = TownBrowser()
        compat = Compat(parent_resources=frozenset({f"{here.origin}/"}))
        async with Client(here.url, auth=oauth_of(browser, compat=compat)):
            assert here.origin == browser.params()["resource"]
        tried = [path for _, path, _ in here.seen if path.startswith(PRM)]
    assert [f"{PRM}/mcp", PRM] * 2 == tried


async def test_a_kept_token_goes_to_no_server_below_its_own():
    """Ours: whoever runs another server on the origin gets no token that was issued for this one."""
    store, heard = MemoryTokenStore(), []
    async with open_town() as here:
        here.page = overheard(here, heard)
        async with Client(here.url, auth=oauth_of(store=store)):
            pass
        for path in ("/mcp/mallory", "/mcp/mallory/", "/mcp2", "/mc", ""):
            with contextlib.suppress(IsthmusError):
                await Client(f"{here.origin}{path}", auth=oauth_of(store=store)).open()
    assert heard != []
    assert [None] * len(heard) == heard


async def test_a_kept_token_for_a_parent_goes_to_the_server_it_was_got_for():
    """Ours: what one login was allowed is not allowed to whatever else stands below the parent."""
    store, heard = MemoryTokenStore(), []
    async with open_town() as here:
        here.page = overheard(here, heard)
        here.resource["resource"] = here.origin
        compat = Compat(parent_resources=frozenset({here.origin}))
        async with Client(here.url, auth=oauth_of(store=store, compat=compat)):
            pass
        with contextlib.suppress(IsthmusError):
            await Client(f"{here.origin}/mallory", auth=oauth_of(store=store)).open()
        again = oauth_of(store=store)
        async with Client(here.url, auth=again) as client:
            assert "hello" == (await client.call_tool("hello")).text
            here.revoked.update(here.authority.tokens)
            assert "hello" == (await client.call_tool("hello")).text
        assert 1 == len(here.authority.asked)
        assert 1 == here.authority.counts["refresh_token"]
    assert heard != []
    assert [None] * len(heard) == heard


async def test_a_server_below_another_cannot_ask_for_its_token():
    """Ours: metadata of the server above, announced by the one below, end the login."""
    async with open_town() as here:
        here.page = announcing(here, "/mcp/mallory")
        with pytest.raises(AuthUnsafe, match="stands above"):
            await Client(f"{here.url}/mallory", auth=oauth_of()).open()
        machine = ClientCredentials("job", secret="s" * 20)
        with pytest.raises(AuthUnsafe, match="stands above"):
            await Client(f"{here.url}/mallory", auth=machine).open()
        assert [] == here.authority.forms


async def test_a_logout_below_a_server_leaves_the_token_of_that_server():
    """Ours: a logout is of one server, as a login is."""
    store = MemoryTokenStore()
    async with open_town() as here:
        auth = oauth_of(store=store)
        async with Client(here.url, auth=auth):
            pass
        assert 0 == await auth.logout(f"{here.url}/mallory")
        assert 1 == await auth.logout(f"{here.url}/")


async def test_a_challenge_names_no_metadata_of_another_origin():
    """Ours: unless that was allowed."""
    async with open_town() as here, open_town() as other:
        other.resource = {
            "resource": here.url, "authorization_servers": [here.authority.issuer],
        }  # fmt: skip
        here.gate_origin, real = here.origin, here.origin
        here.origin = other.origin  # which the challenge is written with
        auth = OAuth(open_browser=TownBrowser(), store=MemoryTokenStore())
        with pytest.raises(AuthUnsafe, match="another origin"):
            await Client(here.url, auth=auth).open()
        compat = Compat(cross_origin_metadata=True)
        auth = OAuth(open_browser=TownBrowser(), store=MemoryTokenStore(), compat=compat)
        async with Client(here.url, auth=auth) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert real != other.origin
