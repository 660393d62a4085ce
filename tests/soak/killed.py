"""A host that is killed again and again: ``python tests/soak/killed.py [--seconds 40] [--seed 1]``.

One host after the other works on the same state: it calls a server on stdio and two over HTTP, is
asked about every call and by every server, remembers what it was told to, and follows tasks. Each is
killed, at a random moment, by the server that it called, or just before a certain statement of its
store. What it was told was done is held against what stands in its state, and what the servers did:
no decision, grant or row is lost, nothing is done twice, what nobody can know is told once, answered
questions are not asked again, tasks go on, and the chain holds. Ends with 0 where all of that is so,
with 1 and what is not where it is not.
"""

import argparse
import json
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from isthmus.host.audit.hash_chain import verify_chain
from isthmus.host.audit.head_file import HeadFile
from isthmus.host.audit.keys import AuditKeys

HERE = Path(__file__).parent
LONGEST = 3.0
"""Seconds after which a host is killed that has not come to its point."""

UNKNOWN = "outcome-unknown"
TASK = "build"
PLACES = (
    *("BEGIN IMMEDIATE:9", "BEGIN IMMEDIATE:25", "INSERT INTO event VALUES:3", "COMMIT:8"),
    *("COMMIT:30", "INSERT OR REPLACE INTO open_call:4", "DELETE FROM open_call:2"),
    *("INSERT OR REPLACE INTO decision:1", "INSERT OR REPLACE INTO task_handle:0"),
    *("UPDATE task_handle:0", "UPDATE task_handle:2", "DELETE FROM task_handle:0"),
    *("DELETE FROM decision:0", "INSERT INTO grant_:0", "INSERT OR REPLACE INTO checkpoint:1"),
    *("INSERT INTO event_fts:0", "checkpoint"),
)
"""Where a host is killed: before a statement, after so many of its kind, or in a checkpoint."""

DROPPING = ("DELETE FROM event WHERE:0", "DELETE FROM checkpoint:0", "DELETE FROM body:0")


class Rounds:
    """One state, and all the hosts that work on it.

    Args:
        folder: where everything is.
        ports: of the servers over HTTP, by name.
        chance: for moments.
        retain: seconds that rows are kept; 0 for ever.
    """

    def __init__(
        self, folder: Path, ports: dict[str, int], chance: random.Random, retain: float = 0
    ) -> None:
        self.folder = folder
        self.ports = ports
        self.chance = chance
        self.retain = retain
        self.ends: Counter[str] = Counter()
        self.number = 0
        self.unknown = 0

    def round(self, point: str) -> None:
        """One host, until it is killed, or for ``finish`` until every task is over."""
        self.number += 1
        said = {
            "folder": str(self.folder),
            "number": self.number,
            "seed": self.chance.random(),
            "point": point,
            "retain": self.retain,
            **self.ports,
        }
        words = [sys.executable, str(HERE / "killed_host.py"), json.dumps(said)]
        limit = {"random": self.chance.random() * 0.6, "finish": 30.0}.get(point, LONGEST)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()  # type: ignore[union-attr]  # it is open, or was killed
            try:
                _, wrong = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                _, wrong = process.communicate()
            else:
                self.ends[point.partition(":")[0]] += 1
            if process.returncode not in {0, -9}:
                raise SystemExit(f"a host ended by itself at {point}: {wrong.decode()[-2000:]}")
            if point == "finish" and process.returncode:
                raise SystemExit("tasks that were left are not over after 30 s")

    # What is there in the end

    def lines(self, name: str) -> list[list[str]]:
        """What was written into a file, in order."""
        path = self.folder / name
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def faults(self) -> Iterator[str]:
        """What does not hold."""
        with closing(sqlite3.connect(self.folder / "state" / "host.db")) as db:
            keys = AuditKeys((self.folder / "state" / "host.key").read_bytes())
            found = verify_chain(db, keys, HeadFile(self.folder / "state" / "host.head", keys))
            yield from (one.text for one in (*found.faults, *found.unproved))
            grants = {row[0] for row in db.execute("SELECT id FROM grant_")}
            rows = db.execute(
                "SELECT kind, call_id, error_class, args_redacted, action FROM event ORDER BY seq"
            ).fetchall()
            self.unknown = sum(row[0] == "outcome" and row[2] == UNKNOWN for row in rows)
            for table in ("open_call", "task_handle", "decision"):
                left = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - ours
                if left:
                    yield f"{left} rows are left in {table}"
        told = self.lines("told")
        lost = {words[1] for words in told if words[0] == "grant"} - grants
        if lost:
            yield f"grants are lost: {lost}"
        yield from self.twice()
        yield from asked_again(told)
        if not self.retain:
            yield from self.missing(rows, told)
            yield from ambiguous(rows, told)

    def twice(self) -> Iterator[str]:
        """What servers did more than once."""
        for words, count in Counter(map(tuple, self.lines("done"))).items():
            if count > 1:
                yield f"{' '.join(words)} was done {count} times"

    def missing(self, rows: list[Any], told: list[list[str]]) -> Iterator[str]:
        """Rows of which somebody was told that they stand there."""
        intended = {json.loads(row[3])["lot"] for row in rows if called(row) and row[0] == "intent"}
        for words in self.lines("done"):
            if words[1] not in intended:
                yield f"{words} was done, and no row says that it was to be"
        decided = {row[1] for row in rows if row[0] == "decision"}
        for words in told:
            if words[0] == "decided" and words[2] not in decided:
                yield f"the decision {words} is lost"

    def summary(self) -> str:
        """How many of what there were."""
        done, told = (
            Counter(w[0] for w in self.lines("done")),
            Counter(w[0] for w in self.lines("told")),
        )
        return (
            f"{self.number} hosts, {sum(self.ends.values())} killed where they were to be; "
            f"servers did {dict(done)}; hosts were told {dict(told)}; of {self.unknown} calls "
            "nobody knows how they ended"
        )


