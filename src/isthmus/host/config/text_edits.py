"""Edits of TOML and YAML as text: one table or mapping is put in or taken out, and nothing else moves.

Both are lines with headers or indentation, so that a new part is a few lines more. Parsers that write
a whole file anew lose comments (PyYAML) or are an extra (tomlkit). Whoever edits by this compares what
the new text says with what it should say (:class:`isthmus.host.config.write.ConfigFile` does).
"""

import json
import re
from typing import Any

from isthmus.host.config.files import TABLE_HEADER, parse_names
from isthmus.host.config.syntax import SyntaxNode, parse_yaml

TOML_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
YAML_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
YAML_INDENT = "  "
YAML_EMPTY_VALUES = ("{}", "null", "~", "")


class UnknownLayout(ValueError):
    """The text is written in a way that lines alone cannot edit; nothing is changed."""


def append_table(text: str, keys: tuple[str, ...], value: dict[str, Any]) -> str:
    """Put a table at the end of a text of TOML."""
    ending = "\r\n" if "\r\n" in text else "\n"
    whole = text if not text or text.endswith("\n") else text + ending
    apart = [""] if whole.strip() and not whole.endswith(ending * 2) else []
    return whole + "".join(f"{line}{ending}" for line in [*apart, *_format_table(keys, value)])


def remove_table(text: str, keys: tuple[str, ...]) -> str:
    """Take a table out of a text of TOML, with the tables in it; comments above the next one stay."""
    kept: list[str] = []
    inside = False
    waiting: list[str] = []  # comments and blanks, which may belong to what follows
    for line in text.splitlines(keepends=True):
        if TABLE_HEADER.match(line):
            inside = parse_names(line)[: len(keys)] == keys
            kept += waiting
            waiting = []
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            waiting.append(line)
        else:
            waiting = []
    return "".join([*kept, *waiting])


def _format_table(keys: tuple[str, ...], value: dict[str, Any]) -> list[str]:
    """The lines of a table: its own values first, then a table for each object in it."""
    lines = [f"[{'.'.join(map(_format_toml_key, keys))}]"]
    plain = {name: one for name, one in value.items() if not isinstance(one, dict)}
    lines += [f"{_format_toml_key(name)} = {_format_toml(one)}" for name, one in plain.items()]
    for name, one in value.items():
        if isinstance(one, dict):
            lines += ["", *_format_table((*keys, name), one)]
    return lines


def _format_toml_key(name: str) -> str:
    return name if TOML_BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _format_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_format_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)  # texts, numbers, true and false are alike


def set_yaml_member(text: str, keys: tuple[str, ...], value: dict[str, Any]) -> str:
    """Put a mapping into a section of a text of YAML, before the others; the section is made if missing.

    Raises:
        BadSyntax: the text is no YAML.
        UnknownLayout: the section is written in braces, or is no mapping.
    """
    section, name = _split_keys(keys)
    newline = "\r\n" if "\r\n" in text else "\n"
    root = parse_yaml(text) if text.strip() else SyntaxNode({}, 0, members={})
    found = (root.members or {}).get(section)
    if found is None:
        head = text if not text or text.endswith("\n") else text + newline
        lines = [f"{_format_yaml_key(section)}:", *_format_mapping({name: value}, YAML_INDENT)]
        return head + "".join(f"{line}{newline}" for line in lines)
    if found.node.members:
        if text[found.node.start] == "{":
            raise UnknownLayout(f"{section} is written in braces")
        first = min(member.start for member in found.node.members.values())
        start = text.rfind("\n", 0, first) + 1
        lines = _format_mapping({name: value}, text[start:first])
        return text[:start] + "".join(f"{line}{newline}" for line in lines) + text[start:]
    written = text[found.node.start : found.node.end]
    if found.node.value not in (None, {}) or written not in YAML_EMPTY_VALUES:
        raise UnknownLayout(f"{section} is no mapping")
    line_end = text.find("\n", found.start)
    rest = len(text) if line_end < 0 else line_end + 1
    cut = found.node.start
    head = f"{text[:cut].rstrip(' ') if written else text[:cut]}{text[found.node.end : rest]}"
    head += "" if head.endswith("\n") else newline
    lines = _format_mapping({name: value}, YAML_INDENT)
    return head + "".join(f"{line}{newline}" for line in lines) + text[rest:]


def remove_yaml_member(text: str, keys: tuple[str, ...]) -> str:
    """Take a mapping out of a section of a text of YAML; comments behind it stay.

    Raises:
        BadSyntax: the text is no YAML.
        UnknownLayout: the section is written in braces.
    """
    section, name = _split_keys(keys)
    found = (parse_yaml(text).members or {}).get(section)
    member = (found.node.members or {}).get(name) if found else None
    if found is None or member is None:
        return text
    start = text.rfind("\n", 0, member.start) + 1
    indent = text[start : member.start]
    if indent.strip() or text[found.node.start] == "{":
        raise UnknownLayout(f"{section} is written in braces")
    end = _find_block_end(text, start, len(indent))
    if len(found.node.members or {}) == 1:  # nothing at all would be no mapping
        newline = "\r\n" if "\r\n" in text else "\n"
        colon = text.index(":", found.start + len(section))
        behind = text[colon + 1 : start]
        return f"{text[: colon + 1]} {{}}{behind or newline}{text[end:]}"
    return text[:start] + text[end:]


def _find_block_end(text: str, start: int, indent: int) -> int:
    """The end of the lines that belong to the member whose line begins at an offset."""
    at = end = text.find("\n", start) + 1 or len(text)
    while at < len(text):
        after = text.find("\n", at) + 1 or len(text)
        line = text[at:after]
        deep = len(line) - len(line.lstrip(" ")) > indent
        if line.strip():
            if not deep:
                break
            end = after
        at = after
    return end


def format_yaml(value: dict[str, Any]) -> str:
    """Plain data as YAML, in blocks."""
    return "".join(f"{line}\n" for line in _format_mapping(value, ""))


def format_toml(keys: tuple[str, ...], value: dict[str, Any]) -> str:
    """A table as TOML."""
    return "".join(f"{line}\n" for line in _format_table(keys, value))


def _format_mapping(value: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for name, one in value.items():
        head = f"{indent}{_format_yaml_key(name)}:"
        if isinstance(one, dict) and one:
            lines += [head, *_format_mapping(one, indent + YAML_INDENT)]
        else:
            lines.append(f"{head} {json.dumps(one, ensure_ascii=False)}")
    return lines


def _format_yaml_key(name: str) -> str:
    plain = YAML_PLAIN_KEY.fullmatch(name) and name.lower() not in YAML_WORDS
    return name if plain else json.dumps(name, ensure_ascii=False)


def _split_keys(keys: tuple[str, ...]) -> tuple[str, str]:
    """The section and the name in it."""
    if len(keys) != 2:
        raise UnknownLayout("only a member of a section can be changed in YAML")
    return keys[0], keys[1]
