"""Signature and docstring of a function: parameters, context, return type, descriptions.

Everything a Python function can be is read here once: plain, bound, partial, an object with
``__call__``, with annotations as objects or as strings. What a caller over a wire cannot fill,
such as ``*args``, is refused at registration, in words that say how to mend it.

Docstrings may be of Google, numpy or Sphinx style, also mixed. What describes parameters goes into
the schema, what is left is the description of the tool: nothing is told to the model twice.
"""

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT

from isthmus.core.principal import Principal
from isthmus.errors import UsageError
from isthmus.server.schema import pydantic_types
from isthmus.server.schema.annotations import is_plain, is_union, unwrap_annotation
from isthmus.server.schema.injection import Inject, find_inject


class Docstring(msgspec.Struct, frozen=True):
    """The parts of a docstring.

    Attributes:
        text: everything that is not about parameters, results or exceptions.
        parameters: what is said about each parameter, or attribute, by its name.
        returns: what is said about the result, or "".
    """

    text: str = ""
    parameters: dict[str, str] = {}
    returns: str = ""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter that the caller fills.

    Attributes:
        name: in Python.
        wire: what callers send: the name, or its alias.
        annotation: its type with its constraints; Any where there is none.
        default: what it is when absent; NODEFAULT if it is required or made by a factory.
        default_factory: makes the default; NODEFAULT if there is none.
        description: what its annotation or the docstring say about it.
        examples: what its annotation gives as examples.
        by_name: it must be passed by name.
    """

    name: str
    wire: str
    annotation: Any
    default: Any
    default_factory: Any
    description: str | None
    examples: list[Any] | None
    by_name: bool

    @property
    def required(self) -> bool:
        """Whether the caller must give it."""
        return self.default is NODEFAULT and self.default_factory is NODEFAULT


class Signature(msgspec.Struct, frozen=True):
    """The parameters and the return type of a function.

    Attributes:
        name: the function's own name, "" if it has none to speak of.
        order: the names of all parameters that are passed, those the server fills included.
        parameters: those the caller fills.
        filled: those the server fills, by name: the attribute of the context that they get, or ""
            for the context itself.
        injected: those that dependencies give, by name.
        by_name: those that must be passed by name.
        returns: the return annotation; Any where there is none.
        doc: what the docstring says.
        is_async: calling it gives something to await.
    """

    name: str
    order: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    filled: Mapping[str, str]
    injected: Mapping[str, Inject]
    by_name: frozenset[str]
    returns: Any
    doc: Docstring
    is_async: bool

    @property
    def is_alone(self) -> bool:
        """Whether it takes nothing of the server."""
        return not (self.filled or self.injected)

    @property
    def context(self) -> str | None:
        """The parameter that gets the context, if there is one."""
        return next((name for name, source in self.filled.items() if not source), None)

    def fill(self, name: str, context: Any) -> Any:
        """The value of a parameter that the server fills."""
        source = self.filled[name]
        return getattr(context, source) if source else context


def read_signature(
    function: Callable[..., Any],
    context_type: type | str | None = None,
    namespace: Mapping[str, Any] | None = None,
) -> Signature:
    """The signature of anything callable.

    Args:
        function: plain, bound or partial, or an object with ``__call__``.
        context_type: the class, or its name, of the parameter that gets the context. Where there
            is one, parameters of the types in ``FILLED_TYPES`` are filled from it, too.
        namespace: names for annotations that are strings, beside the function's globals.

    Raises:
        UsageError: it takes what no caller can give, or an annotation cannot be resolved.
    """
    code = _find_code(function)
    hints = resolve_hints(code, context_type, namespace or {})
    doc = parse_docstring(code.__doc__)
    order, parameters, by_name = [], [], []
    filled: dict[str, str] = {}
    injected: dict[str, Inject] = {}
    for parameter in _list_parameters(function):
        order.append(parameter.name)
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name.append(parameter.name)
        annotation = hints.get(parameter.name, Any)
        inject = None
        if not is_plain(annotation) or isinstance(parameter.default, Inject):
            inject = find_inject(annotation, parameter.default)
        source = None if context_type is None else find_source(annotation, context_type)
        if inject is not None:
            if context_type is None:
                raise UsageError(f"{parameter.name!r}: there are no dependencies here")
            injected[parameter.name] = inject
        elif source is not None:
            other = next((name for name, taken in filled.items() if taken == source), None)
            if other is not None:
                what = source or "context"
                raise UsageError(f"{other!r} and {parameter.name!r} both take the {what}")
            filled[parameter.name] = source
        else:
            if context_type is not None:
                _check_meant(parameter, context_type)
            parameters.append(_make_parameter(parameter, annotation, doc))
    return Signature(
        name=_find_name(function),
        order=tuple(order),
        parameters=tuple(parameters),
        filled=filled,
        injected=injected,
        by_name=frozenset(by_name),
        returns=hints.get("return", Any),
        doc=doc,
        is_async=inspect.iscoroutinefunction(code),
    )


def _find_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials, bound methods and callable objects.

    Raises:
        UsageError: it is no function.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, str):
        raise UsageError(f"{function!r} is not a function: a name is given as name={function!r}")
    if isinstance(function, type) or not callable(function):
        raise UsageError(f"{function!r} is not a function; pass a function or a bound method")
    if not inspect.isroutine(function):
        function = type(function).__call__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            "it is a generator, and a result is sent as a whole: return a list, "
            "and report progress with ctx.progress"
        )
    return function


def _find_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    return "" if name == "<lambda>" else name


def _list_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters to pass; what a partial has bound is nobody's business.

    Raises:
        UsageError: there is one that a caller cannot fill.
    """
    try:
        listed = inspect.signature(function).parameters
    except (TypeError, ValueError) as unknown:
        raise UsageError(f"its parameters cannot be read: {unknown}") from unknown
    bound = function.keywords if isinstance(function, functools.partial) else {}
    for parameter in listed.values():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
            raise UsageError(
                f"{stars}{parameter.name} cannot be described to a caller: name every parameter, "
                f"or take one of type {'list' if stars == '*' else 'dict[str, Any]'}"
            )
    passed = [parameter for parameter in listed.values() if parameter.name not in bound]
    if passed and passed[0].name in {"self", "cls"} and passed[0].annotation is passed[0].empty:
        raise UsageError(
            f"its first parameter is {passed[0].name!r}: register the method of an object "
            "(`server.add_tool(thing.method)`), not of the class"
        )
    return passed


