"""Syntax of configuration files: JSON with comments, and YAML, parsed so that every part knows its place.

Our own parser of JSON, since an error has to name the line, and a change must leave everything else of
the text as it is. YAML is composed by :mod:`isthmus.yaml_text`.
"""

import json
import math
import re
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct

from isthmus.errors import UsageError
from isthmus.host.model.errors import ConfigError
from isthmus.yaml_text import (
    TOO_LARGE_OR_DEEP,
    BadYaml,
    compose_yaml,
    get_key,
    get_kind,
    make_yaml_error,
    read_scalar,
)

# a step on the way to a part: a member's name, or an element's number
MemberKey: TypeAlias = str | int

MAX_DEPTH = 100
TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
JSON_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
JSON_WORDS = {"true": True, "false": False, "null": None}
WORD_PATTERN = re.compile(r"[A-Za-z_]\w*")
MAX_PARTS = 100_000  # of a file, each as often as an alias repeats it


class BadSyntax(ValueError):
    """The text is no JSON, or no YAML.

    Attributes:
        line: where, from 1.
        column: where in it, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class SyntaxNode(Struct):
    """One value and its place.

    Attributes:
        value: what it is, as plain data.
        start: the first of its characters, and ``end`` the one after the last.
        members: of an object, by name.
        items: of an array.
        twice: the places of names that an object has more than once; the last one counts.
    """

    value: Any
    start: int
    end: int = 0
    members: "dict[str, SyntaxMember] | None" = None
    items: "list[SyntaxNode] | None" = None
    twice: dict[str, int] = {}


class SyntaxMember(Struct):
    """A member of an object: where its name begins, and its value."""

    start: int
    node: SyntaxNode


def locate_offset(text: str, offset: int) -> tuple[int, int]:
    """The line and column of a character, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def skip_trivia(text: str, offset: int) -> int:
    """The end of the blanks and comments that begin at a character."""
    found = TRIVIA.match(text, offset)
    return found.end() if found else offset


def parse_jsonc(text: str) -> SyntaxNode:
    """Parse a text of JSON with comments.

    Raises:
        BadSyntax: it is none; the message says what was expected, and the error where.
    """
    return _JsoncParser(text).whole()


def find_node(node: SyntaxNode, keys: tuple[MemberKey, ...]) -> tuple[int, SyntaxNode] | None:
    """Find a part of a value: where its name begins (or it itself), and its node; None without."""
    start = node.start
    for key in keys:
        if isinstance(key, str) and node.members is not None and key in node.members:
            start, node = node.members[key].start, node.members[key].node
        elif isinstance(key, int) and node.items is not None and 0 <= key < len(node.items):
            node = node.items[key]
            start = node.start
        else:
            return None
    return start, node


