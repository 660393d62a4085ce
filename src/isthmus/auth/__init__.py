"""Authorization, on all three roles of OAuth: resource server, authorization server and client.

``isthmus.auth.resource_server`` guards an MCP server, ``isthmus.auth.authorization_server`` issues
tokens, ``isthmus.auth.client`` gets them, ``isthmus.auth.upstream`` reaches services behind a
server. What all of them are made of stands beside these packages.

Names are imported when they are first used. What needs ``pip install 'isthmus[auth]'`` says so
when it is.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.auth.network import PUBLIC as PUBLIC
    from isthmus.auth.network import Network as Network
    from isthmus.auth.network import NetworkPolicy as NetworkPolicy
    from isthmus.auth.network import desktop as desktop
    from isthmus.auth.secret import Secret as Secret

__all__ = [
    "PUBLIC",
    "Network",
    "NetworkPolicy",
    "Secret",
    "desktop",
]

_HOMES = {
    "Network": "isthmus.auth.network",
    "NetworkPolicy": "isthmus.auth.network",
    "PUBLIC": "isthmus.auth.network",
    "Secret": "isthmus.auth.secret",
    "desktop": "isthmus.auth.network",
}


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.auth' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
