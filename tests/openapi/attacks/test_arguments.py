"""Arguments of an attacker: none becomes another request, to wherever the API is."""

import base64
from typing import Annotated

import pytest
from fastapi import Body, FastAPI, Header, Request

from isthmus import Client, Server
from isthmus.errors import InvalidParams
from support.openapi.request_reading import split_parts
from support.openapi.stand_in_api import listen

TEXT = {"type": "string"}


def parameter(name: str, place: str, **more) -> dict:
    return {"name": name, "in": place, "required": place == "path", "schema": TEXT, **more}


FORM = {"type": "object", "properties": {"text": TEXT, "file": {**TEXT, "format": "binary"}}}
SPEC = {
    "openapi": "3.1.0",
    "info": {"title": "victim", "version": "1"},
    "paths": {
        "/users/{id}/notes": {
            "get": {
                "operationId": "read",
                "parameters": [
                    parameter("id", "path"), parameter("q", "query"), parameter("X-Sign", "header"),
                    parameter("theme", "cookie"), parameter("session", "cookie"),
                    parameter("filter", "query", schema={"type": "object"}, style="deepObject"),
                    parameter("more", "query", schema={"type": "object"}),
                    parameter("tags", "query", schema={"type": "array", "items": TEXT}),
                    parameter("next", "query", allowReserved=True),
                ],
            },
            "post": {
                "operationId": "write",
                "parameters": [parameter("id", "path")],
                "requestBody": {"content": {"multipart/form-data": {"schema": FORM}}},
            },
            "put": {
                "operationId": "replace",
                "parameters": [parameter("id", "path")],
                "requestBody": {"content": {"application/json": {"schema": {}}}},
            },
        }
    },
}  # fmt: skip


async def attack(tool: str, arguments: dict, **options):
    """The result of a call, and what came over the wire: heads and bodies."""
    seen = []

    async def respond(head, body, writer):
        seen.append((head, body))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
        )

    async with listen(respond) as url:
        server = Server.from_openapi(SPEC, base_url=f"{url}/v1", **options)
        async with Client(server) as client:
            result = await client.call_tool(tool, arguments)
        await server.close()
    return result, seen


@pytest.mark.parametrize(
    "value",
    [
        "..", ".", "../../admin", "..%2f..%2fadmin", "%2e%2e", "%252e%252e%252fadmin", "..\\admin",
        "a/../../admin", "..;/admin", "a;/../admin", "\r\nX: y", "\0", "",
    ],
)  # fmt: skip
async def test_a_path_is_never_left(value):
    """A part that some server might take for the folder above is not sent at all."""
    result, seen = await attack("read", {"id": value})

    assert result.is_error
    assert [] == seen


@pytest.mark.parametrize(
    "value",
    [
        "//evil.example/x", "https://evil.example/", "@evil.example", "x@evil.example:80", "/admin",
        "?admin=1", "#x", "x?y=z&a=b", "a b", "é", ":80", "[::1]", "\\\\evil.example",
    ],
)  # fmt: skip
async def test_a_url_in_an_argument_is_data(value):
    """Neither the host nor the path nor the query of a request is an argument's."""
    result, seen = await attack("read", {"id": value, "q": value, "next": value})

    assert not result.is_error
    ((head, _),) = seen
    line, host = (
        head.split(b"\r\n")[0],
        [x for x in head.lower().split(b"\r\n") if x[:5] == b"host:"],
    )
    path, _, query = line.decode().split(" ")[1].partition("?")
    assert path.startswith("/v1/users/")
    assert path.endswith("/notes")
    assert 4 == path.count("/")
    assert ["q", "next"] == [pair.partition("=")[0] for pair in query.split("&")]
    assert 1 == len(host)
    assert b"127.0.0.1" in host[0]


@pytest.mark.parametrize(
    "value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "\0", "a\x7f", " a", "é", "a\u2028b", "a\x0bb"]
)
async def test_a_header_is_one_line(value):
    """What could begin another header, or arrive as something else, is refused."""
    result, seen = await attack("read", {"id": "1", "X-Sign": value})

    assert result.is_error
    assert [] == seen


