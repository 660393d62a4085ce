"""Processes of one host in one event loop: each has a pipeline of its own over a store that can be cut."""

import asyncio

from isthmus.host.approvals.broker import Broker
from isthmus.host.approvals.fingerprint_storage import FingerprintRecords
from isthmus.host.approvals.fingerprints import Fingerprints
from isthmus.host.approvals.grant_records import GrantRecords
from isthmus.host.approvals.grants import Grants
from isthmus.host.approvals.shared_questions import SharedQuestions
from isthmus.host.model.entries import ServerLimits
from isthmus.host.model.interaction import ReadAsked
from isthmus.host.pipeline.acts.act import Act
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.pipeline.shared_rules import SharedRules
from isthmus.host.state.database import HostState
from isthmus.host.state.shared_state import SharedState
from isthmus.nodes.node import Node
from isthmus.store.store import StoreUnavailable
from support.host.policies import make_attempt, make_facts, make_policy

__all__ = ["ASKING_RULES", "DeskProcess", "NetworkStore"]

ASKING_RULES = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }
obligations = { remember = ["once", "tool_always"] }
"""


def loop_now():
    """The time of the loop."""
    return asyncio.get_running_loop().time()


class NetworkStore:
    """The way of one process to a store; a test cuts it in both directions."""

    def __init__(self, store):
        self.name = store.name
        self.is_cut = False
        self.runs = asyncio.Event()  # cleared while the process is stopped: it does nothing then
        self.runs.set()
        self.kv = NetworkPart(self, store.kv)
        self.bus = NetworkBus(self, store.bus)
        self._store = store

    def meter(self, name, rate):
        """A meter beyond the cut."""
        return NetworkPart(self, self._store.meter(name, rate))

    async def open(self, *, durable=False):
        """Nothing to open."""

    async def close(self):
        """Nothing to close."""

    @property
    def hears(self):
        """Whether what is said on the bus reaches the process."""
        return self.runs.is_set() and not self.is_cut

    async def pass_way(self):
        """Take the way in one direction, once the process runs."""
        self.check()
        await asyncio.sleep(0.001)
        await self.runs.wait()
        self.check()

    def check(self):
        """See that the way is there."""
        if self.is_cut:
            raise StoreUnavailable("the way to the store is cut")


class NetworkPart:
    """A part of a store beyond the way; an answer takes a turn, and may be lost."""

    def __init__(self, network, part):
        self._network, self._part = network, part

    def __getattr__(self, name):
        method = getattr(self._part, name)

        async def call(*args, **options):
            await self._network.pass_way()
            result = await method(*args, **options)
            await self._network.pass_way()  # where it is cut now, it was done, and nobody is told
            return result

        return call


class NetworkBus:
    """A bus beyond the way: what is said while it is cut is not heard, and nobody says so."""

    def __init__(self, network, bus):
        self._network, self._bus = network, bus

    async def publish(self, channel, message):
        """Say something."""
        self._network.check()
        return await self._bus.publish(channel, message)

    async def subscribe(self, channel, hear):
        """Hear something, while the way is there."""
        self._network.check()
        return await self._bus.subscribe(
            channel, lambda message: hear(message) if self._network.hears else None
        )

    def on_gap(self, callback):
        """There are no gaps that anybody knows of."""
        return self._bus.on_gap(callback)


class ListedAudit:
    """An audit log of a list, which takes its time."""

    def __init__(self):
        self.rows = []

    async def write(self, row):
        await asyncio.sleep(0.002)
        self.rows.append(row)

    intent = write

    def note(self, row):
        self.rows.append(row)


class SilentSurface:
    """A surface whose person decides by the view alone."""

    assurance = "local_ui"

    def __init__(self, name):
        self.name = name

    async def offer(self, interaction):
        return await asyncio.get_running_loop().create_future()


class BuyAct(Act):
    """Something that is done, and counted."""

    meant = None
    server = None

    def __init__(self, done):
        self._done = done

    async def resolve(self, attempt):
        return attempt

    def facts(self, attempt):
        return make_facts(trust="full")

    def payload(self, attempt, trace):
        return ReadAsked(uri="buy")

    async def dispatch(self, attempt):
        self._done.append((attempt.id, loop_now()))
        return "bought"


class DeskProcess:
    """One process of a host.

    Args:
        store: what it shares with the others.
        number: which one it is.

    Attributes:
        network: its way to the store.
        done: attempts that were dispatched here, and when.
    """

    def __init__(self, store, number):
        self.network = NetworkStore(store)
        self.node = Node(self.network, kind="host", name="desk")
        self.shared = SharedState(self.node, self.network)
        self.audit, self.done, self.calls = ListedAudit(), [], {}
        self.is_dead = False
        self._number = number
        state = HostState(None, clock=loop_now)
        self.questions = SharedQuestions(self.shared)
        self.broker = Broker(self.audit, clock=loop_now, shared=self.questions)
        self.broker.attach(SilentSurface(f"screen {number}"))
        self.grants = Grants(
            state, steady=loop_now, storage=GrantRecords(self.shared, steady=loop_now)
        )
        self.fingerprints = Fingerprints(state, FingerprintRecords(self.shared))
        self.rules = SharedRules(self.shared, self.fingerprints, self.broker.events, loop_now)
        self.pipeline = Pipeline(
            policy=make_policy(ASKING_RULES),
            broker=self.broker,
            audit=self.audit,
            runs=Runs(loop_now),
            limits=CallLimits(lambda _: ServerLimits(), loop_now, store=self.network),
            grants=self.grants,
            clock=loop_now,
            shared=self.rules,
        )
        self._keeping = None

    async def open(self):
        """Join the others."""
        await self.node.join()
        await self.grants.load()
        await self.pipeline.join_rules()
        await self.broker.open()
        self._keeping = asyncio.ensure_future(self.pipeline.keep_rules())

    async def close(self):
        """Leave the others."""
        self._keeping.cancel()
        for call in self.calls.values():
            call.cancel()
        await asyncio.wait([self._keeping, *self.calls.values()])
        self.broker.close()
        await self.broker.leave()
        await self.grants.close()
        await self.node.leave()

    def kill(self):
        """End as a process does that is killed: nothing of it reaches the store any more."""
        self.is_dead = self.network.is_cut = True
        for call in self.calls.values():
            call.cancel()

    def ask(self, id):
        """Begin a call that has to be asked about."""
        attempt = make_attempt("buy", id=id, run="")
        self.calls[id] = asyncio.ensure_future(self.pipeline.run(attempt, BuyAct(self.done)))
