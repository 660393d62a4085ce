"""A server that asks something of every kind, a client that answers, and a gateway between them."""

import asyncio
from contextlib import asynccontextmanager

from isthmus import Accepted, Cancelled, Context, Declined, Server
from isthmus.client import Client
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.gateway.small_gateway import ALLOW_ALL

WITH_FORMS = ["2025-06-18", "2025-11-25", "2026-07-28"]  # revisions that have elicitation
WITH_PAGES = ["2025-11-25", "2026-07-28"]


def make_asker(revision, name="shop"):
    """A server of one revision whose tools ask, each in one way."""
    asker = Server(name, revisions=[revision])

    @asker.tool
    async def order(item: str, ctx: Context) -> str:
        """Order something, of which the size is asked."""
        answer = await ctx.elicit(f"Which size of {item}?", str)
        match answer:
            case Accepted(size):
                return f"{item}: {size}"
            case Declined():
                return f"{item}: declined"
        return f"{item}: cancelled"

    @asker.tool
    async def twice(ctx: Context) -> str:
        """Ask one thing after the other."""
        first = await ctx.elicit("Which first?", str)
        second = await ctx.elicit(f"Which after {first.value}?", str)
        return f"{first.value} {second.value}"

    @asker.tool
    async def both(ctx: Context) -> str:
        """Ask two things at once."""
        one, two = await asyncio.gather(
            ctx.elicit("Which left?", str), ctx.elicit("Which right?", str)
        )
        return f"{one.value} {two.value}"

    @asker.tool
    async def pay(ctx: Context) -> str:
        """Send the user to a page."""
        return type(await ctx.elicit_url("Pay here", "https://pay.example/1")).__name__

    @asker.tool
    async def think(about: str, ctx: Context) -> str:
        """Have a model write."""
        return str((await ctx.sample(about, max_tokens=20)).text)

    @asker.tool
    async def look(ctx: Context) -> str:
        """List the folders of the user."""
        return " ".join(sorted(root.uri for root in await ctx.roots()))

    return asker


def make_host(policy=ALLOW_ALL, *servers, **options):
    """A host with servers by name, and a policy."""
    host = Host(policy=Policy.of(read_layers(policy, "user")), **options)
    for name, server, entry in servers:
        host.add(name, server, **entry)
    return host


class Answers:
    """Functions of a client that answer, each with its name in the answer.

    Args:
        name: whose answers they are.
        verdict: another answer to forms and pages.
    """

    def __init__(self, name="ann", verdict=None):
        self.name = name
        self.verdict = verdict
        self.asked = []

    def elicit(self, question):
        """Answer a form with the name, a page with consent."""
        self.asked.append(question.message)
        if self.verdict is not None:
            return self.verdict
        return Accepted(None if question.mode == "url" else {"value": self.name})

    def sample(self, request):
        """Write the name."""
        self.asked.append("sampling")
        return f"written by {self.name}"

    def roots(self):
        """One folder with the name."""
        self.asked.append("roots")
        return [f"file:///home/{self.name}"]

    @property
    def all(self):
        """Arguments of a client that answers everything."""
        return {"elicit": self.elicit, "sample": self.sample, "roots": self.roots}


@asynccontextmanager
async def connect(
    client_revision,
    server_revision,
    *,
    policy=ALLOW_ALL,
    options=None,
    host=None,
    pages=False,
    **answers,
):
    """A client of a gateway in front of one server; it has pages of approvals, as a process has."""
    host = make_host(policy, ("shop", make_asker(server_revision), {}), **(host or {}))
    gateway = Gateway(host, options=options)
    if pages:
        gateway.open_pages("http://127.0.0.1:8080")
    async with gateway, Client(gateway.server, revision=client_revision, **answers) as user:
        yield user, gateway


DECLINED, CANCELLED = Declined(), Cancelled()
