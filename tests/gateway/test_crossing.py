"""Calls that race through a gateway: whatever the order of answers, nobody hears of another's question."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus import Accepted, Client
from isthmus.errors import IsthmusError
from isthmus.gateway import Gateway
from support.gateway.asking_shop import make_asker, make_host
from support.gateway.small_gateway import ALLOW_ALL, make_shop

LEGACY, MODERN = "2025-11-25", "2026-07-28"
NAMES = ("ann", "bob")
CALLS_EACH = 2
PATIENCE_S = 30
INSTANCES = ["auto", "shared", "per-session", "per-user"]


class AnswerDesk:
    """Questions that wait until the schedule has them answered.

    Attributes:
        heard: what each client was asked.
    """

    def __init__(self):
        self.heard = {name: [] for name in NAMES}
        self._pending = []
        self._changed = asyncio.Event()

    def make_answerer(self, name):
        """A function that answers forms with a client's name, once it is its turn."""

        async def elicit(question):
            self.heard[name].append(question.message)
            turn = asyncio.get_running_loop().create_future()
            self._pending.append(turn)
            self._changed.set()
            await turn
            return Accepted({"value": name})

        return elicit

    async def run(self, calls, schedule):
        """Answer one question after the other, as the schedule picks them, until all calls are over."""
        turns, step = list(schedule), 0
        while any(not call.done() for call in calls):
            self._changed.clear()
            if not self._pending:
                changed = asyncio.ensure_future(self._changed.wait())
                waiting = [call for call in calls if not call.done()]
                await asyncio.wait([changed, *waiting], return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                continue
            pick = turns[step % len(turns)] % len(self._pending)
            step += 1
            turn = self._pending.pop(pick)
            if not turn.done():
                turn.set_result(None)
            await asyncio.sleep(0)


@pytest.mark.parametrize("server", [LEGACY, MODERN])
@pytest.mark.parametrize("client", [LEGACY, MODERN])
async def test_a_server_with_a_connection_for_each_session_has_everything(client, server):
    """Ours: it is listed on the connection of all, and used on those of sessions."""
    shop = make_shop(server)
    host = make_host(ALLOW_ALL, ("shop", shop, {"instance": "per-session"}))
    async with (
        Gateway(host) as gateway,
        Client(gateway.server, revision=client) as user,
        user.listen(uris=["shop+shop://catalogue"]) as changes,
    ):
        assert {"shop__add", "shop__order"} == {tool.name for tool in await user.list_tools()}
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
        page = await user.read_resource("shop+shop://catalogue")
        assert "shirts" == page.contents[0].text
        shop.notify_resource_updated("shop://catalogue")
        assert "shop+shop://catalogue" == (await anext(changes)).uri


async def order(user, item):
    """Order something; what was said, or that it was refused."""
    try:
        result = await user.call_tool("shop__order", {"item": item})
    except IsthmusError:
        return "refused"
    return "refused" if result.is_error else result.text


async def race(client, server, instance, schedule):
    """Let two clients order at once; what each was told and asked."""
    desk = AnswerDesk()
    host = make_host(ALLOW_ALL, ("shop", make_asker(server), {"instance": instance}))
    async with (
        Gateway(host) as gateway,
        Client(gateway.server, revision=client, elicit=desk.make_answerer("ann")) as ann,
        Client(gateway.server, revision=client, elicit=desk.make_answerer("bob")) as bob,
    ):
        items = [(name, f"{name}{i}") for i in range(CALLS_EACH) for name in NAMES]
        users = {"ann": ann, "bob": bob}
        calls = [asyncio.ensure_future(order(users[name], item)) for name, item in items]
        async with asyncio.timeout(PATIENCE_S):
            await desk.run(calls, schedule)
        return [
            (name, item, call.result()) for (name, item), call in zip(items, calls, strict=True)
        ], desk


@pytest.mark.parametrize("instance", INSTANCES)
@pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in (LEGACY, MODERN) for other in (LEGACY, MODERN)]
)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(schedule=st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_answers_in_any_order_reach_their_own_call(client, server, instance, schedule):
    """Property: a result has its own client's answer, and a question its own client's item; or it was refused."""
    told, desk = asyncio.run(race(client, server, instance, schedule))

    assert [] == [one for one in told if one[2] not in {f"{one[1]}: {one[0]}", "refused"}]
    for name, questions in desk.heard.items():
        assert [] == [one for one in questions if not one.startswith(f"Which size of {name}")]
    if instance in {"auto", "per-session"} or server == MODERN:
        assert "refused" not in {one[2] for one in told}
