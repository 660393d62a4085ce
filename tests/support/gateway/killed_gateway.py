"""A gateway over HTTP that is killed while a call that was approved is on its way.

``python killed_gateway.py STATE SHOP_URL PORT POINT``
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from isthmus.gateway import Gateway
from isthmus.gateway.calls import GatewayCall
from isthmus.host import Host, Policy
from isthmus.host.model.entries import HostConfig, ServerEntry
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.rule_file import read_layers

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
YES = Decision(verdict="allow", by="Bea", assurance="local_ui")


class SayingYes:
    """A surface that allows everything.

    Attributes:
        asked: how often it was asked.
    """

    name = "Bea"
    assurance = "local_ui"

    def __init__(self):
        self.asked = 0

    async def offer(self, interaction):
        """Say yes."""
        del interaction
        self.asked += 1
        return YES


class SayingNothing(SayingYes):
    """A surface that lets servers be connected to, and never answers about calls.

    Args:
        mark: a file that it makes when it is asked about one.
    """

    def __init__(self, mark):
        super().__init__()
        self.mark = mark

    async def offer(self, interaction):
        """Wait."""
        if interaction.attempt.action != "tool.call":
            return YES
        self.asked += 1
        self.mark.touch()
        return await asyncio.Event().wait()


def make_state_gateway(state, url, surface):
    """A gateway to one server over HTTP, with what lasts in a folder."""
    entry = ServerEntry(name="shop", kind="http", url=url)
    policy = Policy.of(read_layers(ASKS, "user"))
    host = Host(HostConfig(servers={"shop": entry}), policy=policy, state=state)
    host.attach(surface)
    return Gateway(host)


def kill_after_approval():
    """Have this process be killed once a call is approved, and before it is dispatched."""
    wait = GatewayCall.wait_approval

    async def wait_and_die(self, approval):
        page = await wait(self, approval)
        assert page is not None
        os.kill(os.getpid(), signal.SIGKILL)

    GatewayCall.wait_approval = wait_and_die


def main(state, url, port, point):
    """Serve until it is killed."""
    if point == "dispatch":
        kill_after_approval()
    surface = SayingNothing(Path(state) / "asked") if point == "pending" else SayingYes()
    make_state_gateway(state, url, surface).run("http", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
