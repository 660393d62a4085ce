"""Pages that show files of the repository, so that links to them stay on the site."""

import posixpath
from pathlib import Path

from docsite.links import LinkMap, source_page

HIDDEN = "---\nsearch:\n  exclude: true\n---\n"
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".md": "markdown", ".yml": "yaml"}
MAX_BYTES = 400_000


def write_source_pages(links: LinkMap, to: Path) -> int:
    """Writes a page for each file that is linked to, and for each folder with all that is in it.

    Args:
        links: what was linked to; pages written in Markdown may link to more.
        to: the folder of the staged pages.

    Returns:
        How many pages were written.
    """
    written: set[str] = set()
    while wanted := sorted(links.sources - written):
        for path in wanted:
            if (links.root / path).is_dir():
                inside = list_files(links.root, links.root / path)
                links.sources.update(inside)
                write_page(to, path, describe_folder(path, inside))
            else:
                write_page(to, path, describe_file(links, path))
        written.update(wanted)
    return len(written)


def list_files(root: Path, folder: Path) -> list[str]:
    """The files of a folder and the folders in it, without what programs leave behind."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
        and path.stat().st_size <= MAX_BYTES
        and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
    )


def describe_folder(path: str, files: list[str]) -> str:
    """A page that lists the files of a folder."""
    above = posixpath.dirname(source_page(path))
    rows = [f"- [`{file}`]({posixpath.relpath(source_page(file), above)})" for file in files]
    return f"{HIDDEN}# {path}/\n\n" + "\n".join(rows) + "\n"


def describe_file(links: LinkMap, path: str) -> str:
    """A page with the text of a file; Markdown is shown as the page that it is."""
    text = (links.root / path).read_text(encoding="utf-8", errors="replace")
    if path.endswith(".md"):
        return HIDDEN + links.rewrite(text, path)
    language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
    fence = "`" * 8
    return f"{HIDDEN}# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def write_page(to: Path, path: str, text: str) -> None:
    """Writes the page of a file or folder."""
    page = to / source_page(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
