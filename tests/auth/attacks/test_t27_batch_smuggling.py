"""T27: what one may not do, between things that one may."""

import pytest

from support.auth.protected_server import (
    Files,
    legacy_head_as,
    legacy_tool_call,
    list_challenges,
    open_session_as,
)
from support.http.asgi_driver import fetch

OLD = "2025-03-26"


@pytest.mark.covers("auth.threat.t27-batch-smuggling")
@pytest.mark.parametrize(
    "order", [("read", "write"), ("write", "read"), ("read", "read", "publish")]
)
async def test_a_batch_takes_the_scopes_of_all_its_members(order):
    """Ours: one status answers for all of them, so that none is run."""
    files = Files()
    session = await open_session_as(files.app, "ada", OLD)
    arguments = {"read": {"path": "a"}, "write": {"path": "a"}, "publish": {}}
    batch = [legacy_tool_call(tool, id, **arguments[tool]) for id, tool in enumerate(order, 1)]

    answer = await fetch(files.app, headers=legacy_head_as(session, "ada", OLD), body=batch)

    assert (403, []) == (answer.status, files.done)
    assert "files:write" in list_challenges(answer)[0]
    await files.app.close()


@pytest.mark.covers("auth.threat.t27-batch-smuggling", "auth.resource.scopes-all-at-once")
async def test_one_challenge_names_what_all_members_take():
    """Spec 2025-11-25 basic/authorization#runtime-insufficient-scope-errors: all at once."""
    files = Files()
    session = await open_session_as(files.app, "ada", OLD)
    batch = [legacy_tool_call("write", 1, path="a"), legacy_tool_call("publish", 2, project="x")]

    answer = await fetch(files.app, headers=legacy_head_as(session, "ada", OLD), body=batch)

    assert 'scope="files:read files:write project:x"' in list_challenges(answer)[0]
    await files.app.close()


@pytest.mark.covers("auth.threat.t27-batch-smuggling")
async def test_a_batch_of_what_is_permitted_is_served():
    """Ours: the others are not in its way."""
    files = Files()
    session = await open_session_as(files.app, "eve", OLD)
    batch = [
        legacy_tool_call("read", 1, path="a"),
        legacy_tool_call("write", 2, path="b"),
        {"no": "message"},
    ]

    answer = await fetch(files.app, headers=legacy_head_as(session, "eve", OLD), body=batch)

    assert (200, {"read a", "write b"}) == (answer.status, set(files.done))
    await files.app.close()
