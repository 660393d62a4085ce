"""Attacks on what rules demand: left-out runs, other layers, shared questions, a restart."""

import asyncio

import pytest
from msgspec import Struct

from isthmus import Context, Server
from isthmus.host import Decision, Denied, Host
from isthmus.host.approvals.broker import Broker
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.interaction import Interaction, ReadAsked
from isthmus.host.model.trace import Obligations, Trace
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.client.small_server import SmallServer, any_tool

RULE = '[[rule]]\nid = "{id}"\neffect = "{effect}"\nwhen = {{ action = "{action}" }}\n'


def rule(id, effect, action="*", **obligations):
    """A rule about an action."""
    said = RULE.format(id=id, effect=effect, action=action)
    named = ", ".join(f"{key} = {value}" for key, value in obligations.items())
    return f"{said}obligations = {{ {named} }}\n" if named else said


def make_host(approver=None, *, user="", workspace="", state=None):
    """A host with a server of one tool, and rules in two layers."""
    layers = read_layers(user, "user")
    layers += read_layers(workspace, "workspace") if workspace else []
    host = Host(approver=approver, policy=Policy.of(layers), state=state)
    host.add("shop", SmallServer(tools=[any_tool("buy")]))
    return host


@pytest.mark.covers("hostpolicy.max-calls.no-run")
async def test_who_leaves_the_run_out_is_counted_all_the_same():
    """Ours: a server that asks outside of any call would have no end otherwise."""
    async with make_host(user=rule("all", "allow", max_calls=2)) as host:
        for _ in range(2):
            await host.call("shop__buy")
        with pytest.raises(Denied):
            await host.call("shop__buy")
        await host.call("shop__buy", principal="user:other")


@pytest.mark.covers("hostpolicy.max-calls.layers")
async def test_a_workspace_that_asks_more_particularly_takes_no_limit_away():
    """Ours: the user's own rule counts what it would have asked about."""

    async def person(_interaction):
        return True

    workspace = rule("mine", "ask").replace("}\n", ', tool = "buy" }\n')
    async with make_host(person, user=rule("all", "ask", max_calls=2), workspace=workspace) as host:
        run = host.run()
        for _ in range(2):
            await host.call("shop__buy", run=run)
        with pytest.raises(Denied) as refused:
            await host.call("shop__buy", run=run)

    assert "all" == refused.value.rule


class Book:
    """An audit log of nothing."""

    async def write(self, row):
        del row

    def note(self, row):
        del row


class Surface:
    """A surface that says yes when it is told to."""

    name, assurance = "screen", "local_ui"

    def __init__(self):
        self.answers = []

    async def offer(self, interaction):
        del interaction
        answer = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer


def question(id, demanded, uri="x"):
    """A question that is like others of its kind."""
    attempt = Attempt(id=id, action="resource.read", principal="user:me", server="s", object="x")
    trace = Trace(effect="ask", rule="r", obligations=demanded)
    return Interaction(
        id=id, attempt=attempt, payload=ReadAsked(uri=uri), trace=trace, deadline=9.0, coalesce="x"
    )


@pytest.mark.covers("hostkernel.broker.alike")
@pytest.mark.parametrize(
    "other",
    [
        question("b", Obligations(assurance="second_person")),
        question("b", Obligations(), uri="y"),
    ],
)
async def test_an_answer_is_none_to_a_question_that_demands_or_shows_something_else(other):
    """Ours: they are asked apart, however alike they call themselves."""
    broker, surface = Broker(Book()), Surface()
    broker.attach(surface)
    asked = [
        asyncio.ensure_future(broker.ask(one)) for one in (question("a", Obligations()), other)
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    shown = len(surface.answers)
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)

    assert 2 == shown


class Colour(Struct):
    name: str


@pytest.mark.covers("hostkernel.tasks.surface-later")
async def test_a_task_goes_on_where_the_surface_comes_after_the_host(tmp_path):
    """Ours: the call was allowed when it was made, and is not dropped for want of a terminal."""
    server, asked = Server("shop", revisions=["2026-07-28"]), asyncio.Event()

    @server.tool(task="required")
    async def paint(ctx: Context) -> str:
        """Paint."""
        return (await ctx.elicit("Which?", Colour, key="which")).value.name

    policy = Policy.of(read_layers(rule("all", "ask"), "user"))

    async def first(interaction):
        if interaction.attempt.action == "tool.call":
            return True
        asked.set()
        return await asyncio.Event().wait()

    host = Host(approver=first, policy=policy, state=tmp_path)
    host.add("shop", server)
    async with host:
        calling = asyncio.ensure_future(host.call("shop__paint"))
        await asked.wait()
        (call,) = host.tasks.open
    await asyncio.gather(calling, return_exceptions=True)

    async def second(_interaction):
        return Decision(verdict="allow", edited={"name": "red"})

    host = Host(policy=policy, state=tmp_path)
    host.add("shop", server)
    async with host:
        for _ in range(5):
            await host.audit.flush()
        host.attach(second)
        result = await host.tasks.result(call)

    assert "red" == result.text
