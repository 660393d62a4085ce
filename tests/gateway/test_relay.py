"""Rounds between two sides since 2026-07-28: nothing is kept at the gateway while its client is asked."""

import asyncio
import base64
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from msgspec import UNSET, Raw

from isthmus import Context, Server
from isthmus.client.model.relay import CONTINUED_ROUND, ContinuedRound
from isthmus.core.principal import Principal
from isthmus.errors import Refuse
from isthmus.gateway import Gateway
from isthmus.gateway.calls import CallContext
from isthmus.gateway.relay import read_relayed_round
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.runtime.channel import Origin
from isthmus.store.memory_store import MemoryStore
from isthmus.wire import CallToolParams
from isthmus.wire.jsonrpc import ErrorBody, encode
from support.gateway.asking_shop import make_asker, make_host
from support.gateway.small_gateway import ALLOW_ALL
from support.server.both_eras import EraClient, tool_text

MODERN = "2026-07-28"
SECRET = bytes(range(32))
UNUSABLE = "Invalid params: this requestState cannot be used here; send the request without it"
ANN, BOB = (Principal(issuer="https://login.example", subject=name) for name in ("ann", "bob"))
YES = {"action": "accept", "content": {"value": "ann"}}

ASKS = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }

[[rule]]
id = "rest"
effect = "allow"
"""

COUNTS = ASKS.replace('effect = "ask"', 'effect = "allow"\nobligations = { max_calls = 1 }', 1)


class Person:
    """Approves what is asked, and counts it."""

    def __init__(self, **decision):
        self.asked = []
        self.decision = Decision(verdict="allow", by="Bea", **decision)

    async def approve(self, interaction):
        """Say yes."""
        self.asked.append(interaction.attempt.object)
        return self.decision


class Node:
    """A gateway, and a caller of it that makes single rounds.

    Args:
        gateway: the gateway.
        principal: the caller; None for whoever has not authenticated.
        path: the endpoint.
    """

    def __init__(self, gateway, principal=None, path="/mcp"):
        self.gateway = gateway
        self.client = EraClient(gateway.find_server(path), principal=principal)
        self.origin = Origin("http", principal=principal)

    async def call(self, name="shop__order", arguments=None, before=None, answer=YES):
        """Make a round; after ``before``, with the answer to all that this asked."""
        params = {"name": name, "arguments": {"item": "shoe"} if arguments is None else arguments}
        if before is not None:
            params["requestState"] = before["requestState"]
            params["inputResponses"] = dict.fromkeys(before["inputRequests"], answer)
        result = await self.client.once("tools/call", params, origin=self.origin)
        return result.message if isinstance(result, ErrorBody) else result


@asynccontextmanager
async def open_nodes(server, *, policy=ALLOW_ALL, count=2, person=None, gateway=None, **options):
    """Gateways of one secret in front of one server."""
    gateways = []
    for _ in range(count):
        approver = None if person is None else person.approve
        host = make_host(policy, ("shop", server, {}), approver=approver, **options)
        gateways.append(Gateway(host, secret=SECRET, **(gateway or {})))
    for one in gateways:
        await one.open()
    try:
        yield gateways
    finally:
        for one in gateways:
            await one.close()


async def read_rows(gateway):
    """The rows of tool calls in the audit log."""
    return [row for row in await gateway.host.view.audit_tail() if row.action == "tool.call"]


async def test_rounds_alternate_between_two_nodes():
    """Ours: any node that has the secret makes any round."""
    async with open_nodes(make_asker(MODERN)) as gateways:
        nodes = [Node(one) for one in gateways]
        first = await nodes[0].call("shop__twice", {})
        second = await nodes[1].call("shop__twice", {}, first)
        done = await nodes[0].call("shop__twice", {}, second, {**YES, "content": {"value": "b"}})

    assert "Which after ann?" == next(iter(second["inputRequests"].values()))["params"]["message"]
    assert "ann b" == tool_text(done)


async def test_nothing_is_kept_between_rounds():
    """Ours: no parked call, no task, and nothing under way at the server."""
    async with open_nodes(make_asker(MODERN), count=1) as (gateway,):
        node = Node(gateway)
        await node.call()
        before = len(asyncio.all_tasks())
        asked = [await node.call() for _ in range(20)]
        core = gateway.host.core

        assert 0 == len(gateway._parts.parked)
        assert before == len(asyncio.all_tasks())
        assert () == core.pipeline.flying.at("shop")
        assert "shoe: ann" == tool_text(await node.call(before=asked[7]))


@pytest.mark.parametrize(("tool", "arguments"), [("order", {"item": "shoe"}), ("both", {})])
async def test_the_state_of_the_server_is_sealed(tool, arguments):
    """Attack: whoever has it in the clear could bring it to the server by another way."""
    states, server = [], make_asker(MODERN)
    async with open_nodes(server, count=1) as (gateway,):
        behind = EraClient(server)
        params = {"name": tool, "arguments": arguments}
        states = [
            (await behind.once("tools/call", params))["requestState"],
            (await Node(gateway).call(f"shop__{tool}", arguments))["requestState"],
        ]

    sealed = base64.urlsafe_b64decode(states[1] + "==")
    assert len(states[1]) > len(states[0])
    assert b"shop" not in sealed
    assert states[0][:4].encode() not in sealed


def tamper(state):
    """The state with one character changed."""
    middle = len(state) // 2
    other = "A" if state[middle] != "A" else "B"
    return f"{state[:middle]}{other}{state[middle + 1 :]}"


async def test_a_state_opens_for_its_own_call_alone(monkeypatch):
    """Attack: another owner, tool, arguments, endpoint, a changed or an old one: refused in the same words."""
    server = make_asker(MODERN)

    @server.tool
    async def other(item: str) -> str:
        return f"other {item}"

    async with open_nodes(server, count=1) as (gateway,):
        ann, bob = Node(gateway, ANN), Node(gateway, BOB)
        nobody, alone = Node(gateway), Node(gateway, ANN, "/mcp/shop")
        asked = await ann.call()
        changed = {**asked, "requestState": tamper(asked["requestState"])}
        said = [
            await bob.call(before=asked),
            await nobody.call(before=asked),
            await ann.call("shop__other", before=asked),
            await ann.call(arguments={"item": "hat"}, before=asked),
            await alone.call("order", before=asked),
            await ann.call(before=changed),
            await ann.call(before={**asked, "requestState": "x"}),
        ]
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3_601)
        said.append(await ann.call(before=asked))
        monkeypatch.undo()
        assert "shoe: ann" == tool_text(await ann.call(before=asked))

    assert {UNUSABLE} == set(said)


async def test_a_state_of_another_endpoint_is_refused():
    """Attack: two endpoints offer the tool by the same name, and by different rules."""
    options = GatewayOptions(profiles={"work": GatewayProfile(servers=("shop",))})
    async with open_nodes(make_asker(MODERN), count=1, gateway={"options": options}) as (gateway,):
        all_of_them, work = Node(gateway), Node(gateway, path="/mcp/p/work")
        asked = await all_of_them.call()
        assert UNUSABLE == await work.call(before=asked)
        assert UNUSABLE == await all_of_them.call(before=await work.call())


async def test_a_person_is_asked_once_about_a_call_of_several_rounds():
    """Ours: by either node, and the audit log says in each round who approved it."""
    person = Person()
    async with open_nodes(make_asker(MODERN), policy=ASKS, person=person) as gateways:
        nodes = [Node(one) for one in gateways]
        first = await nodes[0].call("shop__twice", {})
        second = await nodes[1].call("shop__twice", {}, first)
        done = await nodes[0].call("shop__twice", {}, second)
        rows = [await read_rows(one) for one in gateways]

    assert "ann ann" == tool_text(done)
    assert ["twice"] == person.asked
    assert {"Bea"} == {row.approver for one in rows for row in one}
    began = rows[0][0].call
    later = [
        row.detail for one in rows for row in one if row.kind == "intent" and row.call != began
    ]
    assert [{"q1": "accept"}, {"q2": "accept"}] == sorted(
        (one["answered"] for one in later), key=str
    )
    assert {began} == {one["continues"] for one in later}


async def test_an_approval_counts_for_one_call_however_often_its_state_comes():
    """Attack: a client that sends the same round twice is asked about again, and so by the store's nodes."""
    person, store = Person(), MemoryStore()
    given = {"store": store, "secret": SECRET}
    async with open_nodes(make_asker(MODERN), policy=ASKS, person=person, **given) as gateways:
        nodes = [Node(one) for one in gateways]
        asked = await nodes[0].call()
        for node in (nodes[0], nodes[0], nodes[1]):
            assert "shoe: ann" == tool_text(await node.call(before=asked))

    assert ["order"] * 3 == person.asked


