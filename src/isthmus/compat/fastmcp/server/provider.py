"""Provider: the components of a server written for fastmcp, as isthmus' server offers them."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw

from isthmus.compat.fastmcp.exceptions import (
    OWN_ERRORS,
    DisabledError,
    FastMCPError,
    NotFoundError,
    ValidationError,
)
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.server.context import Context
from isthmus.compat.fastmcp.server.registry import LIST_METHODS, Kind
from isthmus.compat.fastmcp.utilities.json_schema import dereference_refs
from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import CapabilityMissing, Refuse
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.rounds import run_once, run_rounds
from isthmus.server.composition.provider import Changed
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    CallToolResult,
    PromptsCapability,
    ResourcesCapability,
    ServerCapabilities,
    TextContent,
    ToolsCapability,
)
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.compat.fastmcp.server.server import FastMCP

logger = logging.getLogger("fastmcp.server")

KINDS_BY_METHOD: dict[str, Kind] = {method: kind for kind, method in LIST_METHODS.items()}

CAPABILITIES = ServerCapabilities(
    tools=ToolsCapability(list_changed=True),
    resources=ResourcesCapability(list_changed=True, subscribe=False),
    prompts=PromptsCapability(list_changed=True),
)


class SessionIds:
    """Ids of connections, made when they are first asked for."""

    def __init__(self) -> None:
        self._ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def find_id(self, link: Any) -> str:
        """The id of a connection."""
        try:
            return self._ids.setdefault(link, str(uuid.uuid4()))
        except TypeError:  # it can be no key: it is gone with its request
            return str(uuid.uuid4())


class FacadeProvider:
    """The components of a façade, as a provider of isthmus' server.

    Args:
        facade: the server written for fastmcp.
        settings: those of isthmus' server.

    Attributes:
        label: the provider as messages call it.
        tasks: none of its own: those of isthmus' server are used.
    """

    tasks = None

    def __init__(self, facade: "FastMCP", settings: SharedSettings) -> None:
        self.label = f"server {facade.name!r}"
        self._facade = facade
        self._settings = settings

    async def capabilities(self, inbound: Inbound) -> ServerCapabilities:  # noqa: ARG002 - the protocol of providers
        """The capabilities, which fastmcp declares whatever there is."""
        return CAPABILITIES

    def serves(self, method: str, key: str) -> bool:  # noqa: ARG002 - the protocol of providers
        """Whether it may be its: everything that nobody else has, so that unknown names are answered as fastmcp does."""
        return method != "completion/complete"

    def guesses(self, method: str, key: str) -> bool:  # noqa: ARG002 - the protocol of providers
        """Yes: any other provider goes first."""
        return True

    async def list(self, method: str, inbound: Inbound) -> Sequence[Wire]:
        """All components of a kind, through the middleware."""
        kind, facade = KINDS_BY_METHOD[method], self._facade

        async def run(own: Any) -> list[Wire]:
            async with Context(facade, own, inbound.link):
                try:
                    found = await facade.list_components(kind)
                except OWN_ERRORS:
                    raise
                except Exception as error:
                    raise make_refusal(facade, method, error) from error
                shown = map(inline_schemas, found) if facade.options.inlines_schemas else found
                return [one.to_wire(one.identifier) for one in shown]

        listed: list[Wire] = await run_once(run, inbound, self._settings)
        return listed

    def serve(self, method: str, params: Any, inbound: Inbound) -> Awaitable[Wire | Raw]:
        """Serve a request."""
        match method:
            case "tools/call":
                return self._serve(self._call_tool, params, params.name, inbound)
            case "prompts/get":
                return self._serve(self._get_prompt, params, params.name, inbound)
            case _:
                return self._serve(self._read_resource, params, params.uri, inbound)

    async def _serve(
        self, serve: Callable[[Any], Awaitable[Wire]], params: Any, target: str, inbound: Inbound
    ) -> Wire | Raw:
        facade = self._facade

        async def run(own: Any, task_id: str | None = None) -> Wire:
            async with Context(facade, own, inbound.link, task_id):
                try:
                    return await serve(params)
                except OWN_ERRORS:
                    raise
                except Exception as error:
                    if serve == self._call_tool and not FLAVOUR.refuses_calls:
                        return make_error_result(str(error))
                    raise make_refusal(facade, inbound.method, error) from error

        if inbound.method == "tools/call" and facade.tasks is not None:
            from isthmus.compat.fastmcp.server.task_calls import TaskCalls  # few have any

            answer = await TaskCalls(facade, facade.tasks, self._settings).begin(
                run, params, inbound
            )
            if answer is not None:
                return answer
        try:
            result: Wire = await run_rounds(run, inbound, params, target, self._settings)
        except CapabilityMissing as lack:  # up to 2025-11-25
            if serve == self._call_tool:
                return make_error_result(f"Error calling tool {target!r}: {lack}")
            raise Refuse(-32602, str(lack)) from lack
        return result

    async def _call_tool(self, params: Any) -> Wire:
        arguments = {} if params.arguments is UNSET else msgspec.json.decode(params.arguments)
        try:
            result = await self._facade.call_tool(params.name, arguments or {})
        except (NotFoundError, DisabledError):
            return make_error_result(name_unknown("tool", params.name))
        except FastMCPError as error:
            return make_error_result(str(error))
        written: Wire = result.to_wire()
        return written

    async def _read_resource(self, params: Any) -> Wire:
        uri = spell_url(params.uri) if FLAVOUR.spells_urls else params.uri
        try:
            result = await self._facade.read_resource(uri)
        except (NotFoundError, DisabledError) as error:
            text = FLAVOUR.missing_text.format(uri=uri)
            raise Refuse(FLAVOUR.missing_code, text, {"uri": params.uri}) from error
        except FastMCPError as error:
            raise Refuse(FLAVOUR.failed_code, str(error)) from error
        written: Wire = result.to_wire(uri)
        return written

    async def _get_prompt(self, params: Any) -> Wire:
        arguments = None if params.arguments is UNSET else dict(params.arguments)
        try:
            result = await self._facade.render_prompt(params.name, arguments)
        except (NotFoundError, DisabledError) as error:
            raise Refuse(FLAVOUR.unknown_code, name_unknown("prompt", params.name)) from error
        except ValidationError as error:
            raise Refuse(-32602, str(error)) from error
        except FastMCPError as error:
            raise Refuse(FLAVOUR.failed_code, str(error)) from error
        written: Wire = result.to_wire()
        return written

    def needs(self, method: str, params: Any, principal: Principal | None) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None."""
        return NO_SCOPES

    def fixed_scopes(self, method: str, key: str) -> frozenset[str]:  # noqa: ARG002 - the protocol of providers
        """None."""
        return NO_SCOPES

    def known_scopes(self) -> frozenset[str]:
        """None."""
        return NO_SCOPES

    def attach(self, changed: Changed) -> None:
        """Tell of lists that change from now on."""
        self._facade.registry.on_change = lambda method: changed((method, None))

    async def open(self) -> None:
        """Begin: the façade's lifespan is that of isthmus' server."""

    async def close(self) -> None:
        """End: the façade's lifespan is that of isthmus' server."""


