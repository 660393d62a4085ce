"""Who calls, as a parameter: filled by the server, and never by a caller."""

from typing import Annotated

import pytest

from isthmus import Context, Principal, Server
from isthmus.errors import Refused, UsageError
from isthmus.server.asking.context import Context as ServerContext
from isthmus.server.schema.signatures import read_signature
from isthmus.testing import connect
from support.auth.protected_server import begin_request_as, call_tool_as, make_guard

pytestmark = pytest.mark.usefixtures("secret_watch")


def takes(annotation):
    """A function with a parameter of a type."""

    def fn(text: str, who) -> str:
        return text

    fn.__annotations__["who"] = annotation
    return fn


@pytest.mark.parametrize(
    ("annotation", "source"),
    [
        (Principal, "authenticated"),
        ("Principal", "authenticated"),
        (Principal | None, "principal"),
        (Annotated[Principal, "whoever calls"], "authenticated"),
        (Context, ""),
    ],
)
def test_a_parameter_of_the_type_is_filled_from_the_context(annotation, source):
    """Ours: the same way as the context itself, and no part of what a caller fills."""
    signature = read_signature(takes(annotation), ServerContext)

    assert {"who": source} == signature.filled
    assert ["text"] == [parameter.name for parameter in signature.parameters]


def test_two_parameters_for_one_thing_are_a_mistake():
    """Ours: as with two contexts."""

    def fn(a: Principal, b: Principal) -> str:
        return ""

    with pytest.raises(UsageError, match="both take the authenticated"):
        read_signature(fn, ServerContext)


def a_server():
    """A server of which everything takes who calls."""
    server = Server("names", version="1", auth=make_guard(anonymous={"tools/call"}))

    @server.tool
    def sync(text: str, who: Principal, ctx: Context) -> str:
        return f"{text} {who.subject} {ctx.principal is who}"

    @server.tool
    async def perhaps(who: Principal | None, text: str = "hello") -> str:
        return f"{text} {who.subject if who else 'nobody'}"

    @server.resource("me://name")
    async def name(who: Principal) -> str:
        return who.subject

    @server.prompt
    async def greet(tone: str, who: Principal) -> str:
        return f"Greet {who.subject} in a {tone} tone."

    return server


def text(answer):
    """What a call gave."""
    return answer.json["result"]["content"][0]["text"]


@pytest.mark.covers("auth.resource.identity-verified")
async def test_tools_resources_and_prompts_are_given_who_calls():
    """Spec 2025-11-25 client/elicitation#identifying-the-user: from the token, not from the client's word."""
    app = a_server().asgi()

    read = await begin_request_as(app, "ada", "resources/read", {"uri": "me://name"}).done()
    got = await begin_request_as(
        app, "ada", "prompts/get", {"name": "greet", "arguments": {"tone": "warm"}}
    ).done()

    assert "hi ada True" == text(await call_tool_as(app, "ada", "sync", text="hi"))
    assert "hello bob" == text(await call_tool_as(app, "bob", "perhaps"))
    assert "ada" == read.json["result"]["contents"][0]["text"]
    assert "Greet ada in a warm tone." == got.json["result"]["messages"][0]["content"]["text"]


@pytest.mark.covers("auth.resource.identity-verified")
async def test_a_caller_cannot_say_who_they_are():
    """Ours: the parameter is in no schema, and an argument of its name is one too many."""
    server = a_server()
    app = server.asgi()

    forged = await call_tool_as(app, "ada", "perhaps", who={"issuer": "x", "subject": "root"})
    listed = await begin_request_as(app, "ada", "tools/list", {}).done()

    assert forged.json["result"]["isError"]
    assert [["text"], ["text"]] == [
        list(tool["inputSchema"]["properties"]) for tool in listed.json["result"]["tools"]
    ]


async def test_where_nobody_has_authenticated_who_must_be_there_is_missed_clearly():
    """Ours: the body is not run, and who may be None is None."""
    server = a_server()
    app = server.asgi()

    refused = await call_tool_as(app, None, "sync", text="hi")

    assert -31401 == refused.json["error"]["code"]
    assert "authenticated caller" in refused.json["error"]["message"]
    assert "hello nobody" == text(await call_tool_as(app, None, "perhaps"))
    async with connect(server) as client:
        with pytest.raises(Refused, match="over memory nobody has authenticated"):
            await client.call_tool("sync", {"text": "hi"})
