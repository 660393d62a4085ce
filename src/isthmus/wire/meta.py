"""The reserved keys of ``_meta``, and the parts of ``params`` that concern every method."""

import re
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, field

from isthmus.wire.identity import Implementation
from isthmus.wire.lifecycle import ClientCapabilities
from isthmus.wire.notifications import LogLevel
from isthmus.wire.struct import UNSET, Id, Meta, UnsetType, Wire

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
"""The revision of a request: a member of ``_meta``."""
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
"""Name and version of the client: a member of ``_meta``."""
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""Capabilities of the client: a member of ``_meta``."""
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
"""The least severe level of log messages that the client wants: a member of ``_meta``."""
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""The id of the subscription that a notification belongs to: a member of ``_meta``."""
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""Name and version of the server: a member of ``_meta``."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
"""The task that a message belongs to: a member of ``_meta``."""
IMMEDIATE_RESPONSE = "io.modelcontextprotocol/model-immediate-response"
"""A text that the model may have while a task runs: a member of ``_meta``."""


class RequestMeta(Wire, frozen=True, kw_only=True):
    """The reserved members of a request's ``_meta``; other members are not kept here.

    Since 2026-07-28 (basic#_meta) every request states its revision and its sender's
    capabilities.

    Attributes:
        progress_token: the token that notifications of progress carry; absent where none are
            wanted.
        protocol_version: the revision of the request (since 2026-07-28).
        client_info: name and version of the client (since 2026-07-28).
        client_capabilities: what the client can do (since 2026-07-28).
        log_level: the least severe log messages wanted (since 2026-07-28).
    """

    progress_token: Id | UnsetType = UNSET
    protocol_version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)
    client_info: Implementation | UnsetType = field(default=UNSET, name=CLIENT_INFO)
    client_capabilities: ClientCapabilities | UnsetType = field(
        default=UNSET, name=CLIENT_CAPABILITIES
    )
    log_level: LogLevel | UnsetType = field(default=UNSET, name=LOG_LEVEL)


class Envelope(Wire, frozen=True, kw_only=True):
    """The members of ``params`` that concern every method.

    ``name``, ``uri`` and ``task_id`` are strings in every method of the specification; a custom
    method may use these members for anything.

    Attributes:
        meta: the reserved members of ``_meta``.
        name: the tool or the prompt.
        uri: the resource.
        task_id: the task.
    """

    meta: RequestMeta | UnsetType = UNSET
    name: Any = UNSET
    uri: Any = UNSET
    task_id: Any = UNSET


class _MetaParams(msgspec.Struct, rename={"meta": "_meta"}):
    meta: dict[str, Any] = {}


_decode_params = msgspec.json.Decoder(_MetaParams).decode


def read_meta(params: Raw | None) -> Meta:
    """The whole ``_meta`` of a request, keys nobody knows included; empty where there is none."""
    try:
        return {} if params is None else _decode_params(params).meta
    except msgspec.DecodeError:
        return {}


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"


@lru_cache(maxsize=256)  # the keys of programs are few, and come with every call
def find_key_flaw(key: object) -> str | None:
    """Find what is wrong with a key that a program puts into ``_meta``; None where nothing is."""
    # spec 2026-07-28 basic#_meta: an optional prefix of labels and a slash, and a name
    if not isinstance(key, str) or not re.fullmatch(_KEY, key):
        return f"{key!r} is no key of _meta: com.example/name has a prefix, a slash and a name"
    if key == "progressToken":
        # spec 2026-07-28 basic/patterns/progress: tokens MUST be unique across active requests
        return "'progressToken' is chosen by the client: give on_progress= to be told of progress"
    return None
