"""A host at work, with a script in place of its user: part of ``make run``, or alone.

Run it: ``python examples/host_tour.py``. Its servers, rules and models are in ``examples/host``: one server
asks its user, one its user's model, one is other people's, and one is broken on purpose.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from isthmus.host import (
    CallAsked,
    ChangeAsked,
    Decision,
    FormAsked,
    Host,
    HostError,
    InstallAsked,
    Interaction,
    SamplingAsked,
    SamplingWritten,
)
from isthmus.host.providers import Scripted
from isthmus.host.sampling import edits

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODEL_SAYS = "Sea levels rise faster than anybody had ever thought"
WEEK = 7 * 86_400


def say(text: str, depth: int = 1) -> None:
    """One line of the tour."""
    print("   " * depth + text, flush=True)


class User:
    """Whoever is asked: prints each question, and the answer that a script has for it."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, question: Interaction) -> Decision:
        """Answer one question."""
        self.asked += 1
        what, decision, told = self.answer(question)
        say(f"asked: {what} {told}", 2)
        return decision

    def answer(self, question: Interaction) -> tuple[str, Decision, str]:
        """What was asked, what is answered, and how that is told."""
        match question.payload:
            case InstallAsked(argv=argv):
                command = " ".join(Path(word).name for word in argv)
                told = f"may `{command}` be run?", yes(), "allowed"
            case CallAsked():
                told = self.called(question)
            case FormAsked(params=params):
                form = {"row": 12, "window": True}
                told = params.message, yes(edited=form), str(form)
            case SamplingAsked(model=model) as asked:
                shorter = yes(edited=edits(asked, maxTokens=4))
                told = f"may {model} write for it?", shorter, "allowed, EDITED to 4 tokens"
            case SamplingWritten(result=result):
                text = getattr(result.content, "text", "")
                told = f"may it have {text!r}?", yes(), "allowed"
            case ChangeAsked(diff=diff):
                lines = "".join(f"\n{'   ' * 3}{line}" for line in diff)
                what = f"may this tool be used as it is now?{lines}\n     "
                told = what, no("that is not its job"), "DENIED"
            case other:
                told = str(other), no("the script has no answer"), "DENIED"
        return told

    def called(self, question: Interaction) -> tuple[str, Decision, str]:
        """The same for a call."""
        attempt = question.attempt
        what = f"call {attempt.object} of {attempt.server} with {dict(attempt.arguments)}?"
        if attempt.arguments.get("date") == "2026-12-24":
            return what, no("not on Christmas Eve"), "DENIED"
        if attempt.object == "book":
            edited = {"date": "2026-05-02"}
            return what, yes(edited=edited), f"allowed, EDITED to {edited}"
        kept = yes(remember="arguments", until=question.opened + WEEK)
        return what, kept, "allowed, and REMEMBERED for a week"


def yes(**more: Any) -> Decision:
    """Yes, with what belongs to it."""
    return Decision(verdict="allow", by="the script", **more)


def no(reason: str) -> Decision:
    """No, and why."""
    return Decision(verdict="deny", by="the script", reason=reason)


def opened(state: str, user: User, git: str | None, edition: str) -> Host:
    """The host of ``examples/host/mcp.json``."""
    environ = {**os.environ, "PYTHON": sys.executable, "EDITION": edition}
    if git is not None:
        environ["GIT_PYTHON"] = git
    return Host.from_config(
        HERE / "host" / "mcp.json",
        folder=ROOT,
        environ=environ,
        state=state,
        approver=user,
        providers={"script": Scripted(MODEL_SAYS, name="script")},
    )


async def do(host: Host, tool: str, arguments: dict[str, Any], note: str = "") -> None:
    """One call through the host, and what came of it."""
    say(f"{tool}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})  {note}".rstrip())
    try:
        result = await host.call(tool, arguments)
    except HostError as error:
        why = str(error).replace(sys.executable, "python").splitlines()
        say(f"{type(error).__name__}: {why[0]}", 2)
        for line in why[2:]:  # what the program itself said last
            say(line.strip().removeprefix("| python: "), 3)
    else:
        say(f"= {result.text.strip().splitlines()[0]}", 2)


async def first_day(host: Host) -> None:
    """Everything that a host decides about."""
    for name, why in host.config.broken.items():
        say(f"left out: {name}, for {why.partition(': ')[2]}")
    await do(host, "lost__anything", {}, "(a server that is broken on purpose)")
    await do(host, "bookings__price", {"kind": "window"}, "(trusted, and it only reads)")
    await do(host, "bookings__book", {"date": "2026-12-24"})
    await do(host, "bookings__book", {"date": "2026-05-01"})
    await do(host, "press__headline", {"text": "The sea."})
    if "git" in host.config.servers:
        here = {"repo_path": str(ROOT)}
        await do(host, "git__git_log", {**here, "max_count": 1}, "(a rule allows it)")
        await do(host, "git__git_commit", {**here, "message": "hi"}, "(a rule denies it)")


async def second_day(host: Host) -> None:
    """What the user said yes to still holds; a tool that became another one is kept out."""
    for grant in await host.view.grants():
        say(f"granted: {grant.text}, by {grant.by}")
    await do(host, "press__headline", {"text": "The sea."})


async def written_down(host: Host) -> None:
    """The end of the audit log, and whether all of it is as it was written."""
    for line in await host.view.audit_tail(6):
        what = f"{line.action} {line.server} {line.object}".strip()
        say(f"{line.seq:>3} {line.kind:<9} {what:<32} {line.effect or line.error}".rstrip(), 1)
    verdict = await host.audit.verify()
    if not verdict.good:
        raise SystemExit(f"the audit log does not hold: {verdict.faults}")
    say(f"{verdict.rows} rows, verified: none was changed, taken out or put in")


async def main(git: str | None = None) -> None:
    """Both days.

    Args:
        git: an interpreter that has ``mcp_server_git``; None where there is none.
    """
    user = User()
    with tempfile.TemporaryDirectory() as state:
        say("the first day: what is run, and what may change something, is asked about", 0)
        async with opened(state, user, git, "first") as host:
            await first_day(host)
        say("the second day: what was granted holds, and the press has been updated", 0)
        async with opened(state, user, git, "second") as host:
            await second_day(host)
            say("the end of the audit log of both days", 0)
            await written_down(host)


if __name__ == "__main__":
    asyncio.run(main())
