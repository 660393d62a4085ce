"""A gateway over HTTP, in front of servers over HTTP: real connections on both sides."""

import contextlib

from isthmus.auth import ResourceAuth, StaticTokens
from isthmus.core.principal import Principal
from isthmus.gateway import Gateway
from isthmus.host.model.entries import HostConfig, HostOptions, ServerEntry
from support.gateway.small_gateway import make_allowing_host
from support.http.uvicorn_server import serve_uvicorn

ISSUER = "https://login.example"
USERS = ("ann", "bob")


@contextlib.asynccontextmanager
async def serve_entries(**servers):
    """Serve servers over HTTP; their entries, by name."""
    async with contextlib.AsyncExitStack() as stack:
        entries = {}
        for name, server in servers.items():
            port = await stack.enter_async_context(serve_uvicorn(server.asgi(), "auto"))
            url = f"http://127.0.0.1:{port}/mcp"
            entries[name] = ServerEntry(name=name, kind="http", url=url)
        yield entries


def make_config(entries, options=None):
    """A configuration of servers, with options of a gateway."""
    given = {} if options is None else {"gateway": options}
    return HostConfig(servers=entries, options=HostOptions(**given))


@contextlib.asynccontextmanager
async def serve_gateway(entries, options=None, *, host=None, asgi=None, **server):
    """Serve a gateway in front of entries over HTTP; the gateway, and the URL of all that it has.

    Args:
        entries: the servers behind it.
        options: of the gateway.
        host: further options of the host.
        asgi: those of the app.
        **server: those of the servers in front.
    """
    host = make_allowing_host(config=make_config(entries, options), **(host or {}))
    gateway = Gateway(host, **server)
    async with gateway, serve_uvicorn(gateway.asgi(**(asgi or {})), "auto") as port:
        yield gateway, f"http://127.0.0.1:{port}/mcp"


@contextlib.asynccontextmanager
async def serve_chain(options=None, *, host=None, asgi=None, **servers):
    """Serve a gateway over HTTP in front of servers over HTTP; the gateway, and its URL."""
    async with (
        serve_entries(**servers) as entries,
        serve_gateway(entries, options, host=host, asgi=asgi) as served,
    ):
        yield served


def make_auth():
    """Users ``ann`` and ``bob``, whose names are their tokens."""
    tokens = {
        name: Principal(issuer=ISSUER, subject=name, scopes=frozenset({"use"})) for name in USERS
    }
    return ResourceAuth("http://127.0.0.1:8000/mcp", [ISSUER], StaticTokens(tokens), scopes={"use"})
