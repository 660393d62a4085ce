"""What a schema admits, the function accepts; what the function returns, its schema admits."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from isthmus.server.schema.annotations import unwrap_annotation
from isthmus.server.schema.functions import UserFunction
from isthmus.server.schema.results import to_call_result
from support.schemas.random_types import KINDS, Kind
from support.schemas.schema_values import admitted_values

LONG = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


def echo(annotation: Any) -> UserFunction:
    """A function that takes and gives a type."""

    def tool(x: Any) -> Any:
        return x

    tool.__annotations__ = {"x": annotation, "return": annotation}
    return UserFunction.of(tool)


@LONG
@given(KINDS, st.data())
def test_what_a_function_returns_its_output_schema_admits(kind: Kind, data: st.DataObject) -> None:
    """The specification demands it: structured results MUST conform to the output schema."""
    assume(unwrap_annotation(kind.annotation) is not bytes)  # refused, and says so
    plan = echo(kind.annotation).plan_returns()
    assume(plan.schema is not None)
    value = data.draw(kind.values)
    result = to_call_result(value, plan)
    written = json.loads(bytes(result.structured_content))
    jsonschema_rs.Draft202012Validator(plan.schema, validate_formats=True).validate(written)
    plain = written["result"] if plan.wrapped else written
    said = result.content[0].text
    assert plain == (said if isinstance(value, str) else json.loads(said))


@LONG
@given(KINDS, st.data())
def test_what_an_input_schema_admits_the_function_accepts(kind: Kind, data: st.DataObject) -> None:
    """We demand it: a model that obeys the schema is never told that it is wrong."""
    function = echo(kind.annotation)
    arguments = data.draw(admitted_values(function.input_schema))
    function.bind(msgspec.Raw(json.dumps(arguments).encode()))


@pytest.mark.covers("tools.schema.2020-12")
@LONG
@given(KINDS)
def test_every_schema_is_a_schema(kind: Kind) -> None:
    """Both forms satisfy the metaschema of JSON Schema 2020-12."""
    function = echo(kind.annotation)
    jsonschema_rs.meta.validate(function.input_schema)
    if unwrap_annotation(kind.annotation) is not bytes:
        jsonschema_rs.meta.validate(function.plan_returns().schema or {})