@pytest.mark.parametrize(
    "value", ["a; session=evil", "a;session=evil", "a\r\nCookie: x=y", "a, b", '"']
)
async def test_a_cookie_is_one_cookie(value):
    """None can set another one beside it."""
    result, seen = await attack("read", {"id": "1", "theme": value})

    if not result.is_error:
        ((head, _),) = seen
        (cookie,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"cookie:")]
        assert b";" not in cookie
        assert 1 == cookie.count(b"=")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("more", {"q": "evil"}), ("more", {"filter[a]": "evil"}), ("filter", {"a][b": "evil"}),
        ("filter", {"a]&q=evil&x[": "1"}), ("more", {"q=evil&x": "1"}), ("more", {"tags": "evil"}),
    ],
)  # fmt: skip
async def test_a_key_is_never_another_parameter(name, value):
    """Keys of objects are an attacker's as well."""
    result, seen = await attack("read", {"id": "1", "q": "mine", name: value})

    if not result.is_error:
        ((head, _),) = seen
        query = head.split(b" ")[1].decode().partition("?")[2]
        assert ["q=mine"] == [pair for pair in query.split("&") if pair.startswith("q=")]
        assert not any(pair.startswith("tags=") for pair in query.split("&"))


@pytest.mark.parametrize(
    "value",
    ["--isthmus", "\r\n--x--\r\n", 'a"; filename="evil.php', "\r\nContent-Disposition: form-data"],
)
async def test_a_form_has_the_parts_that_it_was_given(value):
    """The boundary is made up for each request, and no text ends a part."""
    file = {"data": base64.b64encode(value.encode()).decode(), "filename": value}
    result, seen = await attack("write", {"id": "1", "text": value, "file": file})

    assert not result.is_error
    ((head, body),) = seen
    (said,) = [x for x in head.decode().split("\r\n") if x.lower().startswith("content-type:")]
    parts = split_parts(said, body)
    assert ["text", "file"] == [part.name for part in parts]
    assert value.encode() == parts[0].data == parts[1].data
    assert value == parts[1].filename


@pytest.mark.parametrize("kind", ["image/png\r\nX: y", "a", "text/html; x=\r\n", "", 'a/b"'])
async def test_the_type_of_a_file_is_a_type(kind):
    """A line break in it would be another header of the part."""
    file = {"data": "AA==", "content_type": kind}
    result, seen = await attack("write", {"id": "1", "file": file})

    assert result.is_error or b"\r\nX:" not in seen[0][1]


async def test_deep_and_huge_arguments_are_refused_or_sent_whole():
    """Nesting and size are bounded by the server, before a request is built."""
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    long, _ = await attack("read", {"id": "1", "q": "x" * 100_000})
    many, _ = await attack("read", {"id": "1", "tags": ["x" * 100] * 1_000})

    with pytest.raises(InvalidParams, match="nested more than"):
        await attack("replace", {"id": "1", "body": deep})
    assert long.is_error
    assert "characters" in long.text
    assert many.is_error


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Transfer-Encoding", "Cookie", "X-Forwarded-For"]
)
async def test_arguments_beside_the_declared_ones_are_refused(name):
    """A model cannot invent a header."""
    result, seen = await attack("read", {"id": "1", name: "evil"})

    assert result.is_error
    assert [] == seen


async def test_credentials_are_set_by_no_argument():
    """A cookie and a query parameter that a credential fills are not offered, and not overwritten."""
    schemes = {"key": {"type": "apiKey", "in": "cookie", "name": "session"}}
    spec = {**SPEC, "components": {"securitySchemes": schemes}, "security": [{"key": []}]}
    seen = []

    async def app(scope, receive, send):
        seen.append(dict(scope["headers"])[b"cookie"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    server = Server.from_openapi(spec, app=app, credentials={"key": "mine"})
    async with Client(server) as client:
        forged = await client.call_tool("read", {"id": "1", "session": "evil"})
        await client.call_tool("read", {"id": "1", "theme": "session=evil"})

    assert forged.is_error
    assert [b"theme=session%3Devil; session=mine"] == seen


async def test_an_application_is_attacked_in_vain():
    """The same through ``from_fastapi``: what arrives is what was given, in its own place."""
    app, seen = FastAPI(), []

    @app.post("/notes/{note}")
    async def write(
        request: Request,
        note: str,
        text: Annotated[str, Body(embed=True)],
        q: str = "",
        x_sign: Annotated[str, Header()] = "none",
    ) -> None:
        seen.append((note, text, q, x_sign, dict(request.query_params), dict(request.cookies)))

    evil = 'a"\r\nCookie: x=y\r\n\r\n{"text": "b"}&q=z'
    async with Client(Server.from_fastapi(app)) as client:
        (tool,) = await client.list_tools()
        sign = next(name for name in tool.input_schema["properties"] if "sign" in name)
        sent = await client.call_tool("write", {"note": "?a#b;c", "text": evil, "q": evil})
        split = await client.call_tool("write", {"note": "x", "text": "t", sign: "a\r\nhost: evil"})
        other = await client.call_tool("write", {"note": "../notes", "text": "t"})

    assert not sent.is_error, sent.text
    assert [("?a#b;c", evil, evil, "none", {"q": evil}, {})] == seen
    assert split.is_error
    assert other.is_error
