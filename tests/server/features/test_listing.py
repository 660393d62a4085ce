"""Lists in pages, kept as bytes until something changes."""

import pytest
from msgspec import Raw

from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.server import Server
from isthmus.wire import ClientCapabilities, ListToolsResult
from support.server.both_eras import LEGACY, MODERN, EraClient


def many(n=5, **options):
    server = Server("many", **options)
    for i in range(n):
        server.add_tool(lambda: None, name=f"t{i}")
    return server


def names(result):
    return [tool["name"] for tool in result["tools"]]


@pytest.mark.covers("tools.list.deterministic")
async def test_everything_comes_in_one_page_by_default():
    """In the order it was registered (spec: tools, deterministic order)."""
    result = await EraClient(many()).once("tools/list")

    assert ["t0", "t1", "t2", "t3", "t4"] == names(result)
    assert "nextCursor" not in result


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.covers("pagination.pages.lead-on")
async def test_pages_lead_to_one_another(revision):
    """By cursors the client does not look into (spec: pagination)."""
    client, seen, params = EraClient(many(page_size=2), revision), [], {}
    for _ in range(3):
        result = await client.once("tools/list", params)
        seen.append(names(result))
        params = {"cursor": result.get("nextCursor", "over")}

    assert [["t0", "t1"], ["t2", "t3"], ["t4"]] == seen
    assert {"cursor": "over"} == params


@pytest.mark.parametrize("cursor", ["", "made up"])
@pytest.mark.covers("pagination.cursors.bad-refused")
async def test_a_cursor_that_is_not_ours_is_refused(cursor):
    """-32602 (spec: pagination, error handling)."""
    error = await EraClient(many()).once("tools/list", {"cursor": cursor})

    assert -32602 == error.code


async def test_cursors_work_wherever_the_secret_is():
    """Any process of the server may give the next page (our promise)."""
    first = await EraClient(many(page_size=2, secret=b"s" * 16)).once("tools/list")
    there = EraClient(many(page_size=2, secret=[b"t" * 16, b"s" * 16]))
    elsewhere = EraClient(many(page_size=2, secret=b"s" * 16))
    params = {"cursor": first["nextCursor"]}

    assert ["t2", "t3"] == names(await elsewhere.once("tools/list", params))
    assert -32602 == (await there.once("tools/list", params)).code


async def test_a_page_is_written_once():
    """The same bytes until the list changes, for each revision its own (performance.md)."""
    server = many()
    modern, legacy = EraClient(server), EraClient(server, LEGACY)

    async def raw(client):
        params = server._declared.tools.listing
        inbound = Inbound(1, "tools/list", None, client.caller, client.link)
        from isthmus.wire import ListToolsParams

        return await params.page(ListToolsParams(), inbound)

    first = await raw(modern)
    assert isinstance(first, Raw)
    assert first is await raw(modern)
    assert bytes(first) != bytes(await raw(legacy))
    server.remove_tool("t0")
    assert first is not await raw(modern)


@pytest.mark.covers("caching.lists.hinted", "caching.lists.same-scope")
async def test_hints_say_how_long_a_list_may_be_kept():
    """The same on every page; none up to 2025-11-25 (spec: caching)."""
    server = many(list_ttl_ms=60_000, list_cache_scope="public", page_size=3)
    first = await EraClient(server).once("tools/list")
    second = await EraClient(server).once("tools/list", {"cursor": first["nextCursor"]})

    for page in (first, second):
        assert (60_000, "public") == (page["ttlMs"], page["cacheScope"])
    assert "ttlMs" not in await EraClient(server, LEGACY).once("tools/list")


async def test_a_middleware_sees_the_list_and_may_change_it():
    """A list per user is a middleware (users.md, pain 15)."""
    server = many()

    @server.use
    async def fewer(inbound, call_next):
        result = await call_next(inbound)
        assert isinstance(result, ListToolsResult)
        return ListToolsResult(tools=result.tools[:1])

    assert ["t0"] == names(await EraClient(server).once("tools/list"))


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list"])
@pytest.mark.covers("capabilities.undeclared-is-no-method", "errors.methods.not-found")
async def test_a_list_that_is_not_offered_is_no_method(method):
    """-32601 for a capability that is not declared (spec: MethodNotFoundError)."""
    error = await EraClient(Server("empty")).once(method)

    assert -32601 == error.code


@pytest.mark.covers("tools.list.may-be-empty")
async def test_a_list_that_was_offered_once_may_be_empty():
    """The capability was declared, so the list stays (spec: tools, capabilities)."""
    server = many(1)
    server.remove_tool("t0")

    assert [] == names(await EraClient(server).once("tools/list"))


def test_an_unknown_entry_cannot_be_removed():
    """A typing mistake is found at once (ours)."""
    with pytest.raises(UsageError, match="there is no tool 'x'"):
        many().remove_tool("x")


@pytest.mark.covers("meta.null.means-absent")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_cursor_of_null_is_the_first_page(revision):
    """Ours: some clients send it for none."""
    client = EraClient(many(page_size=3), revision)

    assert await client.once("tools/list", {"cursor": None}) == await client.once("tools/list")


@pytest.mark.covers("caching.lists.configurable", "caching.discovery.hinted")
async def test_each_list_has_hints_of_its_own():
    """The spec: public where it is the same for all, private where it depends on the user."""
    server = many(
        list_ttl_ms={"tools/list": 5, "server/discover": 7},
        list_cache_scope={"tools/list": "public"},
    )
    server.add_prompt(lambda: "", name="p")
    client = EraClient(server)

    assert [(5, "public"), (0, "private"), (7, "public")] == [
        (result["ttlMs"], result["cacheScope"])
        for method in ("tools/list", "prompts/list", "server/discover")
        for result in [await client.once(method)]
    ]


