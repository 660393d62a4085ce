"""Rows of the audit log for a person at a terminal, or for a program."""

import os
import re
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from isthmus.cli.exits import Exit
from isthmus.cli.output import note, print_json, print_line, print_lines, print_text
from isthmus.errors import UsageError
from isthmus.host.audit.chain import Verdict, verify
from isthmus.host.audit.head import HeadFile
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.reading import Filters, Sum, lines, opened, stats
from isthmus.host.state import key_in, user_folder
from isthmus.host.view import AuditLine

__all__ = [
    "export_rows",
    "filters_of",
    "folder_of",
    "moment",
    "print_found",
    "print_stats",
    "print_tail",
    "print_verdict",
]

AGO = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)")
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}

PAUSE = 0.5
"""Seconds between two looks at a log that is followed."""

WIDEST = 100
"""Characters of arguments in a line for a person; ``--json`` has all of them."""


def folder_of(state: str | None) -> Path:
    """The folder of a host's state: the one that was named, or the user's own."""
    return Path(state).expanduser() if state else user_folder()


def moment(text: str, now: float) -> float | None:
    """A moment as people write it, in seconds since the epoch; None for none.

    Args:
        text: ``2026-11-21``, ``2026-11-21T08:00``, with an offset or in local time; or ``2h``.
        now: seconds since the epoch.

    Raises:
        UsageError: it is no moment.
    """
    if not text:
        return None
    if ago := AGO.fullmatch(text):
        return now - float(ago[1]) * UNITS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(
            f"{text!r} is no time: write 2026-11-21, 2026-11-21T08:00, or 2h for two hours ago"
        ) from None


def filters_of(*, since: str = "", until: str = "", **rest: Any) -> Filters:
    """The filters that somebody wrote down.

    Raises:
        UsageError: a time is none.
    """
    now = time.time()
    return Filters(since=moment(since, now), until=moment(until, now), **rest)


def print_verdict(state: str | None, anchor: str, *, as_json: bool) -> Exit:
    """Check the whole log, and say what was found."""
    folder = folder_of(state)
    head = folder / "host.head"
    if head.is_file() and not (folder / "host.db").exists():
        note(f"row 0: truncated: {folder} has the head of an audit log, and the log is gone")
        return Exit.TOOL_FAILED
    with opened(folder) as db:
        keys = AuditKeys(key_in(folder / "host.key", make=False))
        db.execute("BEGIN")
        try:
            found = verify(db, keys, HeadFile(head, keys), anchor)
        except ValueError:
            raise UsageError(
                f"{anchor!r} is no anchor: give SEQ:HASH as verify prints it"
            ) from None
    if as_json:
        public = {"good": found.good, "state": found.state, "public_key": keys.public.hex()}
        print_json(msgspec.to_builtins(found) | public)
    else:
        print_lines("\n".join(told(found)))
    return VERDICTS[found.state]


VERDICTS = {"good": Exit.OK, "unproved": Exit.UNPROVED, "bad": Exit.TOOL_FAILED}


def told(found: Verdict) -> Iterable[str]:
    """What a check found, a line each."""
    yield f"{found.rows} rows ({found.first} to {found.last}), {found.checkpoints} checkpoints"
    if found.dropped:
        yield f"rows up to {found.dropped} were dropped by retention, under a signature"
    yield from (f"row {fault.seq}: {fault.what}: {fault.text}" for fault in found.faults)
    yield from (f"unproved: {doubt.text}" for doubt in found.unproved)
    if found.state == "unproved":
        yield "no fault was found, and not everything is proved"
    if found.good:
        yield "nothing was changed, removed, inserted or put in another order"
    if not found.faults:
        yield f"anchor {found.last}:{found.head}"


def print_tail(state: str | None, count: int, *, follow: bool, as_json: bool) -> Exit:
    """Print the last rows; where they are followed, until somebody interrupts it."""
    with opened(folder_of(state)) as db:
        last = show(lines(db, newest=count), as_json=as_json)
        if not last:
            note("nothing was done yet")
        while follow:
            time.sleep(PAUSE)
            last = max(last, show(lines(db, Filters(after=last)), as_json=as_json))
    return Exit.OK


def print_found(state: str | None, filters: Filters, count: int, *, as_json: bool) -> Exit:
    """Print the rows that fit."""
    with opened(folder_of(state)) as db:
        if not show(lines(db, filters, newest=count), as_json=as_json):
            note("no row fits")
    return Exit.OK


def show(rows: Iterable[AuditLine], *, as_json: bool) -> int:
    """Print rows, one a line; the number of the last one, 0 where there was none."""
    last = 0
    for row in rows:
        last = row.seq
        if as_json:
            print_text(msgspec.json.encode(row).decode())
        else:
            print_line(text_of(row))
    sys.stdout.flush()
    return last


def text_of(row: AuditLine) -> str:
    """A row in a line for a person."""
    what = "/".join(part for part in (row.server, row.object) if part)
    by = row.rule or row.approver
    parts = [
        datetime.fromtimestamp(row.at).strftime("%Y-%m-%d %H:%M:%S"),  # noqa: DTZ006 - local time
        f"{row.seq:>6}  {row.kind:<8}",
        *(part for part in (row.principal, row.action, what) if part),
        *([f"{row.effect} ({by})" if by else row.effect] if row.effect else []),
        *([row.error or "failed"] if row.failed or row.error else []),
        *([f"{row.seconds * 1e3:.1f} ms"] if row.seconds is not None else []),
        *([short(row.arguments)] if row.arguments else []),
    ]
    return "  ".join(parts)


def short(value: Any) -> str:
    """Plain data as JSON, as much of it as a line holds."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}…"


def export_rows(state: str | None, filters: Filters, file: str) -> Exit:
    """Write rows as JSON, one a line, with their hashes."""
    count = 0
    with ExitStack() as stack:
        db = stack.enter_context(opened(folder_of(state)))
        out = sys.stdout if file == "-" else stack.enter_context(created(Path(file)))
        for row in lines(db, filters):
            out.write(msgspec.json.encode(row).decode() + "\n")
            count += 1
    note(f"{count} rows")
    return Exit.OK


def created(path: Path) -> Any:
    """A new file, which only its owner may read.

    Raises:
        UsageError: it is there already, or cannot be made.
    """
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise UsageError(f"{path} is there already: name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def print_stats(state: str | None, filters: Filters, *, as_json: bool) -> Exit:
    """Print sums by server, tool and effect."""
    with opened(folder_of(state)) as db:
        sums = stats(db, filters)
    if as_json:
        print_json(sums)
    elif sums:
        print_lines("\n".join(summed(sums)))
    else:
        note("no call is written down yet")
    return Exit.OK


def summed(sums: Iterable[Sum]) -> Iterable[str]:
    """Sums as a table."""
    yield f"{'calls':>7} {'failed':>6} {'mean ms':>9} {'waited s':>8}  {'effect':<6}  what"
    for one in sums:
        what = "/".join(part for part in (one.server, one.object) if part) or one.action
        tokens = ""
        if one.tokens_in or one.tokens_out:
            tokens = f"  {one.tokens_in} + {one.tokens_out} tokens, ${one.cost / 1e6:.4f}"
        mean = one.seconds / one.calls * 1e3
        yield (
            f"{one.calls:>7} {one.failed:>6} {mean:>9.1f} {one.waited:>8.1f}  {one.effect:<6}  "
            f"{what}{tokens}"
        )
