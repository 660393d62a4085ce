"""ApiParameter styles of OpenAPI: a value as a path part, a query, a header or a cookie.

Every value is encoded by itself, so that no sign of it means anything in the URL that it becomes a
part of. What a style cannot carry, such as a comma in a header's list, is refused, and not sent as
something else.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import ToolError
from isthmus.openapi.operation import ApiParameter

Pair: TypeAlias = tuple[str, str]
"""A name and a value, both encoded."""

# What may stay in a query as it is (RFC 3986 3.4) without ending it, or one of its pairs
RESERVED_IN_QUERY = ":/?@!$'()*,"
PATH_SEPARATORS = re.compile(r"[/\\;]")
CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
HEADER_TEXT = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")
COOKIE_TEXT = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")  # RFC 6265 4.1.1
MAX_UNQUOTES = 4  # as often as a chain of servers may decode a path
DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}


class BadValue(ToolError):
    """A value cannot be sent where it belongs; the text tells a model why."""


def encode_text(text: str, safe: str = "") -> str:
    """A text in percent-encoding; only letters, digits and ``-._~`` stay, and what is safe."""
    from urllib.parse import quote  # slow to import, and loaded long since when something is sent

    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise BadValue("it has half a character (a lone surrogate)") from None


def write_scalar(value: Any) -> str:
    """A value as a text: a text itself, anything else as JSON has it; null is empty."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()


def is_list(value: Any) -> bool:
    """Whether a value is a list."""
    return isinstance(value, list | tuple)


# Paths


def write_path_part(parameter: ApiParameter, value: Any) -> str:
    """The part of a path that a value becomes.

    Raises:
        BadValue: it could be taken for another path, or is empty.
    """
    name = parameter.name
    if parameter.media_type:
        return _encode_path(name, write_content(parameter, value))
    key = encode_text(name)
    if is_list(value) or isinstance(value, Mapping):
        return _write_path_items(parameter, key, value)
    part = _encode_path(name, write_scalar(value))
    return {"simple": part, "label": f".{part}", "matrix": f";{key}={part}"}[parameter.style]


def _write_path_items(parameter: ApiParameter, key: str, value: Any) -> str:
    name, style, explode = parameter.name, parameter.style, parameter.explode
    if isinstance(value, Mapping):
        pairs = [
            (_encode_path(name, k), _encode_path(name, write_item(name, v)))
            for k, v in value.items()
        ]
        items = (
            [f"{k}={v}" for k, v in pairs] if explode else [one for pair in pairs for one in pair]
        )
    else:
        items = [_encode_path(name, write_item(name, one)) for one in value]
        if style == "matrix" and explode:
            items = [f"{key}={one}" for one in items]
    if not items:
        raise BadValue(f"{name}: it must not be empty, since it is a part of the path")
    if style == "simple":
        return ",".join(items)
    if style == "label":  # RFC 6570 3.2.5
        if explode and any("." in one for one in items):  # a dot is never encoded: it would end it
            raise BadValue(f"{name}: its items must not have '.' in them")
        return f".{('.' if explode else ',').join(items)}"
    return f";{';'.join(items)}" if explode else f";{key}={','.join(items)}"


def write_item(name: str, value: Any) -> str:
    """An item of a list, or a member of an object.

    Raises:
        BadValue: it is itself a list or an object, which no style but ``deepObject`` can carry.
    """
    if is_list(value) or isinstance(value, Mapping):
        raise BadValue(f"{name}: lists and objects within it cannot be sent")
    return write_scalar(value)


def _encode_path(name: str, text: str) -> str:
    """A text as a part of a path, encoded.

    Raises:
        BadValue: it is empty, has control characters, or could be taken for ``.`` or ``..`` by a
            server that decodes the path before it takes it apart.
    """
    if not text:
        raise BadValue(f"{name}: it must not be empty, since it is a part of the path")
    from urllib.parse import unquote  # as in encode_text

    again = text
    for _ in range(MAX_UNQUOTES):
        if CONTROLS.search(again):
            raise BadValue(f"{name}: it has control characters, which no path may have")
        if not {".", ".."}.isdisjoint(PATH_SEPARATORS.split(again)):
            raise BadValue(f"{name}: '.' and '..' as parts of a path are not sent")
        before, again = again, unquote(again)
        if again == before:
            break
    return encode_text(text)


# Queries


def write_query(parameter: ApiParameter, value: Any) -> list[Pair]:
    """The pairs of a query that a value becomes.

    Raises:
        BadValue: its style cannot carry it.
    """
    name = parameter.name
    safe = RESERVED_IN_QUERY if parameter.allow_reserved else ""
    key = encode_text(name)
    if parameter.media_type:
        return [(key, encode_text(write_content(parameter, value), safe))]
    return write_form_pairs(name, parameter.style, value, explode=parameter.explode, safe=safe)


