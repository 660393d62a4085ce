"""The gateway over HTTP on both sides: questions, pages, changes, profiles and search, as clients see them."""

import json
import re

import pytest

from isthmus import Accepted, Client, Server
from isthmus.errors import InvalidParams, ResourceNotFound, UrlRequired
from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile
from isthmus.host.questions import answers
from isthmus.wire import PromptReference
from support.gateway.asking_shop import Answers, make_asker
from support.gateway.http_gateway import serve_chain, serve_entries, serve_gateway
from support.gateway.small_gateway import make_shop
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

LEGACY, MODERN = "2025-11-25", "2026-07-28"
CELLS = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in (LEGACY, MODERN) for other in (LEGACY, MODERN)]
)
CLIENTS = pytest.mark.parametrize("client", [LEGACY, MODERN])


@CELLS
async def test_questions_of_every_kind_reach_the_client_whose_call_it_is(client, server):
    """Ours: a form, a page, a model and folders, one after the other and at once, between two users."""
    ann, bob = Answers(), Answers("bob")
    async with (
        serve_chain(shop=make_asker(server)) as (_, url),
        Client(url, revision=client, **ann.all) as one,
        Client(url, revision=client, **bob.all) as other,
    ):
        assert "shoe: ann" == (await one.call_tool("shop__order", {"item": "shoe"})).text
        assert "hat: bob" == (await other.call_tool("shop__order", {"item": "hat"})).text
        assert "ann ann" == (await one.call_tool("shop__both")).text
        assert "Accepted" == (await other.call_tool("shop__pay")).text
        assert "written by ann" == (await one.call_tool("shop__think", {"about": "it"})).text
        assert "file:///home/bob" == (await other.call_tool("shop__look")).text

    assert {"Which size of shoe?", "Which left?", "Which right?", "sampling"} == set(ann.asked)
    assert ["Which size of hat?", "Pay here", "roots"] == bob.asked


@CLIENTS
async def test_pages_that_a_server_of_2025_11_25_wants_opened_first_are_opened(client, monkeypatch):
    """Spec 2025-11-25 client/elicitation: -32042; the call is made again once the page was opened.

    A server need not say that a page is dealt with: the client behind the gateway does not wait for that
    longer than clients in front of it wait for their calls.
    """
    assert answers.CALLER_PAGE_WAIT_S < 50
    monkeypatch.setattr(answers, "CALLER_PAGE_WAIT_S", 0.01)
    paid, visits = Server("paid", revisions=[LEGACY]), []

    @paid.tool
    async def buy() -> str:
        if not visits:
            raise UrlRequired(("https://pay.example/1", "Pay first"))
        return "bought"

    def visit(question):
        visits.append(question.url)
        return Accepted(None)

    async with (
        serve_chain(paid=paid) as (_, url),
        Client(url, revision=client, elicit=visit) as user,
    ):
        assert "bought" == (await user.call_tool("paid__buy")).text
    assert ["https://pay.example/1"] == visits


@CELLS
async def test_a_resource_that_changes_is_told_to_who_wants_to_hear(client, server):
    """Ours: resources/subscribe on one side, subscriptions/listen on the other, in all pairings."""
    shop = make_shop(server)
    async with (
        serve_chain(shop=shop) as (_, url),
        Client(url, revision=client) as user,
        user.listen(uris=["shop+shop://catalogue"]) as changes,
    ):
        shop.notify_resource_updated("shop://catalogue")
        change = await anext(changes)
    assert ("resource", "shop+shop://catalogue") == (change.kind, change.uri)


@CLIENTS
async def test_a_profile_has_its_own_path_and_nothing_else_is_there(client):
    """Ours: what is outside of it is unknown in the same words as what does not exist."""
    options = GatewayOptions(
        profiles={"sums": GatewayProfile(include=("shop__add",), instructions="Add things up.")}
    )
    async with (
        serve_chain(options, shop=make_shop(MODERN)) as (_, url),
        Client(f"{url}/p/sums", revision=client) as user,
    ):
        assert ["shop__add"] == [tool.name for tool in await user.list_tools()]
        assert "Add things up." == user.instructions
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
        hidden = await tell_error(user, "shop__order")
        assert hidden.replace("order", "nothing") == await tell_error(user, "shop__nothing")


