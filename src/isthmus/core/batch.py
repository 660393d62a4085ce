"""Batches: several messages in one array, and the array that answers them (2025-03-26 alone).

Each member of an array stands for itself: a flawed one is answered by an error of its own and
harms no other. What answers an array is an array, too, complete once its last member is settled;
who withdraws a member, or sends nothing but notifications, waits for less or for nothing.
"""

from collections.abc import Iterable, Sequence

from isthmus.revisions import Feature, Revision

# The most messages an array may have: all of them are served at the same time
MAX_BATCH_MEMBERS = 100

# The most that a client takes out of one array, which it cannot refuse: each may want an answer
MAX_TAKEN_MEMBERS = 1_000


def has_batches(revision: Revision) -> bool:
    """Whether a revision has arrays of messages."""
    return revision.has(Feature.BATCHING)


def find_batch_flaw(members: Sequence[object], *, accepted: bool) -> str | None:
    """Find what is wrong with an array as a whole; None where nothing is. It is then refused in one piece.

    Args:
        members: what is in it.
        accepted: the revision agreed on has batches.
    """
    if not accepted:
        # spec 2025-06-18 changelog: JSON-RPC batching is no longer supported
        return "Invalid request: batches are not accepted here, send one message at a time"
    if not members:
        return "Invalid request: a batch has at least one message"
    if len(members) > MAX_BATCH_MEMBERS:
        return (
            f"Invalid request: a batch has at most {MAX_BATCH_MEMBERS} messages, not {len(members)}"
        )
    return None


def join_messages(messages: Iterable[bytes]) -> bytes:
    """Messages as one array."""
    return b"[%b]" % b",".join(messages)


class IncomingBatch:
    """The answers to one array of the other side's, as they come."""

    __slots__ = ("_answers", "_open")

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._open = 0

    def add(self, answer: bytes) -> None:
        """Keep the answer to a member that is settled already."""
        self._answers.append(answer)

    def expect(self) -> None:
        """Wait for one more member to be settled."""
        self._open += 1

    def settle(self, answer: bytes | None) -> bytes | None:
        """Settle one of the members that are waited for.

        Args:
            answer: the answer to it, or None where it may have none any more.

        Returns:
            As :meth:`whole`.
        """
        self._open -= 1
        if answer is not None:
            self._answers.append(answer)
        return self.whole()

    def whole(self) -> bytes | None:
        """The array of answers, once every member is settled; None before, and for no answers."""
        # JSON-RPC 2.0, "Batch": the server MUST NOT return an empty array, but nothing at all
        return None if self._open or not self._answers else join_messages(self._answers)
