"""Measure isthmus and its peers in one run, and write the ratios to RESULTS.md.

``make bench`` runs all of it in some minutes; ``--short`` is CI's form, which writes nothing and
ends non-zero only when a starred floor is missed. Peers take turns within each round, so that
whatever else the machine does meets them all alike. Needs Linux; two cores are better than one.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

import authorized
import measures
import refusing
import verifying
from contenders import LIMIT, MCP, Contender, contenders, peers
from processes import LOAD_CORE, say
from report import markdown, write
from results import Results, unmeasured, verdicts

SKIPPED = 77  # what .ci/run reads as "could not get what it needs"

Field: TypeAlias = list[Contender]
Job: TypeAlias = tuple[str, str, Callable[[], dict[str, float]]]
"""A table, a row of it, and what finds the row's columns."""


def http(field: Field, span: measures.Span) -> Iterator[Job]:
    """Calls over HTTP, on three wires."""
    for wire in ("legacy json", "legacy sse", "modern"):
        for one in field:
            if wire in one.wires:
                yield f"http {wire}", one.name, partial(measures.http, one, wire, span)


def stdio(field: Field, span: measures.Span) -> Iterator[Job]:
    """Calls over a pipe."""
    for one in field:
        if one.stdio:
            yield "stdio", one.name, partial(measures.stdio, one, span)


def client(field: Field, span: measures.Span) -> Iterator[Job]:
    """Clients over HTTP and in memory."""
    fixed = next(one for one in field if one.name == LIMIT)
    for one in field:
        if one.client:
            yield "client http", one.name, partial(measures.client, one, fixed, span)
            yield "client memory", one.name, partial(measures.memory, one, span)


def start(field: Field, span: measures.Span) -> Iterator[Job]:
    """Imports, and the way to a first answer."""
    for name in measures.IMPORTS:
        python = str(peers.python("mcp2")) if name == MCP else sys.executable
        yield "start", name, partial(measures.imports, python, name, span)
    for one in field:
        if one.stdio:
            yield "start", one.name, partial(measures.first_answer, one, span)


def sessions(field: Field, span: measures.Span) -> Iterator[Job]:
    """Memory of idle sessions."""
    for one in field:
        if one.stdio:  # the limit has neither stdio nor sessions
            yield "sessions", one.name, partial(measures.sessions, one, span)


def auth(_field: Field, span: measures.Span) -> Iterator[Job]:
    """Telling whose an access token is, turning away who may not, and what it costs a client."""
    for row in verifying.ROWS:
        yield "tokens", row, partial(verifying.tokens, row, span.seconds / 2)
    for row in refusing.ROWS:
        yield "refusals", row, partial(refusing.refusals, row, span.seconds / 2)
    for row in authorized.ROWS:
        yield "client auth", row, partial(authorized.clients, row, span.seconds / 2)


PARTS: dict[str, Callable[[Field, measures.Span], Iterator[Job]]] = {
    "http": http,
    "stdio": stdio,
    "client": client,
    "start": start,
    "sessions": sessions,
    "auth": auth,
}
ONCE = {"start", "sessions"}  # they repeat within themselves


def attempt(results: Results, table: str, row: str, work: Callable[[], dict[str, float]]) -> None:
    """One measurement; who fails is named in the report and stops nobody else."""
    try:
        results.add(table, row, **work())
    except Exception as error:  # noqa: BLE001 - a broken one must not end the run
        results.fail(table, row, error)


def play(jobs: Iterable[Job], results: Results) -> None:
    """Everybody's turn at one part."""
    for job in jobs:
        attempt(results, *job)


def again(field: Field, span: measures.Span, results: Results) -> None:
    """One more chance for what missed a starred floor: the machine may have been busy just then."""
    tables = {v.floor.table for v in verdicts(results) if v.floor.starred and not v.met}
    for part in PARTS.values() if tables else ():
        play((job for job in part(field, span) if job[0] in tables), results)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Ratios against other implementations.")
    parser.add_argument("--short", action="store_true", help="CI's form: under two minutes")
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; repeat for more")
    parser.add_argument("--rounds", type=int, help="how often each has its turn")
    return parser.parse_args()


def main() -> int:
    """Run what was asked for; the exit code."""
    given = arguments()
    span = measures.SHORT if given.short else measures.FULL
    try:
        field = contenders(node=not given.short)
    except peers.Unavailable as error:
        say(f"skipped, as there is nobody to compare with: {error}")
        return SKIPPED
    os.sched_setaffinity(0, {LOAD_CORE})
    # Installed packages come with their byte code: ours is kept, too, after the first import.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    results = Results(best=given.short)
    for number in range(given.rounds or span.rounds):
        say(f"round {number + 1}")
        for name in given.only or PARTS:
            if name not in ONCE or number == 0:
                play(PARTS[name](field, span), results)
    if given.short:
        again(field, span, results)
    print(markdown(results))
    if not given.short and not given.only:
        write(results, span)
    return judged(results, complete=not given.only)


def judged(results: Results, *, complete: bool) -> int:
    """1 when a starred floor was missed, or not measured at all in a complete run."""
    missed = [v.floor.measure for v in verdicts(results) if v.floor.starred and not v.met]
    absent = [floor.measure for floor in unmeasured(results)] if complete else []
    for measure in missed:
        say(f"below its floor: {measure}")
    for measure in absent:
        say(f"not measured: {measure}")
    return 1 if missed or absent else 0


if __name__ == "__main__":
    sys.exit(main())
