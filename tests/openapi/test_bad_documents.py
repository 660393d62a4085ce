"""Documents that cannot be used: one error each, with the place in the document."""

import itertools

import pytest

from isthmus.client.client import Client
from isthmus.errors import UsageError
from isthmus.openapi import document
from isthmus.openapi.document import DocumentError, read_document
from isthmus.server.server import Server
from support.openapi.stand_in_api import StandInSender, make_document, serve_document

GET = {"/x": {"get": {"operationId": "x"}}}
SERVERS = [{"url": "https://api.example"}]


def refer(reference: str) -> dict:
    return make_document({"/x": {"get": {"parameters": [{"$ref": reference}]}}}, servers=SERVERS)


def parameter(**members) -> dict:
    return make_document({"/x": {"get": {"parameters": [members]}}}, servers=SERVERS)


AT = "#/paths/~1x/get/parameters/0"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, '^#: this is no OpenAPI document: it has no member "openapi"'),
        ("{", "^it is no JSON"),
        ("", "^the document is empty"),
        ("[]", "^#: this is no OpenAPI document: it is a list"),
        (b"\xff\xfe", "it is no UTF-8"),
        ({"openapi": "4.0.0"}, "^#/openapi: version '4.0.0' is not known"),
        ({"swagger": "1.2"}, "^#/swagger: version '1.2' is not known"),
        (make_document({}, servers=SERVERS), "^#/paths: there is no operation"),
        (make_document([], servers=SERVERS), "^#/paths: this must be an object"),
        (make_document({"/x": 3}, servers=SERVERS), "^#/paths/~1x: a path must be an object"),
        (make_document({"x": {}}, servers=SERVERS), "^#/paths/x: a path begins with /"),
        (make_document({"/x": {"get": 3}}, servers=SERVERS), "^#/paths/~1x/get: an operation"),
        (make_document({"/{id}": {"get": {}}}, servers=SERVERS), r"^#/paths/~1\{id\}/get: the path has \{id\}"),
        (make_document(GET, servers=[]), "^#/servers: it has none: say where the API is: base_url="),
        (make_document(GET), "^#/servers: it has none"),
        (make_document(GET, servers=[{"url": "/v1"}]), "^#/servers: its URL '/v1' is relative"),
        (make_document(GET, servers=[{"url": "http://api.example"}]), "^#/servers/0/url: .* is plain http"),
        (make_document(GET, servers=[{"url": "https://u:p@api.example"}]), "^#/servers/0/url: .*no base URL"),
        (make_document(GET, servers=[{"url": "https://{region}.example"}]), r"^#/servers/0/url: \{region\} has no value"),
        (make_document({"/x": {"trace": {}}}, servers=SERVERS), "^#/paths/~1x/trace: TRACE is not sent"),
        (refer("#/components/parameters/No"), f"^{AT}: .* leads nowhere"),
        (refer("other.json#/a"), f"^{AT}: .*leads to 'other.json', outside of the document, and nothing is fetched"),
        (refer("https://evil.example/a.json"), "outside of the document, and nothing is fetched"),
        (refer("file:///etc/passwd"), "outside of the document, and nothing is fetched"),
        (refer(AT), f"^{AT}: this .ref leads round in a circle"),
        (parameter(name="a"), f"^{AT}: a parameter needs"),
        (parameter(name="a", **{"in": "query", "style": "simple"}), f"^{AT}/style: 'simple' is no style"),
        (parameter(name="Host", required=True, **{"in": "header"}), f"^{AT}: the header 'Host' cannot"),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_used_says_where(spec, said):
    """Ours: what, where and how to mend it."""
    with pytest.raises(DocumentError, match=said):
        Server.from_openapi(spec)


def test_a_missing_file_is_told_by_its_path(tmp_path):
    """Ours: it is the commonest slip."""
    with pytest.raises(DocumentError, match=r"cannot read .*no\.json: No such file"):
        Server.from_openapi(tmp_path / "no.json")


def test_yaml_is_read_within_bounds(tmp_path, monkeypatch):
    """Ours: aliases that stand for 10^9 values are refused before they are any."""
    monkeypatch.setattr(document, "MAX_YAML_PARTS", 20_000)  # counting a million takes seconds
    path = tmp_path / "api.yaml"
    path.write_text("openapi: 3.1.0\ninfo: {}\npaths:\n  /x:\n    get: {responses: {200: {}}}\n")
    names = "abcdefghi"
    levels = [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in itertools.pairwise(names)]
    bomb = "\n".join(["openapi: 3.1.0", "a: &a [1, 1]", *levels])

    assert {"get"} == set(read_document(path).root["paths"]["/x"])
    with pytest.raises(DocumentError, match="neither JSON nor YAML"):
        read_document(bomb)
    with pytest.raises(DocumentError, match="neither JSON nor YAML"):
        read_document("a: " + "[" * 5_000 + "\n")
    with pytest.raises(DocumentError, match="more than"):
        read_document(b" " * (32 * 1024 * 1024 + 1))


def test_another_document_is_read_where_it_was_given():
    """Ours: references lead to what the author passed, and among it."""
    spec = refer("common.json#/limit")
    common = {
        "limit": {"$ref": "#/real"},
        "real": {"name": "limit", "in": "query", "schema": {"$ref": "more.yaml#/s"}},
    }
    server = Server.from_openapi(
        spec, documents={"common.json": common, "more.yaml": "s:\n  type: integer\n"}
    )

    assert "Things" == server.info.name


async def test_schemas_in_circles_stay_references():
    """Ours: a tree is a tree."""
    node = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/N"}}},
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/N"}}}}
    loop = {"allOf": [{"$ref": "#/components/schemas/L"}, {"$ref": "#/components/schemas/L"}]}
    other = {"content": {"multipart/form-data": {"schema": {"$ref": "#/components/schemas/L"}}}}
    spec = make_document(
        {"/x": {"post": {"requestBody": body}}, "/y": {"post": {"requestBody": other}}},
        components={"schemas": {"N": node, "L": loop}},
    )
    sender = StandInSender()
    async with Client(serve_document(spec, sender)) as client:
        tools = await client.list_tools()
        await client.call_tool("post_x", {"kids": [{"kids": []}]})

    assert {"$ref": "#/$defs/N"} == tools[0].input_schema["properties"]["kids"]["items"]
    assert b'{"kids":[{"kids":[]}]}' == sender.sent[0].body


def test_an_operation_at_another_host_takes_leave():
    """Ours: a document cannot send credentials elsewhere by a server of one operation."""
    spec = make_document(
        {"/x": {"get": {"servers": [{"url": "https://evil.example"}]}}}, servers=SERVERS
    )

    with pytest.raises(
        DocumentError,
        match=r"^#/paths/~1x/get: it is at https://evil\.example, which no request goes",
    ):
        Server.from_openapi(spec)
    Server.from_openapi(spec, allow_hosts=["https://evil.example"])
    Server.from_openapi(spec, base_url="https://staging.example")


def test_a_token_is_passed_on_to_the_same_resource_only():
    """Ours: passing it through to another one is forbidden by the specification."""
    from isthmus.openapi import inbound_token

    spec = make_document(
        GET,
        servers=SERVERS,
        components={"securitySchemes": {"o": {"type": "oauth2", "flows": {}}}},
    )

    with pytest.raises(UsageError, match="they must be one resource"):
        Server.from_openapi(spec, credentials={"o": inbound_token("https://api.example")})
