"""A host that only asks: what surfaces see of one, with the questions written down beforehand."""

import time
from contextlib import asynccontextmanager

from msgspec import Raw, json, structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.events import (
    HostEvents,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    ServerMoved,
)
from isthmus.host.model.interaction import CallAsked, ChangeAsked, Decision, Interaction
from isthmus.host.model.trace import Match, Obligations, Trace
from isthmus.host.model.view import AuditLine, ServerStatus
from isthmus.wire import Tool

__all__ = ["TOOL", "WaitingHost", "make_interaction"]

TOOL = Tool(name="delete", input_schema={"type": "object"}, description="Deletes a file.")


def make_interaction(
    id="q1", payload=None, *, action="tool.call", server="files", object="delete", **more
):
    """One question.

    Args:
        id: its name.
        payload: what is shown; a call of ``delete`` by default.
        action: what is wanted.
        server: of which server.
        object: which tool, for example.
        **more: of the interaction; ``remember``, ``assurance`` and ``chain`` of its trace.
    """
    obligations = {k: more.pop(k) for k in ("remember", "assurance") if k in more}
    trace = Trace(
        effect="ask",
        rule="writes",
        reason="it changes files",
        matches=(Match("writes", "user", "ask"),),
        obligations=Obligations(**obligations),
        policy="p1",
        chain=more.pop("chain", ()),
    )
    return Interaction(
        id=id,
        attempt=Attempt(
            id=f"a-{id}",
            action=action,
            principal=more.pop("principal", "user:local"),
            server=server,
            object=object,
            origin=more.pop("origin", "local"),
            run="run1",
        ),
        payload=payload or CallAsked(tool=TOOL, arguments={"path": "/tmp/a"}),
        trace=trace,
        **more,
    )


def changed_tool(before, after, diff):
    """A tool that is not what it was."""
    return ChangeAsked(before=Raw(json.encode(before)), after=Raw(json.encode(after)), diff=diff)


class WaitingHost:
    """Asks the given questions, and remembers the first answer to each."""

    def __init__(self, *questions, servers=()):
        self.waiting = {one.id: one for one in questions}
        self.decided = {}
        self.done = []
        self.attending = []
        self.taken = {}
        self.happened = HostEvents()
        self.known = {name: ServerStatus(name=name, state="ready") for name in servers}

    def ask(self, question):
        """One more question."""
        self.waiting[question.id] = question
        self.happened.tell(QuestionAsked(interaction=question))

    def pending(self):
        return list(self.waiting.values())

    async def decide(self, id, decision):
        if id not in self.waiting:
            return False
        del self.waiting[id]
        self.decided[id] = decision
        self.happened.tell(QuestionAnswered(id=id, decision=decision))
        return True

    def takers(self):
        return dict(self.taken)

    async def take_question(self, id, taker, *, over=False):
        before = self.taken.get(id, taker)
        if before.holder == taker.holder or over:
            self.taken[id] = taker
            self.happened.tell(QuestionTaken(id=id, taker=taker))
        return self.taken[id]

    async def free_question(self, id, holder):
        del self.taken[id]
        self.happened.tell(QuestionTaken(id=id))
        return True

    async def over(self, id):
        """Nobody answered in time."""
        return await self.decide(id, Decision(verdict="deny", by="deadline"))

    @asynccontextmanager
    async def attend(self, name, assurance="local_ui"):
        self.attending.append((name, assurance))
        yield
        self.attending.remove((name, assurance))

    def events(self):
        return self.happened.listen()

    def servers(self):
        return list(self.known.values())

    async def server_do(self, name, what, *, by=""):
        assert by
        state = {"start": "ready", "stop": "stopped", "restart": "ready"}[what]
        self.done.append((what, name))
        self.known[name] = structs.replace(self.known[name], state=state)
        self.happened.tell(ServerMoved(server=name, state=state))

    async def log_tail(self, server):
        return [f"{server} wrote \x1b[2Jthis"]

    async def audit_tail(self, count=50):
        return [AuditLine(seq=1, at=time.time(), kind="intent", action="tool.call", server="files")]

    async def explain(self, id):
        return [f"{id} is asked since nothing allows it"]
