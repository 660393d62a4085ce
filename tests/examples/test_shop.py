"""``examples/shop`` in every revision: what is mounted, proxied and made of a document is one server."""

import sys

import pytest

from isthmus import Accepted, Client
from isthmus.cli.commands.run import load_module
from isthmus.testing import connect, every_revision
from support.docs.blocks import EXAMPLES
from support.http.asgi_driver import fetch

FOLDER = EXAMPLES / "shop"


@pytest.fixture
def shop(monkeypatch):
    """The modules of the shop, made anew for each test."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for name in ("shop", "stock", "parcels", "payments"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = load_module(FOLDER / "shop.py")
    yield module
    for name in ("shop", "stock", "parcels", "payments"):
        sys.modules.pop(name, None)


def agree(question):
    """A customer who agrees to everything."""
    return Accepted({"value": True if "Order for" in question.message else "morning"})


TOOLS = {
    *("add_to_cart", "explain", "find_gift", "order", "show_cart", "unlock"),
    *("stock_search", "parcel_send", "payment_find", "payment_pay"),
}


@every_revision()
async def test_the_parts_are_one_server(shop, revision):
    """Ours: names with prefixes, hidden tools, templates and prompts of the parts."""
    async with connect(shop.server, revision=revision) as client:
        assert TOOLS == {tool.name for tool in await client.list_tools()}
        assert {"stock://stock/{name}", "orders://{number}"} == {
            one.uri_template for one in await client.list_resource_templates()
        }
        assert ["parcel_complain"] == [prompt.name for prompt in await client.list_prompts()]
        found = await client.call_tool("find_gift", {"for_whom_or_what": "tea"})
        assert "tea" in found.text
        assert (await client.call_tool("find_gift", {"limit": 5})).is_error
        assert "tea" in (await client.call_tool("explain", {"item": "tea"})).text


@every_revision()
async def test_a_cart_belongs_to_its_session(shop, revision):
    """Ours: in every revision, and too much of something is refused by name."""
    async with (
        connect(shop.server, revision=revision) as ada,
        connect(shop.server, revision=revision) as bob,
    ):
        assert 900 == (await ada.call_tool("add_to_cart", {"item": "tea", "count": 2})).parse(int)
        assert {"tea": 2} == (await ada.call_tool("show_cart")).parse(dict[str, int])
        assert {} == (await bob.call_tool("show_cart")).parse(dict[str, int])
        refused = await bob.call_tool("add_to_cart", {"item": "mug"})
        assert refused.is_error
        assert "only 0 of mug" in refused.text


@every_revision()
async def test_a_payment_is_made_at_its_api(shop, revision):
    """Ours: the operation of a document, with the key of the shop; its errors have the API's words."""
    async with connect(shop.server, revision=revision) as client:
        paid = await client.call_tool("payment_pay", {"order": "o1", "amount": 900})
        assert '"order":"o1"' in paid.text.replace(" ", "")
        assert "p1" in (await client.call_tool("payment_find", {"id": "p1"})).text
        lost = await client.call_tool("payment_find", {"id": "p9"})
        assert lost.is_error
        assert "no such payment" in lost.text


@every_revision("elicitation/create")
async def test_an_order_asks_here_and_behind_the_proxy(shop, revision):
    """Ours: the proxied server speaks 2025-11-25, whatever its customer speaks."""
    async with connect(shop.server, revision=revision, elicit=agree) as client:
        await client.call_tool("add_to_cart", {"item": "honey"})
        number = (await client.call_tool("order")).text
        assert "o1" == number
        assert {} == (await client.call_tool("show_cart")).parse(dict[str, int])
        contents = (await client.read_resource(f"orders://{number}")).contents
        assert '{"honey":1}' == contents[0].text.replace(" ", "")
        sent = await client.call_tool("parcel_send", {"order": number})
        assert "o1 comes in the morning" == sent.text

    assert {"add_to_cart", "order", "show_cart", "parcel_send"} <= shop.till.calls.keys()


@every_revision()
async def test_staff_see_more_in_their_session_only(shop, revision):
    """Ours: a tool by its tag, for one session, and nobody else may call it."""
    async with (
        connect(shop.server, revision=revision) as staff,
        connect(shop.server, revision=revision) as customer,
    ):
        assert (await staff.call_tool("unlock", {"word": "please"})).is_error
        await staff.call_tool("unlock", {"word": "open sesame"})
        refill = {"name": "mug", "count": 4}
        assert 4 == (await staff.call_tool("stock_refill", refill)).parse(int)
        assert TOOLS == {tool.name for tool in await customer.list_tools()}
        with pytest.raises(Exception, match="Unknown tool"):
            await customer.call_tool("stock_refill", refill)


async def test_the_till_has_a_page(shop):
    """Ours: a route beside the protocol."""
    app = shop.server.asgi()
    async with Client(shop.server) as client:
        await client.call_tool("show_cart")
    response = await fetch(app, "GET", "/till", headers={"host": "127.0.0.1:8000"})

    assert 200 == response.status
    assert b'{"show_cart":1}' == response.body.replace(b" ", b"")
