"""Limits, files and safe output: the same over every transport, in every revision."""

import pytest

from isthmus import Context, Server
from isthmus.errors import Refused, ResourceNotFound
from isthmus.server import Limits, Rate
from isthmus.testing import every_revision, every_transport

pytestmark = [every_revision(), every_transport()]


@pytest.fixture
def server(tmp_path):
    """A server with a folder and a flood."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a b.md").write_text("# page")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "docs" / "link").symlink_to(tmp_path / "secret")
    server = Server("guarded", version="1", limits=Limits(progress=Rate(2, 3600)))
    server.add_directory(tmp_path / "docs", "docs://")

    @server.tool
    async def flood(ctx: Context) -> str:
        """Report more than anybody can read."""
        for step in range(200):
            await ctx.progress(step, 199)
        return "name\udcff \x1b[31mred\x1b[0m"

    return server


@pytest.mark.covers("progress.rate.newest-wins", "tools.output.no-lone-surrogates")
async def test_the_last_report_comes_before_an_answer_that_is_safe_to_show(joined, server):
    """The spec: progress SHOULD be limited and MUST end with the answer; output MUST be safe."""
    async with joined(server) as client:
        for _ in range(2):  # what one call has said is not taken from the next
            steps = []
            result = await client.call_tool("flood", on_progress=steps.append)
            assert "name\ufffd red" == result.text
            assert [0, 1, 199] == [step.progress for step in steps]


@pytest.mark.covers("resources.files.no-way-out")
async def test_files_are_read_and_nothing_leads_out(joined, server):
    """The spec: servers MUST sanitise file paths."""
    async with joined(server) as client:
        listed = {resource.uri for resource in await client.list_resources()}
        page = await client.read_resource("docs://a%20b.md")
        for uri in ("docs://../secret", "docs://..%2Fsecret", "docs://link"):
            with pytest.raises(ResourceNotFound):
                await client.read_resource(uri)

    assert {"docs://", "docs://a%20b.md"} == listed
    assert "# page" == page.contents[0].text


@pytest.mark.covers("limits.tool-calls.refused")
async def test_too_many_calls_are_refused_and_the_connection_lives(joined):
    """The spec: servers MUST rate limit; ours: by an error, and other requests go on."""
    server = Server("busy", version="1", limits=Limits(tool_calls=Rate(2, 3600)))
    server.add_tool(lambda: "done", name="tool")

    async with joined(server) as client:
        said = [(await client.call_tool("tool")).text for _ in range(2)]
        with pytest.raises(Refused) as refused:
            await client.call_tool("tool")
        tools = await client.list_tools()

    assert ["done", "done"] == said
    assert (-31429, "tool_calls") == (refused.value.code, refused.value.data["limit"])
    assert ["tool"] == [tool.name for tool in tools]
