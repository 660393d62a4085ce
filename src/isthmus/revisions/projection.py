"""Projection: cut a newest-shape value down to a revision, and say differently what that cannot say.

For each revision and struct the cutting function is compiled when it is first needed: it drops
the members the revision lacks, and looks into those members only whose types have something to
cut. For most structs there is nothing to do, and then a projection is two dictionary lookups.

Nothing is lost without a word. ``REPLACEMENTS`` has, for each kind of content that some revisions
lack, what stands in its place. ``REWRITES`` has, for each struct whose older
form is more than a choice of members, what makes the older form; a row is asked once per revision
and answers None where there is nothing to do.
"""

from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, get_args

from msgspec import UNSET, Raw, Struct
from msgspec.structs import fields, replace

from isthmus import wire
from isthmus.revisions.table import Era, Feature, Revision
from isthmus.wire.jsonrpc import encode

Rewrite: TypeAlias = Callable[[Any], Any]
"""A value in the newest shape → the same, with an older form's meaning."""


def _to_json(value: Any) -> str:
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


# What stands in the place of a block whose type the revision lacks
REPLACEMENTS: Mapping[type, Rewrite] = {
    wire.AudioContent: _audio_as_resource,
    wire.ResourceLink: _link_as_text,
}


# Structured output


def _downgrade_structured(revision: Revision) -> Rewrite | None:
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
            content = [*content, wire.TextContent(text=_to_json(structured))]
        return replace(value, content=content, structured_content=UNSET)

    return rewrite


def _is_object(value: Any) -> bool:
    if type(value) is Raw:  # as nearly every tool has it
        first = bytes(memoryview(value)[:1])  # and not the whole, which may be long
        return first == b"{" or (first.isspace() and bytes(value).lstrip()[:1] == b"{")
    if isinstance(value, dict):
        return True
    if isinstance(value, str | int | float | list | None):
        return False
    return isinstance(value, Struct) or encode(value)[:1] == b"{"


def _downgrade_tool(revision: Revision) -> Rewrite | None:
    """Schemas as older revisions want them: of objects, whose properties are objects."""
    if revision.era is Era.MODERN:
        return None

    def rewrite(tool: wire.Tool) -> wire.Tool:
        input_schema = _spell_out_booleans(tool.input_schema)
        output_schema = tool.output_schema
        if output_schema is not UNSET:
            of_objects = output_schema.get("type") == "object"
            output_schema = _spell_out_booleans(output_schema) if of_objects else UNSET
        if input_schema is tool.input_schema and output_schema is tool.output_schema:
            return tool
        return replace(tool, input_schema=input_schema, output_schema=output_schema)

    return rewrite


_BOOLEAN_SCHEMAS: Mapping[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}


def _spell_out_booleans(schema: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema's ``true`` and ``false`` spelled as objects, among the properties."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not any(
        isinstance(p, bool) for p in properties.values()
    ):
        return schema
    plain = {k: _BOOLEAN_SCHEMAS[p] if isinstance(p, bool) else p for k, p in properties.items()}
    return {**schema, "properties": plain}


# Sampling


def _downgrade_conversation(revision: Revision) -> Rewrite | None:
    """One message for each block, where a message has one block only."""
    if revision.has(Feature.SAMPLING_TOOLS):
        return None

    def rewrite(params: wire.CreateMessageParams) -> wire.CreateMessageParams:
        split = [_split_blocks(message.content, revision) for message in params.messages]
        pairs = list(zip(params.messages, split, strict=True))
        if all(blocks == [message.content] for message, blocks in pairs):
            return params
        messages = [replace(m, content=block) for m, blocks in pairs for block in blocks]
        return replace(params, messages=messages)

    return rewrite


def _downgrade_message(revision: Revision) -> Rewrite | None:
    """One block for all, where a message has one block only: the words, or else the first."""
    if revision.has(Feature.SAMPLING_TOOLS):
        return None

    def rewrite(message: Any) -> Any:
        blocks = _split_blocks(message.content, revision)
        block = blocks[0] if len(blocks) == 1 else _merge_texts(blocks)
        return message if block is message.content else replace(message, content=block)

    return rewrite


