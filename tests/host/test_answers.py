"""Who asks, and in the course of what."""

import asyncio

import pytest
from msgspec import Raw, structs

from isthmus import Context, Server
from isthmus.client.model.questions import QuestionOrigin, record_origin
from isthmus.host import Host
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import Advertise, Labels, Timeouts
from isthmus.host.model.errors import OutcomeUnknown
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.providers.scripted import Scripted
from isthmus.host.questions.answers import MAX_STRIKE_ROWS
from isthmus.host.sampling.models import Model, Models
from isthmus.revisions import BY_NAME
from isthmus.wire import ElicitParams
from support.client.small_server import LEGACY_NAME, SmallServer, any_tool, text_result
from support.event_loop import run_until
from support.gateway.line_server import make_command

ALL = '[[rule]]\nid = "all"\neffect = "allow"\nwhen = {}\n'
FORM = ElicitParams(message="?", requested_schema={"type": "object", "properties": {}})


def make_host(server, **options):
    """A host that allows everything."""
    host = Host(policy=Policy.of(read_layers(ALL, "user")))
    host.add("shop", server, **options)
    return host


@pytest.mark.covers("hostkernel.asked.several")
async def test_a_request_with_several_calls_under_way_belongs_to_none_and_has_the_labels_of_all():
    """Ours: up to 2025-11-25 nobody says for which call a server asks."""
    both, go, links = asyncio.Barrier(3), asyncio.Event(), []

    async def call(_params, inbound):
        links.append(inbound.link)
        await both.wait()
        await go.wait()
        return text_result("done")

    server = SmallServer({"tools/call": call}, tools=[any_tool()], revisions=[LEGACY_NAME])
    asked = []
    async with make_host(server, labels=Labels(reads=("private",))) as host:
        elicitor = host.parts.clients.elicitor

        async def answer(asking, params):
            asked.append(asking)
            return await type(elicitor).answer(elicitor, asking, params)

        elicitor.answer = answer
        one, two = host.run(), host.run()
        one.taken.labels = frozenset({"private"})
        two.taken.labels = frozenset({"untrusted"})
        calls = [asyncio.ensure_future(host.call("shop__add", run=run)) for run in (one, two)]
        await both.wait()
        await links[0].call("elicitation/create", FORM, Raw)
        go.set()
        await asyncio.gather(*calls)

    assert [(None, "", frozenset({"private", "untrusted"}))] == [
        (asking.parent, asking.run, asking.labels) for asking in asked
    ]


async def test_how_deep_a_question_is_within_samplings_is_counted():
    """Ours: a model that calls a tool whose server asks for a model again."""
    async with make_host(SmallServer(tools=[any_tool()])) as host:
        flying = host.core.pipeline.flying
        outer = Attempt(id="1", action="sampling.request", principal="server:a", server="a")
        inner = structs.replace(outer, id="2", action="tool.call", server="shop", parent="1")
        flying.begin(outer)
        flying.begin(inner)
        flying.add(inner)
        with record_origin(QuestionOrigin("request", BY_NAME[LEGACY_NAME])):
            asking = host.parts.clients.make_question(host.servers["shop"].entry, "")

    assert ("2", 1) == (asking.parent.id, asking.depth)


async def test_nothing_is_offered_that_the_entry_does_not_say():
    """Ours: forms and no pages, no model, no roots, where that is what it says."""
    offered = Advertise(elicitation=("form",), roots=False, tasks=False)
    server = SmallServer(tools=[any_tool()], revisions=[LEGACY_NAME])
    async with make_host(server, advertise=offered) as host:
        await host.call("shop__add")
        declared = host.servers["shop"].connections[""].client._answering.capabilities

    assert not declared.roots
    assert not declared.sampling
    assert not declared.tasks
    assert (True, False) == (bool(declared.elicitation.form == {}), bool(declared.elicitation.url))


async def test_strikes_are_written_down_so_often_and_no_more():
    """Ours: a server that does nothing else does not fill the log."""
    async with make_host(SmallServer(tools=[any_tool()])) as host:
        entry = host.servers["shop"].entry
        for _ in range(MAX_STRIKE_ROWS + 10):
            host.parts.clients.record_strike(entry, "", "sampling/createMessage")
        rows = await host.audit.tail(MAX_STRIKE_ROWS + 100)

    assert MAX_STRIKE_ROWS == sum(row.error == "undeclared" for row in rows)
    assert MAX_STRIKE_ROWS + 10 == host.strikes["shop"]


@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize("context", [True, False])
async def test_what_a_model_may_be_given_is_offered_as_the_entry_says(tools, context):
    """Ours: tools and context are for servers that were given them."""
    offered = Advertise(sampling=True, sampling_tools=tools, sampling_context=context)
    host = Host(
        policy=Policy.of(read_layers(ALL, "user")),
        models=Models([Model(id="m", provider="scripted")]),
        providers={"scripted": Scripted("short")},
    )
    server = SmallServer(tools=[any_tool()], revisions=["2025-11-25"])
    host.add("shop", server, advertise=offered)
    async with host:
        await host.call("shop__add")
        declared = host.servers["shop"].connections[""].client._answering.capabilities.sampling

    assert (tools, context) == (bool(declared.tools == {}), bool(declared.context == {}))


async def test_a_call_takes_no_longer_in_all_than_the_entry_says():
    """Ours: however often its server says that it goes on."""
    server = Server("shop")

    @server.tool
    async def buy(ctx: Context) -> str:
        """Never done."""
        while True:
            await ctx.progress(1)
            await asyncio.sleep(0.001)  # what a server does that is never done

    host = Host(policy=Policy.of(read_layers(ALL, "user")))
    host.add("shop", server, timeouts=Timeouts(call=0.1, total=0.1))
    async with host:
        with pytest.raises(OutcomeUnknown, match="nobody can tell"):
            await host.call("shop__buy", on_progress=lambda *_: None)


async def test_a_question_of_a_call_that_was_cancelled_is_taken_back(tmp_path):
    """Ours: a server before 2026-07-28 need not say that its question is void."""
    host = Host(policy=Policy.of(read_layers(ALL, "user")))
    host.add("lines", make_command(tmp_path / "starts"))
    async with host, host.view.attend("test"):
        call = asyncio.ensure_future(host.call("lines__ask"))
        await run_until(host.view.pending)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await run_until(lambda: not host.view.pending())

        again = asyncio.ensure_future(host.call("lines__ask"))
        await run_until(host.view.pending)
        [question] = host.view.pending()
        await host.view.decide(
            question.id, Decision(verdict="allow", by="test", edited={"value": "x"})
        )
        assert "answered" == (await again).content[0].text
