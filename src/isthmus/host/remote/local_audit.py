"""Audit log of a host in this process, as its surfaces ask for it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.host.audit.hash_chain import describe_verdict
from isthmus.host.audit.queries import AuditFilters, read_lines
from isthmus.host.model.view import MAX_QUERY_ROWS, AuditLine, AuditQuery, AuditVerdict
from isthmus.host.remote.requests import AskAuditRow, AskAuditRows, AskCallRows, AskVerify

if TYPE_CHECKING:
    from isthmus.host.remote.viewed_host import ViewedHost


class AuditRequests:
    """Answers requests about the audit log.

    Args:
        host: whose log it is.
    """

    def __init__(self, host: "ViewedHost") -> None:
        self._host = host
        self.answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskAuditRows: self._list_rows,
            AskAuditRow: self._find_row,
            AskCallRows: self._list_call_rows,
            AskVerify: self._verify,
        }

    async def _read(self, filters: AuditFilters, newest: int) -> list[AuditLine]:
        return await self._host.audit.read(lambda db: list(read_lines(db, filters, newest=newest)))

    async def _list_rows(self, request: AskAuditRows) -> Sequence[AuditLine]:
        query = request.query
        rows = await self._read(make_filters(query), max(1, min(query.count, MAX_QUERY_ROWS)))
        rows.reverse()
        return rows

    async def _find_row(self, request: AskAuditRow) -> AuditLine | None:
        seq = request.seq
        if not 0 < seq < 2**62:
            return None
        rows = await self._read(AuditFilters(after=seq - 1, before=seq + 1), 1)
        return rows[0] if rows else None

    async def _list_call_rows(self, request: AskCallRows) -> Sequence[AuditLine]:
        if not request.call:
            return []
        return await self._read(AuditFilters(call=request.call), MAX_QUERY_ROWS)

    async def _verify(self, _request: AskVerify) -> AuditVerdict:
        found = await self._host.audit.verify()
        return AuditVerdict(
            verdict=VERDICT_BY_STATE[found.state],
            rows=found.rows,
            head=f"{found.last}:{found.head}" if found.rows else "",
            text="\n".join(describe_verdict(found)),
        )


VERDICT_BY_STATE: Any = {"good": "proved", "unproved": "unproved", "bad": "broken"}


def make_filters(query: AuditQuery) -> AuditFilters:
    """The filters of the log that a query means."""
    return AuditFilters(
        text=query.text,
        kind=query.kind,
        principal=query.principal,
        server=query.server,
        call=query.call,
        effect=query.effect,
        since=query.since,
        until=query.until,
        before=query.before or 0,
    )
