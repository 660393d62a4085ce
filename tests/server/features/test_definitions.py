"""Definitions: what is wrong with a tool is found before it is offered."""

import logging
from typing import Annotated

import pytest
from msgspec import Meta

from isthmus.errors import UsageError
from isthmus.server import Bounds, Limits, Server, mirrored
from support.server.both_eras import EraClient


@pytest.mark.covers("limits.schemas.no-network")
@pytest.mark.parametrize("side", ["input_schema", "output_schema"])
def test_a_schema_that_leads_outside_is_refused_at_once(side):
    """The spec: MUST NOT be fetched, SHOULD be rejected; ours: at registration, by its name."""
    schema = {"type": "object", "properties": {"a": {"$ref": "https://a.example/s.json"}}}

    with pytest.raises(UsageError, match=r"tool 'x': its (in|out)put schema refers to 'https://a"):
        Server("x").add_tool(lambda: None, name="x", **{side: schema})


@pytest.mark.covers("limits.schemas.bounded")
def test_the_bounds_of_schemas_are_the_servers():
    """The spec: SHOULD be bounded; ours: configurable, and switched off by None."""
    schema = {"type": "object", "properties": {"a": {"anyOf": [{}, {}, {}]}}}

    with pytest.raises(UsageError, match="more than 2 alternatives"):
        Server("x", limits=Limits(schemas=Bounds(choices=2))).add_tool(
            lambda a: None, name="x", input_schema=schema
        )
    Server("x", limits=Limits(schemas=None)).add_tool(lambda a: None, name="x", input_schema=schema)


@pytest.mark.covers("meta.dialects.unknown-named")
def test_a_dialect_nobody_knows_is_refused_by_its_name():
    """The spec: an error MUST say that it is the dialect."""
    with pytest.raises(UsageError, match="dialect that is not supported, 'my:dialect'"):
        Server("x").add_tool(
            lambda: None, name="x", input_schema={"type": "object", "$schema": "my:dialect"}
        )


@pytest.mark.covers("tools.names.recommended")
@pytest.mark.parametrize("name", ["with space", "comma,", "größe", "a/b", "x" * 129])
def test_a_name_that_some_clients_refuse_is_warned_of(name, caplog):
    """The spec: SHOULD be 1 to 128 of certain characters; ours: offered all the same."""
    with caplog.at_level(logging.WARNING, "isthmus"):
        Server("x").add_tool(lambda: None, name=name)

    assert repr(name) in caplog.text


@pytest.mark.parametrize(
    "name", ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b", "x" * 128]
)
def test_a_name_as_recommended_is_not_warned_of(name, caplog):
    """The spec's own examples."""
    with caplog.at_level(logging.WARNING, "isthmus"):
        Server("x").add_tool(lambda: None, name=name)

    assert "" == caplog.text


async def test_an_argument_is_mirrored_by_its_annotation():
    """Ours: no schema need be written for it, and it goes with everything else."""
    server = Server("x")

    @server.tool
    def query(
        region: Annotated[str, mirrored("Region"), "where"],
        limit: Annotated[int, Meta(ge=1), mirrored("Limit")] = 10,
        dry: Annotated[bool | None, mirrored("Dry")] = None,
    ) -> str:
        return region

    (tool,) = (await EraClient(server).once("tools/list"))["tools"]
    assert {"region": "Region", "limit": "Limit", "dry": "Dry"} == {
        name: schema["x-mcp-header"] for name, schema in tool["inputSchema"]["properties"].items()
    }
    assert "where" == tool["inputSchema"]["properties"]["region"]["description"]


@pytest.mark.covers("tools.headers.marks-checked")
@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Annotated[float, mirrored("A")], "must be string, integer or boolean"),
        (Annotated[str, mirrored("")], "cannot be part of a header"),
        (Annotated[str, mirrored("A B")], "cannot be part of a header"),
        (Annotated[str, mirrored("A\r\nB")], "cannot be part of a header"),
        (list[Annotated[str, mirrored("A")]], "outside the chain of properties"),
    ],
)
def test_a_mark_that_clients_must_reject_is_refused_here(annotation, said):
    """The spec: clients MUST exclude such a tool; ours: so its author learns it first."""

    def tool(a):
        return a

    tool.__annotations__ = {"a": annotation, "return": str}
    with pytest.raises(UsageError, match=said):
        Server("x").add_tool(tool)


def test_a_secret_that_is_mirrored_is_warned_of(caplog):
    """The spec: sensitive parameters SHOULD NOT be marked."""
    server = Server("x")
    with caplog.at_level(logging.WARNING, "isthmus"):

        @server.tool
        def query(api_key: Annotated[str, mirrored("Key")]) -> str:
            return ""

    assert "every proxy on the way reads" in caplog.text
