"""Requests read again by a reader of their own: what was sent is what OpenAPI says.

The reader (tests/support/openapi) knows nothing of isthmus. A value either arrives as it was given,
or it is refused: none ever arrives as another one.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.openapi.document import read_document
from isthmus.openapi.operation import list_operations, read_operation
from isthmus.openapi.request import RequestValues, build_request, parse_base_url
from isthmus.openapi.styles import BadValue
from support.openapi.comparison import same
from support.openapi.described_apis import Api, list_described
from support.openapi.request_reading import read_request

STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
SCHEMAS = {
    "value": {"type": "string"},
    "number": {"type": "number"},
    "array": {"type": "array", "items": {"type": "string"}},
    "object": {"type": "object", "additionalProperties": {"type": "string"}},
}
ODD = (
    *("a,b", "a;b", "a.b", "a b", "a/b", "..", ".", "%2e", "%2C", "a=b", "a&b", "x[y]", "a|b", "é"),
    *("", " a", "+", "a+b", "#", "?", "\r\nX: y", "\0", '"', "\\", "{}", "[]", "null", "\ud800"),
)
TEXTS = st.text(max_size=8) | st.sampled_from(ODD)
NAMES = st.text(min_size=1, max_size=5)
VALUES = {
    "value": TEXTS,
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "array": st.lists(TEXTS, min_size=1, max_size=4),
    "object": st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3),
}
CASES = [
    (place, style, explode, kind)
    for place, styles in STYLES.items()
    for style in styles
    for explode in (False, True)
    for kind in SCHEMAS
    if style != "deepObject" or kind == "object"
    if style not in ("spaceDelimited", "pipeDelimited") or kind in ("array", "object")
    if style not in ("spaceDelimited", "pipeDelimited") or not explode or kind == "array"
]
BASE = parse_base_url("https://api.example/v1")


def describe(parameters, **operation):
    """A document with one operation, as isthmus reads it and as the reader does."""
    path = "/things" + "".join(f"/{{{one['name']}}}" for one in parameters if one["in"] == "path")
    method = operation.pop("method", "post")
    root = {
        "openapi": "3.2.0",
        "info": {"title": "things", "version": "1"},
        "servers": [{"url": "https://api.example/v1"}],
        "paths": {path: {method: {"parameters": parameters, **operation}}},
    }
    document = read_document(root)
    (head,) = list_operations(document, lambda error: pytest.fail(str(error)))
    return read_operation(document, head), next(list_described(Api(root)))


def carry(operations, parameters=(), **body):
    """What arrives of a request."""
    mine, theirs = operations
    request = build_request(mine, RequestValues(dict(parameters), **body), BASE)
    path, _, query = request.url.removeprefix("https://api.example").partition("?")
    headers = [(k.lower().encode(), v.encode()) for k, v in request.all_headers().items()]
    scope = {"method": request.method, "raw_path": path.encode(), "query_string": query.encode()}
    return read_request(theirs, {**scope, "headers": headers}, request.body or b"")


@pytest.mark.parametrize(("place", "style", "explode", "kind"), CASES)
def test_a_value_arrives_as_it_is_or_is_refused(place, style, explode, kind):
    """Each style in each place, exploded or not, with whatever texts there are."""
    name = "color"
    parameter = {"name": name, "in": place, "style": style, "explode": explode}
    parameter |= {"required": place == "path", "schema": SCHEMAS[kind]}
    operations = describe([parameter])

    def check(value):
        try:
            arrived = carry(operations, {(place, name): value})
        except BadValue:
            return
        assert same(value, arrived.values.get((place, name))), arrived.values

    for text in ODD if kind != "number" else ():
        check({"value": text, "array": [text, "b"], "object": {"a": text, f"k{text}": "b"}}[kind])
    settings(max_examples=15, database=None, derandomize=True)(given(VALUES[kind])(check))()


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_forms_carry_texts_lists_and_objects(media):
    """Whatever the texts are: no member becomes two, none another one."""
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}},
            "object": {"type": "object", "additionalProperties": {"type": "string"}},
            "number": {"type": "number"},
        },
    }
    operations = describe([], requestBody={"content": {media: {"schema": schema}}})
    (media_type,) = operations[0].body.media_types
    values = st.fixed_dictionaries(
        {},
        optional={
            "text": TEXTS, "list": VALUES["array"], "object": VALUES["object"],
            "number": VALUES["number"],
        },
    )  # fmt: skip

    @settings(max_examples=80, database=None, derandomize=True)
    @given(values)
    def check(value):
        arrived = carry(operations, body=value, media_type=media_type)
        assert same(value, arrived.body or {}), arrived.body

    check()


def test_bytes_in_a_form_stay_bytes():
    """A file may have anything in it, a boundary of another body included."""
    schema = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}}
    content = {"multipart/form-data": {"schema": schema}}
    operations = describe([], requestBody={"content": content})
    (media_type,) = operations[0].body.media_types
    data = "AAECDQotLWlzdGhtdXMNCg=="

    for value in (data, {"data": data, "filename": 'a"b\r\nX: y', "content_type": "image/png"}):
        arrived = carry(operations, body={"file": value}, media_type=media_type)

        assert {"file": b"\0\1\2\r\n--isthmus\r\n"} == arrived.body


def test_the_whole_query_string_is_one_value():
    """OpenAPI 3.2 4.12.1: ``in: querystring``, with a media type of its own."""
    content = {"application/json": {"schema": {"type": "object"}}}
    operations = describe([{"name": "q", "in": "querystring", "content": content}], method="query")
    value = {"a": ["b&c", 1], "d": {"e": "?#"}}

    arrived = carry(operations, {("querystring", "q"): value})

    assert {("querystring", "q"): value} == arrived.values


def test_parameters_with_a_media_type_are_json():
    """OpenAPI 3.0 4.7.12.1: ``content`` in the place of a style."""
    content = {"application/json": {"schema": {"type": "object"}}}
    places = ("path", "query", "cookie")
    operations = describe([
        {"name": f"in_{place}", "in": place, "required": True, "content": content}
        for place in places
    ])  # fmt: skip
    value = {"a b": ["c&d", {"e": 1}], "ü": "/"}

    arrived = carry(operations, {(place, f"in_{place}"): value for place in places})

    assert {(place, f"in_{place}"): value for place in places} == arrived.values
