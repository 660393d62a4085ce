"""Probes: the harmless questions that a server is asked, as data.

None of them calls a tool that the server has. Names that begin with ``isthmus-check`` are meant
not to exist anywhere.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.linter.rules.visit import ServerVisit

UNKNOWN_NAME = "isthmus-check-no-such-name"
UNKNOWN_URI = "isthmus-check://nowhere/nothing"

# Gives the params, or None where there is nothing to ask.
ProbeParams: TypeAlias = Callable[[ServerVisit], dict[str, Any] | None]

# Headers to send instead of the usual ones; None leaves one out.
ProbeHeaders: TypeAlias = Mapping[str, str | None]


class Probe(msgspec.Struct, frozen=True):
    """A question to a server.

    Attributes:
        name: what its outcome is known by.
        method: the method asked; empty where ``raw`` is sent as it is.
        params: its params, or what gives them.
        raw: the bytes to send; ``%(meta)s`` becomes what a modern request states about itself.
        id: the request's id, where it is to be a particular one.
        note: it is a notification.
        headers: HTTP headers that differ.
        verb: the HTTP method.
        needs: the capability without which it is not asked.
        lacks: the capability with which it is not asked.
        since: the first revision it is asked in.
        until: the last one.
        over: the transport it is for, or any.
        when: in the conversation; on a connection that was not opened by a handshake; or at the
            end, when nothing else is to be asked.
        stops: a notification after which no answer is waited for.
        near: it is asked of servers on this machine only.
        timeout: seconds to wait for the answer, where it is not the usual; 0 otherwise.
    """

    name: str
    method: str = ""
    params: Any = None  # Params, or a dict
    raw: bytes = b""
    id: Any = None
    note: bool = False
    headers: Any = None  # Headers
    verb: str = "POST"
    needs: str = ""
    lacks: str = ""
    since: str = "2024-11-05"
    until: str = "2026-07-28"
    over: Literal["any", "lines", "http"] = "any"
    when: Literal["during", "before", "end"] = "during"
    stops: str = ""
    near: bool = False
    timeout: float = 0

    def suits(self, visit: ServerVisit) -> bool:
        """Whether a server is to be asked this in a revision."""
        return (
            self.since <= visit.revision.name <= self.until
            and self.over in {"any", visit.over}
            and (visit.loopback or not self.near)
            and (not self.needs or visit.declares(self.needs))
            and not (self.lacks and visit.declares(self.lacks))
        )


LAST_LEGACY = "2025-11-25"
FIRST_MODERN = "2026-07-28"


def _name_first(kind: str, member: str) -> ProbeParams:
    """Params that name the first thing of a list."""

    def params(visit: ServerVisit) -> dict[str, Any] | None:
        listed = visit.items.get(kind)
        name = listed[0].get(member) if listed else None
        return {member: name} if isinstance(name, str) else None

    return params


def _find_plain_prompt(visit: ServerVisit) -> dict[str, Any] | None:
    """A prompt that needs no arguments."""
    for prompt in visit.items.get("prompts", ()):
        if not _needs_arguments(prompt) and isinstance(prompt.get("name"), str):
            return {"name": prompt["name"]}
    return None


def _find_needy_prompt(visit: ServerVisit) -> dict[str, Any] | None:
    """A prompt without the arguments that it needs."""
    for prompt in visit.items.get("prompts", ()):
        if _needs_arguments(prompt) and isinstance(prompt.get("name"), str):
            return {"name": prompt["name"], "arguments": {}}
    return None


def _needs_arguments(prompt: dict[str, Any]) -> bool:
    arguments = prompt.get("arguments")
    return any(
        isinstance(one, dict) and one.get("required") is True
        for one in (arguments if isinstance(arguments, list) else ())
    )


def _find_completion(visit: ServerVisit) -> dict[str, Any] | None:
    """Something to complete: the first argument of a prompt, or variable of a template."""
    for prompt in visit.items.get("prompts", ()):
        arguments = prompt.get("arguments")
        for one in arguments if isinstance(arguments, list) else ():
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                ref = {"type": "ref/prompt", "name": prompt.get("name")}
                return {"ref": ref, "argument": {"name": one["name"], "value": ""}}
    return None


_BAD_REF = {
    "ref": {"type": "ref/prompt", "name": UNKNOWN_NAME},
    "argument": {"name": UNKNOWN_NAME, "value": ""},
}
_CURSOR = {"cursor": "isthmus-check-no-such-cursor"}
_FILTER = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}

_COMMON = (
    # the conversation as such
    Probe("ping", "ping", until=LAST_LEGACY),
    Probe("ping with a string as its id", "ping", id="isthmus-check", until=LAST_LEGACY),
    Probe(
        "discover with a string as its id",
        "server/discover",
        id="isthmus-check",
        since=FIRST_MODERN,
    ),
    Probe("an unknown method", "isthmus-check/no-such-method"),
    Probe("an unknown notification", "notifications/isthmus-check", note=True),
    Probe(
        "a cancellation of nothing",
        "notifications/cancelled",
        {"requestId": "isthmus-check-no-such-id"},
        note=True,
        until=LAST_LEGACY,
    ),
    Probe("no JSON", raw=b'{"jsonrpc": "2.0", "id": 1, '),
    Probe(
        "an id of null",
        raw=b'{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{%(meta)s}}',
    ),
    Probe(
        "a fraction as its id",
        raw=b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{%(meta)s}}',
    ),
    Probe("no jsonrpc member", raw=b'{"id":"isthmus-check-2","method":"ping","params":{%(meta)s}}'),
    Probe("an answer to nothing", raw=b'{"jsonrpc":"2.0","id":"isthmus-check-3","result":{}}'),
    Probe(
        "a batch",
        raw=b'[{"jsonrpc":"2.0","id":"isthmus-check-4","method":"ping"},'
        b'{"jsonrpc":"2.0","id":"isthmus-check-5","method":"ping"}]',
        since="2025-03-26",
        until=LAST_LEGACY,
    ),
    Probe("an empty batch", raw=b"[]", since="2025-03-26", until="2025-03-26"),
    Probe("params of the wrong type", "tools/call", {"name": 7}, needs="tools"),
    # what is not there
    Probe("an unknown tool", "tools/call", {"name": UNKNOWN_NAME, "arguments": {}}, needs="tools"),
    Probe("an unknown prompt", "prompts/get", {"name": UNKNOWN_NAME}, needs="prompts"),
    Probe("an unknown resource", "resources/read", {"uri": UNKNOWN_URI}, needs="resources"),
    Probe("a bad cursor for tools", "tools/list", _CURSOR, needs="tools"),
    Probe("a bad cursor for prompts", "prompts/list", _CURSOR, needs="prompts"),
    Probe("a bad cursor for resources", "resources/list", _CURSOR, needs="resources"),
    Probe("a completion of nothing", "completion/complete", _BAD_REF, needs="completions"),
    Probe("tools that were not declared", "tools/list", lacks="tools"),
    Probe("prompts that were not declared", "prompts/list", lacks="prompts"),
    Probe("resources that were not declared", "resources/list", lacks="resources"),
    # what is there
    Probe("the list of tools once more", "tools/list", needs="tools"),
    Probe("a resource that is listed", "resources/read", _name_first("resources", "uri")),
    Probe("a prompt that is listed", "prompts/get", _find_plain_prompt),
    Probe("a prompt without its arguments", "prompts/get", _find_needy_prompt),
    Probe("a completion", "completion/complete", _find_completion, needs="completions"),
    Probe(
        "a log level", "logging/setLevel", {"level": "error"}, needs="logging", until=LAST_LEGACY
    ),
    Probe(
        "a bad log level",
        "logging/setLevel",
        {"level": "isthmus"},
        needs="logging",
        until=LAST_LEGACY,
    ),
    Probe(
        "a subscription",
        "resources/subscribe",
        _name_first("resources", "uri"),
        needs="resources.subscribe",
        until=LAST_LEGACY,
    ),
    Probe(
        "the end of a subscription",
        "resources/unsubscribe",
        _name_first("resources", "uri"),
        needs="resources.subscribe",
        until=LAST_LEGACY,
    ),
    Probe(
        "a stream of changes",
        "subscriptions/listen",
        _FILTER,
        since=FIRST_MODERN,
        stops="notifications/subscriptions/acknowledged",
    ),
    # what is gone
    Probe("ping, which is gone", "ping", since=FIRST_MODERN),
    Probe("setLevel, which is gone", "logging/setLevel", {"level": "error"}, since=FIRST_MODERN),
    Probe(
        "subscribe, which is gone", "resources/subscribe", {"uri": UNKNOWN_URI}, since=FIRST_MODERN
    ),
    # the handshake
    Probe(
        "initialize again",
        "initialize",
        {
            "protocolVersion": LAST_LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "isthmus-check", "version": "0"},
        },
        until=LAST_LEGACY,
        when="end",
    ),
    Probe("a request before initialize", "tools/list", until=LAST_LEGACY, when="before"),
    Probe("ping before initialize", "ping", until=LAST_LEGACY, when="before", over="lines"),
    Probe(
        "initialize with an unknown version",
        "initialize",
        {
            "protocolVersion": "1900-01-01",
            "capabilities": {},
            "clientInfo": {"name": "isthmus-check", "version": "0"},
        },
        until=LAST_LEGACY,
        when="before",
    ),
    Probe(
        "initialize in 2026-07-28",
        "initialize",
        {
            "protocolVersion": FIRST_MODERN,
            "capabilities": {},
            "clientInfo": {"name": "isthmus-check", "version": "0"},
        },
        until=LAST_LEGACY,
        when="before",
    ),
)

_VERSION = "mcp-protocol-version"
_WRONG = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "1900-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}

_MODERN = (
    Probe(
        "an unknown version",
        "tools/list",
        _WRONG,
        since=FIRST_MODERN,
        headers={_VERSION: "1900-01-01"},
    ),
    Probe(
        "a request that states nothing",
        raw=b'{"jsonrpc":"2.0","id":"isthmus-check-6","method":"tools/list","params":{"_meta":'
        b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}',
        since=FIRST_MODERN,
        headers={"mcp-method": "tools/list"},
    ),
)

_HTTP = (
    Probe("a foreign Origin", "ping", until=LAST_LEGACY, headers={"origin": "http://evil.example"}),
    Probe(
        "a foreign Origin",
        "server/discover",
        since=FIRST_MODERN,
        headers={"origin": "http://evil.example"},
    ),
    Probe(
        "a body that is no JSON by its type",
        "ping",
        headers={"content-type": "text/plain"},
        until=LAST_LEGACY,
    ),
    Probe(
        "a body that is no JSON by its type",
        "server/discover",
        headers={"content-type": "text/plain"},
        since=FIRST_MODERN,
    ),
    Probe(
        "GET",
        verb="GET",
        headers={"accept": "text/event-stream"},
        until=LAST_LEGACY,
        since="2025-03-26",
    ),
    Probe("a foreign Host", "ping", until=LAST_LEGACY, headers={"host": "evil.example"}, near=True),
    Probe(
        "a foreign Host",
        "server/discover",
        since=FIRST_MODERN,
        headers={"host": "evil.example"},
        near=True,
    ),
    Probe("GET", verb="GET", headers={"accept": "text/event-stream"}, since=FIRST_MODERN),
    Probe("PUT", verb="PUT"),
    Probe(
        "an unknown version in the header",
        "ping",
        headers={_VERSION: "1900-01-01"},
        since="2025-06-18",
        until=LAST_LEGACY,
    ),
    Probe(
        "no version in the header",
        "ping",
        headers={_VERSION: None},
        since="2025-06-18",
        until=LAST_LEGACY,
    ),
    Probe(
        "another version in the header",
        "tools/list",
        since=FIRST_MODERN,
        headers={_VERSION: LAST_LEGACY},
    ),
    Probe("no Mcp-Method", "tools/list", since=FIRST_MODERN, headers={"mcp-method": None}),
    Probe(
        "another Mcp-Method",
        "tools/list",
        since=FIRST_MODERN,
        headers={"mcp-method": "prompts/list"},
    ),
    Probe(
        "another Mcp-Name",
        "tools/call",
        {"name": UNKNOWN_NAME, "arguments": {}},
        since=FIRST_MODERN,
        needs="tools",
        headers={"mcp-name": "isthmus-check-another-name"},
    ),
    Probe(
        "no Mcp-Name",
        "tools/call",
        {"name": UNKNOWN_NAME, "arguments": {}},
        since=FIRST_MODERN,
        needs="tools",
        headers={"mcp-name": None},
    ),
    Probe("a request of no session", "ping", until=LAST_LEGACY, headers={"mcp-session-id": None}),
    Probe(
        "a request of an unknown session",
        "ping",
        until=LAST_LEGACY,
        headers={"mcp-session-id": "isthmus-check-no-such-session"},
    ),
    Probe("DELETE", verb="DELETE", until=LAST_LEGACY, when="end"),
    Probe("a request of an ended session", "ping", until=LAST_LEGACY, when="end"),
)

PROBES: tuple[Probe, ...] = (  # every question, in the order in which they are asked
    *_COMMON,
    *_MODERN,
    *(msgspec.structs.replace(probe, over="http") for probe in _HTTP),
)
