"""Arguments of calls through a gateway: read, and held against the headers that repeat them."""

from typing import TYPE_CHECKING, Any

from msgspec import json

from isthmus.core.http.params import BadAnnotation, HeaderParam, find_header_params
from isthmus.runtime.inbound import Inbound
from isthmus.server.features.tools import check_mirrored_headers, check_object
from isthmus.server.schema.functions import check_depth
from isthmus.wire import CallToolParams, Tool

if TYPE_CHECKING:
    from isthmus.host.catalog.names import Viewer
    from isthmus.host.host import Host

MAX_KNOWN_TOOLS = 10_000


class MirroredArguments:
    """Holds the headers of calls against their arguments, as the server behind would.

    Args:
        host: knows the definitions of tools.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._known: dict[tuple[str, str], tuple[Tool, tuple[HeaderParam, ...]]] = {}

    def check(
        self, owned: tuple[str, str], viewer: "Viewer", params: CallToolParams, inbound: Inbound
    ) -> None:
        """Hold the headers of a call against its arguments.

        Args:
            owned: the server, and its own name of the tool.
            viewer: who calls.
            params: the call.
            inbound: its request.

        Raises:
            Refuse: they differ.
            Unknown: there is no such tool.
        """
        if "mcp-method" not in inbound.origin.headers:
            return  # no HTTP, or a revision that mirrors nothing
        tool = self._host.catalog.tool(*owned, viewer)
        known = self._known.get(owned)
        if known is None or known[0] is not tool:
            if len(self._known) >= MAX_KNOWN_TOOLS:
                self._known.clear()
            known = self._known[owned] = (tool, find_params(tool))
        if known[1]:
            # spec 2026-07-28 basic/transports/streamable-http#server-validation: MUST reject
            check_mirrored_headers(known[1], params, inbound)


def find_params(tool: Tool) -> tuple[HeaderParam, ...]:
    """The arguments of a tool that are mirrored; none where its definition is at fault."""
    try:
        return find_header_params(tool.input_schema)
    except BadAnnotation:
        return ()


def read_arguments(params: CallToolParams, depth: int | None) -> dict[str, Any] | None:
    """Read the arguments of a call.

    Args:
        params: the call.
        depth: the most levels of arrays and objects in its parameters; None for any number.

    Raises:
        Refuse: they are no object, or nested more deeply.
    """
    raw = params.arguments
    if not raw:
        return None
    check_object(raw)
    # they stand in the object of the parameters
    check_depth(raw, None if depth is None else depth - 1)
    arguments: dict[str, Any] | None = json.decode(raw)
    return arguments
