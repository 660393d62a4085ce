"""Schemas of the extension for tasks, which adds to 2026-07-28, in our words.

The extension is published apart from the revisions, so that its shapes are written down here; the
definitions they refer to are those of the official schema.
"""

from typing import Any

REVISION = "2026-07-28"

METHODS = {
    "client": {
        "tasks/get": "TaskIdParams",
        "tasks/cancel": "TaskIdParams",
        "tasks/update": "UpdateTaskParams",
    },
    "server": {"notifications/tasks": "DetailedTask"},
}
"""The params of each method by the side that sends it."""

RESULTS = {"tasks/get": "DetailedTask", "tasks/cancel": "Done", "tasks/update": "Done"}
"""The result of each request."""

MEMBERS = {"SubscriptionFilter": {"taskIds": {"type": "array", "items": {"type": "string"}}}}
"""What it adds to definitions of the revision."""

_TASK: dict[str, Any] = {
    "_meta": {"type": "object"},
    "resultType": {"type": "string"},
    "taskId": {"type": "string", "minLength": 1},
    "status": {"enum": ["working", "input_required", "completed", "cancelled", "failed"]},
    "statusMessage": {"type": "string"},
    "createdAt": {"type": "string", "format": "date-time"},
    "lastUpdatedAt": {"type": "string", "format": "date-time"},
    "ttlMs": {"type": ["integer", "null"]},
    "pollIntervalMs": {"type": "integer"},
}
_REQUIRED = ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]


def _make_status_schema(status: str, **members: Any) -> dict[str, Any]:
    """A task of one status: it brings these members, and no others."""
    return {
        "type": "object",
        "properties": {**_TASK, "status": {"const": status}, **members},
        "required": [*_REQUIRED, *members],
        "additionalProperties": False,
    }


DEFINITIONS: dict[str, Any] = {
    "TaskIdParams": {
        "type": "object",
        "properties": {"taskId": {"type": "string"}, "_meta": {"type": "object"}},
        "required": ["taskId", "_meta"],
        "additionalProperties": False,
    },
    "UpdateTaskParams": {
        "type": "object",
        "properties": {
            "taskId": {"type": "string"},
            "inputResponses": {"$ref": "#/$defs/InputResponses"},
            "_meta": {"type": "object"},
        },
        "required": ["taskId", "inputResponses", "_meta"],
        "additionalProperties": False,
    },
    "TaskCreated": {
        "type": "object",
        "properties": {**_TASK, "resultType": {"const": "task"}},
        "required": ["resultType", *_REQUIRED],
        "additionalProperties": False,
    },
    "DetailedTask": {
        "oneOf": [
            _make_status_schema("working"),
            _make_status_schema("cancelled"),
            _make_status_schema("input_required", inputRequests={"$ref": "#/$defs/InputRequests"}),
            _make_status_schema("completed", result={"$ref": "#/$defs/CallToolResult"}),
            _make_status_schema("failed", error={"$ref": "#/$defs/Error"}),
        ]
    },
    "Done": {
        "type": "object",
        "properties": {"resultType": {"const": "complete"}, "_meta": {"type": "object"}},
        "required": ["resultType"],
        "additionalProperties": False,
    },
}
