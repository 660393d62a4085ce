"""Gateways to be checked: one without faults, and others that have one fault each."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from isthmus import Client, Context, Server, ToolError
from isthmus.bridge.proxy import ProxyProvider
from isthmus.core.answers import Cancelled
from isthmus.errors import IsthmusError
from isthmus.linter.gateway.examination import examine_gateway
from isthmus.linter.gateway.upstream import open_upstreams
from isthmus.revisions import BY_NAME
from isthmus.testing.connections import run_until_left
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.serve import serve
from support.ports import find_free_port

MakeApp = Callable[[dict[str, str]], Any]
"""Makes the ASGI app of a gateway that has the servers with these names and URLs behind it."""

TOKEN_SCHEMA = {
    "type": "object",
    "properties": {"token": {"type": "string"}},
    "required": ["token"],
}


class TestedGateway:
    """A gateway in this process, which is started by the check.

    Args:
        make_app: makes it.
        restarts: it may be started with other configurations, too.
    """

    __test__ = False

    def __init__(self, make_app: MakeApp, *, restarts: bool = False) -> None:
        self.restarts = restarts
        self._port = find_free_port()
        self._make_app = make_app
        self.url = f"http://127.0.0.1:{self._port}/mcp"

    @contextlib.asynccontextmanager
    async def run(self, config: Any):
        servers = {name: entry["url"] for name, entry in config["mcpServers"].items()}
        app = self._make_app(servers)

        def start(on_bound: Callable[[str], None]) -> Any:
            return serve(app, port=self._port, on_bound=on_bound, announce=False)

        async with run_until_left(start):
            yield


async def check_gateway(make_app: MakeApp, *revisions: str, restarts: bool = False, **options: Any):
    """The report about a gateway, as clients of some revisions see it."""
    async with open_upstreams() as upstreams:
        if revisions:
            options["revisions"] = [BY_NAME[name] for name in revisions]
        gateway = TestedGateway(make_app, restarts=restarts)
        return await examine_gateway(gateway, upstreams, **options)


def list_rules(report: Any) -> set[str]:
    """The rules that a gateway breaks."""
    return {finding.rule for finding in report.findings}


# Without faults


def make_server(servers: dict[str, str], **options: Any) -> Server:
    """A server that has others mounted, each as a proxy."""
    outer = Server("gateway", version="1", **options)
    for name, url in servers.items():
        outer.mount(Server.proxy(url, name=name, optional=True), prefix=name)
    return outer


def make_good_app(servers: dict[str, str]) -> Any:
    return make_server(servers).asgi()


# With a fault in one tool


def replace_tool(servers: dict[str, str], kind: str, upstream: str, fn: Any) -> Any:
    """The app of a good gateway in which one tool is served by a function."""
    outer = make_server(servers)
    outer.disable(f"{upstream}_{kind}_{upstream}")
    outer.add_tool(fn, name=f"other_{kind}_{upstream}", input_schema=TOKEN_SCHEMA)
    return outer.asgi()


def make_shared_app(servers: dict[str, str]) -> Any:
    """One connection for all clients: a question goes to whoever called last."""
    callers: list[Context] = []

    async def ask(params: Any) -> Any:
        return await callers[-1].elicit(params.message, params.requested_schema)

    client = Client(servers["legacy"], elicit=ask)

    async def form(arguments: dict[str, Any], ctx: Context) -> str:
        """Ask the user."""
        callers.append(ctx)
        await client.open()
        return (await client.call_tool("form_legacy", arguments)).text

    return replace_tool(servers, "form", "legacy", form)


def make_deciding_app(servers: dict[str, str]) -> Any:
    """Questions are cancelled, and nobody is asked."""

    async def form(arguments: dict[str, Any]) -> str:
        """Ask nobody."""
        async with Client(servers["modern"], elicit=lambda _: Cancelled()) as client:
            return (await client.call_tool("form_modern", arguments)).text

    return replace_tool(servers, "form", "modern", form)


def make_hanging_app(servers: dict[str, str]) -> Any:
    """A question is taken, and nobody ever answers it."""

    async def never(_params: Any) -> Any:
        await asyncio.Event().wait()

    async def form(arguments: dict[str, Any]) -> str:
        """Wait for nobody."""
        async with Client(servers["legacy"], elicit=never) as client:
            return (await client.call_tool("form_legacy", arguments)).text

    return replace_tool(servers, "form", "legacy", form)


def make_replaying_app(servers: dict[str, str]) -> Any:
    """Each round of a client since 2026-07-28 calls the server up to 2025-11-25 anew."""

    async def form(arguments: dict[str, Any], ctx: Context) -> str:
        """Ask the user, beginning anew each time."""

        async def ask(params: Any) -> Any:
            return await ctx.elicit(params.message, params.requested_schema)

        async with Client(servers["legacy"], elicit=ask) as client:
            return (await client.call_tool("form_legacy", arguments)).text

    return replace_tool(servers, "form", "legacy", form)


def make_quiet_app(servers: dict[str, str]) -> Any:
    """Progress of a server is not told."""

    async def work(arguments: dict[str, Any]) -> str:
        """Work in silence."""
        async with Client(servers["legacy"]) as client:
            meeting = {"meeting": arguments["token"], **arguments}
            return (await client.call_tool("work_legacy", meeting)).text

    return replace_tool(servers, "work", "legacy", work)


def make_deaf_app(servers: dict[str, str]) -> Any:
    """A call goes on at the server when its client has cancelled it."""
    going_on: set[asyncio.Task[Any]] = set()

    async def call(arguments: dict[str, Any]) -> str:
        async with Client(servers["legacy"]) as client:
            return (await client.call_tool("wait_legacy", arguments)).text

    async def wait(arguments: dict[str, Any]) -> str:
        """Wait on."""
        task = asyncio.create_task(call(arguments))
        going_on.add(task)
        return await asyncio.shield(task)

    return replace_tool(servers, "wait", "legacy", wait)


def make_refusing_app(servers: dict[str, str]) -> Any:
    """Calls that ask are refused, since the server behind is told that nobody can be asked."""

    async def form(arguments: dict[str, Any]) -> str:
        """Ask nobody."""
        async with Client(servers["legacy"]) as client:
            result = await client.call_tool("form_legacy", arguments)
            raise ToolError(result.text)

    return replace_tool(servers, "form", "legacy", form)


def make_wrong_app(servers: dict[str, str]) -> Any:
    """A call is answered by something else."""

    async def echo(arguments: dict[str, Any]) -> str:
        """Say something."""
        return "something"

    return replace_tool(servers, "echo", "modern", echo)


def make_cheerful_app(servers: dict[str, str]) -> Any:
    """A call is answered well whatever becomes of the server behind."""

    async def echo(arguments: dict[str, Any]) -> str:
        """Say that all is well."""
        with contextlib.suppress(IsthmusError):
            async with Client(servers["spare"]) as client:
                return (await client.call_tool("echo_spare", arguments)).text
        return "all is well"

    return replace_tool(servers, "echo", "spare", echo)


def make_forgetful_app(servers: dict[str, str]) -> Any:
    """One server's resources are left out."""
    outer = make_server(servers)
    outer.disable("probe://note-modern/text", "probe://modern/note-modern/text")
    return outer.asgi()


