"""Whatever a function returns, as what its caller gets."""

import base64

import msgspec
import pytest
from msgspec import UNSET, Raw

from isthmus.errors import UsageError
from isthmus.server.schema.results import (
    Audio,
    Image,
    ReturnPlan,
    to_call_result,
    to_prompt_messages,
    to_resource_contents,
)
from isthmus.wire import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    PromptMessage,
    ResourceLink,
    TextContent,
    TextResourceContents,
    UnknownContent,
)

PLAIN = ReturnPlan()
LINK = ResourceLink(uri="a://b", name="b")
PICTURE = Image(b"\x89PNG", format="png")
SHOWN = ImageContent(data=base64.b64encode(b"\x89PNG").decode(), mime_type="image/png")


class Point(msgspec.Struct):
    """A place."""

    x: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("text", [TextContent(text="text")]),
        ("", [TextContent(text="")]),
        (LINK, [LINK]),
        (PICTURE, [SHOWN]),
        (["see", PICTURE, LINK, Point(1)], [
            TextContent(text="see"), SHOWN, LINK, TextContent(text='{"x":1}')
        ]),
        (("a", LINK), [TextContent(text="a"), LINK]),
        (UnknownContent(type="new"), [UnknownContent(type="new")]),
        ({"a": [1]}, [TextContent(text='{"a":[1]}')]),
        (["a", "b"], [TextContent(text='["a","b"]')]),
        (Point(1), [TextContent(text='{"x":1}')]),
        (3, [TextContent(text="3")]),
    ],
)  # fmt: skip
def test_without_a_promise_a_value_is_content(value, expected):
    """Ours: text and blocks as they are, the rest as JSON, nothing structured."""
    assert CallToolResult(content=expected) == to_call_result(value, PLAIN)


@pytest.mark.parametrize(
    ("annotation", "value", "text", "structured"),
    [
        (Point, Point(1), '{"x":1}', b'{"x":1}'),
        (int, 3, "3", b'{"result":3}'),
        (list[str], ["a"], '["a"]', b'{"result":["a"]}'),
        (str | int, "a", "a", b'{"result":"a"}'),
        (Point | None, None, "null", b'{"result":null}'),
    ],
)
def test_a_promised_value_is_structured_and_text(annotation, value, text, structured):
    """The specification's SHOULD: structured content also travels as text."""
    result = to_call_result(value, ReturnPlan.of(annotation))

    expected = CallToolResult(content=[TextContent(text=text)], structured_content=Raw(structured))
    assert expected == result


def test_the_text_can_be_left_away():
    """Ours (D23): a host that reads structured content need not pay twice."""
    result = to_call_result(3, ReturnPlan.of(int, text=False))

    assert ([], Raw(b'{"result":3}')) == (result.content, result.structured_content)


@pytest.mark.parametrize(
    "value",
    [
        CallToolResult(content=[], is_error=True, structured_content={"x": 1}),
        InputRequiredResult(request_state="s"),
    ],
)
@pytest.mark.parametrize("plan", [PLAIN, ReturnPlan.of(Point)])
def test_a_result_of_the_wire_is_passed_on(value, plan):
    """Ours: an author who writes the result himself has the last word."""
    assert value is to_call_result(value, plan)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"bytes", "bytes are no content"),
        (bytearray(b"b"), "bytes are no content"),
        ([LINK, b"b"], "bytes are no content"),
        (object(), "value of type object, which has no JSON form"),
        ("\ud800", None),
    ],
)
def test_values_without_a_json_form_are_refused_with_a_cure(value, said):
    """Ours: the author is told what to return instead."""
    if said is None:  # text is not looked at here: writing the answer finds it
        assert "\ud800" == to_call_result(value, PLAIN).content[0].text
        return
    with pytest.raises(UsageError, match=said):
        to_call_result(value, PLAIN)


