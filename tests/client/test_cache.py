"""Answers that are kept: for as long as a server allows, and never for anybody else."""

import asyncio

import pytest

from isthmus.client.cache import PUBLIC_RESPONSES, CacheEntry, Caching, ResponseStore
from isthmus.client.client import Client
from isthmus.client.targets import Target
from isthmus.errors import NotInRevision, Refuse
from isthmus.runtime.peer import Peer
from isthmus.transports.memory import open_pair
from isthmus.wire import (
    InputRequest,
    InputRequiredResult,
    ListChangedParams,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    Prompt,
    PromptsCapability,
    ReadResourceResult,
    Resource,
    ResourcesCapability,
    ResourceUpdatedParams,
    ServerCapabilities,
    TextResourceContents,
    ToolsCapability,
)
from isthmus.wire.jsonrpc import encode
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, any_tool
from support.clock import ManualClock

ALL = ServerCapabilities(
    tools=ToolsCapability(list_changed=True),
    prompts=PromptsCapability(),
    resources=ResourcesCapability(subscribe=True),
)
MODERN_META = "io.modelcontextprotocol/subscriptionId"


class Shop(SmallServer):
    """A server that counts what it is asked, and says how long its answers last."""

    def __init__(self, **hints):
        self.asked = []
        self.hints = hints
        super().__init__(
            {
                "tools/list": self.tools_list,
                "prompts/list": self.prompts_list,
                "resources/list": self.resources_list,
                "resources/read": self.read,
            },
            capabilities=ALL,
        )

    def said(self, shape, **members):
        return shape(**members, **self.hints)

    async def tools_list(self, params, _inbound):
        self.asked.append(("tools", params.cursor or ""))
        if not params.cursor:
            return self.said(ListToolsResult, tools=[any_tool("a")], next_cursor="2")
        return self.said(ListToolsResult, tools=[any_tool("b")])

    async def prompts_list(self, _params, _inbound):
        self.asked.append(("prompts", ""))
        return self.said(ListPromptsResult, prompts=[Prompt(name="p")])

    async def resources_list(self, _params, _inbound):
        self.asked.append(("resources", ""))
        return self.said(ListResourcesResult, resources=[Resource(uri="x:1", name="x")])

    async def read(self, params, _inbound):
        self.asked.append(("read", params.uri))
        contents = [TextResourceContents(uri=params.uri, text=str(len(self.asked)))]
        return self.said(ReadResourceResult, contents=contents)


def client(shop, clock=None, *, revision=MODERN_NAME, **options):
    caching = Caching(clock=clock or ManualClock(), **options)
    return Client(shop, revision=revision, cache=caching)


@pytest.mark.covers("clientcache.ttl.fresh")
async def test_an_answer_is_given_again_while_it_is_fresh():
    """Spec 2026-07-28 server/utilities/caching#freshness-calculation: now < received + ttl."""
    shop, clock = Shop(ttl_ms=5000, cache_scope="private"), ManualClock()
    async with client(shop, clock) as shopper:
        first = await shopper.list_tools()
        clock.now += 4.999
        assert first == await shopper.list_tools()
        assert [("tools", ""), ("tools", "2")] == shop.asked
        clock.now += 0.001
        await shopper.list_tools()

    assert 4 == len(shop.asked)


@pytest.mark.covers("clientcache.ttl.zero-absent-negative")
@pytest.mark.parametrize("hints", [{}, {"ttl_ms": 0}, {"ttl_ms": -5, "cache_scope": "public"}])
async def test_an_answer_without_a_time_to_live_is_stale(hints):
    """Spec 2026-07-28 server/utilities/caching#time-to-live-ttl-field: absent and negative are 0."""
    shop = Shop(**hints)
    async with client(shop) as shopper:
        await shopper.list_prompts()
        await shopper.list_prompts()

    assert 2 == len(shop.asked)


@pytest.mark.covers("clientcache.key.method-and-params")
async def test_another_request_has_another_answer():
    """Spec 2026-07-28 server/utilities/caching#cache-key: MUST NOT be served for other parameters."""
    shop = Shop(ttl_ms=5000, cache_scope="private")
    async with client(shop) as shopper:
        texts = [
            (await shopper.read_resource(uri, meta=meta)).contents[0].text
            for uri, meta in (
                ("x:1", None), ("x:2", None), ("x:1", None), ("x:1", {"tenant": 1}), ("x:2", None)
            )
        ]  # fmt: skip

    assert ["1", "2", "1", "3", "2"] == texts


