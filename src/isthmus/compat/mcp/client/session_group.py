"""``ClientSessionGroup`` of ``mcp`` 2.x and 1.x: sessions with several servers, and all that they offer."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from pydantic import BaseModel

from isthmus.compat import types
from isthmus.compat.exceptions import MCPError
from isthmus.compat.mcp.client.session import ClientSession
from isthmus.compat.mcp.client.stdio import StdioServerParameters, stdio_client
from isthmus.compat.mcp.client.streams import make_streams
from isthmus.transports.http.client.address import HttpSse

NameHook: TypeAlias = Callable[[str, Any], str]
"""``(name, server_info) -> name``: the name that something of a server has in its group."""

KINDS = ("prompts", "resources", "tools")


class SseServerParameters(BaseModel):
    """A server over HTTP+SSE, the transport of 2024-11-05.

    Attributes:
        url: the endpoint.
        headers: sent with every request.
        timeout, sse_read_timeout: not heeded; ``read_timeout_seconds`` of the session is.
    """

    url: str
    headers: dict[str, Any] | None = None
    timeout: Any = 5
    sse_read_timeout: Any = 300


class StreamableHttpParameters(BaseModel):
    """A server over Streamable HTTP.

    Attributes:
        url: the endpoint.
        headers: sent with every request.
        timeout, sse_read_timeout: not heeded; ``read_timeout_seconds`` of the session is.
        terminate_on_close: not heeded; the session is ended.
        max_sse_event_size: not heeded; isthmus has a limit of its own.
    """

    url: str
    headers: dict[str, Any] | None = None
    timeout: Any = 30
    sse_read_timeout: Any = 300
    terminate_on_close: bool = True
    max_sse_event_size: int | None = None


ServerParameters: TypeAlias = StdioServerParameters | SseServerParameters | StreamableHttpParameters


@dataclass
class ClientSessionParameters:
    """Arguments of the ``ClientSession`` with one server.

    Attributes:
        read_timeout_seconds: seconds, or a ``timedelta``, that a call may take.
        sampling_callback, elicitation_callback, list_roots_callback: answer the server's questions.
        logging_callback: told of log messages.
        message_handler: told of every notification.
        client_info: who the client is.
    """

    read_timeout_seconds: Any = None
    sampling_callback: Any = None
    elicitation_callback: Any = None
    list_roots_callback: Any = None
    logging_callback: Any = None
    message_handler: Any = None
    client_info: Any = None


@dataclass
class GroupMember:
    """Session in a group.

    Attributes:
        session: the session.
        found: what its server offers, by kind and by the name that it has in the group.
        stack: closes the session; None for one that the program opened.
    """

    session: Any
    found: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    stack: AsyncExitStack | None = None


class ClientSessionGroup:
    """Sessions with several servers: ``async with ClientSessionGroup() as group``.

    Args:
        exit_stack: closes the sessions; one of its own by default.
        component_name_hook: gives tools, resources and prompts the names that they have in the group.
    """

    def __init__(
        self,
        exit_stack: AsyncExitStack | None = None,
        component_name_hook: NameHook | None = None,
    ) -> None:
        self._stack = AsyncExitStack() if exit_stack is None else exit_stack
        self._owns_stack = exit_stack is None
        self._name_hook = component_name_hook
        self._members: list[GroupMember] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._owns_stack:
            await self._stack.aclose()

    @property
    def sessions(self) -> list[Any]:
        """The sessions."""
        return [one.session for one in self._members]

    @property
    def prompts(self) -> dict[str, Any]:
        """The prompts of all servers by their names in the group."""
        return self._collect("prompts")

    @property
    def resources(self) -> dict[str, Any]:
        """The resources of all servers by their names in the group."""
        return self._collect("resources")

    @property
    def tools(self) -> dict[str, Any]:
        """The tools of all servers by their names in the group."""
        return self._collect("tools")

    def _collect(self, kind: str) -> dict[str, Any]:
        return {name: one for member in self._members for name, one in member.found[kind].items()}

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: Any = None,
        progress_callback: Any = None,
        *,
        args: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Call a tool by its name in the group.

        Args:
            name: the name.
            arguments: its arguments.
            read_timeout_seconds: seconds, or a ``timedelta``, that the call may take.
            progress_callback: told of progress.
            args: the arguments, as older programs for 1.x call them.
            **options: as ``ClientSession.call_tool`` takes them.

        Raises:
            KeyError: no server of the group has it.
            MCPError: the server refused.
        """
        for member in self._members:
            tool = member.found["tools"].get(name)
            if tool is not None:
                return await member.session.call_tool(
                    tool.name,
                    arguments if args is None else args,
                    read_timeout_seconds=read_timeout_seconds,
                    progress_callback=progress_callback,
                    **options,
                )
        raise KeyError(name)

    async def connect_to_server(
        self, server_params: Any, session_params: ClientSessionParameters | None = None
    ) -> Any:
        """Open a session with a server and take over what it offers; gives the session.

        Raises:
            MCPError: it cannot be reached, or a name is there already.
        """
        stack = AsyncExitStack()
        try:
            read, write = await open_streams(server_params, stack)
            given = vars(session_params or ClientSessionParameters())
            session = await stack.enter_async_context(ClientSession(read, write, **given))
            opened = await session.initialize()
            info = getattr(opened, "serverInfo", None) or opened.server_info
            await self._take_over(GroupMember(session, stack=stack), info)
        except BaseException:
            await stack.aclose()
            raise
        await self._stack.enter_async_context(stack)
        return session

    async def connect_with_session(self, server_info: Any, session: Any) -> Any:
        """Take over what the server of an open session offers; gives the session.

        Raises:
            MCPError: a name is there already.
        """
        await self._take_over(GroupMember(session), server_info)
        return session

    async def disconnect_from_server(self, session: Any) -> None:
        """Forget what a server offers, and end its session if the group opened it.

        Raises:
            MCPError: it is none of the group's.
        """
        for member in self._members:
            if member.session is session:
                self._members.remove(member)
                if member.stack is not None:
                    await member.stack.aclose()
                return
        raise MCPError(
            types.INVALID_PARAMS, "Provided session is not managed or already disconnected."
        )

    async def _take_over(self, member: GroupMember, server_info: Any) -> None:
        session = member.session
        listings: Mapping[str, Callable[[], Awaitable[Any]]] = {
            "prompts": session.list_prompts,
            "resources": session.list_resources,
            "tools": session.list_tools,
        }
        for kind, ask in listings.items():
            try:
                listed = getattr(await ask(), kind)
            except MCPError as error:
                logging.warning("Could not fetch %s: %s", kind, error)  # noqa: LOG015 - the logger that programs listen to
                continue
            for one in listed:
                hook = self._name_hook
                name = one.name if hook is None else hook(one.name, server_info)
                member.found[kind][name] = one
        for kind in KINDS:
            known = member.found[kind].keys() & self._collect(kind).keys()
            if known:
                raise MCPError(types.INVALID_PARAMS, f"{known} already exist in group {kind}.")
        self._members.append(member)


async def open_streams(parameters: Any, stack: AsyncExitStack) -> tuple[Any, Any]:
    """The streams for the session with a server."""
    if isinstance(parameters, StdioServerParameters):
        return await stack.enter_async_context(stdio_client(parameters))
    if isinstance(parameters, SseServerParameters):
        return make_streams(HttpSse(parameters.url), parameters.headers)
    return make_streams(parameters.url, parameters.headers)
