"""Servers of OpenAPI documents: tools, options and answers."""

import asyncio
from contextlib import nullcontext, suppress

import pytest

from isthmus.client.client import Client
from isthmus.errors import UsageError
from isthmus.openapi.document import DocumentError
from isthmus.openapi.sending import ApiResponse
from isthmus.server.openapi_options import Shape
from isthmus.server.server import Server
from isthmus.testing import serving
from support.openapi.stand_in_api import (
    StandInSender,
    answer_json,
    listen,
    make_document,
    serve_document,
)

PET = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}},
}
PATHS = {
    "/pets/{id}": {
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        "get": {
            "operationId": "getPet",
            "tags": ["pets"],
            "summary": "Get a pet.",
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}},
        },
        "delete": {"operationId": "deletePet", "tags": ["admin"]},
    },
    "/pets": {
        "post": {
            "tags": ["pets"],
            "parameters": [{"name": "name", "in": "query", "schema": {"type": "string"}}],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            },
        }
    },
}  # fmt: skip
SPEC = make_document(
    PATHS, components={"schemas": {"Pet": PET}}, servers=[{"url": "https://api.example/v1"}]
)


async def call(server, name: str, /, **arguments):
    async with Client(server) as client:
        return await client.call_tool(name, arguments)


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_operations_are_tools_in_both_eras(revision):
    """Ours: names, hints and arguments come of the document."""
    sender = StandInSender(answer_json({"id": 7, "name": "Rex"}))
    async with Client(serve_document(SPEC, sender), revision=revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        result = await client.call_tool("getPet", {"id": 7})

    assert ["getPet", "deletePet", "post_pets"] == list(tools)
    assert tools["getPet"].annotations.read_only_hint is True
    assert tools["deletePet"].annotations.destructive_hint is True
    assert "Get a pet." == tools["getPet"].description
    assert {"id": 7, "name": "Rex"} == result.structured
    assert ["https://api.example/v1/pets/7"] == [one.url for one in sender.sent]


async def test_parameters_and_members_of_one_name_are_told_apart():
    """Ours: a name that two places have gets the place before it; what is read-only is not asked for."""
    sender = StandInSender()
    server = serve_document(SPEC, sender)
    await call(server, "post_pets", query_name="q", body_name="b")

    assert "https://api.example/v1/pets?name=q" == sender.sent[0].url
    assert b'{"name":"b"}' == sender.sent[0].body


async def test_equal_operation_ids_are_an_error_that_names_both():
    """Ours: one of two would be called for the other."""
    spec = make_document({"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}})

    with pytest.raises(
        DocumentError, match=r"^#/paths/~1b/get/operationId: GET /b and GET /a .* 'x'"
    ):
        serve_document(spec, StandInSender())


def test_what_cannot_be_had_is_left_out_where_that_is_put_up_with(caplog):
    """Ours: lenient leaves it out and says so."""
    xml = {"required": True, "content": {"application/xml": {}}}
    spec = make_document({"/a": {"post": {"requestBody": xml}}, "/b": {"get": {}}})

    with pytest.raises(
        DocumentError, match=r"^#/paths/~1a/post/requestBody: a body of application/xml"
    ):
        serve_document(spec, StandInSender())
    serve_document(spec, StandInSender(), lenient=True)

    assert "left out: #/paths/~1a/post/requestBody" in caplog.text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"include": "tag:pets"}, ["getPet", "post_pets"]),
        ({"exclude": "tag:admin"}, ["getPet", "post_pets"]),
        ({"include": "GET /pets/*"}, ["getPet"]),
        ({"include": "/pets/*"}, ["getPet", "deletePet"]),
        ({"include": ["*Pet"], "exclude": ["DELETE *"]}, ["getPet"]),
        ({"include": lambda head: head.method == "POST"}, ["post_pets"]),
        ({"include": "getPet", "shape": {"getPet": Shape(name="pet")}}, ["pet"]),
    ],
)
async def test_operations_are_selected(options, expected):
    """Ours: by tag, method, path, operationId or a function."""
    async with Client(serve_document(SPEC, StandInSender(), **options)) as client:
        assert expected == [tool.name for tool in await client.list_tools()]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"exclude": "tag:admim"}, "fits no operation; there are the tags admin, pets"),
        ({"shape": {"gotPet": Shape()}}, "no such operationId"),
        ({"shape": {"getPet": Shape(hide={"ib": 1})}}, "no argument 'ib'; there are: id"),
        ({"shape": {"getPet": Shape(hide={"id": None})}}, "needs a value"),
        ({"credentials": {"key": "x"}}, "no security scheme 'key'"),
        ({"search": "yes"}, "search= takes"),
        ({"nonsense": 1}, "nonsense"),
        ({"headers": "x"}, "headers= takes"),
        ({"headers": {"X-Key": 5}}, "headers\\['X-Key'\\]: a text or a function"),
        ({"base_url": "ftp://x"}, "is no base URL"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options, said):
    """Ours: a slip would offer too much or too little in silence."""
    with pytest.raises(UsageError, match=said):
        Server.from_openapi(SPEC, **options)


