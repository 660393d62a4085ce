"""Settings of a server that was made elsewhere are changed before it serves."""

import pytest

from isthmus import Context, Server
from isthmus.errors import UsageError
from isthmus.server import Limits, Rate, Redact, Sanitise
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def imported():
    """A server as another module makes it, with its tools declared already."""
    server = Server("s", instructions="old")

    @server.tool
    def fail() -> str:
        raise ValueError("secret words")

    @server.tool
    def long() -> str:
        return "x" * 100

    @server.tool
    async def tell(ctx: Context) -> str:
        ctx.log.info("hi", iban="DE1")
        return "told"

    return server


@BOTH
async def test_limits_that_are_set_later_hold(revision):
    """Rates, threads and what the router bounds, though the tools were there before."""
    server = imported()
    server.configure(limits=Limits(tool_calls=Rate(1, 60), threads=1, in_flight=3))
    client = EraClient(server, revision)
    assert "x" * 100 == tool_text(await client.call("long"))
    assert -31429 == (await client.call("long")).code
    assert 1 == server._settings.workers._limit
    assert 3 == server.router.in_flight


@BOTH
async def test_other_settings_hold_too(revision):
    """Errors in words, cleaning, pages, rounds and the instructions."""
    server = imported()
    server.configure(
        debug=True,
        sanitise=Sanitise(most=10),
        redact=Redact(names=["iban"]),
        page_size=1,
        instructions="new",
    )
    client = EraClient(server, revision)
    assert "secret words" in tool_text(await client.call("fail"))
    assert len(tool_text(await client.call("long"))) < 100
    assert 1 == len((await client.send("tools/list", {}))["tools"])


async def test_instructions_are_told_to_who_opens():
    """Those that were set last."""
    server = imported()
    server.configure(instructions="new")
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    assert "new" == (await EraClient(server, LEGACY).send("initialize", params))["instructions"]


async def test_settings_that_are_not_named_stay():
    """One setting leaves the others alone."""
    server = Server("s", debug=True, ping_every=5.0, ping_misses=2, page_size=7)
    server.configure(ping_misses=4)
    assert (5.0, 4) == (server._pings.every, server._pings.misses)
    assert 7 == server._settings.page_size
    assert server._settings.debug


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": "x"}, "there is no option 'name'; there are: instructions"),
        ({"auth": None}, "there is no option 'auth'"),
        ({"limits": 5}, r"limits= takes isthmus.server.Limits\(…\)"),
        ({"secret": b"short"}, "16 random bytes"),
        ({"ping_misses": 0}, "ping_misses=0"),
    ],
)
def test_settings_that_cannot_be_changed_are_refused(settings, said):
    """With the settings that can."""
    with pytest.raises(UsageError, match=said):
        imported().configure(**settings)


async def test_a_server_that_serves_is_not_changed():
    """Calls under way would see half of it."""
    server = imported()
    _ = server.router
    with pytest.raises(UsageError, match="a server must be configured before it serves"):
        server.configure(debug=True)
