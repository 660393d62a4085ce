"""Who is measured, and how each is started; ``tools/peers.py`` makes what they need."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from processes import HERE
from results import ISTHMUS, LIMIT, MCP, SDK, SERVER

sys.path.append(str(HERE.parent / "tools"))

import peers

EVERYBODY_OFFERS = (
    *("add", "add_with_context", "add_structured", "payload", "tools", "templates", "blob"),
    *("progress", "waiting"),
)
PYTHON_OFFERS = (
    *(*EVERYBODY_OFFERS, "add_in_thread", "middleware", "lifespan", "blocking", "auth"),
    "expiring",
)
OURS_ALONE = ("add_on_loop", "asking", "updates", "pages")


@dataclass(frozen=True)
class Contender:
    """One implementation of the servers, and its command line without the transport.

    Attributes:
        name: as the tables call it.
        command: what starts it; the transport's words follow.
        wires: the HTTP wires it speaks.
        cases: what its servers can offer.
        stdio: whether it speaks stdio.
        client: what runs its own client, or nothing.
    """

    name: str
    command: tuple[str, ...]
    wires: tuple[str, ...] = ("legacy json", "legacy sse", "modern", "modern sse")
    cases: tuple[str, ...] = PYTHON_OFFERS
    stdio: bool = True
    client: tuple[str, ...] = ()

    def offers(self, case: str) -> bool:
        """Whether it has a server for a case, as ``add`` or ``tools=1000``."""
        return case.partition("=")[0] in self.cases

    def over_stdio(self, case: str = "add") -> list[str]:
        """The whole command line of a stdio server."""
        return [*self.command, case, "stdio"]

    def over_http(self, port: int, wire: str, case: str = "add") -> list[str]:
        """The whole command line of an HTTP server that answers as ``wire`` has it."""
        return [*self.command, case, "http", str(port), "sse" if wire.endswith("sse") else "json"]


def find_contenders(*, node: bool, skip: Callable[[str], None]) -> list[Contender]:
    """Everybody who can be measured here; isthmus and the limit always can.

    Args:
        node: the npm packages too, where node is installed.
        skip: is told who takes no part, and why.
    """
    ours = sys.executable
    found = [
        Contender(
            ISTHMUS,
            (ours, "servers/ours.py"),
            cases=(*PYTHON_OFFERS, *OURS_ALONE),
            client=(ours, "clients/ours.py"),
        ),
        Contender(
            LIMIT,
            (ours, "servers/limit.py"),
            ("legacy json", "modern"),
            cases=("add",),
            stdio=False,
        ),
    ]
    try:
        theirs = str(peers.python("mcp2"))
    except peers.Unavailable as error:
        skip(f"{MCP}: {error}")
    else:
        client = (theirs, "clients/mcp_package.py")
        found.insert(1, Contender(MCP, (theirs, "servers/mcp_package.py"), client=client))
    return [*found, *find_npm_packages(skip)] if node else found


def find_npm_packages(skip: Callable[[str], None]) -> list[Contender]:
    """The npm packages, each if it can be had."""
    if not shutil.which("node"):
        skip("the npm packages: node is not installed")
        return []
    found = []
    rows = (
        (SDK, "sdk1", "sdk", ("legacy json", "legacy sse")),
        (SERVER, "server2", "server", None),
    )
    for name, environment, which, wires in rows:
        try:
            folder = str(peers.modules(environment))
        except peers.Unavailable as error:
            skip(f"{name}: {error}")
            continue
        one = Contender(name, ("node", "servers/node.mjs", folder, which), cases=EVERYBODY_OFFERS)
        found.append(replace(one, wires=wires) if wires else one)
    return found
