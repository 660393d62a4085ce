"""Where servers of a host may work, as they hear of it while folders go and come back."""

import asyncio

import pytest
from msgspec import Raw

from isthmus.host import Host
from isthmus.host.model.entries import HostConfig, HostOptions, RootEntry
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.revisions import LEGACY
from isthmus.wire import ListRootsParams
from support.client.small_server import SmallServer, any_tool, text_result

CALLS = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = "tool.call" }\n'
CHANGED = "notifications/roots/list_changed"


class Heard(list):
    """What a server was told, and a queue of it."""

    def __init__(self):
        self.queue = asyncio.Queue()

    def append(self, method):
        """One more."""
        super().append(method)
        if method == CHANGED:
            self.queue.put_nowait(method)


def curious(revision):
    """A server that says which folders it is told of."""

    async def call(_params, inbound):
        said = await inbound.link.call("roots/list", ListRootsParams(), Raw)
        return text_result(bytes(said).decode())

    server = SmallServer({"tools/call": call}, tools=[any_tool()], revisions=[revision])
    server.noted = Heard()
    return server


@pytest.mark.parametrize("revision", [revision.name for revision in LEGACY])
@pytest.mark.covers("hostconfig.roots.changed-told", "hostconfig.roots.watched")
async def test_a_session_is_told_of_its_folders_and_of_no_others(revision, tmp_path):
    """Spec 2025-11-25 client/roots#root-list-changes: who was granted one hears that it has gone."""
    work = tmp_path / "work"
    work.mkdir()
    files, other = curious(revision), curious(revision)
    host = Host(
        HostConfig(options=HostOptions(roots=(RootEntry(path=str(work)),))),
        approver=lambda interaction: interaction.attempt.server == "files",
        policy=Policy.of(read_layers(CALLS, "user")),
    )
    host.add("files", files)
    host.add("other", other)
    async with host:
        first = [work.name in (await host.call(f"{name}__add")).text for name in host.servers]
        work.rmdir()
        await files.noted.queue.get()
        gone = (await host.call("files__add")).text
        work.mkdir()
        await files.noted.queue.get()
        back = (await host.call("files__add")).text

    assert [True, False] == first
    assert work.name not in gone
    assert work.name in back
    assert 0 == other.noted.count(CHANGED)
