"""URI templates (RFC 6570): from values to a URI, and from a URI back to the values.

Expansion is the whole RFC. Matching has no standard; this one is built so that it inverts
expansion, and so that what it returns is safe to use:

- ``{name}`` stands for one path segment: its value never holds a ``/``, not even one that came
  as ``%2F``, and is never ``.`` or ``..``. A value with slashes needs ``{+name}`` or ``{/name*}``,
  and no segment of it is a dot segment either. So joining a value to a folder stays in it.
- A variable takes as much as it can; where two readings are possible, the first variable gets
  more. ``{name}`` and ``{+name}`` take at least one character, the other forms may be left out.
- Time is linear in the length of the URI, whatever the template.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from isthmus.errors import UsageError

Value: TypeAlias = str | int | float | Sequence[str] | Mapping[str, str] | None
"""What a variable may hold; None is the same as leaving it out."""

MAX_URI_CHARS = 16 * 1024  # longer URIs match nothing, in characters


class BadTemplate(UsageError):
    """A template that RFC 6570 does not allow."""


class _Operator(msgspec.Struct, frozen=True):
    """An operator: one row of RFC 6570's table (appendix A), and what matching needs beside it.

    Attributes:
        first: what a non-empty expansion begins with.
        separator: what stands between its variables.
        named: each value comes with its variable's name.
        equals: a named value keeps its ``=`` when it is empty.
        reserved: reserved characters and escapes are left as they are.
        stops: the characters that end it in a URI.
        slashes: values may hold slashes.
        free: values may also be dot segments: what follows ``?`` or ``#`` is no path.
    """

    first: str
    separator: str
    named: bool = False
    equals: bool = False
    reserved: bool = False
    stops: str = "/?#"
    slashes: bool = False
    free: bool = False


_OPERATORS = {
    "": _Operator("", ","),
    "+": _Operator("", ",", reserved=True, stops="", slashes=True),
    "#": _Operator("#", ",", reserved=True, stops="", slashes=True, free=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, equals=True, stops="#", slashes=True, free=True),
    "&": _Operator("&", "&", named=True, equals=True, stops="#", slashes=True, free=True),
}


class _Variable(msgspec.Struct, frozen=True):
    name: str
    explode: bool
    prefix: int | None


class _Expression(msgspec.Struct, frozen=True):
    operator: _Operator
    variables: tuple[_Variable, ...]
    stops: str


_Part: TypeAlias = str | _Expression
_Spans: TypeAlias = Callable[[str], Sequence[str | None] | None]
"""Gives each expression its part of a URI, None to those left out; or None for no match."""


class UriTemplate:
    """A URI template.

    Example:
        >>> template = UriTemplate("repo://{owner}/{name}{?page}")
        >>> template.expand({"owner": "ada", "name": "engine", "page": 2})
        'repo://ada/engine?page=2'
        >>> template.match("repo://ada/engine")
        {'owner': 'ada', 'name': 'engine'}

    Args:
        template: its text.

    Attributes:
        template: its text.
        names: its variables, in order of appearance.
        optional: those of them that a matching URI may leave out.
        literals: what each matching URI begins with and, after each variable that is one whole
            segment, what follows it, as far as that goes: see
            :class:`~isthmus.core.template_index.TemplateIndex`.

    Raises:
        BadTemplate: the text breaks a rule of RFC 6570; the message says which.
    """

    __slots__ = ("_parts", "_readable", "_spans", "literals", "names", "optional", "template")

    def __init__(self, template: str) -> None:
        self.template = template
        self._parts = tuple(_parse(template))
        expressions = [part for part in self._parts if isinstance(part, _Expression)]
        self.names = tuple(dict.fromkeys(v.name for e in expressions for v in e.variables))
        self.optional = frozenset(self.names) - {
            v.name for e in expressions if not e.operator.first for v in e.variables
        }
        self.literals = _list_literals(self._parts)
        joined = _join_neighbours(self._parts)
        self._readable = [part for part in joined if isinstance(part, _Expression)]
        self._spans = (
            _compile_spans(joined) if _is_certain(joined) else partial(_search_spans, joined)
        )

    def __repr__(self) -> str:
        return f"UriTemplate({self.template!r})"

    def expand(self, values: Mapping[str, Value]) -> str:
        """The URI for these values; variables without a value are left out."""
        return "".join(
            part if isinstance(part, str) else _expand(part, values) for part in self._parts
        )

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The values that lead to ``uri``, or None where none do.

        A variable with ``*`` gives a list, any other a string; percent escapes are decoded, and
        variables that were left out are missing.
        """
        if len(uri) > MAX_URI_CHARS:
            return None
        spans = self._spans(_quote(uri, reserved=True))  # one spelling for what must be escaped
        if spans is None:
            return None
        values: dict[str, str | list[str]] = {}
        for expression, span in zip(self._readable, spans, strict=True):
            for name, value in _read(expression, span):
                if value is None or values.setdefault(name, value) != value:
                    return None
        return values


