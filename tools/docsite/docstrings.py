"""Docstrings as Markdown: Google sections, and roles turned into links."""

import re
from collections.abc import Iterable
from textwrap import dedent

from griffe import Docstring, DocstringSectionKind

from docsite.signatures import Linker

ROLE = re.compile(r":(?:py:)?\w+:`(~?)([^`<]+?)(?: <([^`>]+)>)?`")
LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
SECTION_TITLES = {"note": "Note", "notes": "Notes", "warning": "Warning"}


def convert_inline(text: str, link: Linker) -> str:
    """Text with its roles and literals as Markdown.

    Args:
        text: what a docstring says.
        link: address of the documentation of a name, by its whole path or its last part.
    """

    def replace(match: re.Match[str]) -> str:
        tilde, target, path = match[1], match[2], match[3]
        shown = target.rpartition(".")[2] if tilde else target
        address = link(path or target)
        return f"[`{shown}`]({address})" if address else f"`{shown}`"

    return LITERAL.sub(r"`\1`", ROLE.sub(replace, text))


def convert_cell(text: str, link: Linker) -> str:
    """The same on one line, for a table."""
    return escape_cell(convert_inline(" ".join(text.split()), link))


def escape_cell(text: str) -> str:
    """Markdown that does not end a cell."""
    return text.replace("|", "\\|")


def read_first_sentence(docstring: Docstring | None, link: Linker) -> str:
    """The first sentence of a docstring, for a table."""
    if docstring is None:
        return ""
    paragraph = docstring.value.strip().split("\n\n")[0]
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z`:])", " ".join(paragraph.split()), maxsplit=1)[0]
    return convert_cell(sentence, link)


def convert_text(text: str, link: Linker) -> str:
    """Paragraphs with their examples (``>>>``) as blocks of Python."""
    parts: list[str] = []
    for paragraph in split_paragraphs(text):
        if paragraph.startswith("    "):
            parts.append(f"```python\n{dedent(paragraph)}\n```")
        elif paragraph.lstrip().startswith(">>>"):
            parts.append(convert_example(paragraph))
        else:
            parts.append(re.sub(r"::$", ":", convert_inline(paragraph, link)))
    return "\n\n".join(parts)


def split_paragraphs(text: str) -> list[str]:
    """Paragraphs; those of an indented block are one."""
    paragraphs: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith("    ") and paragraphs and paragraphs[-1].startswith("    "):
            paragraphs[-1] += f"\n\n{paragraph}"
        else:
            paragraphs.append(paragraph)
    return paragraphs


def convert_example(text: str) -> str:
    """An example without its prompts, so that it can be pasted; what it prints is a comment."""
    lines = []
    for line in text.strip().splitlines():
        plain = line.strip()
        if plain.startswith((">>>", "...")):
            lines.append(plain[4:] if len(plain) > 3 else "")
        elif plain:
            lines.append(f"# {plain}")
    return "```python\n" + "\n".join(lines) + "\n```"


def write_rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def convert_sections(docstring: Docstring, link: Linker) -> tuple[str, dict[str, str], str]:
    """A docstring in three parts.

    Returns:
        the text, what is said of each parameter and attribute, and what comes after them: what is
        returned and raised, examples.
    """
    text: list[str] = []
    said: dict[str, str] = {}
    after: list[str] = []
    for section in docstring.parse("google", warnings=False):
        kind, value = section.kind, section.value
        if kind is DocstringSectionKind.text:
            text.append(convert_text(value, link))
        elif kind in (DocstringSectionKind.parameters, DocstringSectionKind.attributes):
            said.update((item.name.lstrip("*"), item.description) for item in value)
        elif kind in (DocstringSectionKind.returns, DocstringSectionKind.yields):
            told = " ".join(describe_result(item) for item in value)
            after.append(f"**{kind.value.capitalize()}:** {convert_inline(told, link)}")
        elif kind is DocstringSectionKind.raises:
            rows = [
                (
                    convert_cell(f":exc:`{item.annotation}`", link),
                    convert_cell(item.description, link),
                )
                for item in value
            ]
            after.append(write_rows(("Raises", "When"), rows))
        elif kind is DocstringSectionKind.examples:
            after += [
                convert_example(part)
                if part.lstrip().startswith(">>>")
                else convert_text(part, link)
                for _, part in value
            ]
        elif kind is DocstringSectionKind.admonition:
            title = section.title or "Note"
            after.append(f"**{title}**\n\n{convert_text(value.contents, link)}")
    return "\n\n".join(text), said, "\n\n".join(after)


def describe_result(item: object) -> str:
    """What is returned; griffe takes words before a colon for a type."""
    annotation = getattr(item, "annotation", None)
    name = getattr(item, "name", "")
    described = str(getattr(item, "description", ""))
    if name:
        return f"{name}: {described}"
    if isinstance(annotation, str) and " " in annotation:
        return f"{annotation}: {described}"
    return described
