"""The gateway over HTTP: what its transport demands of requests, it demands for the tools of all servers."""

from typing import Annotated

import pytest

from isthmus import Server
from isthmus.server import mirrored
from support.gateway.small_gateway import REVISION_NAMES, make_gateway
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

EVERY_SERVER = pytest.mark.parametrize("revision", REVISION_NAMES)


def make_regional(revision: str) -> Server:
    """A server with an argument that travels in a header."""
    server = Server("shop", revisions=[revision])

    @server.tool
    def where(region: Annotated[str, mirrored("Region")] = "none") -> str:
        """Say where."""
        return region

    return server


async def call_where(revision: str, path: str, tool: str, arguments: object, **headers: str):
    """Call the tool at an endpoint of a gateway; its HTTP answer."""
    async with make_gateway(shop=make_regional(revision)) as gateway:
        app = gateway.asgi()
        body = modern_body(params={"name": tool, "arguments": arguments})
        return await fetch(app, path=path, headers=modern_head(name=tool, **headers), body=body)


@EVERY_SERVER
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {"mcp_param_region": "us"}),
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"mcp_param_region": "=?base64?!?="}),
        ({}, {"mcp_param_region": "eu"}),
    ],
)
async def test_headers_that_differ_from_arguments_are_refused(revision, arguments, headers):
    """-32020 and 400, a MUST (spec: streamable HTTP, server validation)."""
    for path, tool in (("/mcp/shop", "where"), ("/mcp", "shop__where")):
        answer = await call_where(revision, path, tool, arguments, **headers)
        assert 400 == answer.status
        assert -32020 == answer.json["error"]["code"]


@EVERY_SERVER
async def test_headers_that_repeat_arguments_are_accepted(revision):
    """Spec: streamable HTTP, custom headers from tool parameters."""
    for path, tool in (("/mcp/shop", "where"), ("/mcp", "shop__where")):
        answer = await call_where(revision, path, tool, {"region": "eu"}, mcp_param_region="eu")
        assert 200 == answer.status
        assert "eu" == answer.json["result"]["content"][0]["text"]


@pytest.mark.parametrize("arguments", [[1], "text", 7, True])
async def test_arguments_that_are_no_object_are_refused(arguments):
    """-32602: every revision's schema has them as an object."""
    answer = await call_where("2026-07-28", "/mcp/shop", "where", arguments)

    assert -32602 == answer.json["error"]["code"]


async def test_arguments_that_are_nested_too_deeply_are_refused():
    """-32602, as at a server of ours."""
    deep: object = "eu"
    for _ in range(400):
        deep = {"region": deep}
    answer = await call_where("2026-07-28", "/mcp/shop", "where", deep)

    assert -32602 == answer.json["error"]["code"]
