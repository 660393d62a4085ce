"""Visibility: what is hidden is listed nowhere, and is answered as what does not exist."""

import msgspec
import pytest

from isthmus import Context, Server
from isthmus.client.subscriptions import Change
from isthmus.errors import InvalidParams, Refused, UsageError
from isthmus.testing import connect, every_revision
from isthmus.types import PromptReference
from support.auth.protected_server import WRITE, make_guard

LEGACY, MODERN = ERAS = ("2025-11-25", "2026-07-28")
both_eras = pytest.mark.parametrize("revision", ERAS)


def shop(name="shop", **options):
    """A server with something of each kind, and some of it with tags."""
    server = Server(name, **options)

    @server.tool
    def buy() -> str:
        return "bought"

    @server.tool(tags={"beta"})
    def rent() -> str:
        return "rented"

    @server.tool(tags={"admin"}, scopes={WRITE})
    def reset() -> str:
        return "reset"

    @server.resource("shop://sales", tags={"admin"})
    def sales() -> str:
        return "42"

    @server.resource("shop://orders/{id}", tags={"admin"})
    def order(id: str) -> str:
        return id

    @server.prompt(tags={"admin"})
    def report(topic: str) -> str:
        return topic

    server.completes("report", "topic")(lambda: ["sales"])
    return server


def wrap_server(server):
    """The same, mounted without a prefix: rules of the outer server hold for it as well."""
    outer = Server("outer")
    outer.mount(server)
    return outer


async def see(client):
    """The names and URIs that a client is shown, by kind."""
    return (
        [one.name for one in await client.list_tools()],
        [one.uri for one in await client.list_resources()],
        [one.uri_template for one in await client.list_resource_templates()],
        [one.name for one in await client.list_prompts()],
    )


async def refusal(work):
    """The code and the words with which something is refused."""
    with pytest.raises(Refused) as refused:
        await work
    return refused.value.code, str(refused.value)


ALL_TOOLS = ["buy", "rent", "reset"]


async def check_hidden(client):
    """What is tagged ``admin`` is as if it were not there, to every method."""
    tools, uris, templates, prompts = await see(client)
    words = [
        await refusal(client.call_tool("reset")),
        await refusal(client.read_resource("shop://sales")),
        await refusal(client.read_resource("shop://orders/1")),
        await refusal(client.get_prompt("report", {"topic": "x"})),
        await refusal(client.complete(PromptReference(name="report"), "topic", "s")),
    ]
    unknown = [
        await refusal(client.call_tool("resez")),
        await refusal(client.read_resource("shop://salez")),
        await refusal(client.read_resource("shop://orderz/1")),
        await refusal(client.get_prompt("reporz", {"topic": "x"})),
        await refusal(client.complete(PromptReference(name="reporz"), "topic", "s")),
    ]

    assert "reset" not in tools
    assert [] == uris + templates + prompts
    pairs = [
        ("reset", "resez"),
        ("sales", "salez"),
        ("orders", "orderz"),
        *[("report", "reporz")] * 2,
    ]
    assert unknown == [(c, w.replace(a, b)) for (c, w), (a, b) in zip(words, pairs, strict=True)]


@both_eras
@pytest.mark.parametrize("make", [lambda server: server, wrap_server], ids=["own", "mounted"])
async def test_what_is_disabled_is_as_if_it_were_not_there(revision, make):
    """Ours: the same words for what is hidden and what never was."""
    server = make(shop())
    server.disable(tags={"admin"})
    async with connect(server, revision=revision) as client:
        await check_hidden(client)
        server.enable(tags={"admin"})
        seen = await see(client)
        said = (await client.call_tool("reset")).text

    everything = (ALL_TOOLS, ["shop://sales"], ["shop://orders/{id}"], ["report"])
    assert everything == seen
    assert "reset" == said


@both_eras
@pytest.mark.parametrize("make", [lambda server: server, wrap_server], ids=["own", "mounted"])
async def test_clients_hear_that_something_was_disabled(revision, make):
    """Ours: lists have changed."""
    server = make(shop())
    async with connect(server, revision=revision) as client:
        await client.call_tool("buy")
        async with client.listen(tools=True) as changes:
            server.disable("rent")
            heard = await anext(aiter(changes))
        tools, *_ = await see(client)

    assert Change("tools") == heard
    assert ["buy", "reset"] == tools


async def test_rules_hold_for_what_comes_later():
    """Ours: the last rule that is about something decides."""
    server = shop()
    server.disable(tags={"beta"})
    server.enable("rent")
    server.disable("late")
    server.add_tool(lambda: 1, name="late", description="Late.")
    server.add_tool(lambda: 1, name="beta", description="Beta.", tags={"beta"})
    async with connect(server) as client:
        first, *_ = await see(client)
        server.enable("late")
        second, *_ = await see(client)

    assert ALL_TOOLS == first
    assert [*ALL_TOOLS, "late"] == second


