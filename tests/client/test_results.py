"""What a tool gave, read in the ways one wants."""

from dataclasses import dataclass

import pydantic
import pytest
from msgspec import Struct

from isthmus.client.model.results import ToolResult
from isthmus.errors import Misbehaved, ToolFailed
from isthmus.wire import CallToolResult, ImageContent, TextContent


class Booking(Struct):
    code: str
    row: int = 1


@dataclass
class Plain:
    code: str


class Model(pydantic.BaseModel):
    code: str


def result(*texts, **members):
    """The result of a tool that says these texts."""
    content = [TextContent(text=words) for words in texts]
    return ToolResult("book", CallToolResult(content=content, **members))


def test_the_parts_of_a_result():
    """Ours: text, structure and metadata without the wire's UNSET."""
    picture = ImageContent(data="", mime_type="image/png")
    blocks = [TextContent(text="a"), picture, TextContent(text="b")]
    found = ToolResult("t", CallToolResult(content=blocks, structured_content={"a": 1}))

    assert "a\nb" == found.text
    assert blocks == found.content
    assert {"a": 1} == found.structured == found.structured_content
    assert (False, {}) == (found.is_error, found.meta)
    assert "ToolResult('t', 'a\\nb')" == repr(found)


def test_an_absent_structure_is_none():
    """Ours: a program reads None, not UNSET."""
    assert None is result("x").structured


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Booking, Booking("B", 12)),
        (Plain, Plain("B")),
        (Model, Model(code="B")),
        (dict, {"code": "B", "row": 12}),
    ],
)
def test_a_structure_becomes_a_type(shape, expected):
    """Decision D4: structs and dataclasses natively, pydantic models where it is installed."""
    assert expected == result(structured_content={"code": "B", "row": 12}).parse(shape)


def test_text_becomes_a_type_where_there_is_nothing_else():
    """Ours: revisions before 2025-06-18 carry structure as JSON text."""
    assert Booking("B") == result('{"code": "B"}').parse(Booking)
    assert [1, 2] == result("[1, 2]").parse(list[int])
    assert "plain" == result("plain").parse(str)


def test_a_wrapped_value_is_unwrapped():
    """Ours: up to 2025-11-25 structured content is an object, so other values are wrapped."""
    assert [1, 2] == result(structured_content={"result": [1, 2]}).parse(list[int])
    assert 7 == result(structured_content=7).parse(int)


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        (result(structured_content={"code": 1}), r"is no Booking: .*at `\$\.code`"),
        (result("no JSON"), "is no Booking: JSON is malformed"),
    ],
)
def test_what_does_not_fit_is_the_servers_fault(found, complaint):
    """Ours: the message has the JSON path."""
    with pytest.raises(Misbehaved, match=complaint):
        found.parse(Booking)


def test_a_model_that_does_not_fit_is_the_servers_fault():
    """Ours: pydantic's exception is the cause."""
    with pytest.raises(Misbehaved, match="is no Model") as caught:
        result(structured_content={}).parse(Model)

    assert isinstance(caught.value.__cause__, pydantic.ValidationError)


def test_a_failed_tool_raises_when_it_is_parsed():
    """Ours: reading a failure is fine, taking it for a value is not."""
    failed = result("no seat", is_error=True)

    assert ("no seat", True) == (failed.text, failed.is_error)
    with pytest.raises(ToolFailed, match="tool 'book' failed: no seat") as caught:
        failed.parse(Booking)
    with pytest.raises(ToolFailed):
        failed.raise_for_error()
    assert failed is caught.value.result
    result("fine").raise_for_error()
