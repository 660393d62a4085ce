"""MCP Apps: what a host needs to show a tool's page passes through intact."""

import pytest

from isthmus import Context, Server
from isthmus.revisions import BY_NAME
from isthmus.testing import every_revision, every_transport
from isthmus.types import CallToolResult, TextContent, TextResourceContents, Tool

pytestmark = [every_revision(), every_transport()]

UI = "io.modelcontextprotocol/ui"
HTML = "text/html;profile=mcp-app"
PAGE = "ui://weather/map.html"
NAMED = {"resourceUri": PAGE, "visibility": ["model", "app"]}
ASKS = {
    "csp": {"connectDomains": ["https://tiles.example.com"], "resourceDomains": []},
    "permissions": {"geolocation": {}},
    "domain": "a1b2",
    "prefersBorder": True,
    "anything": {"new": [1, None, 2.5]},
}
BODY = "<!doctype html><script>/* ✓ </script> & \u2028 */</script>"


def weather(said=None):
    server = Server("weather", version="1", extensions={UI: {}})

    @server.resource(PAGE, mime_type=HTML, meta={"ui": ASKS})
    def page() -> TextResourceContents:
        """A map."""
        return TextResourceContents(uri=PAGE, mime_type=HTML, text=BODY, meta={"ui": ASKS})

    @server.tool(meta={"ui": NAMED, "com.example/x": 1})
    def show(ctx: Context) -> CallToolResult:
        """Show the weather."""
        if said is not None:
            said.update(ctx.meta, shown=ctx.extension(UI))
        return CallToolResult(
            content=[TextContent(text="sunny")], meta={"ui": {"theme": "dark"}, "com.example/y": []}
        )

    return server


@pytest.mark.covers("apps.tools.ui-named")
async def test_a_tool_names_its_page(joined, revision):
    """``_meta.ui`` of a tool, wherever tools have ``_meta`` (extension MCP Apps, overview)."""
    async with joined(weather()) as client:
        (tool,) = await client.list_tools()

    if "meta" in BY_NAME[revision].members[Tool]:
        assert {"ui": NAMED, "com.example/x": 1} == tool.meta


@pytest.mark.covers("apps.resources.intact")
async def test_a_page_is_read_as_it_was_written(joined, revision):
    """The URI, the media type with its profile, the text and ``_meta.ui`` (MCP Apps, overview)."""
    async with joined(weather()) as client:
        (listed,) = await client.list_resources()
        (page,) = (await client.read_resource(PAGE)).contents

    assert (PAGE, HTML) == (listed.uri, listed.mime_type)
    assert (PAGE, HTML, BODY) == (page.uri, page.mime_type, page.text)
    if "meta" in BY_NAME[revision].members[TextResourceContents]:
        assert {"ui": ASKS} == page.meta
        assert {"ui": ASKS} == listed.meta


@pytest.mark.covers("apps.meta.both-directions")
async def test_meta_of_a_call_and_of_its_result_arrive(joined, revision):
    """What either side adds to ``_meta`` under names of its own is left alone (spec: basic)."""
    said = {}
    async with joined(weather(said)) as client:
        result = await client.call_tool("show", meta={"ui": {"instance": 7}, "com.example/z": None})

    assert {"instance": 7} == said["ui"]
    assert said["com.example/z"] is None
    assert ({"theme": "dark"}, []) == (result.meta["ui"], result.meta["com.example/y"])


@pytest.mark.covers("apps.negotiation.host-declares")
async def test_a_server_knows_what_a_host_can_show(joined, revision):
    """The host declares the media types it shows (MCP Apps; 2026-07-28 basic/versioning)."""
    said, declared = {}, {UI: {"mimeTypes": [HTML]}}
    async with joined(weather(said), extensions=declared) as client:
        offered = client.extension(UI)
        await client.call_tool("show")

    negotiated = BY_NAME[revision].name >= "2026-07-28"
    assert (declared[UI] if negotiated else None) == said["shown"]
    assert ({} if negotiated else None) == offered