def called(row: Any) -> bool:
    """Whether a row is one of a call with arguments."""
    return bool(row[4] == "tool.call" and row[3])


def asked_again(told: list[list[str]]) -> Iterator[str]:
    """Questions that were asked after they had been decided on."""
    decided: set[tuple[str, ...]] = set()
    for words in told:
        if words[0] == "decided":
            decided.add((words[1], *words[3:]))
        elif words[0] == "asked" and tuple(words[1:]) in decided:
            yield f"{' '.join(words[1:])} was asked though it had been decided"


def ambiguous(rows: list[Any], told: list[list[str]]) -> Iterator[str]:
    """Calls that did not end once, or of which nobody was to say that nobody knows."""
    lots = {row[1]: json.loads(row[3])["lot"] for row in rows if called(row)}
    ends: dict[str, list[str]] = {}
    begun: Counter[str] = Counter()
    for kind, call, error, _, _ in rows:
        if kind == "intent":
            begun[call] += 1
        elif kind == "outcome":
            ends.setdefault(call, []).append(error or "")
    for call in begun:
        if len(ends.get(call, [])) != 1:
            yield f"{lots.get(call, call)} ended as {ends.get(call)}"
    returned = {words[1] for words in told if words[0] == "returned"}
    in_tasks = {words[2] for words in told if words[0] == "asked" and words[1] == "elicitation"}
    tasks = {lot for lot in in_tasks if lot in built(told)}
    for call, lot in lots.items():
        if UNKNOWN in ends.get(call, []) and lot in tasks:
            yield f"{lot} had become a task, and is told to be unknown"
    without = returned - {lots[call] for call in ends if call in lots}
    if without:
        yield f"calls came back and have no outcome: {without}"


def built(told: list[list[str]]) -> set[str]:
    """The lots of calls that were tasks: they ask twice."""
    return {words[2] for words in told if words[0] == "asked" and words[-1] == "two"}


def free_port() -> int:
    """A port that nobody listens on."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def serve(stack: ExitStack, log: Path) -> dict[str, int]:
    """Start the servers over HTTP, which live on; their ports."""
    ports = {}
    for name, revision in (("old", "2025-11-25"), ("new", "2026-07-28")):
        port = ports[name] = free_port()
        words = [sys.executable, str(HERE / "witness.py"), str(log), str(port), revision]
        process = stack.enter_context(
            subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        stack.callback(process.kill)
        for _ in range(200):
            with closing(socket.socket()) as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
    return ports


def soak(seconds: float, seed: int) -> int:
    """Kill, and look."""
    chance = random.Random(seed)  # noqa: S311 - for moments, not for secrets
    wrong: list[str] = []
    for retain, share, places in ((0.0, 0.75, PLACES), (0.5, 0.25, (*PLACES[:5], *DROPPING))):
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            folder = Path(name)
            rounds = Rounds(folder, serve(stack, folder / "done"), chance, retain)
            points = [*places, "before", "after", *["random"] * 6]
            chance.shuffle(points)
            until = time.monotonic() + seconds * share
            while time.monotonic() < until:
                rounds.round(points[rounds.number % len(points)])
            rounds.round("finish")
            found = list(rounds.faults())
            wrong += found
            print(f"{'with' if retain else 'without'} retention: {rounds.summary()}")
            print(f"  killed at {dict(rounds.ends)}", flush=True)
    print("\n".join(f"wrong: {one}" for one in wrong[:40]) or "as it should be")
    return 1 if wrong else 0


def main() -> int:
    """Read the arguments, and soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=36)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    return soak(asked.seconds, asked.seed)


if __name__ == "__main__":
    raise SystemExit(main())
