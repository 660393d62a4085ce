"""Every revision of our client with every revision of our server, a gateway in a process between them."""

import asyncio

import pytest

from interop.gateway_processes import gateway_to
from interop.partners import ALL, OURS
from isthmus import Accepted, Client
from isthmus.revisions import BY_NAME, Feature

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(60),
    pytest.mark.xdist_group("gateway to all revisions"),
]

WITH_TASKS = {"2025-11-25", "2026-07-28"}
ROOT = "file:///work"


class PairedUser:
    """A client of the gateway, and the server behind it of which it uses the tools.

    Args:
        client: the revision of the client.
        server: the one of the server.
    """

    def __init__(self, client, server):
        url = gateway_to(OURS, ALL).url
        self.server = server
        self.logs = []
        self.client = Client(
            f"{url}/sse" if client == ALL[0] else f"{url}/mcp",
            revision=client,
            elicit=lambda asked: Accepted(None if asked.mode == "url" else {"row": 7}),
            sample=lambda _: "A thought.",
            roots=[ROOT],
            log_level="info",
            on_log=lambda params: self.logs.append(params.data),
        )

    def spell(self, tool):
        """The name of a tool at the gateway."""
        return f"{self.server}__{tool}"

    async def call(self, tool, _on_progress=None, **arguments):
        """The text that comes of a call."""
        result = await self.client.call_tool(self.spell(tool), arguments, on_progress=_on_progress)
        return result.text


@pytest.mark.parametrize("server", ALL)
@pytest.mark.parametrize("client", ALL)
async def test_a_pairing_of_revisions_has_every_question_and_what_goes_with_a_call(client, server):
    """Ours: forms, pages, sampling, roots, progress, logs, cancellation and tasks, where both have them."""
    user = PairedUser(client, server)
    shared = BY_NAME[min(client, server)]
    async with user.client:
        assert client == user.client.revision.name
        assert "A thought." == await user.call("think", topic="x")
        assert ROOT == await user.call("where")
        if shared.has(Feature.ELICITATION_FORM):
            assert "row 7" == await user.call("ask")
        if shared.has(Feature.ELICITATION_URL):
            assert "paid" == await user.call("pay")
        reports = []
        assert "done" == await user.call("steps", lambda one: reports.append(one.progress))
        assert [1, 2, 3] == reports
        assert "said" == await user.call("chat")
        assert ["loud"] == user.logs
        await cancel(user, f"{client} {server}")
        await run_tasks(user, client)


async def cancel(user, key):
    """Give up a call once it has begun, which the server hears of."""
    begun = asyncio.Event()
    calling = asyncio.ensure_future(user.call("slow", lambda _: begun.set(), key=key))
    await begun.wait()
    calling.cancel()
    await asyncio.wait([calling])
    assert "yes" == await user.call("stopped", key=key)


async def run_tasks(user, client):
    """Run a tool as a task, where the client has such, and as a call, where the server has it as a task only."""
    assert "goose is done" == await user.call("cook", dish="goose")
    if client not in WITH_TASKS:
        return
    task = await user.client.start_tool(user.spell("cook"), {"dish": "duck"})
    assert "duck is done" == (await task.result()).text
    # a client of 2025-11-25 asks for a task; since then the server makes one, or none
    assert (client == "2025-11-25" or user.server in WITH_TASKS) == (task.id is not None)
    if client == "2025-11-25" and user.server >= "2025-06-18":
        asking = await user.client.start_tool(user.spell("ask"))
        assert "row 7" == (await asking.result()).text