# --- reading a template ----------------------------------------------------------------------

_PIECE = r"\{([^{}]*)\}|([^{}]+)|[{}]"
_VARIABLE = (
    r"(?a)((?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9][0-9]{0,3}))?"
)


def _parse(template: str) -> Iterator[_Part]:
    """The template as literals, spelled as in a URI, and expressions."""
    for token in re.finditer(_PIECE, template):
        expression, literal = token.groups()
        if literal is not None:
            yield _quote(literal, reserved=True)
        elif expression is not None:
            yield from _parse_expression(expression, template)
        else:
            raise BadTemplate(f"{template!r}: a brace without its partner at {token.start()}")


def _parse_expression(text: str, template: str) -> Iterator[_Expression]:
    sign = text[:1] if text[:1] in _OPERATORS else ""
    operator = _OPERATORS[sign]
    variables = []
    for spec in text[len(sign) :].split(","):
        found = re.fullmatch(_VARIABLE, spec)
        if found is None:
            raise BadTemplate(f"{template!r}: {{{text}}} is no expression of RFC 6570")
        name, star, prefix = found.groups()
        variables.append(_Variable(name, bool(star), int(prefix) if prefix else None))
    if sign not in {".", "/"}:
        yield _Expression(operator, tuple(variables), operator.stops)
        return
    for variable in variables:  # {/a,b} says the same as {/a}{/b}, which is easier to match
        stops = operator.stops + ("." if sign == "." and len(variables) > 1 else "")
        if variable.explode:
            stops = stops.replace(sign, "")
        yield _Expression(operator, (variable,), stops)


def _list_literals(parts: Sequence[_Part]) -> tuple[str, ...]:
    """The literals whose places in a matching URI are known before anything is matched."""
    head = parts[0] if parts and isinstance(parts[0], str) else ""
    rest = parts[1:] if head else parts
    literals = [head]
    for before, literal in zip(rest[::2], rest[1::2], strict=False):
        # a plain variable holds none of what stops it, so it ends where the literal begins
        if isinstance(before, str) or before.operator is not _OPERATORS[""]:
            break
        if not isinstance(literal, str) or literal[0] not in before.stops:
            break
        literals.append(literal)
    return tuple(literals)


def _join_neighbours(parts: Iterable[_Part]) -> list[_Part]:
    """Neighbours like ``{?a}{&b}`` as one, as which they appear in a URI."""
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else ""
        if (
            isinstance(part, _Expression)
            and isinstance(last, _Expression)
            and last.operator.named
            and last.operator.separator == part.operator.first
        ):
            joined[-1] = _Expression(last.operator, last.variables + part.variables, last.stops)
        else:
            joined.append(part)
    return joined


# --- expanding -------------------------------------------------------------------------------

_RESERVED = r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~%:/?#\[\]@!$&'()*+,;=]"
_UNRESERVED = r"[^A-Za-z0-9\-._~]"


def escape_text(text: str) -> str:
    """Text as it stands in a URI, where nothing of it has a meaning of its own."""
    return _quote(text, reserved=False)


