"""Everything a server can offer, in one file: the server that the official conformance suite tests.

``isthmus run examples/everything.py --http 127.0.0.1:3000`` serves it; ``make conformance`` runs the
suite against it. The names and texts are the suite's.
"""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from isthmus import Accepted, Audio, Context, Image, Refuse, Server, ToolError
from isthmus.types import (
    EmbeddedResource,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

server = Server(
    "everything",
    version="1.0",
    title="Everything",
    instructions="A server with one of everything, for tests.",
)

server.add_skills(Path(__file__).parent / "skills")  # needs isthmus[yaml]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")
PAUSE = 0.05


def text_resource(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    """A text resource inside a message."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, text=text, mime_type=kind))


def user(content: Any) -> PromptMessage:
    """What the user says in a prompt."""
    return PromptMessage(role="user", content=content)


# Content, and what a tool does while it runs


@server.tool
def test_simple_text() -> str:
    """Return one text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Return one picture."""
    return Image(PNG, format="png")


@server.tool
def test_audio_content() -> Audio:
    """Return one sound."""
    return Audio(WAV, format="wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource's contents."""
    return text_resource("test://embedded-resource", "This is an embedded resource content.")


@server.tool
def test_multiple_content_types() -> list[Any]:
    """Return a text, a picture and a resource."""
    return [
        TextContent(text="Multiple content types test:"),
        Image(PNG, format="png").to_content(),
        text_resource(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ]


@server.tool
def test_error_handling() -> str:
    """Fail, always."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let go of the connection before the answer; the client comes back for it."""
    await ctx.close_stream(retry=0.1)
    await asyncio.sleep(0.2)
    return "Reconnection test completed"


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Say three things to the log."""
    ctx.log.info("Tool execution started")
    await asyncio.sleep(PAUSE)
    ctx.log.info("Tool processing data")
    await asyncio.sleep(PAUSE)
    ctx.log.info("Tool execution completed")
    return "Logged three times."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Say one thing to the log, if the caller wants to hear it."""
    ctx.log.info("heard only on request")
    return "Logged."


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.progress(done, total=100, message=f"{done} of 100")
        await asyncio.sleep(PAUSE)
    return "Done."


# Asking


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the user's model."""
    reply = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {reply.text}"


class Contact(Struct):
    """Who the user is."""

    username: Annotated[str, Meta(description="User name")]
    email: Annotated[str, Meta(description="Where to write to")]


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user for a name and an address."""
    answer = await ctx.elicit(message, Contact)
    return f"User response: {answer}"


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user something without a stream to ask on."""
    return f"User response: {await ctx.elicit('Who are you?', Contact)}"


class Defaults(Struct):
    """A form in which everything is filled in already."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default in every blank."""
    return f"User response: {await ctx.elicit('Please check these', Defaults)}"


OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option 1", "Option 2", "Option 3"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with every kind of choice there is."""
    return f"User response: {await ctx.elicit('Please choose', ENUMS)}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need the user's model, whether the client has one or not."""
    return (await ctx.sample("Hello", max_tokens=10)).text


# Questions in results: the same calls, with the keys that the suite looks for


class Name(Struct):
    """A name."""

    name: str


class Color(Struct):
    """A colour."""

    color: str


class Confirmation(Struct):
    """Yes or no."""

    ok: bool


def greeting(answer: Any) -> str:
    """A greeting for whoever answered."""
    return f"Hello, {answer.value.name if isinstance(answer, Accepted) else 'whoever you are'}!"


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name and greet."""
    return greeting(await ctx.elicit("What is your name?", Name, key="user_name"))


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the user's model for a capital."""
    question = "What is the capital of France?"
    reply = await ctx.sample(question, max_tokens=100, key="capital_question")
    return reply.text


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    roots = await ctx.roots(key="client_roots")
    return f"{len(roots)} roots: {', '.join(root.uri for root in roots)}"


@server.tool(name="test_input_required_result_tampered_state")
@server.tool(name="test_input_required_result_request_state")
async def confirmed(ctx: Context) -> str:
    """Ask, with a state that nobody may change, and prove that it came back."""
    return f"state-ok: {await ctx.elicit('Please confirm', Confirmation, key='confirm')}"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three things at once."""
    name, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", Name, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{greeting.text} {name} ({len(roots)} roots)"


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one thing after the other."""
    name = await ctx.elicit("What is your name?", Name, key="step1")
    color = await ctx.elicit("What is your favourite colour?", Color, key="step2")
    return f"{name} likes {color}"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what the client said it can answer."""
    heard = []
    if ctx.capabilities.sampling:
        heard.append((await ctx.sample("Say hello", max_tokens=20, key="greeting")).text)
    if ctx.capabilities.elicitation:
        heard.append(str(await ctx.elicit("What is your name?", Name, key="user_name")))
    return "; ".join(heard) or "nobody to ask"


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask for the context before the prompt is written."""

    class Background(Struct):
        context: str

    answer = await ctx.elicit("What context should the prompt use?", Background, key="user_context")
    return f"Use this context: {answer}"


# Schemas and headers

SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=SCHEMA_2020_12)
def json_schema_2020_12_tool(
    name: str = "",
    address: dict[str, str] | None = None,
    contactMethod: Literal["phone", "email"] = "email",  # noqa: N803 - the suite's name
    phone: str = "",
    email: str = "",
) -> str:
    """Take what a rich schema allows."""
    return f"{name} at {address}, by {contactMethod}: {phone or email}"


@server.tool
def mirrored_region(
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})] = "",
) -> str:
    """Take an argument that is mirrored into a header."""
    return f"Region: {region}"


