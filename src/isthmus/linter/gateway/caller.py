"""Probe caller: a client of the gateway under test, with canaries on it and an ear on its connection."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from isthmus.client.client import Client
from isthmus.client.model.results import ToolResult
from isthmus.client.subscriptions import Change
from isthmus.client.targets import Target, resolve_target, tap_target
from isthmus.core.answers import Accepted
from isthmus.errors import ConnectFailed, ConnectionLost, IsthmusError
from isthmus.linter.gateway.visit import ProbeState
from isthmus.revisions import Revision
from isthmus.runtime.wiretap import WireLog, Wiretap
from isthmus.wire import CreateMessageParams, ElicitParams, LogMessageParams, ProgressParams, Root

R = TypeVar("R")

STEP_TIMEOUT_S = 4.0  # that one probe may take
CONNECT_TIMEOUT_S = 5.0
CLIENT_TIMEOUT_S = 60.0  # longer than any probe waits, so that each probe ends by its own bound

AUTHORIZATION = "authorization"


def make_token(kind: str) -> str:
    """A word that occurs nowhere else."""
    return f"{kind}-{os.urandom(8).hex()}"


class CallerIdentity:
    """The credentials that a client shows a gateway, each of which no server behind may see.

    Args:
        url: of the gateway.
        token: an access token that the gateway wants; a canary where it wants none.
        headers: further ones that the gateway wants.
        timeout: seconds that one probe may take.

    Attributes:
        canaries: words to look for behind the gateway, by where they were said.
        headers: of each request.
        url: with a canary in its query.
        has_token: whether the gateway can tell this caller from others.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = STEP_TIMEOUT_S,
    ) -> None:
        self.timeout = timeout
        self.has_token = token is not None
        bearer = token or make_token("bearer")
        cookie, key, query = make_token("cookie"), make_token("key"), make_token("query")
        self.canaries = {
            "the Authorization header": bearer,
            "a cookie": cookie,
            "the X-Api-Key header": key,
            "the URL's query": query,
        }
        self.headers = {
            AUTHORIZATION: f"Bearer {bearer}",
            "cookie": f"session={cookie}",
            "x-api-key": key,
            **(headers or {}),
        }
        self.url = f"{url}{'&' if '?' in url else '?'}check={query}"


class ProbeCaller:
    """A client of a gateway.

    Args:
        identity: the credentials it shows.
        revision: the revision it speaks.
        answers: whether it declares that it can be asked.

    Attributes:
        client: the client, once connected.
        timeout: seconds that one probe may take.
        wire: every message, as it came and went.
        answer: how it answers whatever it is asked.
        asked: the messages of the questions that reached it.
        progress: what it was told of progress.
        changes: of lists and resources.
        hold: awaited before it answers a question.
    """

    client: Client

    def __init__(
        self, identity: CallerIdentity, revision: Revision, *, answers: bool = True
    ) -> None:
        self.identity = identity
        self.revision = revision
        self.timeout = identity.timeout
        self.wire: WireLog = []
        self.answer = make_token("answer")
        self.asked: list[str] = []
        self.progress: list[str] = []
        self.changes: list[Change] = []
        self.changed = asyncio.Event()
        self.hold: Callable[[], Awaitable[object]] | None = None
        self._answers = answers

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["ProbeCaller"]:
        """Be connected until the block is left.

        Raises:
            IsthmusError: it did not come about.
        """
        questions: dict[str, Any] = {}
        if self._answers:
            questions = {
                "elicit": self._elicit,
                "sample": self._sample,
                "roots": self._list_roots,
            }
        self.client = Client(
            self._make_target(),
            revision=self.revision,
            on_log=self._take_log,
            on_change=self._take_change,
            cache=False,
            name="isthmus-check",
            timeout=CLIENT_TIMEOUT_S,
            connect_timeout=CONNECT_TIMEOUT_S,
            **questions,
        )
        try:
            async with asyncio.timeout(2 * CONNECT_TIMEOUT_S):
                await self.client.open()
            yield self
        finally:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self.client.close()

    def _make_target(self) -> Target:
        target = resolve_target(self.identity.url, self.identity.headers, CONNECT_TIMEOUT_S)
        return tap_target(target, lambda channel: Wiretap(channel, self.wire))

    @property
    def heard(self) -> bytes:
        """Everything that the gateway said to this client."""
        return b"\n".join(data for side, data in self.wire if side == "server")

    # Questions

    async def _elicit(self, params: ElicitParams) -> Accepted[Any]:
        await self._take_question(params.message)
        return Accepted(None if params.mode == "url" else {"answer": self.answer})

    async def _sample(self, params: CreateMessageParams) -> str:
        await self._take_question(msgspec.json.encode(params.messages).decode())
        return self.answer

    async def _list_roots(self) -> list[Root]:
        await self._take_question("roots/list")
        return [Root(uri="file:///", name=self.answer)]

    async def _take_question(self, said: str) -> None:
        self.asked.append(said)
        if self.hold is not None:
            await self.hold()

    # Notifications

    def _take_log(self, _params: LogMessageParams) -> None:
        """Nothing is done: the wire has it."""

    def _take_change(self, change: Change) -> None:
        self.changes.append(change)
        self.changed.set()

    def take_progress(self, params: ProgressParams) -> None:
        """Take down progress of a call."""
        self.progress.append(str(params.message))

    # Requests

    async def call(self, name: str, arguments: Mapping[str, str]) -> ToolResult:
        """Call a tool."""
        return await self.client.call_tool(name, arguments, on_progress=self.take_progress)


async def attempt(work: Awaitable[R], timeout: float) -> tuple[R | None, ProbeState, str]:
    """Wait for a request for a bounded time.

    Returns:
        Its result or None, how it went, and the error in words.
    """
    try:
        async with asyncio.timeout(timeout):
            return await work, "ok", ""
    except TimeoutError:
        return None, "silent", f"nothing came for {timeout:g} seconds"
    except (ConnectionLost, ConnectFailed) as error:
        return None, "lost", str(error)
    except IsthmusError as error:
        return None, "refused", f"{type(error).__name__}: {error}"


async def attempt_call(
    caller: ProbeCaller,
    name: str,
    arguments: Mapping[str, str],
    timeout: float | None = None,
) -> tuple[str, ProbeState, str]:
    """Call a tool for a bounded time.

    Returns:
        The text of its result, how it went, and the error in words; a result that says it is an error was refused.
    """
    result, state, said = await attempt(caller.call(name, arguments), timeout or caller.timeout)
    if result is None:
        return "", state, said
    if result.is_error:
        return result.text, "refused", result.text[:300]
    return result.text, "ok", result.text[:300]
