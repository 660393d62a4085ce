"""``ctx.read_resource``: a server's own resources, read by its tools as their caller might."""

import pytest

from isthmus import Context, Server
from isthmus.core.principal import Principal
from isthmus.runtime.channel import Origin
from isthmus.testing import connect, every_revision
from support.auth.protected_server import make_guard
from support.server.both_eras import EraClient, tool_text


def make_server(**settings):
    """A server whose tool reads any of its resources."""
    server = Server("reads", debug=True, **settings)

    @server.resource("notes://{id}")
    async def note(id: str, ctx: Context) -> str | None:
        return None if id == "gone" else f"note {id} for {ctx.method}"

    @server.resource("blob://all")
    async def blob() -> bytes:
        return b"\x00\x01"

    @server.resource("secret://all", scopes={"secrets"})
    async def secret() -> str:
        return "secret"

    @server.resource("asks://all")
    async def asks(ctx: Context) -> str:
        return str(await ctx.elicit("Sure?", bool))

    @server.tool
    async def show(uri: str, ctx: Context) -> list[str]:
        read = await ctx.read_resource(uri)
        return [getattr(one, "text", None) or one.blob for one in read.contents]

    return server


@every_revision
async def test_a_tool_reads_text_and_bytes_at_uris_and_templates(revision):
    """The result is as of a client's read_resource."""
    async with connect(make_server(), revision=revision) as client:
        note = await client.call_tool("show", {"uri": "notes://7"})
        blob = await client.call_tool("show", {"uri": "blob://all"})

    assert "note 7 for resources/read" in note.text
    assert "AAE=" in blob.text


@pytest.mark.parametrize("uri", ["notes://gone", "none://x", "x" * 5000])
async def test_what_is_not_there_is_an_error_that_a_model_can_read(uri):
    """The tool's call is not refused: the URI may be the model's."""
    async with connect(make_server()) as client:
        answer = await client.call_tool("show", {"uri": uri})

    assert answer.is_error
    assert answer.text.startswith("Resource not found: ")


async def test_a_layer_around_everything_sees_it_too():
    """Middleware, which may refuse, is not gone round."""
    seen = []

    async def layer(inbound, call_next):
        seen.append(inbound.method)
        return await call_next(inbound)

    async with connect(make_server(middleware=[layer]), revision="2025-11-25") as client:
        answer = await client.call_tool("show", {"uri": "notes://7"})

    assert ["tools/call", "resources/read"] == seen[-2:]
    assert not answer.is_error


async def test_scopes_of_the_resource_are_those_of_the_caller():
    """Attack: a tool that everybody may call is no way to what not everybody may read."""
    server = make_server(auth=make_guard())
    for scopes, told in ((set(), "needs secrets"), ({"secrets"}, "secret")):
        who = Principal(issuer="https://a", subject="ann", scopes=frozenset(scopes))
        client = EraClient(server, principal=who)
        answer = await client.call(
            "show", {"uri": "secret://all"}, origin=Origin("http", principal=who)
        )
        assert told in tool_text(answer)
        assert answer.get("isError", False) is not bool(scopes)


async def test_a_resource_that_asks_is_told_to_its_author():
    """A question since 2026-07-28 is a result, and the tool's call has another one."""
    async with connect(make_server(), revision="2026-07-28", elicit=lambda _: None) as client:
        answer = await client.call_tool("show", {"uri": "asks://all"})

    assert "it asks the user" in answer.text
