"""Servers at the edges of what one can be, in a whole host: nobody else notices."""

import sys

import pytest
from msgspec import Raw

from isthmus import Command, Server
from isthmus.errors import IsthmusError, Refused
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.revisions import BY_NAME, LEGACY, Feature
from isthmus.testing import every_revision
from isthmus.wire import ElicitParams, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import encode
from support.client.small_server import SmallServer, any_tool, text_result

CALLS = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = "tool.call" }\n'

ENDLESS = """
import json, sys

def say(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        say(id, {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {}}})
    elif method == "tools/list":
        say(id, {"tools": [{"name": "talk", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        while True:
            sys.stdout.write("x" * 1000000)
    elif id is not None:
        say(id, {})
"""


def desk():
    """A good server."""
    server = Server("desk")

    @server.tool
    async def note() -> str:
        """Keep a note."""
        return "kept"

    return server


def make_host(person=lambda _asked: True):
    return Host(approver=person, policy=Policy.of(read_layers(CALLS, "user")))


@pytest.mark.covers("hostservers.line.endless")
async def test_a_line_without_an_end_ends_its_call_and_nothing_else():
    """Ours: what does not end is read up to a limit, and the next call has a server again."""
    host = make_host()
    host.add("endless", Command(sys.executable, "-I", "-S", "-c", ENDLESS), era="legacy")
    host.add("desk", desk())
    async with host:
        with pytest.raises(IsthmusError) as error:
            await host.call("endless__talk")
        assert "kept" == (await host.call("desk__note")).text
        rows = await host.view.audit_tail(20)

    assert "limit is" in str(error.value)
    ends = [row.error for row in rows if (row.kind, row.server) == ("outcome", "endless")]
    assert 1 == len(ends)


@every_revision(Feature.ELICITATION_FORM)
@pytest.mark.covers("hostkernel.asked.no-form")
async def test_a_form_that_cannot_be_put_to_a_user_is_put_to_nobody(revision):
    """Spec 2025-11-25 client/elicitation#requested-schema: flat objects of primitives only."""
    asked, heard = [], []
    nested = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}
    form = ElicitParams(message="Which?", requested_schema=nested)

    async def call(_params, inbound):
        if BY_NAME[revision] not in LEGACY:
            wanted = InputRequest(method="elicitation/create", params=Raw(encode(form)))
            return InputRequiredResult(input_requests={"q": wanted}, request_state="s")
        try:
            await inbound.link.call("elicitation/create", form, Raw)
        except Refused as error:
            heard.append(error.code)
        return text_result("asked")

    host = make_host(lambda interaction: asked.append(interaction) or True)
    host.add("pushy", SmallServer({"tools/call": call}, tools=[any_tool()], revisions=[revision]))
    host.add("desk", desk())
    async with host:
        if BY_NAME[revision] in LEGACY:
            await host.call("pushy__add")
        else:
            with pytest.raises(IsthmusError):
                await host.call("pushy__add")
        assert "kept" == (await host.call("desk__note")).text

    assert [] == asked
    assert ([-32602] if BY_NAME[revision] in LEGACY else []) == heard
