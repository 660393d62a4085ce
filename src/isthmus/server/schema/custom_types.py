"""Types msgspec does not know by itself: unions it cannot tell apart, paths, pydantic models.

msgspec hands such a type to a hook. `make_expressible` rewrites an annotation so that every union
msgspec refuses becomes a `UnionChoice`, whose alternatives are tried one after the other; `decode_custom`
and `encode_custom` are the hooks themselves.
"""

import os
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, get_args, get_origin

import msgspec

from isthmus.errors import UsageError
from isthmus.server.schema import pydantic_types
from isthmus.server.schema.annotations import find_peril, is_union, unwrap_annotation

JSON_NAMES = {dict: "object", list: "array", type(None): "null"}


class AnythingIsOne(type):
    """A class of which everything is an instance: msgspec checks what a hook returns."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class UnionChoice(metaclass=AnythingIsOne):
    """A union whose alternatives are tried in order, the best fitting object first."""

    branches: ClassVar[tuple[Any, ...]] = ()
    members: ClassVar[tuple[frozenset[str] | None, ...]] = ()

    @classmethod
    def choose(cls, value: Any) -> Any:
        """The value as the first alternative that accepts it.

        Raises:
            ValueError: no alternative does.
        """
        for branch in cls.rank_branches(value):
            try:
                return msgspec.convert(value, branch, dec_hook=decode_custom, str_keys=True)
            except (ValueError, TypeError):
                continue
        kind = JSON_NAMES.get(type(value), type(value).__name__)
        raise ValueError(f"Expected `{cls.__name__}`, got `{kind}`")

    @classmethod
    def rank_branches(cls, value: Any) -> Iterable[Any]:
        """The alternatives; for an object, those first that leave the fewest members unread."""
        if not isinstance(value, dict):
            return cls.branches
        keys = value.keys()
        unread = [len(keys - known) if known is not None else 0 for known in cls.members]
        order = sorted(range(len(unread)), key=unread.__getitem__)
        return [cls.branches[i] for i in order]


def make_union_choice(union: Any) -> type[UnionChoice]:
    """A `UnionChoice` between the alternatives of a union.

    Raises:
        UsageError: one of the alternatives is itself beyond expression.
    """
    branches = tuple(make_expressible(branch) for branch in get_args(union))
    members = tuple(_find_member_names(branch) for branch in branches)
    name = " | ".join(getattr(b, "__name__", None) or str(b) for b in branches)
    made: Any = AnythingIsOne(name, (UnionChoice,), {"branches": branches, "members": members})
    return made  # type: ignore[no-any-return]  # a class made at run time


def _find_member_names(branch: Any) -> frozenset[str] | None:
    """The member names of an object type, None for types that read any member or are no object."""
    if pydantic_types.is_pydantic(branch):
        return pydantic_types.find_model_members(branch)
    info = msgspec.inspect.type_info(branch)
    fields = getattr(info, "fields", None)
    return None if fields is None else frozenset(field.encode_name for field in fields)


def make_expressible(annotation: Any) -> Any:
    """The annotation itself, or one msgspec can decode that means the same.

    Raises:
        UsageError: msgspec cannot decode it; the message says why, in msgspec's words.
    """
    problem = _find_problem(annotation)
    if problem is None:
        return annotation
    rewritten = _rewrite_annotation(annotation)
    if rewritten is None or (problem := _find_problem(rewritten)):
        raise UsageError(problem)
    return rewritten


def _rewrite_annotation(annotation: Any) -> Any:
    """The annotation with its parts made expressible; None if it has none to rewrite."""
    if get_origin(annotation) is not Annotated:
        annotation = unwrap_annotation(annotation)
    origin: Any = get_origin(annotation)
    arguments = get_args(annotation)
    if is_union(annotation):
        return make_union_choice(annotation)
    if origin is Annotated:
        inner: Any = make_expressible(arguments[0])
        return None if inner is arguments[0] else Annotated[(inner, *annotation.__metadata__)]
    if not arguments or origin is None or _is_object(origin):
        return None
    inner = tuple(a if a is ... else make_expressible(a) for a in arguments)
    return None if inner == arguments else origin[inner]


def _is_object(origin: Any) -> bool:
    """Whether a generic's members lie in a class of the user's, which we do not rewrite."""
    return hasattr(origin, "__annotations__") and isinstance(origin, type)


def _find_problem(annotation: Any) -> str | None:
    """Why msgspec cannot decode the annotation; None if it can."""
    if peril := find_peril(annotation):
        return peril
    try:
        msgspec.json.Decoder(annotation)
    except (TypeError, NameError, AttributeError) as refusal:
        return str(refusal)
    return None


def is_path(kind: Any) -> bool:
    """Whether the class is pathlib's: found without importing pathlib."""
    return isinstance(kind, type) and kind.__module__.partition(".")[0] == "pathlib"


def decode_custom(kind: Any, value: Any) -> Any:
    """The decoding hook: a value of a type msgspec does not know.

    Raises:
        ValueError: the value does not fit.
        TypeError: the type is not supported either.
    """
    if isinstance(kind, AnythingIsOne):
        return kind.choose(value)  # type: ignore[attr-defined]  # the metaclass has one base class
    if isinstance(value, kind):
        return value
    if is_path(kind):
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        return kind(value)
    if pydantic_types.is_pydantic(kind):
        return pydantic_types.validate_json(kind, msgspec.json.encode(value))
    raise TypeError(f"{kind!r} is not supported")


def encode_custom(value: Any) -> Any:
    """The encoding hook: a value msgspec cannot write, as one that it can.

    Raises:
        TypeError: there is no JSON for it.
    """
    if is_path(type(value)):
        return os.fspath(value)
    if pydantic_types.is_pydantic(type(value)):
        adapter = pydantic_types.make_adapter(type(value))
        return msgspec.Raw(adapter.dump_json(value, by_alias=True, warnings="error"))
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


write_json = msgspec.json.Encoder(enc_hook=encode_custom).encode
