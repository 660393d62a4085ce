"""Steps on the way to a server: address, connection, TLS, opening, era, authorization; where it ends and why.

Quicker than an examination of everything that a server says: what a person wants to know first where a server
does not answer.
"""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from isthmus.auth.net.network import Network, desktop
from isthmus.auth.net.urls import UrlParts, split_url
from isthmus.client.client import Client
from isthmus.errors import IsthmusError
from isthmus.linter.auth.doctor import AuthDoctor
from isthmus.transports.http.client.address import Http

StepVerdict: TypeAlias = Literal["ok", "warning", "problem", "skipped"]

STEP_TIMEOUT_S = 8.0
REACH_TIMEOUT_S = 45.0  # of all steps together
CERTIFICATE_WARNING_DAYS = 14
HTTP_STATUS = re.compile(r"\bHTTP (\d{3})\b")  # as errors of our client spell it
REACH_STEPS = ("address", "connection", "tls", "opening", "era", "authorization")


class ReachStep(Struct, frozen=True, kw_only=True):
    """One step on the way to a server.

    Attributes:
        name: one of ``REACH_STEPS``; those of authorization go on with the hop.
        verdict: what came of it.
        found: what was found, a sentence each.
        faults: what is wrong, a sentence each.
        mend: how to mend it, for each fault.
        seconds: how long it took.
    """

    name: str
    verdict: StepVerdict = "ok"
    found: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    mend: tuple[str, ...] = ()
    seconds: float = 0.0


class StepFailed(Exception):
    """The way ends here; the message says why, and ``mend`` what to do."""

    def __init__(self, why: str, mend: str = "") -> None:
        super().__init__(why)
        self.mend = mend


