"""T25: state that travels over a client, in another user's hands."""

import pytest

from isthmus import Context, Server
from support.auth.protected_server import Files, bearer_header, begin_request_as, make_guard
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head


def make_asking_server():
    """A server whose tool asks before it acts."""
    server = Server("asks", auth=make_guard(), secret=b"k" * 32)
    done = []

    @server.tool
    async def erase(ctx: Context) -> str:
        answer = await ctx.elicit("Really?", bool)
        done.append((ctx.principal.subject, answer))
        return "erased"

    return server.asgi(), done


@pytest.mark.covers(
    "auth.threat.t25-state-theft",
    "auth.resource.request-state-sealed",
    "auth.resource.handles-bound",
)
async def test_request_state_is_worth_nothing_to_another_user():
    """Spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: bound to the principal."""
    app, done = make_asking_server()
    first = await start(app, "ada")

    stolen = await again_with(app, "bob", first)
    own = await again_with(app, "ada", first)

    assert -32602 == stolen.json["error"]["code"]
    assert "erased" == own.json["result"]["content"][0]["text"]
    assert ["ada"] == [who for who, _ in done]


@pytest.mark.covers("auth.resource.request-state-sealed")
@pytest.mark.parametrize("place", [0, 1, 20, -20, -1])
async def test_request_state_that_was_changed_is_refused(place):
    """Spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: its integrity is checked."""
    app, done = make_asking_server()
    first = await start(app, "ada")
    state = first.json["result"]["requestState"]
    # another sign of the alphabet, and at the end one whose bits all count
    other = "A" if state[place] != "A" else "z"
    changed = list(state)
    changed[place] = other
    spoiled = await again_with(app, "ada", first, "".join(changed))

    assert -32602 == spoiled.json["error"]["code"]
    assert [] == done


async def start(app, name):
    """The first round: it asks."""
    return await able(app, name, {"name": "erase", "arguments": {}})


async def again_with(app, name, first, state=None):
    """The second round, in somebody's name."""
    result = first.json["result"]
    answers = {
        key: {"action": "accept", "content": {"value": True}} for key in result["inputRequests"]
    }
    return await able(
        app,
        name,
        {
            "name": "erase",
            "arguments": {},
            "inputResponses": answers,
            "requestState": state or result["requestState"],
        },
    )


async def able(app, name, params):
    """A call by a client that its user can be asked through."""
    capabilities = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    body = modern_body("tools/call", params, **capabilities)
    return await fetch(
        app, headers={**modern_head("tools/call", params["name"]), **bearer_header(name)}, body=body
    )


@pytest.mark.covers("auth.threat.t25-state-theft")
async def test_a_cursor_into_a_list_that_depends_on_its_reader_is_its_readers_own():
    """Ours: another user's cursor is as good as none of ours, even if it shows nothing."""
    files = Files(make_guard(list_visibility="granted"), page_size=1)
    page = await begin_request_as(files.app, "ada", "tools/list", {}).done()
    cursor = page.json["result"]["nextCursor"]

    own = await begin_request_as(files.app, "ada", "tools/list", {"cursor": cursor}).done()
    stolen = await begin_request_as(files.app, "bob", "tools/list", {"cursor": cursor}).done()

    assert 1 == len(own.json["result"]["tools"])
    assert -32602 == stolen.json["error"]["code"]


@pytest.mark.covers("auth.threat.t25-state-theft", "auth.resource.handles-bound")
async def test_a_task_is_not_there_for_another_user():
    """Ours: a handle proves nothing; whoever else knows it learns not even that it is one."""
    server = Server("slow", auth=make_guard())

    @server.tool(task="required")
    async def work() -> str:
        return "done"

    app = server.asgi()
    extension = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {"io.modelcontextprotocol/clientCapabilities": extension}
    made = await task(app, "ada", "tools/call", {"name": "work", "arguments": {}}, meta)
    id = made.json["result"]["taskId"]

    own = await task(app, "ada", "tasks/get", {"taskId": id}, meta)
    stolen = await task(app, "bob", "tasks/get", {"taskId": id}, meta)
    ended = await task(app, "bob", "tasks/cancel", {"taskId": id}, meta)

    assert id == own.json["result"]["taskId"]
    assert ["error", "error"] == [
        next(iter(set(x.json) & {"error", "result"})) for x in (stolen, ended)
    ]
    await server.close()


async def task(app, name, method, params, meta):
    """A request about a task, in somebody's name."""
    target = params.get("name") or params["taskId"]
    head = {**modern_head(method, target), **bearer_header(name)}
    return await fetch(app, headers=head, body=modern_body(method, params, **meta))
