"""Attack: a flood of states that do not open writes a line a minute for each caller, which can forge no other."""

import logging
from types import SimpleNamespace

from isthmus.runtime.warning_limit import MAX_KEYS, WarningLimit
from support.clock import ManualClock
from support.gateway.asking_shop import make_asker
from support.gateway.gateway_users import open_users

MODERN = "2026-07-28"


def set_clock(app, clock):
    """Let the server at ``/mcp`` count the lines of its log by a clock."""
    app._gateway.server._declared.settings.state_warnings = WarningLimit(clock)


async def test_a_flood_of_refused_states_writes_a_line_a_minute_for_each_caller(caplog):
    """Attack: whoever sends states that nobody sealed would fill the disk with lines about them."""
    clock, forged = ManualClock(), {"requestState": "x", "inputRequests": {}}
    async with open_users(shop=make_asker(MODERN)) as (app, ann, bob):
        set_clock(app, clock)
        with caplog.at_level(logging.WARNING, "isthmus"):
            for _ in range(50):
                await ann.order(forged)
                await bob.order(forged)
            flood = list(caplog.messages)
            clock.now += 61
            refused = await ann.order(forged)

    assert "cannot be used here" in refused["message"]
    assert 2 == len(flood), flood
    later = caplog.messages[2:]
    assert ["49 more such warnings in 60 s", "49 more such warnings in 60 s"] == [
        line.partition(": ")[0] for line in later[:-1]
    ]
    assert ["ann" in later[0], "bob" in later[1]] == [True, True]
    assert "requestState refused" in later[-1]


async def test_a_state_of_another_endpoint_is_counted_as_well(caplog):
    """Attack: a state that opens, but belongs elsewhere, is refused as often as one likes."""
    async with open_users(shop=make_asker(MODERN), other=make_asker(MODERN, "other")) as (
        _app,
        ann,
        _bob,
    ):
        asked = await ann.order()
        ann.path = "/mcp/p/none"
        gone = await ann.order(asked)
        ann.path = "/mcp/shop"
        with caplog.at_level(logging.WARNING, "isthmus"):
            for _ in range(20):
                await ann.order(asked, tool="order")

    assert "no such server or profile" in gone["message"]
    assert 1 == len(caplog.messages), caplog.messages


async def test_a_name_with_line_ends_stays_in_its_line(caplog):
    """Attack: the name of what is called is the caller's; it begins no line of the log, and fills none."""
    name = "shop__order\nERROR isthmus the disk is on fire" + "x" * 5_000
    async with open_users(shop=make_asker(MODERN)) as (_app, ann, _bob):
        with caplog.at_level(logging.WARNING, "isthmus"):
            await ann.ask("prompts/get", {"name": name, "requestState": "x"}, "prompt")
            params = {"ref": {"type": "ref/prompt", "name": name}}
            params["argument"] = {"name": "a", "value": ""}
            await ann.ask("completion/complete", params)
            await ann.ask("tools/call", {"name": name, "requestState": "x", "arguments": {}}, name)

    lines = [line for record in caplog.messages for line in record.splitlines()]
    assert len(caplog.messages) == len(lines)
    assert all(len(line) < 1_000 for line in lines)


def test_callers_beyond_number_share_a_line(caplog):
    """Ours: who can make up callers cannot make up lines."""
    clock = ManualClock()
    limit = WarningLimit(clock)
    with caplog.at_level(logging.WARNING, "isthmus"):
        for number in range(MAX_KEYS + 500):
            limit.warn(number, f"caller {number}", "%s", SimpleNamespace(number=number))
        written = len(caplog.messages)
        clock.now += 61
        limit.warn(1, "caller 1", "again")

    assert MAX_KEYS + 1 == written
    assert ["499 more such warnings in 60 s: other callers", "again"] == caplog.messages[-2:]
