"""Scan of a module with libcst: imports of foreign packages, strings that name them, and tricks."""

import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst
import libcst.metadata as meta

from isthmus.migration.edits import LineTable, Span
from isthmus.migration.rules import FOREIGN_SUBMODULES, PATCHING_CALLS, is_foreign_path


@dataclass(frozen=True, slots=True)
class ImportedName:
    """A name in an import statement."""

    name: str
    alias: str | None
    span: Span

    @property
    def is_foreign(self) -> bool:
        """Whether it is of one of the foreign packages."""
        return self.name.split(".")[0] in FOREIGN_SUBMODULES


@dataclass(frozen=True, slots=True)
class ImportStatement:
    """An import of something foreign: ``from module import names``, or ``import names``."""

    line: int
    span: Span
    module: str | None
    """The module of a ``from``; None for ``import a.b``."""
    module_span: Span | None
    names: tuple[ImportedName, ...]
    indent: str | None
    """Its indentation where it has a line to itself; None beside others on a line."""
    block: int
    """The block of statements that it stands in."""


@dataclass(frozen=True, slots=True)
class ForeignString:
    """A string that is the path of a foreign module or of a name in it."""

    line: int
    value: str
    span: Span
    is_target: bool
    """It is the argument of a call that imports or patches what it names."""


@dataclass(slots=True)
class ModuleScan:
    """All of a module that the migration has to know."""

    imports: list[ImportStatement] = field(default_factory=list)
    strings: list[ForeignString] = field(default_factory=list)
    obstacles: list[tuple[int, str]] = field(default_factory=list)
    """Lines, and the trick there for which the file is left alone."""
    imported: set[str] = field(default_factory=set)
    """Top-level packages that the module imports."""

    def list_roots(self) -> set[str]:
        """Names that plain imports of foreign packages bind."""
        return {
            each.alias or each.name.partition(".")[0]
            for statement in self.imports
            if statement.module is None
            for each in statement.names
            if each.is_foreign
        }


def parse_module(text: str) -> meta.MetadataWrapper:
    """Parse a source text.

    Raises:
        ValueError: it is not Python that libcst or Python's tokenizer reads; with the line.
    """
    try:
        module = cst.parse_module(text)
        for _ in tokenize.generate_tokens(io.StringIO(text).readline):
            pass
    except cst.ParserSyntaxError as error:
        raise ValueError(f"it does not parse, at line {error.raw_line}") from error
    except (tokenize.TokenError, SyntaxError, RecursionError) as error:
        raise ValueError(f"it does not parse: {error.args[0] if error.args else error}") from error
    return meta.MetadataWrapper(module, unsafe_skip_copy=True)


def scan_module(wrapper: meta.MetadataWrapper, text: str) -> ModuleScan:
    """Find all that concerns foreign packages in a parsed module."""
    scanner = _Scanner(LineTable(text))
    wrapper.visit(scanner)
    return scanner.found


