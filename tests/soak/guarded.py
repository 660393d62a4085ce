"""A guarded server for the soak: people log in, programs come with tokens, strangers with none.

Tokens live for two seconds, so that they are renewed, refused and forgotten while visits go on.
"""

import asyncio
import base64
import contextlib
import json
import random
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

from isthmus import Client, Principal, Server
from isthmus.auth import ClientCredentials, MemoryTokenStore, OAuth, Secret
from isthmus.auth.authorization_server.core.requests import Limits
from isthmus.auth.authorization_server.core.settings import DcrPolicy, RegistrationPolicy
from isthmus.auth.authorization_server.pages.front import BrowserFront
from isthmus.auth.authorization_server.pages.login import BrowserSessions
from isthmus.auth.authorization_server.server import AuthorizationServer
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.users.login_limits import Allowance, LoginTries
from isthmus.auth.authorization_server.users.passwords import PasswordUsers
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.errors import AuthError
from isthmus.store.meter import Rate
from isthmus.testing.connections import run_until_left
from isthmus.testing.person import Person
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.serve import serve

__all__ = ["VISITS", "Bank", "opened"]

PASSWORD = "correct horse battery"
READ, WRITE = "files:read", "files:write"
PEOPLE, PROGRAMS = 20, 20
LIFE = 2  # seconds of a token
OFTEN, ANY = Rate(10**9, seconds=60), Allowance(10**9, 60.0)  # all come from one address

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}'
)
LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
HEAD = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Bank:
    """What is visited: a server, the issuer of its tokens, and who may come.

    Args:
        folder: where passwords are kept.
        port: where both listen.

    Attributes:
        url: the MCP endpoint.
        browsers: as many as may be open; each holds a thread of those that the server needs, too.
        over: tokens of earlier visits, and when they were issued.
        requests: sends what no client of ours would.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.url = f"{self.origin}/mcp"
        users = PasswordUsers(folder / "users.db", memory=64, rounds=1, lanes=1)
        for number in range(PEOPLE):
            users.add(f"person-{number}", Secret(PASSWORD))
        self.programs = [program(number) for number in range(PROGRAMS)]
        self.authority = AuthorizationServer(
            self.origin,
            resources=[self.url],
            scopes={READ: "Read", WRITE: "Write"},
            users=users,
            store=MemoryAuthStore(),
            registration=RegistrationPolicy(dcr=DcrPolicy(per_ip_hour=10**9), static=self.programs),
            access_ttl=LIFE,
            refresh_ttl=3 * LIFE,
            rotation_grace=0.5,
            front=lambda authority: BrowserFront(
                BrowserSessions(authority.settings, authority.store, authority.users),
                authority.requests,
                tries=LoginTries(address=ANY, account=ANY),
            ),
            limits=Limits(10**9, per_address=OFTEN, per_client=OFTEN),
        )
        auth = self.authority.resource_auth(self.url, scopes={READ}, dpop="allow")
        self.server = Server("bank", version="1", auth=auth)
        self.server.tool(self.read)
        self.server.tool(self.write, scopes={WRITE})
        self.browsers = asyncio.Semaphore(3)
        self.over: deque[tuple[float, str]] = deque(maxlen=PROGRAMS)
        self.requests = open_requests(connect_timeout=10)
        self.grants = [
            ClientCredentials(one.client_id, secret=one.secret, scopes=one.scopes)
            for one in self.programs
        ]

    async def read(self, who: Principal) -> str:
        """Say who asks."""
        return who.subject

    async def write(self, who: Principal) -> str:
        """Say who asks, and may."""
        return who.subject


def program(number: int) -> RegisteredClient:
    """A program that gets tokens for what it is."""
    return RegisteredClient(
        client_id=f"program-{number}",
        secret=Secret("s" * 43),
        auth_method="client_secret_basic",
        grant_types=("client_credentials",),
        scopes=(READ,) if number % 2 else (READ, WRITE),
    )


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Bank]:
    """A bank that listens, until the block is left."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    bank = Bank(folder, port)
    app = bank.server.asgi(session_idle=1.0)
    try:
        async with run_until_left(lambda told: serve(app, port=port, on_bound=told)):
            yield bank
    finally:
        await bank.requests.close()
        await bank.authority.close()