@pytest.mark.covers("clientcache.fresh.asked")
async def test_whoever_wants_it_fresh_gets_it_fresh_and_everybody_after():
    """Ours: fresh=True asks the server, and its answer is kept."""
    shop = Shop(ttl_ms=5000, cache_scope="private")
    async with client(shop) as shopper:
        found = [
            (await shopper.read_resource("x:1", fresh=fresh)).contents[0].text
            for fresh in (False, True, False)
        ]

    assert ["1", "2", "2"] == found


@pytest.mark.covers("clientcache.off.asked")
async def test_a_client_may_keep_nothing():
    """Ours: cache=False asks every time."""
    shop = Shop(ttl_ms=5000, cache_scope="public")
    async with Client(shop, cache=False) as shopper:
        for _ in range(3):
            await shopper.list_prompts()

    assert 3 == len(shop.asked)


@pytest.mark.covers("clientcache.copies.apart")
async def test_nobody_can_change_what_the_next_caller_gets():
    """Ours: what is kept is JSON."""
    async with client(Shop(ttl_ms=5000)) as shopper:
        (await shopper.list_tools())[0].input_schema["spoilt"] = True

        assert "spoilt" not in (await shopper.list_tools())[0].input_schema


@pytest.mark.covers("clientcache.legacy.only-by-ttl")
@pytest.mark.parametrize(("ttl", "expected"), [(None, 2), (5.0, 1)])
async def test_answers_of_older_servers_are_kept_only_where_somebody_says_how_long(ttl, expected):
    """Ours: they do not say it themselves."""
    shop = Shop()
    async with client(shop, revision=LEGACY_NAME, ttl=ttl) as shopper:
        await shopper.list_prompts()
        await shopper.list_prompts()

    assert expected == len(shop.asked)


@pytest.mark.covers("clientcache.changes.invalidate")
@pytest.mark.parametrize(
    ("method", "params", "stale"),
    [
        ("notifications/tools/list_changed", ListChangedParams(), {"tools"}),
        ("notifications/prompts/list_changed", ListChangedParams(), {"prompts"}),
        ("notifications/resources/list_changed", ListChangedParams(), {"resources"}),
        ("notifications/resources/updated", ResourceUpdatedParams(uri="x://a/b"), {"x://a/b"}),
        ("notifications/resources/updated", ResourceUpdatedParams(uri="x://a"), {"x://a/b"}),
        ("notifications/resources/updated", ResourceUpdatedParams(uri="x://a/b/c"), {"x://a/b"}),
        ("notifications/resources/updated", ResourceUpdatedParams(uri="x://other"), {"x://other"}),
    ],
)
async def test_a_change_makes_what_it_concerns_stale(method, params, stale):
    """Spec 2026-07-28 server/utilities/caching#interaction-with-notifications: immediately."""
    shop = Shop()
    async with client(shop, revision=LEGACY_NAME, ttl=5000.0) as shopper:

        async def everything():
            await shopper.list_tools()
            await shopper.list_prompts()
            await shopper.list_resources()
            for uri in ("x://a/b", "x://other"):
                await shopper.read_resource(uri)

        await everything()
        shop.asked.clear()
        await shop.links[0].note(method, params)
        await shopper.ping()
        await everything()

    assert stale == {uri if kind == "read" else kind for kind, uri in shop.asked}


@pytest.mark.covers("clientcache.changes.while-asked")
async def test_an_answer_from_before_a_change_is_not_kept():
    """Ours: what was asked before the change was heard of may be from before it."""
    shop, asked, go_on = Shop(), asyncio.Event(), asyncio.Event()

    async def slow(_params, _inbound):
        shop.asked.append("prompts")
        asked.set()
        await go_on.wait()
        return ListPromptsResult(prompts=[])

    shop = SmallServer({"prompts/list": slow}, capabilities=ALL)
    shop.asked = []
    async with client(shop, revision=LEGACY_NAME, ttl=5000.0) as shopper:
        listing = asyncio.create_task(shopper.list_prompts())
        await asked.wait()
        await shop.links[0].note("notifications/prompts/list_changed", ListChangedParams())
        await shopper.ping()
        go_on.set()
        await listing
        await shopper.list_prompts()

    assert 2 == len(shop.asked)


