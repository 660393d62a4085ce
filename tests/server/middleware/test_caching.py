"""Caching: what is kept, for whom, and what is never given to anybody else."""

import pytest

from isthmus import Client, Context, Principal, Server, ToolError
from isthmus.errors import UsageError
from isthmus.runtime.channel import Origin
from isthmus.server.middleware import Caching, Timing
from isthmus.testing import connect
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def make_server(caching):
    """A server that counts what it runs."""
    server = Server("s", middleware=[caching])
    server.runs = []

    @server.tool(read_only=True)
    def find(word: str = "", ctx: Context = None) -> str:
        server.runs.append(word)
        if word == "broken":
            raise ToolError("no")
        return f"{word} {len(server.runs)} {ctx.principal}"

    @server.tool(idempotent=True)
    def put() -> str:
        server.runs.append("put")
        return "put"

    @server.tool(read_only=True)
    async def ask(ctx: Context) -> str:
        server.runs.append("ask")
        return str(await ctx.elicit("Which?", str))

    @server.resource("notes://all")
    def notes() -> str:
        server.runs.append("notes")
        return "note"

    return server


def call(name="find", /, **arguments):
    return {"name": name, "arguments": arguments}


async def run_twice(client, method, params):
    await client.send(method, params)
    await client.send(method, params)


@BOTH
async def test_a_read_only_result_is_given_again(revision):
    """Ours: for the same arguments in any order, whatever the request's own members of _meta."""
    server = make_server(Caching(60))
    client = EraClient(server, revision)
    first = await client.send("tools/call", call(word="a"), token="t1")
    meta = {"progressToken": "t2", "traceparent": "00-1-2-01"}
    again = await client.send("tools/call", {**call(word="a"), "_meta": meta})
    await client.send("tools/call", call(word="b"))
    await run_twice(client, "resources/read", {"uri": "notes://all"})

    assert first == again
    assert ["a", "b", "notes"] == server.runs


@BOTH
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", call("put")),
        ("tools/call", call(word="broken")),
        ("tools/call", call("ask")),
    ],
    ids=["writes", "errors", "asks"],
)
async def test_what_must_be_done_anew_is(revision, method, params):
    """Ours: a write, an error, and what depends on what the user answered."""
    server = make_server(Caching(60))
    answers = iter(["tea", "coffee"])
    client = EraClient(
        server, revision, lambda *_: {"action": "accept", "content": {"value": next(answers)}}
    )
    first = await client.send(method, params)
    runs = len(server.runs)
    second = await client.send(method, params)

    assert 2 * runs == len(server.runs)
    assert params["name"] != "ask" or first != second


@BOTH
async def test_a_named_tool_is_kept_whatever_its_annotations(revision):
    """Ours: an author who knows better names it."""
    server = make_server(Caching(60, tools=["put"]))
    await run_twice(EraClient(server, revision), "tools/call", call("put"))

    assert ["put"] == server.runs


def make_principal(subject, **more):
    return Principal(issuer="https://as.example", subject=subject, **more)


ADA = make_principal("ada", scopes=frozenset({"read"}))


@BOTH
@pytest.mark.parametrize(
    "other",
    [
        make_principal("eve", scopes=frozenset({"read"})),
        make_principal("ada", scopes=frozenset({"read", "write"})),
        make_principal("ada", scopes=frozenset({"read"}), claims={"tenant": "b"}),
        Principal(issuer="https://other.example", subject="ada", scopes=frozenset({"read"})),
        None,
    ],
    ids=["subject", "scopes", "claims", "issuer", "nobody"],
)
async def test_results_never_go_to_another_principal(revision, other):
    """Security: not even to the same user with other rights, or of another issuer."""
    server = make_server(Caching(60))
    mine = await EraClient(server, revision, principal=ADA).send("tools/call", call(word="a"))
    theirs = await EraClient(server, revision, principal=other).send("tools/call", call(word="a"))
    renewed = make_principal("ada", scopes=frozenset({"read"}), expires_at=9.0, claims={"iat": 5})
    again = await EraClient(server, revision, principal=renewed).send("tools/call", call(word="a"))

    assert mine["content"] != theirs["content"]
    assert renewed.claims == {"iat": 5}
    assert 3 >= len(server.runs) >= 2
    assert again["content"] == mine["content"]


