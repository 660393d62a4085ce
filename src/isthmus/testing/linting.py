"""Linter in tests: what ``isthmus check`` finds wrong with a server fails the test."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.errors import UsageError
from isthmus.linter.doctor.doctor import Report, examine
from isthmus.linter.rules.catalog import select_rules
from isthmus.linter.rules.rule import FoldedFinding, fold_findings
from isthmus.revisions import BY_NAME
from isthmus.server.server import Server
from isthmus.testing.connections import hold_server

if TYPE_CHECKING:
    from isthmus.client.targets import ClientTarget


class LintFailed(AssertionError):
    """A server breaks rules of the specification; the message has each, and how to mend it."""


async def lint(
    server: "Server | ClientTarget",
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    strict: bool = False,
    revisions: Sequence[str] = (),
    calls: Mapping[str, Any] | None = None,
    call_read_only: bool = False,
    timeout: float = 5.0,
    **options: Any,
) -> Report:
    """Examine a server as ``isthmus check`` does; gives the report where all is well.

    Args:
        server: a server of ours, or whatever a client can be pointed at.
        only: ids of rules, or areas such as ``tools``; all if there are none.
        skip: ids or areas to leave out.
        strict: warnings fail, too; notes never do.
        revisions: the revisions to speak; all by default.
        calls: tools to call, and their arguments. No other tool is called.
        call_read_only: call every tool that says it is read-only and needs no arguments, too.
        timeout: seconds to wait for an answer.
        **options: ``headers`` and ``auth`` for a server over HTTP.

    Raises:
        LintFailed: rules are broken, or the server speaks no revision.
        UsageError: there is no such rule or revision.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    unknown = [name for name in revisions if name not in BY_NAME]
    if unknown:
        raise UsageError(f"there is no revision {unknown[0]!r}: {', '.join(BY_NAME)}")
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(server, Server):
            await stack.enter_async_context(hold_server(server))
        report = await examine(
            server,
            revisions=[BY_NAME[name] for name in revisions or BY_NAME],
            timeout=timeout,
            rules=select_rules(only, skip),
            calls=calls,
            call_read_only=call_read_only,
            **options,
        )
    if not report.spoken:
        tried = "\n".join(f"  {name}: {reason}" for name, reason in report.unspoken.items())
        raise LintFailed(f"the server speaks no revision that was tried:\n{tried}")
    failing = {"error", "warning"} if strict else {"error"}
    wrong = [one for one in fold_findings(report.findings) if one.severity in failing]
    if wrong:
        raise LintFailed("\n".join([f"{len(wrong)} rules broken:", *map(describe_finding, wrong)]))
    return report


def describe_finding(finding: FoldedFinding) -> str:
    """A finding for people: the place, what must hold, and how to mend it."""
    one = finding.example
    times = f", {finding.times} times" if finding.times > 1 else ""
    return (
        f"  {finding.severity} {finding.rule} ({', '.join(finding.revisions)}{times})\n"
        f"    {one.where}: {one.said}\n    must: {one.text}\n    mend: {one.mend}\n"
        f"    see: {finding.clause}"
    )
