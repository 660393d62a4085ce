"""``isthmus run``: find the server in a Python file, and serve it."""

import contextlib
import gc
import importlib.util
import os
import sys
from collections.abc import Coroutine, Sequence
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from isthmus.cli.declarations import Argument, CommandSet, Invocation, Option
from isthmus.cli.exits import finish
from isthmus.cli.openapi_target import (
    ApiRunOptions,
    BaseUrlOption,
    CredentialOption,
    ExcludeOption,
    IncludeOption,
    LenientOption,
    SearchOption,
    is_document,
    keep_options,
    load_document,
)
from isthmus.errors import ConnectFailed, UsageError

if TYPE_CHECKING:
    from isthmus.server.server import Server

app = CommandSet()

DEFAULT_HOST = "127.0.0.1"
ORDERS_VARIABLE = "ISTHMUS_WORKER"  # by which a supervisor tells its workers what to serve on
STORE_VARIABLE = "ISTHMUS_STORE"
LOADING_GC_THRESHOLD = 50_000  # objects; the server has thresholds of its own when it serves

HttpAddress: TypeAlias = Annotated[
    str | None, Option(metavar="HOST:PORT", help="Serve HTTP instead of stdio.")
]
WebsocketAddress: TypeAlias = Annotated[
    str | None, Option(metavar="HOST:PORT", help="Serve HTTP and WebSockets.")
]
UnixPath: TypeAlias = Annotated[
    str | None, Option(metavar="PATH", help="Serve on a Unix socket, one message per line.")
]
TcpAddress: TypeAlias = Annotated[
    str | None, Option(metavar="HOST:PORT", help="Serve on a TCP socket, one message per line.")
]
Exposed: TypeAlias = Annotated[
    bool, Option("--exposed", help="Let other machines reach the TCP socket.")
]
Reload: TypeAlias = Annotated[bool, Option("--reload", help="Restart when a file changes.")]
Workers: TypeAlias = Annotated[
    str | None, Option(metavar="N", help="Serve HTTP in N processes that share a store.")
]
StoreUrl: TypeAlias = Annotated[
    str | None,
    Option(metavar="URL", help="Store shared by processes: redis://HOST:6379/0, sqlite:///PATH."),
]
Stateless: TypeAlias = Annotated[
    bool, Option("--stateless", help="Open no HTTP sessions for clients up to 2025-11-25.")
]
Drain: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="SECONDS",
        help="Time for calls in flight after SIGTERM; default 1, with --workers 30.",
    ),
]
DrainLead: TypeAlias = Annotated[
    str | None,
    Option(metavar="SECONDS", help="Time before the drain during which /ready answers 503."),
]
EndpointPath: TypeAlias = Annotated[
    str | None, Option(metavar="PATH", help="Path of the HTTP endpoint; /mcp by default.")
]
PublicUrl: TypeAlias = Annotated[
    str | None,
    Option(metavar="URL", help="Public URL; requests to other hosts are refused."),
]
AllowedOrigins: TypeAlias = Annotated[
    list[str] | None,
    Option(metavar="ORIGIN", help="Allow web pages of this origin; repeatable."),
]

ServedFile: TypeAlias = Annotated[
    str,
    Argument(
        metavar="FILE[:OBJECT]",
        help="Python file or OpenAPI document; :OBJECT selects one of several servers.",
        show_default=False,
    ),
]
Compat: TypeAlias = Annotated[
    bool,
    Option("--compat", help="Run a server written for mcp or fastmcp: a file, module or script."),
]


