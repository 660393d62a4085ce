"""Output schemas of content blocks in the spelling of ``mcp`` 1.x, for tools that return them."""

from typing import Any

from isthmus.compat import types

# The description of each type, whose member ``type`` has no default there; None is none.
DESCRIPTIONS: dict[str, str | None] = {
    "Annotations": None,
    "Icon": "An icon for display in user interfaces.",
    "TextContent": "Text content for a message.",
    "ImageContent": "Image content for a message.",
    "AudioContent": "Audio content for a message.",
    "TextResourceContents": "Text contents of a resource.",
    "BlobResourceContents": "Binary contents of a resource.",
    "EmbeddedResource": (
        "The contents of a resource, embedded into a prompt or tool call result.\n\n"
        "It is up to the client how best to render embedded resources for the benefit\n"
        "of the LLM and/or the user."
    ),
    "ResourceLink": (
        "A resource that the server is capable of reading, included in a prompt or tool call result.\n\n"
        "Note: resource links returned by tools are not guaranteed to appear in the results of "
        "`resources/list` requests."
    ),
}
NEWER_MEMBERS = {"Annotations": "lastModified", "Icon": "theme"}
URI_TYPES = ("TextResourceContents", "BlobResourceContents", "ResourceLink")


def spell_older_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """An output schema with the types of the protocol as ``mcp`` 1.x has them."""
    made = _spell_type(schema)
    definitions = made.get("$defs")
    if not isinstance(definitions, dict):
        return made
    return {**made, "$defs": {key: _spell_type(one) for key, one in definitions.items()}}


def _spell_type(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("title")
    if name not in DESCRIPTIONS or not _is_protocol_type(name, schema):
        return schema
    members = {
        key: one for key, one in schema["properties"].items() if key != NEWER_MEMBERS.get(name)
    }
    required = {*schema.get("required", ())}
    if "type" in members:
        members["type"] = {key: value for key, value in members["type"].items() if key != "default"}
        required.add("type")
    if name in URI_TYPES:
        members["uri"] = {"format": "uri", "minLength": 1, **members["uri"]}
    if name == "Annotations":
        number, *rest = members["priority"]["anyOf"]
        bounded = {"maximum": 1.0, "minimum": 0.0, **number}
        members["priority"] = {**members["priority"], "anyOf": [bounded, *rest]}
    made = {**schema, "properties": members}
    if DESCRIPTIONS[name] is not None:
        made["description"] = DESCRIPTIONS[name]
    if required:
        made["required"] = [key for key in members if key in required]
    return made


def _is_protocol_type(name: str, schema: dict[str, Any]) -> bool:
    """Whether a schema is that of a type of the protocol, and not of a program's own type of its name."""
    own = getattr(types, name).model_json_schema(by_alias=True)["properties"]
    return {*own} == {*schema.get("properties", ())}
