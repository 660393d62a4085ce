"""Text of a module on the façades, parsed: places of nodes, and what names mean."""

from collections.abc import Collection, Iterator
from typing import Any

import libcst as cst
import libcst.metadata as meta

from isthmus.migration.edits import LineTable, Span
from isthmus.migration.scan import parse_module


class FacadeReason(Exception):
    """A module stays at the façade; its message says why.

    Attributes:
        line: the line that decides it.
    """

    def __init__(self, line: int, words: str) -> None:
        super().__init__(words)
        self.line = line


class ModuleText:
    """A parsed module.

    Raises:
        ValueError: it does not parse.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        wrapper = parse_module(text)
        self.tree = wrapper.module
        self._lines = LineTable(text)
        self._positions = wrapper.resolve(meta.PositionProvider)
        self._names = wrapper.resolve(meta.QualifiedNameProvider)

    def line_of(self, node: cst.CSTNode) -> int:
        """The line that a node begins on."""
        return int(self._positions[node].start.line)

    def span_of(self, node: cst.CSTNode) -> Span:
        """The offsets of a node."""
        at = self._positions[node]
        return Span(
            self._lines.offset_of(at.start.line, at.start.column),
            self._lines.offset_of(at.end.line, at.end.column),
        )

    def span_of_lines(self, node: cst.CSTNode) -> Span:
        """The offsets of the whole lines of a statement, with the last line break."""
        at = self._positions[node]
        start = self._lines.offset_of(at.start.line, 0)
        end = self._lines.end_of(at.end.line)
        size = 2 if self.text[end : end + 2] == "\r\n" else 1
        return Span(start, min(end + size, len(self.text)))

    def slice(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        span = self.span_of(node)
        return self.text[span.start : span.end]

    def refuse(self, node: cst.CSTNode, words: str) -> FacadeReason:
        """The reason that a node gives to stay at the façade."""
        return FacadeReason(self.line_of(node), words)

    def find_meaning(self, node: cst.CSTNode) -> str | None:
        """The full name that an expression has by an import or as a builtin; None if it has none or several."""
        found: Any = self._names.get(node, set())
        names = found() if callable(found) else found
        if len(names) != 1:
            return None
        (name,) = names
        if name.source is meta.QualifiedNameSource.LOCAL:
            return None
        return str(name.name)

    def is_builtin(self, node: cst.CSTNode, names: Collection[str]) -> bool:
        """Whether an expression is one of Python's builtins of these names."""
        meaning = self.find_meaning(node) or ""
        return meaning.startswith("builtins.") and meaning.removeprefix("builtins.") in names


def walk_nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it."""
    yield node
    for child in node.children:
        yield from walk_nodes(child)


def read_text_literal(node: cst.BaseExpression | None) -> str | None:
    """The value of a plain string literal; None for anything else."""
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return node.evaluated_value
    return None


def is_number_literal(node: cst.CSTNode) -> bool:
    """Whether a node is a number literal other than zero."""
    if not isinstance(node, (cst.Integer, cst.Float)):
        return False
    return bool(node.evaluated_value)


def is_constant(node: cst.CSTNode) -> bool:
    """Whether a node is a number, a text, True, False or None."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node = node.expression
    if isinstance(node, cst.Name):
        return node.value in {"True", "False", "None"}
    return isinstance(node, (cst.Integer, cst.Float)) or (
        isinstance(node, cst.BaseExpression) and read_text_literal(node) is not None
    )
