"""Instrumentation: spans and histograms for servers and clients, until they are switched off."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from isthmus.core.redaction.values import Redactor
from isthmus.errors import UsageError
from isthmus.lazy import is_installed
from isthmus.runtime.router import Router
from isthmus.telemetry.recorder import Recorder
from isthmus.telemetry.server_spans import ServerSpans

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from isthmus.client.client import Client
    from isthmus.client.connection import Connection
    from isthmus.server.server import Server


class Instrumentation:
    """Telemetry that :func:`instrument` began; :meth:`uninstrument` ends it."""

    def __init__(self) -> None:
        self._traced: WeakSet[Any] = WeakSet()  # as long as what they trace
        self._ends: list[Callable[[], None]] = []
        self._over = False

    def __repr__(self) -> str:
        return f"Instrumentation({'over' if self._over else 'at work'})"

    def keep(self, traced: Any) -> None:
        """Remove ``traced``, a layer that traces, when telemetry ends.

        Args:
            traced: the layer that traces.
        """
        self._traced.add(traced)

    def on_end(self, end: Callable[[], None]) -> None:
        """Call a function at the end.

        Args:
            end: called without arguments.
        """
        self._ends.append(end)

    @property
    def is_over(self) -> bool:
        """Whether :meth:`uninstrument` has been called."""
        return self._over

    def uninstrument(self) -> None:
        """Record nothing any more, and cost nothing; safe to call twice."""
        self._over = True
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        for one in tuple(self._traced):
            one.remove()
        self._traced.clear()


def instrument(
    server: "Server | None" = None,
    client: "Client | None" = None,
    *,
    all_clients: bool = False,
    tracer_provider: "TracerProvider | None" = None,
    meter_provider: "MeterProvider | None" = None,
    record_arguments: bool = False,
    redactor: Redactor | None = None,
) -> Instrumentation:
    """Record a span and a duration for each request of a server, or of a client.

    It may be called at any time, also while they serve. Once more replaces what was before.

    Args:
        server: whose requests get SERVER spans.
        client: whose requests get CLIENT spans; their context travels in ``_meta``.
        all_clients: the same for every client that is made from now on in this process, as those
            of ``Server.proxy``.
        tracer_provider: makes the spans; the program's own by default.
        meter_provider: makes the histograms; likewise.
        record_arguments: write arguments and results of tools and arguments of prompts, redacted,
            and 4,096 characters of each.
        redactor: takes secrets out of what is written.

    Raises:
        UsageError: there is nothing to instrument, or OpenTelemetry is not installed.
    """
    if server is None and client is None and not all_clients:
        raise UsageError("instrument() needs a server, a client or both: instrument(server)")
    if not is_installed("opentelemetry"):
        raise UsageError("telemetry needs OpenTelemetry: pip install 'isthmus[otel]'")
    recorder = Recorder(
        tracer_provider, meter_provider, record_arguments=record_arguments, redactor=redactor
    )
    begun = Instrumentation()
    if server is not None:

        def trace(router: Router) -> None:
            if not begun.is_over:
                begun.keep(ServerSpans(router, recorder))

        server.with_router(trace)
    if client is not None or all_clients:
        _trace_clients(begun, recorder, client, all_clients=all_clients)
    return begun


def _trace_clients(
    begun: Instrumentation, recorder: Recorder, client: "Client | None", *, all_clients: bool
) -> None:
    from isthmus.client.connection import CONNECTION_WATCHERS  # a server may have no client
    from isthmus.telemetry.client_spans import ClientSpans

    def trace(connection: "Connection") -> None:
        begun.keep(ClientSpans(connection, recorder))

    if client is not None:
        trace(client.connection)
    if all_clients:
        CONNECTION_WATCHERS.append(trace)
        begun.on_end(lambda: CONNECTION_WATCHERS.remove(trace))
