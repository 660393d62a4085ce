"""Attacks on mounted servers: names that look like those of another, and URIs that lead out."""

import pytest

from isthmus import Server
from isthmus.errors import InvalidParams, Refused
from isthmus.testing import connect
from isthmus.types import PromptReference, ResourceTemplateReference


def files(name):
    """A server that reads any URI below its own, and says so."""
    server = Server(name)

    @server.resource("files://{+path}")
    def read(path: str) -> str:
        return f"{name} reads {path}"

    @server.tool
    def x() -> str:
        return f"{name}: x"

    @server.tool
    def b_x() -> str:
        return f"{name}: b_x"

    @server.prompt
    def p(name: str) -> str:
        return name

    server.completes("p", "name")(lambda: ["x"])
    server.completes("files://{+path}", "path")(lambda: ["x"])
    return server


def house():
    """An outer server with secrets of its own, and two mounts of prefixes that begin alike."""
    outer = Server("outer")

    @outer.resource("files://private/key")
    def key() -> str:
        return "the key"

    @outer.resource("files://%61/own")
    def odd() -> str:
        return "own"

    a, ab = files("a"), Server("ab")
    ab.add_tool(lambda: "ab: y", name="y", description="Y.")
    outer.mount(a, "a")
    outer.mount(ab, "a_b")
    return outer


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("files://a//private/key", "a reads /private/key"),
        ("files://a/a/a", "a reads a/a"),
        ("files://%61/own", "own"),
        ("files://private/key", "the key"),
    ],
)
async def test_a_uri_never_leads_out_of_its_mount(uri, text):
    """Ours: nothing is decoded or normalised on the way in, so the prefix decides."""
    async with connect(house()) as client:
        assert text == (await client.read_resource(uri)).contents[0].text


@pytest.mark.parametrize(
    "uri",
    [
        *("files://A/x", "files://a", "files://a%2fx", "files:a/x", "files:a:x", "FILES://a/x"),
        *("files:///a/x", "files://a_b/x", "files://b/x", "files://./a/x", "a/x", ""),
        *(
            "files://a/../private/key",
            "files://a/%2e%2e/private/key",
            "files://a/x/../../private/key",
        ),
    ],
)
async def test_what_has_not_the_very_prefix_is_unknown(uri):
    """Ours: case, slashes and dots are those of the prefix, or it is none."""
    async with connect(house()) as client:
        with pytest.raises(Refused, match="not found"):
            await client.read_resource(uri)


async def test_prefixes_that_begin_alike_are_not_mixed_up():
    """Ours: a name is whose it is, not whose prefix it begins with."""
    async with connect(house()) as client:
        said = [(await client.call_tool(name)).text for name in ("a_x", "a_b_x", "a_b_y")]

    assert ["a: x", "a: b_x", "ab: y"] == said


@pytest.mark.parametrize("name", ["x", "a_", "a", "_x", "a__x", "A_x", "a_b_z", "a_b_b_x", "a x"])
async def test_other_spellings_of_a_name_are_unknown_tools(name):
    """Spec server/tools: an unknown tool is a protocol error, whatever it looks like."""
    async with connect(house()) as client:
        with pytest.raises(InvalidParams, match="Unknown tool"):
            await client.call_tool(name)


@pytest.mark.parametrize(
    "ref",
    [
        *(PromptReference(name="p"), PromptReference(name="a_b_p")),
        *(ResourceTemplateReference(uri=uri) for uri in ("files://{+path}", "files://b/{+path}")),
    ],
)
async def test_completions_are_for_names_that_clients_see(ref):
    """Ours: the inner name is no second way in."""
    async with connect(house()) as client:
        with pytest.raises(InvalidParams, match="Unknown prompt or resource template"):
            await client.complete(ref, "path", "x")
