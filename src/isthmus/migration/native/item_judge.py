"""Tools, resources and prompts as they are declared: decorators, parameters and results."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from isthmus.migration.edits import Span, TextEdits
from isthmus.migration.native.annotations import AnnotationJudge
from isthmus.migration.native.body_judge import BodyJudge, is_static_text, list_returned
from isthmus.migration.native.call_edits import CallEdits, read_keywords
from isthmus.migration.native.module_text import (
    ModuleText,
    is_constant,
    read_text_literal,
)
from isthmus.migration.native.vocabulary import HINTS, ITEM_OPTIONS, Library

NO_STRUCTURE: Mapping[Library, tuple[str, str]] = {
    Library.FASTMCP: ("output_schema", "None"),
    Library.MCP1: ("structured_output", "False"),
    Library.MCP2: ("structured_output", "False"),
}
PLAIN_TEMPLATE = re.compile(r"[^{}]*(\{[A-Za-z_]\w*\}[^{}]*)*")


class ItemKey(NamedTuple):
    """A tool, resource or prompt of a server, by which duplicates are found."""

    kind: str
    name: str


class ItemJudge:
    """Judges one decorated function, and makes its edits.

    Args:
        module: the module.
        library: what the server was written for.
        context_names: names under which the module has ``Context``.
        annotations_names: names under which it has ``ToolAnnotations``.
        bodies: judges its body.
        edits: takes what is rewritten.
        known: takes the names in places that are understood, by identity.
    """

    def __init__(
        self,
        module: ModuleText,
        library: Library,
        *,
        context_names: frozenset[str],
        annotations_names: frozenset[str],
        bodies: BodyJudge,
        edits: TextEdits,
        known: set[int],
    ) -> None:
        self._module = module
        self._library = library
        self._context_names = context_names
        self._annotations_names = annotations_names
        self._bodies = bodies
        self._edits = edits
        self._calls = CallEdits(module, edits)
        self._annotations = AnnotationJudge(module, library)
        self._known = known

    def judge(self, function: cst.FunctionDef, decorator: cst.Decorator, kind: str) -> ItemKey:
        """Judge a function that is offered.

        Raises:
            FacadeReason: it stays at the façade.
        """
        expression = decorator.decorator
        call = expression if isinstance(expression, cst.Call) else None
        if expression.lpar or (call is None and self._library is not Library.FASTMCP):
            raise self._module.refuse(decorator, "this decorator has no native spelling")
        first = "uri" if kind == "resource" else "name"
        given = (
            {} if call is None else read_keywords(call, self._module.refuse, positional=(first,))
        )
        context = self._check_parameters(function, kind)
        key = self._read_key(function, decorator, kind, given)
        added = self._judge_result(function, kind, given)
        if function.asynchronous is None and self._library is Library.MCP1:
            added.append("blocking=False")  # mcp 1 runs what is not async on its event loop
        self._rewrite(decorator, call, kind, given, added)
        self._bodies.judge(function, context)
        return key

    # Names and URIs

    def _read_key(
        self,
        function: cst.FunctionDef,
        decorator: cst.Decorator,
        kind: str,
        given: Mapping[str, cst.Arg],
    ) -> ItemKey:
        if kind != "resource":
            argument = given.get("name")
            name = function.name.value if argument is None else read_text_literal(argument.value)
            if not name:
                raise self._module.refuse(decorator, "its name is not a plain text")
            return ItemKey(kind, name)
        uri = read_text_literal(given["uri"].value) if "uri" in given else None
        if not uri or not PLAIN_TEMPLATE.fullmatch(uri):
            raise self._module.refuse(decorator, "its URI is not a plain text with {names}")
        names = re.findall(r"\{(\w+)\}", uri)
        if names and self._library is Library.FASTMCP:
            raise self._module.refuse(
                decorator, "fastmcp matches the URIs of templates otherwise than isthmus"
            )
        parameters = [each.name.value for each in function.params.params]
        if sorted(names) != sorted(parameters):
            raise self._module.refuse(
                decorator, "the names in its URI are not those of its parameters"
            )
        return ItemKey(kind, uri)

    # Parameters

    def _check_parameters(self, function: cst.FunctionDef, kind: str) -> str | None:
        """See to the parameters of a function.

        Returns:
            The name of the one for the context, or None.

        Raises:
            FacadeReason: one of them may get other values natively.
        """
        parameters = function.params
        if (
            parameters.posonly_params
            or parameters.star_kwarg
            or isinstance(parameters.star_arg, cst.Param)
        ):
            raise self._module.refuse(function.name, "its parameters cannot all be given by name")
        context: str | None = None
        for parameter in (*parameters.params, *parameters.kwonly_params):
            annotation = None if parameter.annotation is None else parameter.annotation.annotation
            if isinstance(annotation, cst.Name) and annotation.value in self._context_names:
                if context is not None or parameter.default is not None or kind != "tool":
                    raise self._module.refuse(
                        parameter, "this use of the context has no native spelling"
                    )
                context = parameter.name.value
                self._known |= {id(annotation), id(parameter.name)}
            else:
                self._check_argument(parameter, annotation, kind)
        return context

    def _check_argument(
        self, parameter: cst.Param, annotation: cst.BaseExpression | None, kind: str
    ) -> None:
        name = parameter.name.value
        if annotation is None or name.startswith("_"):
            raise self._module.refuse(
                parameter, f"the type of {name} is not said, or its name is hidden"
            )
        if kind == "tool":
            self._annotations.check_parameter(annotation)
        elif not self._annotations.is_text(annotation):
            raise self._module.refuse(
                parameter, f"{name} is read from a text, which isthmus does otherwise"
            )
        default = parameter.default
        if default is None:
            return
        if not is_constant(default):
            raise self._module.refuse(parameter, f"the default of {name} is not a plain value")
        is_none = isinstance(default, cst.Name) and default.value == "None"
        if is_none and not self._annotations.is_optional(annotation):
            raise self._module.refuse(parameter, f"{name} may be None, and its type says otherwise")

    # Results

    def _judge_result(
        self, function: cst.FunctionDef, kind: str, given: Mapping[str, cst.Arg]
    ) -> list[str]:
        """See to what a function returns.

        Returns:
            Options that keep its answers as they are.

        Raises:
            FacadeReason: they would be others.
        """
        returned = function.returns
        if returned is None:
            for each in list_returned(function):
                value = each.value
                is_none = value is None or (isinstance(value, cst.Name) and value.value == "None")
                if not (is_none and kind == "tool") and not (
                    value is not None and is_static_text(value, self._module)
                ):
                    raise self._module.refuse(
                        each, "the type of this result is not said, and it may be no text"
                    )
            if kind != "tool" and not any(list_returned(function)):
                raise self._module.refuse(function.name, "it returns no text")
            return []
        if kind != "tool":
            if not self._annotations.is_text(returned.annotation):
                raise self._module.refuse(
                    returned, f"a {kind} of another type than str is written otherwise"
                )
            return []
        is_text = self._annotations.check_return(returned.annotation)
        option, _ = NO_STRUCTURE[self._library]
        if option in given and not is_text:
            raise self._module.refuse(given[option], "isthmus structures the results of this type")
        return ["structured=True"] if is_text and option not in given else []

    # Decorators

    def _rewrite(
        self,
        decorator: cst.Decorator,
        call: cst.Call | None,
        kind: str,
        given: Mapping[str, cst.Arg],
        added: list[str],
    ) -> None:
        changed: dict[cst.Arg, list[str]] = {}
        prefixed: dict[cst.Arg, str] = {}
        for name, argument in given.items():
            if argument.keyword is None and name == "name":
                prefixed[argument] = name
            if name == "uri" and argument.keyword is None:
                continue
            if name in ITEM_OPTIONS[kind]:
                if not read_text_literal(argument.value):
                    raise self._module.refuse(argument, f"{name} is not a plain text")
            elif kind == "tool" and name == "annotations":
                changed[argument] = self._read_hints(argument)
            elif (
                kind == "tool"
                and (name, self._module.slice(argument.value)) == NO_STRUCTURE[self._library]
            ):
                changed[argument] = []
            else:
                raise self._module.refuse(argument, f"{name} has no native spelling")
        if call is not None:
            self._calls.rewrite(call, changed, added, prefixed=prefixed)
        elif added:
            end = self._module.span_of(decorator.decorator).end
            self._edits.replace(Span(end, end), f"({', '.join(added)})")

    def _read_hints(self, argument: cst.Arg) -> list[str]:
        """The native options of ``annotations={"readOnlyHint": True}`` and ``ToolAnnotations(…)``.

        Raises:
            FacadeReason: there is more in it than hints.
        """
        value = argument.value
        pairs: list[tuple[str | None, cst.BaseExpression]] = []
        if isinstance(value, cst.Dict) and self._library is Library.FASTMCP:
            pairs = [
                (read_text_literal(each.key), each.value)
                if isinstance(each, cst.DictElement)
                else (None, value)
                for each in value.elements
            ]
        elif (
            isinstance(value, cst.Call)
            and isinstance(value.func, cst.Name)
            and value.func.value in self._annotations_names
        ):
            self._known.add(id(value.func))
            pairs = [
                (None if each.keyword is None else each.keyword.value, each.value)
                for each in value.args
            ]
        options = [
            f"{HINTS[name]}={node.value}"
            for name, node in pairs
            if name is not None
            and name in HINTS
            and isinstance(node, cst.Name)
            and node.value in {"True", "False"}
        ]
        if not pairs or len(options) != len(pairs):
            raise self._module.refuse(argument, "these annotations have no native spelling")
        return options
