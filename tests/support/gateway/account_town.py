"""A host whose servers want accounts, its pages, and the browsers of its users."""

from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from isthmus.gateway.accounts.pages import AccountPages
from isthmus.host.host import Host
from isthmus.host.model.entries import HostConfig, ServerEntry, ServerOptions
from support.auth.authority import Visitor
from support.auth.oauth_town import open_town

ADA, BOB = "user:ada@login.example", "user:bob@login.example"
PUBLIC_URL = "https://gateway.example"
PERSON_HEADER = "x-test-person"


class HeaderVisitors:
    """Who is at a browser, as a proxy in front would say it."""

    async def find(self, request):
        """The principal that the header names."""
        return request.headers.get(PERSON_HEADER)


class Person(Visitor):
    """A user at a browser, who is signed in under a name.

    Args:
        pages: the pages of the gateway.
        principal: who they are; None for nobody.
    """

    def __init__(self, pages, principal, **options):
        super().__init__(route_pages(pages), pages.origin, **options)
        self.principal = principal

    async def _send(self, method, url, body, site, headers):
        said = {} if self.principal is None else {PERSON_HEADER: self.principal}
        return await super()._send(method, url, body, site, {**headers, **said})

    async def log_in_at_issuer(self, url):
        """Go to the issuer as the browser is sent there, and give the address that it sends back to."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, allow_redirects=False) as page,
        ):
            return page.headers["Location"]

    async def connect(self, url, **fields):
        """Open a link, agree, log in, and come back; the last page."""
        page = await self.get(url)
        if page.status != 200:
            return page
        answer = await self.decide(page, **fields)
        if answer.status != 303:
            return answer
        return await self.get(await self.log_in_at_issuer(answer.header("location")))


def route_pages(pages):
    """The pages as one ASGI app."""

    async def app(scope, receive, send):
        await pages.routes[scope["path"]](scope, receive, send)

    return app


def read_query(url):
    """The parameters of a URL."""
    return dict(parse_qsl(urlsplit(url).query))


def make_account_entry(url, name="crm", instance="auto", **auth):
    """The entry of a server that wants accounts."""
    options = ServerOptions(auth=auth, instance=instance)
    return ServerEntry(name=name, kind="http", url=url, options=options)


class AccountTown:
    """A town, a host with one of its servers, and pages.

    Attributes:
        here: the town.
        host: the host.
        pages: its pages; None where it has none.
    """

    def __init__(self, here, host, pages):
        self.here = here
        self.host = host
        self.pages = pages
        self.accounts = host.accounts

    async def hello(self, principal=ADA):
        """Call the tool of the server for somebody."""
        return (await self.host.call("hello", server="crm", principal=principal)).text

    async def connect(self, principal=ADA, **fields):
        """Have somebody connect their account; the last page."""
        person = Person(self.pages, principal)
        return await person.connect(self.accounts.connect(principal, "crm"), **fields)

    async def state(self, principal=ADA):
        """The state of somebody's account."""
        return (await self.accounts.state(principal, "crm")).state

    def shown_tokens(self):
        """The credentials that the MCP server was shown, in order."""
        return [
            headers["authorization"]
            for _, path, headers in self.here.seen
            if path == "/mcp" and "authorization" in headers
        ]


@asynccontextmanager
async def open_account_town(*, kind="user-oauth", instance="auto", state=None, **auth):
    """A town with a host that serves several users."""
    async with open_town() as here:
        given = {"kind": kind, **auth} if kind else auth
        entry = make_account_entry(here.url, instance=instance, **given)
        host = Host(
            HostConfig(servers={"crm": entry}),
            policy="developer",
            approver=lambda _asked: True,
            state=state,
        )
        pages = AccountPages(host.accounts, PUBLIC_URL, visitors=HeaderVisitors())
        async with host:
            yield AccountTown(here, host, pages)