def resolve_hints(
    code: Callable[..., Any], context_type: type | str | None, namespace: Mapping[str, Any]
) -> dict[str, Any]:
    """The annotations of a function as objects.

    Raises:
        UsageError: one of them names what does not exist where the function was defined.
    """
    code = inspect.unwrap(code)
    known = {**_collect_closure(code), **namespace} if _is_code(code) else namespace
    try:
        return get_type_hints(code, localns=dict(known), include_extras=True)
    except NameError:
        pass  # perhaps the context, imported for type checkers only
    except (TypeError, SyntaxError) as wrong:
        raise UsageError(f"an annotation cannot be evaluated: {wrong}") from wrong
    if isinstance(context_type, str):
        context_type = type(context_type, (), {})
    everything = {kind.__name__: kind for kind in FILLED_TYPES} if context_type else {}
    everything[getattr(context_type, "__name__", "")] = context_type  # type: ignore[assignment]  # a class by now
    everything.update(getattr(code, "__globals__", {}))
    try:
        return get_type_hints(code, everything, dict(known), include_extras=True)
    except NameError as missing:
        raise UsageError(_explain_unresolved(code, missing)) from missing


def _collect_closure(code: Any) -> dict[str, Any]:
    """Collect what the function takes from functions around it, as far as it is set yet."""
    found = {}
    for name, cell in zip(code.__code__.co_freevars, code.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is empty: the name is given a value later on
            found[name] = cell.cell_contents
    return found


def _is_code(code: Any) -> bool:
    return isinstance(code, types.FunctionType | types.MethodType)


def _explain_unresolved(code: Any, missing: NameError) -> str:
    name = missing.name
    owners = [p for p, a in code.__annotations__.items() if isinstance(a, str) and str(name) in a]
    return (
        f"the annotation of {' and '.join(map(repr, owners)) or 'a parameter'} names {name!r}, "
        f"which does not exist in {code.__module__} at run time: import it outside "
        "`if TYPE_CHECKING:`, and define it at module level"
    )


# the attribute of the context for a parameter of a type: where it must be there, or may be None
FILLED_TYPES: Mapping[type, tuple[str, str]] = {Principal: ("authenticated", "principal")}


def find_source(annotation: Any, context_type: type | str) -> str | None:
    """Find the attribute of the context that fills a parameter, "" for the context, or None."""
    if is_plain(annotation):
        return None
    if _is_annotated_as(annotation, context_type):
        return ""
    for kind, (required, optional) in FILLED_TYPES.items():
        if _is_annotated_as(annotation, kind):
            return optional if _is_annotated_as(annotation, type(None)) else required
    return None


def _is_annotated_as(annotation: Any, wanted: type | str) -> bool:
    """Whether the annotation is a class, or its name, perhaps generic, annotated or optional."""
    annotation = unwrap_annotation(annotation)
    if is_union(annotation):
        return any(_is_annotated_as(branch, wanted) for branch in get_args(annotation))
    kind = get_origin(annotation) or annotation
    if not isinstance(kind, type):
        return False
    if isinstance(wanted, str):
        return any(base.__name__ == wanted for base in kind.__mro__)
    return issubclass(kind, wanted)


def _check_meant(parameter: inspect.Parameter, context_type: type | str) -> None:
    """Refuse what looks like the context, and would become an argument for a model to fill in.

    Raises:
        UsageError: it is called as a context is, and has no annotation.
    """
    name = parameter.name
    if name in {"ctx", "context"} and parameter.annotation is parameter.empty:
        kind = context_type if isinstance(context_type, str) else context_type.__name__
        raise UsageError(
            f"{name!r} has no annotation: write {name}: {kind}, or the type callers give for it"
        )


def _make_parameter(parameter: inspect.Parameter, annotation: Any, doc: Docstring) -> Parameter:
    """A parameter with everything its annotation, default and docstring say about it."""
    default = NODEFAULT if parameter.default is parameter.empty else parameter.default
    said = ParameterFacts(default=default)
    if pydantic_types.is_field(default):
        annotation, said.default = Annotated[annotation, default], NODEFAULT
    kind = said.strip_words(annotation)
    return Parameter(
        name=parameter.name,
        wire=said.alias or parameter.name,
        annotation=kind,
        default=said.default,
        default_factory=said.default_factory,
        description=said.description or doc.parameters.get(parameter.name),
        examples=said.examples,
        by_name=parameter.kind is parameter.KEYWORD_ONLY,
    )


class ParameterFacts(msgspec.Struct):
    """The metadata around a parameter's type that is not a constraint."""

    # NODEFAULT itself means "no default" to msgspec, so a field that holds it needs a factory.
    default: Any = msgspec.field(default_factory=lambda: NODEFAULT)
    default_factory: Any = msgspec.field(default_factory=lambda: NODEFAULT)
    alias: str | None = None
    description: str | None = None
    examples: list[Any] | None = None

    def strip_words(self, annotation: Any) -> Any:
        """Take in what the annotation says in words; a type with its constraints is left."""
        if is_union(annotation):
            branches = tuple(map(self.strip_words, get_args(annotation)))
            return annotation if branches == get_args(annotation) else Union[branches]  # noqa: UP007 - made at run time
        if get_origin(annotation) is not Annotated:
            return annotation
        kept = [rest for m in annotation.__metadata__ for rest in self._constraints(m)]
        return Annotated[(annotation.__origin__, *kept)] if kept else annotation.__origin__

    def _constraints(self, metadata: Any) -> tuple[Any, ...]:
        if isinstance(metadata, str):
            self.description = metadata
            return ()
        if type(metadata).__name__ == "Doc":  # typing_extensions.Doc, PEP 727
            self.description = metadata.documentation
            return ()
        if isinstance(metadata, msgspec.Meta):
            self.description = metadata.description or self.description
        if pydantic_types.is_field(metadata):
            return self._take_apart(pydantic_types.read_field_facts(metadata))
        return (metadata,)

    def _take_apart(self, facts: pydantic_types.FieldFacts) -> tuple[Any, ...]:
        self.alias = facts.alias or self.alias
        self.description = facts.description or self.description
        self.examples = facts.examples or self.examples
        if self.default is NODEFAULT:
            self.default, self.default_factory = facts.default, facts.default_factory
        return facts.constraints


# Docstrings

TEXT, PARAMETERS, RETURNS, RAISES = "text", "parameters", "returns", "raises"

SECTIONS = {
    "args": PARAMETERS,
    "arguments": PARAMETERS,
    "params": PARAMETERS,
    "parameters": PARAMETERS,
    "keyword args": PARAMETERS,
    "keyword arguments": PARAMETERS,
    "other parameters": PARAMETERS,
    "attributes": PARAMETERS,
    "return": RETURNS,
    "returns": RETURNS,
    "yields": RETURNS,
    "raises": RAISES,
}

FIELDS = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword"), PARAMETERS),
    **dict.fromkeys(("var", "ivar", "cvar"), PARAMETERS),
    **dict.fromkeys(("return", "returns"), RETURNS),
    **dict.fromkeys(("raise", "raises", "except", "exception", "type", "rtype", "vartype"), RAISES),
}

