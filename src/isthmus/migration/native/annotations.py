"""Annotations whose arguments and answers are the same under a façade and natively."""

import json
from collections.abc import Sequence

import libcst as cst

from isthmus.migration.native.module_text import ModuleText, read_text_literal
from isthmus.migration.native.vocabulary import Library

SCALARS = frozenset({"str", "int", "float", "bool"})
EXACT_SCALARS = frozenset({"str", "int", "bool"})  # JSON has one spelling of each value
TYPING_HOMES = ("typing", "typing_extensions")


class AnnotationJudge:
    """Judges annotations of one module.

    Args:
        module: the module.
        library: what it was written for.
    """

    def __init__(self, module: ModuleText, library: Library) -> None:
        self._module = module
        self._library = library

    def check_parameter(self, annotation: cst.BaseExpression) -> None:
        """See that values which fit a parameter's schema are the same natively.

        Raises:
            FacadeReason: they may not be.
        """
        if not self._is_parameter(annotation):
            raise self._module.refuse(
                annotation, "arguments of this type may be read differently by isthmus"
            )

    def check_return(self, annotation: cst.BaseExpression) -> bool:
        """See that a tool's results are the same natively.

        Returns:
            Whether it returns a text, which native tools send as content only unless they are told to.

        Raises:
            FacadeReason: they may not be.
        """
        if self._module.is_builtin(annotation, {"str"}):
            return True
        if not self._is_return(annotation):
            raise self._module.refuse(
                annotation, "results of this type are written differently by isthmus"
            )
        return False

    def is_text(self, annotation: cst.BaseExpression | None) -> bool:
        """Whether an annotation is ``str``."""
        return annotation is not None and self._module.is_builtin(annotation, {"str"})

    def is_optional(self, annotation: cst.BaseExpression) -> bool:
        """Whether an annotation says that a value may be None."""
        described = self._split(annotation, "Annotated")
        return self._find_optional(described[0] if described else annotation) is not None

    # Parameters

    def _is_parameter(self, node: cst.BaseExpression) -> bool:
        described = self._split(node, "Annotated")
        if described is not None:
            kind, *extras = described
            return all(map(self._is_description, extras)) and self._is_parameter(kind)
        optional = self._find_optional(node)
        if optional is not None:
            # mcp reads JSON in a text for anything that is not just `str`
            is_fitting = self._library is Library.FASTMCP or not self.is_text(optional)
            return is_fitting and self._is_parameter(optional)
        choices = self._split(node, "Literal")
        if choices is not None:
            return all(map(self._is_choice, choices))
        return self._is_plain(node, SCALARS)

    def _is_plain(self, node: cst.BaseExpression, scalars: frozenset[str]) -> bool:
        """Whether a type is a scalar, or a list or dictionary of such."""
        if self._module.is_builtin(node, scalars):
            return True
        items = self._split(node, "list")
        if items is not None:
            return len(items) == 1 and self._is_plain(items[0], scalars)
        members = self._split(node, "dict")
        if members is None:
            return False
        return (
            len(members) == 2 and self.is_text(members[0]) and self._is_plain(members[1], scalars)
        )

    def _is_choice(self, node: cst.BaseExpression) -> bool:
        """Whether a choice is a text that is no JSON of another kind."""
        text = read_text_literal(node)
        if text is None:
            return False
        try:
            json.loads(text)
        except ValueError:
            return True
        return False

    def _is_description(self, node: cst.BaseExpression) -> bool:
        """Whether an extra of ``Annotated`` is a description and nothing else."""
        if not isinstance(node, cst.Call):
            return False
        is_field = self._module.find_meaning(node.func) in {
            "pydantic.Field",
            "pydantic.fields.Field",
        }
        return is_field and all(
            each.keyword is not None
            and each.keyword.value == "description"
            and read_text_literal(each.value) is not None
            for each in node.args
        )

    def _find_optional(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The type of ``Optional[T]`` and ``T | None``."""
        found = self._split(node, "Optional")
        if found is not None:
            return found[0] if len(found) == 1 else None
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            right = node.right
            if isinstance(right, cst.Name) and right.value == "None":
                return node.left
        return None

    # Results

    def _is_return(self, node: cst.BaseExpression) -> bool:
        choices = self._split(node, "Literal")
        if choices is not None:
            return all(read_text_literal(each) is not None for each in choices)
        if self._module.is_builtin(node, {"int", "bool"}):
            return True
        if self._library is not Library.FASTMCP:
            return False  # mcp writes lists item by item, and JSON with indents
        if isinstance(node, cst.Name) and node.value == "None":
            return True
        return self._split(node, "dict") is not None and self._is_plain(node, EXACT_SCALARS)

    def _split(self, node: cst.BaseExpression, name: str) -> Sequence[cst.BaseExpression] | None:
        """The arguments of a subscript of a builtin or of a name of typing; None for anything else."""
        if not isinstance(node, cst.Subscript):
            return None
        meaning = self._module.find_meaning(node.value)
        known = {f"builtins.{name}", *(f"{home}.{name}" for home in TYPING_HOMES)}
        if name in {"list", "dict"}:
            known.add(f"typing.{name.title()}")
        if meaning not in known:
            return None
        return [each.slice.value for each in node.slice if isinstance(each.slice, cst.Index)]