# Changes

appeared: set[str] = set()


def toggle(name: str, add: Callable[..., None], remove: Callable[[str], None]) -> None:
    """Offer something that is not offered, or take it away again."""
    if name in appeared:
        remove(name)
    else:
        add(lambda: "new", name=name, description="Comes and goes.")
    appeared.symmetric_difference_update({name})


@server.tool
def test_trigger_tool_change() -> str:
    """Change the list of tools."""
    toggle("test_appears", server.add_tool, server.remove_tool)
    return "Tools changed."


@server.tool
def test_trigger_prompt_change() -> str:
    """Change the list of prompts."""
    toggle("test_appears_too", server.add_prompt, server.remove_prompt)
    return "Prompts changed."


# Tasks: calls whose results are fetched later


@server.tool
def greet(name: str = "World") -> str:
    """Greet somebody, at once."""
    return f"Hello, {name}!"


@server.tool(task="optional")
async def slow_compute(ctx: Context, seconds: float = 1.0, label: str = "work") -> str:
    """Take a while."""
    await ctx.progress(0, total=seconds, message=f"{label}: this takes {seconds:g} s")
    await asyncio.sleep(seconds)
    return f"{label}: done after {seconds:g} s"


@server.tool(task="required")
async def failing_job() -> str:
    """Fail after a second, as tools do."""
    await asyncio.sleep(1)
    raise ToolError("This job always fails")


@server.tool(task="optional")
async def protocol_error_job() -> str:
    """Fail as requests do."""
    await asyncio.sleep(PAUSE)
    raise Refuse(-32603, "This job always breaks")


class Deletion(Struct):
    """Whether it may be deleted."""

    confirm: bool


@server.tool(task="optional", destructive=True)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask before a file is deleted; it never is."""
    answer = await ctx.elicit(f"Delete {filename}?", Deletion, key="confirm")
    return f"{'Deleted' if answer == Accepted(Deletion(confirm=True)) else 'Kept'} {filename}."


@server.tool(task="optional")
async def multi_input(ctx: Context) -> str:
    """Ask two things at once, and wait for both answers."""
    name, ok = await asyncio.gather(
        ctx.elicit("What is your name?", Name, key="name"),
        ctx.elicit("May I go on?", Deletion, key="ok"),
    )
    return f"{name}, {ok}"


@server.tool(task="required", task_starts="in_body")
async def test_tool_with_task(ctx: Context) -> str:
    """Ask for a name in the call, and then work on as a task."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    await ctx.start_task("Thinking of a greeting")
    await asyncio.sleep(PAUSE)
    return greeting(answer)


# Resources


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Something to subscribe to."""
    return "Watch me."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, str]:
    """Data by id."""
    return {"id": id, "templateTest": "true", "data": f"Data for ID: {id}"}


# Prompts


@server.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1={arg1!r}, arg2={arg2!r}"


@test_prompt_with_arguments.completes("arg1")
def first_arguments(prefix: str) -> list[str]:
    """What the first argument may be."""
    return [word for word in ("paris", "park", "party") if word.startswith(prefix)]


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite's name
    """A prompt that carries a resource."""
    content = text_resource(resourceUri, "Embedded resource content for testing.")
    return [user(content), user(TextContent(text="Please process the resource above."))]


@server.prompt
def test_prompt_with_image() -> list[Any]:
    """A prompt that carries a picture."""
    picture = Image(PNG, format="png").to_content()
    return [user(picture), user(TextContent(text="Please analyse the picture above."))]


if __name__ == "__main__":
    server.run("http", port=3000)
