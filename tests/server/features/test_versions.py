"""Versions: lists have the highest one, and a request may ask for another."""

import asyncio

import pytest

from isthmus import Accepted, Context, Server
from isthmus.errors import HttpRefused, InvalidParams, Refused, UsageError
from isthmus.server.guard.versions import sort_versions
from isthmus.server.middleware import Caching
from isthmus.testing import connect, every_revision, script
from isthmus.types import PromptReference
from support.auth.protected_server import WRITE, make_guard
from support.server.both_eras import EraClient, accept_form, tool_text

LEGACY, MODERN = ERAS = ("2025-11-25", "2026-07-28")
both_eras = pytest.mark.parametrize("revision", ERAS)


def ask(version):
    """The ``_meta`` of a request for a version."""
    return {"isthmus/version": version}


def make_shop(**options):
    """A tool in three versions, one of them with other arguments, and a prompt in two."""
    server = Server("shop", **options)

    @server.tool(name="buy", version="2.0", tags={"new"})
    def buy_two(item: str, amount: int = 1) -> str:
        return f"two: {amount} {item}"

    @server.tool(name="buy", version="10.0", tags={"beta"}, read_only=True)
    def buy_ten(item: str) -> str:
        return f"ten: {item}"

    @server.tool(name="buy", version="1.0", tags={"old"})
    def buy_one(thing: str) -> str:
        return f"one: {thing}"

    @server.tool
    def look() -> str:
        return "seen"

    @server.prompt(name="greet", version="2", completes={"who": lambda: ["Ann"]})
    def greet_two(who: str) -> str:
        return f"Good day, {who}"

    @server.prompt(name="greet", version="1")
    def greet_one(who: str, tone: str = "warm") -> str:
        return f"Hi {who}"

    greet_one.completes("who")(lambda: ["Ben"])
    greet_one.completes("tone")(lambda: ["cold"])
    return server


def mount_server(server, prefix="m"):
    """The server, mounted in another one."""
    outer = Server("outer")
    outer.mount(server, prefix)
    return outer


async def call(client, version=None, name="buy", **arguments):
    """The text of a call; the arguments of the version that is meant to serve it."""
    meta = None if version is None else ask(version)
    return (await client.call_tool(name, arguments, meta=meta)).text


async def refusal(work):
    """The words with which something is refused as invalid params."""
    with pytest.raises(InvalidParams) as refused:
        await work
    return str(refused.value)


