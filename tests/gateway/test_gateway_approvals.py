"""Approvals through a gateway: how each client is kept waiting, and told."""

import asyncio
import contextlib

import pytest

from isthmus import Accepted, Client, Server
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.gateway_options import ApprovalOptions, GatewayOptions
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.server import Limits
from support.event_loop import run_until
from support.http.asgi_driver import Exchange
from support.http.messages import modern_body, modern_head

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
YES = Decision(verdict="allow", by="Bea", assurance="local_ui")
LEGACY = ["2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
TASK_REVISIONS = ["2025-11-25", MODERN]
PAGE = "https://gateway.example/approvals/"


class AskingGateway:
    """A gateway whose calls a person has to approve, and a shop that counts what was bought."""

    def __init__(self, server=None, **approvals):
        self.bought = []
        self.shop = shop = Server("shop")
        self.offer("Buy something.")
        self.host = Host(policy=Policy.of(read_layers(ASKS, "user")))
        self.host.add("shop", shop)
        options = GatewayOptions(approvals=ApprovalOptions(**approvals))
        self.gateway = Gateway(self.host, options=options, **(server or {}))
        self.gateway.open_pages("https://gateway.example/")

    def offer(self, description):
        """Have the shop offer its tool, by another description than before."""

        async def buy(what: str) -> str:
            self.bought.append(what)
            return what

        self.shop.tool(buy, description=description)

    async def __aenter__(self):
        await self.gateway.open()
        return self

    async def __aexit__(self, *error):
        await self.gateway.close()

    async def find_question(self):
        """The question that waits."""
        await run_until(self.host.view.pending)
        return self.host.view.pending()[0].id

    async def decide(self, decision=YES):
        """Decide the question that waits; its id, once that is kept."""
        id = await self.find_question()
        assert await self.host.view.decide(id, decision)
        await run_until(lambda: self.host.core.approvals.find(id).state != "pending")
        return id


async def buy(user, what="tea", **options):
    """Call through a gateway."""
    return await user.call_tool("shop__buy", {"what": what}, **options)


def begin_plain_call(asking, **meta):
    """Begin a call of a client of 2026-07-28 that declares nothing, tasks neither."""
    body = modern_body(params={"name": "shop__buy", "arguments": {"what": "tea"}}, **meta)
    return Exchange(
        asking.gateway.asgi(), path="/mcp", headers=modern_head(name="shop__buy"), body=body
    )


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_call_that_is_not_approved_in_time_is_told_where_and_attaches(revision):
    """Ours: hold, then an error with the page, then the same call for what was decided; dispatched once."""
    async with (
        AskingGateway(hold=0.01) as asking,
        Client(asking.gateway.server, revision=revision) as user,
    ):
        told = await buy(user)
        id = await asking.find_question()
        assert told.is_error
        assert PAGE + id in told.text
        assert id == await asking.decide()
        assert [] == asking.bought
        assert "tea" == (await buy(user)).text
        assert (await buy(user)).is_error
        assert ["tea"] == asking.bought


async def test_a_modern_client_without_tasks_is_told_where_and_attaches():
    """Ours: the same, for a client of 2026-07-28 that can be given no task."""
    async with AskingGateway(hold=0.01) as asking:
        told = (await begin_plain_call(asking).done()).json["result"]
        id = await asking.find_question()
        assert told["isError"]
        assert PAGE + id in told["content"][0]["text"]
        await asking.decide()
        done = (await begin_plain_call(asking).done()).json["result"]
        assert "tea" == done["content"][0]["text"]
        assert ["tea"] == asking.bought


async def test_a_modern_client_without_tasks_hears_where_it_waits_and_goes_on():
    """Ours: with progress, where it gave a token."""
    async with AskingGateway() as asking:
        call = begin_plain_call(asking, progressToken="p")
        heard = await call.event()
        id = await asking.decide()
        await call.done()
        assert f"waiting for approval at {PAGE}{id}" == heard["params"]["message"]
        assert "tea" == call.events[-1]["result"]["content"][0]["text"]


@pytest.mark.parametrize("revision", TASK_REVISIONS)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_a_client_with_tasks_has_a_task_until_a_person_has_decided(revision, verdict):
    """Ours: it waits for nobody; the task says where a person decides, and has the result."""
    decision = Decision(verdict=verdict, by="Bea", assurance="local_ui", reason="as it is")
    async with (
        AskingGateway(hold=0.01, hold_with_progress=0.01) as asking,
        Client(asking.gateway.server, revision=revision) as user,
    ):
        task = await user.start_tool("shop__buy", {"what": "tea"})
        id = await asking.find_question()
        assert task.id is not None
        assert f"waiting for approval at {PAGE}{id}" == await poll_message(task)
        assert [] == asking.bought
        await asking.decide(decision)
        result = await task.result()
        assert ("tea" if verdict == "allow" else "was not allowed (Bea): as it is") in result.text
        assert (["tea"] if verdict == "allow" else []) == asking.bought


async def test_a_client_that_waits_for_its_call_gets_what_was_approved_since_2026_07_28():
    """Ours: whoever calls a tool of isthmus's client sees nothing of the task."""
    async with AskingGateway(hold=0.01) as asking, Client(asking.gateway.server) as user:
        call = asyncio.ensure_future(buy(user))
        await asking.decide()
        assert "tea" == (await call).text


async def test_a_client_with_pages_and_tasks_is_sent_to_the_page_and_then_has_a_task():
    """Ours: one question, and nothing that has to be called again."""
    asked = []

    async def elicit(question):
        asked.append(question.url)
        return Accepted(None)

    async with (
        AskingGateway(hold=0.01) as asking,
        Client(asking.gateway.server, elicit=elicit) as user,
    ):
        task = await user.start_tool("shop__buy", {"what": "tea"})
        assert task.id is not None
        assert [] == asking.bought
        id = await asking.decide()
        assert "tea" == (await task.result()).text
        assert [PAGE + id] == asked


@pytest.mark.parametrize("revision", TASK_REVISIONS)
async def test_a_task_that_is_cancelled_leaves_its_question_to_the_next_same_call(revision):
    """Ours: nothing is dispatched for it; what was decided waits for the same call."""
    async with AskingGateway() as asking, Client(asking.gateway.server, revision=revision) as user:
        task = await user.start_tool("shop__buy", {"what": "tea"})
        id = await asking.find_question()
        await task.cancel()
        assert id == await asking.decide()
        assert [] == asking.bought
        again = await user.start_tool("shop__buy", {"what": "tea"})
        assert "tea" == (await again.result()).text
        assert ["tea"] == asking.bought


async def test_a_client_is_held_where_there_is_no_room_for_a_task():
    """Ours: the limit of tasks costs the convenience, and not the call."""
    server = {"limits": Limits(tasks_each=1)}
    async with (
        AskingGateway(server, hold=0.01) as asking,
        Client(asking.gateway.server) as user,
    ):
        first = await user.start_tool("shop__buy", {"what": "tea"})
        second = await user.start_tool("shop__buy", {"what": "milk"})
        assert first.id is not None
        assert second.id is None
        assert PAGE in (await second.result()).text


async def poll_message(task, tries=2000):
    """The message of a task, as soon as it has one."""
    for _ in range(tries):
        state = await task.status()
        if state.message:
            return state.message
    return None


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_held_call_hears_where_it_waits_and_goes_on(revision):
    """Ours: with progress, where the client gave a token."""
    heard = []
    async with AskingGateway() as asking, Client(asking.gateway.server, revision=revision) as user:
        call = asyncio.ensure_future(buy(user, on_progress=heard.append))
        await run_until(lambda: heard)
        id = await asking.decide()
        assert "tea" == (await call).text
        assert f"waiting for approval at {PAGE}{id}" == heard[0].message


@pytest.mark.parametrize("revision", ["2025-11-25"])
async def test_a_client_that_opens_pages_is_sent_to_the_page_which_alone_approves_nothing(revision):
    """Spec: client/elicitation: accept is consent to open the page, and says nothing of what is done there."""
    asked = []

    async def elicit(question):
        asked.append(question.url)
        return Accepted(None)

    async with (
        AskingGateway(hold=0.05) as asking,
        Client(asking.gateway.server, revision=revision, elicit=elicit) as user,
    ):
        told = await buy(user)
        assert told.is_error
        id = await asking.find_question()
        assert [PAGE + id] == asked
        assert [] == asking.bought
        await asking.decide()
        assert "tea" == (await buy(user)).text
        assert ["tea"] == asking.bought


async def test_edited_arguments_are_told_in_the_result():
    """Ours: what ran stands in its ``_meta``."""
    edited = Decision(verdict="allow", by="Bea", assurance="local_ui", edited={"what": "milk"})
    async with AskingGateway() as asking, Client(asking.gateway.server) as user:
        call = asyncio.ensure_future(buy(user))
        await asking.decide(edited)
        result = await call
        assert {"what": "milk"} == result.meta["isthmus/edited-arguments"]
        assert ["milk"] == asking.bought


async def test_a_denial_is_told_with_its_reason():
    """Ours: in the text of the result."""
    no = Decision(verdict="deny", by="Bea", assurance="local_ui", reason="too dear")
    async with AskingGateway() as asking, Client(asking.gateway.server) as user:
        call = asyncio.ensure_future(buy(user))
        await asking.decide(no)
        result = await call
        assert result.is_error
        assert "was not allowed (Bea): too dear" in result.text
        assert [] == asking.bought


async def change_policy(asking):
    """Have other rules ask."""
    other = ASKS.replace('"calls"', '"others"')
    asking.host.core.pipeline.policy = Policy.of(read_layers(other, "user"))


async def change_definition(asking):
    """Have the shop describe its tool otherwise, and the gateway know that."""
    asking.shop.remove_tool("buy")
    asking.offer("Buy something, and tell everybody.")

    def is_known():
        tools = asking.host.catalog.tools("")
        return any("everybody" in (one.what.description or "") for one in tools)

    await run_until(is_known)


@pytest.mark.parametrize("revision", [*LEGACY, MODERN])
@pytest.mark.parametrize("change", [change_policy, change_definition])
async def test_what_changes_while_a_call_is_held_is_asked_about_anew(revision, change):
    """Attack: a yes to a call counts for the rules and the definition that whoever said it has seen."""
    async with AskingGateway() as asking, Client(asking.gateway.server, revision=revision) as user:
        await user.list_tools()
        call = asyncio.ensure_future(buy(user))
        first = await asking.find_question()
        await change(asking)
        assert await asking.host.view.decide(first, YES)
        await run_until(
            lambda: any(one.id != first for one in asking.host.view.pending()) or call.done()
        )
        assert [] == asking.bought
        for one in asking.host.view.pending():
            await asking.host.view.decide(
                one.id, Decision(verdict="deny", by="Bea", assurance="local_ui")
            )
        with contextlib.suppress(Refused):
            assert (await call).is_error
    assert [] == asking.bought


@pytest.mark.parametrize("leaves", ["keep", "cancel"])
async def test_a_client_over_http_that_leaves_has_nothing_dispatched(leaves):
    """Ours: the question stays for the same call, or ends with its client, as the options say."""
    async with AskingGateway(on_leave=leaves) as asking:
        call = begin_plain_call(asking)
        id = await asking.find_question()
        await call.watched.wait()
        call.leave()
        await call.done()
        if leaves == "cancel":
            await run_until(lambda: not asking.host.view.pending())
            assert asking.host.core.approvals.find(id) is None
        else:
            assert id == await asking.decide()
        assert [] == asking.bought
        again = begin_plain_call(asking)
        if leaves == "cancel":
            assert id != await asking.decide()
        assert "tea" == (await again.done()).json["result"]["content"][0]["text"]
    assert ["tea"] == asking.bought
