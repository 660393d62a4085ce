"""Several nodes of one server, and clients that reach a random one of them with every request.

All of it is one event loop on virtual time. A node that is killed takes its tasks along, and its
clients see the end of their connections; nothing of it reaches the store any more.
"""

import asyncio
import contextvars
import json

from isthmus import Accepted, Context, Server
from support.http.asgi_driver import Exchange
from support.nodes.simulated_store import SimulatedNetwork, SimulatedStore

SECRET = b"s" * 32
BOTH = "application/json, text/event-stream"
REVISION = "2025-11-25"
RETRY_LATER = 503
CLOSING_TIME_S = 5.0
FORM = {"roots": {}, "elicitation": {"form": {}}, "sampling": {}}

_node = contextvars.ContextVar("the node that a task belongs to", default=None)


def follow_tasks(loop):
    """Have the loop keep, for each node, the tasks that run for it."""

    def make(loop, work, **more):
        context = more.pop("context", None) or contextvars.copy_context()
        task = asyncio.Task(work, loop=loop, context=context, **more)
        owner = context.get(_node)
        if owner is not None:
            owner.tasks.add(task)
            task.add_done_callback(owner.tasks.discard)
        return task

    loop.set_task_factory(make)


def make_server(store):
    """The server that every node serves."""
    server = Server("town", version="1", store=store, secret=SECRET)

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def count(ctx: Context, steps: int) -> int:
        """Report progress in steps of a tenth of a second."""
        for step in range(steps):
            await ctx.progress(step + 1, steps)
            await asyncio.sleep(0.1)
        return steps

    @server.tool
    async def ask(ctx: Context, question: str) -> str:
        """Ask the user."""
        match await ctx.elicit(question, str):
            case Accepted(value):
                return value
        return "nothing"

    @server.tool
    async def restock() -> str:
        """Say that a resource changed."""
        server.notify_resource_updated("stock://pears")
        return "done"

    @server.resource("stock://pears")
    async def pears() -> str:
        """How many there are."""
        return "3"

    return server


class SimulatedNode:
    """One node.

    Args:
        network: leads to the store.
    """

    def __init__(self, network):
        self.store = SimulatedStore(network)
        self.server = make_server(self.store)
        self.app = self.server.asgi(heartbeat=5.0)
        self.tasks = set()
        self.exchanges = []
        self.is_paused = False

    def request(self, **more):
        """Send a request to it; gives the exchange."""
        context = contextvars.copy_context()
        context.run(_node.set, self)
        exchange = context.run(lambda: Exchange(self.app, **more))
        exchange.is_cut = False
        self.exchanges.append(exchange)
        return exchange

    def kill(self):
        """End it at once: nothing it still does has an effect."""
        self.store.is_dead = True
        self.store.pause(paused=False)
        for exchange in self.exchanges:
            if not exchange.complete.is_set():
                exchange.is_cut = True
                exchange.complete.set()

            async def drop(_message):
                raise OSError("the process is gone")

            exchange.send = drop
        for task in tuple(self.tasks):
            task.cancel()

    def pause(self, *, paused=True):
        """Stop its way to the store, as SIGSTOP would, or let it go on."""
        self.is_paused = paused
        self.store.pause(paused=paused)

    async def close(self):
        """Stop it in good order."""
        await self.app.close(drain=0.1)


class SimulatedTown:
    """The nodes, and the store that they share.

    Args:
        loop: on virtual time.
        chance: a ``random.Random``.
        nodes: how many there are at first.
    """

    def __init__(self, loop, chance, nodes=2):
        follow_tasks(loop)
        self.chance = chance
        self.network = SimulatedNetwork(loop, chance)
        self.nodes = [SimulatedNode(self.network) for _ in range(nodes)]

    @property
    def reachable(self):
        """The nodes that a balancer would send requests to."""
        return [node for node in self.nodes if not node.is_paused]

    def choose(self):
        """A random node, as a balancer chooses."""
        return self.chance.choice(self.reachable)

    def start_node(self):
        """One node more."""
        self.nodes.append(SimulatedNode(self.network))

    def kill_node(self, place):
        """One node less, unless it is the last that can be reached."""
        node = self.nodes[place % len(self.nodes)]
        if self.reachable != [node]:
            node.kill()
            self.nodes.remove(node)

    async def close(self):
        """Stop all nodes."""
        for node in self.nodes:
            node.pause(paused=False)
            node.store.is_cut = False
        for node in self.nodes:
            await node.close()
        await asyncio.sleep(CLOSING_TIME_S)  # one that was about to start has started by now
        for node in self.nodes:
            await node.close()


