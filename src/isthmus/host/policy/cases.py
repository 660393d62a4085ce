"""A policy's own tests: a table of attempts, and what should happen to each.

::

    [[case]]
    name = "nobody reads keys"
    attempt = { action = "tool.call", server = "files", tool = "read", args = { path = "/home/me/.ssh/id" } }
    facts = { trust = "annotations", annotations = { read_only = true } }
    expect = "deny"
    rule = "keys"
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from msgspec import Struct

from isthmus.host.model import toml
from isthmus.host.model.attempt import Action, Attempt, Origin
from isthmus.host.model.entries import Labels
from isthmus.host.model.errors import PolicyError
from isthmus.host.model.facts import Facts
from isthmus.host.model.trace import ASSURANCES, Effect, Trace
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule import ACTIONS, HINT_VALUES, ORIGINS, suggest_word
from isthmus.wire import ToolAnnotations

CASE_EFFECTS: tuple[str, ...] = get_args(Effect)
CASE_KEYS = ("name", "attempt", "facts", "expect", "rule")
ATTEMPT_KEYS = (
    "action",
    "server",
    "tool",
    "uri",
    "prompt",
    "object",
    "args",
    "principal",
    "origin",
    "run",
)
TEXT_FACTS = ("era", "transport", "workspace", "cwd", "identity", "fingerprint")
TRUST_LEVELS = ("untrusted", "annotations", "full")
FACT_KEYS = (
    *("trust", "annotations", "labels", "reads", "egress", "attended", "assurance", "calls", "now"),
    *TEXT_FACTS,
)


class PolicyCase(Struct, frozen=True):
    """One attempt and what should happen to it.

    Attributes:
        name: what it shows.
        attempt: what is wanted.
        facts: the circumstances.
        expect: what should happen.
        rule: the rule that should decide; empty for any.
    """

    name: str
    attempt: Attempt
    facts: Facts
    expect: Effect
    rule: str = ""


class CaseFailure(Struct, frozen=True):
    """A case whose decision was not the expected one."""

    case: PolicyCase
    trace: Trace

    def __str__(self) -> str:
        wanted = f"{self.case.expect}{f' by {self.case.rule}' if self.case.rule else ''}"
        return (
            f"{self.case.name}: expected {wanted}, but it is {self.trace.effect} by "
            f"{self.trace.rule}: {self.trace.reason}"
        )


def read_cases(text: str, *, source: str = "") -> tuple[PolicyCase, ...]:
    """Read the cases of a file.

    Raises:
        PolicyError: something in it cannot be; the message has the case and how to mend it.
    """
    where = source or "the cases"
    try:
        data = toml.parse_toml(text)
    except toml.BadToml as error:
        raise PolicyError(f"{where} is not TOML: {error}") from error
    tables = data.get("case")
    if not isinstance(tables, list) or set(data) != {"case"}:
        raise PolicyError(f"{where}: only [[case]] tables are allowed")
    return tuple(_read_case(table, f"{where}: case {n}") for n, table in enumerate(tables, 1))


def run_cases(policy: Policy, cases: tuple[PolicyCase, ...]) -> Iterator[CaseFailure]:
    """Decide the cases, and yield those that fail."""
    for case in cases:
        trace = policy.decide(case.attempt, case.facts)
        if trace.effect != case.expect or case.rule not in {"", trace.rule}:
            yield CaseFailure(case, trace)


def _read_case(table: Any, where: str) -> PolicyCase:
    if not isinstance(table, Mapping):
        raise PolicyError(f"{where} is no table")
    _check_keys(table, CASE_KEYS, where)
    name = str(table.get("name", where))
    where = f"{where} ({name})"
    return PolicyCase(
        name=name,
        attempt=read_attempt(table.get("attempt", {}), where=where),
        facts=read_facts(table.get("facts", {}), where=where),
        expect=cast("Effect", _read_word(table, "expect", CASE_EFFECTS, where)),
        rule=str(table.get("rule", "")),
    )


def read_attempt(data: Any, *, where: str) -> Attempt:
    """Read an attempt from plain data.

    Raises:
        PolicyError: something in it cannot be.
    """
    if not isinstance(data, Mapping):
        raise PolicyError(f"{where}: attempt is a table")
    _check_keys(data, ATTEMPT_KEYS, f"{where}: attempt")
    named = [str(data[key]) for key in ("tool", "uri", "prompt", "object") if key in data]
    if len(named) > 1:
        raise PolicyError(f"{where}: an attempt has one of tool, uri, prompt and object")
    arguments = data.get("args", {})
    if not isinstance(arguments, Mapping):
        raise PolicyError(f"{where}: args is a table")
    return Attempt(
        id="case",
        action=cast("Action", _read_word(data, "action", ACTIONS, where, "tool.call")),
        principal=str(data.get("principal", "user:local")),
        server=str(data.get("server", "")),
        object=named[0] if named else "",
        arguments=arguments,
        run=str(data.get("run", "")),
        origin=cast("Origin", _read_word(data, "origin", ORIGINS, where, "local")),
    )


def read_facts(data: Any, *, where: str) -> Facts:
    """Read facts from plain data; a missing one is a stranger's.

    Raises:
        PolicyError: something in it cannot be.
    """
    if not isinstance(data, Mapping):
        raise PolicyError(f"{where}: facts is a table")
    _check_keys(data, FACT_KEYS, f"{where}: facts")
    hints = data.get("annotations")
    if hints is not None:
        if not isinstance(hints, Mapping):
            raise PolicyError(f"{where}: annotations is a table")
        _check_keys(hints, tuple(HINT_VALUES), f"{where}: annotations")
    try:
        texts: dict[str, Any] = {name: str(data.get(name, "")) for name in TEXT_FACTS}
        return Facts(
            trust=_read_word(data, "trust", TRUST_LEVELS, where, "untrusted"),  # type: ignore[arg-type] # one of them
            annotations=None
            if hints is None
            else ToolAnnotations(**{f"{name}_hint": value for name, value in hints.items()}),
            labels=frozenset(_read_words(data, "labels")),
            target=Labels(reads=_read_words(data, "reads"), egress=data.get("egress") is True),
            attended=data.get("attended", True) is not False,
            assurance=_read_word(data, "assurance", ASSURANCES, where, "local_ui"),  # type: ignore[arg-type] # one of them
            calls={str(rule): int(count) for rule, count in data.get("calls", {}).items()},
            now=float(data.get("now", 0)),
            **texts,
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise PolicyError(f"{where}: facts: {error}") from error


def _read_words(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, ())
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _check_keys(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table.keys() - set(keys):
        raise PolicyError(f"{where}: {key!r} is no key here; {suggest_word(key, keys)}")


def _read_word(
    table: Mapping[str, Any], key: str, words: tuple[str, ...], where: str, usual: str = ""
) -> str:
    value = table.get(key, usual)
    if value not in words:
        raise PolicyError(f"{where}: {key} is {value!r}; {suggest_word(str(value), words)}")
    return str(value)