def _merge_texts(blocks: list[Any]) -> Any:
    if not any(type(block) is wire.TextContent for block in blocks):
        return blocks[0]
    return wire.TextContent(text="\n\n".join(_describe_block(block) for block in blocks))


def _describe_block(block: Any) -> str:
    if type(block) is wire.TextContent:
        return block.text
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "mime_type", UNSET)
    return f"[{kind or type(block).__name__} left out: this revision of MCP has one block only]"


def _split_blocks(content: Any, revision: Revision) -> list[Any]:
    """Blocks that can each be the whole content of a message; at least one."""
    given = content if isinstance(content, list) else [content]
    blocks = [b for block in given for b in _drop_tools(block, revision)]
    return blocks or [wire.TextContent(text="")]


def _drop_tools(block: Any, revision: Revision) -> Iterable[Any]:
    if isinstance(block, wire.ToolUseContent):
        yield wire.TextContent(text=f"[call {block.id} of {block.name}: {_to_json(block.input)}]")
    elif isinstance(block, wire.ToolResultContent):
        failed = " failed" if block.is_error else ""
        yield wire.TextContent(text=f"[result of call {block.tool_use_id}{failed}]")
        if block.structured_content is not UNSET and not block.content:
            yield wire.TextContent(text=_to_json(block.structured_content))
        for inner in block.content:
            yield from _drop_tools(inner, revision)
    elif isinstance(block, wire.ResourceLink):
        yield _link_as_text(block)
    elif isinstance(block, wire.EmbeddedResource):
        yield wire.TextContent(text=_to_json(block.resource))
    elif isinstance(block, wire.AudioContent) and not revision.knows(wire.AudioContent):
        yield wire.TextContent(text=f"[{block.mime_type} left out: this revision has no audio]")
    else:
        yield block


# Elicitation


def _downgrade_elicitation(revision: Revision) -> Rewrite:
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
        older = _downgrade_form(form) if plain else form
        return params if older is form else replace(params, requested_schema=older)

    return rewrite


def _downgrade_form(form: dict[str, Any]) -> dict[str, Any]:
    """Named choices as ``enum`` and ``enumNames``, the only way 2025-06-18 has."""
    properties = form.get("properties")
    if not isinstance(properties, dict) or not any(map(_has_choices, properties.values())):
        return form
    plain = {k: _downgrade_choices(p) if _has_choices(p) else p for k, p in properties.items()}
    return {**form, "properties": plain}


def _has_choices(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("oneOf"), list)


def _downgrade_choices(schema: dict[str, Any]) -> dict[str, Any]:
    options = schema["oneOf"]
    kept = {k: v for k, v in schema.items() if k != "oneOf"}
    names = [option.get("title", option.get("const")) for option in options]
    return {**kept, "enum": [option.get("const") for option in options], "enumNames": names}


def _downgrade_capabilities(revision: Revision) -> Rewrite | None:
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


# What makes a struct's older form, before its members are cut
REWRITES: Mapping[type, Callable[[Revision], Rewrite | None]] = {
    wire.CallToolResult: _downgrade_structured,
    wire.ToolResultContent: _downgrade_structured,
    wire.Tool: _downgrade_tool,
    wire.CreateMessageParams: _downgrade_conversation,
    wire.CreateMessageResult: _downgrade_message,
    wire.SamplingMessage: _downgrade_message,
    wire.ElicitParams: _downgrade_elicitation,
    wire.ClientCapabilities: _downgrade_capabilities,
}


T = TypeVar("T")
Cut: TypeAlias = Callable[[Any], Any]


def project(value: T, revision: Revision) -> T:
    """``value`` as it may be sent in ``revision``; the same object when nothing needs to change.

    What the revision cannot say is said differently where that is possible, see
    ``REWRITES``. Raw JSON and plain data are left alone. Doing it twice is
    doing it once.

    Args:
        value: what is to be sent: a struct, or anything else, which is left alone.
        revision: the revision of the connection.
    """
    cut = _SENDING[revision][type(value)]
    return value if cut is None else cut(value)


def find_cuts(revision: Revision) -> Mapping[type, Cut | None]:
    """What :func:`project` calls for a value of each type, in one revision; None where nothing is to be done."""
    return _SENDING[revision]


