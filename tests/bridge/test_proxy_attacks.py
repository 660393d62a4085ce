"""Attacks on proxies: what belongs to one caller and must not reach another."""

import asyncio

import pytest

from isthmus import Client, Context, Server
from isthmus.core.answers import Accepted
from isthmus.core.principal import Principal
from isthmus.errors import Refuse, Refused
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.notifications import MAX_WAITING_NOTIFICATIONS, CallNotifications
from isthmus.testing import serving
from isthmus.wire import ClientCapabilities, ProgressParams
from support.server.both_eras import ALL_CAPABILITIES, EraClient, tool_text

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ISSUER = "https://login.example"
ANN, BOB = (Principal(issuer=ISSUER, subject=name) for name in ("ann", "bob"))


def make_keeper():
    """A server of an older revision, which keeps what it is told for its session."""
    server = Server("keeper", revisions=[LEGACY])

    @server.tool
    async def keep(value: str, ctx: Context) -> str:
        await ctx.session.set("value", value)
        return "kept"

    @server.tool
    async def tell(ctx: Context) -> str:
        return str(await ctx.session.get("value", ""))

    return server


@pytest.mark.parametrize("able", [ClientCapabilities(), ALL_CAPABILITIES], ids=["silent", "asked"])
async def test_principals_share_no_session_of_a_server_that_keeps_state_for_it(able):
    """Attack: a server of up to 2025-11-25 takes one connection for one caller."""
    proxy = Server.proxy(make_keeper())
    await proxy.open()
    answers = {}
    for who in (ANN, BOB):
        client = EraClient(proxy, MODERN, principal=who, able=able)
        origin = Origin("http", principal=who)
        answers[who.subject] = tool_text(await client.call("tell", {}, origin=origin))
        await client.call("keep", {"value": who.subject}, origin=origin)
    client = EraClient(proxy, MODERN, principal=ANN, able=able)
    answers["again"] = tool_text(
        await client.call("tell", {}, origin=Origin("http", principal=ANN))
    )
    await proxy.close()

    assert {"ann": "", "bob": "", "again": "ann"} == answers


async def test_a_session_ends_no_subscription_but_its_own():
    """Attack: unsubscribing often, and also by leaving, as the proxy counts who wants to hear."""
    upstream = Server("upstream")

    @upstream.resource("note://a")
    def note() -> str:
        return "a"

    outer = Server("outer")
    outer.mount(Server.proxy(upstream), "up")
    heard = asyncio.Queue()

    async def hear(client, listens):
        async with client.listen(uris=["note://up/a"]) as changes:
            listens.set()
            async for change in changes:
                heard.put_nowait(change)

    async with Client(outer, revision=LEGACY) as victim:
        listens = asyncio.Event()
        task = asyncio.create_task(hear(victim, listens))
        await listens.wait()
        async with Client(outer, revision=LEGACY) as other:
            async with other.listen(uris=["note://up/a"]):
                pass
            for _ in range(3):
                await other.request("resources/unsubscribe", {"uri": "note://up/a"})
        async with asyncio.timeout(20):
            while heard.empty():
                upstream.notify_resource_updated("note://a")
                await asyncio.sleep(0)
        task.cancel()


@pytest.mark.parametrize("kind", ["tools", "prompts"])
@pytest.mark.parametrize("behind", [False, True], ids=["mounted", "behind a proxy"])
async def test_a_server_behind_a_proxy_gets_no_call_of_another_ones(kind, behind):
    """Attack: nobody has read its lists yet, or it says that they changed again and again."""
    got = []

    async def spy(inbound, call_next):
        if inbound.method in {"tools/call", "prompts/get"}:
            got.append(bytes(inbound.params))
        return await call_next(inbound)

    evil, good, outer = Server("evil", middleware=[spy]), Server("good"), Server("outer")
    evil.add_tool(lambda: "evil", name="help", description="Help.")
    evil.prompt(lambda: "evil", name="hello")
    good.add_tool(lambda card: f"paid by {card}", name="pay", description="Pay.")
    good.prompt(lambda card: f"paid by {card}", name="bill")
    outer.mount(Server.proxy(evil))
    outer.mount(Server.proxy(good) if behind else good)

    async with Client(outer) as client:
        for _ in range(2):
            if kind == "tools":
                assert "paid by 4" == (await client.call_tool("pay", {"card": "4"})).text
            else:
                found = await client.get_prompt("bill", {"card": "4"})
                assert "paid by 4" == found.messages[0].content.text

    assert [] == got


