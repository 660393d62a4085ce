"""Cassettes: conversations with real servers, recorded and replayed."""

import asyncio
import json
from base64 import b64encode

import pytest

from isthmus import Accepted, Command, Context, Http, Server
from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.messages import Redact
from isthmus.testing import Cassette, CassetteMismatch, connect, every_revision, load, serving
from isthmus.testing.cassettes import Redaction, trim_conversation

KEY = "k9-Quite-Secret-Value"


def make_desk():
    """A server that asks, tells of progress, and repeats what it should keep to itself."""
    server = Server("desk", version="1")

    @server.tool
    async def greet(ctx: Context, town: str, token: str = "") -> dict[str, str]:
        """Greet the user by name."""
        await ctx.progress(1, total=2)
        match await ctx.elicit("What is your name?", str):
            case Accepted(name):
                return {"text": f"Hello, {name} of {town}!", "key": ctx.headers.get("x-key", "")}
        return {}

    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    return server


def answer(question):
    """The user of these tests."""
    return Accepted({"value": "Ada"})


@pytest.fixture
def path(tmp_path):
    """Where the cassette is kept."""
    return tmp_path / "here" / "desk.wire"


@every_revision("elicitation/create")
async def test_what_was_recorded_is_replayed_without_the_server(revision, path):
    """Questions, progress and results, in both eras, over HTTP (ours)."""
    told = []

    async def play(cassette, url):
        target = cassette.target(url, headers={"X-Key": KEY})
        async with connect(target, revision=revision, elicit=answer) as client:
            seen = []
            arguments = {"town": "Ulm", "token": "t0psecret"}
            result = await client.call_tool("greet", arguments, on_progress=seen.append)
            told.append((result.structured["text"], [one.progress for one in seen]))

    async with serving(make_desk()) as url:
        with Cassette(path) as cassette:
            await play(cassette, url)
    with Cassette(path) as cassette:
        await play(cassette, "http://127.0.0.1:1/mcp")

    assert [("Hello, Ada of Ulm!", [1])] * 2 == told
    text = path.read_text()
    assert KEY not in text
    assert "t0psecret" not in text
    assert load(path)  # a transcript, which other tools read


async def record(path, *calls, **options):
    """Record some calls of ``echo`` in memory."""
    with Cassette(path, **options) as cassette:
        async with connect(cassette.target(make_desk())) as client:
            for text in calls:
                await client.call_tool("echo", {"text": text})


async def test_a_request_that_differs_fails_with_the_difference(path):
    """And says how to record it anew (ours)."""
    await record(path, "Berlin")

    with pytest.raises(CassetteMismatch) as caught:
        await record(path, "Paris", again="Record it anew: press the button")

    told = str(caught.value)
    assert "tools/call echo is not what was recorded" in told
    assert '-       "text": "Berlin"' in told
    assert '+       "text": "Paris"' in told
    assert told.endswith("Record it anew: press the button")


async def test_a_request_that_was_not_recorded_fails(path):
    """With what there is instead (ours)."""
    await record(path, "Berlin")

    with pytest.raises(CassetteMismatch, match=r"tools/call echo was not recorded .* nothing more"):
        await record(path, "Berlin", "Paris")


async def test_a_request_that_is_not_made_any_more_fails(path):
    """A recording is all of a conversation, and not more (ours)."""
    await record(path, "Berlin", "Paris")

    with pytest.raises(CassetteMismatch, match="not made any more: tools/call echo"):
        await record(path, "Berlin")


async def test_requests_made_at_once_may_come_in_another_order(path):
    """Which of two tasks is first is nobody's promise (ours)."""

    async def ask(*texts):
        with Cassette(path) as cassette:
            async with connect(cassette.target(make_desk())) as client:
                calls = (client.call_tool("echo", {"text": text}) for text in texts)
                return [result.text for result in await asyncio.gather(*calls)]

    await ask("a", "b", "c")

    assert ["c", "a", "b"] == await ask("c", "a", "b")


async def test_each_connection_is_a_conversation_of_its_own(path):
    """In the order in which they are opened; one too many fails (ours)."""

    async def visit(times):
        with Cassette(path) as cassette:
            target = cassette.target(make_desk())
            for number in range(times):
                async with connect(target) as client:
                    assert (
                        str(number) == (await client.call_tool("echo", {"text": str(number)})).text
                    )

    await visit(2)
    await visit(2)
    with pytest.raises(CassetteMismatch, match=r"connected to 3 times, and .* has 2 conversations"):
        await visit(3)


async def test_nothing_is_recorded_where_none_may_be(path):
    """As in CI, where nobody could commit it (ours)."""
    with pytest.raises(CassetteMismatch, match="there is no recording"):
        await record(path, "Berlin", mode="none")

    assert not path.exists()


async def test_recording_anew_replaces_the_file(path):
    """Whatever stood in it (ours)."""
    await record(path, "Berlin")
    await record(path, "Paris", mode="all")
    await record(path, "Paris", mode="none")


