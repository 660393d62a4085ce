"""Options of servers, tools, resources, prompts, folders and transports."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar

from msgspec import UNSET

from isthmus.core.encoding import make_encodable
from isthmus.core.redaction.messages import Redact
from isthmus.errors import UsageError
from isthmus.revisions import BY_NAME, REVISIONS, Revision
from isthmus.server.guard.limits import Limits
from isthmus.server.guard.sanitise import Sanitise
from isthmus.server.guard.scopes import Scopes
from isthmus.wire import Annotations, Icon, Implementation
from isthmus.wire.results import CacheScope
from isthmus.wire.struct import Meta

if TYPE_CHECKING:
    from isthmus.store.log import Log
    from isthmus.store.store import Store

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C", bound=Callable[..., Any])
Given = TypeVar("Given", bound=Mapping[str, Any])


TaskSupport: TypeAlias = Literal["optional", "required"]  # calls may or must run as tasks

TaskStarts: TypeAlias = Literal["at_call", "in_body"]  # in its body: when it says so


class Completable(Protocol[P, R_co]):
    """A function that stayed what it was, and whose arguments can be completed."""

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""
        ...

    def completes(self, argument: str, /) -> Callable[[C], C]:
        """Decorate the function that completes an argument; see ``Server.completes``."""
        ...


class ToolOptions(TypedDict, total=False):
    """Options of ``Server.tool`` and ``add_tool``.

    Attributes:
        name: what it is called on the wire; the function's name by default.
        title: a name for people.
        description: what it does, for a model; the docstring by default.
        read_only: it changes nothing.
        destructive: it may destroy something.
        idempotent: calling it twice with the same arguments is as calling it once.
        open_world: it deals with the world outside.
        icons: pictures for it.
        meta: anything else.
        tags: words that ``Server.enable`` and ``disable`` select it by; clients read them in its
            ``_meta``, as ``isthmus/tags``.
        version: which of several tools of this name it is, as ``"2.0"``: lists have the highest one, and
            clients ask for another by ``isthmus/version`` in the ``_meta`` of a request.
        text: whether structured content also travels as text; True by default.
        structured: whether a text (``-> str``) is structured content, too, as ``{"result": …}``, for clients
            that read only that; False by default. Other results are structured anyway.
        blocking: whether a plain function may block, and belongs in a thread; True by default.
        input_schema: JSON Schema of its arguments, instead of one made from the signature. A
            function of one parameter that the schema does not know gets all arguments in it.
        output_schema: JSON Schema of its structured content, instead of one made from the
            annotation.
        task: ``"optional"`` lets its calls run as tasks, ``"required"`` has them run as nothing
            else; they must not by default.
        task_starts: ``"in_body"`` leaves it to ``ctx.start_task()`` when a call becomes a task,
            where the server may decide that (since 2026-07-28); ``"at_call"`` by default.
        immediate_response: what the model may be told while its call runs as a task (2025-11-25).
        retry_safe: its task may be started again by another node when the process that worked on it
            has ended (``Server(store=…)``): the function may run twice, from its beginning and with
            all its effects, and both runs may overlap for a moment. False by default: such a task
            has failed, and whether it was done is not known.
        timeout: seconds that a call may take, without those in which its user is asked; it is stopped then, and
            the result says so. As long as it takes by default.
        scopes: what its caller must have been granted: a set, or ``(arguments, principal) -> set``
            with all that this call takes. The arguments are as the function gets them, by name.
    """

    name: str | None
    title: str | None
    description: str | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    icons: Sequence[Icon] | None
    meta: Meta | None
    tags: Collection[str]
    version: str | None
    text: bool
    structured: bool
    blocking: bool | None
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    task: TaskSupport | None
    task_starts: TaskStarts
    immediate_response: str | None
    retry_safe: bool
    timeout: float | None
    scopes: Scopes


class ResourceOptions(TypedDict, total=False):
    """Options of ``Server.resource`` and ``add_resource``.

    Attributes:
        name: what it is called; the function's name by default.
        title: a name for people.
        description: what it is, for a model; the docstring by default.
        mime_type: its media type; by what is read, if not given.
        size: bytes, of a single resource.
        annotations: whom it is for, and how important it is.
        icons: pictures for it.
        meta: anything else.
        tags: words that ``Server.enable`` and ``disable`` select it by; clients read them in its
            ``_meta``, as ``isthmus/tags``.
        ttl_ms: milliseconds a client may keep what it read; 0 by default.
        cache_scope: who may share what was read; ``"private"`` by default.
        blocking: whether a plain function may block, and belongs in a thread; True by default.
        completes: functions that complete its arguments, by their names; see ``Server.completes``.
        scopes: what its reader must have been granted; as for tools.
    """

    name: str | None
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    annotations: Annotations | None
    icons: Sequence[Icon] | None
    meta: Meta | None
    tags: Collection[str]
    ttl_ms: int
    cache_scope: CacheScope
    blocking: bool | None
    completes: Mapping[str, Callable[..., Any]] | None
    scopes: Scopes


class FolderOptions(TypedDict, total=False):
    """Options of ``Server.add_directory``: a folder whose files are resources.

    Attributes:
        pattern: which files, as ``"**/*.md"``; several are alternatives. All by default.
        hidden: whether also what begins with a dot; False by default.
        listed: whether the files are in the list of resources; True by default.
        name: what the folder is called; its own name by default.
        title: a name for people.
        description: what is in it, for a model.
        annotations: whom it is for, and how important it is.
        icons: pictures for it.
        meta: anything else.
        tags: words that ``Server.enable`` and ``disable`` select it by; clients read them in its
            ``_meta``, as ``isthmus/tags``.
        ttl_ms: milliseconds a client may keep what it read; 0 by default.
        cache_scope: who may share what was read; ``"private"`` by default.
        scopes: what the reader of a file must have been granted; as for tools.
    """

    pattern: str | Sequence[str]
    hidden: bool
    listed: bool
    name: str | None
    title: str | None
    description: str | None
    annotations: Annotations | None
    icons: Sequence[Icon] | None
    meta: Meta | None
    tags: Collection[str]
    ttl_ms: int
    cache_scope: CacheScope
    scopes: Scopes


class SkillOptions(TypedDict, total=False):
    """Options of ``Server.add_skills``: a folder of skills.

    Attributes:
        meta: anything else, of the family of resources.
        ttl_ms: milliseconds a client may keep what it read; 0 by default.
        cache_scope: who may share what was read; ``"private"`` by default.
        scopes: what the reader of a skill must have been granted; as for tools.
    """

    meta: Meta | None
    ttl_ms: int
    cache_scope: CacheScope
    scopes: Scopes


class PromptOptions(TypedDict, total=False):
    """Options of ``Server.prompt`` and ``add_prompt``.

    Attributes:
        name: what it is called on the wire; the function's name by default.
        title: a name for people.
        description: what it is for; the docstring by default.
        icons: pictures for it.
        meta: anything else.
        tags: words that ``Server.enable`` and ``disable`` select it by; clients read them in its
            ``_meta``, as ``isthmus/tags``.
        version: which of several prompts of this name it is, as ``"2.0"``: lists have the highest one, and
            clients ask for another by ``isthmus/version`` in the ``_meta`` of a request.
        blocking: whether a plain function may block, and belongs in a thread; True by default.
        completes: functions that complete its arguments, by their names; see ``Server.completes``.
        scopes: what whoever gets it must have been granted; as for tools.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[Icon] | None
    meta: Meta | None
    tags: Collection[str]
    version: str | None
    blocking: bool | None
    completes: Mapping[str, Callable[..., Any]] | None
    scopes: Scopes