async def test_only_hides_all_else():
    """Ours: enable(only=True) makes a list of what is allowed."""
    server = shop()
    server.enable("buy", tags={"beta"}, only=True)
    async with connect(server) as client:
        tools = [one.name for one in await client.list_tools()]

    assert ["buy", "rent"] == tools


async def test_a_hidden_resource_tells_nothing_of_its_changes():
    """Ours: who subscribed to it hears no more than of a URI at which there is nothing."""
    server = shop()
    server.disable(tags={"admin"})
    async with (
        connect(server, revision=MODERN) as client,
        client.listen(tools=True, uris=["shop://sales", "shop://orders/1"]) as changes,
    ):
        server.notify_resource_updated("shop://sales")
        server.notify_resource_updated("shop://orders/1")
        server.add_tool(lambda: 1, name="new", description="New.")
        heard = await anext(aiter(changes))

    assert Change("tools") == heard


def test_completers_of_what_is_disabled_are_no_mistake():
    """Ours: it is still declared."""
    server = shop()
    server.disable("report")
    assert server.router
    server.remove_prompt("report")
    server.remove_resource("shop://orders/{id}")


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda s: s.disable(), "nothing was selected"),
        (lambda s: s.disable(5), "names and URIs"),
        (lambda s: s.enable(tags="beta"), "tags are a set"),
        (lambda s: s.add_tool(lambda: 1, name="t", tags="beta"), "tool 't': tags are a set"),
        (lambda s: s.visibility(5), "takes a plain function"),
    ],
)
def test_rules_that_are_none_are_refused(work, words):
    """Ours: at once, and not by hiding nothing."""
    with pytest.raises(UsageError, match=words):
        work(shop())


# By principal


@pytest.mark.usefixtures("secret_watch")
@both_eras
@pytest.mark.parametrize("mounted", [False, True], ids=["own", "mounted"])
async def test_a_function_decides_by_principal(revision, mounted):
    """Ours: ada sees no admin's things, eve does; also where a token would lack the scope."""
    guard = make_guard()
    server = Server("outer", auth=guard) if mounted else shop(auth=guard)
    if mounted:
        server.mount(shop())

    @server.visibility
    def may_see(item, principal):
        return principal.subject == "eve" or "admin" not in (item.meta or {}).get(
            "isthmus/tags", ()
        )

    async def use(who):
        options = {"revision": revision, "transport": "http", "token": f"token-of-{who}"}
        return connect(server, **options)

    async with await use("ada") as client:
        await check_hidden(client)
    async with await use("eve") as client:
        seen = await see(client)
        said = (await client.call_tool("reset")).text

    assert ALL_TOOLS == seen[0]
    assert "reset" == said


async def test_a_function_that_fails_shows_nothing():
    """Ours: the request fails, and nobody is let in."""
    server = shop()

    @server.visibility
    def may_see(item, principal):
        raise OSError("no directory")

    async with connect(server) as client:
        with pytest.raises(Refused, match="Internal error"):
            await client.call_tool("buy")


# By session


def doors():
    """A server whose sessions open doors for themselves."""
    server = shop()
    server.visibility(sessions=True)

    @server.tool
    async def lock(ctx: Context) -> str:
        await ctx.session.disable("rent", tags={"admin"})
        return "locked"

    @server.tool
    async def unlock(ctx: Context) -> str:
        await ctx.session.enable(tags={"admin"})
        return "unlocked"

    return server


@both_eras
@pytest.mark.parametrize("transport", ["memory", "stdio"])
async def test_a_session_has_rules_of_its_own(revision, transport):
    """Ours: and hears of what they change, as nobody else does."""
    server = doors()
    here = {"revision": revision, "transport": transport}
    async with connect(server, **here) as one, connect(server, **here) as two:
        await one.call_tool("buy")
        await two.call_tool("buy")
        async with one.listen(tools=True) as mine, two.listen(tools=True) as others:
            await one.call_tool("lock")
            assert Change("tools") == await anext(aiter(mine))
            await check_hidden(one)
            first = await see(one)
            second = await see(two)
            await one.call_tool("unlock")
            third = await see(one)
            server.notify_resource_updated("shop://none")
            server.add_tool(lambda: 1, name="end", description="End.")
            assert Change("tools") == await anext(aiter(others))  # and nothing before it

    assert ["buy", "lock", "unlock"] == first[0]
    assert [*ALL_TOOLS, "lock", "unlock"] == second[0]
    assert ["buy", "reset", "lock", "unlock"] == third[0]