async def test_an_edited_call_stays_edited_in_later_rounds():
    """Ours: what a person has put in place of the arguments is what the server gets, in every round."""
    person = Person(edited={"item": "hat"})
    async with open_nodes(make_asker(MODERN), policy=ASKS, person=person) as gateways:
        nodes = [Node(one) for one in gateways]
        asked = await nodes[0].call()
        done = await nodes[1].call(before=asked)

    assert "hat: ann" == tool_text(done)
    assert {"item": "hat"} == done["_meta"]["isthmus/edited-arguments"]
    assert 1 == len(person.asked)


async def test_a_counted_call_counts_once():
    """Ours: its rounds are no further calls; a state that comes again is one."""
    person = Person()
    async with open_nodes(make_asker(MODERN), policy=COUNTS, person=person, count=1) as (gateway,):
        node = Node(gateway)
        asked = await node.call()
        assert "shoe: ann" == tool_text(await node.call(before=asked))
        assert [] == person.asked
        assert "shoe: ann" == tool_text(await node.call(before=asked))
        assert ["order"] == person.asked


async def test_a_policy_that_denies_meanwhile_holds_in_later_rounds():
    """Ours: what was allowed is no promise."""
    async with open_nodes(make_asker(MODERN), count=1) as (gateway,):
        node = Node(gateway)
        asked = await node.call()
        denies = ALLOW_ALL.replace('"allow"', '"deny"')
        gateway.host.core.pipeline.policy = Policy.of(read_layers(denies, "user"))
        said = await node.call(before=asked)

    assert "Unknown tool: shop__order" == said