@every_revision
@pytest.mark.parametrize("prefix", [None, "m_"], ids=["own", "mounted"])
async def test_a_list_has_the_highest_version_and_a_request_gets_the_one_it_asks_for(
    revision, prefix
):
    """In all revisions, of which old ones have no ``_meta`` in lists, directly and through a mount."""
    server = make_shop() if prefix is None else mount_server(make_shop())
    start = prefix or ""
    buy, greet = f"{start}buy", f"{start}greet"
    async with connect(server, revision=revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        called = [
            await call(client, name=buy, item="tea"),
            await call(client, "10.0", buy, item="tea"),
            await call(client, "2.0", buy, item="tea", amount=3),
            await call(client, "1.0", buy, thing="tea"),
        ]
        [prompt] = await client.list_prompts()
        got = [
            (await client.get_prompt(greet, {"who": "Ann"}, meta=meta)).messages[0].content.text
            for meta in (None, ask("2"), ask("1"))
        ]
        words = await refusal(client.call_tool(buy, {}, meta=ask("3.0")))
        odd = await refusal(client.call_tool(buy, {}, meta=ask(2)))
        no_prompt = await refusal(client.get_prompt(greet, {"who": "x"}, meta=ask("3")))
        unversioned = await call(client, "7", f"{start}look")

    assert [buy, f"{start}look"] == [*tools]
    assert ["item"] == [*tools[buy].input_schema["properties"]]
    assert ["ten: tea", "ten: tea", "two: 3 tea", "one: tea"] == called
    assert ["who"] == [argument.name for argument in prompt.arguments]
    assert ["Good day, Ann", "Good day, Ann", "Hi Ann"] == got
    assert "Unknown version of tool buy: 3.0; there are 10.0, 2.0, 1.0" in words
    assert "isthmus/version" in odd
    assert "Unknown version of prompt greet: 3; there are 2, 1" in no_prompt
    assert "seen" == unversioned
    if revision >= "2025-06-18":
        assert {"isthmus/tags": ["beta"], "isthmus/version": "10.0"} == tools[buy].meta


@both_eras
async def test_arguments_are_completed_by_the_version_that_is_asked_for(revision):
    """Each version has its own completers and arguments."""
    reference = PromptReference(name="greet")
    async with connect(make_shop(), revision=revision) as client:
        values = [
            (await client.complete(reference, "who", "", meta=meta)).values
            for meta in (None, ask("2"), ask("1"))
        ]
        tone = await client.complete(reference, "tone", "", meta=ask("1"))
        words = await refusal(client.complete(reference, "tone", ""))
        inside = await refusal(client.complete(PromptReference(name="greet\0001"), "tone", ""))

    assert [["Ann"], ["Ann"], ["Ben"]] == values
    assert ["cold"] == tone.values
    assert "Unknown argument of greet" in words
    assert "Unknown prompt" in inside


def test_versions_are_ordered_as_numbers_and_others_as_text_below_them():
    """Pre-releases are never the highest where there is a number."""
    order = ["10.0", "v2.1", "2", "1.9.9", "3.0-rc1", "2026-01-01", "2.0b2"]

    assert order == [*sort_versions(dict.fromkeys(reversed(order)))]


@pytest.mark.parametrize("version", ["", "1 0", 2, "1\n", "x" * 65, "1\0"])
def test_what_is_no_version_is_refused(version):
    """Its message says what a version is."""
    with pytest.raises(UsageError, match="version= is a text"):
        Server("x").add_tool(lambda: 1, name="x", version=version)


def test_one_name_has_versions_or_none_and_each_of_them_once():
    """2 and 2.0 are one version."""
    server = make_shop()

    with pytest.raises(UsageError, match=r"of version 2\.0 already"):
        server.add_tool(lambda: 1, name="buy", version="2")
    with pytest.raises(UsageError, match="with versions already"):
        server.add_tool(lambda: 1, name="buy")
    with pytest.raises(UsageError, match="without a version already"):
        server.add_tool(lambda: 1, name="look", version="1")


@both_eras
async def test_versions_come_and_go_while_the_server_serves(revision):
    """The highest one that is left is listed; the last one takes the name with it."""
    server = make_shop()
    async with connect(server, revision=revision) as client:
        server.remove_tool("buy", version="10.0")
        second = await call(client, item="tea")
        words = await refusal(client.call_tool("buy", {}, meta=ask("10.0")))
        server.add_tool(lambda: "eleven", name="buy", version="11")
        eleventh = await call(client)
        for version in ("11", "2.0", "1.0"):
            server.remove_tool("buy", version=version)
        names = [tool.name for tool in await client.list_tools()]
        gone = await refusal(client.call_tool("buy", {}, meta=ask("1.0")))
        server.remove_prompt("greet")
        prompts = await client.list_prompts()

    assert ["two: 1 tea", "eleven"] == [second, eleventh]
    assert "there are 2.0, 1.0" in words
    assert (["look"], []) == (names, prompts)
    assert "Unknown tool: buy" in gone
    with pytest.raises(UsageError, match="version '3': it has 2, 1"):
        make_shop().remove_prompt("greet", version="3")


@both_eras
@pytest.mark.parametrize("prefix", ["", "m_"], ids=["own", "mounted"])
async def test_rules_hide_single_versions(revision, prefix):
    """The highest of the others takes its place, and no word tells of what is hidden."""
    inner = make_shop()
    server = mount_server(inner) if prefix else inner
    server.disable(tags={"beta"})
    async with connect(server, revision=revision) as client:
        listed = [tool.meta for tool in await client.list_tools() if tool.name.endswith("buy")]
        plain = await call(client, name=f"{prefix}buy", item="tea")
        hidden = await refusal(client.call_tool(f"{prefix}buy", {}, meta=ask("10.0")))
        unknown = await refusal(client.call_tool(f"{prefix}buy", {}, meta=ask("77.0")))
        server.disable(f"{prefix}buy")
        words = await refusal(client.call_tool(f"{prefix}buy", {}, meta=ask("1.0")))
        names = [tool.name for tool in await client.list_tools()]
        server.enable(f"{prefix}buy")
        again = await call(client, name=f"{prefix}buy", item="tea")

    assert ["2.0"] == [meta["isthmus/version"] for meta in listed]
    assert "two: 1 tea" == plain
    assert hidden.replace("10.0", "77.0") == unknown
    assert f"Unknown tool: {prefix}buy" in words
    assert [f"{prefix}look"] == names
    assert "ten: tea" == again


@both_eras
@pytest.mark.parametrize("prefix", ["", "m_"], ids=["own", "mounted"])
async def test_visibility_is_decided_for_each_version(revision, prefix):
    """A function that hides the newest version leaves the one before, in lists and calls alike."""
    inner = make_shop()

    @inner.visibility
    def is_released(item, principal):
        return (item.meta or {}).get("isthmus/version") != "10.0"

    server = mount_server(inner) if prefix else inner
    async with connect(server, revision=revision) as client:
        listed = [tool.meta for tool in await client.list_tools() if tool.name.endswith("buy")]
        plain = await call(client, name=f"{prefix}buy", item="tea")
        words = await refusal(client.call_tool(f"{prefix}buy", {}, meta=ask("10.0")))

    assert ["2.0"] == [meta["isthmus/version"] for meta in listed]
    assert "two: 1 tea" == plain
    assert "Unknown version of tool buy: 10.0; there are 2.0, 1.0" in words


async def test_rules_of_a_session_leave_an_older_version_in_that_session():
    """Others keep the highest one."""
    server = make_shop()
    server.visibility(sessions=True)

    @server.tool
    async def stay_safe(ctx: Context) -> str:
        await ctx.session.disable(tags={"beta"})
        return "safe"

    async with connect(server, revision=LEGACY) as one, connect(server, revision=LEGACY) as other:
        await one.call_tool("stay_safe")
        texts = [await call(one, item="tea"), await call(other, item="tea")]
        words = await refusal(one.call_tool("buy", {}, meta=ask("10.0")))

    assert ["two: 1 tea", "ten: tea"] == texts
    assert "there are 2.0, 1.0" in words


def make_guarded(hides=None, *, sessions=False):
    """A tool whose older version takes a scope, and a function that may hide the newer one."""
    server = Server("guarded", auth=make_guard())
    server.add_tool(lambda: "new", name="act", version="2")
    server.add_tool(lambda: "old", name="act", version="1", scopes={WRITE})
    if hides is not None or sessions:
        server.visibility(hides, sessions=sessions)
    return server


@pytest.mark.parametrize(
    ("hides", "sessions", "plain"),
    [
        (None, False, frozenset()),
        (lambda item, who: True, False, frozenset()),
        (lambda item, who: item.meta["isthmus/version"] == "1", False, {WRITE}),
        (None, True, {WRITE}),  # a session may have hidden the newer one
    ],
)
def test_a_call_takes_the_scopes_of_the_version_that_serves_it(hides, sessions, plain):
    """Also of the one that takes the place of a hidden one."""
    from isthmus.wire import CallToolParams

    needs = make_guarded(hides, sessions=sessions)._declared.needs["tools/call"]

    def ask_needs(version=None):
        meta = {} if version is None else {"meta": ask(version)}
        return needs(CallToolParams(name="act", **meta), None)

    assert plain == ask_needs()
    assert {WRITE} == ask_needs("1")
    assert frozenset() == ask_needs("9")
    assert WRITE in make_guarded()._declared.known_scopes()


@both_eras
async def test_included_tools_keep_their_versions(revision):
    """Under another name, of the same server, and of another one."""
    server = make_shop()
    server.include("buy", name="order", rename={})
    other = Server("other")
    other.include("buy", source=make_shop(), name="order")
    for one in (server, other):
        async with connect(one, revision=revision) as client:
            texts = [
                await call(client, name="order", item="tea"),
                await call(client, "1.0", "order", thing="tea"),
            ]
            words = await refusal(client.call_tool("order", {}, meta=ask("4")))

        assert ["ten: tea", "one: tea"] == texts
        assert "Unknown version" in words


@both_eras
async def test_a_proxy_keeps_versions(revision):
    """What a client asks for goes to the server behind."""
    async with connect(Server.proxy(make_shop()), revision=revision) as client:
        texts = [await call(client, item="tea"), await call(client, "1.0", thing="tea")]
        [tool, _] = await client.list_tools()
        words = await refusal(client.call_tool("buy", {}, meta=ask("4")))

    assert ["ten: tea", "one: tea"] == texts
    assert "10.0" == tool.meta["isthmus/version"]
    assert "there are 10.0, 2.0, 1.0" in words


def make_asking_shop():
    """A tool that asks, in two versions."""
    server = Server("asks")

    def add(version):
        @server.tool(name="confirm", version=version)
        async def confirm(ctx: Context) -> str:
            return f"{version}: {(await ctx.elicit('Really?', bool)).value}"

    add("1")
    add("2")
    return server


@both_eras
async def test_rounds_of_a_call_stay_with_its_version(revision):
    """A question of an older version is answered to that version."""
    answers = script(Accepted({"value": True}), Accepted({"value": True}))
    async with connect(make_asking_shop(), revision=revision, elicit=answers) as client:
        texts = [await call(client, "1", "confirm"), await call(client, None, "confirm")]

    assert ["1: True", "2: True"] == texts


async def test_a_state_of_one_version_does_not_open_for_another():
    """An answer that was given to one version is none to another (since 2026-07-28)."""
    client = EraClient(make_asking_shop())
    first = await client.once("tools/call", {"name": "confirm", "_meta": ask("1")})
    answered = {
        "name": "confirm",
        "requestState": first["requestState"],
        "inputResponses": {key: accept_form(value=True) for key in first["inputRequests"]},
    }

    refused = await client.once("tools/call", answered)
    assert -32602 == refused.code
    result = await client.once("tools/call", {**answered, "_meta": ask("1")})
    assert "1: True" == tool_text(result)


@both_eras
async def test_tasks_are_of_the_version_that_is_asked_for(revision):
    """A task runs the version that was asked for, and an unknown one is refused."""
    server = Server("jobs")

    async def old() -> str:
        await asyncio.sleep(0)
        return "old"

    server.add_tool(old, name="job", version="1", task="optional")
    server.add_tool(lambda: "new", name="job", version="2", task="optional")
    async with connect(server, revision=revision) as client:
        await client.list_tools()
        task = await client.start_tool("job", meta=ask("1"))
        newest = await client.start_tool("job")
        texts = [(await one.result()).text for one in (task, newest)]
        with pytest.raises(Refused):
            await client.start_tool("job", meta=ask("3"))

    assert ["old", "new"] == texts


async def test_hints_that_a_middleware_reads_are_those_of_the_version():
    """The newest version is read-only and may be cached; an older one runs each time."""
    server = Server("cached", middleware=[Caching(ttl=60)])
    runs = []
    server.add_tool(lambda: len(runs), name="count", version="2", read_only=True)
    server.add_tool(lambda: runs.append(1) or "done", name="count", version="1")
    async with connect(server, revision=MODERN) as client:
        for _ in range(2):
            await call(client, "1", "count")
        seen = [await call(client, name="count") for _ in range(2)]

    assert [1, 1] == runs
    assert "2" == seen[0]


@both_eras
async def test_a_version_that_stands_in_is_listed_to_those_who_may_call_it(revision):
    """A rule of the outer server hides the open version, and the other one takes a scope."""
    inner = Server("inner")
    inner.add_tool(lambda: "new", name="act", version="2", tags={"beta"})
    inner.add_tool(lambda: "old", name="act", version="1", scopes={WRITE})
    outer = Server("outer", auth=make_guard(list_visibility="granted"))
    outer.mount(inner, "in")
    outer.disable(tags={"beta"})
    names, called = {}, {}
    for who in ("ada", "eve"):
        token = {"token": f"token-of-{who}", "revision": revision, "transport": "http"}
        async with connect(outer, **token) as client:
            names[who] = [tool.name for tool in await client.list_tools()]
            try:
                called[who] = await call(client, name="in_act")
            except HttpRefused:
                called[who] = "refused"

    assert {"ada": [], "eve": ["in_act"]} == names
    assert {"ada": "refused", "eve": "old"} == called
