"""Values of types msgspec does not know by itself."""

import dataclasses
import pathlib
import sys
from typing import Annotated

import annotated_types
import msgspec
import pydantic
import pytest

from isthmus.errors import UsageError
from isthmus.server.schema.custom_types import decode_custom, make_expressible, write_json
from isthmus.server.schema.pydantic_types import find_adapter, make_adapter


class Model(pydantic.BaseModel):
    """A model."""

    size: int


@pydantic.dataclasses.dataclass
class Checked:
    """A dataclass that pydantic checks."""

    size: int


@dataclasses.dataclass
class Raw:
    """A dataclass with a member that pydantic does not know."""

    model: Model
    rest: msgspec.Raw


class Holder(msgspec.Struct):
    """A struct with parts msgspec does not know."""

    path: pathlib.Path
    model: Model


def test_paths_and_models_travel_inside_structs():
    """Ours: a path is a string, a model what pydantic makes of it."""
    holder = Holder(pathlib.Path("/a"), Model(size=1))
    data = b'{"path":"/a","model":{"size":1}}'

    assert data == write_json(holder)
    assert holder == msgspec.json.decode(
        data, type=make_expressible(Holder), dec_hook=decode_custom
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"path":1,"model":{"size":1}}', r"Expected `str`, got `int` - at `\$.path`"),
        (b'{"path":"a","model":{"size":"x"}}', r"size: Input should be a valid integer.*\$.model"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_one_line(data, said):
    """Ours: pydantic's own text has several lines and a link."""
    with pytest.raises(msgspec.ValidationError, match=said) as caught:
        msgspec.json.decode(data, type=Holder, dec_hook=decode_custom)
    assert "\n" not in str(caught.value)


def test_unknown_types_are_refused_in_both_directions():
    """Ours: no silent `repr` on the wire."""
    with pytest.raises(TypeError, match="complex'> is not supported"):
        decode_custom(complex, 3)
    with pytest.raises(TypeError, match="complex cannot be written as JSON"):
        write_json(1j)


@pytest.mark.parametrize("annotation", [Model, Checked, list[Checked], dict[str, Model | None]])
def test_constraints_of_pydantic_are_checked_by_pydantic(annotation):
    """Ours: its dataclasses too, which msgspec would read without checking."""
    assert find_adapter(annotation) is find_adapter(annotation) is not None


@pytest.mark.parametrize("annotation", [int, Holder, list[Holder | int], Raw])
def test_the_rest_is_left_to_msgspec(annotation):
    """Ours: it is faster, and knows its own structs."""
    assert None is find_adapter(annotation)


def test_an_annotation_that_is_no_key_has_an_adapter_all_the_same():
    """Ours: it is only not kept."""
    extra = pydantic.WithJsonSchema({"type": "integer"})
    unhashable = Annotated[int, extra, []]

    assert 3 == make_adapter(unhashable).validate_python("3")


def test_constraints_without_pydantic_say_what_to_install(monkeypatch):
    """Ours: annotated-types can be there alone, and silence would drop the constraint."""
    monkeypatch.setitem(sys.modules, "pydantic", None)

    with pytest.raises(UsageError, match=r"needs pydantic .* pip install 'isthmus\[pydantic\]'"):
        find_adapter(Annotated[int, annotated_types.Ge(12345)])


def test_annotations_that_pydantic_cannot_handle_are_refused():
    """Ours: constraints of pydantic's on something pydantic does not know."""
    with pytest.raises(UsageError, match="pydantic cannot handle"):
        find_adapter(Annotated[complex | type(sys), pydantic.Field(ge=1)])


def test_without_pydantic_and_its_friends_nothing_is_looked_for(monkeypatch):
    """Ours: nobody can annotate with what nobody imported."""
    monkeypatch.delitem(sys.modules, "pydantic")
    monkeypatch.delitem(sys.modules, "annotated_types")

    assert None is find_adapter(Model)
