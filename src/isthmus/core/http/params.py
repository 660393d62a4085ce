"""Tool arguments that travel in HTTP headers too, so that proxies can route by them.

Since 2026-07-28 a tool's input schema may mark a parameter with ``x-mcp-header``; the client
repeats its value in ``Mcp-Param-{name}`` and the server compares the two
(basic/transports/streamable-http, "Custom Headers from Tool Parameters"). This file reads the
marks (:func:`find_header_params`), writes the headers (:func:`mirror_arguments`) and compares (:func:`check_headers`).
The spelling of values (:func:`encode_value`, :func:`decode_value`) also serves ``Mcp-Name``.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import IsthmusError, UsageError

ANNOTATION = "x-mcp-header"

MAX_SAFE_INTEGER = 2**53 - 1  # the largest integer that every JSON implementation keeps exact


class BadAnnotation(IsthmusError):
    """An ``x-mcp-header`` the specification forbids; a client hides the tool that has it."""


class HeaderParam(msgspec.Struct, frozen=True):
    """One parameter that is mirrored into a header.

    Attributes:
        path: where its value is in the arguments: the keys that lead to it.
        header: the header's name, as the schema spells it: ``Mcp-Param-Region``.
        key: the same in lower case, to look it up.
        type: ``string``, ``integer`` or ``boolean``.
    """

    path: tuple[str, ...]
    header: str
    key: str
    type: str


# --- the marks in a schema -------------------------------------------------------------------

# Keywords that hold named schemas, and keywords that hold no schema at all. All others hold a
# schema, a list of schemas, or something without members.
_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas"}
)
_DATA = frozenset({"const", "default", "enum", "example", "examples"})

_TCHARS = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110 5.6.2: 1*tchar
_TYPES = frozenset({"string", "integer", "boolean"})


class _Step(msgspec.Struct, frozen=True):
    """The way to a schema: a property of what the step before leads to."""

    before: "_Step | None"
    name: str

    def path(self) -> tuple[str, ...]:
        names = []
        step: _Step | None = self
        while step is not None and step is not _ROOT:
            names.append(step.name)
            step = step.before
        return tuple(reversed(names))


_ROOT = _Step(None, "")
_MaybeStep: TypeAlias = _Step | None
"""None where the way is not of properties alone."""


def find_header_params(input_schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """The parameters of a tool that are mirrored into headers, mostly none.

    Args:
        input_schema: the tool's ``inputSchema``, from whomever; only well-formed marks are
            taken, whatever else is in it.

    Raises:
        BadAnnotation: a mark breaks a rule; the message says where and which.
    """
    if not _may_be_marked(input_schema):
        return ()
    params: dict[str, HeaderParam] = {}
    todo: list[tuple[Any, _MaybeStep]] = [(input_schema, _ROOT)]
    while todo:  # a stack of our own: a deep schema must not exhaust Python's
        schema, way = todo.pop()
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            param = _make_param(schema, _list_path(way))
            if param.key in params:
                other = ".".join(params[param.key].path)
                place = ".".join(param.path)
                raise BadAnnotation(f"{ANNOTATION} at {place}: {param.header} is taken by {other}")
            params[param.key] = param
        todo += _list_inner_schemas(schema, way)
    return tuple(sorted(params.values(), key=lambda param: param.path))


def _may_be_marked(schema: Mapping[str, Any]) -> bool:
    """Whether the mark is anywhere in a schema, which is found out sooner than where it is."""
    try:
        return ANNOTATION.encode() in msgspec.json.encode(schema)
    except (TypeError, ValueError, RecursionError):
        return True  # no JSON: whoever walks through it will see


def _list_inner_schemas(
    schema: Mapping[str, Any], way: _MaybeStep
) -> Iterator[tuple[Any, _MaybeStep]]:
    """The schemas directly inside ``schema``, and the ways to them."""
    for keyword, value in schema.items():
        if keyword in _DATA:
            continue
        if keyword in _NAMED_SCHEMAS and isinstance(value, dict):
            # spec 2026-07-28 basic/transports/streamable-http#schema-extension: reachable means
            # by a chain of `properties` keys and nothing else
            chained = way is not None and keyword == "properties"
            for name, inner in value.items():
                yield inner, _Step(way, name) if chained else None
        elif isinstance(value, list):
            for inner in value:
                yield inner, None
        else:
            yield value, None


def _list_path(way: _MaybeStep) -> tuple[str, ...]:
    """The property keys that lead to a mark."""
    if way is None:
        raise BadAnnotation(f"{ANNOTATION} outside the chain of properties: it could not be sent")
    if way is _ROOT:
        raise BadAnnotation(f"{ANNOTATION} at the root: only properties can be sent")
    return way.path()


def _make_param(schema: Mapping[str, Any], path: tuple[str, ...]) -> HeaderParam:
    """The parameter that an annotated schema describes."""
    name, kind = schema[ANNOTATION], schema.get("type")
    place = f"{ANNOTATION} at {'.'.join(path)}"
    if not isinstance(name, str) or not re.fullmatch(_TCHARS, name):
        raise BadAnnotation(f"{place}: {name!r} cannot be part of a header's name")
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        kind = kind[kind.index("null") - 1]  # null is never sent, so the other type decides
    if not isinstance(kind, str) or kind not in _TYPES:
        raise BadAnnotation(f"{place}: its type must be string, integer or boolean, not {kind!r}")
    header = f"Mcp-Param-{name}"
    return HeaderParam(path, header, header.lower(), kind)


# --- values ----------------------------------------------------------------------------------

_OPEN, _CLOSE = "=?base64?", "?="


def encode_value(text: str) -> str:
    """A string as a header value: itself where that is safe, else base64 in a sentinel.

    (2026-07-28 basic/transports/streamable-http#value-encoding)
    """
    if _is_plain(text) and not (text.startswith(_OPEN) and text.endswith(_CLOSE)):
        return text
    return _OPEN + b64encode(text.encode("utf-8", "replace")).decode("ascii") + _CLOSE


def _is_plain(text: str) -> bool:
    """Whether it is printable ASCII without a blank at either end."""
    return text.isascii() and text.isprintable() and text.strip(" ") == text


def decode_value(value: str) -> str | None:
    """The string a header value stands for, or None where no string is spelled that way.

    Blanks around the value are no part of it.
    """
    value = value.strip(" \t")
    if not _is_plain(value.replace("\t", "")):
        return None
    if len(value) < len(_OPEN) + len(_CLOSE) or not (
        value.startswith(_OPEN) and value.endswith(_CLOSE)
    ):
        return value
    try:
        return b64decode(value[len(_OPEN) : -len(_CLOSE)], validate=True).decode("utf-8")
    except ValueError:  # a foreign character, a wrong padding, or no UTF-8
        return None


# --- both sides ------------------------------------------------------------------------------

_ABSENT = object()


def mirror_arguments(
    params: tuple[HeaderParam, ...], arguments: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """The headers a client sends along with these arguments.

    Args:
        params: what :func:`find_header_params` found in the tool's schema.
        arguments: the arguments, decoded.

    Returns:
        Name and value of each header; null and absent values have none, nor have values that
        do not fit their type: the server refuses those anyway, and says so better.

    Raises:
        UsageError: an integer beyond ±(2**53 - 1), which may not travel in a header.
    """
    headers = []
    for param in params:
        text = _to_header_text(param.type, _find_value(arguments, param.path))
        if text is not None:
            headers.append((param.header, encode_value(text)))
    return tuple(headers)


def check_headers(
    params: tuple[HeaderParam, ...], arguments: Mapping[str, Any], headers: Mapping[str, str]
) -> str | None:
    """Find what is wrong with the mirrored headers of a call; None where nothing is.

    A server answers a flaw with HTTP 400 and -32020.

    Args:
        params: what :func:`find_header_params` found in the tool's schema.
        arguments: the arguments, decoded.
        headers: the request's headers by lower-case name.
    """
    for param in params:
        flaw = _find_flaw(param, _find_value(arguments, param.path), headers.get(param.key))
        if flaw:
            return flaw
    return None


def _find_value(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for name in path:
        value = value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _to_header_text(kind: str, value: Any) -> str | None:
    """A value as text, before encoding; None where the header is left out."""
    if kind == "boolean":
        return str(value).lower() if isinstance(value, bool) else None
    if kind == "string":
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        return None
    if abs(value) > MAX_SAFE_INTEGER:
        raise UsageError(f"{value} is too large for a mirrored header: ±{MAX_SAFE_INTEGER} at most")
    return str(int(value))


_DECIMAL = r"(-?[0-9]{1,16})(?:\.0*)?"


def _find_flaw(param: HeaderParam, value: Any, header: str | None) -> str | None:
    if header is None:
        return _refuse_unsent(param, value)
    text = decode_value(header)
    if text is None:
        return f"{param.header} header holds characters or base64 that cannot be read"
    try:
        expected = _to_header_text(param.type, value)
    except UsageError as error:
        return f"{param.header}: {error}"
    if text == expected:
        return None
    if param.type == "integer" and expected is not None:
        # spec 2026-07-28 basic/transports/streamable-http#server-validation: 42.0 equals 42
        number = re.fullmatch(_DECIMAL, text)
        if number and int(number[1]) == int(expected):
            return None
    return f"{param.header} header value {header!r} does not match the argument's value"


def _refuse_unsent(param: HeaderParam, value: Any) -> str | None:
    """The flaw of a call without the header, if the value is there and could have been sent."""
    try:
        sendable = _to_header_text(param.type, value) is not None
    except UsageError as error:
        return f"{param.header}: {error}"
    return f"{param.header} header is missing, its value is in the arguments" if sendable else None
