"""Judgement of a module on the façades: its edits to native isthmus, or the line that keeps it there."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import libcst as cst

from isthmus.migration.edits import TextEdits
from isthmus.migration.native.body_judge import DISPLAYS, BodyJudge, list_targets
from isthmus.migration.native.call_edits import CallEdits, read_keywords
from isthmus.migration.native.item_judge import ItemJudge, ItemKey
from isthmus.migration.native.module_text import (
    FacadeReason,
    ModuleText,
    read_text_literal,
    walk_nodes,
)
from isthmus.migration.native.vocabulary import (
    FACADE_ROOT,
    FOREIGN_NAMES,
    SERVER_OPTIONS,
    ForeignName,
    Library,
    Role,
)
from isthmus.migration.rules import FOREIGN_SUBMODULES, is_foreign_path
from isthmus.migration.scan import get_dotted_name

ITEM_KINDS = frozenset({"tool", "resource", "prompt"})
HTTP_NAMES: Mapping[Library, frozenset[str]] = {
    Library.FASTMCP: frozenset({"http", "streamable-http"}),
    Library.MCP1: frozenset({"streamable-http"}),
    Library.MCP2: frozenset({"streamable-http"}),
}


class Binding(NamedTuple):
    """A name that a module imports from a façade."""

    foreign: ForeignName
    is_alias: bool


@dataclass(slots=True)
class Judgement:
    """The result for one module.

    Attributes:
        edits: those that make it native.
        reason: why it stays at the façade; None if it can be native.
        items: what it offers, by the name of the server.
        uses_facade: it imports names of a façade, or a server that another module makes.
        exports: names that mean something else when it is native.
    """

    edits: TextEdits = field(default_factory=TextEdits)
    reason: FacadeReason | None = None
    items: list[tuple[str, ItemKey]] = field(default_factory=list)
    uses_facade: bool = False
    exports: set[str] = field(default_factory=set)


def find_servers(module: ModuleText) -> dict[str, Library]:
    """The servers that a module makes at its top level, by the names that they are assigned to."""
    found: dict[str, Library] = {}
    for node in _list_top_statements(module):
        target, value = _split_assignment(node)
        if isinstance(target, cst.Name) and isinstance(value, cst.Call):
            foreign = FOREIGN_NAMES.get(module.find_meaning(value.func) or "")
            if foreign is not None and foreign.role is Role.SERVER and foreign.library is not None:
                found[target.value] = foreign.library
    return found


def judge_module(module: ModuleText, imported: Mapping[str, Library]) -> Judgement:
    """Judge a module.

    Args:
        module: the module.
        imported: servers that it imports from other modules of the project, by its names for them.
    """
    judge = _ModuleJudge(module, imported)
    try:
        judge.judge()
    except FacadeReason as reason:
        judge.found.reason = reason
    return judge.found


def _list_top_statements(module: ModuleText) -> Iterator[cst.CSTNode]:
    """The small statements at the top level of a module."""
    for line in module.tree.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body


class _ModuleJudge:
    def __init__(self, module: ModuleText, imported: Mapping[str, Library]) -> None:
        self.found = Judgement()
        self._module = module
        self._imported = imported
        self._servers: dict[str, Library] = {**imported, **find_servers(module)}
        self._bindings: dict[str, Binding] = {}
        self._known: set[int] = set()
        self._calls = CallEdits(module, self.found.edits)

    def judge(self) -> None:
        """Judge the module.

        Raises:
            FacadeReason: it stays at the façade.
        """
        self.found.uses_facade = bool(self._imported)
        self._read_imports()
        self.found.exports |= self._bindings.keys()
        self._check_strings()
        for node in walk_nodes(self._module.tree):
            match node:
                case cst.Assign() | cst.AnnAssign():
                    self._judge_server(node)
                case cst.Call():
                    self._judge_run(node)
        self._know_errors()
        self._judge_items()
        self._check_names()

    # Imports

    def _read_imports(self) -> None:
        top = {id(node) for node in _list_top_statements(self._module)}
        for line in walk_nodes(self._module.tree):
            if not isinstance(line, cst.SimpleStatementLine | cst.SimpleStatementSuite):
                continue
            for node in line.body:
                if isinstance(node, cst.Import):
                    self._check_plain_import(node)
                elif isinstance(node, cst.ImportFrom) and _is_foreign(node):
                    self.found.uses_facade = True
                    is_alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
                    if id(node) not in top or not is_alone:
                        raise self._module.refuse(
                            node, "this import is not at the top of the module by itself"
                        )
                    self._read_import(node)

    def _check_plain_import(self, node: cst.Import) -> None:
        for each in node.names:
            name = get_dotted_name(each.name) or ""
            if name.startswith(FACADE_ROOT) or name.split(".")[0] in FOREIGN_SUBMODULES:
                self.found.uses_facade = True
                raise self._module.refuse(
                    node, "a whole module is imported here: import the names that are used"
                )

    def _read_import(self, node: cst.ImportFrom) -> None:
        home = get_dotted_name(node.module)
        if isinstance(node.names, cst.ImportStar) or node.module is None:
            raise self._module.refuse(node, "it is not said what is imported here")
        roles: set[Role] = set()
        for each in node.names:
            name = get_dotted_name(each.name)
            foreign = FOREIGN_NAMES.get(f"{home}.{name}")
            if foreign is None:
                raise self._module.refuse(node, f"{name} has no native spelling")
            alias = None if each.asname is None else get_dotted_name(each.asname.name)
            bound = alias or name or ""
            if bound in self._bindings:
                raise self._module.refuse(node, f"{bound} is imported twice")
            self._bindings[bound] = Binding(foreign, is_alias=alias is not None)
            roles.add(foreign.role)
            if foreign.role.value and foreign.role.value != name:
                self.found.edits.replace(self._module.span_of(each.name), foreign.role.value)
        if Role.TOOL_ANNOTATIONS not in roles:
            self.found.edits.replace(self._module.span_of(node.module), "isthmus")
        elif len(roles) == 1:
            self.found.edits.replace(self._module.span_of_lines(node), "")
        else:
            raise self._module.refuse(node, "ToolAnnotations is imported together with other names")

    # Names and strings

    def _check_strings(self) -> None:
        """See that no text names a module of the façades, or a tracked name in an annotation."""
        for node in walk_nodes(self._module.tree):
            if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
                text = node.evaluated_value
                if text.startswith(FACADE_ROOT) or is_foreign_path(text):
                    raise self._module.refuse(node, f'"{text}" names a module of another library')
            if isinstance(node, cst.Annotation):
                for each in walk_nodes(node):
                    words = read_text_literal(each) if isinstance(each, cst.SimpleString) else None
                    if words and not self._tracked.isdisjoint(re.findall(r"\w+", words)):
                        raise self._module.refuse(
                            each, "an annotation is a text here: write it without quotes"
                        )

    @property
    def _tracked(self) -> set[str]:
        return {*self._bindings, *self._servers}

    def _check_names(self) -> None:
        """See that all uses of names of the façades were understood, and that no native name is taken."""
        native = {
            binding.foreign.role.value
            for name, binding in self._bindings.items()
            if not binding.is_alias and binding.foreign.role.value
        }
        for node in self._list_names():
            name = node.value
            if name in self._tracked and id(node) not in self._known:
                raise self._module.refuse(node, f"this use of {name} has no native spelling")
            if name in native and name not in self._bindings:
                raise self._module.refuse(
                    node, f"the module has something else that is called {name}"
                )
        for bound, statement in self._list_other_imports():
            if bound in self._tracked | native and bound not in self._imported:
                raise self._module.refuse(statement, f"{bound} is also imported from elsewhere")

    def _list_names(self) -> Iterator[cst.Name]:
        """Names that stand for themselves: no attributes, keywords or parts of imports."""
        skipped: set[int] = set()
        for node in walk_nodes(self._module.tree):
            match node:
                case cst.Import() | cst.ImportFrom():
                    skipped |= {id(each) for each in walk_nodes(node)}
                case cst.Attribute():
                    skipped.add(id(node.attr))
                case cst.Arg() if node.keyword is not None:
                    skipped.add(id(node.keyword))
                case cst.Name() if id(node) not in skipped:
                    yield node

    def _list_other_imports(self) -> Iterator[tuple[str, cst.CSTNode]]:
        """Names that imports of other packages bind."""
        for node in walk_nodes(self._module.tree):
            if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(
                node.names, cst.ImportStar
            ):
                continue
            if isinstance(node, cst.ImportFrom) and _is_foreign(node):
                continue
            for each in node.names:
                name = get_dotted_name(each.name if each.asname is None else each.asname.name)
                yield (name or "").partition(".")[0], node

    # Servers

    def _judge_server(self, node: cst.Assign | cst.AnnAssign) -> None:
        """Rewrite ``mcp = FastMCP("name")``, also with an annotation."""
        target, call = _split_assignment(node)
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name):
            return
        binding = self._bindings.get(call.func.value)
        if binding is None or binding.foreign.role is not Role.SERVER:
            return
        if not isinstance(target, cst.Name) or target.value not in find_servers(self._module):
            return
        self._check_options(call, self._servers[target.value])
        names: list[cst.BaseExpression] = [call.func]
        if isinstance(node, cst.AnnAssign):
            names.append(node.annotation.annotation)
        for each in names:
            if not isinstance(each, cst.Name) or each.value != call.func.value:
                raise self._module.refuse(each, "this type of the server has no native spelling")
            if not binding.is_alias:
                self.found.edits.replace(self._module.span_of(each), "Server")
            self._known.add(id(each))
        self._calls.rewrite(call, {}, ["sanitise=None"])
        self._known.add(id(target))

    def _check_options(self, call: cst.Call, library: Library) -> None:
        """See that the options of a server's constructor are the same natively.

        Raises:
            FacadeReason: one is not.
        """
        given = read_keywords(call, self._module.refuse, positional=("name",))
        for name, argument in given.items():
            if name not in SERVER_OPTIONS[library]:
                raise self._module.refuse(argument, f"{name} has no native spelling")
            if name != "instructions" and not read_text_literal(argument.value):
                raise self._module.refuse(argument, f"{name} is not a plain text")
        if "name" not in given:
            raise self._module.refuse(call, "a native server has a name")

    def _judge_run(self, call: cst.Call) -> None:
        """Rewrite ``mcp.run(…)``."""
        function = call.func
        if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
            return
        library = self._servers.get(function.value.value)
        names = {"run", "run_async"} if library is Library.FASTMCP else {"run"}
        if library is None or function.attr.value not in names:
            return
        given = read_keywords(call, self._module.refuse, positional=("transport",))
        transport = "stdio"
        changed: dict[cst.Arg, list[str]] = {}
        for name, argument in given.items():
            if name == "transport":
                transport = read_text_literal(argument.value) or ""
                if transport != "stdio" and transport not in HTTP_NAMES[library]:
                    raise self._module.refuse(argument, "this transport has no native spelling")
                if transport == "streamable-http":
                    changed[argument] = [
                        '"http"' if argument.keyword is None else 'transport="http"'
                    ]
            elif name == "show_banner" and library is Library.FASTMCP:
                changed[argument] = []
            elif name not in {"host", "port"} or library is Library.MCP1:
                raise self._module.refuse(argument, f"{name} has no native spelling")
        if transport == "stdio" and not {"host", "port"}.isdisjoint(given):
            raise self._module.refuse(call, "host and port are for HTTP")
        self._calls.rewrite(call, changed)
        self._known.add(id(function.value))

    # Items

    def _know_errors(self) -> None:
        """Understand ``raise ToolError(text)`` and ``except ToolError``, wherever they stand."""
        names = self._list_bound(Role.TOOL_ERROR)
        for node in walk_nodes(self._module.tree):
            match node:
                case cst.Raise(exc=cst.Call() as call):
                    plain = len(call.args) == 1 and call.args[0].keyword is None
                    found: cst.CSTNode | None = (
                        call.func if plain and not call.args[0].star else None
                    )
                case cst.ExceptHandler():
                    found = node.type
                case _:
                    continue
            if isinstance(found, cst.Name) and found.value in names:
                self._known.add(id(found))

    def _list_bound(self, role: Role) -> frozenset[str]:
        return frozenset(name for name, each in self._bindings.items() if each.foreign.role is role)

    def _judge_items(self) -> None:
        decorated: list[tuple[cst.FunctionDef, cst.Decorator, str, str]] = []
        for node in self._module.tree.body:
            if not isinstance(node, cst.FunctionDef):
                continue
            for decorator in node.decorators:
                found = self._find_offer(decorator)
                if found is not None:
                    if len(node.decorators) > 1:
                        raise self._module.refuse(
                            decorator, "other decorators stand beside this one"
                        )
                    decorated.append((node, decorator, *found))
        functions = self._list_plain_functions()
        errors = self._list_bound(Role.TOOL_ERROR)
        bodies = BodyJudge(
            self._module,
            functions=functions,
            containers=self._list_containers(),
            error_name=next(iter(errors), None),
            edits=self.found.edits,
            known=self._known,
        )
        for function, decorator, server, kind in decorated:
            judge = ItemJudge(
                self._module,
                self._servers[server],
                context_names=self._list_bound(Role.CONTEXT),
                annotations_names=self._list_bound(Role.TOOL_ANNOTATIONS),
                bodies=bodies,
                edits=self.found.edits,
                known=self._known,
            )
            self.found.items.append((server, judge.judge(function, decorator, kind)))
            self._check_context_uses(function)

    def _find_offer(self, decorator: cst.Decorator) -> tuple[str, str] | None:
        """The server and the kind of a decorator such as ``@mcp.tool()``."""
        expression = decorator.decorator
        function = expression.func if isinstance(expression, cst.Call) else expression
        if not isinstance(function, cst.Attribute) or not isinstance(function.value, cst.Name):
            return None
        server, kind = function.value.value, function.attr.value
        if server not in self._servers or kind not in ITEM_KINDS:
            return None
        self._known.add(id(function.value))
        return server, kind

    def _check_context_uses(self, function: cst.FunctionDef) -> None:
        """See that the context of a function is used in ways that were understood.

        Raises:
            FacadeReason: it is not.
        """
        contexts = self._list_bound(Role.CONTEXT)
        for parameter in (*function.params.params, *function.params.kwonly_params):
            kind = None if parameter.annotation is None else parameter.annotation.annotation
            if not isinstance(kind, cst.Name) or kind.value not in contexts:
                continue
            self.found.exports.add(function.name.value)
            for node in self._list_names_below(function):
                if node.value == parameter.name.value and id(node) not in self._known:
                    raise self._module.refuse(
                        node, "this use of the context has no native spelling"
                    )

    def _list_names_below(self, function: cst.FunctionDef) -> Iterator[cst.Name]:
        inside = {id(node) for node in walk_nodes(function)}
        return (node for node in self._list_names() if id(node) in inside)

    def _list_plain_functions(self) -> dict[str, cst.FunctionDef]:
        """Functions at the top level without decorators, whose names are bound once."""
        found = {
            node.name.value: node
            for node in self._module.tree.body
            if isinstance(node, cst.FunctionDef) and not node.decorators
        }
        return {name: node for name, node in found.items() if self._count_bindings(name) == 1}

    def _list_containers(self) -> dict[str, type[cst.CSTNode]]:
        """Names at the top level that are bound once, to a display or a text."""
        found: dict[str, type[cst.CSTNode]] = {}
        for node in _list_top_statements(self._module):
            value, targets = None, []
            if isinstance(node, cst.Assign):
                value, targets = node.value, [each.target for each in node.targets]
            elif isinstance(node, cst.AnnAssign):
                value, targets = node.value, [node.target]
            if (
                len(targets) == 1
                and isinstance(targets[0], cst.Name)
                and isinstance(value, DISPLAYS)
            ):
                found[targets[0].value] = type(value)
        return {name: kind for name, kind in found.items() if self._count_bindings(name) == 1}

    def _count_bindings(self, name: str) -> int:
        """How often a name is bound anywhere in the module."""
        return self._bound[name]

    @cached_property
    def _bound(self) -> Counter[str]:
        """The names that the module binds, in any scope, by how often."""
        found: Counter[str] = Counter()
        for node in walk_nodes(self._module.tree):
            match node:
                case cst.FunctionDef() | cst.ClassDef() | cst.Param():
                    found[node.name.value] += 1
                case cst.MatchAs() | cst.MatchStar() if node.name is not None:
                    found[node.name.value] += 1
                case cst.Del() | cst.AsName():
                    found.update(
                        each.value for each in walk_nodes(node) if isinstance(each, cst.Name)
                    )
                case _:
                    found.update(each.value for each in list_targets(node))
        found.update(bound for bound, _ in self._list_other_imports())
        return found


def _split_assignment(
    node: cst.CSTNode,
) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """The target and the value of an assignment to one target; nothing for other statements."""
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        return node.targets[0].target, node.value
    if isinstance(node, cst.AnnAssign):
        return node.target, node.value
    return None, None


def _is_foreign(node: cst.ImportFrom) -> bool:
    """Whether names of a façade or of a foreign package are imported."""
    home = get_dotted_name(node.module) or ""
    is_facade = f"{home}.".startswith(f"{FACADE_ROOT}.")
    if home == "isthmus" and not isinstance(node.names, cst.ImportStar):
        is_facade = any(get_dotted_name(each.name) == "compat" for each in node.names)
    return not node.relative and (is_facade or home.split(".")[0] in FOREIGN_SUBMODULES)
