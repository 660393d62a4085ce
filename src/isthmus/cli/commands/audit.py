"""``isthmus audit``: verify, read, export and sum up the audit log of a host."""

import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from isthmus.cli.arguments import parse_time
from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.host_state import find_host_folder
from isthmus.cli.options import AsJson, StateFolder
from isthmus.cli.output import print_json, print_line, print_lines, print_note, print_text
from isthmus.errors import UsageError
from isthmus.host.audit.hash_chain import describe_verdict, verify_chain
from isthmus.host.audit.head_file import HeadFile
from isthmus.host.audit.keys import AuditKeys
from isthmus.host.audit.queries import AuditFilters, AuditSum, open_log, read_lines, read_sums
from isthmus.host.model.view import AuditLine
from isthmus.host.state.database import load_key

app = CommandSet(
    name="audit",
    help="Read and verify the audit log of a host.",
    no_args_is_help=True,
)

Count: TypeAlias = Annotated[
    int, Option("--count", "-n", metavar="N", min=1, max=10_000, help="Maximum number of rows.")
]
Server: TypeAlias = Annotated[str, Option(metavar="NAME", help="Only rows of this server.")]
Object: TypeAlias = Annotated[
    str, Option("--object", metavar="NAME", help="Only rows about this tool, URI or prompt.")
]
Principal: TypeAlias = Annotated[
    str, Option(metavar="NAME", help="Only attempts of this principal: user:NAME, server:NAME …")
]
Kind: TypeAlias = Annotated[
    str, Option(metavar="KIND", help="Only rows of this kind: intent, decision, outcome …")
]
Run: TypeAlias = Annotated[str, Option(metavar="ID", help="Only rows of this run.")]
Call: TypeAlias = Annotated[str, Option(metavar="ID", help="Only rows of this call.")]
Since: TypeAlias = Annotated[
    str,
    Option(
        metavar="TIME", help="Only rows since this time: 2026-11-21T08:00, or 2h for two hours ago."
    ),
]
Until: TypeAlias = Annotated[
    str, Option(metavar="TIME", help="Only rows before this time, in the format of --since.")
]
Failed: TypeAlias = Annotated[bool, Option("--failed", help="Only failures.")]


