"""Signatures and types of the API reference, short enough to read."""

import html
from collections.abc import Callable

from griffe import Attribute, Class, Expr, ExprName, Function, Parameter, ParameterKind

MAX_LINE_CHARACTERS = 88
MAX_UNION_MEMBERS = 4
Linker = Callable[[str], str | None]
"""Address of the documentation of a name, by its whole path."""


def split_union(text: str) -> list[str]:
    """The members of a union, those inside of brackets left alone."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += (letter in "([{") - (letter in ")]}") if not quote else 0
        if letter == "|" and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def abbreviate_type(annotation: Expr | str | None) -> str:
    """A type as a signature shows it: a union of many keeps its first members."""
    text = " ".join(str(annotation).split()) if annotation is not None else ""
    members = split_union(text)
    if len(members) > MAX_UNION_MEMBERS:
        last = ["None"] if "None" in members else []
        return " | ".join([*[m for m in members if m != "None"][:3], "…", *last])
    return text


def link_type(annotation: Expr | str | None, link: Linker) -> str:
    """A type as HTML, its public names linked to their documentation."""
    if annotation is None:
        return ""
    pieces = annotation.iterate() if isinstance(annotation, Expr) else [annotation]
    text = "".join(link_name(piece, link) for piece in pieces)
    return f"<code>{text.replace('|', '&#124;')}</code>"


def link_name(piece: Expr | str, link: Linker) -> str:
    """One piece of a type as HTML."""
    text = html.escape(str(piece), quote=False).replace("*", "&#42;").replace("_", "&#95;")
    if isinstance(piece, ExprName) and (address := link(piece.canonical_path)):
        return f'<a href="{address.replace(".md", ".html")}">{text}</a>'
    return text


def read_unpacked(parameter: Parameter) -> str | None:
    """Path of the ``TypedDict`` that keyword options are of, if they are of one."""
    annotation = parameter.annotation
    if parameter.kind is not ParameterKind.var_keyword or not isinstance(annotation, Expr):
        return None
    if not str(annotation).startswith("Unpack["):
        return None
    inner = [piece for piece in annotation.iterate() if isinstance(piece, ExprName)]
    return inner[-1].canonical_path if inner else None


def write_parameter(parameter: Parameter) -> str:
    """One parameter of a signature, without the stars that stand alone."""
    stars = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    annotation = abbreviate_type(parameter.annotation)
    if read_unpacked(parameter):
        annotation = annotation.removeprefix("Unpack[").removesuffix("]")
    text += f": {annotation}" if annotation else ""
    if parameter.default is None or parameter.kind in stars:
        return text
    return f"{text} = {parameter.default}" if annotation else f"{text}={parameter.default}"


def write_parameters(parameters: list[Parameter]) -> list[str]:
    """The parameters of a signature with ``/`` and ``*`` where they belong."""
    written: list[str] = []
    positional = [p for p in parameters if p.kind is ParameterKind.positional_only]
    starred = False
    for number, parameter in enumerate(parameters):
        if parameter.kind is ParameterKind.var_positional:
            starred = True
        if parameter.kind is ParameterKind.keyword_only and not starred:
            written.append("*")
            starred = True
        written.append(write_parameter(parameter))
        if positional and number == len(positional) - 1:
            written.append("/")
    return written


def list_parameters(function: Function) -> list[Parameter]:
    """The parameters that a caller gives."""
    given = list(function.parameters)
    bound = function.parent is not None and function.parent.is_class
    if bound and given and "staticmethod" not in function.labels:
        return given[1:]
    return given


def write_signature(
    name: str, parameters: list[Parameter], returns: Expr | str | None, *, is_async: bool = False
) -> str:
    """A signature in Python, over several lines where one is too long."""
    parts = write_parameters(parameters)
    arrow = f" -> {abbreviate_type(returns)}" if returns is not None else ""
    call = "await " if is_async else ""
    line = f"{call}{name}({', '.join(parts)}){arrow}"
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{call}{name}(\n{inside}){arrow}"


def write_function(name: str, function: Function) -> str:
    """All signatures of a function: its overloads, where it has them."""
    forms = function.overloads or [function]
    return "\n".join(
        write_signature(
            name,
            list_parameters(form),
            form.returns,
            is_async="async" in form.labels or "async" in function.labels,
        )
        for form in forms
    )


def list_fields(cls: Class) -> list[Attribute]:
    """The public fields of a class, those of its bases first."""
    found: dict[str, Attribute] = {}
    for one in [*reversed(cls.mro()), cls]:
        found |= {
            name: member
            for name, member in one.members.items()
            if isinstance(member, Attribute) and not name.startswith("_")
        }
    return list(found.values())
