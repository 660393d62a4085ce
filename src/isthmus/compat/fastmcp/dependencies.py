"""Dependencies under the names of ``fastmcp.dependencies``."""

from isthmus.compat.fastmcp.components.injection import Dependency, Depends, Shared
from isthmus.compat.fastmcp.server.dependencies import (
    CurrentAccessToken,
    CurrentContext,
    CurrentFastMCP,
    CurrentHeaders,
    CurrentRequest,
    Progress,
    TokenClaim,
)

__all__ = [
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "Dependency",
    "Depends",
    "Progress",
    "Shared",
    "TokenClaim",
]
