"""JSON Schema of the configuration, for editors; made from the structs that read it."""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from isthmus.host.config.forms import get_form, get_type
from isthmus.host.config.servers import KINDS_BY_WORD
from isthmus.host.model.entries import HostOptions, ServerOptions

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

TEXTS_SCHEMA = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}

# where the struct has a form of its own
FORM_SCHEMAS: Mapping[str, dict[str, Any]] = {
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

SCALAR_SCHEMAS: tuple[tuple[type, dict[str, Any]], ...] = (
    (inspect.BoolType, {"type": "boolean"}),
    (inspect.IntType, {"type": "integer"}),
    (inspect.FloatType, {"type": "number"}),
    (inspect.StrType, {"type": "string"}),
    (inspect.AnyType, {}),
)


def make_config_schema() -> dict[str, Any]:
    """Make the schema of a configuration file; members of other programs are let through."""
    server = _make_server_schema()
    servers = {"type": "object", "additionalProperties": {"$ref": "#/$defs/server"}}
    return {
        "$schema": SCHEMA_DIALECT,
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
            "host": {**_make_schema(get_type(HostOptions)), "description": "How the host behaves."},
        },
        "$defs": {"server": server},
    }


def _make_server_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The program that is run."},
            "args": {"type": "array", "items": {"type": ["string", "number"]}},
            "env": TEXTS_SCHEMA,
            "envFile": {"type": "string"},
            "cwd": {"type": "string"},
            "type": {"type": "string", "enum": list(KINDS_BY_WORD)},
            "url": {"type": "string", "description": "Where it is, if it is not launched."},
            "headers": TEXTS_SCHEMA,
            "disabled": {"type": "boolean"},
            "host": {
                **_make_schema(get_type(ServerOptions)),
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


def _make_schema(kind: inspect.Type) -> dict[str, Any]:
    form, inner = get_form(kind)
    if form in FORM_SCHEMAS:
        shape = FORM_SCHEMAS[form]
    elif form == "sandbox":
        shape = {"anyOf": [{"type": ["boolean", "null"]}, _make_sandbox_schema(inner)]}
    else:
        shape = _make_plain_schema(inner)
    optional = isinstance(kind, inspect.UnionType) and form != "sandbox"
    return {"anyOf": [shape, {"type": "null"}]} if optional else shape


def _make_plain_schema(kind: inspect.Type) -> dict[str, Any]:
    shape = next((shape for word, shape in SCALAR_SCHEMAS if isinstance(kind, word)), None)
    if shape is not None:
        return shape
    match kind:
        case inspect.LiteralType(values=values):
            return {"enum": list(values)}
        case inspect.VarTupleType(item_type=inner):
            return {"type": "array", "items": _make_schema(inner)}
        case inspect.DictType(value_type=inner):
            return {"type": "object", "additionalProperties": _make_schema(inner)}
        case _:
            return _make_struct_schema(kind)


def _make_struct_schema(kind: inspect.Type) -> dict[str, Any]:
    if not isinstance(kind, inspect.StructType):
        raise TypeError(f"no configuration has a {kind}")
    members = {field.encode_name: _make_schema(field.type) for field in kind.fields}
    required = [field.encode_name for field in kind.fields if field.required]
    return {"type": "object", "properties": members} | ({"required": required} if required else {})


def _make_sandbox_schema(kind: inspect.Type) -> dict[str, Any]:
    """Make the schema of a sandbox, also as others group it."""
    flat = _make_struct_schema(kind)
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