@app.command()
def verify(
    *,
    anchor: Annotated[
        str, Option(metavar="SEQ:HASH", help="Anchor printed by an earlier check.")
    ] = "",
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Verify every row and signature. Exits with 1 on a fault, with 6 if a part cannot be proved."""
    finish(lambda: print_verdict(state, anchor, as_json=as_json))


@app.command()
def tail(
    *,
    count: Count = 20,
    follow: Annotated[bool, Option("--follow", "-f", help="Keep printing new rows.")] = False,
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Print the last rows; with --json one object per line."""
    finish(lambda: print_tail(state, count, follow=follow, as_json=as_json))


@app.command()
def search(
    words: Annotated[
        list[str] | None,
        Argument(metavar="WORDS", help="Words in the object, the arguments or the details."),
    ] = None,
    *,
    server: Server = "",
    object_: Object = "",
    principal: Principal = "",
    kind: Kind = "",
    run: Run = "",
    call: Call = "",
    since: Since = "",
    until: Until = "",
    failed: Failed = False,
    count: Count = 100,
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Search for rows. Prints the newest rows that contain all words and match all options."""

    def work() -> Exit:
        filters = make_filters(
            server=server,
            object=object_,
            principal=principal,
            kind=kind,
            run=run,
            call=call,
            since=since,
            until=until,
            failed=failed,
            text=" ".join(words or ()),
        )
        return print_found(state, filters, count, as_json=as_json)

    finish(work)


@app.command()
def export(
    file: Annotated[str, Argument(metavar="FILE", help="Output file; - is standard output.")] = "-",
    *,
    _jsonl: Annotated[
        bool, Option("--jsonl", help="One JSON object per line; the only format.")
    ] = True,
    server: Server = "",
    run: Run = "",
    since: Since = "",
    until: Until = "",
    state: StateFolder = None,
) -> None:
    """Export rows with their hashes. Secrets are redacted."""

    def work() -> Exit:
        filters = make_filters(server=server, run=run, since=since, until=until)
        return export_rows(state, filters, file)

    finish(work)


@app.command()
def stats(
    *,
    server: Server = "",
    object_: Object = "",
    principal: Principal = "",
    run: Run = "",
    since: Since = "",
    until: Until = "",
    state: StateFolder = None,
    as_json: AsJson = False,
) -> None:
    """Print totals by server, tool and effect. Totals of calls, failures, times, waits, tokens and cost."""

    def work() -> Exit:
        filters = make_filters(
            server=server, object=object_, principal=principal, run=run, since=since, until=until
        )
        return print_stats(state, filters, as_json=as_json)

    finish(work)


FOLLOW_INTERVAL_S = 0.5

MAX_ARGUMENTS_CHARS = 100  # in a line for a person; --json has all


def make_filters(*, since: str = "", until: str = "", **rest: Any) -> AuditFilters:
    """The filters that somebody wrote down.

    Raises:
        UsageError: a time is none.
    """
    now = time.time()
    return AuditFilters(since=parse_time(since, now), until=parse_time(until, now), **rest)


def print_verdict(state: str | None, anchor: str, *, as_json: bool) -> Exit:
    """Check the whole log, and say what was found."""
    folder = find_host_folder(state)
    head = folder / "host.head"
    if head.is_file() and not (folder / "host.db").exists():
        print_note(f"row 0: truncated: {folder} has the head of an audit log, and the log is gone")
        return Exit.TOOL_FAILED
    with open_log(folder) as db:
        keys = AuditKeys(load_key(folder / "host.key", make=False))
        db.execute("BEGIN")
        try:
            found = verify_chain(db, keys, HeadFile(head, keys), anchor)
        except ValueError:
            raise UsageError(
                f"{anchor!r} is no anchor: give SEQ:HASH, as isthmus audit verify prints it"
            ) from None
    if as_json:
        public = {"good": found.good, "state": found.state, "public_key": keys.public.hex()}
        print_json(msgspec.to_builtins(found) | public)
    else:
        print_lines("\n".join(describe_verdict(found)))
    return EXIT_BY_VERDICT[found.state]


EXIT_BY_VERDICT = {"good": Exit.OK, "unproved": Exit.UNPROVED, "bad": Exit.TOOL_FAILED}


def print_tail(state: str | None, count: int, *, follow: bool, as_json: bool) -> Exit:
    """Print the last rows; where they are followed, until somebody interrupts it."""
    with open_log(find_host_folder(state)) as db:
        last = print_rows(read_lines(db, newest=count), as_json=as_json)
        if not last:
            print_note("nothing was done yet")
        while follow:
            time.sleep(FOLLOW_INTERVAL_S)
            last = max(last, print_rows(read_lines(db, AuditFilters(after=last)), as_json=as_json))
    return Exit.OK


def print_found(state: str | None, filters: AuditFilters, count: int, *, as_json: bool) -> Exit:
    """Print the rows that fit."""
    with open_log(find_host_folder(state)) as db:
        if not print_rows(read_lines(db, filters, newest=count), as_json=as_json):
            print_note("no row fits")
    return Exit.OK


def print_rows(rows: Iterable[AuditLine], *, as_json: bool) -> int:
    """Print rows, one a line; the number of the last one, 0 where there was none."""
    last = 0
    for row in rows:
        last = row.seq
        if as_json:
            print_text(msgspec.json.encode(row).decode())
        else:
            print_line(format_row(row))
    sys.stdout.flush()
    return last


def format_row(row: AuditLine) -> str:
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
        *([truncate_json(row.arguments)] if row.arguments else []),
    ]
    return "  ".join(parts)


def truncate_json(value: Any) -> str:
    """Plain data as JSON, as much of it as a line holds."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_ARGUMENTS_CHARS else f"{text[:MAX_ARGUMENTS_CHARS]}…"


def export_rows(state: str | None, filters: AuditFilters, file: str) -> Exit:
    """Write rows as JSON, one a line, with their hashes."""
    count = 0
    with ExitStack() as stack:
        db = stack.enter_context(open_log(find_host_folder(state)))
        out = sys.stdout if file == "-" else stack.enter_context(create_private_file(Path(file)))
        for row in read_lines(db, filters):
            out.write(msgspec.json.encode(row).decode() + "\n")
            count += 1
    print_note(f"{count} rows")
    return Exit.OK


def create_private_file(path: Path) -> Any:
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


def print_stats(state: str | None, filters: AuditFilters, *, as_json: bool) -> Exit:
    """Print sums by server, tool and effect."""
    with open_log(find_host_folder(state)) as db:
        sums = read_sums(db, filters)
    if as_json:
        print_json(sums)
    elif sums:
        print_lines("\n".join(format_sums(sums)))
    else:
        print_note("no call is written down yet")
    return Exit.OK


def format_sums(sums: Iterable[AuditSum]) -> Iterable[str]:
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
