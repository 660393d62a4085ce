"""The supervisor within a whole host: what a caller is told of servers that are not there."""

import asyncio
import sys

import pytest

from isthmus import Command, Server
from isthmus.host.host import Host
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import ServerUnavailable
from support.host.fleet import make_configuration


def desk():
    server = Server("desk")

    @server.tool
    async def note(text: str) -> str:
        """Keep a note."""
        return f"kept: {text}"

    return server


@pytest.mark.covers("hostservers.use.unavailable")
async def test_a_call_at_a_server_that_is_not_there_says_why(tmp_path):
    """Ours: not that there is no such tool, which nobody can know then."""
    host = Host(approver=lambda _asked: True)
    host.add("gone", Command(str(tmp_path / "nothing")))
    host.add("by-hand", desk(), start="manual")
    host.add("off", desk(), enabled=False)
    async with host:
        for name, why in (
            ("gone", "there is no such file"),
            ("by-hand", "isthmus servers start by-hand"),
            ("off", "isthmus servers enable off"),
        ):
            for words in ({"name": "note", "server": name}, {"name": f"{name}__note"}):
                with pytest.raises(ServerUnavailable, match=why):
                    await host.call(arguments={"text": "x"}, **words)


async def test_servers_that_a_program_added_stay_through_reloads_and_calls_through_restarts():
    """Ours: no call is lost to either."""
    host = Host(make_configuration(), approver=lambda _asked: True)
    host.add("desk", desk())
    async with host:
        assert "kept: x" == (await host.call("desk__note", {"text": "x"})).text
        diff = await host.reload(HostConfig())
        assert not diff
        texts = await asyncio.gather(
            *(host.call("desk__note", {"text": str(n)}) for n in range(5)),
            host.servers["desk"].restart(),
        )
    assert [f"kept: {n}" for n in range(5)] == [one.text for one in texts[:-1]]


@pytest.mark.covers("hostservers.era.pinned")
@pytest.mark.parametrize("launched", [False, True], ids=["in-process", "launched"])
async def test_the_era_of_an_entry_is_the_one_that_is_spoken(launched, tmp_path):
    """Ours: a server that speaks all revisions is opened as its entry says."""
    script = tmp_path / "desk.py"
    script.write_text(
        "from isthmus import Server\nserver = Server('desk')\n"
        "@server.tool\ndef note(text: str) -> str:\n    return text\nserver.run()\n"
    )
    host = Host(approver=lambda _asked: True)
    for era in ("auto", "legacy", "modern", "2025-06-18"):
        host.add(era, Command(sys.executable, str(script)) if launched else desk(), era=era)
    async with host:
        await asyncio.gather(*(server.start() for server in host.servers.values()))
        spoken = {name: server.status().revision for name, server in host.servers.items()}

    eras = {"auto": "2026-07-28", "legacy": "2025-11-25", "modern": "2026-07-28"}
    assert {**eras, "2025-06-18": "2025-06-18"} == spoken
