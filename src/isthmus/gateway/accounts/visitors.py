"""Visitors of a gateway's pages: who is at a browser, where nothing else says so."""

from isthmus.auth.authorization_server.pages.browser import BrowserRequest
from isthmus.auth.net.urls import is_loopback, split_url
from isthmus.gateway.accounts.pages import LocalVisitors
from isthmus.gateway.approvals.operator import ApproverIdentity


class OperatorVisitors:
    """The user of this machine at their own address, and whoever has signed in to the pages of approvals.

    A gateway whose address is another one stands behind something that forwards requests, and everybody
    seems to be on this machine then: the address of the peer says nothing, and the operator signs in.

    Args:
        identity: says who has signed in.
        address: of the gateway, as browsers reach it: scheme, host and port.
    """

    def __init__(self, identity: ApproverIdentity, address: str) -> None:
        self._identity = identity
        self._local = LocalVisitors() if is_loopback(split_url(address).host) else None

    async def find(self, request: BrowserRequest) -> str | None:
        """The principal of whoever has signed in, or the user of this machine."""
        signed_in = self._identity.identify(request)
        if signed_in is not None:
            return signed_in.principal
        return None if self._local is None else await self._local.find(request)
