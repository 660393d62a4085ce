"""YAML as Goose and Continue write it, read so that every part knows where it stands.

PyYAML finds the parts and their places. What a plain word means is decided here, by the core schema
of YAML 1.2: for PyYAML a variable that is called NO is false.
"""

import re
from collections.abc import Iterable
from typing import Any

from isthmus.host.config.jsonc import DEEPEST, BadSyntax, Member, Node
from isthmus.host.errors import ConfigError

__all__ = ["parse_yaml"]

MAX_PARTS = 100_000
"""Parts of a file, each as often as an alias repeats it."""

AROUND = 3
"""Events that stand around the whole: a stream, a document, and the level that is counted as 0."""

TOO_MUCH = "there is too much in it, or too deep, for a configuration"

WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
TAG = "tag:yaml.org,2002:"
SCALARS = frozenset({"str", "int", "float", "bool", "null", "timestamp", "value"})
"""What PyYAML takes scalars for; which of them it is, is decided here."""


def parse_yaml(text: str) -> Node:
    """The value that a text is; of tags only the usual ones are known, and keys are texts.

    Raises:
        BadSyntax: it is none, or says what no configuration does.
        ConfigError: PyYAML is missing.
    """
    try:
        import yaml
    except ImportError:
        raise ConfigError("to read YAML, PyYAML is needed: pip install 'isthmus[host]'") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # PyYAML composes in C, where what is nested too deeply ends the whole process
        _check_depth(yaml.parse(text, Loader=loader))
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise BadSyntax(str(error.problem or error.context), *place) from None
    except yaml.YAMLError as error:
        raise BadSyntax(str(error).partition("\n")[0], 1, 1) from None
    except RecursionError:
        raise BadSyntax("it is nested too deeply", 1, 1) from None
    return Node({}, 0, members={}) if root is None else _Builder().node(root, 0)


def _check_depth(events: Iterable[Any]) -> None:
    """See that nothing is nested too deeply; events come one by one, whatever they are in.

    Raises:
        BadSyntax: something is.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > DEEPEST + AROUND:
            raise _misfit(event, TOO_MUCH)


class _Builder:
    """Makes of PyYAML's nodes those of every configuration."""

    def __init__(self) -> None:
        self._parts = 0

    def node(self, part: Any, depth: int) -> Node:
        """One part with all that it holds."""
        self._parts += 1
        if self._parts > MAX_PARTS or depth > DEEPEST:
            raise _misfit(part, TOO_MUCH)
        start, end = part.start_mark.index, part.end_mark.index
        kind = part.tag.removeprefix(TAG)
        if part.id == "mapping" and kind == "map":
            return self._mapping(part, start, end, depth)
        if part.id == "sequence" and kind == "seq":
            items = [self.node(one, depth + 1) for one in part.value]
            return Node([one.value for one in items], start, end, items=items)
        if part.id == "scalar" and kind in SCALARS:
            return Node(_scalar(part), start, end)
        raise _misfit(part, f"the tag {part.tag} is not read")

    def _mapping(self, part: Any, start: int, end: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        twice: dict[str, int] = {}
        for key, value in part.value:
            if key.id != "scalar" or key.value == "<<":
                raise _misfit(key, "a key is a text; merge keys are not read")
            at = key.start_mark.index
            if key.value in members:
                twice[key.value] = at
            members[key.value] = Member(at, self.node(value, depth + 1))
        plain = {name: member.node.value for name, member in members.items()}
        return Node(plain, start, end, members=members, twice=twice)


def _scalar(part: Any) -> Any:
    """What a scalar says: a text where it is quoted, else by the core schema."""
    text: str = part.value
    if part.style:
        return text
    if text in WORDS:
        return WORDS[text]
    if INTEGER.fullmatch(text):
        return int(text) if len(text) < 20 else text
    if OTHER_BASE.fullmatch(text):
        return int(text, 0)
    return float(text) if NUMBER.fullmatch(text) else text


def _misfit(part: Any, message: str) -> BadSyntax:
    return BadSyntax(message, part.start_mark.line + 1, part.start_mark.column + 1)