@BOTH
async def test_without_authorization_sessions_and_keys_in_headers_are_told_apart(revision):
    """Security: an API key in a header of one's own is as good as a login."""
    server = make_server(Caching(60))
    client = EraClient(server, revision)
    origins = [
        Origin("http", headers={"x-api-key": "ada"}),
        Origin("http", headers={"x-api-key": "eve"}),
        Origin("http", headers={"authorization": "Bearer ada"}),
        Origin("http", headers={"authorization": "Bearer eve"}),
        Origin("http", session="one"),
        Origin("http", session="two"),
    ]
    for origin in origins:
        await client.send("tools/call", call(word="a"), origin=origin)
        await client.send("tools/call", call(word="a"), origin=origin)

    assert len(origins) == len(server.runs)


async def test_whose_results_they_are_can_be_said():
    """Ours: everybody's, one session's alone, or whatever a function says."""
    first, second = Origin("http", session="one"), Origin("http", session="two")
    for by, runs in (("everyone", 1), ("session", 2), (lambda ctx: None, 4), (lambda ctx: "x", 1)):
        server = make_server(Caching(60, by=by))
        for principal in (ADA, make_principal("eve")):
            client = EraClient(server, principal=principal)
            await client.send(
                "tools/call", call(word="a"), origin=first if principal is ADA else second
            )
            await client.send(
                "tools/call", call(word="a"), origin=first if principal is ADA else second
            )
        assert runs == len(server.runs), by


async def test_results_grow_old_and_the_oldest_go_first():
    """Ours: bounded in time, number and bytes."""
    now = [0.0]
    caching = Caching(10, max_entries=2, max_bytes=2_000, clock=lambda: now[0])
    server = make_server(caching)
    client = EraClient(server)
    for word in ("a", "b", "a", "c", "a", "b"):
        await client.send("tools/call", call(word=word))
    assert ["a", "b", "c", "b"] == server.runs
    now[0] = 11.0
    await client.send("tools/call", call(word="b"))
    assert "b" == server.runs[-1]
    assert 5 == len(server.runs)
    await run_twice(client, "tools/call", call(word="x" * 3_000))
    assert 7 == len(server.runs)
    assert caching._bytes <= 2_000


@BOTH
async def test_changes_drop_what_they_concern(revision):
    """Ours: a list that changed, and a resource that did, are fetched anew."""
    server = make_server(Caching(60))
    client = EraClient(server, revision)
    await run_twice(client, "resources/read", {"uri": "notes://all"})
    server.notify_resource_updated("notes://other")
    await client.send("resources/read", {"uri": "notes://all"})
    assert 1 == len(server.runs)
    server.notify_resource_updated("notes://all")
    await client.send("resources/read", {"uri": "notes://all"})
    assert 2 == len(server.runs)
    before = await client.send("tools/list", {})
    server.add_tool(lambda: "", name="new", description="")
    after = await client.send("tools/list", {})
    assert len(before["tools"]) + 1 == len(after["tools"])


async def test_what_changed_meanwhile_is_not_kept():
    """Ours: a result that was on its way when the list changed may be of yesterday."""
    caching = Caching(60)
    server = make_server(caching)

    @server.tool(read_only=True)
    def racing() -> str:
        server.runs.append("racing")
        server.notify_resource_updated("notes://all")
        return ""

    await run_twice(EraClient(server), "tools/call", call("racing"))

    assert ["racing", "racing"] == server.runs


