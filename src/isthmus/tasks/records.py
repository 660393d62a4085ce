"""Task records: everything about a task that its requestor may ask for, and nothing that runs."""

import os
import time
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.encoding import encode_base64url
from isthmus.core.principal import owner_of
from isthmus.runtime.inbound import Inbound
from isthmus.wire import InputRequest, TaskStatus
from isthmus.wire.jsonrpc import ErrorBody, encode

FINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})  # the statuses that last

TASK_ID_BYTES = 24  # random bytes of a task's id, which may be all that protects it


class TaskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One task, in the newest shape of everything.

    Attributes:
        id: its name.
        tool: the tool that runs; empty where the request is no call of one.
        method: the request that has become a task.
        status: where it stands; ``"completed"`` where there is a result, whatever it says.
        created: when it was created, in seconds since 1970.
        updated: when something about it changed, in seconds since 1970.
        ttl: seconds it is kept from its creation; None for ever.
        poll: seconds its client should wait between questions.
        message: its status in words.
        questions: what it waits for, by key.
        result: what the request would have been answered with.
        is_error: the result says that the tool failed.
        error: the error the request would have been answered with.
        node: the node that works on it; empty where there is only one process.
        restarts: how often it was started again because its node had ended.
        retry: it may be started again, and its call lies in the store.
    """

    id: str
    tool: str
    method: str = "tools/call"
    status: TaskStatus = "working"
    created: float
    updated: float
    ttl: float | None
    poll: float
    message: str | None = None
    questions: dict[str, InputRequest] = {}
    result: Raw | UnsetType = UNSET
    is_error: bool = False
    error: ErrorBody | None = None
    node: str = ""
    restarts: int = 0
    retry: bool = False

    @property
    def over(self) -> bool:
        """Whether its status will not change any more."""
        return self.status in FINAL_STATUSES


decode_record = msgspec.json.Decoder(TaskRecord).decode
"""A record from bytes."""


def encode_record(record: TaskRecord) -> bytes:
    """A record as bytes, for a store."""
    return encode(record)


def new_task_id() -> str:
    """A name that nobody can guess."""
    # spec 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control: MUST be generated
    # with enough entropy to prevent guessing
    return encode_base64url(os.urandom(TASK_ID_BYTES))


def task_owner(inbound: Inbound) -> str:
    """The owner of the tasks that a request creates, and may ask for; empty for nobody's.

    Without a principal the id is all there is: whoever knows it may ask, also from another session.
    """
    owner = owner_of(inbound.principal)
    if owner is None:
        return ""
    from hashlib import sha256  # not needed until somebody authenticates

    return sha256(owner.encode()).hexdigest()


def record_key(owner: str, id: str) -> str:
    """The key of a task's record in a store.

    A task of somebody else's lies elsewhere, so that it looks as if there were none.
    """
    return f"task/{owner}/{id}"


def read_record_key(key: str) -> tuple[str, str]:
    """The owner and the id in the key of a task's record."""
    _, owner, id = key.split("/", 2)
    return owner, id


def find_remaining_s(record: TaskRecord) -> float | None:
    """The seconds that a record is still kept; None for ever."""
    if record.ttl is None:
        return None
    return max(MIN_REMAINING_S, record.created + record.ttl - time.time())


MIN_REMAINING_S = 0.001  # a store takes no time to live that is over


def format_timestamp(seconds: float) -> str:
    """A moment as ISO 8601 has it."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