GOOGLE_HEADER = r"([A-Za-z][A-Za-z ]*):\s*"
GOOGLE_ENTRY = r"\*{0,2}(?P<names>\w+)\s*(?:\(.*?\))?\s*:(?:\s+|$)(?P<rest>.*)"
NUMPY_RULE = r"-{3,}\s*"
NUMPY_ENTRY = r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::(?P<rest>).*)?"
SPHINX_FIELD = r":(?P<field>\w+)(?P<about>[^:]*):\s*(?P<rest>.*)"


def parse_docstring(doc: str | None) -> Docstring:
    """The parts of a docstring; an empty one for None."""
    if not doc:
        return Docstring()
    doc = inspect.cleandoc(doc)
    parts: dict[str, list[str]] = {TEXT: [], RETURNS: [], RAISES: []}
    parameters: dict[str, str] = {}
    if ":" not in doc and "---" not in doc:  # every section begins with one of them
        parts[TEXT].append(doc)
        doc = ""
    for kind, entry, body in _split_sections(doc.splitlines()):
        if kind == PARAMETERS:
            parameters.update(_parse_entries(entry, body))
        else:
            parts[kind] += body
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(parts[TEXT])).strip()
    return Docstring(text, parameters, _join_paragraphs(parts[RETURNS]))


