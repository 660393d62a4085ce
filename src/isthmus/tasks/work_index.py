"""Work index: the tasks that each node works on, by node, in the store that they share.

A node writes a key for each of its tasks before the task's record, and deletes it after the last
change of the record. So whoever looks for the tasks of a node that has ended reads these keys, and
never the records of all tasks. A key without a task means nothing.
"""

from collections.abc import AsyncIterator

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
        node: the id of this node.
    """

    def __init__(self, kv: KV, node: str) -> None:
        self._kv = kv
        self._node = node
        self._is_listed = False

    async def add(self, key: str, ttl: float | None) -> None:
        """Write down that this node works on the task of a record.

        Args:
            key: the record's.
            ttl: seconds the record is kept, or None.
        """
        if not self._is_listed:
            await self._kv.put(WORKER_PREFIX + self._node, b"")
            self._is_listed = True
        await self._kv.put(f"{WORK_PREFIX}{self._node}/{key}", b"", ttl)

    async def remove(self, key: str, node: str | None = None) -> None:
        """Write down that a node, by default this one, does not work on a task any more."""
        await self._kv.delete(f"{WORK_PREFIX}{node or self._node}/{key}")

    async def list_workers(self) -> list[str]:
        """The nodes that have worked on tasks, and may have left some."""
        found = await self._kv.scan(WORKER_PREFIX, "", MAX_WORKERS)
        return [key.removeprefix(WORKER_PREFIX) for key, _ in found]

    async def list_work(self, node: str) -> AsyncIterator[str]:
        """The keys of the records that a node works on, or worked on when it ended."""
        prefix, after = f"{WORK_PREFIX}{node}/", ""
        while page := await self._kv.scan(prefix, after, INDEX_PAGE_KEYS):
            for key, _ in page:
                yield key.removeprefix(prefix)
            after = page[-1][0]

    async def forget_worker(self, node: str) -> None:
        """Take a node off the list, when nothing of it is left."""
        await self._kv.delete(WORKER_PREFIX + node)

    def list_anew(self) -> None:
        """This node may have been taken off the list; it writes itself down with its next task."""
        self._is_listed = False

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
