"""Probes of what a gateway offers: lists, calls, reads, prompts, completion, progress, changes, cancellation."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from isthmus.linter.gateway.caller import (
    ProbeCaller,
    attempt,
    attempt_call,
    make_token,
)
from isthmus.linter.gateway.upstream import ProbeUpstream, ProbeUpstreams
from isthmus.linter.gateway.visit import GatewayVisit
from isthmus.wire import PromptReference

TOOL_KINDS = ("echo", "work", "wait", "form", "page", "sample", "roots")


class OfferedNames(msgspec.Struct):
    """The names that a gateway gives to what the probe upstreams offer.

    Attributes:
        tools: by their names at the upstream.
        prompts: likewise.
        resources: URIs by the resources' names at the upstream.
        templates: likewise.
    """

    tools: dict[str, str] = {}
    prompts: dict[str, str] = {}
    resources: dict[str, str] = {}
    templates: dict[str, str] = {}

    def find_tool(self, kind: str, upstream: ProbeUpstream) -> str | None:
        """The tool of an upstream as the gateway names it; None where it was not listed."""
        return self.tools.get(f"{kind}_{upstream.name}")


async def read_names(
    caller: ProbeCaller,
    visit: GatewayVisit,
    upstreams: Sequence[ProbeUpstream],
    names: OfferedNames | None = None,
) -> OfferedNames:
    """List everything, and take down what is missing of each upstream.

    Args:
        caller: the client.
        visit: where it is taken down.
        upstreams: those whose items are expected.
        names: is added to, and given back.
    """
    names, client = names or OfferedNames(), caller.client
    expected: dict[str, tuple[Any, dict[str, str], tuple[str, ...], str]] = {
        "tools": (client.list_tools, names.tools, TOOL_KINDS, "name"),
        "prompts": (client.list_prompts, names.prompts, ("greet",), "name"),
        "resources": (client.list_resources, names.resources, ("note",), "uri"),
        "resource templates": (
            client.list_resource_templates,
            names.templates,
            ("leaf",),
            "uri_template",
        ),
    }
    for kind, (read, into, kinds, member) in expected.items():
        items, state, said = await attempt(read(), caller.timeout)
        listed = [(one.name, getattr(one, member)) for one in items or ()]
        for upstream in upstreams:
            missing = []
            for thing in kinds:
                key = f"{thing}_{upstream.name}"
                into.update(_find_item(listed, key))
                if key not in into:
                    missing.append(key)
            where = f"the list of {kind}, upstream {upstream.name}"
            told = said or f"{', '.join(missing)} missing among {len(listed)}"
            visit.note("list", where, "wrong" if missing and state == "ok" else state, told)
    return names


def _find_item(listed: Sequence[tuple[str, str]], key: str) -> dict[str, str]:
    """The item of a list whose name or URI has a name in it: gateways put others before and after."""
    uri = key.replace("_", "-")
    found = [value for name, value in listed if key in name or key in value or uri in value]
    return {key: found[0]} if found else {}


async def probe_offers(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    """Call, read, get and complete one thing of an upstream."""
    client, end, place = caller.client, upstream.name, f"upstream {upstream.name}"
    tool = names.find_tool("echo", upstream)
    if tool is not None:
        await _probe_call(caller, visit, tool, upstream)
    note, leaf = names.resources.get(f"note_{end}"), names.templates.get(f"leaf_{end}")
    greet = names.prompts.get(f"greet_{end}")
    if note is not None:
        got = await attempt(client.read_resource(note), caller.timeout)
        _note_text(visit, "resources/read", place, got, f"the note of {end}")
    if leaf is not None:
        got = await attempt(client.read_resource(leaf.replace("{number}", "7")), caller.timeout)
        _note_text(visit, "resources/read of a template", place, got, f"leaf 7 of {end}")
    if greet is not None:
        word = make_token("word")
        _note_text(
            visit,
            "prompts/get",
            place,
            await attempt(client.get_prompt(greet, {"word": word}), caller.timeout),
            word,
        )
        reference = PromptReference(name=greet)
        completed = await attempt(client.complete(reference, "word", "hel"), caller.timeout)
        _note_text(visit, "completion/complete", place, completed, f"hello-{end}")


async def _probe_call(
    caller: ProbeCaller, visit: GatewayVisit, tool: str, upstream: ProbeUpstream
) -> None:
    token, where = make_token("call"), f"tools/call, upstream {upstream.name}"
    text, state, said = await attempt_call(caller, tool, {"token": token})
    wrong = state == "ok" and token not in text
    visit.note("tools/call", where, "wrong" if wrong else state, said)
    times = upstream.begun[token]
    visit.note("once", where, "wrong" if times > 1 else "ok", f"dispatched {times} times")


def _note_text(
    visit: GatewayVisit, method: str, place: str, got: tuple[Any, Any, str], expected: str
) -> None:
    """Take down whether a result has in it what the upstream answers."""
    result, state, said = got
    if state == "ok" and expected.encode() not in msgspec.json.encode(result):
        state, said = "wrong", f"{expected!r} is not in the result"
    visit.note(method, f"{method}, {place}", state, said)


async def probe_conduct(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    """Report progress, cancel a call, change a list and a resource."""
    token, tool = make_token("work"), names.find_tool("work", upstream)
    if tool is not None:
        arguments = {"token": token, "meeting": token}
        _, state, _said = await attempt_call(caller, tool, arguments)
        if state == "ok":
            told = any(token in one for one in caller.progress)
            where = f"progress of a call, upstream {upstream.name}"
            visit.note("progress", where, "ok" if told else "wrong", "none came")
    await _probe_cancellation(caller, visit, names, upstream)
    await _probe_changes(caller, visit, names, upstream)


async def _probe_cancellation(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    token, where = make_token("wait"), f"cancelling a call, upstream {upstream.name}"
    tool = names.find_tool("wait", upstream)
    if tool is None:
        return
    call = asyncio.create_task(caller.call(tool, {"token": token}))
    try:
        _, state, said = await attempt(upstream.waiting[token].wait(), caller.timeout)
        if state != "ok":
            visit.note("cancel", where, "skipped", "the call did not reach the upstream")
            return
    finally:
        call.cancel()
        await asyncio.wait([call])
    _, state, said = await attempt(upstream.cancelled[token].wait(), caller.timeout)
    visit.note("cancel", where, state, said and "the call goes on at the upstream")


async def _probe_changes(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstream: ProbeUpstream
) -> None:
    """Listen, have something change at the upstream, and wait until it is told."""
    declared = caller.client.capabilities
    note = names.resources.get(f"note_{upstream.name}")
    place, added = f"upstream {upstream.name}", make_token("added").replace("-", "_")
    uris = (
        [note] if note is not None and declared.resources and declared.resources.subscribe else []
    )
    if not (declared.tools and declared.tools.list_changed):
        return  # it says itself that it tells of nothing

    async def wait_told(kind: str) -> None:
        while not any(one.kind == kind for one in caller.changes):
            caller.changed.clear()
            await caller.changed.wait()

    async def listen() -> None:
        async with caller.client.listen(tools=True, uris=uris):
            caller.changes.clear()
            upstream.add_tool(added)
            try:
                _, state, said = await attempt(wait_told("tools"), caller.timeout)
                visit.note("list_changed", f"a list that changes, {place}", state, said)
                if not uris:
                    return
                upstream.server.notify_resource_updated(upstream.note_uri)
                _, state, said = await attempt(wait_told("resource"), caller.timeout)
                visit.note("updated", f"a resource that changes, {place}", state, said)
            finally:
                upstream.server.remove_tool(added)

    _, state, said = await attempt(listen(), 3 * caller.timeout)
    if state != "ok":
        visit.note("list_changed", f"listening for changes, {place}", state, said)


async def probe_all_offers(
    caller: ProbeCaller, visit: GatewayVisit, upstreams: ProbeUpstreams, names: OfferedNames
) -> None:
    """List everything, and try one of each kind at each upstream; adds the names that are found."""
    await read_names(caller, visit, upstreams.all, names)
    for upstream in upstreams.all:
        await probe_offers(caller, visit, names, upstream)
