"""What a revision cannot say is said differently, and nothing is lost without a word."""

import json

import pytest
from msgspec import UNSET, Raw

from isthmus import wire
from isthmus.revisions import BY_NAME, LEGACY, project
from isthmus.wire.jsonrpc import encode

FIRST, MARCH, JUNE, NOVEMBER, MODERN = BY_NAME.values()

AUDIO = wire.AudioContent(data="AAEC", mime_type="audio/wav")
IMAGE = wire.ImageContent(data="AAEC", mime_type="image/png")
TEXT = wire.TextContent(text="hello")
LINK = wire.ResourceLink(uri="file:///a", name="a")


def content_of(block, revision):
    """A block as a tool's result shows it to a revision."""
    return project(wire.CallToolResult(content=[block]), revision).content[0]


def test_audio_becomes_a_file_where_there_is_none():
    """Ours: in 2024-11-05 sound travels as an embedded resource, with its type and its bytes."""
    told = wire.Annotations(audience=["user"], last_modified="2025-01-01")

    shown = content_of(
        wire.AudioContent(data="AAEC", mime_type="audio/wav", annotations=told), FIRST
    )

    uri = shown.resource.uri
    assert uri.startswith("audio://")
    assert shown == wire.EmbeddedResource(
        resource=wire.BlobResourceContents(uri=uri, mime_type="audio/wav", blob="AAEC"),
        annotations=wire.Annotations(audience=["user"]),
    )


def test_two_sounds_have_two_names():
    """Ours: the synthetic URIs of different sounds differ, those of equal ones do not."""
    other = wire.AudioContent(data="AAED", mime_type="audio/wav")
    names = [content_of(sound, FIRST).resource.uri for sound in (AUDIO, other, AUDIO)]

    assert names[0] == names[2]
    assert names[0] != names[1]


def test_audio_stays_where_it_is_known():
    """Spec: since 2025-03-26 there is audio content."""
    assert content_of(AUDIO, MARCH) is AUDIO


def test_a_link_becomes_words_and_its_uri():
    """Ours: before 2025-06-18 a link travels as text that has all a model needs."""
    link = wire.ResourceLink(
        uri="file:///a", name="a", title="An A", description="The first.", mime_type="text/plain"
    )

    shown = content_of(link, MARCH)

    assert wire.TextContent(text="An A (text/plain): file:///a\nThe first.") == shown
    assert wire.TextContent(text="a: file:///a") == content_of(LINK, FIRST)
    assert content_of(link, JUNE) is link


def test_a_prompt_is_said_differently_too():
    """Ours: what holds for a tool's result holds for a prompt's messages."""
    prompt = wire.GetPromptResult(messages=[wire.PromptMessage(role="user", content=LINK)])

    shown = project(prompt, FIRST)

    assert "a: file:///a" == shown.messages[0].content.text


def test_unknown_content_is_handed_on():
    """Ours: we cannot know which revisions know a type that we do not."""
    unknown = wire.UnknownContent(type="hologram", depth=3)

    assert content_of(unknown, FIRST) is unknown


@pytest.mark.parametrize("structured", [{"a": 1}, [1, 2], "text", None, 7])
def test_structured_content_becomes_json_text(structured):
    """Ours: where there is no structured content and no text, the JSON is the text."""
    shown = project(wire.CallToolResult(content=[IMAGE], structured_content=structured), MARCH)

    assert shown.structured_content is UNSET
    assert IMAGE == shown.content[0]
    assert structured == json.loads(shown.content[1].text)


def test_text_beside_structured_content_is_enough():
    """Ours: an author who writes text for models has said it already."""
    shown = project(wire.CallToolResult(content=[TEXT], structured_content={"a": 1}), MARCH)

    assert wire.CallToolResult(content=[TEXT]) == shown


@pytest.mark.parametrize("revision", [JUNE, NOVEMBER], ids=str)
@pytest.mark.parametrize("structured", [[1], "a", None, 0, True, Raw(b" [1]")])
def test_only_objects_are_structured_content_in_older_revisions(revision, structured):
    """Spec: up to 2025-11-25 structured content is an object; other JSON becomes text."""
    shown = project(wire.CallToolResult(content=[], structured_content=structured), revision)

    assert shown.structured_content is UNSET
    assert json.loads(encode(structured)) == json.loads(shown.content[0].text)