async def sent(
    bank: Bank, method: str, body: bytes | None = None, **headers: str
) -> tuple[int, str]:
    """The status of an answer, and the session it is of."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await bank.requests.send(method, bank.url, {**HEAD, **named}, body)
    try:
        if response.status < 500 and method != "GET":
            await response.read(1 << 20)
        return response.status, response.headers.get("Mcp-Session-Id", "")
    finally:
        response.close()


async def token(bank: Bank, number: int, proof: str | None = None) -> str:
    """A new token of a program."""
    basic = base64.b64encode(f"program-{number}:{'s' * 43}".encode()).decode()
    head = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Authorization": f"Basic {basic}",
        **({} if proof is None else {"DPoP": proof}),
    }
    form = urlencode({"grant_type": "client_credentials", "resource": bank.url})
    where = f"{bank.origin}/token"
    response = await bank.requests.send("POST", where, head, form.encode())
    found = json.loads(await response.read(1 << 16))["access_token"]
    bank.over.append((time.monotonic(), found))
    return str(found)


async def logs_in(bank: Bank, revision: str, dice: random.Random) -> None:
    """Somebody logs in with a program of theirs, is asked for more, and may log out."""
    who = f"person-{dice.randrange(PEOPLE)}"
    person = Person(who, PASSWORD)
    dpop = dice.choice(("auto", "off"))
    auth = OAuth("soak", open_browser=person.open, store=MemoryTokenStore(), dpop=dpop)
    async with bank.browsers, Client(bank.url, auth=auth, revision=revision) as client:
        assert who == (await client.call_tool("read")).text
        if dice.random() < 0.5:
            assert who == (await client.call_tool("write")).text
    if dice.random() < 0.5:
        await auth.logout(bank.url)


async def has_a_token(bank: Bank, revision: str, dice: random.Random) -> None:
    """A program comes with a token, which others of its name use at the same time."""
    number = dice.randrange(PROGRAMS)
    async with Client(bank.url, auth=bank.grants[number], revision=revision) as client:
        assert f"program-{number}" == (await client.call_tool("read")).text
        try:
            await client.call_tool("write")
        except AuthError:
            assert number % 2, "it may write"
        else:
            assert not number % 2, "it may not write"


async def has_none(bank: Bank, _revision: str, dice: random.Random) -> None:
    """Strangers, with no token, with nonsense, with one that is forged, and with one that is over."""
    good = await token(bank, dice.randrange(PROGRAMS))
    forged = f"{good[:-8]}{'A' * 8}"
    issued, old = bank.over[0]
    bad = ["", "Basic Zm9v", "Bearer a.b.c", f"Bearer {forged}", f"DPoP {good}"]
    if time.monotonic() - issued > LIFE + 1.5:
        bad.append(f"Bearer {old}")
    for shown in bad:
        more = {"Authorization": shown} if shown else {}
        assert (401, "") == await sent(bank, "POST", INITIALIZE, **more), shown[:7]


async def takes_a_session(bank: Bank, _revision: str, dice: random.Random) -> None:
    """A session is its owner's, and nobody else finds it; now and then nobody ends it, either."""
    mine, other = dice.sample(range(PROGRAMS), 2)
    own, strange = [f"Bearer {await token(bank, one)}" for one in (mine, other)]
    status, session = await sent(bank, "POST", INITIALIZE, Authorization=own)
    theirs = await sent(bank, "POST", LIST, Authorization=strange, Mcp_Session_Id=session)
    streamed = await sent(bank, "GET", Authorization=own, Mcp_Session_Id=session)
    assert (200, 404, 200) == (status, theirs[0], streamed[0])
    if dice.random() < 0.8:
        await sent(bank, "DELETE", Authorization=own, Mcp_Session_Id=session)


async def sends_a_proof_twice(bank: Bank, _revision: str, dice: random.Random) -> None:
    """A proof is good once, and whoever copied it gets nothing by it."""
    key = DpopKey.generate()
    bound_to_it = await token(
        bank, dice.randrange(PROGRAMS), key.proof("POST", f"{bank.origin}/token")
    )
    proof = key.proof("POST", bank.url, token=bound_to_it)
    shown = {"Authorization": f"DPoP {bound_to_it}", "DPoP": proof}
    first = await sent(bank, "POST", INITIALIZE, **shown)
    again = await sent(bank, "POST", INITIALIZE, **shown)
    assert (200, 401) == (first[0], again[0])


VISITS: tuple[Callable[[Bank, str, random.Random], Awaitable[None]], ...] = (
    logs_in, has_a_token, has_a_token, has_none, takes_a_session, sends_a_proof_twice,
)  # fmt: skip
"""What visits of the guarded server are like."""
