"""Middleware that does not do what a middleware does is named."""

import functools

import pytest

from isthmus import Server
from support.server.both_eras import LEGACY, MODERN, EraClient

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


async def passing(inbound, call_next):
    return await call_next(inbound)


async def forgetful(inbound, call_next):
    await call_next(inbound)


def plain(inbound, call_next): ...


class Timing:
    async def __call__(self, inbound, call_next):
        await call_next(inbound)


class Methods:
    async def layer(self, inbound, call_next):
        await call_next(inbound)


@BOTH
@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (forgetful, "the middleware forgetful returned None for tools/list"),
        (Timing(), "the middleware Timing returned None for tools/list"),
        (Methods().layer, "the middleware Methods.layer returned None for tools/list"),
        (functools.partial(forgetful), "the middleware partial returned None for tools/list"),
        (plain, "the middleware plain is no async function"),
    ],
    ids=["function", "object", "method", "partial", "not-async"],
)
async def test_a_middleware_without_a_result_is_told_by_its_name(layer, said, revision, caplog):
    """Its author reads which one it is, though others stand around it."""
    server = Server("s", middleware=[passing, layer, passing])
    server.add_tool(lambda: "", name="t")
    refused = await EraClient(server, revision).send("tools/list", {})
    assert (-32603, "Internal error in tools/list") == (refused.code, refused.message)
    assert said in caplog.text
