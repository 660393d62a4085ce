"""Probe upstreams: small servers of the check's own, which the gateway under test has behind it.

One speaks the revisions up to 2025-11-25, one 2026-07-28, and one is there to be taken away. Their tools are
named for the server that has them, so that they are found again under whatever name a gateway gives them.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from isthmus.core.answers import Accepted
from isthmus.errors import ConnectFailed
from isthmus.linter.gateway.tap import UpstreamTap
from isthmus.revisions import LEGACY, MODERN, Revision
from isthmus.server.asking.context import Context
from isthmus.server.server import Server

LEGACY_NAME, MODERN_NAME, SPARE_NAME = "legacy", "modern", "spare"
UPSTREAM_REVISIONS: dict[str, Sequence[Revision]] = {
    LEGACY_NAME: tuple(LEGACY),
    MODERN_NAME: tuple(MODERN),
    SPARE_NAME: (*LEGACY, *MODERN),
}

MEETING_TIMEOUT_S = 0.7  # in which two calls at once find one another; a gateway may let one wait
PAGE_URL = "https://isthmus-check.invalid/page"
ANSWER_FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}


class MeetingPlace:
    """A place where two wait for one another, for a short while."""

    def __init__(self) -> None:
        self._events: dict[str, tuple[asyncio.Event, set[str]]] = {}

    async def meet(self, place: str, who: str) -> bool:
        """Wait until two different ones are here, or nobody comes; whether both were."""
        event, here = self._events.setdefault(place, (asyncio.Event(), set()))
        here.add(who)
        if len(here) > 1:
            event.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), MEETING_TIMEOUT_S)
        return event.is_set()


class ProbeUpstream:
    """A server behind the gateway under test, and what arrived there.

    Args:
        name: of the server, and the end of the names of all that it offers.

    Attributes:
        server: the server.
        tap: every byte that came and went.
        begun: how often each call began, by its token.
        waiting: set when a call waits to be cancelled, by its token.
        cancelled: set when it was.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.tap = UpstreamTap()
        self.begun: Counter[str] = Counter()
        self.waiting: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.cancelled: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._meeting = MeetingPlace()
        self.server: Server = Server(
            f"isthmus-check-{name}", version="1", revisions=UPSTREAM_REVISIONS[name]
        )
        self._add_tools()
        self._add_questions()
        self._add_texts()

    @property
    def url(self) -> str:
        """The address that the gateway is configured with."""
        return f"http://127.0.0.1:{self.tap.port}/mcp"

    @property
    def note_uri(self) -> str:
        """The resource that changes."""
        return f"probe://note-{self.name}/text"

    def _add_tools(self) -> None:
        name, server = self.name, self.server

        @server.tool(name=f"echo_{name}", read_only=True)
        async def echo(token: str) -> str:
            """Say the token again."""
            self.begun[token] += 1
            return f"echo {token}"

        @server.tool(name=f"work_{name}", read_only=True)
        async def work(token: str, meeting: str, ctx: Context) -> str:
            """Report progress and log while another call does the same."""
            self.begun[token] += 1
            await ctx.progress(1, 3, f"begun {token}")
            await self._meeting.meet(meeting, token)
            ctx.log.warning("logged", token=token)
            await ctx.progress(2, 3, f"going on {token}")
            return f"worked {token}"

        @server.tool(name=f"wait_{name}", read_only=True)
        async def wait(token: str) -> str:
            """Wait until the call is cancelled."""
            self.begun[token] += 1
            self.waiting[token].set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled[token].set()
                raise
            return "unreachable"

    def _add_questions(self) -> None:
        name, server = self.name, self.server

        @server.tool(name=f"form_{name}")
        async def form(token: str, ctx: Context) -> str:
            """Ask the user by a form."""
            self.begun[token] += 1
            answer = await ctx.elicit(f"question {token}", ANSWER_FORM)
            said = answer.value["answer"] if isinstance(answer, Accepted) else _name(answer)
            return f"{token} was answered {said}"

        @server.tool(name=f"page_{name}")
        async def page(token: str, ctx: Context) -> str:
            """Send the user to a page."""
            self.begun[token] += 1
            answer = await ctx.elicit_url(f"question {token}", f"{PAGE_URL}/{token}")
            return f"{token} was answered {_name(answer)}"

        @server.tool(name=f"sample_{name}")
        async def sample(token: str, ctx: Context) -> str:
            """Ask the client's model."""
            self.begun[token] += 1
            written = await ctx.sample(f"question {token}", max_tokens=50)
            return f"{token} was answered {written.text}"

        @server.tool(name=f"roots_{name}")
        async def roots(token: str, ctx: Context) -> str:
            """Ask for the client's roots."""
            self.begun[token] += 1
            found = await ctx.roots()
            return f"{token} was answered {' '.join(root.name or '' for root in found)}"

    def _add_texts(self) -> None:
        name, server = self.name, self.server

        @server.resource(self.note_uri, name=f"note_{name}")
        async def note() -> str:
            """Read a note."""
            return f"the note of {name}"

        @server.resource(f"probe://leaf-{name}/{{number}}", name=f"leaf_{name}")
        async def leaf(number: str) -> str:
            """Read one of many."""
            return f"leaf {number} of {name}"

        @server.prompt(name=f"greet_{name}")
        async def greet(word: str) -> str:
            """Greet somebody."""
            return f"{word} from {name}"

        @greet.completes("word")
        def words(typed: str) -> list[str]:
            return [word for word in (f"hello-{name}",) if word.startswith(typed)]

    # What happens while the check runs

    def add_tool(self, name: str) -> None:
        """Offer one more tool from now on, which clients are told of."""

        @self.server.tool(name=name, read_only=True)
        async def added() -> str:
            """Do nothing."""
            return "nothing"

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[None]:
        """Serve until the block is left.

        Args:
            port: where the gateway reaches it; 0 for any free one.

        Raises:
            ConnectFailed: somebody else listens there.
        """
        from isthmus.transports.http.serve import serve  # slow: what serves HTTP

        bound: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        # the host's name is not judged here: some gateways send their own
        app = self.server.asgi(allowed_hosts=["*"])
        task = asyncio.create_task(serve(app, port=0, on_bound=bound.set_result, announce=False))
        task.add_done_callback(lambda _: bound.cancel())
        try:
            url = await bound
            await self.tap.listen(port, int(url.rpartition(":")[2].partition("/")[0]))
            yield
        except OSError as error:
            raise ConnectFailed(
                f"port {port} of 127.0.0.1 cannot be listened on: {error}"
            ) from error
        finally:
            await self.tap.close()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _name(answer: Any) -> str:
    return type(answer).__name__.lower()