@pytest.mark.covers("clientcache.rounds.not-kept")
async def test_an_answer_that_took_questions_is_not_kept():
    """Spec 2026-07-28 server/utilities/caching#cache-key: results of retries MUST NOT be cached."""
    asked = []

    async def read(params, _inbound):
        asked.append(params.request_state)
        if not params.request_state:
            return InputRequiredResult(
                request_state="s", input_requests={"r": InputRequest(method="roots/list")}
            )
        contents = [TextResourceContents(uri=params.uri, text="secret")]
        return ReadResourceResult(contents=contents, ttl_ms=5000, cache_scope="private")

    small = SmallServer({"resources/read": read}, capabilities=ALL)
    async with Client(small, roots=[]) as shopper:
        await shopper.read_resource("x:1")
        await shopper.read_resource("x:1")

    assert 4 == len(asked)


@pytest.mark.covers("clientcache.pages.independent")
async def test_each_page_has_a_time_to_live_of_its_own():
    """Spec 2026-07-28 server/utilities/caching#interaction-with-pagination: independently."""
    asked, clock = [], ManualClock()

    async def tools(params, _inbound):
        asked.append(params.cursor or "")
        if params.cursor:
            return ListToolsResult(tools=[any_tool("b")], ttl_ms=1000, cache_scope="private")
        return ListToolsResult(
            tools=[any_tool("a")], next_cursor="2", ttl_ms=9000, cache_scope="private"
        )

    async with client(SmallServer({"tools/list": tools}), clock) as shopper:
        await shopper.list_tools()
        clock.now += 5
        assert ["a", "b"] == [one.name for one in await shopper.list_tools()]

    assert ["", "2", "2"] == asked


@pytest.mark.covers("clientcache.pages.bad-cursor")
async def test_a_cursor_that_is_no_longer_good_starts_the_list_anew():
    """Spec 2026-07-28 server/utilities/caching#interaction-with-pagination: SHOULD discard all."""
    asked, clock, good = [], ManualClock(), ["old"]

    async def tools(params, _inbound):
        asked.append(params.cursor or "")
        if not params.cursor:
            return ListToolsResult(tools=[any_tool("a")], next_cursor=good[0], ttl_ms=90000)
        if params.cursor != good[0]:
            raise Refuse(-32602, "Invalid params: cursor")
        return ListToolsResult(tools=[any_tool("b")], ttl_ms=1000)

    async with client(SmallServer({"tools/list": tools}), clock) as shopper:
        await shopper.list_tools()
        good[0] = "new"
        clock.now += 5
        assert ["a", "b"] == [one.name for one in await shopper.list_tools()]

    assert ["", "old", "old", "", "new"] == asked


async def test_a_list_that_is_refused_is_asked_for_once():
    """Ours: where nothing was kept, nothing of ours is to blame."""
    asked = []

    async def tools(_params, _inbound):
        asked.append(1)
        raise Refuse(-32602, "Invalid params: no")

    async with client(SmallServer({"tools/list": tools})) as shopper:
        with pytest.raises(Exception, match="no"):
            await shopper.list_tools()

    assert [1] == asked


# Who may share


def shared(shop, key):
    """A server in this process that can be met again by its name."""

    async def dial():
        ours, theirs = open_pair()
        task = asyncio.get_running_loop().create_task(
            Peer(theirs, shop.router, side="server").run()
        )
        SERVING.add(task)
        return ours

    return Target("shop", dial, key)


SERVING = set()


@pytest.fixture(autouse=True)
def nothing_shared():
    """No answer of another test."""
    yield
    for group in list(PUBLIC_RESPONSES._groups):
        PUBLIC_RESPONSES.forget(group)


