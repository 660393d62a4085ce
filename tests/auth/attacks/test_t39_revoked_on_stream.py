"""T39: a stream that was opened with a good token, and the token is good no more."""

import asyncio
import functools

import pytest

from isthmus import Context, Server
from isthmus.auth import StaticTokens
from isthmus.testing import VirtualLoop
from support.auth.protected_server import (
    bearer_header,
    legacy_head_as,
    legacy_tool_call,
    make_guard,
    make_person,
    open_session_as,
)
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import modern_body, modern_head

LATE = 60.0
"""Seconds by which a stream may outlive its token."""


def virtual(test):
    """Run a test on a clock of its own."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


class Revocable(StaticTokens):
    """Tokens that can be taken back, of which verifying them knows nothing."""

    revoked = False

    async def lasts(self, principal):
        """Whether it was not."""
        return not self.revoked and await super().lasts(principal)


class Slow:
    """A server whose tool takes hours, and says so."""

    def __init__(self, expires_at=None):
        clock = asyncio.get_running_loop().time
        people = {
            "token-of-ada": make_person("ada", "files:read", expires_at=expires_at),
            "token-of-renewed": make_person("ada", "files:read", expires_at=2000.0),
        }
        self.verifier = Revocable(people, clock=clock)
        auth = make_guard(verifier=self.verifier, clock=clock, sse="http://localhost:8000/sse")
        self.server = Server("slow", auth=auth)
        self.cancelled = asyncio.Event()

        @self.server.tool
        async def work(ctx: Context) -> str:
            try:
                for hour in range(100):
                    await ctx.progress(hour)
                    await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "done"

        self.app = self.server.asgi(session_idle=1e6)


async def standing(slow, revision):
    """The stream of a session."""
    session = await open_session_as(slow.app, "ada", revision)
    head = legacy_head_as(session, "ada", revision, accept="text/event-stream")
    return Exchange(slow.app, "GET", headers=head)


async def answering(slow, revision):
    """The stream of a call."""
    session = await open_session_as(slow.app, "ada", revision)
    message = legacy_tool_call("work")
    message["params"]["_meta"] = {"progressToken": 1}
    return Exchange(slow.app, headers=legacy_head_as(session, "ada", revision), body=message)


async def older(slow, _revision):
    """The stream of HTTP+SSE."""
    head = {"host": "localhost:8000", "accept": "text/event-stream", **bearer_header("ada")}
    return Exchange(slow.app, "GET", "/sse", headers=head)


async def newer(slow, _revision):
    """The stream of a call since 2026-07-28."""
    params = {"name": "work", "arguments": {}}
    body = modern_body(params=params, progressToken=1)
    return Exchange(
        slow.app, headers={**modern_head(name="work"), **bearer_header("ada")}, body=body
    )


async def open_change_stream(slow, _revision):
    """The stream of changes since 2026-07-28."""
    method = "subscriptions/listen"
    body = modern_body(method, {"notifications": {"toolsListChanged": True}})
    return Exchange(
        slow.app, headers={**modern_head(method, None), **bearer_header("ada")}, body=body
    )


STREAMS = [
    *((standing, revision) for revision in ("2025-03-26", "2025-06-18", "2025-11-25")),
    *((answering, revision) for revision in ("2025-03-26", "2025-06-18", "2025-11-25")),
    (older, "2024-11-05"),
    (newer, "2026-07-28"),
    (open_change_stream, "2026-07-28"),
]


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
@pytest.mark.parametrize(("way", "revision"), STREAMS)
@virtual
async def test_a_stream_ends_within_a_minute_after_its_token_was_revoked(way, revision):
    """Ours: permission is needed for as long as something is told."""
    slow = Slow()
    stream = await way(slow, revision)
    await stream.started.wait()
    await asyncio.sleep(1000.0)
    assert not stream.complete.is_set()

    slow.verifier.revoked = True
    async with asyncio.timeout(LATE):
        await stream.complete.wait()

    stream.leave()
    await stream.done()
    await slow.app.close()


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
@pytest.mark.parametrize(("way", "revision"), STREAMS)
@virtual
async def test_a_stream_ends_within_a_minute_after_its_token_expired(way, revision):
    """Ours: as above, and it is not ended before."""
    slow = Slow(expires_at=500.0)
    stream = await way(slow, revision)
    await stream.started.wait()
    await asyncio.sleep(499.0)
    assert not stream.complete.is_set()

    async with asyncio.timeout(1.0 + LATE):
        await stream.complete.wait()

    stream.leave()
    await stream.done()
    await slow.app.close()


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
@virtual
async def test_a_call_whose_stream_ended_goes_on_and_a_better_token_gets_the_rest():
    """Ours: where streams can be resumed nothing is lost by a token that had to be renewed."""
    slow = Slow(expires_at=500.0)
    session = await open_session_as(slow.app, "ada")
    message = legacy_tool_call("work")
    message["params"]["_meta"] = {"progressToken": 1}
    stream = Exchange(slow.app, headers=legacy_head_as(session, "ada"), body=message)
    await stream.started.wait()
    await asyncio.sleep(499.0)
    await stream.complete.wait()
    assert not slow.cancelled.is_set()

    head = legacy_head_as(session, "ada", accept="text/event-stream", last_event_id=stream.ids[-1])
    expired = await fetch(slow.app, "GET", headers=head)
    slow.verifier.__init__({"token-of-ada": make_person("ada", "files:read")}, clock=lambda: 0.0)
    rest = Exchange(slow.app, "GET", headers=head)
    await asyncio.sleep(3600 * 2)

    assert 401 == expired.status
    assert 200 == rest.status
    assert rest.events
    await slow.app.close()
    await rest.done()
    await stream.done()


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
@virtual
async def test_the_stream_of_2024_11_05_lasts_as_long_as_its_users_newest_token():
    """Ours: it cannot be opened again, and who renews a token in time loses no session by it."""
    slow = Slow(expires_at=500.0)
    stream = await older(slow, "2024-11-05")
    await stream.bytes_sent(b"session_id=")
    query = stream.body.partition(b"?")[2].partition(b"\n")[0].strip()
    head = {
        "host": "localhost:8000",
        "content-type": "application/json",
        **bearer_header("renewed"),
    }
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    await asyncio.sleep(490.0)
    said = await fetch(
        slow.app, "POST", "/messages", headers=head, body=ping, scope={"query_string": query}
    )
    await asyncio.sleep(1500.0)

    assert (202, False) == (said.status, stream.complete.is_set())
    async with asyncio.timeout(10.0 + LATE):
        await stream.complete.wait()

    await stream.done()
    await slow.app.close()


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
@virtual
async def test_streams_stay_open_while_nobody_can_tell_whether_they_may():
    """Ours: an outage elsewhere takes nothing away that was permitted."""
    slow = Slow()

    async def unknown(_principal):
        raise RuntimeError("no answer")

    slow.verifier.lasts = unknown
    stream = await standing(slow, "2025-11-25")
    await stream.started.wait()
    await asyncio.sleep(1000.0)

    assert not stream.complete.is_set()
    await slow.app.close()
    await stream.done()