class _JsoncParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0

    def whole(self) -> SyntaxNode:
        self._skip()
        found = self._value(0)
        self._skip()
        if self._at < len(self._text):
            self._fail("the text should end here")
        return found

    def _skip(self) -> str:
        """Skip blanks and comments, and return the character after them."""
        self._at = skip_trivia(self._text, self._at)
        if self._text.startswith("/*", self._at):
            self._fail("this comment does not end")
        return self._text[self._at : self._at + 1]

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise BadSyntax(message, *locate_offset(self._text, self._at if offset is None else offset))

    def _value(self, depth: int) -> SyntaxNode:
        head = self._skip()
        if depth > MAX_DEPTH:
            self._fail(f"this is nested more than {MAX_DEPTH} levels deep")
        if head == "{":
            return self._object(depth)
        if head == "[":
            return self._array(depth)
        node = SyntaxNode(None, self._at)
        node.value = self._string() if head == '"' else self._atom(head)
        node.end = self._at
        return node

    def _string(self) -> str:
        found = JSON_STRING.match(self._text, self._at)
        if found is None:
            self._fail("this text in quotes does not end on its line")
        try:
            text: str = json.loads(found[0])
            text.encode()  # half of a character of two is none
        except ValueError:
            self._fail('this text has an escape that JSON does not know (a backslash is "\\\\")')
        self._at = found.end()
        return text

    def _atom(self, head: str) -> Any:
        word = WORD_PATTERN.match(self._text, self._at)
        if word and word[0] in JSON_WORDS:
            self._at = word.end()
            return JSON_WORDS[word[0]]
        number = JSON_NUMBER.match(self._text, self._at)
        if number is None:
            self._fail("a value is missing here" if not head or head in ",}]:" else "no value")
        try:
            value = float(number[0]) if number[1] or number[2] else int(number[0])
        except ValueError:  # Python converts no integer of many thousand digits
            self._fail("this number is too long")
        if isinstance(value, float) and math.isinf(value):  # which no JSON could say again
            self._fail("this number is too large")
        self._at = number.end()
        return value

    def _object(self, depth: int) -> SyntaxNode:
        node = SyntaxNode({}, self._at, members={}, twice={})
        members = node.members or {}
        node.members = members
        self._at += 1
        while self._skip() != "}":
            start = self._at
            if self._text[start : start + 1] != '"':
                self._fail('a name in "quotes" or } is missing here')
            name = self._string()
            if self._skip() != ":":
                self._fail(f"a colon is missing after {name!r}")
            self._at += 1
            if name in members:
                node.twice[name] = start
            member = members[name] = SyntaxMember(start, self._value(depth + 1))
            node.value[name] = member.node.value
            self._comma("}")
        self._at += 1
        node.end = self._at
        return node

    def _array(self, depth: int) -> SyntaxNode:
        node = SyntaxNode([], self._at, items=[])
        items = node.items or []
        node.items = items
        self._at += 1
        while self._skip() != "]":
            item = self._value(depth + 1)
            items.append(item)
            node.value.append(item.value)
            self._comma("]")
        self._at += 1
        node.end = self._at
        return node

    def _comma(self, closing: str) -> None:
        """Read the comma that may follow a member or an element."""
        head = self._skip()
        if head == ",":
            self._at += 1
        elif head != closing:
            self._fail(f"a comma or {closing} is missing here")


def parse_yaml(text: str) -> SyntaxNode:
    """Parse a text of YAML; of tags only the usual ones are known, and keys are texts.

    Raises:
        BadSyntax: it is none, or says what no configuration does.
        ConfigError: PyYAML is missing.
    """
    try:
        root = compose_yaml(text, MAX_DEPTH)
        return SyntaxNode({}, 0, members={}) if root is None else _NodeBuilder().node(root, 0)
    except BadYaml as error:
        raise BadSyntax(str(error), error.line, error.column) from None
    except UsageError as error:
        raise ConfigError(str(error)) from None


class _NodeBuilder:
    """Builds the nodes of every configuration from those of PyYAML."""

    def __init__(self) -> None:
        self._parts = 0

    def node(self, part: Any, depth: int) -> SyntaxNode:
        """Build one part with all that it holds."""
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            raise make_yaml_error(part, TOO_LARGE_OR_DEEP)
        start, end = part.start_mark.index, part.end_mark.index
        kind = get_kind(part)
        if kind == "map":
            return self._mapping(part, start, end, depth)
        if kind == "seq":
            items = [self.node(one, depth + 1) for one in part.value]
            return SyntaxNode([one.value for one in items], start, end, items=items)
        return SyntaxNode(read_scalar(part), start, end)

    def _mapping(self, part: Any, start: int, end: int, depth: int) -> SyntaxNode:
        members: dict[str, SyntaxMember] = {}
        twice: dict[str, int] = {}
        for key, value in part.value:
            name, at = get_key(key), key.start_mark.index
            if name in members:
                twice[name] = at
            members[name] = SyntaxMember(at, self.node(value, depth + 1))
        plain = {name: member.node.value for name, member in members.items()}
        return SyntaxNode(plain, start, end, members=members, twice=twice)
