"""Seal of session ids: made when a handshake has gone well, opened where a session is not known."""

import time
from collections.abc import Callable, Sequence
from os import urandom
from typing import TYPE_CHECKING, Any

from isthmus.core.caller import Caller
from isthmus.core.http.session_id import (
    SessionFacts,
    seal_session_id,
    unseal_session_id,
)
from isthmus.core.principal import digest_owner, owner_of
from isthmus.core.sealing import NONCE_BYTES, SealBroken
from isthmus.transports.http.sessions.records import EndedMarks

if TYPE_CHECKING:
    from isthmus.nodes.node import Node
    from isthmus.wire import Implementation

KEY_BYTES = 32


class SessionSeal:
    """Makes and opens the ids of sessions.

    Args:
        keys: gives the secrets, the one that seals first; made up for this process if not given.
        server: the server, by its name: ids open for no other.
        node: the node that opens sessions here.
        life: seconds an id is good for.
        clock: says the time in seconds since the epoch.

    Attributes:
        ended: sessions whose ids would open, but which have ended here; they outlast a stop of the
            app, as ids do.
    """

    def __init__(
        self,
        keys: Callable[[], Sequence[bytes]] | None,
        server: "Implementation | None",
        node: str,
        life: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.node = node
        self.life = life
        self._keys = keys or _make_keys()
        self._server = "" if server is None else server.name
        self.clock = clock
        self.ended = EndedMarks(life, clock)

    def make_id(self, mark: str, birth: int, caller: Caller, principal: Any) -> str:
        """The id of a session that opens.

        Args:
            mark: names its streams and records.
            birth: when that is, in seconds since the epoch.
            caller: what its handshake settled.
            principal: who it belongs to, or None.
        """
        facts = SessionFacts(
            caller.revision.name,
            caller.capabilities,
            caller.info,
            digest_owner(owner_of(principal)),
            mark,
            birth,
            self.node,
        )
        return seal_session_id(facts, self._keys(), urandom(NONCE_BYTES), self._server)

    def find_rest(self, birth: int) -> float:
        """Seconds for which the id of a session that was opened then is still good."""
        return birth + self.life - self.clock()

    def open_id(self, id: str, principal: Any) -> SessionFacts | None:
        """The facts in an id; None where it is none of ours, is too old, or somebody else's."""
        try:
            facts = unseal_session_id(id, self._keys(), self._server)
        except SealBroken:
            return None
        lives = self.find_rest(facts.birth) > 0
        return facts if lives and facts.owner == digest_owner(owner_of(principal)) else None


def _make_keys() -> Callable[[], Sequence[bytes]]:
    keys = (urandom(KEY_BYTES),)
    return lambda: keys


def make_lone_node() -> "Node":
    """A node for an app that nobody gave one."""
    from isthmus.nodes.node import Node  # which a server gives that has several

    return Node()
