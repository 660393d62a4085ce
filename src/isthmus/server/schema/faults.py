"""Faults of a value against a JSON Schema, in words: where, what is allowed, what was given.

A model mends its arguments in one turn if it is told everything at once. This is read only after
a value was refused: it costs a valid call nothing. What a refused value may cost is bounded: so
many faults are told, so many values are looked at, and so much of each is repeated.

The keywords are those of the schemas that type hints give (`isthmus.server.schema.json_schema`, pydantic's).
Others are passed over: who validated the value has the last word, and says it where nothing is
found here.
"""

import datetime as dt
import decimal
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from isthmus.core.encoding import replace_surrogates
from isthmus.core.redaction.forms import is_secret_name

Fault = tuple[str, str]
"""Where, as a JSON path such as ``$.items[0]``, and what."""

MAX_FAULTS = 20
MAX_LOOKS = 50_000  # values and schemas looked at for one answer
MAX_ECHO_CHARS = 60
MAX_CHOICES = 30
MAX_DESCRIPTION_CHARS = 400
MAX_BRANCH_FAULTS = 4
MAX_COMPARED_NAMES = 50  # of those given, to which a missing one may be near

# of a value, that count as one look more: alternatives look at the same value again
PARTS_PER_LOOK: Mapping[type, int] = {dict: 4, list: 4, str: 1_000}

Schema = Mapping[str, Any]


def find_faults(
    schema: Schema, value: Any, *, nulls: bool = False, patterns: bool = True
) -> list[Fault]:
    """All faults of a value, as far as the schema's keywords are known here.

    Args:
        schema: what the value should have fitted; references lead inside it.
        value: plain data; what is `msgspec.Raw` in it is passed over.
        nulls: null is taken for a member that is not required, whatever the schema says.
        patterns: look at patterns, by Python's engine, which may take a time without bound.

    Returns:
        At most `MAX_FAULTS`, and one that says so where there are more.
    """
    search = FaultSearch(schema, nulls, patterns)
    faults: list[Fault] = []
    try:
        for fault in search.find(schema, value, "$"):
            if len(faults) == MAX_FAULTS:
                faults.append(("$", f"and more: these are the first {MAX_FAULTS}"))
                break
            faults.append(fault)
    except RecursionError:
        faults.append(("$", "nested too deeply"))
    return faults


