"""``isthmus auth serve``: an authorization server of its own, run by uvicorn."""

import logging
import sys
from typing import TYPE_CHECKING, Any

from isthmus.cli.commands.run import parse_address
from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import print_note
from isthmus.errors import ConnectFailed
from isthmus.transports.shutdown import run_to_end

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.server import AuthorizationServer
    from isthmus.cli.commands.auth.config import AuthConfig

MAX_TARGET_BYTES = 17 * 1024  # an authorization request has its parameters in its first line

INSTRUCTIONS = """\
issuer    {issuer}
metadata  {metadata}

A server trusts it like this:

    from isthmus import Server
    from isthmus.auth import JWTVerifier, ResourceAuth

    server = Server("…", auth=ResourceAuth(
        resource="{resource}",
        authorization_servers=["{issuer}"],
        verifier=JWTVerifier("{issuer}"),
        scopes={scopes},  # of every request; a tool says what else it takes, by its own scopes=
    ))
"""


def run_authorization_server(config: "AuthConfig") -> Exit:
    """Run the authorization server until it is told to stop.

    Raises:
        UsageError: the configuration lacks something.
        ConnectFailed: the address cannot be listened on.
    """
    host, port = parse_address(config.listen, "listen")
    authority = config.authority()
    run_to_end(_run_uvicorn(authority, host, port, config.head_limit))
    return Exit.OK


async def _run_uvicorn(
    authority: "AuthorizationServer", host: str, port: int, head_limit: int
) -> None:
    import uvicorn  # the other commands do without

    from isthmus.transports.http.connections import bound_connections

    class Server(uvicorn.Server):
        """Says where it listens once it does."""

        async def startup(self, sockets: list[Any] | None = None) -> None:
            await super().startup(sockets)
            print_note(format_instructions(authority))
            sys.stderr.write(f"isthmus auth listens on {host}:{port} (Ctrl-C to stop)\n")
            sys.stderr.flush()

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")  # what is refused, and why
    config = uvicorn.Config(
        authority,
        host=host,
        port=port,
        http=bound_connections(head_limit, MAX_TARGET_BYTES),
        log_level="warning",
        access_log=False,
        server_header=False,
        # a header that anybody can send does not say where somebody is
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    try:
        # a wrong key or file is told now, and not to the first visitor
        await authority.store.read(lambda records: records.count_clients())
        await Server(config).serve()
    except SystemExit as error:  # uvicorn's way of saying so; its log has the reason
        raise ConnectFailed(f"cannot listen on {host}:{port}") from error
    finally:
        await authority.close()


def format_instructions(authority: "AuthorizationServer") -> str:
    """The lines by which an MCP server trusts this authorization server."""
    from isthmus.auth.net.urls import well_known_url

    metadata = well_known_url(authority.issuer, "oauth-authorization-server")
    scopes = f'{{"{next(iter(authority.scopes))}"}}' if authority.scopes else "()"
    return INSTRUCTIONS.format(
        issuer=authority.issuer,
        metadata=metadata,
        resource=authority.resources[0],
        scopes=scopes,
    )
