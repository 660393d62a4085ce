"""Requests to an API, built of operations and their arguments."""

import pytest

from isthmus.openapi.document import read_document
from isthmus.openapi.operation import Operation, list_operations, read_operation
from isthmus.openapi.request import RequestValues, build_request, parse_base_url
from isthmus.openapi.styles import BadValue

BASE = parse_base_url("https://api.example/v1/")


def refuse(error: Exception) -> None:
    raise error


def read_one(path: str = "/things", method: str = "get", **operation) -> Operation:
    """The only operation of a small document."""
    paths = {path: {method: operation}}
    document = read_document({"openapi": "3.1.0", "info": {}, "paths": paths})
    return read_operation(document, next(list_operations(document, refuse)))


def build_path(style: str, explode: bool, value) -> str:
    """The URL below the base where ``color`` is in the path."""
    color = {"name": "color", "in": "path", "required": True, "style": style, "explode": explode}
    operation = read_one("/{color}", parameters=[color])
    request = build_request(operation, RequestValues({("path", "color"): value}), BASE)
    return request.url.removeprefix("https://api.example/v1/")


def build_query(style: str, explode: bool, value, **more) -> str:
    """The query where ``color`` is in it."""
    color = {"name": "color", "in": "query", "style": style, "explode": explode, **more}
    operation = read_one(parameters=[color])
    request = build_request(operation, RequestValues({("query", "color"): value}), BASE)
    return request.url.partition("?")[2]


LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black,brown"),
        ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
        ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
        ("label", False, "blue", ".blue"),
        ("label", False, LIST, ".blue,black,brown"),
        ("label", False, OBJECT, ".R,100,G,200,B,150"),
        ("label", True, LIST, ".blue.black.brown"),
        ("label", True, OBJECT, ".R=100.G=200.B=150"),
        ("simple", False, "blue", "blue"),
        ("simple", False, LIST, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200,B,150"),
        ("simple", True, LIST, "blue,black,brown"),
        ("simple", True, OBJECT, "R=100,G=200,B=150"),
    ],
)
def test_styles_of_a_path_are_those_of_the_table(style, explode, value, expected):
    """OpenAPI 3.1 4.8.12.4: the examples of its table."""
    assert expected == build_path(style, explode, value)


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", False, "blue", "color=blue"),
        ("form", False, "", "color="),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", True, OBJECT, "R=100&G=200&B=150"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
    ],
)
def test_styles_of_a_query_are_those_of_the_table(style, explode, value, expected):
    """OpenAPI 3.1 4.8.12.4: the examples of its table."""
    assert expected == build_query(style, explode, value)


@pytest.mark.parametrize(
    "value", ["../admin", "..", ".", "a/../b", "%2e%2e/x", "..%2f", "a\\..\\b", "..;x", "", "a\nb", "a\0",
              "%252e%252e%252fx", "%0d%0aHost: evil"],
)  # fmt: skip
def test_a_path_part_that_could_leave_its_place_is_refused(value):
    """Ours: many servers decode and normalise a path before they look at it."""
    with pytest.raises(BadValue, match=r"^color: "):
        build_path("simple", explode=False, value=value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("//evil.example/x", "%2F%2Fevil.example%2Fx"),
        ("a?b#c", "a%3Fb%23c"),
        ("a%2fb", "a%252fb"),
        ("@evil", "%40evil"),
        ("…", "%E2%80%A6"),
        ("...", "..."),
    ],
)
def test_signs_of_a_url_stay_data_in_a_path(value, expected):
    """Ours: each path part is encoded by itself."""
    assert expected == build_path("simple", explode=False, value=value)


def test_reserved_signs_cannot_end_a_pair_of_the_query():
    """Ours: ``allowReserved`` is for what the query may have, not for another parameter."""
    assert "color=/a?b%26x%3D1%23%2By%25" == build_query(
        "form", explode=True, value="/a?b&x=1#+y%", allowReserved=True
    )


def test_the_key_of_an_object_cannot_be_another_parameter():
    """Ours: an object written member by member names its own pairs."""
    operation = read_one(
        parameters=[{"name": "filter", "in": "query"}, {"name": "limit", "in": "query"}]
    )
    values = RequestValues({("query", "filter"): {"limit": 1000}})
    key = RequestValues({("query", "filter"): {"api_key": "mine"}})

    with pytest.raises(BadValue, match="name of another parameter"):
        build_request(operation, values, BASE)
    with pytest.raises(BadValue, match="name of another parameter"):
        build_request(operation, key, BASE, reserved=[("query", "api_key")])


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", " a", "é", "a\x7f"])
def test_a_header_takes_one_line_of_ascii(value):
    """Ours: what would not arrive as it is sent is refused."""
    operation = read_one(parameters=[{"name": "X-Trace", "in": "header"}])

    with pytest.raises(BadValue, match=r"^X-Trace: "):
        build_request(operation, RequestValues({("header", "X-Trace"): value}), BASE)


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Authorization", "X-Forwarded-For", "Accept",
                                  "X-HTTP-Method-Override", "Cookie", "Bad Name"])  # fmt: skip
def test_some_headers_are_set_by_nobody(name):
    """Ours: they belong to the connection, or change what a request is."""
    assert () == read_one(parameters=[{"name": name, "in": "header"}]).parameters


def test_a_fragment_of_a_path_is_not_sent():
    """A fragment tells operations of one path apart: RFC 3986 3.5 never sends it."""
    operation = read_one("/#Action=Describe")

    request = build_request(operation, RequestValues({}), BASE)

    assert "https://api.example/v1/" == request.url


def test_objects_in_a_list_of_a_deep_object_are_numbered():
    """Without a number no server could tell the members of two items apart."""
    value = {"lines": [{"id": 1, "tags": ["x", "y"]}, {"id": 2}]}

    query = build_query("deepObject", True, value)

    assert (
        "color[lines][0][id]=1&color[lines][0][tags][]=x&color[lines][0][tags][]=y&color[lines][1][id]=2"
        == query.replace("%5B", "[").replace("%5D", "]")
    )


@pytest.mark.parametrize("value", [[{"a": 1}, {"b": [2]}], {"a": {"b": 1}}])
def test_what_is_nested_in_a_query_is_json(value):
    """OpenAPI leaves it open (3.1 4.8.12.3); most clients write JSON."""
    query = build_query("form", False, value)

    assert query
    assert "%22" in query
    assert "{" not in query


def test_the_length_of_a_body_is_nobodys_argument():
    """An operation that describes Content-Length is offered: it is set as it must be."""
    length = {"name": "Content-Length", "in": "header", "required": True, "schema": {}}

    operation = read_one(method="put", parameters=[length])

    assert () == operation.parameters


def test_an_empty_server_url_is_where_the_document_is():
    """RFC 3986 4.4: an empty reference means the same document."""
    operation = read_one(servers=[{"url": ""}])

    assert ("",) == operation.servers


def test_members_of_two_objects_cannot_have_one_name():
    """Objects that are written member by member: nobody could tell whose member it is."""
    filters = [{"name": name, "in": "query", "schema": {"type": "object"}} for name in ("a", "b")]
    operation = read_one(parameters=filters)
    values = {("query", "a"): {"on": True}, ("query", "b"): {"on": False}}

    with pytest.raises(BadValue, match="b: 'on' is in a, too"):
        build_request(operation, RequestValues(values), BASE)
