"""Extensions: how they are named, who declared which, and how their methods are refused.

An extension is optional, and both sides have to have it: each declares the extensions it supports
among its capabilities, as a map from the extension's identifier to its settings. Since 2026-07-28
a client does so in every request and a server in ``server/discover``; the revisions before have no
such member, so nobody has extensions there.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.errors import Refuse, UsageError
from isthmus.revisions import METHODS, Feature, Revision
from isthmus.wire import ClientCapabilities, ServerCapabilities
from isthmus.wire.jsonrpc import encode

# The prefix of the extensions that the protocol's own organisation publishes
OFFICIAL_PREFIX = "io.modelcontextprotocol"

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_PREFIX = rf"{_LABEL}(?:\.{_LABEL})*"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_RESERVED = {"modelcontextprotocol", "mcp"}


def check_own_method(name: str) -> None:
    """See to it that a method of one's own is named otherwise than those of the specification.

    Raises:
        UsageError: the specification has a method of this name.
    """
    if name in METHODS:
        raise UsageError(f"{name!r} is a method of the specification: choose another name")


def check_identifier(identifier: str) -> str:
    """The identifier of an extension, if it may be one.

    Raises:
        UsageError: it breaks the naming rules; the message has the rule.
    """
    prefix, slash, name = identifier.partition("/")
    said = f"{identifier!r} cannot name an extension"
    # spec 2026-07-28 basic/versioning#extension-negotiation: as a key of _meta, and the prefix
    # is mandatory
    if not slash or not re.fullmatch(_PREFIX, prefix):
        raise UsageError(
            f"{said}: it needs a prefix of labels that begin with a letter and end with a letter "
            "or digit, as in com.example/refunds"
        )
    if not re.fullmatch(_NAME, name):
        raise UsageError(
            f"{said}: what follows the slash begins and ends with a letter or digit, and holds "
            "letters, digits, hyphens, underscores and dots only"
        )
    labels = prefix.split(".")
    # spec 2026-07-28 basic#_meta: a second label of these is reserved for MCP
    if len(labels) > 1 and labels[1].lower() in _RESERVED and prefix != OFFICIAL_PREFIX:
        raise UsageError(
            f"{said}: prefixes whose second label is modelcontextprotocol or mcp are reserved; use "
            "a domain of yours, reversed"
        )
    return identifier


def check_settings(identifier: str, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of an extension as they will be declared; none are an empty object.

    Raises:
        UsageError: they are no JSON object.
    """
    try:
        plain = msgspec.json.decode(encode(settings or {}))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the settings of {identifier} cannot be sent: {error}") from error
    if not isinstance(plain, dict):
        raise UsageError(f"the settings of {identifier} are an object, not {settings!r}")
    return plain


def find_settings(
    capabilities: ClientCapabilities | ServerCapabilities, identifier: str
) -> Mapping[str, Any] | None:
    """The settings a side declared for an extension, or None where it did not declare it."""
    declared = capabilities.extensions
    return declared.get(identifier) if declared else None


def refuse_undeclared(identifier: str, method: str, revision: Revision) -> Refuse:
    """Refuse a request that takes an extension its sender did not declare.

    Args:
        identifier: the extension.
        method: the request's method.
        revision: the revision the request is served in.
    """
    if revision.has(Feature.EXTENSIONS):
        # spec 2026-07-28 basic#_meta: MUST refuse with the capabilities that are missing
        return Refuse(
            -32021,
            f"{method} takes the extension {identifier}, which the client did not declare",
            {"requiredCapabilities": {"extensions": {identifier: {}}}},
        )
    return Refuse(-32601, f"Method not found: {method} in revision {revision.name}")