class ServerSettings(TypedDict, total=False):
    """Options of ``Server.configure``, for a server that does not serve yet; see ``Server``.

    Attributes:
        instructions: how to use the server, for a model to read.
        secret: 16 random bytes or more that questions and cursors are sealed with; a list to
            rotate: the first one seals, all of them open.
        debug: let clients see the text of unexpected exceptions; False by default.
        page_size: the most items in a page of a list; None, the default, puts all in one.
        max_rounds: how often a call that returns questions may do so; 10 by default.
        state_ttl: seconds in which a question must be answered (since 2026-07-28); an hour by
            default.
        limits: how much one caller may ask for, and how much anything from outside may be.
        sanitise: how tool output is made safe to show; None leaves it as it is.
        redact: what is taken out of log messages; None sends them as they are.
        ping_every: seconds from one ping of a session's client to the next (up to 2025-11-25);
            None, the default, does not ping.
        ping_misses: how many pings in a row without an answer mean that the client is gone; 3 by
            default.
        store: what several processes that serve under one address share: a URL, or a
            :class:`~isthmus.store.store.Store`; None for one process.
    """

    instructions: str | None
    secret: bytes | Sequence[bytes] | None
    debug: bool
    page_size: int | None
    max_rounds: int
    state_ttl: float
    limits: Limits
    sanitise: Sanitise | None
    redact: Redact | None
    ping_every: float | None
    ping_misses: int
    store: "str | Store | None"


