"""Arguments held against what a server itself says that it takes."""

import pytest

from isthmus.host.model.errors import BadArguments
from isthmus.host.pipeline import validation
from isthmus.host.pipeline.validation import ToolSchemas, check_prompt, is_app_only
from isthmus.wire import Prompt, PromptArgument, Tool

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_a_schema_is_compiled_once_and_anew_when_the_tool_is_another(monkeypatch):
    """Ours: and so many are kept, and no more."""
    monkeypatch.setattr(validation, "MAX_SCHEMAS", 1)
    schemas, tool = ToolSchemas(), Tool(name="t", input_schema=SCHEMA)
    schemas.check("s", tool, {"n": 1})
    schemas.check("s", Tool(name="t", input_schema={"type": "object"}), {})

    with pytest.raises(BadArguments, match="'n' breaks 'required'"):
        schemas.check("s", tool, {})


def test_a_schema_that_cannot_be_used_checks_nothing():
    """Ours: a tool whose server wrote nonsense can be called; the server looks for itself."""
    ToolSchemas().check("s", Tool(name="t", input_schema={"type": 7}), {"n": "anything"})


@pytest.mark.parametrize(
    ("meta", "only"),
    [
        ({"ui": {"visibility": ["app"]}}, True),
        ({"ui": {"visibility": ["app", "model"]}}, False),
        ({"ui": {"visibility": "app"}}, False),
        ({"ui": 3}, False),
        ({}, False),
    ],
)
def test_who_a_tool_is_for_is_what_it_says(meta, only):
    """Ours: what is malformed says nothing."""
    assert only == is_app_only(Tool(name="t", input_schema={}, meta=meta))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({}, "needs"), ({"a": "1", "b": "2"}, "has no"), ({"a": 1}, "are texts")],
)
def test_the_blanks_of_a_prompt_are_filled_as_it_says(arguments, words):
    """Ours: before a server hears of it."""
    prompt = Prompt(name="p", arguments=[PromptArgument(name="a", required=True)])

    with pytest.raises(BadArguments, match=words):
        check_prompt("s", prompt, arguments)