async def test_a_test_that_fails_leaves_no_half_recording(path):
    """The next run would replay half of a conversation (ours)."""
    with pytest.raises(ZeroDivisionError), Cassette(path) as cassette:
        async with connect(cassette.target(make_desk())):
            raise ZeroDivisionError

    assert not path.exists()


async def test_a_spoilt_file_says_where_it_is_spoilt(path):
    """People edit what is text (ours)."""
    path.parent.mkdir()
    path.write_text("## one\nC {nonsense\n")

    with pytest.raises(ValueError, match=r"desk\.wire:2"):
        await record(path, "Berlin")


async def test_secrets_stand_in_no_file(path):
    """Named like one, looking like one, held by authorization, or said back by the server (ours)."""
    held = Secret("correct-horse-battery")
    said = f"sk-live-abcdefgh12345678 {KEY} {held.reveal()} password=hunter22 fine"
    options = {"headers": {"Authorization": f"Bearer {KEY}"}}
    async with serving(make_desk()) as url:
        with Cassette(path) as cassette:
            async with connect(cassette.target(Http(url), **options)) as client:
                assert said == (await client.call_tool("echo", {"text": said})).text

    text = path.read_text()
    for secret in ("sk-live", KEY, held.reveal(), "hunter22"):
        assert secret not in text
    assert "[redacted] fine" in text


def test_names_of_arguments_in_a_schema_are_no_secrets():
    """A tool that takes a password keeps its schema (ours)."""
    schema = {"properties": {"password": {"type": "string", "default": "sk-abcdefgh1234567"}}}
    message = {"result": {"tools": [{"name": "login", "inputSchema": schema}]}}

    clean = Redaction()(message)["result"]["tools"][0]["inputSchema"]["properties"]["password"]

    assert {"type": "string", "default": "[redacted]"} == clean


def test_a_project_takes_out_what_it_knows():
    """Names and patterns by ``Redact``, anything by a function (ours)."""
    message = {"params": {"iban": "DE02", "note": "ACC-17"}}

    named = Redaction(Redact(names=["iban"], patterns=[r"ACC-\d+"]))(message)

    assert {"params": {"iban": "[redacted]", "note": "[redacted]"}} == named
    assert {"gone": True} == Redaction(lambda _: {"gone": True})(message)


def test_secrets_of_a_command_are_those_of_its_environment():
    """Its other variables are words like any other (ours)."""
    redaction = Redaction()
    redaction.learn(Command("serve", env={"API_KEY": KEY, "REGION": "europe-west"}), {})
    redaction.learn({"command": "x", "env": {"DB_PASSWORD": "opensesame"}}, {})

    assert "[redacted] europe-west [redacted]" == redaction(f"{KEY} europe-west opensesame")


def test_depth_is_bounded():
    """What a server nests is no reason to fall over (ours)."""
    deep = "x"
    for _ in range(500):
        deep = [deep]

    assert "[too deep]" in json.dumps(Redaction()(deep))


def test_what_was_tried_in_vain_is_not_recorded():
    """How patient a client is changes from release to release (ours)."""
    tried = ("client", b'{"id": 1, "method": "server/discover", "params": {}}')
    refused = ("server", b'{"id": 1, "error": {"code": -32601, "message": "?"}}')
    opened = ("client", b'{"id": 2, "method": "initialize", "params": {}}')
    answered = ("server", b'{"id": 2, "result": {}}')

    assert [] == trim_conversation([tried, refused])
    kept = trim_conversation([tried, refused, opened, answered])
    assert ["initialize", None] == [message.get("method") for _, message in kept]
    with pytest.raises(CassetteMismatch, match="no JSON"):
        trim_conversation([("server", b"\xff")])


@pytest.mark.parametrize(
    ("server", "headers"),
    [
        ("https://ada:opensesame@x.example/mcp", {}),
        ("https://x.example/mcp?region=europe-west&api_key=opensesame", {}),
        (Http("https://x.example/mcp?token=opensesame"), {}),
        ({"url": "https://x.example/mcp?api_key=opensesame", "headers": {}}, {}),
        (Command("serve", "--api-key=opensesame", "--region", "europe-west"), {}),
        ({"command": "serve", "args": ["--password", "opensesame"]}, {}),
        ("https://x.example", {"Authorization": f"Basic {b64encode(b'ada:opensesame').decode()}"}),
        ("https://x.example", {"Cookie": "a=1; sid=opensesame"}),
    ],
)  # fmt: skip
def test_a_secret_is_found_wherever_a_server_was_given_it(server, headers):
    """Ours: servers repeat passwords and keys in their errors, of URLs and command lines, too."""
    redaction = Redaction()
    redaction.learn(server, headers)

    assert "opensesame" not in json.dumps(redaction({"text": "wrong: 'opensesame'"}))
    assert {"text": "in europe-west"} == redaction({"text": "in europe-west"})
