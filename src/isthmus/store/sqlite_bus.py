"""Bus in an SQLite file: messages between the processes of one machine.

A message is a row, kept for seconds, and each process knows how far it has read. A datagram on a
Unix socket of its own tells a process that there is something to read; where there are no such
sockets it looks by itself. Who listens to what stands in the file, too: a message that nobody
listens to is not written, and whoever sent it is told so.
"""

import asyncio
import errno
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isthmus.runtime.failures import log_failure, log_warning
from isthmus.store.bus import Hear, Unsubscribe
from isthmus.store.sqlite import Database
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import sqlite3

BUS_TABLES = (
    # `total` is the bytes of all messages up to this one: the difference of two is what lies there.
    (
        "CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, channel BLOB NOT NULL, "
        "added REAL NOT NULL, total INTEGER NOT NULL, body BLOB NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE endpoint (id INTEGER PRIMARY KEY AUTOINCREMENT, socket TEXT, "
        "seen REAL NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE listener (channel BLOB NOT NULL, endpoint INTEGER NOT NULL, "
        "PRIMARY KEY (channel, endpoint)) STRICT, WITHOUT ROWID"
    ),
    "CREATE INDEX listener_endpoint ON listener (endpoint)",
)

MAX_MESSAGE_AGE_S = 30.0

MAX_BUS_BYTES = 64 * 1024 * 1024  # of all messages in the file; the newest is kept in any case

PUBLISHES_PER_SWEEP = 64

MAX_SWEPT_MESSAGES = 4 * PUBLISHES_PER_SWEEP

MAX_READ_MESSAGES = 64  # in one read

WOKEN_POLL_INTERVAL_S = 1.0  # where a socket wakes this process: for what it was not woken for

POLL_INTERVAL_S = 0.02  # where nothing does

SEEN_INTERVAL_S = 10.0  # after which an endpoint says that it is there

MAX_UNSEEN_S = 60.0  # after which one is taken for gone that cannot be asked

MAX_BIND_ATTEMPTS = 5

MAX_SOCKET_PATH_BYTES = 100  # the shortest that a system allows is 104, with an end


class Subscription(msgspec.Struct):
    """Somebody who listens.

    Attributes:
        hear: is called with each message.
        after: the number of the last message that is not for them; None until that is known.
    """

    hear: Hear
    after: int | None = None


