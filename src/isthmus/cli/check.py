"""``check``: what a server does wrong, clause by clause, in every revision it speaks."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from isthmus.cli.exits import Exit
from isthmus.cli.findings import concluded, print_findings, print_rules
from isthmus.cli.output import note, print_json
from isthmus.cli.talk import Talk
from isthmus.errors import UsageError
from isthmus.linter.doctor import Doctor, LineSite, Report, WebSite
from isthmus.linter.rules import selected
from isthmus.revisions import BY_NAME, REVISIONS, Revision

__all__ = ["Choices", "check", "print_rules"]

TIMEOUT = 5.0


class Choices(msgspec.Struct, frozen=True):
    """What the command line says about a check.

    Attributes:
        only: rules or areas to apply; all if there are none.
        skip: rules or areas to leave out.
        calls: tools to call: ``NAME`` or ``NAME:JSON``.
        call_read_only: call the tools that say they change nothing.
        strict: warnings count as errors.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    calls: Sequence[str] = ()
    call_read_only: bool = False
    strict: bool = False


async def check(talk: Talk, choices: Choices) -> Exit:
    """Examine a server, and print what was found."""
    wanted = selected(choices.only, choices.skip)
    calls = dict(map(_call, choices.calls))
    revisions: Sequence[Revision] = REVISIONS
    if talk.options.revision is not None:
        revisions = (_revision(talk.options.revision),)
    async with _Sited(talk) as sited:
        for site in sited.sites():
            doctor = Doctor(
                site,
                timeout=talk.options.timeout or TIMEOUT,
                rules=wanted,
                calls=calls,
                call_read_only=choices.call_read_only,
            )
            report = await doctor.examine(revisions)
            if report.spoken:
                break
    if talk.options.as_json:
        print_json({"target": talk.target.label, **msgspec.to_builtins(report)})
    else:
        _print(report, talk.target.label)
    for reason, names in _reasons(report):
        note(f"{', '.join(names)}: {reason}")
    if not report.spoken:
        note(f"isthmus: {talk.target.label} speaks none of {', '.join(report.unspoken)}")
        return Exit.USAGE
    code = concluded(report.findings, strict=choices.strict)
    return Exit.UNREACHABLE if report.broken and code is Exit.OK else code


def _reasons(report: Report) -> list[tuple[str, list[str]]]:
    """Why what could not be asked was not, with the revisions that each reason is about."""
    found: dict[str, list[str]] = {}
    for name, reason in (report.broken if report.spoken else report.unspoken).items():
        found.setdefault(reason, []).append(name)
    return list(found.items())


def _call(text: str) -> tuple[str, Any]:
    """A tool to call, and its arguments.

    Raises:
        UsageError: the arguments are no JSON object.
    """
    name, _, arguments = text.partition(":")
    try:
        decoded = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError as error:
        raise UsageError(f"--call {name}: the arguments are no JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise UsageError(f"--call {name}: the arguments are a JSON object, not {arguments}")
    return name, decoded


def _revision(name: str) -> Revision:
    if name not in BY_NAME:
        raise UsageError(f"there is no revision {name!r}: {', '.join(BY_NAME)}")
    return BY_NAME[name]


class _Sited:
    """Where the target may be, and what has to be let go of afterwards."""

    def __init__(self, talk: Talk) -> None:
        self._target = talk.target
        self._requests: Any = None

    def sites(self) -> Iterator[Any]:
        """The ways to it, in the order in which they are tried."""
        where, headers = self._target.where, dict(self._target.headers)
        if not isinstance(where, str) or not where.startswith(("http://", "https://")):
            from isthmus.client.targets import resolve

            yield LineSite(resolve(where, headers=headers or None, connect_timeout=10.0).dial)
            return
        from isthmus.transports.http.requests import connect
        from isthmus.transports.http.sse_client import HttpSseChannel

        self._requests = connect(connect_timeout=10.0)
        yield WebSite(where, self._requests, headers, loopback=_is_near(where))

        async def dial() -> HttpSseChannel:
            channel = HttpSseChannel(where, headers=headers)
            await channel.open()
            return channel

        yield LineSite(dial)  # the endpoint of 2024-11-05, which answers no POST

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._requests is not None:
            await self._requests.close()


def _is_near(url: str) -> bool:
    """Whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _print(report: Report, label: str) -> None:
    if not report.spoken:
        return
    print(f"{label} speaks {', '.join(report.spoken)}")
    print(f"{report.asked} questions asked, {report.said} messages looked at")
    if report.broken:
        print(f"not everything could be asked in {', '.join(report.broken)}: the server was gone")
    if report.findings or not report.broken:
        print_findings(report.findings)
