"""Lifecycle: capabilities, the legacy handshake (``initialize``), and modern discovery.

A capability that is absent is one that a side does not have.
"""

from typing import Any

from isthmus.wire.identity import Implementation
from isthmus.wire.results import CacheableResult
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class RootsCapability(Wire, frozen=True, kw_only=True):
    """The client can list roots; up to 2025-11-25 it may also tell when they change.

    Attributes:
        list_changed: notifications tell when the list changes.
    """

    list_changed: bool | UnsetType = UNSET


class SamplingCapability(Wire, frozen=True, kw_only=True):
    """The client can have a model write a message, maybe with context and with tools.

    Attributes:
        context: present, as an empty object, where the context of servers can be included.
        tools: present, as an empty object, where the model may ask for tools (since 2025-11-25).
    """

    context: dict[str, Any] | UnsetType = UNSET
    tools: dict[str, Any] | UnsetType = UNSET


class ElicitationCapability(Wire, frozen=True, kw_only=True):
    """The client can ask its user; naming no mode means forms (2025-11-25 client/elicitation).

    Attributes:
        form: present: the user can fill in forms.
        url: present: the user can open pages (since 2025-11-25).
    """

    form: dict[str, Any] | UnsetType = UNSET
    url: dict[str, Any] | UnsetType = UNSET


class ElicitationTasks(Wire, frozen=True, kw_only=True):
    """Elicitation requests that may run as tasks (2025-11-25).

    Attributes:
        create: present: ``elicitation/create`` may.
    """

    create: dict[str, Any] | UnsetType = UNSET


class SamplingTasks(Wire, frozen=True, kw_only=True):
    """Sampling requests that may run as tasks (2025-11-25).

    Attributes:
        create_message: present: ``sampling/createMessage`` may.
    """

    create_message: dict[str, Any] | UnsetType = UNSET


class ClientTaskRequests(Wire, frozen=True, kw_only=True):
    """The requests to a client that may run as tasks (2025-11-25).

    Attributes:
        elicitation: elicitation requests that may.
        sampling: sampling requests that may.
    """

    elicitation: ElicitationTasks | UnsetType = UNSET
    sampling: SamplingTasks | UnsetType = UNSET


class ClientTasksCapability(Wire, frozen=True, kw_only=True):
    """The client can run what it is asked as tasks (2025-11-25).

    Attributes:
        cancel: present: ``tasks/cancel`` is served.
        list: present: ``tasks/list`` is served.
        requests: the requests that may run as tasks.
    """

    cancel: dict[str, Any] | UnsetType = UNSET
    list: dict[str, Any] | UnsetType = UNSET
    requests: ClientTaskRequests | UnsetType = UNSET


class ClientCapabilities(Wire, frozen=True, kw_only=True):
    """The capabilities of a client: what it can do for a server.

    Attributes:
        roots: it can list roots.
        sampling: it can have a model write a message.
        elicitation: it can ask its user.
        tasks: requests may run as tasks (2025-11-25).
        extensions: settings of extensions, by identifier.
        experimental: settings outside the specification, by name.
    """

    roots: RootsCapability | UnsetType = UNSET
    sampling: SamplingCapability | UnsetType = UNSET
    elicitation: ElicitationCapability | UnsetType = UNSET
    tasks: ClientTasksCapability | UnsetType = UNSET
    extensions: dict[str, dict[str, Any]] | UnsetType = UNSET
    experimental: dict[str, dict[str, Any]] | UnsetType = UNSET


class PromptsCapability(Wire, frozen=True, kw_only=True):
    """The server has prompts, and maybe tells when the list of them changes.

    Attributes:
        list_changed: notifications tell when the list changes.
    """

    list_changed: bool | UnsetType = UNSET


class ResourcesCapability(Wire, frozen=True, kw_only=True):
    """The server has resources, and maybe tells when the list or one of them changes.

    Attributes:
        subscribe: clients may subscribe to single resources.
        list_changed: notifications tell when the list changes.
    """

    subscribe: bool | UnsetType = UNSET
    list_changed: bool | UnsetType = UNSET


class ToolsCapability(Wire, frozen=True, kw_only=True):
    """The server has tools, and maybe tells when the list of them changes.

    Attributes:
        list_changed: notifications tell when the list changes.
    """

    list_changed: bool | UnsetType = UNSET


class ToolTasks(Wire, frozen=True, kw_only=True):
    """Tool requests that may run as tasks (2025-11-25).

    Attributes:
        call: present: ``tools/call`` may.
    """

    call: dict[str, Any] | UnsetType = UNSET


class ServerTaskRequests(Wire, frozen=True, kw_only=True):
    """The requests to a server that may run as tasks (2025-11-25).

    Attributes:
        tools: tool requests that may.
    """

    tools: ToolTasks | UnsetType = UNSET


class ServerTasksCapability(Wire, frozen=True, kw_only=True):
    """The server can run what it is asked as tasks (2025-11-25).

    Attributes:
        cancel: present: ``tasks/cancel`` is served.
        list: present: ``tasks/list`` is served.
        requests: the requests that may run as tasks.
    """

    cancel: dict[str, Any] | UnsetType = UNSET
    list: dict[str, Any] | UnsetType = UNSET
    requests: ServerTaskRequests | UnsetType = UNSET


class ServerCapabilities(Wire, frozen=True, kw_only=True):
    """The capabilities of a server: what it offers.

    Attributes:
        tools: it has tools.
        resources: it has resources.
        prompts: it has prompts.
        completions: it completes arguments (since 2025-03-26).
        logging: it sends log messages.
        tasks: requests may run as tasks (2025-11-25).
        extensions: settings of extensions, by identifier.
        experimental: settings outside the specification, by name.
    """

    tools: ToolsCapability | UnsetType = UNSET
    resources: ResourcesCapability | UnsetType = UNSET
    prompts: PromptsCapability | UnsetType = UNSET
    completions: dict[str, Any] | UnsetType = UNSET
    logging: dict[str, Any] | UnsetType = UNSET
    tasks: ServerTasksCapability | UnsetType = UNSET
    extensions: dict[str, dict[str, Any]] | UnsetType = UNSET
    experimental: dict[str, dict[str, Any]] | UnsetType = UNSET


class InitializeParams(Wire, frozen=True, kw_only=True):
    """``initialize``: open a session (up to 2025-11-25).

    Attributes:
        protocol_version: the newest revision that the client speaks.
        capabilities: what the client can do.
        client_info: name and version of the client.
        meta: further members, in ``_meta``.
    """

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation
    meta: Meta | UnsetType = UNSET


class InitializeResult(Wire, frozen=True, kw_only=True):
    """The server's half of the handshake (up to 2025-11-25).

    Attributes:
        protocol_version: the revision the session will use; a client that cannot speak it
            disconnects.
        capabilities: what the server offers.
        server_info: who it says it is.
        instructions: how to use it, for a model to read.
        meta: anything else.
    """

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class InitializedParams(Wire, frozen=True, kw_only=True):
    """``notifications/initialized``: the handshake is over (up to 2025-11-25).

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class DiscoverParams(Wire, frozen=True, kw_only=True):
    """``server/discover``: ask for revisions and capabilities (since 2026-07-28).

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """The revisions a server speaks, and what it offers (2026-07-28 server/discover).

    Attributes:
        supported_versions: the revisions.
        capabilities: what the server offers.
        instructions: how to use it, for a model to read.
    """

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | UnsetType = UNSET


class PingParams(Wire, frozen=True, kw_only=True):
    """``ping``: ask whether the other side answers (up to 2025-11-25).

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET
