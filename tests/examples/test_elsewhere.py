"""Five servers, each written with this library and with fastmcp: no longer here, and with the same surface."""

import importlib.util
import json

import pytest
from aiohttp import web

from isthmus import Accepted, Client
from isthmus.testing import connect, every_revision
from support.docs.blocks import EXAMPLES
from support.docs.code_lines import count_code_lines

FOLDER = EXAMPLES / "elsewhere"
SERVERS = ("booking", "cart", "notes", "office", "pets")


def load(name):
    """The server of one file, made anew."""
    spec = importlib.util.spec_from_file_location(
        f"elsewhere_{name}", FOLDER / f"{name}_isthmus.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, "office", None) or module.server


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_no_longer_here_than_there(name):
    """Ours: counted in lines of code, as the formatter writes them."""
    here, there = (
        count_code_lines(FOLDER / f"{name}_{library}.py") for library in ("isthmus", "fastmcp")
    )

    assert here <= there


@every_revision()
async def test_notes_are_kept(revision):
    """Ours: a database for as long as the server runs, tools, a template and a prompt."""
    async with connect(load("notes"), revision=revision) as client:
        assert 1 == (await client.call_tool("create_note", {"text": "Buy tea."})).parse(int)
        found = await client.call_tool("search_notes", {"words": "tea"})
        assert ["Buy tea."] == found.parse(list[str])
        assert "Buy tea." == (await client.read_resource("notes://1")).contents[0].text
        assert (await client.call_tool("delete_note", {"id": 9})).is_error
        assert (
            "about tea"
            in (await client.get_prompt("summarise", {"topic": "tea"})).messages[0].content.text
        )


@every_revision()
async def test_the_office_is_two_servers(revision):
    """Ours: names with prefixes, a tool in other words, and one that nobody sees."""
    async with connect(load("office"), revision=revision) as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"plan_holiday", "rooms_find_room", "calendar_plan"} == names
        given = {"title": "Skiing", "first_day": "2026-12-24"}
        assert (
            "Skiing on 2026-12-24 in holidays"
            == (await client.call_tool("plan_holiday", given)).text
        )
        (rooms,) = await client.list_resources()
        assert ["Como", "Tahoe"] == json.loads(
            (await client.read_resource(rooms.uri)).contents[0].text
        )


@every_revision()
async def test_the_cart_belongs_to_the_session(revision):
    """Ours: what one session put in, another does not see."""
    server = load("cart")
    async with connect(server, revision=revision) as ada, connect(server, revision=revision) as bob:
        await ada.call_tool("add", {"item": "tea"})
        assert 11 == (await ada.call_tool("add", {"item": "honey"})).parse(int)
        assert ["tea", "honey"] == (await ada.call_tool("show")).parse(list[str])
        assert [] == (await bob.call_tool("show")).parse(list[str])


@every_revision("elicitation/create")
async def test_a_seat_is_booked(revision):
    """Ours: the user chooses it, in every revision that can ask."""
    choose = lambda _question: Accepted({"row": 7})  # noqa: E731 - what a user says
    async with connect(load("booking"), revision=revision, elicit=choose) as client:
        assert "row 7 on Monday" == (await client.call_tool("book", {"day": "Monday"})).text


@pytest.fixture
async def api():
    """An API that says what it was asked, its URL, and the keys that it was given."""
    keys = []

    async def echo(request):
        body = await request.json() if request.can_read_body else None
        keys.append(request.headers.get("X-Key"))
        return web.json_response({"path": request.raw_path, "body": body})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}", keys
    await runner.cleanup()


async def test_the_pets_are_asked_for_at_their_api(api, monkeypatch):
    """Ours: names, parameters, the body and the key are those of the document."""
    url, keys = api
    monkeypatch.setenv("PETS", url)
    async with Client(load("pets")) as client:
        assert {"find_pets", "addPet", "getPet"} == {
            tool.name for tool in await client.list_tools()
        }
        told = await client.call_tool("find_pets", {"kinds": ["cat", "dog"]})
        assert {
            "path": "/pets?kinds=cat&kinds=dog",
            "body": None,
        } == told.structured
        told = await client.call_tool("addPet", {"name": "Tom"})
        assert {"name": "Tom"} == told.structured["body"]
        told = await client.call_tool("getPet", {"name": "a/b"})
        assert "/pets/a%2Fb" == told.structured["path"]
        assert (await client.call_tool("getPet", {"name": "../metrics"})).is_error

    assert ["secret"] * 3 == keys
