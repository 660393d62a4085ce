"""A protected server and the people who come to it, for tests of the resource server."""

from typing import Any

from isthmus import Context, Principal, Server
from isthmus.auth import ResourceAuth, ScopeModel, StaticTokens
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import INITIALIZE, legacy_head, modern_body, modern_head

RESOURCE = "http://localhost:8000/mcp"
METADATA = "http://localhost:8000/.well-known/oauth-protected-resource/mcp"
ISSUER = "https://login.example"
READ, WRITE, ADMIN = "files:read", "files:write", "files:admin"


def make_person(name: str, *scopes: str, **more: Any) -> Principal:
    """A principal with scopes."""
    known = {"issuer": ISSUER, "subject": name, "client_id": "app", **more}
    return Principal(scopes=frozenset(scopes), **known)


ADA = make_person("ada", READ)
BOB = make_person("bob", READ)
EVE = make_person("eve", READ, WRITE, "openid")
ROOT = make_person("root", ADMIN)
NOBODY = make_person("guest")

PEOPLE = {
    "token-of-ada": ADA,
    "token-of-bob": BOB,
    "token-of-eve": EVE,
    "token-of-root": ROOT,
    "token-of-guest": NOBODY,
}
MODEL = ScopeModel({READ}, implies={ADMIN: {READ, WRITE}})


def make_guard(people: Any = None, **options: Any) -> ResourceAuth:
    """The guard of a server: takes the tokens of these people."""
    known = PEOPLE if people is None else people
    return ResourceAuth(
        options.pop("resource", RESOURCE),
        [ISSUER],
        options.pop("verifier", None) or StaticTokens(known),
        **{"scopes": MODEL, **options},
    )


class Files:
    """A server of files, and what was done to them.

    Attributes:
        done: what was run, in order.
    """

    def __init__(self, auth: Any = None, **options: Any) -> None:
        self.done: list[str] = []
        self.server = server = Server("files", version="1", auth=auth or make_guard(), **options)
        done = self.done.append

        @server.tool
        async def read(path: str) -> str:
            """Read a file."""
            done(f"read {path}")
            return f"contents of {path}"

        @server.tool(scopes={WRITE})
        async def write(path: str) -> str:
            """Write a file."""
            done(f"write {path}")
            return "written"

        @server.tool(scopes=lambda args, who: {WRITE, f"project:{args['project']}"})
        async def publish(project: str = "main") -> str:
            """Publish a project."""
            done(f"publish {project}")
            return "published"

        @server.tool
        async def whoami(ctx: Context) -> str:
            """The name of the caller."""
            return ctx.principal.subject if ctx.principal else "nobody"

        @server.resource("secret://plan", scopes={WRITE})
        async def plan() -> str:
            """The plan."""
            done("plan")
            return "the plan"

        @server.resource("open://note")
        async def note() -> str:
            """A note."""
            return "a note"

        @server.resource(
            "project://{project}/log", scopes=lambda args, who: {f"project:{args['project']}"}
        )
        async def log(project: str) -> str:
            """A project's log."""
            done(f"log {project}")
            return f"log of {project}"

        @server.prompt(scopes={WRITE})
        def review(path: str) -> str:
            """Review a file."""
            done(f"review {path}")
            return f"Review {path}."

        @review.completes("path")
        def paths() -> list[str]:
            done("paths")
            return ["a.txt"]

        self.app = server.asgi()


def bearer_header(name: str | None) -> dict[str, str]:
    """The header that brings somebody's token."""
    return {} if name is None else {"authorization": f"Bearer token-of-{name}"}


def begin_request_as(
    app: Any, name: str | None, method: str, params: Any, target: Any = None
) -> Exchange:
    """Begin a modern request in somebody's name."""
    head = {
        **modern_head(method, target or params.get("name") or params.get("uri")),
        **bearer_header(name),
    }
    return Exchange(app, headers=head, body=modern_body(method, params))


async def call_tool_as(app: Any, name: str | None, tool: str, **arguments: Any) -> Exchange:
    """A modern tools/call in somebody's name."""
    return await begin_request_as(
        app, name, "tools/call", {"name": tool, "arguments": arguments}
    ).done()


async def open_session_as(app: Any, name: str | None, revision: str = "2025-11-25") -> str:
    """The id of a new session of somebody's."""
    params = {**INITIALIZE["params"], "protocolVersion": revision}
    body = {**INITIALIZE, "params": params}
    exchange = await fetch(app, headers={**legacy_head(), **bearer_header(name)}, body=body)
    assert 200 == exchange.status, exchange.body
    return str(exchange.header("mcp-session-id"))


def legacy_head_as(
    session: str, name: str | None, revision: str = "2025-11-25", **more: str
) -> Any:
    """The headers of a request of a session, in somebody's name."""
    head = {**legacy_head(session), **bearer_header(name), "mcp-protocol-version": revision}
    return {**head, **{key.replace("_", "-"): value for key, value in more.items()}}


def legacy_tool_call(tool: str, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    """A legacy tools/call."""
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def list_challenges(exchange: Exchange) -> list[str]:
    """The challenges of an answer."""
    return [value for name, value in exchange.headers if name == "www-authenticate"]
