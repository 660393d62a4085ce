"""``ctx.read_resource``: a server's own resources, read by its functions as their caller might."""

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, structs

from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.revisions import METHODS
from isthmus.runtime.inbound import Inbound
from isthmus.server.guard.scopes import TOKEN_TRANSPORTS
from isthmus.server.settings import SharedSettings
from isthmus.wire import InputRequiredResult, ReadResourceParams, ReadResourceResult
from isthmus.wire.jsonrpc import encode

if TYPE_CHECKING:
    from isthmus.runtime.router import Router

METHOD = "resources/read"


async def read_own_resource(
    uri: str, inbound: Inbound, settings: SharedSettings
) -> ReadResourceResult:
    """Read a resource on behalf of the sender of a request, through the middleware and the providers.

    Args:
        uri: the resource.
        inbound: the request that is being served.
        settings: those of the server, shared by all its parts.

    Raises:
        ToolError: there is no such resource, the caller lacks its scopes, or it refuses.
        UsageError: it asks the user.
    """
    router = settings.router
    plan = None if router is None else router.plan(METHOD, inbound.caller.revision)
    if router is None or plan is None:
        raise UsageError("ctx.read_resource: this server has no resources")
    params = ReadResourceParams(uri=uri)
    raw = Raw(encode(params))
    _check_scopes(router, raw, inbound, settings)
    inside = structs.replace(inbound, method=METHOD, params=raw, progress_token=None)
    try:
        result = await plan.handler(params, inside)
    except Refuse as no:
        raise ToolError(str(no)) from no
    if isinstance(result, InputRequiredResult):
        raise UsageError(
            f"ctx.read_resource({uri!r}): it asks the user, and a function that reads it cannot pass the question on: "
            "ask before, and put the answer into the URI"
        )
    if isinstance(result, ReadResourceResult) and not any(
        isinstance(one, Raw) for one in result.contents
    ):
        return result
    written = bytes(result) if isinstance(result, Raw) else encode(result)
    read: ReadResourceResult = METHODS[METHOD].decode_result(msgspec.Raw(written))
    return read


def _check_scopes(
    router: "Router", params: Raw, inbound: Inbound, settings: SharedSettings
) -> None:
    """See that the caller may read it: the transport has asked for the scopes of the call alone.

    Raises:
        ToolError: they may not.
    """
    if settings.auth is None or inbound.origin.transport not in TOKEN_TRANSPORTS:
        return
    wanted = router.needs(METHOD, params, inbound.principal)
    if wanted and not settings.auth.allows(inbound.principal, wanted):
        raise ToolError(f"This takes a resource that needs {', '.join(sorted(wanted))}")