# With a fault in the whole


class StillProvider(ProxyProvider):
    """A proxy that tells nobody of changes."""

    def attach(self, changed: Any) -> None:
        """Forget whom to tell."""


def make_still_app(servers: dict[str, str]) -> Any:
    """Changes of lists and resources are not told."""
    outer = Server("gateway", version="1")
    for name, url in servers.items():
        inner: Server = Server(name, version="1")
        inner.add_provider(StillProvider(url, name, inner._settings, {"optional": True}))
        outer.mount(inner, prefix=name)
    return outer.asgi()


def make_brittle_app(servers: dict[str, str]) -> Any:
    """A server that is gone takes all lists with it."""
    outer = Server("gateway", version="1")
    for name, url in servers.items():
        outer.mount(Server.proxy(url, name=name, optional=False), prefix=name)
    return outer.asgi()


def make_open_app(servers: dict[str, str]) -> Any:
    """Pages of any origin may call it."""
    return make_server(servers).asgi(allowed_hosts=["*"], allowed_origins=["*"])


def make_legacy_app(servers: dict[str, str]) -> Any:
    """It speaks to clients up to 2025-11-25 only."""
    revisions = ["2025-03-26", "2025-06-18", "2025-11-25"]
    return make_server(servers, revisions=revisions).asgi()


