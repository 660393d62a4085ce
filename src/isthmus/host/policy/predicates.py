"""Predicates of a rule's ``where`` about arguments: ``args.path under '~/work'``.

A predicate has a path, an operator and a value, and may begin with ``not``. What cannot be judged
(a text where a number is compared, a path relative to nobody knows what) counts against whoever
wants something: a rule that allows does not fit, one that asks or denies does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from isthmus.host.model import toml
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts
from isthmus.host.policy.patterns import BadPattern, Globs, LinearRegex
from isthmus.host.policy.places import (
    CASE_INSENSITIVE,
    canonicalize_path,
    expand_path,
    host_matches,
    is_under,
    parse_host,
)

MAX_VALUES = 10_000  # of ``*`` and ``**`` in a path; more cannot be judged
MAX_DEPTH = 64  # of ``**``
MAX_GLOB_TEXT_CHARS = 1024 * 1024  # a longer text cannot be judged

# whether a value fits, or None; the flag says whether the rule forbids
Judge: TypeAlias = Callable[[Any, Facts, bool], bool | None]

_SHAPE = re.compile(r"(not\s+)?(\S+)\s+([a-z-]+|[=!<>]=?)(?:\s*\(\s*(.*)\)|\s+(.*)|\s*)", re.DOTALL)
_SEGMENT = re.compile(r"[\w$-]+|\*\*?")
_HOST = re.compile(r"(?:\*\.)?(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])")
_COMPARED = re.compile(r"([=!<>]=?)\s*(\S.*)", re.DOTALL)


class BadPredicate(ValueError):
    """The predicate cannot be read; the message says why, and what to write."""


class Predicate:
    """One predicate, parsed once and then compared with many attempts.

    Args:
        text: as it stands in the rule.

    Raises:
        BadPredicate: it cannot be read.
    """

    __slots__ = ("_judge", "_member", "_negated", "_path", "_sees_object", "text")

    def __init__(self, text: str) -> None:
        shape = _SHAPE.fullmatch(text.strip())
        if shape is None:
            raise BadPredicate(f"{text!r} is no predicate, such as \"args.path under '~/work'\"")
        negation, path, operator, inner, rest = shape.groups()
        self.text = text
        self._negated = bool(negation)
        self._path = _parse_path(path)
        self._sees_object = path == "object"
        plain = len(self._path) == 1 and self._path[0] not in {"*", "**"}
        self._member = self._path[0] if plain else None  # most are no deeper
        make = OPERATORS.get(operator)
        if make is None:
            raise BadPredicate(
                f"{operator!r} is no operator; there are {', '.join(sorted(OPERATORS))}"
            )
        self._judge = make((inner if inner is not None else rest or "").strip())

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def fits(self, attempt: Attempt, facts: Facts, *, forbids: bool) -> bool:
        """Whether an attempt fits.

        Args:
            attempt: what is wanted.
            facts: the circumstances.
            forbids: whether the rule asks or denies, so that doubt means yes.
        """
        if self._sees_object:
            return self._fits_one(attempt.object, facts, forbids)
        if self._member is not None and self._member in attempt.arguments:
            return self._fits_one(attempt.arguments[self._member], facts, forbids)
        return self._fits_several(attempt, facts, forbids)

    def _fits_several(self, attempt: Attempt, facts: Facts, forbids: bool) -> bool:
        values = list(islice(_select_values(attempt.arguments, self._path), MAX_VALUES + 1))
        if not values:
            if self._judge is _judge_existence:
                return self._negated
            return self._negated and forbids
        if len(values) == 1:
            return self._fits_one(values[0], facts, forbids)
        if len(values) > MAX_VALUES:
            return forbids
        judged = (self._fits_one(value, facts, forbids) for value in values)
        return any(judged) if forbids else all(judged)

    def _fits_one(self, value: Any, facts: Facts, forbids: bool) -> bool:
        # What ``not`` stands before is judged the other way round: doubt stays on the same side.
        judged = self._judge(value, facts, forbids != self._negated)
        return forbids if judged is None else judged != self._negated


def _parse_path(text: str) -> tuple[str, ...]:
    if text == "object":
        return ()
    head, _, rest = text.partition("/")
    if head in {"", "args", "args."} and "/" in text:
        return tuple(s.replace("~1", "/").replace("~0", "~") for s in rest.split("/"))
    first, *segments = text.split(".")
    if first != "args" or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        raise BadPredicate(
            f"{text!r} names nothing: write args.NAME, args.NAME.INNER, args.LIST.*, "
            "args.** for every text and number at any depth, a JSON pointer into the arguments such "
            "as /NAME/0, or object"
        )
    return tuple(segments)


def _select_values(value: Any, path: Sequence[str]) -> Iterator[Any]:
    if not path:
        yield value
        return
    key, *rest = path
    if key == "**":
        yield from _walk_leaves(value, MAX_DEPTH)
        return
    for inner in _select_members(value, key):
        yield from _select_values(inner, rest)


def _select_members(value: Any, key: str) -> Iterable[Any]:
    if isinstance(value, Mapping):
        if key == "*":  # also where a member is called so: it would hide the others
            return value.values()
        return (value[key],) if key in value else ()
    if isinstance(value, list | tuple):
        if key == "*":
            return value
        if key.isdecimal() and len(key) < 10 and int(key) < len(value):
            return (value[int(key)],)
    return ()


def _walk_leaves(value: Any, depth: int) -> Iterator[Any]:
    inner = value.values() if isinstance(value, Mapping) else value
    if not isinstance(value, Mapping | list | tuple) or not depth:
        yield value
        return
    for one in inner:
        yield from _walk_leaves(one, depth - 1)


def _judge_non_text(value: Any) -> bool | None:
    """Judge a value that is no text: a number does not fit, and a list may hold some."""
    return None if isinstance(value, Mapping | list | tuple) else False


def _read_value(text: str, what: str) -> Any:
    try:
        found = toml.parse_toml(f"value = {text}")
    except toml.BadToml:
        found = {}
    if set(found) != {"value"}:
        raise BadPredicate(f"{text!r} is not {what}; write texts as 'text', lists as ['a', 'b']")
    return found["value"]


def _read_texts(text: str, what: str) -> tuple[str, ...]:
    value = _read_value(text, what)
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(t, str) and t for t in texts):
        raise BadPredicate(f"{text!r} is not {what}")
    return tuple(texts)


def _make_glob(text: str) -> Judge:
    globs = Globs(_read_texts(text, "a glob, or a list of globs"))

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        if not isinstance(value, str):
            return _judge_non_text(value)
        return None if len(value) > MAX_GLOB_TEXT_CHARS else globs.fits(value)

    return judge


def _make_regex(text: str) -> Judge:
    pattern = _read_value(text, "a regular expression")
    if not isinstance(pattern, str):
        raise BadPredicate(f"{text} is no regular expression; write it as 'text'")
    try:
        expression = LinearRegex(pattern)
    except BadPattern as error:
        raise BadPredicate(f"the expression {pattern!r} cannot be used: {error}") from error

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        return expression.fits(value) if isinstance(value, str) else _judge_non_text(value)

    return judge


def _to_number(value: Any) -> float | None:
    """Convert to a number that can be compared; None for truth values and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN alone differs from itself; math.isnan fails for large integers
        return None
    return value


