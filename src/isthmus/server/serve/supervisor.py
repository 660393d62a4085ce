"""Supervisor of worker processes: keeps their sockets, starts, replaces and ends them.

The supervisor imports nothing of the author's file, so that it cannot fall over it. It makes the
listening sockets and keeps them open for its whole life; a worker inherits those of its slot. So a
connection that waits to be accepted outlives the worker that it waits for.
"""

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from isthmus.errors import ConnectFailed, IsthmusError, UsageError
from isthmus.server.serve.worker import (
    DRAIN_ORDER,
    HURRY_ORDER,
    ORDERS_VARIABLE,
    WorkerOrders,
    encode_orders,
)

QUICK_DEATH_S = 2.0  # a worker that ends sooner after it was ready cannot do its work

MAX_QUICK_DEATHS = 5  # in a row, until the supervisor gives up

FIRST_DELAY_S, MAX_DELAY_S = 0.1, 5.0  # before a worker that died quickly is started again

READY_TIMEOUT_S = 60.0  # that a worker may take until it serves

KILL_AFTER_S = 5.0  # beyond the drain, until a worker that does not end is killed

HURRY_TIMEOUT_S = 2.0  # the same after a second signal

ANNOUNCE_LOOK_S = 0.02

BACKLOG = 2048  # connections that may wait on each socket

MAX_LAST_WORDS = 20  # lines of a worker that are said again where it ends the supervisor

USAGE_EXIT_CODE = 2  # of a worker whose file or options cannot be used

Report = Callable[[str], None]
"""Says a line to whoever started the supervisor."""