async def test_lists_stay_bytes_and_clients_read_them():
    """Ours: caching lists costs no decoding, and works through a whole connection."""
    server = make_server(Caching(60))
    for revision in (LEGACY, MODERN):
        async with Client(server, revision=revision) as client:
            assert 3 == len(await client.list_tools())
            assert 3 == len(await client.list_tools())

    assert frozenset() == server._settings.wrapped


def test_one_cache_belongs_to_one_server():
    """Security: two servers with tools of one name must not mix their results."""
    caching = Caching(60)
    make_server(caching)
    with pytest.raises(UsageError, match="belongs to one server"):
        make_server(caching)


@pytest.mark.parametrize(
    "settings",
    [{"ttl": 0}, {"by": "planet"}, {"methods": ["initialize"]}, {"tools": "put"}, {"max_bytes": 0}],
)
def test_a_setting_that_is_none_is_refused(settings):
    """Ours: said at once, with what it takes."""
    with pytest.raises(UsageError, match="Caching"):
        Caching(**{"ttl": 60, **settings})


@BOTH
@pytest.mark.parametrize("mounted", [False, True], ids=["own", "mounted"])
async def test_nothing_is_kept_where_visibility_depends_on_the_caller(revision, mounted):
    """Security: what is hidden from somebody is not there for him, also if it is known."""
    inner = make_server(Timing(print)) if mounted else make_server(Caching(60, by="everyone"))
    inner.visibility(lambda item, who: who is not None)
    server = inner
    if mounted:
        server = Server("outer", middleware=[Caching(60, by="everyone", tools=["in_find"])])
        server.mount(inner, "in")
    name = "in_find" if mounted else "find"
    mine = await EraClient(server, revision, principal=ADA).once("tools/call", call(name, word="a"))
    theirs = await EraClient(server, revision).once("tools/call", call(name, word="a"))

    assert "content" in mine
    assert -32602 == theirs.code


async def test_what_an_anonymous_connection_read_is_its_own():
    """Ours: two connections in memory are two callers, as `ctx.session` has it; a name in `tools` is the only one."""
    server = Server("cart", middleware=[Caching(60, tools=["show"])])

    @server.tool(read_only=True)
    async def show(ctx: Context) -> list[str]:
        return await ctx.session.get("cart", [])

    @server.tool(read_only=True)
    async def look(ctx: Context) -> list[str]:
        return await ctx.session.get("cart", [])

    @server.tool
    async def add(item: str, ctx: Context) -> None:
        await ctx.session.set("cart", [*await ctx.session.get("cart", []), item])

    async with connect(server) as ada, connect(server) as bob:
        assert [] == (await ada.call_tool("look")).parse(list[str])
        await ada.call_tool("add", {"item": "tea"})
        assert ["tea"] == (await ada.call_tool("show")).parse(list[str])
        assert ["tea"] == (await ada.call_tool("look")).parse(list[str])
        assert [] == (await bob.call_tool("show")).parse(list[str])


@BOTH
async def test_what_is_kept_of_a_connection_is_given_to_no_other(revision):
    """Attack: connections that are no HTTP, as of a socket, with nobody authenticated on them."""
    server = make_server(Caching(60))

    @server.tool
    async def keep(value: str, ctx: Context) -> str:
        await ctx.session.set("value", value)
        return "kept"

    @server.tool(read_only=True)
    async def tell(ctx: Context) -> str:
        return str(await ctx.session.get("value", ""))

    async with Client(server, revision=revision) as ann, Client(server, revision=revision) as bob:
        await ann.call_tool("keep", {"value": "tea"})
        told = [(await client.call_tool("tell")).text for client in (ann, bob)]
        await ann.call_tool("keep", {"value": "milk"})
        told.append((await ann.call_tool("tell")).text)
        found = [(await client.call_tool("find")).text for client in (ann, bob, ann)]

    assert ["tea", "", "milk"] == told
    assert [" 1 None", " 2 None", " 1 None"] == found