@pytest.mark.covers("clientcache.scope.private-apart", "clientcache.scope.public-shared")
@pytest.mark.parametrize(
    ("scope", "key", "other", "shares", "expected"),
    [
        ("public", "shop", "shop", True, 1),
        ("public", "shop", "shop", False, 2),
        ("public", "shop", "market", True, 2),
        ("private", "shop", "shop", True, 2),
        ("public", None, None, True, 2),
    ],
)
async def test_only_public_answers_of_one_target_are_shared(scope, key, other, shares, expected):
    """Spec 2026-07-28 server/utilities/caching#cache-scope-field: private MUST NOT be shared."""
    shop, clock = Shop(ttl_ms=5000, cache_scope=scope), ManualClock()
    for name in (key, other):
        caching = Caching(clock=clock, shared=shares)
        async with Client(shared(shop, name), revision=MODERN_NAME, cache=caching) as shopper:
            await shopper.list_prompts()

    assert expected == len(shop.asked)


@pytest.mark.covers("clientcache.scope.public-shared")
async def test_clients_that_can_do_other_things_share_nothing():
    """Ours: servers list other tools to those who can do more, and capabilities are parameters."""
    shop, caching = Shop(ttl_ms=5000, cache_scope="public"), Caching(clock=ManualClock())
    for options in ({}, {"sample": lambda _: ""}):
        async with Client(
            shared(shop, "shop"), revision=MODERN_NAME, cache=caching, **options
        ) as shopper:
            await shopper.list_prompts()

    assert 2 == len(shop.asked)


@pytest.mark.covers("clientcache.scope.private-apart")
async def test_a_page_of_something_private_is_private():
    """Spec 2026-07-28 server/utilities/caching#interaction-with-pagination: one scope for all."""
    asked = []

    async def tools(params, _inbound):
        asked.append(params.cursor or "")
        if params.cursor:
            return ListToolsResult(tools=[], ttl_ms=9000, cache_scope="public")
        return ListToolsResult(tools=[], next_cursor="2", ttl_ms=9000, cache_scope="private")

    small = SmallServer({"tools/list": tools})
    for _ in range(2):
        async with Client(
            shared(small, "shop"), revision=MODERN_NAME, cache=Caching(clock=ManualClock())
        ) as shopper:
            await shopper.list_tools()

    assert ["", "2"] * 2 == asked


# What a server says about itself


@pytest.mark.covers("clientcache.discover.kept")
async def test_what_a_server_says_about_itself_is_kept_too():
    """Spec 2026-07-28 server/utilities/caching#cacheable-results: server/discover is cacheable."""
    asked, small = [], SmallServer()

    async def discover(params, inbound):
        asked.append(1)
        said = await SmallServer.discover(small, params, inbound)
        return type(said)(
            supported_versions=said.supported_versions,
            capabilities=said.capabilities,
            ttl_ms=5000,
            cache_scope="private",
        )

    small = SmallServer({"server/discover": discover})
    async with client(small) as shopper:
        opened = len(asked)
        await shopper.discover()
        assert [MODERN_NAME] == (await shopper.discover()).supported_versions[-1:]
        await shopper.ping()

    assert 2 == len(asked) - opened


async def test_an_older_server_says_it_once():
    """Ours: there is no such method."""
    async with Client(SmallServer(), revision=LEGACY_NAME) as shopper:
        with pytest.raises(NotInRevision):
            await shopper.discover()


# The store


@pytest.mark.covers("clientcache.bytes.bounded")
def test_what_is_kept_is_bounded_in_bytes():
    """Ours: what was used longest ago makes room."""
    store = ResponseStore(10_000)
    for number in range(100):
        store.put("g", b"%d" % number, CacheEntry(b"x" * 1000, 9.0))
        store.get("g", b"0", 0.0)

    assert store.bytes <= 10_000
    assert store.get("g", b"0", 0.0) is not None
    assert store.get("g", b"1", 0.0) is None
    assert store.get("g", b"99", 0.0) is not None


@pytest.mark.covers("clientcache.bytes.bounded")
def test_what_is_larger_than_everything_is_not_kept():
    """Ours: and makes no room for itself."""
    store = ResponseStore(3000)
    store.put("g", b"a", CacheEntry(b"x", 9.0))
    store.put("g", b"b", CacheEntry(b"x" * 3000, 9.0))

    assert (1, True) == (len(store), store.get("g", b"a", 0.0) == b"x")


async def test_a_result_keeps_what_it_had():
    """Ours: an answer that is given again is the answer."""
    shop = Shop(ttl_ms=5000, cache_scope="private")
    async with client(shop) as shopper:
        first = await shopper.read_resource("x:1")
        again = await shopper.read_resource("x:1")

    assert encode(first) == encode(again)