@pytest.mark.parametrize(
    "structured", [{}, {"a": 1}, Raw(b' {"a":1}'), wire.Root(uri="file:///a")], ids=type
)
def test_objects_stay_structured_content(structured):
    """Spec: an object is structured content since 2025-06-18, however it was made."""
    result = wire.CallToolResult(content=[TEXT], structured_content=structured)

    assert project(result, JUNE) is result


def test_any_structured_content_is_modern():
    """Spec: since 2026-07-28 structured content is any JSON."""
    result = wire.CallToolResult(content=[], structured_content=[1])

    assert project(result, MODERN) is result


@pytest.mark.parametrize("schema", [{"type": "array"}, {}, {"type": ["object", "null"]}])
def test_output_schemas_not_of_objects_are_dropped(schema):
    """Spec: up to 2025-11-25 an output schema says type: object."""
    tool = wire.Tool(name="a", input_schema={"type": "object"}, output_schema=schema)

    assert project(tool, NOVEMBER).output_schema is UNSET
    assert project(tool, MODERN) is tool


def test_boolean_property_schemas_are_spelled_out():
    """Spec: up to 2025-11-25 each property's schema is an object."""
    schema = {"type": "object", "properties": {"a": True, "b": False, "c": {}}}
    spelled = {"type": "object", "properties": {"a": {}, "b": {"not": {}}, "c": {}}}
    tool = wire.Tool(name="a", input_schema=schema, output_schema=schema)

    shown = project(tool, NOVEMBER)

    assert spelled == shown.input_schema
    assert spelled == shown.output_schema
    assert project(tool, MODERN) is tool


def split_message(content, revision=JUNE):
    """The contents of the messages that one message becomes."""
    message = wire.SamplingMessage(role="user", content=content)
    params = wire.CreateMessageParams(messages=[message], max_tokens=1)
    return [m.content for m in project(params, revision).messages]


def test_blocks_become_messages():
    """Spec: before 2025-11-25 a message has one block; several become as many messages."""
    assert [TEXT, IMAGE] == split_message([TEXT, IMAGE])
    assert [[TEXT, IMAGE]] == split_message([TEXT, IMAGE], NOVEMBER)


def test_a_message_of_one_block_is_left_alone():
    """Ours: params with nothing to change are the same object."""
    message = wire.SamplingMessage(role="user", content=TEXT)
    params = wire.CreateMessageParams(messages=[message], max_tokens=1)

    assert project(params, JUNE) is params


def test_an_empty_message_is_empty_text():
    """Ours: a turn without content is still a turn."""
    assert [wire.TextContent(text="")] == split_message([])


def test_calls_of_tools_become_words():
    """Ours: where models have no tools, what they called is told in text."""
    call = wire.ToolUseContent(id="1", name="add", input={"a": 1})

    assert [wire.TextContent(text='[call 1 of add: {"a":1}]')] == split_message(call)
    assert [call] == split_message(call, NOVEMBER)


def test_results_of_tools_become_words_and_blocks():
    """Ours: where models have no tools, what came back is told, and pictures stay pictures."""
    embedded = wire.EmbeddedResource(resource=wire.TextResourceContents(uri="file:///b", text="b"))
    result = wire.ToolResultContent(
        tool_use_id="1", content=[TEXT, IMAGE, LINK, embedded], is_error=True
    )

    told = split_message(result)

    assert ["[result of call 1 failed]", "hello"] == [told[0].text, told[1].text]
    assert IMAGE == told[2]
    assert "a: file:///a" == told[3].text
    assert {"uri": "file:///b", "text": "b"} == json.loads(told[4].text)


def test_results_of_tools_without_content_become_json():
    """Ours: structured content is told where it is all there is."""
    result = wire.ToolResultContent(tool_use_id="1", content=[], structured_content=[1])

    assert ["[result of call 1]", "[1]"] == [block.text for block in split_message(result)]


def test_structured_results_of_tools_are_objects_in_november():
    """Spec: 2025-11-25 has objects only, in messages to models too."""
    result = wire.ToolResultContent(tool_use_id="1", content=[], structured_content=[1])

    (told,) = split_message(result, NOVEMBER)

    assert told.structured_content is UNSET
    assert "[1]" == told.content[0].text


