"""Markup of pages: HTML elements, in which every text of others is shown and escaped.

There is one way from a text to markup, :func:`element`; what is already markup is :class:`Markup`, and
nothing else goes in as it is. Inline scripts, styles and handlers cannot be written with it.
"""

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TypeAlias

from isthmus.cards.lines import QUOTE_BAR, StyledLine
from isthmus.core.text import show_invisible

VOID_TAGS = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
URL_ATTRIBUTES = frozenset({"href", "src", "action", "formaction"})
URL_BEGINNINGS = ("/", "?", "#", "https://", "http://")
RAW_TAGS = frozenset({"script", "style"})  # what stands in them is no text for a browser


class Markup(str):
    """HTML that is made by :func:`element`, and goes into a page as it is."""

    __slots__ = ()


class Verbatim(str):
    """A value of a hidden field, which nobody reads: it is escaped, and otherwise stays as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
"""Markup as it is, any other text escaped, and several of them one after the other."""

AttributeValue: TypeAlias = str | int | bool | None
"""True writes the name alone, False and None leave the attribute out."""


def escape(text: str, *, line: bool = False) -> Markup:
    """A text of anybody as markup; what is invisible in it can be seen.

    Args:
        text: the text.
        line: line ends and tabs are made visible, too.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(show_invisible(text.replace("\r\n", "\n"), line=line)))


def join_markup(*children: Child) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(_list_pieces(children)))


def _list_pieces(children: Iterable[Child]) -> Iterator[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            yield escape(child)
        else:
            yield from _list_pieces(child)


def element(
    tag: str, attributes: Mapping[str, AttributeValue] | None = None, /, *children: Child
) -> Markup:
    """An element of HTML or SVG.

    Args:
        tag: its name; ours, never a text of others.
        attributes: by name; names are ours.
        *children: what stands in it.

    Raises:
        ValueError: a script, style or handler would stand inline, or a URL could be a script.
    """
    given = "".join(_list_attributes(attributes or {}))
    if tag in VOID_TAGS:
        return Markup(f"<{tag}{given}>")
    content = join_markup(*children)
    if tag in RAW_TAGS and content:
        raise ValueError(f"<{tag}> has no content: scripts and styles are files of their own")
    # A browser drops the first line end in these.
    first = "\n" if tag in {"pre", "textarea"} and content.startswith("\n") else ""
    return Markup(f"<{tag}{given}>{first}{content}</{tag}>")


def _list_attributes(attributes: Mapping[str, AttributeValue]) -> Iterator[str]:
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        if name.startswith("on") or name == "style":
            raise ValueError(f"the attribute {name} would be inline")
        if name in URL_ATTRIBUTES and not is_safe_url(str(value)):
            raise ValueError(f"{name} of a page is a path or a URL of http")
        if value is True:
            yield f" {name}"
            continue
        shown = html.escape(value) if isinstance(value, Verbatim) else escape(str(value), line=True)
        yield f' {name}="{shown}"'


def is_safe_url(url: str) -> bool:
    """Whether a link may lead there: a path of ours, or http; never a script."""
    return url.startswith(URL_BEGINNINGS) and url.isascii() and url.isprintable()


def make_json_block(value: object) -> Markup:
    """Plain data as JSON, whole."""
    return element("pre", {"class": "quote", "tabindex": 0}, json.dumps(value, indent=2))


# Cards

LINE_KINDS = {"head": "head", "warn": "warn", "dim": "soft", "title": "head"}


def make_lines_markup(lines: Iterable[StyledLine]) -> Markup:
    """Lines of a card as HTML: parts with headings, facts, quoted texts, diffs and warnings."""
    parts: list[list[StyledLine]] = [[]]
    for line in lines:
        if line.role in {"head", "title"}:
            parts.append([])
        parts[-1].append(line)
    return join_markup(_make_part(part) for part in parts if part)


def _make_part(lines: list[StyledLine]) -> Markup:
    content = [
        _make_block(kind, list(several)) for kind, several in groupby(lines, _find_line_kind)
    ]
    return element("section", {"class": "part"}, content)


def _find_line_kind(line: StyledLine) -> str:
    if line.role in LINE_KINDS:
        return LINE_KINDS[line.role]
    if line.text.startswith(QUOTE_BAR) or line.role in {"added", "removed"}:
        return "quote"
    return "fact"


def _make_block(kind: str, lines: list[StyledLine]) -> Markup:
    if kind == "head":
        return join_markup(element("h3", {}, line.text.strip("- ")) for line in lines)
    if kind == "quote":
        rows = [
            element(
                "span",
                {"class": line.role if line.role != "text" else None},
                line.text.removeprefix(QUOTE_BAR) + "\n",
            )
            for line in lines
        ]
        return element("pre", {"class": "quote", "tabindex": 0}, rows)
    if kind == "fact":
        return element("dl", {"class": "facts"}, [_make_fact(line.text.strip()) for line in lines])
    return join_markup(
        element("p", {"class": kind}, line.text.strip().removeprefix("! ")) for line in lines
    )


def _make_fact(text: str) -> Markup:
    label, sign, value = text.partition(": ")
    return join_markup(
        element("dt", {}, label if sign else ""), element("dd", {}, value if sign else text)
    )
