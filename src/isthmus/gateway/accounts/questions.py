"""Questions to connect an account: put to the client whose call needs one, with the address of our page."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from isthmus.client.model.questions import BadQuestion
from isthmus.errors import Refuse, UsageError
from isthmus.host.catalog.names import Viewer
from isthmus.host.model.errors import AccountRequired, ConnectRequired
from isthmus.host.supervisor.connection import make_connect_error
from isthmus.revisions.codes import FORBIDDEN_CODE, UNAVAILABLE_CODE
from isthmus.runtime.sorted_ids import new_id
from isthmus.wire import ElicitParams

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.host import Host
    from isthmus.host.model.calling_client import CallingClient

CONNECT_PATIENCE_S = 300.0  # after the client has opened the page
CONNECT_POLL_S = 2.0  # between two looks at what another process has kept


async def ask_to_connect(
    accounts: "Accounts", call: "CallingClient", error: ConnectRequired
) -> None:
    """Ask a client to open the page on which an account is connected; returns when it is.

    Args:
        accounts: those of the host.
        call: the client whose call needs the account.
        error: which account.

    Raises:
        Refuse: the client cannot be asked, or refused, or nobody connected it in time; it has the link.
    """
    add_link(accounts, error)
    if not error.url:
        raise make_connect_refusal(error)
    principal, server = error.principal, error.server
    async with accounts.wait_for_connection(principal, server) as connected:
        # spec 2025-11-25 client/elicitation#url-mode-elicitation-requests: a URL for what must not
        # pass through the client; it has nothing secret of the user, and is good for them alone
        asked = ElicitParams(
            message=f"{error}. Connect it on the page of this gateway.",
            mode="url",
            url=error.url,
            elicitation_id=new_id(),
        )
        try:
            answer: Any = await call.put("elicitation/create", asked)
        except BadQuestion:
            raise make_connect_refusal(error) from None
        if answer.action != "accept":
            raise Refuse(
                FORBIDDEN_CODE, f"{error}, and connecting it was refused", make_link_data(error)
            )
        for _ in range(int(CONNECT_PATIENCE_S / CONNECT_POLL_S)):
            if await is_connected(accounts, error):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(CONNECT_POLL_S):
                    await connected.wait()
    raise make_connect_refusal(error)


async def is_connected(accounts: "Accounts", error: ConnectRequired) -> bool:
    """Whether the account that was missing is there by now."""
    state = await accounts.state(error.principal, error.server)
    return state.state == "connected" and (
        not error.scopes or error.reason != "scopes" or error.scopes <= set(state.scopes)
    )


def add_link(accounts: "Accounts", error: ConnectRequired) -> None:
    """Add the address of the page, where there is one on which a person can help."""
    with suppress(UsageError):  # there are no pages
        if accounts.find_kind(error.server) not in {"token-exchange", "id-jag"}:
            error.url = accounts.connect(error.principal, error.server, error.scopes)


def make_connect_refusal(error: ConnectRequired) -> Refuse:
    """The refusal of a request that needs an account, with the link for whoever can open it."""
    where = f": connect it at {error.url}, and call again" if error.url else ""
    return Refuse(UNAVAILABLE_CODE, f"{error}{where}", make_link_data(error))


def make_link_data(error: ConnectRequired) -> dict[str, Any]:
    """What a program may read of a refusal."""
    data = {"server": error.server, "reason": error.reason}
    return {**data, "url": error.url} if error.url else data


def check_account(host: "Host", server: str, principal: str) -> None:
    """See that a server, whose tools a principal does not see, does not just want an account of theirs.

    Raises:
        ConnectRequired: it does.
    """
    hosted = host.parts.supervisor.servers.get(server)
    if hosted is None:
        return
    connection = hosted.connections.get(host.catalog.find_isolation(server, Viewer(principal)))
    failure = None if connection is None else connection.failure
    if (
        connection is not None
        and connection.state == "needs_auth"
        and isinstance(failure, AccountRequired)
    ):
        raise make_connect_error(failure)
