"""Gateway: all servers of a host as one server, for any client, in every revision.

Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.gateway.gateway import Gateway as Gateway
    from isthmus.host.model.gateway_options import GatewayOptions, GatewayProfile

__all__ = ["Gateway", "GatewayOptions", "GatewayProfile"]
_HOMES = {
    "Gateway": "isthmus.gateway.gateway",
    "GatewayOptions": "isthmus.host.model.gateway_options",
    "GatewayProfile": "isthmus.host.model.gateway_options",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
