"""``Context`` of ``MCPServer`` and ``FastMCP``: what a tool, a prompt or a resource is given of its request."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from isthmus.compat.outputs import read_responses
from isthmus.compat.session import ForeignRequest, ServerSession

if TYPE_CHECKING:
    from isthmus.compat.mcp.mcpserver import MCPServer


T = TypeVar("T")


class AcceptedElicitation(BaseModel, Generic[T]):
    """The user filled in the form."""

    action: str = "accept"
    data: T


class DeclinedElicitation(BaseModel):
    """The user said no."""

    action: str = "decline"


class CancelledElicitation(BaseModel):
    """The user did not answer."""

    action: str = "cancel"


class AcceptedUrlElicitation(BaseModel):
    """The user agreed to visit the page."""

    action: str = "accept"


ElicitationResult = AcceptedElicitation[T] | DeclinedElicitation | CancelledElicitation
"""The answer to ``Context.elicit``: accepted with its data, declined or cancelled."""

UNANSWERED = {"decline": DeclinedElicitation, "cancel": CancelledElicitation}


class FormSchema(GenerateJsonSchema):
    """Generator of the schemas of forms: a blank that may be None is one that may stay empty."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        """The schema without null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """The schema without a default of None."""
        made = super().default_schema(schema)
        if made.get("default") is None:
            made.pop("default", None)
        return made


class Context:
    """What a function of a server is given of the request that it serves.

    Args:
        request: the request; None outside of one.
        server: the server.
        **given: ``mcp_server`` or ``fastmcp``, and a ``request_context`` of a program's own, as tests make it.
    """

    def __init__(
        self, request: ForeignRequest | None = None, server: "MCPServer | None" = None, **given: Any
    ) -> None:
        self._request = request
        self._server = server or given.get("mcp_server") or given.get("fastmcp")
        self._own_context = given.get("request_context")

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls

    @property
    def _served(self) -> ForeignRequest:
        if self._request is None:
            raise ValueError("Context is not available outside of a request")
        return self._request

    @property
    def mcp_server(self) -> Any:
        """The server."""
        return self._server

    fastmcp = mcp_server

    @property
    def request_context(self) -> Any:
        """The request as low-level handlers get it."""
        return self._served.make_context() if self._own_context is None else self._own_context

    @property
    def session(self) -> ServerSession:
        """The session of the client."""
        return self._served.session

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return str(self._served.inbound.id)

    @property
    def client_id(self) -> str | None:
        """The ``client_id`` of the request's ``_meta``, or None."""
        client_id: str | None = self._served.meta.get("client_id")
        return client_id

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the HTTP request; None over stdio."""
        return self._served.inbound.origin.headers or None

    @property
    def protocol_version(self) -> str | None:
        """The revision of the request."""
        return None if self._request is None else self._request.inbound.caller.revision.name

    @property
    def client_capabilities(self) -> Any:
        """What the client can do."""
        return self.session.client_capabilities

    @property
    def input_responses(self) -> Any:
        """The answers to questions that the round before returned; None in the first."""
        context = self._served.context
        return None if context is None else read_responses(context.input_responses)

    # Reports

    async def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the request has come, if the client wants to know."""
        await self.session.report_progress(progress, total, message)

    async def log(
        self,
        level: Any,
        data: Any = None,
        *,
        message: Any = None,
        logger_name: str | None = None,
        **extra: Any,
    ) -> None:
        """Send a log message, if the client wants its level."""
        said = message if data is None else data
        if extra:
            said = {"message": said, **extra}
        await self.session.send_log_message(level, said, logger_name)

    async def debug(self, data: Any, **given: Any) -> None:
        """Log what helps to find a fault."""
        await self.log("debug", data, **given)

    async def info(self, data: Any, **given: Any) -> None:
        """Log what happens."""
        await self.log("info", data, **given)

    async def warning(self, data: Any, **given: Any) -> None:
        """Log what may be wrong."""
        await self.log("warning", data, **given)

    async def error(self, data: Any, **given: Any) -> None:
        """Log what is wrong."""
        await self.log("error", data, **given)

    async def notify_tools_changed(self) -> None:
        """Tell everybody that the list of tools changed."""
        await self.session.send_tool_list_changed()

    async def notify_prompts_changed(self) -> None:
        """Tell everybody that the list of prompts changed."""
        await self.session.send_prompt_list_changed()

    async def notify_resources_changed(self) -> None:
        """Tell everybody that the list of resources changed."""
        await self.session.send_resource_list_changed()

    async def notify_resource_updated(self, uri: Any) -> None:
        """Tell everybody who subscribed to a resource that it changed."""
        await self.session.send_resource_updated(uri)

    # Questions, and the server's own resources

    async def read_resource(self, uri: Any) -> Sequence[Any]:
        """Read a resource of the server."""
        if self._server is None:
            raise ValueError("Context is not available outside of a request")
        contents: Sequence[Any] = await self._server.read_resource(uri, self)
        return contents

    async def elicit(self, message: str, schema: type[BaseModel]) -> Any:
        """Ask the user to fill in a form.

        Raises:
            ValueError: what the client sent does not fit the form.
        """
        form = schema.model_json_schema(schema_generator=FormSchema)
        answer = await self.session.elicit_form(message, form)
        if answer.action != "accept":
            return UNANSWERED[answer.action]()
        if answer.content is None:
            raise ValueError("Received an accepted elicitation with no content")
        try:
            return AcceptedElicitation(data=schema.model_validate(answer.content))
        except ValidationError as error:
            raise ValueError(
                "Received an accepted elicitation whose content does not match the requested schema"
            ) from error

    async def elicit_url(self, message: str, url: str, elicitation_id: str) -> Any:
        """Ask the user to visit a page."""
        answer = await self.session.elicit_url(message, url, elicitation_id)
        return UNANSWERED.get(answer.action, AcceptedUrlElicitation)()

    async def close_sse_stream(self) -> None:
        """Let go of the connection that the client waits on; the call goes on."""
        context = self._served.context
        if context is not None:
            await context.close_stream()

    async def close_standalone_sse_stream(self) -> None:
        """Nothing: isthmus keeps the stream of a session's own messages."""
