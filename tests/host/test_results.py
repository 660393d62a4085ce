"""Results that are too large: their beginning, and a link to the rest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus import Server
from isthmus.errors import Misbehaved
from isthmus.host.chat.conversation import Conversation
from isthmus.host.host import Host
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.errors import Unknown
from isthmus.host.pipeline.results import KeptResults, measure_block
from isthmus.host.providers.scripted import Scripted
from isthmus.host.turns import ToolDone
from isthmus.types import CallToolResult, ImageContent, ResourceLink, TextContent
from isthmus.wire import Tool, ToolUseContent
from support.client.small_server import SmallServer, text_result
from support.examples import count_examples

ME = "user:local"


def capped(result, most=1000, kept=None):
    """The result, capped."""
    kept = KeptResults() if kept is None else kept
    return kept.cap(result, most, call="c1", principal=ME)


def read_all(kept, uri, principal=ME):
    """Every page at a link, put together."""
    text = ""
    for _ in range(10_000):
        (page,) = kept.read(uri, principal).contents
        body, said, following = page.text.partition("\n[it goes on at ")
        text += body
        if not said:
            return text
        uri = following.removesuffix("]")
    raise AssertionError("it never ends")


def test_what_fits_is_passed_on_as_it_is():
    """Ours: nothing is copied where nothing is too large."""
    result = CallToolResult(content=[TextContent(text="short")], structured_content={"a": 1})

    assert result is capped(result)


@settings(max_examples=count_examples(40))
@given(st.text(min_size=400, max_size=3000), st.integers(300, 600))
def test_the_whole_of_a_cut_text_is_behind_its_link(text, most):
    """Ours: nothing is lost, whatever characters the pages end between."""
    kept = KeptResults()
    result = capped(CallToolResult(content=[TextContent(text=text)]), most, kept)
    links = [block for block in result.content if isinstance(block, ResourceLink)]

    if len(text.encode()) + 64 <= most:
        assert [] == links
    else:
        assert text == read_all(kept, links[0].uri)


def test_a_cut_result_is_about_as_large_as_it_may_be():
    """Ours: blocks before the cut are whole, those after it are linked."""
    texts = [TextContent(text="x" * 600), TextContent(text="y" * 9000), TextContent(text="z" * 90)]
    result = capped(CallToolResult(content=texts))

    assert texts[0] is result.content[0]
    assert sum(measure_block(b) for b in result.content if isinstance(b, TextContent)) < 1600
    assert 2 == sum(isinstance(block, ResourceLink) for block in result.content)


def test_a_picture_that_does_not_fit_is_named():
    """Ours: half a picture is none."""
    picture = ImageContent(data="A" * 5000, mime_type="image/png")
    (said,) = capped(CallToolResult(content=[picture])).content

    assert "image/png" in said.text


def test_structured_content_that_is_too_large_is_linked():
    """Ours: it cannot be cut, since it must be what its schema says."""
    kept = KeptResults()
    many = {"rows": list(range(2000))}
    result = capped(CallToolResult(content=[], structured_content=many), 1000, kept)

    assert result.structured_content is UNSET
    assert "1999" in read_all(kept, result.content[-1].uri)


@pytest.mark.parametrize(
    ("uri", "principal"),
    [
        ("isthmus://results/c1/0", "user:other"),
        ("isthmus://results/c2/0", ME),
        ("isthmus://elsewhere/c1/0", ME),
        ("file:///etc/passwd", ME),
    ],
)
def test_nobody_reads_what_is_not_theirs(uri, principal):
    """Ours: another's result looks as one that is not there."""
    kept = KeptResults()
    capped(CallToolResult(content=[TextContent(text="x" * 5000)]), 1000, kept)

    with pytest.raises(Unknown, match="call the tool again"):
        kept.read(uri, principal)


def test_the_oldest_make_room():
    """Ours: what is kept is bounded."""
    kept = KeptResults(most=10_000)
    for number in range(9):
        big = CallToolResult(content=[TextContent(text="x" * 4000)])
        kept.cap(big, 1000, call=f"c{number}", principal=ME)

    assert 2 == len(kept)


def test_structured_content_that_fits_is_kept_and_takes_its_part_of_the_room():
    """Ours: it is what a program reads; the text beside it is cut the shorter."""
    structured = {"said": "s" * 388}  # 399 bytes as JSON
    result = capped(
        CallToolResult(content=[TextContent(text="x" * 5000)], structured_content=structured)
    )
    text, _link = result.content

    assert structured == result.structured_content
    assert 1000 - len('{"said":""}') - 388 - 64 == text.text.count("x")


