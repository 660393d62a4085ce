"""Say it differently where a revision cannot say it; nothing is lost without a word.

Two tables, read by :mod:`isthmus.revisions.projection`. ``INSTEAD`` has, for each kind of content
that some revisions lack, what stands in its place. ``REWRITES`` has, for each struct whose older
form is more than a choice of members, what makes the older form; a row is asked once per revision
and answers None where there is nothing to do.
"""

from binascii import crc32
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from isthmus import wire
from isthmus.revisions.table import Era, Feature, Revision
from isthmus.wire.jsonrpc import encode

__all__ = ["INSTEAD", "REWRITES", "Rewrite"]

Rewrite: TypeAlias = Callable[[Any], Any]
"""A value in the newest shape → the same, with an older form's meaning."""


def _json(value: Any) -> str:
    return encode(value).decode()


# Content of a tool's result or of a prompt


def _audio_as_resource(audio: wire.AudioContent) -> wire.EmbeddedResource:
    """Sound as an embedded file, for clients that have no ``audio``; the URI only names it."""
    return wire.EmbeddedResource(
        resource=wire.BlobResourceContents(
            uri=f"audio://inline/{crc32(audio.data.encode()):08x}",
            mime_type=audio.mime_type,
            blob=audio.data,
        ),
        annotations=audio.annotations,
        meta=audio.meta,
    )


def _link_as_text(link: wire.ResourceLink) -> wire.TextContent:
    """A link as words and its URI, for clients that have no ``resource_link``."""
    kind = f" ({link.mime_type})" if link.mime_type else ""
    about = f"\n{link.description}" if link.description else ""
    text = f"{link.title or link.name}{kind}: {link.uri}{about}"
    return wire.TextContent(text=text, annotations=link.annotations, meta=link.meta)


INSTEAD: Mapping[type, Rewrite] = {
    wire.AudioContent: _audio_as_resource,
    wire.ResourceLink: _link_as_text,
}
"""What stands in the place of a block whose type the revision lacks."""


# Structured output


def _structured(revision: Revision) -> Rewrite | None:
    """Structured content as text where the revision has none, or has it for objects only."""
    if revision.era is Era.MODERN:
        return None
    allowed = revision.has(Feature.STRUCTURED_OUTPUT)

    def rewrite(value: Any) -> Any:
        structured = value.structured_content
        if structured is UNSET or (allowed and _is_object(structured)):
            return value
        content = value.content
        if not any(type(block) is wire.TextContent for block in content):
            content = [*content, wire.TextContent(text=_json(structured))]
        return replace(value, content=content, structured_content=UNSET)

    return rewrite


def _is_object(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    if isinstance(value, Raw):
        return bytes(value).lstrip()[:1] == b"{"
    if isinstance(value, str | int | float | list | None):
        return False
    return isinstance(value, Struct) or encode(value)[:1] == b"{"


def _tool(revision: Revision) -> Rewrite | None:
    """Schemas as older revisions want them: of objects, whose properties are objects."""
    if revision.era is Era.MODERN:
        return None

    def rewrite(tool: wire.Tool) -> wire.Tool:
        input_schema = _with_plain_properties(tool.input_schema)
        output_schema = tool.output_schema
        if output_schema is not UNSET:
            of_objects = output_schema.get("type") == "object"
            output_schema = _with_plain_properties(output_schema) if of_objects else UNSET
        if input_schema is tool.input_schema and output_schema is tool.output_schema:
            return tool
        return replace(tool, input_schema=input_schema, output_schema=output_schema)

    return rewrite


_PLAIN: Mapping[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}


def _with_plain_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema's ``true`` and ``false`` spelled as objects, among the properties."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(
        isinstance(p, bool) for p in properties.values()
    ):
        return schema
    plain = {k: _PLAIN[p] if isinstance(p, bool) else p for k, p in properties.items()}
    return {**schema, "properties": plain}


# Sampling


def _conversation(revision: Revision) -> Rewrite | None:
    """One message for each block, where a message has one block only."""
    if revision.has(Feature.SAMPLING_TOOLS):
        return None

    def rewrite(params: wire.CreateMessageParams) -> wire.CreateMessageParams:
        split = [_single_blocks(message.content, revision) for message in params.messages]
        pairs = list(zip(params.messages, split, strict=True))
        if all(blocks == [message.content] for message, blocks in pairs):
            return params
        messages = [replace(m, content=block) for m, blocks in pairs for block in blocks]
        return replace(params, messages=messages)

    return rewrite


