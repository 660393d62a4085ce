"""Doctor: visits a server in every revision it speaks, asks harmless questions, judges the answers.

Nothing here calls a tool unless it was told to; :mod:`~isthmus.linter.doctor.probes` has the
questions. :func:`examine` takes whatever a client may be pointed at.
"""

import itertools
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from isthmus.client.targets import ClientTarget, read_server_entry, resolve_target
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.linter.doctor.http import HttpTarget
from isthmus.linter.doctor.lines import LineTarget
from isthmus.linter.doctor.probes import PROBES, Probe
from isthmus.linter.rules.catalog import RULES, judge_visit
from isthmus.linter.rules.conversation import ObservedConversation
from isthmus.linter.rules.offers import LISTS
from isthmus.linter.rules.rule import Finding
from isthmus.linter.rules.visit import ProbeOutcome, ServerVisit
from isthmus.revisions import BY_NAME, LEGACY, MODERN, REVISIONS, Revision
from isthmus.transports.http.client.address import Http
from isthmus.transports.http.client.pool import open_requests
from isthmus.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization

CLIENT_IDENTITY = {"name": "isthmus-check", "version": "0"}
MAX_PAGES = 50
MAX_LOST = 5
CALL_TIMEOUT_FACTOR = 6  # how many times as long a call of a tool may take as any other answer
MAX_SILENT = 20
INITIALIZED_METHOD = "notifications/initialized"

Calls = Mapping[str, Any]  # tools to call, by name, and their arguments


class Report(msgspec.Struct):
    """The findings of an examination, and the revisions that the server speaks.

    Attributes:
        spoken: the revisions that the server speaks, by name, newest first.
        unspoken: the others that were tried, and what came of it.
        broken: revisions in which not everything could be asked, since the server was gone.
        findings: what is wrong.
        asked: how many questions were asked.
        said: how many messages were looked at.
    """

    spoken: list[str] = []
    unspoken: dict[str, str] = {}
    broken: dict[str, str] = {}
    findings: list[Finding] = []
    asked: int = 0
    said: int = 0


class ProbeSession(Protocol):
    """A conversation that questions can be asked in."""

    conversation: ObservedConversation

    @property
    def session(self) -> str | None:
        """The id of the session that the server gave over HTTP."""
        ...

    @property
    def one_connection(self) -> bool:
        """Whether all questions are asked on one connection, which may end."""
        ...

    async def ask(self, probe: Probe, message: Any) -> ProbeOutcome:
        """Send a request, and wait for its answer."""
        ...

    async def say(self, probe: Probe, data: bytes, message: Any, fence: Any) -> ProbeOutcome:
        """Send what may have no answer."""
        ...

    async def tell(self, method: str) -> ProbeOutcome:
        """Send a notification that is in order."""
        ...

    async def wait_lost(self) -> str | None:
        """Why the connection ended, if it ends in a moment; None where it goes on."""
        ...

    async def close(self) -> None:
        """Hang up."""
        ...


class ProbeTarget(Protocol):
    """The address of a server, where probe sessions are opened."""

    over: Any
    loopback: bool

    async def enter(self, revision: Revision, timeout: float) -> ProbeSession:
        """Connect.

        Raises:
            ConnectFailed, ConnectionLost: nobody is there.
        """
        ...

    def noise(self) -> list[str]:
        """Lines of the last connection that are no messages."""
        ...


