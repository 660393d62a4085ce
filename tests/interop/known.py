"""Where a counterpart departs from the table: what was observed, and where."""

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import NamedTuple


class Known(NamedTuple):
    """One observed fact; each of the first five is a pattern.

    Attributes:
        client: the client.
        server: the server.
        transport: the transport.
        revision: the revision.
        behaviour: what is seen to differ.
        why: what was observed.
        sometimes: it is seen in some runs, and in others not.
    """

    client: str
    server: str
    transport: str
    revision: str
    behaviour: str
    why: str
    sometimes: bool = False


KNOWN: list[Known] = [
    Known(
        *("npm2", "isthmus", "*", "202[45]-*", "an unknown resource"),
        why="it turns the error code -32002, which those revisions have, into -32602",
    ),
    Known(
        *("fastmcp", "isthmus", "*", "2026-07-28", "logging"),
        why="it asks every server of that revision for messages from debug on",
    ),
    Known(
        *("rust", "isthmus", "*", "2026-07-28", "a page"),
        why="it wants elicitationId in every question of a page, which 2026-07-28 does not have",
    ),
    *(
        Known(
            *("isthmus", server, "*", "*", "an unknown tool"),
            why="it answers with a result whose isError is true, not with the error -32602",
        )
        for server in ("mcp1", "mcp2", "fastmcp", "npm1")
    ),
    *(
        Known(
            *("isthmus", server, "*", "202[45]-*", "an unknown resource"),
            why="it answers -32602, which only 2026-07-28 has; those revisions have -32002",
        )
        for server in ("mcp2", "fastmcp", "npm2", "npm1", "go")
    ),
    Known(
        *("isthmus", "mcp1", "*", "*", "an unknown resource"),
        why="it answers with the error code 0",
    ),
    *(
        Known(
            *("isthmus", server, "*", "202[45]-*", "logging"),
            why="the library does not keep the level asked for, and sends messages below it",
        )
        for server in ("mcp1", "mcp2")
    ),
    Known(
        *("isthmus", "rust", "*", "*", "logging"),
        why="the library does not keep the level asked for, and sends messages below it",
    ),
    Known(
        *("isthmus", "rust", "http", "2025-11-25", "resumption"),
        why="it gives tools no way to close their stream",
    ),
    *(
        Known(
            *("isthmus", "rust", "*", "2026-07-28", behaviour),
            why="it acknowledges a subscription a moment before it begins to tell of changes",
            sometimes=True,
        )
        for behaviour in ("a list that changes", "a resource that changes")
    ),
    Known(
        *("isthmus", "mcp1", "*", "*", "a resource that changes"),
        why="it has resources/subscribe, but declares in any case that it has not",
    ),
    Known(
        *("isthmus", "fastmcp", "*", "*", "a resource that changes"),
        why="it has neither resources/subscribe nor subscriptions/listen",
    ),
    Known(
        *("isthmus", "fastmcp", "*", "2026-07-28", "a list that changes"),
        why="it has no subscriptions/listen",
    ),
    Known(
        *("mcpgo", "isthmus", "http", "202[45]-*", "cancellation"),
        why="over HTTP it leaves the call and sends no notifications/cancelled",
    ),
    Known(
        *("mcpgo", "isthmus", "sse", "*", "cancellation"),
        why="over HTTP it leaves the call and sends no notifications/cancelled",
    ),
    *(
        Known(
            *("mcpgo", "isthmus", "sse", "*", behaviour),
            why="over HTTP+SSE its client answers no requests",
        )
        for behaviour in ("sampling", "roots")
    ),
    *(
        Known(
            *("isthmus", "mcpgo", "sse", "*", behaviour),
            why="over HTTP+SSE its server cannot ask",
        )
        for behaviour in ("sampling", "roots")
    ),
    Known(
        *("isthmus", "mcpgo", "http", "2025-11-25", "resumption"),
        why="it gives tools no way to close their stream",
    ),
    Known(
        *("isthmus", "mcpgo", "http", "2026-07-28", "logging"),
        why="its answer often overtakes the message, which is then never sent",
        sometimes=True,
    ),
    Known(
        *("isthmus", "mcpgo", "http", "2026-07-28", "a resource that changes"),
        why="it accepts the subscription and sends no notifications/resources/updated on its stream",
    ),
    Known(
        *("java", "isthmus", "*", "*", "cancellation"),
        why="a call that is given up ends without a notifications/cancelled",
    ),
    Known(
        *("isthmus", "java", "*", "*", "cancellation"),
        why="it does not act on notifications/cancelled",
    ),
    Known(
        *("java", "isthmus", "http", "2025-11-25", "resumption"),
        why="it does not come back for the answer when the server closes a call's stream",
    ),
    Known(
        *("isthmus", "java", "http", "2025-11-25", "resumption"),
        why="it gives tools no way to close their stream",
    ),
]