async def test_arguments_are_hidden_renamed_and_described():
    """Ours: what is hidden has its value, whoever asks for another."""
    sender = StandInSender()
    shape = Shape(
        hide={"query_name": "fixed"},
        rename={"body_name": "called"},
        describe={"body_name": "Its name."},
    )
    server = serve_document(SPEC, sender, shape={"POST /pets": shape})
    async with Client(server) as client:
        tool = next(one for one in await client.list_tools() if one.name == "post_pets")
        refused = await client.call_tool("post_pets", {"called": "b", "query_name": "mine"})
        await client.call_tool("post_pets", {"called": "b"})

    assert {"called": {"type": "string", "description": "Its name."}} == tool.input_schema[
        "properties"
    ]
    assert refused.is_error
    assert ["https://api.example/v1/pets?name=fixed"] == [one.url for one in sender.sent]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answer_json({"detail": "No pet\x1b[31m 7"}, 404, "application/problem+json"), "HTTP 404: No pet[31m 7"),
        (ApiResponse(429, {"retry-after": "3"}), "HTTP 429 (try again in 3 seconds)"),
        (answer_json({"detail": "secret stack"}, 500), "the API failed (HTTP 500)"),
        (ApiResponse(404, {"content-type": "text/html"}, b"<html>x"), "HTTP 404: a page of HTML"),
        (ApiResponse(200, {"content-type": "text/html"}, b"<html>"), "page of HTML"),
        (ApiResponse(200, {"content-type": "application/json"}, b"{"), "says that it is JSON, and is none"),
        (ApiResponse(200, {"content-type": "application/json"}, b"[" * 100_000), "and is none"),
        (ApiResponse(302, {"location": "https://evil.example/x?t=1"}), "redirects to https://evil.example (HTTP 302)"),
    ],
)  # fmt: skip
async def test_failures_are_told_to_the_model(answer, said):
    """Ours: of a mistake with the API's words, of a fault of the API without."""
    result = await call(serve_document(SPEC, StandInSender(answer)), "getPet", id=1)

    assert result.is_error
    assert said in result.text
    assert "stack" not in result.text


@pytest.mark.parametrize(
    ("answer", "kind", "structured"),
    [
        (answer_json([1, 2]), "text", {"result": [1, 2]}),
        (answer_json(None), "text", {"result": None}),
        (ApiResponse(204), "text", None),
        (ApiResponse(200, {"content-type": "text/csv; charset=latin-1"}, b"\xe4"), "text", None),
        (
            ApiResponse(200, {"content-type": "text/plain; charset=punycode"}, b"\xff"),
            "resource",
            None,
        ),
        (ApiResponse(200, {"content-type": "image/png"}, b"\x89PNG"), "image", None),
        (ApiResponse(200, {"content-type": "audio/mpeg"}, b"x"), "audio", None),
        (ApiResponse(200, {"content-type": "application/pdf"}, b"%PDF"), "resource", None),
    ],
)
async def test_answers_become_content_of_their_kind(answer, kind, structured):
    """Ours: JSON is structured, pictures and sounds are shown, other bytes are a resource."""
    result = await call(serve_document(SPEC, StandInSender(answer)), "getPet", id=1)

    assert not result.is_error
    assert [kind] == [block.__struct_config__.tag for block in result.content]
    assert structured == result.structured


async def test_a_difference_from_the_schema_is_logged_or_fails(caplog):
    """Ours: documents are often wrong, so that only strict servers insist; values are not logged."""
    sender = StandInSender(answer_json({"id": "private", "name": "Rex"}))
    loose = await call(serve_document(SPEC, sender), "getPet", id=1)
    strict = await call(serve_document(SPEC, sender, strict=True), "getPet", id=1)

    assert not loose.is_error
    assert "getPet answered what its description does not say, at $.id" in caplog.text
    assert "private" not in caplog.text
    assert strict.is_error


async def test_credentials_are_no_arguments_and_come_back_to_nobody():
    """Ours: a model neither sees nor sets them, not even where the API repeats them."""
    schemes = {
        "key": {"type": "apiKey", "in": "query", "name": "api_key"},
        "user": {"type": "http", "scheme": "basic"},
    }
    get = {
        "operationId": "get",
        "parameters": [{"name": "api_key", "in": "query"}, {"name": "q", "in": "query"}],
        "security": [{"key": [], "user": []}],
    }
    spec = make_document({"/": {"get": get}}, components={"securitySchemes": schemes})
    sender = StandInSender(answer_json({"echo": "hunter22", "basic": "YWRhOmxvdmVsYWNl"}))
    seen = []

    async def find_key(ctx):
        seen.append(ctx.principal)
        return "hunter22"

    server = serve_document(spec, sender, credentials={"key": find_key, "user": "ada:lovelace"})
    async with Client(server) as client:
        tools = await client.list_tools()
        result = await client.call_tool("get", {"q": "x"})

    assert ["q"] == list(tools[0].input_schema["properties"])
    assert "https://api.example/v1/?q=x&api_key=hunter22" == sender.sent[0].url
    assert "Basic YWRhOmxvdmVsYWNl" == sender.sent[0].headers["Authorization"]
    assert {"echo": "[secret]", "basic": "[secret]"} == result.structured
    assert [None] == seen


