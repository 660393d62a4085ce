"""Comparison of the arguments of a tool with the request that arrived, place by place."""

import base64
import binascii
import json
import re
from typing import Any

from support.openapi.described_apis import DescribedOperation
from support.openapi.request_reading import Arrived, Text

PLACES = ("path", "query", "header", "cookie", "querystring")


def find_difference(
    operation: DescribedOperation, arguments: dict[str, Any], arrived: Arrived
) -> str:
    """The first thing that arrived otherwise than it was given; empty for none."""
    for split in (True, False):  # the members of a body are arguments, or it is one itself
        try:
            expected, members, whole = sort_arguments(operation, arguments, split=split)
            break
        except AssertionError as error:
            flaw = str(error)
    else:
        return flaw
    expected = _join_spread(operation, expected)
    values = _join_spread(operation, arrived.values)
    for key in expected.keys() | values.keys():
        if key not in values:
            if is_void(expected[key]):
                continue  # no style can tell an empty list from none
            return f"{key[0]} {key[1]!r} did not arrive: {expected[key]!r}"
        if key not in expected:
            return f"{key[0]} {key[1]!r} was not given: {values[key]!r}"
        if not same(expected[key], values[key]):
            return f"{key[0]} {key[1]!r}: {expected[key]!r} arrived as {values[key]!r}"
    return _compare_body(arrived, members, whole)


def _join_spread(
    operation: DescribedOperation, values: dict[tuple[str, str], Any]
) -> dict[tuple[str, str], Any]:
    """Values with all objects in one that are written member by member.

    Whose a member is cannot be told where two of them may have it: OpenAPI says nothing about that.
    """
    spread = {
        (one.place, one.name)
        for one in operation.parameters
        if one.place in ("query", "cookie") and one.explode and one.style == "form"
        if not one.media and isinstance(values.get((one.place, one.name)), dict)
    }
    joined = {key: value for key, value in values.items() if key not in spread}
    if spread:
        joined["query", "*"] = {k: v for key in sorted(spread) for k, v in values[key].items()}
    return joined


def _compare_body(arrived: Arrived, members: dict[str, Any], whole: Any) -> str:
    if set(members) == {"body"} and same(members["body"], arrived.body):
        return ""  # the whole body, which has a member of this name
    given = members if whole is None else whole
    if arrived.media.endswith("json"):
        if not same(given, arrived.body) and not (given == {} and arrived.body is None):
            return f"body: {given!r} arrived as {arrived.body!r}"
        return ""
    if isinstance(arrived.body, bytes):
        texts = {arrived.body} if not isinstance(given, str) else {given.encode(), _bytes(given)}
        return "" if arrived.body in texts else f"body: {given!r} arrived as {arrived.body!r}"
    found = arrived.body or {}
    for name in given.keys() | found.keys():
        one, other = given.get(name), found.get(name)
        if is_void(one) and other is None:
            continue
        if not same(one, other):
            return f"member {name!r} of the {arrived.media}: {one!r} arrived as {other!r}"
    return ""


def sort_arguments(
    operation: DescribedOperation, arguments: dict[str, Any], *, split: bool = True
) -> tuple[dict[tuple[str, str], Any], dict[str, Any], Any]:
    """What each argument is for, found by its name and by nothing of isthmus.

    Returns:
        Parameters by place and name; members of the body; the body as a whole, or None.
    """
    places = _list_places(operation, split=split)
    found: dict[tuple[str, str], Any] = {}
    members: dict[str, Any] = {}
    whole = None
    for key, value in arguments.items():
        fitting = _list_meanings(places, key)
        if len(fitting) == 1:
            place, name = fitting[0]
            if place == "body":
                members[name] = value
            elif value is not None:
                found[place, name] = value
        elif key in ("body", "request_body") and not fitting:
            whole = value
        else:
            raise AssertionError(f"nobody can tell what the argument {key!r} is for: {fitting}")
    return found, members, whole


def _list_places(operation: DescribedOperation, *, split: bool) -> dict[str, list[tuple[str, str]]]:
    """What an argument of a name may be for: place and name of each."""
    api = operation.api
    places: dict[str, list[tuple[str, str]]] = {}
    for one in operation.parameters:
        places.setdefault(fit(one.name), []).append((one.place, one.name))
    schemas = [one.get("schema", {}) for one in operation.media.values()]
    for schema in [*schemas, *([operation.form] if operation.form else [])] if split else []:
        for name, member in api.members(schema).items():
            if _is_read_only(member) or _is_read_only(api.follow(member)):
                continue
            if ("body", name) not in places.setdefault(fit(name), []):
                places[fit(name)].append(("body", name))
    return places


def _is_read_only(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema.get("readOnly"))


def _list_meanings(places: dict[str, list[tuple[str, str]]], key: str) -> list[tuple[str, str]]:
    fitting = places.get(key, [])
    if len(fitting) == 1:
        return fitting
    named = [
        pair
        for place in (*PLACES, "body")
        if key.startswith(f"{place}_")
        for pair in places.get(key.removeprefix(f"{place}_"), [])
        if pair[0] == place
    ]
    if len(named) == 1:
        return named
    plain = key.rstrip("_")  # several that differ in signs alone: in the order of the document
    if named or plain != key:
        every = named or _list_every(places, plain)
        at = len(key) - len(plain)
        return every[at : at + 1]
    return fitting


def _list_every(places: dict[str, list[tuple[str, str]]], key: str) -> list[tuple[str, str]]:
    return [
        pair
        for place in (*PLACES, "body")
        if key.startswith(f"{place}_")
        for pair in places.get(key.removeprefix(f"{place}_"), [])
        if pair[0] == place
    ]


def fit(name: str) -> str:
    """A name as models may write it."""
    return re.sub(r"[^A-Za-z0-9_.\-]+", "_", name).strip("_")[:64] or "argument"


def same(given: Any, arrived: Any) -> bool:  # noqa: PLR0911 - a case a line
    """Whether a value arrived as it was given; a text may stand for what no type settles."""
    if isinstance(arrived, bytes):
        if isinstance(given, dict):
            given = given.get("data")
        return isinstance(given, str) and arrived == _bytes(given)  # a tool takes base64
    if isinstance(arrived, Text) and not isinstance(given, str):
        if isinstance(given, list) and len(given) == 1:  # of a schema that has lists and texts
            return same(given[0], arrived)
        return arrived == spell(given)
    if isinstance(given, dict) and isinstance(arrived, dict):
        keys = {key for key, value in given.items() if not is_void(value)}
        return keys <= arrived.keys() <= given.keys() and all(
            same(given[key], arrived[key]) for key in arrived
        )
    if isinstance(given, list) and isinstance(arrived, list):
        return len(given) == len(arrived) and all(map(same, given, arrived))
    if isinstance(given, bool) or isinstance(arrived, bool):
        return given is arrived
    return bool(given == arrived) or (given is None and arrived == "")


def is_void(value: Any) -> bool:
    """Whether no form can carry a value: it is an empty list or object, or of nothing else."""
    if isinstance(value, dict):
        return all(map(is_void, value.values()))
    if isinstance(value, list):
        return all(map(is_void, value))
    return value is None


def spell(value: Any) -> str:
    """A value that is no text as one."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
