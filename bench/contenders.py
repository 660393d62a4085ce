"""Who is measured, and how each is started; ``tools/peers.py`` makes what they need."""

import shutil
import sys
from dataclasses import dataclass

from processes import HERE, say

sys.path.append(str(HERE.parent / "tools"))

import peers

ISTHMUS, MCP, LIMIT = "isthmus", "mcp 2.3.0", "limit: bare uvicorn"
SDK, SERVER = "npm sdk 1.32", "npm server 2.4"


@dataclass(frozen=True)
class Contender:
    """One implementation of the tool ``add``, and its command line without the transport.

    Attributes:
        name: as the tables call it.
        command: what starts it; the transport's words follow.
        wires: the HTTP wires it speaks.
        stdio: whether it speaks stdio.
        client: what runs its own client, or nothing.
    """

    name: str
    command: tuple[str, ...]
    wires: tuple[str, ...] = ("legacy json", "legacy sse", "modern")
    stdio: bool = True
    client: tuple[str, ...] = ()

    def over_stdio(self) -> list[str]:
        """The whole command line of a stdio server."""
        return [*self.command, "stdio"]

    def over_http(self, port: int, wire: str) -> list[str]:
        """The whole command line of an HTTP server that answers as ``wire`` has it."""
        return [*self.command, "http", str(port), "sse" if wire.endswith("sse") else "json"]


def contenders(*, node: bool) -> list[Contender]:
    """Everybody who can be measured here.

    Args:
        node: the npm packages too, where node is installed.

    Raises:
        peers.Unavailable: the PyPI package ``mcp``, which all ratios are to, cannot be had.
    """
    ours, theirs = sys.executable, str(peers.python("mcp2"))
    found = [
        Contender(ISTHMUS, (ours, "servers/ours.py"), client=(ours, "clients/ours.py")),
        Contender(
            MCP, (theirs, "servers/mcp_package.py"), client=(theirs, "clients/mcp_package.py")
        ),
        Contender(LIMIT, (ours, "servers/limit.py"), ("legacy json", "modern"), stdio=False),
    ]
    if node and shutil.which("node"):
        try:
            sdk, server = str(peers.modules("sdk1")), str(peers.modules("server2"))
        except peers.Unavailable as error:
            say(f"without the npm packages: {error}")
        else:
            script = ("node", "servers/node.mjs")
            found.append(Contender(SDK, (*script, sdk, "sdk"), ("legacy json", "legacy sse")))
            found.append(Contender(SERVER, (*script, server, "server")))
    return found
