"""Edits of JSON with comments that leave the rest of the text as it is."""

import json
import re
from typing import Any

from isthmus.host.config import syntax
from isthmus.host.config.syntax import SyntaxMember, SyntaxNode

__all__ = ["remove_member", "replace_member"]

BLANKS = re.compile(r"[ \t]*")


def replace_member(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Replace the value of a member; the member, and the objects around it, are made where missing.

    Args:
        text: JSON with comments.
        keys: the way to the member, of names alone.
        value: plain data.

    Raises:
        BadSyntax: the text is no JSON.
        KeyError: the way leads through what is no object.
    """
    node = syntax.parse(text)
    for depth, key in enumerate(keys):
        if node.members is None:
            raise KeyError(".".join(keys[:depth]))
        member = node.members.get(key)
        if member is None:
            for missing in reversed(keys[depth + 1 :]):
                value = {missing: value}
            return _insert_member(text, node, key, value)
        if depth + 1 < len(keys):
            node = member.node
            continue
        written = _format_value(text, value, _find_indent(text, member.start))
        return text[: member.node.start] + written + text[member.node.end :]
    raise KeyError("")


def remove_member(text: str, keys: tuple[str, ...]) -> str:
    """Remove a member from a text; nothing changes where there is none.

    Raises:
        BadSyntax: the text is no JSON.
    """
    node = syntax.parse(text)
    found = syntax.at(node, keys[:-1])
    members = found[1].members if found else None
    if not members or keys[-1] not in members:
        return text
    names = list(members)
    at = names.index(keys[-1])
    member = members[keys[-1]]
    start, end = _find_line_start(text, member.start), member.node.end
    comma = syntax.trivia(text, end)
    if text[comma : comma + 1] == ",":
        # what stands between the value and its comma is a comment of somebody's, and stays
        return _join_parts(text[:start], text[end:comma], text[comma + 1 :])
    if at:  # the last one: the comma before it goes
        before = _find_comma(text, members[names[at - 1]])
        return _join_parts(text[:before] + text[before + 1 : start], "", text[end:])
    return _join_parts(text[:start], "", text[end:])


def _join_parts(head: str, kept: str, tail: str) -> str:
    """Join what is left of a text, without a line that has become empty."""
    if not kept.strip() and (head.endswith("\n") or not head):
        rest = BLANKS.match(tail)
        cut = rest.end() if rest else 0
        for ending in ("\r\n", "\n"):
            if tail.startswith(ending, cut):
                return head + tail[cut + len(ending) :]
    return head + kept + tail


def _find_comma(text: str, member: SyntaxMember) -> int:
    """Find the comma after a member that is not the last one."""
    return syntax.trivia(text, member.node.end)


def _insert_member(text: str, node: SyntaxNode, key: str, value: Any) -> str:
    """Insert a member into an object, behind the others."""
    members = list((node.members or {}).values())
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _find_indent(text, node.start)
    unit = _find_indent_unit(text)
    if not members:
        inner = outer + unit
        body = f"{newline}{inner}{json.dumps(key, ensure_ascii=False)}: {_format_value(text, value, inner)}"
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip() if inside.strip() else ""
        return f"{text[: node.start + 1]}{kept}{body}{newline}{outer}{text[node.end - 1 :]}"
    last = members[-1]
    # The member that stands last in the text, which a doubled name may have moved to.
    last = max(members, key=lambda one: one.node.end)
    comma = syntax.trivia(text, last.node.end)
    trailing = text[comma : comma + 1] == ","
    apart = "\n" in text[node.start : last.start]
    inner = _find_indent(text, last.start)
    entry = f"{json.dumps(key, ensure_ascii=False)}: {_format_value(text, value, inner)}"
    if not apart:
        after = comma + 1 if trailing else last.node.end
        return f"{text[:after]}{'' if trailing else ','} {entry}{text[after:]}"
    if not trailing:
        text = f"{text[: last.node.end]},{text[last.node.end :]}"
    closing = node.end - 1 + (not trailing)
    end = len(text[:closing].rstrip())
    tail = "," if trailing else ""
    return f"{text[:end]}{newline}{inner}{entry}{tail}{_make_tail(text[end:closing], newline, outer)}{text[closing:]}"


def _make_tail(blank: str, newline: str, outer: str) -> str:
    """The blanks before the closing brace: as they were, if it has a line of its own."""
    return blank if "\n" in blank else f"{newline}{outer}"


def _find_line_start(text: str, offset: int) -> int:
    """The start of the line, if only blanks stand before the offset; the offset otherwise."""
    start = text.rfind("\n", 0, offset) + 1
    return start if not text[start:offset].strip() else offset


def _find_indent(text: str, offset: int) -> str:
    """The blanks that the line of a character begins with."""
    start = text.rfind("\n", 0, offset) + 1
    found = BLANKS.match(text, start)
    return found[0] if found else ""


def _find_indent_unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _format_value(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_find_indent_unit(text)).split("\n")
    return ("\r\n" if "\r\n" in text else "\n").join(
        [lines[0], *(f"{indent}{line}" for line in lines[1:])]
    )