def get_dotted_name(node: cst.BaseExpression | None) -> str | None:
    """``a.b.c`` of a chain of names; None for other expressions."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        front = get_dotted_name(node.value)
        return None if front is None else f"{front}.{node.attr.value}"
    return None


class _Scanner(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (meta.PositionProvider, meta.ParentNodeProvider)

    def __init__(self, lines: LineTable) -> None:
        super().__init__()
        self.lines = lines
        self.found = ModuleScan()
        self._targets: set[cst.CSTNode] = set()

    def _span(self, node: cst.CSTNode) -> Span:
        at = self.get_metadata(meta.PositionProvider, node)
        return Span(
            self.lines.offset_of(at.start.line, at.start.column),
            self.lines.offset_of(at.end.line, at.end.column),
        )

    def _line(self, node: cst.CSTNode) -> int:
        return int(self.get_metadata(meta.PositionProvider, node).start.line)

    def visit_Import(self, node: cst.Import) -> None:  # noqa: N802 - libcst calls it so
        names = self._read_names(node.names)
        self.found.imported.update(each.name.split(".")[0] for each in names)
        if any(each.name.split(".")[0] in FOREIGN_SUBMODULES for each in names):
            self._add_import(node, None, None, names)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:  # noqa: N802 - libcst calls it so
        module = get_dotted_name(node.module)
        if node.relative or module is None or node.module is None:
            return
        head = module.split(".")[0]
        self.found.imported.add(head)
        if head not in FOREIGN_SUBMODULES:
            return
        if isinstance(node.names, cst.ImportStar):
            self._add_obstacle(node, f"from {module} import *")
            return
        self._add_import(node, module, self._span(node.module), self._read_names(node.names))

    def _read_names(self, names: Sequence[cst.ImportAlias]) -> tuple[ImportedName, ...]:
        return tuple(
            ImportedName(
                get_dotted_name(each.name) or "",
                None if each.asname is None else get_dotted_name(each.asname.name),
                self._span(each.name),
            )
            for each in names
        )

    def _add_import(
        self,
        node: cst.Import | cst.ImportFrom,
        module: str | None,
        module_span: Span | None,
        names: tuple[ImportedName, ...],
    ) -> None:
        statement = self.get_metadata(meta.ParentNodeProvider, node)
        block = self.get_metadata(meta.ParentNodeProvider, statement)
        line = self._line(node)
        front = self.lines.text_of(line)[
            : self.get_metadata(meta.PositionProvider, node).start.column
        ]
        alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
        self.found.imports.append(
            ImportStatement(
                line,
                self._span(node),
                module,
                module_span,
                names,
                front if alone and not front.strip() else None,
                id(block),
            )
        )

    def _add_obstacle(self, node: cst.CSTNode, words: str) -> None:
        place = (self._line(node), words)
        if place not in self.found.obstacles:
            self.found.obstacles.append(place)

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - libcst calls it so
        name = get_dotted_name(node.func) or ""
        if not node.args:
            return
        if name.split(".")[-1] in PATCHING_CALLS:
            self._targets.add(node.args[0].value)
        first = node.args[0].value
        named_by_string = (
            isinstance(first, cst.SimpleString) and first.evaluated_value == "sys.modules"
        )
        if named_by_string and any(map(_names_foreign_module, node.args[1:])):
            self._add_obstacle(node, "sys.modules")

    def visit_Attribute(self, node: cst.Attribute) -> None:  # noqa: N802 - libcst calls it so
        if get_dotted_name(node) != "sys.modules":
            return
        statement: cst.CSTNode = node
        while not isinstance(statement, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            statement = self.get_metadata(meta.ParentNodeProvider, statement)
        if _names_foreign_module(_without_body(statement)):
            self._add_obstacle(node, "sys.modules")

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802 - libcst calls it so
        value = node.evaluated_value
        if not isinstance(value, str):
            return
        is_target = node in self._targets
        if is_foreign_path(value) or (is_target and value in FOREIGN_SUBMODULES):
            self.found.strings.append(
                ForeignString(self._line(node), value, self._span(node), is_target)
            )


def _without_body(node: cst.CSTNode) -> cst.CSTNode:
    if isinstance(
        node, (cst.FunctionDef, cst.ClassDef, cst.If, cst.For, cst.While, cst.With, cst.Try)
    ):
        return node.with_changes(body=cst.IndentedBlock([]), **_no_branches(node))
    return node


def _no_branches(node: cst.CSTNode) -> dict[str, object]:
    if isinstance(node, (cst.If, cst.For, cst.While)):
        return {"orelse": None}
    if isinstance(node, cst.Try):
        return {"handlers": [], "orelse": None, "finalbody": cst.Finally(cst.IndentedBlock([]))}
    return {}


class _ForeignNames(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802 - libcst calls it so
        value = node.evaluated_value
        if isinstance(value, str):
            self.found |= value in FOREIGN_SUBMODULES or is_foreign_path(value)


def _names_foreign_module(node: cst.CSTNode) -> bool:
    visitor = _ForeignNames()
    node.visit(visitor)
    return visitor.found