class FaultSearch:
    """The search for the faults of one value.

    Args:
        schema: the whole schema, in which references are found.
        nulls: see `find_faults`.
        patterns: see there.
    """

    def __init__(self, schema: Schema, nulls: bool, patterns: bool) -> None:
        self._whole = schema
        self._nulls = nulls
        self._patterns = patterns
        self._looks = MAX_LOOKS

    def find(self, schema: Any, value: Any, path: str) -> Iterator[Fault]:
        """The faults of a value, those of its type first, and then nothing else."""
        parts = PARTS_PER_LOOK.get(type(value))
        self._looks -= 1 if parts is None else 1 + len(value) // parts
        if self._looks < 0:
            return
        schema = self._resolve(schema) if self._patterns else _drop_patterns(self._resolve(schema))
        if schema is False:
            yield path, "nothing is allowed here"
        if not isinstance(schema, Mapping) or isinstance(value, msgspec.Raw):
            return
        if not self._is_of_type(schema, value) or not _is_choice(schema, value):
            yield path, self._explain_expected(schema, value, path)
            return
        for part in schema.get("allOf", ()):
            yield from self.find(part, value, path)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            yield from self._find_branch_faults(schema, branches, value, path)
        look: Callable[[Schema, Any, str], Iterator[Fault]] | None = SCALAR_CHECKS.get(type(value))
        if look is not None:
            yield from look(schema, value, path)
        elif isinstance(value, list):
            yield from self._find_list_faults(schema, value, path)
        elif isinstance(value, Mapping):
            yield from self._find_object_faults(schema, value, path)

    def _resolve(self, schema: Any) -> Any:
        """The schema that a chain of references leads to; True where it leads nowhere."""
        for _ in range(20):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str):
                return schema
            found: Any = self._whole
            for step in reference.removeprefix("#").split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - RFC 6901
                found = found.get(step) if isinstance(found, Mapping) else None
            rest = {key: said for key, said in schema.items() if key != "$ref"}
            schema = {**found, **rest} if isinstance(found, Mapping) else True
        return True

    def _is_of_type(self, schema: Schema, value: Any) -> bool:
        kinds = schema.get("type")
        if kinds is None:
            return True
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return any(TYPE_CHECKS.get(kind, _accept_anything)(value) for kind in kinds)

    def _explain_expected(self, schema: Schema, value: Any, path: str) -> str:
        said = f"expected {self.describe(schema)}, got {show_value(value, path)}"
        options = [option for option in schema.get("enum", ()) if isinstance(option, str)]
        return said + (_suggest_name(value, options) if isinstance(value, str) else "")

    def _find_list_faults(self, schema: Schema, value: list[Any], path: str) -> Iterator[Fault]:
        yield from _find_size_faults(schema, len(value), ("minItems", "maxItems", "item"), path)
        if schema.get("uniqueItems") and _has_doubles(value):
            yield path, "expected no item twice"
        first = schema.get("prefixItems", ())
        for index, (part, item) in enumerate(zip(first, value, strict=False)):
            yield from self.find(part, item, f"{path}[{index}]")
        rest = schema.get("items")
        if isinstance(rest, Mapping) or rest is False:
            for index in range(len(first), len(value)):
                if self._looks < 0:
                    return
                yield from self.find(rest, value[index], f"{path}[{index}]")

    def _find_object_faults(
        self, schema: Schema, value: Mapping[str, Any], path: str
    ) -> Iterator[Fault]:
        known = schema.get("properties") or {}
        patterns = schema.get("patternProperties") or {}
        required = schema.get("required") or ()
        others = schema.get("additionalProperties", True)
        yield from _find_size_faults(
            schema, len(value), ("minProperties", "maxProperties", "member"), path
        )
        unread = [name for name in value if name not in known]
        for name in required:
            if name not in value:
                given = unread[:MAX_COMPARED_NAMES]
                hint = _suggest_name(name, given, "; is {} meant to be it?") if others else ""
                what = f"missing, expected {self.describe(known.get(name, True))}{hint}"
                yield _join_path(path, name), what
        for name, part in known.items():
            if name in value and not (self._nulls and value[name] is None and name not in required):
                yield from self.find(part, value[name], _join_path(path, name))
        for name in unread:
            if self._looks < 0:
                return
            parts = [part for pattern, part in patterns.items() if _matches(pattern, name)]
            if not parts and others is False:
                yield _join_path(path, name), _describe_unknown(name, known)
            elif not parts and isinstance(others, Mapping):
                parts = [others]
            for part in parts:
                yield from self.find(part, value[name], _join_path(path, name))
            yield from self._find_name_faults(schema.get("propertyNames"), name, path)

    def _find_name_faults(self, schema: Any, name: str, path: str) -> Iterator[Fault]:
        if isinstance(schema, Mapping):
            for _, what in self.find(schema, name, path):
                yield _join_path(path, name), f"as a name: {what}"

    def _find_branch_faults(
        self, schema: Schema, branches: Any, value: Any, path: str
    ) -> Iterator[Fault]:
        """The faults of a value that fits none of several alternatives: those of the one meant."""
        nearest: list[Fault] | None = None
        meant = [b for b in map(self._resolve, branches) if self._may_be_meant(b, value)]
        if isinstance(value, Mapping) and len(meant) > 1:
            tag = self._find_tag_fault(meant, value)
            if tag is not None:
                yield _join_path(path, tag[0]), tag[1]
                return
            tagged = [branch for branch in meant if self._is_tagged_as(branch, value)]
            meant = tagged or meant
        for branch in meant:
            found = []
            for fault in self.find(branch, value, path):
                found.append(fault)
                if len(found) == MAX_BRANCH_FAULTS and len(meant) > 1:
                    break
            if not found:
                return
            if nearest is None or len(found) < len(nearest):
                nearest = found
        if nearest is None:
            yield path, self._explain_expected(schema, value, path)
        elif len(meant) > 1 and not isinstance(value, Mapping | list):
            yield path, self._explain_expected({"anyOf": meant}, value, path)
        else:
            yield from nearest

    def _may_be_meant(self, branch: Any, value: Any) -> bool:
        """Whether a value is at least of the type that an alternative has."""
        if not isinstance(branch, Mapping):
            return branch is not False
        return self._is_of_type(branch, value) and _is_choice(branch, value)

    def _list_tags(self, branch: Any) -> Iterator[tuple[str, list[Any]]]:
        """The members of an alternative that have one fixed value, or one of a few."""
        for name, part in (branch.get("properties") or {}).items():
            part = self._resolve(part)  # noqa: PLW2901 - the same, looked up
            if isinstance(part, Mapping) and name in branch.get("required", (name,)):
                if "const" in part:
                    yield name, [part["const"]]
                elif len(part.get("enum", ())) == 1:
                    yield name, list(part["enum"])

    def _is_tagged_as(self, branch: Any, value: Mapping[str, Any]) -> bool:
        return any(value.get(name) in known for name, known in self._list_tags(branch))

    def _find_tag_fault(self, branches: list[Any], value: Mapping[str, Any]) -> Fault | None:
        """The fault of the member that tells alternatives apart, if there is one."""
        options: dict[str, list[Any]] = {}
        for branch in branches:
            tags = dict(self._list_tags(branch))
            if not tags:
                return None
            for name, known in tags.items():
                options.setdefault(name, []).extend(known)
        for name, known in options.items():
            if len(known) >= len(branches) and value.get(name) not in known:
                said = f"expected {_describe_choice(known)}"
                if name not in value:
                    return name, f"missing, {said}"
                return name, f"{said}, got {show_value(value[name], name)}"
        return None

    def describe(self, schema: Any, depth: int = 0) -> str:
        """Say in a few words what a schema allows."""
        schema = self._resolve(schema)
        if not isinstance(schema, Mapping) or not schema:
            return "anything"
        if "const" in schema:
            return _show_json(schema["const"])
        if "enum" in schema:
            return _describe_choice(schema["enum"])
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches and depth < 3:
            said = dict.fromkeys(self.describe(branch, depth + 1) for branch in branches)
            return _cut_text(" or ".join(said))
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds or ["object"]
        return _cut_text(" or ".join(self._describe_kind(kind, schema, depth) for kind in kinds))

    def _describe_kind(self, kind: str, schema: Schema, depth: int) -> str:
        if kind == "string":
            return _describe_text(schema)
        if kind in {"integer", "number"}:
            return ("an integer" if kind == "integer" else "a number") + _describe_bounds(schema)
        if kind == "array" and isinstance(schema.get("items"), Mapping) and depth < 2:
            return f"a list, each item {self.describe(schema['items'], depth + 1)}"
        if kind == "object" and schema.get("properties") and depth < 2:
            return f"an object with {_list_names(schema.get('required') or schema['properties'])}"
        return TYPE_NAMES.get(kind, kind)