class WakeSocket:
    """The socket by which others wake this process, in a folder that no other user may enter.

    Args:
        path: of the database file.

    Attributes:
        path: of the socket.

    Raises:
        OSError: there can be none here.
    """

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self.path = self._bind(path)
        except BaseException:
            self._socket.close()
            raise

    def _bind(self, path: str) -> str:
        attempts = 1
        while True:
            name = str(make_private_folder(path) / f"{os.getpid()}-{secrets.token_hex(4)}")
            try:
                self._socket.bind(name)
            except FileNotFoundError:  # the last to leave has deleted the folder just now
                if attempts == MAX_BIND_ATTEMPTS:
                    raise
                attempts += 1
            else:
                return name

    def listen(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        """Call a function whenever others wake this process."""

        def drain() -> None:
            with suppress(OSError):
                while True:
                    self._socket.recv(1)
            wake()

        loop.add_reader(self._socket.fileno(), drain)

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Be woken no more, and leave no file behind."""
        with suppress(OSError, NotImplementedError, RuntimeError):  # the loop may have ended
            loop.remove_reader(self._socket.fileno())
        self._socket.close()
        with suppress(OSError):  # the folder is deleted by the last to leave
            Path(self.path).unlink()
            Path(self.path).parent.rmdir()


def make_private_folder(path: str) -> Path:
    """The folder for the sockets of a database file: next to it, unless its name is too long.

    Raises:
        OSError: there is none, or it belongs to somebody else.
    """
    beside = Path(f"{os.path.abspath(path)}-bus")  # noqa: PTH100 - the file's own name is kept
    if len(os.fsencode(beside)) + 24 > MAX_SOCKET_PATH_BYTES:
        mark = sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]
        beside = Path(tempfile.gettempdir(), f"isthmus-{os.getuid()}-{mark}")
    beside.mkdir(mode=0o700, exist_ok=True)
    found = beside.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "others may enter it", str(beside))
    return beside


class SqliteBus:
    """Messages between processes by an SQLite file.

    Args:
        database: the file.
        clock: says the time in seconds, the same in all processes.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._channels: dict[bytes, dict[int, Subscription]] = {}
        self._numbers = count(1)
        self._gaps: dict[object, Callable[[], None]] = {}
        self._registering = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endpoint = 0  # the number of this process's row; 0 where there is none
        self._former = 0  # the number of its row before, in a loop that has ended
        self._position = 0
        self._seen = 0.0
        self._socket: WakeSocket | None = None
        self._woken = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        # The store's thread has its own:
        self._publishes = 0
        self._sender: socket.socket | None = None

    async def publish(self, channel: str, message: bytes) -> bool:
        """As :meth:`~isthmus.store.bus.Bus.publish`."""
        name = channel.encode()
        endpoints: list[tuple[int, str | None]] = []
        heard = False

        def work(db: "sqlite3.Connection") -> None:
            endpoints.extend(self._find_endpoints(db, name))
            if endpoints:
                self._insert(db, name, message)

        def wake(error: BaseException | None) -> None:
            nonlocal heard
            if error is None:
                heard = self._wake_all(endpoints)

        await self._database.write(work, wake)
        return heard

    async def subscribe(self, channel: str, hear: Hear) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.subscribe`."""
        await self._register()
        name, number, subscription = channel.encode(), next(self._numbers), Subscription(hear)
        self._channels.setdefault(name, {})[number] = subscription

        def unsubscribe() -> None:
            listeners = self._channels.get(name, {})
            if listeners.pop(number, None) is None or listeners:
                return
            del self._channels[name]
            if self._endpoint:
                endpoint = self._endpoint
                self._database.post(
                    lambda db: db.execute(
                        "DELETE FROM listener WHERE channel = ? AND endpoint = ?", (name, endpoint)
                    ),
                    _ignore,
                )

        def work(db: "sqlite3.Connection") -> None:
            db.execute("INSERT OR IGNORE INTO listener VALUES (?, ?)", (name, self._endpoint))
            subscription.after = _find_last_message(db)

        try:
            await self._database.write(work)
        except BaseException:
            unsubscribe()
            raise
        return unsubscribe

    def on_gap(self, callback: Callable[[], None]) -> Unsubscribe:
        """As :meth:`~isthmus.store.bus.Bus.on_gap`."""
        key = object()
        self._gaps[key] = callback
        return lambda: self._gaps.pop(key, None) and None

    async def close(self) -> None:
        """Listen to nothing more, and leave no trace in the file."""
        reading, self._reading = self._reading, None
        if reading is not None and self._loop is asyncio.get_running_loop():
            reading.cancel()
            await asyncio.wait((reading,))
        endpoint = self._forget_loop()
        if endpoint:
            with suppress(StoreUnavailable):  # others find out that it is gone
                await self._database.write(lambda db: _delete_endpoint(db, endpoint))

    def _forget_loop(self) -> int:
        """Be as new: for the end, and where the loop of those who listened has ended without one.

        Returns:
            The number of the row that there is still, or 0.
        """
        if self._socket is not None and self._loop is not None:
            self._socket.close(self._loop)
        self._socket = self._loop = self._reading = None
        self._channels.clear()
        self._registering, self._woken = asyncio.Lock(), asyncio.Event()
        endpoint, self._endpoint = self._endpoint, 0
        return endpoint

    def close_sender(self) -> None:
        """Wake nobody any more; for when the store's thread has ended."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()

    # Being there

    async def _register(self) -> None:
        """Have a row in the file, so that others know of this process."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._former, self._loop = self._forget_loop(), loop
        async with self._registering:
            if self._endpoint:
                return
            if self._socket is None:
                self._socket = self._open_socket(loop)
            self._endpoint, self._position = await self._database.write(self._insert_endpoint)
            self._seen = self._clock()
            if self._reading is None:
                self._reading = loop.create_task(self._read_on())

    def _open_socket(self, loop: asyncio.AbstractEventLoop) -> WakeSocket | None:
        """The socket of this process; None where there can be none."""
        if not hasattr(socket, "AF_UNIX") or os.name == "nt":
            return None
        try:
            made = WakeSocket(self._database.path)
        except OSError as error:
            log_warning("messages of other processes come later: no socket (%s)", error)
            return None
        try:
            made.listen(loop, self._woken.set)
        except NotImplementedError:  # a loop that knows no sockets
            made.close(loop)
            return None
        return made

    def _insert_endpoint(self, db: "sqlite3.Connection") -> tuple[int, int]:
        """Write the row, and delete those of processes that are gone.

        Returns:
            Its number, and that of the last message before it.
        """
        now = self._clock()
        self._delete_gone(db, now, float("inf"))
        path = None if self._socket is None else self._socket.path
        made = db.execute("INSERT INTO endpoint (socket, seen) VALUES (?, ?)", (path, now))
        endpoint = made.lastrowid or 0
        db.executemany(
            "INSERT INTO listener VALUES (?, ?)",
            [(name, endpoint) for name in tuple(self._channels)],
        )
        return endpoint, _find_last_message(db)

    def _is_gone(self, path: str | None, unseen: float) -> bool:
        """Whether a process is there no more: its socket knows, and where there is none, time."""
        if path is not None and os.path.exists(path):  # noqa: PTH110
            return not self._wake_other(path)
        return unseen >= MAX_UNSEEN_S

    async def _stay_seen(self) -> bool:
        """Say that this process is there; False where the others took it for gone."""
        now, endpoint = self._clock(), self._endpoint
        if 0 <= now - self._seen < SEEN_INTERVAL_S:
            return True
        self._seen = now

        def work(db: "sqlite3.Connection") -> bool:
            done = db.execute("UPDATE endpoint SET seen = ? WHERE id = ?", (now, endpoint))
            self._delete_gone(db, now, now - MAX_UNSEEN_S)
            return done.rowcount > 0

        return await self._database.write(work)

    def _delete_gone(self, db: "sqlite3.Connection", now: float, unseen_since: float) -> None:
        """Delete the rows of processes that are gone, of those that were not seen lately."""
        known = db.execute(
            "SELECT id, socket, seen FROM endpoint WHERE seen <= ?", (unseen_since,)
        ).fetchall()
        for id, path, seen in known:
            if id == self._former or self._is_gone(path, now - seen):
                _delete_endpoint(db, id)
                self._unlink(path)

    # Publishing, in the store's thread

    @staticmethod
    def _find_endpoints(db: "sqlite3.Connection", name: bytes) -> list[tuple[int, str | None]]:
        """All who listen to a channel."""
        return db.execute(
            "SELECT endpoint.id, endpoint.socket FROM listener JOIN endpoint "
            "ON endpoint.id = listener.endpoint WHERE listener.channel = ?",
            (name,),
        ).fetchall()

    def _insert(self, db: "sqlite3.Connection", name: bytes, body: bytes) -> None:
        now = self._clock()
        newest = db.execute("SELECT total FROM message ORDER BY id DESC LIMIT 1").fetchone()
        total = len(body) + (0 if newest is None else newest[0])
        db.execute(
            "INSERT INTO message (channel, added, total, body) VALUES (?, ?, ?, ?)",
            (name, now, total, body),
        )
        self._publishes += 1
        if (
            len(body) * PUBLISHES_PER_SWEEP < MAX_BUS_BYTES
            and self._publishes % PUBLISHES_PER_SWEEP
        ):
            return
        db.execute(
            "DELETE FROM message WHERE id IN (SELECT id FROM message ORDER BY id LIMIT ?) "
            "AND (added <= ? OR total <= ?)",
            (MAX_SWEPT_MESSAGES, now - MAX_MESSAGE_AGE_S, total - max(MAX_BUS_BYTES, len(body))),
        )

    def _wake_all(self, endpoints: list[tuple[int, str | None]]) -> bool:
        """Wake all who listen; says whether there may be one."""
        heard = False
        for id, path in endpoints:
            if id == self._endpoint and self._loop is not None:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._woken.set)
                heard = True
            elif path is None or self._wake_other(path):
                heard = True
            else:  # it was killed
                self._database.post(partial(_delete_endpoint, id=id), _ignore)
                self._unlink(path)
        return heard

    def _wake_other(self, path: str) -> bool:
        """Wake another process; False where it is known to be there no more."""
        if self._sender is None:
            self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._sender.setblocking(False)
        try:
            self._sender.sendto(b"!", path)
        except ConnectionRefusedError:  # nobody has this socket open
            return False
        except OSError:  # it is awake already, or looks by itself
            return True
        return True

    def _unlink(self, path: str | None) -> None:
        """Delete the socket of a process that is gone, where it is one of ours."""
        if path is None or not hasattr(os, "getuid"):
            return
        with suppress(OSError):
            if Path(path).parent == make_private_folder(self._database.path):
                Path(path).unlink()

    # Hearing

    async def _read_on(self) -> None:
        """Give what is published to those who listen."""
        lost = False
        while True:
            interval = POLL_INTERVAL_S if self._socket is None else WOKEN_POLL_INTERVAL_S
            with suppress(TimeoutError):
                async with asyncio.timeout(interval):
                    await self._woken.wait()
            self._woken.clear()
            try:
                while await self._hear_some():
                    pass
                if not await self._stay_seen():
                    await self._come_back()
                lost = False
            except StoreUnavailable as error:
                if not lost:
                    log_warning("messages of other processes cannot be read: %s", error)
                lost = True
            except Exception as error:  # noqa: BLE001 - what comes next is to be heard
                log_failure("messages of other processes", error)

    async def _hear_some(self) -> bool:
        """Read on from where it ended the last time; says whether there may be more."""
        position, endpoint = self._position, self._endpoint

        def work(db: "sqlite3.Connection") -> tuple[int, int, list[tuple[int, bytes, bytes]]]:
            last = _find_last_message(db)
            if last == position:
                return last, last, []
            [first] = db.execute("SELECT min(id) FROM message").fetchone()
            rows = db.execute(
                "SELECT id, channel, body FROM message WHERE id > ? AND EXISTS (SELECT 1 FROM "
                "listener WHERE listener.channel = message.channel AND endpoint = ?) "
                "ORDER BY id LIMIT ?",
                (position, endpoint, MAX_READ_MESSAGES),
            ).fetchall()
            return last, last if first is None else first - 1, rows

        last, gone, rows = await self._database.read(work)
        if last < position:  # another file
            await self._come_back()
            return False
        is_full = len(rows) == MAX_READ_MESSAGES
        self._position = rows[-1][0] if is_full else last
        if gone > position:
            self._report_gap()
        for id, name, body in rows:
            self._deliver(id, name, body)
        return is_full

    async def _come_back(self) -> None:
        """Be known to others again, who took this process for gone."""
        self._endpoint = 0
        await self._register()
        self._report_gap()

    def _deliver(self, id: int, name: bytes, body: bytes) -> None:
        for number, subscription in tuple(self._channels.get(name, {}).items()):
            if subscription.after is None or id <= subscription.after:
                continue
            if number not in self._channels.get(name, {}):  # it ended meanwhile
                continue
            try:
                subscription.hear(body)
            except Exception as error:  # noqa: BLE001 - one listener's fault is not another's
                log_failure(f"a listener of {name.decode()}", error)

    def _report_gap(self) -> None:
        for callback in tuple(self._gaps.values()):
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - one listener's fault is not another's
                log_failure("a listener for gaps", error)


def _find_last_message(db: "sqlite3.Connection") -> int:
    """The number of the newest message that there ever was, or 0."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'message'").fetchone()
    return 0 if row is None else int(row[0])


def _delete_endpoint(db: "sqlite3.Connection", id: int) -> None:
    """Forget a process, and what it listens to."""
    db.execute("DELETE FROM endpoint WHERE id = ?", (id,))
    db.execute("DELETE FROM listener WHERE endpoint = ?", (id,))


def _ignore(error: BaseException | None) -> None:
    """What cannot be tidied up now is tidied up by others."""
