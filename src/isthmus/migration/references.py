"""References through a plain import: ``mcp.types.Tool`` after ``import mcp.types``."""

import re
from collections.abc import Collection
from dataclasses import dataclass

import libcst as cst
import libcst.metadata as meta

from isthmus.migration.edits import LineTable, Span
from isthmus.migration.scan import get_dotted_name

_DOTTED_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)+")


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a foreign package's name.

    Attributes:
        root: the name in the module that it begins with.
        path: the name that is meant, from the foreign package on.
        is_certain: nothing else in the module is called as its root is.
    """

    line: int
    span: Span
    root: str
    path: str
    is_certain: bool


def find_references(
    wrapper: meta.MetadataWrapper, text: str, roots: Collection[str]
) -> list[Reference]:
    """Find the uses of names that plain imports of foreign packages bind."""
    if not roots:
        return []
    collector = _Collector(LineTable(text), roots)
    wrapper.visit(collector)
    return collector.found


class _Collector(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (meta.PositionProvider, meta.QualifiedNameProvider, meta.ScopeProvider)

    def __init__(self, lines: LineTable, roots: Collection[str]) -> None:
        super().__init__()
        self.found: list[Reference] = []
        self._lines = lines
        self._roots = roots
        self._annotations = 0

    def visit_Annotation(self, node: cst.Annotation) -> None:  # noqa: N802 - libcst calls it so
        del node
        self._annotations += 1

    def leave_Annotation(self, original_node: cst.Annotation) -> None:  # noqa: N802 - libcst calls it so
        del original_node
        self._annotations -= 1

    def visit_Subscript(self, node: cst.Subscript) -> None:  # noqa: N802 - libcst calls it so
        if self._holds_no_types(node):
            self._annotations -= 1

    def leave_Subscript(self, original_node: cst.Subscript) -> None:  # noqa: N802 - libcst calls it so
        if self._holds_no_types(original_node):
            self._annotations += 1

    @staticmethod
    def _holds_no_types(node: cst.Subscript) -> bool:
        """Whether strings in it are values, as in ``Literal["mcp.types"]``."""
        name = get_dotted_name(node.value) or ""
        return name.rpartition(".")[2] in {"Literal", "Annotated"}

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802 - libcst calls it so
        """Collect the names in a type that is written as a string."""
        if self._annotations <= 0 or not isinstance(node.evaluated_value, str):
            return
        scope = self.get_metadata(meta.ScopeProvider, node, None)
        at = self.get_metadata(meta.PositionProvider, node).start
        if scope is None:
            return
        for found in _DOTTED_NAME.finditer(node.value):
            dotted = found.group()
            root = dotted.partition(".")[0]
            if root not in self._roots:
                continue
            names = scope.get_qualified_names_for(dotted)
            imported = [one.name for one in names if one.source is meta.QualifiedNameSource.IMPORT]
            if not imported or "\n" in node.value:
                continue
            start = self._lines.offset_of(at.line, at.column) + found.start()
            kinds = {type(each) for each in scope[root]}
            span = Span(start, start + len(dotted))
            self.found.append(
                Reference(at.line, span, root, imported[0], kinds == {meta.ImportAssignment})
            )

    def visit_Import(self, node: cst.Import) -> bool:  # noqa: N802 - libcst calls it so
        del node
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:  # noqa: N802 - libcst calls it so
        del node
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802 - libcst calls it so
        return not self._collect(node)

    def visit_Name(self, node: cst.Name) -> None:  # noqa: N802 - libcst calls it so
        self._collect(node)

    def _collect(self, node: cst.Attribute | cst.Name) -> bool:
        dotted = get_dotted_name(node)
        if dotted is None or dotted.partition(".")[0] not in self._roots:
            return False
        root = dotted.partition(".")[0]
        names = self.get_metadata(meta.QualifiedNameProvider, node, set())
        imported = [each.name for each in names if each.source is meta.QualifiedNameSource.IMPORT]
        kinds = self._list_bindings(node, root)
        if imported and meta.ImportAssignment in kinds:
            at = self.get_metadata(meta.PositionProvider, node)
            span = Span(
                self._lines.offset_of(at.start.line, at.start.column),
                self._lines.offset_of(at.end.line, at.end.column),
            )
            self.found.append(
                Reference(at.start.line, span, root, imported[0], kinds == {meta.ImportAssignment})
            )
        return True

    def _list_bindings(self, node: cst.CSTNode, root: str) -> set[type[meta.BaseAssignment]]:
        """How a name is bound where it is used: by imports, by other statements, or by both."""
        first: cst.CSTNode = node
        while isinstance(first, cst.Attribute):
            first = first.value
        scope = self.get_metadata(meta.ScopeProvider, first, None)
        return set() if scope is None else {type(each) for each in scope[root]}
