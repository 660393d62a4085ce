"""Who talks to whom: every implementation here, the programs it has, and what it can be pinned to."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import peers  # tools/peers.py, which conftest.py puts on the path

FOLDER = Path(__file__).parent / "counterparts"

ALL = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
LEGACY = ALL[:-1]
OURS = "isthmus"

Command = Callable[[], list[str]]


def python(name: str, script: str) -> Command:
    """A program for the interpreter of one of the Python environments."""
    return lambda: [str(peers.python(name)), "-W", "ignore", str(FOLDER / script)]


def node(name: str, script: str) -> Command:
    """A program for Node, which is told where its packages are."""
    return lambda: [str(peers.node()), str(FOLDER / script), str(peers.modules(name))]


def built(name: str, side: str) -> Command:
    """One side of a program that is built from source."""
    return lambda: [str(peers.program(name)), side]


def java(side: str) -> Command:
    """One side of the program in Java."""
    return lambda: ["java", "-jar", str(peers.program("java")), side]


def own(script: str) -> Command:
    """A program of ours."""
    return lambda: [sys.executable, str(FOLDER / script)]


@dataclass(frozen=True)
class Partner:
    """One implementation.

    Attributes:
        title: what it is called where it is published.
        client: how its client is started; None without one.
        server: how its server is started; None without one.
        visits: for each transport, the revisions that its client can be held to.
        served: for each transport, the revisions that its server speaks.
        pages: whether its client can be sent to a page.
    """

    title: str
    client: Command | None = None
    server: Command | None = None
    visits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    served: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pages: bool = True


HTTP = ALL[1:]
SSE = ALL[:1]
EVERY = {"stdio": ALL, "http": HTTP, "sse": SSE}
HANDSHAKES = {"stdio": LEGACY, "http": LEGACY[1:], "sse": SSE}

PARTNERS: dict[str, Partner] = {
    OURS: Partner("isthmus", own("isthmus_client.py"), own("isthmus_server.py"), EVERY, EVERY),
    "mcp2": Partner(
        "PyPI mcp 2.3",
        python("mcp2", "mcp2_client.py"),
        python("mcp2", "mcp2_server.py"),
        EVERY,
        EVERY,
    ),
    "mcp1": Partner(
        "PyPI mcp 1.30",
        python("mcp1", "mcp1_client.py"),
        python("mcp1", "mcp1_server.py"),
        HANDSHAKES,
        HANDSHAKES,
    ),
    "fastmcp": Partner(
        "PyPI fastmcp 4.1",
        python("fastmcp", "fastmcp_client.py"),
        python("fastmcp", "fastmcp_server.py"),
        EVERY,
        EVERY,
    ),
    "npm2": Partner(
        "npm @modelcontextprotocol/client and /server 2.4",
        node("client2", "npm2_client.mjs"),
        node("server2", "npm2_server.mjs"),
        EVERY,
        {"stdio": ALL, "http": HTTP},
    ),
    "npm1": Partner(
        "npm @modelcontextprotocol/sdk 1.32",
        node("sdk1", "npm1_client.mjs"),
        node("sdk1", "npm1_server.mjs"),
        HANDSHAKES,
        HANDSHAKES,
    ),
    "go": Partner("Go SDK 1.8", built("go", "client"), built("go", "server"), EVERY, EVERY),
    "mcpgo": Partner(
        "Go module mark3labs/mcp-go 1.2",
        built("mcpgo", "client"),
        built("mcpgo", "server"),
        EVERY,
        EVERY,
    ),
    "java": Partner(
        "Java SDK 2.1", java("client"), java("server"), HANDSHAKES, HANDSHAKES, pages=False
    ),
    "rust": Partner(
        "crate rmcp 3.1",
        built("rust", "client"),
        built("rust", "server"),
        {"stdio": ALL, "http": HTTP},
        {"stdio": ALL, "http": HTTP},
    ),
}


def has_pages(client: str, server: str) -> bool:
    """Whether one of these implementations sends users to pages, and the other can be asked to."""
    return server == OURS and PARTNERS[client].pages


def connections() -> list[tuple[str, str, str, str]]:
    """Every (client, server, transport, revision) in which one of the two is ours."""
    ours = PARTNERS[OURS]
    found = []
    for name, partner in PARTNERS.items():
        if name == OURS:
            continue
        for client, server, way in ((name, OURS, partner.visits), (OURS, name, partner.served)):
            found += [
                (client, server, transport, revision)
                for transport, revisions in way.items()
                for revision in revisions
                if revision in ours.visits[transport]
            ]
    return found
