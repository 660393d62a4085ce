"""Extensions on a client, and what is a server's own."""

import asyncio

import pytest
from msgspec import Struct

from isthmus import Client, Context, Extension, Server
from isthmus.errors import CapabilityMissing, UsageError
from isthmus.testing import connect, every_revision
from isthmus.types import ClientCapabilities

NAME = "com.example/echo"


class Word(Struct):
    word: str


def echoing():
    server = Server("echo", version="1", extensions={NAME: {"loud": True}})

    @server.method("echo/say", params=Word, result=Word)
    async def say(params: Word, ctx: Context) -> Word:
        await ctx.notify("echo/heard", {"word": params.word})
        await ctx.notify("echo/heard", {"word": 7})
        return Word(params.word * 2)

    @server.method("echo/ask", params=dict, result=dict)
    async def ask(params: dict, ctx: Context) -> dict:
        return await ctx.request("echo/name", {"for": "you"}, dict)

    return server


@every_revision
async def test_params_of_an_authors_own_struct_are_sent(revision):
    """Ours: a struct needs no ``meta`` for what the revision wants said in it."""
    async with connect(echoing(), revision=revision) as client:
        answer = await client.request("echo/say", Word("ha"), Word)

    assert Word("haha") == answer


@every_revision
async def test_a_servers_own_notification_is_heard_typed(revision):
    """Ours: what does not fit is ignored, as JSON-RPC has it."""
    async with connect(echoing(), revision=revision) as client:
        heard = asyncio.Queue()

        @client.on_notification("echo/heard", params=Word)
        async def told(word):
            heard.put_nowait(word)

        await client.request("echo/say", {"word": "ha"})

        assert Word("ha") == await heard.get()
    assert heard.empty()


@pytest.mark.parametrize("plain", [True, False])
async def test_a_servers_own_request_is_served(plain):
    """Ours: by a plain function or an async one, in a session."""
    async with connect(echoing(), revision="2025-11-25") as client:
        if plain:
            client.method("echo/name")(lambda params: {"name": "Ada", **params})
        else:

            @client.method("echo/name")
            async def name(params):
                return {"name": "Ada", **params}

        assert {"name": "Ada", "for": "you"} == await client.request("echo/ask")


async def test_an_extension_object_on_a_client_is_declared_and_hears():
    """Ours: the same object as on a server; its methods are a server's to serve."""
    extension, heard = Extension("com.example/other", {"x": 1}), []
    extension.on_notification("echo/heard", params=Word)(heard.append)
    extension.method("other/method", params=dict)(lambda params: None)
    async with connect(echoing(), extensions=[extension]) as client:
        await client.request("echo/say", {"word": "ha"})

        assert {"loud": True} == client.require_extension(NAME)
    assert [Word("ha")] == heard


async def test_an_extension_that_the_server_lacks_is_told():
    """Ours: with what it would have had to declare."""
    async with connect(echoing()) as client:
        assert client.extension("com.example/none") is None
        with pytest.raises(CapabilityMissing) as missing:
            client.require_extension("com.example/none")

    assert {"extensions": {"com.example/none": {}}} == missing.value.required


def test_extensions_join_the_capabilities_given():
    """Ours: neither replaces the other, and a name is declared once."""
    declared = ClientCapabilities(extensions={"a/b": {}})
    client = Client(echoing(), capabilities=declared, extensions={"a/c": {"x": 1}})

    given = client._answering.capabilities.extensions
    assert {"a/b": {}, "a/c": {"x": 1}}.items() <= given.items()
    with pytest.raises(UsageError, match="already"):
        Client(echoing(), capabilities=declared, extensions={"a/b": {}})


@pytest.mark.parametrize(
    ("register", "match"),
    [
        (lambda client: client.method("tools/call"), "of the specification"),
        (lambda client: client.on_notification("notifications/message"), "of the specification"),
        (lambda client: client.on_notification("echo/twice"), "already"),
    ],
)
def test_a_name_that_is_taken_is_refused(register, match):
    """Decision D17: silence is the incumbents' bug."""
    client = Client(echoing())
    client.method("echo/twice")(lambda params: None)

    with pytest.raises(UsageError, match=match):
        register(client)(lambda params: None)
