"""Sanitising: what a tool returns is safe to show, and no larger than it may be."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import Audio, Image, ToolError
from isthmus.errors import UsageError
from isthmus.server import Server
from isthmus.server.guard.sanitise import (
    CONTROL_CHARS,
    MAX_SHORT_CHARS,
    TERMINAL_SEQUENCES,
    Sanitise,
)
from isthmus.wire import CallToolResult, EmbeddedResource, TextContent, TextResourceContents
from support.server.both_eras import LEGACY, MODERN, EraClient

both = pytest.mark.parametrize("revision", [LEGACY, MODERN])


async def call_tool(tool, revision=MODERN, **options):
    """What a client gets of a tool."""
    server = Server("unsafe", **options)
    server.add_tool(tool, name="tool")
    return await EraClient(server, revision).once("tools/call", {"name": "tool"})


def texts(result):
    """The texts in a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]


@both
@pytest.mark.covers("tools.output.sanitised")
async def test_control_characters_do_not_get_out(revision):
    """The spec: servers MUST sanitise tool outputs; ours: a screen cannot be rewritten by one."""
    said = "\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07 nul\x00 c1\x9b2J\ttab\r\nline"

    result = await call_tool(lambda: said, revision)

    assert ["red bell\ufffd nul\ufffd c1\ufffd2J\ttab\r\nline"] == texts(result)


@both
@pytest.mark.covers("tools.output.no-lone-surrogates")
async def test_halves_of_surrogates_are_replaced_whatever_is_switched_off(revision):
    """Ours: a file's name that is no UTF-8 is no reason for an internal error."""
    for result in (
        await call_tool(lambda: "name\udcff", revision, sanitise=None),
        await call_tool(lambda: CallToolResult(content=[TextContent(text="name\udcff")]), revision),
    ):
        assert ["name\ufffd"] == texts(result)
        assert not result.get("isError", False)


@both
@pytest.mark.covers("tools.output.no-lone-surrogates")
async def test_halves_of_surrogates_in_structured_results_are_replaced(revision):
    """Ours: both forms of a result are mended alike."""

    def names() -> list[dict[str, str]]:
        return [{"name": "caf\udce9"}]

    result = await call_tool(names, revision)

    assert {"result": [{"name": "caf\ufffd"}]} == result["structuredContent"]
    assert ['[{"name":"caf\ufffd"}]'] == texts(result)


async def test_halves_of_surrogates_in_errors_are_replaced_too():
    """Ours: what went wrong is told, whatever its words."""

    def broken():
        raise ToolError("cannot read \udcff")

    result = await call_tool(broken)

    assert result["isError"]
    assert ["cannot read \ufffd"] == texts(result)


async def test_controls_may_be_taken_out_or_kept():
    """Ours: a server for terminals may mean what it sends."""
    assert ["ab"] == texts(await call_tool(lambda: "a\x00b", sanitise=Sanitise(controls="strip")))
    kept = Sanitise(controls="keep")
    assert ["a\x1b[1mb"] == texts(await call_tool(lambda: "a\x1b[1mb", sanitise=kept))
    assert ["a\x00b"] == texts(await call_tool(lambda: "a\x00b", sanitise=None))


async def test_it_also_serves_as_a_middleware():
    """Ours: one among several layers, and it touches nothing but results of tools."""
    server = Server("layered", sanitise=None, middleware=[Sanitise(controls="strip")])
    server.add_tool(lambda: "a\x07b", name="tool")
    client = EraClient(server)

    assert ["ab"] == texts(await client.once("tools/call", {"name": "tool"}))
    assert ["tool"] == [t["name"] for t in (await client.once("tools/list"))["tools"]]


@pytest.mark.covers("tools.output.bounded")
async def test_an_oversized_text_is_cut_and_says_so():
    """Ours: a conversation survives a tool that reads a log of a gigabyte."""
    result = await call_tool(lambda: "x" * 50, sanitise=Sanitise(most=10))

    assert ["x" * 10 + "\n[cut: 10 of 50 characters are shown]"] == texts(result)


async def test_blocks_that_cannot_be_cut_are_left_out_with_a_note():
    """Ours: half a picture is none."""
    picture, sound = Image(b"\x89PNG" * 20, format="png"), Audio(b"RIFF" * 20, format="wav")

    result = await call_tool(lambda: ["text", picture, sound], sanitise=Sanitise(most=20))

    size = len(base64.b64encode(b"1234" * 20))
    assert [
        "text",
        f"[left out: image/png of {size} characters, for its size]",
        f"[left out: audio/wav of {size} characters, for its size]",
    ] == texts(result)


async def test_an_oversized_result_may_be_refused():
    """Ours: configurable, and the model learns how large it was."""
    result = await call_tool(lambda: "x" * 50, sanitise=Sanitise(most=10, oversize="refuse"))

    assert result["isError"]
    assert ["The result is too large: 50 characters, and at most 10 are sent"] == texts(result)


async def test_oversized_structured_content_is_refused():
    """Ours: a part of it would not be what its schema says."""

    def many() -> list[int]:
        return list(range(100))

    result = await call_tool(many, sanitise=Sanitise(most=50))

    assert result["isError"]
    assert "structuredContent" not in result


async def test_text_in_embedded_resources_is_sanitised():
    """Ours: it is shown as any other."""
    inner = TextResourceContents(uri="a://b", text="a\x00")

    result = await call_tool(lambda: EmbeddedResource(resource=inner), sanitise=Sanitise())

    assert "a\ufffd" == result["content"][0]["resource"]["text"]


@given(st.text(st.characters(codec="utf-8")))
def test_no_control_character_survives_and_no_honest_one_is_lost(text):
    """Ours: for any text at all."""
    clean = Sanitise().text(text)

    assert not re.search(CONTROL_CHARS, clean)
    if not re.search(CONTROL_CHARS, text):
        assert text == clean


def sanitise_plainly(text, instead):
    """What sanitising means: terminals' commands are taken out, then single control characters."""
    return re.sub(CONTROL_CHARS, instead, re.sub(TERMINAL_SEQUENCES, "", text))


troubles = st.sampled_from([chr(code) for code in (*range(32), *range(0x7E, 0xA1))])


@given(
    st.lists(troubles | st.sampled_from(["\x1b[31m", "a", "é", "漢", "\ud800"]), max_size=3).map(
        "".join
    ),
    st.sampled_from(["", "x", "line\n", "é", "«漢 字»\n"]).map(lambda part: part * MAX_SHORT_CHARS),
)
def test_a_text_is_sanitised_alike_however_long_it_is(trouble, padding):
    """Ours: a long text is looked through in another way, and nothing else is found in it."""
    for text in (padding + trouble, trouble + padding):
        assert sanitise_plainly(text, "\ufffd") == Sanitise().text(text)
        assert sanitise_plainly(text, "") == Sanitise(controls="strip").text(text)


@pytest.mark.parametrize("options", [{"controls": "x"}, {"oversize": "x"}, {"most": 0}])
def test_a_choice_that_is_none_is_refused(options):
    """Ours: and the message has those there are."""
    with pytest.raises(UsageError):
        Sanitise(**options)
