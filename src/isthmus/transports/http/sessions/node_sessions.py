"""Sessions as all nodes know them: adopted by their ids, with a record of what has changed since.

A node holds in memory what its clients use (:class:`~isthmus.transports.http.sessions.session.SessionBook`).
This is the other side of it: any node may adopt any session, and what one of them changes or ends is
changed and ended for all.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs

from isthmus.core.http.rules import Refusal
from isthmus.revisions import BY_NAME
from isthmus.runtime.channel import Origin
from isthmus.runtime.failures import log_warning
from isthmus.store.store import StoreUnavailable
from isthmus.transports.http.refusals import (
    SHUTTING_DOWN,
    STORE_LOST,
    TOO_MANY_SESSIONS,
    UNKNOWN_SESSION,
)
from isthmus.transports.http.request import Exchange
from isthmus.transports.http.request_watch import RequestCut
from isthmus.transports.http.sessions.records import (
    BLANK,
    RecordChange,
    SessionRecord,
    SessionRecords,
)
from isthmus.wire.struct import Id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isthmus.nodes.node import Node
    from isthmus.store.bus import Unsubscribe
    from isthmus.transports.http.sessions.session import HttpSession, SessionBook
    from isthmus.transports.http.sessions.session_mail import SessionMail


class RecordLoad:
    """One look at the record of a session that is being adopted.

    Attributes:
        is_stale: another node has changed the record, or may have, since the look began.
    """

    __slots__ = ("is_stale",)

    def __init__(self) -> None:
        self.is_stale = False


class NodeSessions:
    """Adopts sessions that a node does not hold, and keeps the records of those that it does.

    Args:
        book: the sessions that the node holds.

    Attributes:
        mail: letters and news between nodes; None where there is no store.
    """

    def __init__(self, book: "SessionBook") -> None:
        store = book.node.store
        self.mail = None if book.node.bus is None else _make_mail(book.node, self)
        self._book = book
        self._loading: dict[str, list[RecordLoad]] = {}
        self._records = None if store is None else SessionRecords(store.kv)
        self._forget_return: Unsubscribe = lambda: None
        self._ended = book.seal.ended

    async def join(self) -> None:
        """Take in what other nodes send and tell.

        Raises:
            StoreUnavailable: nothing would be heard now.
        """
        if self.mail is not None:
            await self.mail.open()
            self._forget_return = self._book.node.on_return(self._fail_questions)

    def leave(self) -> None:
        """Hear nothing more of other nodes."""
        if self.mail is not None:
            self.mail.close()
            self._forget_return()

    async def _fail_questions(self) -> None:
        """End what clients were asked: their answers were taken in elsewhere, and are lost.

        Other nodes took this one for dead, and an answer to the dead is accepted and dropped.
        """
        for session in [*self._book.list_all()]:
            session.peer.fail_calls("the answer may have been lost while this node was cut off")

    async def adopt(self, id: str, origin: Origin) -> Refusal | None:
        """Take over a session that this node does not hold, and whose id says that there is one.

        Args:
            id: as the client sent it.
            origin: where it came from.

        Returns:
            Why there is no session for it, or None: it is found from now on.
        """
        facts = self._book.seal.open_id(id, origin.principal)
        revision = None if facts is None else BY_NAME.get(facts.revision)
        if (
            facts is None
            or facts.mark in self._ended
            or revision not in self._book.router.supported
        ):
            # spec 2025-11-25 basic/transports#session-management: MUST respond with 404
            return UNKNOWN_SESSION
        record = BLANK
        if self._records is not None:
            try:
                record = await self._load_current(self._records, facts.mark)
            except StoreUnavailable:
                return STORE_LOST
            if record.ended or facts.mark in self._ended:
                return UNKNOWN_SESSION
            if self._book.find(id, origin.principal) is not None:
                return None  # another request of the same client was faster
        return None if self._book.adopt(id, facts, record, origin) else TOO_MANY_SESSIONS

    async def _load_current(self, records: SessionRecords, mark: str) -> SessionRecord:
        """The record of a session that this node does not hold yet, and so hears nothing of.

        Raises:
            StoreUnavailable: it cannot be read now.
        """
        while True:
            loading = RecordLoad()
            self._loading.setdefault(mark, []).append(loading)
            try:
                record = await records.load(mark)
            finally:
                under_way = self._loading[mark]
                under_way.remove(loading)
                if not under_way:
                    del self._loading[mark]
            if not loading.is_stale:
                return record

    async def serve_adopted(
        self,
        exchange: Exchange,
        id: str,
        request: Id | None,
        again: Callable[[], Awaitable[Any]],
    ) -> None:
        """Take over the session that a request names, and serve the request then.

        Args:
            exchange: the request.
            id: the session's, as the client sent it.
            request: the id of the request, where it has one.
            again: begins to serve it.
        """
        adopting = self.adopt(id, exchange.origin(id))
        try:
            refusal = await self._book.request_watch.await_watched(exchange.task, adopting)
        except RequestCut:
            refusal = SHUTTING_DOWN
        await (again() if refusal is None else exchange.refuse(refusal, request))

    async def delete(self, exchange: Exchange, session: "HttpSession") -> None:
        """Serve a DELETE: end the session for good."""
        try:
            await self.end_for_good(session)
        except StoreUnavailable:
            await exchange.refuse(STORE_LOST)
        else:
            await exchange.send_whole(200, b"", exchange.extra)

    async def change_record(self, session: "HttpSession", change: RecordChange) -> None:
        """Change the record of a session, here and in the store.

        Raises:
            StoreUnavailable: it cannot be written now; nothing has changed.
        """
        if self._records is None:
            session.record = change(session.record)
            return
        record = await self._records.change(
            session.mark, self._book.seal.find_rest(session.birth), change
        )
        if record.ended:
            self.hear_end(session)
            return
        session.take_record(record)  # with what other nodes have changed and this one did not hear
        await self._tell(session, "changed")
        if self._book.homes is not None and not session.is_home:
            # who has subscribed hears of what happens from the answer on: the home knows by then
            await self._book.homes.tell_changed(session)

    async def _tell(self, session: "HttpSession", kind: Literal["changed", "ended"]) -> None:
        """Tell all other nodes that hold a session; those that miss it read the record later."""
        if self.mail is not None:
            try:
                await self.mail.tell(session, kind)
            except StoreUnavailable as error:
                log_warning("other nodes are not told of a session: %s", error)

    def note_release(self, session: "HttpSession") -> None:
        """The memory of a session is given back: what would be lost without a word ends it."""
        if self._records is None and session.record != BLANK:
            self._ended.add(session.mark)

    async def end_for_good(self, session: "HttpSession") -> None:
        """End a session whose id would open again: it is unknown from now on, at all nodes.

        Raises:
            StoreUnavailable: the other nodes cannot be told; the session goes on.
        """
        if session.over:
            return
        if self._records is not None:
            record = await self._records.change(
                session.mark, self._book.seal.find_rest(session.birth), _mark_ended
            )
            if record.has_state:
                await self._records.delete_state(session.id)
        self._ended.add(session.mark)
        self._book.end(session)
        await self._tell(session, "ended")

    # From other nodes

    def find_marked(self, mark: str) -> "HttpSession | None":
        """A session that this node holds, by its mark."""
        return self._book.find_marked(mark)

    def hear_end(self, session: "HttpSession") -> None:
        """Another node has ended a session."""
        self._ended.add(session.mark)
        self._book.end(session)

    def hear_of_unheld(self, mark: str) -> None:
        """Another node has told something of a session that this one does not hold."""
        for loading in self._loading.get(mark, ()):
            loading.is_stale = True

    def hear_change(self, session: "HttpSession") -> None:
        """Another node has changed the record of a session: read it."""
        self._book.start(self._read_records([session]))

    async def read_record(self, mark: str) -> None:
        """Read the record of a session that another node has changed, and act on it."""
        session = self.find_marked(mark)
        if session is not None:
            await self._read_records([session])

    def hear_gap(self) -> None:
        """What other nodes told may have been missed: read the records of all sessions."""
        for mark in self._loading:
            self.hear_of_unheld(mark)
        self._book.start(self._read_records([*self._book.list_all()]))

    async def _read_records(self, sessions: "Sequence[HttpSession]") -> None:
        for session in sessions:
            if session.over or self._records is None:
                continue
            try:
                record = await self._records.load(session.mark)
            except StoreUnavailable as error:
                log_warning("the record of a session cannot be read: %s", error)
                return  # the bus tells of another gap when the store is back
            self._act_on(session, record)

    def _act_on(self, session: "HttpSession", record: SessionRecord) -> None:
        if session.over or record == session.record:
            return
        if record.ended:
            self.hear_end(session)
        else:
            session.take_record(record)


def _make_mail(node: "Node", sessions: NodeSessions) -> "SessionMail[HttpSession]":
    from isthmus.transports.http.sessions.session_mail import SessionMail  # where there are nodes

    return SessionMail(node, sessions)


def _mark_ended(record: SessionRecord) -> SessionRecord:
    return structs.replace(record, ended=True)
