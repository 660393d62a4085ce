"""T24: somebody who knows another user's session id, and has a token of their own."""

import time

import pytest

from isthmus.store.log import MemoryLog
from support.auth.protected_server import (
    PEOPLE,
    Files,
    bearer_header,
    legacy_head_as,
    legacy_tool_call,
    make_guard,
    make_person,
    open_session_as,
)
from support.http.asgi_driver import Exchange, fetch

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")


def stolen(session, revision, **more):
    """The headers of somebody who knows the id."""
    return legacy_head_as(session, "bob", revision, **more)


@pytest.mark.covers("auth.threat.t24-session-theft", "auth.resource.sessions-not-authentication")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_another_users_session_is_not_there(revision):
    """Spec 2025-11-25 basic/transports#session-management: ids are no authentication: 404 on all four."""
    files = Files()
    session = await open_session_as(files.app, "ada", revision)
    listening = Exchange(
        files.app,
        "GET",
        headers=legacy_head_as(session, "ada", revision, accept="text/event-stream"),
    )
    await listening.started.wait()
    get = stolen(session, revision, accept="text/event-stream")

    tries = [
        await fetch(
            files.app, headers=stolen(session, revision), body=legacy_tool_call("read", path="a")
        ),
        await fetch(files.app, "GET", headers=get),
        await fetch(
            files.app, "GET", headers={**get, "last-event-id": (listening.ids or ["1"])[0]}
        ),
        await fetch(files.app, "DELETE", headers=stolen(session, revision)),
    ]

    assert [404, 404, 404, 404] == [one.status for one in tries]
    assert [] == files.done
    again = await fetch(
        files.app,
        headers=legacy_head_as(session, "ada", revision),
        body=legacy_tool_call("read", path="a"),
    )
    assert (200, ["read a"]) == (again.status, files.done)
    await files.app.close()
    await listening.done()


@pytest.mark.covers("auth.threat.t24-session-theft", "auth.all.every-request")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_a_session_opens_nothing_to_who_has_no_token(verb):
    """Spec 2025-11-25 basic/authorization#token-requirements: on every request, in a session too."""
    files = Files()
    session = await open_session_as(files.app, "ada")
    head = legacy_head_as(session, None, accept="application/json, text/event-stream")

    answer = await fetch(files.app, verb, headers=head, body=legacy_tool_call("read", path="a"))

    assert (401, []) == (answer.status, files.done)
    await files.app.close()


@pytest.mark.covers("auth.threat.t24-session-theft")
@pytest.mark.parametrize(
    "other",
    [
        {"client_id": "another app"},
        {"issuer": "https://other.example"},
    ],
)
async def test_the_same_name_elsewhere_is_another_user(other):
    """Ours: a user is issuer, subject and client together."""
    twin = make_person("ada", "files:read", **other)
    files = Files(make_guard({**PEOPLE, "token-of-twin": twin}))
    session = await open_session_as(files.app, "ada")

    answer = await fetch(
        files.app, headers=legacy_head_as(session, "twin"), body=legacy_tool_call("read", path="a")
    )

    assert 404 == answer.status
    await files.app.close()


@pytest.mark.covers("auth.threat.t24-session-theft")
async def test_a_newer_token_of_the_same_user_goes_on():
    """Ours: who refreshed their token, or stepped up, keeps their sessions."""
    newer = make_person("ada", "files:read", "files:write", expires_at=4e9)
    files = Files(make_guard({**PEOPLE, "token-of-newer": newer}))
    session = await open_session_as(files.app, "ada")

    answer = await fetch(
        files.app,
        headers=legacy_head_as(session, "newer"),
        body=legacy_tool_call("write", path="a"),
    )

    assert (200, ["write a"]) == (answer.status, files.done)
    await files.app.close()


@pytest.mark.covers("auth.threat.t24-session-theft")
async def test_another_users_stream_of_2024_takes_no_messages():
    """Ours: HTTP+SSE is protected on both of its halves."""
    files = Files()
    head = {"host": "localhost:8000", "accept": "text/event-stream"}
    stream = Exchange(files.app, "GET", "/sse", headers={**head, **bearer_header("ada")})
    await stream.bytes_sent(b"session_id=")
    query = stream.body.partition(b"?")[2].partition(b"\n")[0].strip()
    post = {"host": "localhost:8000", "content-type": "application/json"}
    message = legacy_tool_call("read", path="a")

    async def posted(name):
        scope = {"query_string": query}
        answer = await fetch(
            files.app,
            "POST",
            "/messages",
            headers={**post, **bearer_header(name)},
            body=message,
            scope=scope,
        )
        return answer.status

    assert [404, 401, 202] == [await posted("bob"), await posted(None), await posted("ada")]
    await files.app.close()
    await stream.done()


@pytest.mark.covers("auth.threat.t24-session-theft")
async def test_what_was_said_on_a_stream_lies_under_its_owner():
    """Ours: a log that several servers share cannot give it to another user, whatever the session."""
    files = Files()
    log = Noted()
    app = files.server.asgi(stream_log=log)
    for name in ("ada", "bob"):
        session = await open_session_as(app, name)
        head = legacy_head_as(session, name, accept="text/event-stream")
        await fetch(app, headers=head, body=legacy_tool_call("read", path="a"))
    await app.close()

    owners = {key.rpartition("/")[0].partition("@")[2] for key in log.keys}
    assert (2, True) == (len(owners), all(owners))


class Noted(MemoryLog):
    """A log that remembers what it was asked to keep things under."""

    def __init__(self):
        super().__init__(time.monotonic)
        self.keys = []

    async def write(self, stream, place, values):
        """Keep it."""
        self.keys.append(stream)
        await super().write(stream, place, values)
