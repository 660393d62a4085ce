"""Bodies of functions: what is said to the client there, and whether an exception can leave them.

The text of an exception that leaves a tool is told to the client by the libraries and logged by isthmus. So a
body stays at the façade if an exception that its author may count on can leave it: each construct that raises
for values of fitting types, other than ``raise ToolError(…)`` and what ``except Exception`` catches.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import libcst as cst

from isthmus.migration.edits import Span, TextEdits
from isthmus.migration.native.module_text import (
    FacadeReason,
    ModuleText,
    is_number_literal,
    read_text_literal,
    walk_nodes,
)
from isthmus.migration.native.vocabulary import (
    LOG_METHODS,
    QUIET_BUILTINS,
    QUIET_FUNCTIONS,
    QUIET_METHODS,
)

LOUD = "what may be raised here has another text natively: catch it"

QUIET_EXPRESSIONS = (
    cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.FormattedString, cst.ConcatenatedString, cst.Tuple,
    cst.List, cst.Set, cst.Dict, cst.BooleanOperation, cst.UnaryOperation, cst.Comparison, cst.IfExp, cst.ListComp,
    cst.SetComp, cst.DictComp, cst.GeneratorExp,
)  # fmt: skip
QUIET_STATEMENTS = (
    cst.Expr, cst.Pass, cst.Return, cst.Break, cst.Continue, cst.Global, cst.If, cst.For, cst.While,
)  # fmt: skip
QUIET_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.BitAnd, cst.BitOr, cst.BitXor)
QUIET_ASSIGNMENTS = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
DISPLAYS = (
    cst.Dict,
    cst.List,
    cst.Set,
    cst.SimpleString,
    cst.FormattedString,
    cst.ConcatenatedString,
)


class BodyJudge:
    """Judges the bodies of functions of one module, and makes their edits.

    Args:
        module: the module.
        functions: its plain functions, by name, each bound once.
        containers: its names that are bound once, to a display of a dictionary, a list or a set.
        error_name: what it calls fastmcp's ``ToolError``; None if it does not import it.
        edits: takes what is rewritten.
        known: takes the names in places that are understood, by identity.
    """

    def __init__(
        self,
        module: ModuleText,
        *,
        functions: Mapping[str, cst.FunctionDef],
        containers: Mapping[str, type[cst.CSTNode]],
        error_name: str | None,
        edits: TextEdits,
        known: set[int],
    ) -> None:
        self._module = module
        self._functions = functions
        self._containers = containers
        self._error_name = error_name
        self._edits = edits
        self._known = known
        self._context: str | None = None
        self._receivers: frozenset[str] = frozenset()
        self._entered: list[str] = []

    def judge(self, function: cst.FunctionDef, context: str | None) -> None:
        """Judge a function that is offered; its context is the parameter of that name.

        Raises:
            FacadeReason: it stays at the façade.
        """
        for node in walk_nodes(function.body):
            if isinstance(node, cst.Yield):
                raise self._module.refuse(node, "a generator's items are sent otherwise by isthmus")
        self._context = context
        self._receivers = self._list_receivers(function)
        self._entered = [function.name.value]
        self._visit(function.body, guarded=False)

    def _visit_all(self, node: cst.CSTNode, guarded: bool) -> None:
        for child in node.children:
            self._visit(child, guarded)

    def _visit(self, node: cst.CSTNode, guarded: bool) -> None:
        """See to a node and all below it; if it is guarded, whatever it raises is caught."""
        match node:
            case cst.Await() if self._rewrite_context_call(node, guarded):
                return
            case cst.Await():
                self._visit(node.expression, guarded)
                if not guarded and not isinstance(node.expression, cst.Call):
                    raise self._module.refuse(node, LOUD)
            case cst.Raise():
                self._visit_raise(node, guarded)
            case cst.Try():
                self._visit_try(node, guarded)
            case cst.Call() if not guarded:
                self._check_call(node)
            case cst.Assign() if not guarded:
                self._visit_assignment(node)
            case _:
                if not guarded and not self._is_quiet(node):
                    raise self._module.refuse(node, LOUD)
                if isinstance(node, (cst.Annotation, cst.Global)):
                    return
                self._visit_all(node, guarded)

    def _is_quiet(self, node: cst.CSTNode) -> bool:
        """Whether a node itself raises nothing, apart from what is below it."""
        match node:
            case cst.BinaryOperation(operator=cst.Divide() | cst.FloorDivide() | cst.Modulo()):
                quiet = is_number_literal(node.right)
            case cst.BinaryOperation():
                quiet = isinstance(node.operator, QUIET_OPERATORS)
            case cst.AugAssign():
                is_name = isinstance(node.target, cst.Name)
                quiet = is_name and isinstance(node.operator, QUIET_ASSIGNMENTS)
            case cst.AnnAssign():
                quiet = isinstance(node.target, cst.Name)
            case cst.Subscript():
                quiet = _is_slice(node)
            case cst.For():
                quiet = node.asynchronous is None and isinstance(node.target, cst.Name | cst.Tuple)
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                quiet = isinstance(node, QUIET_STATEMENTS)
            case cst.BaseExpression():
                quiet = isinstance(node, QUIET_EXPRESSIONS)
            case _:
                quiet = True  # parts of those, operators and blanks
        return quiet

    def _visit_assignment(self, node: cst.Assign) -> None:
        """See to an assignment to names, or to members of a dictionary of the module."""
        for target in (each.target for each in node.targets):
            if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
                if self._containers.get(target.value.value) is not cst.Dict or _is_slice(target):
                    raise self._module.refuse(node, LOUD)
                for element in target.slice:
                    self._visit(element, guarded=False)
            elif not isinstance(target, cst.Name):
                raise self._module.refuse(node, LOUD)
        self._visit(node.value, guarded=False)

    def _visit_raise(self, node: cst.Raise, guarded: bool) -> None:
        call = node.exc
        if self._is_tool_error(call):
            self._known.add(id(call.func))  # type: ignore[union-attr]  # _is_tool_error says that it is a call
            for argument in call.args:  # type: ignore[union-attr]  # the same
                self._visit(argument.value, guarded)
            if node.cause is not None:
                self._visit(node.cause.item, guarded)
            return
        if not guarded:
            raise self._module.refuse(node, LOUD)
        self._visit_all(node, guarded)

    def _is_tool_error(self, call: cst.BaseExpression | None) -> bool:
        """Whether an expression is ``ToolError(text)``."""
        if self._error_name is None or not isinstance(call, cst.Call):
            return False
        if not isinstance(call.func, cst.Name) or call.func.value != self._error_name:
            return False
        return len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star

    def _visit_try(self, node: cst.Try, guarded: bool) -> None:
        caught = any(
            handler.type is None
            or self._module.is_builtin(handler.type, {"Exception", "BaseException"})
            for handler in node.handlers
        )
        self._visit_all(node.body, guarded or caught)
        for handler in node.handlers:
            for each in [] if handler.type is None else walk_nodes(handler.type):
                if isinstance(each, cst.Name) and each.value == self._error_name:
                    self._known.add(id(each))
            self._visit(handler.body, guarded)
        for rest in (node.orelse, node.finalbody):
            if rest is not None:
                self._visit(rest.body, guarded)

    # Calls

    def _check_call(self, node: cst.Call) -> None:
        """See that a call raises nothing.

        Raises:
            FacadeReason: it may.
        """
        for argument in node.args:
            if argument.star:
                raise self._module.refuse(node, LOUD)
            self._visit(argument.value, guarded=False)
        function = node.func
        if self._module.is_builtin(function, QUIET_BUILTINS):
            return
        if self._module.find_meaning(function) in QUIET_FUNCTIONS:
            return
        if self._module.is_builtin(function, {"round"}) and len(node.args) == 2:
            return
        if self._module.is_builtin(function, {"min", "max"}) and len(node.args) > 1:
            return
        if isinstance(function, cst.Name) and function.value in self._functions:
            self._enter_function(function)
            return
        if isinstance(function, cst.Attribute) and self._is_quiet_method(node, function):
            return
        raise self._module.refuse(node, LOUD)

    def _enter_function(self, name: cst.Name) -> None:
        """Judge a function of the module that is called.

        Raises:
            FacadeReason: something in it may raise, or it calls itself.
        """
        if name.value in self._entered:
            raise self._module.refuse(name, LOUD)
        function = self._functions[name.value]
        outer = self._context, self._receivers
        self._context, self._receivers = None, self._list_receivers(function)
        self._entered.append(name.value)
        try:
            self._visit(function.body, guarded=False)
        except FacadeReason as reason:  # it can be caught where the function is called
            raise self._module.refuse(name, str(reason)) from reason
        self._entered.pop()
        self._context, self._receivers = outer

    def _is_quiet_method(self, call: cst.Call, function: cst.Attribute) -> bool:
        """Whether a method of a text or a collection is called that raises nothing."""
        value = function.value
        if isinstance(value, cst.Call):
            self._visit(value, guarded=False)
            is_known = self._is_text_method(value)
        elif isinstance(value, cst.Name):
            is_known = value.value in self._containers or value.value in self._receivers
        else:
            self._visit(value, guarded=False)
            is_known = isinstance(value, DISPLAYS)
        name = function.attr.value
        is_split = name == "split" and (
            not call.args or bool(read_text_literal(call.args[0].value))
        )
        is_join = name == "join" and read_text_literal(value) is not None
        return is_known and (name in QUIET_METHODS or is_split or is_join)

    def _list_receivers(self, function: cst.FunctionDef) -> frozenset[str]:
        """Parameters and local names of a function that are texts, collections or numbers all the time."""
        parameters = function.params
        plain = {
            each.name.value
            for each in (*parameters.params, *parameters.kwonly_params)
            if each.annotation is not None and self._is_plain_type(each.annotation.annotation)
        }
        assigned: dict[str, set[bool]] = {name: {True} for name in plain}
        for node in walk_nodes(function.body):
            is_display = isinstance(node, cst.AssignTarget) and id(node) in self._display_targets
            for target in list_targets(node):
                assigned.setdefault(target.value, set()).add(is_display)
        return frozenset(name for name, kinds in assigned.items() if kinds == {True})

    @cached_property
    def _display_targets(self) -> frozenset[int]:
        """The targets of the module's assignments of displays and texts, by identity."""
        return frozenset(
            id(target)
            for node in walk_nodes(self._module.tree)
            if isinstance(node, cst.Assign) and isinstance(node.value, DISPLAYS)
            for target in node.targets
        )

    def _is_plain_type(self, annotation: cst.BaseExpression) -> bool:
        """Whether an annotation is of texts, collections or numbers."""
        if isinstance(annotation, cst.Subscript):
            annotation = annotation.value
        plain = {"str", "int", "float", "bool", "list", "dict", "set", "tuple"}
        return self._module.is_builtin(annotation, plain)

    def _is_text_method(self, call: cst.Call) -> bool:
        """Whether a call is of ``str``, or of a method whose value is a text again."""
        if self._module.is_builtin(call.func, {"str", "repr"}):
            return True
        texts = {"lower", "upper", "strip", "lstrip", "rstrip", "replace", "title", "capitalize"}
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in texts

    # The context

    def _rewrite_context_call(self, node: cst.Await, guarded: bool) -> bool:
        """Rewrite ``await ctx.info(text)`` and ``await ctx.report_progress(…)``; False for anything else."""
        call = node.expression
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return False
        if call.lpar or call.func.lpar:
            return False
        owner, method = call.func.value, call.func.attr
        if not isinstance(owner, cst.Name) or self._context is None or owner.value != self._context:
            return False
        if any(argument.star for argument in call.args):
            return False
        if method.value == "report_progress":
            self._edits.replace(self._module.span_of(method), "progress")
        elif method.value in LOG_METHODS and _is_one_text(call, self._module):
            start = self._module.span_of(node).start
            end = self._module.span_of(call.func).end
            self._edits.replace(Span(start, end), f"{owner.value}.log.{method.value}")
        else:
            return False
        self._known.add(id(owner))
        for argument in call.args:
            self._visit(argument.value, guarded)
        return True


