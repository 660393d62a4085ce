"""Docstrings as fastmcp reads them: what stands before the first section describes the tool."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.server.schema.signatures import parse_docstring

PARAMETER_SECTIONS = {"args", "arguments", "params", "parameters"}

SPHINX_FIELDS = {
    *("param", "parameter", "arg", "argument", "key", "keyword", "type", "var", "ivar", "cvar"),
    *("vartype", "raises", "raise", "except", "exception", "return", "returns", "rtype"),
}
PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}

GOOGLE_HEADER = re.compile(r"[\w][\s\w-]*:(\s+[^\s].*)?\s*")


@dataclass(frozen=True)
class DocstringParts:
    """The parts of a docstring.

    Attributes:
        description: what stands before the first section; all of it where there is none.
        parameters: what is said about each parameter.
    """

    description: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(fn: Callable[..., Any]) -> DocstringParts:
    """Read the docstring of a function, in Google, numpy or Sphinx style."""
    doc = inspect.getdoc(fn)
    if not doc:
        return DocstringParts()
    if not FLAVOUR.reads_sections or (":" not in doc and "---" not in doc):
        return DocstringParts(doc)
    lines = doc.splitlines()
    found = [_read_google_style(lines), _read_numpy_style(doc), _read_sphinx_style(lines)]
    for parts in found:
        if parts is not None and (parts.parameters or not FLAVOUR.needs_parameters):
            return parts
    return DocstringParts(doc)


def _read_numpy_style(doc: str) -> DocstringParts | None:
    """Read sections whose headers are underlined; None where there is none."""
    if "---" not in doc:
        return None
    parts = parse_docstring(doc)
    if not parts.parameters and not parts.returns:
        return None
    return DocstringParts(parts.text or None, parts.parameters)


def _read_google_style(lines: list[str]) -> DocstringParts | None:
    """Read sections with a header and indented lines below it; None where there is none."""
    description: str | None = None
    parameters: dict[str, str] = {}
    text: list[str] = []
    at, fenced, found = 0, False, False
    while at < len(lines):
        line = lines[at]
        if line.lstrip(" ").startswith("```"):
            fenced = not fenced
        elif not fenced and _opens_section(lines, at):
            if description is None and any(text):
                description = "\n".join(text).rstrip("\n")
            text, found = [], True
            end = _find_section_end(lines, at + 1)
            if line.partition(":")[0].lower() in PARAMETER_SECTIONS:
                parameters.update(_read_entries(lines[at + 1 : end]))
            at = end
            continue
        text.append(line)
        at += 1
    return DocstringParts(description, parameters) if found else None


def _read_sphinx_style(lines: list[str]) -> DocstringParts | None:
    """Read fields such as ``:param name: text``, which end where the next begins; None where there is none."""
    text: list[str] = []
    parameters: dict[str, str] = {}
    at, found = 0, False
    while at < len(lines):
        words = lines[at][1:].partition(":")[0].split() if lines[at].startswith(":") else []
        if not words or words[0] not in SPHINX_FIELDS:
            text.append(lines[at])
            at += 1
            continue
        begin, found = at, True
        at += 1
        while at < len(lines) and not lines[at].startswith(":"):
            at += 1
        said = inspect.cleandoc("\n".join(lines[begin:at])).split(":", 2)[2].strip()
        if words[0] in PARAMETER_FIELDS:
            parameters[words[-1]] = said
    return DocstringParts("\n".join(text).strip("\n") or None, parameters) if found else None


def _opens_section(lines: list[str], at: int) -> bool:
    if GOOGLE_HEADER.fullmatch(lines[at]) is None or (at > 0 and lines[at - 1].strip()):
        return False
    return at + 1 < len(lines) and lines[at + 1].startswith(" ") and bool(lines[at + 1].strip())


def _find_section_end(lines: list[str], start: int) -> int:
    """The line after a section: the first that is less indented."""
    indent = len(lines[start]) - len(lines[start].lstrip())
    for at in range(start, len(lines)):
        if lines[at].strip() and not lines[at].startswith(" " * indent):
            return at
    return len(lines)


def _read_entries(body: list[str]) -> dict[str, str]:
    """The entries ``name (type): text`` of a section; lines below are indented once more."""
    indent = len(body[0]) - len(body[0].lstrip())
    entries: list[list[str]] = []
    for line in body:
        if line.strip() and not line.startswith(" " * (indent + 1)):
            entries.append([line[indent:]])
        elif line.startswith(" " * (indent * 2)):
            entries[-1].append(line[indent * 2 :])
        else:
            entries[-1].append(line.strip())
    read: dict[str, str] = {}
    for first, *rest in entries:
        name, colon, text = first.partition(":")
        if colon:
            name = name.partition(" ")[0]
            read[name.lstrip("*")] = "\n".join([text.lstrip(), *rest]).rstrip("\n")
    return read
