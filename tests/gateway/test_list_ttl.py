"""Lifetimes of a gateway's lists: as long as the least of its servers says."""

import sys

import pytest

from isthmus import Server
from isthmus.gateway import Gateway
from isthmus.transports.command import Command
from support.gateway.asking_shop import make_host
from support.gateway.small_gateway import ALLOW_ALL
from support.server.both_eras import EraClient

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def make_server(name, ttl=0, *, revision="2026-07-28"):
    """A server with a tool, and lists that may be kept for some milliseconds."""
    server = Server(name, revisions=[revision], list_ttl_ms=ttl)
    server.add_tool(lambda: name, name="say", description="Say the name.")
    return server


def add_rest(server):
    """Give a server one of everything."""
    server.add_prompt(lambda: "praise", name="praise", description="Praise it.")
    server.resource("shop://all", name="all")(lambda: "all")
    server.resource("shop://items/{item}", name="item")(lambda item: item)
    return server


async def list_ttl(*servers, method="tools/list", path="/mcp", again=False):
    """The ``ttlMs`` of a list of a gateway in front of servers."""
    gateway = Gateway(make_host(ALLOW_ALL, *((one.info.name, one, {}) for one in servers)))
    async with gateway:
        client = EraClient(gateway.find_server(path))
        for _ in range(2 if again else 1):
            result = await client.once(method)
        return result["ttlMs"]


@pytest.mark.parametrize("again", [False, True])
async def test_the_least_of_the_servers_counts(again):
    """Ours: whoever kept the list longer would have an old part of it."""
    found = await list_ttl(make_server("one", 60_000), make_server("two", 5_000), again=again)

    assert 5_000 == found


@pytest.mark.parametrize("other", [make_server("two"), make_server("two", revision="2025-11-25")])
async def test_one_server_that_says_nothing_makes_it_none(other):
    """Ours: absent and 0 are the same (spec: caching, ttlMs)."""
    assert 0 == await list_ttl(make_server("one", 60_000), other)


@pytest.mark.parametrize("method", LISTS)
async def test_each_list_of_one_server_is_kept_as_it_says(method):
    """Ours: at the server's own endpoint, whatever the others say."""
    servers = add_rest(make_server("one", 60_000)), make_server("two")

    assert 60_000 == await list_ttl(*servers, method=method, path="/mcp/one")


@pytest.mark.parametrize("method", LISTS[1:])
async def test_a_server_without_such_a_list_says_nothing_about_it(method):
    """Ours: it can have no part of it."""
    servers = add_rest(make_server("one", 60_000)), make_server("two")

    assert 60_000 == await list_ttl(*servers, method=method)


async def test_a_server_that_cannot_be_reached_makes_it_none():
    """Ours: its part comes when it does."""
    dead = ("dead", Command(sys.executable, "-c", "pass"), {})
    gateway = Gateway(make_host(ALLOW_ALL, ("one", make_server("one", 60_000), {}), dead))
    async with gateway:
        assert 0 == (await EraClient(gateway.server).once("tools/list"))["ttlMs"]