def _is_slice(node: cst.Subscript) -> bool:
    """Whether a subscript takes a part of a text or list, which it always has."""
    if len(node.slice) != 1:
        return False
    index = node.slice[0].slice
    return isinstance(index, cst.Slice) and index.step is None


def is_static_text(node: cst.BaseExpression, module: ModuleText) -> bool:
    """Whether an expression is a text whatever its parts are."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return is_static_text(node.left, module) and is_static_text(node.right, module)
    if isinstance(node, cst.IfExp):
        return is_static_text(node.body, module) and is_static_text(node.orelse, module)
    if isinstance(node, cst.Call):
        return module.is_builtin(node.func, {"str", "repr"})
    if isinstance(node, cst.ConcatenatedString):
        return (
            isinstance(node.evaluated_value, str) or "b" not in module.slice(node.left)[:2].lower()
        )
    return isinstance(node, cst.FormattedString) or read_text_literal(node) is not None


def list_returned(function: cst.FunctionDef) -> Iterator[cst.Return]:
    """The return statements of a function."""
    for node in walk_nodes(function.body):
        if isinstance(node, cst.Return):
            yield node


def _is_one_text(call: cst.Call, module: ModuleText) -> bool:
    """Whether a call has one argument, which is a text."""
    if len(call.args) != 1 or call.args[0].keyword is not None:
        return False
    return is_static_text(call.args[0].value, module)


def list_targets(node: cst.CSTNode) -> list[cst.Name]:
    """The names that a node binds by assignment."""
    match node:
        case (
            cst.AssignTarget()
            | cst.AnnAssign()
            | cst.AugAssign()
            | cst.For()
            | cst.CompFor()
            | cst.NamedExpr()
        ):
            return [*_list_target_names(node.target)]
        case _:
            return []


def _list_target_names(target: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(target, cst.Name):
        yield target
    elif not isinstance(target, cst.Subscript | cst.Attribute):
        for child in target.children:
            yield from _list_target_names(child)