class SimulatedCall:
    """A call, with what its client has seen of it.

    Attributes:
        id: of the request.
        events: the ids of the events seen, in order.
        messages: what came, in order.
        ends: every answer to the call that came; there must be one.
        lost: the connection ended before any event: the client cannot come back.
        refused: the status with which the rest of it was refused, or 0.
    """

    def __init__(self, id, exchange):
        self.id = id
        self.exchange = exchange
        self.events = []
        self.messages = []
        self.ends = []
        self.lost = False
        self.refused = 0
        self._read = 0

    @property
    def is_over(self):
        """Whether the client waits no longer."""
        return bool(self.ends) or self.lost or bool(self.refused)

    def look(self):
        """Take in what has come on the current connection; True where it has ended."""
        exchange = self.exchange
        text = exchange.body.decode()
        if exchange.header("content-type") == "application/json":
            if exchange.complete.is_set() and not exchange.is_cut:
                if exchange.status != RETRY_LATER:
                    self._take(json.loads(text))
                if exchange.scope["method"] == "GET" and exchange.status in {400, 404}:
                    self.refused = exchange.status
            return exchange.complete.is_set()
        blocks = text.split("\n\n")[:-1]
        for block in blocks[self._read :]:
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "id" in fields:
                self.events.append(fields["id"])
            if fields.get("data"):
                self._take(json.loads(fields["data"]))
        self._read = len(blocks)
        return exchange.complete.is_set()

    def _take(self, message):
        self.messages.append(message)
        if message.get("id") == self.id and "method" not in message:
            self.ends.append(message)

    def go_on(self, exchange):
        """Another connection carries it from now on."""
        self.exchange = exchange
        self._read = 0


class SimulatedClient:
    """A client of 2025-11-25: each request goes to a random node.

    Args:
        town: the nodes.
    """

    def __init__(self, town):
        self.town = town
        self.session = None
        self.calls = []
        self.answered = set()
        self.answers = []
        self._last = 0

    async def open(self):
        """Shake hands."""
        params = {
            "protocolVersion": REVISION,
            "capabilities": FORM,
            "clientInfo": {"name": "simulated", "version": "1"},
        }
        exchange = self._post({"id": self._next_id(), "method": "initialize", "params": params})
        await exchange.complete.wait()
        assert exchange.status == 200, (exchange.status, exchange.body)
        self.session = exchange.header("mcp-session-id")
        done = self._post({"method": "notifications/initialized"})
        await done.complete.wait()

    async def request(self, method, **params):
        """Send a request that is answered at once."""
        exchange = self._post({"id": self._next_id(), "method": method, "params": params})
        await exchange.complete.wait()
        assert exchange.status == 200, (exchange.status, exchange.body)

    def call(self, tool, **arguments):
        """Begin a call that asks for progress."""
        id = self._next_id()
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}
        message = {"id": id, "method": "tools/call", "params": params}
        call = SimulatedCall(id, self._post(message))
        self.calls.append(call)
        return call

    def cancel(self, call):
        """Withdraw a call, at whatever node."""
        params = {"requestId": call.id}
        return self._post({"method": "notifications/cancelled", "params": params})

    def follow(self, call):
        """Take in what came for a call; where its connection has ended, come back for the rest."""
        ended = call.look()
        self._answer_questions(call)
        if not ended or call.is_over:
            return
        if not call.events:
            call.lost = True  # no event to come back after
        else:
            call.go_on(self.listen(call.events[-1]))

    def listen(self, last_id=None):
        """Open a stream: of one's own, or for the rest of another one."""
        more = {} if last_id is None else {"last-event-id": last_id}
        return self.town.choose().request(
            method="GET", headers={**self._headers(), "accept": "text/event-stream", **more}
        )

    def _answer_questions(self, call):
        for message in call.messages:
            if message.get("method") == "elicitation/create" and message["id"] not in self.answered:
                self.answered.add(message["id"])
                content = {"value": message["params"]["message"]}
                result = {"action": "accept", "content": content}
                answer = {"id": message["id"], "result": result}
                self.answers.append((answer, self._post(answer)))
        for place, (answer, exchange) in enumerate(self.answers):
            if exchange.complete.is_set() and (exchange.is_cut or exchange.status == RETRY_LATER):
                self.answers[place] = (answer, self._post(answer))

    def _post(self, message):
        body = {"jsonrpc": "2.0", **message}
        return self.town.choose().request(headers=self._headers(), body=body)

    def _headers(self):
        known = {"accept": BOTH, "content-type": "application/json", "host": "localhost"}
        if self.session is None:
            return known
        return {**known, "mcp-session-id": self.session, "mcp-protocol-version": REVISION}

    def _next_id(self):
        self._last += 1
        return self._last