@pytest.mark.covers("caching.hints.valid")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"list_ttl_ms": -1}, "from 0 on"),
        ({"list_ttl_ms": {"tools/list": 1.5}}, "from 0 on"),
        ({"list_ttl_ms": {"tools/call": 1}}, "no caching hints for 'tools/call'"),
        ({"list_cache_scope": "shared"}, "not 'shared'"),
    ],
)
def test_hints_that_cannot_be_sent_are_refused(options, said):
    """The spec: servers MUST provide a time of 0 or more; ours: found at once."""
    with pytest.raises(UsageError, match=said):
        Server("x", **options)
    with pytest.raises(UsageError, match="from 0 on"):
        Server("x").add_resource(lambda: "", "a://b", ttl_ms=-1, name="r")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_pages_of_any_size_hold_everything_once(revision, size):
    """The spec: the size is the server's."""
    client, seen, params = EraClient(many(page_size=size), revision), [], {}
    while True:
        page = await client.once("tools/list", params)
        assert len(page["tools"]) <= size
        seen += names(page)
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert [f"t{n}" for n in range(5)] == seen


@pytest.mark.covers("tools.list.same-for-everybody")
async def test_everybody_is_told_of_the_same_tools():
    """MUST NOT vary by connection, nor by what was asked before (spec: tools, capabilities)."""
    server = many()
    one, other = EraClient(server), EraClient(server, able=ClientCapabilities())
    first = await one.once("tools/list")
    await one.call("t3")
    await one.once("tools/call", {"name": "none"})

    assert first == await one.once("tools/list") == await other.once("tools/list")


class CountedName(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other):
        CountedName.compared += 1
        return str.__lt__(self, other)

    def __gt__(self, other):
        CountedName.compared += 1
        return str.__gt__(self, other)


async def count_comparisons(client, method, params):
    """The page, and how often names were compared to make it."""
    CountedName.compared = 0
    page = await client.once(method, params)
    return page, CountedName.compared


LISTINGS = {
    "tools/list": lambda declared: declared.tools.listing,
    "prompts/list": lambda declared: declared.prompts.listing,
    "resources/list": lambda declared: declared.resources.listing,
    "resources/templates/list": lambda declared: declared.resources.templates,
}


def offer_counted(n, **options):
    """A server with n of everything, whose names count when they are compared."""
    plain, counted = Server("plain"), Server("counted", **options)
    for i in range(n):
        name = f"a:{i * 7919 % n:03}"
        plain.add_tool(lambda: None, name=name)
        plain.add_prompt(lambda: "", name=name)
        plain.add_resource(lambda: "", name, name=name)
        plain.add_resource(lambda x: "", name + "/{x}", name=name)
    for find in LISTINGS.values():
        for key, entry in find(plain._declared)._entries.items():
            find(counted._declared).add(CountedName(key), entry)
    return counted


@pytest.mark.parametrize("method", LISTINGS)
async def test_a_page_looks_at_no_more_than_its_own_items(method):
    """Ours: a list is sorted once, and a page found in it by bisection, until something changes."""
    server = offer_counted(200, page_size=10)
    client, params, counts, listing = EraClient(server), {}, [], LISTINGS[method](server._declared)
    while True:
        page, count = await count_comparisons(client, method, params)
        counts.append(count)
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert 20 == len(counts)
    assert counts[0] >= 199  # the one sort
    assert max(counts[1:]) <= 8  # log2 of 200

    listing.remove(next(iter(listing._entries)))
    assert (await count_comparisons(client, method, params))[1] >= 198
    assert (await count_comparisons(client, method, {}))[1] == 0


async def test_a_cursor_goes_on_after_tools_come_and_go():
    """Ours: what is kept of a list is of the list as it is now."""
    server = many(4, page_size=2)
    client = EraClient(server)
    params = {"cursor": (await client.once("tools/list"))["nextCursor"]}
    assert ["t2", "t3"] == names(await client.once("tools/list", params))
    server.add_tool(lambda: None, name="t11")
    server.remove_tool("t2")
    server.remove_tool("t1")

    assert ["t11", "t3"] == names(await client.once("tools/list", params))
    assert ["t0", "t11"] == names(await client.once("tools/list"))


async def test_a_file_that_is_on_no_page_is_not_looked_at(tmp_path):
    """Ours: sizes and ages are read of the files on the page alone."""
    server, looked = Server("files", page_size=2), []
    for n in range(6):
        (tmp_path / f"f{n}").write_text("x" * n)
        server.add_file(tmp_path / f"f{n}", f"f:{n}")
    for entry in server._declared.resources.listing:
        now = entry._now
        entry._now = lambda shown, now=now: looked.append(shown.uri) or now(shown)
    client = EraClient(server)
    first = await client.once("resources/list")
    second = await client.once("resources/list", {"cursor": first["nextCursor"]})

    assert [("f:2", 2), ("f:3", 3)] == [(one["uri"], one["size"]) for one in second["resources"]]
    assert ["f:0", "f:1", "f:2", "f:3"] == looked


async def test_a_folder_is_paged_among_the_other_resources(tmp_path):
    """Ours: what a source gives and what was declared are in one order."""
    for name in ("b", "d"):
        (tmp_path / name).write_text("")
    server = Server("mixed", page_size=2)
    server.add_directory(tmp_path, "f:/")
    for name in ("a", "c", "e"):
        server.add_resource(lambda: "", f"f:/{name}", name=name)
    client, seen, params = EraClient(server), [], {}
    while True:
        page = await client.once("resources/list", params)
        seen.append([one["uri"] for one in page["resources"]])
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}

    assert [["f:/", "f:/a"], ["f:/b", "f:/c"], ["f:/d", "f:/e"]] == seen
