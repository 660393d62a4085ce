"""The reserved keys of ``_meta``, and the parts of ``params`` that concern every method."""

from typing import Any

from msgspec import field

from isthmus.wire.base import UNSET, Id, UnsetType, Wire
from isthmus.wire.capabilities import ClientCapabilities
from isthmus.wire.identity import Implementation
from isthmus.wire.logging import LogLevel

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "IMMEDIATE_RESPONSE",
    "LOG_LEVEL",
    "PROTOCOL_VERSION",
    "RELATED_TASK",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "Envelope",
    "RequestMeta",
]

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
RELATED_TASK = "io.modelcontextprotocol/related-task"
IMMEDIATE_RESPONSE = "io.modelcontextprotocol/model-immediate-response"


class RequestMeta(Wire, frozen=True, kw_only=True):
    """The reserved members of a request's ``_meta``; other members are not kept here.

    Since 2026-07-28 (basic#_meta) every request states its revision and its sender's
    capabilities.
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
    """

    meta: RequestMeta | UnsetType = UNSET
    name: Any = UNSET
    uri: Any = UNSET
    task_id: Any = UNSET