def quote_uri(uri: str) -> str:
    """A URI with everything escaped that cannot stand in one, as templates spell it."""
    return _quote(uri, reserved=True)


def unescape_text(text: str) -> str | None:
    """Unescape a part of a URI; None where its escapes are no UTF-8."""
    return _decode(_quote(text, reserved=True))


def _quote(text: str, *, reserved: bool) -> str:
    return re.sub(_RESERVED if reserved else _UNRESERVED, _escape, text)


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))


def _expand(expression: _Expression, values: Mapping[str, Value]) -> str:
    operator = expression.operator
    items = [
        item
        for variable in expression.variables
        for item in _expand_items(operator, variable, values.get(variable.name))
    ]
    return operator.first + operator.separator.join(items) if items else ""


def _expand_items(operator: _Operator, variable: _Variable, value: Value) -> Iterator[str]:
    """Expand one variable of an expression: to nothing, one item, or several."""
    if value is None:
        return
    if isinstance(value, str | int | float):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield _expand_item(operator, variable.name, _quote_for(operator, text[: variable.prefix]))
    elif isinstance(value, Mapping):
        pairs = [(_quote_for(operator, k), _quote_for(operator, v)) for k, v in value.items()]
        if variable.explode:
            yield from (f"{k}={v}" for k, v in pairs)
        elif pairs:
            yield _expand_item(
                operator, variable.name, ",".join(text for pair in pairs for text in pair)
            )
    else:
        texts = [_quote_for(operator, text) for text in value]
        if variable.explode:
            yield from (_expand_item(operator, variable.name, text) for text in texts)
        elif texts:
            yield _expand_item(operator, variable.name, ",".join(texts))


def _expand_item(operator: _Operator, name: str, text: str) -> str:
    if not operator.named:
        return text
    return f"{name}={text}" if text or operator.equals else name


def _quote_for(operator: _Operator, text: str) -> str:
    return _quote(text, reserved=operator.reserved)


# --- matching: which part of the URI belongs to which expression -----------------------------


def _is_certain(parts: Sequence[_Part]) -> bool:
    """Whether every expression ends where its first stop is: no choice, no looking back."""
    for index, part in enumerate(parts):
        if isinstance(part, _Expression):
            follows = _list_openers(parts[index + 1 :])
            certain = set(part.stops) - {part.operator.first}
            if follows is None or not follows <= certain:
                return False
    return True


def _list_openers(parts: Iterable[_Part]) -> set[str] | None:
    """The characters these parts can begin with; None where that can be nearly any."""
    begins: set[str] = set()
    for part in parts:
        if isinstance(part, str):
            return begins | {part[0]}
        if not part.operator.first:
            return None
        begins.add(part.operator.first)
    return begins


def _compile_spans(parts: Iterable[_Part]) -> _Spans:
    """Spans by a regular expression that never backtracks: all its repeats are possessive."""

    def pattern(part: _Part) -> str:
        if isinstance(part, str):
            return re.escape(part)
        inner = f"[^{re.escape(part.stops)}]" if part.stops else "."
        first = re.escape(part.operator.first)
        return f"(?:{first}({inner}*+))?+" if first else f"({inner}++)"

    fullmatch = re.compile("".join(map(pattern, parts))).fullmatch

    def spans(text: str) -> Sequence[str | None] | None:
        found = fullmatch(text)
        return None if found is None else found.groups()

    return spans


def _search_spans(parts: Sequence[_Part], text: str) -> Sequence[str | None] | None:
    """Spans where there is a choice, in two passes over the text for each part.

    From the right: at which positions can the rest of the parts take the rest of the text? From
    the left: give each expression the most that leaves such a position.
    """
    escapes = [found.start() for found in re.finditer("%", text)]
    doors = [bytearray(len(text)) + b"\1"]
    for part in reversed(parts):
        here = _find_doors(part, text, doors[-1])
        for at in escapes:
            here[at + 1] = here[at + 2] = 0  # nothing begins inside %41
        doors.append(here)
    doors.reverse()
    if not doors[0][0]:
        return None
    spans: list[str | None] = []
    at = 0
    for part, after in zip(parts, doors[1:], strict=True):
        if isinstance(part, str):
            at += len(part)
            continue
        start = at + len(part.operator.first)
        end = _find_farthest(part, text, at, after)
        spans.append(None if end is None else text[start:end])
        at = at if end is None else end
    return spans