def bind_sockets(host: str, port: int, count: int) -> list[list[socket.socket]]:
    """Listening sockets for workers, on every address of a host: those of each worker.

    Where the system spreads connections over sockets (Linux), each worker has its own; elsewhere
    all accept on the same.

    Args:
        host: a name or an address.
        port: the port; 0 takes a free one.
        count: how many workers there are.

    Raises:
        ConnectFailed: there is no such address, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
        spreads = sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")
        slots: list[list[socket.socket]] = [[] for _ in range(count)]
        for family, _, _, _, address in dict.fromkeys(found):
            place = (address[0], port, *address[2:])
            # Another process may listen there with the same option: then this fails, and that not.
            with _bind(family, place, shared=False) as probe:
                probe.listen(1)
                port = probe.getsockname()[1]
            place = (address[0], port, *address[2:])
            shared = None
            for slot in slots:
                if shared is None or spreads:
                    shared = _bind(family, place, shared=spreads)
                    shared.listen(BACKLOG)
                slot.append(shared)
    except OSError as error:
        raise ConnectFailed(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return slots


def _bind(family: int, address: tuple[object, ...], *, shared: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except BaseException:
        sock.close()
        raise
    return sock


class WorkerProcess:
    """One worker.

    Args:
        number: of its slot, from 1.
        process: as it was started; what it says on standard error is read here.
        line: the supervisor's end of the line to it.
        report: gets what it says, line by line.

    Attributes:
        number: as given.
        is_ready: it has served.
        url: where clients reach it, once it is ready.
        ended: done when it has ended, with its exit code.
        last_words: what it said last.
    """

    def __init__(
        self,
        number: int,
        process: asyncio.subprocess.Process,
        line: socket.socket,
        report: Report,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.is_ready = False
        self.url = ""
        self.last_words: deque[str] = deque(maxlen=MAX_LAST_WORDS)
        self._process = process
        self._line = line
        self._report = report
        self._ready_at = 0.0
        self._hearing = loop.create_task(self._hear())
        self.ended = loop.create_task(self._wait_for_end())

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def count_seconds_served(self) -> float:
        """Seconds since it was ready; 0 where it never was."""
        return asyncio.get_running_loop().time() - self._ready_at if self.is_ready else 0.0

    async def wait_until_ready(self, timeout: float) -> bool:
        """Wait until it serves; False where it ends before, or takes too long."""
        await asyncio.wait(
            (self._hearing, self.ended), timeout=timeout, return_when=asyncio.FIRST_COMPLETED
        )
        return self.is_ready and not self.ended.done()

    def tell(self, order: bytes) -> None:
        """Have it drain, or hurry."""
        with suppress(OSError):  # it has ended
            self._line.send(order)

    async def retire(self, seconds: float) -> None:
        """Have it drain and end; kill it where it does not."""
        self.tell(DRAIN_ORDER)
        await asyncio.wait((self.ended,), timeout=seconds)
        self.kill()
        await asyncio.wait((self.ended,))

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            if not self.ended.done():
                self._process.kill()

    async def _hear(self) -> None:
        """Wait for the word that it serves."""
        loop, said = asyncio.get_running_loop(), b""
        with suppress(OSError):
            while not said.endswith(b"\n"):
                part = await loop.sock_recv(self._line, 4096)
                if not part:
                    return
                said += part
            self.url = said.decode().strip()
            self._ready_at = loop.time()
            self.is_ready = True

    async def _wait_for_end(self) -> int:
        reading = asyncio.create_task(self._read_words())
        code = await self._process.wait()
        # What it started may have its standard error, and keep it for ever.
        await asyncio.wait((reading,), timeout=1.0)
        reading.cancel()
        self._hearing.cancel()
        self._line.close()
        return code

    async def _read_words(self) -> None:
        """Pass on what it says on standard error."""
        words = self._process.stderr
        while words is not None:
            try:
                said = await words.readline()
            except ValueError:  # a line longer than the reader keeps: what was kept of it is gone
                continue
            if not said:
                return
            text = said.decode(errors="replace").rstrip()
            self.last_words.append(text)
            self._report(f"[worker {self.number}] {text}")


class WorkerSlot:
    """The place of one worker: its sockets stay, workers come and go.

    Args:
        number: from 1.
        sockets: those that its workers accept on.

    Attributes:
        worker: the one that serves, or None between two.
    """

    def __init__(self, number: int, sockets: Sequence[socket.socket]) -> None:
        self.number = number
        self.sockets = sockets
        self.worker: WorkerProcess | None = None


class WorkerSupervisor:
    """Keeps a number of workers alive on sockets of its own.

    Args:
        command: starts a worker.
        sockets: those of each worker, listening; closed in the end.
        store: the store of a server that names none, or None.
        drain: seconds that a worker may take to end, once it is told to.
        report: says a line to whoever started this.
    """

    def __init__(
        self,
        command: Sequence[str],
        sockets: Sequence[Sequence[socket.socket]],
        *,
        store: str | None,
        drain: float,
        report: Report,
    ) -> None:
        self._command = [*command]
        self._slots = [WorkerSlot(number, own) for number, own in enumerate(sockets, start=1)]
        self._store = store
        self._drain = drain
        self._report = report
        self._quick_deaths = 0
        self._has_served = False
        self._is_stopping = False
        self._is_hurried = False
        self._failure: tuple[type[IsthmusError], str] | None = None
        self._starting: set[WorkerProcess] = set()

    async def run(self) -> None:
        """Supervise until SIGTERM or SIGINT, or until workers cannot serve.

        Raises:
            UsageError: the file cannot be served.
            ConnectFailed: workers end again and again.
        """
        loop = asyncio.get_running_loop()
        self._end, self._hup = asyncio.Event(), asyncio.Event()
        handlers = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
            signal.SIGHUP: self._hup.set,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        tasks = [loop.create_task(self._keep(slot)) for slot in self._slots]
        tasks += [loop.create_task(self._announce()), loop.create_task(self._reload_on_signal())]
        try:
            await self._end.wait()
        finally:
            self._is_stopping = True
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._end_workers()
            for slot in self._slots:
                for sock in slot.sockets:
                    sock.close()
            for number in handlers:
                loop.remove_signal_handler(number)
        if self._failure is not None:
            kind, why = self._failure
            if kind is UsageError:
                raise UsageError(why)
            raise ConnectFailed(f"the workers end again and again, the last one {why}")

    def _stop(self) -> None:
        """SIGTERM or SIGINT came: the second one waits for nothing."""
        if self._end.is_set():
            self._is_hurried = True
            for worker in self._list_workers():
                worker.tell(HURRY_ORDER)
        self._end.set()

    def _list_workers(self) -> list[WorkerProcess]:
        serving = [slot.worker for slot in self._slots if slot.worker is not None]
        return [one for one in {*serving, *self._starting} if not one.ended.done()]

    async def _end_workers(self) -> None:
        """Have all workers drain, and kill those that do not end."""
        loop = asyncio.get_running_loop()
        hurried_at, until = None, loop.time() + self._drain + KILL_AFTER_S
        for worker in self._list_workers():
            worker.tell(DRAIN_ORDER)
        while (left := self._list_workers()) and loop.time() < until:
            await asyncio.wait([one.ended for one in left], timeout=0.1)
            if self._is_hurried and hurried_at is None:
                hurried_at = loop.time()
                until = min(until, hurried_at + HURRY_TIMEOUT_S)
        for worker in left:
            self._report(f"worker {worker.number} does not end, and is killed")
            worker.kill()
        if left:
            await asyncio.wait([one.ended for one in left])

    async def _announce(self) -> None:
        """Say once where clients reach the workers, when all of them serve."""
        while not all(  # noqa: ASYNC110 - workers come and go meanwhile
            slot.worker is not None and slot.worker.is_ready for slot in self._slots
        ):
            await asyncio.sleep(0.02)
        count, worker = len(self._slots), self._slots[0].worker
        if worker is not None:
            many = "1 worker" if count == 1 else f"{count} workers"
            self._report(f"isthmus serves on {worker.url} with {many} (Ctrl-C to stop)")

    # One slot

    async def _keep(self, slot: WorkerSlot) -> None:
        """Have a worker in a slot, always."""
        while True:
            if slot.worker is None:
                slot.worker = await self._start(slot)
            worker = slot.worker
            code = await asyncio.shield(worker.ended)
            if slot.worker is not worker:
                continue  # it was replaced
            slot.worker = None
            delay = self._count_death(worker, code)
            if delay is None:
                self._end.set()
                return
            self._report(f"worker {slot.number} ended{describe_exit(code)}: it is started again")
            await asyncio.sleep(delay)

    async def _start(self, slot: WorkerSlot) -> WorkerProcess:
        """Start a worker."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        inherited = [sock.fileno() for sock in slot.sockets]
        orders = WorkerOrders(line=theirs.fileno(), sockets=inherited, store=self._store)
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=[*inherited, theirs.fileno()],
                # A Ctrl-C at the terminal is for the supervisor, which tells the workers.
                start_new_session=True,
                env={**os.environ, ORDERS_VARIABLE: encode_orders(orders)},
            )
        finally:
            theirs.close()
        return WorkerProcess(slot.number, process, ours, self._report)

    def _count_death(self, worker: WorkerProcess, code: int) -> float | None:
        """Seconds until a worker that died is started again; None to give up."""
        self._has_served = self._has_served or worker.is_ready
        is_quick = worker.count_seconds_served() < QUICK_DEATH_S
        self._quick_deaths = self._quick_deaths + 1 if is_quick else 0
        words = "\n".join(worker.last_words)
        if code == USAGE_EXIT_CODE and not self._has_served:
            self._failure = UsageError, words.removeprefix("isthmus: ")
        elif self._quick_deaths >= MAX_QUICK_DEATHS:
            ended = describe_exit(code).strip()
            self._failure = ConnectFailed, f"{ended}; it said:\n{words}"
        if self._failure is not None:
            return None
        if self._quick_deaths < 2:
            return 0.0
        return float(min(FIRST_DELAY_S * 2 ** (self._quick_deaths - 2), MAX_DELAY_S))

    # Replacing workers

    async def _reload_on_signal(self) -> None:
        while True:
            await self._hup.wait()
            self._hup.clear()
            self._report("new workers take over, one after another")
            for slot in self._slots:
                if not await self._replace(slot):
                    break
            else:
                self._report("all workers are new")

    async def _replace(self, slot: WorkerSlot) -> bool:
        """Put a new worker in a slot: the old one ends when that serves. False where it does not."""
        new = await self._start(slot)
        self._starting.add(new)
        try:
            if not await new.wait_until_ready(READY_TIMEOUT_S):
                new.kill()
                self._report("the new worker cannot serve: those that are there go on")
                return False
            old, slot.worker = slot.worker, new
            if old is not None:
                self._starting.add(old)  # it is one that is to end with the rest
                await old.retire(self._drain + KILL_AFTER_S)
                self._starting.discard(old)
            return True
        finally:
            self._starting.discard(new)


def describe_exit(code: int) -> str:
    """How a process ended, for the end of a sentence."""
    if code >= 0:
        return f" with exit code {code}"
    with suppress(ValueError):
        return f" by {signal.Signals(-code).name}"
    return f" by signal {-code}"
