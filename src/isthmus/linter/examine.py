"""Examining whatever a client may be pointed at: which way leads there, and what is asked there."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

from isthmus.client.targets import ClientTarget, entry, resolve
from isthmus.linter.doctor import Calls, Doctor, LineSite, Report, Site, WebSite
from isthmus.revisions import REVISIONS, Revision
from isthmus.transports.http.address import Http
from isthmus.transports.http.requests import connect

if TYPE_CHECKING:
    from isthmus.transports.http.bearer import Authorization

__all__ = ["examine"]

CONNECT = 10.0
"""Seconds until a connection counts as failed."""


async def examine(
    target: ClientTarget,
    *,
    headers: Mapping[str, str] | None = None,
    revisions: Sequence[Revision] = REVISIONS,
    timeout: float = 5.0,
    rules: Collection[str] | None = None,
    calls: Calls | None = None,
    call_read_only: bool = False,
    auth: "Authorization | None" = None,
) -> Report:
    """Visit a server in every revision, and say what it does wrong.

    Args:
        target: whatever a :class:`~isthmus.client.client.Client` may be pointed at.
        headers: what every request over HTTP carries.
        revisions: those to speak.
        timeout: seconds to wait for an answer.
        rules: the ids of the rules to apply; all by default.
        calls: tools to call, and their arguments. No other tool is called.
        call_read_only: call every tool that says it is read-only and needs no arguments, too.
        auth: gets the tokens that a server over HTTP wants.

    Raises:
        UsageError: the target is of no known kind.
        AuthError: the server wants authorization, and none was to be had.
    """
    async with _sites(target, headers, auth) as sites:
        for site in sites:
            doctor = Doctor(
                site, timeout=timeout, rules=rules, calls=calls, call_read_only=call_read_only
            )
            report = await doctor.examine(revisions)
            if report.spoken:
                break
    return report


@asynccontextmanager
async def _sites(
    target: ClientTarget,
    headers: Mapping[str, str] | None,
    auth: "Authorization | None",
) -> AsyncIterator[list[Site]]:
    """The ways to a server, in the order in which they are tried."""
    if isinstance(target, Mapping):
        target, headers = entry(target, headers)
    found = resolve(target, headers=headers, connect_timeout=CONNECT, auth=auth)
    if not found.http or found.sse is None:
        yield [LineSite(found.dial)]
        return
    at = target if isinstance(target, Http) else Http(found.name)
    requests = connect(connect_timeout=CONNECT, tls=at.tls, proxy=at.proxy)
    if auth is not None:
        requests = auth.over(at.url, requests)
    try:
        carried = {**at.headers, **(headers or {})}
        web = WebSite(at.url, requests, carried, loopback=_is_near(at.url))
        yield [web, LineSite(found.sse)]  # the latter is of 2024-11-05, and answers no POST
    finally:
        await requests.close()


def _is_near(url: str) -> bool:
    """Whether a URL leads to this machine."""
    from urllib.parse import urlsplit  # slow to import, and most targets are no URL

    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