async def test_large_apis_are_searched():
    """Ours: above 60 operations the tools that find tools are offered; a call by them is the same."""
    paths = {f"/things{n}/{{id}}": {"get": {"operationId": f"getThing{n}", "summary": f"Get the thing {n}",
             "parameters": [{"name": "id", "in": "path", "required": True}]}} for n in range(61)}  # fmt: skip
    sender = StandInSender()
    async with Client(serve_document(make_document(paths), sender)) as client:
        names = [tool.name for tool in await client.list_tools()]
        found = await client.call_tool("search_tools", {"query": "thing 7"})
        details = await client.call_tool("get_tool_details", {"names": ["getThing7", "no"]})
        groups = await client.call_tool("list_servers", {})
        wrong = await client.call_tool("call_tool", {"name": "getThing7", "arguments": {"ib": "x"}})
        up = await client.call_tool("call_tool", {"name": "getThing7", "arguments": {"id": "../x"}})
        await client.call_tool("call_tool", {"name": "getThing7", "arguments": {"id": "x"}})

    assert ["search_tools", "get_tool_details", "call_tool", "list_servers"] == names
    assert "getThing7(id*): Get the thing 7" in found.text
    assert '"name":"getThing7"' in details.text
    assert "api: 61 tools" in groups.text
    assert wrong.is_error
    assert up.is_error
    assert ["https://api.example/v1/things7/x"] == [one.url for one in sender.sent]


# Over HTTP


async def test_an_api_that_misbehaves_is_a_tool_error_in_time():
    """Ours: it hangs, breaks off, is far too long, or is a bomb of zeros."""
    import gzip

    bomb = gzip.compress(b"0" * 50_000_000)

    async def respond(head, body, writer):
        path = head.split(b" ")[1]
        if path == b"/cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            writer.close()
        elif path == b"/long":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n" + b"x" * 9000)
        elif path == b"/bomb":
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
                % len(bomb)
                + bomb
            )
        elif path == b"/moved":
            writer.write(
                b"HTTP/1.1 302 Found\r\nLocation: http://localhost:1/x\r\nContent-Length: 0\r\n\r\n"
            )
        elif path == b"/here":
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
        elif path == b"/there":
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
            )

    paths = {
        f"/{n}": {"get": {"operationId": n}}
        for n in ("hang", "cut", "long", "bomb", "moved", "here")
    }
    async with listen(respond) as url:
        server = Server.from_openapi(
            make_document(paths), base_url=url, timeout=0.3, max_bytes=8000
        )
        async with Client(server) as client:
            said = {n[1:]: (await client.call_tool(n[1:], {})).text for n in paths}

    assert "the API did not answer within 0.3 seconds" == said["hang"]
    assert "the API closed the connection" in said["cut"]
    assert "more than 8000 bytes" in said["long"]
    assert "more than 8000 bytes" in said["bomb"]
    assert (
        "the API redirects to http://localhost:1 (HTTP 302), which is not followed" == said["moved"]
    )
    assert "ok" == said["here"]


async def test_the_head_of_a_large_answer_is_told_without_reading_it():
    """RFC 9110 9.3.2: the length is that of what GET would bring."""

    async def respond(head, body, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n")

    spec = make_document({"/x": {"head": {"operationId": "look"}}})
    async with listen(respond) as url:
        result = await call(
            Server.from_openapi(spec, base_url=url, headers={"X-Key": "abcdefg"}), "look"
        )

    assert {"status": 200, "headers": {"content-length": "5000000000"}} == result.structured


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254", "10.0.0.1", "localhost"])
async def test_a_document_cannot_send_requests_to_private_addresses(host):
    """Ours: where the document alone says where the API is, only public addresses are asked (SSRF)."""
    spec = make_document(
        {"/": {"get": {"operationId": "get"}}}, servers=[{"url": f"https://{host}/"}]
    )
    result = await call(Server.from_openapi(spec), "get")

    assert "the API is at an address that is not public, and was not asked" == result.text


@pytest.mark.parametrize("over", ["memory", "http"])
async def test_connections_to_the_api_are_closed_with_the_server(over):
    """Ours: one is kept between calls, and none after the server has stopped."""
    closed = asyncio.Event()
    opened = 0

    async def serve(reader, writer):
        nonlocal opened
        opened += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
                )
        writer.close()
        closed.set()

    api = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{api.sockets[0].getsockname()[1]}"
    server = Server.from_openapi(make_document({"/x": {"get": {"operationId": "x"}}}), base_url=url)
    async with serving(server) if over == "http" else nullcontext(server) as target:
        async with Client(target) as client:
            await client.call_tool("x", {})
            await client.call_tool("x", {})
        assert not closed.is_set()
    if over == "memory":
        await server.close()
    async with asyncio.timeout(5):
        await closed.wait()
    api.close()

    assert 1 == opened
