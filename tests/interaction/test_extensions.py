"""Extensions, and methods and notifications that are nobody's but ours."""

import asyncio

import pytest

from isthmus import Context, Extension, Server
from isthmus.errors import CapabilityMissing, CapabilityRequired, MethodNotFound
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport

pytestmark = [every_revision(), every_transport()]

NAME = "com.example/echo"


def echoing(heard=None):
    extension = Extension(NAME, {"loud": True})

    @extension.method("echo/say", params=dict, result=dict)
    async def say(params: dict, ctx: Context) -> dict:
        await ctx.notify("echo/heard", {"what": params["what"]})
        return {"said": params["what"], "settings": ctx.extension(NAME)}

    @extension.on_notification("echo/hush")
    async def hush(params: dict) -> None:
        heard.set_result(params)

    server = Server("echo", version="1", extensions=[extension])

    @server.method("acme/call-back", params=dict, result=dict)
    async def call_back(params: dict, ctx: Context) -> dict:
        return await ctx.request("acme/who", {"asking": "server"}, dict)

    return server


@pytest.mark.covers("extensions.negotiation.both-sides")
async def test_both_sides_know_what_the_other_supports(joined, revision):
    """Declared in every request and in discover since 2026-07-28 (spec: basic/versioning)."""
    async with joined(echoing(), extensions={NAME: {"max": 3}}) as client:
        if not BY_NAME[revision].has(Feature.EXTENSIONS):
            assert client.extension(NAME) is None
            with pytest.raises(CapabilityMissing):
                client.require_extension(NAME)
            with pytest.raises(MethodNotFound):
                await client.request("echo/say", {"what": "hi"})
            return
        told = asyncio.get_running_loop().create_future()
        client.on_notification("echo/heard")(told.set_result)
        answer = await client.request("echo/say", {"what": "hi"})

        assert {"loud": True} == client.require_extension(NAME)
        assert ("hi", {"max": 3}) == (answer["said"], answer["settings"])
        assert {"what": "hi"} == await told


async def test_a_client_without_the_extension_is_refused(joined, revision):
    """MUST be rejected with an appropriate error (spec 2026-07-28 basic/versioning)."""
    modern = BY_NAME[revision].has(Feature.EXTENSIONS)
    async with joined(echoing()) as client:
        with pytest.raises(CapabilityRequired if modern else MethodNotFound) as refused:
            await client.request("echo/say", {"what": "hi"})

    if modern:
        assert {"requiredCapabilities": {"extensions": {NAME: {}}}} == refused.value.data


@pytest.mark.covers("extensions.notifications.heard")
async def test_a_server_hears_a_notification_of_the_clients_own(joined):
    """Over every transport, in every revision (ours)."""
    heard = asyncio.get_running_loop().create_future()
    async with joined(echoing(heard), extensions={NAME: {}}) as client:
        await client.notify("echo/hush", {"now": True})

        assert True is (await heard)["now"]


@pytest.mark.covers("extensions.requests.server-to-client")
async def test_a_server_asks_something_of_its_own(joined, revision):
    """In a session it may; since 2026-07-28 servers send no requests (spec: transports)."""
    async with joined(echoing()) as client:

        @client.method("acme/who", params=dict, result=dict)
        async def who(params):
            return {"i am": "client", "to": params["asking"]}

        if BY_NAME[revision].allows("server", "ping"):
            answer = await client.request("acme/call-back")

            assert {"i am": "client", "to": "server"} == answer
        else:
            with pytest.raises(Exception, match="Internal error"):
                await client.request("acme/call-back")
