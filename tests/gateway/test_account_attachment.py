"""Account pages as a gateway attaches them: the whole way over HTTP, and who is taken for whom at a browser."""

import asyncio
import contextlib

import pytest

from isthmus import Accepted, Client, Principal, Server
from isthmus.auth import ResourceAuth, StaticTokens
from isthmus.errors import IsthmusError
from isthmus.gateway import Gateway
from isthmus.gateway.principals import LOCAL_PRINCIPAL, make_principal
from isthmus.host.model.entries import HostConfig
from isthmus.testing.connections import run_until_left
from isthmus.testing.person import Person
from isthmus.transports.http.serve import serve
from support.auth.authority import PASSWORD, SCOPES, Visitor, make_authority, make_users
from support.auth.oauth_town import open_town
from support.gateway.account_town import PERSON_HEADER, HeaderVisitors, make_account_entry
from support.gateway.small_gateway import make_allowing_host
from support.ports import find_free_port

READ = next(iter(SCOPES))
ADA = Principal(issuer="https://login.example", subject="ada", scopes=frozenset({"a"}))


def make_crm_gateway(url: str, **server) -> Gateway:
    """A gateway in front of a server that wants accounts."""
    entry = make_account_entry(url, kind="user-oauth")
    return Gateway(make_allowing_host(config=HostConfig(servers={"crm": entry})), **server)


@contextlib.asynccontextmanager
async def serve_gateway(folder):
    """A gateway that listens, with its pages, in front of a server with our authorization server; its origin."""
    behind, front = (f"http://127.0.0.1:{find_free_port()}" for _ in range(2))
    authority = make_authority(behind, make_users(folder, "alice"))
    server = Server("files", auth=authority.resource_auth(f"{behind}/mcp", scopes={READ}))

    @server.tool
    def whoami(who: Principal) -> str:
        """Say who calls."""
        return f"known: {bool(who.subject)}"

    gateway = make_crm_gateway(f"{behind}/mcp")
    gateway.open_pages(front)
    ports = [int(one.rpartition(":")[2]) for one in (behind, front)]
    async with (
        run_until_left(lambda told: serve(server.asgi(), port=ports[0], on_bound=told)),
        run_until_left(lambda told: serve(gateway.asgi(), port=ports[1], on_bound=told)),
    ):
        yield front
    await authority.close()


async def connect(url: str) -> int:
    """Agree on the page of the gateway, log in at the issuer, and come back; the last status."""
    alice = Person("alice", PASSWORD)
    issuer = await asyncio.to_thread(alice.follow, url)
    back = await asyncio.to_thread(alice.follow, issuer)
    status, _, page = await asyncio.to_thread(alice.request, "GET", back)
    assert "is connected" in page
    return status


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_over_http_is_asked_and_its_user_connects(tmp_path, revision):
    """Ours: page, issuer and call are all real, in both eras."""
    statuses = []

    async def visit(question):
        statuses.append(await connect(question.url))
        return Accepted(None)

    async with (
        serve_gateway(tmp_path) as front,
        Client(f"{front}/mcp", revision=revision, elicit=visit) as user,
    ):
        assert "known: True" == (await user.call_tool("crm__whoami")).text
    assert [200] == statuses


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_a_client_over_http_that_cannot_be_asked_gets_the_link(tmp_path, revision):
    """Ours: an error whose link works, and then the call does."""
    async with (
        serve_gateway(tmp_path) as front,
        Client(f"{front}/mcp", revision=revision) as user,
    ):
        with pytest.raises(IsthmusError, match="connect it at") as caught:
            await user.call_tool("crm__whoami")
        url = caught.value.data["url"]
        assert url.startswith(f"{front}/connect?handle=")
        assert 200 == await connect(url)
        assert "known: True" == (await user.call_tool("crm__whoami")).text


# Who is at a browser


@pytest.mark.parametrize(
    ("origin", "address", "status"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1", 200),
        ("http://127.0.0.1:8080", "192.0.2.1", 403),
        # behind a proxy on this machine, everybody's address is of this machine
        ("https://gateway.example", "127.0.0.1", 403),
        ("https://gateway.example", "192.0.2.1", 403),
    ],
)
async def test_the_user_of_this_machine_is_known_at_its_own_address_alone(origin, address, status):
    """Spec 2025-11-25 client/elicitation#phishing: elsewhere the operator has to sign in."""
    async with open_town() as here:
        gateway = make_crm_gateway(here.url)
        pages = gateway.open_pages(origin)
        async with gateway:
            browser = Visitor(gateway.asgi(public_url=origin), origin, address=address)
            url = gateway.host.accounts.connect(LOCAL_PRINCIPAL, "crm")
            page = await browser.get(url)
            assert status == page.status
            if status == 403:
                assert f"{origin}/approvals/login".encode() in page.body
            token = {"token": pages.operator.token.reveal()}
            assert 303 == (await browser.post("/approvals/login", token)).status
            assert 200 == (await browser.get(url, site="cross-site")).status


@pytest.mark.parametrize("visitors", [None, HeaderVisitors()])
async def test_pages_of_a_gateway_with_users_are_for_who_is_known_there(visitors):
    """Spec 2025-11-25 client/elicitation#phishing: neither this machine's user nor the operator is taken for them."""
    auth = ResourceAuth(
        "https://gateway.example/mcp", ["https://login.example"], StaticTokens({"t": ADA})
    )
    async with open_town() as here:
        gateway, principal = make_crm_gateway(here.url, auth=auth), make_principal(ADA)
        app = gateway.asgi(public_url="https://gateway.example", visitors=visitors)
        async with gateway:
            url = gateway.host.accounts.connect(principal, "crm")
            browser = Visitor(app, "https://gateway.example", address="127.0.0.1")
            assert 403 == (await browser.get(url)).status
            if visitors is None:
                token = {"token": gateway.pages.operator.token.reveal()}
                assert 303 == (await browser.post("/approvals/login", token)).status
            status = 200 if visitors else 403
            assert status == (await browser.get(url, **{PERSON_HEADER: principal})).status
            other = await browser.get(url, **{PERSON_HEADER: f"{principal}.evil"})
            assert 403 == other.status


async def test_no_accounts_are_connected_where_others_could_read_along(caplog):
    """Ours: plain http to another machine has approvals, and no page that takes a key."""
    async with open_town() as here:
        gateway = make_crm_gateway(here.url)
        gateway.open_pages("http://192.0.2.7:8080")
        assert gateway.account_pages is None
        assert "only https" in caplog.text


async def test_pages_take_no_name_that_is_not_the_gateways():
    """Spec 2026-07-28 basic/transports/streamable-http#security-endpoint: against DNS rebinding."""
    async with open_town() as here:
        gateway = make_crm_gateway(here.url)
        gateway.open_pages("http://127.0.0.1:8080")
        async with gateway:
            url = gateway.host.accounts.connect(LOCAL_PRINCIPAL, "crm")
            browser = Visitor(gateway.asgi(), "http://127.0.0.1:8080", address="127.0.0.1")
            assert 403 == (await browser.get(url, host="evil.example:8080")).status