@both_eras
async def test_a_mounted_server_has_rules_for_sessions_of_the_outer(revision):
    """Ours: the client hears of them through the outer server."""
    outer = Server("outer")
    outer.mount(doors(), "in")
    async with connect(outer, revision=revision) as client:
        await client.call_tool("in_buy")
        async with client.listen(tools=True) as changes:
            await client.call_tool("in_lock")
            assert Change("tools") == await anext(aiter(changes))
        tools, *_ = await see(client)
        code, _ = await refusal(client.call_tool("in_reset"))

    assert ["in_buy", "in_lock", "in_unlock"] == tools
    assert -32602 == code


async def test_sessions_without_rules_of_their_own_are_told_what_to_write():
    """Ours: looking at a session for each request is asked for."""
    server = Server("s", debug=True)

    @server.tool
    async def lock(ctx: Context) -> str:
        try:
            await ctx.session.disable("lock")
        except UsageError as error:
            return str(error)
        return ""

    async with connect(server) as client:
        said = (await client.call_tool("lock")).text

    assert "call server.visibility(sessions=True) before" in said


async def test_lists_by_caller_are_never_public():
    """Spec 2026-07-28 server/utilities/caching: what depends on who asks MUST NOT be shared."""
    server = shop(list_cache_scope="public", list_ttl_ms=60_000)
    server.visibility(lambda item, who: True)
    async with connect(server, revision=MODERN) as client:
        raw = await client.request("tools/list", {}, msgspec.Raw)

    assert "private" == msgspec.json.decode(raw)["cacheScope"]


async def test_a_hidden_tool_is_no_task_either():
    """Ours: a call that would become a task is refused as any other."""
    server = Server("s")

    @server.tool(task="optional", tags={"admin"})
    async def work() -> str:
        return "done"

    server.visibility(lambda item, who: False)
    async with connect(server, revision=LEGACY) as client:
        with pytest.raises(InvalidParams, match="Unknown tool: work"):
            await client.request(
                "tools/call", {"name": "work", "arguments": {}, "task": {}}, msgspec.Raw
            )


@every_revision()
async def test_a_mounted_servers_tags_count_in_revisions_that_do_not_send_them(revision):
    """Ours: `_meta` is new in 2025-06-18, and what is hidden is listed in no revision."""
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "done", name="reset", tags={"staff"})
    inner.add_resource(lambda key: key, "staff://{key}", name="staff", tags={"staff"})
    inner.add_prompt(lambda: "hello", name="greet", tags={"staff"})
    outer.mount(inner, prefix="in")
    outer.disable(tags={"staff"})
    async with connect(outer, revision=revision) as client:
        assert [] == await client.list_tools()
        assert [] == await client.list_resource_templates()
        assert [] == await client.list_prompts()


@every_revision()
async def test_a_session_may_be_shown_what_is_hidden_from_everybody(revision):
    """Ours: rules of a session come after those of the server; other sessions see nothing of it."""
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "refilled", name="refill", tags={"staff"})
    outer.add_tool(lambda: "reset", name="reset", tags={"staff"})
    outer.mount(inner, prefix="in")
    outer.disable(tags={"staff"})
    outer.visibility(sessions=True)

    @outer.tool
    async def unlock(ctx: Context) -> None:
        await ctx.session.enable(tags={"staff"})

    async with (
        connect(outer, revision=revision) as staff,
        connect(outer, revision=revision) as customer,
    ):
        assert ["unlock"] == [tool.name for tool in await staff.list_tools()]
        await staff.call_tool("unlock")
        names = {tool.name for tool in await staff.list_tools(fresh=True)}
        assert {"unlock", "reset", "in_refill"} == names
        assert "reset" == (await staff.call_tool("reset")).text
        assert "refilled" == (await staff.call_tool("in_refill")).text
        assert ["unlock"] == [tool.name for tool in await customer.list_tools()]
        for name in ("reset", "in_refill"):
            with pytest.raises(InvalidParams, match="Unknown tool"):
                await customer.call_tool(name)


async def test_scopes_are_demanded_of_what_a_session_may_be_shown():
    """Ours: what is hidden from everybody takes its scopes all the same where sessions decide."""
    server = Server("scoped")
    server.add_tool(lambda: "reset", name="reset", tags={"staff"}, scopes={"admin"})
    server.disable(tags={"staff"})
    server.visibility(sessions=True)
    params = msgspec.Raw(b'{"name":"reset"}')

    assert frozenset({"admin"}) == server.router.needs("tools/call", params, None)
