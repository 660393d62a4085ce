"""Resources, prompts, completion, progress, logging, pagination."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.errors import InvalidParams, ResourceNotFound
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport
from isthmus.types import Annotations, PromptReference, TextContent

pytestmark = [every_revision(), every_transport()]


def library():
    server = Server("library", version="1", instructions="Read.", page_size=2)

    @server.resource("note://one", mime_type="text/plain")
    def one() -> str:
        """The first note."""
        return "Remember the milk."

    @server.resource("blob://two", mime_type="application/octet-stream")
    def two() -> bytes:
        """Some bytes."""
        return b"\x00\x01"

    @server.resource("json://three", mime_type="application/json")
    def three() -> dict[str, int]:
        """Some JSON."""
        return {"a": 1}

    @server.resource("book://{shelf}/{number}")
    async def book(shelf: str, number: int) -> str:
        """A book."""
        return f"{number} on {shelf}"

    @server.prompt
    def greet(name: str, tone: str = "warm") -> str:
        """Greet somebody."""
        return f"Greet {name} in a {tone} tone."

    @greet.completes("tone")
    def tones(prefix: str) -> list[str]:
        return [tone for tone in ("warm", "formal", "wild") if tone.startswith(prefix)]

    @server.tool
    async def work(ctx: Context) -> str:
        """Report and log."""
        for step in range(1, 4):
            await ctx.progress(step, total=3, message=f"step {step}")
            ctx.log.warning("working", step=step)
            ctx.log.debug("not heard")
        return "done"

    return server


@pytest.mark.covers("interaction.transports.everywhere")
async def test_resources_are_listed_page_by_page_and_read(joined):
    """Pages are followed; text, bytes and JSON arrive (spec: resources, pagination)."""
    async with joined(library()) as client:
        listed = [resource.uri for resource in await client.list_resources()]
        templates = [t.uri_template for t in await client.list_resource_templates()]
        text = (await client.read_resource("note://one")).contents[0]
        blob = (await client.read_resource("blob://two")).contents[0]
        json = (await client.read_resource("json://three")).contents[0]
        book = (await client.read_resource("book://red/7")).contents[0]

    assert ["blob://two", "json://three", "note://one"] == listed
    assert ["book://{shelf}/{number}"] == templates
    assert ("Remember the milk.", "text/plain") == (text.text, text.mime_type)
    assert "AAE=" == blob.blob
    assert '{"a":1}' == json.text
    assert ("7 on red", "book://red/7") == (book.text, book.uri)


async def test_an_unknown_resource_is_not_found(joined):
    """-32002 up to 2025-11-25, -32602 with the URI since (spec: resources error handling)."""
    async with joined(library()) as client:
        with pytest.raises(ResourceNotFound) as refusal:
            await client.read_resource("note://nowhere")

    assert "note://nowhere" == refusal.value.data["uri"]


async def test_prompts_are_listed_and_got(joined):
    """Arguments are filled in, defaults kept (spec: prompts)."""
    async with joined(library()) as client:
        prompt = (await client.list_prompts())[0]
        got = await client.get_prompt("greet", {"name": "Ada"})

    assert [("name", True), ("tone", False)] == [
        (argument.name, bool(argument.required)) for argument in prompt.arguments
    ]
    assert "Greet Ada in a warm tone." == got.messages[0].content.text


@pytest.mark.covers("errors.prompts.refused")
@pytest.mark.parametrize(("name", "arguments"), [("nobody", {}), ("greet", {})])
async def test_prompts_that_cannot_be_made_are_refused(joined, name, arguments):
    """Unknown prompts and missing arguments are -32602 (spec: prompts error handling)."""
    async with joined(library()) as client:
        with pytest.raises(InvalidParams):
            await client.get_prompt(name, arguments)


async def test_arguments_are_completed(joined):
    """Completion comes from the author's function (spec: completion)."""
    async with joined(library()) as client:
        completion = await client.complete(PromptReference(name="greet"), "tone", "w")

    assert ["warm", "wild"] == list(completion.values)


async def test_progress_arrives_in_order(joined):
    """Progress increases and comes before the answer (spec: progress)."""
    seen = []
    async with joined(library()) as client:
        result = await client.call_tool(
            "work", on_progress=lambda p: seen.append((p.progress, p.total))
        )

    assert "done" == result.text
    assert [(1, 3), (2, 3), (3, 3)] == seen


async def test_progress_may_be_told_to_an_async_function(joined):
    """As log messages and changes may (ours)."""
    seen = []
    finished = asyncio.Event()

    async def hear(progress):
        seen.append(progress.progress)
        if progress.progress == 3:
            finished.set()

    async with joined(library()) as client:
        await client.call_tool("work", on_progress=hear)
        await finished.wait()

    assert [1, 2, 3] == seen


async def test_logging_is_filtered_by_the_callers_level(joined):
    """The level is the session's or the request's, the tool does not care (spec: logging)."""
    heard = []
    async with joined(library(), on_log=heard.append, log_level="info") as client:
        await client.call_tool("work")

    assert ["warning"] * 3 == [message.level for message in heard]


async def test_nothing_is_sent_that_was_not_asked_for(joined, revision):
    """No progress without a token; since 2026-07-28 no log without a level (spec)."""
    wire = []
    async with joined(library(), wire=wire) as client:
        assert "done" == (await client.call_tool("work")).text
    said = [data for side, data in wire if side == "server"]

    assert not any(b"notifications/progress" in data for data in said)
    if BY_NAME[revision].has(Feature.RESULT_TYPE):
        assert not any(b"notifications/message" in data for data in said)


@pytest.mark.covers("interaction.transports.everywhere")
async def test_the_server_introduces_itself(joined, revision):
    """Name, version, instructions and capabilities arrive by handshake or discovery."""
    async with joined(library()) as client:
        assert "library" == client.info.name
        assert "Read." == client.instructions
        assert client.capabilities.tools
        assert client.capabilities.resources
        assert client.capabilities.prompts
        assert revision == client.revision.name
        assert BY_NAME[revision].has(Feature.VERSION_HEADER) == (revision >= "2025-06-18")


@pytest.mark.covers("divergences.annotations.last-modified")
async def test_annotations_reach_the_client_whole(joined):
    """Audience and priority in every revision, lastModified since 2025-06-18 (spec: annotations)."""
    server = Server("dated")
    given = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
    server.add_resource(lambda: "", "a://b", name="b", annotations=given)
    server.add_tool(lambda: TextContent(text="hi", annotations=given), name="say")

    async with joined(server) as client:
        (listed,) = await client.list_resources()
        (said,) = (await client.call_tool("say")).content

    dated = client.revision.name >= "2025-06-18"
    for found in (listed.annotations, said.annotations):
        assert (["user"], 0.5) == (found.audience, found.priority)
        assert dated is (found.last_modified == "2025-01-12T15:00:58Z")
