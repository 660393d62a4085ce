"""Read what a docstring says about a function and its parameters.

Google, numpy and Sphinx styles are understood, also mixed. What describes parameters goes into
the schema, what is left is the description of the tool: nothing is told to the model twice.
"""

import inspect
import re
from collections.abc import Callable, Iterator

import msgspec

__all__ = ["Docstring", "parse_docstring"]


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
    parts: dict[str, list[str]] = {TEXT: [], RETURNS: [], RAISES: []}
    parameters: dict[str, str] = {}
    for kind, entry, body in _sections(inspect.cleandoc(doc).splitlines()):
        if kind == PARAMETERS:
            parameters.update(_entries(entry, body))
        else:
            parts[kind] += body
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(parts[TEXT])).strip()
    return Docstring(text, parameters, _flow(parts[RETURNS]))


def _sections(
    lines: list[str],
) -> Iterator[tuple[str, str | None, list[str]]]:
    """Each stretch of lines, with what it is about and how its entries begin."""
    at = 0
    while at < len(lines):
        if kind := _numpy_section(lines, at):
            end = _until(lines, at + 2, _begins_numpy)
            yield kind, NUMPY_ENTRY, lines[at + 2 : end]
        elif kind := _google_section(lines, at):
            end = _until(lines, at + 1, _is_flush)
            yield kind, GOOGLE_ENTRY, lines[at + 1 : end]
        elif (field := re.match(SPHINX_FIELD, lines[at])) and field["field"] in FIELDS:
            end = _until(lines, at + 1, _is_flush)
            kind = FIELDS[field["field"]]
            name = (field["about"].split() or [""])[-1]
            head = f"{name}: {field['rest']}" if kind == PARAMETERS else field["rest"]
            yield kind, GOOGLE_ENTRY, [head, *lines[at + 1 : end]]
        else:
            end = at + 1
            yield TEXT, None, [lines[at]]
        at = end


def _numpy_section(lines: list[str], at: int) -> str | None:
    return SECTIONS.get(lines[at].strip().lower()) if _begins_numpy(lines, at) else None


def _google_section(lines: list[str], at: int) -> str | None:
    """What the header on this line opens; a header has indented lines below it."""
    header = re.fullmatch(GOOGLE_HEADER, lines[at])
    below = next((line for line in lines[at + 1 :] if line.strip()), "")
    return SECTIONS.get(header[1].lower()) if header and below.startswith((" ", "\t")) else None


def _begins_numpy(lines: list[str], at: int) -> bool:
    return (
        bool(lines[at].strip())
        and at + 1 < len(lines)
        and re.fullmatch(NUMPY_RULE, lines[at + 1]) is not None
    )


def _is_flush(lines: list[str], at: int) -> bool:
    return bool(lines[at].strip()) and not lines[at][0].isspace()


def _until(lines: list[str], at: int, ends: Callable[[list[str], int], bool]) -> int:
    return next((i for i in range(at, len(lines)) if ends(lines, i)), len(lines))


def _entries(begins: str | None, body: list[str]) -> dict[str, str]:
    """The entries of a section, by name; one text may speak for several names."""
    found: dict[str, str] = {}
    names: list[str] = []
    text: list[str] = []
    for line in [*inspect.cleandoc("\n" + "\n".join(body)).splitlines(), ""]:
        entry = re.fullmatch(begins, line) if begins and line[:1].strip() else None
        if entry is None:
            text.append(line)
            continue
        found.update(dict.fromkeys(names, _flow(text)))
        names = re.findall(r"\w+", entry["names"])
        text = [entry["rest"] or ""]
    found.update(dict.fromkeys(names, _flow(text)))
    return {name: said for name, said in found.items() if said}


def _flow(lines: list[str]) -> str:
    """Lines as running text; a blank line stays a paragraph."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines))
    return "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