def write_form_pairs(
    name: str, style: str, value: Any, *, explode: bool, safe: str = ""
) -> list[Pair]:
    """The pairs that a value becomes in a query, or in a form that is written as one.

    Raises:
        BadValue: the style cannot carry it.
    """
    # what has items or members within these is JSON: OpenAPI leaves it open (3.1 4.8.12.3)
    key = encode_text(name)
    if style == "deepObject":
        if not isinstance(value, Mapping | list | tuple):
            return [(key, encode_text(write_scalar(value), safe))]
        return [
            (encode_text(path), encode_text(write_scalar(one), safe))
            for path, one in _walk_deep(name, value)
        ]
    if isinstance(value, Mapping):
        if explode:
            return [(encode_text(k), encode_text(write_scalar(v), safe)) for k, v in value.items()]
        items = [one for k, v in value.items() for one in (k, write_scalar(v))]
    elif is_list(value):
        items = [write_scalar(one) for one in value]
        if explode:
            return [(key, encode_text(one, safe)) for one in items]
    else:
        return [(key, encode_text(write_scalar(value), safe))]
    return [(key, _join_items(name, style, items, safe))]


def _join_items(name: str, style: str, items: list[str], safe: str) -> str:
    delimiter = DELIMITERS.get(style)
    if delimiter is None:
        inner = safe.replace(",", "")  # a comma of an item is none between items
        return ",".join(encode_text(one, inner) for one in items)
    # both are encoded in a URL, so that one within an item could not be told from one between two
    if any(delimiter in one for one in items):
        raise BadValue(f"{name}: its items must not have {delimiter!r} in them")
    return encode_text(delimiter).join(encode_text(one, safe) for one in items)


def _walk_deep(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a value, each with its path as most servers read it: ``a[b][c]``, ``a[b][]``.

    Items that have members themselves are numbered, ``a[0][b]``: no server could tell them apart
    otherwise.
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            if "[" in key or "]" in key:
                raise BadValue(f"{path}: a key must not have brackets: {key[:80]!r}")
            yield from _walk_deep(f"{path}[{key}]", one)
    elif is_list(value):
        nested = any(is_list(one) or isinstance(one, Mapping) for one in value)
        for at, one in enumerate(value):
            yield from _walk_deep(f"{path}[{at if nested else ''}]", one)
    else:
        yield path, value


def write_content(parameter: ApiParameter, value: Any) -> str:
    """A value in the media type that a parameter has instead of a style."""
    if isinstance(value, str) and not is_json_name(parameter.media_type):
        return value
    return msgspec.json.encode(value).decode()


def is_json_name(name: str) -> bool:
    """Whether a media type is JSON, or says nothing."""
    return name.endswith(("/json", "+json")) or name in {"*/*", "application/*"}


# Headers and cookies


def write_header(parameter: ApiParameter, value: Any) -> str:
    """The value of a header.

    Raises:
        BadValue: it has line breaks, or anything that does not arrive as it is sent.
    """
    name = parameter.name
    if parameter.media_type:
        return check_header_value(name, write_content(parameter, value))
    if isinstance(value, Mapping):
        pairs = [
            (_check_list_item(name, k), _check_list_item(name, write_item(name, v)))
            for k, v in value.items()
        ]
        if parameter.explode and any("=" in key for key, _ in pairs):
            raise BadValue(f"{name}: its keys must not have '=' in them")
        mark = "=" if parameter.explode else ","
        return check_header_value(name, ",".join(f"{k}{mark}{v}" for k, v in pairs))
    if is_list(value):
        items = [_check_list_item(name, write_item(name, one)) for one in value]
        return check_header_value(name, ",".join(items))
    return check_header_value(name, write_scalar(value))


def _check_list_item(name: str, text: str) -> str:
    """See that an item can be told from the next one.

    Raises:
        BadValue: it has a comma, or blanks around it.
    """
    if "," in text or text != text.strip():
        raise BadValue(f"{name}: its items must not have commas in them, nor blanks around them")
    return text


def check_header_value(name: str, text: str) -> str:
    """See that a text arrives as the value of a header, and as nothing else (RFC 9110 5.5).

    Raises:
        BadValue: it would not.
    """
    if not HEADER_TEXT.fullmatch(text):
        raise BadValue(
            f"{name}: a header takes printable ASCII in one line, without blanks around it"
        )
    return text


def write_cookies(parameter: ApiParameter, value: Any) -> list[Pair]:
    """The cookies that a value becomes.

    Raises:
        BadValue: they cannot carry it.
    """
    name = parameter.name
    if parameter.media_type:
        return [(encode_text(name), encode_text(write_content(parameter, value)))]
    if parameter.style != "cookie":
        return write_form_pairs(name, "form", value, explode=parameter.explode)
    if isinstance(value, Mapping):
        raw = [(k, write_item(name, v)) for k, v in value.items()]
    elif is_list(value):
        raw = [(name, write_item(name, one)) for one in value]
    else:
        raw = [(name, write_scalar(value))]
    for one in raw:  # OpenAPI 3.2 4.12.6.2: written as they are
        if not all(map(COOKIE_TEXT.fullmatch, one)) or "=" in one[0] or not one[0]:
            raise BadValue(f"{name}: a cookie takes ASCII without blanks, quotes, commas and ';'")
    if parameter.explode or (len(raw) == 1 and not isinstance(value, Mapping)):
        return raw
    items = (
        [one for pair in raw for one in pair] if isinstance(value, Mapping) else [v for _, v in raw]
    )
    return [(name, ",".join(items))] if items else []
