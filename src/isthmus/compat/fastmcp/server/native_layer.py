"""Middleware of a façade around calls of what it offers of isthmus' own servers: proxies, and APIs of HTTP."""

from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.compat.fastmcp.exceptions import OWN_ERRORS
from isthmus.compat.fastmcp.server.context import Context
from isthmus.compat.fastmcp.server.messages import make_message_context
from isthmus.compat.fastmcp.server.middleware.middleware import compose_layers
from isthmus.compat.fastmcp.server.provider import make_refusal
from isthmus.compat.fastmcp.server.registry import Kind
from isthmus.errors import UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext
from isthmus.server.asking.rounds import run_once

if TYPE_CHECKING:
    from isthmus.compat.fastmcp.server.server import FastMCP

# The member of a request's params that names what it is for, and the kinds that may have it
TARGETS: dict[str, tuple[str, tuple[Kind, ...]]] = {
    "tools/call": ("name", ("tool",)),
    "resources/read": ("uri", ("resource", "template")),
    "prompts/get": ("name", ("prompt",)),
}


class NativeLayer:
    """Layer of isthmus' server that runs the middleware of a façade, where nothing else does.

    Args:
        facade: the server written for fastmcp.
    """

    def __init__(self, facade: "FastMCP") -> None:
        self._facade = facade

    async def serve(self, inbound: Inbound, call_next: CallNext) -> Any:
        """Serve a request, through the middleware if it is for one of isthmus' own servers."""
        facade = self._facade
        target = TARGETS.get(inbound.method)
        if target is None or not facade.middleware or inbound.params is None:
            return await call_next(inbound)
        member, kinds = target
        params = msgspec.json.decode(inbound.params)
        key = str(params.get(member))
        for kind in kinds:
            if await facade.offers(kind, key):
                return await call_next(inbound)
        return await self._serve_layered(inbound, call_next, member, params)

    async def _serve_layered(
        self, inbound: Inbound, call_next: CallNext, member: str, params: dict[str, Any]
    ) -> Any:
        facade, method = self._facade, inbound.method
        said = {name: params.get(name) for name in (member, "arguments") if name in params}

        async def run(own: Any) -> Any:
            async with Context(facade, own, inbound.link) as context:
                message = make_message_context(method, said, context)

                async def serve(changed: Any) -> Any:
                    if changed.message != message.message:
                        raise UsageError(
                            f"middleware of isthmus.compat.fastmcp cannot change what {method} of a proxy or of an HTTP "
                            "API takes: use Server(middleware=…) of isthmus; see docs/guide/middleware.md"
                        )
                    return await call_next(inbound)

                try:
                    answer = await compose_layers(facade.middleware, serve)(message)
                except OWN_ERRORS:
                    raise
                except Exception as error:
                    raise make_refusal(facade, method, error) from error
                write = getattr(answer, "to_wire", None)
                if write is None:
                    return answer
                return write(params[member]) if method == "resources/read" else write()

        return await run_once(run, inbound, facade.server._settings)  # noqa: SLF001 - as its provider has them
