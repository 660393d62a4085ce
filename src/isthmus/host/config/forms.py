"""Forms of members: durations, rates, sizes and the like, parsed into the structs of the configuration."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from isthmus.host.config.syntax import MemberKey

T = TypeVar("T")
SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
PER_MINUTE_BY_UNIT = {"s": 60.0, "sec": 60.0, "min": 1.0, "m": 1.0, "h": 1 / 60, "d": 1 / 1440}
BYTES_BY_UNIT = {
    "": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3,
    "kib": 1024, "mib": 1024**2, "gib": 1024**3,
}  # fmt: skip
MEASURE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", re.ASCII)
RATE = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*([A-Za-z]+)", re.ASCII)
DIGEST = re.compile(r"(?:sha256[:-])?([0-9a-fA-F]{64})", re.ASCII)
PATH = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class BadMember(ValueError):
    """A member of a file is not as it should be.

    Attributes:
        keys: the way to it.
    """

    def __init__(self, keys: tuple[MemberKey, ...], message: str) -> None:
        super().__init__(message)
        self.keys = keys


def parse_duration(value: Any) -> Any:
    """Parse ``"15m"`` into seconds; a number is one already."""
    found = MEASURE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and found[2] in SECONDS_BY_UNIT:
        return float(found[1]) * SECONDS_BY_UNIT[found[2]]
    if isinstance(value, str | bool) or (is_number(value) and value < 0):
        raise ValueError(
            f'{value!r} is no duration: write "30s", "15m", "250ms", "2h" or a number of seconds'
        )
    return value


def parse_rate(value: Any) -> Any:
    """Parse ``"60/min"`` into a number a minute; a number is one already."""
    found = RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and found[2].lower() in PER_MINUTE_BY_UNIT:
        return float(found[1]) * PER_MINUTE_BY_UNIT[found[2].lower()]
    if isinstance(value, str | bool) or (is_number(value) and value <= 0):
        raise ValueError(
            f'{value!r} is no rate: write "60/min", "5/s", "100/h" or a number a minute'
        )
    return value


def parse_size(value: Any) -> Any:
    """Parse ``"1MiB"`` into bytes; a number is one already."""
    found = MEASURE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and found[2].lower() in BYTES_BY_UNIT:
        return int(float(found[1]) * BYTES_BY_UNIT[found[2].lower()])
    if isinstance(value, str | bool) or (is_number(value) and value < 0):
        raise ValueError(
            f'{value!r} is no size: write "1MiB", "64KiB", "500KB" or a number of bytes'
        )
    return value


def parse_pin(value: Any) -> Any:
    """Parse the digest of ``{"sha256": "…"}``, or of the text alone."""
    said = value.get("sha256") if isinstance(value, dict) else value
    found = DIGEST.fullmatch(said) if isinstance(said, str) else None
    if found is None and said != "":
        raise ValueError(f'{said!r} is no pin: write {{"sha256": "…"}} with 64 digits in hex')
    return found[1].lower() if found else ""


def parse_sandbox(value: Any) -> Any:
    """Parse a sandbox, also as others group it; ``true`` is the strict one."""
    if value is False:
        return None
    if value is True:
        return {"network": False}
    if not isinstance(value, dict):
        return value
    flat = {k: v for k, v in value.items() if k not in {"filesystem", "network"}}
    files, network = value.get("filesystem", {}), value.get("network", True)
    if not isinstance(files, dict):
        raise ValueError(  # noqa: TRY004 - it is the file that is wrong
            'filesystem is an object: {"allowWrite": [], "denyRead": []}'
        )
    if isinstance(network, dict):
        if network.get("allowedDomains"):
            raise ValueError(
                "a sandbox cannot tell domains apart: say network true or false, not allowedDomains"
            )
        network = False
    return {**files, **flat, "network": network}


# by the name of the form in the struct
FORM_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "duration": parse_duration,
    "rate": parse_rate,
    "size": parse_size,
    "pin": parse_pin,
    "sandbox": parse_sandbox,
}


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def convert_member(
    kind: type[T], value: Any, keys: tuple[MemberKey, ...], unknown: list[tuple[MemberKey, ...]]
) -> T:
    """Convert a member to its struct.

    Args:
        kind: which struct.
        value: what the file has.
        keys: the way to it, for messages.
        unknown: the ways to members that nobody knows are put here.

    Raises:
        BadMember: it does not fit, or has a member that looks like a mistyped one.
    """
    plain = _parse_forms(get_type(kind), value, keys, unknown)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        found = PATH.fullmatch(str(error))
        said, way = (found[1], found[2] or "") if found else (str(error), "")
        steps = (int(i) if i else name for name, i in STEP.findall(way))
        raise BadMember((*keys, *steps), said) from None


_TYPES: dict[type, inspect.Type] = {}


def get_type(kind: type) -> inspect.Type:
    """The type information of msgspec about a struct."""
    if kind not in _TYPES:
        _TYPES[kind] = inspect.type_info(kind)
    return _TYPES[kind]


def get_form(kind: inspect.Type) -> tuple[str, inspect.Type]:
    """The form of a member, empty for the usual one, and its inner type."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra or {}).get("form", "")), get_form(kind.type)[1]
    if isinstance(kind, inspect.UnionType):
        inner = [get_form(one) for one in kind.types if not isinstance(one, inspect.NoneType)]
        return inner[0] if len(inner) == 1 else ("", kind)
    return "", kind


def _parse_forms(
    kind: inspect.Type,
    value: Any,
    keys: tuple[MemberKey, ...],
    unknown: list[tuple[MemberKey, ...]],
) -> Any:
    """Parse a value with all that it holds into the form that msgspec reads."""
    form, inner = get_form(kind)
    if form and value is not None:
        try:
            value = FORM_PARSERS[form](value)
        except ValueError as error:
            raise BadMember(keys, str(error)) from None
    if isinstance(inner, inspect.StructType) and isinstance(value, dict):
        return _parse_members(inner, value, keys, unknown)
    if isinstance(inner, inspect.DictType) and isinstance(value, dict):
        return {k: _parse_forms(inner.value_type, v, (*keys, k), unknown) for k, v in value.items()}
    if isinstance(inner, inspect.VarTupleType) and isinstance(value, list):
        return [_parse_forms(inner.item_type, v, (*keys, i), unknown) for i, v in enumerate(value)]
    return value


def _parse_members(
    kind: inspect.StructType,
    value: dict[str, Any],
    keys: tuple[MemberKey, ...],
    unknown: list[tuple[MemberKey, ...]],
) -> dict[str, Any]:
    known = {field.encode_name: field.type for field in kind.fields}
    for name in value.keys() - known.keys():
        near = difflib.get_close_matches(name, known, 1, 0.75)
        if near and near[0] not in value:
            # a mistyped "sandbox" must not mean that there is none
            raise BadMember((*keys, name), f"unknown option {name!r}; did you mean {near[0]!r}?")
        unknown.append((*keys, name))
    return {
        name: _parse_forms(known[name], part, (*keys, name), unknown)
        for name, part in value.items()
        if name in known
    }
