"""Approvals through a gateway: how each client is kept waiting, and told."""

import asyncio

import pytest

from isthmus import Accepted, Client, Server
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.model.gateway_options import ApprovalOptions, GatewayOptions
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.event_loop import run_until

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
YES = Decision(verdict="allow", by="Bea", assurance="local_ui")
REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
PAGE = "https://gateway.example/approvals/"


class AskingGateway:
    """A gateway whose calls a person has to approve, and a shop that counts what was bought."""

    def __init__(self, **approvals):
        self.bought = []
        shop = Server("shop")

        @shop.tool
        async def buy(what: str) -> str:
            self.bought.append(what)
            return what

        self.host = Host(policy=Policy.of(read_layers(ASKS, "user")))
        self.host.add("shop", shop)
        options = GatewayOptions(approvals=ApprovalOptions(**approvals))
        self.gateway = Gateway(self.host, options=options)
        self.gateway.open_pages("https://gateway.example/")

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


@pytest.mark.parametrize("revision", REVISIONS)
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


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_held_call_hears_where_it_waits_and_goes_on(revision):
    """Ours: with progress, where the client gave a token."""
    heard = []
    async with AskingGateway() as asking, Client(asking.gateway.server, revision=revision) as user:
        call = asyncio.ensure_future(buy(user, on_progress=heard.append))
        await run_until(lambda: heard)
        id = await asking.decide()
        assert "tea" == (await call).text
        assert f"waiting for approval at {PAGE}{id}" == heard[0].message


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
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