def _split_sections(
    lines: list[str],
) -> Iterator[tuple[str, str | None, list[str]]]:
    """Each stretch of lines, with what it is about and how its entries begin."""
    at = 0
    while at < len(lines):
        if kind := _match_numpy_section(lines, at):
            end = _find_end(lines, at + 2, _begins_numpy)
            yield kind, NUMPY_ENTRY, lines[at + 2 : end]
        elif kind := _match_google_section(lines, at):
            end = _find_end(lines, at + 1, _is_flush)
            yield kind, GOOGLE_ENTRY, lines[at + 1 : end]
        elif (field := re.match(SPHINX_FIELD, lines[at])) and field["field"] in FIELDS:
            end = _find_end(lines, at + 1, _is_flush)
            kind = FIELDS[field["field"]]
            name = (field["about"].split() or [""])[-1]
            head = f"{name}: {field['rest']}" if kind == PARAMETERS else field["rest"]
            yield kind, GOOGLE_ENTRY, [head, *lines[at + 1 : end]]
        else:
            end = at + 1
            yield TEXT, None, [lines[at]]
        at = end


def _match_numpy_section(lines: list[str], at: int) -> str | None:
    return SECTIONS.get(lines[at].strip().lower()) if _begins_numpy(lines, at) else None


def _match_google_section(lines: list[str], at: int) -> str | None:
    """The section that a header on this line opens; it has indented lines below it."""
    header = re.fullmatch(GOOGLE_HEADER, lines[at])
    if header is None:
        return None
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    return SECTIONS.get(header[1].lower()) if below.startswith((" ", "\t")) else None


def _begins_numpy(lines: list[str], at: int) -> bool:
    return (
        bool(lines[at].strip())
        and at + 1 < len(lines)
        and re.fullmatch(NUMPY_RULE, lines[at + 1]) is not None
    )


def _is_flush(lines: list[str], at: int) -> bool:
    return bool(lines[at].strip()) and not lines[at][0].isspace()


def _find_end(lines: list[str], at: int, ends: Callable[[list[str], int], bool]) -> int:
    return next((i for i in range(at, len(lines)) if ends(lines, i)), len(lines))


def _parse_entries(begins: str | None, body: list[str]) -> dict[str, str]:
    """The entries of a section, by name; one text may speak for several names."""
    found: dict[str, str] = {}
    names: list[str] = []
    text: list[str] = []
    for line in [*inspect.cleandoc("\n" + "\n".join(body)).splitlines(), ""]:
        entry = re.fullmatch(begins, line) if begins and line[:1].strip() else None
        if entry is None:
            text.append(line)
            continue
        found.update(dict.fromkeys(names, _join_paragraphs(text)))
        names = re.findall(r"\w+", entry["names"])
        text = [entry["rest"] or ""]
    found.update(dict.fromkeys(names, _join_paragraphs(text)))
    return {name: said for name, said in found.items() if said}


def _join_paragraphs(lines: list[str]) -> str:
    """Lines as running text; a blank line stays a paragraph."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
    return "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
