"""Access to a host in this process, as its surfaces ask for it: accounts, principals, profiles, runs."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.host.model.row import AuditRow
from isthmus.host.model.view import AccountLine, PrincipalLine, ProfileLine, RunLine
from isthmus.host.remote.requests import (
    AskAccounts,
    AskConnect,
    AskForget,
    AskPrincipals,
    AskProfiles,
    AskRuns,
    AskStopCall,
    AskStopRun,
)

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import AccountStatus
    from isthmus.host.remote.viewed_host import ViewedHost

LOCAL_USER = "user:local"
MAX_RUN_LINES = 500


class AccessRequests:
    """Answers requests about who has access, and to what.

    Args:
        host: whose access it is.
    """

    def __init__(self, host: "ViewedHost") -> None:
        self._host = host
        self.answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskAccounts: self._list_accounts,
            AskConnect: self._connect,
            AskForget: self._forget,
            AskPrincipals: self._list_principals,
            AskProfiles: self._list_profiles,
            AskRuns: self._list_runs,
            AskStopCall: self._stop_call,
            AskStopRun: self._stop_run,
        }

    # Accounts

    async def _list_accounts(self, request: AskAccounts) -> Sequence[AccountLine]:
        whose = [request.principal]
        if not request.principal:
            whose = [one.principal for one in await self._list_principals(None)]
            whose += [] if LOCAL_USER in whose else [LOCAL_USER]
        accounts = self._host.accounts
        return [
            make_account_line(one, principal)
            for principal in whose
            for one in await accounts.list(principal)
        ]

    async def _connect(self, request: AskConnect) -> str:
        principal = request.principal or LOCAL_USER
        url = self._host.accounts.connect(principal, request.server)
        await self._host.audit.write(make_account_row("connect", principal, request))
        return url

    async def _forget(self, request: AskForget) -> bool:
        principal = request.principal or LOCAL_USER
        forgotten = await self._host.accounts.forget(principal, request.server)
        if forgotten:
            self._host.audit.note(make_account_row("forget", principal, request))
        return forgotten

    # Principals and profiles

    async def _list_principals(self, _request: AskPrincipals | None) -> Sequence[PrincipalLine]:
        callers = self._host.callers
        found = {one.principal: one for one in self._host.traffic.list_principals()}
        for one in () if callers is None else callers.principals():
            recorded = found.get(one.principal)
            found[one.principal] = one if recorded is None else merge_lines(one, recorded)
        return sorted(found.values(), key=lambda one: (-(one.last or 0.0), one.principal))

    async def _list_profiles(self, _request: AskProfiles) -> Sequence[ProfileLine]:
        callers = self._host.callers
        return [] if callers is None else callers.profiles()

    # Runs and calls

    async def _list_runs(self, _request: AskRuns) -> Sequence[RunLine]:
        under_way = self._host.traffic.count_running()
        return [
            RunLine(
                run=run.id,
                principal=run.principal,
                calls=run.calls,
                labels=tuple(sorted(run.labels)),
                in_flight=under_way.get(run.id, 0),
            )
            for run in self._host.calls.pipeline.runs.list_open(MAX_RUN_LINES)
        ]

    async def _stop_call(self, request: AskStopCall) -> bool:
        record = self._host.traffic.find(request.call)
        if record is None or not self._stop([request.call], request.by):
            return False
        self._host.audit.note(
            AuditRow(
                kind="decision", call=request.call, principal=record.principal,
                action="call.stop", server=record.server, object=record.object,
                effect="cancel", approver=request.by,
            )
        )  # fmt: skip
        return True

    async def _stop_run(self, request: AskStopRun) -> bool:
        run = self._host.calls.pipeline.runs.find(request.run)
        if run is None or run.has_ended:
            return False
        run.end()
        self._stop(self._host.traffic.list_running(run=run.id), request.by)
        self._host.audit.note(
            AuditRow(
                kind="decision", run=run.id, principal=run.principal, action="run.stop",
                object=run.id, effect="cancel", approver=request.by,
            )
        )  # fmt: skip
        return True

    def _stop(self, calls: Sequence[str], by: str) -> bool:
        """Cancel calls; whether any of them was under way."""
        stopped = [self._host.traffic.stop(call, by) for call in calls]
        return any(stopped)


def merge_lines(now: PrincipalLine, recorded: PrincipalLine) -> PrincipalLine:
    """The line of a principal: sessions and calls of now, with the clients and counts that were recorded."""
    clients = dict.fromkeys((*now.clients, *recorded.clients))
    return structs.replace(
        recorded, clients=tuple(clients), sessions=now.sessions, in_flight=now.in_flight
    )


def make_account_row(what: str, principal: str, request: AskConnect | AskForget) -> AuditRow:
    """The row about what somebody does with an account."""
    return AuditRow(
        kind="oauth", action=f"account.{what}", principal=principal, server=request.server,
        object=request.server, approver=request.by,
    )  # fmt: skip


def make_account_line(status: "AccountStatus", principal: str) -> AccountLine:
    """An account, as a person is shown it."""
    return AccountLine(
        server=status.server,
        principal=principal,
        kind=status.kind,
        state="none" if status.state == "missing" else status.state,
        since=status.since,
        until=status.expires_at,
        by_person=status.by_person,
    )