@app.command("run")
def run(
    context: Invocation,
    file: ServedFile,
    http: HttpAddress = None,
    *,
    websocket: WebsocketAddress = None,
    unix: UnixPath = None,
    tcp: TcpAddress = None,
    exposed: Exposed = False,
    reload: Reload = False,
    workers: Workers = None,
    store: StoreUrl = None,
    stateless: Stateless = False,
    drain: Drain = None,
    drain_lead: DrainLead = None,
    path: EndpointPath = None,
    public_url: PublicUrl = None,
    allowed_origin: AllowedOrigins = None,
    base_url: BaseUrlOption = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    credential: CredentialOption = None,
    lenient: LenientOption = False,
    search: SearchOption = None,
    compat: Compat = False,
) -> None:
    """Serve a Python file or an OpenAPI document, over stdio or HTTP."""

    def work() -> Coroutine[Any, Any, None] | None:
        api = ApiRunOptions.of(
            base_url=base_url, include=include, exclude=exclude, credential=credential,
            lenient=lenient, search=search,
        )  # fmt: skip
        if not compat:
            keep_options(file, api)
        place = ListenOptions.of(
            exposed=exposed, http=http, websocket=websocket, unix=unix, tcp=tcp
        )
        ends = read_http_options(
            place,
            store=store,
            drain=drain,
            drain_lead=drain_lead,
            stateless=stateless,
            path=path,
            public_url=public_url,
            allowed_origins=tuple(allowed_origin or ()),
        )
        if ends.store is not None:  # for the processes that this one starts: everybody sees words
            os.environ[STORE_VARIABLE] = ends.store
        if compat:
            refuse_processes(workers, reload=reload)
            run_foreign_program(file, context.command, place, ends)
            return None
        refuse_words(context.command)
        return start_serving(file, place, workers, ends, reload=reload)

    finish(work)


def refuse_processes(workers: str | None, *, reload: bool) -> None:
    """See that a program of another library is run in this process.

    Raises:
        UsageError: it shall be run in others.
    """
    if workers is not None or reload:
        option = "--reload" if reload else "--workers"
        raise UsageError(f"{option} does not go with --compat: the program is run once, as it is")


def refuse_words(words: Sequence[str]) -> None:
    """See that nothing stands behind ``--``: a file of isthmus takes no arguments.

    Raises:
        UsageError: something does.
    """
    if words:
        raise UsageError(f"-- {' '.join(words)}: only a program that --compat runs takes arguments")


def run_foreign_program(
    target: str, arguments: Sequence[str], place: "ListenOptions | None", ends: "HttpRunOptions"
) -> None:
    """Run a program written for ``mcp`` or ``fastmcp``, its server served where this command line says.

    Raises:
        UsageError: there is no such program, or it serves nothing.
    """
    gc.set_threshold(LOADING_GC_THRESHOLD)
    from isthmus.compat.placement import Placement
    from isthmus.compat.program import run_program

    placement = (
        None
        if place is None
        else Placement(place.transport, {**place.arguments(), **ends.arguments()}, ends.store)
    )
    run_program(target, arguments, placement)


def start_serving(
    file: str,
    place: "ListenOptions | None",
    workers: str | None,
    ends: "HttpRunOptions",
    *,
    reload: bool,
) -> Coroutine[Any, Any, None] | None:
    """Serve here, under a supervisor of workers, or under one that looks for changes."""
    if workers is not None:
        from isthmus.cli.commands.run_workers import supervise

        return supervise(file, place, parse_count(workers), ends, reload=reload)
    if not reload:
        serve_file(file, place, ends)
        return None
    from pathlib import Path

    from isthmus.cli.reload import make_run_command, reload_listening, reload_stdio

    folder = Path(split_server_path(file)[0]).resolve().parent
    if place is None:
        return reload_stdio(make_run_command(file), folder)
    return reload_listening(make_run_command(file, *place.words(), *ends.words()), folder)