def _drop_patterns(schema: Any) -> Any:
    """A schema without what only patterns tell: which texts, and which names are known."""
    if not isinstance(schema, Mapping) or PATTERN_KEYWORDS.isdisjoint(schema):
        return schema
    left_out = {
        *PATTERN_KEYWORDS,
        *(("additionalProperties",) if "patternProperties" in schema else ()),
    }
    return {key: said for key, said in schema.items() if key not in left_out}


PATTERN_KEYWORDS = frozenset({"pattern", "patternProperties"})


# Types


def _accept_anything(_value: Any) -> bool:
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


TYPE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}

TYPE_NAMES = {"boolean": "true or false", "array": "a list", "object": "an object", "null": "null"}


def _is_choice(schema: Schema, value: Any) -> bool:
    """Whether a value is one of those that are listed, where some are."""
    if "const" in schema and not _is_equal(schema["const"], value):
        return False
    return "enum" not in schema or any(_is_equal(option, value) for option in schema["enum"])


def _is_equal(one: Any, other: Any) -> bool:
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))


# Numbers and texts


def _find_number_faults(schema: Schema, value: float, path: str) -> Iterator[Fault]:
    for keyword, (is_fault, _) in BOUND_KEYWORDS.items():
        bound = schema.get(keyword)
        if _is_number(bound) and is_fault(value, bound):
            said = "an integer" if schema.get("type") == "integer" else "a number"
            yield path, f"expected {said}{_describe_bounds(schema)}, got {show_value(value, path)}"
            return
    step = schema.get("multipleOf")
    if _is_number(step) and step and not _is_multiple(value, step):
        yield path, f"expected a multiple of {step}, got {show_value(value, path)}"


def _is_multiple(value: float, step: float) -> bool:
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        return abs(value / step - round(value / step)) < 1e-9
    except (OverflowError, ValueError):  # beyond what a float has
        return True


BOUND_KEYWORDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, bound: value < bound, "of at least"),
    "exclusiveMinimum": (lambda value, bound: value <= bound, "of more than"),
    "maximum": (lambda value, bound: value > bound, "of at most"),
    "exclusiveMaximum": (lambda value, bound: value >= bound, "of less than"),
}


def _describe_bounds(schema: Schema) -> str:
    if _is_number(schema.get("minimum")) and _is_number(schema.get("maximum")):
        return f" from {schema['minimum']} to {schema['maximum']}"
    said = [f"{words} {schema[key]}" for key, (_, words) in BOUND_KEYWORDS.items() if key in schema]
    return " " + " and ".join(said) if said else ""


def _find_text_faults(schema: Schema, value: str, path: str) -> Iterator[Fault]:
    yield from _find_size_faults(schema, len(value), ("minLength", "maxLength", "character"), path)
    pattern, kind = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str) and not _matches(pattern, value):
        yield path, f"expected text that matches {pattern}, got {show_value(value, path)}"
    elif isinstance(kind, str) and kind in FORMAT_NAMES and not _is_format(kind, value):
        yield path, f"expected {_describe_text(schema)}, got {show_value(value, path)}"


