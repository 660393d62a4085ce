"""The gateway: lists, calls, reads, prompts and completion, from every revision to every other."""

import json

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import ResourceNotFound
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.wire import PromptReference
from support.gateway.small_gateway import REVISION_NAMES, make_gateway, make_shop

EVERY_CELL = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in REVISION_NAMES for other in REVISION_NAMES]
)


@EVERY_CELL
async def test_everything_of_a_server_is_reached_through_a_gateway(client, server):
    """Ours: in all pairings of revisions, under the names of the catalog."""
    gateway = make_gateway(shop=make_shop(server))
    async with gateway, Client(gateway.server, revision=client) as user:
        assert ["shop__add", "shop__order"] == [tool.name for tool in await user.list_tools()]
        assert ["shop+shop://catalogue"] == [one.uri for one in await user.list_resources()]
        assert ["shop__praise"] == [one.name for one in await user.list_prompts()]
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
        read = await user.read_resource("shop+shop://items/shoe")
        prompt = await user.get_prompt("shop__praise", {"name": "shoes"})
        assert "a shoe" == read.contents[0].text
        assert "praise shoes" == prompt.messages[0].content.text
        ref = PromptReference(name="shop__praise")
        assert ["shirt", "shoe"] == (await user.complete(ref, "name", "sh")).values


@EVERY_CELL
async def test_one_server_has_its_own_names_at_its_own_endpoint(client, server):
    """Ours: /mcp/SERVER is that server, as if it were reached directly."""
    gateway = make_gateway(shop=make_shop(server), other=make_shop(server))
    async with gateway, Client(gateway.find_server("/mcp/shop"), revision=client) as user:
        assert ["add", "order"] == [tool.name for tool in await user.list_tools()]
        assert "3" == (await user.call_tool("add", {"a": 1, "b": 2})).text
        assert "a shoe" == (await user.read_resource("shop://items/shoe")).contents[0].text


async def test_progress_of_a_server_reaches_the_caller():
    """Ours: with the token of the caller, in its revision."""
    gateway, heard = make_gateway(shop=make_shop("2025-06-18")), []
    async with gateway, Client(gateway.server) as user:
        await user.call_tool("shop__add", {"a": 1, "b": 2}, on_progress=heard.append)

    assert [(1, 2, "half")] == [(one.progress, one.total, one.message) for one in heard]


@EVERY_CELL
async def test_progress_that_begins_with_nothing_done_reaches_the_caller(client, server):
    """Spec: progress: a first notification may say 0."""
    busy, heard = Server("busy", revisions=[server]), []

    @busy.tool
    async def work(ctx: Context) -> str:
        for done in (0, 50, 100):
            await ctx.progress(done, total=100)
        return "done"

    gateway = make_gateway(busy=busy)
    async with gateway, Client(gateway.server, revision=client) as user:
        await user.call_tool("busy__work", on_progress=heard.append)

    assert [0, 50, 100] == [one.progress for one in heard]


@EVERY_CELL
@pytest.mark.parametrize("uri", ["shop+gone://x", "nobody+gone://x"])
async def test_an_unknown_resource_is_refused_as_the_revision_of_the_client_has_it(
    client, server, uri
):
    """Spec: resources#error-handling: -32602 with the URI since 2026-07-28, -32002 before."""
    gateway = make_gateway(shop=make_shop(server))
    async with gateway, Client(gateway.server, revision=client) as user:
        with pytest.raises(ResourceNotFound) as refused:
            await user.read_resource(uri)

    assert (-32602 if client > "2026" else -32002) == refused.value.code
    assert {"uri": uri} == refused.value.data


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({"servers": ["shp"]}, "no server is called 'shp'"),
        ({"include": ["store__*"]}, "'store__*' is no name of a tool of its servers"),
        ({"include": ["store__*"]}, "it names no tool, so that it offers none"),
    ],
)
async def test_a_profile_that_offers_nothing_is_warned_of_at_the_start(
    profile, words, tmp_path, caplog
):
    """Ours (A8): by file and line, and the other endpoints are served."""
    shop = {"url": "http://127.0.0.1:1/mcp"}
    config = {"mcpServers": {"shop": shop}, "host": {"gateway": {"profiles": {"empty": profile}}}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    line = path.read_text(encoding="utf-8").splitlines().index('    "empty": {') + 1
    async with (
        Gateway(Host.from_config(str(path), state=tmp_path / "state")) as gateway,
        Client(gateway.find_server("/mcp/p/empty")) as user,
    ):
        assert [] == await user.list_tools()
        assert gateway.has_endpoint("/mcp/shop")
    told = [row.getMessage() for row in caplog.records if words in row.getMessage()]
    assert [f"{path}:{line}"] == [one.partition(": ")[0] for one in told]
