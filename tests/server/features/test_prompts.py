"""Prompts: listed, filled in, and what does not fit."""

import pytest

from isthmus import Audio, Image
from isthmus.errors import ToolError, UsageError
from isthmus.server import Server
from isthmus.wire import (
    BlobResourceContents,
    EmbeddedResource,
    GetPromptResult,
    PromptMessage,
    ResourceLink,
    TextContent,
)
from isthmus.wire import TextResourceContents as TextOf
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def letters():
    server = Server("letters")

    @server.prompt(title="Apology", description="Say sorry.")
    async def apology(name: str, times: int = 1) -> str:
        """Write an apology.

        Args:
            name: whom to apologise to.
            times: how often.
        """
        return f"Sorry {name}" * times

    @server.prompt
    def talk() -> list:
        resource = TextOf(uri="a://b", text="c")
        return ["Hi", ("assistant", "Ho"), EmbeddedResource(resource=resource)]

    @server.prompt
    def whole() -> GetPromptResult:
        said = PromptMessage(role="user", content=TextContent(text="x"))
        return GetPromptResult(messages=[said], description="whole")

    @server.prompt
    def leaves() -> str:
        raise SystemExit

    @server.prompt
    def told() -> str:
        raise ToolError("not today")

    return server


async def get(name, arguments=None, revision=MODERN):
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return await EraClient(letters(), revision).send("prompts/get", params)


@pytest.mark.covers("prompts.list.arguments")
async def test_a_prompt_is_listed_with_its_arguments():
    """Names, descriptions, and whether they are required (spec: prompts, data types)."""
    listed = (await EraClient(letters()).once("prompts/list"))["prompts"]

    assert {
        "name": "apology",
        "title": "Apology",
        "description": "Say sorry.",
        "arguments": [
            {"name": "name", "description": "whom to apologise to.", "required": True},
            {"name": "times", "description": "how often.", "required": False},
        ],
    } == listed[0]
    assert {"name": "talk"} == listed[1]


@BOTH
async def test_text_is_a_message_of_the_users(revision):
    """Arguments are text on the wire and typed in Python (spec: prompts/get)."""
    result = await get("apology", {"name": "ann", "times": "2"}, revision)

    said = {"type": "text", "text": "Sorry annSorry ann"}
    assert [{"role": "user", "content": said}] == result["messages"]
    assert "Say sorry." == result["description"]


@BOTH
@pytest.mark.covers("prompts.messages.all-kinds")
async def test_messages_may_be_of_any_role_and_content(revision):
    """Pairs, blocks and whole messages (spec: prompt messages)."""
    result = await get("talk", None, revision)

    assert ["user", "assistant", "user"] == [message["role"] for message in result["messages"]]
    assert "a://b" == result["messages"][2]["content"]["resource"]["uri"]


async def test_a_whole_result_is_passed_on():
    """An author may build the result himself (our promise)."""
    assert "whole" == (await get("whole"))["description"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("nothing", {}, "Unknown prompt: nothing"),
        ("apology", {}, "name"),
        ("apology", {"name": "a", "more": "b"}, "more"),
        ("apology", {"name": "a", "times": "often"}, "times"),
    ],
)
@pytest.mark.covers("prompts.arguments.checked", "errors.prompts.refused")
async def test_what_does_not_fit_is_refused(name, arguments, said):
    """-32602 (spec: prompts, error handling)."""
    error = await get(name, arguments)

    assert -32602 == error.code
    assert said in error.message


async def test_an_error_meant_to_be_read_is_read():
    """A prompt has no isError: its text is the error's (ours)."""
    error = await get("told")

    assert (-32603, "not today") == (error.code, error.message)


async def test_a_prompt_that_exits_does_not_end_the_server():
    """``sys.exit`` is a failure like any other (ours)."""
    assert -32603 == (await get("leaves")).code


@pytest.mark.covers("divergences.registration.duplicates")
def test_a_name_is_taken_once():
    """Duplicates are an error (decision D17)."""
    with pytest.raises(UsageError, match="there is a prompt 'talk' already"):
        letters().add_prompt(lambda: "", name="talk")


@pytest.mark.covers("prompts.messages.all-kinds")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_every_kind_of_content_may_be_in_a_message(revision):
    """The spec: text, images, audio, links to resources and resources themselves."""
    server = Server("kinds")

    @server.prompt
    def all_kinds():
        note = TextOf(uri="a://b", text="note", mime_type="text/plain")
        blob = BlobResourceContents(uri="a://c", blob="AAAA", mime_type="image/png")
        return [
            "text",
            ("assistant", Image(b"png", format="png")),
            Audio(b"wav", format="wav"),
            ResourceLink(uri="a://b", name="b"),
            EmbeddedResource(resource=note),
            ("user", EmbeddedResource(resource=blob)),
        ]

    result = await EraClient(server, revision).once("prompts/get", {"name": "all_kinds"})

    assert [
        ("user", "text"),
        ("assistant", "image"),
        ("user", "audio"),
        ("user", "resource_link"),
        ("user", "resource"),
        ("user", "resource"),
    ] == [(message["role"], message["content"]["type"]) for message in result["messages"]]
