"""Options of ``FastMCP(…)``: those of 4.x, those of 2.x and 3.x that still matter, and what is refused."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from isthmus.compat.fastmcp.exceptions import ResourceSecurityError
from isthmus.compat.fastmcp.flavour import FLAVOUR, LIBRARY_VERSION
from isthmus.compat.fastmcp.resources.template import INHERITED
from isthmus.compat.fastmcp.server.registry import Duplicates
from isthmus.errors import UsageError
from isthmus.wire import Icon

logger = logging.getLogger("fastmcp.server")

GUIDE = "docs/guide/from-fastmcp.md"

LOGIN_VARIABLE = "FASTMCP_SERVER_AUTH"  # by which 2.x makes a login without a word in the program

RENAMED_OPTIONS = {
    "on_duplicate_tools": "on_duplicate",
    "on_duplicate_resources": "on_duplicate",
    "on_duplicate_prompts": "on_duplicate",
}

# Options that cannot be had, by what isthmus has in their place
REFUSED_OPTIONS = {
    "transforms": "Server.include",
    "tool_transformations": "Server.include",
    "session_state_store": "Server(store=…)",
    "auth_server_provider": "Server(auth=ResourceAuth(…))",
}


@dataclass
class ServerOptions:
    """Options of ``FastMCP(…)``.

    Attributes:
        version, website_url, icons: as the server lists itself.
        auth: checks tokens over HTTP; one of :mod:`isthmus.compat.fastmcp.server.auth`.
        middleware: layers around messages.
        lifespan: called with the server, gives an async context manager.
        tools: tools and functions to offer.
        providers: providers of further components.
        on_duplicate: what is done about a second component of a name.
        mask_error_details: unexpected exceptions are told without their text.
        strict_input_validation: ``"5"`` is no number.
        list_page_size: the most items in a page of a list.
        dereference_schemas: definitions stand where they are referred to.
        include_tags, exclude_tags: what is offered (2.x).
        tool_serializer: writes what tools return as text (2.x).
        tasks: tools run as tasks, where they do not say otherwise.
        host, port, path: where it is served over HTTP, if ``run`` does not say (2.x).
    """

    version: Any = None
    website_url: str | None = None
    icons: Sequence[Any] | None = None
    auth: Any = None
    middleware: Sequence[Any] = ()
    lifespan: Any = None
    tools: Sequence[Any] = ()
    providers: Sequence[Any] = ()
    on_duplicate: Duplicates | None = None
    mask_error_details: bool | None = None
    strict_input_validation: bool = False
    list_page_size: int | None = None
    dereference_schemas: bool = True
    include_tags: Any = None
    exclude_tags: Any = None
    tool_serializer: Any = None
    tasks: bool = False
    resource_security: Any = INHERITED
    host: str | None = None
    port: int | None = None
    json_response: bool | None = None
    stateless_http: bool | None = None
    streamable_http_path: str | None = None
    sse_path: str | None = None
    ignored: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.middleware, self.tools = self.middleware or (), self.tools or ()
        self.providers = self.providers or ()
        self.strict_input_validation = bool(self.strict_input_validation)

    @property
    def inlines_schemas(self) -> bool:
        """Whether definitions stand where they are referred to."""
        return self.dereference_schemas and FLAVOUR.inlines_schemas

    @property
    def duplicates(self) -> Duplicates:
        """What is done about a second component of a name."""
        return self.on_duplicate or "warn"

    def make_server_settings(self) -> dict[str, Any]:
        """The arguments of isthmus' server."""
        settings: dict[str, Any] = {
            "version": LIBRARY_VERSION if self.version is None else str(self.version),
            "website_url": self.website_url,
            "page_size": self.list_page_size,
        }
        if self.icons:
            from isthmus.compat.fastmcp.components.component import dump_model

            settings["icons"] = msgspec.convert([dump_model(one) for one in self.icons], list[Icon])
        if self.auth is not None:
            from isthmus.compat.fastmcp.server.auth.auth import DEFAULT_PATH, make_authorizer

            settings["auth"] = make_authorizer(self.auth, self.streamable_http_path or DEFAULT_PATH)
        return settings

    def complete_tool(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a tool with what the server says for all of them."""
        if self.tool_serializer is not None:
            options.setdefault("serializer", self.tool_serializer)
        if self.tasks and options.get("task") is None:
            options["task"] = True
        return options

    def describe(self, what: str, error: Exception) -> str:
        """What a client is told of an unexpected exception."""
        return what if self.mask_error_details else f"{what}: {error}"

    def check_values(self, uri: str, security: Any, values: dict[str, Any]) -> None:
        """See that the values of a template lead out of no folder.

        Raises:
            ResourceSecurityError: one does.
        """
        policy = self.resource_security if security == INHERITED else security
        if policy is None or not FLAVOUR.screens_paths:
            return
        for value in values.values():
            listed = value if isinstance(value, list) else [value]
            if any(isinstance(one, str) and _leads_out(one) for one in listed):
                raise ResourceSecurityError(f"Unknown resource: {uri!r}")


def _leads_out(value: str) -> bool:
    parts = value.replace("\\", "/").split("/")
    absolute = value.startswith(("/", "\\")) or (
        len(value) > 1 and value[1] == ":" and value[0].isalpha()
    )
    return ".." in parts or absolute or "\0" in value


def check_env_file() -> None:
    """See that no ``.env``, which 2.x reads, has settings of a login that are not in the environment.

    Raises:
        UsageError: it has one, which would be left out here.
    """
    try:
        with open(".env", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib costs start-up time
            lines = file.read().splitlines()
    except OSError:
        return  # most programs have none
    for line in lines:
        name = line.partition("=")[0].strip().removeprefix("export ").strip().upper()
        if name.startswith(LOGIN_VARIABLE) and name not in os.environ:
            raise UsageError(
                f"{name} stands in .env, which isthmus.compat.fastmcp does not read: put it into the environment, or take "
                f"it out; see {GUIDE}"
            )


def read_options(options: dict[str, Any]) -> ServerOptions:
    """Read the options of ``FastMCP(…)``.

    Raises:
        UsageError: one cannot be had here, or the environment asks for a login; says what isthmus has.
        TypeError: there is none of this name.
    """
    known = {one.name for one in fields(ServerOptions)} - {"ignored"}
    if "auth" not in options and os.environ.get(LOGIN_VARIABLE):
        raise UsageError(
            f"{LOGIN_VARIABLE} asks for a login that isthmus.compat.fastmcp does not make by itself: pass auth= to "
            f"FastMCP(…); see {GUIDE}"
        )
    check_env_file()
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in REFUSED_OPTIONS and value:
            raise UsageError(
                f"FastMCP({name}=…) is not offered by isthmus.compat.fastmcp: use {REFUSED_OPTIONS[name]} of "
                f"isthmus; see {GUIDE}"
            )
        renamed = RENAMED_OPTIONS.get(name, name)
        if renamed in known and value is not None:
            given[renamed] = value
        elif renamed not in known and name not in IGNORED_OPTIONS | REFUSED_OPTIONS.keys():
            raise TypeError(f"FastMCP() got unexpected keyword argument(s): {name!r}")
    return ServerOptions(**given)


# Options whose effect isthmus has without them, or not at all; they are taken and do nothing
IGNORED_OPTIONS = {
    *("cache_ttl", "cache_scope", "client_log_level", "experimental_capabilities"),
    *("request_state_security", "message_path", "debug", "log_level", "sampling_handler"),
    *(
        "sampling_handler_behavior",
        "cache_expiration_seconds",
        "dependencies",
        "include_fastmcp_meta",
    ),
    "resource_prefix_format",
}
