"""Probes of isolation: two clients at once, and one that shows what another was given."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.errors import IsthmusError
from isthmus.linter.doctor.doctor import make_request_meta
from isthmus.linter.doctor.http import HttpProbeSession, HttpTarget
from isthmus.linter.doctor.probes import PROBES, Probe
from isthmus.linter.gateway.caller import (
    CallerIdentity,
    ProbeCaller,
    attempt,
    attempt_call,
    make_token,
)
from isthmus.linter.gateway.offers import OfferedNames
from isthmus.linter.gateway.upstream import MeetingPlace, ProbeUpstream, ProbeUpstreams
from isthmus.linter.gateway.visit import GatewayVisit, ProbeState
from isthmus.linter.rules.visit import ProbeOutcome
from isthmus.revisions import MODERN, Revision
from isthmus.transports.http.client.pool import open_requests
from isthmus.wire.meta import CLIENT_CAPABILITIES

STRANGER_PROBES = ("a foreign Origin", "a foreign Host")


# Two clients at once


async def probe_crossing(
    first: ProbeCaller,
    second: ProbeCaller,
    visit: GatewayVisit,
    names: OfferedNames,
    upstream: ProbeUpstream,
) -> None:
    """Have two clients call at once, with questions, progress and logs, and look for the one's at the other."""
    pair = f"clients of {first.revision.name} and {second.revision.name}, upstream {upstream.name}"
    form, work = names.find_tool("form", upstream), names.find_tool("work", upstream)
    if form is not None:
        await _call_both(first, second, visit, form, f"questions, {pair}")
    if work is not None:
        meeting = make_token("meeting")
        where = f"progress and logs, {pair}"
        await _call_both(first, second, visit, work, where, meeting=meeting)


async def _call_both(
    first: ProbeCaller, second: ProbeCaller, visit: GatewayVisit, tool: str, where: str, **more: str
) -> None:
    meeting, tokens = MeetingPlace(), (make_token("first"), make_token("second"))
    place = make_token("place")
    for caller, token in zip((first, second), tokens, strict=True):
        caller.hold = lambda token=token: meeting.meet(place, token)
    marks = len(first.heard), len(second.heard)
    try:
        ended = await asyncio.gather(
            attempt_call(first, tool, {"token": tokens[0], **more}),
            attempt_call(second, tool, {"token": tokens[1], **more}),
        )
    finally:
        first.hold = second.hold = None
    foreign = {
        "the first client": (first.heard[marks[0] :], (tokens[1], second.answer)),
        "the second client": (second.heard[marks[1] :], (tokens[0], first.answer)),
    }
    leaks = [
        f"{who} was told {_find_context(heard, word)}"
        for who, (heard, words) in foreign.items()
        for word in words
        if word.encode() in heard
    ]
    state: ProbeState = "wrong" if leaks else "ok"
    visit.note("crossing", where, state, "; ".join(leaks))
    for _, how, said in ended:
        if how == "silent" and not leaks:
            visit.note("crossing-silent", where, how, said)


def _find_context(heard: bytes, word: str) -> str:
    """The surroundings of a word that was heard."""
    at = heard.index(word.encode())
    return repr(heard[max(0, at - 60) : at + len(word)].decode(errors="replace"))


# What one client was given, shown by another


async def open_raw(identity: CallerIdentity, revision: Revision) -> HttpProbeSession:
    """A conversation over HTTP in which each message is ours to spell; opened up to 2025-11-25."""
    target = HttpTarget(
        identity.url,
        open_requests(connect_timeout=identity.timeout),
        identity.headers,
        loopback=True,
    )
    session = await target.enter(revision, identity.timeout)
    if revision not in MODERN:
        params = {
            "protocolVersion": revision.name,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "isthmus-check", "version": "0"},
        }
        await ask_raw(session, "initialize", params)
        await session.tell("notifications/initialized")
    return session


