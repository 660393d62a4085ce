"""Swagger 2.0, read as what it means in OpenAPI 3.0."""

from isthmus.openapi.document import read_document
from isthmus.openapi.operation import list_operations, read_operation
from isthmus.openapi.request import RequestValues, build_request, parse_base_url
from isthmus.openapi.tools.api_tools import settle_base
from isthmus.openapi.tools.arguments import plan_arguments
from isthmus.openapi.tools.schemas import SchemaConverter

SPEC = {
    "swagger": "2.0",
    "info": {"title": "Old", "version": "1"},
    "host": "old.example",
    "basePath": "/v2",
    "schemes": ["http", "https"],
    "consumes": ["application/json"],
    "parameters": {"Pet": {"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}},
    "definitions": {"Pet": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "x-nullable": True}, "kids": {"type": "array", "items": {"$ref": "#/definitions/Pet"}}}}},
    "securityDefinitions": {"basic": {"type": "basic"}},
    "paths": {
        "/pets": {
            "post": {"parameters": [{"$ref": "#/parameters/Pet"}]},
            "get": {"parameters": [
                {"name": "a", "in": "query", "type": "array", "items": {"type": "string"}},
                {"name": "b", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
                {"name": "c", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
            ]},
        },
        "/pets/{id}/photo": {
            "parameters": [{"name": "id", "in": "path", "required": True, "type": "integer"}],
            "post": {"parameters": [
                {"name": "file", "in": "formData", "type": "file", "required": True},
                {"name": "note", "in": "formData", "type": "string"},
            ]},
        },
    },
}  # fmt: skip
BASE = parse_base_url("https://old.example/v2")


def read_all():
    document = read_document(SPEC)
    converter = SchemaConverter(document)
    operations = [read_operation(document, head) for head in list_operations(document)]
    return {one.title: (one, plan_arguments(one, converter)) for one in operations}


def test_bodies_forms_and_lists_mean_what_they_meant():
    """Ours: each form of Swagger 2.0 becomes the request that it described."""
    known = read_all()
    pet, planned = known["POST /pets"]
    posted = build_request(pet, planned.sort({"name": None, "kids": []}), BASE)
    photo, plan = known["POST /pets/{id}/photo"]
    sent = build_request(
        photo, plan.sort({"id": 3, "file": "aGk=", "note": "n"}), BASE, boundary="B"
    )
    query = {("query", name): ["x", "y"] for name in "abc"}
    listed = build_request(known["GET /pets"][0], RequestValues(query), BASE)

    assert ["string", "null"] == planned.schema["properties"]["name"]["type"]
    assert {"$ref": "#/$defs/Pet"} == planned.schema["properties"]["kids"]["items"]
    assert b'{"name":null,"kids":[]}' == posted.body
    assert ["id", "file"] == plan.schema["required"]
    assert (
        b'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n'
        in sent.body
    )
    assert b'name="note"\r\n\r\nn\r\n--B--' in sent.body
    assert "https://old.example/v2/pets?a=x,y&b=x&b=y&c=x%7Cy" == listed.url


def test_the_url_by_https_comes_first():
    """Ours: of several schemes the safe one is used."""
    base, said = settle_base(read_document(SPEC), {})

    assert ("https://old.example/v2", False) == (str(base), said)