class ProbeUpstreams:
    """The servers behind a gateway under test.

    Attributes:
        legacy: speaks the revisions up to 2025-11-25.
        modern: speaks 2026-07-28.
        spare: speaks all, and is taken away in the end.
    """

    def __init__(self) -> None:
        self.legacy = ProbeUpstream(LEGACY_NAME)
        self.modern = ProbeUpstream(MODERN_NAME)
        self.spare = ProbeUpstream(SPARE_NAME)

    @property
    def all(self) -> tuple[ProbeUpstream, ...]:
        """Each of them."""
        return self.legacy, self.modern, self.spare

    @property
    def lasting(self) -> tuple[ProbeUpstream, ...]:
        """Those that stay to the end."""
        return self.legacy, self.modern

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of a gateway that has them behind it."""
        return make_upstream_config([(one.name, one.url) for one in self.all])


def make_upstream_config(servers: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """An ``mcpServers`` configuration of servers over HTTP."""
    return {"mcpServers": {name: {"type": "http", "url": url} for name, url in servers}}


def make_fixed_config(first_port: int) -> dict[str, Any]:
    """The configuration for probe upstreams that will listen on three ports in a row."""
    return make_upstream_config(
        [
            (name, f"http://127.0.0.1:{first_port + number}/mcp")
            for number, name in enumerate(UPSTREAM_REVISIONS)
        ]
    )


@asynccontextmanager
async def open_upstreams(first_port: int = 0) -> AsyncIterator[ProbeUpstreams]:
    """Serve the probe upstreams until the block is left.

    Args:
        first_port: the first of their three ports; 0 takes any free ones.

    Raises:
        ConnectFailed: somebody else listens on one of them.
    """
    upstreams = ProbeUpstreams()
    async with AsyncExitStack() as stack:
        for number, one in enumerate(upstreams.all):
            await stack.enter_async_context(one.serve(first_port and first_port + number))
        yield upstreams