def make_renaming_app(servers: dict[str, str]) -> Any:
    """Names are the server's own while there is one server only."""
    if len(servers) > 1:
        return make_good_app(servers)
    ((name, url),) = servers.items()
    return Server.proxy(url, name=name).asgi()


# With a fault that something before the gateway makes


class SpoiledApp:
    """An ASGI app before another one, which sees the requests with their bodies.

    Args:
        app: the app behind.
        spoil: ``(headers, message) -> bytes | (status, headers) | None``: a body or a head that is answered
            instead; None hands the request on.
    """

    def __init__(self, app: Any, spoil: Any) -> None:
        self._app = app
        self._spoil = spoil

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        instead = await self._spoil(headers, json.loads(body))
        if instead is not None:
            status, head, said = instead
            listed = [(k.encode(), v.encode()) for k, v in head.items()]
            await send({"type": "http.response.start", "status": status, "headers": listed})
            await send({"type": "http.response.body", "body": said})
            return
        arrived = [{"type": "http.request", "body": body}]

        async def again() -> Any:
            return arrived.pop() if arrived else await receive()

        await self._app(scope, again, send)


def make_passing_app(servers: dict[str, str]) -> Any:
    """The client's token is shown to a server behind."""

    async def spoil(headers: dict[str, str], _message: Any) -> None:
        requests = open_requests(connect_timeout=5)
        shown = {"authorization": headers.get("authorization", "")}
        response = await requests.send("POST", servers["modern"], shown, b"{}")
        response.close()
        await requests.close()

    return SpoiledApp(make_good_app(servers), spoil)


def make_verbatim_app(servers: dict[str, str]) -> Any:
    """Rounds between both of 2026-07-28 are handed on as they are."""

    async def spoil(headers: dict[str, str], message: Any) -> Any:
        if message.get("params", {}).get("name") != "modern_form_modern":
            return None
        if "mcp-name" not in headers:
            return None  # of a client up to 2025-11-25
        message["params"]["name"] = "form_modern"
        kept = ("mcp-protocol-version", "mcp-method", "content-type", "accept")
        sent = {name: headers[name] for name in kept} | {"mcp-name": "form_modern"}
        requests = open_requests(connect_timeout=5)
        body = json.dumps(message).encode()
        response = await requests.send("POST", servers["modern"], sent, body)
        said = await response.read(2**20)
        await requests.close()
        return response.status, {"content-type": response.headers["content-type"]}, said

    return SpoiledApp(make_good_app(servers), spoil)


def make_challenging_app(servers: dict[str, str]) -> Any:
    """A 401 of a server behind becomes the gateway's own."""

    async def spoil(_headers: dict[str, str], message: Any) -> Any:
        if message.get("params", {}).get("name") != "spare_echo_spare":
            return None
        requests = open_requests(connect_timeout=5)
        try:
            response = await requests.send("POST", servers["spare"], {}, b"{}")
        except Exception:  # noqa: BLE001 - it is gone, which the app behind tells
            return None
        finally:
            await requests.close()
        return (401, {"www-authenticate": "Bearer"}, b"") if response.status == 401 else None

    return SpoiledApp(make_good_app(servers), spoil)


def make_circling_app(servers: dict[str, str]) -> Any:
    """With itself behind it, a list of tools never ends."""

    async def spoil(_headers: dict[str, str], message: Any) -> None:
        if "itself" in servers and message.get("method") == "tools/list":
            await asyncio.Event().wait()

    return SpoiledApp(make_good_app(servers), spoil)
