"""Work index: the tasks that each node works on, by node, in the store that they share.

A node writes a key for each of its tasks before the task's record, and deletes it after the last
change of the record. So whoever looks for the tasks of a node that has ended reads these keys, and
never the records of all tasks. A key without a task means nothing.
"""

from collections.abc import AsyncIterator

from isthmus.nodes.node import Node
from isthmus.store.kv import KV

WORK_PREFIX = "work/"

WORKER_PREFIX = "worker/"

CALL_PREFIX = "call/"

MAX_WORKERS = 1_000  # nodes with tasks that are looked at

INDEX_PAGE_KEYS = 100  # keys that are read at a time


class WorkIndex:
    """The keys of tasks at work.

    Args:
        kv: the store of the tasks.
        node: this node.
    """

    def __init__(self, kv: KV, node: Node) -> None:
        self._kv = kv
        self._node = node.id
        self._this = node
        self._listed_at: int | None = None  # the return of the node after which it was put there

    async def add(self, key: str, ttl: float | None) -> None:
        """Write down that this node works on the task of a record.

        Args:
            key: the record's.
            ttl: seconds the record is kept, or None.
        """
        await self._this.hold_lease()
        returns = self._this.returns
        if self._listed_at != returns:  # a node that was taken for dead was taken off the list
            await self._kv.put(WORKER_PREFIX + self._node, b"")
            self._listed_at = returns
        await self._kv.put(f"{WORK_PREFIX}{self._node}/{key}", b"", ttl)

    async def remove(self, key: str, node: str | None = None) -> None:
        """Write down that a node, by default this one, does not work on a task any more."""
        await self._kv.delete(f"{WORK_PREFIX}{node or self._node}/{key}")

    async def list_workers(self) -> list[tuple[str, int]]:
        """The nodes that have worked on tasks, and may have left some; with the entry's version."""
        found = await self._kv.scan(WORKER_PREFIX, "", MAX_WORKERS)
        return [(key.removeprefix(WORKER_PREFIX), entry.version) for key, entry in found]

    async def list_work(self, node: str) -> AsyncIterator[str]:
        """The keys of the records that a node works on, or worked on when it ended."""
        prefix, after = f"{WORK_PREFIX}{node}/", ""
        while page := await self._kv.scan(prefix, after, INDEX_PAGE_KEYS):
            for key, _ in page:
                yield key.removeprefix(prefix)
            after = page[-1][0]

    async def forget_worker(self, node: str, version: int) -> None:
        """Take a node off the list, when nothing of it is left and it did not come back."""
        await self._kv.delete(WORKER_PREFIX + node, version)

    # Calls that may be made again

    async def put_call(self, key: str, call: bytes, ttl: float | None) -> None:
        """Keep the call that a task is, sealed."""
        await self._kv.put(CALL_PREFIX + key, call, ttl)

    async def get_call(self, key: str) -> bytes | None:
        """The call that a task is, sealed; None where it is not kept."""
        entry = await self._kv.get(CALL_PREFIX + key)
        return None if entry is None else entry.value

    async def delete_call(self, key: str) -> None:
        """Keep the call no longer."""
        await self._kv.delete(CALL_PREFIX + key)