async def ask_raw(
    session: HttpProbeSession, method: str, params: Mapping[str, Any], id: int = 1
) -> ProbeOutcome:
    """Send one request as it is."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return await session.ask(Probe(method, method), message)


async def probe_states(
    first: CallerIdentity,
    second: CallerIdentity,
    visit: GatewayVisit,
    names: OfferedNames,
    upstreams: ProbeUpstreams,
) -> None:
    """Look at the ``requestState`` of a question: whose it is, and how often it works."""
    for upstream in upstreams.lasting:
        await _probe_state(first, second, visit, names, upstream)


async def _probe_state(
    first: CallerIdentity,
    second: CallerIdentity,
    visit: GatewayVisit,
    names: OfferedNames,
    upstream: ProbeUpstream,
) -> None:
    place, token, answer = f"upstream {upstream.name}", make_token("state"), make_token("answer")
    tool = names.find_tool("form", upstream)
    if tool is None:
        return
    meta = {**make_request_meta(visit.revision), CLIENT_CAPABILITIES: {"elicitation": {"form": {}}}}
    params = {
        "_meta": meta,
        "name": tool,
        "arguments": {"token": token},
    }
    mine = await open_raw(first, visit.revision)
    asked = (await ask_raw(mine, "tools/call", params)).result or {}
    questions, state = asked.get("inputRequests"), asked.get("requestState")
    if not isinstance(questions, dict) or not questions or not isinstance(state, str):
        return  # nothing is asked: the probes of questions tell
    if state.encode() in bytes(upstream.tap.said):
        visit.note(
            "state-verbatim", place, "wrong", f"requestState {state[:40]!r} is the upstream's"
        )
    content = {"action": "accept", "content": {"answer": answer}}
    again = {**params, "requestState": state, "inputResponses": dict.fromkeys(questions, content)}
    if first.has_token and second.has_token:
        theirs = await open_raw(second, visit.revision)
        taken = await ask_raw(theirs, "tools/call", again, 2)
        if answer in msgspec.json.encode(taken.reply).decode():
            visit.note("state-owner", place, "wrong", "the other caller's answer was taken")
            return
    await ask_raw(mine, "tools/call", again, 3)
    await ask_raw(mine, "tools/call", again, 4)
    # the upstream of 2026-07-28 begins anew with each round, also when it is called directly
    times = upstream.begun[token]
    if upstream.name == "legacy":
        said = f"the call was dispatched {times} times for one call and its answer, shown twice"
        visit.note("replay", place, "wrong" if times > 1 else "ok", said)


async def probe_session_owner(
    first: CallerIdentity, second: CallerIdentity, visit: GatewayVisit
) -> None:
    """Use the session of one caller with the token of another."""
    if not (first.has_token and second.has_token):
        return
    mine, theirs = [await open_raw(one, visit.revision) for one in (first, second)]
    if mine.session is None:
        return
    theirs.session = mine.session
    outcome = await ask_raw(theirs, "tools/list", {}, 2)
    taken = outcome.result is not None
    visit.note("session-owner", "Mcp-Session-Id", "wrong" if taken else "ok", outcome.told)


async def probe_strangers(identity: CallerIdentity, visit: GatewayVisit) -> dict[str, ProbeOutcome]:
    """Ask as a page of a browser would that reached the gateway by DNS rebinding."""
    session = await open_raw(identity, visit.revision)
    outcomes = {}
    for probe in PROBES:
        if probe.name in STRANGER_PROBES and probe.since <= visit.revision.name <= probe.until:
            params: dict[str, Any] = {}
            if visit.revision in MODERN:
                params = {"_meta": make_request_meta(visit.revision)}
            message = {"jsonrpc": "2.0", "id": 9, "method": probe.method, "params": params}
            outcomes[probe.name] = await session.ask(probe, message)
    return outcomes


# Credentials


def find_passed(
    identities: tuple[CallerIdentity, ...], visit: GatewayVisit, upstreams: ProbeUpstreams
) -> None:
    """Look for what the clients showed the gateway in what arrived behind it."""
    for upstream in upstreams.all:
        heard = bytes(upstream.tap.heard)
        for identity in identities:
            for where, word in identity.canaries.items():
                at = heard.find(word.encode())
                if at >= 0:
                    line = heard[max(0, at - 60) : at].decode(errors="replace").splitlines()[-1:]
                    said = f"arrived at the upstream behind {''.join(line)!r}"
                    visit.note("passthrough", f"{where}, upstream {upstream.name}", "wrong", said)


async def attempt_probe(visit: GatewayVisit, name: str, probe: Any, timeout: float) -> None:
    """Run one group of probes for a bounded time, and take down that it did not end."""
    try:
        _, state, said = await attempt(probe, timeout)
    except (OSError, ExceptionGroup, IsthmusError) as error:
        state, said = "lost", str(error)
    if state != "ok":
        visit.note("group", name, "skipped", said)