async def tell_error(user, name):
    """The words with which a tool is refused."""
    with pytest.raises(InvalidParams) as error:
        await user.call_tool(name, {"item": "shoe"})
    return str(error.value)


@CLIENTS
async def test_large_catalogs_are_offered_by_the_tools_that_find_tools(client):
    """Ours: the five, and what they find is called as it asks, with its questions."""
    ann = Answers()
    async with (
        serve_chain(GatewayOptions(search="always"), shop=make_asker(MODERN)) as (_, url),
        Client(url, revision=client, **ann.all) as user,
    ):
        names = {tool.name for tool in await user.list_tools()}
        assert {
            "search_tools", "get_tool_details", "call_tool", "list_servers", "read_rest"
        } == names  # fmt: skip
        found = await user.call_tool("search_tools", {"query": "order something"})
        assert "shop__order" in found.text
        details = await user.call_tool("get_tool_details", {"names": ["shop__order"]})
        assert "inputSchema" in details.text or "item" in details.text
        assert "shop" in (await user.call_tool("list_servers")).text
        wanted = {"name": "shop__order", "arguments": {"item": "shoe"}}
        assert "shoe: ann" == (await user.call_tool("call_tool", wanted)).text
        assert (await user.call_tool("read_rest", {"uri": "isthmus://results/none"})).is_error


@pytest.mark.parametrize("size", [400, 1])
async def test_the_tools_that_find_tools_are_there_after_a_restart(size):
    """Ours: whoever keeps its list calls them at another node, or after a restart, and lists nothing before."""
    shop = Server("shop")
    for number in range(size):

        def sell() -> str:
            """Sell."""
            return "sold"

        shop.tool(name=f"sell_{number}", description="Sell something at a good price. " * 10)(sell)

    said = []
    async with serve_entries(shop=shop) as entries:
        for _ in range(2):
            async with serve_gateway(entries) as (gateway, _):
                head = modern_head(name="search_tools")
                body = modern_body(params={"name": "search_tools", "arguments": {"query": "sell"}})
                answer = await fetch(gateway.asgi(), headers=head, body=body)
                said.append(answer.json)

    for one in said:
        if size == 1:
            assert "Unknown tool: search_tools" == one["error"]["message"]
        else:
            assert "of 400 tools" in one["result"]["content"][0]["text"]


async def test_unknown_servers_and_profiles_are_404_and_list_nobody():
    """Ours (A8): the words are the same for whatever is not there, and name no server."""
    options = GatewayOptions(profiles={"sums": GatewayProfile()})
    async with serve_chain(options, shop=make_shop(MODERN)) as (gateway, _):
        app, said = gateway.asgi(), []
        for path in (
            "/mcp/none",
            "/mcp/p/none",
            "/mcp/p/",
            "/mcp/p",
            "/mcp/shop/more",
            "/mcp/Shop",
        ):
            answer = await fetch(app, path=path, headers={"host": "localhost:8000"}, body={})
            assert 404 == answer.status, path
            said.append(json.dumps(answer.json))
    assert 1 == len(set(said))
    assert "shop" not in said[0]
    assert "sums" not in said[0]


@CELLS
async def test_what_one_server_does_not_offer_is_empty_or_not_there(client, server):
    """Ours: the gateway declares completions and resources for all its servers; one without them is no error."""
    bare = Server("bare", revisions=[server])

    @bare.prompt
    def praise(name: str) -> str:
        """Praise something."""
        return name

    async with (
        serve_chain(bare=bare) as (_, url),
        Client(url, revision=client) as user,
    ):
        completed = await user.complete(PromptReference(name="bare__praise"), "name", "a")
        with pytest.raises(ResourceNotFound, match=re.escape("Resource not found: bare+bare://x")):
            await user.read_resource("bare+bare://x")

    assert [] == list(completed.values)