def test_sound_for_a_model_is_mentioned_where_there_is_none():
    """Ours: a message to a model cannot embed a file, so 2024-11-05 gets a note."""
    assert "[audio/wav left out: this revision has no audio]" == split_message(AUDIO, FIRST)[0].text
    assert [AUDIO] == split_message(AUDIO, MARCH)


def wrote(content, revision=JUNE):
    """A model's message as a revision shows it."""
    result = wire.CreateMessageResult(role="assistant", content=content, model="m")
    return project(result, revision).content


def test_what_a_model_wrote_is_one_block():
    """Ours: all words are kept in one text, and what cannot be is named."""
    unknown = wire.UnknownContent(type="hologram")

    assert TEXT is wrote([TEXT])
    assert "hello\n\nworld" == wrote([TEXT, wire.TextContent(text="world")]).text
    assert (
        "[image/png left out: this revision of MCP has one block only]\n\nhello\n\n"
        "[hologram left out: this revision of MCP has one block only]"
    ) == wrote([IMAGE, TEXT, unknown]).text
    assert IMAGE is wrote([IMAGE, IMAGE])
    assert [IMAGE, TEXT] == wrote([IMAGE, TEXT], NOVEMBER)


def test_a_message_of_its_own_is_one_block():
    """Ours: a sampling message outside a conversation is made to fit as well."""
    message = wire.SamplingMessage(role="user", content=[TEXT, TEXT])

    assert "hello\n\nhello" == project(message, JUNE).content.text


def test_a_page_has_an_id_where_one_is_required():
    """Spec: 2025-11-25 requires elicitationId in url mode; 2026-07-28 has none."""
    page = wire.ElicitParams(mode="url", message="a", url="https://example.com/")
    named = wire.ElicitParams(
        mode="url", message="a", url="https://example.com/", elicitation_id="7"
    )

    assert "https://example.com/" == project(page, NOVEMBER).elicitation_id
    assert project(named, NOVEMBER) is named
    assert project(page, MODERN) is page
    assert page == project(named, MODERN)


@pytest.mark.parametrize("revision", [JUNE, NOVEMBER, MODERN], ids=str)
def test_a_form_has_a_schema(revision):
    """Spec: requestedSchema is required in form mode, of a question without blanks too."""
    question = project(wire.ElicitParams(message="Sure?"), revision)

    assert {"type": "object", "properties": {}} == question.requested_schema


def test_named_choices_are_spelled_as_june_does():
    """Spec: 2025-06-18 names choices by enumNames only."""
    schema = {
        "type": "object",
        "properties": {
            "seat": {
                "type": "string",
                "title": "Seat",
                "oneOf": [{"const": "a", "title": "Aisle"}, {"const": "w"}],
            },
            "row": {"type": "integer"},
        },
    }
    question = wire.ElicitParams(message="Which?", requested_schema=schema)

    shown = project(question, JUNE).requested_schema["properties"]

    expected = {"type": "string", "title": "Seat", "enum": ["a", "w"], "enumNames": ["Aisle", "w"]}
    assert {"seat": expected, "row": {"type": "integer"}} == shown
    assert project(question, NOVEMBER) is question


def test_a_form_that_june_can_show_is_left_alone():
    """Ours: nothing to change is the same object, even for a schema out of shape."""
    for schema in ({"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}):
        question = wire.ElicitParams(message="a", requested_schema=schema)

        assert project(question, JUNE) is question


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        (wire.ElicitationCapability(url={}), UNSET),
        (wire.ElicitationCapability(url={}, form={}), wire.ElicitationCapability()),
        (wire.ElicitationCapability(), wire.ElicitationCapability()),
        (UNSET, UNSET),
    ],
)
def test_a_client_of_pages_only_promises_june_no_forms(declared, shown):
    """Ours: cut to an empty object, a capability for pages would promise forms."""
    capabilities = wire.ClientCapabilities(elicitation=declared)

    assert shown == project(capabilities, JUNE).elicitation
    assert declared == project(capabilities, NOVEMBER).elicitation


@pytest.mark.parametrize("revision", LEGACY, ids=str)
def test_doing_it_twice_is_doing_it_once(revision):
    """Ours: every stand-in is something the revision can say."""
    result = wire.CallToolResult(content=[AUDIO, LINK, IMAGE], structured_content=[1])
    sent = project(result, revision)

    assert project(sent, revision) is sent