async def test_another_policy_asks_anew():
    """Ours: an approval under other rules does not count."""
    person = Person()
    async with open_nodes(make_asker(MODERN), policy=ASKS, person=person, count=1) as (gateway,):
        node = Node(gateway)
        asked = await node.call()
        other = ASKS.replace('"rest"', '"remains"')
        gateway.host.core.pipeline.policy = Policy.of(read_layers(other, "user"))
        assert "shoe: ann" == tool_text(await node.call(before=asked))

    assert ["order", "order"] == person.asked


async def test_another_definition_of_the_tool_asks_anew():
    """Ours: what was approved is a tool as it was described."""
    person, other = Person(), Server("shop", revisions=[MODERN])

    @other.tool
    async def order(item: str) -> str:
        """Order something, and pay for it."""
        return item

    async with (
        open_nodes(make_asker(MODERN), policy=ASKS, person=person, count=1) as (before,),
        open_nodes(other, policy=ASKS, person=person, count=1) as (after,),
    ):
        asked = await Node(before).call()
        await Node(after).call(before=asked)

    assert ["order", "order"] == person.asked


async def test_an_answer_that_is_none_is_refused():
    """Bad input: it does not reach the server."""
    async with open_nodes(make_asker(MODERN), count=1) as (gateway,):
        node = Node(gateway)
        asked = await node.call()
        assert "malformed" in await node.call(before=asked, answer={"action": "perhaps"})


async def test_missing_answers_are_asked_for_again():
    """Spec 2026-07-28 basic/patterns/mrtr#error-handling: missing ones are asked again."""
    async with open_nodes(make_asker(MODERN)) as gateways:
        nodes = [Node(one) for one in gateways]
        asked = await nodes[0].call("shop__both", {})
        one = {**asked, "inputRequests": dict([next(iter(asked["inputRequests"].items()))])}
        again = await nodes[1].call("shop__both", {}, one)
        assert 1 == len(again["inputRequests"])
        assert "ann ann" == tool_text(await nodes[0].call("shop__both", {}, again))


async def test_the_answers_of_the_gateway_travel_with_the_state():
    """Ours: what the client cannot answer the gateway does, and what it can is relayed."""
    server = Server("shop", revisions=[MODERN])

    @server.tool
    async def mixed(ctx: Context) -> str:
        """Ask two."""
        form, roots = await asyncio.gather(ctx.elicit("Which?", str), ctx.roots())
        return f"{form.value} {len(roots)}"

    denies = '[[rule]]\nid = "folders"\neffect = "deny"\nwhen = { action = ["roots.expose"] }\n'
    async with open_nodes(server, policy=denies + ALLOW_ALL) as gateways:
        nodes = [Node(one) for one in gateways]
        asked = await nodes[0].call("shop__mixed", {})
        assert ["elicitation/create"] == [one["method"] for one in asked["inputRequests"].values()]
        assert "ann 0" == tool_text(await nodes[1].call("shop__mixed", {}, asked))


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ({"action": "decline"}, "decline"),
        ({"roots": [], "action": 5}, "answer"),
        ({"roots": [], "action": "accepted by the operator"}, "answer"),
        ({"roots": []}, "answer"),
    ],
)
def test_an_answer_says_nothing_of_itself_in_the_audit_log(answer, action):
    """Ours: of what a client answers, the log has one of four words."""
    continued = ContinuedRound("tools/call", {"q1": Raw(encode(answer))})
    assert continued.list_actions() == {"q1": action}


def test_a_round_that_is_made_once_more_still_goes_on():
    """Ours: where an account had to be connected first, the server does not begin anew."""
    continued = ContinuedRound("tools/call", {}, "state")
    call = SimpleNamespace(continued=continued, meta={}, log_level="error")
    for _ in range(2):
        with CallContext(call, ""):
            sent = CONTINUED_ROUND.get().fill("tools/call", CallToolParams(name="t"), modern=True)
            assert sent.request_state == "state"
    late = continued.fill("tools/call", CallToolParams(name="t"), modern=True)
    assert late.request_state is UNSET


def test_a_round_that_another_version_has_left_is_refused():
    """Ours: nodes are updated one after the other."""
    with pytest.raises(Refuse, match="requestState cannot be used here"):
        read_relayed_round('{"view": "all servers"}')