def _to_scalar(value: Any) -> tuple[type, Any] | None:
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, str):
        return str, value
    number = _to_number(value)
    return None if number is None else (float, number)


def _make_in(text: str) -> Judge:
    values = _read_value(text, "a list of texts and numbers")
    if not isinstance(values, list) or None in (wanted := [_to_scalar(v) for v in values]):
        raise BadPredicate(f"{text!r} is not a list of texts, numbers, true and false")

    kinds = {scalar[0] for scalar in wanted if scalar is not None}

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        scalar = _to_scalar(value)
        # many servers read "5" as 5, and 1 as true
        return None if scalar is None or scalar[0] not in kinds else scalar in wanted

    return judge


def _make_equal(text: str) -> Judge:
    wanted = _to_scalar(_read_value(text, "a text, a number, true or false"))
    if wanted is None:
        raise BadPredicate(f"{text!r} is not a text, a number, true or false")

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        scalar = _to_scalar(value)
        # as above: of a value of another kind nobody knows what its server makes of it
        return None if scalar is None or scalar[0] is not wanted[0] else scalar == wanted

    return judge


def _make_unequal(text: str) -> Judge:
    equal = _make_equal(text)

    def judge(value: Any, facts: Facts, forbids: bool) -> bool | None:
        judged = equal(value, facts, forbids)
        return None if judged is None else not judged

    return judge


