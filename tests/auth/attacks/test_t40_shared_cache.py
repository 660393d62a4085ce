"""T40: what one user was given, kept and given to another."""

import pytest

from isthmus import Server
from isthmus.client.cache import Caching, ResponseCache, ResponseStore
from isthmus.errors import UsageError
from isthmus.types import ListToolsResult, Tool
from support.auth.protected_server import WRITE, Files, begin_request_as, make_guard


async def list_as(app, name, method="tools/list", member="tools"):
    """What somebody is shown: names, and who may share the list."""
    answer = await begin_request_as(app, name, method, {}).done()
    result = answer.json["result"]
    return [item["name"] for item in result[member]], result["cacheScope"]


@pytest.mark.covers("auth.threat.t40-shared-cache", "auth.resource.private-lists")
@pytest.mark.parametrize("order", [("ada", "eve"), ("eve", "ada"), ("ada", "eve", "ada", "root")])
async def test_a_list_that_depends_on_its_reader_is_private_and_made_for_each(order):
    """Spec 2026-07-28 server/utilities/caching#choosing-a-cache-scope: MUST be private."""
    files = Files(
        make_guard(list_visibility="granted"), list_cache_scope="public", list_ttl_ms=60_000
    )
    short = ["read", "publish", "whoami"]
    expected = {
        "ada": short,
        "eve": ["read", "write", *short[1:]],
        "root": ["read", "write", *short[1:]],
    }

    for name in order:
        assert (expected[name], "private") == await list_as(files.app, name)


@pytest.mark.covers("auth.threat.t40-shared-cache", "auth.resource.private-lists")
@pytest.mark.parametrize(
    ("method", "member", "few", "all_"),
    [
        ("prompts/list", "prompts", [], ["review"]),
        ("resources/list", "resources", ["note"], ["plan", "note"]),
    ],
)
async def test_prompts_and_resources_are_listed_by_what_was_granted_too(method, member, few, all_):
    """Ours: in every list there is."""
    files = Files(make_guard(list_visibility="granted"))

    assert (few, "private") == await list_as(files.app, "ada", method, member)
    assert (all_, "private") == await list_as(files.app, "eve", method, member)


@pytest.mark.covers("auth.threat.t40-shared-cache")
async def test_lists_are_the_same_for_everybody_unless_told_otherwise():
    """Ours: what everybody sees may be shared where the author says so."""
    files = Files(list_cache_scope="public")

    assert await list_as(files.app, "ada") == await list_as(files.app, "eve")
    assert "public" == (await list_as(files.app, "ada"))[1]


@pytest.mark.covers("auth.threat.t40-shared-cache", "auth.resource.private-lists")
def test_what_takes_scopes_cannot_be_public():
    """Ours: a cache between would give it to who lacks them."""
    server = Server("files", auth=make_guard())

    with pytest.raises(UsageError, match="shares it with those who lack its scopes"):
        server.add_resource(
            lambda: "x", "secret://x", name="x", scopes={WRITE}, cache_scope="public"
        )


@pytest.mark.covers("auth.threat.t40-shared-cache", "auth.resource.private-lists")
async def test_what_a_guarded_server_says_of_itself_is_private_unless_told_otherwise():
    """Ours: who has no token learns nothing from a cache either."""
    said = [
        (await begin_request_as(Files(**more).app, "ada", "server/discover", {}).done()).json[
            "result"
        ]["cacheScope"]
        for more in ({}, {"list_cache_scope": {"server/discover": "public"}})
    ]

    assert ["private", "public"] == said


@pytest.mark.covers("auth.threat.t40-shared-cache")
def test_clients_give_private_answers_to_nobody_else():
    """Spec 2026-07-28 server/utilities/caching#cache-scope-field: MUST NOT be shared across authorizations."""
    shared = ResponseStore(1_000_000)
    ada, bob = (ResponseCache(Caching(), "https://one.example", "2026-07-28", shared) for _ in "ab")
    tools = ListToolsResult(
        tools=[Tool(name="write", input_schema={"type": "object"})],
        ttl_ms=60_000,
        cache_scope="private",
    )

    ada.keep("tools/list", None, tools, ada.changes("tools/list"))

    assert ada.find("tools/list", None) is not None
    assert bob.find("tools/list", None) is None
    assert 0 == len(shared)


@pytest.mark.covers("auth.threat.t40-shared-cache")
@pytest.mark.parametrize("scope", ["private", "public"])
def test_other_tokens_get_no_private_answers_that_were_given_for_the_former(scope):
    """Spec 2026-07-28 server/utilities/caching#cache-scope-field: a different access token requires a different cache."""
    tokens = ["first"]
    kept = ResponseCache(
        Caching(), "https://one.example", "2026-07-28", ResponseStore(1_000_000), lambda: tokens[0]
    )
    tools = ListToolsResult(tools=[], ttl_ms=60_000, cache_scope=scope)
    kept.keep("tools/list", None, tools, kept.changes("tools/list"))
    asked = kept.changes("prompts/list")
    found = [kept.find("tools/list", None) is not None]
    tokens[0] = "second"
    found.append(kept.find("tools/list", None) is not None)
    # what was asked for with the former comes when the others are there
    kept.keep("prompts/list", None, tools, asked)

    assert [True, scope == "public"] == found
    assert kept.find("prompts/list", None) is None
