"""A client for one server in either era, without transports: what it is asked, it notes."""

import asyncio
import json
from collections import Counter

import msgspec
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.revisions import BY_NAME, project
from isthmus.runtime.channel import LOCAL
from isthmus.runtime.inbound import Inbound
from isthmus.wire import ClientCapabilities
from isthmus.wire.jsonrpc import ErrorBody, encode

ALL_CAPABILITIES = msgspec.convert(
    {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"context": {}, "tools": {}},
        "roots": {},
    },
    ClientCapabilities,
)
MODERN, LEGACY = "2026-07-28", "2025-11-25"


class FakeLink:
    """The way back to a client that answers by a function ``(method, params) -> result``."""

    def __init__(self, answer=None, revision=LEGACY, delay=0):
        self.answer = answer
        self.revision = BY_NAME[revision]
        self.delay = delay
        self.notes = []
        self.asked = Counter()
        self.agreed = None
        self.closers = []

    async def note(self, method, params=None, *, relates_to=None):
        await asyncio.sleep(0)
        said = json.loads(encode(project(params, self.revision))) if params is not None else {}
        self.notes.append((method, said))

    async def call(self, method, params, result, *, relates_to=None, timeout=None):
        assert result is Raw
        said = json.loads(encode(project(params, self.revision)))
        self.asked[question(method, said)] += 1
        for _ in range(self.delay):
            await asyncio.sleep(0)
        return Raw(encode(self.answer(method, said)))

    def agree(self, caller):
        self.agreed = caller

    def on_close(self, callback):
        self.closers.append(callback)
        return lambda: self.closers.remove(callback) if callback in self.closers else None

    def close(self):
        for callback in tuple(self.closers):
            callback()

    def said(self, method):
        """The params of every notification of a method."""
        return [params for said, params in self.notes if said == method]


def question(method, params):
    return f"{method} {json.dumps(params, sort_keys=True)}"


class EraClient:
    """Calls a server in one revision, and answers what it asks by ``answer``."""

    def __init__(
        self,
        server,
        revision=MODERN,
        answer=None,
        *,
        able=ALL_CAPABILITIES,
        delay=0,
        principal=None,
    ):
        self.server = server
        self.link = FakeLink(answer, revision, delay)
        self.caller = Caller(BY_NAME[revision], able, principal=principal)
        self.rounds = 0
        self.ids = 0

    @property
    def asked(self):
        return self.link.asked

    async def once(self, method, params=None, *, token=None, origin=LOCAL):
        """Send one request; the result as decoded JSON, or the ErrorBody."""
        if token is not None:
            params = {**(params or {}), "_meta": {"progressToken": token}}
        text = None if params is None else json.dumps(params)
        return await self.raw(method, text, token=token, origin=origin)

    async def raw(self, method, text, *, token=None, origin=LOCAL):
        """As :meth:`once`, of parameters that are JSON already."""
        self.ids += 1
        raw = None if text is None else Raw(text.encode())
        inbound = Inbound(self.ids, method, raw, self.caller, self.link, origin, token)
        outcome = await self.server.router.serve(inbound)
        return outcome if isinstance(outcome, ErrorBody) else json.loads(outcome)

    async def send(self, method, params=None, *, token=None, choose=None, origin=LOCAL):
        """Send a request and, as often as it asks, answer and send it again.

        ``choose`` picks the keys answered in a round; all are, by default.
        """
        params, self.rounds = dict(params or {}), 0
        while True:
            result = await self.once(method, params, token=token, origin=origin)
            if isinstance(result, ErrorBody) or result.get("resultType") != "input_required":
                return result
            self.rounds += 1
            assert self.rounds < 100, "the server never stops asking"
            requests = result.get("inputRequests", {})
            chosen = list(requests) if choose is None else choose(list(requests))
            params["inputResponses"] = {
                key: self.answered(requests[key]["method"], requests[key].get("params", {}))
                for key in chosen
            }
            params.pop("requestState", None)
            if "requestState" in result:
                params["requestState"] = result["requestState"]

    def answered(self, method, params):
        self.link.asked[question(method, params)] += 1
        return json.loads(encode(self.link.answer(method, params)))

    async def call(self, name, arguments=None, **how):
        """Call a tool."""
        return await self.send("tools/call", {"name": name, "arguments": arguments or {}}, **how)


def tool_text(result):
    """The text of a tool's result."""
    return "".join(block.get("text", "") for block in result["content"])


def accept_form(**content):
    return {"action": "accept", "content": content}
