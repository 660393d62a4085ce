"""Probes of failures behind a gateway: an upstream that refuses, one that is gone, a chain to itself."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from isthmus.errors import AuthError, HttpRefused, IsthmusError
from isthmus.linter.gateway.caller import (
    CallerIdentity,
    ProbeCaller,
    attempt,
    attempt_call,
    make_token,
)
from isthmus.linter.gateway.offers import OfferedNames, read_names
from isthmus.linter.gateway.upstream import ProbeUpstreams, make_upstream_config
from isthmus.linter.gateway.visit import GatewayVisit, ProbeState
from isthmus.revisions import Revision

REFUSALS = {
    401: 'www-authenticate: Bearer error="invalid_token"\r\n',
    503: "",
}
CREDENTIAL_STATUSES = frozenset({401, 403, 407})
START_TIMEOUT_S = 10.0  # that a gateway with itself behind it may take to answer
MAX_LOOP_REQUESTS = 200  # that one list through a chain to itself may make behind it


class GatewayRunner(Protocol):
    """Starts the gateway under test with a configuration."""

    @property
    def url(self) -> str:
        """The address where it will answer."""
        ...

    @property
    def restarts(self) -> bool:
        """Whether it can be started again, with another configuration."""
        ...

    def run(self, config: Mapping[str, Any]) -> AbstractAsyncContextManager[None]:
        """Run it until the block is left; it answers when the block is entered."""
        ...


async def probe_refusals(
    caller: ProbeCaller, visit: GatewayVisit, names: OfferedNames, upstreams: ProbeUpstreams
) -> None:
    """Have an upstream answer by HTTP errors: they are its own, and not the gateway's."""
    spare = upstreams.spare
    tool = names.find_tool("echo", spare)
    if tool is None:
        return
    for status, headers in REFUSALS.items():
        spare.tap.refusal = (status, headers)
        where = f"an upstream that answers HTTP {status}"
        try:
            async with asyncio.timeout(caller.timeout):
                result = await caller.call(tool, {"token": make_token("call")})
            state: ProbeState = "ok" if result.is_error else "wrong"
            visit.note("upstream-status", where, state, f"a result: {result.text[:120]!r}")
        except TimeoutError:
            visit.note("upstream-status", where, "silent", "no answer")
        except (HttpRefused, AuthError) as error:
            shown = getattr(error, "status", status)
            state = "wrong" if shown in CREDENTIAL_STATUSES else "ok"
            visit.note(
                "upstream-challenge", where, state, f"HTTP {shown} of the gateway's own: {error}"
            )
        except IsthmusError as error:
            visit.note("upstream-status", where, "ok", str(error))
        finally:
            spare.tap.refusal = None


async def probe_dead_upstream(
    callers: Mapping[Revision, ProbeCaller],
    visits: Mapping[Revision, GatewayVisit],
    offered: Mapping[Revision, OfferedNames],
    upstreams: ProbeUpstreams,
) -> None:
    """Take one upstream away: the others stay, and it is said of it."""
    await upstreams.spare.tap.close()
    for revision, caller in callers.items():
        await _probe_without_spare(caller, visits[revision], offered[revision], upstreams)


async def _probe_without_spare(
    caller: ProbeCaller, visit: GatewayVisit, before: OfferedNames, upstreams: ProbeUpstreams
) -> None:
    seen = GatewayVisit(visit.revision, [])
    names = await read_names(caller, seen, upstreams.lasting)
    for kind, had, has in (
        ("tools", before.tools, names.tools),
        ("prompts", before.prompts, names.prompts),
        ("resources", before.resources, names.resources),
        ("resource templates", before.templates, names.templates),
    ):
        gone = sorted(key for key in had if key not in has and not key.endswith("_spare"))
        where = f"the list of {kind}, while one upstream is gone"
        told = next((one.said for one in seen.outcomes if f" {kind}," in one.where), "")
        visit.note("dead-hides", where, "wrong" if gone else "ok", f"no {', '.join(gone)}: {told}")
    for upstream in upstreams.lasting:
        tool = before.find_tool("echo", upstream)
        if tool is not None:
            _, state, said = await attempt_call(caller, tool, {"token": make_token("call")})
            where = f"tools/call, upstream {upstream.name}, while another is gone"
            visit.note("dead-hides", where, state, said)
    tool = before.find_tool("echo", upstreams.spare)
    if tool is not None:
        token = make_token("call")
        _, state, said = await attempt_call(caller, tool, {"token": token}, 2 * caller.timeout)
        where = "tools/call of an upstream that is gone"
        visit.note("dead-told", where, "wrong" if state == "ok" else state, said)


async def probe_fewer_servers(
    runner: GatewayRunner,
    identity: CallerIdentity,
    visit: GatewayVisit,
    names: OfferedNames,
    upstreams: ProbeUpstreams,
) -> None:
    """Start the gateway with one server only: names are the same as beside the others."""
    legacy = upstreams.legacy
    config = make_upstream_config([(legacy.name, legacy.url)])
    async with runner.run(config), ProbeCaller(identity, visit.revision).connect() as caller:
        alone = await read_names(caller, GatewayVisit(visit.revision, []), [legacy])
    pairs = [
        (alone.tools.get(f"echo_{legacy.name}"), names.tools.get(f"echo_{legacy.name}")),
        (alone.prompts.get(f"greet_{legacy.name}"), names.prompts.get(f"greet_{legacy.name}")),
    ]
    changed = [f"{before!r} becomes {after!r}" for before, after in pairs if before != after]
    visit.note("names", "names", "wrong" if changed else "ok", "; ".join(changed))


async def probe_loop(
    runner: GatewayRunner,
    identity: CallerIdentity,
    visit: GatewayVisit,
    upstreams: ProbeUpstreams,
) -> None:
    """Start the gateway with itself behind it: a list ends, in bounded time and with bounded work."""
    legacy = upstreams.legacy
    before = legacy.tap.requests
    config = make_upstream_config([(legacy.name, legacy.url), ("itself", runner.url)])

    async def list_once() -> None:
        async with runner.run(config), ProbeCaller(identity, visit.revision).connect() as caller:
            _, state, said = await attempt(caller.client.list_tools(), 2 * identity.timeout)
            visit.note("loop", "tools/list through itself", state, said)

    try:
        _, state, said = await attempt(list_once(), START_TIMEOUT_S + 3 * identity.timeout)
    except OSError as error:
        state, said = "lost", str(error)
    if state == "silent":
        visit.note("loop", "starting with itself behind it", state, said)
    made = legacy.tap.requests - before
    if made > MAX_LOOP_REQUESTS:
        visit.note("loop", "tools/list through itself", "wrong", f"{made} requests to the upstream")
