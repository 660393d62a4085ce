"""``isthmus gateway``: serve all configured servers as one, over HTTP or stdio."""

from contextlib import AsyncExitStack
from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from isthmus.cli.commands.gateway.console import LazyConsole, check_console
from isthmus.cli.commands.run import parse_address
from isthmus.cli.declarations import CommandSet, Invocation, Option
from isthmus.cli.exits import finish
from isthmus.cli.options import AsJson, ConfigFiles, StateFolder, Strict
from isthmus.cli.output import print_note
from isthmus.errors import UsageError
from isthmus.gateway.gateway import ENDPOINT, PROFILE_ENDPOINT, Gateway, spell_address
from isthmus.host.host import Host
from isthmus.host.remote.control import Control

app = CommandSet(
    name="gateway",
    help="Serve all configured servers as one server.",
    invoke_without_command=True,
)

DEFAULT_ADDRESS = "127.0.0.1:8080"

NO_SERVERS_HINT = (
    "no server is configured: isthmus servers add NAME -- COMMAND adds one, --config names a file"
)
APPROVAL_HINT = "approve calls with isthmus host --attach, or at"


class GatewayCommandOptions(Struct, frozen=True, kw_only=True):
    """Options of ``isthmus gateway``.

    Attributes:
        config: files instead of the usual ones.
        http: the address; None for the usual one.
        stdio: serve the program that started it, on standard input and output.
        profile, server: the one that stdio serves; everything by default.
        policy: the name or file of a policy; None for the configuration's.
        state: the folder of what lasts; None for the configuration's.
        store: the URL of what several processes share.
        public_url: where the world reaches it.
        allowed_origins: whose pages may call it.
        access_log: the file of a line about each call; None for the configuration's.
        console: serve the console, where the address is of this machine, or the configuration names a login.
    """

    config: tuple[str, ...] = ()
    http: str | None = None
    stdio: bool = False
    profile: str | None = None
    server: str | None = None
    policy: str | None = None
    state: str | None = None
    store: str | None = None
    public_url: str | None = None
    allowed_origins: tuple[str, ...] = ()
    access_log: str | None = None
    console: bool = True


PolicyChoice: TypeAlias = Annotated[
    str | None,
    Option(
        metavar="NAME|FILE",
        help="Built-in policy, or a file with rules; the configuration's by default.",
    ),
]


@app.callback()
def gateway(
    context: Invocation,
    *,
    config: ConfigFiles = None,
    http: Annotated[
        str | None,
        Option(metavar="HOST:PORT", help=f"Listen on this address; {DEFAULT_ADDRESS} by default."),
    ] = None,
    stdio: Annotated[
        bool, Option("--stdio", help="Serve the parent process over stdio instead of HTTP.")
    ] = False,
    profile: Annotated[
        str | None, Option(metavar="NAME", help="With --stdio: serve this profile only.")
    ] = None,
    server: Annotated[
        str | None, Option(metavar="NAME", help="With --stdio: serve this server only.")
    ] = None,
    policy: PolicyChoice = None,
    state: Annotated[
        str | None, Option(metavar="FOLDER", help="State folder, instead of the user's.")
    ] = None,
    store: Annotated[
        str | None,
        Option(
            metavar="URL", help="Store shared by processes: redis://HOST:6379/0, sqlite:///PATH."
        ),
    ] = None,
    public_url: Annotated[
        str | None, Option(metavar="URL", help="Public URL; requests to other hosts are refused.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        Option(metavar="ORIGIN", help="Allow web pages of this origin; repeatable."),
    ] = None,
    access_log: Annotated[
        str | None,
        Option(metavar="FILE", help="Write one JSON line per call; - is standard error."),
    ] = None,
    no_console: Annotated[
        bool, Option("--no-console", help="Do not serve the console at /console.")
    ] = False,
) -> None:
    """Serve all configured servers as one server."""
    if context.subcommand is not None:
        return
    options = GatewayCommandOptions(
        config=tuple(config or ()), http=http, stdio=stdio, profile=profile, server=server,
        policy=policy, state=state, store=store, public_url=public_url,
        allowed_origins=tuple(allowed_origin or ()), access_log=access_log,
        console=not no_console,
    )  # fmt: skip
    finish(lambda: run_gateway(options))


@app.command("check")
def check(
    *,
    config: ConfigFiles = None,
    policy: PolicyChoice = None,
    state: StateFolder = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Check servers, profiles and rules. Starts each server once."""
    from isthmus.cli.commands.gateway.check import check_gateway

    finish(
        lambda: check_gateway(
            tuple(config or ()), policy=policy, state=state, as_json=as_json, strict=strict
        )
    )


def run_gateway(options: GatewayCommandOptions) -> None:
    """Run a gateway until its client hangs up or a signal ends it.

    Raises:
        UsageError: options contradict each other, or there is no such server or profile.
        ConfigError: the configuration cannot be read.
    """
    if options.stdio and options.http:
        raise UsageError("--stdio serves the parent process: leave --http out")
    if not options.stdio and (options.profile or options.server):
        raise UsageError("--profile and --server need --stdio: over HTTP each has its own path")
    from isthmus.transports.shutdown import choose_loop_factory, run_to_end

    run_to_end(_serve(make_gateway(options), options), choose_loop_factory())


def make_gateway(options: GatewayCommandOptions) -> Gateway:
    """Make the gateway of a configuration, and tell what is wrong with that.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    given: dict[str, Any] = {} if options.store is None else {"store": options.store}
    host = Host.from_config(
        *options.config, policy=options.policy, state=options.state, watch=True, **given
    )
    for name, why in host.config.broken.items():
        print_note(f"isthmus: {name}: {why}")
    for passed in host.config.notes:
        print_note(f"isthmus: {passed}")
    if not (host.config.servers or host.config.broken):
        print_note(f"isthmus: {NO_SERVERS_HINT}")
    gateway = Gateway(host, **given)
    if options.access_log is not None:
        gateway.write_access_log(options.access_log)
    return gateway


def find_path(options: GatewayCommandOptions) -> str:
    """The path of what is served over stdio."""
    if options.profile:
        return f"{PROFILE_ENDPOINT}{options.profile}"
    return f"{ENDPOINT}/{options.server}" if options.server else ENDPOINT


async def _serve(gateway: Gateway, options: GatewayCommandOptions) -> None:
    async with AsyncExitStack() as stack:
        folder = gateway.host.state.folder
        if folder is not None:
            # Before the host is open: it is seen there that no other one runs on the same state.
            await stack.enter_async_context(Control(gateway.host.view, folder))
        if options.stdio:
            from isthmus.server.serve.run import serve_stdio

            stack.push_async_callback(gateway.close)
            await serve_stdio(gateway.find_server(find_path(options)))
            return
        from isthmus.transports.http.serve import serve

        address = parse_address(options.http or DEFAULT_ADDRESS)
        url = options.public_url or spell_address(*address)
        given = gateway.options.console
        has_console = options.console and check_console(given, address[0], options.public_url)
        console = LazyConsole(gateway, url, given) if has_console else None
        pages = gateway.open_pages(url, visitors=None if console is None else console.visitors)
        if console is not None:
            gateway.mount_console(console)
        app = gateway.asgi(public_url=options.public_url, allowed_origins=options.allowed_origins)
        place = pages.login_address
        if console is not None and console.visitors is not None:
            place = f"{url}{gateway.console_prefix}/ (users sign in there)"
        print_note(f"isthmus: {APPROVAL_HINT} {place}")
        await serve(app, *address, tune=True)