class HttpRunOptions(NamedTuple):
    """Options of a server that listens for HTTP, beside its address; None where they are not given.

    Attributes:
        store: the URL of what processes share.
        drain: seconds for calls in flight.
        drain_lead: seconds before that.
        stateless: up to 2025-11-25 there are no sessions.
        path: of the endpoint.
        public_url: where the world reaches it.
        allowed_origins: whose pages may call it.
    """

    store: str | None = None
    drain: float | None = None
    drain_lead: float | None = None
    stateless: bool = False
    path: str | None = None
    public_url: str | None = None
    allowed_origins: tuple[str, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """The arguments for ``Server.run`` and ``Server.asgi``."""
        given = self._asdict()
        given.pop("store")
        return {name: value for name, value in given.items() if _is_given(value)}

    def words(self) -> list[str]:
        """The options as another ``isthmus run`` is told of them; the store is in the environment."""
        words: list[str] = []
        for name, value in self.arguments().items():
            option = f"--{name.rstrip('s') if name == 'allowed_origins' else name}".replace(
                "_", "-"
            )
            if value is True:
                words.append(option)
            else:
                each = value if isinstance(value, tuple) else (value,)
                words += [word for one in each for word in (option, str(one))]
        return words


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != ()  # a drain of 0 s is given


NO_OPTIONS = HttpRunOptions()


def read_http_options(place: "ListenOptions | None", **given: Any) -> HttpRunOptions:
    """The options of a command line, by the names that :class:`HttpRunOptions` has.

    Raises:
        UsageError: one is no number or no path, or the server does not listen for HTTP.
    """
    named = [name for name, value in given.items() if _is_given(value)]
    if place is None or place.transport not in {"http", "websocket"}:
        if named:
            option = named[0].replace("allowed_origins", "allowed_origin").replace("_", "-")
            raise UsageError(f"--{option} goes with --http or --websocket")
        return NO_OPTIONS
    path = given.get("path")
    if path is not None and not path.startswith("/"):
        raise UsageError(f"--path {path}: a path begins with /, as in /mcp")
    return HttpRunOptions(
        **{
            **given,
            "store": given.get("store") or os.environ.get(STORE_VARIABLE) or None,
            "drain": parse_seconds(given.get("drain"), "--drain"),
            "drain_lead": parse_seconds(given.get("drain_lead"), "--drain-lead"),
        }
    )


MAX_WORKERS = 512


def parse_seconds(text: str | None, option: str) -> float | None:
    """A number of seconds, 0 or more; None for None.

    Raises:
        UsageError: it is none.
    """
    if text is None:
        return None
    if not text.replace(".", "", 1).isdecimal():
        raise UsageError(f"{option} {text}: write a number of seconds, for example 30")
    return float(text)


def parse_count(text: str) -> int:
    """A number of workers.

    Raises:
        UsageError: it is none.
    """
    if not text.isdecimal() or not 1 <= int(text) <= MAX_WORKERS:
        raise UsageError(f"--workers {text}: write a number from 1 to {MAX_WORKERS}")
    return int(text)


def split_server_path(text: str) -> tuple[str, str]:
    """``server.py:name`` as a path and a name; the name is empty where none is given."""
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        return path, name
    return text, ""


class ListenOptions(NamedTuple):
    """The address that a server listens on.

    Attributes:
        transport: ``"http"``, ``"websocket"``, ``"tcp"`` or ``"unix"``.
        text: as it was typed: ``HOST:PORT``, or a path.
        exposed: ``--exposed`` was given.
    """

    transport: str
    text: str
    exposed: bool = False

    @classmethod
    def of(cls, *, exposed: bool, **given: str | None) -> "ListenOptions | None":
        """The place among the options of a command line, or None for stdio.

        Args:
            exposed: whether ``--exposed`` was given.
            **given: what stands behind each of the options, None where it was not given.

        Raises:
            UsageError: they contradict each other, or one of them is no place.
        """
        named = {name: text for name, text in given.items() if text is not None}
        if len(named) > 1:
            raise UsageError(f"a server listens on one address: choose --{' or --'.join(named)}")
        if exposed and "tcp" not in named:
            raise UsageError("--exposed goes with --tcp")
        for name, text in named.items():
            place = cls(name, text, exposed)
            place.arguments()
            return place
        return None

    def arguments(self) -> dict[str, Any]:
        """The arguments for ``Server.run``.

        Raises:
            UsageError: it is no place.
        """
        if self.transport == "unix":
            return {"path": self.text}
        host, port = parse_address(self.text, self.transport)
        more = {"exposed": True} if self.exposed else {}
        return {"host": host, "port": port, **more}

    def words(self) -> list[str]:
        """The place as another ``isthmus run`` is told of it."""
        return [f"--{self.transport}", self.text, *(["--exposed"] if self.exposed else [])]


def parse_address(text: str, option: str = "http") -> tuple[str, int]:
    """``HOST:PORT``, ``:PORT`` or ``PORT``; the host is this machine's own where none is given.

    Raises:
        UsageError: there is no port in it.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal():
        raise UsageError(f"--{option} {text}: write HOST:PORT, for example 127.0.0.1:8000")
    return host.strip("[]") or DEFAULT_HOST, int(port)


def serve_file(
    file: str, place: ListenOptions | None, options: HttpRunOptions = NO_OPTIONS
) -> None:
    """Serve what is in a file until it ends or is told to.

    Args:
        file: ``FILE.py`` or ``FILE.py:OBJECT``.
        place: where to listen, or None for stdio.
        options: more about HTTP.

    Raises:
        UsageError: there is no such file, it fails to load, or has not one server.
        ConnectFailed: the address cannot be listened on.
    """
    # Nearly all that imports and declarations make stays: looking for garbage in it finds none.
    gc.set_threshold(LOADING_GC_THRESHOLD)
    path, name = split_server_path(file)
    worker = None
    if place is not None and ORDERS_VARIABLE in os.environ:
        from isthmus.server.serve.worker import join_supervisor

        worker = join_supervisor(os.environ)
    # Over stdio, standard output belongs to the protocol: what the file prints goes elsewhere.
    with contextlib.redirect_stdout(sys.stderr):
        server = (
            load_document(file, os.environ)
            if is_document(file)
            else find_server(load_module(path), name)
        )
    if place is None:
        server.run()
        return
    if options.store is not None:
        server.configure(store=options.store)
    if worker is not None:
        worker.serve(server, {**options.arguments(), "websocket": place.transport == "websocket"})
        return
    if place.transport in {"http", "websocket"}:
        from isthmus.cli.commands.run_secret import use_kept_secret

        use_kept_secret(server, file)
    try:
        serve: Any = server.run  # which of its forms is meant, only the command line knows
        serve(place.transport, **place.arguments(), **options.arguments())
    except SystemExit as error:  # uvicorn's way of saying so; its log has the reason
        raise ConnectFailed(f"cannot listen on {place.text}") from error


def load_module(path: str | os.PathLike[str]) -> ModuleType:
    """The file as a module, run under its own name so that ``__main__`` blocks stay quiet.

    Raises:
        UsageError: it is not there, or raises; the message has the traceback of the file.
    """
    path = os.fspath(path)
    if os.curdir + os.sep in path or os.sep * 2 in path or (os.altsep and os.altsep in path):
        from pathlib import Path

        path = str(Path(path))  # as it is shown
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib costs start-up time
        raise UsageError(f"there is no file {path}")
    name = os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122 - as above
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    sys.path.insert(0, os.path.realpath(os.path.dirname(path)))  # noqa: PTH120 - as above
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} could not be loaded:\n{_show_failure(error, path)}") from error
    return module


def _show_failure(error: Exception, file: str) -> str:
    """The traceback of an error that the code of a file raised."""
    import traceback

    shown = traceback.format_exception(error.with_traceback(_trim_traceback(error, file)))
    return "".join(shown).rstrip()


def _trim_traceback(error: BaseException, file: str) -> TracebackType | None:
    """The part of a traceback that begins in the file; all there is for a syntax error."""
    from pathlib import Path

    path = Path(file)
    trace, whole = error.__traceback__, path.resolve()
    while trace is not None and Path(trace.tb_frame.f_code.co_filename).resolve() != whole:
        trace = trace.tb_next
    return trace


def find_server(module: ModuleType, name: str) -> "Server":
    """The server a module makes.

    Args:
        module: a loaded file.
        name: the variable that holds it, or a function that makes it; "" for the only one.

    Raises:
        UsageError: there is none of that name, none at all, or more than one.
    """
    from isthmus.server.server import Server

    where = getattr(module, "__file__", module.__name__)
    if name:
        return _make_server(getattr(module, name, None), name, where)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    distinct = {id(value): value for value in found.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if distinct:
        raise UsageError(f"{where} has several servers; choose {' or '.join(found)} with :NAME")
    raise UsageError(f"{where} has no isthmus Server; write: server = Server('name')")


def _make_server(value: Any, name: str, where: str) -> "Server":
    """A server, from a variable or from a function without parameters."""
    from isthmus.server.server import Server

    built = callable(value) and not isinstance(value, Server)
    made = _call_factory(value, name, where) if built else value
    if not isinstance(made, Server):
        raise UsageError(f"{where}: {name} is no isthmus Server")
    return made


def _call_factory(make: Any, name: str, where: str) -> Any:
    """The result of a function that makes a server.

    Raises:
        UsageError: it raised, or needs arguments; the message has the traceback of the file.
    """
    try:
        return make()
    except Exception as error:
        raise UsageError(
            f"{where}: {name} failed when it was called to make a Server:\n{_show_failure(error, where)}"
        ) from error