def _find_doors(part: _Part, text: str, after: bytearray) -> bytearray:
    """Find where ``part`` can begin so that what follows it can begin at one of ``after``."""
    here = bytearray(len(text) + 1)
    if isinstance(part, str):
        at = text.find(part)
        while at >= 0:
            here[at] = after[at + len(part)]
            at = text.find(part, at + 1)
        return here
    first = part.operator.first
    if first:
        here[-1] = after[-1]
    reaches = after[-1]  # from the position looked at, over characters of the value alone
    for at in range(len(text) - 1, -1, -1):
        inside = text[at] not in part.stops
        here[at] = (after[at] or (text[at] == first and reaches)) if first else inside and reaches
        reaches = after[at] or (inside and reaches)
    return here


def _find_farthest(part: _Expression, text: str, at: int, after: bytearray) -> int | None:
    """Find where ``part`` ends if it begins at ``at`` and takes all it can; None if it is left out."""
    first = part.operator.first
    if not text.startswith(first, at):
        return None
    least = at + len(first) if first else at + 1
    end = least
    while end < len(text) and text[end] not in part.stops:
        end += 1
    return next((e for e in range(end, least - 1, -1) if after[e]), None)


# --- matching: values ------------------------------------------------------------------------

_Read: TypeAlias = Iterator[tuple[str, str | list[str] | None]]
"""Names and values; None for a value that must not be."""


def _read(expression: _Expression, span: str | None) -> _Read:
    """The values in the part of a URI that belongs to an expression."""
    if span is None:
        return
    operator, variables = expression.operator, expression.variables
    if operator.named:
        yield from _read_named(expression, span)
        return
    single = len(variables) == 1 and not variables[0].explode
    pieces = [span] if single else span.split(operator.separator)
    if len(pieces) > len(variables) and not variables[-1].explode:
        yield variables[-1].name, None
    else:
        for index, (variable, piece) in enumerate(zip(variables, pieces, strict=False), 1):
            rest = pieces[index:] if index == len(variables) else []
            yield variable.name, _read_value(operator, variable, [piece, *rest])


def _read_named(expression: _Expression, span: str) -> _Read:
    """Values that come with their names: in any order, all of them known."""
    found: dict[str, list[str]] = {}
    for item in span.split(expression.operator.separator):
        name, _, piece = item.partition("=")
        found.setdefault(name, []).append(piece)
    for variable in expression.variables:
        pieces = found.pop(variable.name, None)
        if pieces is not None:
            yield variable.name, _read_value(expression.operator, variable, pieces)
    yield from ((name, None) for name in found)


def _read_value(
    operator: _Operator, variable: _Variable, pieces: Sequence[str]
) -> str | list[str] | None:
    texts = [text for piece in pieces if (text := _decode(piece)) is not None]
    if len(texts) < len(pieces) or not all(_is_safe(operator, text) for text in texts):
        return None
    if variable.explode:
        return texts
    if len(texts) > 1 or (variable.prefix and len(texts[0]) > variable.prefix):
        return None
    return texts[0]


_SEPARATOR = r"[/\\]"


def _is_safe(operator: _Operator, text: str) -> bool:
    """Whether a value is what its place promises: one segment, or segments without dots."""
    if "/" in text and not operator.slashes:
        return False
    return operator.free or {".", ".."}.isdisjoint(re.split(_SEPARATOR, text))


_ESCAPE = rb"%([0-9A-Fa-f]{2})"


def _decode(text: str) -> str | None:
    """A value without its escapes, or None where they are no UTF-8."""
    if "%" not in text:
        return text
    data = re.sub(
        _ESCAPE, lambda found: bytes.fromhex(found[1].decode("ascii")), text.encode("ascii")
    )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