FORMAT_NAMES: Mapping[str, str] = {
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time such as 2026-07-28T09:30:00Z",
    "time": "a time such as 09:30:00",
    "duration": "a duration such as PT1H30M",
    "uuid": "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
    "email": "an e-mail address",
    "uri": "a URI such as https://example.com/",
    "decimal": "a decimal number as a string",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
}


READ_FORMATS: Mapping[str, type] = {
    "date": dt.date,
    "date-time": dt.datetime,
    "time": dt.time,
    "duration": dt.timedelta,
    "decimal": decimal.Decimal,
}


def _is_format(kind: str, value: str) -> bool:
    """Whether text has a format, as far as msgspec or the standard library know it."""
    if kind == "uuid":
        return re.fullmatch(r"(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", value) is not None
    try:
        msgspec.convert(value, READ_FORMATS.get(kind, str), strict=False)
    except ValueError:
        return False
    return True


def _describe_text(schema: Schema) -> str:
    if schema.get("format") in FORMAT_NAMES:
        return FORMAT_NAMES[schema["format"]]
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return f"text that matches {_cut_text(pattern)}"
    low, high = schema.get("minLength"), schema.get("maxLength")
    if low is None and high is None:
        return "a string"
    return f"a string{_describe_range(low, high, 'character')}"


def _matches(pattern: str, value: str) -> bool:
    """Whether text matches; a pattern that Python cannot read matches everything."""
    try:
        return re.search(pattern, value) is not None
    except (re.error, RecursionError):
        return True


def _find_size_faults(
    schema: Schema, size: int, keywords: tuple[str, str, str], path: str
) -> Iterator[Fault]:
    low, high, unit = schema.get(keywords[0]), schema.get(keywords[1]), keywords[2]
    if size < (low or 0) or (isinstance(high, int) and size > high):
        yield path, f"expected{_describe_range(low, high, unit)[3:]}, got {size}"


def _describe_range(low: Any, high: Any, unit: str) -> str:
    """Say how many are allowed: `` of 1 to 9 characters``."""
    last = high if high is not None else low
    units = unit if last == 1 else f"{unit}s"
    if low and high is not None:
        return f" of {low} {units}" if low == high else f" of {low} to {high} {units}"
    return f" of at least {low} {units}" if high is None else f" of at most {high} {units}"


SCALAR_CHECKS: Mapping[type, Callable[[Schema, Any, str], Iterator[Fault]]] = {
    int: _find_number_faults,
    float: _find_number_faults,
    str: _find_text_faults,
}


def _has_doubles(items: list[Any]) -> bool:
    seen = {msgspec.json.encode(item, order="deterministic") for item in items}
    return len(seen) < len(items)


# Words


def _join_path(path: str, name: str) -> str:
    return f"{path}.{_cut_text(replace_surrogates(name), MAX_ECHO_CHARS)}"


def _show_json(value: Any) -> str:
    text: str = replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))
    return text


def show_value(value: Any, path: str) -> str:
    """Repeat what was given, in a few words; nothing of a secret."""
    if isinstance(value, list):
        return f"a list of {len(value)} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, Mapping):
        return f"an object with {_list_names(value)}" if value else "an object without members"
    if isinstance(value, str):
        if is_secret_name(path.rpartition(".")[2]):
            return f"text of {len(value)} characters"
        if len(value) > MAX_ECHO_CHARS:
            return f"{_show_json(value[:MAX_ECHO_CHARS])}… ({len(value)} characters)"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**30:
        return "an integer of more than 30 digits"
    return _show_json(value)


def _list_names(names: Any) -> str:
    shown = [
        _cut_text(replace_surrogates(name), MAX_ECHO_CHARS)
        for name, _ in zip(names, range(MAX_CHOICES), strict=False)
    ]
    return ", ".join(shown) + (", …" if len(names) > len(shown) else "")


def _describe_choice(options: Any) -> str:
    shown = [_cut_text(_show_json(option), MAX_ECHO_CHARS) for option in options[:MAX_CHOICES]]
    rest = f", or {len(options) - len(shown)} others" if len(options) > len(shown) else ""
    return shown[0] if len(options) == 1 else f"one of {', '.join(shown)}{rest}"


def _describe_unknown(name: str, known: Mapping[str, Any]) -> str:
    near = _suggest_name(name, list(known))
    return f"unknown{near}; known are: {_list_names(known) or 'none'}"


def _suggest_name(name: str, names: list[str], words: str = "; did you mean {}?") -> str:
    from difflib import get_close_matches

    if len(name) > MAX_ECHO_CHARS:
        return ""
    lower = {known.lower(): known for known in names[:1000] if len(known) <= MAX_ECHO_CHARS}
    found = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return words.format(_show_json(lower[found[0]])) if found else ""


def _cut_text(text: str, most: int = MAX_DESCRIPTION_CHARS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