@pytest.mark.covers("resources.contents.binary-is-base64")
@pytest.mark.parametrize(
    ("value", "mime_type", "expected"),
    [
        ("hi", None, TextResourceContents(uri="u", mime_type="text/plain", text="hi")),
        ("<p>", "text/html", TextResourceContents(uri="u", mime_type="text/html", text="<p>")),
        (b"ab", None, BlobResourceContents(
            uri="u", mime_type="application/octet-stream", blob="YWI="
        )),
        (b"ab", "a/b", BlobResourceContents(uri="u", mime_type="a/b", blob="YWI=")),
        (PICTURE, "a/b", BlobResourceContents(uri="u", mime_type="image/png", blob=SHOWN.data)),
        (Point(1), None, TextResourceContents(
            uri="u", mime_type="application/json", text='{"x":1}'
        )),
        ({"a": 1}, "a/b", TextResourceContents(uri="u", mime_type="a/b", text='{"a":1}')),
        ([1, 2], None, TextResourceContents(uri="u", mime_type="application/json", text="[1,2]")),
        (None, None, TextResourceContents(uri="u", mime_type="application/json", text="null")),
    ],
)  # fmt: skip
def test_contents_of_a_resource_are_text_or_a_blob(value, mime_type, expected):
    """Ours: the declared type wins over what the value looks like."""
    assert [expected] == to_resource_contents(value, "u", mime_type)


def test_contents_of_the_wire_are_passed_on_alone_and_in_lists():
    """Ours: a directory may be read as its files, each with a URI of its own."""
    one = TextResourceContents(uri="other", text="a")
    text = TextResourceContents(uri="u", mime_type="text/plain", text="b")

    assert [one] == to_resource_contents(one, "u")
    assert [one, text] == to_resource_contents([one, "b"], "u")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", [("user", TextContent(text="hi"))]),
        (LINK, [("user", LINK)]),
        (PICTURE, [("user", SHOWN)]),
        (("assistant", "hi"), [("assistant", TextContent(text="hi"))]),
        (("assistant", LINK), [("assistant", LINK)]),
        (("user", ["a", LINK]), [("user", TextContent(text="a")), ("user", LINK)]),
        (["a", ("assistant", "b")], [
            ("user", TextContent(text="a")), ("assistant", TextContent(text="b"))
        ]),
        (("a", "b"), [("user", TextContent(text="a")), ("user", TextContent(text="b"))]),
        ([], []),
        (None, []),
        ({"a": 1}, [("user", TextContent(text='{"a":1}'))]),
    ],
)  # fmt: skip
def test_a_prompt_is_a_list_of_messages(value, expected):
    """Ours: who is not named speaks as the user."""
    messages = [PromptMessage(role=role, content=content) for role, content in expected]

    assert messages == to_prompt_messages(value)


def test_a_message_of_the_wire_is_passed_on():
    """Ours: with whatever it holds."""
    resource = EmbeddedResource(resource=TextResourceContents(uri="u", text="a"))
    message = PromptMessage(role="assistant", content=resource)

    assert [message, message] == to_prompt_messages([message, message])


def test_a_picture_knows_its_format(tmp_path):
    """Ours: from the format, from the file's ending, or a whole MIME type."""
    file = tmp_path / "bell.WAV"
    file.write_bytes(b"ring")
    sound = Audio(path=file)

    assert ("audio/wav", "cmluZw==") == (sound.mime_type, sound.base64)
    assert "image/jpeg" == Image(b"", format="jpg").mime_type
    assert "image/x-odd" == Image(b"", format="image/x-odd").to_content().mime_type
    assert UNSET is sound.to_content().annotations


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "either data=bytes or path=file"),
        ({"data": b"", "path": "x.png"}, "either data=bytes or path=file"),
        ({"data": b""}, "does not know the format None: pass format="),
        ({"data": b"", "format": "odd"}, "does not know the format 'odd'"),
    ],
)
def test_a_picture_of_unknown_format_is_refused(arguments, said):
    """Ours: a guess would show as a broken picture far away."""
    with pytest.raises(UsageError, match=said):
        Image(**arguments)
