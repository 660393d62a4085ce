"""Rule files: rules read from TOML; a fault is told with file, line, rule and how to mend it."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct, structs

from isthmus.host.model import toml
from isthmus.host.model.errors import PolicyError
from isthmus.host.model.trace import ASSURANCES, REMEMBER_SCOPES, Effect, Obligations, Review
from isthmus.host.policy.predicates import BadPredicate, Predicate
from isthmus.host.policy.rule import (
    CONDITION_KINDS,
    HINT_VALUES,
    TIGHTENING_LAYERS,
    LayerName,
    PolicyLayer,
    PolicyRule,
    RuleCondition,
    find_problems,
    suggest_word,
)

MAX_POLICY_BYTES = 1024 * 1024
MAX_RULES = 2_000
MAX_WORDS_PER_KEY = 500
MAX_WORD_CHARS = 2_000
RULE_EFFECTS: tuple[str, ...] = get_args(Effect)
REVIEW_WORDS: tuple[str, ...] = get_args(Review)
FILE_KEYS = ("extends", "rule")
RULE_KEYS = ("id", "effect", "reason", "when", "where", "unless", "obligations")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")


def load_layers(place: str, layer: LayerName) -> list[PolicyLayer]:
    """Load the rules of a file, or of a shipped policy; never fails.

    Args:
        place: the file's path, or the policy's name.
        layer: where its rules are to stand.

    Returns:
        The layer, and before it the one that it extends. What cannot be read is in ``broken``.
    """
    from isthmus.host.policy.shipped import SHIPPED_POLICIES, load_shipped_rules

    if place in SHIPPED_POLICIES:
        rules = load_shipped_rules(place)
        if layer in TIGHTENING_LAYERS:
            rules = tuple(rule for rule in rules if rule.effect != "allow")
        return [
            PolicyLayer(name="default" if layer == "user" else layer, rules=rules, source=place)
        ]
    try:
        return read_layers(_read_text(place), layer, source=place)
    except (OSError, UnicodeError, RuntimeError) as error:
        why = f"{place} cannot be read: {getattr(error, 'strerror', None) or error}"
        return [PolicyLayer(name=layer, source=place, broken=why)]
    except PolicyError as error:
        return [PolicyLayer(name=layer, source=place, broken=str(error))]


def _read_text(place: str) -> str:
    path = Path(place).expanduser()
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise PolicyError(f"{place} is no file")  # a pipe or a device ends when it likes, if at all
    with path.open("rb") as file:
        data = file.read(MAX_POLICY_BYTES + 1)
    if len(data) > MAX_POLICY_BYTES:
        raise PolicyError(f"{place} is larger than {MAX_POLICY_BYTES} bytes, which no policy needs")
    return data.decode()


def read_layers(text: str, layer: LayerName, *, source: str = "") -> list[PolicyLayer]:
    """Read the rules of a text.

    Args:
        text: TOML: ``[[rule]]`` tables, and ``extends = "developer"`` before them if wanted.
        layer: where its rules are to stand.
        source: the file's name, for errors.

    Returns:
        The layer, and before it the one that it extends.

    Raises:
        PolicyError: something in it cannot be; the message has all of it, a line each.
    """
    where = source or "the policy"
    try:
        data = toml.parse_toml(text)
    except toml.BadToml as error:
        raise PolicyError(f"{where} is not TOML: {error}") from error
    reader = _FileReader(text, where, layer)
    rules = reader.rules(data)
    base = reader.base(data)
    if reader.wrong:
        raise PolicyError("\n".join(reader.wrong))
    own = PolicyLayer(name=layer, rules=rules, source=source)
    return [own] if base is None else [base, own]


class _FileReader:
    """Reads one file, and collects its faults."""

    def __init__(self, text: str, source: str, layer: LayerName) -> None:
        self.wrong: list[str] = []
        self._lines = text.splitlines()
        self._source = source
        self._layer: LayerName = layer

    def base(self, data: Mapping[str, Any]) -> PolicyLayer | None:
        """The policy that the file extends."""
        from isthmus.host.policy.shipped import SHIPPED_POLICIES, load_shipped_rules

        name = data.get("extends")
        if name is None:
            return None
        if self._layer in TIGHTENING_LAYERS:
            self._add_fault(0, "", f"the {self._layer} layer extends nothing: it only tightens")
        elif not isinstance(name, str) or name not in SHIPPED_POLICIES:
            self._add_fault(
                0,
                "",
                f"extends = {name!r} is no policy here; {suggest_word(str(name), SHIPPED_POLICIES)}",
            )
        else:
            place: LayerName = "managed" if self._layer == "managed" else "default"
            return PolicyLayer(name=place, rules=load_shipped_rules(name), source=name)
        return None

    def rules(self, data: Mapping[str, Any]) -> tuple[PolicyRule, ...]:
        """The rules that can be read."""
        for key in data.keys() - set(FILE_KEYS):
            self._add_fault(0, "", f"{key!r} is no key here; {suggest_word(key, FILE_KEYS)}")
        tables = data.get("rule", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            self._add_fault(0, "", "rule must be tables: begin each with [[rule]]")
            return ()
        if len(tables) > MAX_RULES:
            self._add_fault(0, "", f"there are more than {MAX_RULES} rules")
            return ()
        starts = [n for n, line in enumerate(self._lines, 1) if re.match(r"\s*\[\[\s*rule", line)]
        known: set[str] = set()
        rules = []
        for number, table in enumerate(tables):
            line = starts[number] if len(starts) == len(tables) else 0
            reader = _RuleReader(table, line)
            rule = reader.rule()
            if rule.id in known:
                reader.wrong.append(("id", f"another rule is called {rule.id!r}, too"))
            known.add(rule.id)
            if not reader.wrong:
                reader.wrong.extend(("", problem) for problem in find_problems(rule, self._layer))
            for key, what in reader.wrong:
                self._add_fault(self._find_line(line, key), rule.id or f"number {number + 1}", what)
            rules.append(rule)
        return tuple(rules)

    def _find_line(self, start: int, key: str) -> int:
        """Find the line of a key of the rule that begins at a line; that line if it is not seen."""
        named = re.compile(rf"(?<![\w-]){re.escape(key)}(?![\w-])")
        for number, line in enumerate(self._lines[start:] if key and start else (), start + 1):
            if line.lstrip().startswith("[["):
                break
            if named.search(line.split("#")[0]):
                return number
        return start

    def _add_fault(self, line: int, rule: str, what: str) -> None:
        place = f"{self._source}:{line}" if line else self._source
        self.wrong.append(f"{place}: {f'rule {rule}: ' if rule else ''}{what}")


class _RuleReader:
    """Reads one rule."""

    def __init__(self, table: Mapping[str, Any], line: int) -> None:
        self.wrong: list[tuple[str, str]] = []
        self._table = table
        self._line = line

    def rule(self) -> PolicyRule:
        """The rule; where something is wrong with it, as far as it can be read."""
        table = self._table
        self._check_keys(table, RULE_KEYS, "")
        identity = table.get("id", "")
        if not isinstance(identity, str) or not _ID.fullmatch(identity):
            self._add_fault(
                "id", 'it needs an id of letters, digits, ., _ and -: id = "repo-writes"'
            )
            identity = ""
        effect = table.get("effect")
        if effect not in RULE_EFFECTS:
            self._add_fault("effect", f"effect is one of {', '.join(RULE_EFFECTS)}, not {effect!r}")
            effect = "deny"
        reason = table.get("reason", "")
        if not isinstance(reason, str) or len(reason) > MAX_WORD_CHARS:
            self._add_fault("reason", "reason is a sentence")
            reason = ""
        return PolicyRule(
            id=identity,
            effect=cast("Effect", effect),
            when=self._when("when") or RuleCondition(),
            where=tuple(self._predicates()),
            unless=self._when("unless"),
            reason=reason,
            obligations=self._obligations(),
            line=self._line,
        )

    def _add_fault(self, key: str, what: str) -> None:
        self.wrong.append((key, what))

    def _check_keys(self, table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
        for key in table.keys() - set(keys):
            self._add_fault(key, f"{where}{key!r} is no key here; {suggest_word(key, keys)}")

    def _when(self, name: str) -> RuleCondition | None:
        table = self._table.get(name)
        if table is None:
            return None
        if not isinstance(table, dict):
            self._add_fault(name, f'{name} is a table: {name} = {{ server = "github" }}')
            return None
        self._check_keys(table, tuple(CONDITION_KINDS), f"{name}.")
        read: dict[str, Callable[[str, Any], Any]] = {
            "globs": self._words,
            "words": self._words,
            "flag": self._flag,
            "hints": self._hints,
        }
        return RuleCondition(
            **{
                key: read[kind](f"{name}.{key}", table[key])
                for key, kind in CONDITION_KINDS.items()
                if key in table
            }
        )

    def _words(self, where: str, value: Any) -> tuple[str, ...]:
        words = value if isinstance(value, list) else [value]
        if not words or len(words) > MAX_WORDS_PER_KEY or not all(_is_word(word) for word in words):
            self._add_fault(
                where.rpartition(".")[2],
                f'{where} is a text or a list of up to {MAX_WORDS_PER_KEY}: "x" or ["x", "y"]; an empty '
                "one fits nothing",
            )
            return ()
        return tuple(dict.fromkeys(words))

    def _flag(self, where: str, value: Any) -> bool | None:
        if isinstance(value, bool):
            return value
        self._add_fault(where.rpartition(".")[2], f"{where} is true or false, not {value!r}")
        return None

    def _hints(self, where: str, value: Any) -> tuple[tuple[str, bool], ...]:
        if not isinstance(value, dict) or not value:
            self._add_fault("annotations", f"{where} is a table: {where} = {{ read_only = true }}")
            return ()
        self._check_keys(value, tuple(HINT_VALUES), f"{where}.")
        wrong = [name for name, hint in value.items() if not isinstance(hint, bool)]
        for name in wrong:
            self._add_fault(name, f"{where}.{name} is true or false")
        return tuple(
            (n, v) for n, v in sorted(value.items()) if n in HINT_VALUES and n not in wrong
        )

    def _predicates(self) -> Iterator[Predicate]:
        texts = self._table.get("where", [])
        if not isinstance(texts, list) or len(texts) > MAX_WORDS_PER_KEY:
            self._add_fault("where", "where is a list: where = [\"args.path under '~/work'\"]")
            return
        for text in texts:
            if not _is_word(text):
                self._add_fault("where", f"where holds {text!r}, which is no text of a predicate")
                continue
            try:
                yield Predicate(text)
            except BadPredicate as error:
                self._add_fault("where", f"where {text!r}: {error}")

    def _obligations(self) -> Obligations:
        table = self._table.get("obligations", {})
        if not isinstance(table, dict):
            self._add_fault(
                "obligations", "obligations is a table: obligations = { max_calls = 20 }"
            )
            return Obligations()
        self._check_keys(table, tuple(OBLIGATION_FORMS), "obligations.")
        demanded = {}
        for key, demand in OBLIGATION_FORMS.items():
            if key in table:
                value = demand.read(table[key])
                if value is None:
                    self._add_fault(key, f"obligations.{key} is {demand.what}, not {table[key]!r}")
                else:
                    demanded[key] = value
        return Obligations(**demanded)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_WORD_CHARS


class _ObligationForm(Struct, frozen=True):
    """Parser and description of one obligation; None means that the value is wrong."""

    read: Callable[[Any], Any]
    what: str


def _make_choice(words: tuple[str, ...]) -> _ObligationForm:
    return _ObligationForm(lambda v: v if v in words else None, f"one of {', '.join(words)}")


_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _parse_seconds(value: Any) -> float | None:
    if isinstance(value, str):
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)", value)
        return float(found[1]) * _UNIT_SECONDS[found[2]] if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= 1e9 else None


def _parse_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _parse_pointers(value: Any) -> tuple[str, ...] | None:
    fits = isinstance(value, list) and all(
        isinstance(pointer, str) and _POINTER.fullmatch(pointer) for pointer in value
    )
    return tuple(value) if fits else None


def _parse_scopes(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not value or not all(one in REMEMBER_SCOPES for one in value):
        return None
    return tuple(scope for scope in REMEMBER_SCOPES if scope in value or scope == "once")


OBLIGATION_FORMS: dict[str, _ObligationForm] = {
    "assurance": _make_choice(ASSURANCES),
    "timeout": _ObligationForm(_parse_seconds, 'a time such as "30s" or "10m", or seconds'),
    "max_calls": _ObligationForm(_parse_count, "a number above 0"),
    "redact": _ObligationForm(_parse_pointers, 'a list of JSON pointers such as ["/token"]'),
    "remember": _ObligationForm(_parse_scopes, f"a list of {', '.join(REMEMBER_SCOPES)}"),
    "review": _make_choice(REVIEW_WORDS),
}

if set(OBLIGATION_FORMS) != set(structs.asdict(Obligations())):
    raise RuntimeError("an obligation cannot be read")  # pragma: no cover