def _message(revision: Revision) -> Rewrite | None:
    """One block for all, where a message has one block only: the words, or else the first."""
    if revision.has(Feature.SAMPLING_TOOLS):
        return None

    def rewrite(message: Any) -> Any:
        blocks = _single_blocks(message.content, revision)
        block = blocks[0] if len(blocks) == 1 else _merged(blocks)
        return message if block is message.content else replace(message, content=block)

    return rewrite


def _merged(blocks: list[Any]) -> Any:
    if not any(type(block) is wire.TextContent for block in blocks):
        return blocks[0]
    return wire.TextContent(text="\n\n".join(_words(block) for block in blocks))


def _words(block: Any) -> str:
    if type(block) is wire.TextContent:
        return block.text
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "mime_type", UNSET)
    return f"[{kind or type(block).__name__} left out: this revision of MCP has one block only]"


def _single_blocks(content: Any, revision: Revision) -> list[Any]:
    """Blocks that can each be the whole content of a message; at least one."""
    given = content if isinstance(content, list) else [content]
    blocks = [b for block in given for b in _without_tools(block, revision)]
    return blocks or [wire.TextContent(text="")]


def _without_tools(block: Any, revision: Revision) -> Iterable[Any]:
    if isinstance(block, wire.ToolUseContent):
        yield wire.TextContent(text=f"[call {block.id} of {block.name}: {_json(block.input)}]")
    elif isinstance(block, wire.ToolResultContent):
        failed = " failed" if block.is_error else ""
        yield wire.TextContent(text=f"[result of call {block.tool_use_id}{failed}]")
        if block.structured_content is not UNSET and not block.content:
            yield wire.TextContent(text=_json(block.structured_content))
        for inner in block.content:
            yield from _without_tools(inner, revision)
    elif isinstance(block, wire.ResourceLink):
        yield _link_as_text(block)
    elif isinstance(block, wire.EmbeddedResource):
        yield wire.TextContent(text=_json(block.resource))
    elif isinstance(block, wire.AudioContent) and not revision.knows(wire.AudioContent):
        yield wire.TextContent(text=f"[{block.mime_type} left out: this revision has no audio]")
    else:
        yield block


# Elicitation


def _question(revision: Revision) -> Rewrite:
    """The members that some revisions demand, and forms without what 2025-11-25 brought."""
    needs_id = "elicitation_id" in revision.members.get(wire.ElicitParams, ())
    plain = not revision.has(Feature.ELICITATION_URL)

    def rewrite(params: wire.ElicitParams) -> wire.ElicitParams:
        if params.mode == "url":
            if needs_id and params.elicitation_id is UNSET:
                return replace(params, elicitation_id=params.url)
            return params
        form = params.requested_schema
        if form is UNSET:
            return replace(params, requested_schema={"type": "object", "properties": {}})
        older = _plain_form(form) if plain else form
        return params if older is form else replace(params, requested_schema=older)

    return rewrite


def _plain_form(form: dict[str, Any]) -> dict[str, Any]:
    """Named choices as ``enum`` and ``enumNames``, the only way 2025-06-18 has."""
    properties = form.get("properties")
    if not isinstance(properties, dict) or not any(map(_has_choices, properties.values())):
        return form
    plain = {k: _plain_choices(p) if _has_choices(p) else p for k, p in properties.items()}
    return {**form, "properties": plain}


def _has_choices(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("oneOf"), list)


def _plain_choices(schema: dict[str, Any]) -> dict[str, Any]:
    options = schema["oneOf"]
    kept = {k: v for k, v in schema.items() if k != "oneOf"}
    names = [option.get("title", option.get("const")) for option in options]
    return {**kept, "enum": [option.get("const") for option in options], "enumNames": names}


def _client_capabilities(revision: Revision) -> Rewrite | None:
    """No elicitation at all where only pages can be opened and the revision knows forms only."""
    if revision.has(Feature.ELICITATION_URL) or not revision.has(Feature.ELICITATION_FORM):
        return None

    def rewrite(capabilities: wire.ClientCapabilities) -> wire.ClientCapabilities:
        way = capabilities.elicitation
        if way is UNSET or way.url is UNSET or way.form is not UNSET:
            return capabilities
        # An empty object means forms, which this client cannot show.
        return replace(capabilities, elicitation=UNSET)

    return rewrite


REWRITES: Mapping[type, Callable[[Revision], Rewrite | None]] = {
    wire.CallToolResult: _structured,
    wire.ToolResultContent: _structured,
    wire.Tool: _tool,
    wire.CreateMessageParams: _conversation,
    wire.CreateMessageResult: _message,
    wire.SamplingMessage: _message,
    wire.ElicitParams: _question,
    wire.ClientCapabilities: _client_capabilities,
}
"""What makes a struct's older form, before its members are cut."""
