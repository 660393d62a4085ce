"""Accounts through a whole gateway: the question to connect, our authorization server as issuer, and what never passes."""

import ast
import asyncio
import contextlib
import socket
from pathlib import Path

import pytest

from isthmus import Accepted, Client, Declined, Principal, Server
from isthmus.auth import ResourceAuth, StaticTokens
from isthmus.errors import IsthmusError
from isthmus.gateway import Gateway
from isthmus.gateway.accounts.pages import AccountPages
from isthmus.gateway.principals import LOCAL_PRINCIPAL, make_principal
from isthmus.host.model.entries import HostConfig
from isthmus.testing.connections import run_until_left
from isthmus.testing.person import Person as PersonWithPassword
from isthmus.transports.http.serve import serve
from support.auth.authority import PASSWORD, SCOPES, Visitor, make_authority, make_users
from support.auth.oauth_town import body_of, open_town, replay_body
from support.gateway.account_town import (
    HeaderVisitors,
    Person,
    make_account_entry,
    route_pages,
)
from support.gateway.small_gateway import REVISION_NAMES, make_allowing_host
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

READ = next(iter(SCOPES))
CANARY = "canary-7f3a9c55e1"


@contextlib.asynccontextmanager
async def open_gateway(kind="user-oauth", **server):
    """A town, and a gateway in front of its server with pages for the user of this machine."""
    async with open_town() as here:
        entry = make_account_entry(here.url, kind=kind)
        gateway = Gateway(make_allowing_host(config=HostConfig(servers={"crm": entry})), **server)
        pages = AccountPages(gateway.host.accounts, "http://127.0.0.1:8080")
        async with gateway:
            yield here, gateway, pages


def make_visitor(pages):
    """The user of this machine, at their browser."""
    return Visitor(route_pages(pages), pages.origin, address="127.0.0.1")


async def connect(visitor, url):
    """Agree on our page, and come back from the issuer of the town."""
    answer = await visitor.decide(await visitor.get(url))
    back = await Person.log_in_at_issuer(visitor, answer.header("location"))
    return await visitor.get(back)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_that_can_is_asked_to_open_the_page_and_the_call_goes_on(revision):
    """Ours: in both eras; what was asked for is done once the account is there, and not before."""
    asked, pages_seen = [], []
    async with open_gateway() as (_here, gateway, pages):

        async def visit(question):
            asked.append(question)
            pages_seen.append((await connect(make_visitor(pages), question.url)).status)
            return Accepted(None)

        async with Client(gateway.server, revision=revision, elicit=visit) as user:
            assert "hello" == (await user.call_tool("crm__hello")).text
    assert [200] == pages_seen
    assert asked[0].url.startswith("http://127.0.0.1:8080/connect?handle=")
    assert "crm" in asked[0].message


@pytest.mark.parametrize("revision", REVISION_NAMES)
async def test_a_client_that_cannot_be_asked_gets_an_error_with_the_link(revision):
    """Ours: never the text of a tool, in no revision."""
    async with (
        open_gateway() as (_here, gateway, pages),
        Client(gateway.server, revision=revision) as user,
    ):
        with pytest.raises(IsthmusError, match="connect it at") as caught:
            await user.call_tool("crm__hello")
        url = caught.value.data["url"]
        assert ("crm", "missing") == (caught.value.data["server"], caught.value.data["reason"])
        assert 200 == (await connect(make_visitor(pages), url)).status
        assert "hello" == (await user.call_tool("crm__hello")).text


async def test_a_client_that_refuses_to_open_the_page_gets_an_error():
    """Ours: nothing is connected, and nothing was done."""
    async with open_gateway() as (_here, gateway, _pages):
        async with Client(gateway.server, elicit=lambda _: Declined()) as user:
            with pytest.raises(IsthmusError, match="was refused"):
                await user.call_tool("crm__hello")
        accounts = gateway.host.accounts
        assert "missing" == (await accounts.state(LOCAL_PRINCIPAL, "crm")).state


class RecordingTown:
    """What the server of a town is sent, all of it."""

    def __init__(self, here):
        self.seen = []
        serve_mcp = here.mcp

        async def record(scope, receive, send):
            body = await body_of(receive) if scope["type"] == "http" else b""
            self.seen.append(repr((scope["headers"], scope["query_string"], body)))
            await serve_mcp(scope, replay_body(body, receive), send)

        here.mcp = record


