"""The configuration as a JSON Schema, for editors; made from the structs that read it."""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from isthmus.host.config.entries import HostOptions, ServerOptions
from isthmus.host.config.forms import form_of, type_of
from isthmus.host.config.servers import KINDS

__all__ = ["ADDRESS", "schema"]

ADDRESS = "https://json-schema.org/draft/2020-12/schema"

TEXTS = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}

FORMS: Mapping[str, dict[str, Any]] = {
    "duration": {
        "type": ["number", "string"],
        "minimum": 0,
        "pattern": r"^\s*\d+(\.\d+)?\s*(ms|s|m|min|h|d)\s*$",
    },
    "rate": {
        "type": ["number", "string"],
        "exclusiveMinimum": 0,
        "pattern": r"^\s*\d+(\.\d+)?\s*/\s*[A-Za-z]+\s*$",
    },
    "size": {
        "type": ["integer", "string"],
        "minimum": 0,
        "pattern": r"^\s*\d+(\.\d+)?\s*[A-Za-z]*\s*$",
    },
    "pin": {
        "anyOf": [
            {"type": "string", "pattern": "^((sha256[:-])?[0-9a-fA-F]{64})?$"},
            {
                "type": "object",
                "required": ["sha256"],
                "properties": {"sha256": {"type": "string"}},
            },
        ]
    },
}
"""What a file may have where the struct has a form of its own."""

WORDS: tuple[tuple[type, dict[str, Any]], ...] = (
    (inspect.BoolType, {"type": "boolean"}),
    (inspect.IntType, {"type": "integer"}),
    (inspect.FloatType, {"type": "number"}),
    (inspect.StrType, {"type": "string"}),
    (inspect.AnyType, {}),
)


def schema() -> dict[str, Any]:
    """What a file of a configuration may say; members of others are let through."""
    server = _server()
    servers = {"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}
    return {
        "$schema": ADDRESS,
        "title": "mcp.json as isthmus reads it",
        "type": "object",
        "properties": {
            "mcpServers": {**servers, "description": "Servers, by the name they have here."},
            "servers": {**servers, "description": "The same, as VS Code calls it."},
            "inputs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {
                        "id": {"type": "string"},
                        "description": {"type": "string"},
                        "default": {"type": "string"},
                        "password": {"type": "boolean"},
                    },
                },
            },
            "host": {**_shape(type_of(HostOptions)), "description": "How the host behaves."},
        },
        "$defs": {"server": server},
    }


def _server() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The program that is run."},
            "args": {"type": "array", "items": {"type": ["string", "number"]}},
            "env": TEXTS,
            "envFile": {"type": "string"},
            "cwd": {"type": "string"},
            "type": {"type": "string", "enum": list(KINDS)},
            "url": {"type": "string", "description": "Where it is, if it is not launched."},
            "headers": TEXTS,
            "disabled": {"type": "boolean"},
            "host": {
                **_shape(type_of(ServerOptions)),
                "description": "What the host does with it.",
            },
        },
        "anyOf": [
            {"required": ["command"]},
            {"required": ["url"]},
            {"required": ["serverUrl"]},
            {"required": ["httpUrl"]},
        ],
    }


def _shape(kind: inspect.Type) -> dict[str, Any]:
    """The schema of one type."""
    form, inner = form_of(kind)
    if form in FORMS:
        shape = FORMS[form]
    elif form == "sandbox":
        shape = {"anyOf": [{"type": ["boolean", "null"]}, _sandbox(inner)]}
    else:
        shape = _plain(inner)
    optional = isinstance(kind, inspect.UnionType) and form != "sandbox"
    return {"anyOf": [shape, {"type": "null"}]} if optional else shape


def _plain(kind: inspect.Type) -> dict[str, Any]:
    """The schema of a type that has no form of its own."""
    shape = next((shape for word, shape in WORDS if isinstance(kind, word)), None)
    if shape is not None:
        return shape
    match kind:
        case inspect.LiteralType(values=values):
            return {"enum": list(values)}
        case inspect.VarTupleType(item_type=inner):
            return {"type": "array", "items": _shape(inner)}
        case inspect.DictType(value_type=inner):
            return {"type": "object", "additionalProperties": _shape(inner)}
        case _:
            return _struct(kind)


def _struct(kind: inspect.Type) -> dict[str, Any]:
    if not isinstance(kind, inspect.StructType):
        raise TypeError(f"no configuration has a {kind}")
    members = {field.encode_name: _shape(field.type) for field in kind.fields}
    required = [field.encode_name for field in kind.fields if field.required]
    return {"type": "object", "properties": members} | ({"required": required} if required else {})


def _sandbox(kind: inspect.Type) -> dict[str, Any]:
    """Ours, or with ``filesystem`` and ``network`` as others group it."""
    flat = _struct(kind)
    files = {k: v for k, v in flat["properties"].items() if k != "network"}
    network = {"anyOf": [{"type": "boolean"}, {"type": "object"}]}
    return {
        "type": "object",
        "properties": {
            **files,
            "network": network,
            "filesystem": {"type": "object", "properties": files},
        },
    }