class RouteOptions(TypedDict, total=False):
    """Options of ``Server.route``.

    Attributes:
        methods: the HTTP methods it takes; ``GET`` by default.
        auth: only for those who authenticate as at the endpoint; False by default.
        body_limit: the most bytes a request's body may have; 1 MiB by default.
    """

    methods: Sequence[str]
    auth: bool
    body_limit: int


class HttpOptions(TypedDict, total=False):
    """Options of an HTTP endpoint; see ``isthmus.transports.http.app.HttpApp``.

    Attributes:
        path: where the endpoint is; the root of the mount is it, too; ``/mcp`` by default.
        public_url: where the world reaches this server; its host is then the one accepted.
        allowed_hosts: further names of this server; ``"*"`` for all. Without this and ``public_url``, requests over
            loopback must name this machine, others may name any.
        allowed_origins: pages elsewhere that may call this server; ``"*"`` for all.
        body_limit: the most bytes a request's body may have; 4 MiB by default.
        head_limit: the most bytes a request's head may have, where one of our own connections reads it (``isthmus
            run``); 32 KiB by default.
        target_limit: the most bytes its first line may have, with method and path; 8 KiB by default.
        session_idle: seconds without a request or an open stream until a session's memory is given back; its client
            finds it as it was. One that would lose something ends instead: without a ``store``, a log level or
            subscriptions; half an hour by default.
        session_life: seconds from its beginning that a session's id is good for; a day by default.
        max_sessions: the most sessions in memory; the idlest gives way to a new one; 10000 by default.
        heartbeat: seconds between comments on an open stream; a client that takes none of four in a row counts as
            gone; 15 by default.
        stateless: up to 2025-11-25, open no sessions: each POST stands alone; False by default.
        stream_answers: answer legacy requests with a stream even where JSON would do; False by default.
        upload_budget: the most bytes that bodies may take together while they come, at least ``body_limit``; beyond
            it 503; 256 MiB by default.
        body_timeout: seconds a request's body may take; 60 by default.
        body_idle: seconds that a body may take from one piece to the next; 15 by default.
        retry: seconds that a client is asked to wait before it comes back for the rest of a stream that was let go
            of; 1 by default.
        stream_log: keeps what was said on streams, for clients that come back at this node; by default the store of
            the nodes does, for clients that come back anywhere, or memory where there is none.
        sse: where clients of 2024-11-05 listen, or None not to serve them; ``/sse`` by default.
        messages: where clients of 2024-11-05 send their messages; ``/messages`` by default.
        websocket: take WebSockets, too, in all revisions; False by default.
        health: the path that says that the process lives, or None. Like ``ready`` it is open to everybody, and
            tells nothing else; ``/health`` by default.
        ready: the path that says whether new clients are welcome: not while it starts or drains, nor while its
            store is away; ``/ready`` by default.
        drain: seconds that calls in flight get to finish once the server is told to stop; then they are answered by
            an error; 1 by default.
        drain_lead: seconds after a signal to stop in which only ``ready`` changes: balancers need some to notice; 0
            by default.
    """

    path: str
    public_url: str | None
    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    body_limit: int
    head_limit: int
    target_limit: int
    session_idle: float
    session_life: float
    max_sessions: int
    heartbeat: float
    stateless: bool
    stream_answers: bool
    upload_budget: int
    body_timeout: float
    body_idle: float
    retry: float
    stream_log: "Log | None"
    sse: str | None
    messages: str
    websocket: bool
    health: str | None
    ready: str | None
    drain: float
    drain_lead: float


class SocketOptions(TypedDict, total=False):
    """Options of a Unix socket.

    Attributes:
        limit: the longest message taken, in bytes; a longer one is refused. 64 MiB by default.
        max_connections: the most connections served at once; 1000 by default.
        patience: seconds in which a client must read something of what waits for it; one that
            does not is cut off after twice as long at most. 30 by default.
    """

    limit: int
    max_connections: int
    patience: float


class TcpOptions(SocketOptions, total=False):
    """Options of a TCP socket.

    Attributes:
        exposed: listen on an address that other machines reach, though nothing asks who is there.
    """

    exposed: bool


