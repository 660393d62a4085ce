"""Rules as TOML again, as :mod:`isthmus.host.policy.reading` reads them."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import json, structs

from isthmus.host.policy.rule import Rule, When
from isthmus.host.policy.trace import Obligations

__all__ = ["plain", "written"]

_USUAL = structs.asdict(Obligations())


def written(rules: Iterable[Rule]) -> str:
    """A file of these rules; reading it gives the same ones."""
    return "\n".join(_rule(plain(rule)) for rule in rules)


def plain(rule: Rule) -> dict[str, Any]:
    """A rule as plain data, as it stands in a file."""
    said: dict[str, Any] = {"id": rule.id, "effect": rule.effect}
    if rule.reason:
        said["reason"] = rule.reason
    said["when"] = _when(rule.when)
    if rule.where:
        said["where"] = [predicate.text for predicate in rule.where]
    if rule.unless is not None:
        said["unless"] = _when(rule.unless)
    demanded = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in structs.asdict(rule.obligations).items()
        if value != _USUAL[key]
    }
    if demanded:
        said["obligations"] = demanded
    return said


def _when(when: When) -> dict[str, Any]:
    named = when.named()
    if when.annotations:
        named["annotations"] = dict(when.annotations)
    return {key: list(v) if isinstance(v, tuple) else v for key, v in named.items()}


def _rule(said: Mapping[str, Any]) -> str:
    return "\n".join(("[[rule]]", *(f"{key} = {_value(v)}" for key, v in said.items()), ""))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_value(v)}" for key, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_value(v) for v in value)}]"
    # TOML writes texts as JSON does, but for one character that JSON leaves as it is.
    return json.encode(value).decode().replace("\x7f", "\\u007f")
