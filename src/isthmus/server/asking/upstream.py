"""How a function reaches a service behind the server as its caller: ``await ctx.upstream(name)``."""

import os
from typing import TYPE_CHECKING, Any

from isthmus.core.answers import Accepted
from isthmus.errors import CapabilityMissing, NotInRevision, ToolError, UpstreamRequired, UsageError

if TYPE_CHECKING:
    from isthmus.server.asking.context import Context
    from isthmus.server.settings import SharedSettings

__all__ = ["reach_upstream"]

CONNECT_TIMEOUT_S = 45.0
"""Seconds that a call waits for its user to finish in the browser: less than clients wait for it."""


async def reach_upstream(ctx: "Context", facilities: "SharedSettings", name: str) -> Any:
    """The way to a service as the caller; they are asked to connect an account where there is none.

    Args:
        ctx: the call.
        facilities: the server's.
        name: of the provider.

    Raises:
        UsageError: the server has no authorization, or no such provider.
        Refuse: nobody has authenticated.
        ToolError: no account was connected, or there is no way to ask for it; the text says what
            the user can do.
    """
    auth, caller = facilities.auth, ctx.authenticated
    if auth is None:
        raise UsageError("ctx.upstream takes Server(auth=…), whose users have accounts elsewhere")
    try:
        return await auth.upstream(caller, name)
    except UpstreamRequired as lack:
        need = lack.with_traceback(None)  # without the frames, of which this is one
    # The body runs again after the answer: the same page is asked for, and no second one is made.
    url = await ctx.once(need.page, key=f"upstream {name}")
    await ask_to_connect(ctx, facilities, need, url, name)
    return await auth.upstream(caller, name)


async def ask_to_connect(
    ctx: "Context", facilities: "SharedSettings", need: UpstreamRequired, url: str, name: str
) -> None:
    """Have the user connect an account.

    Raises:
        ToolError: they did not.
    """
    id = os.urandom(16).hex()
    try:
        answer = await ctx.elicit_url(str(need), url, elicitation_id=id, key=f"upstream.{name}")
    except (CapabilityMissing, NotInRevision):
        # The page lets nobody in but this user, so that it may stand in a result.
        raise ToolError(f"{need} Open {url} in a browser, then call again.") from None
    if not isinstance(answer, Accepted):
        raise ToolError(f"{need} The user did not agree to that.")
    # 2026-07-28, URL mode flow: it may need to block until that is done
    if not await need.connected(CONNECT_TIMEOUT_S):
        raise ToolError(
            f"{need} It has not been done yet: finish it in the browser, then call again."
        )
    facilities.changes.completed(id)
