"""``isthmus audit``: what a host has done, and whether anybody changed what is written of it."""

from typing import Annotated, TypeAlias

import typer

from isthmus.cli.exits import Exit, finish

__all__ = ["app"]

app = typer.Typer(
    name="audit",
    help="Look at what a host has done, and check that nobody changed what is written of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

State: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="The host's state; the user's own host by default."),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Count: TypeAlias = Annotated[
    int, typer.Option("--count", "-n", metavar="N", min=1, max=10_000, help="At most so many rows.")
]
Server: TypeAlias = Annotated[str, typer.Option(metavar="NAME", help="Only of this server.")]
Object: TypeAlias = Annotated[
    str, typer.Option("--object", metavar="NAME", help="Only about this tool, URI or prompt.")
]
Principal: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME", help="Only what this one wanted: user:NAME, server:NAME …")
]
Kind: TypeAlias = Annotated[
    str, typer.Option(metavar="KIND", help="Only rows of this kind: intent, decision, outcome …")
]
Run: TypeAlias = Annotated[str, typer.Option(metavar="ID", help="Only of this run.")]
Call: TypeAlias = Annotated[str, typer.Option(metavar="ID", help="Only about this call.")]
Since: TypeAlias = Annotated[
    str, typer.Option(metavar="TIME", help="From then on: 2026-11-21T08:00, or 2h for two hours.")
]
Until: TypeAlias = Annotated[str, typer.Option(metavar="TIME", help="Before then, as --since.")]
Failed: TypeAlias = Annotated[bool, typer.Option("--failed", help="Only what failed.")]


@app.command()
def verify(
    *,
    anchor: Annotated[
        str, typer.Option(metavar="SEQ:HASH", help="What an earlier check printed.")
    ] = "",
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Check every row and signature: exits with 1 at a fault, with 6 where not all is proved."""

    def verified() -> Exit:
        from isthmus.cli.commands.audit_rows import print_verdict

        return print_verdict(state, anchor, as_json=as_json)

    finish(verified)


@app.command()
def tail(
    *,
    count: Count = 20,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print the last rows; with --json one value a line."""

    def tailed() -> Exit:
        from isthmus.cli.commands.audit_rows import print_tail

        return print_tail(state, count, follow=follow, as_json=as_json)

    finish(tailed)


@app.command()
def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="In the object, the arguments and the details."),
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
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows that have all these words, and fit all options; the newest where there are many."""

    def searched() -> Exit:
        from isthmus.cli.commands.audit_rows import make_filters, print_found

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

    finish(searched)


@app.command()
def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to; - or nothing is standard output.")
    ] = "-",
    *,
    _jsonl: Annotated[
        bool, typer.Option("--jsonl", help="One JSON value a line; there is no other form.")
    ] = True,
    server: Server = "",
    run: Run = "",
    since: Since = "",
    until: Until = "",
    state: State = None,
) -> None:
    """Write all rows, or those that fit, with their hashes; nothing secret is in them."""

    def exported() -> Exit:
        from isthmus.cli.commands.audit_rows import export_rows, make_filters

        filters = make_filters(server=server, run=run, since=since, until=until)
        return export_rows(state, filters, file)

    finish(exported)


@app.command()
def stats(
    *,
    server: Server = "",
    object_: Object = "",
    principal: Principal = "",
    run: Run = "",
    since: Since = "",
    until: Until = "",
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print sums by server, tool and effect: calls, failures, times, waits, tokens, cost."""

    def counted() -> Exit:
        from isthmus.cli.commands.audit_rows import make_filters, print_stats

        filters = make_filters(
            server=server, object=object_, principal=principal, run=run, since=since, until=until
        )
        return print_stats(state, filters, as_json=as_json)

    finish(counted)
