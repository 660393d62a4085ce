"""YAML read as plain data: JSON's types only, bounded in depth and size, aliases counted as often as they repeat.

PyYAML finds the parts and their places. The meaning of a plain word is decided here, by the core schema of
YAML 1.2: for PyYAML a variable that is called NO is false, and a day is a date.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from isthmus.errors import UsageError

MAX_YAML_DEPTH = 100
MAX_YAML_PARTS = 100_000  # of a text, each as often as an alias repeats it
OUTER_EVENTS = 3  # around the whole: a stream, a document, and the level that is counted as 0
TAG_PREFIX = "tag:yaml.org,2002:"
SCALAR_TAGS = frozenset({"str", "int", "float", "bool", "null", "timestamp", "value"})  # PyYAML's
CORE_SCHEMA_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
DECIMAL_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
MAX_INTEGER_CHARS = 19
OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
DECIMAL_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
TOO_LARGE_OR_DEEP = "there is too much in it, or too deep"

YamlNode: TypeAlias = Any  # of PyYAML, which has no types
MakeError: TypeAlias = Callable[[YamlNode, str], Exception]


class BadYaml(ValueError):
    """A text is no YAML, or says what JSON cannot.

    Attributes:
        line: the line, from 1.
        column: the column in it, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read_yaml(
    text: str, *, max_parts: int = MAX_YAML_PARTS, max_depth: int = MAX_YAML_DEPTH
) -> Any:
    """Read a text of YAML as plain data; keys are texts, and of tags only the usual ones are known.

    Args:
        text: the text.
        max_parts: the most values in it, each as often as an alias repeats it.
        max_depth: the most levels of arrays and objects.

    Raises:
        BadYaml: it is no YAML, too much or too deep, has a key twice, or says what JSON cannot.
        UsageError: PyYAML is not installed.
    """
    root = compose_yaml(text, max_depth)
    return None if root is None else _PlainReader(max_parts, max_depth).read(root, 0)


def compose_yaml(text: str, max_depth: int = MAX_YAML_DEPTH) -> YamlNode | None:
    """The nodes of PyYAML for a text; None for one without a document.

    Raises:
        BadYaml: it is no YAML, or nested too deeply.
        UsageError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError("to read YAML, PyYAML is needed: pip install 'isthmus[yaml]'") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # PyYAML composes in C, where what is nested too deeply ends the whole process
        _check_depth(yaml.parse(text, Loader=loader), max_depth)
        return yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise BadYaml(str(error.problem or error.context), *place) from None
    except yaml.YAMLError as error:
        raise BadYaml(str(error).partition("\n")[0], 1, 1) from None
    except RecursionError:
        raise BadYaml("it is nested too deeply", 1, 1) from None


def read_scalar(node: YamlNode) -> Any:
    """The value of a scalar: a text where it is quoted, else by the core schema."""
    text: str = node.value
    if node.style:
        return text
    if text in CORE_SCHEMA_WORDS:
        return CORE_SCHEMA_WORDS[text]
    if DECIMAL_INTEGER.fullmatch(text):
        return int(text) if len(text) <= MAX_INTEGER_CHARS else text
    if OTHER_BASE.fullmatch(text):
        return int(text, 0)
    return float(text) if DECIMAL_NUMBER.fullmatch(text) else text


def get_kind(node: YamlNode) -> str:
    """``"map"``, ``"seq"`` or ``"scalar"`` for a node that JSON could have.

    Raises:
        BadYaml: it has a tag that is not read.
    """
    tag = node.tag.removeprefix(TAG_PREFIX)
    if (node.id, tag) in {("mapping", "map"), ("sequence", "seq")}:
        return str(tag)
    if node.id == "scalar" and tag in SCALAR_TAGS:
        return "scalar"
    raise make_yaml_error(node, f"the tag {node.tag} is not read")


def get_key(node: YamlNode) -> str:
    """The text of a key.

    Raises:
        BadYaml: it is no text.
    """
    if node.id != "scalar" or node.value == "<<":
        raise make_yaml_error(node, "a key is a text; merge keys are not read")
    return str(node.value)


def make_yaml_error(part: Any, message: str) -> BadYaml:
    """The error about a node or an event, with its place."""
    return BadYaml(message, part.start_mark.line + 1, part.start_mark.column + 1)


def _check_depth(events: Iterable[Any], max_depth: int) -> None:
    """Check that nothing is nested too deeply; events come one by one, whatever they are in.

    Raises:
        BadYaml: something is.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > max_depth + OUTER_EVENTS:
            raise make_yaml_error(event, TOO_LARGE_OR_DEEP)


class _PlainReader:
    """Reads the nodes of one text, and counts them."""

    def __init__(self, max_parts: int, max_depth: int) -> None:
        self._parts_left = max_parts
        self._max_depth = max_depth

    def read(self, node: YamlNode, depth: int) -> Any:
        """The value of a node, with all that it holds."""
        self._parts_left -= 1
        if self._parts_left < 0 or depth > self._max_depth:
            raise make_yaml_error(node, TOO_LARGE_OR_DEEP)
        kind = get_kind(node)
        if kind == "scalar":
            return read_scalar(node)
        if kind == "seq":
            return [self.read(one, depth + 1) for one in node.value]
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = get_key(key)
            if name in found:
                raise make_yaml_error(key, f"the key {name!r} is there twice")
            found[name] = self.read(value, depth + 1)
        return found