class Doctor:
    """Examines one server.

    Args:
        target: where it is.
        timeout: seconds to wait for an answer.
        rules: the ids of the rules to apply.
        calls: tools to call, and their arguments.
        call_read_only: call every tool that says it is read-only and needs no arguments.
    """

    def __init__(
        self,
        target: ProbeTarget,
        *,
        timeout: float = 5.0,
        rules: Collection[str] | None = None,
        calls: Calls | None = None,
        call_read_only: bool = False,
    ) -> None:
        self._target = target
        self._timeout = timeout
        self._rules = frozenset(RULES) if rules is None else rules
        self._calls = calls or {}
        self._call_read_only = call_read_only
        self._ids = itertools.count(1)
        self._asked_last: Probe | None = None

    async def examine(self, revisions: Sequence[Revision] = REVISIONS) -> Report:
        """Visit the server in each revision, newest first."""
        report = Report()
        fell: ProbeOutcome | None = None
        for revision in reversed(revisions):
            visit = ServerVisit(revision, self._target.over, [], {}, {}, {}, self._target.loopback)
            try:
                reason = await self._visit(visit)
            except (ConnectFailed, ConnectionLost) as error:
                reason = str(error)
                if visit.opening or report.spoken:  # it was there before
                    report.broken[revision.name] = reason
                if visit.opening:
                    reason = None
                elif revision in MODERN:
                    fell = visit.outcomes.get("server/discover")
            if revision.name in report.broken and reason is not None:
                continue
            if reason is not None:
                report.unspoken[revision.name] = reason
                continue
            report.spoken.append(revision.name)
            report.asked += len(visit.outcomes) + len(visit.called)
            report.said += sum(len(conversation.said) for conversation in visit.conversations)
            if fell is not None and revision not in MODERN:
                visit.outcomes[fell.probe] = fell  # which is an unknown method for it, and no end
                fell = None
            report.findings += judge_visit(visit, self._rules)
        return report

    # One visit

    async def _visit(self, visit: ServerVisit) -> str | None:
        """Ask everything; None if the revision is spoken, else why it is not."""
        session = await self._enter(visit)
        self._asked_last = None
        try:
            reason = await self._open(session, visit)
            if reason is not None:
                return reason
            await self._read_lists(session, visit)
            for when in ("during", "end"):
                for probe in PROBES:
                    if probe.when == when and probe.suits(visit):
                        session = await self._ask_probe(session, probe, visit)
                if when == "during":
                    session = await self._call_tools(session, visit)
        finally:
            await session.close()
            visit.noise = self._target.noise()
        await self._ask_before(visit)
        return None

    async def _enter(self, visit: ServerVisit) -> ProbeSession:
        session = await self._target.enter(visit.revision, self._timeout)
        visit.conversations.append(session.conversation)
        return session

    async def _open(self, session: ProbeSession, visit: ServerVisit) -> str | None:
        """The first words; None if all went well, else what came instead."""
        revision = visit.revision
        if revision in MODERN:
            method, params = "server/discover", {}
        else:
            method = "initialize"
            params = {
                "protocolVersion": revision.name,
                "capabilities": {},
                "clientInfo": CLIENT_IDENTITY,
            }
        probe = Probe(method, method, params)
        outcome = await session.ask(probe, self._make_request(probe, params, visit))
        visit.outcomes[method] = outcome
        result = outcome.result
        if outcome.lost is not None:
            raise ConnectionLost(outcome.told)
        if result is None:
            return outcome.told
        if revision in MODERN:
            listed = result.get("supportedVersions")
            if not isinstance(listed, list):
                return "it answers server/discover by something else"
            if listed and all(BY_NAME.get(str(one)) in LEGACY for one in listed):
                return f"it lists {', '.join(map(str, listed))} only"
        elif result.get("protocolVersion") != revision.name:
            return f"it offers {result.get('protocolVersion')}"
        visit.opening = result
        visit.session = session.session
        if revision not in MODERN:
            visit.outcomes[INITIALIZED_METHOD] = await session.tell(INITIALIZED_METHOD)
        return None

    async def _read_lists(self, session: ProbeSession, visit: ServerVisit) -> None:
        """Read every list that was declared, to its end."""
        for method, kind in LISTS.items():
            capability = method.partition("/")[0]
            if not visit.declares(capability):
                continue
            name = {"resourceTemplates": "resource templates"}.get(kind, kind)
            await self._read_pages(session, visit, method, kind, f"the list of {name}")

    async def _read_pages(
        self, session: ProbeSession, visit: ServerVisit, method: str, kind: str, name: str
    ) -> None:
        seen: set[str] = set()
        cursor: Any = None
        items = visit.items.setdefault(kind, [])
        for page in range(MAX_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            probe = Probe(name if page == 0 else f"{name}, page {page + 1}", method, params)
            outcome = await session.ask(probe, self._make_request(probe, params, visit))
            visit.outcomes[probe.name] = outcome
            listed = outcome.result.get(kind) if outcome.result else None
            items += [item for item in listed or () if isinstance(item, dict)]
            cursor = outcome.result.get("nextCursor") if outcome.result else None
            if cursor is None:
                return
            if str(cursor) in seen:
                visit.paging[method] = f"the cursor {str(cursor)[:60]!r} came twice"
                return
            seen.add(str(cursor))
        visit.paging[method] = f"it did not end within {MAX_PAGES} pages"

    async def _call_tools(self, session: ProbeSession, visit: ServerVisit) -> ProbeSession:
        """Call the tools that may be called; gives the conversation to go on with."""
        calls = dict(self._calls)
        if self._call_read_only:
            calls = {
                **{name: {} for name in list_read_only_tools(visit.items.get("tools", []))},
                **calls,
            }
        for name, arguments in calls.items():
            patience = self._timeout * CALL_TIMEOUT_FACTOR
            probe = Probe(f"calling {name}", "tools/call", timeout=patience)
            params = {"name": name, "arguments": arguments}
            visit.called[name] = await session.ask(probe, self._make_request(probe, params, visit))
            if visit.called[name].silent and session.one_connection:
                session = await self._reopen(
                    session, visit, probe.name
                )  # this one may be busy for long
        return session

    async def _ask_before(self, visit: ServerVisit) -> None:
        """Ask what is asked on a connection without a handshake."""
        probes = [probe for probe in PROBES if probe.when == "before" and probe.suits(visit)]
        if not probes:
            return
        session = await self._enter(visit)
        self._asked_last = None
        opened = False
        try:
            for probe in probes:
                if probe.method == "initialize" and opened:  # a second one would be refused as such
                    session = await self._reopen(session, visit, probe.name, opens=False)
                opened = opened or probe.method == "initialize"
                session = await self._ask_probe(session, probe, visit, reopen=False)
        finally:
            await session.close()

    async def _ask_probe(
        self, session: ProbeSession, probe: Probe, visit: ServerVisit, *, reopen: bool = True
    ) -> ProbeSession:
        """Ask one question; gives the conversation to go on with."""
        params = probe.params(visit) if callable(probe.params) else probe.params or {}
        lost = sum(one.lost is not None for one in visit.outcomes.values())
        silent = sum(one.silent for one in visit.outcomes.values())
        if params is None or lost >= MAX_LOST or silent >= MAX_SILENT:
            return session
        visit.outcomes[probe.name] = outcome = await self._send(session, probe, params, visit)
        before, self._asked_last = self._asked_last, probe
        if outcome.lost is None or not session.one_connection:
            return session
        self._asked_last = None
        session = await self._reopen(session, visit, probe.name, opens=reopen)
        if before is not None and reopen:
            session = await self._find_culprit(session, before, probe, visit)
        return session

    async def _reopen(
        self, session: ProbeSession, visit: ServerVisit, name: str, *, opens: bool = True
    ) -> ProbeSession:
        """Another conversation in place of one that is of no use any more."""
        await session.close()
        session = await self._enter(visit)
        again = ServerVisit(visit.revision, visit.over, [])
        if opens and await self._open(session, again) is not None:
            raise ConnectionLost(f"the server is gone after {name}")
        return session

    async def _find_culprit(
        self, session: ProbeSession, before: Probe, probe: Probe, visit: ServerVisit
    ) -> ProbeSession:
        """Find out which of two questions the server fell over: each is asked by itself.

        A server may answer the one, and be gone while the next one is on its way.
        """
        lost = visit.outcomes[probe.name]
        alone = await self._ask_alone(session, probe, visit)
        if alone.lost is not None:
            visit.outcomes[probe.name] = alone
            return await self._reopen(session, visit, probe.name)
        visit.outcomes[probe.name] = alone
        session = await self._reopen(session, visit, probe.name)
        earlier = await self._ask_alone(session, before, visit)
        if earlier.lost is None:
            name = f"{before.name}, then {probe.name}"
            visit.outcomes[name] = msgspec.structs.replace(lost, probe=name)
            return session
        visit.outcomes[before.name].lost = earlier.lost
        return await self._reopen(session, visit, before.name)

    async def _ask_alone(
        self, session: ProbeSession, probe: Probe, visit: ServerVisit
    ) -> ProbeOutcome:
        """Ask a question once more, and see whether the server is still there a moment later."""
        params = probe.params(visit) if callable(probe.params) else probe.params or {}
        outcome = await self._send(session, probe, params, visit)
        if outcome.lost is None and session.one_connection:
            outcome.lost = await session.wait_lost()
        return outcome

    async def _send(
        self, session: ProbeSession, probe: Probe, params: Any, visit: ServerVisit
    ) -> ProbeOutcome:
        fence_probe = Probe("fence", "server/discover" if visit.revision in MODERN else "ping")
        if probe.raw or probe.verb != "POST":
            data = probe.raw.replace(b"%(meta)s", self._encode_meta(visit))
            fence = self._make_request(fence_probe, {}, visit)
            return await session.say(probe, data, None, fence)
        message = self._make_request(probe, params, visit)
        if not probe.note:
            return await session.ask(probe, message)
        del message["id"]
        fence = self._make_request(fence_probe, {}, visit)
        return await session.say(probe, msgspec.json.encode(message), message, fence)

    def _make_request(
        self, probe: Probe, params: dict[str, Any], visit: ServerVisit
    ) -> dict[str, Any]:
        """A request, in the way of its revision."""
        id = next(self._ids) if probe.id is None else probe.id
        if visit.revision in MODERN:
            params = {"_meta": make_request_meta(visit.revision), **params}
        return {"jsonrpc": "2.0", "id": id, "method": probe.method, "params": params}

    def _encode_meta(self, visit: ServerVisit) -> bytes:
        """The ``_meta`` of a request of a revision, for one that is spelled out."""
        if visit.revision not in MODERN:
            return b""
        return b'"_meta":' + msgspec.json.encode(make_request_meta(visit.revision))


def make_request_meta(revision: Revision) -> dict[str, Any]:
    """The ``_meta`` of a modern request of ours."""
    return {PROTOCOL_VERSION: revision.name, CLIENT_INFO: CLIENT_IDENTITY, CLIENT_CAPABILITIES: {}}


def list_read_only_tools(tools: list[dict[str, Any]]) -> list[str]:
    """The tools that say they change nothing, and need no arguments."""
    found = []
    for tool in tools:
        hints, schema = tool.get("annotations"), tool.get("inputSchema")
        says = isinstance(hints, dict) and hints.get("readOnlyHint") is True
        needs = schema.get("required") if isinstance(schema, dict) else None
        if says and not needs and isinstance(tool.get("name"), str):
            found.append(str(tool["name"]))
    return found


CONNECT_TIMEOUT_S = 10.0  # seconds until a connection counts as failed


async def examine(
    target: ClientTarget,
    *,
    headers: Mapping[str, str] | None = None,
    revisions: Sequence[Revision] = REVISIONS,
    timeout: float = 5.0,
    rules: Collection[str] | None = None,
    calls: Calls | None = None,
    call_read_only: bool = False,
    auth: "Authorization | None" = None,
) -> Report:
    """Examine a server in every revision; the report has the rules that it breaks.

    Args:
        target: whatever a :class:`~isthmus.client.client.Client` may be pointed at.
        headers: what every request over HTTP carries.
        revisions: those to speak.
        timeout: seconds to wait for an answer.
        rules: the ids of the rules to apply; all by default.
        calls: tools to call, and their arguments. No other tool is called.
        call_read_only: call every tool that says it is read-only and needs no arguments, too.
        auth: gets the tokens that a server over HTTP wants.

    Raises:
        UsageError: the target is of no known kind.
        AuthError: the server wants authorization, and none was to be had.
    """
    async with _open_targets(target, headers, auth) as ways:
        for way in ways:
            doctor = Doctor(
                way, timeout=timeout, rules=rules, calls=calls, call_read_only=call_read_only
            )
            report = await doctor.examine(revisions)
            if report.spoken:
                break
    return report


@asynccontextmanager
async def _open_targets(
    target: ClientTarget,
    headers: Mapping[str, str] | None,
    auth: "Authorization | None",
) -> AsyncIterator[list[ProbeTarget]]:
    """The ways to a server, in the order in which they are tried."""
    if isinstance(target, Mapping):
        target, headers = read_server_entry(target, headers)
    found = resolve_target(target, headers=headers, connect_timeout=CONNECT_TIMEOUT_S, auth=auth)
    if not found.http or found.sse is None:
        yield [LineTarget(found.dial, "http+sse" if found.http else "lines")]
        return
    at = target if isinstance(target, Http) else Http(found.name)
    requests = open_requests(connect_timeout=CONNECT_TIMEOUT_S, tls=at.tls, proxy=at.proxy)
    if auth is not None:
        requests = auth.over(at.url, requests)
    try:
        carried = {**at.headers, **(headers or {})}
        web = HttpTarget(at.url, requests, carried, loopback=_is_loopback(at.url))
        yield [
            web,
            LineTarget(found.sse, "http+sse"),
        ]  # the latter is of 2024-11-05, and answers no POST
    finally:
        await requests.close()


def _is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    from urllib.parse import urlsplit  # slow to import, and most targets are no URL

    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