def make_refusal(facade: "FastMCP", method: str, error: Exception) -> Exception:
    """The error of JSON-RPC for what middleware raised; the exception itself where details are masked."""
    from isthmus.compat.exceptions import MCPError  # slow to import, and few requests fail

    if isinstance(error, MCPError):
        data = error.data
        return Refuse(error.code, error.message, msgspec.UNSET if data is None else data)
    logger.error("Error in %s", method, exc_info=error)
    masked = facade.options.mask_error_details and not isinstance(error, FastMCPError)
    return error if masked else Refuse(FLAVOUR.failed_code, str(error))


def inline_schemas(component: Any) -> Any:
    """A component whose schemas have their definitions where they are referred to."""
    changes = {
        name: dereference_refs(schema)
        for name in ("parameters", "output_schema")
        if isinstance(schema := getattr(component, name, None), dict) and "$defs" in schema
    }
    return component.model_copy(update=changes) if changes else component


def spell_url(uri: str) -> str:
    """A URI as a URL is spelt: its scheme in lower case, other than ASCII as percent escapes.

    Raises:
        Refuse: it is none.
    """
    from pydantic import AnyUrl
    from pydantic import ValidationError as InvalidUrl

    try:
        return str(AnyUrl(uri))
    except InvalidUrl as error:
        raise Refuse(-32602, "Invalid request parameters", "") from error


def name_unknown(kind: str, name: str) -> str:
    """Say that there is no tool or prompt of a name."""
    return f"Unknown {kind}: {name!r}" if FLAVOUR.quotes_unknown else f"Unknown {kind}: {name}"


def make_error_result(text: str) -> CallToolResult:
    """A result that says what went wrong, for the model."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
