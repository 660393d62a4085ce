"""JSON with comments and trailing commas, read so that every part knows where it stands.

Our own reader, since an error has to name the line, and a change must leave everything else of the
text as it is.
"""

import json
import re
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct

__all__ = ["BadSyntax", "Key", "Member", "Node", "at", "parse", "place", "trivia"]

Key: TypeAlias = str | int
"""A step on the way to a part: a member's name, or an element's number."""

DEEPEST = 100
"""Levels of nesting."""

TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
WORDS = {"true": True, "false": False, "null": None}
WORD = re.compile(r"[A-Za-z_]\w*")


class BadSyntax(ValueError):
    """The text is not what it should be.

    Attributes:
        line: where, from 1.
        column: where in it, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Node(Struct):
    """One value and where it stands.

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
    members: "dict[str, Member] | None" = None
    items: "list[Node] | None" = None
    twice: dict[str, int] = {}


class Member(Struct):
    """A member of an object: where its name begins, and its value."""

    start: int
    node: Node


def place(text: str, offset: int) -> tuple[int, int]:
    """The line and column of a character, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def trivia(text: str, offset: int) -> int:
    """Where the blanks and comments that begin at a character end."""
    found = TRIVIA.match(text, offset)
    return found.end() if found else offset


def parse(text: str) -> Node:
    """The value that a text is.

    Raises:
        BadSyntax: it is none; the message says what was expected, and the error where.
    """
    return _Reader(text).whole()


def at(node: Node, keys: tuple[Key, ...]) -> tuple[int, Node] | None:
    """A part of a value: where its name begins (or it itself), and what it is; None without."""
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


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0

    def whole(self) -> Node:
        self._skip()
        found = self._value(0)
        self._skip()
        if self._at < len(self._text):
            self._fail("the text should end here")
        return found

    def _skip(self) -> str:
        """Pass blanks and comments, and tell the character after them."""
        self._at = trivia(self._text, self._at)
        if self._text.startswith("/*", self._at):
            self._fail("this comment does not end")
        return self._text[self._at : self._at + 1]

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise BadSyntax(message, *place(self._text, self._at if offset is None else offset))

    def _value(self, depth: int) -> Node:
        head = self._skip()
        if depth > DEEPEST:
            self._fail(f"this is nested more than {DEEPEST} levels deep")
        if head == "{":
            return self._object(depth)
        if head == "[":
            return self._array(depth)
        node = Node(None, self._at)
        node.value = self._string() if head == '"' else self._atom(head)
        node.end = self._at
        return node

    def _string(self) -> str:
        found = STRING.match(self._text, self._at)
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
        word = WORD.match(self._text, self._at)
        if word and word[0] in WORDS:
            self._at = word.end()
            return WORDS[word[0]]
        number = NUMBER.match(self._text, self._at)
        if number is None:
            self._fail("a value is missing here" if not head or head in ",}]:" else "no value")
        try:
            value = float(number[0]) if number[1] or number[2] else int(number[0])
        except ValueError:  # Python converts no integer of many thousand digits
            self._fail("this number is too long")
        self._at = number.end()
        return value

    def _object(self, depth: int) -> Node:
        node = Node({}, self._at, members={}, twice={})
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
            member = members[name] = Member(start, self._value(depth + 1))
            node.value[name] = member.node.value
            self._comma("}")
        self._at += 1
        node.end = self._at
        return node

    def _array(self, depth: int) -> Node:
        node = Node([], self._at, items=[])
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
        """What may follow a member or an element."""
        head = self._skip()
        if head == ",":
            self._at += 1
        elif head != closing:
            self._fail(f"a comma or {closing} is missing here")
