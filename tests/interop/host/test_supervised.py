"""The supervisor with servers that other people wrote: started, used, stopped, started again."""

import pytest

from isthmus import Accepted, Client
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.host.supervisor.targets import get_pinned_revision, make_target

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


@pytest.fixture
async def supervisor(theirs, tmp_path):
    """Keeps the five; whoever asks is answered by a script."""

    def client_for(entry, _isolation):
        return Client(
            make_target(entry),
            revision=get_pinned_revision(entry),
            roots=[str(tmp_path / "shared")],
            elicit=lambda _question: Accepted({"name": "Ada", "integer": 42}),
            sample=lambda _request: "a sampled answer",
            on_log=made.servers[entry.name].keep_log,
        )

    async with Supervisor(theirs, client_for) as made:
        yield made


async def text(supervisor, server, tool, **arguments):
    async with supervisor.use(server) as client:
        return (await client.call_tool(tool, arguments)).text


async def roots_arrived(supervisor):
    """Server-filesystem asks for the roots after it has said that it is ready."""
    for _ in range(1000):
        if "shared" in await text(supervisor, "filesystem", "list_allowed_directories"):
            return


async def test_all_five_start_beside_each_other_and_list_their_tools(supervisor):
    """Each is started by its first use; what it says of itself is there, and its process."""
    found = {}
    for name in supervisor.servers:
        async with supervisor.use(name) as client:
            found[name] = {tool.name for tool in await client.list_tools()}
    assert "convert_time" in found["time"]
    assert "git_log" in found["git"]
    assert "echo" in found["everything"]
    assert "read_text_file" in found["filesystem"]
    assert "create_entities" in found["memory"]
    states = [server.status() for server in supervisor.servers.values()]
    assert ["ready"] * 5 == [one.state for one in states]
    assert all(one.pid and one.revision and one.said for one in states)


async def test_what_they_do_is_what_they_say(supervisor, tmp_path):
    """A call of each: time, a log, an echo, a file within the roots, an entity that is kept."""
    assert "UTC" in await text(supervisor, "time", "get_current_time", timezone="UTC")
    log = await text(supervisor, "git", "git_log", repo_path=str(tmp_path / "repo"))
    assert "The first notes" in log
    assert "Echo: hi" == await text(supervisor, "everything", "echo", message="hi")
    await roots_arrived(supervisor)
    path = str(tmp_path / "shared" / "list.txt")
    assert "milk" in await text(supervisor, "filesystem", "read_text_file", path=path)
    refused = await text(supervisor, "filesystem", "read_text_file", path="/etc/hostname")
    assert "denied" in refused.lower()
    ada = [{"name": "Ada", "entityType": "person", "observations": ["likes bridges"]}]
    await text(supervisor, "memory", "create_entities", entities=ada)
    await supervisor.servers["memory"].restart()
    assert "likes bridges" in await text(supervisor, "memory", "read_graph")


async def test_server_everything_asks_and_is_answered(supervisor):
    """Sampling, a form and roots, in the course of calls."""
    sampled = await text(supervisor, "everything", "trigger-sampling-request", prompt="x")
    assert "a sampled answer" in sampled
    assert "Ada" in await text(supervisor, "everything", "trigger-elicitation-request")
    assert "shared" in await text(supervisor, "everything", "get-roots-list")
