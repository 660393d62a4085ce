"""Examination of a gateway: runs the probes in order, for each revision, within bounds, and judges them."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from isthmus.errors import AuthError, IsthmusError
from isthmus.linter.gateway.caller import STEP_TIMEOUT_S, CallerIdentity, ProbeCaller
from isthmus.linter.gateway.failures import (
    GatewayRunner,
    probe_dead_upstream,
    probe_fewer_servers,
    probe_loop,
    probe_refusals,
)
from isthmus.linter.gateway.isolation import (
    attempt_probe,
    find_passed,
    probe_crossing,
    probe_session_owner,
    probe_states,
    probe_strangers,
)
from isthmus.linter.gateway.offers import OfferedNames, probe_all_offers, probe_conduct
from isthmus.linter.gateway.questions import probe_questions, probe_unasked
from isthmus.linter.gateway.rules import GATEWAY_RULES, SERVER_RULES, judge_gateway
from isthmus.linter.gateway.upstream import ProbeUpstreams
from isthmus.linter.gateway.visit import GatewayReport, GatewayVisit
from isthmus.linter.rules.catalog import judge_visit
from isthmus.linter.rules.visit import ServerVisit
from isthmus.revisions import LEGACY, MODERN, REVISIONS, Feature, Revision

OFFERS_TIMEOUT_S = 20.0  # for the lists and calls of one revision
CELL_TIMEOUT_S = 15.0  # for the probes of one revision and one upstream
RESTART_TIMEOUT_S = 20.0
EXAMINATION_TIMEOUT_S = 60.0  # for all probes together; what is left over then is told


class GatewayExaminer:
    """Examines one gateway.

    Args:
        runner: starts the gateway, or knows where it runs.
        upstreams: the servers that it is configured with.
        first, second: the credentials of two clients.
        rules: the ids of the rules to apply; all by default.
    """

    def __init__(
        self,
        runner: GatewayRunner,
        upstreams: ProbeUpstreams,
        first: CallerIdentity,
        second: CallerIdentity,
        rules: Collection[str] | None = None,
    ) -> None:
        self._runner = runner
        self._upstreams = upstreams
        self._first = first
        self._second = second
        self._rules = frozenset(GATEWAY_RULES) if rules is None else frozenset(rules)
        self._report = GatewayReport()
        self._visits: dict[Revision, GatewayVisit] = {}
        self._callers: dict[Revision, ProbeCaller] = {}
        self._names: dict[Revision, OfferedNames] = {}
        self._servers: list[ServerVisit] = []
        self._until = 0.0

    async def examine(self, revisions: Sequence[Revision]) -> GatewayReport:
        """Run all probes that can be run, and judge their outcomes.

        Raises:
            AuthError: the gateway wants authorization, and none was given.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._runner.run(self._upstreams.config))
            self._until = asyncio.get_running_loop().time() + EXAMINATION_TIMEOUT_S
            await self._connect(stack, revisions)
            if self._callers:
                await self._probe_running()
        if self._callers and self._runner.restarts:
            await self._probe_restarted()
        return self._judge()

    async def _connect(self, stack: AsyncExitStack, revisions: Sequence[Revision]) -> None:
        """Connect a client of each revision."""
        for revision in reversed(revisions):
            if not revision.has(Feature.STREAMABLE_HTTP):
                continue  # whose clients speak HTTP+SSE, or stdio
            caller = ProbeCaller(self._first, revision)
            try:
                await stack.enter_async_context(caller.connect())
            except AuthError:
                raise
            except (IsthmusError, TimeoutError) as error:
                self._report.unspoken[revision.name] = str(error)
                continue
            self._callers[revision] = caller
            self._visits[revision] = GatewayVisit(revision, [])
            self._report.spoken.append(revision.name)
        self._note_eras(revisions)

    def _note_eras(self, revisions: Sequence[Revision]) -> None:
        """Take down that the revisions of one era are all missing."""
        for era, title in ((LEGACY, "up to 2025-11-25"), (MODERN, "2026-07-28")):
            tried = [one for one in revisions if one in era]
            if tried and self._callers and not any(one in era for one in self._callers):
                visit = next(iter(self._visits.values()))
                reason = self._report.unspoken.get(tried[-1].name, "")
                visit.note("era", f"clients of {title}", "refused", reason)

    @property
    def _newest(self) -> list[Revision]:
        """The newest revision of each era that the gateway speaks."""
        found = []
        for era in (MODERN, LEGACY):
            spoken = [one for one in self._callers if one in era]
            found += spoken[:1]
        return found

    async def _probe_running(self) -> None:
        """Run the probes that need the gateway as it is."""
        for revision, caller in self._callers.items():
            visit = self._visits[revision]
            self._names[revision] = names = OfferedNames({}, {}, {}, {})

            async def offers(
                caller: ProbeCaller = caller,
                visit: GatewayVisit = visit,
                names: OfferedNames = names,
            ) -> None:
                await probe_all_offers(caller, visit, self._upstreams, names)

            await self._try(
                visit, f"what is offered in {revision.name}", offers(), OFFERS_TIMEOUT_S
            )
        for revision in self._newest:
            await self._probe_era(revision)
        await self._probe_pairs()
        for revision in self._newest:
            caller, visit = self._callers[revision], self._visits[revision]
            refusals = probe_refusals(caller, visit, self._names[revision], self._upstreams)
            await self._try(visit, "refusals of an upstream", refusals, CELL_TIMEOUT_S)
        newest = {one: self._callers[one] for one in self._newest}
        dead = probe_dead_upstream(newest, self._visits, self._names, self._upstreams)
        await self._try(self._first_visit, "an upstream that is gone", dead, 2 * CELL_TIMEOUT_S)
        find_passed((self._first, self._second), self._first_visit, self._upstreams)

    async def _probe_era(self, revision: Revision) -> None:
        """Run the probes that are the same for all revisions of an era."""
        caller, visit, names = (
            self._callers[revision],
            self._visits[revision],
            self._names[revision],
        )
        for upstream in self._upstreams.lasting:
            place = f"{revision.name} and upstream {upstream.name}"
            conduct = probe_conduct(caller, visit, names, upstream)
            await self._try(visit, f"conduct, {place}", conduct, CELL_TIMEOUT_S)
            questions = probe_questions(caller, visit, names, upstream)
            await self._try(visit, f"questions, {place}", questions, CELL_TIMEOUT_S)
            unasked = probe_unasked(self._first, visit, names, upstream)
            await self._try(visit, f"undeclared questions, {place}", unasked, CELL_TIMEOUT_S)
        if revision in MODERN:
            states = probe_states(self._first, self._second, visit, names, self._upstreams)
            await self._try(visit, "requestState", states, CELL_TIMEOUT_S)
        else:
            owner = probe_session_owner(self._first, self._second, visit)
            await self._try(visit, "sessions", owner, CELL_TIMEOUT_S)
        seen = ServerVisit(revision, "http", [], {}, {}, {}, loopback=True)
        self._servers.append(seen)

        async def strangers() -> None:
            seen.outcomes.update(await probe_strangers(self._first, visit))

        await self._try(visit, "foreign origins", strangers(), CELL_TIMEOUT_S)

    async def _probe_pairs(self) -> None:
        """Have clients of the same and of different eras call at once."""
        newest = self._newest
        pairs = [(one, one) for one in newest] + ([(newest[0], newest[1])] if newest[1:] else [])
        for one, other in pairs:
            visit, names = self._visits[one], self._names[one]

            async def cross(
                one: Revision = one,
                other: Revision = other,
                visit: GatewayVisit = visit,
                names: OfferedNames = names,
            ) -> None:
                async with ProbeCaller(self._second, other).connect() as second:
                    for upstream in self._upstreams.lasting:
                        await probe_crossing(self._callers[one], second, visit, names, upstream)

            await self._try(visit, "two clients at once", cross(), CELL_TIMEOUT_S)

    async def _probe_restarted(self) -> None:
        """Run the probes that need the gateway with another configuration."""
        newest, visit = self._newest[0], self._first_visit
        fewer = probe_fewer_servers(
            self._runner, self._first, visit, self._names[newest], self._upstreams
        )
        await self._try(visit, "fewer servers", fewer, RESTART_TIMEOUT_S)
        loop = probe_loop(self._runner, self._first, visit, self._upstreams)
        await self._try(visit, "a chain to itself", loop, RESTART_TIMEOUT_S)

    @property
    def _first_visit(self) -> GatewayVisit:
        return self._visits[self._newest[0]]

    async def _try(
        self, visit: GatewayVisit, name: str, probes: Coroutine[Any, Any, None], timeout: float
    ) -> None:
        """Run one group of probes, in the time that is left."""
        left = self._until - asyncio.get_running_loop().time()
        if left > 0:
            await attempt_probe(visit, name, probes, min(left, timeout))
            return
        probes.close()
        said = f"{EXAMINATION_TIMEOUT_S:g} seconds were over"
        visit.note("group", name, "skipped", said)

    def _judge(self) -> GatewayReport:
        report = self._report
        for visit in self._visits.values():
            report.findings += judge_gateway(visit, self._rules)
            report.asked += sum(one.state != "skipped" for one in visit.outcomes)
            report.skipped += [
                f"{one.where}: {one.said}" for one in visit.outcomes if one.state == "skipped"
            ]
        for seen in self._servers:
            report.findings += judge_visit(seen, self._rules & set(SERVER_RULES))
            report.asked += len(seen.outcomes)
        return report


async def examine_gateway(
    runner: GatewayRunner,
    upstreams: ProbeUpstreams,
    *,
    tokens: tuple[str | None, str | None] = (None, None),
    headers: Mapping[str, str] | None = None,
    revisions: Sequence[Revision] = REVISIONS,
    rules: Collection[str] | None = None,
    timeout: float = STEP_TIMEOUT_S,
) -> GatewayReport:
    """Look at a gateway from both sides, and say what it does wrong.

    Args:
        runner: starts the gateway, or knows where it runs.
        upstreams: the servers that it has behind it; see :func:`~isthmus.linter.gateway.upstream.open_upstreams`.
        tokens: access tokens of two different callers, where the gateway wants them.
        headers: what every request to it carries beside.
        revisions: those to speak.
        rules: the ids of the rules to apply; all by default.
        timeout: seconds that one probe may take; all together take 60 at most.

    Raises:
        AuthError: the gateway wants authorization, and none was given.
    """
    first, second = (CallerIdentity(runner.url, token, headers, timeout) for token in tokens)
    return await GatewayExaminer(runner, upstreams, first, second, rules).examine(revisions)
