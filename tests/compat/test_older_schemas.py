"""Output schemas of tools of ``mcp`` 1.x that return content blocks."""

import pytest
from pydantic import BaseModel

from isthmus import Client

pytestmark = pytest.mark.usefixtures("facades")


async def list_schemas(*functions):
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("older")
    for function in functions:
        server.tool()(function)
    async with Client(server.make_isthmus_server(), revision="2025-11-25") as client:
        return {tool.name: tool.output_schema for tool in await client.list_tools()}


async def test_a_schema_of_content_blocks_is_that_of_mcp_1():
    """Façade of mcp 1.x: the member ``type`` is required, and only what 1.x knows is listed."""
    from mcp.types import ResourceLink, TextContent

    def say() -> TextContent: ...

    def find() -> list[TextContent | ResourceLink]: ...

    made = await list_schemas(say, find)
    text = made["say"]
    assert text["description"] == "Text content for a message."
    assert text["required"] == ["type", "text"]
    assert text["properties"]["type"] == {"const": "text", "title": "Type", "type": "string"}
    annotations = text["$defs"]["Annotations"]["properties"]
    assert [*annotations] == ["audience", "priority"]
    assert annotations["priority"]["anyOf"][0] == {"maximum": 1.0, "minimum": 0.0, "type": "number"}
    link = made["find"]["$defs"]["ResourceLink"]
    assert link["required"] == ["name", "uri", "type"]
    assert link["properties"]["uri"]["format"] == "uri"


async def test_a_type_of_the_program_that_has_a_name_of_the_protocol_stays_as_it_is():
    """Façade of mcp 1.x: a model ``Icon`` of the author's own is listed as he wrote it."""

    class Icon(BaseModel):
        theme: str = "dark"

    def paint() -> Icon: ...

    made = await list_schemas(paint)
    assert made["paint"] == Icon.model_json_schema()
