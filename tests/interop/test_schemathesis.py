"""Our documents held against other people's tools: openapi-spec-validator reads them, schemathesis sends the same requests."""

import json
import sys
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from isthmus import ToolError
from isthmus.openapi.bodies import choose_media_type
from isthmus.openapi.document import read_document
from isthmus.openapi.operation import list_operations, read_operation
from isthmus.openapi.request import RequestValues, build_request, parse_base_url
from support.docs.blocks import EXAMPLES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

BASE = "https://api.example/v1"
PLACES = {"query": "query", "header": "headers", "cookie": "cookies"}


def load_payments():
    """The document of the shop's payment service."""
    sys.path.insert(0, str(EXAMPLES / "shop"))
    try:
        import payments  # its own folder is on the path
    finally:
        sys.path.remove(str(EXAMPLES / "shop"))
        sys.modules.pop("payments", None)
    return payments.DOCUMENT


DOCUMENTS = {
    "pets": json.loads((EXAMPLES / "openapi" / "pets.json").read_text()),
    "elsewhere": json.loads((EXAMPLES / "elsewhere" / "pets.json").read_text()),
    "payments": load_payments(),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_our_documents_are_valid(name):
    """Ours: what the examples teach with is what OpenAPI says."""
    from openapi_spec_validator import validate  # a second to import, and run in CI alone

    validate(DOCUMENTS[name])


def split_values(operation, case):
    """The values of a generated case, as a call of the tool would have them."""
    given = {
        ("path", key): unquote(str(value)) for key, value in (case.path_parameters or {}).items()
    }
    for place, where in PLACES.items():
        known = {one.name for one in operation.parameters if one.location == place}
        found = getattr(case, where) or {}
        given |= {(place, key): value for key, value in found.items() if key in known}
    body = case.body if operation.body is not None else UNSET
    if operation.body is None or type(body).__name__ == "NotSet":
        return RequestValues(given)
    return RequestValues(given, body, choose_media_type(operation.body))


@pytest.mark.parametrize("name", DOCUMENTS)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_a_generated_request_is_the_one_that_schemathesis_sends(name, data):
    """Ours: path, query and body are the same, whatever the schema allows."""
    import requests  # as above
    import schemathesis

    document = read_document(DOCUMENTS[name])
    operation = read_operation(document, data.draw(st.sampled_from([*list_operations(document)])))
    theirs = schemathesis.openapi.from_dict(DOCUMENTS[name])
    case = data.draw(theirs[operation.path][operation.method.upper()].as_strategy())
    try:
        ours = build_request(operation, split_values(operation, case), parse_base_url(BASE))
    except ToolError:
        assume(False)  # what no URL or header can carry is refused here
    sent = case.as_transport_kwargs(base_url=BASE)
    keys = ("method", "url", "params", "json", "data")
    prepared = requests.Request(**{key: sent[key] for key in keys if key in sent}).prepare()

    here, there = urlsplit(ours.url), urlsplit(prepared.url)
    assert unquote(there.path) == unquote(here.path)
    assert parse_qsl(there.query, keep_blank_values=True) == parse_qsl(
        here.query, keep_blank_values=True
    )
    if ours.body is not None and prepared.body:
        assert json.loads(prepared.body) == json.loads(ours.body)
