"""Clients of a gateway, as the host sees them: each waits for an approval as long as its test says."""

import asyncio

from isthmus.host import Host
from isthmus.wire import ClientCapabilities

__all__ = ["HeldClient", "call_for_client"]


class HeldClient:
    """A client that waits for a decision until it gives up.

    Args:
        patience: seconds; None for ever, 0 for none at all.
        page: the address that it is told.
    """

    takes_progress = False
    takes_task = False
    proof = None

    def __init__(self, patience=None, page="https://gateway.example/approvals/1"):
        self.capabilities = ClientCapabilities()
        self.patience = patience
        self.page = page
        self.waits = asyncio.Event()
        self.approval = None
        self.edited = None

    async def put(self, method, params):
        """It is asked nothing."""
        raise AssertionError(method, params)

    def say(self, message):
        """It hears nothing."""

    def tell_edited(self, arguments):
        """It is told of this with the result."""
        self.edited = arguments

    async def wait_approval(self, approval):
        """Wait."""
        self.approval = approval
        self.waits.set()
        try:
            async with asyncio.timeout(self.patience):
                await approval.wait_decided()
        except TimeoutError:
            pass
        return self.page


async def call_for_client(
    host: Host, client, arguments=None, *, tool="buy", principal="user:ann@example"
):
    """Call a tool of the shop for a client."""
    return await host.parts.calls.call(
        tool,
        {"what": "tea"} if arguments is None else arguments,
        server="shop",
        principal=principal,
        origin="gateway",
        client=client,
    )
