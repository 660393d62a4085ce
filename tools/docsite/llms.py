"""``llms.txt`` and ``llms-full.txt``: the documentation as models read it."""

import html
import re
from pathlib import Path
from typing import Any

from docsite.links import is_external, list_prose, rewrite_links
from docsite.nav import list_entries, list_sections

MAX_SUMMARY_CHARACTERS = 180
OPTIONAL = ("Decisions",)
"""Sections that llms.txt marks as left out where room is short."""


def write_llms(config: dict[str, Any], pages: Path, output: Path) -> None:
    """Writes both files, and every page as Markdown beside its HTML.

    Args:
        config: ``mkdocs.yml`` with its whole navigation.
        pages: the folder of the staged pages.
        output: the folder of the site.
    """
    head = f"# {config['site_name']}\n\n> {config['site_description']}\n"
    parts = [head]
    optional: list[str] = []
    for section in list_sections(config["nav"]):
        rows = [describe_page(pages / page, page, title) for title, page in section.pages]
        if section.title.startswith(OPTIONAL):
            optional += rows
        else:
            parts.append(f"## {section.title}\n\n" + "\n".join(rows) + "\n")
    parts.append("## Optional\n\n" + "\n".join(optional) + "\n")
    (output / "llms.txt").write_text("\n".join(parts), encoding="utf-8")
    whole = [head]
    for _, page in list_entries(config["nav"]):
        text = (pages / page).read_text(encoding="utf-8")
        (output / page).write_text(link_markdown(strip_tags(text)), encoding="utf-8")
        whole.append(f"<!-- {page} -->\n\n{strip_tags(text).strip()}\n")
    (output / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


def strip_tags(text: str) -> str:
    """The page with types as code instead of HTML, and without anchors beside headings."""
    text = re.sub(r"</?(?:a|p)\b[^>]*>", "", text)
    text = re.sub(r"^(#+ .*?) \{#[^}]+\}$", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"<code>(.*?)</code>", lambda found: f"`{plain_code(found[1])}`", text)


def plain_code(text: str) -> str:
    """A type without the escapes that its table cell in HTML needs."""
    return html.unescape(text).replace("|", "\\|")


def link_markdown(text: str) -> str:
    """The page as it stands beside its HTML; pages of sources are there as HTML only."""

    def change(target: str) -> str:
        file, mark, anchor = target.partition("#")
        if is_external(target) or "source/" not in file:
            return target
        return f"{file.removesuffix('.md')}.html{mark}{anchor}"

    return rewrite_links(text, change)


def describe_page(path: Path, page: str, title: str | None) -> str:
    """One line of ``llms.txt``: title, address, first sentence."""
    text = path.read_text(encoding="utf-8")
    said = read_summary(text)
    return f"- [{title or read_title(text) or page}]({page})" + (f": {said}" if said else "")


def read_title(text: str) -> str | None:
    """The first heading of a page, without its markup."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "").strip() if found else None


def read_summary(text: str) -> str:
    """The first sentence of a page's first paragraph, without its markup."""
    paragraph: list[str] = []
    for line, prose in list_prose(text):
        plain = line.strip()
        if prose and plain and not plain.startswith(("#", "|", "<", ">", "-", "!", "*")):
            paragraph.append(plain)
        elif paragraph:
            break
    joined = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph))
    sentence = re.split(r"(?<=[.!?:]) ", joined, maxsplit=1)[0].rstrip(":")
    if len(sentence) > MAX_SUMMARY_CHARACTERS:
        sentence = sentence[:MAX_SUMMARY_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return sentence
