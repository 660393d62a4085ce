"""``isthmus validate``: check recorded messages against a revision."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exit_codes import Exit
from isthmus.cli.exits import finish
from isthmus.cli.findings import judge_findings, print_findings
from isthmus.cli.options import AsJson, Rules, Strict
from isthmus.cli.output import print_json
from isthmus.errors import UsageError
from isthmus.linter.doctor.recordings import read_recordings
from isthmus.linter.rules.catalog import judge, select_rules
from isthmus.linter.rules.conversation import Side
from isthmus.revisions import BY_NAME

app = CommandSet()

SIDES: dict[str, tuple[Side, ...]] = {
    "both": ("client", "server"),
    "client": ("client",),
    "server": ("server",),
}


@app.command("validate")
def validate(
    file: Annotated[str, Argument(metavar="FILE", show_default=False)],
    *,
    only: Rules = None,
    skip: Rules = None,
    strict: Strict = False,
    side: Annotated[
        str, Option(metavar="SIDE", help="Check messages of the client, the server or both.")
    ] = "both",
    as_json: AsJson = False,
    revision: Annotated[
        str | None,
        Option(
            metavar="REVISION", help="Revision to check against; the negotiated one by default."
        ),
    ] = None,
) -> None:
    """Check recorded messages or a transcript (-: standard input)."""
    finish(
        lambda: validate_file(
            file,
            revision=revision,
            side=side,
            only=only or (),
            skip=skip or (),
            strict=strict,
            as_json=as_json,
        )
    )


def validate_file(
    file: str,
    *,
    revision: str | None,
    side: str,
    only: Sequence[str],
    skip: Sequence[str],
    strict: bool,
    as_json: bool,
) -> Exit:
    """Check a file of messages, and print what is wrong.

    Raises:
        UsageError: there is no such file, revision or rule, or the file has no messages.
    """
    if revision is not None and revision not in BY_NAME:
        raise UsageError(f"there is no revision {revision!r}: {', '.join(BY_NAME)}")
    if side not in SIDES:
        raise UsageError(f"there is no side {side!r}: client, server or both")
    wanted = select_rules(only, skip)
    pinned = None if revision is None else BY_NAME[revision]
    conversations = read_recordings(_read_text(file), pinned, SIDES[side])
    findings = [finding for one in conversations for finding in judge(one, wanted)]
    spoken = sorted({said.revision.name for one in conversations for said in one.said})
    count = sum(len(one.said) for one in conversations)
    if as_json:
        plain = msgspec.to_builtins(findings)
        print_json({"file": file, "revisions": spoken, "messages": count, "findings": plain})
    else:
        print(f"{file}: {count} message{'s' * (count != 1)} in {', '.join(spoken)}")
        print_findings(findings, numbered=True)
    return judge_findings(findings, strict=strict)


def _read_text(file: str) -> str:
    """The text of a file; ``-`` is standard input."""
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