_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}


def _read_number(text: str) -> float:
    number = _to_number(_read_value(text, "a number"))
    if number is None:
        raise BadPredicate(f"{text!r} is not a number")
    return number


def _make_comparison(order: str) -> Callable[[str], Judge]:
    compare = _ORDERS[order]

    def make(text: str) -> Judge:
        bound = _read_number(text)

        def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
            number = _to_number(value)
            return None if number is None else compare(number, bound)

        return judge

    return make


def _make_size(text: str) -> Judge:
    found = _COMPARED.fullmatch(text)
    if found is None or found[1] not in _ORDERS:
        raise BadPredicate(f"after size comes one of {', '.join(_ORDERS)} and a number")
    compare, bound = _ORDERS[found[1]], _read_number(found[2])

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        sized = isinstance(value, str | list | tuple | Mapping)
        return compare(len(value), bound) if sized else None

    return judge


def _judge_existence(_: Any, _facts: Facts, _forbids: bool) -> bool:
    return True


def _make_exists(text: str) -> Judge:
    if text:
        raise BadPredicate(f"exists takes no value, not {text!r}; write not before the path")
    return _judge_existence


def _make_under(text: str) -> Judge:
    folders = _read_texts(text, "a folder, or a list of folders")
    for folder in folders:
        if not folder.startswith(("/", "~", "${workspace}")) and folder[1:2] != ":":
            raise BadPredicate(f"{folder!r} is under nothing: begin it with /, ~ or ${{workspace}}")

    def judge(value: Any, facts: Facts, forbids: bool) -> bool | None:
        if not isinstance(value, str):
            return _judge_non_text(value)
        path = canonicalize_path(value, facts.cwd)
        if path is None:
            return None
        doubt = False
        for folder in folders:
            place = expand_path(folder, facts.workspace)
            base = None if place is None else canonicalize_path(place)
            if base is None:
                doubt = True
            elif is_under(path, base, folding=CASE_INSENSITIVE and forbids):
                return True
        return None if doubt else False

    return judge


def _make_host_in(text: str) -> Judge:
    wanted = _read_texts(text, "a host, or a list of hosts")
    for host in wanted:
        if not _HOST.fullmatch(host):
            raise BadPredicate(
                f"{host!r} is no host: write it in small letters, in Punycode (xn--) where it has "
                "others than ASCII, without scheme, port and path; *.example.com is what is below"
            )

    def judge(value: Any, _: Facts, _forbids: bool) -> bool | None:
        if not isinstance(value, str):
            return _judge_non_text(value)
        host = parse_host(value)
        return None if host is None else any(host_matches(host, one) for one in wanted)

    return judge


OPERATORS: dict[str, Callable[[str], Judge]] = {
    "glob": _make_glob,
    "regex": _make_regex,
    "in": _make_in,
    "==": _make_equal,
    "!=": _make_unequal,
    **{order: _make_comparison(order) for order in ("<", "<=", ">", ">=")},
    "size": _make_size,
    "exists": _make_exists,
    "under": _make_under,
    "host-in": _make_host_in,
}