class ServerReach:
    """Walks the way to one server over HTTP.

    Args:
        url: the MCP endpoint.
        clock: says the seconds since the epoch.
        tls: how certificates are checked; None trusts what the system trusts.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url = url
        self._clock = clock
        self._tls = tls
        self._parts: UrlParts | None = None
        self._wants_login = False
        self._revision = ""

    async def walk(self) -> AsyncIterator[ReachStep]:
        """Go step by step as far as there is a way; what cannot be reached is told as skipped."""
        steps: dict[str, Any] = {
            "address": self._find_address,
            "connection": self._connect,
            "tls": self._check_certificate,
            "opening": self._open,
            "era": self._find_era,
        }
        failed = False
        for name, take in steps.items():
            if failed:
                yield ReachStep(name=name, verdict="skipped")
                continue
            step = await self._take(name, take)
            failed = step.verdict == "problem"
            yield step
        if failed and not self._wants_login:
            yield ReachStep(name="authorization", verdict="skipped")
            return
        async for step in self._walk_authorization():
            yield step

    async def _take(self, name: str, take: Any) -> ReachStep:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(STEP_TIMEOUT_S):
                step: ReachStep = await take()
        except StepFailed as why:
            mend = (why.mend,) if why.mend else ()
            step = ReachStep(name=name, verdict="problem", faults=(str(why),), mend=mend)
        except TimeoutError:
            why_not = f"nothing came within {STEP_TIMEOUT_S:.0f} s"
            step = ReachStep(name=name, verdict="problem", faults=(why_not,))
        return ReachStep(
            name=name,
            verdict=step.verdict,
            found=step.found,
            faults=step.faults,
            mend=step.mend,
            seconds=time.perf_counter() - begun,
        )

    # Steps

    async def _find_address(self) -> ReachStep:
        try:
            self._parts = parts = split_url(self._url)
        except ValueError as error:
            raise StepFailed(
                f"{self._url} is no address: {error}", "write it as https://host/path"
            ) from None
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(parts.host.strip("[]"), parts.port, type=1)
        except OSError as error:
            raise StepFailed(
                f"{parts.host} has no address: {error.strerror or error}",
                "check the spelling of the host, and whether this machine can look names up",
            ) from None
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        return ReachStep(name="address", found=(f"{parts.host} is {', '.join(addresses[:4])}",))

    async def _connect(self) -> ReachStep:
        parts = self._get_parts()
        try:
            _, writer = await asyncio.open_connection(parts.host.strip("[]"), parts.port)
        except OSError as error:
            raise StepFailed(
                f"nobody answers at port {parts.port}: {error.strerror or error}",
                "start the server, or mend the port of its address",
            ) from None
        peer = writer.get_extra_info("peername")
        writer.close()
        return ReachStep(name="connection", found=(f"{peer[0]} port {peer[1]} answers",))

    async def _check_certificate(self) -> ReachStep:
        parts = self._get_parts()
        if parts.scheme not in {"https", "wss"}:
            return ReachStep(name="tls", verdict="skipped", found=("plain http: nothing to check",))
        context = self._tls or ssl.create_default_context()
        try:
            _, writer = await asyncio.open_connection(
                parts.host.strip("[]"),
                parts.port,
                ssl=context,
                server_hostname=parts.host.strip("[]"),
            )
        except ssl.SSLCertVerificationError as error:
            raise StepFailed(
                f"its certificate is not believed: {error.verify_message}",
                "give the server a certificate for this host, by an authority that this machine trusts",
            ) from None
        except (OSError, ssl.SSLError) as error:
            raise StepFailed(
                f"there is no TLS at this port: {error}", "write http, or mend the port"
            ) from None
        spoken = writer.get_extra_info("ssl_object")
        certificate = spoken.getpeercert() or {}
        version = spoken.version()
        writer.close()
        return self._judge_certificate(certificate, str(version))

    def _judge_certificate(self, certificate: Any, version: str) -> ReachStep:
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        days = (ends - self._clock()) / 86400
        issuer = next(
            (
                value
                for group in certificate["issuer"]
                for key, value in group
                if key == "organizationName"
            ),
            "somebody unnamed",
        )
        found = (f"{version}, by {issuer}", f"good for {days:.0f} more days")
        if days > CERTIFICATE_WARNING_DAYS:
            return ReachStep(name="tls", found=found)
        return ReachStep(
            name="tls",
            verdict="warning",
            found=found,
            faults=(f"its certificate ends in {days:.0f} days",),
            mend=("have it renewed",),
        )

    async def _open(self) -> ReachStep:
        client = Client(
            Http(self._url, tls=self._tls),
            name="isthmus-doctor",
            retries=0,
            connect_timeout=STEP_TIMEOUT_S - 1,
        )
        try:
            async with client:
                self._revision = client.revision.name
                info = client.info
                said = f"{info.name} {info.version}".strip() or "a server without a name"
                return ReachStep(name="opening", found=(f"it says it is {said}",))
        except IsthmusError as error:
            status = _find_status(error)
            if status not in {401, 403}:
                mend = "check the path of the address" if status in {404, 405} else ""
                raise StepFailed(str(error), mend) from None
        self._wants_login = True
        return ReachStep(name="opening", found=(f"it answers {status}, and wants a login first",))

    async def _find_era(self) -> ReachStep:
        if not self._revision:
            return ReachStep(
                name="era", verdict="skipped", found=("it tells that to who is logged in",)
            )
        return ReachStep(name="era", found=(f"it speaks {self._revision}",))

    async def _walk_authorization(self) -> AsyncIterator[ReachStep]:
        begun = time.perf_counter()
        network = Network(desktop(self._url), tls=self._tls)
        try:
            hops = await AuthDoctor(self._url, network).examine()
        finally:
            await network.close()
        for hop in hops:
            if hop.name == "server" or hop.verdict == "skipped":
                continue
            yield ReachStep(
                name=f"authorization: {hop.name}",
                verdict=hop.verdict,
                found=tuple([hop.url, *hop.found] if hop.url else hop.found),
                faults=tuple(f"{fault.said} ({fault.clause})" for fault in hop.faults),
                mend=tuple(fault.mend for fault in hop.faults),
                seconds=time.perf_counter() - begun,
            )

    def _get_parts(self) -> UrlParts:
        if (
            self._parts is None
        ):  # pragma: no cover - the first step has set it, or the way has ended
            raise StepFailed("its address was not read")
        return self._parts


def _find_status(error: IsthmusError) -> int | None:
    """The HTTP status that a connection failed with; None where it failed by something else."""
    found = HTTP_STATUS.search(str(error))
    return int(found[1]) if found else None


async def walk_to_server(url: str, *, tls: ssl.SSLContext | None = None) -> list[ReachStep]:
    """The steps on the way to a server over HTTP, within a bounded time."""
    steps: list[ReachStep] = []
    try:
        async with asyncio.timeout(REACH_TIMEOUT_S):
            async for step in ServerReach(url, tls=tls).walk():
                steps.append(step)  # noqa: PERF401 - those before a timeout are kept
    except TimeoutError:
        why = f"it was given up after {REACH_TIMEOUT_S:.0f} s"
        steps.append(
            ReachStep(
                name=f"after {steps[-1].name if steps else 'nothing'}",
                verdict="problem",
                faults=(why,),
            )
        )
    return steps


def find_first_failure(steps: list[ReachStep]) -> ReachStep | None:
    """The first step at which something is wrong; None where nothing is."""
    return next((step for step in steps if step.verdict == "problem"), None)
