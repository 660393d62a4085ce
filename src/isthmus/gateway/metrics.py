"""Metrics of a gateway at ``/metrics``, in the text format of Prometheus: numbers, and names of servers."""

from collections.abc import Awaitable, Callable, Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET

from isthmus.core.http.rules import Refusal
from isthmus.gateway.traffic import SECONDS_BOUNDS, GatewayTraffic
from isthmus.transports.http.probes import NO_STORE

if TYPE_CHECKING:
    from isthmus.gateway.connection_places import PlaceCounts
    from isthmus.host.host import Host
    from isthmus.transports.http.admission import Admission
    from isthmus.transports.http.origin_guard import OriginGuard
    from isthmus.transports.http.reply import Header, Receive, Scope, Send
    from isthmus.transports.http.request import Exchange

METRICS_TYPE: "Header" = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
READ_BY_GET = Refusal(405, -32600, "This path is read: send GET", UNSET, (("allow", "GET, HEAD"),))
LOCAL_ONLY = Refusal(403, -32600, "Metrics are read on the machine of the gateway, or with a token")

PREFIX = "isthmus_gateway"

Sample: TypeAlias = tuple[str, dict[str, str], float]
"""A name beyond that of its metric, labels, and the number."""


class MetricsPage:
    """The page with the metrics of a gateway.

    Who may use the gateway may read it: with a token where tokens are asked for, else on this machine.

    Args:
        render: makes the text.
    """

    def __init__(self, render: Callable[[], str]) -> None:
        self._render = render
        self._guard: OriginGuard | None = None
        self._admission: Admission | None = None

    def bind(
        self, guard: "OriginGuard", admission: "Admission | None"
    ) -> "Callable[[Exchange], Awaitable[None]]":
        """The page, with what judges Host and Origin, and what judges tokens."""
        self._guard, self._admission = guard, admission
        return self.begin

    async def begin(self, exchange: "Exchange") -> None:
        """Answer a request."""
        request = exchange.request
        # spec 2026-07-28 basic/transports/streamable-http#security-endpoint: of the endpoint, and no
        # less of what stands beside it: a page elsewhere must not reach it by another name
        refusal = None if self._guard is None else self._guard.source(request.head, request.local)
        if refusal is None and request.method not in {"GET", "HEAD"}:
            refusal = READ_BY_GET
        if refusal is None and self._admission is None and not is_loopback(request.local):
            refusal = LOCAL_ONLY
        if refusal is not None:
            await exchange.refuse(refusal)
        elif self._admission is None or await self._admission.admit(exchange):
            await exchange.serve_asgi(self._serve)

    async def _serve(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        del receive
        body = self._render().encode()
        headers = [METRICS_TYPE, NO_STORE, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )


def is_loopback(local: str) -> bool:
    """Whether a request came in on an address that only this machine has."""
    try:
        return ip_address(local.strip("[]")).is_loopback
    except ValueError:
        return False


def render_metrics(
    host: "Host", traffic: GatewayTraffic, places: "PlaceCounts", parked: int
) -> str:
    """The metrics as text.

    Args:
        host: the host, whose servers are told of.
        traffic: what was called.
        places: the connections that are not everybody's.
        parked: the number of calls whose clients have to come again with answers.
    """
    servers = {} if host._parts is None else dict(host.servers)  # noqa: SLF001 - it may not be open yet
    states: list[Sample] = [
        ("", {"server": name, "state": one.state}, 1) for name, one in servers.items()
    ]
    calls: list[Sample] = [
        ("", {"server": server, "outcome": outcome}, count)
        for (server, outcome), count in traffic.calls.items()
    ]
    metrics: tuple[tuple[str, str, str, list[Sample]], ...] = (
        ("calls_total", "counter", "Calls by server and outcome.", calls),
        ("call_seconds", "histogram", "Seconds of calls by server.", list(_list_times(traffic))),
        ("server_state", "gauge", "State of each server: 1 at the one it is in.", states),
        ("servers_broken", "gauge", "Servers whose entries cannot be used.", [("", {}, len(host.config.broken))]),
        ("connections", "gauge", "Connections of one session or principal.", [("", {}, places.taken)]),
        ("connections_in_use", "gauge", "Those of them with calls.", [("", {}, places.in_use)]),
        ("connections_evicted_total", "counter", "Those that were closed to make room.", [("", {}, places.evicted)]),
        ("connections_refused_total", "counter", "Calls that found no place for one.", [("", {}, places.refused)]),
        ("parked_calls", "gauge", "Calls that wait for answers of their clients.", [("", {}, parked)]),
    )  # fmt: skip
    lines = []
    for name, kind, text, samples in metrics:
        lines += [f"# HELP {PREFIX}_{name} {text}", f"# TYPE {PREFIX}_{name} {kind}"]
        lines += [
            f"{PREFIX}_{name}{more}{spell_labels(to)} {spell_number(number)}"
            for more, to, number in samples
        ]
    return "\n".join(lines) + "\n"


def _list_times(traffic: GatewayTraffic) -> Iterator[Sample]:
    for server, times in traffic.times.items():
        total = 0
        for bound, count in zip((*SECONDS_BOUNDS, None), times.buckets, strict=True):
            total += count
            yield (
                "_bucket",
                {"server": server, "le": "+Inf" if bound is None else f"{bound:g}"},
                total,
            )
        yield "_sum", {"server": server}, times.seconds
        yield "_count", {"server": server}, times.count


def spell_labels(labels: dict[str, Any]) -> str:
    """Labels as the format has them."""
    if not labels:
        return ""
    pairs = (f'{key}="{escape_label(str(value))}"' for key, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def spell_number(number: float) -> str:
    """A number with all its digits: a counter that is rounded would stand still."""
    return repr(number)


def escape_label(value: str) -> str:
    """The value of a label: a name of a configuration may hold anything."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
