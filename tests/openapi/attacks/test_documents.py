"""Documents of an attacker: they are read in bounded time, and set no header, host or port."""

import json
import time

import pytest

from isthmus.errors import UsageError
from isthmus.openapi.document import DocumentError, read_document
from isthmus.openapi.operation import is_forbidden_header
from isthmus.openapi.request import parse_base_url
from isthmus.openapi.tools.arguments import ToolArgument, name_arguments
from isthmus.server.server import Server
from support.openapi.stand_in_api import make_document

SERVERS = [{"url": "https://api.example"}]


def post(schema, media="application/json") -> dict:
    body = {"content": {media: {"schema": schema}}}
    return {"post": {"operationId": "post", "requestBody": body}}


def serve(paths, **members) -> Server:
    return Server.from_openapi(make_document(paths, servers=SERVERS, **members))


def test_long_names_that_begin_alike_are_told_apart():
    """A name for a model has 64 signs; a thousand members may begin with the same ones."""
    names = [f"{'a' * 70}{number}" for number in range(1000)]
    named = name_arguments([ToolArgument("member", name, {}, False) for name in names])

    assert 1000 == len(set(named))
    assert 64 == max(map(len, named))


def test_branches_of_branches_are_not_counted_out():
    """12 times the same branch, 7 levels deep, would be 35 million objects."""
    schemas = {
        f"L{level}": {"allOf": [{"$ref": f"#/components/schemas/L{level + 1}"}] * 12}
        for level in range(7)
    }
    schemas["L7"] = {"type": "object"}
    began = time.process_time()
    serve({"/x": post({"$ref": "#/components/schemas/L0"})}, components={"schemas": schemas})

    assert time.process_time() - began < 1


def test_definitions_of_one_name_are_read_in_time_that_grows_with_their_number():
    """Each was compared with all before it: 8,000 of them took 10 seconds."""
    number = 3000
    schema = [{"$ref": f"#/components/x{at}/schema"} for at in range(number)]
    components = {f"x{at}": {"schema": {"type": "object"}} for at in range(number)}
    began = time.process_time()
    serve({"/x": post({"type": "array", "prefixItems": schema})}, components=components)

    assert time.process_time() - began < 1


def test_a_deep_swagger_document_is_an_error():
    """Depth is no reason for a traceback."""
    schema = '{"items":' * 900 + "{}" + "}" * 900
    text = json.dumps(
        {
            "swagger": "2.0",
            "info": {"title": "deep", "version": "1"},
            "host": "api.example",
            "paths": {"/x": {"post": {"parameters": [{"in": "body", "name": "b", "schema": "@"}]}}},
        }
    )
    with pytest.raises(DocumentError, match=r"^#: it is nested too deeply"):
        read_document(text.replace('"@"', schema))


@pytest.mark.parametrize(
    "media", ["a/b\r\nX-Evil: 1+json", "text/x\r\n\r\nGET /evil", "a/b\nHost: evil", "a/ b+json"]
)
def test_a_media_type_is_no_header_of_its_own(media):
    """It becomes the header Content-Type."""
    with pytest.raises(DocumentError, match="cannot be written"):
        serve({"/x": post({"type": "object", "properties": {"a": {}}}, media)})


@pytest.mark.parametrize("url", ["//evil.example/x", "//api.example:8443/"])
def test_an_operation_without_a_scheme_stays_at_its_host(url):
    """Two slashes begin the name of a host."""
    get = {"operationId": "get", "servers": [{"url": url}]}

    with pytest.raises(DocumentError, match="which no request goes to: allow_hosts="):
        serve({"/x": {"get": get}})


@pytest.mark.parametrize(
    "url",
    [
        "https://\u017f.example", "http\u017f://a.example:443", "https://\u212aa.example",
        "https://a.example:\u0663\u0663", "https://a.example:99999", "https://a.example:0",
    ],
)  # fmt: skip
def test_signs_that_are_letters_only_in_lower_case_are_in_no_url(url):
    """The long s and the sign of kelvin count as s and k where case does not count."""
    with pytest.raises(UsageError):
        parse_base_url(url)


def test_a_port_is_a_number():
    """Origins are compared as texts."""
    assert "https://a.example" == str(parse_base_url("https://a.example:00443/"))
    assert "https://a.example:81" == str(parse_base_url("https://a.example:081"))


@pytest.mark.parametrize("name", ["x_forwarded_for", "transfer_encoding", "proxy_authorization"])
def test_an_underline_is_a_hyphen_in_the_name_of_a_header(name):
    """CGI and WSGI have one name for both."""
    assert is_forbidden_header(name)