def check_options(options: Given, kind: type[Given]) -> Given:
    """The options given, none of them misspelt or another library's.

    Raises:
        UsageError: there is no such option; the message has those there are.
    """
    names = kind.__annotations__
    for name in options:
        if name not in names:
            raise UsageError(f"there is no option {name!r}; there are: {', '.join(names)}")
    return options


def check_setting(name: str, value: object, kind: type, *others: object) -> None:
    """See that a setting is what it must be, before anything is made of it.

    Raises:
        UsageError: it is neither of that kind nor one of the others.
    """
    if not isinstance(value, kind) and value not in others:
        choices = " or ".join([f"isthmus.server.{kind.__name__}(…)", *map(repr, others)])
        raise UsageError(f"{name}= takes {choices}, not {value!r}")


def check_settings(limits: Any, sanitise: Any, redact: Any, auth: Any) -> None:
    """See that settings are of their kinds.

    Raises:
        UsageError: one is not.
    """
    check_setting("limits", limits, Limits)
    check_setting("sanitise", sanitise, Sanitise, None)
    check_setting("redact", redact, Redact, None)
    if auth is not None and not hasattr(auth, "admit"):
        kind = type(auth).__name__  # and not itself, which may be a token
        hint = "; write auth=authority.resource_auth(url)" if hasattr(auth, "resource_auth") else ""
        raise UsageError(f"auth= takes isthmus.auth.ResourceAuth(…), not {kind}{hint}")


def make_completable(fn: Callable[P, Any], ref: str, completes: Any) -> Completable[P, Any]:
    """The function itself, with the decorator ``completes`` for its arguments on it."""
    # A bound method or a C function takes no attributes: the option `completes=` does the same.
    with suppress(AttributeError):
        fn.completes = partial(completes, ref)  # type: ignore[attr-defined]
    return fn  # type: ignore[return-value]  # the function, and now completable


def check_task_start(name: str, task: Any, starts: Any, context: str | None) -> bool:
    """Whether it is the body of a tool that says when its calls become tasks.

    Args:
        name: the tool.
        task: whether its calls may or must be tasks.
        starts: what makes them tasks.
        context: the parameter for the context, or None where there is none.

    Raises:
        UsageError: that is none of the choices, or the body cannot say it.
    """
    if task not in {None, "optional", "required"}:
        raise UsageError(f"tool {name!r}: task is 'optional' or 'required', not {task!r}")
    if starts not in {"at_call", "in_body"}:
        raise UsageError(f"tool {name!r}: task_starts is 'at_call' or 'in_body', not {starts!r}")
    if starts == "in_body" and (task is None or context is None):
        lacks = "task='optional' or 'required'" if task is None else "a Context to start it with"
        raise UsageError(f"tool {name!r}: task_starts='in_body' needs {lacks}")
    return bool(starts == "in_body")


def check_task_options(
    name: str, immediate: str | None, task: Any, in_body: bool, *, retry: bool
) -> None:
    """See that a tool has the options of tasks only where its calls may be tasks.

    Raises:
        UsageError: it has them, and they may not.
    """
    if immediate is not None and task is None:
        raise UsageError(f"tool {name!r}: immediate_response needs task=")
    if retry and (task is None or in_body):
        raise UsageError(
            f"tool {name!r}: retry_safe needs task=, and a task that begins with its call"
        )


def make_implementation(
    name: str,
    version: str,
    title: str | None,
    description: str | None,
    website_url: str | None,
    *,
    icons: Sequence[Icon],
) -> Implementation:
    """Make the name and version that a server gives itself."""
    said = Implementation(
        name=name,
        version=version,
        title=title or UNSET,
        description=description or UNSET,
        website_url=website_url or UNSET,
        icons=list(icons) or UNSET,
    )
    return make_encodable(said)


def parse_revisions(wanted: Sequence[Revision | str]) -> tuple[Revision, ...]:
    """The revisions a server is to speak, oldest first.

    Raises:
        UsageError: there is none of this name, or nothing is left to speak.
    """
    for name in wanted:
        if isinstance(name, str) and name not in BY_NAME:
            raise UsageError(f"there is no revision {name!r}: {', '.join(BY_NAME)}")
    found = tuple(known for known in REVISIONS if known in wanted or known.name in wanted)
    if not found:
        raise UsageError("a server speaks at least one revision")
    return found
