"""A host that is killed while a call that was approved is on its way: ``python killed_approval.py STATE POINT``."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from isthmus import Server
from isthmus.host import Host, Policy
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.rule_file import read_layers

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.host.held_client import HeldClient, call_for_client

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
YES = Decision(verdict="allow", by="Bea", assurance="local_ui")


def kill_myself():
    """End this process as nothing else can."""
    os.kill(os.getpid(), signal.SIGKILL)


class KillingClient(HeldClient):
    """A client whose host is killed once the call is approved, and before it is dispatched."""

    async def wait_approval(self, approval):
        """Wait, and kill."""
        page = await super().wait_approval(approval)
        kill_myself()
        return page


class SayingYes:
    """A surface that allows everything."""

    name = "Bea"
    assurance = "local_ui"

    async def offer(self, interaction):
        """Say yes."""
        del interaction
        return YES


def make_buying_host(state, point=""):
    """A host with a shop that writes down what was bought, and may kill the host then."""
    shop = Server("shop")

    @shop.tool
    async def buy(what: str) -> str:
        with (Path(state) / "bought").open("a") as file:
            file.write(f"{what}\n")
        if point == "outcome":
            kill_myself()
        return what

    host = Host(approver=SayingYes(), policy=Policy.of(read_layers(ASKS, "user")), state=state)
    host.add("shop", shop)
    return host


async def main(state, point):
    """Call, and be killed."""
    client = KillingClient() if point == "dispatch" else HeldClient()
    async with make_buying_host(state, point) as host:
        await call_for_client(host, client)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