def test_half_of_the_room_is_the_most_that_structured_content_takes():
    """Ours: exactly half is kept, and a byte more is linked."""
    kept = [
        capped(CallToolResult(content=[TextContent(text="x" * 600)], structured_content={"a": "s" * n}))
        for n in (492, 493)
    ]  # fmt: skip

    assert [True, False] == [one.structured_content is not UNSET for one in kept]


def test_the_last_one_is_kept_however_large_it_is():
    """Ours: a link that has just been given leads somewhere."""
    kept = KeptResults(most=100)
    result = capped(CallToolResult(content=[TextContent(text="x" * 5000)]), 1000, kept)

    assert "x" * 5000 == read_all(kept, result.content[1].uri)


LONG = "".join(f"{number} " for number in range(400))


def library():
    """A host whose server gives long texts, of which 600 bytes are passed on."""
    server = Server("library")

    @server.tool
    def book() -> str:
        """A long text."""
        return LONG

    host = Host(approver=lambda _: True)
    host.add("library", server, limits=ServerLimits(result_bytes=600))
    return host


def link_of(result):
    """The link that a result ends with."""
    return next(block.uri for block in result.content if isinstance(block, ResourceLink))


@pytest.mark.covers("hostcontext.results.capped", "hostcontext.results.audited")
async def test_the_rest_of_a_result_is_read_through_the_host():
    """We demand: its beginning, a link, every page of the whole, and a row for each read."""
    host = library()
    async with host:
        with host.run() as run:
            result = await host.call("library__book", run=run)
            uri, whole = link_of(result), ""
            while uri:
                (page,) = (await host.read(uri, run=run)).contents
                body, _, after = page.text.partition("\n[it goes on at ")
                whole, uri = whole + body, after.removesuffix("]")
        rows = [row for row in await host.view.audit_tail() if row.action == "resource.read"]
        call = next(r for r in await host.view.audit_tail() if r.action == "tool.call")

    assert len(result.text) < 700
    assert LONG == whole
    assert {("library", False, call.call, run.id)} == {
        (row.server, row.failed, row.parent, row.run) for row in rows
    }
    assert len(rows) >= 3


@pytest.mark.covers("hostcontext.results.own")
async def test_somebody_else_is_told_nothing_of_it():
    """We demand: that it was tried is written down."""
    host = library()
    async with host:
        uri = link_of(await host.call("library__book"))
        with pytest.raises(Unknown):
            await host.read(uri, principal="user:other")
        rows = [row for row in await host.view.audit_tail() if row.action == "resource.read"]

    assert [("user:other", True, "Unknown")] == [(r.principal, r.failed, r.error) for r in rows]


@pytest.mark.covers("hostcontext.results.capped")
async def test_a_model_reads_on_where_a_result_was_cut():
    """We demand: it gets a tool for that as soon as there is something to read, and not before."""
    uses = [ToolUseContent(id="1", name="library__book", input={})]

    def reads(completion):
        (result,) = completion.messages[-1].content
        return ToolUseContent(id="2", name="read_rest", input={"uri": link_of(result)})

    model = Scripted([uses[0], reads, "Done."])
    host = library()
    async with host:
        talk = Conversation(host, model, "m")
        events = [event async for event in talk.say("read the book")]

    names = [[tool.name for tool in asked.tools] for asked in model.asked]
    done = [event.result.content[0].text for event in events if isinstance(event, ToolDone)]
    assert [["library__book"], *[["library__book", "read_rest"]] * 2] == names
    assert done[1].startswith("0 1 2 3 ")
    assert "[it goes on at isthmus://results/" in done[1]


@pytest.mark.covers("hostcontext.results.whole")
@pytest.mark.parametrize("last", [1, "one"])
async def test_a_result_is_held_against_its_schema_whole(last):
    """The spec: structured content conforms to the output schema; also the part that is cut off."""
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    }
    rows = {"rows": [*range(900), last]}
    tool = Tool(name="rows", input_schema={"type": "object"}, output_schema=schema)

    async def answer(_params, _inbound):
        return text_result("", structured_content=rows)

    host = Host(approver=lambda _: True)
    server = SmallServer({"tools/call": answer}, tools=[tool])
    host.add("many", server, limits=ServerLimits(result_bytes=600))
    async with host:
        if last == "one":
            with pytest.raises(Misbehaved):
                await host.call("many__rows")
        else:
            result = await host.call("many__rows")
            assert "899,1]" in read_all(host.parts.servers.results, link_of(result))