async def test_what_is_said_while_a_call_is_parked_reaches_its_client_when_it_comes_again():
    """Ours: nothing goes to the request that has been answered, and what follows is not lost with it."""
    server, asked, said = Server("upstream", revisions=[LEGACY]), asyncio.Event(), asyncio.Event()

    @server.tool
    async def work(ctx: Context) -> str:
        async def speak() -> None:
            await asked.wait()
            await ctx.progress(1, 3)
            ctx.log.warning("meanwhile")
            await ctx.progress(2, 3)
            said.set()

        speaking = asyncio.create_task(speak())
        await ctx.elicit("Go on?", bool)
        await speaking
        ctx.log.warning("late")
        await ctx.progress(3, 3)
        return "done"

    async def answer(*_):
        asked.set()
        await said.wait()
        return Accepted({"value": True})

    heard = []
    async with serving(Server.proxy(server)) as url:
        options = {"elicit": answer, "on_log": lambda log: heard.append(log.data)}
        async with Client(url, revision=MODERN, **options) as client:
            result = await client.call_tool(
                "work", on_progress=lambda one: heard.append(one.progress)
            )

    assert "done" == result.text
    assert [1, "meanwhile", 2, "late", 3] == heard


async def test_reports_of_progress_that_nobody_reads_do_not_pile_up():
    """Attack: a server behind that reports without end, to a client that reads slowly."""
    reads, heard = asyncio.Event(), []

    class Link:
        async def note(self, _method, params, *, relates_to):
            await reads.wait()
            heard.append(params.progress)

    inbound = Inbound(1, "tools/call", None, None, Link(), Origin("http"))
    notes = CallNotifications(inbound)
    for step in range(100_000):
        notes.put("notifications/progress", ProgressParams(progress_token=1, progress=step))
    reads.set()
    await notes.finish()

    assert MAX_WAITING_NOTIFICATIONS + 2 >= len(heard)
    assert sorted(heard) == heard
    assert 99_999 == heard[-1]


@pytest.mark.parametrize("code", [-32042, -31000])
async def test_errors_of_a_server_behind_are_clean_and_are_no_failure_of_the_proxy(code, caplog):
    """Attack: commands for terminals in a message, and a demand of pages that has none."""
    server = Server("upstream", revisions=[LEGACY])

    @server.tool
    async def refuse() -> str:
        raise Refuse(code, "no\x1b[31m\nCRITICAL all is lost", {"elicitations": 5})

    async with Client(Server.proxy(server), revision=LEGACY) as client:
        with pytest.raises(Refused) as caught:
            await client.call_tool("refuse")

    assert "\x1b" not in caught.value.message
    assert not [one for one in caplog.records if one.exc_info]
    assert not [
        one for one in caplog.records if "\n" in one.getMessage() or "\x1b" in one.getMessage()
    ]


async def test_a_client_that_refuses_an_answer_is_no_failure_of_the_proxy(caplog):
    """Attack: a traceback in the log for each question that a client does not answer."""
    server = Server("upstream", revisions=[MODERN])

    @server.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Name?", str))

    async def answer(*_):
        raise Refuse(-31000, "not now")

    async with Client(Server.proxy(server), revision=LEGACY, elicit=answer) as client:
        with pytest.raises(Refused) as caught:
            await client.call_tool("ask")

    assert "Internal error in tools/call" not in caught.value.message
    assert not [
        one for one in caplog.records if one.name == "isthmus" and "tools/call" in one.getMessage()
    ]
