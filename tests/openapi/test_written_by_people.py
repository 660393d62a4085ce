"""Documents as people write them: what is meant is offered, though it is not quite what is said."""

import json

from isthmus import Client, Server


def make_api(answer, **operation):
    """A server of one operation, and the requests that came to it."""
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["path"], (await receive())["body"]))
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    responses = {"200": {"description": "", "content": {"application/json": {"schema": {}}}}}
    described = {"operationId": "do", "responses": responses, **operation}
    spec = {"openapi": "3.0.3", "info": {"title": "a", "version": "1"}}
    spec["servers"] = [{"url": "https://api.example/v1"}]
    spec["paths"] = {"/do": {"post": described}}
    return Server.from_openapi(spec, app=app), seen


async def test_what_fits_two_branches_of_one_of_is_sent():
    """Objects without required members fit each other's schemas: no value would fit just one."""
    branches = [
        {"type": "object", "properties": {"in_meeting": {"type": "boolean"}}},
        {"type": "object", "properties": {"recording": {"type": "boolean"}}},
    ]
    content = {"application/json": {"schema": {"oneOf": branches}}}
    server, seen = make_api({}, requestBody={"required": True, "content": content})

    async with Client(server) as client:
        result = await client.call_tool("do", {"body": {"recording": True}})

    assert not result.is_error
    assert [("/v1/do", b'{"recording":true}')] == seen


async def test_numbers_in_the_enum_of_a_text_are_taken():
    """YAML made numbers of them: no value would fit both the type and the list."""
    schema = {"type": "string", "enum": [1, 2]}
    kind = {"name": "kind", "in": "query", "required": True, "schema": schema}
    server, seen = make_api({}, parameters=[kind])

    async with Client(server) as client:
        result = await client.call_tool("do", {"kind": 1})

    assert not result.is_error
    assert 1 == len(seen)


async def test_a_relative_server_of_an_operation_is_at_the_same_host():
    """RFC 3986 5.2: seen from where the API is."""
    server, seen = make_api({}, servers=[{"url": "/upload/v2"}])

    async with Client(server) as client:
        await client.call_tool("do", {})

    assert "/upload/v2/do" == seen[0][0]


async def test_an_answer_of_any_kind_is_no_difference(caplog):
    """A document that says nothing of an answer cannot be contradicted by one."""
    for answer, expected in (({"a": 1}, {"a": 1}), ([1], {"result": [1]}), (3, {"result": 3})):
        server, _ = make_api(answer)
        async with Client(server) as client:
            result = await client.call_tool("do", {})

        assert expected == result.structured
    # not what the event loop says of servers that other tests left open
    assert [] == [one for one in caplog.records if one.name.startswith("isthmus")]