LEGACY = "202[45]-*"
EVERY_SESSION = (
    "each session has a server of its own, and the lists of a gateway are from another one"
)
CALLER_ALONE = "it tells the session whose call has changed it, and not the one that has subscribed"

SILENT_BEHIND_GATEWAY: list[Known] = [
    *(
        Known("*", server, "http", LEGACY, behaviour, why=EVERY_SESSION)
        for server in ("npm1", "npm2")
        for behaviour in ("a list that changes", "a resource that changes")
    ),
    *(
        Known("*", server, "http", LEGACY, "a resource that changes", why=CALLER_ALONE)
        for server in ("mcp1", "mcp2", "fastmcp", "rust")
    ),
    *(
        Known(
            *("*", server, "http", LEGACY, "logging"),
            why="messages may come on the stream of the session after the result, when no call is under way",
        )
        for server in ("npm1", "go", "mcpgo")
    ),
    Known(
        *("*", "fastmcp", "http", "2026-07-28", "a resource that changes"),
        why="it has neither resources/subscribe nor subscriptions/listen",
    ),
    Known(
        *("*", "mcpgo", "http", "2026-07-28", "a resource that changes"),
        why="it accepts the subscription and sends no notifications/resources/updated on its stream",
    ),
    Known(
        *("*", "mcpgo", "http", "2026-07-28", "logging"),
        why="its answer often overtakes the message, which is then never sent",
    ),
]
"""Behaviours that never come through a gateway from a server behind it: the tests do not wait for them."""

BEHIND_GATEWAY: list[Known] = [
    Known(
        *("*", "mcp1", "http", "*", "an unknown resource"),
        why="it answers with the error code 0, in place of which a gateway has -32603",
    ),
    Known(
        *("2025-11-25", "npm1", "http", "*", "an unknown resource"),
        why="it answers -32602, without the URI, by which a gateway would know it",
    ),
    *(
        Known(
            *("2025-11-25", server, "http", "2026-07-28", "an unknown resource"),
            why="it answers -32602 without the URI, by which a gateway would know it",
        )
        for server in ("rust", "mcpgo")
    ),
    *(
        Known(
            *("*", server, "http", "2025-11-25", "resumption behind it"),
            why="it gives tools no way to close their stream",
        )
        for server in ("rust", "mcpgo", "java")
    ),
    Known(
        *("*", "java", "http", "*", "cancellation"),
        why="it does not act on notifications/cancelled",
    ),
]
"""Differences that were seen of servers behind a gateway; the client is the revision of ours."""


def find_known(
    client: str,
    server: str,
    transport: str,
    revision: str,
    behaviour: str,
    *,
    table: Sequence[Known] = KNOWN,
) -> Known | None:
    """What is known of a case; None where it must do as the table says."""
    case = (client, server, transport, revision, behaviour)
    for known in table:
        if all(fnmatch(have, want) for have, want in zip(case, known[:5], strict=True)):
            return known
    return None