def find_receiving_cut(shape: Any, revision: Revision) -> Cut | None:
    """What :func:`accept` calls for values that were decoded as ``shape``; None where nothing is to be done."""
    if isinstance(shape, type):
        return _RECEIVING[revision][shape]
    return lambda value: accept(value, revision)  # one of several types


def accept(value: T, revision: Revision) -> T:
    """``value`` without the members that ``revision`` does not have.

    For what comes in: nobody can use a member that their revision lacks.

    Args:
        value: what came in: a struct, or anything else, which is left alone.
        revision: the revision of the connection.
    """
    cut = _RECEIVING[revision][type(value)]
    return value if cut is None else cut(value)


class _Cuts(dict[type, Cut | None]):
    """The function that cuts each struct to one revision, or None; compiled on first use."""

    def __init__(self, revision: Revision, *, sending: bool) -> None:
        super().__init__()
        self._revision = revision
        self._sending = sending
        self._compiling: set[type] = set()

    def __missing__(self, shape: type) -> Cut | None:
        cut = self[shape] = self._compile(shape) if issubclass(shape, Struct) else None
        return cut

    def _compile(self, shape: type[Struct]) -> Cut | None:
        if self._sending and shape in REPLACEMENTS and not self._revision.knows(shape):
            return self._substitute(REPLACEMENTS[shape])
        rewrite = self._rewrite(shape)
        known = self._revision.visible_members(shape)
        hidden = tuple(name for name in shape.__struct_fields__ if name not in known)
        self._compiling.add(shape)
        nested = tuple(
            field.name
            for field in fields(shape)
            if field.name in known and any(map(self._cuts, _list_structs(field.type)))
        )
        self._compiling.discard(shape)
        if not hidden and not nested:
            return rewrite
        return self._cutter(rewrite, hidden, nested)

    def _rewrite(self, shape: type) -> Rewrite | None:
        row = REWRITES.get(shape) if self._sending else None
        return None if row is None else row(self._revision)

    def _cuts(self, shape: type) -> bool:
        """Whether there may be something to cut; yes for a struct that holds its own kind."""
        return shape in self._compiling or self[shape] is not None

    def _substitute(self, instead: Rewrite) -> Cut:
        def cut(value: Any) -> Any:
            return self._walk(instead(value))

        return cut

    def _cutter(
        self, rewrite: Rewrite | None, hidden: tuple[str, ...], nested: tuple[str, ...]
    ) -> Cut:
        walk = self._walk
        # One call in C reads them all; of one name it answers with the value, else with a tuple.
        read = attrgetter(*hidden) if hidden else None
        nothing = UNSET if len(hidden) == 1 else (UNSET,) * len(hidden)

        def cut(value: Any) -> Any:
            if rewrite is not None:
                value = rewrite(value)
            changes: dict[str, Any] | None = None
            if read is not None and read(value) != nothing:
                changes = dict.fromkeys(hidden, UNSET)
            for name in nested:
                before = getattr(value, name)
                after = walk(before)
                if after is not before:
                    changes = {name: after} if changes is None else {**changes, name: after}
            return value if changes is None else replace(value, **changes)

        return cut

    def _walk(self, value: Any) -> Any:
        if type(value) is not list:
            cut = self[type(value)]
            return value if cut is None else cut(value)
        items = value
        for i, item in enumerate(value):
            cut = self[type(item)]
            if cut is not None and (after := cut(item)) is not item:
                items = items.copy() if items is value else items
                items[i] = after
        return items


class _ByRevision(dict[Revision, _Cuts]):
    def __init__(self, *, sending: bool) -> None:
        super().__init__()
        self._sending = sending

    def __missing__(self, revision: Revision) -> _Cuts:
        cuts = self[revision] = _Cuts(revision, sending=self._sending)
        return cuts


_SENDING = _ByRevision(sending=True)
_RECEIVING = _ByRevision(sending=False)


def _list_structs(annotation: Any) -> Iterator[type]:
    """The structs that an annotation names, inside unions and lists too."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        yield annotation
    for argument in get_args(annotation):
        yield from _list_structs(argument)
