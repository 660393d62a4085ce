"""MaxResult: large results are cut, and the whole is read by whom it belongs to alone."""

import json

import pytest

from isthmus import Client, Principal, Server
from isthmus.errors import ResourceNotFound, UsageError
from isthmus.runtime.channel import Origin
from isthmus.server.middleware import MaxResult
from isthmus.store.memory_store import MemoryStore
from isthmus.types import CallToolResult, ImageContent, TextContent
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])
MOST = 4_096


def make_server(middleware, **settings):
    server = Server("s", middleware=[middleware], **settings)

    @server.tool
    def text(length: int, sign: str = "x") -> str:
        return sign * length

    @server.tool
    def rows(count: int) -> list[str]:
        return ["row"] * count

    @server.tool
    def pictures() -> CallToolResult:
        picture = ImageContent(data="A" * 8_000, mime_type="image/png")
        return CallToolResult(
            content=[TextContent(text="before"), picture, TextContent(text="after")],
            structured_content={"rows": "x" * 8_000},
        )

    return server


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def find_link(result):
    """The URI of the whole result."""
    return next(block["uri"] for block in result["content"] if block["type"] == "resource_link")


@BOTH
@pytest.mark.parametrize("sign", ["x", '"', "€", "\n"])
async def test_a_large_text_is_cut_with_a_link_to_all_of_it(revision, sign):
    """Ours: what is sent has so many bytes at most, however its text is escaped."""
    client = EraClient(make_server(MaxResult(MOST)), revision)
    result = await client.send("tools/call", call("text", length=20_000, sign=sign))
    whole = await client.send("resources/read", {"uri": find_link(result)})

    assert MOST >= len(
        json.dumps(result["content"], ensure_ascii=False, separators=(",", ":")).encode()
    )
    assert 300 < len(result["content"][0]["text"])
    assert "[cut: this result has " in result["content"][1]["text"]
    assert sign * 20_000 == whole["contents"][0]["text"]
    assert not result.get("isError")


@BOTH
async def test_what_fits_is_left_alone(revision):
    """Ours: most results do."""
    client = EraClient(make_server(MaxResult(MOST)), revision)
    result = await client.send("tools/call", call("text", length=3_000))

    assert ["x" * 3_000] == [block["text"] for block in result["content"]]


@BOTH
async def test_structured_content_is_whole_or_the_result_is_an_error(revision):
    """Ours: a client that checks the output schema never gets half of it."""
    client = EraClient(make_server(MaxResult(MOST)), revision)
    small = await client.send("tools/call", call("rows", count=300))
    large = await client.send("tools/call", call("rows", count=3_000))
    whole = await client.send("resources/read", {"uri": find_link(large)})

    assert 300 == len(small["structuredContent"]["result"])
    assert large["isError"]
    assert "structuredContent" not in large
    assert 3_000 == len(json.loads(whole["contents"][-1]["text"])["result"])


async def test_blocks_that_do_not_fit_are_in_the_whole():
    """Ours: pictures keep their type, and without an output schema nothing failed."""
    client = EraClient(make_server(MaxResult(MOST)))
    result = await client.send("tools/call", call("pictures"))
    whole = await client.send("resources/read", {"uri": find_link(result)})

    assert ["text", "text", "resource_link"] == [block["type"] for block in result["content"]]
    assert not result.get("isError")
    kinds = [one["mimeType"] for one in whole["contents"]]
    assert ["text/plain", "image/png", "text/plain", "application/json"] == kinds


def make_principal(subject):
    return Principal(issuer="https://as.example", subject=subject)


@BOTH
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"principal": make_principal("ada")}, {"principal": make_principal("eve")}),
        ({"principal": make_principal("ada")}, {}),
        ({"origin": Origin("http", session="one")}, {"origin": Origin("http", session="two")}),
        ({"origin": Origin("http", session="one")}, {}),
    ],
    ids=["another", "nobody", "session", "no-session"],
)
async def test_nobody_else_reads_the_whole(revision, mine, theirs):
    """Security: a link that leaked is not found by anybody else, as if it never was."""
    server = make_server(MaxResult(MOST))
    own = EraClient(server, revision, principal=mine.get("principal"))
    other = EraClient(server, revision, principal=theirs.get("principal"))
    origins = [{k: v for k, v in who.items() if k == "origin"} for who in (mine, theirs)]
    result = await own.send("tools/call", call("text", length=9_000), **origins[0])
    uri = find_link(result)
    refused = await other.send("resources/read", {"uri": uri}, **origins[1])
    unknown = await other.send("resources/read", {"uri": uri[:-1] + "~"}, **origins[1])

    assert refused.code == unknown.code
    assert refused.message.partition(":")[0] == unknown.message.partition(":")[0]
    assert "contents" in await own.send("resources/read", {"uri": uri}, **origins[0])


async def test_links_cannot_be_guessed():
    """Security: 24 random bytes each."""
    client = EraClient(make_server(MaxResult(MOST)))
    links = {find_link(await client.send("tools/call", call("text", length=9_000))) for _ in "1234"}

    assert 4 == len(links)
    assert {len("isthmus-result://") + 32} == {len(link) for link in links}


async def test_what_finds_no_room_is_cut_without_a_link():
    """Security: nobody fills the memory; the result is still served."""
    client = EraClient(make_server(MaxResult(MOST, max_kept=2, max_kept_bytes=20_000)))
    results = [await client.send("tools/call", call("text", length=9_000)) for _ in range(3)]

    assert [3, 3, 2] == [len(result["content"]) for result in results]
    assert results[2]["content"][1]["text"].startswith("[cut: this result has ")


async def test_a_store_has_the_whole_for_every_process():
    """Ours: two servers that share a store serve one another's links."""
    store = MemoryStore()
    first, second = (make_server(MaxResult(MOST), store=store, secret=b"s" * 32) for _ in range(2))
    result = await EraClient(first).send("tools/call", call("text", length=9_000))
    read = await EraClient(second).send("resources/read", {"uri": find_link(result)})
    await first.close()
    await second.close()

    assert 9_000 == len(read["contents"][0]["text"])


@BOTH
async def test_a_client_follows_the_link(revision):
    """Ours: a server without resources of its own declares them, so that clients read there."""
    server = make_server(MaxResult(MOST))
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("text", {"length": 9_000})
        whole = await client.read_resource(result.content[-1].uri)
        assert 9_000 == len(whole.contents[0].text)
        assert [] == await client.list_resources()
        with pytest.raises(ResourceNotFound):
            await client.read_resource("isthmus-result://nothing")


@pytest.mark.parametrize("settings", [{"max_bytes": 100}, {"keep": 0}, {"max_kept": 0}])
def test_a_setting_that_is_none_is_refused(settings):
    """Ours: said at once, with what it takes."""
    with pytest.raises(UsageError, match="MaxResult"):
        MaxResult(**{"max_bytes": MOST, **settings})