async def test_nothing_that_a_client_authenticates_with_reaches_a_server(caplog):
    """Spec 2026-07-28 basic/authorization: no token passthrough; nor cookies, query, or other headers."""
    ada = Principal(issuer="https://login.example", subject="ada", scopes=frozenset({"a"}))
    auth = ResourceAuth(
        "http://127.0.0.1:8000/mcp",
        ["https://login.example"],
        StaticTokens({CANARY: ada}),
        scopes={"a"},
    )
    async with open_gateway(auth=auth) as (here, gateway, _pages):
        recorded, accounts = RecordingTown(here), gateway.host.accounts
        pages = AccountPages(accounts, "http://127.0.0.1:8080", visitors=HeaderVisitors())
        principal = make_principal(ada)
        await Person(pages, principal).connect(accounts.connect(principal, "crm"))
        app = gateway.asgi()
        head = {
            **modern_head("tools/call", name="crm__hello"),
            "authorization": f"Bearer {CANARY}",
            "cookie": f"session={CANARY}",
            "x-forwarded-for": CANARY,
            "x-api-key": CANARY,
            "host": "127.0.0.1:8000",
        }
        body = modern_body("tools/call", {"name": "crm__hello", "arguments": {}})
        scope = {"query_string": f"access_token={CANARY}".encode()}
        answer = await fetch(app, headers=head, body=body, scope=scope)
        assert b'"hello"' in answer.body, answer.body
        assert recorded.seen
        sent = [*recorded.seen, *map(repr, here.seen), *map(repr, here.authority.forms)]
        assert [] == [one for one in sent if CANARY in one]
        assert {f"Bearer {one}" for one in here.authority.tokens} == {
            headers["authorization"]
            for _, path, headers in here.seen
            if path == "/mcp" and "authorization" in headers
        }
        rows = [repr(row) for row in await gateway.host.audit.tail(500)]
        assert rows
        assert [] == [row for row in rows if CANARY in row]
    assert CANARY not in caplog.text


SOURCES = Path(__file__).resolve().parents[2] / "src" / "isthmus"
REQUEST_PARTS = {"headers", "cookies", "reveal_credential", "query_string", "fields"}
"""Attributes of a downstream request that hold credentials."""


def test_what_calls_servers_reads_no_header_of_a_client():
    """Ours (A4.4): host and the gateway's path of calls have no way to a header, so that none can be passed on."""
    paths = [*(SOURCES / "host").rglob("*.py"), *(SOURCES / "gateway").glob("*.py")]
    own = {
        "entry",
        "target",
        "response",
        "answer",
        "self",
        "structs",
    }  # ours, or of a server behind
    found = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in {"reveal_credential", "cookies"}:
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
            if isinstance(node, ast.Attribute) and node.attr in {"headers", "query_string"}:
                root = ast.unparse(node.value).split(".")[0]
                if root not in own and "request" in ast.unparse(node.value):
                    found.append(f"{path.name}:{node.lineno} {ast.unparse(node)}")
    assert [] == found


class IssuedServer:
    """A server of ours with our authorization server."""

    def __init__(self, folder, port):
        self.origin = f"http://127.0.0.1:{port}"
        self.authority = make_authority(self.origin, make_users(folder, "alice", "bert"))
        auth = self.authority.resource_auth(f"{self.origin}/mcp", scopes={READ})
        self.server = Server("files", auth=auth)

        @self.server.tool
        def whoami(who: Principal) -> str:
            """Say who calls."""
            return who.subject


@pytest.mark.parametrize("concurrent", [False, True])
async def test_our_authorization_server_as_the_issuer_of_accounts(tmp_path, concurrent):
    """Ours: each principal is who they logged in as there; connecting, renewing and forgetting for real."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = IssuedServer(tmp_path, port)
    app, ada, bob = made.server.asgi(), "user:a@x", "user:b@x"
    entry = make_account_entry(f"{made.origin}/mcp", kind="user-oauth")
    host = make_allowing_host(config=HostConfig(servers={"crm": entry}))
    pages = AccountPages(host.accounts, "https://gateway.example", visitors=HeaderVisitors())

    async def connect_as(principal, account):
        person = Person(pages, principal)
        page = await person.get(host.accounts.connect(principal, "crm"))
        answer = await person.decide(page)
        login = PersonWithPassword(account, PASSWORD)
        back = await asyncio.to_thread(login.follow, answer.header("location"))
        assert 200 == (await person.get(back)).status
        return (await host.call("whoami", server="crm", principal=principal)).text

    async with run_until_left(lambda told: serve(app, port=port, on_bound=told)), host:
        work = [connect_as(ada, "alice"), connect_as(bob, "bert")]
        names = await asyncio.gather(*work) if concurrent else [await one for one in work]
        assert 2 == len(set(names))
        assert await host.accounts.forget(ada, "crm")
        states = [(await host.accounts.state(one, "crm")).state for one in (ada, bob)]
        assert ["missing", "connected"] == states
        assert names[1] == (await host.call("whoami", server="crm", principal=bob)).text
    await made.authority.close()
